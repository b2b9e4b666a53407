"""Slices of static size at computed places; the positions of the true elements of a mask."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.contract import COUNT, SIZES, takes
from maxjax._ir.costs import Cost, XlaCost, bytes_of
from maxjax._ir.linearity import FIRST, Linearity
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Compiled, Host, Sharded
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import BatchAxis, Params, Shape
from maxjax._primitives import costs, fitting
from maxjax._primitives.broadcasting import broadcast_leading, expand_axis
from maxjax._primitives.creation import full, zeros_like
from maxjax._primitives.gather_plan import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    slice_host_reason,
)
from maxjax._primitives.indexing import CLIP, gather_p, scatter_p
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import move_axis, reshape
from maxjax._primitives.rules import FactorRule, axis_factors, is_linear, scalar_like
from maxjax._primitives.sharding import along_batch

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering
    from maxjax._primitives.rules import Linear

# --- dynamic_slice --------------------------------------------------------------------------------
# The start indices are scalar operands of one integer dtype; the slice is moved inside.


def _dynamic_slice_abstract(x: ShapedArray, *starts: ShapedArray, slice_sizes: Shape
                            ) -> ShapedArray:
    if any(size > bound for size, bound in zip(slice_sizes, x.shape, strict=True)):
        raise TypeError(
            "slice slice_sizes must be less than or equal to operand shape, got slice_sizes "
            f"{slice_sizes} for operand shape {x.shape}.")
    if any(size < 0 for size in slice_sizes):
        raise TypeError("slice slice_sizes must be greater than or equal to zero, got slice_sizes "
                        f"of {slice_sizes}.")
    return ShapedArray(slice_sizes, x.dtype, x.weak_type)


def _region(starts: Sequence[Any], sizes: tuple[int, ...], shape: tuple[int, ...]) -> tuple:
    """The slices of a window that has been moved inside."""
    index = []
    for start, size, bound in zip(starts, sizes, shape, strict=True):
        if size == bound:
            index.append(slice(None))
            continue
        first = int(start)
        last = bound - size
        first = 0 if first < 0 else min(first, last)
        index.append(slice(first, first + size))
    return tuple(index)


def _dynamic_slice_jvp(primals: Sequence[Array], tangents: Sequence[Array | None], *,
                       slice_sizes: Shape) -> tuple[Array, Array | None]:
    out = dynamic_slice_p.bind(*primals, slice_sizes=slice_sizes)
    if tangents[0] is None:
        return out, None
    return out, dynamic_slice_p.bind(tangents[0], *primals[1:], slice_sizes=slice_sizes)


def _dynamic_slice_transpose(cotangent: Array, operand: Linear, *starts: Array, slice_sizes: Shape
                             ) -> list[Array | None]:
    # Not the operand's dtype: rules of the user's may give cotangents of another.
    zeros = full(operand.shape, 0, cotangent.dtype)
    return [dynamic_update_slice_p.bind(zeros, cotangent, *starts), *(None for _ in starts)]


def _stacked_starts(starts: Sequence[Array], axes: Sequence[int | None], size: int) -> Array:
    """Scalars, some of them batched, as index vectors of shape (size, rank)."""
    columns = [
        expand_axis(broadcast_leading(start, size) if axis is None else start, 1)
        for start, axis in zip(starts, axes, strict=True)]
    return concatenate(columns, 1)


def _with_zero(starts: Sequence[Array], axis: Any) -> tuple[Array, ...]:
    """The starts with that of a dimension which is taken whole inserted at ``axis``."""
    zero = scalar_like(0, starts[0].dtype if starts else dtypes.int32)
    return (*starts[:axis], zero, *starts[axis:])


def _dynamic_slice_batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis], *,
                         slice_sizes: Shape) -> tuple[Array, BatchAxis]:
    operand, *starts = operands
    axis, *start_axes = axes
    if all(a is None for a in start_axes):
        return dynamic_slice_p.bind(
            operand, *_with_zero(starts, axis),
            slice_sizes=(*slice_sizes[:axis], size, *slice_sizes[axis:])), axis
    indices = _stacked_starts(starts, start_axes, size)
    dims = range(len(slice_sizes))
    shifted = tuple(dim + 1 for dim in dims)
    numbers = GatherDimensionNumbers(shifted, (), tuple(dims))
    if axis is not None:
        if not size:
            return full((0, *slice_sizes), 0, operand.dtype), 0
        operand = move_axis(operand, axis, 0)
        numbers = GatherDimensionNumbers(shifted, (), shifted, (0,), (0,))
        slice_sizes = (1, *slice_sizes)
    # Windows of one array may overlap; those of different arrays do not.
    distinct = axis is not None
    return gather_p.bind(operand, indices, dimension_numbers=numbers, slice_sizes=slice_sizes,
                         mode=CLIP, fill_value=None, unique_indices=distinct,
                         indices_are_sorted=distinct), 0


def _dynamic_slice_specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                              out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any]:
    shape, sizes = in_avals[0].shape, params["slice_sizes"]
    if len(shape) == 1:
        size, last = sizes[0], shape[0] - sizes[0]

        def run(x: np.ndarray, start: np.ndarray) -> np.ndarray:
            first = int(start)
            first = 0 if first < 0 else min(first, last)
            return x[first:first + size]
        return run
    return lambda x, *starts: x[_region(starts, sizes, shape)]


def _dynamic_slice_lowered(x: Array, *starts: Array, slice_sizes: Shape) -> Any:
    """A gather of one window."""
    rank = len(slice_sizes)
    indices = concatenate([reshape(start, (1,)) for start in starts], 0)
    return gather_p.bind(
        x, indices, dimension_numbers=GatherDimensionNumbers(tuple(range(rank)), (),
                                                             tuple(range(rank))),
        slice_sizes=slice_sizes, mode=CLIP, fill_value=None, unique_indices=True,
        indices_are_sorted=True)


def _dynamic_slice_lower(ctx: Lowering, x: object, *starts: object, slice_sizes: Shape) -> Any:
    if not starts or ctx.in_avals[0].shape == slice_sizes:
        return x
    window = ctx.read_window(x, starts, slice_sizes)
    return window if window is not None else ctx.decompose(
        functools.partial(_dynamic_slice_lowered, slice_sizes=slice_sizes), x, *starts)


def _dynamic_slice_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
                           slice_sizes: Shape) -> FactorRule:
    x = in_avals[0]
    cut = [dim for dim, (size, bound) in enumerate(zip(slice_sizes, x.shape, strict=True))
           if size != bound]
    rule = axis_factors([x], out_avals, whole=cut)
    return FactorRule((*rule.operands, *(() for _ in in_avals[1:])), rule.results, rule.sizes,
                      replicated=rule.replicated)


dynamic_slice_p = Primitive(
    "dynamic_slice",
    contract=takes((1, None), fitting.starts(1), slice_sizes=SIZES),
    cost=costs.SLICE, linearity=FIRST,
    sharded=Sharded(shard_params=lambda params, avals, shapes, out: {**params, "slice_sizes": out}),
    abstract=_dynamic_slice_abstract,
    evaluate=lambda x, *starts, slice_sizes: x[_region(starts, slice_sizes, x.shape)],
    host=Host(
        condition=lambda x, *starts, slice_sizes: slice_host_reason(x, slice_sizes),
        specialize=_dynamic_slice_specialize),
    lower=_dynamic_slice_lower,
    jvp=_dynamic_slice_jvp,
    transpose=_dynamic_slice_transpose,
    batch=_dynamic_slice_batch,
    factors=_dynamic_slice_factors,
    compiled=Compiled(takes_complex=dtypes.COMPLEX_WORDS),
)

# --- dynamic_update_slice -------------------------------------------------------------------------


def _dynamic_update_slice_abstract(x: ShapedArray, update: ShapedArray, *starts: ShapedArray
                                   ) -> ShapedArray:
    if update.ndim != x.ndim:
        raise TypeError(
            "dynamic_update_slice update must have the same rank as operand, got update shape "
            f"{update.shape} for operand shape {x.shape}.")
    if any(size > bound for size, bound in zip(update.shape, x.shape, strict=True)):
        raise TypeError(
            "dynamic_update_slice update shape must be smaller than operand shape, got update "
            f"shape {update.shape} for operand shape {x.shape}.")
    return x.strip_weak_type()


def _dynamic_update_slice_evaluate(x: np.ndarray, update: np.ndarray, *starts: np.ndarray,
                                   out: np.ndarray | None = None) -> np.ndarray:
    out = np.array(x) if out is None else out
    out[_region(starts, update.shape, out.shape)] = update
    return out


def _dynamic_update_slice_jvp(primals: Sequence[Array], tangents: Sequence[Array | None]
                              ) -> tuple[Array, Array | None]:
    operand, update, *starts = primals
    tangent, update_tangent = tangents[:2]
    out = dynamic_update_slice_p.bind(*primals)
    if tangent is None and update_tangent is None:
        return out, None
    return out, dynamic_update_slice_p.bind(
        zeros_like(operand) if tangent is None else tangent,
        zeros_like(update) if update_tangent is None else update_tangent, *starts)


def _dynamic_update_slice_transpose(cotangent: Array, operand: Linear, update: Array | Linear,
                                    *starts: Array) -> list[Array | None]:
    result: list[Array | None] = [None] * (2 + len(starts))
    if is_linear(operand):
        zeros = full(update.shape, 0, cotangent.dtype)
        result[0] = dynamic_update_slice_p.bind(cotangent, zeros, *starts)
    if is_linear(update):
        result[1] = dynamic_slice_p.bind(cotangent, *starts, slice_sizes=tuple(update.shape))
    return result


def _dynamic_update_slice_batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis]
                                ) -> tuple[Array, int]:
    operand, update, *starts = operands
    operand, update = (
        along_batch(broadcast_leading(value, size), 0) if axis is None
        else move_axis(value, axis, 0) for value, axis in ((operand, axes[0]), (update, axes[1])))
    if all(axis is None for axis in axes[2:]):
        return dynamic_update_slice_p.bind(operand, update, *_with_zero(tuple(starts), 0)), 0
    if not size:
        return operand, 0
    dims = tuple(range(1, len(starts) + 1))
    return scatter_p.bind(
        operand, _stacked_starts(starts, axes[2:], size), update,
        dimension_numbers=ScatterDimensionNumbers(dims, (), dims, (0,), (0,)), mode=CLIP,
        unique_indices=True, indices_are_sorted=True), 0


def _dynamic_update_slice_lowered(x: Array, update: Array, *starts: Array) -> Any:
    """A scatter of one window."""
    rank = len(starts)
    indices = concatenate([reshape(start, (1,)) for start in starts], 0)
    dims = tuple(range(rank))
    return scatter_p.bind(
        x, indices, update, dimension_numbers=ScatterDimensionNumbers(dims, (), dims), mode=CLIP,
        unique_indices=True, indices_are_sorted=True)


def _dynamic_update_slice_lower(ctx: Lowering, x: object, update: object, *starts: object) -> Any:
    if ctx.in_avals[0].shape == ctx.in_avals[1].shape:
        return update
    written = ctx.write_window(x, update, starts)
    return written if written is not None else ctx.decompose(
        _dynamic_update_slice_lowered, x, update, *starts)


def _dynamic_update_slice_factors(in_avals: Sequence[ShapedArray],
                                  out_avals: Sequence[ShapedArray]) -> FactorRule:
    x, update = in_avals[:2]
    dims = range(x.ndim)
    cut = [dim for dim in dims if x.shape[dim] != update.shape[dim]]
    whole = {dim: x.shape[dim] for dim in dims}
    part = {f"update{dim}": update.shape[dim] for dim in cut}
    x_dims = tuple((dim,) for dim in dims)
    update_dims = tuple((f"update{dim}",) if dim in cut else (dim,) for dim in dims)
    return FactorRule((x_dims, update_dims, *(() for _ in in_avals[2:])), (x_dims,),
                      {**whole, **part}, replicated=frozenset({*cut, *part}))


_UPDATE_COST = XlaCost(moved=lambda ins, outs, params: 2 * bytes_of(ins[1:2]), alone=True)

dynamic_update_slice_p = Primitive(
    "dynamic_update_slice",
    contract=takes((2, None), fitting.starts(2), fitting.alike(0, 1)),
    cost=Cost(flops=costs.no_flops, xla=_UPDATE_COST),
    linearity=Linearity(slice(2)), sharded=Sharded(passes_unreduced=slice(2)),
    abstract=_dynamic_update_slice_abstract,
    evaluate=_dynamic_update_slice_evaluate,
    host=Host(condition=lambda x, update, *starts: slice_host_reason(x, update.shape),
              updates=True),
    lower=_dynamic_update_slice_lower,
    jvp=_dynamic_update_slice_jvp,
    transpose=_dynamic_update_slice_transpose,
    batch=_dynamic_update_slice_batch,
    factors=_dynamic_update_slice_factors,
)

# --- true_positions -------------------------------------------------------------------------------
# What jnp.nonzero with a size consists of.


def _true_positions_evaluate(mask: np.ndarray, *, size: int) -> np.ndarray:
    mask = np.asarray(mask)
    length = mask.shape[-1]
    flat = mask.reshape(-1, length)
    out = np.full((flat.shape[0], size), length, np.int32)
    for line, found in zip(flat, out, strict=True):
        places = np.flatnonzero(line)[:size]
        found[:len(places)] = places
    return out.reshape(*mask.shape[:-1], size)


def _true_positions_lower(ctx: Lowering, mask: np.ndarray, *, size: int) -> Any:
    """Each true element goes to the place that the number of true ones before it says."""
    shape = ctx.in_avals[0].shape
    length = shape[-1]
    lines = ctx.in_avals[0].size // max(length, 1)
    out = ctx.full((lines * size, 1), length, dtypes.int32)
    if not lines * size or not length:
        return ctx.reshape(out, (*shape[:-1], size))
    numbers = ctx.convert(ctx.reshape(mask, (lines, length)), dtypes.int32)
    place = ctx.native("sub", ctx.cumulative("sum", numbers, 1, False), ctx.scalar(1, numbers))
    inside = ctx.native("lt", place, ctx.scalar(size, place))
    place = ctx.native("add", place, ctx.native(
        "mul", ctx.iota(dtypes.int32, (lines, length), 0), ctx.scalar(size, place)))
    dropped = ctx.full_like(place, lines * size)
    rows = ctx.select(ctx.reshape(mask, (lines, length)), [dropped, place])
    rows = ctx.select(inside, [dropped, rows])
    columns = ctx.iota(dtypes.int32, (lines, length), 1)
    out = ctx.scatter_rows("set", out, ctx.reshape(rows, (lines * length,)),
                           ctx.reshape(columns, (lines * length, 1)))
    return ctx.reshape(out, (*shape[:-1], size))


def _true_positions_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
                            size: int) -> FactorRule:
    ahead = tuple((dim,) for dim in range(in_avals[0].ndim - 1))
    sizes = dict(enumerate(in_avals[0].shape[:-1]))
    return FactorRule(((*ahead, ("line",)),), ((*ahead, ("found",)),),
                      {**sizes, "line": in_avals[0].shape[-1], "found": size},
                      replicated=frozenset({"line", "found"}))


# Where a mask of shape (..., n) is true: int32 (..., size), ascending, filled up with n.
true_positions_p = Primitive(
    "true_positions",
    contract=takes(
        1, fitting.ranks(1), fitting.of_dtypes("of booleans", dtypes.is_bool), size=COUNT),
    abstract=lambda mask, *, size: ShapedArray((*mask.shape[:-1], size), dtypes.int32),
    evaluate=_true_positions_evaluate,
    lower=_true_positions_lower,
    jvp=lambda primals, tangents, *, size: (true_positions_p.bind(*primals, size=size), None),
    batch=lambda batch_size, operands, axes, *, size: (
        true_positions_p.bind(move_axis(operands[0], axes[0], 0), size=size), 0),
    factors=_true_positions_factors,
)


