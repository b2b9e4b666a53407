"""Unique elements and set operations."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import ConcretizationTypeError
from maxjax._ir.dimensions import broadcast_shapes, is_dimension, is_open
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import creation as primitives
from maxjax._primitives import layout, slicing
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.sorting import sort_p
from maxjax.lax._over_mesh import explicit_mesh, refuse_placing
from maxjax.numpy import _creation as creation
from maxjax.numpy import _cumulative as cumulative
from maxjax.numpy import _filled as filled
from maxjax.numpy import _indexing as indexing
from maxjax.numpy import _joining as joining
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _rounding as rounding
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _sorting as sorting
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._promotion import (
    as_array,
    canonical_axis,
    cast,
    check_arraylike,
    concrete,
    is_concrete,
    promote_dtypes,
)
from maxjax.numpy._special_values import isnan
from maxjax.numpy._where import where

__all__ = [
    "delete", "insert", "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique",
    "unique_all", "unique_counts", "unique_inverse", "unique_values",
]


def _check_concrete(name: str, x: Any, size: Any) -> None:
    if size is None and isinstance(x, Tracer) and not is_concrete(x):
        raise ConcretizationTypeError(
            x, f"The error arose for the first argument of jnp.{name}(). To make jnp.{name}() "
            "compatible with JIT and other transforms, you can specify a concrete value for the "
            "size argument, which will determine the output size.")


def one_nan(x: Array) -> Array:
    """Complex numbers of which a part is NaN, as one number: they have no order otherwise."""
    return where(isnan(x), cast(np.nan, x.dtype), x) if dtypes.is_complex(x.dtype) else x


def unique(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False,
           return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
           size: int | None = None, fill_value: Any = None, sorted: bool = True) -> Any:
    """The unique elements, in ascending order (unique slices, with ``axis``).

    Args:
      ar: an array.
      return_index: also return the index of each one's first occurrence.
      return_inverse: also return the index of each element among them.
      return_counts: also return their counts.
      axis: whose slices are compared; None: the elements of the flattened array.
      equal_nan: whether all NaN count as one.
      size: the number of results, required if ``ar`` is traced; missing ones are filled with
        ``fill_value`` (by default the least element).
      fill_value: see ``size``.
      sorted: accepted: the result is always ascending.

    Returns:
      An array, or a tuple of it and what is asked for: indices and counts ``(count,)``, the inverse
      in the shape of ``ar``, or ``(n,)`` with an axis.

    Raises:
      ConcretizationTypeError: ``ar`` is traced and there is no ``size``.

    See also: ``unique_counts``, ``union1d``, ``isin``, ``bincount``.

    >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    >>> jnp.unique(jnp.array([3, 1, 3]), size=3, fill_value=9)
    Array([1, 3, 9], dtype=int32)
    """
    check_arraylike("unique", ar)
    x = one_nan(as_array(ar))
    _check_concrete("unique", x, size)
    shape = x.shape
    if axis is None:
        index, x = 0, layout.reshape(x, (x.size,))
    else:
        index = canonical_axis(axis, x.ndim)
        x = shapes.moveaxis(x, index, 0)
    count = x.shape[0]
    rest = x.shape[1:]
    rows = layout.reshape(x, (count, x.size // count if count else 0))
    integer = dtypes.canonical(dtypes.int64)
    if not x.size:
        return _empty_unique(x, size, fill_value, return_index, return_inverse, return_counts,
                             index if axis is not None else None, shape)
    keys = [layout.reshape(slicing.slice_in_dim(rows, i, i + 1, 1), (count,))
            for i in range(rows.shape[1])]
    places = primitives.iota(integer, (count,), 0)
    *ordered, order = sort_p.bind(
        *keys, places, dimension=0, is_stable=True, num_keys=len(keys)) if keys else (places,)
    new = _differ_from_before(ordered, count, equal_nan)
    first = joining.concatenate([filled.ones((1,), bool), new[1:]])
    group = cumulative.cumsum(first.astype(integer)) - 1
    if size is None:
        total = int(reductions.sum(first))
    else:
        total = operator.index(concrete(size, "The size argument of jnp.unique must be static."))
        if total < 0:
            raise TypeError(f"jnp.unique: size must be nonnegative, got {total}")
    starts = indexing.nonzero(first, size=total, fill_value=count)[0].astype(integer)
    valid = starts < count
    start_places = ufuncs._minimum(starts, max(count - 1, 0))
    positions = shapes.take_in_bounds(order, start_places, 0)
    values = shapes.take_in_bounds(x, positions, 0)
    present = layout.reshape(valid, (total, *(1,) * len(rest)))
    if size is not None:
        if fill_value is None:
            filler = shapes.take_in_bounds(x, shapes.take_in_bounds(
                order, filled.zeros((1,), integer), 0), 0)
        else:
            filler = as_array(cast(fill_value, x.dtype))
        values = where(present, values, filler)
        # results beyond the groups repeat the first group
        positions = where(valid, positions, shapes.take_in_bounds(
            order, filled.zeros((1,), integer), 0))
    if axis is not None:
        values = shapes.moveaxis(values, 0, index)
    results = [values]
    if return_index:
        results.append(positions)
    if return_inverse:
        inverse = filled.zeros((count,), integer).at[order].set(group)
        results.append(layout.reshape(inverse, shape) if axis is None else inverse)
    if return_counts:
        # the end of the last group, unless there is no room for the next one
        following = indexing.nonzero(first, size=total + 1, fill_value=count)[0]
        ends = following[1:].astype(integer)
        results.append(where(valid, ends - starts, 0))
    return results[0] if len(results) == 1 else tuple(results)


def _differ_from_before(ordered: Sequence[Array], count: int, equal_nan: bool) -> Array:
    """Where one of the lines has another element than at the position before."""
    new = primitives.full((count,), False, dtypes.bool_)
    for line in ordered:
        before, after = line[:-1], line[1:]
        differs = after != before
        if equal_nan and dtypes.is_inexact(line.dtype):
            differs = differs & ~(isnan(after) & isnan(before))
        tail = joining.concatenate([filled.zeros((1,), bool), differs])
        new = new | tail
    return new


def _empty_unique(x: Array, size: Any, fill_value: Any, return_index: bool, return_inverse: bool,
                  return_counts: bool, axis: int | None, shape: tuple[int, ...]) -> Any:
    """For an array without elements: all empty slices are equal."""
    integer = dtypes.canonical(dtypes.int64)
    count = x.shape[0]
    groups = int(0 in x.shape[1:] and count > 0)
    if not count and size and fill_value is None:
        raise ValueError("jnp.unique: for zero-sized input with nonzero size argument, fill_value "
                         "must be specified")
    total = groups if size is None or fill_value is None else operator.index(size)
    values = filled.full((total, *x.shape[1:]), 0 if fill_value is None else fill_value, x.dtype)
    results = [values if axis is None else shapes.moveaxis(values, 0, axis)]
    if return_index:
        results.append(filled.zeros((groups,), integer))
    if return_inverse:
        results.append(filled.zeros(shape if axis is None else (count,), integer))
    if return_counts:
        results.append(filled.full((min(count, 1),), count, integer))
    return results[0] if len(results) == 1 else tuple(results)


class _UniqueAllResult(NamedTuple):
    """The results of ``unique_all``."""
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class _UniqueCountsResult(NamedTuple):
    """The results of ``unique_counts``."""
    values: Array
    counts: Array


class _UniqueInverseResult(NamedTuple):
    """The results of ``unique_inverse``."""
    values: Array
    inverse_indices: Array


def unique_all(x: ArrayLike, /, *, size: int | None = None,
               fill_value: Any = None) -> _UniqueAllResult:
    """Unique elements, indices of their first occurrences, inverse indices, and counts.

    >>> jnp.unique_all(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    return _UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size,
                                   fill_value=fill_value))


