"""The names of jax.interpreters.ad."""

from typing import Any

from maxjax.interpreters import ad as _public


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
