"""Operations of jax.lax that move elements."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

from maxjax._base import dtypes
from maxjax._higher_order.constraints import (
    reshape_with_out_sharding,
    resharded,
    with_out_sharding,
)
from maxjax._ir import dimensions
from maxjax._ir.dimensions import is_dimension, larger, size_index
from maxjax._ir.trace import Array, invalid_shape
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives import broadcasting, joining, layout
from maxjax._primitives.broadcasting import broadcast_in_dim_p
from maxjax._primitives.creation import iota_p
from maxjax._primitives.identities import stage_p
from maxjax._primitives.joining import concatenate_p, split_p
from maxjax._primitives.layout import copy_p, reshape_p, rev_p, squeeze_p, transpose_p
from maxjax._primitives.sharding import freed
from maxjax._primitives.slicing import pad_p, slice_p
from maxjax._primitives.stacking import stack_p, tile_p, unstack_p
from maxjax.lax._operands import operand as as_operand
from maxjax.lax._operands import same_dtypes_error
from maxjax.lax._over_mesh import check_reshape, check_unstack

__all__ = [
    "broadcast", "broadcast_in_dim", "broadcast_in_dim_p", "broadcast_like", "broadcast_shapes",
    "broadcast_to_rank", "broadcasted_iota", "collapse", "concatenate", "concatenate_p", "copy_p",
    "expand_dims", "iota", "iota_p", "pad", "pad_p", "reshape", "reshape_p", "rev", "rev_p",
    "slice", "slice_p", "split", "split_p", "squeeze", "squeeze_p", "stack", "stack_p", "stage",
    "stage_p", "tile", "tile_p", "transpose", "transpose_p", "unstack", "unstack_p",
]

_slice = slice      # the builtin, shadowed by the operation below


# --- arguments ------------------------------------------------------------------------------------

def integers(values: Any) -> tuple[int, ...]:
    """A sequence of concrete integers, including NumPy's."""
    return tuple([size_index(value) for value in values])


def canonical_axis(axis: Any, rank: int) -> int:
    """An axis counted from the left.

    Raises:
      ValueError: it is out of bounds.
    """
    index = operator.index(axis)
    if not -rank <= index < rank:
        raise ValueError(f"axis {index} is out of bounds for array of dimension {rank}")
    return index + rank if index < 0 else index


def check_nonnegative(name: str, what: str, values: Sequence[int]) -> None:
    if any(value < 0 for value in values):
        raise TypeError(f"{name} {what} must have every element be nonnegative, got "
                        f"{tuple(values)}.")


# --- broadcasting ---------------------------------------------------------------------------------

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


def stage(x: ArrayLike, /) -> Array:
    """A scalar or array as an array, or as a value of the function that is being traced.

    Raises:
      TypeError: ``x`` is not a number or array.

    >>> lax.stage(3)
    Array(3, dtype=int32, weak_type=True)
    """
    return as_operand(x, "stage")


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


# --- iota -----------------------------------------------------------------------------------------

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
                        "integer, floating, complexfloating.")
    check_nonnegative("iota", "shape", shape)
    if not 0 <= dimension < len(shape):
        raise ValueError("iota dimension must be between 0 and len(shape), got "
                         f"{dimension=} for {shape=}")
    line = iota_p.bind(dtype=dtype, shape=shape, dimension=dimension)
    return line if out_sharding is None else resharded(line, out_sharding)


# --- reshape and its like -------------------------------------------------------------------------

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


# --- joining and parting --------------------------------------------------------------------------

