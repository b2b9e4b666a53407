"""Sorting and searching."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import lax
from maxjax._base import dtypes
from maxjax._base.errors import ShardingTypeError
from maxjax._higher_order.named_calls import named
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives import creation, layout, slicing
from maxjax._primitives.convert import bitcast_convert_type_p, convert_element_type
from maxjax._primitives.layout import rev_p
from maxjax._primitives.sorting import sort_p
from maxjax._primitives.varying import vary, vma_of
from maxjax.lax._operands import canonical_axis
from maxjax.lax._over_mesh import explicit_mesh, partitions
from maxjax.numpy import _joining as joining
from maxjax.numpy import _repeating as repeating
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy import _whole_rules as rules
from maxjax.numpy._at_once import at_once
from maxjax.numpy._complex import imag, real
from maxjax.numpy._promotion import (
    as_array,
    broadcast_to,
    check_arraylike,
    constant,
    promote_dtypes,
    resolve,
)
from maxjax.numpy._special_values import isnan
from maxjax.numpy._where import where
from maxjax.numpy._whole import FLOATS, whole

__all__ = [
    "argpartition", "argsort", "digitize", "lexsort", "partition", "searchsorted", "sort",
    "sort_complex", "top_k",
]


def _check_kind(kind: Any, order: Any, name: str) -> None:
    if kind is not None:
        raise TypeError(f"'kind' argument to {name} is not supported. Use stable=True or "
                        "stable=False to specify sort stability.")
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")


def sort(a: Any, axis: int | None = -1, *, kind: Any = None, order: Any = None,
         stable: bool = True, descending: bool = False) -> Array:
    """The elements in ascending order along an axis, with NaN last.

    Args:
      a: an array; complex numbers are ordered by their real, then their imaginary parts.
      axis: along which; None: of the flattened array.
      kind, order: must be None.
      stable: accepted: every sort here keeps the order of equal elements.
      descending: the greatest first; then NaN comes first.

    Returns:
      An array of ``a``'s shape and dtype, or ``(a.size,)`` without an axis; a new one, as arrays
      have no sorting in place.

    Raises:
      TypeError: ``kind`` or ``order`` is given, or ``a`` is a list.
      ValueError: there is no such axis.

    See also: ``argsort``, ``lexsort``, ``partition``, ``lax.sort``, ``lax.top_k``.

    >>> jnp.sort(jnp.array([[3.0, jnp.nan, 1.0]]))
    Array([[ 1.,  3., nan]], dtype=float32)
    >>> jnp.sort(jnp.array([3, 1, 2]), descending=True)
    Array([3, 2, 1], dtype=int32)
    """
    _check_kind(kind, order, "sort")
    return _sort(as_array(a, "sort"), axis=axis, stable=bool(stable), descending=bool(descending))


@named("sort", "axis", "stable", "descending")
def _sort(x: Array, *, axis: int | None, stable: bool, descending: bool) -> Array:
    if axis is None:
        x, axis = layout.reshape(x, (x.size,)), 0
    dimension = canonical_axis(axis, x.ndim)
    (result,) = sort_p.bind(x, dimension=dimension, is_stable=stable, num_keys=1)
    return rev_p.bind(result, dimensions=(dimension,)) if descending else result


@at_once
def argsort(a: ArrayLike, axis: int | None = -1, *, kind: Any = None, order: Any = None,
            stable: bool = True, descending: bool = False, dtype: DTypeLike | None = None) -> Array:
    """The indices that sort the elements in ascending order along an axis.

    Args:
      a: an array.
      axis: along which; None: of the flattened array.
      kind, order: must be None.
      stable: whether equal elements keep their order.
      descending: the greatest first; then NaN comes first, otherwise last.
      dtype: of the indices; None: the default integer type.

    Returns:
      An array of integers of ``a``'s shape, or ``(a.size,)`` without an axis.

    Raises:
      TypeError: ``kind`` or ``order`` is given, or ``a`` is a list.
      ValueError: there is no such axis.

    See also: ``sort``, ``lexsort``, ``argpartition``, ``take_along_axis``, ``lax.top_k``.

    >>> jnp.argsort(jnp.array([30, 10, 20]))
    Array([1, 2, 0], dtype=int32)
    >>> jnp.argsort(jnp.array([1, 2, 1]), descending=True)
    Array([1, 0, 2], dtype=int32)
    """
    _check_kind(kind, order, "argsort")
    index_dtype = dtypes.canonical(dtypes.int64) if dtype is None \
        else dtypes.argument(dtype, "argsort")
    return _argsort(as_array(a, "argsort"), axis=axis, stable=bool(stable),
                    descending=bool(descending), dtype=index_dtype)


@named("argsort", "axis", "stable", "descending", "dtype")
def _argsort(x: Array, *, axis: int | None, stable: bool, descending: bool, dtype: Any) -> Array:
    if axis is None:
        x, axis = layout.reshape(x, (x.size,)), 0
    dimension = canonical_axis(axis, x.ndim)
    places = lax.broadcasted_iota(dtype, x.shape, dimension)
    if descending and stable:   # reversing a sort of the reversed array keeps ties in order
        x = rev_p.bind(x, dimensions=(dimension,))
        places = rev_p.bind(places, dimensions=(dimension,))
    _, result = sort_p.bind(x, places, dimension=dimension, is_stable=stable, num_keys=1)
    return rev_p.bind(result, dimensions=(dimension,)) if descending else result


@at_once
def top_k(a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest", sorted: bool = True
          ) -> tuple[Array, Array]:
    """The ``k`` largest or smallest elements along an axis, and their indices.

    Equal elements keep their order; NaN is larger than all numbers.

    Args:
      a: an array of real numbers.
      k: at most the size of the axis.
      mode: ``"largest"``, in descending order, or ``"smallest"``, in ascending order.
      sorted: whether they have to be in order; here they always are.

    Raises:
      ValueError: ``mode`` is another word, ``k`` or the axis is out of range, or ``a`` is complex.

    >>> jnp.top_k(jnp.array([1, 3, 2]), 2, mode="smallest")
    (Array([1, 2], dtype=int32), Array([0, 2], dtype=int32))
    """
    check_arraylike("top_k", a)
    if mode not in ("largest", "smallest"):
        raise ValueError(f"mode must be 'largest' or 'smallest', got {mode!r}")
    x = as_array(a)
    axis = canonical_axis(axis, x.ndim)
    if mode == "largest":
        return lax.top_k(x, k, axis=axis)       # type: ignore[return-value]
    # What reverses the order: of integers the complement, which cannot overflow.
    reverse = lax.neg if dtypes.is_floating(x.dtype) else lax.bitwise_not
    values, indices = lax.top_k(x if dtypes.is_complex(x.dtype) else reverse(x), k, axis=axis)
    return reverse(values), indices


@at_once
def sort_complex(a: ArrayLike) -> Array:
    """The elements in ascending order, as complex numbers.

    >>> jnp.sort_complex(jnp.array([2 + 1j, 1 + 5j, 2 - 1j]))
    Array([1.+5.j, 2.-1.j, 2.+1.j], dtype=complex64)
    """
    x = sort(a)
    return convert_element_type(x, dtypes.complex_dtype(x.dtype))


@at_once
def lexsort(keys: Any, axis: int = -1, *, batch_size: int | None = 16) -> Array:
    """The order that sorts by the last key, with ties broken by the one before it, and so on.

    Args:
      keys: a sequence of arrays of one shape, or one array, whose leading dimension is the
        sequence.
      axis: along which.
      batch_size: how many keys JAX sorts by at once; here it changes nothing.

    Returns:
      An integer array of the shape of a key.

    See also: ``argsort``, ``sort``, ``lax.sort``.

    >>> jnp.lexsort((jnp.array([1, 0, 2]), jnp.array([7, 7, 3])))
    Array([2, 1, 0], dtype=int32)
    """
    arrays = [as_array(key, "lexsort") for key in keys]
    if not arrays:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({x.shape for x in arrays}) > 1:
        raise ValueError("all keys need to be the same shape")
    if arrays[0].ndim == 0:
        return as_array(constant(0, dtypes.canonical(dtypes.int64)))
    dimension = canonical_axis(axis, arrays[0].ndim)
    places = creation.iota(dtypes.canonical(dtypes.int64), arrays[0].shape, dimension)
    return sort_p.bind(*reversed(arrays), places, dimension=dimension, is_stable=True,
                       num_keys=len(arrays))[-1]


@at_once
def partition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The array with the ``kth`` element in its sorted position, smaller ones before it.

    >>> jnp.partition(jnp.array([5, 1, 4, 2]), 1)[:2]
    Array([1, 2], dtype=int32)
    """
    x, dimension, count = _partitioned("partition", a, kth, axis)
    size = x.shape[dimension]
    # The greater ones come in descending order, equal ones in their original order.
    falling = repeating.flip(sort(repeating.flip(x, dimension), dimension), dimension)
    return joining.joined([
        slicing.slice_in_dim(sort(x, dimension), 0, count, dimension),
        slicing.slice_in_dim(falling, 0, size - count, dimension)], dimension)


