"""Moments: mean, weighted average, variance, standard deviation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from maxjax._base import dtypes
from maxjax._higher_order.named_calls import named
from maxjax._ir.dimensions import broadcast_shapes, is_dimension, least
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives.arithmetic import square_p, sub_p
from maxjax._primitives.broadcasting import broadcast_in_dim, reduce_sum_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.layout import transpose
from maxjax._primitives.widths import NUMBERS, refusal
from maxjax._runtime.array import ArrayImpl
from maxjax._transforms.quotients import divide_by_constant
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._at_once import at_once
from maxjax.numpy._complex import conj, real
from maxjax.numpy._elementwise import binary
from maxjax.numpy._promotion import (
    as_array,
    canonical_axes,
    cast,
    check_out,
    constant,
    inexact_dtype,
    promote_inexact,
    promote_shapes,
)
from maxjax.numpy._reductions import boolean_mask, keep_axes, strong, sum
from maxjax.numpy._where import as_bool, where

__all__ = ["average", "mean", "std", "var"]

_subtract = binary("subtract", sub_p)
_where = where      # the name is an argument of most functions here


def _less(count: Any, ddof: Any) -> Any:
    """The divisor of a variance; symbolic for a symbolic count."""
    return count - int(ddof) if is_dimension(count) else float(count) - ddof


def _number_of_elements(shape: tuple[Any, ...], axes: tuple[int, ...]) -> Any:
    """Those that are reduced, as a divisor: a float, as there may be more than an int32 counts."""
    size = math.prod([shape[axis] for axis in axes])
    return size if is_dimension(size) else float(size)


def _count(x: Array, axes: tuple[int, ...], mask: Any, keepdims: bool, dtype: Any) -> Any:
    """The number of reduced elements: a number, or an array if a mask decides."""
    if mask is None:
        return constant(_number_of_elements(x.shape, axes), dtype)
    mask = as_bool(mask)
    mask = promote_shapes("", mask, x)[0] if mask.shape else mask
    ones = broadcast_in_dim(mask, x.shape, tuple(range(x.ndim)) if mask.shape else ())
    return sum(convert_element_type(ones, dtype), axes, keepdims=keepdims)


def _check_mask(mask: Any, shape: tuple[Any, ...]) -> None:
    """Unlike a sum, a mean is of the elements that the operand has: a wider mask is refused."""
    if mask is not None and broadcast_shapes(np.shape(mask), shape) != shape:
        raise ValueError(f"where mask of shape {np.shape(mask)} does not broadcast to {shape}")


def _counted_axes(axis: Any, shape: tuple[int, ...], mask: Any) -> tuple[int, ...]:
    """The axes of a mean, whose sizes are looked up first if there is no mask.

    Raises:
      IndexError: one is out of bounds, and there is no mask.
    """
    if axis is not None and mask is None:
        for index in axis if isinstance(axis, (tuple, list)) else (axis,):
            if isinstance(index, int) and not -len(shape) <= index < len(shape):
                raise IndexError("tuple index out of range: axis "
                                 f"{index} of an array of dimension {len(shape)}")
    return canonical_axes(axis, len(shape))


def _mean_types(x: Array, dtype: Any, name: str) -> tuple[Any, Any]:
    """(dtype to compute in, dtype of the result)"""
    if dtype is None:
        result = inexact_dtype(x.dtype)
    else:
        result = dtypes.argument(dtype, name)
        if result == dtypes.bool_:
            raise refusal("div", result, " at position 0", NUMBERS)
    compute = dtypes.float32 if result in (dtypes.float16, dtypes.bfloat16) else result
    return compute, result


@at_once
def mean(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None,
         out: Any = None, keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
    """The arithmetic mean over ``axis``, in floats.

    Args:
      a: an array.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      dtype: of the result; None: that of ``a``, or the default float for integers and booleans.
        float16 and bfloat16 are added up in float32.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the reduced axes stay, with size 1.
      where: a boolean mask that broadcasts to ``a``: which elements take part.

    Returns:
      An array without the reduced axes; NaN for no elements, without a warning.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      ValueError: there is no such axis.
      NotImplementedError: ``out`` is given.

    See also: ``average``, ``nanmean``, ``median``, ``std``, ``var``, ``lax.pmean``.

    >>> x = jnp.array([[1., 2.], [3., 6.]])
    >>> jnp.mean(x), jnp.mean(x, axis=0), jnp.mean(x, where=x > 1.5)
    (Array(3., dtype=float32), Array([2., 4.], dtype=float32), Array(3.6666667, dtype=float32))
    """
    if a.__class__ is ArrayImpl and dtype is None and out is None and where is None and (
            a.aval.dtype is dtypes.float32 and not keepdims and not a.aval.weak_type):
        # The common case first, without the checks for the others.
        shape = a.aval.shape
        axes = _counted_axes(axis, shape, None)
        if axes:
            total = reduce_sum_p.bind(a, axes=axes)
            return divide_by_constant(
                total, constant(_number_of_elements(shape, axes), dtypes.float32))
    check_out("mean", out)
    x = as_array(a, "mean")
    compute, result = _mean_types(x, dtype, "mean")
    axes = _counted_axes(axis, x.shape, boolean_mask("mean", where))
    _check_mask(where, x.shape)
    total = sum(x, axes, dtype=compute, keepdims=keepdims, where=where)
    if where is None:
        mean_ = divide_by_constant(total, constant(_number_of_elements(x.shape, axes), compute))
    else:
        mean_ = ufuncs.divide(total, _count(x, axes, where, keepdims, compute))
    return convert_element_type(mean_, result)


@overload
def average(a: ArrayLike, axis: int | Sequence[int] | None = None, weights: ArrayLike | None = None,
            returned: Literal[False] = False, keepdims: bool = False) -> Array: ...
@overload
def average(a: ArrayLike, axis: int | Sequence[int] | None = None,
            weights: ArrayLike | None = None, *,
            returned: Literal[True], keepdims: bool = False) -> tuple[Array, Array]: ...
@overload
def average(a: ArrayLike, axis: int | Sequence[int] | None = None, weights: ArrayLike | None = None,
            returned: bool = False, keepdims: bool = False) -> Array | tuple[Array, Array]: ...


@at_once
def average(a: ArrayLike, axis: int | Sequence[int] | None = None, weights: ArrayLike | None = None,
            returned: bool = False, keepdims: bool = False) -> Any:
    """The mean weighted by ``weights``; with ``returned`` also the sum of the weights.

    Args:
      a: an array.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      weights: of the shape of ``a``, or ``(n,)`` for a single axis; None: all the same.
      returned: whether to return the sum of the weights, too.
      keepdims: whether the reduced axes stay, with size 1.

    Returns:
      An array of floats without the reduced axes, or a pair of it and the sums of the weights, in
      its shape. Weights that sum to 0 give NaN, where NumPy raises.

    Raises:
      ValueError: ``weights`` has another shape and there is no axis, or does not fit it.
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``mean``, ``nanmean``, ``dot``.

    >>> jnp.average(jnp.array([1., 2., 6.]), weights=jnp.array([1., 1., 2.]))
    Array(3.75, dtype=float32)
    """
    if weights is None:
        x = as_array(promote_inexact("average", a)[0])
        axes = canonical_axes(axis, x.ndim)
        result = mean(x, axes, keepdims=keepdims)
        total = as_array(constant(_number_of_elements(x.shape, axes), result.dtype))
    else:
        x, w = (as_array(v) for v in promote_inexact("average", a, weights))
        axes = canonical_axes(axis, x.ndim)
        if x.shape != w.shape:
            if axis is None:
                raise ValueError("Axis must be specified when shapes of a and weights differ.")
            # The axes of the weights are in the order in which the axes were given.
            given = [canonical_axes(i, x.ndim)[0]
                     for i in (axis if isinstance(axis, (tuple, list)) else (axis,))]
            if w.shape != tuple(x.shape[i] for i in given):
                raise ValueError("Shape of weights must be consistent with shape of a along "
                                 "specified axis.")
            w = transpose(w, tuple(sorted(range(w.ndim), key=lambda i: given[i])))
            w = broadcast_in_dim(w, x.shape, axes)
        total = sum(w, axes, keepdims=keepdims)
        result = sum(x * w, axes, keepdims=keepdims) / total
    if returned:
        total = broadcast_in_dim(
            total, result.shape, tuple(range(total.ndim))) if total.shape != result.shape else total
        return result, total
    return result


@at_once
def var(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None,
        out: Any = None, ddof: Any = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: Any = None, correction: Any = None) -> Array:
    """The variance over ``axis``: the mean of the squared distances from the mean.

    ``ddof`` (or ``correction``) is subtracted from the number of elements in the divisor.

    Args:
      a: an array, perhaps complex.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      dtype: in which to compute; None: that of ``a``, or the default float.
      out: None: arrays are immutable, so that nothing is written into one.
      ddof: what is subtracted from the number of elements in the divisor: 0 for the population, 1
        for an unbiased estimate.
      keepdims: whether the reduced axes stay, with size 1.
      where: a boolean mask that broadcasts to ``a``: which elements take part.
      mean: the mean, if known already, with the reduced axes as size 1.
      correction: another name of ``ddof``, of the array API.

    Returns:
      An array of real floats without the reduced axes; NaN where the divisor is 0 or less.

    Raises:
      ValueError: both ``ddof`` and ``correction`` are given, or there is no such axis.
      TypeError: an argument is not an array or a number, such as a list.
      NotImplementedError: ``out`` is given.

    See also: ``std``, ``mean``, ``nanvar``, ``cov``.

    >>> x = jnp.array([1., 3.])
    >>> jnp.var(x), jnp.var(x, ddof=1)
    (Array(1., dtype=float32), Array(2., dtype=float32))
    """
    check_out("var", out)
    correction = _correction(ddof, correction)
    if where is not None or mean is not None:
        return _variance(a, correction, axis, dtype, keepdims, where, mean)
    return _var(as_array(a, "var"), correction, axis=hashable(axis), dtype=dtype,
                keepdims=bool(keepdims))


@named("_var", "axis", "dtype", "keepdims")
def _var(x: Array, correction: Any, *, axis: Any, dtype: Any, keepdims: bool) -> Array:
    return _variance(x, correction, axis, dtype, keepdims)


def _variance(a: Any, correction: Any, axis: Any, dtype: Any, keepdims: bool, where: Any = None,
              mean: Any = None) -> Array:
    result = variance_of("var", a, axis, dtype, correction, keepdims, where, mean)
    # An undefined variance is NaN, so the result is a float in any case.
    return result if dtypes.is_inexact(result.dtype) else _where(True, result, np.nan)


def _correction(ddof: Any, correction: Any) -> Any:
    if correction is None:
        return ddof
    if ddof:
        raise ValueError("ddof and correction can't be provided simultaneously.")
    return correction


def hashable(axis: Any) -> Any:
    return tuple(axis) if isinstance(axis, list) else axis


def variance_of(name: str, a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, mask: Any,
                center: Any, skips_nan: bool = False) -> Array:
    x = as_array(a, name)
    compute, result = _mean_types(x, dtype, name)
    if dtype is None:
        result = dtypes.real_dtype(result)
    if dtype is not None and dtypes.is_complex(x.dtype) and not dtypes.is_complex(result):
        raise ValueError(
            "jax.numpy.var does not yet support real dtype parameters when computing the variance "
            "of an array of complex values. The semantics of numpy.var seem unclear in this case. "
            "Please comment on https://github.com/jax-ml/jax/issues/2283 if this behavior is "
            "important to you.")
    axes = _counted_axes(axis, x.shape, boolean_mask(name, mask))
    _check_mask(mask, x.shape)
    x = cast(x, compute)
    size = _number_of_elements(x.shape, axes)
    if axes and mask is None and center is None and isinstance(ddof, (int, float)) and (
            least(size) > ddof and not dtypes.is_complex(compute)):
        value = _plain_variance(strong(x), axes, size, ddof)
        if keepdims:
            value = keep_axes(value, x.shape, axes)
        return convert_element_type(value, result)
    if center is None:
        center = mean(x, axes, dtype=compute, keepdims=True, where=mask)
    else:
        center = as_array(center)
        if dtypes.is_complex(center.dtype) or not dtypes.is_inexact(compute) or (
                center.dtype.itemsize < compute.itemsize):      # where no promotion is wanted, too
            center = convert_element_type(center, compute)
    centered = _subtract(x, center)
    if dtypes.is_complex(compute):
        squared = real(centered * conj(centered))
        compute = dtypes.real_dtype(compute)
    else:
        squared = square_p.bind(centered)
    count = _count(x, axes, mask, keepdims, compute)
    if mask is None and isinstance(ddof, (int, float)) and not isinstance(count, Array):
        count = constant(_less(count, ddof), compute)
    else:
        count = count - cast(ddof, compute)
    total = sum(squared, axes, keepdims=keepdims, where=mask)
    if skips_nan:
        # The derivative of a variance of too few elements is then 0, not NaN.
        value = convert_element_type(ufuncs.divide(total, _where(count > 0, count, 1)), result)
        return _where(count > 0, value, np.nan) if dtypes.is_inexact(result) else value
    value = convert_element_type(ufuncs.divide(total, count), result)
    if not isinstance(count, Array):
        return value if count > 0 else _where(False, value, np.nan)
    return _where(count > 0, value, np.nan)


def _plain_variance(x: Array, axes: tuple[int, ...], size: Any, ddof: Any) -> Array:
    """The common case, real and without a mask, with no more than its operations."""
    total = reduce_sum_p.bind(x, axes=axes)
    center = divide_by_constant(keep_axes(total, x.shape, axes), constant(size, x.dtype))
    squared = square_p.bind(sub_p.bind(x, center))
    total = reduce_sum_p.bind(squared, axes=axes)
    return divide_by_constant(total, constant(_less(size, ddof), x.dtype))


@at_once
def std(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None,
        out: Any = None, ddof: Any = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: Any = None, correction: Any = None) -> Array:
    """The standard deviation over ``axis``: the square root of the variance.

    Args:
      a: an array, perhaps complex.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      dtype: in which to compute; None: that of ``a``, or the default float.
      out: None: arrays are immutable, so that nothing is written into one.
      ddof: what is subtracted from the number of elements in the divisor: 0 for the population, 1
        for an unbiased variance.
      keepdims: whether the reduced axes stay, with size 1.
      where: a boolean mask that broadcasts to ``a``: which elements take part.
      mean: the mean, if known already, with the reduced axes as size 1.
      correction: another name of ``ddof``, of the array API.

    Returns:
      An array of real floats without the reduced axes; NaN where the divisor is 0 or less. Its
      derivative is NaN where all elements are equal.

    Raises:
      ValueError: both ``ddof`` and ``correction`` are given, or there is no such axis.
      TypeError: an argument is not an array or a number, such as a list.
      NotImplementedError: ``out`` is given.

    See also: ``var``, ``mean``, ``nanstd``.

    >>> jnp.std(jnp.array([[1., 3.], [2., 10.]]), axis=1)
    Array([1., 4.], dtype=float32)
    """
    check_out("std", out)
    if dtype is not None and not dtypes.is_inexact(dtypes.argument(dtype, "std")):
        raise ValueError(f"dtype argument to jnp.std must be inexact; got {dtype}")
    correction = _correction(ddof, correction)
    if where is not None or mean is not None:
        return ufuncs.sqrt(
            variance_of("std", a, axis, dtype, correction, keepdims, where, mean))
    return _std(as_array(a, "std"), correction, axis=hashable(axis), dtype=dtype,
                keepdims=bool(keepdims))


@named("_std", "axis", "dtype", "keepdims")
def _std(x: Array, correction: Any, *, axis: Any, dtype: Any, keepdims: bool) -> Array:
    return ufuncs.sqrt(_var(x, correction, axis=axis, dtype=dtype, keepdims=keepdims))
