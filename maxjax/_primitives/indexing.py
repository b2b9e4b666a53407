"""Primitives that read and write windows of arrays at computed places: gather and scatter.

On the host, both are one NumPy call on rows (see ``gather_plan``); lowered, they are index
arithmetic around ``take_rows`` and ``scatter_rows`` (``gather_lowering``), all that a backend must
know.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.contract import FLAG, SIZES, Kind, instance, numbered, optional, takes
from maxjax._ir.costs import Avals, Cost, Roofline, XlaCost, bytes_of
from maxjax._ir.linearity import Linearity, reduced_first
from maxjax._ir.primitive import Primitive, mesh_rules
from maxjax._ir.rule_groups import Host, Sharded
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import BatchAxis, Params, Shape, Value
from maxjax._primitives import costs, fitting, gather_lowering, split_rows
from maxjax._primitives.arithmetic import add, div, maximum, minimum, mul, neg
from maxjax._primitives.broadcasting import broadcast_leading
from maxjax._primitives.builders import add_tangents
from maxjax._primitives.comparison import eq, select
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full, iota, zeros_like
from maxjax._primitives.gather_plan import (
    FillValue,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    check_gather,
    check_scatter,
    fill_scalar,
    fills_outside,
    gather_plan,
    host_reason,
    scatter_plan,
    window_factors,
    window_sizes,
)
from maxjax._primitives.layout import move_axis, reshape
from maxjax._primitives.rows import write_rows
from maxjax._primitives.rules import (
    FactorRule,
    OnShard,
    is_linear,
    of_numbers,
    scalar_like,
)

if TYPE_CHECKING:
    from maxjax._primitives.rules import Linear

CLIP = GatherScatterMode.CLIP
FILL_OR_DROP = GatherScatterMode.FILL_OR_DROP
INDICES = (*dtypes.INTS, *dtypes.SMALL_INTS)

# --- gather ---------------------------------------------------------------------------------------


def _gather_abstract(x: ShapedArray, indices: ShapedArray, *,
                     dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
                     **params: object) -> ShapedArray:
    check_gather(x, indices, dimension_numbers, slice_sizes)
    numbers = dimension_numbers
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    window = iter([size for dim, size in enumerate(slice_sizes) if dim not in dropped])
    batch = iter(indices.shape[:-1])
    rank = len(indices.shape) - 1 + len(numbers.offset_dims)
    shape = tuple(next(window) if dim in numbers.offset_dims else next(batch)
                  for dim in range(rank))
    return ShapedArray(shape, x.dtype, x.weak_type)


def _gather_specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                       out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any]:
    x_aval, indices_aval = in_avals
    plan = gather_plan(x_aval.shape, indices_aval.shape, params["dimension_numbers"],
                       params["slice_sizes"])
    mode = params["mode"]
    shape = out_avals[0].shape
    fill = fill_scalar(x_aval.dtype, mode, params["fill_value"]) if fills_outside(mode) else None
    parts = (*plan.leading, *plan.batch, *plan.window, *plan.trailing)
    view, order, whole, count = plan.view, plan.order, plan.whole, plan.count
    take = np.take
    # One component that chooses among all rows is clipped by `take` itself.
    single = (len(plan.columns) == 1 and not plan.batching and plan.offsets.size == 1
              and plan.columns[0][1:] == (plan.view[1] - 1, 1)
              and indices_aval.dtype != dtypes.uint64)
    column = plan.columns[0][0] if plan.columns else 0
    batch_dims = [dim for dim in range(len(shape))
                  if dim not in params["dimension_numbers"].offset_dims]
    aligned = [plan.batch[batch_dims.index(dim)] if dim in batch_dims else 1
               for dim in range(len(shape))]
    if 0 in shape:
        empty = np.zeros(shape, dtypes.physical(x_aval.dtype))
        return lambda x, indices: empty

    def run(x: np.ndarray, indices: np.ndarray) -> np.ndarray:
        if single:
            rows = (indices if indices.shape[-1] == 1 else indices[..., column]).reshape(count)
            out = take(np.asarray(x).reshape(view), rows, 1, None, "clip")
        else:
            out = take(np.asarray(x).reshape(view), plan.rows(indices).reshape(count), 1)
        out = out.reshape(parts)
        if not whole:
            out = out.transpose(order)
        if fill is not None:
            inside = plan.inside(indices)
            if inside is not None:
                out = np.where(inside.reshape(aligned), out, fill)
        return out

    if 0 in params["slice_sizes"]:      # of a dimension that goes along: nothing is read
        return lambda x, indices: run(np.zeros_like(x), indices)
    return run


def _gather_evaluate(x: np.ndarray, indices: np.ndarray, **params: Any) -> Any:
    x_aval = ShapedArray(x.shape, x.dtype)
    indices_aval = ShapedArray(indices.shape, indices.dtype)
    out = _gather_abstract(x_aval, indices_aval, **params)
    return _gather_specialize((x_aval, indices_aval), params, (out,))(x, indices)


def _gather_jvp(primals: Sequence[Array], tangents: Sequence[Array | None], *,
                fill_value: FillValue | None, **params: Any) -> tuple[Array, Array | None]:
    out = gather_p.bind(*primals, fill_value=fill_value, **params)
    if tangents[0] is None:
        return out, None
    return out, gather_p.bind(tangents[0], primals[1],
                              **{**params, "fill_value": _zero_fill(out.dtype, params["mode"])})


def _zero_fill(dtype: np.dtype, mode: GatherScatterMode) -> FillValue | None:
    """The fill value of a tangent: the fill does not depend on the operand."""
    return FillValue.of(scalar_like(0, dtype)) if fills_outside(mode) else None


def gather_to_scatter(numbers: GatherDimensionNumbers) -> ScatterDimensionNumbers:
    """The numbers of the scatter that writes where a gather reads."""
    return ScatterDimensionNumbers(
        numbers.offset_dims, numbers.collapsed_slice_dims, numbers.start_index_map,
        numbers.operand_batching_dims, numbers.start_indices_batching_dims)


def scatter_to_gather(numbers: ScatterDimensionNumbers) -> GatherDimensionNumbers:
    """The numbers of the gather that reads where a scatter writes."""
    return GatherDimensionNumbers(*map(tuple, numbers))


def _gather_transpose(cotangent: Array, operand: Linear, indices: Array, *,
                      dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
                      mode: GatherScatterMode, fill_value: FillValue | None, unique_indices: bool,
                      indices_are_sorted: bool) -> list[Array | None]:
    # Not the operand's dtype: rules of the user's may give cotangents of another.
    zeros = full(operand.shape, 0, cotangent.dtype)
    if operand.aval.mesh_spec is not None and operand.aval.mesh_spec[1].reduced:
        zeros = mesh_rules.as_cotangent(zeros, operand.aval)
    return [scatter_add_p.bind(
        zeros, indices, cotangent, dimension_numbers=gather_to_scatter(dimension_numbers),
        mode=mode, unique_indices=unique_indices, indices_are_sorted=indices_are_sorted), None]


def _up(dims: Sequence[int]) -> tuple[int, ...]:
    return tuple(dim + 1 for dim in dims)


def _gather_batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis], *,
                  dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape, **params: object
                  ) -> tuple[Array, int]:
    (operand, indices), (axis, indices_axis) = operands, axes
    numbers = dimension_numbers
    offset_dims = _up(numbers.offset_dims)
    collapsed, index_map = numbers.collapsed_slice_dims, numbers.start_index_map
    batching, along = numbers.operand_batching_dims, numbers.start_indices_batching_dims
    if axis is not None:
        operand = move_axis(operand, axis, 0)
        collapsed, index_map, batching = _up(collapsed), _up(index_map), _up(batching)
    if indices_axis is not None:
        indices = move_axis(indices, indices_axis, 0)
        along = _up(along)
    if axis is None:
        # Rows that are distinct or sorted in each example need not be so over all of them.
        sizes = slice_sizes
        params = {**params, "unique_indices": False, "indices_are_sorted": False}
    elif indices_axis is None:
        sizes, offset_dims = (size, *slice_sizes), (0, *offset_dims)
    elif not size:
        found: Any = gather_p.abstract(
            ShapedArray(operand.shape[1:], operand.dtype),
            ShapedArray(indices.shape[1:], indices.dtype), dimension_numbers=numbers,
            slice_sizes=slice_sizes)
        return full((0, *found.shape), 0, operand.dtype), 0
    else:
        sizes, batching, along = (1, *slice_sizes), (0, *batching), (0, *along)
    return gather_p.bind(
        operand, indices, slice_sizes=sizes, dimension_numbers=GatherDimensionNumbers(
            offset_dims, collapsed, index_map, batching, along), **params), 0


def _gather_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
                    dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape,
                    **params: object) -> FactorRule:
    numbers = dimension_numbers
    x, index = in_avals
    operand, indices, out, sizes, replicated = window_factors(
        x, index, out_avals[0], numbers.offset_dims, numbers.collapsed_slice_dims,
        numbers.operand_batching_dims, numbers.start_indices_batching_dims, slice_sizes)
    return FactorRule((operand, indices), (out,), sizes, replicated=replicated)


def _fills_with_sum(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
                    params: Params) -> bool:
    """Whether the fill value is a sum of itself: NaN or 0."""
    fill = params["fill_value"]
    if fill is not None:
        return bool(fill.value == 0)
    return dtypes.is_inexact(out_avals[0].dtype)


def _gather_on_shard(params: Params, in_avals: Sequence[ShapedArray], shapes: Sequence[Shape],
                     out: Shape) -> Any:
    sizes = tuple(here if size == whole else size for size, here, whole in zip(
        params["slice_sizes"], shapes[0], in_avals[0].shape, strict=True))
    batching = params["dimension_numbers"].operand_batching_dims
    return {**params, "slice_sizes": tuple(
        1 if dim in batching else size for dim, size in enumerate(sizes))}


_GATHER_COST = XlaCost(
    moved=lambda ins, outs, params: 2 * bytes_of(outs) + bytes_of(ins[1:2]))


def _roofline_flops(ins: Avals, outs: Avals, params: Params) -> float:
    """Indices out of range are looked for where something is filled in."""
    fills = params["mode"] is GatherScatterMode.FILL_OR_DROP
    return 4 * ins[1].size + outs[0].size if fills else 0


_GATHER_ROOFLINE = Roofline(_roofline_flops, lambda ins, outs: [outs[0], outs[0], ins[1]])

gather_p = Primitive(
    "gather",
    contract=takes(
        2, fitting.indices(1), fitting.fills, dimension_numbers=numbered(GatherDimensionNumbers),
        slice_sizes=SIZES, mode=instance(GatherScatterMode), fill_value=optional(
            Kind("a scalar", lambda value, avals: type(value) is FillValue)),
        unique_indices=FLAG, indices_are_sorted=FLAG),
    cost=Cost(costs.no_flops, _GATHER_COST, _GATHER_ROOFLINE),
    sharded=Sharded(_gather_on_shard, OnShard(
        split_rows.gather, factors=split_rows.gather_factors)),
    linearity=Linearity(slice(1), each=True, unreduced=_fills_with_sum),
    abstract=_gather_abstract,
    evaluate=_gather_evaluate,
    host=Host(condition=host_reason, specialize=_gather_specialize),
    lower=gather_lowering.gather,
    jvp=_gather_jvp,
    transpose=_gather_transpose,
    batch=_gather_batch,
    factors=_gather_factors,
)

# --- scatter --------------------------------------------------------------------------------------


def _scatter_abstract(x: ShapedArray, indices: ShapedArray, updates: ShapedArray, *,
                      dimension_numbers: ScatterDimensionNumbers, **params: object) -> ShapedArray:
    check_scatter(x, indices, updates, dimension_numbers)
    return x


def _scatter_evaluate(kind: str):
    def evaluate(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *,
                 dimension_numbers: ScatterDimensionNumbers, mode: GatherScatterMode,
                 unique_indices: bool, indices_are_sorted: bool,
                 out: np.ndarray | None = None) -> np.ndarray:
        x = np.asarray(x)
        if out is None or not out.flags.c_contiguous:
            out = np.array(x, order="C")
        if not updates.size or not x.size:
            return out
        plan = scatter_plan(x.shape, indices.shape, updates.shape, dimension_numbers)
        updates = np.asarray(updates)
        if not plan.whole:
            updates = updates.transpose(plan.inverse)
        _, height, width = plan.view
        updates = updates.reshape(plan.count, width)
        rows = plan.rows(indices)
        if mode is not CLIP:
            inside = plan.inside(indices)
            if inside is not None:
                kept = np.broadcast_to(
                    inside.reshape((*inside.shape, *(1,) * len(plan.window))),
                    rows.shape).reshape(-1)
                rows, updates = rows.reshape(-1)[kept], updates[kept]
        write_rows(out.reshape(height, width), rows.reshape(-1), updates, kind,
                    unique_indices or plan.count == 1)
        return out
    return evaluate


def _scatter_batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis], *,
                   primitive: Primitive, dimension_numbers: ScatterDimensionNumbers,
                   **params: object) -> tuple[Array, int]:
    operand, indices, updates = operands
    numbers = dimension_numbers
    operand, updates = (
        broadcast_leading(value, size) if axis is None else move_axis(value, axis, 0)
        for value, axis in ((operand, axes[0]), (updates, axes[2])))
    window_dims = _up(numbers.update_window_dims)
    batching = _up(numbers.operand_batching_dims)
    along = numbers.scatter_indices_batching_dims
    if axes[1] is None:
        window_dims = (0, *window_dims)
    else:
        if not size:
            return operand, 0
        indices = move_axis(indices, axes[1], 0)
        batching, along = (0, *batching), (0, *_up(along))
    numbers = ScatterDimensionNumbers(
        window_dims, _up(numbers.inserted_window_dims), _up(numbers.scatter_dims_to_operand_dims),
        batching, along)
    return primitive.bind(operand, indices, updates, dimension_numbers=numbers, **params), 0


def _scatter_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
                     dimension_numbers: ScatterDimensionNumbers, **params: object) -> FactorRule:
    operand, indices, updates = in_avals
    numbers = dimension_numbers
    dims = window_factors(
        operand, indices, updates, numbers.update_window_dims, numbers.inserted_window_dims,
        numbers.operand_batching_dims, numbers.scatter_indices_batching_dims,
        window_sizes(operand.shape, updates.shape, numbers), extra=("updates",))
    return FactorRule(dims[:3], (dims[0],), dims[3], replicated=dims[4])


def _scatter(name: str, kind: str, jvp: Callable[..., Any],
             transpose: Callable[..., Any] | None = None,
             linearity: Linearity | None = None, combine: str | None = None,
             cost: Cost = costs.SCATTER, *,
             update: Callable[[Value, Value], Array] | None = None) -> Primitive:
    """``combine``: how the results of some of the updates combine with those of others; ``update``:
    what one makes of what is there, if it does not take its place."""
    primitive = Primitive(
        name,
        contract=takes(
            3, fitting.indices(1), fitting.alike(0, 2), *([] if kind == "set" else [
                fitting.NO_KEYS]), dimension_numbers=numbered(ScatterDimensionNumbers),
            mode=instance(GatherScatterMode), unique_indices=FLAG, indices_are_sorted=FLAG),
        abstract=_scatter_abstract if kind == "set" else of_numbers(name, _scatter_abstract),
        evaluate=_scatter_evaluate(kind),
        host=Host(condition=host_reason, updates=True),
        lower=gather_lowering.scatter(kind, update),
        jvp=jvp,
        transpose=transpose,
        linearity=linearity,
        sharded=Sharded(on_shard=OnShard(
            functools.partial(split_rows.scatter, combine=combine),
            factors=functools.partial(split_rows.scatter_factors, combine=combine))),
        batch=lambda size, operands, axes, **params: _scatter_batch(
            size, operands, axes, primitive=primitive, **params),
        factors=_scatter_factors,
        cost=cost,
    )
    return primitive


def _gather_updates(x: Value, indices: Value, updates_shape: Shape, *,
                    dimension_numbers: ScatterDimensionNumbers, mode: GatherScatterMode,
                    unique_indices: bool, indices_are_sorted: bool) -> Array:
    """The values where a scatter writes; zero where it drops."""
    return gather_p.bind(
        x, indices, dimension_numbers=scatter_to_gather(dimension_numbers),
        slice_sizes=window_sizes(x.shape, updates_shape, dimension_numbers), mode=mode,
        fill_value=_zero_fill(x.dtype, mode) if dtypes.is_inexact(x.dtype) else None,
        unique_indices=unique_indices, indices_are_sorted=indices_are_sorted)


def _scatter_set_jvp(primals: Sequence[Array], tangents: Sequence[Array | None], **params: Any
                     ) -> tuple[Array, Array | None]:
    operand, indices, updates = primals
    tangent, _, update_tangent = tangents
    out = scatter_p.bind(*primals, **params)
    if tangent is None and update_tangent is None:
        return out, None
    if params["unique_indices"] or update_tangent is None:
        if update_tangent is None:
            update_tangent = zeros_like(updates)
        if tangent is None:
            tangent = zeros_like(operand)
        return out, scatter_p.bind(tangent, indices, update_tangent, **params)
    # Where several updates write one element, only the last one counts. To find it, the updates are
    # numbered: the numbers that a scatter of them leaves are those that count.
    count = math.prod(updates.shape)
    numbers = reshape(iota(dtypes.int32, (count,), 0), updates.shape)
    left = scatter_p.bind(full(operand.shape, -1, dtypes.int32), indices, numbers, **params)
    won = eq(_gather_updates(left, indices, updates.shape, **params), numbers)
    update_tangent = select(won, zeros_like(updates), update_tangent)
    if tangent is None:
        tangent = zeros_like(operand)
    else:
        tangent = scatter_p.bind(tangent, indices, zeros_like(updates), **params)
    return out, scatter_add_p.bind(tangent, indices, update_tangent, **params)


def _scatter_set_transpose(cotangent: Array, operand: Linear, indices: Array,
                           updates: Array | Linear, **params: Any) -> list[Array | None]:
    # Linear in both only if indices are unique; in the operand alone where updates are zeros.
    result: list[Array | None] = [None, None, None]
    if is_linear(operand):
        zeros = full(updates.shape, 0, cotangent.dtype)
        result[0] = scatter_p.bind(cotangent, indices, zeros, **params)
    if is_linear(updates):
        result[2] = _gather_updates(cotangent, indices, updates.shape, **params)
    return result


def _scatter_sum_jvp(primals: Sequence[Array], tangents: Sequence[Array | None], *,
                     primitive: Primitive, **params: object) -> tuple[Array, Array | None]:
    operand, indices, updates = primals
    tangent, _, update_tangent = tangents
    out = primitive.bind(*primals, **params)
    if update_tangent is None:
        return out, tangent
    if tangent is None:
        tangent = zeros_like(operand)
    return out, primitive.bind(tangent, indices, update_tangent, **params)


def _scatter_sum_transpose(cotangent: Array, operand: Array | Linear, indices: Array,
                           updates: Linear, *, sign: int, **params: Any) -> list[Array | None]:
    update_cotangent = None
    if is_linear(updates):
        update_cotangent = _gather_updates(cotangent, indices, updates.shape, **params)
        if sign < 0:
            update_cotangent = neg(update_cotangent)
    return [cotangent if is_linear(operand) else None, None, update_cotangent]


def _scatter_mul_jvp(primals: Sequence[Array], tangents: Sequence[Array | None], **params: object
                     ) -> tuple[Array, Array | None]:
    operand, indices, updates = primals
    tangent, _, update_tangent = tangents
    out = scatter_mul_p.bind(*primals, **params)
    if tangent is not None:
        tangent = scatter_mul_p.bind(tangent, indices, updates, **params)
    if update_tangent is not None:
        if not params["unique_indices"]:
            raise NotImplementedError(
                "scatter_mul gradients are only implemented if `unique_indices=True`")
        term = mul(operand, scatter_add_p.bind(
            zeros_like(operand), indices, update_tangent, **params))
        tangent = add_tangents(tangent, term)
    return out, tangent


def _scatter_mul_transpose(cotangent: Array, operand: Linear, indices: Array, updates: Array,
                           **params: object) -> list[Array | None]:
    return [scatter_mul_p.bind(cotangent, indices, updates, **params), None, None]


def _scatter_extremum_jvp(primals: Sequence[Array], tangents: Sequence[Array | None], *,
                          primitive: Primitive, **params: Any) -> tuple[Array, Array | None]:
    """The tangent of the chosen value; the mean where several are equal."""
    operand, indices, updates = primals
    tangent, _, update_tangent = tangents
    out = primitive.bind(*primals, **params)
    if tangent is None and update_tangent is None:
        return out, None
    dtype = out.dtype
    kept = convert_element_type(eq(operand, out), dtype)
    chosen = convert_element_type(
        eq(_gather_updates(out, indices, updates.shape, **params), updates), dtype)
    ties = scatter_add_p.bind(kept, indices, chosen, **params)
    total = zeros_like(operand) if tangent is None else mul(tangent, kept)
    if update_tangent is not None:
        total = scatter_add_p.bind(total, indices, mul(update_tangent, chosen), **params)
    return out, div(total, ties)


# Operand and updates.
_SUM = Linearity(slice(0, None, 2), unreduced=reduced_first)
_PRODUCT = Linearity(slice(0, None, 2), each=True, unreduced=reduced_first)

scatter_p = _scatter("scatter", "set", _scatter_set_jvp, _scatter_set_transpose, _SUM,
                     cost=costs.SCATTER_UNCOMBINED)
scatter_add_p = _scatter(
    "scatter-add", "add",
    lambda primals, tangents, **params: _scatter_sum_jvp(
        primals, tangents, primitive=scatter_add_p, **params),
    functools.partial(_scatter_sum_transpose, sign=1), _SUM, "add", cost=costs.SCATTER_ALONE,
    update=add)
scatter_sub_p = _scatter(
    "scatter-sub", "sub",
    lambda primals, tangents, **params: _scatter_sum_jvp(
        primals, tangents, primitive=scatter_sub_p, **params),
    functools.partial(_scatter_sum_transpose, sign=-1), _SUM, "add", update=add)
scatter_mul_p = _scatter(
    "scatter-mul", "mul", _scatter_mul_jvp, _scatter_mul_transpose, _PRODUCT, update=mul)
scatter_min_p = _scatter(
    "scatter-min", "min", lambda primals, tangents, **params: _scatter_extremum_jvp(
        primals, tangents, primitive=scatter_min_p, **params), combine="min",
    update=minimum)
scatter_max_p = _scatter(
    "scatter-max", "max", lambda primals, tangents, **params: _scatter_extremum_jvp(
        primals, tangents, primitive=scatter_max_p, **params), combine="max",
    update=maximum)
SCATTERS = (scatter_p, scatter_add_p, scatter_sub_p, scatter_mul_p, scatter_min_p, scatter_max_p)
