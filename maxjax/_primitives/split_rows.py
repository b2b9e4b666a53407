"""Gathers from rows and scatters into rows that are split over shards.

An embedding table of shape (V, D) may be split along V. Each shard then reads the rows that it has
and zeros for the others, so that the sum over shards is the result; into its part of a table it
writes the updates that belong there. The updates of a scatter that adds may be split too: each
shard adds its own, the first to the operand, the others to zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.jaxpr import JaxprEqn
from maxjax._ir.trace import Array
from maxjax._ir.typing import Params, Value
from maxjax._primitives.arithmetic import add, maximum, minimum, mul, sub
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.comparison import and_p, eq_p, ge_p, lt_p, not_p, or_p, select
from maxjax._primitives.creation import zeros_like
from maxjax._primitives.gather_plan import GatherScatterMode
from maxjax._primitives.layout import reshape
from maxjax._primitives.rules import FactorRule

if TYPE_CHECKING:
    from maxjax._sharding.local import Shard

Dims = Sequence[tuple[str, ...]]


def _row_dimension(eqn: JaxprEqn, places: Sequence[int], windows: Sequence[int]) -> int | None:
    """The one dimension of the operand that single indices choose rows of, if they do only that."""
    if (len(places) != 1 or places != windows
            or eqn.params["dimension_numbers"].operand_batching_dims
            or eqn.invars[1].aval.dtype != dtypes.int32
            or eqn.params["mode"] == GatherScatterMode.ONE_HOT):
        return None
    return places[0]


def _gathered_dimension(eqn: JaxprEqn) -> int | None:
    numbers = eqn.params["dimension_numbers"]
    return _row_dimension(eqn, numbers.start_index_map, numbers.collapsed_slice_dims)


def _scattered_dimension(eqn: JaxprEqn) -> int | None:
    numbers = eqn.params["dimension_numbers"]
    return _row_dimension(eqn, numbers.scatter_dims_to_operand_dims, numbers.inserted_window_dims)


def gather_factors(eqn: JaxprEqn, rule: FactorRule) -> None:
    """The rows may be split: the result is a sum over shards."""
    dimension, dtype = _gathered_dimension(eqn), eqn.outvars[0].aval.dtype
    if dimension is None or dtype.kind == "b" or dtypes.is_opaque(dtype):
        return
    row, = rule.operands[0][dimension]
    rule.replicated -= {row}
    rule.reduction = {**rule.reduction, row: "add"}


def scatter_factors(eqn: JaxprEqn, rule: FactorRule, *, combine: str | None) -> None:
    """The rows may be split, and where results combine, the updates."""
    dimension = _scattered_dimension(eqn)
    if dimension is None:
        return
    row, = rule.operands[0][dimension]
    rule.replicated -= {row}
    if combine is not None and eqn.outvars[0].aval.dtype.kind != "b":
        updates = {factor for factor, in rule.operands[1][:-1]}
        rule.replicated -= updates
        rule.reduction = {**rule.reduction, **dict.fromkeys(updates, combine)}


def _within(index: Value, low: Value, high: Value) -> Any:
    return and_p.bind(ge_p.bind(index, low), lt_p.bind(index, high))


def gather(shard: Shard, eqn: JaxprEqn, operands: Sequence[Array], params: Params,
           in_dims: Sequence[Dims], out_dims: Sequence[Dims]) -> Any:
    """A gather on one shard; where its rows are split, it gives zeros for those of others."""
    dimension = _gathered_dimension(eqn)
    if dimension is None or not in_dims[0][dimension]:
        return eqn.primitive.bind(*operands, **params)
    operand, index = operands
    whole, size = eqn.invars[0].aval.shape[dimension], np.int32(operand.shape[dimension])
    start = mul(shard.position(in_dims[0][dimension]), size)
    fills = params["mode"] == GatherScatterMode.FILL_OR_DROP
    if not fills:
        index = minimum(maximum(index, np.int32(0)), np.int32(whole - 1))
    mine = _within(index, start, add(start, size))
    local = select(mine, broadcast_in_dim(size, index.shape, ()), sub(index, start))
    rows = eqn.primitive.bind(operand, local, **params)
    if fills:      # the first shard fills what is outside all shards
        outside = not_p.bind(_within(index, np.int32(0), np.int32(whole)))
        mine = or_p.bind(mine, and_p.bind(outside, eq_p.bind(start, np.int32(0))))
    batch = [dim for dim in range(len(rows.shape))
             if dim not in params["dimension_numbers"].offset_dims]
    mask = broadcast_in_dim(reshape(mine, index.shape[:-1]), rows.shape, batch)
    return select(mask, zeros_like(rows), rows)


def scatter(shard: Shard, eqn: JaxprEqn, operands: Sequence[Array], params: Params,
            in_dims: Sequence[Dims], out_dims: Sequence[Dims], *, combine: str | None) -> Any:
    """A scatter on one shard: into its part of the rows, or of its part of the updates."""
    dimension = _scattered_dimension(eqn)
    if dimension is None or not (in_dims[0][dimension] or any(in_dims[1])):
        return eqn.primitive.bind(*operands, **params)
    operand, index, updates = operands
    if in_dims[0][dimension]:
        whole, size = eqn.invars[0].aval.shape[dimension], np.int32(operand.shape[dimension])
        start = mul(shard.position(in_dims[0][dimension]), size)
        if params["mode"] == GatherScatterMode.CLIP:
            index = minimum(maximum(index, np.int32(0)), np.int32(whole - 1))
        inside = _within(index, start, add(start, size))
        index = select(inside, broadcast_in_dim(size, index.shape, ()), sub(index, start))
        params = {**params, "mode": GatherScatterMode.FILL_OR_DROP, "indices_are_sorted": False,
                  "unique_indices": False}
    split = tuple(axis for found in in_dims[1] for axis in found)
    if combine == "add" and shard.count(split) > 1:
        first = eq_p.bind(shard.position(split), np.int32(0))
        operand = select(broadcast_in_dim(first, operand.shape, ()), zeros_like(operand), operand)
    return eqn.primitive.bind(operand, index, updates, **params)
