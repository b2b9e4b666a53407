"""Rounding and clipping."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._higher_order.named_calls import named
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.arithmetic import round_p
from maxjax._primitives.convert import convert_element_type
from maxjax.lax._elementwise import RoundingMethod
from maxjax.numpy._at_once import at_once
from maxjax.numpy._complex import complex_of, imag, iscomplexobj, real
from maxjax.numpy._elementwise import alias
from maxjax.numpy._promotion import apart, as_array, check_out, is_exact, operand, resolve
from maxjax.numpy._ufuncs import _maximum, _minimum, ceil, floor
from maxjax.numpy._where import where
from maxjax.numpy._whole import whole

__all__ = ["around", "clip", "rint", "round", "trunc"]


def trunc(x: ArrayLike) -> Array:
    """The nearest integer towards zero.

    Args:
      x: an array or scalar.

    Returns:
      An array of the same shape and dtype.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``floor``, ``ceil``, ``rint``, ``round``.

    >>> jnp.trunc(jnp.array([1.7, -1.7]))
    Array([ 1., -1.], dtype=float32)
    """
    x = operand("trunc", x)
    if dtypes.is_integer(x.dtype) or x.dtype == dtypes.bool_:
        return apart(x)
    return _trunc(x)


@whole("trunc", np.trunc)
def _trunc(x: Array) -> Array:
    return where(x < 0, ceil(x), floor(x))


def rint(x: ArrayLike, /) -> Array:
    """The nearest integer, halves to even.

    Args:
      x: an array or scalar.

    Returns:
      An array of floats of the shape of ``x``; integers and booleans become floats.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``round``, ``floor``, ``ceil``, ``trunc``, ``lax.round``.

    >>> jnp.rint(jnp.array([0.5, 1.5, -1.2]))
    Array([ 0.,  2., -1.], dtype=float32)
    """
    x = operand("rint", x)
    if is_exact(x):
        return convert_element_type(x, dtypes.canonical(dtypes.float64))
    return _round_even(x)


def _round_even(x: Array) -> Array:
    if dtypes.is_complex(x.dtype):
        return complex_of(_round_even(real(x)), _round_even(imag(x)))
    return round_p.bind(x, rounding_method=RoundingMethod.TO_NEAREST_EVEN)


@at_once
def round(a: ArrayLike, decimals: int = 0, out: Any = None) -> Array:
    """Rounds to ``decimals`` places, halves to even.

    Args:
      a: an array.
      decimals: how many places after the point stay; negative: before it. Known while tracing.
      out: None: arrays are immutable, so that nothing is written into one.

    Returns:
      An array of ``a``'s shape and dtype; its derivative is 0.

    Raises:
      NotImplementedError: ``out`` is given, or integers are to be rounded before the point.
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``rint``, ``floor``, ``ceil``, ``trunc``, ``lax.round``.

    >>> jnp.round(jnp.array([0.5, 1.5, 2.567])), jnp.round(2.567, 2)
    (Array([0., 2., 3.], dtype=float32), Array(2.57, dtype=float32, weak_type=True))
    """
    check_out("round", out)
    x = operand("round", a)
    if x.dtype == dtypes.bool_:
        raise ValueError("data type <class 'numpy.bool'> not inexact")
    if dtypes.is_opaque(x.dtype):
        raise TypeError(f"Cannot interpret '{x.dtype}' as a data type")
    if not isinstance(decimals, (int, np.integer)):
        raise TypeError(f"decimals must be an integer, got {decimals!r}")
    if dtypes.is_integer(x.dtype) and decimals < 0:
        raise NotImplementedError("integer np.round not implemented for decimals < 0")
    return _round(x, decimals=int(decimals))


@named("round", "decimals")
def _round(x: Array, *, decimals: int) -> Array:
    if dtypes.is_integer(x.dtype):
        return apart(x)
    if decimals == 0:
        return _round_even(x)
    wide = convert_element_type(x, dtypes.float32) if x.dtype in (
        dtypes.float16, dtypes.bfloat16) else x
    factor = 10.0 ** builtins.abs(decimals)
    if decimals > 0:
        result = _round_even(wide * factor) / factor
    else:
        result = _round_even(wide / factor) * factor
    return convert_element_type(result, x.dtype, x.weak_type and not x.ndim)


around = alias(round, "around")


def clip(arr: ArrayLike | None = None, /, min: Any = None, max: Any = None) -> Array:
    """Limits the elements to ``[min, max]``.

    NaN stays NaN. Where ``min`` is above ``max`` the result is ``max``. The derivative is 1
    inside the limits, 0 outside, and half at a limit.

    Args:
      arr: an array.
      min, max: arrays or scalars that broadcast, or None for no limit.

    Returns:
      An array of the common shape, of the dtype to which the three promote.

    Raises:
      ValueError: one of them is complex.
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``maximum``, ``minimum``, ``lax.clamp``, ``nan_to_num``.

    >>> jnp.clip(jnp.array([-3, 0, 8]), -1, 5)
    Array([-1,  0,  5], dtype=int32)
    """
    return _clip(arr, min, max)


@named("clip")
def _clip(arr: Any, min: Any, max: Any) -> Array:
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    for bound in (arr, min, max):
        if iscomplexobj(bound):
            raise ValueError("Clip received a complex value either through the input or the "
                             "min/max keywords. Complex values have no ordering and cannot be "
                             "clipped.")
    resolve("clip", [value for value in (arr, min, max) if value is not None])
    result = arr
    if min is not None:
        result = _maximum(min, result)
    if max is not None:
        result = _minimum(max, result)
    return as_array(apart(result) if result is arr else result)
