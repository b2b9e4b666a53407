"""Gathers from rows and scatters into rows that are split over shards.

An embedding table of shape (V, D) may be split along V. Each shard then reads the rows that it has
and zeros for the others, so that the sum over shards is the result; into its part of a table it
writes what falls there. The updates of a scatter that adds may be split too: each shard adds its
own, the first to the operand, the others to zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.jaxpr import JaxprEqn
from maxjax._primitives.arithmetic import add, maximum, minimum, mul, sub
from maxjax._primitives.comparison import and_p, eq_p, ge_p, lt_p, not_p, or_p
from maxjax._primitives.gather_plan import GatherScatterMode
from maxjax._primitives.rules import FactorRule
from maxjax._primitives.shape import broadcast_in_dim, reshape, select, zeros_like
from maxjax._sharding.specs import Axes, Dims, Mesh, product

# How the results of a scatter of some of the updates combine.
_COMBINES = {"scatter-add": "add", "scatter-sub": "add", "scatter-min": "min",
             "scatter-max": "max"}
_SCATTERS = frozenset({"scatter", "scatter-mul", *_COMBINES})


def indexed_dimension(eqn: JaxprEqn) -> int | None:
    """The one dimension of the operand that single indices choose rows of, if that is all."""
    numbers = eqn.params["dimension_numbers"]
    if eqn.primitive.name == "gather":
        places, collapsed = numbers.start_index_map, numbers.collapsed_slice_dims
        batching = numbers.operand_batching_dims
    else:
        places, collapsed = numbers.scatter_dims_to_operand_dims, numbers.inserted_window_dims
        batching = numbers.operand_batching_dims
    if (len(places) != 1 or places != collapsed or batching
            or eqn.invars[1].aval.dtype != dtypes.int32
            or eqn.params["mode"] == GatherScatterMode.ONE_HOT):
        return None
    return places[0]


def with_rows(eqn: JaxprEqn, rule: FactorRule) -> FactorRule:
    """The factor rule with what this module computes on shards."""
    name = eqn.primitive.name
    dimension = indexed_dimension(eqn) if name == "gather" or name in _SCATTERS else None
    if dimension is None:
        return rule
    row, = rule.operands[0][dimension]
    replicated, reduction = set(rule.replicated), dict(rule.reduction)
    if name == "gather":
        if eqn.outvars[0].aval.dtype.kind not in "b" and not dtypes.is_key(
                eqn.outvars[0].aval.dtype):
            replicated.discard(row)
            reduction[row] = "add"
    else:
        replicated.discard(row)
        kind = _COMBINES.get(name)
        if kind is not None and eqn.outvars[0].aval.dtype.kind != "b":
            for factor, in rule.operands[1][:-1]:
                replicated.discard(factor)
                reduction[factor] = kind
    rule.replicated, rule.reduction = frozenset(replicated), reduction
    return rule


def needs_rows(eqn: JaxprEqn, in_dims: Sequence[Dims]) -> bool:
    """Whether rows, or the updates of a scatter, are split."""
    name = eqn.primitive.name
    if name != "gather" and name not in _SCATTERS:
        return False
    dimension = indexed_dimension(eqn)
    return dimension is not None and bool(
        in_dims[0][dimension] or (name != "gather" and any(in_dims[1])))


def _within(index: Any, low: Any, high: Any) -> Any:
    return and_p.bind(ge_p.bind(index, low), lt_p.bind(index, high))


def apply_rows(eqn: JaxprEqn, operands: Sequence[Any], in_dims: Sequence[Dims], params: Any,
               position: Any, mesh: Mesh) -> Any:
    """Binds a gather or scatter on one shard.

    Args:
      params: the primitive's, with local sizes.
      position: ``(axes, mesh)`` -> which shard this is.
    """
    dimension = indexed_dimension(eqn)
    assert dimension is not None
    whole = eqn.invars[0].aval.shape[dimension]
    axes: Axes = in_dims[0][dimension]
    operand, index = operands[0], operands[1]
    size = np.int32(operand.shape[dimension])
    start = mul(position(axes, mesh), size)
    if eqn.primitive.name == "gather":
        fills = params["mode"] == GatherScatterMode.FILL_OR_DROP
        if not fills:
            index = minimum(maximum(index, np.int32(0)), np.int32(whole - 1))
        mine = _within(index, start, add(start, size))
        local = select(mine, broadcast_in_dim(size, index.shape, ()), sub(index, start))
        rows = eqn.primitive.bind(operand, local, **params)
        if fills:      # what is outside of all shards is filled by the first
            outside = not_p.bind(_within(index, np.int32(0), np.int32(whole)))
            mine = or_p.bind(mine, and_p.bind(outside, eq_p.bind(start, np.int32(0))))
        batch = [dim for dim in range(len(rows.shape))
                 if dim not in params["dimension_numbers"].offset_dims]
        mask = broadcast_in_dim(reshape(mine, index.shape[:-1]), rows.shape, batch)
        return select(mask, zeros_like(rows), rows)
    if axes:
        if params["mode"] == GatherScatterMode.CLIP:
            index = minimum(maximum(index, np.int32(0)), np.int32(whole - 1))
        inside = _within(index, start, add(start, size))
        index = select(inside, broadcast_in_dim(size, index.shape, ()), sub(index, start))
        params = {**params, "mode": GatherScatterMode.FILL_OR_DROP, "indices_are_sorted": False,
                  "unique_indices": False}
    split = tuple(axis for found in in_dims[1] for axis in found)
    if _COMBINES.get(eqn.primitive.name) == "add" and product(split, mesh) > 1:
        first = eq_p.bind(position(split, mesh), np.int32(0))
        operand = select(broadcast_in_dim(first, operand.shape, ()), zeros_like(operand), operand)
    return eqn.primitive.bind(operand, index, *operands[2:], **params)
