"""Reductions: sum, mean, max, min, all, any, argmax, argmin."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from maxjax._base import config, dtypes
from maxjax._ir.dimensions import broadcast_shapes, is_dimension, least
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Array, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives.arithmetic import add_p, mul_p, square_p, sub_p
from maxjax._primitives.broadcasting import broadcast_in_dim, reduce_sum_p
from maxjax._primitives.comparison import gt_p, lt_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.layout import reshape, transpose
from maxjax._primitives.reduction import (
    argmax_p,
    argmin_p,
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
)
from maxjax._primitives.widths import NUMBERS, refusal
from maxjax._runtime.array import ArrayImpl
from maxjax._transforms.quotients import divide_by_constant
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._complex import conj, real
from maxjax.numpy._elementwise import alias, binary
from maxjax.numpy._promotion import (
    apart,
    as_array,
    canonical_axes,
    cast,
    check_accepts,
    check_out,
    constant,
    inexact_dtype,
    promote_inexact,
    promote_shapes,
    type_of,
)
from maxjax.numpy._where import as_bool, where

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "average", "count_nonzero", "max", "mean",
    "min", "minmax", "prod", "ptp", "std", "sum", "var",
]

_subtract = binary("subtract", sub_p)
_add, _multiply = binary("add", add_p), binary("multiply", mul_p)
_where = where      # the name is an argument of most functions here


def keep_axes(result: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """Restores reduced axes with size 1."""
    kept = tuple(i for i in range(len(shape)) if i not in axes)
    sizes = tuple(1 if i in axes else size for i, size in enumerate(shape))
    return broadcast_in_dim(result, sizes, kept)


def wide_integer(dtype: Any) -> Any:
    """The dtype in which values are summed: for integers and booleans at least the default width,
    and 64 bits only if enabled or allowed."""
    if dtype == dtypes.bool_:
        return dtypes.canonical(dtypes.int64)
    if dtypes.is_integer(dtype):
        wide = dtypes.canonical(
            dtypes.uint64 if dtypes.is_unsigned(dtype) else dtypes.int64)
        return wide if dtype.itemsize < wide.itemsize else dtypes.kept(dtype)
    return dtypes.kept(dtype)


def boolean_mask(name: str, mask: Any) -> Any:
    """The argument ``where``; ValueError unless it is None or of booleans."""
    if mask is not None and type_of(mask)[0] != dtypes.bool_:
        raise ValueError(f"jnp.{name}: where must be None or a boolean array; got "
                         f"where.dtype={type_of(mask)[0]!r}.")
    return mask


def _masked(x: Array, mask: Any, value: Any) -> Array:
    """``x``, and ``value`` where the mask does not hold; a wider mask widens it."""
    return _where(as_bool(mask), x, constant(value, x.dtype))


def _reduce(name: str, primitive: Primitive, a: Any, axis: Any, dtype: Any, out: Any,
            keepdims: bool, initial: Any, mask: Any, *, identity: Any,
            combine: Any, widen: bool = False, narrow_floats: bool = False) -> Array:
    """What sum, prod, max and min have in common.

    Args:
      identity: of the operation, as a function of the dtype; None if it has none.
      combine: the elementwise function that combines ``initial`` with the result.
      widen: integers are computed in at least the default width.
      narrow_floats: float16 and bfloat16 are accumulated in float32.
    """
    check_out(name, out)
    x = as_array(a, name)
    if dtypes.is_opaque(x.dtype):
        raise TypeError(f"Cannot interpret '{x.dtype}' as a data type")
    if dtype is not None:
        dtype = dtypes.argument(dtype, name)
        result_dtype = dtype
    else:
        # Booleans are always counted.
        counted = narrow_floats and x.dtype == dtypes.bool_
        result_dtype = wide_integer(x.dtype) if widen or counted else x.dtype
    axes = canonical_axes(axis, x.ndim)
    mask = boolean_mask(name, mask)
    if mask is not None and initial is None and identity(x.dtype) is None:
        raise ValueError(f"reduction operation {name} does not have an identity, so to use a where "
                         "mask one has to specify 'initial'")
    if name in ("max", "min") and initial is None and not all_sizes(x.shape, axes):
        raise ValueError(f"zero-size array to reduction operation {name} which has no identity")
    compute = result_dtype
    if narrow_floats and compute in (dtypes.float16, dtypes.bfloat16):
        compute = dtypes.float32
    elif narrow_floats and compute == dtypes.bool_:
        # Sums of booleans are counted, but each element is a boolean before: 0.5 counts as 1.
        x = cast(x, compute)
        compute = dtypes.canonical(dtypes.int64)
    x = cast(x, compute)
    if mask is not None:
        value = identity(compute)
        if value is None:
            low, high = dtypes.extremes(compute)
            value = low if name == "max" else high
        x = _masked(x, mask, value)
    result = primitive.bind(x, axes=axes) if axes else x
    if initial is not None:
        if getattr(initial, "shape", ()):
            raise ValueError(f"initial value must be a scalar. Got array of shape {initial.shape}")
        start = cast(initial, compute)
        if not isinstance(start, Array) and dtypes.canonical(compute) != compute:
            # 64 bits that are allowed, not enabled: as NumPy's scalar it would be 32 bits wide.
            start = ArrayImpl(ShapedArray((), compute), np.asarray(start))
        result = combine(start, result)
    if keepdims:
        result = keep_axes(result, x.shape, axes)
    if result.dtype != result_dtype:
        result = convert_element_type(result, result_dtype)
    result = strong(result)
    return apart(result) if result is a else result


def strong(x: Array) -> Array:
    return convert_element_type(x, x.dtype) if x.weak_type else x


def all_sizes(shape: tuple[int, ...], axes: tuple[int, ...]) -> bool:
    """Whether no reduced axis is empty. Unlike NumPy, JAX asks even where the result is empty."""
    return 0 not in [shape[axis] for axis in axes]


_ALL_AXES = tuple(tuple(range(rank)) for rank in range(8))
# Dtypes that are summed without conversion, without and with 64 bits.
_DIRECT = (frozenset({dtypes.float32, dtypes.int32, dtypes.complex64}),
           frozenset({dtypes.float32, dtypes.float64, dtypes.int64, dtypes.complex64,
                      dtypes.complex128}))


def sum(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None,
        out: Any = None, keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
    """The sum over ``axis`` (all axes by default).

    Small integers and booleans are summed in the default integer type, unless
    ``promote_integers`` is false.

    Args:
      a: an array.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      dtype: in which to sum, and of the result; None: see above.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the reduced axes stay, with size 1.
      initial: a number that is added.
      where: a boolean mask that broadcasts to ``a``: which elements take part.
      promote_integers: whether integers smaller than the default type are summed in it (unsigned
        ones in the unsigned type). float16 and bfloat16 stay, but are added up in float32.

    Returns:
      An array without the reduced axes; 0 for no elements.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      ValueError: there is no such axis.
      NotImplementedError: ``out`` is given.

    See also: ``cumsum``, ``mean``, ``nansum``, ``prod``, ``einsum``, ``jax.ops.segment_sum``.

    >>> x = jnp.array([[1, 2], [3, 4]])
    >>> jnp.sum(x), jnp.sum(x, axis=0), jnp.sum(x, axis=1, where=x > 1)
    (Array(10, dtype=int32), Array([4, 6], dtype=int32), Array([2, 7], dtype=int32))
    """
    if a.__class__ is ArrayImpl and dtype is None and not keepdims and (
            out is None and initial is None and where is None):
        aval = a.aval
        if aval.dtype in _DIRECT[config.enable_x64.value] and not aval.weak_type:
            rank = len(aval.shape)
            if axis is None:
                axes = _ALL_AXES[rank] if rank < 8 else tuple(range(rank))
            else:
                axes = canonical_axes(axis, rank)
            if axes:
                return context.trace.apply(reduce_sum_p, (a,), {"axes": axes})
    return _reduce("sum", reduce_sum_p, a, axis, dtype, out, keepdims, initial, where,
                   identity=lambda d: 0, combine=_add,
                   widen=promote_integers, narrow_floats=True)


def prod(a: ArrayLike, axis: int | Sequence[int] | None = None, dtype: DTypeLike | None = None,
         out: Any = None, keepdims: bool = False, initial: ArrayLike | None = None,
         where: ArrayLike | None = None, promote_integers: bool = True) -> Array:
    """The product over ``axis`` (all axes by default).

    Args:
      a: an array.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      dtype: in which to multiply, and of the result; None: that of ``a``, small integers in the
        default type.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the reduced axes stay, with size 1.
      initial: a number that is multiplied with.
      where: a boolean mask that broadcasts to ``a``: which elements take part.
      promote_integers: whether integers smaller than the default type are multiplied in it.

    Returns:
      An array without the reduced axes; 1 for no elements.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      ValueError: there is no such axis.
      NotImplementedError: ``out`` is given.

    See also: ``sum``, ``cumprod``, ``nanprod``.

    >>> jnp.prod(jnp.array([[1, 2], [3, 4]]), axis=0)
    Array([3, 8], dtype=int32)
    """
    return _reduce("prod", reduce_prod_p, a, axis, dtype, out, keepdims, initial, where,
                   identity=lambda d: 1, combine=_multiply,
                   widen=promote_integers, narrow_floats=True)


def max(a: ArrayLike, axis: int | Sequence[int] | None = None, out: Any = None,
        keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike | None = None) -> Array:
    """The maximum over ``axis``; NaN if any element is NaN.

    Complex numbers are ordered by their real, then their imaginary parts. Where several elements
    are the greatest, they share the derivative evenly.

    Args:
      a: an array.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the reduced axes stay, with size 1.
      initial: the least result; needed where there are no elements, or with ``where``.
      where: a boolean mask that broadcasts to ``a``: which elements take part.

    Returns:
      An array of ``a``'s dtype, without the reduced axes.

    Raises:
      ValueError: there are no elements or a mask, and no ``initial``; or there is no such axis.
      TypeError: an argument is not an array or a number, such as a list.
      NotImplementedError: ``out`` is given.

    See also: ``min``, ``argmax``, ``maximum``, ``nanmax``, ``amax``.

    >>> jnp.max(jnp.array([[1, 5], [3, 4]]), axis=1)
    Array([5, 4], dtype=int32)
    """
    return _reduce("max", reduce_max_p, a, axis, None, out, keepdims, initial, where,
                   identity=lambda d: None, combine=ufuncs._maximum)


def min(a: ArrayLike, axis: int | Sequence[int] | None = None, out: Any = None,
        keepdims: bool = False, initial: ArrayLike | None = None,
        where: ArrayLike | None = None) -> Array:
    """The minimum over ``axis``; NaN if any element is NaN.

    Complex numbers are ordered by their real, then their imaginary parts. Where several elements
    are the least, they share the derivative evenly.

    Args:
      a: an array.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the reduced axes stay, with size 1.
      initial: the greatest result; needed where there are no elements, or with ``where``.
      where: a boolean mask that broadcasts to ``a``: which elements take part.

    Returns:
      An array of ``a``'s dtype, without the reduced axes.

    Raises:
      ValueError: there are no elements or a mask, and no ``initial``; or there is no such axis.
      TypeError: an argument is not an array or a number, such as a list.
      NotImplementedError: ``out`` is given.

    See also: ``max``, ``argmin``, ``minimum``, ``nanmin``, ``amin``.

    >>> jnp.min(jnp.array([[1, 5], [3, 4]]), axis=1)
    Array([1, 3], dtype=int32)
    """
    return _reduce("min", reduce_min_p, a, axis, None, out, keepdims, initial, where,
                   identity=lambda d: None, combine=ufuncs._minimum)


def minmax(a: ArrayLike, axis: int | Sequence[int] | None = None, out: Any = None,
           keepdims: bool = False, initial: ArrayLike | None = None,
           where: ArrayLike | None = None) -> tuple[Array, Array]:
    """The minimum and the maximum over ``axis``; NaN if any element is NaN.

    Args:
      initial: a number that takes part, or two: one for the minimum, one for the maximum.
      where: which elements take part; needs ``initial``.

    Raises:
      ValueError: there are no elements, or a mask, and no ``initial``.

    >>> jnp.minmax(jnp.array([[1, 5], [3, 4]]), axis=1)
    (Array([1, 3], dtype=int32), Array([5, 4], dtype=int32))
    """
    check_out("minmax", out)
    low, high = initial if isinstance(initial, tuple) else (initial, initial)
    x = as_array(a, "minmax")
    axes = canonical_axes(axis, x.ndim)
    if initial is None:
        if boolean_mask("minmax", where) is not None:
            raise ValueError("reduction operation minmax does not have an identity, so to use a "
                             "where mask one has to specify 'initial'")
        if not all_sizes(x.shape, axes):
            raise ValueError(
                "zero-size array to reduction operation minmax which has no identity")
    return (min(x, axis, None, keepdims, low, where), max(x, axis, None, keepdims, high, where))


amax, amin = alias(max, "amax"), alias(min, "amin")


def _truth(name: str, primitive: Primitive, neutral: bool, a: Any, axis: Any, out: Any,
           keepdims: bool, mask: Any) -> Array:
    check_out(name, out)
    x = as_bool(as_array(a, name))
    if x.aval.weak_type:
        x = convert_element_type(x, dtypes.bool_)
    axes = canonical_axes(axis, x.ndim)
    if boolean_mask(name, mask) is not None:
        x = _masked(x, mask, neutral)
    result = primitive.bind(x, axes=axes) if axes else apart(x)
    return keep_axes(result, x.shape, axes) if keepdims else result


def all(a: ArrayLike, axis: int | Sequence[int] | None = None, out: Any = None,
        keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
    """Whether all elements over ``axis`` are true.

    Args:
      a: an array; of numbers all but 0 count as true.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the reduced axes stay, with size 1.
      where: a boolean mask that broadcasts to ``a``: which elements take part.

    Returns:
      An array of booleans without the reduced axes; True for no elements. In Python's ``if`` it
      works outside of ``jit`` only.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      ValueError: there is no such axis.
      NotImplementedError: ``out`` is given.

    See also: ``any``, ``array_equal``, ``logical_and``, ``jax.tree.all``.

    >>> jnp.all(jnp.array([[1, 0], [3, 4]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    return _truth("all", reduce_and_p, True, a, axis, out, keepdims, where)


def any(a: ArrayLike, axis: int | Sequence[int] | None = None, out: Any = None,
        keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
    """Whether any element over ``axis`` is true.

    Args:
      a: an array; of numbers all but 0 count as true, NaN among them.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the reduced axes stay, with size 1.
      where: a boolean mask that broadcasts to ``a``: which elements take part.

    Returns:
      An array of booleans without the reduced axes; False for no elements. In Python's ``if`` it
      works outside of ``jit`` only.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      ValueError: there is no such axis.
      NotImplementedError: ``out`` is given.

    See also: ``all``, ``logical_or``, ``isnan``.

    >>> jnp.any(jnp.array([[1, 0], [0, 0]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    return _truth("any", reduce_or_p, False, a, axis, out, keepdims, where)


# --- moments --------------------------------------------------------------------------------------

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
    result = variance_of("var", a, axis, dtype, ddof, keepdims, where, mean, correction)
    # An undefined variance is NaN, so the result is a float in any case.
    return result if dtypes.is_inexact(result.dtype) else _where(True, result, np.nan)


def variance_of(name: str, a: Any, axis: Any, dtype: Any, ddof: Any, keepdims: bool, mask: Any,
                center: Any, correction: Any, skips_nan: bool = False) -> Array:
    x = as_array(a, name)
    if correction is not None:
        if ddof:
            raise ValueError("ddof and correction can't be provided simultaneously.")
        ddof = correction
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
        # The common case, with no more than its operations.
        x = strong(x)
        total = reduce_sum_p.bind(x, axes=axes)
        center = divide_by_constant(keep_axes(total, x.shape, axes), constant(size, compute))
        squared = square_p.bind(sub_p.bind(x, center))
        total = reduce_sum_p.bind(squared, axes=axes)
        value = divide_by_constant(total, constant(_less(size, ddof), compute))
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
    return ufuncs.sqrt(variance_of("std", a, axis, dtype, ddof, keepdims, where, mean, correction))


def ptp(a: ArrayLike, axis: int | Sequence[int] | None = None, out: Any = None,
        keepdims: bool = False) -> Array:
    """The difference between the maximum and the minimum.

    >>> jnp.ptp(jnp.array([[1, 5], [3, 4]]), axis=1)
    Array([4, 1], dtype=int32)
    """
    check_out("ptp", out)
    x = as_array(a, "ptp")
    return max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims)


def count_nonzero(a: ArrayLike, axis: int | Sequence[int] | None = None,
                  keepdims: bool = False) -> Array:
    """The number of nonzero elements over ``axis``.

    Args:
      a: an array; NaN counts.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      keepdims: whether the reduced axes stay, with size 1.

    Returns:
      An array of the default integer type without the reduced axes.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      ValueError: there is no such axis.

    See also: ``nonzero``, ``sum``, ``bincount``.

    >>> jnp.count_nonzero(jnp.array([[1, 0], [3, 4]]), axis=1)
    Array([1, 2], dtype=int32)
    """
    x = as_bool(as_array(a, "count_nonzero"))
    return sum(x, axis, dtype=dtypes.canonical(dtypes.int64), keepdims=keepdims)


# --- positions ------------------------------------------------------------------------------------

def _position(name: str, primitive: Primitive, a: Any, axis: Any, out: Any,
              keepdims: Any) -> Array:
    check_out(name, out)
    x = as_array(a, name)
    shape, rank = x.shape, x.ndim
    if axis is None:
        flat = reshape(x, (x.size,))
        index = 0
    else:
        index = operator.index(axis)
        if not -rank <= index < rank:
            raise IndexError(f"axis {index} is out of range for an array of dimension {rank}")
        flat, index = x, index % rank
    if flat.shape[index] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    check_accepts(gt_p if name == "argmax" else lt_p, [flat, flat])
    if flat.dtype == dtypes.bool_:
        flat = convert_element_type(flat, dtypes.uint8)
    result = primitive.bind(flat, axes=(index,), index_dtype=dtypes.canonical(dtypes.int64))
    if keepdims:
        axes = tuple(range(rank)) if axis is None else (index,)
        result = keep_axes(result, shape, axes)
    return result


def argmax(a: ArrayLike, axis: int | None = None, out: Any = None,
           keepdims: Any = None) -> Array:
    """The index of the first maximum (of the first NaN, if there is one).

    Args:
      a: an array.
      axis: along which; None: of the flattened array.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the axis stays, with size 1.

    Returns:
      An array of the default integer type without the axis. It has no derivative: as any integer it
      counts as constant.

    Raises:
      ValueError: there are no elements.
      TypeError: they are complex.
      IndexError: there is no such axis.
      NotImplementedError: ``out`` is given.

    See also: ``argmin``, ``max``, ``nanargmax``, ``argsort``, ``lax.top_k``.

    >>> x = jnp.array([[1, 5], [7, 4]])
    >>> jnp.argmax(x), jnp.argmax(x, axis=1)
    (Array(2, dtype=int32), Array([1, 0], dtype=int32))
    """
    return _position("argmax", argmax_p, a, axis, out, keepdims)


def argmin(a: ArrayLike, axis: int | None = None, out: Any = None,
           keepdims: Any = None) -> Array:
    """The index of the first minimum (of the first NaN, if there is one).

    Args:
      a: an array.
      axis: along which; None: of the flattened array.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the axis stays, with size 1.

    Returns:
      An array of the default integer type without the axis. It has no derivative: as any integer it
      counts as constant.

    Raises:
      ValueError: there are no elements.
      TypeError: they are complex.
      IndexError: there is no such axis.
      NotImplementedError: ``out`` is given.

    See also: ``argmax``, ``min``, ``nanargmin``, ``argsort``.

    >>> x = jnp.array([[3, 5], [7, 1]])
    >>> jnp.argmin(x), jnp.argmin(x, axis=1)
    (Array(3, dtype=int32), Array([0, 1], dtype=int32))
    """
    return _position("argmin", argmin_p, a, axis, out, keepdims)