def _partitioned(name: str, a: Any, kth: Any, axis: int) -> tuple[Array, int, int]:
    """(the array, the axis, the number of elements up to the kth)"""
    x = as_array(a, name)
    if dtypes.is_complex(x.dtype):
        raise NotImplementedError(f"jnp.{name} for complex dtype is not implemented.")
    dimension = canonical_axis(axis, x.ndim)
    count = canonical_axis(kth, x.shape[dimension]) + 1
    return x, dimension, count


@at_once
def argpartition(a: ArrayLike, kth: int, axis: int = -1) -> Array:
    """The indices from which ``partition`` takes the elements.

    >>> x = jnp.array([5, 1, 4, 2])
    >>> x[jnp.argpartition(x, 1)[:2]]
    Array([1, 2], dtype=int32)
    """
    x, dimension, count = _partitioned("argpartition", a, kth, axis)
    order = argsort(x, dimension, dtype=dtypes.int32)
    if explicit_mesh(x) is not None and any(partitions(x)):
        raise ValueError(f"argpartition: the operand is split over a mesh, {x.aval}: use `reshard` "
                         "on it.")
    size = x.shape[dimension]
    result = joining.joined([
        slicing.slice_in_dim(order, 0, count, dimension),
        sort(slicing.slice_in_dim(order, count, size, dimension), dimension)], dimension)
    # JAX takes the positions from lax.top_k, whose types are as weak as the operand's.
    return convert_element_type(result, dtypes.int32, x.weak_type)


