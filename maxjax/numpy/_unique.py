"""Unique elements, with their positions and counts."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import ConcretizationTypeError
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import creation as primitives
from maxjax._primitives import layout, slicing
from maxjax._primitives.sorting import sort_p
from maxjax.lax._operands import canonical_axis
from maxjax.numpy import _cumulative as cumulative
from maxjax.numpy import _filled as filled
from maxjax.numpy import _joining as joining
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._nonzero import nonzero
from maxjax.numpy._promotion import as_array, cast, check_arraylike, concrete, is_concrete
from maxjax.numpy._special_values import isnan
from maxjax.numpy._where import where

__all__ = ["unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"]


def check_concrete(name: str, x: Any, size: Any) -> None:
    if size is None and isinstance(x, Tracer) and not is_concrete(x):
        raise ConcretizationTypeError(
            x, f"The error arose for the first argument of jnp.{name}(). To make jnp.{name}() "
            "compatible with JIT and other transforms, you can specify a concrete value for the "
            "size argument, which will determine the output size.")


def one_nan(x: Array) -> Array:
    """Complex numbers of which a part is NaN, as one number: they have no order otherwise."""
    return where(isnan(x), cast(np.nan, x.dtype), x) if dtypes.is_complex(x.dtype) else x


def unique(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False,
           return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
           size: int | None = None, fill_value: Any = None, sorted: bool = True) -> Any:
    """The unique elements, in ascending order (unique slices, with ``axis``).

    Args:
      ar: an array.
      return_index: also return the index of each one's first occurrence.
      return_inverse: also return the index of each element among them.
      return_counts: also return their counts.
      axis: whose slices are compared; None: the elements of the flattened array.
      equal_nan: whether all NaN count as one.
      size: the number of results, required if ``ar`` is traced; missing ones are filled with
        ``fill_value`` (by default the least element).
      fill_value: see ``size``.
      sorted: accepted: the result is always ascending.

    Returns:
      An array, or a tuple of it and what is asked for: indices and counts ``(count,)``, the inverse
      in the shape of ``ar``, or ``(n,)`` with an axis.

    Raises:
      ConcretizationTypeError: ``ar`` is traced and there is no ``size``.

    See also: ``unique_counts``, ``union1d``, ``isin``, ``bincount``.

    >>> jnp.unique(jnp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    >>> jnp.unique(jnp.array([3, 1, 3]), size=3, fill_value=9)
    Array([1, 3, 9], dtype=int32)
    """
    check_arraylike("unique", ar)
    x = one_nan(as_array(ar))
    check_concrete("unique", x, size)
    shape = x.shape
    if axis is None:
        index, x = 0, layout.reshape(x, (x.size,))
    else:
        index = canonical_axis(axis, x.ndim)
        x = shapes.moveaxis(x, index, 0)
    count = x.shape[0]
    rest = x.shape[1:]
    rows = layout.reshape(x, (count, x.size // count if count else 0))
    integer = dtypes.canonical(dtypes.int64)
    if not x.size:
        return _empty_unique(x, size, fill_value, return_index, return_inverse, return_counts,
                             index if axis is not None else None, shape)
    order, first = _groups(rows, equal_nan)
    group = cumulative.cumsum(first.astype(integer)) - 1
    if size is None:
        total = int(reductions.sum(first))
    else:
        total = operator.index(concrete(size, "The size argument of jnp.unique must be static."))
        if total < 0:
            raise TypeError(f"jnp.unique: size must be nonnegative, got {total}")
    starts = nonzero(first, size=total, fill_value=count)[0].astype(integer)
    valid = starts < count
    start_places = ufuncs._minimum(starts, max(count - 1, 0))
    positions = shapes.take_in_bounds(order, start_places, 0)
    values = shapes.take_in_bounds(x, positions, 0)
    present = layout.reshape(valid, (total, *(1,) * len(rest)))
    if size is not None:
        if fill_value is None:
            filler = shapes.take_in_bounds(x, shapes.take_in_bounds(
                order, filled.zeros((1,), integer), 0), 0)
        else:
            filler = as_array(cast(fill_value, x.dtype))
        values = where(present, values, filler)
        # results beyond the groups repeat the first group
        positions = where(valid, positions, shapes.take_in_bounds(
            order, filled.zeros((1,), integer), 0))
    if axis is not None:
        values = shapes.moveaxis(values, 0, index)
    results = [values]
    if return_index:
        results.append(positions)
    if return_inverse:
        inverse = filled.zeros((count,), integer).at[order].set(group)
        results.append(layout.reshape(inverse, shape) if axis is None else inverse)
    if return_counts:
        # the end of the last group, unless there is no room for the next one
        following = nonzero(first, size=total + 1, fill_value=count)[0]
        ends = following[1:].astype(integer)
        results.append(where(valid, ends - starts, 0))
    return results[0] if len(results) == 1 else tuple(results)


def _groups(rows: Array, equal_nan: bool) -> tuple[Array, Array]:
    """The order that sorts rows, and whether each is the first of equal ones in it."""
    count = rows.shape[0]
    keys = [layout.reshape(slicing.slice_in_dim(rows, i, i + 1, 1), (count,))
            for i in range(rows.shape[1])]
    places = primitives.iota(dtypes.canonical(dtypes.int64), (count,), 0)
    *ordered, order = sort_p.bind(
        *keys, places, dimension=0, is_stable=True, num_keys=len(keys)) if keys else (places,)
    new = _any_differs(ordered, count, equal_nan)
    return order, joining.concatenate([filled.ones((1,), bool), new[1:]])


def differ_from_before(line: Array, equal_nan: bool) -> Array:
    """Whether each element but the first differs from the one before it; with ``equal_nan`` NaN is
    one value."""
    before, after = line[:-1], line[1:]
    differs = after != before
    if equal_nan and dtypes.is_inexact(line.dtype):
        differs = differs & ~(isnan(after) & isnan(before))
    return differs


def _any_differs(ordered: Sequence[Array], count: int, equal_nan: bool) -> Array:
    """Where one of the lines has another element than at the position before."""
    new = primitives.full((count,), False, dtypes.bool_)
    for line in ordered:
        differs = differ_from_before(line, equal_nan)
        new = new | joining.concatenate([filled.zeros((1,), bool), differs])
    return new


def _empty_unique(x: Array, size: Any, fill_value: Any, return_index: bool, return_inverse: bool,
                  return_counts: bool, axis: int | None, shape: tuple[int, ...]) -> Any:
    """For an array without elements: all empty slices are equal."""
    integer = dtypes.canonical(dtypes.int64)
    count = x.shape[0]
    groups = int(0 in x.shape[1:] and count > 0)
    if not count and size and fill_value is None:
        raise ValueError("jnp.unique: for zero-sized input with nonzero size argument, fill_value "
                         "must be specified")
    total = groups if size is None or fill_value is None else operator.index(size)
    values = filled.full((total, *x.shape[1:]), 0 if fill_value is None else fill_value, x.dtype)
    results = [values if axis is None else shapes.moveaxis(values, 0, axis)]
    if return_index:
        results.append(filled.zeros((groups,), integer))
    if return_inverse:
        results.append(filled.zeros(shape if axis is None else (count,), integer))
    if return_counts:
        results.append(filled.full((min(count, 1),), count, integer))
    return results[0] if len(results) == 1 else tuple(results)


class _UniqueAllResult(NamedTuple):
    """The results of ``unique_all``."""
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class _UniqueCountsResult(NamedTuple):
    """The results of ``unique_counts``."""
    values: Array
    counts: Array


class _UniqueInverseResult(NamedTuple):
    """The results of ``unique_inverse``."""
    values: Array
    inverse_indices: Array


def unique_all(x: ArrayLike, /, *, size: int | None = None,
               fill_value: Any = None) -> _UniqueAllResult:
    """Unique elements, indices of their first occurrences, inverse indices, and counts.

    >>> jnp.unique_all(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    return _UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size,
                                   fill_value=fill_value))


def unique_counts(x: ArrayLike, /, *, size: int | None = None,
                  fill_value: Any = None) -> _UniqueCountsResult:
    """Unique elements and their counts.

    >>> jnp.unique_counts(jnp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    return _UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size,
                                      fill_value=fill_value))


def unique_inverse(x: ArrayLike, /, *, size: int | None = None,
                   fill_value: Any = None) -> _UniqueInverseResult:
    """Unique elements and inverse indices.

    >>> jnp.unique_inverse(jnp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    return _UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size,
                                       fill_value=fill_value))


def unique_values(x: ArrayLike, /, *, size: int | None = None, fill_value: Any = None) -> Array:
    """Unique elements.

    >>> jnp.unique_values(jnp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)
