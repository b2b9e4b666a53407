"""Programs made by chance or by combination, for either library."""
