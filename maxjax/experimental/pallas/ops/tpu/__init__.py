"""jax.experimental.pallas.ops.tpu: kernels for TPUs, which are not here."""
