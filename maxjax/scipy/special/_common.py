"""What the files of this folder share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from maxjax._base import config, dtypes
from maxjax._primitives.convert import convert_element_type
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


def in_float64(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of float64 operands for narrower ones too: rounded to their dtype at last.

    It is told, as ``wide``, whether the operands have been float64 from the beginning. Complex
    ones stay as they are.
    """
    def call(*args: Any) -> Any:
        dtype = args[0].dtype
        weak = all(getattr(x, "weak_type", False) for x in args)
        working = dtype if dtypes.is_complex(dtype) else dtypes.float64
        with config.enable_x64(True):
            value = function(*[convert_element_type(x, working) for x in args],
                             wide=dtype == dtypes.float64)
            return convert_element_type(value, dtype, weak)

    call.__name__ = function.__name__
    return call


def strong(x: Any) -> Any:
    """Without weakness."""
    return convert_element_type(x, x.dtype)


__all__ = ["bind", "in_float64", "only_wide", "operands", "refuse_complex", "strong"]
