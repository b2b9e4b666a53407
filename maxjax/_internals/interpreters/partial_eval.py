"""The names of jax.interpreters.partial_eval."""

from typing import Any

from maxjax.interpreters import partial_eval as _public


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
