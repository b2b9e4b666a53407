"""The names of jax.interpreters.mlir."""

from typing import Any

from maxjax.interpreters import mlir as _public


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
