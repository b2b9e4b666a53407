"""Where elements are nonzero, and what stands there: nonzero, argwhere, compress."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import ConcretizationTypeError, origin_message
from maxjax._base.shardings import NamedSharding
from maxjax._ir.dimensions import size_index
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.broadcasting import expand_axis
from maxjax._primitives.comparison import lt_p, ne_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.dynamic_slice import true_positions_p
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import reshape
from maxjax._primitives.reduction import reduce_or_p
from maxjax._primitives.rules import scalar_like
from maxjax._primitives.slicing import slice_in_dim
from maxjax._runtime.array import ArrayImpl
from maxjax.lax._operands import canonical_axis
from maxjax.lax._over_mesh import explicit_mesh, partitions
from maxjax.numpy import _division
from maxjax.numpy._getitem import getitem
from maxjax.numpy._indexing import flat, take
from maxjax.numpy._promotion import (
    as_array,
    cast,
    check_arraylike,
    check_out,
    concrete,
    shape_of,
    type_of,
)
from maxjax.numpy._shape import moveaxis
from maxjax.numpy._sorting import argsort
from maxjax.numpy._where import where

__all__ = ["argwhere", "compress", "extract", "flatnonzero", "nonzero"]


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices of the nonzero elements, one array for each dimension.

    Args:
      a: an array of one dimension or more.
      size: how many to return; required if ``a`` is traced. Missing ones are ``fill_value``.
      fill_value: a number, or one for each dimension; 0 by default.

    Returns:
      A tuple of arrays ``(size,)`` of the default integer type; in the order of the flattened
      array.

    Raises:
      ConcretizationTypeError: ``a`` is traced and there is no ``size``.
      ValueError: ``a`` is a scalar.

    See also: ``where``, ``argwhere``, ``flatnonzero``, ``count_nonzero``.

    >>> jnp.nonzero(jnp.array([[1, 0], [2, 3]]))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    >>> jnp.nonzero(jnp.array([0, 5, 0]), size=2, fill_value=3)
    (Array([1, 3], dtype=int32),)
    """
    check_arraylike("nonzero", a)
    a = as_array(a)
    if not a.ndim:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use "
                         "jnp.atleast_1d(scalar).nonzero() instead.")
    if size is None and isinstance(a, Tracer) and a.concrete() is None:
        # Only the number of elements is needed.
        raise ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected: traced "
            "array with shape int32[]\nThe size argument of jnp.nonzero must be statically "
            "specified to use jnp.nonzero within JAX transformations."
            f"{origin_message(a)}\n")
    if explicit_mesh(a) is not None and any(partitions(a)):
        raise ValueError(f"Cannot apply nonzero over sharded axes {tuple(range(a.ndim))} for array "
                         f"with sharding {NamedSharding(*a.aval.mesh_spec)}")
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * a.ndim
    if any(isinstance(fill, (list, tuple)) or fill is not None and shape_of(fill)
           for fill in fills):
        raise ValueError(f"fill_value must be a scalar or tuple of scalars; got {fill_value}")
    dtype = dtypes.canonical(dtypes.int64)
    if size is None:
        lines = [_wrap(line.astype(dtype)) for line in np.nonzero(concrete(a, ""))]
        return tuple(_filled(None, lines, fills))
    size = size_index(concrete(
        size, "The size argument of jnp.nonzero must be statically specified to use jnp.nonzero "
        "within JAX transformations."))
    if size < 0:
        raise TypeError(f"jnp.nonzero: size must be nonnegative, got {size}")
    if not a.size:
        return tuple(_filled(None, [full((size,), 0, dtype) for _ in a.shape], fills))
    mask = a if a.dtype == dtypes.bool_ else ne_p.bind(a, scalar_like(0, a.dtype))
    if not size:
        places = full((size,), 0, dtypes.int32)
    else:
        places = true_positions_p.bind(flat(mask), size=size)
    missing = lt_p.bind(full((size,), a.size - 1, dtypes.int32), places)
    places = cast(places, dtype)
    lines = []
    for dim in range(a.ndim):
        step = math.prod(a.shape[dim + 1:])
        line = places
        if step != 1:
            line = _division.floor_divide(line, scalar_like(max(step, 1), dtype))
        if dim:
            line = _division.remainder(line, scalar_like(max(a.shape[dim], 1), dtype))
        lines.append(line)
    return tuple(_filled(missing, lines, fills))


def _filled(missing: Array | None, lines: Sequence[Array], fills: Sequence[Any]) -> list[Array]:
    """The coordinates along each dimension, with fill values where they are missing: of the type
    that all of them have in common, also where none is missing."""
    if len(fills) != len(lines):
        raise ValueError("fill_value tuple must have length equal to number of axes "
                         f"({len(lines)}); got {len(fills)}")
    given = [0 if fill is None else fill for fill in fills]
    wanted = dtypes.promote(((lines[0].dtype, False), *map(type_of, given)))[0]
    result = []
    for line, fill in zip(lines, given, strict=True):
        if fill.__class__ is int:
            fill = np.array(fill, wanted)       # where it does not fit, NumPy's error
        filled = line if missing is None else where(missing, fill, line)
        result.append(convert_element_type(filled, wanted) if (
            filled.dtype != wanted or filled.weak_type) else filled)
    return result


