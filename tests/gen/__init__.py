"""Random and combinatorial programs, for either library."""
