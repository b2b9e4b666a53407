"""Operations of jax.lax that broadcast, and counting along a dimension."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from maxjax._base import dtypes
from maxjax._higher_order.constraints import resharded, with_out_sharding
from maxjax._ir import dimensions
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.trace import Array, invalid_shape
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives import broadcasting, layout
from maxjax._primitives.broadcasting import broadcast_in_dim_p
from maxjax._primitives.creation import iota_p
from maxjax._primitives.sharding import freed
from maxjax.lax._operands import check_nonnegative, integers
from maxjax.lax._operands import operand as as_operand

__all__ = [
    "broadcast", "broadcast_in_dim", "broadcast_in_dim_p", "broadcast_like", "broadcast_shapes",
    "broadcast_to_rank", "broadcasted_iota", "iota", "iota_p",
]


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """Repeats an array along new leading dimensions.

    Args:
      operand: an array of shape ``S``.
      sizes: of the new dimensions; the result has the shape ``(*sizes, *S)``.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of ``operand``'s dtype.

    See also: ``lax.broadcast_in_dim``, ``jnp.broadcast_to``.

    >>> lax.broadcast(jnp.array([1, 2]), (2,))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(broadcast, out_sharding, operand, sizes)
    x = as_operand(operand, "broadcast")
    sizes = integers(sizes)
    if not sizes:
        return x
    dims = tuple(range(len(sizes), len(sizes) + x.ndim))
    return broadcast_in_dim(x, (*sizes, *x.shape), dims)


def broadcast_in_dim(operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int], *,
                     out_sharding: Any = None) -> Array:
    """Repeats an array along new dimensions or those of size 1.

    Args:
      operand: an array.
      shape: of the result.
      broadcast_dimensions: for each dimension of the operand, the corresponding one of the result.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape, of ``operand``'s dtype.

    Raises:
      TypeError: sizes or dimensions do not fit.

    See also: ``lax.broadcast``, ``lax.reshape``, ``lax.expand_dims``, ``jnp.broadcast_to``.

    >>> lax.broadcast_in_dim(jnp.array([1, 2]), (2, 3), (0,))
    Array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(broadcast_in_dim, out_sharding, operand, shape,
            broadcast_dimensions)
    x = as_operand(operand, "broadcast_in_dim")
    shape = integers(shape)
    dims = integers(broadcast_dimensions)
    name = "broadcast_in_dim"
    if x.ndim > len(shape):
        raise TypeError(
            f"{name} target broadcast shape must have equal or higher rank to the operand shape; "
            f"got operand ndim {x.ndim} and target broadcast ndim {len(shape)}.")
    if len(dims) != x.ndim:
        raise TypeError(
            f"{name} broadcast_dimensions must have length equal to operand ndim; got "
            f"broadcast_dimensions {dims} for operand ndim {x.ndim}.")
    if not set(dims) <= set(range(len(shape))):
        raise TypeError(
            f"{name} broadcast_dimensions must be a subset of output dimensions, got {dims} for "
            f"operand ndim {x.ndim} and shape {shape}.")
    if any(size != 1 and size != shape[dim] for size, dim in zip(x.shape, dims, strict=True)):
        raise TypeError(
            f"{name} operand dimension sizes must either be 1, or be equal to their corresponding "
            f"dimensions in the target broadcast shape; got operand of shape {x.shape}, target "
            f"broadcast shape {shape}, broadcast_dimensions {dims} ")
    if len(set(dims)) != len(dims):
        raise TypeError(f"{name} broadcast_dimensions must not contain duplicates, got "
                        f"broadcast_dimensions {dims}")
    check_nonnegative(name, "shape", shape)
    order = sorted(range(len(dims)), key=lambda place: dims[place])
    return broadcasting.broadcast_in_dim(layout.transpose(x, order), shape, sorted(dims))


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Adds leading dimensions of size 1 until the array has ``rank``.

    >>> lax.broadcast_to_rank(jnp.ones(3), 3).shape
    (1, 1, 3)
    """
    x = as_operand(x, "broadcast_to_rank")
    if rank <= x.ndim:
        return x
    return broadcasting.broadcast_in_dim(x, (1,) * (rank - x.ndim) + x.shape,
                                   tuple(range(rank - x.ndim, rank)))