def unique_counts(x: ArrayLike, /, *, size: int | None = None,
                  fill_value: Any = None) -> _UniqueCountsResult:
    """Unique elements and their counts.

    >>> jnp.unique_counts(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return _UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size,
                                      fill_value=fill_value))


def unique_inverse(x: ArrayLike, /, *, size: int | None = None,
                   fill_value: Any = None) -> _UniqueInverseResult:
    """Unique elements and inverse indices.

    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    return _UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size,
                                       fill_value=fill_value))


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Unique elements.

    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# Beyond this many comparisons, isin searches in the sorted test elements.
_COMPARISONS = 1 << 16
# But many elements are compared with each of up to so many test elements.
_FEW_TESTS, _MANY = 16, 4096
_METHODS = ("compare_all", "binary_search", "sort", "auto")


def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
         method: str = "auto") -> Array:
    """Whether each element is one of ``test_elements``. NaN never is.

    Args:
      element: of any shape, which is also the result's.
      test_elements: of any shape.
      assume_unique: accepted.
      invert: whether it is none of them.
      method: accepted; every method gives the same result.

    Returns:
      An array of booleans.

    See also: ``unique``, ``intersect1d``, ``setdiff1d``.

    >>> isin(jnp.array([[1, 2], [3, 4]]), jnp.array([2, 4, 9]))
    Array([[False,  True],
           [False,  True]], dtype=bool)
    """
    if method not in _METHODS:
        raise ValueError(f"{method=} is not implemented; options are {_METHODS}")
    x, tests = (as_array(v) for v in promote_dtypes("isin", element, test_elements))
    flat = layout.reshape(tests, (tests.size,))
    if explicit_mesh(x, flat) is not None and x.ndim > 1:
        line = isin(shapes.ravel(x), flat, assume_unique, invert, method=method)
        return shapes.reshape(line, x.shape)
    if not flat.size:
        result = as_array(primitives.full(x.shape, False, dtypes.bool_)) if x.shape else as_array(
            np.False_)
    elif not is_open(x.size * flat.size) and flat.size <= _FEW_TESTS and x.size >= _MANY:
        # One pass: rows of few comparisons would fill no vectors.
        result = functools.reduce(operator.or_, [x == flat[i] for i in range(flat.size)])
    elif is_open(x.size * flat.size) or x.size * flat.size <= _COMPARISONS:
        result = reductions.any(shapes.expand_dims(x, -1) == flat[(None,) * x.ndim], -1)
    else:
        line = sorting.sort(flat)
        places = ufuncs._minimum(sorting.searchsorted(line, x), line.size - 1)
        result = shapes.take_in_bounds(line, places, 0) == x
    return ~result if invert else result


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The unique elements of both arrays, in ascending order.

    ``size`` and ``fill_value`` are those of ``unique``.

    Args:
      ar1, ar2: arrays, of any shape.
      size: how many to return; required if an array is traced.
      fill_value: what stands in place of missing ones; None: the least result.

    Returns:
      A vector of the promoted dtype.

    See also: ``intersect1d``, ``setdiff1d``, ``setxor1d``, ``unique``.

    >>> union1d(jnp.array([3, 1, 3]), jnp.array([2, 1]))
    Array([1, 2, 3], dtype=int32)
    """
    check_arraylike("union1d", ar1, ar2)
    return unique(joining.concatenate([shapes.ravel(ar1), shapes.ravel(ar2)]), size=size,
                  fill_value=fill_value)


def _compacted(x: Array, keep: Array, size: int | None, fill_value: Any) -> Array:
    """The elements of ``x`` to keep, followed by ``fill_value`` where there are too few."""
    if size is None:
        return x[keep]
    filler = shapes.broadcast_to(as_array(cast(fill_value, x.dtype)), (size,))
    if not x.size:
        return filler
    places = indexing.nonzero(keep, size=size, fill_value=x.size)[0]
    values = shapes.take_in_bounds(x, ufuncs._minimum(places, x.size - 1), 0)
    return where(places < x.size, values, filler)


def _first(x: Array, keep: Array) -> Array:
    """The first of the elements to keep; NaN if one of them is; 0 if there is none."""
    first = _compacted(x, keep, 1, 0)[0]
    if x.size and dtypes.is_inexact(x.dtype):
        first = where(reductions.any(keep & isnan(x)), cast(np.nan, x.dtype), first)
    return first


def _fresh(line: Array) -> Array:
    """Whether an element of a sorted line differs from the one before it; NaN is one value."""
    if not line.size:
        return filled.zeros((0,), bool)
    before, after = line[:-1], line[1:]
    differs = after != before
    if dtypes.is_inexact(line.dtype):
        differs = differs & ~(isnan(after) & isnan(before))
    return joining.concatenate([filled.ones((1,), bool), differs])


def _flattened(name: str, may_be_traced: bool, *arrays: Any) -> list[Array]:
    """The arrays, flat; unless they may be traced, their values are known."""
    check_arraylike(name, *arrays)
    result = [one_nan(shapes.ravel(as_array(x))) for x in arrays]
    for x in result:
        _check_concrete(name, x, 0 if may_be_traced else None)
    return result


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None,
              fill_value: Any = None) -> Array:
    """The unique elements of the first array that are not in the second, in ascending order.

    Args:
      ar1, ar2: arrays, of any shape.
      assume_unique: use the elements of ``ar1`` without sorting or deduplicating.
      size: how many to return; required if an array is traced. Missing ones are ``fill_value``
        (0 by default).
      fill_value: see ``size``.

    Returns:
      A vector of ``ar1``'s dtype.

    See also: ``union1d``, ``intersect1d``, ``setxor1d``, ``isin``, ``unique``.

    >>> setdiff1d(jnp.array([5, 1, 2, 5]), jnp.array([2]))
    Array([1, 5], dtype=int32)
    """
    x, y = _flattened("setdiff1d", size is not None, ar1, ar2)
    if assume_unique:
        keep = ~isin(x, y)
    else:
        x = sorting.sort(x)
        keep = _fresh(x) & ~isin(x, y)
    return _compacted(x, keep, size, 0 if fill_value is None else fill_value)


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None,
             fill_value: Any = None) -> Array:
    """The elements of exactly one of the arrays, in ascending order.

    Args:
      assume_unique: no array contains duplicates.
      size: how many to return; required if an array is traced. Missing ones are ``fill_value``
        (the least result by default).

    >>> setxor1d(jnp.array([1, 2, 3]), jnp.array([3, 4]))
    Array([1, 2, 4], dtype=int32)
    """
    x, y = (as_array(v) for v in promote_dtypes("setxor1d", ar1, ar2))
    x, y = _flattened("setxor1d", assume_unique or size is not None, x, y)
    present = [filled.ones((line.size,), bool) for line in (x, y)]
    if not assume_unique:
        x, y = sorting.sort(x), sorting.sort(y)
        present = [_fresh(line) for line in (x, y)]
    both, absent = joining.concatenate([x, y]), ~joining.concatenate(present)
    if not both.size:
        return _compacted(both, absent, size, 0 if fill_value is None else fill_value)
    # Absent elements are sorted after equal present ones, so that those are adjacent.
    both, absent = sort_p.bind(both, absent, dimension=0, is_stable=True, num_keys=2)
    same = (both[1:] == both[:-1]) & ~absent[1:] & ~absent[:-1]
    edge = filled.zeros((1,), bool)
    keep = ~(absent | joining.concatenate([edge, same]) | joining.concatenate([same, edge]))
    return _compacted(both, keep, size, _first(both, keep) if fill_value is None else fill_value)


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False, *,
                size: int | None = None, fill_value: Any = None
                ) -> Array | tuple[Array, Array, Array]:
    """The elements that are in both arrays, in ascending order.

    Args:
      ar1, ar2: arrays, of any shape.
      assume_unique: no array contains duplicates.
      return_indices: also return the index of each one's first occurrence in each array.
      size: how many to return; required if an array is traced. Missing ones are ``fill_value``
        (the least result by default), and their indices the sizes of the arrays.
      fill_value: see ``size``.

    Returns:
      A vector of the promoted dtype, or a triple of it and two of indices.

    See also: ``union1d``, ``setdiff1d``, ``isin``, ``unique``.

    >>> intersect1d(jnp.array([4, 1, 3]), jnp.array([3, 5, 4]), return_indices=True)
    (Array([3, 4], dtype=int32), Array([2, 0], dtype=int32), Array([0, 2], dtype=int32))
    """
    x, y = (as_array(v) for v in promote_dtypes("intersect1d", ar1, ar2))
    x, y = _flattened("intersect1d", assume_unique or size is not None, x, y)
    if assume_unique:
        both = joining.concatenate([x, y])
        order = sorting.argsort(both)
        line = both[order]
        keep, line = line[1:] == line[:-1], line[:-1]
        sources = order[:-1], order[1:] - x.size
    else:
        order = sorting.argsort(x)
        line = x[order]
        keep = _fresh(line) & isin(line, y)
        sources = order, order
        if return_indices and y.size:
            y_order = sorting.argsort(y)
            places = sorting.searchsorted(shapes.take_in_bounds(y, y_order, 0), line)
            sources = order, shapes.take_in_bounds(
                y_order, ufuncs._minimum(places, y.size - 1), 0)
    if fill_value is None:
        fill_value = _first(line, keep)
    values = _compacted(line, keep, size, fill_value)
    if not return_indices:
        return values
    first, second = [_compacted(source, keep, size, count)
                     for source, count in zip(sources, (x.size, y.size), strict=True)]
    return values, first, second


# --- delete, insert -------------------------------------------------------------------------------

def delete(arr: ArrayLike, obj: Any, axis: int | None = None, *,
           assume_unique_indices: bool = False) -> Array:
    """The array without the slices at ``obj`` along an axis (elements of the flattened array).

    Args:
      arr: an array; it is left as it is.
      obj: an integer, an array of integers, a mask, or a slice. Its values must be known, unless
        ``assume_unique_indices`` promises that no position is repeated.
      axis: along which; None: of the flattened array.
      assume_unique_indices: see ``obj``.

    Returns:
      A new array of ``arr``'s dtype.

    Raises:
      ConcretizationTypeError: ``obj`` is traced, and its positions are not promised to be unique.
      IndexError, ValueError: a position is out of bounds.

    See also: ``insert``, ``append``, ``compress``.

    >>> delete(jnp.arange(5), jnp.array([0, -2]))
    Array([1, 2, 4], dtype=int32)
    """
    check_arraylike("delete", arr, 0 if isinstance(obj, slice) else obj)
    x = as_array(arr)
    if axis is None:
        x, axis = shapes.ravel(x), 0
    index = canonical_axis(axis, x.ndim)
    size = x.shape[index]
    if isinstance(obj, slice):
        return _kept(x, np.delete(np.arange(size), obj), index)
    positions = _known(int(obj) if isinstance(obj, bool) else obj)
    is_mask = positions.dtype == dtypes.bool_
    if not (is_mask or dtypes.is_integer(positions.dtype)):
        raise ValueError(f"delete: obj must be integers or booleans, got {positions.dtype}")
    if assume_unique_indices and not is_mask:
        # The retained rows move down past each deleted one that is not above them.
        wanted = shapes.ravel(where(positions < 0, positions + size, positions))
        wanted = sorting.sort(rounding.clip(wanted, 0, size - 1))
        places = primitives.iota(dtypes.int32, (size - wanted.size,), 0)
        moved = wanted - primitives.iota(wanted.dtype, (wanted.size,), 0)
        shift = reductions.sum(
            (places[:, None] >= moved[None, :].astype(np.int32)).astype(np.int32), 1)
        return shapes.take_in_bounds(x, places + shift, index)
    host = np.asarray(concrete(positions, "'obj' array argument of jnp.delete()"))
    if is_mask and host.shape != (size,):
        raise ValueError("delete: a mask must have one dimension, of the size of the axis: got "
                         f"shape {host.shape} for size {size}")
    if not host.ndim and not -size <= int(host) < size:
        raise ValueError(f"delete: index {int(host)} is out of bounds for an axis of size {size}")
    return _kept(x, np.delete(np.arange(size), host), index)


def _known(positions: Any) -> Array:
    """Positions as an array, those that are no array's known while a program is traced, too."""
    return installed.runtime.concrete(positions)


