"""Sets: unique elements, and what is done with them."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import ConcretizationTypeError
from maxjax._ir.trace import Array, Tracer
from maxjax._primitives import shape as primitives
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.sorting import sort_p
from maxjax.numpy import _creation as creation
from maxjax.numpy import _indexing as indexing
from maxjax.numpy import _joining as joining
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _sorting as sorting
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._promotion import (
    as_array,
    canonical_axis,
    cast,
    check_arraylike,
    is_concrete,
    promote_dtypes,
)
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


def unique(ar: Any, return_index: bool = False, return_inverse: bool = False,
           return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
           size: int | None = None, fill_value: Any = None, sorted: bool = True) -> Any:
    """The different elements, in ascending order (different slices, with ``axis``).

    Args:
      return_index: also where each stands first.
      return_inverse: also which of them each element is.
      return_counts: also how often each stands.
      size: the number of results, which must be given where ``ar`` is traced; too few are filled
        up with ``fill_value`` (by default the least element).
    """
    check_arraylike("unique", ar)
    x = as_array(ar)
    _check_concrete("unique", x, size)
    shape = x.shape
    if axis is None:
        index, x = 0, primitives.reshape(x, (x.size,))
    else:
        index = canonical_axis(axis, x.ndim)
        x = shapes.moveaxis(x, index, 0)
    count = x.shape[0]
    rest = x.shape[1:]
    rows = primitives.reshape(x, (count, x.size // count if count else 0))
    integer = dtypes.canonical(dtypes.int64)
    if not count:
        return _empty_unique(x, size, fill_value, return_index, return_inverse, return_counts,
                             index if axis is not None else None)
    keys = [primitives.reshape(primitives.slice_in_dim(rows, i, i + 1, 1), (count,))
            for i in range(rows.shape[1])]
    places = primitives.iota(integer, (count,), 0)
    *ordered, order = sort_p.bind(
        *keys, places, dimension=0, is_stable=True, num_keys=len(keys)) if keys else (places,)
    new = primitives.full((count,), False, dtypes.bool_)
    for line in ordered:
        before, after = line[:-1], line[1:]
        differs = after != before
        if equal_nan and dtypes.is_inexact(line.dtype):
            differs = differs & ~(ufuncs.isnan(after) & ufuncs.isnan(before))
        tail = joining.concatenate([creation.zeros((1,), bool), differs])
        new = new | tail
    first = joining.concatenate([creation.ones((1,), bool), new[1:]])
    group = reductions.cumsum(first.astype(integer)) - 1
    if size is None:
        total = int(reductions.sum(first))
    else:
        total = operator.index(size)
    starts = indexing.nonzero(first, size=total, fill_value=count)[0].astype(integer)
    valid = starts < count
    start_places = ufuncs._minimum(starts, max(count - 1, 0))
    positions = shapes.take_in_bounds(order, start_places, 0)
    values = shapes.take_in_bounds(x, positions, 0)
    present = primitives.reshape(valid, (total, *(1,) * len(rest)))
    if size is not None:
        if fill_value is None:
            filler = shapes.take_in_bounds(x, shapes.take_in_bounds(
                order, creation.zeros((1,), integer), 0), 0)
        else:
            filler = as_array(cast(fill_value, x.dtype))
        values = where(present, values, filler)
        # results beyond the groups repeat the first group
        positions = where(valid, positions, shapes.take_in_bounds(
            order, creation.zeros((1,), integer), 0))
    if axis is not None:
        values = shapes.moveaxis(values, 0, index)
    results = [values]
    if return_index:
        results.append(positions)
    if return_inverse:
        inverse = creation.zeros((count,), integer).at[order].set(group)
        results.append(primitives.reshape(inverse, shape) if axis is None else inverse)
    if return_counts:
        ends = joining.concatenate([starts[1:], creation.full((1,), count, integer)])
        results.append(where(valid, ends - starts, 0))
    return results[0] if len(results) == 1 else tuple(results)


def _empty_unique(x: Array, size: Any, fill_value: Any, return_index: bool, return_inverse: bool,
                  return_counts: bool, axis: int | None) -> Any:
    integer = dtypes.canonical(dtypes.int64)
    total = 0 if size is None else operator.index(size)
    if total and fill_value is None:
        fill_value = 0
    values = creation.full((total, *x.shape[1:]), 0 if fill_value is None else fill_value, x.dtype)
    results = [values if axis is None else shapes.moveaxis(values, 0, axis)]
    results += [creation.zeros((total,), integer)] if return_index else []
    results += [creation.zeros((0,), integer)] if return_inverse else []
    results += [creation.zeros((total,), integer)] if return_counts else []
    return results[0] if len(results) == 1 else tuple(results)


class UniqueAllResult(NamedTuple):
    """What ``unique_all`` gives."""
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """What ``unique_counts`` gives."""
    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """What ``unique_inverse`` gives."""
    values: Array
    inverse_indices: Array


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueAllResult:
    """Unique elements, where they stand first, which one each element is, how often they stand."""
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size,
                                   fill_value=fill_value))


def unique_counts(x: Any, /, *, size: int | None = None,
                  fill_value: Any = None) -> UniqueCountsResult:
    """Unique elements, and how often they stand."""
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size,
                                      fill_value=fill_value))


def unique_inverse(x: Any, /, *, size: int | None = None,
                   fill_value: Any = None) -> UniqueInverseResult:
    """Unique elements, and which one each element is."""
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size,
                                       fill_value=fill_value))


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Unique elements."""
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
         method: str = "auto") -> Array:
    """Whether each element is one of ``test_elements``."""
    x, tests = (as_array(v) for v in promote_dtypes("isin", element, test_elements))
    flat = primitives.reshape(tests, (tests.size,))
    if not flat.size:
        result = as_array(primitives.full(x.shape, False, dtypes.bool_)) if x.shape else as_array(
            np.False_)
    else:
        result = reductions.any(shapes.expand_dims(x, -1) == flat, -1)
    return ~result if invert else result


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The elements of either array."""
    check_arraylike("union1d", ar1, ar2)
    return unique(joining.concatenate([shapes.ravel(ar1), shapes.ravel(ar2)]), size=size,
                  fill_value=fill_value)


def _compacted(x: Array, keep: Array, size: int | None, fill_value: Any) -> Array:
    if size is None:
        return x[keep]
    default = x[0] if x.size and fill_value is None else (0 if fill_value is None else fill_value)
    places = indexing.nonzero(keep, size=size, fill_value=x.size)[0]
    inside = places < x.size
    values = shapes.take_in_bounds(x, ufuncs._minimum(places, max(x.size - 1, 0)), 0) if x.size \
        else creation.zeros((size,), x.dtype)
    return where(inside, values, cast(default, x.dtype))


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None,
              fill_value: Any = None) -> Array:
    """The elements of the first array that are not in the second."""
    check_arraylike("setdiff1d", ar1, ar2)
    x, y = (shapes.ravel(as_array(v)) for v in (ar1, ar2))
    for value in (x, y):
        _check_concrete("setdiff1d", value, size)
    if not assume_unique:
        if size is None:
            x = unique(x)
        else:
            x = sorting.sort(x)
            fresh = joining.concatenate([creation.ones((min(1, x.size),), bool), x[1:] != x[:-1]])
            return _compacted(x, fresh & ~isin(x, y), size, fill_value)
    return _compacted(x, ~isin(x, y), size, fill_value)


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None,
             fill_value: Any = None) -> Array:
    """The elements of exactly one of the arrays."""
    check_arraylike("setxor1d", ar1, ar2)
    x, y = (shapes.ravel(as_array(v)) for v in promote_dtypes("setxor1d", ar1, ar2))
    for value in (x, y):
        _check_concrete("setxor1d", value, size)
    both = joining.concatenate([x, y])
    mine = joining.concatenate([creation.zeros((x.size,), bool), creation.ones((y.size,), bool)])
    order = sorting.argsort(both)
    both, mine = both[order], mine[order]
    fresh = joining.concatenate([creation.ones((min(1, both.size),), bool), both[1:] != both[:-1]])
    keep = fresh & (isin(both, x) != isin(both, y))
    return _compacted(both, keep, size, fill_value)


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False, *,
                size: int | None = None, fill_value: Any = None) -> Any:
    """The elements of both arrays (with ``return_indices`` also where they stand)."""
    check_arraylike("intersect1d", ar1, ar2)
    x, y = (shapes.ravel(as_array(v)) for v in promote_dtypes("intersect1d", ar1, ar2))
    for value in (x, y):
        _check_concrete("intersect1d", value, size)
    order = sorting.argsort(x)
    line = x[order]
    fresh = joining.concatenate([creation.ones((min(1, line.size),), bool), line[1:] != line[:-1]])
    keep = fresh & isin(line, y)
    values = _compacted(line, keep, size, fill_value)
    if not return_indices:
        return values
    first = _compacted(order, keep, size, x.size)
    y_order = sorting.argsort(y)
    second = y_order[ufuncs._minimum(sorting.searchsorted(y[y_order], values), y.size - 1)]
    return values, first, second


# --- delete, insert -------------------------------------------------------------------------------

def delete(arr: Any, obj: Any, axis: int | None = None, *,
           assume_unique_indices: bool = False) -> Array:
    """The array without the rows at ``obj`` along an axis (elements of the flattened array)."""
    x = as_array(arr, "delete")
    if axis is None:
        x, axis = shapes.ravel(x), 0
    index = canonical_axis(axis, x.ndim)
    size = x.shape[index]
    if isinstance(obj, slice):
        kept = np.delete(np.arange(size), obj)
        return shapes.take_in_bounds(x, as_array(kept.astype(np.int32)), index)
    positions = creation.asarray(obj) if isinstance(obj, (list, tuple)) else as_array(obj, "delete")
    if not is_concrete(positions) and positions.dtype != dtypes.bool_:
        if positions.ndim == 0 or assume_unique_indices:
            # The kept rows move down past each deleted one that is not above them.
            wanted = sorting.sort(shapes.ravel(where(positions < 0, positions + size, positions)))
            places = primitives.iota(dtypes.int32, (size - wanted.size,), 0)
            moved = wanted - primitives.iota(wanted.dtype, (wanted.size,), 0)
            shift = reductions.sum(
                (places[:, None] >= moved[None, :].astype(np.int32)).astype(np.int32), 1)
            return shapes.take_in_bounds(x, places + shift, index)
        raise ConcretizationTypeError(positions, "'obj' array argument of jnp.delete()")
    host = np.asarray(positions)
    if host.dtype != np.bool_ and host.size and (
            int(host.max()) >= size or int(host.min()) < -size) and host.ndim == 0:
        raise ValueError(f"axis {int(host)} is out of bounds for array of dimension {size}")
    kept = np.delete(np.arange(size), host)
    return shapes.take_in_bounds(x, as_array(kept.astype(np.int32)), index)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Array:
    """The array with ``values`` before the positions ``obj`` along an axis."""
    x, new = (as_array(v) for v in (as_array(arr, "insert"), creation.asarray(values)))
    dtype = x.dtype
    if axis is None:
        x, axis = shapes.ravel(x), 0
    index = canonical_axis(axis, x.ndim)
    size = x.shape[index]
    if isinstance(obj, slice):
        host = np.arange(*obj.indices(size))
    else:
        host = np.asarray(obj if not isinstance(obj, Array) else np.asarray(obj))
    scalar = host.ndim == 0
    host = np.where(host < 0, host + size, host).reshape(-1)
    new = creation.array(convert_element_type(new, dtype), ndmin=x.ndim)
    if scalar and x.ndim > 1:
        new = shapes.moveaxis(new, 0, index)
    count = max(host.size, new.shape[index] if scalar else host.size)
    if scalar:
        host = np.repeat(host, count)
    sizes = list(x.shape)
    sizes[index] = count
    new = shapes.broadcast_to(new, tuple(sizes))
    # Where each comes to stand: stable by position.
    order = np.argsort(host, kind="stable")
    target = np.empty_like(host)
    target[order] = host[order] + np.arange(count)
    source = np.full(size + count, -1)
    source[target] = size + np.arange(count)
    source[source < 0] = np.arange(size)
    joined = joining.concatenate([x, new], index)
    return shapes.take_in_bounds(joined, as_array(source.astype(np.int32)), index)


