"""slice, and pad, its adjoint."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.contract import SIZES, STEPS, each, is_triple, optional, takes
from maxjax._ir.costs import Cost, XlaCost
from maxjax._ir.dimensions import larger
from maxjax._ir.linearity import MOVEMENT, Linearity
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Compiled, Host, Sharded, Values
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import BatchAxis, Params, Shape, Value
from maxjax._primitives import costs, fitting
from maxjax._primitives.broadcasting import broadcast_in_dim, broadcast_leading, reduce_sum
from maxjax._primitives.creation import full, zeros_like
from maxjax._primitives.layout import move_axis
from maxjax._primitives.rules import (
    FactorRule,
    axis_factors,
    is_linear,
    linear_primitive,
    scalar_like,
)

if TYPE_CHECKING:
    from maxjax._primitives.rules import Linear

# --- pad ------------------------------------------------------------------------------------------


def _pad_abstract(x: ShapedArray, value: ShapedArray, *,
                  padding_config: tuple[tuple[int, ...], ...]) -> ShapedArray:
    shape = tuple(
        low + high + size + (larger(0, size - 1) * interior if interior else 0)
        for size, (low, high, interior) in zip(x.shape, padding_config, strict=True))
    return ShapedArray(shape, x.dtype, x.weak_type and value.weak_type)


@functools.lru_cache(1024)
def _pad_places(shape: Shape, padding_config: tuple[tuple[int, ...], ...]
                ) -> tuple[Shape, tuple[slice, ...], tuple[slice, ...]]:
    """The shape of a padded array, where elements go in it, and where they are taken from."""
    padded = _pad_abstract(ShapedArray(shape, dtypes.float32), ShapedArray((), dtypes.float32),
                           padding_config=padding_config).shape
    target, source = [], []
    for size, (low, _high, interior), total in zip(shape, padding_config, padded, strict=True):
        step = interior + 1
        # The first and last elements that a negative padding leaves.
        first = max(0, -(low // step)) if low < 0 else 0
        last = size - 1
        while last >= first and low + last * step >= total:
            last -= 1
        source.append(slice(first, last + 1))
        target.append(slice(low + first * step, max(low + last * step + 1, 0), step)
                      if last >= first else slice(0, 0))
    return padded, tuple(target), tuple(source)


def _pad_evaluate(x: np.ndarray, value: np.ndarray, *, padding_config: tuple[tuple[int, ...], ...]
                  ) -> np.ndarray:
    x = np.asarray(x)
    shape, target, source = _pad_places(x.shape, padding_config)
    out = np.full(shape, value, x.dtype)
    out[target] = x[source]
    return out


def _pad_jvp(primals: Sequence[Array], tangents: Sequence[Array | None], *,
             padding_config: tuple[tuple[int, ...], ...]) -> tuple[Array, Array | None]:
    out = pad_p.bind(*primals, padding_config=padding_config)
    if tangents[0] is None and tangents[1] is None:
        return out, None
    filled = [zeros_like(primal) if tangent is None else tangent
              for primal, tangent in zip(primals, tangents, strict=True)]
    return out, pad_p.bind(*filled, padding_config=padding_config)


def _pad_transpose(cotangent: Array, operand: Linear, value: Array | Linear, *,
                   padding_config: tuple[tuple[int, ...], ...]) -> list[Array | None]:
    negative = [(-low, -high, 0) for low, high, _ in padding_config]
    steps = tuple(interior + 1 for _, _, interior in padding_config)
    zero = scalar_like(0, cotangent.dtype)

    def of_operand():
        unpadded = pad_p.bind(cotangent, zero, padding_config=tuple(negative))
        return slice_p.bind(unpadded, start_indices=(0,) * len(steps),
                            limit_indices=unpadded.shape, strides=steps)

    axes = tuple(range(len(padding_config)))
    operand_cotangent = of_operand() if is_linear(operand) or is_linear(value) else None
    value_cotangent = None
    if is_linear(value):
        value_cotangent = subtract(reduce_sum(cotangent, axes), reduce_sum(operand_cotangent, axes))
    return [operand_cotangent if is_linear(operand) else None, value_cotangent]


def _pad_batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis], *,
               padding_config: tuple[tuple[int, ...], ...]) -> tuple[Array, BatchAxis]:
    (operand, value), (axis, value_axis) = operands, axes
    if value_axis is None:
        config = (*padding_config[:axis], (0, 0, 0), *padding_config[axis:])
        return pad_p.bind(operand, value, padding_config=config), axis
    operand = (broadcast_leading(operand, size) if axis is None
               else move_axis(operand, axis, 0))
    config = ((0, 0, 0), *padding_config)
    zero = scalar_like(0, operand.dtype)
    padded = pad_p.bind(operand, zero, padding_config=config)
    inside = pad_p.bind(
        full(operand.shape, True, dtypes.bool_), np.False_, padding_config=config)
    filler = broadcast_in_dim(value, padded.shape, (0,))
    return select(inside, filler, padded), 0


pad_p = Primitive(
    "pad",
    contract=takes(
        2, fitting.pad, fitting.alike(),
        padding_config=each("dimension", is_triple, "three integers")),
    cost=Cost(costs.no_flops, XlaCost(spreads=False)),
    linearity=Linearity(slice(2)), sharded=Sharded(passes_unreduced=slice(1)),
    abstract=_pad_abstract,
    evaluate=_pad_evaluate,
    lower=lambda ctx, x, value, *, padding_config: ctx.pad(x, value, padding_config),
    jvp=_pad_jvp,
    transpose=_pad_transpose,
    batch=_pad_batch,
    factors=lambda in_avals, out_avals, *, padding_config: FactorRule(
        (tuple((dim,) for dim in range(in_avals[0].ndim)), ()),
        (tuple((dim,) for dim in range(in_avals[0].ndim)),),
        dict(enumerate(out_avals[0].shape)),
        replicated=frozenset(
            dim for dim, config in enumerate(padding_config) if config != (0, 0, 0))),
    values=Values(may_give_nan=True),
)

# --- slice ----------------------------------------------------------------------------------------


def _slice_shape(start_indices: tuple[int, ...], limit_indices: tuple[int, ...],
                 strides: tuple[int, ...] | None) -> tuple[int, ...]:
    strides = strides or (1,) * len(start_indices)
    return tuple(larger(0, (limit - start + stride - 1) // stride)
                 for start, limit, stride in zip(
                     start_indices, limit_indices, strides, strict=True))


def _slice_index(start_indices: tuple[int, ...], limit_indices: tuple[int, ...],
                 strides: tuple[int, ...] | None) -> tuple[slice, ...]:
    strides = strides or (1,) * len(start_indices)
    return tuple(map(slice, start_indices, limit_indices, strides))


def _slice_transpose(cotangent: Array, operand: Linear, *, start_indices: tuple[int, ...],
                     limit_indices: tuple[int, ...], strides: tuple[int, ...] | None
                     ) -> list[Array]:
    strides = strides or (1,) * len(start_indices)
    config = []
    for start, stride, size, width in zip(
            start_indices, strides, operand.shape, cotangent.shape, strict=True):
        spread = width + (larger(0, width - 1) * (stride - 1) if stride > 1 else 0)
        config.append((start, size - start - spread, stride - 1))
    return [pad(cotangent, 0, tuple(config))]


def _slice_batch(size: int, operands: Sequence[Array], axes: Sequence[int], *,
                 start_indices: tuple[int, ...], limit_indices: tuple[int, ...],
                 strides: tuple[int, ...] | None) -> tuple[Array, int]:
    axis = axes[0]

    def insert(values: tuple[int, ...], value: int) -> tuple[int, ...]:
        return (*values[:axis], value, *values[axis:])

    return slice_p.bind(
        operands[0], start_indices=insert(start_indices, 0),
        limit_indices=insert(limit_indices, size),
        strides=None if strides is None else insert(strides, 1)), axis


def _slice_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
                   start_indices: tuple[int, ...], limit_indices: tuple[int, ...],
                   strides: tuple[int, ...] | None) -> FactorRule:
    cut = [dim for dim, (a, b) in enumerate(
        zip(in_avals[0].shape, out_avals[0].shape, strict=True)) if a != b]
    return axis_factors(in_avals, out_avals, whole=cut)


def _slice_specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                      out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any]:
    index = _slice_index(**params)
    return lambda x: x[index]


def _slice_on_shard(params: Params, in_avals: Sequence[ShapedArray], shapes: Sequence[Shape],
                    out: Shape) -> Any:
    limits = tuple(limit if here == size else here for limit, here, size in zip(
        params["limit_indices"], shapes[0], in_avals[0].shape, strict=True))
    return {**params, "limit_indices": limits}


slice_p = linear_primitive(
    "slice",
    contract=takes(
        1, fitting.slice_within, start_indices=SIZES, limit_indices=SIZES, strides=optional(STEPS)),
    sharded=Sharded(shard_params=_slice_on_shard, passes_unreduced=slice(None)), linearity=MOVEMENT,
    abstract=lambda x, **params: ShapedArray(_slice_shape(**params), x.dtype, x.weak_type),
    evaluate=lambda x, **params: x[_slice_index(**params)],
    host=Host(specialize=_slice_specialize),
    lower=lambda ctx, x, *, start_indices, limit_indices, strides: ctx.slice(
        x, start_indices, limit_indices, strides),
    transpose=_slice_transpose,
    batch=_slice_batch,
    factors=_slice_factors,
    cost=costs.SLICE,
    compiled=Compiled(takes_complex=dtypes.COMPLEX_WORDS),
)

# --- operations that rules are written with -------------------------------------------------------
# Operands are trusted; an operation that changes nothing binds nothing.

def slice_in_dim(x: Array, start: int, stop: int, dim: int, stride: int = 1) -> Array:
    starts = [0] * len(x.shape)
    limits = list(x.shape)
    starts[dim], limits[dim] = start, stop
    strides = None
    if stride != 1:
        strides = tuple(stride if d == dim else 1 for d in range(len(x.shape)))
    return slice_p.bind(x, start_indices=tuple(starts), limit_indices=tuple(limits),
                        strides=strides)


def pad(x: Array, value: object, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    if all(config == (0, 0, 0) for config in padding_config):
        return x
    return pad_p.bind(x, scalar_like(value, x.dtype), padding_config=tuple(padding_config))


def select(which: Value, on_false: Value, on_true: Value) -> Array:
    return _later["select_n"].bind(which, on_false, on_true)


def subtract(x: Array, y: Array) -> Array:
    return _later["sub"].bind(x, y)


# Two elementwise primitives that rare rules above need; their family imports this one.
_later: dict[str, Primitive] = {}


def provide(primitive: Primitive) -> None:
    _later[primitive.name] = primitive
