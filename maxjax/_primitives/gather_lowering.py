"""Gather and scatter lowered: index arithmetic around ``take_rows`` and ``scatter_rows``.

A scatter of one window, where the backend has windows, reads it and writes it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.trace import Array
from maxjax._ir.typing import Shape, Value
from maxjax._primitives.arithmetic import add, maximum, minimum, mul
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.comparison import and_p, ge, le_p, select
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full, iota, zeros_like
from maxjax._primitives.gather_plan import (
    FillValue,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    WindowPlan,
    fill_scalar,
    fills_outside,
    gather_plan,
    scatter_plan,
    window_sizes,
)
from maxjax._primitives.layout import reshape, transpose
from maxjax._primitives.rows import scatter_rows_p, take_rows_p
from maxjax._primitives.rules import scalar_like
from maxjax._primitives.slicing import slice_in_dim

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering

Combine = Callable[[Value, Value], Array]

# --- which rows, and which windows are inside -----------------------------------------------------


def _lowered_rows(plan: WindowPlan, indices: Array) -> Any:
    """``WindowPlan.rows`` as operations, in int32."""
    total = None
    for position, limit, stride in plan.columns:
        start = slice_in_dim(indices, position, position + 1, len(indices.shape) - 1)
        start = _int32_within(reshape(start, plan.batch), limit)
        if stride != 1:
            start = mul(start, np.int32(stride))
        total = start if total is None else add(total, start)
    for dim, stride in plan.batching:
        line = mul(iota(dtypes.int32, plan.batch, dim), np.int32(stride))
        total = line if total is None else add(total, line)
    if total is None:
        total = full(plan.batch, 0, dtypes.int32)
    if plan.offsets.size > 1:
        shape = (*plan.batch, *plan.window)
        ahead = len(plan.batch)
        total = add(broadcast_in_dim(total, shape, range(ahead)),
                    broadcast_in_dim(plan.offsets.astype(np.int32), shape,
                                     range(ahead, len(shape))))
    return reshape(total, (plan.count,))


def _int32_within(start: Array, limit: int) -> Any:
    """``start`` moved into [0, limit], as int32; clipped before narrowing, widened before that."""
    dtype = start.dtype
    if dtype.itemsize < 4:
        start = convert_element_type(start, dtypes.int32)
    start = minimum(start, scalar_like(limit, start.dtype))
    if not dtypes.is_unsigned(start.dtype):
        start = maximum(start, scalar_like(0, start.dtype))
    return convert_element_type(start, dtypes.int32)


def _lowered_inside(plan: WindowPlan, indices: Array) -> Any:
    """``WindowPlan.inside`` as operations."""
    if indices.dtype.itemsize < 4:
        indices = convert_element_type(indices, dtypes.int32)
    inside = None
    for position, limit in enumerate(plan.limits):
        start = reshape(slice_in_dim(indices, position, position + 1, len(indices.shape) - 1),
                        plan.batch)
        good = and_p.bind(ge(start, scalar_like(0, start.dtype)),
                          le_p.bind(start, scalar_like(limit, start.dtype)))
        inside = good if inside is None else and_p.bind(inside, good)
    return full(plan.batch, True, dtypes.bool_) if inside is None else inside


# --- gather ---------------------------------------------------------------------------------------


def _gather_lowered(x: Array, indices: Array, *, dimension_numbers: GatherDimensionNumbers,
                    slice_sizes: Shape, mode: GatherScatterMode, fill_value: FillValue | None,
                    **params: object) -> Any:
    plan = gather_plan(x.shape, indices.shape, dimension_numbers, slice_sizes)
    if 0 in slice_sizes:
        x = zeros_like(x)
    taken = take_rows_p.bind(reshape(x, plan.view), _lowered_rows(plan, indices))
    parts = (*plan.leading, *plan.batch, *plan.window, *plan.trailing)
    out = transpose(reshape(taken, parts), plan.order)
    if not fills_outside(mode):
        return out
    batch_dims = [dim for dim in range(len(out.shape))
                  if dim not in dimension_numbers.offset_dims]
    inside = broadcast_in_dim(_lowered_inside(plan, indices), out.shape, batch_dims)
    fill = full(out.shape, fill_scalar(x.dtype, mode, fill_value), x.dtype)
    return select(inside, fill, out)


def gather(ctx: Lowering, x: object, indices: object, **params: Any) -> Any:
    if 0 in ctx.out_avals[0].shape:
        out = ctx.out_avals[0]
        return ctx.full(out.shape, 0, out.dtype)
    return ctx.decompose(functools.partial(_gather_lowered, **params), x, indices)


# --- scatter --------------------------------------------------------------------------------------


def _scatter_lowered(x: Array, indices: Array, updates: Array, *, kind: str,
                     dimension_numbers: ScatterDimensionNumbers, mode: GatherScatterMode,
                     **params: object) -> Any:
    plan = scatter_plan(x.shape, indices.shape, updates.shape, dimension_numbers)
    _, height, width = plan.view
    rows = _lowered_rows(plan, indices)
    if mode is not GatherScatterMode.CLIP:
        inside = broadcast_in_dim(_lowered_inside(plan, indices), (*plan.batch, *plan.window),
                                  range(len(plan.batch)))
        rows = select(reshape(inside, (plan.count,)), full((plan.count,), height, dtypes.int32),
                      rows)
    updates = reshape(transpose(updates, plan.inverse), (plan.count, width))
    out = scatter_rows_p.bind(reshape(x, (height, width)), rows, updates, kind=kind)
    return reshape(out, x.shape)


def _window_starts(indices: Array, *, dims: Sequence[int], rank: int) -> tuple[Any, ...]:
    """Where the only window of a scatter begins, along each dimension of the operand."""
    indices = reshape(indices, (len(dims),))
    zero = scalar_like(0, indices.dtype)
    return tuple([reshape(slice_in_dim(indices, dims.index(dim), dims.index(dim) + 1, 0), ())
                  if dim in dims else zero for dim in range(rank)])


def _window_written(x: Array, indices: Array, updates: Array, *, combine: Combine | None,
                    drops: bool, plan: WindowPlan) -> Any:
    """What a scatter's only window holds afterwards; ``x``: what it holds before."""
    updates = reshape(updates, x.shape)
    if combine is not None:
        updates = combine(x, updates)
    return select(reshape(_lowered_inside(plan, indices), ()), x, updates) if drops else updates


