"""Elements inserted into an array, and deleted from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.dimensions import broadcast_shapes, is_dimension
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import creation as primitives
from maxjax._primitives.convert import convert_element_type
from maxjax.lax._operands import canonical_axis
from maxjax.lax._over_mesh import refuse_placing
from maxjax.numpy import _creation as creation
from maxjax.numpy import _cumulative as cumulative
from maxjax.numpy import _joining as joining
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _rounding as rounding
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _sorting as sorting
from maxjax.numpy._at_once import at_once
from maxjax.numpy._promotion import as_array, check_arraylike, concrete, is_concrete
from maxjax.numpy._where import where

__all__ = ["delete", "insert"]


@at_once
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
        places = primitives.iota(dtypes.int32, (max(size - wanted.size, 0),), 0)
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


@at_once
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