_METHODS = ("scan", "scan_unrolled", "sort", "compare_all")


@at_once
def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: Any = None, *,
                 method: str = "scan") -> Array:
    """Where to insert ``v`` in the sorted ``a`` to keep it sorted.

    Args:
      a: ascending elements ``(n,)``, NaN last.
      v: an array or scalar.
      side: "left": before equal elements; "right": after them.
      sorter: the indices that sort ``a``, as from ``argsort``; None: it is sorted.
      method: accepted; every method gives the same result.

    Returns:
      An array of the default integer type of the shape of ``v``, from 0 to n.

    Raises:
      ValueError: ``a`` is not of one dimension, or there is no such ``side`` or ``method``.

    See also: ``sort``, ``digitize``, ``bincount``, ``histogram``.

    >>> jnp.searchsorted(jnp.array([1, 2, 2, 3]), jnp.array([2, 9]))
    Array([1, 4], dtype=int32)
    >>> jnp.searchsorted(jnp.array([1, 2, 2, 3]), 2, side="right")
    Array(3, dtype=int32)
    """
    a, v = resolve("searchsorted", (a, v))
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
        order = as_array(sorter, "searchsorted")
        if not dtypes.is_integer(order.dtype):
            raise TypeError(f"searchsorted: sorter must be integers, got {order.dtype}")
        x = shapes.take_in_bounds(x, order, 0)
    size = x.shape[0]
    dtype = dtypes.int32 if size < 2**31 else dtypes.argument(dtypes.int64, "searchsorted")
    if size > dtypes.iinfo(dtype).max:
        raise OverflowError(f"Python integer {size} out of bounds for {dtype}")
    if size == 0:
        return creation.full(y.shape, 0, dtype) if y.shape else as_array(constant(0, dtype))
    if explicit_mesh(y) is not None and any(partitions(y)):
        raise ShardingTypeError(f"searchsorted: the values sought are split over a mesh, {y.aval}: "
                                "use `reshard` on them.")
    return _search(x, y, side=side, dtype=dtype)


