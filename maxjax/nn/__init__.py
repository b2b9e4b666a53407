"""jax.nn."""
