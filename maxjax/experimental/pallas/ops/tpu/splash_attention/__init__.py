"""jax.experimental.pallas.ops.tpu.splash_attention: attention on TPUs, which is not here."""
