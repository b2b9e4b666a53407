"""The names of jax.extend.linear_util."""

from typing import Any

from maxjax.extend import linear_util as _public


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
