"""Numbers: jax.numpy, jax.random, jax.nn and special functions, against JAX."""
