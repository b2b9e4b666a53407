"""What popular libraries import from JAX's private modules, and nothing more.

``python -m maxjax`` gives these modules where a script's libraries ask for ``jax._src``. Each holds
the names that Equinox, Flax, Haiku, Chex and their kin use, by maxjax's own means.
"""