def _keys(x: Array) -> list[Array]:
    """Integers in sorting order: zeros of either sign are equal, NaN comes last.

    Complex numbers have two, of which the first is more significant.
    """
    if dtypes.is_complex(x.dtype):
        return [key for part in (real(x), imag(x)) for key in _keys(part)]
    if x.dtype == dtypes.bool_:
        return [convert_element_type(x, dtypes.uint8)]
    if not dtypes.is_floating(x.dtype):
        return [x]
    if x.dtype.itemsize == 1:
        x = convert_element_type(x, dtypes.float32)
    integer = _INTEGERS[x.dtype.itemsize]
    bits = bitcast_convert_type_p.bind(x, new_dtype=integer)
    most = int(dtypes.iinfo(integer).max)
    keys = where(bits < 0, -1 - (bits & constant(most, integer)), bits)
    # -0.0 has become -1, the key below that of 0.0
    return [where(isnan(x), constant(most, integer),
                  where(x == 0, constant(0, integer), keys))]


_INTEGERS = {2: dtypes.int16, 4: dtypes.int32, 8: dtypes.int64}


@whole("searchsorted", rules.searchsorted, accepts=(*FLOATS, *dtypes.INTS), moves=True)
def _search(x: Array, y: Array, *, side: str, dtype: Any) -> Array:
    return _bisect(x, y, side, dtype)


def _bisect(x: Array, y: Array, side: str, dtype: Any) -> Array:
    """The number of elements of ``x`` before each of ``y``, from the highest bit down."""
    size = x.shape[0]
    bits = size.bit_length()
    compare = ufuncs.less if side == "left" else ufuncs.less_equal
    # The line is extended by the greatest key, so that no index is out of bounds.
    lines = [slicing.pad(key, dtypes.iinfo(key.dtype).max, ((0, 2**bits - 1 - size, 0),))
             for key in _keys(x)]
    wanted = _keys(y)

    def next_bit(number: Any, count: Array) -> Array:
        step = constant(1, dtypes.int32) << (bits - 1 - number)
        *equal, last = [shapes.take_in_bounds(line, count + (step - 1), 0) for line in lines]
        before = compare(last, wanted[-1])
        for key, mine in zip(equal, wanted, strict=False):      # the real parts
            before = (key < mine) | ((key == mine) & before)
        return where(before, count + step, count)

    count = as_array(broadcast_to(as_array(np.int32(0)), y.shape))
    for operand in (x, y):      # a carry keeps its type
        count = vary(count, vma_of(operand))
    count = lax.fori_loop(0, bits, next_bit, count)
    return convert_element_type(ufuncs._minimum(count, size), dtype)


@at_once
def digitize(x: ArrayLike, bins: Any, right: bool = False, *, method: str | None = None) -> Array:
    """The bin index of each element, between increasing or decreasing edges.

    Args:
      x: an array.
      bins: the edges ``(n,)``, monotonic.
      right: whether an edge belongs to the bin below it.
      method: accepted; every method gives the same result.

    Returns:
      An integer array of the shape of ``x``, from 0 to n.

    See also: ``searchsorted``, ``histogram``, ``bincount``.

    >>> jnp.digitize(jnp.array([0.5, 1.0, 9.0]), jnp.array([0.0, 1.0, 2.0]))
    Array([1, 2, 3], dtype=int32)
    """
    check_arraylike("digitize", x, bins)
    if method is not None and method not in _METHODS:
        raise ValueError(f"digitize: invalid {method=}, expected one of {_METHODS}.")
    edges = as_array(bins)
    if edges.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got bins={bins}")
    x = as_array(x)
    count = edges.shape[0]
    if count == 0:
        return creation.full(x.shape, 0, dtypes.int32)
    return _digitize(edges, x, side="right" if not right else "left")


@whole("digitize", rules.digitize, moves=True)
def _digitize(edges: Array, x: Array, *, side: str) -> Array:
    rising = searchsorted(edges, x, side)
    falling = edges.shape[0] - searchsorted(repeating.flip(edges), x, side)
    return where(edges[-1] >= edges[0], rising, falling)


