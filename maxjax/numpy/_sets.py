"""Set operations: membership, union, intersection, differences."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.dimensions import is_open
from maxjax._ir.trace import Array
from maxjax._primitives import creation as primitives
from maxjax._primitives import layout
from maxjax._primitives.sorting import sort_p
from maxjax.lax._over_mesh import explicit_mesh
from maxjax.numpy import _filled as filled
from maxjax.numpy import _joining as joining
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _sorting as sorting
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._at_once import at_once
from maxjax.numpy._nonzero import nonzero
from maxjax.numpy._promotion import as_array, cast, check_arraylike, promote_dtypes
from maxjax.numpy._special_values import isnan
from maxjax.numpy._unique import check_concrete, differ_from_before, one_nan, unique
from maxjax.numpy._where import where

__all__ = ["intersect1d", "isin", "setdiff1d", "setxor1d", "union1d"]


# Beyond this many comparisons, isin searches in the sorted test elements.
_COMPARISONS = 1 << 16
# But many elements are compared with each of up to so many test elements.
_FEW_TESTS, _MANY = 16, 4096
_METHODS = ("compare_all", "binary_search", "sort", "auto")


@at_once
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
        raise ValueError(f"{method=} is not implemented; options are 'compare_all', "
                         "'binary_search', 'sort', and 'auto'")
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
    places = nonzero(keep, size=size, fill_value=x.size)[0]
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
    differs = differ_from_before(line, True)
    return joining.concatenate([filled.ones((1,), bool), differs])


def _flattened(name: str, may_be_traced: bool, *arrays: Any) -> list[Array]:
    """The arrays, flat; unless they may be traced, their values are known."""
    check_arraylike(name, *arrays)
    result = [one_nan(shapes.ravel(as_array(x))) for x in arrays]
    for x in result:
        check_concrete(name, x, 0 if may_be_traced else None)
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
