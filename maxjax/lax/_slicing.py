"""Slices of arrays, and their updates, at computed and at static positions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import ShardingTypeError
from maxjax._ir.dimensions import size_index
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, invalid_shape
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.arithmetic import add
from maxjax._primitives.broadcasting import expand_axis
from maxjax._primitives.comparison import lt_p, select
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.dynamic_slice import dynamic_slice_p, dynamic_update_slice_p
from maxjax._primitives.layout import reshape, squeeze_p
from maxjax._primitives.rules import place_dtype, scalar_like
from maxjax._primitives.slicing import slice_p
from maxjax.lax._over_mesh import explicit_mesh, partitions

__all__ = [
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_slice_p",
    "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim",
    "dynamic_update_slice_p", "index_in_dim", "slice_in_dim",
]


def as_operand(x: Any) -> Array:
    return x if isinstance(x, Array) else installed.runtime.operand(x)


def _canonical_axis(axis: Any, rank: int) -> int:
    index = operator.index(axis)
    if not -rank <= index < rank:
        raise IndexError(f"axis {index} is out of bounds for array of dimension {rank}")
    return index + rank if index < 0 else index


# --- dynamic slices -------------------------------------------------------------------------------

def _starts(name: str, shape: tuple[int, ...], starts: Any,
            allow_negative: bool | Sequence[bool]) -> list[Any]:
    """Start indices as scalar operands of one integer dtype; negative ones count from the end."""
    if isinstance(starts, (Array, np.ndarray)):
        if not starts.shape:
            raise TypeError("len() of unsized object")
        if len(starts.shape) > 1:
            raise ValueError(f"Slice indices must be a 1D sequence, got {starts.shape}")
        array = as_operand(starts)
        starts = starts.tolist() if isinstance(starts, np.ndarray) else [
            reshape(slice_p.bind(array, start_indices=(i,), limit_indices=(i + 1,), strides=None),
                    ()) for i in range(array.shape[0])]
    starts = list(starts)
    if len(starts) != len(shape):
        raise ValueError("Length of slice indices must match number of operand dimensions "
                         f"({len(starts)} vs {shape})")
    allowed = [allow_negative] * len(shape) if isinstance(allow_negative, bool) else allow_negative
    default = dtypes.python_scalar(int)[0]
    result = []
    for start, size, negative in zip(starts, shape, allowed, strict=True):
        if start.__class__ is int:
            if start < 0:
                if not negative:
                    raise ValueError(f"Index {start} is out of bounds for dimension {size} if "
                                     "allow_negative_indices=False")
                start += size
            try:
                result.append(scalar_like(start, default))
            except OverflowError:
                raise OverflowError(
                    f"Python int {start} too large to convert to {default.name}") from None
            continue
        if negative and _is_long(start):
            # Negative ones count from the end before the low bits are kept, which say no more.
            start = start + np.int64(size) if start < 0 else start
            negative = False
        start = as_operand(start)
        if start.aval.weak_type:
            start = convert_element_type(start, default if dtypes.is_integer(start.dtype)
                                         else start.dtype)
        result.append(from_end(start, size) if negative else start)
    kinds = [start.dtype for start in result]
    if len(set(kinds)) > 1 or (kinds and not dtypes.is_integer(kinds[0])):
        colon = ":" if name == "dynamic_slice" else ""      # as in JAX
        raise TypeError(f"index arguments to {name} must be integers of the same type, got{colon} "
                        f"{', '.join(kind.name for kind in kinds)}")
    if any(start.shape for start in result):
        avals = tuple(as_operand(start).aval for start in result)
        gap = "  " if name == "dynamic_slice" else " "      # as in JAX
        raise TypeError(f"start_indices arguments to {name} must be scalars,{gap}got indices "
                        f"{avals}")
    return result


def _is_long(start: object) -> bool:
    """Whether it is one NumPy integer of 64 bits."""
    return (isinstance(start, (np.ndarray, np.generic)) and start.dtype == np.int64
            and not start.shape)


def from_end(index: Any, size: int) -> Any:
    """Negative indices count from the end."""
    dtype = index.dtype
    if not dtypes.is_signed(dtype):
        return index
    if size > int(dtypes.iinfo(dtype).max):       # the sum would not fit
        dtype = place_dtype(size)
        index = convert_element_type(index, dtype)
    if type(size) is int:      # without 64 bits a larger size wraps around, as in JAX
        size = np.int64(size).astype(dtype)
    return select(lt_p.bind(index, scalar_like(0, dtype)), index,
                  add(index, scalar_like(size, dtype)))


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[int], *,
                  allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """A slice of static size at a position that may be computed; it is moved into bounds.

    Args:
      operand: an array of shape ``(n, m, ...)``.
      start_indices: a scalar integer for each dimension; negative ones count from the end.
      slice_sizes: the shape of the result.
      allow_negative_indices: False: indices are known not to be negative; one for all or one each.

    Returns:
      An array of ``operand``'s dtype.

    Raises:
      TypeError: a size exceeds the operand's, or the indices are not integers of one dtype.
      ValueError: the number of indices is not the number of dimensions.

    See also: ``lax.dynamic_update_slice``, ``lax.dynamic_slice_in_dim``, ``lax.slice``,
    ``lax.dynamic_index_in_dim``, ``jnp.take``.

    >>> lax.dynamic_slice(jnp.arange(5), (3,), (3,))      # moved inside
    Array([2, 3, 4], dtype=int32)
    """
    operand = as_operand(operand)
    shape = operand.shape
    starts = _starts("dynamic_slice", shape, start_indices, allow_negative_indices)
    try:
        sizes = tuple([size_index(size) for size in slice_sizes])
    except TypeError:
        raise invalid_shape(tuple(slice_sizes)) from None
    if len(sizes) != len(shape):
        raise ValueError("slice_sizes must have one entry for each dimension of the operand, got "
                         f"{sizes} for operand shape {shape}")
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=sizes)


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any, *,
                         allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """``operand`` with ``update`` in place of the slice at ``start_indices``.

    As for ``dynamic_slice``, the slice is moved into bounds.

    Args:
      operand: an array; it is left as it is, though in ``jit`` its memory may be taken for the
        result.
      update: an array of the same dtype and rank.
      start_indices: a scalar integer for each dimension; negative ones count from the end.
      allow_negative_indices: False: indices are known not to be negative; one for all or one each.

    Returns:
      An array of ``operand``'s shape and dtype.

    Raises:
      TypeError: dtypes or ranks differ, or the update is larger than the operand.

    See also: ``lax.dynamic_slice``, ``lax.dynamic_update_slice_in_dim``, ``lax.scatter``.

    >>> lax.dynamic_update_slice(jnp.zeros(4, int), jnp.array([7, 8]), (1,))
    Array([0, 7, 8, 0], dtype=int32)
    """
    operand = as_operand(operand)
    starts = _starts("dynamic_update_slice", operand.shape, start_indices, allow_negative_indices)
    update = same_dtype("dynamic_update_slice", operand, update)
    fits = operand.ndim == update.ndim and all(
        size <= whole for size, whole in zip(update.shape, operand.shape, strict=True))
    if fits and explicit_mesh(operand, update) is not None and (
            partitions(operand) != partitions(update)):
        raise ShardingTypeError(
            "dynamic_update_slice operand sharding must be equal to update sharding, got operand "
            f"sharding {operand.aval} and update sharding {update.aval}.")
    return dynamic_update_slice_p.bind(operand, update, *starts)


def same_dtype(name: str, operand: Array, update: Any) -> Array:
    """``update`` as an operand; a Python scalar takes the operand's dtype."""
    if update.__class__ in dtypes.PYTHON_SCALARS and dtypes.python_scalar(
            update.__class__)[0] == operand.dtype:
        return as_operand(scalar_like(update, operand.dtype))
    update = as_operand(update)
    if update.dtype != operand.dtype:
        raise TypeError(f"lax.{name} requires arguments to have the same dtypes, got "
                        f"{operand.dtype}, {update.dtype}.")
    return update


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0, *,
                         allow_negative_indices: bool = True) -> Array:
    """``dynamic_slice`` along one axis.

    Args:
      operand: an array.
      start_index: an integer, which may be traced; negative ones count from the end.
      slice_size: the size, a Python int.
      axis: along which.
      allow_negative_indices: False: the index is known not to be negative.

    Returns:
      An array of size ``slice_size`` along the axis; moved into bounds.

    Raises:
      TypeError: the size exceeds the operand's, or the index is no integer.

    See also: ``lax.dynamic_slice``, ``lax.slice_in_dim``, ``lax.dynamic_index_in_dim``.

    >>> lax.dynamic_slice_in_dim(jnp.arange(5), 1, 2)
    Array([1, 2], dtype=int32)
    """
    operand = as_operand(operand)
    axis = _canonical_axis(axis, operand.ndim)
    starts, sizes = _along(operand, axis, start_index, size_index(slice_size))
    return dynamic_slice(operand, starts, sizes, allow_negative_indices=allow_negative_indices)


