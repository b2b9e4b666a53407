"""``x[index]``: parses an index, and turns it into operations.

Integers and slices become slice, rev, squeeze and broadcast_in_dim; a traced integer becomes
dynamic_slice; arrays of integers become one gather from the result of the static part of the index.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import config, dtypes
from maxjax._ir.size_ranges import slice_range
from maxjax._ir.trace import Array, Tracer, context
from maxjax._primitives.arithmetic import maximum, minimum
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.creation import full, iota
from maxjax._primitives.dynamic_slice import dynamic_slice_p
from maxjax._primitives.gather_plan import FillValue, GatherDimensionNumbers, GatherScatterMode
from maxjax._primitives.indexing import gather_p
from maxjax._primitives.rules import place_dtype
from maxjax._runtime.array import ArrayImpl
from maxjax.lax._gather_scatter import fill_parameter
from maxjax.lax._slicing import dynamic_slice
from maxjax.numpy._creation import asarray
from maxjax.numpy._index_arrays import (
    advanced,
    host_or_device,
    index_vectors,
    integer_place,
    layout,
    slice_starts,
)
from maxjax.numpy._index_parsing import (
    ALL,
    Entry,
    Slice,
    as_tuple,
    has_slices,
    parse,
    split_off,
    with_flags,
)
from maxjax.numpy._index_plan import (
    DYNAMIC,
    OUTSIDE,
    is_outside,
    make_plan,
    plans,
    run_steps,
    static_key,
    static_steps,
)
from maxjax.numpy._split_dimensions import refuse_taking

CLIP = GatherScatterMode.CLIP
FILL_OR_DROP = GatherScatterMode.FILL_OR_DROP
PROMISE = GatherScatterMode.PROMISE_IN_BOUNDS


def getitem(x: Array, index: Any) -> Array:
    """``x[index]`` as in JAX: out-of-bounds integers are clipped.

    Differentiable in ``x``.

    Raises:
      IndexError: too many indices, a mask of another shape, or a traced mask or slice bound.
      TypeError: an index is not an integer, slice, mask, None or Ellipsis.
    """
    key = static_key(index)
    if key is not DYNAMIC:
        # Under a transformation fixed slices are slices, which have a rule of their own.
        if x.aval.mesh_spec is not None and not isinstance(x, Tracer):
            refuse_taking(x, parse(x.aval.shape, index))
        plan = plans.get((x.aval.shape, key))
        if plan is None:
            plan = make_plan(x.aval.shape, key)
        if plan is OUTSIDE:
            return take(x, index)
        if x.__class__ is ArrayImpl and x._placement is not None:
            return run_steps(x, plan)
        apply = context.trace.apply
        for primitive, params in plan:
            x = apply(primitive, (x,), params)
        return x
    return take(x, index)


def places_of(part: Slice) -> Array:
    return asarray(part.start) + iota(dtypes.int32, (part.size,), 0) * np.int32(part.stride)


def window(x: Array, dim: int, part: Slice) -> Array:
    """The positions in one dimension: a start is moved so that all are in bounds; with a stride,
    each position is moved separately."""
    if part.stride != 1:
        places = minimum(maximum(places_of(part), np.int32(0)), np.int32(x.shape[dim] - 1))
        return take(x, (ALL,) * dim + (places,), CLIP)
    starts: list[Any] = [0] * x.ndim
    starts[dim] = part.start
    return dynamic_slice(x, starts, (*x.shape[:dim], part.size, *x.shape[dim + 1:]))


def take(x: Array, index: Any, mode: GatherScatterMode | None = None, fill_value: Any = None,
         unique_indices: bool = False, indices_are_sorted: bool = False,
         wrap_negative: bool = True) -> Array:
    """``x[index]`` in a mode: None clips out-of-bounds indices, and promises there are none.

    Raises:
      IndexError: an integer breaks the promise, and ``jax_check_static_indices`` is set.
    """
    checked = mode in (None, PROMISE) and config.check_static_indices.value
    if checked:
        index = tuple([int(part) if isinstance(part, np.integer) else
                       asarray(part) if isinstance(part, np.ndarray) else part      # as if traced
                       for part in as_tuple(index)])
    if has_slices(index) and mode not in (FILL_OR_DROP, GatherScatterMode.ONE_HOT) and not any(
            isinstance(part, list) or getattr(part, "ndim", 0) for part in as_tuple(index)):
        index = tuple([
            slice(part.start, part.start + part.size, part.stride)      # as NumPy cuts it
            if part.__class__ is Slice and isinstance(part.start, int) else part
            for part in as_tuple(index)])
    if has_slices(index):
        if mode in (FILL_OR_DROP, GatherScatterMode.ONE_HOT):
            raise NotImplementedError(f"an index with jax.ds is not filled in mode {mode}: {index}")
        parts, slices = split_off(x, index)
        for _, dim, part in slices:
            x = window(x, dim, part)
        index = tuple(parts)
    x, index = with_flags(x, index)
    entries = parse(x.aval.shape, index, reads=mode in (None, PROMISE))
    fills = mode in (FILL_OR_DROP, GatherScatterMode.ONE_HOT)
    kinds = {entry.kind for entry in entries}
    # Under a transformation fixed slices are slices, which have a rule of their own.
    if x.aval.mesh_spec is not None and (
            not isinstance(x, Tracer) or fills or not kinds <= {"int", "slice", "new"}):
        refuse_taking(x, entries)
    if checked:
        _check_integers(entries, x.aval.shape, wrap_negative)
    shape = x.aval.shape
    outside = mode is not CLIP and any(
        is_outside(entry, shape, wrap_negative) for entry in entries)
    if "array" not in kinds and not fills and ("scalar" in kinds or outside):
        return _take_dynamic(x, entries, wrap_negative)
    if "array" not in kinds and "scalar" not in kinds and not outside:
        return run_steps(x, static_steps(shape, entries, wrap_negative))
    return _take_arrays(x, entries, mode or PROMISE, fill_parameter(fill_value, x.dtype)
                        if fills else None, unique_indices, indices_are_sorted, wrap_negative)


def _check_integers(entries: list[Entry], shape: tuple[int, ...], wrap_negative: bool) -> None:
    for entry in entries:
        if entry.kind == "int" and is_outside(entry, shape, wrap_negative):
            raise IndexError(
                f"index {entry.value} out of bounds for axis {entry.dim} with size "
                f"{shape[entry.dim]} (normalize_indices={wrap_negative})")


def _take_dynamic(x: Array, entries: list[Entry], wrap_negative: bool) -> Array:
    """Scalars, integers, slices and new axes: static slices first, then a dynamic slice."""
    # JAX gives the starts along several dimensions one dtype before it looks at them.
    narrow = place_dtype(*x.aval.shape) if x.ndim > 1 else None
    x = run_steps(x, static_steps(
        x.aval.shape, [entry for entry in entries if entry.kind == "slice"], drop=False))
    places: list[Any] = [np.int32(0)] * x.ndim
    sizes = list(x.aval.shape)
    for entry in entries:
        if entry.kind not in ("int", "scalar"):
            continue
        places[entry.dim] = (
            integer_place(entry, sizes[entry.dim], wrap_negative) if entry.kind == "int" else
            host_or_device(entry.value, sizes[entry.dim], wrap_negative, signed=False,
                           narrow=narrow))
        sizes[entry.dim] = 1
    x = dynamic_slice_p.bind(x, *slice_starts(places, x.aval.shape), slice_sizes=tuple(sizes))
    taken = [Entry("int", 0, entry.dim) if entry.kind in ("int", "scalar") else
             entry if entry.kind == "new" else Entry("slice", slice_range(ALL, sizes[entry.dim]),
                                                             entry.dim)
             for entry in entries]
    return run_steps(x, static_steps(x.aval.shape, taken))


def _take_arrays(x: Array, entries: list[Entry], mode: GatherScatterMode,
                 fill: FillValue | None, unique_indices: bool, indices_are_sorted: bool,
                 wrap_negative: bool) -> Array:
    """The static part of the index first, then one gather along the dimensions of the rest."""
    chosen, common, apart = advanced(entries)
    fills = mode in (FILL_OR_DROP, GatherScatterMode.ONE_HOT)
    shape = x.aval.shape
    # The gather handles integers that may be out of bounds.
    left = [entry for entry in entries if entry.kind == "int" and (
        fills or not shape[entry.dim] or (
            mode is not CLIP and is_outside(entry, shape, wrap_negative)))]
    static = [entry for entry in entries if entry not in left]
    x = run_steps(x, static_steps(shape, static, wrap_negative, drop=False))
    sizes = x.aval.shape
    columns, dims, index_map = [], [], []
    for entry in chosen:
        if entry.kind == "int":
            if entry not in left:
                continue
            column: Any = integer_place(entry, shape[entry.dim], wrap_negative)
        else:
            column = host_or_device(entry.value, sizes[entry.dim], wrap_negative)
        columns.append(column)
        rank = len(column.shape)
        dims.append(range(len(common) - rank, len(common)))
        index_map.append(entry.dim)
    dimensions = layout(entries, common, apart)
    if any(not sizes[entry.dim] for entry in chosen):
        shape = tuple(common[dim] if dim.__class__ is int else
                      1 if dim.kind == "new" else sizes[dim.dim] for dim in dimensions)
        if 0 in shape:      # nothing is taken from an empty dimension
            return full(shape, 0, x.dtype)
    old = [dim for dim in dimensions if dim.__class__ is int or dim.kind != "new"]
    window_dims = tuple(place for place, dim in enumerate(old) if dim.__class__ is not int)
    collapsed = tuple(entry.dim for entry in chosen)
    out = gather_p.bind(
        x, index_vectors(columns, dims, common),
        dimension_numbers=GatherDimensionNumbers(window_dims, collapsed, tuple(index_map)),
        slice_sizes=tuple(1 if dim in collapsed else size for dim, size in enumerate(sizes)),
        mode=mode, fill_value=fill, unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted)
    if len(old) == len(dimensions):
        return out
    sizes_out = iter(out.aval.shape)
    new_shape: list[int] = []
    kept: list[int] = []
    for place, dim in enumerate(dimensions):
        if dim.__class__ is not int and dim.kind == "new":
            new_shape.append(1)
        else:
            kept.append(place)
            new_shape.append(next(sizes_out))
    return broadcast_in_dim(out, tuple(new_shape), tuple(kept))
