"""What pickles of random keys that JAX wrote name."""
