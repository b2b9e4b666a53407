"""Positions in flattened arrays, and the indices that they are."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.dimensions import broadcast_shapes
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives.arithmetic import add, maximum, minimum, mul
from maxjax._primitives.comparison import lt_p, select
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.rules import scalar_like
from maxjax.numpy import _division
from maxjax.numpy._promotion import (
    as_array,
    broadcast_to,
    canonical_shape,
    check_arraylike,
    concrete,
)

__all__ = ["ravel_multi_index", "unravel_index"]


def unravel_index(indices: ArrayLike, shape: Any) -> tuple[Array, ...]:
    """Flat indices as indices along each dimension of ``shape``; out-of-bounds ones are clipped.

    Args:
      indices: an array of integers; negative ones count from the end.
      shape: the sizes of the dimensions.

    Returns:
      A tuple of integer arrays of the shape of ``indices``, one for each dimension. NumPy raises
      for indices out of bounds.

    See also: ``ravel_multi_index``, ``argmax``, ``nonzero``.

    >>> jnp.unravel_index(jnp.array([2, 3]), (2, 3))
    (Array([0, 1], dtype=int32), Array([2, 0], dtype=int32))
    """
    check_arraylike("unravel_index", indices)
    indices = as_array(indices)
    if dtypes.is_complex(indices.dtype):
        raise TypeError(f"unravel_index does not accept dtype {indices.dtype}.")
    if indices.dtype == dtypes.bool_:
        indices = convert_element_type(indices, dtypes.int32, True)
    if any(isinstance(size, Tracer) for size in (shape if isinstance(shape, Sequence)
                                                 else (shape,))):
        return _unraveled(indices, shape)
    if np.ndim(shape) > 1:
        raise ValueError("unravel_index: shape should be a scalar or 1D sequence.")
    sizes = canonical_shape(shape)
    if any(size < 0 for size in sizes):
        raise ValueError(f"unravel_index: shape must be non-negative, got {sizes}")
    total = math.prod(sizes)
    dtype, weak = indices.dtype, indices.weak_type and getattr(shape, "weak_type", True)
    if total == 0:
        return tuple(convert_element_type(full(indices.shape, 0, dtype), dtype, weak)
                     for _ in sizes)
    bound = min(total, int(dtypes.iinfo(dtype).max)) if dtypes.is_integer(dtype) else total
    if not dtypes.is_unsigned(dtype):
        indices = select(lt_p.bind(indices, scalar_like(0, dtype)), indices,
                         add(indices, scalar_like(bound, dtype)))
        indices = maximum(indices, scalar_like(0, dtype))
    indices = minimum(indices, scalar_like(bound - 1, dtype))
    result = []
    for dim, size in enumerate(sizes):
        step = math.prod(sizes[dim + 1:])
        line = indices
        if step != 1:
            line = _division.floor_divide(line, scalar_like(step, dtype))
        if dim:
            line = _division.remainder(line, scalar_like(size, dtype))
        result.append(convert_element_type(line, dtype, weak))
    return tuple(result)


def _unraveled(indices: Array, shape: Any) -> tuple[Array, ...]:
    """``unravel_index`` where the sizes are traced: one number, or a sequence of them."""
    dtype = indices.dtype
    sizes = [convert_element_type(as_array(size), dtype)
             for size in (shape if isinstance(shape, Sequence) else (shape,))]
    total = sizes[0]
    for size in sizes[1:]:
        total = mul(total, size)
    zero = scalar_like(0, dtype)
    total = broadcast_to(total, indices.shape)
    indices = select(lt_p.bind(indices, zero), indices, add(indices, total))
    indices = maximum(minimum(indices, total - 1), zero)
    result: list[Array] = []
    for size in reversed(sizes):
        wide = broadcast_to(size, indices.shape)
        result.insert(0, _division.remainder(indices, wide))
        indices = _division.floor_divide(indices, wide)
    return tuple(result)


def ravel_multi_index(multi_index: Sequence[Any], dims: Sequence[int], mode: str = "raise",
                      order: str = "C", *, dtype: DTypeLike | None = None) -> Array:
    """Flat indices from indices along each dimension of ``dims``.

    Args:
      mode: "raise" (the values must be known), "wrap", "clip", or "ignore": no check.
      order: "C" or "F".

    >>> jnp.ravel_multi_index((jnp.array([0, 1]), jnp.array([2, 0])), (2, 3))
    Array([2, 3], dtype=int32)
    """
    sizes = tuple(operator.index(concrete(size, "in `dims` argument of ravel_multi_index()."))
                  for size in dims)
    if len(multi_index) != len(sizes):
        raise ValueError("len(multi_index)="
                         f"{len(multi_index)} != len(dims)={len(sizes)}")
    check_arraylike("ravel_multi_index", *multi_index)
    lines = [as_array(line) for line in multi_index]
    for line in lines:
        if not dtypes.is_integer(line.dtype):
            raise ValueError(f"dtype={line.dtype!r} is not an integer type.")
    if mode == "raise":
        known = [np.asarray(concrete(
            line, "The error occurred because ravel_multi_index was jit-compiled with "
            "mode='raise'. Use mode='wrap' or mode='clip' instead.")) for line in lines]
        if any(np.any((line < 0) | (line >= size))
               for line, size in zip(known, sizes, strict=True)):
            raise ValueError("invalid entry in coordinates array")
    elif mode == "clip":
        lines = [minimum(maximum(line, scalar_like(0, line.dtype)),
                         scalar_like(size - 1, line.dtype))
                 for line, size in zip(lines, sizes, strict=True)]
    elif mode == "wrap":
        lines = [_division.remainder(line, scalar_like(size, line.dtype))
                 for line, size in zip(lines, sizes, strict=True)]
    elif mode != "ignore":
        raise ValueError(f"invalid {mode=}. Expected 'raise', 'wrap', 'clip', or 'ignore'.")
    if order == "C":
        strides = [math.prod(sizes[dim + 1:]) for dim in range(len(sizes))]
    elif order == "F":
        strides = [math.prod(sizes[:dim]) for dim in range(len(sizes))]
    else:
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    wanted = (dtypes.promote(tuple((line.dtype, line.weak_type) for line in lines))[0]
              if dtype is None else dtypes.argument(dtype, "ravel_multi_index"))
    if math.prod(sizes) - 1 > int(dtypes.iinfo(wanted).max):
        raise ValueError(f"jnp.ravel_multi_index: dtype={wanted} cannot hold the flattened "
                         f"indices of dims={sizes}. Pass a larger dtype.")
    shapes = [line.shape for line in lines]
    try:
        shape = broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={shapes}") from None
    total = full(shape, 0, wanted)
    for line, stride in zip(lines, strides, strict=True):
        step = mul(convert_element_type(line, wanted), scalar_like(stride, wanted))
        total = add(total, broadcast_to(step, shape))
    return total
