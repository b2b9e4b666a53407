"""concatenate, and split, its inverse."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.contract import AXIS, SHAPE, takes
from maxjax._ir.linearity import SUM
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Compiled, Sharded, Values
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import BatchAxis, Shape
from maxjax._primitives import costs, fitting
from maxjax._primitives.broadcasting import broadcast_leading
from maxjax._primitives.creation import full, zeros_like
from maxjax._primitives.layout import move_axis
from maxjax._primitives.rules import (
    axis_factors,
    is_linear,
)
from maxjax._primitives.slicing import slice_in_dim

if TYPE_CHECKING:
    from maxjax._primitives.rules import Linear

# --- concatenate ----------------------------------------------------------------------------------


def _concatenate_abstract(*avals: ShapedArray, dimension: int) -> ShapedArray:
    shape = list(avals[0].shape)
    shape[dimension] = sum(aval.shape[dimension] for aval in avals)
    return ShapedArray(shape, avals[0].dtype, all(aval.weak_type for aval in avals))


def joining_jvp(bind: Callable[..., Array]) -> Callable[..., Any]:
    """The jvp of an operation, ``bind(*operands, **params)``, that joins its operands."""
    def jvp(primals: Sequence[Array], tangents: Sequence[Array], **params: object
            ) -> tuple[Array, Array | None]:
        out = bind(*primals, **params)
        if all(tangent is None for tangent in tangents):
            return out, None
        filled = [zeros_like(primal) if tangent is None else tangent
                  for primal, tangent in zip(primals, tangents, strict=True)]
        return out, bind(*filled, **params)

    return jvp


def _concatenate_transpose(cotangent: Array, *operands: Array | Linear, dimension: int
                           ) -> list[Array | None]:
    result = []
    start = 0
    for operand in operands:
        stop = start + operand.shape[dimension]
        result.append(slice_in_dim(cotangent, start, stop, dimension)
                      if is_linear(operand) else None)
        start = stop
    return result


def _concatenate_batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis], *,
                       dimension: int) -> tuple[Array, int]:
    moved = [move_axis(x, axis, 0) if axis is not None else broadcast_leading(x, size)
             for x, axis in zip(operands, axes, strict=True)]
    return concatenate_p.bind(*moved, dimension=dimension + 1), 0


concatenate_p = Primitive(
    "concatenate",
    contract=takes((1, None), fitting.concatenate, dimension=AXIS),
    cost=costs.MOVES, values=Values(same_dtypes=slice(None)),
    linearity=SUM, sharded=Sharded(passes_unreduced=slice(None), split_alike=slice(None)),
    abstract=_concatenate_abstract,
    evaluate=lambda *xs, dimension: np.concatenate(xs, dimension),
    lower=lambda ctx, *xs, dimension: ctx.concatenate(xs, dimension),
    jvp=joining_jvp(lambda *xs, **params: concatenate_p.bind(*xs, **params)),
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
    factors=lambda in_avals, out_avals, *, dimension: axis_factors(
        in_avals, out_avals, whole=(dimension,)),
    compiled=Compiled(takes_complex=dtypes.COMPLEX_WORDS),
)

# --- split ----------------------------------------------------------------------------------------


def _split_bounds(sizes: Shape) -> list[tuple[int, ...]]:
    """(start, stop) of each part."""
    stops = list(itertools.accumulate(sizes))
    return list(zip([0, *stops[:-1]], stops, strict=True)) if sizes else []


def _split_evaluate(x: np.ndarray, *, sizes: Shape, axis: int) -> list[np.ndarray]:
    before = (slice(None),) * axis
    return [x[(*before, slice(start, stop))] for start, stop in _split_bounds(sizes)]


def _split_shapes(shape: Shape, sizes: Shape, axis: int) -> list[tuple[int, ...]]:
    return [(*shape[:axis], size, *shape[axis + 1:]) for size in sizes]


def _split_jvp(primals: Sequence[Array], tangents: Sequence[Array], **params: object
               ) -> tuple[list[Array], list[Array]]:
    outs = split_p.bind(*primals, **params)
    return outs, split_p.bind(*tangents, **params)


def _split_transpose(cotangents: Sequence[Array | None], operand: Linear, *, sizes: Shape,
                     axis: int) -> list[Array]:
    filled = [full(shape, 0, operand.dtype) if cotangent is None else cotangent
              for cotangent, shape in zip(
                  cotangents, _split_shapes(operand.shape, sizes, axis), strict=True)]
    return [concatenate(filled, axis)]


def _split_batch(size: int, operands: Sequence[Array], axes: Sequence[int], *, sizes: Shape,
                 axis: int) -> tuple[list[Array], list[int]]:
    outs = split_p.bind(operands[0], sizes=sizes, axis=axis + (axis >= axes[0]))
    return outs, [axes[0]] * len(outs)


split_p = Primitive(
    "split",
    contract=takes(1, fitting.split, sizes=SHAPE, axis=AXIS),
    cost=costs.MOVES, linearity=SUM, sharded=Sharded(passes_unreduced=slice(None)),
    abstract=lambda x, *, sizes, axis: [
        ShapedArray(shape, x.dtype, x.weak_type)
        for shape in _split_shapes(x.shape, sizes, axis)],
    evaluate=_split_evaluate,
    lower=lambda ctx, x, *, sizes, axis: [
        ctx.slice(x, tuple(start if dim == axis else 0 for dim in range(len(aval.shape))),
                  tuple(start + size if dim == axis else size
                        for dim, size in enumerate(aval.shape)), None)
        for (start, _), aval in zip(_split_bounds(sizes), ctx.out_avals, strict=True)],
    jvp=_split_jvp,
    transpose=_split_transpose,
    batch=_split_batch,
    factors=lambda in_avals, out_avals, *, sizes, axis: axis_factors(
        in_avals, out_avals, whole=(axis,)),
    multiple_results=True,
)

# --- operations that rules are written with -------------------------------------------------------
# Operands are trusted; an operation that changes nothing binds nothing.

def concatenate(xs: Sequence[Array], dimension: int) -> Array:
    return xs[0] if len(xs) == 1 else concatenate_p.bind(*xs, dimension=dimension)