def broadcast_like(arr: ArrayLike, like_arr: Any) -> Array:
    """Repeats an array until it has the shape of another.

    Args:
      arr: an array; its dimensions are the last of ``like_arr``, or of size 1.
      like_arr: provides the shape.

    Raises:
      ValueError: ``arr`` does not broadcast to the shape.

    >>> lax.broadcast_like(jnp.arange(3), jnp.zeros((2, 3)))
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    x, like = as_operand(arr, "broadcast_like"), as_operand(like_arr, "broadcast_like", 1)
    on_mesh = like.aval.mesh_spec
    if on_mesh is not None and on_mesh[0].explicit_axes and x.aval.mesh_spec != on_mesh:
        own = () if x.aval.mesh_spec is None else x.aval.mesh_spec[1].partitions
        if any(axes is not None for axes in own):
            wanted = ShapedArray(like.shape, x.dtype, False, on_mesh)
            raise ValueError(f"Incompatible types for broadcasting: input type="
                             f"{x.aval.str_short()} and requested type={wanted.str_short()}")
        return resharded(broadcast_like(freed(x), freed(like)), like.aval.sharding)
    shape = like.shape
    if x.shape == shape:
        return x
    if x.ndim > len(shape):
        raise ValueError("Cannot broadcast to shape with fewer dimensions: "
                         f"arr_shape={x.shape} shape={shape}")
    ending = shape[len(shape) - x.ndim:]
    if any(size not in (1, wide) for size, wide in zip(x.shape, ending, strict=True)):
        wanted = x.aval.update(shape=shape)
        raise ValueError(f"Incompatible types for broadcasting: input type={x.aval.str_short()} "
                         f"and requested type={wanted.str_short()}")
    return broadcasting.broadcast_in_dim(x, shape, tuple(range(len(shape) - x.ndim, len(shape))))


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The common shape to which shapes broadcast.

    Args:
      shapes: tuples of ints; a shape of fewer dimensions gets leading ones.

    Returns:
      A tuple of ints.

    Raises:
      ValueError: there is none.

    See also: ``jnp.broadcast_shapes``, ``lax.broadcast_in_dim``.

    >>> lax.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    for shape in shapes:
        if not all(is_dimension(size) or hasattr(size, "__index__") for size in shape):
            raise invalid_shape(shape)
        if any(isinstance(size, int) and size < 0 for size in shape):
            raise TypeError("Only non-negative indices are allowed when broadcasting static "
                            f"shapes, but got shape {shape}.")
    try:
        return dimensions.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(
            f"Incompatible shapes for broadcasting: shapes={list(shapes)}") from None


def iota(dtype: DTypeLike, size: int) -> Array:
    """0, 1, ..., ``size - 1``.

    Args:
      dtype: integer, floating or complex.
      size: how many.

    Returns:
      An array of shape ``(size,)``.

    See also: ``lax.broadcasted_iota``, ``jnp.arange``.

    >>> lax.iota(jnp.int32, 4)
    Array([0, 1, 2, 3], dtype=int32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int, *,
                     out_sharding: Any = None) -> Array:
    """An array each of whose elements is its position along ``dimension``.

    Args:
      dtype: integer, floating or complex.
      shape: of the result.
      dimension: along which positions are counted.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape and dtype.

    Raises:
      TypeError: the dtype is invalid, or a size negative.
      ValueError: there is no such dimension.

    See also: ``lax.iota``, ``jnp.arange``, ``jnp.indices``.

    >>> lax.broadcasted_iota(jnp.int32, (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    if dtype is None:
        raise ValueError("dtype must be specified.")
    dtype = dtypes.argument(dtype, "broadcasted_iota")
    shape = integers(shape)
    dimension = operator.index(dimension)
    if not dtypes.is_numeric(dtype):
        raise TypeError(f"iota does not accept dtype {dtype}. Accepted dtypes are subtypes of "
                        "integer, complexfloating, floating.")
    check_nonnegative("iota", "shape", shape)
    if not 0 <= dimension < len(shape):
        raise ValueError("iota dimension must be between 0 and len(shape), got "
                         f"{dimension=} for {shape=}")
    line = iota_p.bind(dtype=dtype, shape=shape, dimension=dimension)
    return line if out_sharding is None else resharded(line, out_sharding)
