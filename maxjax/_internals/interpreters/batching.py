"""The names of jax.interpreters.batching."""

from typing import Any

from maxjax.interpreters import batching as _public


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
