"""The version of maxjax, and of the JAX whose names it has."""

__version__ = "0.1.0"
__version_info__ = (0, 1, 0)
# A script that asks under `python -m maxjax` for JAX's version is told this one.
JAX_VERSION = "0.10.2"