def _wrap(value: np.ndarray) -> Array:
    return ArrayImpl(ShapedArray(value.shape, value.dtype), value)


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The flat indices of the nonzero elements; see ``nonzero``.

    >>> jnp.flatnonzero(jnp.array([[1, 0], [2, 3]]))
    Array([0, 2, 3], dtype=int32)
    >>> jnp.flatnonzero(jnp.array([0, 4]), size=3, fill_value=-1)
    Array([ 1, -1, -1], dtype=int32)
    """
    check_arraylike("flatnonzero", a)
    return nonzero(flat(as_array(a)), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the nonzero elements, (count, rank); see ``nonzero``.

    Args:
      a: an array.
      size: how many to return; required if ``a`` is traced. Missing ones are ``fill_value``.
      fill_value: a number, or one for each dimension; 0 by default.

    Returns:
      An integer array ``(size, a.ndim)``.

    Raises:
      ConcretizationTypeError: ``a`` is traced and there is no ``size``.

    See also: ``nonzero``, ``where``, ``flatnonzero``.

    >>> jnp.argwhere(jnp.array([[1, 0], [2, 3]]))
    Array([[0, 0],
           [1, 0],
           [1, 1]], dtype=int32)
    """
    check_arraylike("argwhere", a)
    a = as_array(a)
    if not a.ndim:
        count = nonzero(reshape(a, (1,)), size=size, fill_value=fill_value)[0].shape[0]
        return full((count, 0), 0, dtypes.python_scalar(int)[0])
    lines = nonzero(a, size=size, fill_value=fill_value)
    return concatenate([expand_axis(line, 1) for line in lines], 1)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None,
            fill_value: Any = 0) -> Array:
    """The elements of ``arr`` where ``condition`` holds, flat.

    Args:
      condition: booleans; flattened, as ``arr`` is.
      arr: an array.
      size: how many to return; required if ``condition`` is traced.
      fill_value: what stands in place of missing ones.

    Returns:
      A vector of ``arr``'s dtype.

    See also: ``compress``, ``take``, ``where``, ``nonzero``.

    >>> x = jnp.array([5, -1, 7])
    >>> jnp.extract(x > 0, x)
    Array([5, 7], dtype=int32)
    """
    return compress(flat(as_array(condition)), flat(as_array(arr)), size=size,
                    fill_value=fill_value)


def compress(condition: Any, a: Any, axis: int | None = None, *, size: int | None = None,
             fill_value: Any = 0, out: None = None) -> Array:
    """The slices of ``a`` along an axis where ``condition``, of one dimension, holds.

    Args:
      size: how many to return; required if the condition is traced.
      fill_value: the value of missing ones.

    Raises:
      ValueError: the condition holds beyond the axis and no ``size`` is given; or ``size`` exceeds
        the number of slices.
      ConcretizationTypeError: no ``size`` is given, and the condition is traced.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.arange(6).reshape(2, 3), axis=1)
    Array([[0, 2],
           [3, 5]], dtype=int32)
    """
    check_out("compress", out)
    check_arraylike("compress", condition, a)
    condition, a = as_array(condition), as_array(a)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1D array")
    if axis is None:
        a, axis = flat(a), 0
    axis = canonical_axis(axis, a.ndim)
    length = min(condition.shape[0], a.shape[axis])
    if condition.dtype != dtypes.bool_:
        condition = ne_p.bind(condition, scalar_like(0, condition.dtype))
    kept = getitem(condition, slice(0, length))
    if size is None:
        # As in JAX under jit, whatever the condition: a result of unknown size is refused.
        beyond = slice_in_dim(condition, length, condition.shape[0], 0)
        for part in (kept, beyond):
            if isinstance(part, Tracer) and part.concrete() is None:
                raise ConcretizationTypeError(part, (
                    "The size argument of jnp.compress must be specified in order to use "
                    "jnp.compress within JAX transformations like jax.jit, jax.vmap, and jax.grad. "
                    "For more information, refer to the jnp.compress documentation."))
        if reduce_or_p.bind(beyond, axes=(0,)):
            raise ValueError("condition contains entries that are out of bounds")
        return take(a, nonzero(kept)[0], axis, mode="promise_in_bounds")
    if not 0 <= size <= length:
        raise ValueError("size must be positive and not greater than the size of the array axis; "
                         f"got size={size} for a.shape[axis]={length}")
    slices = getitem(moveaxis(a, axis, 0), slice(0, length))
    filled = where(reshape(kept, (length,) + (1,) * (a.ndim - 1)), slices,
                   cast(as_array(fill_value), a.dtype))
    order = getitem(argsort(kept, stable=True, descending=True), slice(0, size))
    return moveaxis(take(filled, order, 0, mode="promise_in_bounds"), 0, axis)
