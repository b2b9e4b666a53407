"""What the files of this folder share."""

from __future__ import annotations

from typing import Any

from maxjax._base import dtypes
from maxjax.numpy._promotion import bind, promote_args_inexact


def operands(name: str, *args: Any) -> list[Any]:
    """The arguments as floats of one dtype, of shapes that broadcast."""
    return promote_args_inexact(name, *args)


def refuse_complex(name: str, *args: Any) -> None:
    if any(dtypes.is_complex(x.dtype) for x in args):
        raise ValueError(f"{name} does not support complex-valued inputs.")


def only_wide(x: Any, hint: str = ", see docstring for supported types") -> None:
    """Raises TypeError for all but float32 and float64."""
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"x.dtype={x.dtype} is not supported{hint}.")



__all__ = ["bind", "only_wide", "operands", "refuse_complex"]
