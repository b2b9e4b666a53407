"""jax.random."""