def concatenate(operands: Any, dimension: int) -> Array:
    """Concatenates arrays along a dimension; all other sizes, and the dtypes, are equal.

    Args:
      operands: a sequence of arrays.
      dimension: along which; not negative.

    Returns:
      An array of their dtype, whose size along the dimension is the sum of theirs.

    Raises:
      ValueError: there are no arrays.
      TypeError: shapes or dtypes differ, or there is no such dimension.

    See also: ``jnp.concatenate``, ``jnp.stack``, ``lax.pad``.

    >>> lax.concatenate([jnp.array([1, 2]), jnp.array([3])], 0)
    Array([1, 2, 3], dtype=int32)
    """
    arrays = [as_operand(x, "concatenate", position) for position, x in enumerate(operands)]
    if not arrays:
        raise ValueError("concatenate requires a non-empty sequences of arrays")
    if len(arrays) == 1 and arrays[0] is operands[0]:
        return arrays[0]        # whatever the dimension, as in JAX
    listed = ", ".join(str(x.shape) for x in arrays)
    if len({x.ndim for x in arrays}) > 1:
        raise TypeError(f"Cannot concatenate arrays with different numbers of dimensions: got "
                        f"{listed}.")
    dimension = operator.index(dimension)
    if not 0 <= dimension < arrays[0].ndim:
        raise TypeError(f"concatenate dimension out of bounds: dimension {dimension} for shapes "
                        f"{listed}.")
    others = {(*x.shape[:dimension], *x.shape[dimension + 1:]) for x in arrays}
    if len(others) > 1:
        raise TypeError("Cannot concatenate arrays with shapes that differ in dimensions other "
                        f"than the one being concatenated: concatenating along dimension "
                        f"{dimension} for shapes {listed}.")
    check_same_dtypes("concatenate", arrays)
    return joining.concatenate(arrays, dimension)


def check_same_dtypes(name: str, arrays: Sequence[Array]) -> None:
    if len({x.dtype for x in arrays}) > 1:
        message = str(same_dtypes_error(name, [x.aval for x in arrays]))
        if "(Tip" not in message:
            message += (f" (Tip: jnp.{name} is a similar function that does automatic type "
                        "promotion on inputs).")
        raise TypeError(message)


def stack(operands: Sequence[Any], axis: int = 0) -> Array:
    """Stacks arrays of one shape along a new dimension.

    >>> lax.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    arrays = [as_operand(x, "stack", position) for position, x in enumerate(operands)]
    if not arrays:
        raise ValueError("stack requires a non-empty sequences of arrays")
    if len({x.shape for x in arrays}) > 1:
        raise ValueError("All input arrays must have the same shape.")
    axis = canonical_axis(axis, arrays[0].ndim + 1)
    check_same_dtypes("stack", arrays)
    return stack_p.bind(*arrays, axis=axis)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along a dimension, without that dimension.

    Raises:
      ShardingTypeError: the dimension is split over Explicit axes.

    >>> lax.unstack(jnp.arange(4).reshape(2, 2), axis=1)
    (Array([0, 2], dtype=int32), Array([1, 3], dtype=int32))
    """
    x = as_operand(x, "unstack")
    axis = canonical_axis(axis, x.ndim)
    check_unstack(x, axis)
    return tuple(unstack_p.bind(x, axis=axis))


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Splits an array along a dimension into pieces of given sizes.

    Args:
      operand: an array.
      sizes: of the pieces.
      axis: along which.

    Returns:
      A list of arrays.

    Raises:
      ValueError: the sizes do not add up to the dimension's.

    See also: ``lax.concatenate``, ``lax.slice_in_dim``, ``jnp.split``.

    >>> lax.split(jnp.arange(4), (1, 3))
    [Array([0], dtype=int32), Array([1, 2, 3], dtype=int32)]
    """
    x = as_operand(operand, "split")
    sizes = integers(sizes)
    axis = canonical_axis(axis, x.ndim)
    if any(size < 0 for size in sizes):
        raise ValueError(f"Sizes passed to split must be nonnegative, got {list(sizes)}")
    if sum(sizes) != x.shape[axis]:
        raise ValueError(f"Sum of sizes {sum(sizes)} must be equal to dimension {axis} of the "
                         f"operand shape {list(x.shape)}")
    return split_p.bind(x, sizes=sizes, axis=axis)


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeats an array as a whole, ``reps[i]`` times along dimension ``i``.

    >>> lax.tile(jnp.array([1, 2]), (2,))
    Array([1, 2, 1, 2], dtype=int32)
    """
    x = as_operand(operand, "tile")
    reps = integers(reps)
    if len(reps) != x.ndim:
        raise TypeError("tile reps must have one entry for each dimension of the operand, got "
                        f"len(reps)={len(reps)} and ndim={x.ndim}.")
    check_nonnegative("tile", "reps", reps)
    return tile_p.bind(x, reps=reps)


# --- pad and slice --------------------------------------------------------------------------------

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
