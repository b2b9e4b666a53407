"""Linear algebra, and its primitives."""

from typing import Any

from maxjax.lax import linalg as _linalg


def __getattr__(name: str) -> Any:
    return getattr(_linalg, name)
