"""Operations of jax.lax."""

__all__: list[str] = []
