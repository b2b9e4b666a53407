"""What the distributions share."""

from __future__ import annotations

from typing import Any

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.numpy._promotion import promote_args_inexact


def floats(name: str, *args: Any) -> list[Any]:
    """The arguments as floats of one dtype."""
    return promote_args_inexact(name, *args)


def inside(condition: Any, value: Any, otherwise: Any) -> Array:
    """``value`` where the condition holds."""
    return jnp.where(condition, value, otherwise)
