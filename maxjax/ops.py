"""jax.ops: reductions over segments of an array."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._higher_order.constraints import with_out_sharding
from maxjax._ir.dimensions import size_index
from maxjax._ir.trace import Array
from maxjax.numpy._promotion import as_array, check_arraylike, concrete

explain_missing_names(__name__)


def _lowest(dtype: Any) -> Any:
    """The initial value of a maximum: no element is below it."""
    if dtypes.is_inexact(dtype):
        return -np.inf
    return False if dtype == dtypes.bool_ else jnp.iinfo(dtype).min


def _highest(dtype: Any) -> Any:
    if dtypes.is_inexact(dtype):
        return np.inf
    return True if dtype == dtypes.bool_ else jnp.iinfo(dtype).max


def _segments(name: str, update: str, reduce: Callable[..., Array], initial: Callable[[Any], Any],
              data: Any, segment_ids: Any, num_segments: Any, indices_are_sorted: bool,
              unique_indices: bool, bucket_size: Any, mode: Any, out_sharding: Any) -> Array:
    if out_sharding is not None:
        if update != "add" and getattr(out_sharding, "spec", out_sharding).unreduced:
            raise NotImplementedError(f"unreduced for {name.removeprefix('segment_')} is not yet "
                                      "supported.")
        return with_out_sharding(
            functools.partial(_segments, name, update, reduce, initial), out_sharding, data,
            segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode, None)
    check_arraylike(name, data, segment_ids)
    data, segment_ids = as_array(data), as_array(segment_ids)
    if num_segments is None:
        top = jnp.max(segment_ids) + 1
        num_segments = int(concrete(top, f"{name}() `num_segments` argument."))
    num_segments = size_index(num_segments)
    if num_segments < 0:
        raise ValueError("num_segments must be non-negative.")
    rest = data.shape[1:]
    options = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices,
               "mode": mode, "wrap_negative_indices": False}
    start = initial(data.dtype)
    if bucket_size is None:
        out = jnp.full((num_segments, *rest), start, data.dtype)
        return getattr(out.at[segment_ids], update)(data, **options)
    buckets = -(-segment_ids.size // bucket_size)
    out = jnp.full((buckets, num_segments, *rest), start, data.dtype)
    bucket = jnp.arange(segment_ids.shape[0]) // bucket_size
    out = getattr(out.at[bucket, segment_ids], update)(data, **options)
    return reduce(out, axis=0).astype(data.dtype)


def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Any = None,
                out_sharding: Any = None) -> Array:
    """The sums of the elements of each segment.

    Args:
      data: shape ``(N, ...)``.
      segment_ids: integers of shape ``(N,)``: the segment of each element. Those outside ``[0,
        num_segments)`` are dropped.
      num_segments: the number of segments in the result; required under jit. By default the largest
        of ``segment_ids`` plus one.
      indices_are_sorted, unique_indices: promises about ``segment_ids``.
      bucket_size: sums this many elements at a time, and then the sums, for less rounding error.
      mode: how out-of-bounds segments are handled, as in ``x.at[...].add``.
      out_sharding: the result's sharding along Explicit axes of a mesh.

    Returns:
      An array ``(num_segments, ...)`` of ``data``'s dtype; 0 where a segment has no elements.

    Raises:
      ConcretizationTypeError: ``segment_ids`` is traced and there is no ``num_segments``.

    See also: ``jax.ops.segment_max``, ``jax.ops.segment_prod``, ``jnp.bincount``,
    ``jnp.ndarray.at``.

    >>> jax.ops.segment_sum(jnp.array([1., 2., 3., 4.]), jnp.array([0, 0, 2, 5]), num_segments=3)
    Array([3., 0., 3.], dtype=float32)
    """
    return _segments("segment_sum", "add", jnp.sum, lambda dtype: 0, data, segment_ids,
                     num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
                     out_sharding)


def segment_prod(data: Any, segment_ids: Any, num_segments: int | None = None,
                 indices_are_sorted: bool = False, unique_indices: bool = False,
                 bucket_size: int | None = None, mode: Any = None,
                 out_sharding: Any = None) -> Array:
    """The products of the elements of each segment, 1 if it has none; see ``segment_sum``.

    >>> jax.ops.segment_prod(jnp.array([1., 2., 3., 4.]), jnp.array([0, 0, 2, 2]), num_segments=3)
    Array([ 2.,  1., 12.], dtype=float32)
    """
    return _segments("segment_prod", "mul", jnp.prod, lambda dtype: 1, data, segment_ids,
                     num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
                     out_sharding)


def segment_max(data: Any, segment_ids: Any, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Any = None,
                out_sharding: Any = None) -> Array:
    """The largest element of each segment; see ``segment_sum``.

    A segment without elements gives -inf, or the least integer.

    Args:
      data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
        out_sharding: as of ``segment_sum``.

    Returns:
      An array ``(num_segments, ...)`` of ``data``'s dtype.

    See also: ``jax.ops.segment_sum``, ``jax.ops.segment_max``, ``jax.ops.segment_min``,
    ``jax.ops.segment_prod``.

    >>> jax.ops.segment_max(jnp.array([1., 2., 3., 4.]), jnp.array([0, 0, 2, 2]), num_segments=3)
    Array([  2., -inf,   4.], dtype=float32)
    """
    return _segments("segment_max", "max", jnp.max, _lowest, data, segment_ids,
                     num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
                     out_sharding)


def segment_min(data: Any, segment_ids: Any, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: Any = None,
                out_sharding: Any = None) -> Array:
    """The least element of each segment; see ``segment_sum``.

    A segment without elements gives inf, or the largest integer.

    Args:
      data, segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
        out_sharding: as of ``segment_sum``.

    Returns:
      An array ``(num_segments, ...)`` of ``data``'s dtype.

    See also: ``jax.ops.segment_sum``, ``jax.ops.segment_max``, ``jax.ops.segment_min``,
    ``jax.ops.segment_prod``.

    >>> jax.ops.segment_min(jnp.array([1., 2., 3., 4.]), jnp.array([0, 0, 2, 2]), num_segments=3)
    Array([ 1., inf,  3.], dtype=float32)
    """
    return _segments("segment_min", "min", jnp.min, _highest, data, segment_ids,
                     num_segments, indices_are_sorted, unique_indices, bucket_size, mode,
                     out_sharding)
