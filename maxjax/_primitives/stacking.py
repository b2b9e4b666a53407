"""stack, unstack and tile: joining, parting and repeating along dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._ir.contract import AXIS, NATURAL, SIZES, takes
from maxjax._ir.linearity import SUM
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Sharded, Values
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import BatchAxis, Params, Shape
from maxjax._primitives import costs, fitting
from maxjax._primitives.broadcasting import broadcast_in_dim, broadcast_leading, reduce_sum
from maxjax._primitives.creation import full
from maxjax._primitives.joining import joining_jvp
from maxjax._primitives.layout import move_axis, reshape
from maxjax._primitives.rules import (
    FactorRule,
    factor_rule,
    is_linear,
    linear_primitive,
    nonnegative,
)

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering
    from maxjax._primitives.rules import Linear


def _with(values: Sequence[int], axis: int, value: int | None) -> tuple[Any, ...]:
    return (*values[:axis], value, *values[axis:])


def _without(values: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*values[:axis], *values[axis + 1:])


# --- stack ----------------------------------------------------------------------------------------


def _stack_transpose(cotangent: Array, *operands: Array | Linear, axis: int) -> list[Array | None]:
    return [part if is_linear(operand) else None for part, operand in zip(
        unstack_p.bind(cotangent, axis=axis), operands, strict=True)]


def _stack_batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis], *, axis: int
                 ) -> tuple[Array, int]:
    moved = [broadcast_leading(x, size) if batch is None else move_axis(x, batch, 0)
             for x, batch in zip(operands, axes, strict=True)]
    return stack_p.bind(*moved, axis=axis + 1), 0


stack_p = Primitive(
    "stack",
    contract=takes((1, None), fitting.stack, axis=NATURAL),
    cost=costs.MOVES, linearity=SUM, values=Values(same_dtypes=slice(None)),
    abstract=lambda *avals, axis: ShapedArray(
        _with(avals[0].shape, axis, len(avals)), avals[0].dtype,
        all(aval.weak_type for aval in avals)),
    evaluate=lambda *xs, axis: np.stack(xs, axis),
    lower=lambda ctx, *xs, axis: ctx.concatenate(
        [ctx.reshape(x, _with(ctx.shape(x), axis, 1)) for x in xs], axis),
    jvp=joining_jvp(lambda *xs, **params: stack_p.bind(*xs, **params)),
    transpose=_stack_transpose,
    batch=_stack_batch,
    factors=lambda in_avals, out_avals, *, axis: factor_rule(
        [range(aval.ndim) for aval in in_avals],
        [_with(tuple(range(in_avals[0].ndim)), axis, None)], in_avals, out_avals),
)

# --- unstack --------------------------------------------------------------------------------------


def _unstack_jvp(primals: Sequence[Array], tangents: Sequence[Array], *, axis: int
                 ) -> tuple[list[Array], list[Array]]:
    return unstack_p.bind(primals[0], axis=axis), unstack_p.bind(tangents[0], axis=axis)


def _unstack_transpose(cotangents: Sequence[Array | None], operand: Linear, *, axis: int
                       ) -> list[Array]:
    shape = _without(operand.shape, axis)
    return [stack_p.bind(*(
        full(shape, 0, operand.dtype) if cotangent is None else cotangent
        for cotangent in cotangents), axis=axis)]


def _unstack_batch(size: int, operands: Sequence[Array], axes: Sequence[int], *, axis: int
                   ) -> tuple[list[Array], list[int]]:
    x = move_axis(operands[0], axes[0], 0)
    outs = unstack_p.bind(x, axis=axis + 1)
    return outs, [0] * len(outs)


def _unstack_lower(ctx: Lowering, x: object, *, axis: int) -> Any:
    shape = ctx.shape(x)
    return [ctx.reshape(
        ctx.slice(x, tuple(k if dim == axis else 0 for dim in range(len(shape))),
                  tuple(k + 1 if dim == axis else size for dim, size in enumerate(shape)), None),
        _without(shape, axis)) for k in range(shape[axis])]


unstack_p = Primitive(
    "unstack",
    contract=takes(1, axis=AXIS),
    cost=costs.MOVES, linearity=SUM,
    abstract=lambda x, *, axis: [
        ShapedArray(_without(x.shape, axis), x.dtype, x.weak_type)] * x.shape[axis],
    evaluate=lambda x, *, axis: list(np.moveaxis(np.asarray(x), axis, 0)),
    lower=_unstack_lower,
    jvp=_unstack_jvp,
    transpose=_unstack_transpose,
    batch=_unstack_batch,
    factors=lambda in_avals, out_avals, *, axis: factor_rule(
        [range(in_avals[0].ndim)],
        [_without(tuple(range(in_avals[0].ndim)), axis)] * len(out_avals), in_avals, out_avals,
        replicated=frozenset((axis,))),
    multiple_results=True,
)

# --- tile -----------------------------------------------------------------------------------------


def _tiled(shape: Shape, reps: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(rep * size for rep, size in zip(reps, shape, strict=True))


def _pairs(shape: Shape, reps: tuple[int, ...]) -> tuple[Any, ...]:
    """Each dimension as (repetition, element), and where the elements are."""
    sizes = tuple(size for pair in zip(reps, shape, strict=True) for size in pair)
    return sizes, tuple(range(1, 2 * len(shape), 2))


def _tile_evaluate(x: np.ndarray, *, reps: tuple[int, ...]) -> np.ndarray:
    x = np.asarray(x)
    sizes, places = _pairs(x.shape, reps)
    wide = x.reshape([size for pair in zip((1,) * x.ndim, x.shape, strict=True) for size in pair])
    return np.broadcast_to(wide, sizes).reshape(_tiled(x.shape, reps))


def _tile_transpose(cotangent: Array, operand: Linear, *, reps: tuple[int, ...]) -> list[Array]:
    sizes, places = _pairs(operand.shape, reps)
    return [reduce_sum(reshape(cotangent, sizes), [place - 1 for place in places])]


def _tile_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
                  reps: tuple[int, ...]) -> FactorRule:
    """Repetitions are a factor of the result only."""
    shape = in_avals[0].shape
    sizes = {(dim, kind): size for dim, pair in enumerate(zip(reps, shape, strict=True))
             for kind, size in zip("re", pair, strict=True)}
    return FactorRule((tuple(((dim, "e"),) for dim in range(len(shape))),),
                      (tuple(((dim, "r"), (dim, "e")) for dim in range(len(shape))),), sizes)


def _tile_on_shard(params: Params, in_avals: Sequence[ShapedArray], shapes: Sequence[Shape],
                   out: Shape) -> Any:
    return {**params, "reps": tuple(
        size // here if here else rep
        for size, here, rep in zip(out, shapes[0], params["reps"], strict=True))}


tile_p = linear_primitive(
    "tile",
    contract=takes(1, reps=SIZES),
    cost=costs.MOVES, linearity=SUM,
    sharded=Sharded(shard_params=_tile_on_shard),
    abstract=lambda x, *, reps: ShapedArray(
        nonnegative("tile", _tiled(x.shape, reps)), x.dtype, x.weak_type),
    evaluate=_tile_evaluate,
    lower=lambda ctx, x, *, reps: ctx.decompose(
        lambda x: reshape(broadcast_in_dim(x, *_pairs(x.shape, reps)), _tiled(x.shape, reps)), x),
    transpose=_tile_transpose,
    batch=lambda size, operands, axes, *, reps: (
        tile_p.bind(operands[0], reps=_with(reps, axes[0], 1)), axes[0]),
    factors=_tile_factors,
)