def _along(operand: Array, axis: int, start: Any, size: int) -> tuple[list[Any], list[int]]:
    start = _scalar_index(start)
    starts = [np.zeros((), start.dtype) if hasattr(start, "dtype") else 0] * operand.ndim
    sizes = list(operand.shape)
    starts[axis], sizes[axis] = start, size
    return starts, sizes


def _scalar_index(start: Any) -> Any:
    """One index; a weak one is of the default integer type."""
    if start.__class__ is int:
        return start
    start = as_operand(start)
    if start.aval.weak_type and dtypes.is_integer(start.dtype):
        start = convert_element_type(start, dtypes.python_scalar(int)[0])
    return start


def dynamic_index_in_dim(operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True,
                         *, allow_negative_indices: bool = True) -> Array:
    """The element at ``index`` along one axis, whose dimension remains with ``keepdims``.

    Args:
      operand: an array.
      index: an integer, which may be traced; moved into bounds.
      axis: along which.
      keepdims: whether the axis stays, with size 1.
      allow_negative_indices: False: the index is known not to be negative.

    Returns:
      An array of ``operand``'s dtype.

    Raises:
      TypeError: the index is no integer.

    See also: ``lax.dynamic_slice_in_dim``, ``lax.index_in_dim``,
    ``lax.dynamic_update_index_in_dim``, ``jnp.take``.

    >>> lax.dynamic_index_in_dim(jnp.arange(6).reshape(3, 2), 1, keepdims=False)
    Array([2, 3], dtype=int32)
    """
    result = dynamic_slice_in_dim(operand, index, 1, axis,
                                  allow_negative_indices=allow_negative_indices)
    if keepdims:
        return result
    return squeeze_p.bind(result, dimensions=(_canonical_axis(axis, result.ndim),))


