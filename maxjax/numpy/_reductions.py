"""Reductions: sum, product, extrema, all, any, counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import config, dtypes
from maxjax._higher_order.named_calls import named
from maxjax._higher_order.static_arguments import check_hashable
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Array, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives.arithmetic import add_p, mul_p
from maxjax._primitives.broadcasting import broadcast_in_dim, reduce_sum_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.reduction import (
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
)
from maxjax._runtime.array import ArrayImpl
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._at_once import at_once
from maxjax.numpy._elementwise import alias, binary
from maxjax.numpy._promotion import (
    apart,
    as_array,
    canonical_axes,
    cast,
    check_out,
    constant,
    type_of,
)
from maxjax.numpy._where import as_bool, where

__all__ = [
    "all", "amax", "amin", "any", "count_nonzero", "max", "min", "minmax", "prod", "ptp", "sum",
]

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


# By name: the primitive, the neutral element, and the elementwise function that combines an
# ``initial`` with the result.
_KINDS: dict[str, tuple[Primitive, int | None, Callable[[Any, Any], Array]]] = {
    "sum": (reduce_sum_p, 0, _add), "prod": (reduce_prod_p, 1, _multiply),
    "max": (reduce_max_p, None, ufuncs._maximum), "min": (reduce_min_p, None, ufuncs._minimum)}


def _reduce(name: str, a: Any, axis: Any, dtype: Any, out: Any, keepdims: bool, initial: Any,
            mask: Any, widen: bool = False) -> Array:
    """What sum, prod, max and min have in common.

    Args:
      widen: integers are computed in at least the default width.
    """
    try:
        hash((dtype, keepdims, widen))
    except TypeError:       # in JAX they are static
        check_hashable(dtype, keepdims, widen)
    primitive, identity, combine = _KINDS[name]
    narrow_floats = identity is not None      # float16 and bfloat16 are accumulated in float32
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
    if mask is not None and initial is None and identity is None:
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
        value: Any = identity
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


_reduce_masked = at_once(_reduce)      # of several operations


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
    if a.__class__ is ArrayImpl and dtype is None and keepdims is False and (
            out is None and initial is None and where is None and promote_integers is True):
        aval = a.aval
        if aval.dtype in _DIRECT[config.enable_x64.value] and not aval.weak_type:
            rank = len(aval.shape)
            if axis is None:
                axes = _ALL_AXES[rank] if rank < 8 else tuple(range(rank))
            else:
                axes = canonical_axes(axis, rank)
            if axes:
                return context.trace.apply(reduce_sum_p, (a,), {"axes": axes})
    reduce = _reduce if initial is None and where is None else _reduce_masked
    return reduce("sum", a, axis, dtype, out, keepdims, initial, where, promote_integers)


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
    reduce = _reduce if initial is None and where is None else _reduce_masked
    return reduce("prod", a, axis, dtype, out, keepdims, initial, where, promote_integers)


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
    reduce = _reduce if initial is None and where is None else _reduce_masked
    return reduce("max", a, axis, None, out, keepdims, initial, where)


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
    reduce = _reduce if initial is None and where is None else _reduce_masked
    return reduce("min", a, axis, None, out, keepdims, initial, where)


@at_once
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


@at_once
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


@at_once
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


@at_once
def ptp(a: ArrayLike, axis: int | Sequence[int] | None = None, out: Any = None,
        keepdims: bool = False) -> Array:
    """The difference between the maximum and the minimum.

    >>> jnp.ptp(jnp.array([[1, 5], [3, 4]]), axis=1)
    Array([4, 1], dtype=int32)
    """
    check_out("ptp", out)
    x = as_array(a, "ptp")
    return _ptp(x, axis=canonical_axes(axis, x.ndim), keepdims=bool(keepdims))


@named("_ptp", "axis", "keepdims")
def _ptp(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims)


@at_once
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
    x = as_array(a, "count_nonzero")
    return _count_nonzero(x, axis=canonical_axes(axis, x.ndim), keepdims=bool(keepdims))


@named("count_nonzero", "axis", "keepdims")
def _count_nonzero(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return sum(as_bool(x), axis, dtype=dtypes.canonical(dtypes.int64), keepdims=keepdims)
