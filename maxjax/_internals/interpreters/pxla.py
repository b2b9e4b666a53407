"""The names of jax.interpreters.pxla."""

from typing import Any

from maxjax.interpreters import pxla as _public


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
