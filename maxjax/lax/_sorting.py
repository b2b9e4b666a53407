"""Operations of jax.lax that sort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import ShardingTypeError
from maxjax._higher_order.composed import approx_top_k_p, bind_composed
from maxjax._ir.dimensions import size_index
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.arithmetic import add, neg
from maxjax._primitives.comparison import ne_p, select
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full, zeros_like
from maxjax._primitives.sorting import sort_p, take_along, top_k_p
from maxjax.lax._operands import canonical_axis
from maxjax.lax._operands import operand as as_operand
from maxjax.lax._over_mesh import explicit_mesh, partitions

__all__ = [
    "approx_max_k", "approx_min_k", "approx_top_k_p", "sort", "sort_key_val", "sort_p", "top_k",
    "top_k_p",
]


@overload
def sort(operand: Array, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
         ) -> Array: ...
@overload
def sort(operand: Sequence[Array], dimension: int = -1, is_stable: bool = True, num_keys: int = 1
         ) -> tuple[Array, ...]: ...


def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Sorts along a dimension: NaN last, -0.0 equal to 0.0.

    Args:
      operand: an array, or a sequence of arrays of one shape that are sorted together.
      dimension: the dimension to sort along.
      is_stable: equal elements keep their order (here they always do).
      num_keys: how many of the operands are compared, lexicographically.

    Returns:
      An array, or a tuple of arrays, of the same shapes and dtypes.

    Raises:
      ValueError: ``num_keys`` or ``dimension`` is out of range.
      TypeError: the shapes differ.

    See also: ``lax.sort_key_val``, ``lax.top_k``, ``jnp.sort``, ``jnp.argsort``.

    >>> lax.sort((jnp.array([2, 1, 2]), jnp.array([9, 8, 7])), num_keys=2)
    (Array([1, 2, 2], dtype=int32), Array([8, 7, 9], dtype=int32))
    """
    if isinstance(operand, Sequence):
        arrays = [as_operand(x, "sort", position) for position, x in enumerate(operand)]
        if not arrays:
            raise TypeError("Sort requires at least one operand")
        if not 1 <= num_keys <= len(arrays):
            raise ValueError(f"{num_keys=} must be between 1 and len(operand)={len(arrays)}")
        if len({x.shape for x in arrays}) > 1:
            listed = " ".join(str(x.shape) for x in arrays)
            raise TypeError(f"Arguments to sort must have equal shapes, got: {listed}")
        axis = canonical_axis(dimension, arrays[0].ndim)
        return tuple(sort_p.bind(*arrays, dimension=axis, is_stable=bool(is_stable),
                                 num_keys=int(num_keys)))
    x = as_operand(operand, "sort")
    axis = canonical_axis(dimension, x.ndim)
    return sort_p.bind(x, dimension=axis, is_stable=bool(is_stable), num_keys=1)[0]


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> tuple[
        Array, Array]:
    """Sorts ``keys``, and ``values`` in the same order.

    >>> lax.sort_key_val(jnp.array([3, 1, 2]), jnp.array([0, 1, 2]))
    (Array([1, 2, 3], dtype=int32), Array([1, 2, 0], dtype=int32))
    """
    sorted_keys, sorted_values = sort((keys, values), dimension, is_stable, 1)
    return sorted_keys, sorted_values


def top_k(operand: ArrayLike, k: int, *, axis: int = -1, is_stable: bool = True) -> list[Array]:
    """The k largest elements along an axis, in descending order, and their positions (int32).

    Equal elements keep their order; NaN is larger than all numbers.

    Args:
      operand: an array, not complex, of one dimension or more.
      k: how many, a Python int.
      axis: along which.
      is_stable: whether equal elements have to keep their order; here they always do.

    Returns:
      A pair of arrays, of size k along the axis: the elements, and their positions, of int32.

    Raises:
      ValueError: k or the axis is out of range, or the operand is complex.

    See also: ``lax.approx_max_k``, ``lax.sort``, ``jnp.argsort``, ``jnp.argmax``.

    >>> lax.top_k(jnp.array([1, 3, 2]), 2)
    [Array([3, 2], dtype=int32), Array([1, 2], dtype=int32)]
    """
    x = as_operand(operand, "top_k")
    if dtypes.is_complex(x.dtype):
        raise ValueError("top_k is not compatible with complex inputs.")
    k = size_index(k)
    axis = canonical_axis(axis, x.ndim)
    if k < 0:
        raise ValueError(f"k argument to top_k must be nonnegative, got {k}")
    if k > x.shape[axis]:
        raise ValueError(f"k argument to top_k must be no larger than size along axis; got {k=} "
                         f"with shape={list(x.shape)} and axis={axis}")
    if x.shape[axis] > 2**31:
        raise ValueError("top_k returns int32 indices, which will overflow for array dimensions "
                         "larger than the maximum int32 (2147483647). Got operand.shape="
                         f"{x.shape}")
    return top_k_p.bind(x, k=k, axis=axis, is_stable=is_stable)