def _kept(x: Array, positions: np.ndarray, axis: int) -> Array:
    return shapes.take_in_bounds(x, as_array(positions.astype(np.int32)), axis)


def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Array:
    """The array with ``values`` before the positions ``obj`` along an axis (of the flattened one).

    Args:
      arr: an array; it is left as it is.
      obj: an integer, a slice, or a vector of integers; out-of-bounds ones are clipped.
      values: converted to the dtype of ``arr``, and broadcast.
      axis: along which; None: of the flattened array.

    Returns:
      A new array of ``arr``'s dtype.

    Raises:
      ValueError: the positions are not integers, or the values do not fit.

    See also: ``append``, ``delete``, ``concatenate``.

    >>> insert(jnp.arange(4.0), jnp.array([1, 3]), 9.0)
    Array([0., 9., 1., 2., 9., 3.], dtype=float32)
    """
    check_arraylike("insert", arr, 0 if isinstance(obj, slice) else obj, values)
    x, new = as_array(arr), as_array(values)
    new = convert_element_type(new, x.dtype, x.weak_type)
    if axis is None:
        x, axis = shapes.ravel(x), 0
    index = canonical_axis(axis, x.ndim)
    size = x.shape[index]
    where_to = _known(np.arange(*obj.indices(size)) if isinstance(obj, slice) else obj)
    if not dtypes.is_integer(where_to.dtype):
        raise ValueError(f"insert: the positions must be integers; got {obj}")
    if where_to.ndim > 1:
        raise ValueError("insert: obj must be a slice, a vector or a scalar; got shape "
                         f"{where_to.shape}")
    new = creation.array(new, ndmin=x.ndim)
    if not where_to.ndim:
        new = shapes.moveaxis(new, 0, index)
    count = new.shape[index] if where_to.size == 1 else where_to.size
    sizes = list(x.shape)
    sizes[index] = count
    try:
        broadcast_shapes(new.shape, tuple(sizes))
        new = shapes.broadcast_to(new, tuple(sizes))
    except ValueError:
        raise ValueError(f"insert: values of shape {new.shape} do not broadcast to "
                         f"{tuple(sizes)}") from None
    refuse_placing(new, x)
    if is_concrete(where_to) and not is_dimension(size):
        source = as_array(_inserted(np.asarray(concrete(where_to, "")), size, count))
    else:
        source = _inserted_traced(where_to, size, count)
    return shapes.take_in_bounds(joining.concatenate([x, new], index), source, index)


