"""Repeating, turning and rotating the elements of arrays."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import ShardingTypeError
from maxjax._base.meshes import get_abstract_mesh
from maxjax._base.shardings import NamedSharding
from maxjax._base.specs import PartitionSpec
from maxjax._higher_order.api import jit
from maxjax._higher_order.constraints import resharded, with_out_sharding
from maxjax._higher_order.named_calls import named
from maxjax._ir import dimensions
from maxjax._ir.staging import traces_eager_call
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import broadcasting, creation, layout, slicing
from maxjax._primitives.arithmetic import min_p
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.convert import convert, convert_element_type
from maxjax._primitives.cumulative import cumsum_p
from maxjax._primitives.joining import concatenate_p
from maxjax._primitives.layout import rev_p
from maxjax._primitives.rules import nonnegative
from maxjax._runtime.array import is_spread
from maxjax.lax._operands import canonical_axis
from maxjax.lax._over_mesh import check_roll, explicit_mesh, partitions
from maxjax.lax._slicing import dynamic_slice_in_dim
from maxjax.numpy._at_once import at_once
from maxjax.numpy._creation import asarray
from maxjax.numpy._promotion import (
    apart,
    as_array,
    canonical_shape,
    check_arraylike,
    concrete,
    resolve,
    static,
)
from maxjax.numpy._shape import _sequence, broadcast_to, ravel, swapaxes, take_in_bounds

__all__ = ["flip", "fliplr", "flipud", "repeat", "resize", "roll", "rot90", "tile"]


@at_once
def tile(A: Any, reps: Any) -> Array:
    """The array repeated as a whole, ``reps`` times along each axis.

    Args:
      A: an array.
      reps: how often along each axis, known while tracing; an int for the last. Missing ones are 1,
        and of more than ``A`` has dimensions the first make new ones.

    Returns:
      An array of sizes ``reps * A.shape``.

    Raises:
      ShardingTypeError: a dimension that is repeated lies split over Explicit axes.
      TypeError: a number is negative.

    See also: ``repeat``, ``broadcast_to``.

    >>> jnp.tile(jnp.array([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    x = as_array(A, "tile")
    if not isinstance(reps, Array) and not any(map(dimensions.is_dimension, _sequence(reps))):
        numbers = np.asarray(reps)
        reps = numbers.astype(int, casting="unsafe") if numbers.dtype.kind == "f" else reps
    counts = canonical_shape(reps)
    rank = max(x.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    sizes = (1,) * (rank - x.ndim) + x.shape
    if all(count == 1 for count in counts):
        return layout.reshape(x, sizes) if sizes != x.shape else apart(x)
    entries = partitions(x)
    for dim, (count, entry) in enumerate(zip(counts[rank - x.ndim:], entries, strict=False)):
        if entry is not None and count != 1:
            raise ShardingTypeError(
                f"Operand cannot be sharded on dimension {dim} when the tiling is non-trivial. Got "
                f"input type: {x.aval} with reps: {counts}")
    x = layout.reshape(x, sizes)
    doubled = tuple(n for pair in zip(counts, sizes, strict=True) for n in pair)
    wide = broadcast_in_dim(x, doubled, tuple(range(1, 2 * rank, 2)))
    result = layout.reshape(wide, tuple(a * b for a, b in zip(counts, sizes, strict=True)))
    mesh = explicit_mesh(x)
    if mesh is None:
        return result
    return resharded(result, NamedSharding(mesh, PartitionSpec(*partitions(x))))


def _spread(x: Array, count: Any, axis: int) -> Array:
    """Each element along an axis ``count`` times."""
    wide = (*x.shape[:axis + 1], count, *x.shape[axis + 1:])
    spread = broadcast_in_dim(x, wide, tuple(dim + (dim > axis) for dim in range(x.ndim)))
    return layout.reshape(spread, (*x.shape[:axis], x.shape[axis] * count, *x.shape[axis + 1:]))


def _repeated(x: Array, counts: np.ndarray, axis: int) -> Array:
    """Each element along an axis as often as known counts say: one for all, or one for each."""
    length = x.shape[axis]
    if counts.dtype.kind not in "iub" and (not counts.ndim or counts.size and length):
        total = np.asarray(np.sum(counts) * (length if counts.size == 1 else 1)).tolist()
        raise TypeError("Shapes must be 1D sequences of concrete values of integer type, got "
                        f"{[total]}.")
    if counts.size == 0 == length:
        return x
    if counts.size == 1:
        count = int(counts.reshape(()))
        if count < 0:
            shape = (*x.shape[:axis], length, count, *x.shape[axis + 1:])
            raise TypeError("broadcast_in_dim shape must have every element be nonnegative, "
                            f"got {shape}.")
        return _spread(x, count, axis)
    if counts.size != length:
        raise ValueError(
            "operands could not be broadcast together with remapped shapes "
            f"[original->remapped]: {counts.shape}  and requested shape ({length},)")
    positions = np.repeat(np.arange(length), counts)
    return take_in_bounds(x, as_array(positions.astype(np.int32)), axis)


@at_once
def repeat(a: ArrayLike, repeats: Any, axis: int | None = None, *,
           total_repeat_length: int | None = None, out_sharding: Any = None) -> Array:
    """Each element repeated, ``repeats`` times (one number, or one for each element).

    Args:
      a: an array.
      repeats: integers ``(n,)`` or one; known while tracing, or ``total_repeat_length`` is given.
      axis: along which; None: of the flattened array.
      total_repeat_length: the size of the result, required if ``repeats`` is traced; the excess is
        cut off, and the last element repeated to fill the rest.
      out_sharding: how the result is to lie.

    Returns:
      An array of ``a``'s dtype, whose size along ``axis`` is the sum of ``repeats``.

    Raises:
      ValueError: the dimension lies split over Explicit axes of the mesh that is set, and there is
        no ``out_sharding``.
      ConcretizationTypeError: ``repeats`` is traced and there is no ``total_repeat_length``.

    See also: ``tile``, ``broadcast_to``.

    >>> jnp.repeat(jnp.array([1, 2]), 2)
    Array([1, 1, 2, 2], dtype=int32)
    >>> jnp.repeat(jnp.array([1, 2]), jnp.array([3, 1]), total_repeat_length=5)
    Array([1, 1, 1, 2, 2], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(repeat, out_sharding, a, repeats, axis,
            total_repeat_length=total_repeat_length)
    check_arraylike("repeat", a, repeats)
    x = as_array(a, "repeat")
    if axis is None:
        x = layout.reshape(x, (x.size,))
        axis = 0
    if x.ndim == 0:      # of any axis, as JAX has it
        x = layout.reshape(x, (1,))
        axis = 0 if isinstance(axis, (int, np.integer)) else axis
    index = canonical_axis(axis, x.ndim)
    if (not get_abstract_mesh().empty and x.aval.mesh_spec is not None
            and x.aval.mesh_spec[1].partitions[index] is not None):
        raise ValueError("Please pass sharding to `jnp.repeat` via `out_sharding` parameter.")
    length = x.shape[index]
    if total_repeat_length is None:
        known = concrete(
            repeats, "When jit-compiling jnp.repeat, the total number of repeats must be static. "
            "To fix this, either specify a static value for `repeats`, or pass a static value to "
            "`total_repeat_length`.")
        if dimensions.is_dimension(known):
            return _spread(x, known, index)
        return _repeated(x, np.asarray(known), index)
    total, = nonnegative("broadcast_in_dim", (dimensions.size_index(total_repeat_length),))
    if not length:
        return x
    counts = as_array(repeats, "repeat")
    if counts.size == 1 and length != 1:
        counts = broadcast_to(layout.reshape(counts, (1,)), (length,))
    counts = layout.reshape(counts, (counts.size,))
    # Element i starts at the sum of the counts before it; a position belongs to the last
    # element that starts at or before it.
    ends = cumsum_p.bind(convert_element_type(counts, dtypes.int32), axis=0, reverse=False)
    places = creation.iota(dtypes.int32, (total, length), 0)
    passed = places >= broadcast_in_dim(ends, (total, length), (1,))
    owner = broadcasting.reduce_sum(convert_element_type(passed, dtypes.int32), (1,))
    return take_in_bounds(x, min_p.bind(owner, np.int32(length - 1)), index)


@at_once
def resize(a: ArrayLike, new_shape: Any) -> Array:
    """The elements, repeated or truncated to fill ``new_shape``.

    >>> jnp.resize(jnp.array([1, 2, 3]), (2, 2))
    Array([[1, 2],
           [3, 1]], dtype=int32)
    """
    x = ravel(a)
    sizes = canonical_shape(new_shape)
    if any(size < 0 for size in sizes):
        raise ValueError("all elements of `new_shape` must be non-negative")
    total = math.prod(sizes)
    if x.size == 0 or total == 0:
        return convert_element_type(creation.full(sizes, 0, x.dtype), x.dtype, x.weak_type)
    x = tile(x, -(-total // x.size))
    return layout.reshape(slicing.slice_in_dim(x, 0, total, 0), sizes)


def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Reverses the order along one, several or all axes.

    Args:
      m: an array.
      axis: an axis or a tuple of them; None: all.

    Returns:
      An array of the same shape; no view.

    Raises:
      ValueError: there is no such axis.

    See also: ``fliplr``, ``flipud``, ``rot90``, ``lax.rev``.

    >>> jnp.flip(jnp.array([[1, 2], [3, 4]]), axis=1)
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    x = as_array(m, "flip")
    axes = (tuple(range(x.ndim)) if axis is None
            else tuple(canonical_axis(i, x.ndim) for i in _sequence(axis)))
    if len(set(axes)) < len(axes):
        raise TypeError(f"the axes of flip must be unique, got {axis}.")
    return _flip(x, axis=axes)


@named("_flip", "axis")
def _flip(x: Array, *, axis: tuple[int, ...]) -> Array:
    return rev_p.bind(x, dimensions=axis) if axis else apart(x)


def fliplr(m: ArrayLike) -> Array:
    """Reverses the order along the second axis.

    Args:
      m: an array with that axis.

    Returns:
      An array of the same shape.

    See also: ``flip``, ``fliplr``, ``flipud``, ``rot90``.

    >>> jnp.fliplr(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def flipud(m: ArrayLike) -> Array:
    """Reverses the order along the first axis.

    Args:
      m: an array with that axis.

    Returns:
      An array of the same shape.

    See also: ``flip``, ``fliplr``, ``flipud``, ``rot90``.

    >>> jnp.flipud(jnp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return flip(m, 0)


@at_once
def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotates by 90 degrees, ``k`` times, from the first axis towards the second.

    Args:
      m: an array of two dimensions or more.
      k: how often; negative for the other direction. Known while tracing.
      axes: the two of the plane.

    Returns:
      An array; the two sizes are exchanged where ``k`` is odd.

    Raises:
      ValueError: the array has fewer than two dimensions, or the axes are the same.

    See also: ``flip``, ``transpose``.

    >>> jnp.rot90(jnp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    x = as_array(m, "rot90")
    if x.ndim < 2:
        raise ValueError("rot90 requires its first argument to have ndim at least two, but got "
                         f"first argument of shape {x.shape}, which has ndim {x.ndim}")
    if len(axes) != 2:
        raise ValueError(f"len(axes) must be 2, got axes={axes}")
    first, second = (canonical_axis(axis, x.ndim) for axis in axes)
    if first == second:
        raise ValueError("Axes must be different")
    if isinstance(k, Array):
        static(k, "k")
    turns = k % 4
    if turns == 0:
        return apart(x)
    if turns == 2:
        return flip(x, (first, second))
    if turns == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second)


@functools.partial(jit, static_argnums=(1, 2))
def _roll_spread(x: Array, shift: tuple[int, ...], axes: tuple[int, ...]) -> Array:
    return roll(x, shift, axes)


@at_once
def roll(a: ArrayLike, shift: Any, axis: int | Sequence[int] | None = None) -> Array:
    """Shifts the elements along axes; those shifted past the end reappear at the start.

    Args:
      a: an array.
      shift: by how many places, towards higher indices; one for all axes, or one for each. May be
        traced.
      axis: an axis or a tuple of them; None: of the flattened array, which then gets its shape
        back.

    Returns:
      An array of the same shape.

    Raises:
      ValueError: there is no such axis.

    See also: ``flip``, ``rollaxis``, ``lax.dynamic_slice``.

    >>> jnp.roll(jnp.arange(5), 2)
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    x = as_array(a, "roll")
    shift, = resolve("roll", (shift,)) if hasattr(shift, "__jax_array__") else (shift,)
    several = list(shift) if isinstance(shift, (tuple, list)) else [shift]
    rank = max(map(np.ndim, several), default=0) + isinstance(shift, (tuple, list))
    if max(rank, 0 if axis is None else len(np.shape(axis))) > 1:
        raise ValueError("'shift' and 'axis' arguments to roll must be scalars or 1D arrays")
    if axis is None:
        flat = layout.reshape(x, (x.size,))
        return layout.reshape(roll(flat, shift, 0), x.shape)
    axes = [canonical_axis(i, x.ndim) for i in _sequence(axis)]
    check_roll(x, axes)
    # A repeated eager call is refused here, and stays as it is: known amounts of any size count.
    if not traces_eager_call() and any(
            isinstance(value, Tracer) and value.concrete() is None for value in several):
        amounts = [value for part in several for value in (
            [part] if not np.ndim(part) else [part[i] for i in range(part.shape[0])])]
    else:
        known = np.asarray(concrete(shift, ""))
        if known.dtype.kind not in "biu" and known.size:      # cut to int32, as in programs
            known = convert(known.astype(asarray(shift).dtype), dtypes.int32)
        amounts = known.reshape(-1).tolist()
        # As one program, so that the result has the sharding of ``x``.
        if is_spread(x) and amounts:
            return _roll_spread(x, tuple(amounts), tuple(axes))
    if not amounts:
        return apart(x)
    if len(amounts) == 1:
        amounts = list(amounts) * len(axes)
    if len(axes) == 1 and len(amounts) > 1:
        axes = axes * len(amounts)
    if any(isinstance(amount, Array) for amount in amounts):
        return _roll(x, amounts, axes)
    return _roll_static(x, shift=tuple(amounts), axis=tuple(axes))


@named("_roll_static", "shift", "axis")
def _roll_static(x: Array, *, shift: tuple[int, ...], axis: tuple[int, ...]) -> Array:
    return _roll(x, shift, axis)


def _roll(x: Array, amounts: Sequence[Any], axes: Sequence[int]) -> Array:
    given = x
    for index, amount in zip(axes, amounts, strict=True):
        x = _rolled(x, amount, index)
    return apart(x) if x is given else x


def _rolled(x: Array, amount: Any, axis: int) -> Array:
    """``roll`` along one axis, by a known amount or by that in an array."""
    length: Any = x.shape[axis]
    if not length:
        return x
    # For some values of a symbol, the shift may wrap around more than once.
    if isinstance(amount, Array) or (
            dimensions.is_dimension(length) and length.lower() <= abs(amount)):
        # The remainder first: the least integer has no negative, and int32 not every amount.
        wide = as_array(amount, "roll")
        if not dtypes.is_integer(wide.dtype) or wide.dtype.itemsize <= 4:
            wide = wide.astype(dtypes.int32)
        offset = (wide % length).astype(dtypes.int32)
        if isinstance(length, int):
            return dynamic_slice_in_dim(concatenate_p.bind(x, x, dimension=axis),
                                        length - offset, length, axis)
        places = creation.iota(dtypes.int32, (length,), 0)
        return take_in_bounds(x, (places - offset) % length, axis)
    offset = int(amount) % length if isinstance(length, int) else (
        amount if amount >= 0 else amount + length)
    if not offset:
        return x
    return concatenate_p.bind(
        *(slicing.slice_p.bind(x, start_indices=(0,) * axis + (start,) + (0,) * (x.ndim - axis - 1),
                       limit_indices=(*x.shape[:axis], stop, *x.shape[axis + 1:]),
                       strides=(1,) * x.ndim)
          for start, stop in ((length - offset, length), (0, length - offset))), dimension=axis)
