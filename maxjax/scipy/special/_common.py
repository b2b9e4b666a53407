"""Helpers shared by the files of this folder."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax import lax
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
    """Raises TypeError unless the dtype is float32 or float64."""
    if x.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"x.dtype={x.dtype} is not supported{hint}.")


# Chebyshev's fit, the leading coefficient first; to 5e-17.
_ATANH = (
    0.08082022805971766, 0.04400369243072337, 0.06000536404795356, 0.06657072104827468,
    0.07692785032479312, 0.09090894718066429, 0.11111111358713932, 0.1428571428355438,
    0.20000000000007292, 0.3333333333333333)


def horner(coefficients: tuple[float, ...], x: Any) -> Any:
    value = coefficients[0] * x + coefficients[1]
    for coefficient in coefficients[2:]:
        value = value * x + coefficient
    return value


def atanh_rest(square: Any) -> Any:
    """``1 / 3 + v**2 / 5 + v**4 / 7 + ...`` of float64 ``v**2`` up to 1 / 9."""
    return horner(_ATANH, square)


def in_float64(function: Callable[..., Any]) -> Callable[..., Any]:
    """Extends a function of float64 operands to narrower ones; the result is rounded to their
    dtype.

    It receives, as ``wide``, whether the operands were originally float64. Complex ones are
    unchanged.
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


def short(x: Any) -> Any:
    """The leading half of the bits of float64 or float32: products with them are exact."""
    word, last = ((np.uint64, 29) if x.dtype == dtypes.float64 else (np.uint32, 12))
    kept = word(2**(8 * x.dtype.itemsize) - 2**last)
    return lax.bitcast_convert_type(lax.bitcast_convert_type(x, dtypes.as_dtype(word)) & kept,
                                    x.dtype)


def strong(x: Any) -> Any:
    """The value, strongly typed."""
    return convert_element_type(x, x.dtype)


__all__ = ["atanh_rest", "bind", "horner", "in_float64", "only_wide", "operands",
           "refuse_complex", "short", "strong"]
