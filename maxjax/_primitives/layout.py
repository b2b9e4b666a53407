"""Primitives that keep all elements: reshape, squeeze, transpose, rev, copy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes, native
from maxjax._ir.contract import AXES, NONE, PERMUTATION, SHAPE, takes
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.jaxpr import JaxprEqn
from maxjax._ir.linearity import MOVEMENT
from maxjax._ir.rule_groups import Compiled, Printed, Sharded, Values
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import AxisName, Params, Shape, Value
from maxjax._primitives import costs, fitting
from maxjax._primitives.rules import (
    FactorRule,
    OnShard,
    axis_factors,
    factor_rule,
    linear_primitive,
    replicated_factors,
)

if TYPE_CHECKING:
    from maxjax._sharding.local import Shard

# --- reshape --------------------------------------------------------------------------------------


def _reshape_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
                     new_sizes: Shape, dimensions: tuple[int, ...]) -> FactorRule:
    """Pairs off the dimensions from the left, splitting sizes at their common divisors.

    (6, 4) -> (2, 12) has the factors a=2, b=3, c=4: [a*b, c] -> [a, b*c].
    """
    sides = [list(aval.shape) for aval in (in_avals[0], out_avals[0])]
    if 0 in sides[0]:
        return replicated_factors(in_avals, out_avals)
    dims: list[list[tuple[Any, ...]]] = [[], []]
    sizes: dict[Any, int] = {}
    positions, rests = [0, 0], [1, 1]
    current: list[list[Any]] = [[], []]
    replicated = set()

    def advance(side: int) -> None:
        while rests[side] == 1 and positions[side] < len(sides[side]):
            if positions[side]:
                dims[side].append(tuple(current[side]))
                current[side] = []
            rests[side] = sides[side][positions[side]]
            positions[side] += 1

    def factor(size: int, *of: int) -> None:
        for side in of:
            current[side].append(len(sizes))
            rests[side] //= size
        sizes[len(sizes)] = size

    def whole(side: int) -> int:
        """A factor of the rest of a dimension, which may not be split."""
        advance(side)
        size = rests[side]
        replicated.add(len(sizes))
        factor(size, side)
        return size

    while True:
        advance(0)
        advance(1)
        if rests == [1, 1]:
            break
        common = math.gcd(*rests)
        if common > 1:
            factor(common, 0, 1)
            continue
        # Sizes like 2, 3 -> 3, 2: their blocks differ, until both have as many elements.
        done = [whole(0), whole(1)]
        while done[0] != done[1]:
            side = int(done[0] > done[1])
            done[side] *= whole(side)
    for side in (0, 1):
        if sides[side]:
            dims[side].append(tuple(current[side]))
    return FactorRule((tuple(dims[0]),), (tuple(dims[1]),), sizes,
                      replicated=frozenset(replicated))


def _reshape_abstract(x: ShapedArray, *, new_sizes: Shape, dimensions: None) -> ShapedArray:
    result = ShapedArray(new_sizes, x.dtype, x.weak_type)
    if result.size != x.size and not is_dimension(result.size) and not is_dimension(x.size):
        raise ValueError(f"cannot reshape array of shape {x.shape} (size {x.size}) into shape "
                         f"{new_sizes} (size {result.size})")
    return result


def _reshape_evaluate(x: np.ndarray, *, new_sizes: Shape, dimensions: tuple[int, ...] | None
                      ) -> np.ndarray:
    if x.size >= native.FEWEST and not x.flags.c_contiguous:
        x = _contiguous(x)
    return x.reshape(new_sizes)


def _contiguous(x: np.ndarray) -> np.ndarray:
    """A large array row by row in memory, if its last axis has moved; or the array itself."""
    itemsize = x.itemsize
    if x.strides[-1] in (0, itemsize) or any(stride % itemsize for stride in x.strides):
        return x
    copy = native.find("copy", x.dtype, x.size)
    if not copy:
        return x
    out = np.empty(x.shape, x.dtype)
    strides = [stride // itemsize for stride in (*x.strides, *out.strides)]
    copy((x, out), (x.ndim, *x.shape, *strides), x.size)
    return out


def _reshape_batch(size: int, operands: Sequence[Array], axes: Sequence[int], *, new_sizes: Shape,
                   dimensions: tuple[int, ...] | None) -> tuple[Array, int]:
    operand = move_axis(operands[0], axes[0], 0)
    return reshape_p.bind(operand, new_sizes=(size, *new_sizes), dimensions=None), 0


reshape_p = linear_primitive(
    "reshape",
    contract=takes(1, new_sizes=SHAPE, dimensions=NONE),
    sharded=Sharded(
        shard_params=lambda params, avals, shapes, out: {**params, "new_sizes": out},
        passes_unreduced=slice(None)),
    linearity=MOVEMENT,
    printed=Printed(lambda params: {**params, "sharding": None}),
    abstract=_reshape_abstract,
    evaluate=_reshape_evaluate,
    lower=lambda ctx, x, *, new_sizes, dimensions: ctx.reshape(x, new_sizes),
    transpose=lambda cotangent, operand, **params: [reshape(cotangent, operand.shape)],
    batch=_reshape_batch,
    factors=_reshape_factors,
    cost=costs.VIEW,
    compiled=Compiled(takes_complex=dtypes.COMPLEX_WORDS),
)

# --- squeeze --------------------------------------------------------------------------------------


def _squeezed(shape: tuple[int, ...], dimensions: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for dim, size in enumerate(shape) if dim not in dimensions)


def _squeeze_batch(size: int, operands: Sequence[Array], axes: Sequence[int], *,
                   dimensions: tuple[int, ...]) -> tuple[Array, int]:
    axis = axes[0]
    moved = tuple(dim + (dim >= axis) for dim in dimensions)
    return squeeze_p.bind(operands[0], dimensions=moved), axis - sum(d < axis for d in moved)


squeeze_p = linear_primitive(
    "squeeze",
    contract=takes(1, fitting.squeeze, dimensions=AXES),
    linearity=MOVEMENT, sharded=Sharded(passes_unreduced=slice(None)),
    abstract=lambda x, *, dimensions: ShapedArray(
        _squeezed(x.shape, dimensions), x.dtype, x.weak_type),
    evaluate=lambda x, *, dimensions: x.reshape(_squeezed(x.shape, dimensions)),
    lower=lambda ctx, x, *, dimensions: ctx.reshape(x, ctx.out_avals[0].shape),
    transpose=lambda cotangent, operand, **params: [reshape(cotangent, operand.shape)],
    batch=_squeeze_batch,
    factors=lambda in_avals, out_avals, *, dimensions: factor_rule(
        [[None if dim in dimensions else dim for dim in range(in_avals[0].ndim)]],
        [[dim for dim in range(in_avals[0].ndim) if dim not in dimensions]],
        in_avals, out_avals),
    cost=costs.UNMOVED_VIEW,
    compiled=Compiled(takes_complex=dtypes.COMPLEX_WORDS),
)

# --- transpose ------------------------------------------------------------------------------------


def _transpose_batch(size: int, operands: Sequence[Array], axes: Sequence[int], *,
                     permutation: tuple[int, ...]) -> tuple[Array, int]:
    axis = axes[0]
    moved = tuple(dim + (dim >= axis) for dim in permutation)
    return transpose_p.bind(operands[0], permutation=(axis, *moved)), 0


transpose_p = linear_primitive(
    "transpose",
    contract=takes(1, permutation=PERMUTATION),
    linearity=MOVEMENT, sharded=Sharded(passes_unreduced=slice(None)),
    abstract=lambda x, *, permutation: ShapedArray(
        tuple(x.shape[dim] for dim in permutation), x.dtype, x.weak_type),
    evaluate=lambda x, *, permutation: x.transpose(permutation),
    lower=lambda ctx, x, *, permutation: ctx.transpose(x, permutation),
    transpose=lambda cotangent, operand, *, permutation: [
        transpose(cotangent, tuple(np.argsort(permutation).tolist()))],
    batch=_transpose_batch,
    factors=lambda in_avals, out_avals, *, permutation: factor_rule(
        [range(in_avals[0].ndim)], [permutation], in_avals, out_avals),
    cost=costs.UNMOVED_VIEW,
    compiled=Compiled(takes_complex=dtypes.COMPLEX_WORDS),
)

# --- rev ------------------------------------------------------------------------------------------


def _rev_evaluate(x: np.ndarray, *, dimensions: tuple[int, ...]) -> np.ndarray:
    return x[tuple(slice(None, None, -1 if dim in dimensions else None) for dim in range(x.ndim))]


def _rev_batch(size: int, operands: Sequence[Array], axes: Sequence[int], *,
               dimensions: tuple[int, ...]) -> tuple[Array, int]:
    axis = axes[0]
    return rev_p.bind(operands[0], dimensions=tuple(d + (d >= axis) for d in dimensions)), axis


def _rev_on_shard(shard: Shard, eqn: JaxprEqn, operands: Sequence[Array], params: Params,
                  in_dims: Sequence[Sequence[tuple[AxisName, ...]]],
                  out_dims: Sequence[Sequence[tuple[AxisName, ...]]]) -> Any:
    out = rev_p.bind(*operands, **params)
    for dimension in params["dimensions"]:
        for axis in out_dims[0][dimension]:
            out = shard.reversed_along(out, axis)
    return out


rev_p = linear_primitive(
    "rev",
    contract=takes(1, dimensions=AXES),
    linearity=MOVEMENT,
    # A shard reverses its own part, which is then sent to another.
    sharded=Sharded(on_shard=OnShard(_rev_on_shard, computed=lambda eqn, rule: None)),
    abstract=lambda x, *, dimensions: x,
    evaluate=_rev_evaluate,
    lower=lambda ctx, x, *, dimensions: ctx.reverse(x, dimensions),
    transpose=lambda cotangent, operand, *, dimensions: [
        rev_p.bind(cotangent, dimensions=dimensions)],
    batch=_rev_batch,
    factors=lambda in_avals, out_avals, *, dimensions: axis_factors(
        in_avals, out_avals, permuted=dimensions),
    compiled=Compiled(takes_complex=dtypes.COMPLEX_WORDS),
)

# --- copy -----------------------------------------------------------------------------------------

copy_p = linear_primitive(
    "copy",
    contract=takes(1),
    linearity=MOVEMENT, sharded=Sharded(passes_unreduced=slice(None)),
    compiled=Compiled(cheap=True),
    abstract=lambda x: x,
    evaluate=lambda x: np.array(x),
    lower=lambda ctx, x: x,
    transpose=lambda cotangent, operand: [copy_p.bind(cotangent)],
    batch=lambda size, operands, axes: (copy_p.bind(operands[0]), axes[0]),
    factors=lambda in_avals, out_avals: axis_factors(in_avals, out_avals),
    values=Values(keeps_zero=True),
    cost=costs.UNMOVED,
)

# --- operations that rules are written with -------------------------------------------------------
# Operands are trusted; an operation that changes nothing binds nothing.

def reshape(x: Value, shape: Shape) -> Any:
    shape = tuple(shape)
    return x if x.shape == shape else reshape_p.bind(x, new_sizes=shape, dimensions=None)


def transpose(x: Value, permutation: Sequence[int]) -> Any:
    permutation = tuple(permutation)
    if permutation == tuple(range(len(permutation))):
        return x
    return transpose_p.bind(x, permutation=permutation)


def move_axis(x: Array, source: int, target: int) -> Array:
    if source == target:
        return x
    order = [dim for dim in range(len(x.shape)) if dim != source]
    order.insert(target, source)
    return transpose_p.bind(x, permutation=tuple(order))
