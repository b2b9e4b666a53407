"""The version of maxjax, and of the JAX release that it follows."""

__version__ = "0.2.0"
__version_info__ = (0, 2, 0)
# Under `python -m maxjax`, a script sees this as JAX's version.
JAX_VERSION = "0.12.0.1"
