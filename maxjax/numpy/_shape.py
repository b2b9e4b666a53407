"""Part of jax.numpy."""

__all__: list[str] = []