def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int, *,
                                allow_negative_indices: bool = True) -> Array:
    """``dynamic_update_slice`` along one axis.

    Args:
      operand: an array; it is left as it is.
      update: an array of the same dtype and rank.
      start_index: an integer, which may be traced; negative ones count from the end.
      axis: along which.
      allow_negative_indices: False: the index is known not to be negative.

    Returns:
      An array of ``operand``'s shape and dtype; the slice is moved into bounds.

    Raises:
      TypeError: dtypes or ranks differ, or the update is larger than the operand.

    See also: ``lax.dynamic_update_slice``, ``lax.dynamic_update_index_in_dim``,
    ``lax.dynamic_slice_in_dim``.

    >>> lax.dynamic_update_slice_in_dim(jnp.zeros(4, int), jnp.array([7]), 2, axis=0)
    Array([0, 0, 7, 0], dtype=int32)
    """
    operand = as_operand(operand)
    axis = _canonical_axis(axis, operand.ndim)
    starts, _ = _along(operand, axis, start_index, 0)
    return dynamic_update_slice(operand, update, starts,
                                allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int,
                                *, allow_negative_indices: bool = True) -> Array:
    """``operand`` with ``update`` (with or without the axis) at ``index`` along one axis.

    Args:
      operand: an array; it is left as it is.
      update: an array of the same dtype.
      index: an integer, which may be traced; moved into bounds.
      axis: along which.
      allow_negative_indices: False: the index is known not to be negative.

    Returns:
      An array of ``operand``'s shape and dtype.

    Raises:
      TypeError: dtypes differ, or the update does not fit.

    See also: ``lax.dynamic_update_slice_in_dim``, ``lax.dynamic_index_in_dim``.

    >>> lax.dynamic_update_index_in_dim(jnp.zeros(3, int), 7, 1, axis=0)
    Array([0, 7, 0], dtype=int32)
    """
    operand = as_operand(operand)
    update = as_operand(update)
    axis = _canonical_axis(axis, operand.ndim)
    if update.ndim != operand.ndim:
        if update.ndim + 1 != operand.ndim:
            raise TypeError(
                "dynamic_update_index_in_dim update must have the rank of the operand or one "
                f"less, got update shape {update.shape} for operand shape {operand.shape}.")
        update = expand_axis(update, axis)
    return dynamic_update_slice_in_dim(operand, update, index, axis,
                                       allow_negative_indices=allow_negative_indices)


