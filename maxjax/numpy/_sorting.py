"""Sorting and searching."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.trace import Array
from maxjax._primitives import shape as primitives
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.shape import rev_p
from maxjax._primitives.sorting import sort_p
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._promotion import (
    as_array,
    canonical_axis,
    check_arraylike,
    constant,
    promote_dtypes,
)
from maxjax.numpy._where import where

__all__ = [
    "argpartition", "argsort", "digitize", "lexsort", "partition", "searchsorted", "sort",
    "sort_complex",
]


def _check_kind(kind: Any, order: Any, name: str) -> None:
    if kind is not None:
        raise ValueError(f"'kind' argument to {name} is not supported. Use stable=True or "
                         "stable=False to specify sort stability.")
    if order is not None:
        raise ValueError(f"'order' argument to {name} is not supported.")


def sort(a: Any, axis: int | None = -1, *, kind: Any = None, order: Any = None,
         stable: bool = True, descending: bool = False) -> Array:
    """The elements in ascending order along an axis; NaN goes last."""
    _check_kind(kind, order, "sort")
    x = as_array(a, "sort")
    if axis is None:
        x, axis = primitives.reshape(x, (x.size,)), 0
    dimension = canonical_axis(axis, x.ndim)
    (result,) = sort_p.bind(x, dimension=dimension, is_stable=bool(stable), num_keys=1)
    return rev_p.bind(result, dimensions=(dimension,)) if descending else result


def argsort(a: Any, axis: int | None = -1, *, kind: Any = None, order: Any = None,
            stable: bool = True, descending: bool = False, dtype: Any = None) -> Array:
    """The positions of the elements in ascending order along an axis."""
    _check_kind(kind, order, "argsort")
    x = as_array(a, "argsort")
    if axis is None:
        x, axis = primitives.reshape(x, (x.size,)), 0
    dimension = canonical_axis(axis, x.ndim)
    index_dtype = dtypes.canonical(dtypes.int64 if dtype is None else dtype)
    places = primitives.iota(index_dtype, x.shape, dimension)
    if descending:      # the reverse of a stable sort of the reversed array keeps ties in order
        x = rev_p.bind(x, dimensions=(dimension,))
        places = rev_p.bind(places, dimensions=(dimension,))
    _, result = sort_p.bind(x, places, dimension=dimension, is_stable=bool(stable), num_keys=1)
    return rev_p.bind(result, dimensions=(dimension,)) if descending else result


def sort_complex(a: Any) -> Array:
    """The elements in ascending order, as complex numbers."""
    x = sort(a)
    return convert_element_type(x, dtypes.complex_dtype(x.dtype)) if not dtypes.is_complex(
        x.dtype) else x


def lexsort(keys: Any, axis: int = -1) -> Array:
    """The order that sorts by the last key, ties by the one before it, and so on."""
    arrays = [as_array(key, "lexsort") for key in keys]
    if not arrays:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({x.shape for x in arrays}) > 1:
        raise ValueError("all keys need to be the same shape")
    if arrays[0].ndim == 0:
        return as_array(constant(0, dtypes.canonical(dtypes.int64)))
    dimension = canonical_axis(axis, arrays[0].ndim)
    places = primitives.iota(dtypes.canonical(dtypes.int64), arrays[0].shape, dimension)
    return sort_p.bind(*reversed(arrays), places, dimension=dimension, is_stable=True,
                       num_keys=len(arrays))[-1]


def partition(a: Any, kth: int, axis: int = -1) -> Array:
    """The array with the ``kth`` element in its place, smaller ones before and others after."""
    x = as_array(a, "partition")
    if dtypes.is_complex(x.dtype):
        raise NotImplementedError("jnp.partition for complex dtype is not implemented.")
    dimension = canonical_axis(axis, x.ndim)
    canonical_axis(kth, x.shape[dimension])
    return sort(x, dimension)


def argpartition(a: Any, kth: int, axis: int = -1) -> Array:
    """The positions that ``partition`` takes the elements from."""
    x = as_array(a, "argpartition")
    if dtypes.is_complex(x.dtype):
        raise NotImplementedError("jnp.argpartition for complex dtype is not implemented.")
    dimension = canonical_axis(axis, x.ndim)
    canonical_axis(kth, x.shape[dimension])
    return convert_element_type(argsort(x, dimension), dtypes.int32)


_METHODS = ("scan", "scan_unrolled", "sort", "compare_all")


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None, *,
                 method: str = "scan") -> Array:
    """Where to insert ``v`` in the sorted ``a`` to keep it sorted.

    Args:
      side: "left": before equal elements; "right": after them.
      method: accepted; every method gives the same result.
    """
    check_arraylike("searchsorted", a, v)
    if side not in ("left", "right"):
        raise ValueError(f"{side!r} is an invalid value for keyword 'side'. Expected one of "
                         "['left', 'right'].")
    if method not in _METHODS:
        raise ValueError(f"{method!r} is an invalid value for keyword 'method'. Expected one of "
                         f"{_METHODS}.")
    if len(np.shape(a) if not isinstance(a, Array) else a.shape) != 1:
        raise ValueError("a should be 1-dimensional")
    x, y = (as_array(value) for value in promote_dtypes("searchsorted", a, v))
    if sorter is not None:
        x = shapes.take_in_bounds(x, as_array(sorter), 0)
    size = x.shape[0]
    dtype = dtypes.int32 if size < 2**31 else dtypes.canonical(dtypes.int64)
    if size == 0:
        return primitives.full(y.shape, 0, dtype) if y.shape else as_array(constant(0, dtype))
    return _bisect(x, y, side, dtype)


def _before(x: Array, y: Array, strictly: bool) -> Array:
    """Whether x stands before y in the order of sort, where NaN comes last."""
    if dtypes.is_complex(x.dtype):
        return ufuncs.less(x, y) if strictly else ufuncs.less_equal(x, y)
    order = (x < y) if strictly else (x <= y)
    if dtypes.is_floating(x.dtype):
        x_nan, y_nan = ufuncs.isnan(x), ufuncs.isnan(y)
        nans = (y_nan & ~x_nan) if strictly else y_nan
        order = order | nans
    return order


def _bisect(x: Array, y: Array, side: str, dtype: Any) -> Array:
    size = x.shape[0]
    low = primitives.full(y.shape, 0, dtypes.int32) if y.shape else as_array(np.int32(0))
    high = primitives.full(y.shape, size, dtypes.int32) if y.shape else as_array(np.int32(size))
    for _ in range(operator.index(size).bit_length()):
        middle = (low + high) >> 1
        active = low < high
        value = shapes.take_in_bounds(x, ufuncs._minimum(middle, size - 1), 0)
        right = _before(value, y, strictly=side == "left") & active
        low = where(right, middle + 1, low)
        high = where(active & ~right, middle, high)
    return convert_element_type(low, dtype)


def digitize(x: Any, bins: Any, right: bool = False, *, method: str | None = None) -> Array:
    """The number of the bin of each element, between edges that rise or fall."""
    check_arraylike("digitize", x, bins)
    edges = as_array(bins)
    if edges.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got bins={bins}")
    x = as_array(x)
    count = edges.shape[0]
    if count == 0:
        return primitives.full(x.shape, 0, dtypes.int32)
    side = "right" if not right else "left"
    rising = searchsorted(edges, x, side)
    falling = count - searchsorted(shapes.flip(edges), x, "left" if side == "right" else "right")
    return where(edges[-1] >= edges[0], rising, falling)


