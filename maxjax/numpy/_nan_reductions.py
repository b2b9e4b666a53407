"""Reductions that ignore NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._higher_order.named_calls import named
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._arg_reductions import argmax, argmin
from maxjax.numpy._at_once import at_once
from maxjax.numpy._moments import mean, variance_of
from maxjax.numpy._promotion import (
    as_array,
    broadcast_shapes_of,
    broadcast_to,
    canonical_axes,
    cast,
    check_out,
    promote_shapes,
)
from maxjax.numpy._reductions import all, boolean_mask, max, min, prod, sum
from maxjax.numpy._special_values import isnan
from maxjax.numpy._where import where

__all__ = [
    "nanargmax", "nanargmin", "nanmax", "nanmean", "nanmin", "nanprod", "nanstd", "nansum",
    "nanvar",
]

_where = where      # the name is an argument of most functions here


def _nan_position(name: str, function: Any, filler: float, a: Any, axis: Any, out: Any,
                  keepdims: Any) -> Array:
    check_out(name, out)
    x = as_array(a, name)
    if not dtypes.is_inexact(x.dtype):
        return function(x, axis, keepdims=keepdims)
    missing = isnan(x)
    result = function(_where(missing, filler, x), axis, keepdims=keepdims)
    return _where(all(missing, axis, keepdims=bool(keepdims)), -1, result)


@at_once
def nanargmax(a: ArrayLike, axis: int | None = None, out: Any = None,
              keepdims: Any = None) -> Array:
    """As ``argmax``, ignoring NaN; -1 where all are NaN.

    >>> jnp.nanargmax(jnp.array([1., jnp.nan, 5.]))
    Array(2, dtype=int32)
    """
    return _nan_position("nanargmax", argmax, -np.inf, a, axis, out, keepdims)


@at_once
def nanargmin(a: ArrayLike, axis: int | None = None, out: Any = None,
              keepdims: Any = None) -> Array:
    """As ``argmin``, ignoring NaN; -1 where all are NaN.

    >>> jnp.nanargmin(jnp.array([jnp.nan, 1., 5.]))
    Array(1, dtype=int32)
    """
    return _nan_position("nanargmin", argmin, np.inf, a, axis, out, keepdims)


def _nan_extreme(name: str, function: Any, a: Any, axis: Any, out: Any, keepdims: bool,
                 initial: Any, mask: Any) -> Array:
    check_out(name, out)
    boolean_mask(name, mask)
    x = as_array(a, name)
    if not dtypes.is_inexact(x.dtype):
        return function(x, axis, keepdims=keepdims, initial=initial, where=mask)
    missing = isnan(x)
    # Most 8-bit floats have no infinity, and one that is converted to them is NaN.
    low, high = (-np.inf, np.inf) if dtypes.is_complex(x.dtype) else dtypes.extremes(x.dtype)
    result = function(_where(missing, low if function is max else high, x), axis,
                      keepdims=keepdims, initial=initial, where=mask)
    if initial is not None:
        return result
    return _where(all(missing, axis, keepdims=keepdims), np.nan, result)


@at_once
def nanmax(a: ArrayLike, axis: int | Sequence[int] | None = None, out: Any = None,
           keepdims: bool = False, initial: ArrayLike | None = None,
           where: ArrayLike | None = None) -> Array:
    """As ``max``, ignoring NaN.

    Args:
      a: an array.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the reduced axes stay, with size 1.
      initial: the least result; needed where there are no elements, or with ``where``.
      where: a boolean mask that broadcasts to ``a``: which elements take part.

    Returns:
      An array of ``a``'s dtype without the reduced axes; NaN where there is nothing else, without a
      warning.

    Raises:
      ValueError: there are no elements or a mask, and no ``initial``; or there is no such axis.
      TypeError: an argument is not an array or a number, such as a list.
      NotImplementedError: ``out`` is given.

    See also: ``max``, ``nanmin``, ``nanargmax``.

    >>> jnp.nanmax(jnp.array([1., jnp.nan, 5.]))
    Array(5., dtype=float32)
    """
    return _nan_extreme("nanmax", max, a, axis, out, keepdims, initial, where)


@at_once
def nanmin(a: ArrayLike, axis: int | Sequence[int] | None = None, out: Any = None,
           keepdims: bool = False, initial: ArrayLike | None = None,
           where: ArrayLike | None = None) -> Array:
    """As ``min``, ignoring NaN.

    Args:
      a: an array.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the reduced axes stay, with size 1.
      initial: the greatest result; needed where there are no elements, or with ``where``.
      where: a boolean mask that broadcasts to ``a``: which elements take part.

    Returns:
      An array of ``a``'s dtype without the reduced axes; NaN where there is nothing else, without a
      warning.

    Raises:
      ValueError: there are no elements or a mask, and no ``initial``; or there is no such axis.
      TypeError: an argument is not an array or a number, such as a list.
      NotImplementedError: ``out`` is given.

    See also: ``min``, ``nanmax``, ``nanargmin``.

    >>> jnp.nanmin(jnp.array([1., jnp.nan, 5.]))
    Array(1., dtype=float32)
    """
    return _nan_extreme("nanmin", min, a, axis, out, keepdims, initial, where)


def without_nan(name: str, a: Any, value: float) -> Array:
    x = as_array(a, name)
    if not dtypes.is_inexact(x.dtype):
        return x
    return _where(isnan(x), cast(value, x.dtype, x.weak_type), x)


@at_once
def nansum(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None,
           out: Any = None, keepdims: bool = False, initial: ArrayLike | None = None,
           where: ArrayLike | None = None) -> Array:
    """As ``sum``, with NaN treated as zero.

    Args:
      a: an array.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      dtype: in which to sum; None: that of ``a``, small integers in the default type.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the reduced axes stay, with size 1.
      initial: a number that is added.
      where: a boolean mask that broadcasts to ``a``: which elements take part.

    Returns:
      An array without the reduced axes; 0 where there is nothing else.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      ValueError: there is no such axis.
      NotImplementedError: ``out`` is given.

    See also: ``sum``, ``nanmean``, ``nancumsum``, ``nanprod``.

    >>> jnp.nansum(jnp.array([1., jnp.nan, 5.]))
    Array(6., dtype=float32)
    """
    check_out("nansum", out)
    boolean_mask("nansum", where)
    given = () if initial is None and where is None else (initial, where)
    return _nansum(as_array(a, "nansum"), *given, axis=axis, dtype=dtype,
                   keepdims=bool(keepdims))


@named("nansum", "axis", "dtype", "keepdims")
def _nansum(x: Array, initial: Any = None, where: Any = None, *, axis: Any, dtype: Any,
            keepdims: bool) -> Array:
    return sum(without_nan("nansum", x, 0), axis, dtype, None, keepdims, initial, where)


@at_once
def nanprod(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None,
            out: Any = None, keepdims: bool = False, initial: ArrayLike | None = None,
            where: ArrayLike | None = None) -> Array:
    """As ``prod``, with NaN treated as one.

    Args:
      a: an array.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      dtype: in which to multiply; None: that of ``a``, small integers in the default type.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the reduced axes stay, with size 1.
      initial: a number that is multiplied with.
      where: a boolean mask that broadcasts to ``a``: which elements take part.

    Returns:
      An array without the reduced axes; 1 where there is nothing else.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      ValueError: there is no such axis.
      NotImplementedError: ``out`` is given.

    See also: ``prod``, ``nansum``, ``nancumprod``.

    >>> jnp.nanprod(jnp.array([2., jnp.nan, 5.]))
    Array(10., dtype=float32)
    """
    boolean_mask("nanprod", where)
    return prod(without_nan("nanprod", a, 1), axis, dtype, out, keepdims, initial, where)


def _present(name: str, x: Array, mask: Any) -> Any:
    present = ufuncs.logical_not(isnan(x))
    if boolean_mask(name, mask) is None:
        return present
    present, mask = promote_shapes("", present, as_array(mask))
    return present & mask


@at_once
def nanmean(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None,
            out: Any = None, keepdims: bool = False, where: ArrayLike | None = None) -> Array:
    """As ``mean``, ignoring NaN.

    Args:
      a: an array.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      dtype: of the result; None: that of ``a``, or the default float.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the reduced axes stay, with size 1.
      where: a boolean mask that broadcasts to ``a``: which elements take part.

    Returns:
      An array without the reduced axes; NaN where there is nothing else, without a warning.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      NotImplementedError: ``out`` is given.

    See also: ``mean``, ``nanmedian``, ``nanstd``, ``nansum``.

    >>> jnp.nanmean(jnp.array([1., jnp.nan, 5.]))
    Array(3., dtype=float32)
    """
    x = as_array(a, "nanmean")
    if not dtypes.is_inexact(x.dtype):
        return mean(x, axis, dtype, out, keepdims, where=where)
    present = _present("nanmean", x, where)
    if present.shape != x.shape:
        # A wider mask widens the operand, as in a sum.
        axis, x = canonical_axes(axis, x.ndim), broadcast_to(x, broadcast_shapes_of(x, present))
    return mean(x, axis, dtype, out, keepdims, where=present)


@at_once
def nanvar(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None,
           out: Any = None, ddof: Any = 0, keepdims: bool = False, where: ArrayLike | None = None,
           mean: Any = None) -> Array:
    """As ``var``, ignoring NaN.

    Args:
      a: an array.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      dtype: in which to compute; None: that of ``a``, or the default float.
      out: None: arrays are immutable, so that nothing is written into one.
      ddof: what is subtracted from the number of elements in the divisor.
      keepdims: whether the reduced axes stay, with size 1.
      where: a boolean mask that broadcasts to ``a``: which elements take part.
      mean: the mean, if known already, with the reduced axes as size 1.

    Returns:
      An array of real floats without the reduced axes; NaN where too few are left.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      NotImplementedError: ``out`` is given.

    See also: ``var``, ``nanstd``, ``nanmean``.

    >>> jnp.nanvar(jnp.array([1., jnp.nan, 5.]))
    Array(4., dtype=float32)
    """
    check_out("nanvar", out)
    return _nan_var("nanvar", a, axis, dtype, ddof, keepdims, where, mean)


@at_once
def nanstd(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None,
           out: Any = None, ddof: Any = 0, keepdims: bool = False, where: ArrayLike | None = None,
           mean: Any = None) -> Array:
    """As ``std``, ignoring NaN.

    Args:
      a: an array.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      dtype: in which to compute; None: that of ``a``, or the default float.
      out: None: arrays are immutable, so that nothing is written into one.
      ddof: what is subtracted from the number of elements in the divisor.
      keepdims: whether the reduced axes stay, with size 1.
      where: a boolean mask that broadcasts to ``a``: which elements take part.
      mean: the mean, if known already, with the reduced axes as size 1.

    Returns:
      An array of real floats without the reduced axes; NaN where too few are left.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      NotImplementedError: ``out`` is given.

    See also: ``std``, ``nanvar``, ``nanmean``.

    >>> jnp.nanstd(jnp.array([1., jnp.nan, 5.]))
    Array(2., dtype=float32)
    """
    check_out("nanstd", out)
    variance = _nan_var("nanstd", a, axis, dtype, ddof, keepdims, where, mean)
    if not dtypes.is_inexact(variance.dtype):
        raise TypeError(f"nanstd does not accept dtype {variance.dtype}: it must be inexact")
    return ufuncs.sqrt(variance)


def _nan_var(name: str, a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, mask: Any,
             mean: Any) -> Array:
    x = as_array(a, name)
    present = _present(name, x, mask)
    if present.ndim == x.ndim:
        x = broadcast_to(x, broadcast_shapes_of(x, present))
    # An ignored NaN would still be a factor in the derivative.
    return variance_of(name, without_nan(name, x, 0), axis, dtype, ddof, keepdims, present, mean,
                       skips_nan=True)
