"""jax.experimental.pallas.ops: kernels for accelerators, which are not here."""