def _approximate(operand: Any, k: int, reduction_dimension: int, recall_target: float,
                 reduction_input_size_override: int, aggregate_to_topk: bool,
                 is_max: bool) -> list[Array]:
    x = as_operand(operand, "approx_top_k")
    k = size_index(k)
    if k <= 0:
        raise ValueError(f"k must be positive, got {k}")
    if not x.ndim:
        raise TypeError("approx_top_k operand must have >= 1 dimension, got ()")
    if not -x.ndim <= reduction_dimension < x.ndim:
        raise IndexError(f"reduction_dimension {reduction_dimension} is out of bounds for array of "
                         f"dimension {x.ndim}")
    axis = canonical_axis(reduction_dimension, x.ndim)
    if x.shape[axis] < k:
        raise ValueError(f"k must be smaller than the size of reduction_dim {axis}, got {k}")
    if not dtypes.is_floating(x.dtype):
        raise ValueError("operand must be a floating type")
    if explicit_mesh(x) is not None and partitions(x)[axis] is not None:
        raise ShardingTypeError(
            f"reduction dimension {reduction_dimension} in operand {x.aval} should be unsharded "
            "i.e. the spec of that dim should be `None`.")
    count = k if aggregate_to_topk else x.shape[axis]

    def compose(x: Any) -> list[Any]:
        if is_max and count < x.shape[axis] and x.dtype == dtypes.float32:
            return top_k_p.bind(x, k=count, axis=axis, is_stable=True)
        # Only the greatest few of float32 have an order of zeros and NaNs by their signs, as XLA
        # finds them; all others are sorted with equal zeros (their sum with 0 is 0) and NaNs,
        # which come first among the greatest and last among the least.
        key = select(ne_p.bind(x, x), add(x, zeros_like(x)), full(x.shape, np.nan, x.dtype))
        _, indices = top_k_p.bind(key if is_max else neg(key), k=count, axis=axis,
                                   is_stable=True)
        indices = convert_element_type(indices, indices.dtype, x.weak_type)
        return [take_along(x, indices, axis), indices]

    return bind_composed(
        approx_top_k_p, compose, [x], known_by=(count, axis, is_max), k=k,
        reduction_dimension=reduction_dimension, recall_target=recall_target, is_max_k=is_max,
        reduction_input_size_override=reduction_input_size_override,
        aggregate_to_topk=aggregate_to_topk)


def approx_max_k(operand: ArrayLike, k: int, reduction_dimension: int = -1,
                 recall_target: float = 0.95, reduction_input_size_override: int = -1,
                 aggregate_to_topk: bool = True) -> list[Array]:
    """The k largest elements and their positions; exact here, whatever ``recall_target`` allows.

    Args:
      operand: an array of floats.
      k: how many, a Python int.
      reduction_dimension: along which.
      recall_target, reduction_input_size_override, aggregate_to_topk: accepted.

    Returns:
      A pair of arrays, of size k along the dimension: elements and positions, of int32.

    Raises:
      ValueError: k is out of range, or the dtype is not floating.

    See also: ``lax.approx_min_k``, ``lax.top_k``.

    >>> lax.approx_max_k(jnp.array([3., 1., 2.]), 2)
    [Array([3., 2.], dtype=float32), Array([0, 2], dtype=int32)]
    """
    return _approximate(operand, k, reduction_dimension, recall_target,
                        reduction_input_size_override, aggregate_to_topk, True)


def approx_min_k(operand: ArrayLike, k: int, reduction_dimension: int = -1,
                 recall_target: float = 0.95, reduction_input_size_override: int = -1,
                 aggregate_to_topk: bool = True) -> list[Array]:
    """The k least elements and their positions; exact here, whatever ``recall_target`` allows.

    Raises:
      ValueError: k is out of range, or the dtype is not floating.

    >>> lax.approx_min_k(jnp.array([3., 1., 2.]), 2)
    [Array([1., 2.], dtype=float32), Array([1, 2], dtype=int32)]
    """
    return _approximate(operand, k, reduction_dimension, recall_target,
                        reduction_input_size_override, aggregate_to_topk, False)
