"""Arrays, pending graphs, tiers, and processes that fork."""
