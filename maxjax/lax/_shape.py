"""Operations of jax.lax that reshape, move, pad and slice."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from maxjax._higher_order.constraints import reshape_with_out_sharding
from maxjax._ir.dimensions import larger, size_index
from maxjax._ir.trace import Array, invalid_shape
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import broadcasting, layout
from maxjax._primitives.identities import stage_p
from maxjax._primitives.layout import copy_p, reshape_p, rev_p, squeeze_p, transpose_p
from maxjax._primitives.slicing import pad_p, slice_p
from maxjax.lax._operands import canonical_axis, check_nonnegative, integers
from maxjax.lax._operands import operand as as_operand
from maxjax.lax._over_mesh import check_reshape

__all__ = [
    "collapse", "copy_p", "expand_dims", "pad", "pad_p", "reshape", "reshape_p", "rev", "rev_p",
    "slice", "slice_p", "squeeze", "squeeze_p", "stage", "stage_p", "transpose", "transpose_p",
]

_slice = slice      # the builtin, shadowed by the operation below


def stage(x: ArrayLike, /) -> Array:
    """A scalar or array as an array, or as a value of the function that is being traced.

    Raises:
      TypeError: ``x`` is not a number or array.

    >>> lax.stage(3)
    Array(3, dtype=int32, weak_type=True)
    """
    return as_operand(x, "stage")


def reshape(operand: Any, new_sizes: Any, dimensions: Sequence[int] | None = None, *,
            out_sharding: Any = None) -> Array:
    """An array with the elements of ``operand``, in another shape.

    Args:
      operand: an array.
      new_sizes: the shape, with the same number of elements.
      dimensions: the order in which the operand's dimensions are read; by default their own.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape, of ``operand``'s dtype. No size may be -1, unlike that of
      ``jnp.reshape``.

    Raises:
      ValueError: the number of elements would change.
      TypeError: a size is negative, or ``dimensions`` is not a permutation.

    See also: ``jnp.reshape``, ``lax.collapse``, ``lax.squeeze``, ``lax.expand_dims``,
    ``lax.transpose``.

    >>> lax.reshape(jnp.arange(4), (2, 2))
    Array([[0, 1],
           [2, 3]], dtype=int32)
    """
    if out_sharding is not None:
        return reshape_with_out_sharding(
            functools.partial(reshape, new_sizes=new_sizes, dimensions=dimensions), operand,
            out_sharding)
    x = as_operand(operand, "reshape")
    try:
        sizes = (integers(new_sizes) if hasattr(new_sizes, "__iter__")
                 else (size_index(new_sizes),))
    except TypeError:
        raise invalid_shape(
            new_sizes if isinstance(new_sizes, Sequence) else [new_sizes]) from None
    if dimensions is not None:
        order = integers(dimensions)
        if sorted(order) != list(range(x.ndim)):
            raise TypeError("reshape dimensions must be a permutation of operand dimensions, got "
                            f"dimensions {order} for shape {x.shape}.")
        x = layout.transpose(x, order)
    if any(size < 0 for size in sizes):
        raise TypeError(f"reshape new_sizes must all be positive, got {sizes}.")
    if math.prod(sizes) != x.size:
        raise ValueError(f"reshape total size must be unchanged, got new_sizes {sizes} for shape "
                        f"{x.shape}.")
    check_reshape(x, sizes)
    if not x.shape and not sizes:      # an equation also in JAX
        return reshape_p.bind(x, new_sizes=(), dimensions=None)
    return layout.reshape(x, sizes)


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merges the dimensions from ``start_dimension`` to before ``stop_dimension`` into one.

    >>> lax.collapse(jnp.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    x = as_operand(operand, "collapse")
    start, stop, _ = _slice(start_dimension, stop_dimension).indices(x.ndim)
    if stop < start:
        raise ValueError(f"Invalid dimension range passed to collapse: {x.shape}"
                         f"[{start_dimension}:{stop_dimension}]")
    return layout.reshape(x, (*x.shape[:start], math.prod(x.shape[start:stop]), *x.shape[stop:]))


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Drops dimensions of size 1.

    Args:
      array: an array.
      dimensions: which; negative ones from the end.

    Returns:
      An array without them.

    Raises:
      ValueError: one of them has another size, or does not exist.

    See also: ``lax.expand_dims``, ``lax.reshape``, ``jnp.squeeze``.

    >>> lax.squeeze(jnp.ones((1, 2, 1)), (0,)).shape
    (2, 1)
    """
    x = as_operand(array, "squeeze")
    dims = tuple([canonical_axis(dim, x.ndim) for dim in dimensions])
    if not dims:
        return x
    if len(set(dims)) != len(dims):
        raise ValueError(f"dimensions are not unique: {dims}")
    if any(x.shape[dim] != 1 for dim in dims):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one, "
                         f"got shape={x.shape} and dimensions={dims}")
    return squeeze_p.bind(x, dimensions=tuple(sorted(dims)))


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Inserts dimensions of size 1 at the given positions of the result.

    Args:
      array: an array.
      dimensions: the positions.

    Returns:
      An array with one more dimension for each.

    Raises:
      ValueError: a position is repeated, or out of bounds.

    See also: ``lax.squeeze``, ``lax.broadcast_in_dim``, ``jnp.expand_dims``.

    >>> lax.expand_dims(jnp.ones((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    x = as_operand(array, "expand_dims")
    dims = tuple(dimensions)
    if len(set(dims)) != len(dims):
        raise ValueError(f"repeated axis in lax.expand_dims: {dims}")
    rank = x.ndim + len(dims)
    dims = tuple([canonical_axis(dim, rank) for dim in dims])
    if len(set(dims)) != len(dims):
        raise ValueError(f"repeated axis in lax.expand_dims: {dims}")
    kept = tuple(dim for dim in range(rank) if dim not in dims)
    sizes = dict(zip(kept, x.shape, strict=True))
    return broadcasting.broadcast_in_dim(x, tuple(sizes.get(dim, 1) for dim in range(rank)), kept)


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Dimension ``i`` of the result is dimension ``permutation[i]`` of the operand.

    Args:
      operand: an array.
      permutation: one number for each dimension.

    Returns:
      An array of ``operand``'s dtype.

    Raises:
      TypeError: it is not a permutation.

    See also: ``lax.rev``, ``lax.reshape``, ``jnp.transpose``.

    >>> lax.transpose(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = as_operand(operand, "transpose")
    order = integers(permutation)
    if sorted(order) != list(range(x.ndim)):
        raise TypeError("transpose permutation isn't a permutation of operand dimensions, got "
                        f"permutation {order} for operand shape {x.shape}.")
    return layout.transpose(x, order)


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverses the order of elements along some dimensions.

    Args:
      operand: an array.
      dimensions: which, counted from the left.

    Returns:
      An array of the same shape and dtype.

    Raises:
      TypeError: dimensions repeat, or are out of bounds.

    See also: ``jnp.flip``, ``lax.transpose``.

    >>> lax.rev(jnp.arange(3), (0,))
    Array([2, 1, 0], dtype=int32)
    """
    x = as_operand(operand, "rev")
    dims = integers(dimensions)
    if len(set(dims)) != len(dims):
        raise TypeError(f"rev dimensions must be unique, got {dims}.")
    check_nonnegative("rev", "dimensions", dims)
    if any(dim >= x.ndim for dim in dims):
        raise TypeError("rev dimensions must all be less than operand ndim, got dimensions "
                        f"{dims} for operand ndim {x.ndim}.")
    return rev_p.bind(x, dimensions=dims) if dims else x


def pad(operand: ArrayLike, padding_value: Any,
        padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """Puts ``padding_value`` before, after and between the elements.

    Args:
      operand: an array.
      padding_value: a scalar of the same dtype.
      padding_config: for each dimension (before, after, between each two elements); the first two
        may be negative, which crops.

    Returns:
      An array of ``operand``'s dtype.

    Raises:
      ValueError: the configuration does not fit the operand.
      TypeError: the dtypes differ.

    See also: ``jnp.pad``, ``lax.concatenate``, ``lax.dynamic_update_slice``.

    >>> lax.pad(jnp.array([1, 2, 3]), 0, [(1, -1, 1)])
    Array([0, 1, 0, 2, 0], dtype=int32)
    """
    x = as_operand(operand, "pad")
    value = as_operand(padding_value, "pad", 1)
    config = tuple([integers(entry) for entry in padding_config])
    if len(config) != x.ndim:
        raise ValueError("length of padding_config must equal the number of axes of operand, got "
                         f"padding_config {config} for operand shape {x.shape}")
    if x.dtype != value.dtype:
        raise TypeError("pad operand and padding_value must be same dtype: got "
                        f"{x.dtype} and {value.dtype}.")
    if value.shape:
        raise ValueError(f"padding_value must be a scalar; got np.shape(padding_value)="
                         f"{value.shape}")
    if any(interior < 0 for _, _, interior in config):
        raise ValueError("interior padding in padding_config must be nonnegative, got "
                         f"padding_config {config}")
    shape = tuple(low + high + size + larger(0, size - 1) * interior
                  for size, (low, high, interior) in zip(x.shape, config, strict=True))
    if any(size < 0 for size in shape):
        raise ValueError("Dimension size after padding is not at least 0, got result shape "
                         f"{shape}, for padding_config {config} and operand shape {x.shape}")
    return pad_p.bind(x, value, padding_config=config)


def slice(operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int],
          strides: Sequence[int] | None = None) -> Array:
    """``operand[start:limit:stride, ...]``, all bounds static and inside the operand.

    Args:
      operand: an array.
      start_indices, limit_indices: for each dimension the first index and the one after the last.
      strides: the distances; None: 1.

    Returns:
      An array of ``operand``'s dtype.

    Raises:
      TypeError: indices do not fit the operand.

    See also: ``lax.slice_in_dim``, ``lax.dynamic_slice``, ``lax.index_in_dim``.

    >>> lax.slice(jnp.arange(6), (1,), (6,), (2,))
    Array([1, 3, 5], dtype=int32)
    """
    x = as_operand(operand, "slice")
    starts, limits = integers(start_indices), integers(limit_indices)
    strides = None if strides is None else integers(strides)
    for name, values in (("start_indices", starts), ("limit_indices", limits),
                         ("strides", strides)):
        if values is not None and len(values) != x.ndim:
            raise TypeError(f"slice {name} must have length equal to the number of dimensions of "
                            f"the operand, got {name} {values} for operand shape {x.shape}.")
    if any(start < 0 for start in starts):
        raise TypeError("slice start_indices must be greater than or equal to zero, got "
                        f"start_indices of {starts}.")
    sizes = tuple(limit - start for start, limit in zip(starts, limits, strict=True))
    if any(size < 0 for size in sizes):
        raise TypeError("slice limit_indices must be greater than or equal to start_indices, got "
                        f"start_indices {starts} and limit_indices {limits}.")
    if any(limit > size for limit, size in zip(limits, x.shape, strict=True)):
        raise TypeError("slice limit_indices must be less than or equal to operand shape, got "
                        f"limit_indices {limits} for operand shape {x.shape}.")
    if strides is not None and any(stride <= 0 for stride in strides):
        raise TypeError(f"slice strides must be positive, got {strides}")
    return slice_p.bind(x, start_indices=starts, limit_indices=limits, strides=strides)