def _inserted(positions: np.ndarray, size: int, count: int) -> np.ndarray:
    """For each position of the result, its index among ``size`` old and ``count`` new ones."""
    positions = positions.astype(np.int64)
    positions = np.clip(np.where(positions < 0, positions + size, positions), 0, size)
    positions = np.broadcast_to(positions.reshape(-1), (count,))
    order = np.argsort(positions, kind="stable")
    source = np.full(size + count, -1, np.int32)
    source[positions[order] + np.arange(count)] = size + order
    source[source < 0] = np.arange(size)
    return source


def _inserted_traced(positions: Array, size: int, count: int) -> Array:
    """As ``_inserted``, for unknown positions."""
    if not count:
        return primitives.iota(dtypes.int32, (size,), 0)
    positions = rounding.clip(where(positions < 0, positions + size, positions), 0, size)
    positions = shapes.broadcast_to(shapes.ravel(positions.astype(np.int32)), (count,))
    order = sorting.argsort(positions).astype(np.int32)
    places = shapes.take_in_bounds(positions, order, 0) + primitives.iota(
        dtypes.int32, (count,), 0)
    source = primitives.full((size + count,), -1, dtypes.int32).at[places].set(size + order)
    old = source < 0
    return where(old, cumulative.cumsum(old.astype(np.int32)) - 1, source)