# --- static slices along one axis -----------------------------------------------------------------

def slice_in_dim(operand: ArrayLike, start_index: int | None, limit_index: int | None,
                 stride: int = 1, axis: int = 0) -> Array:
    """``operand[start_index:limit_index:stride]`` along one axis; indices must be in bounds.

    Args:
      operand: an array.
      start_index, limit_index: known indices, negative ones from the end; None: the ends.
      stride: the distance.
      axis: along which.

    Returns:
      An array of ``operand``'s dtype.

    See also: ``lax.slice``, ``lax.dynamic_slice_in_dim``, ``lax.index_in_dim``.

    >>> lax.slice_in_dim(jnp.arange(6), 1, None, 2)
    Array([1, 3, 5], dtype=int32)
    """
    operand = as_operand(operand)
    axis = _canonical_axis(axis, operand.ndim)
    size = operand.shape[axis]
    start = 0 if start_index is None else size_index(start_index)
    stop = size if limit_index is None else size_index(limit_index)
    start += size if start < 0 else 0
    stop += size if stop < 0 else 0
    stride = operator.index(stride)
    shape = operand.shape
    starts = tuple(start if dim == axis else 0 for dim in range(len(shape)))
    limits = tuple(stop if dim == axis else shape[dim] for dim in range(len(shape)))
    strides = tuple(stride if dim == axis else 1 for dim in range(len(shape)))
    if stop > size:
        raise TypeError("slice limit_indices must be less than or equal to operand shape, got "
                        f"limit_indices {limits} for operand shape {shape}.")
    if start < 0:
        raise TypeError("slice start_indices must be greater than or equal to zero, got "
                        f"start_indices of {starts}.")
    if start > stop:
        raise TypeError("slice limit_indices must be greater than or equal to start_indices, got "
                        f"start_indices {starts} and limit_indices {limits}.")
    if stride <= 0:
        raise TypeError(f"slice strides must be positive, got {strides}")
    return slice_p.bind(operand, start_indices=starts, limit_indices=limits,
                        strides=None if stride == 1 else strides)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """``operand[index]`` along one axis, whose dimension remains with ``keepdims``.

    Args:
      operand: an array.
      index: a known index; negative ones from the end.
      axis: along which.
      keepdims: whether the axis stays, with size 1.

    Returns:
      An array of ``operand``'s dtype.

    Raises:
      IndexError: the index is out of bounds.

    See also: ``lax.slice_in_dim``, ``lax.dynamic_index_in_dim``.

    >>> lax.index_in_dim(jnp.arange(6).reshape(2, 3), -1, axis=1, keepdims=False)
    Array([2, 5], dtype=int32)
    """
    operand = as_operand(operand)
    index, axis = operator.index(index), _canonical_axis(axis, operand.ndim)
    size = operand.shape[axis]
    wrapped = index + size if index < 0 else index
    if not 0 <= wrapped < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    result = slice_in_dim(operand, wrapped, wrapped + 1, 1, axis)
    return result if keepdims else squeeze_p.bind(result, dimensions=(axis,))