def _scattered_window(ctx: Lowering, x: object, indices: object, updates: object, *,
                      combine: Combine | None, dimension_numbers: ScatterDimensionNumbers,
                      mode: GatherScatterMode, **params: object) -> Any:
    """A scatter of one window of many short rows, as a window that is read and written; None where
    it is another, or where the backend has no windows."""
    shape, *others = (aval.shape for aval in ctx.in_avals)
    plan = scatter_plan(shape, *others, dimension_numbers)
    if math.prod(plan.batch) > 1 or plan.count == 1:
        return None
    starts = ctx.decompose(functools.partial(
        _window_starts, dims=tuple(dimension_numbers.scatter_dims_to_operand_dims),
        rank=len(shape)), indices)
    before = ctx.read_window(x, starts, window_sizes(shape, others[1], dimension_numbers))
    if before is None:
        return None
    written = functools.partial(
        _window_written, combine=combine, drops=mode is not GatherScatterMode.CLIP, plan=plan)
    return ctx.write_window(x, ctx.decompose(written, before, indices, updates), starts)


def scatter(kind: str, combine: Combine | None):
    """The lowering of a scatter; ``combine``: of what is there and an update, if it is not set."""
    def lower(ctx: Lowering, x: object, indices: object, updates: object, **params: Any) -> Any:
        if any(not aval.size for aval in ctx.in_avals[::2]):
            return x
        if kind == "sub":
            updates = ctx.native("neg", updates)
        name = "add" if kind == "sub" else kind
        window = _scattered_window(ctx, x, indices, updates, combine=combine, **params)
        return window if window is not None else ctx.decompose(
            functools.partial(_scatter_lowered, kind=name, **params), x, indices, updates)
    return lower
