"""Loops, branches and solvers."""

from typing import Any

from maxjax import lax as _lax
from maxjax.extend.core import primitives as _primitives


def __getattr__(name: str) -> Any:
    return getattr(_primitives if name.endswith("_p") else _lax, name)
