"""Operations of jax.lax that join arrays, part them and repeat them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import joining
from maxjax._primitives.joining import concatenate_p, split_p
from maxjax._primitives.stacking import stack_p, tile_p, unstack_p
from maxjax.lax._operands import canonical_axis, check_nonnegative, check_same_dtypes, integers
from maxjax.lax._operands import operand as as_operand
from maxjax.lax._over_mesh import check_unstack

__all__ = [
    "concatenate", "concatenate_p", "split", "split_p", "stack", "stack_p", "tile", "tile_p",
    "unstack", "unstack_p",
]


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
