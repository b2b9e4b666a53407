"""Lowers the static part of an index to slice, rev, squeeze and broadcast_in_dim."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import caches
from maxjax._ir.dimensions import is_dimension, is_open, larger, least, smaller
from maxjax._ir.runtime import installed
from maxjax._ir.size_ranges import count_of, reversed_range
from maxjax._ir.trace import Array
from maxjax._primitives.broadcasting import broadcast_in_dim_p
from maxjax._primitives.dynamic_slice import dynamic_slice_p
from maxjax._primitives.layout import rev_p, squeeze_p
from maxjax._primitives.slicing import slice_p
from maxjax._runtime.array import is_spread
from maxjax.numpy._index_parsing import Entry, parse

# The operations of static indices, by shape and ``static_key``; OUTSIDE if an integer is.
plans: dict[Any, Any] = caches.cache()
_PLAN_LIMIT = 20_000
DYNAMIC = object()
OUTSIDE = object()


def static_key(index: Any) -> Any:
    """An index of integers, slices, None and Ellipsis as a key; ``DYNAMIC`` for any other.

    Classes are compared exactly: True equals 1, and 2.0 equals 2.
    """
    kind = index.__class__
    if kind is int:
        return (index,)
    if kind is slice:
        index = (index,)
    elif kind is not tuple:
        return (index,) if index is None or index is Ellipsis else DYNAMIC
    key = []
    for entry in index:
        kind = entry.__class__
        if kind is slice:
            start, stop, step = entry.start, entry.stop, entry.step
            if ((start is not None and start.__class__ is not int)
                    or (stop is not None and stop.__class__ is not int)
                    or (step is not None and step.__class__ is not int)):
                return DYNAMIC
            key.append((start, stop, step))
        elif kind is int or entry is None or entry is Ellipsis:
            key.append(entry)
        else:
            return DYNAMIC
    return tuple(key)


def make_plan(shape: tuple[int, ...], key: tuple[Any, ...]) -> Any:
    entries = parse(shape, tuple(slice(*e) if e.__class__ is tuple else e for e in key), reads=True)
    plan: Any = (OUTSIDE if any(is_outside(entry, shape) for entry in entries) else
                 tuple(static_steps(shape, entries)))
    if len(plans) >= _PLAN_LIMIT:
        plans.clear()
    plans[shape, key] = plan
    return plan


def wrapped(value: int, size: int, wrap_negative: bool = True) -> int:
    return value + size if value < 0 and wrap_negative else value


def clamp(value: int, size: int) -> int:
    return smaller(larger(value, 0), size - 1)


def is_outside(entry: Entry, shape: tuple[int, ...], wrap_negative: bool = True) -> bool:
    """Whether an integer is known to be out of bounds. An operation then clips or drops it, so that
    it is visible in the program, for example to ``checkify``."""
    if entry.kind != "int" or is_dimension(shape[entry.dim]):
        return False
    return not 0 <= wrapped(entry.value, shape[entry.dim], wrap_negative) < shape[entry.dim]


def may_be_outside(entry: Entry, shape: tuple[int, ...], wrap_negative: bool = True) -> bool:
    """Whether an integer is out of bounds for some sizes of the symbols in the shape."""
    size: Any = shape[entry.dim] if entry.kind == "int" else 0
    if not is_open(size):
        return False
    place = wrapped(entry.value, size, wrap_negative)
    return any(least(bound) < 0 for bound in (place, size - 1 - place))


def region(shape: tuple[int, ...], entries: Sequence[Entry],
           wrap_negative: bool = True) -> tuple[list[int], list[int], list[int], list[int]]:
    """Starts, limits and strides of the static part of an index, and the reversed dimensions."""
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    reversed_dims = []
    for entry in entries:
        dim = entry.dim
        if entry.kind == "int":
            place = clamp(wrapped(entry.value, shape[dim], wrap_negative), shape[dim])
            starts[dim], limits[dim] = place, place + 1
        elif entry.kind == "slice":
            steps = entry.value
            count = count_of(steps)
            if not count:
                starts[dim] = limits[dim] = 0
                continue
            if steps.step < 0:
                reversed_dims.append(dim)
                steps = reversed_range(steps)
            starts[dim], strides[dim] = steps.start, steps.step
            # A limit at the operand's end avoids padding in the transpose.
            limits[dim] = (steps.start + steps.step * (count - 1) + 1
                           if steps.step == 1 or count == 1 else
                           min(shape[dim], steps.start + steps.step * count))
            if count == 1:
                strides[dim] = 1
    return starts, limits, strides, reversed_dims


def static_steps(shape: tuple[int, ...], entries: Sequence[Entry], wrap_negative: bool = True,
                 drop: bool = True) -> list[tuple[Any, dict[str, Any]]]:
    """The operations for the static part of an index.

    Without ``drop``, dimensions indexed by integers remain, and new ones are not added.
    """
    starts, limits, strides, reversed_dims = region(shape, entries, wrap_negative)
    steps: list[tuple[Any, dict[str, Any]]] = []
    if starts != [0] * len(shape) or limits != list(shape) or strides != [1] * len(shape):
        steps.append((slice_p, {
            "start_indices": tuple(starts), "limit_indices": tuple(limits),
            "strides": None if strides == [1] * len(shape) else tuple(strides)}))
    if reversed_dims:
        steps.append((rev_p, {"dimensions": tuple(reversed_dims)}))
    if not drop:
        return steps
    dropped = tuple(entry.dim for entry in entries if entry.kind == "int")
    if dropped:
        steps.append((squeeze_p, {"dimensions": dropped}))
    result, kept = [], []
    for entry in entries:
        if entry.kind == "new":
            result.append(1)
        elif entry.kind == "slice":
            kept.append(len(result))
            result.append(count_of(entry.value))
    if len(kept) < len(result):
        steps.append((broadcast_in_dim_p, {
            "shape": tuple(result), "broadcast_dimensions": tuple(kept)}))
    return steps


def run_steps(x: Array, steps: Sequence[tuple[Any, dict[str, Any]]]) -> Array:
    for primitive, params in steps:
        if primitive is slice_p and params["strides"] is None and is_spread(x):
            x = _sliced_by_operands(x, **params)
        else:
            x = primitive.bind(x, **params)
    return x


def _sliced_by_operands(x: Array, start_indices: Sequence[int], limit_indices: Sequence[int],
                        strides: None) -> Array:
    """Slices a sharded array as JAX does: the result is replicated in sliced dimensions."""
    starts = [installed.runtime.operand(np.int32(start)) for start in start_indices]
    return dynamic_slice_p.bind(x, *starts, slice_sizes=tuple(
        limit - start for start, limit in zip(start_indices, limit_indices, strict=True)))
