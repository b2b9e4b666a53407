"""conv_general_dilated: convolution of any rank, with strides, dilations and groups.

In the rules below dimensions are named N (batch), C (features of lhs in a group), O (features of
the result in a group), G (groups), S (spatial sizes of lhs), K (of the window) and P (of the
result).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxjax._ir.contract import (
    DTYPE,
    POSITIVE,
    PRECISION,
    SPATIAL_PAIRS,
    SPATIAL_STEPS,
    numbered,
    optional,
    takes,
)
from maxjax._ir.costs import ALONE, Cost, Roofline
from maxjax._ir.dimensions import larger
from maxjax._ir.linearity import PRODUCT
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Host, Printed, Values
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params, Shape, Value
from maxjax._primitives import fitting
from maxjax._primitives.arithmetic import mul
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.builders import add_tangents
from maxjax._primitives.contraction import compute_dtype, result_type
from maxjax._primitives.convolution_numpy import convolution
from maxjax._primitives.creation import full
from maxjax._primitives.layout import move_axis, reshape, rev_p
from maxjax._primitives.rules import aval_of, factor_rule, is_linear
from maxjax._primitives.slicing import pad, slice_p

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering
    from maxjax._primitives.rules import FactorRule, Linear


class ConvDimensionNumbers(NamedTuple):
    """Which dimensions of lhs, rhs and result play which part.

    ``lhs_spec`` and ``out_spec`` give (batch, feature, spatial...), ``rhs_spec`` gives (output
    feature, input feature, spatial...).

    >>> lax.conv_dimension_numbers((1, 2, 8), (4, 2, 3), None).out_spec
    (0, 1, 2)
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


def dilated(size: int, dilation: int) -> int:
    """The size with ``dilation - 1`` holes between elements."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def _sizes(shape: Shape, spec: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(shape[dim] for dim in spec)


def output_spatial(spatial: Sequence[int], window: Sequence[int], strides: Sequence[int],
                   padding: Sequence[tuple[int, int]], lhs_dilation: Sequence[int],
                   rhs_dilation: Sequence[int]) -> tuple[int, ...]:
    """The spatial sizes of a convolution's result."""
    return tuple(
        larger(0, (dilated(size, ld) + low + high - dilated(width, rd)) // stride + 1)
        for size, width, stride, (low, high), ld, rd in zip(
            spatial, window, strides, padding, lhs_dilation, rhs_dilation, strict=True))


def _abstract(lhs: ShapedArray, rhs: ShapedArray, *, window_strides: tuple[int, ...],
              padding: tuple[tuple[int, int], ...], lhs_dilation: tuple[int, ...],
              rhs_dilation: tuple[int, ...], dimension_numbers: ConvDimensionNumbers,
              feature_group_count: int, batch_group_count: int, precision: Hashable,
              preferred_element_type: np.dtype | None) -> ShapedArray:
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    batch, _, *spatial = _sizes(lhs.shape, lhs_spec)
    features, _, *window = _sizes(rhs.shape, rhs_spec)
    sizes = (batch // batch_group_count, features, *output_spatial(
        spatial, window, window_strides, padding, lhs_dilation, rhs_dilation))
    shape = [0] * lhs.ndim
    for dim, size in zip(out_spec, sizes, strict=True):
        shape[dim] = size
    dtype, weak = result_type(lhs, rhs, preferred_element_type)
    return ShapedArray(shape, dtype, weak)


def _specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any]:
    lhs, rhs = in_avals
    out = out_avals[0]
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    return convolution(
        _sizes(lhs.shape, lhs_spec), _sizes(rhs.shape, rhs_spec), _sizes(out.shape, out_spec),
        lhs_spec, rhs_spec, tuple(np.argsort(out_spec).tolist()),
        compute_dtype(lhs.dtype, rhs.dtype, out.dtype), out.dtype,
        params["window_strides"], params["padding"], params["lhs_dilation"],
        params["rhs_dilation"], params["feature_group_count"], params["batch_group_count"])


def _evaluate(lhs: np.ndarray, rhs: np.ndarray, **params: Any) -> Any:
    avals = tuple(ShapedArray(v.shape, v.dtype) for v in (lhs, rhs))
    return _specialize(avals, params, (_abstract(*avals, **params),))(lhs, rhs)


# --- derivatives ----------------------------------------------------------------------------------

def _jvp(primals: Sequence[Array], tangents: Sequence[Array], **params: object
         ) -> tuple[Array, Array | None]:
    lhs, rhs = primals
    out = conv_general_dilated_p.bind(lhs, rhs, **params)
    total = None
    if tangents[0] is not None:
        total = conv_general_dilated_p.bind(tangents[0], rhs, **params)
    if tangents[1] is not None:
        total = add_tangents(total, conv_general_dilated_p.bind(lhs, tangents[1], **params))
    return out, total


def merge_axis(x: Array, source: int, target: int) -> Array:
    """Moves axis ``source`` before ``target`` (counted without it) and merges the two."""
    x = move_axis(x, source, target)
    shape = x.shape
    return reshape(x, (*shape[:target], shape[target] * shape[target + 1], *shape[target + 2:]))


def split_axis(x: Array, axis: int, major: int) -> Array:
    """Splits an axis into ``major`` and the rest."""
    shape = x.shape
    return reshape(x, (*shape[:axis], major, shape[axis] // major, *shape[axis + 1:]))


def _swapped(spec: tuple[int, ...]) -> tuple[int, ...]:
    return (spec[1], spec[0], *spec[2:])


def _transpose_lhs(cotangent: Array, lhs: Linear, rhs: Any, *, window_strides: tuple[int, ...],
                   padding: tuple[tuple[int, int], ...], lhs_dilation: tuple[int, ...],
                   rhs_dilation: tuple[int, ...], dimension_numbers: ConvDimensionNumbers,
                   feature_group_count: int, batch_group_count: int, precision: Hashable,
                   preferred_element_type: np.dtype | None) -> Array:
    """A convolution of the cotangent with the flipped window, its features exchanged."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    spatial = _sizes(lhs.shape, lhs_spec[2:])
    window = _sizes(rhs.shape, rhs_spec[2:])
    result = _sizes(cotangent.shape, out_spec[2:])
    pads = []
    for size, width, out, stride, (low, _), ld, rd in zip(
            spatial, window, result, window_strides, padding, lhs_dilation, rhs_dilation,
            strict=True):
        before = dilated(width, rd) - 1 - low
        after = dilated(size, ld) + dilated(width, rd) - 1 - dilated(out, stride) - before
        pads.append((before, after))
    groups = feature_group_count if feature_group_count > 1 else batch_group_count
    if groups > 1:      # (G O, C) -> (O, G C)
        rhs = split_axis(rhs, rhs_spec[0], groups)
        feature = rhs_spec[1]
        rhs = merge_axis(rhs, rhs_spec[0], feature)
    window_dims = tuple(rhs_spec[2:])
    flipped = rev_p.bind(rhs, dimensions=window_dims) if window_dims else rhs
    out = conv_general_dilated_p.bind(
        cotangent, flipped, window_strides=lhs_dilation, padding=tuple(pads),
        lhs_dilation=window_strides, rhs_dilation=rhs_dilation,
        dimension_numbers=ConvDimensionNumbers(out_spec, _swapped(rhs_spec), lhs_spec),
        feature_group_count=groups, batch_group_count=1, precision=precision,
        preferred_element_type=aval_of(lhs).dtype if preferred_element_type is not None else None)
    if batch_group_count > 1:      # features (G C) give their groups back to the batch
        out = split_axis(out, lhs_spec[1], batch_group_count)
        out = merge_axis(out, lhs_spec[1], lhs_spec[0])
    return out


def _transpose_rhs(cotangent: Array, lhs: Array, rhs: Linear, *, window_strides: tuple[int, ...],
                   padding: tuple[tuple[int, int], ...], lhs_dilation: tuple[int, ...],
                   rhs_dilation: tuple[int, ...], dimension_numbers: ConvDimensionNumbers,
                   feature_group_count: int, batch_group_count: int, precision: Hashable,
                   preferred_element_type: np.dtype | None) -> Array:
    """A convolution of lhs with the cotangent as its window, batch and features exchanged."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    spatial = _sizes(lhs.shape, lhs_spec[2:])
    window = _sizes(rhs.shape, rhs_spec[2:])
    result = _sizes(cotangent.shape, out_spec[2:])
    pads = []
    for size, width, out, stride, (low, _), ld, rd in zip(
            spatial, window, result, window_strides, padding, lhs_dilation, rhs_dilation,
            strict=True):
        after = dilated(width, rd) - 1 + dilated(out, stride) - dilated(size, ld) - low
        pads.append((low, after))
    return conv_general_dilated_p.bind(
        lhs, cotangent, window_strides=rhs_dilation, padding=tuple(pads),
        lhs_dilation=lhs_dilation, rhs_dilation=window_strides,
        dimension_numbers=ConvDimensionNumbers(*map(_swapped, (lhs_spec, out_spec, rhs_spec))),
        feature_group_count=batch_group_count, batch_group_count=feature_group_count,
        precision=precision,
        preferred_element_type=aval_of(rhs).dtype if preferred_element_type is not None else None)


def _transpose(cotangent: Array, lhs: Array | Linear, rhs: Any, **params: Any
               ) -> list[Array | None]:
    if is_linear(lhs):
        return [_transpose_lhs(cotangent, lhs, rhs, **params), None]
    return [None, _transpose_rhs(cotangent, lhs, rhs, **params)]


# --- batching -------------------------------------------------------------------------------------

def _batch(size: int, operands: Sequence[Array], axes: Sequence[Any], *,
           dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
           batch_group_count: int, **params: Any) -> tuple[Array, int]:
    """The batch joins the batch dimension, or the features as further groups."""
    (lhs, rhs), (lhs_axis, rhs_axis) = operands, axes
    lhs_spec, rhs_spec, out_spec = dimension_numbers

    def bind(lhs: Value, rhs: Value, features: int, batches: int) -> Array:
        return conv_general_dilated_p.bind(
            lhs, rhs, dimension_numbers=dimension_numbers, feature_group_count=features,
            batch_group_count=batches, **params)

    if not size:        # an axis of no elements cannot be split off again
        types = [operand.aval if axis is None else operand.aval.update(shape=tuple(
            length for i, length in enumerate(operand.aval.shape) if i != axis))
            for operand, axis in zip(operands, axes, strict=True)]
        out_type = _abstract(*types, dimension_numbers=dimension_numbers,
                             feature_group_count=feature_group_count,
                             batch_group_count=batch_group_count, **params)
        return full((0, *out_type.shape), 0, out_type.dtype), 0
    if lhs_axis is not None and rhs_axis is not None:
        rhs = merge_axis(rhs, rhs_axis, rhs_spec[0])
        if batch_group_count > 1:
            lhs = merge_axis(lhs, lhs_axis, lhs_spec[0])
            batch_group_count *= size
        else:
            lhs = merge_axis(lhs, lhs_axis, lhs_spec[1])
            feature_group_count *= size
        out = bind(lhs, rhs, feature_group_count, batch_group_count)
        return split_axis(out, out_spec[1], size), out_spec[1]
    if lhs_axis is not None:
        if batch_group_count > 1:       # (groups, batch) becomes (groups, size, batch)
            lhs = move_axis(lhs, lhs_axis, 0)
            lhs = split_axis(lhs, lhs_spec[0] + 1, batch_group_count)
            lhs = merge_axis(lhs, 0, lhs_spec[0] + 1)
            lhs = merge_axis(lhs, lhs_spec[0], lhs_spec[0])
        else:
            lhs = merge_axis(lhs, lhs_axis, lhs_spec[0])
        out = bind(lhs, rhs, feature_group_count, batch_group_count)
        return split_axis(out, out_spec[0], size), out_spec[0]
    groups = max(feature_group_count, batch_group_count)
    feature = out_spec[1]
    if groups == 1:
        out = bind(lhs, merge_axis(rhs, rhs_axis, rhs_spec[0]), 1, 1)
        return split_axis(out, feature, size), feature
    # (groups, features) becomes (groups, size, features), and the same way back.
    rhs = move_axis(rhs, rhs_axis, 0)
    rhs = split_axis(rhs, rhs_spec[0] + 1, groups)
    rhs = merge_axis(rhs, 0, rhs_spec[0] + 1)
    rhs = merge_axis(rhs, rhs_spec[0], rhs_spec[0])
    out = bind(lhs, rhs, feature_group_count, batch_group_count)
    out = split_axis(split_axis(out, feature, groups), feature + 1, size)
    out = move_axis(out, feature + 1, 0)
    return merge_axis(out, feature + 1, feature + 1), 0


# --- lowering -------------------------------------------------------------------------------------

def window_positions(spatial: Sequence[int], window: Sequence[int], result: tuple[int, ...],
                     strides: tuple[int, ...], dilations: Sequence[int]) -> Any:
    """For each position of the result and of the window, the flat index in ``spatial``: the
    array (prod P, prod K)."""
    total = np.zeros((*(1 for _ in result), *(1 for _ in window)), np.int64)
    rank = len(spatial)
    for dim, (size, width, out, stride, dilation) in enumerate(zip(
            spatial, window, result, strides, dilations, strict=True)):
        shape = [1] * (2 * rank)
        shape[dim], shape[rank + dim] = out, width
        index = np.add.outer(np.arange(out) * stride, np.arange(width) * dilation)
        total = total * size + index.reshape(shape)
    return total.reshape(math.prod(result), math.prod(window))


def _two(values: Iterable[int], filler: int) -> tuple[int, ...]:
    """What is said of one spatial dimension or two, as of two: ``filler`` comes first."""
    values = tuple(values)
    return (filler,) * (2 - len(values)) + values


# Up to so many products a sum of slices is one pass over what fits in the first cache.
_MOST_TAPS = 32


def _sum_of_taps(x: Array, weights: Array, result: tuple[int, ...], strides: tuple[int, ...],
                 padding: tuple[tuple[int, int], ...], dilation: tuple[int, ...]) -> Array:
    """(batch, S) and (K) to (batch, P): each weight times the elements that it meets."""
    zero = full((), 0, x.dtype)
    x = pad(x, zero, ((0, 0, 0), *((low, high, 0) for low, high in padding)))
    total: Any = None
    for place in np.ndindex(*weights.shape):
        first = [at * step for at, step in zip(place, dilation, strict=True)]
        last = [start + (count - 1) * stride + 1 for start, count, stride in zip(
            first, result, strides, strict=True)]
        part = slice_p.bind(
            x, start_indices=(0, *first), limit_indices=(x.shape[0], *last), strides=(1, *strides))
        weight = reshape(slice_p.bind(
            weights, start_indices=place, limit_indices=tuple(at + 1 for at in place),
            strides=None), ())
        total = add_tangents(total, mul(part, broadcast_in_dim(weight, part.shape, ())))
    return total


def _has_few_taps(rows: Shape, weights: Shape, result: Shape) -> bool:
    """Whether a convolution of one feature to one, with operands of shapes (batch, S, C) and
    (K, C, G O), has few taps."""
    return (weights[-2:] == (1, 1) and 1 < math.prod(weights) <= _MOST_TAPS
            and 0 not in rows and 0 not in result)


def _by_taps(ctx: Lowering, rows: object, weights: object, result: tuple[int, ...],
             strides: tuple[int, ...], padding: tuple[tuple[int, int], ...],
             dilation: tuple[int, ...]) -> Any:
    taps = partial(_sum_of_taps, result=result, strides=strides, padding=padding,
                   dilation=dilation)
    total = ctx.decompose(taps, ctx.reshape(rows, ctx.shape(rows)[:-1]),
                          ctx.reshape(weights, ctx.shape(weights)[:-2]))
    return ctx.reshape(total, (*ctx.shape(total), 1))


def _unfold(ctx: Lowering, rows: np.ndarray, window: Sequence[int], result: tuple[int, ...],
            strides: tuple[int, ...], padding: tuple[tuple[int, int], ...],
            lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...]) -> Any:
    """(batch, S, C) to (batch, P, K C), in some shape of that order."""
    batch, *spatial, features = ctx.shape(rows)
    places, positions = math.prod(window), math.prod(result)
    simple = all(tuple(pads) == (0, 0) for pads in padding) and all(d == 1 for d in lhs_dilation)
    if simple and (places == 1 and result == tuple(spatial)
                   or positions == 1 and window == tuple(spatial)):
        return rows
    shape = (batch, positions, places * features)
    if 0 in shape or 0 in spatial:
        return ctx.full(shape, 0, ctx.dtype(rows))
    if len(spatial) in (1, 2):
        return ctx.sliding(
            "unfold", [ctx.reshape(rows, (batch, *_two(spatial, 1), features))],
            (batch, *_two(result, 1), places * features), _two(window, 1), _two(strides, 1),
            _two((low for low, _ in padding), 0), _two(rhs_dilation, 1), _two(lhs_dilation, 1))
    config = [(low, high, ld - 1) for (low, high), ld in zip(padding, lhs_dilation, strict=True)]
    rows = ctx.pad(rows, ctx.scalar(0, rows), ((0, 0, 0), *config, (0, 0, 0)))
    spatial = list(ctx.shape(rows)[1:-1])
    rows = ctx.reshape(rows, (batch, math.prod(spatial), features))
    indices = window_positions(spatial, window, result, strides, rhs_dilation)
    return ctx.gather_rows(rows, indices.reshape(-1).astype(np.int32), 1)


def _by_phases(ctx: Lowering, convolved: Callable[..., Any], weights: object,
               spatial: Sequence[int], result: tuple[int, ...],
               padding: tuple[tuple[int, int], ...], lhs_dilation: tuple[int, ...]) -> Any:
    """A convolution of a dilated lhs without products by the holes; strides are 1.

    Along a dimension of dilation d, position d q + p of the result meets the elements k of the
    window for which (d q + p + k - low) / d is an element of lhs: every d-th, from (low - p) mod d
    on. So each p is a convolution with a part of the window, and their results alternate.
    """
    window, rank = ctx.shape(weights)[:-2], len(spatial)
    others = ctx.shape(weights)[-2:]
    counts = tuple(-(-size // d) for size, d in zip(result, lhs_dilation, strict=True))
    parts = []
    for phase in np.ndindex(*lhs_dilation):
        firsts = [(low - p) % d for p, d, (low, _) in zip(
            phase, lhs_dilation, padding, strict=True)]
        shape = [max(0, -(-(size - first) // d)) for size, first, d in zip(
            window, firsts, lhs_dilation, strict=True)]
        lows = [(low - p - first) // d for (low, _), p, first, d in zip(
            padding, phase, firsts, lhs_dilation, strict=True)]
        pads = tuple((low, count + places - 1 - size - low) for low, count, places, size in zip(
            lows, counts, shape, spatial, strict=True))
        part = ctx.slice(weights, (*firsts, 0, 0), (*window, *others), (*lhs_dilation, 1, 1)) if (
            0 not in shape) else ctx.full((*shape, *others), 0, ctx.dtype(weights))
        parts.append(convolved(part, counts, pads, (1,) * rank))
    # (batch, counts, G O) of each phase to (batch, counts and phases in turn, G O)
    batch, *_, outputs = ctx.shape(parts[0])
    parts = [ctx.reshape(part, (batch, *(size for count in counts for size in (count, 1)), outputs))
             for part in parts]
    for dim in reversed(range(rank)):
        d = lhs_dilation[dim]
        parts = [ctx.concatenate(parts[i:i + d], 2 + 2 * dim) for i in range(0, len(parts), d)]
    whole = ctx.reshape(parts[0], (batch, *(
        count * d for count, d in zip(counts, lhs_dilation, strict=True)), outputs))
    return ctx.slice(whole, (0,) * (rank + 2), (batch, *result, outputs), None)


def _lower(ctx: Lowering, lhs: object, rhs: object, *, window_strides: tuple[int, ...],
           padding: tuple[tuple[int, int], ...], lhs_dilation: tuple[int, ...],
           rhs_dilation: tuple[int, ...], dimension_numbers: ConvDimensionNumbers,
           feature_group_count: int, batch_group_count: int, **params: object) -> Any:
    """The windows' elements become the rows of a matrix, which a product multiplies by the window.
    """
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    left, right = ctx.in_avals
    out = ctx.out_avals[0]
    compute = compute_dtype(left.dtype, right.dtype, out.dtype)
    lhs, rhs = ctx.convert(lhs, compute), ctx.convert(rhs, compute)
    batch, features = _sizes(left.shape, lhs_spec[:2])
    result = _sizes(out.shape, out_spec[2:])
    groups = max(feature_group_count, batch_group_count)
    if feature_group_count > 1:
        features //= groups
    else:
        batch //= groups
    outputs = out.shape[out_spec[1]] // groups
    spatial = _sizes(left.shape, lhs_spec[2:])
    # rows: (groups, batch, spatial, features)
    rows = ctx.transpose(lhs, (lhs_spec[0], *lhs_spec[2:], lhs_spec[1]))
    if feature_group_count > 1:
        rows = ctx.reshape(rows, (batch, math.prod(spatial), groups, features))
        rows = ctx.transpose(rows, (2, 0, 1, 3))
    rows = ctx.reshape(rows, (groups * batch, *spatial, features))
    weights = ctx.transpose(rhs, (*rhs_spec[2:], rhs_spec[1], rhs_spec[0]))

    def convolved(weights: object, result: tuple[int, ...], padding: tuple[tuple[int, int], ...],
                  lhs_dilation: tuple[int, ...]) -> Any:
        """(batch, P, G O), of weights (K, C, G O)."""
        window = ctx.shape(weights)[:-2]
        depth, positions = math.prod(window) * features, math.prod(result)
        if (groups == 1 and len(window) in (1, 2) and math.prod(window) > 1
                and math.prod(lhs_dilation) == 1):
            x = ctx.reshape(rows, (batch, *_two(spatial, 1), features))
            at_once = ctx.convolve(
                x, ctx.reshape(weights, (depth, outputs)), _two(result, 1), _two(window, 1),
                _two(window_strides, 1), _two((low for low, _ in padding), 0),
                _two(rhs_dilation, 1))
            if at_once is not None:
                return ctx.reshape(at_once, (batch, *result, outputs))
        unfolded = _unfold(ctx, rows, window, result, window_strides, padding, lhs_dilation,
                           rhs_dilation)
        if groups == 1:
            product = ctx.matmul(ctx.reshape(unfolded, (batch * positions, depth)),
                                 ctx.reshape(weights, (depth, outputs)))
        else:
            unfolded = ctx.reshape(unfolded, (groups, batch * positions, depth))
            weights = ctx.reshape(weights, (depth, groups, outputs))
            product = ctx.matmul(unfolded, ctx.transpose(weights, (1, 0, 2)))
            product = ctx.reshape(product, (groups, batch * positions, outputs))
            product = ctx.transpose(product, (1, 0, 2))
        return ctx.reshape(product, (batch, *result, groups * outputs))

    if (math.prod(lhs_dilation) > 1 and out.size and math.prod(right.shape)
            and all(step == 1 for step in (*window_strides, *rhs_dilation))):
        product = _by_phases(ctx, convolved, weights, spatial, result, padding, lhs_dilation)
    elif math.prod(lhs_dilation) == 1 and _has_few_taps(
            ctx.shape(rows), ctx.shape(weights), result):
        product = _by_taps(ctx, rows, weights, result, window_strides, padding, rhs_dilation)
    else:
        product = convolved(weights, result, padding, lhs_dilation)
    order = np.argsort((out_spec[0], *out_spec[2:], out_spec[1])).tolist()
    return ctx.convert(ctx.transpose(product, tuple(order)), out.dtype)


def _factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
             dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
             batch_group_count: int, **params: object) -> FactorRule:
    """Batch and features are factors, the features of lhs summed over; windows stay whole."""
    lhs, rhs = in_avals
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    left: list = [f"s{dim}" for dim in range(lhs.ndim)]
    right: list = [f"k{dim}" for dim in range(rhs.ndim)]
    result: list = [f"p{dim}" for dim in range(out_avals[0].ndim)]
    whole = {*(left[d] for d in lhs_spec[2:]), *(right[d] for d in rhs_spec[2:]),
             *(result[d] for d in out_spec[2:])}
    left[lhs_spec[0]], left[lhs_spec[1]] = "n", "c"
    right[rhs_spec[0]], right[rhs_spec[1]] = "o", "c"
    result[out_spec[0]], result[out_spec[1]] = "n", "o"
    reduction = {"c": "add"}
    if feature_group_count > 1:
        right[rhs_spec[1]] = "i"
        whole |= {"c", "i", "o"}
        reduction = {}
    if batch_group_count > 1:
        result[out_spec[0]] = "m"
        whole |= {"n", "m", "o"}
    return factor_rule([left, right], [result], in_avals, out_avals, reduction=reduction,
                       replicated=frozenset(whole))


def _flops(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
           dimension_numbers: ConvDimensionNumbers, window_strides: Sequence[int],
           padding: Sequence[tuple[int, int]], lhs_dilation: Sequence[int],
           rhs_dilation: Sequence[int], **params: object) -> float:
    """Two for each product; those with padding and holes are left out."""
    lhs, rhs = in_avals
    _, channels, *kernel_dims = dimension_numbers.rhs_spec
    products = float(out_avals[0].size * rhs.shape[channels])
    for axis, (lhs_dim, rhs_dim, out_dim) in enumerate(zip(
            dimension_numbers.lhs_spec[2:], kernel_dims, dimension_numbers.out_spec[2:],
            strict=True)):
        size, places = lhs.shape[lhs_dim], out_avals[0].shape[out_dim]
        if not all(type(n) is int for n in (size, places, rhs.shape[rhs_dim])):
            products *= rhs.shape[rhs_dim]
            continue
        at = (np.arange(places)[:, None] * window_strides[axis] - padding[axis][0]
              + np.arange(rhs.shape[rhs_dim]) * rhs_dilation[axis])
        dilation = lhs_dilation[axis]
        inside = (at >= 0) & (at <= (size - 1) * dilation) & (at % dilation == 0)
        products = products * int(inside.sum()) / max(places, 1)
    return 2.0 * products


_ROOFLINE = Roofline(lambda ins, outs, params: int(_flops(ins, outs, **params)))

conv_general_dilated_p = Primitive(
    "conv_general_dilated",
    contract=takes(
        2, fitting.convolution, fitting.NO_KEYS, fitting.product_dtype,
        window_strides=SPATIAL_STEPS, padding=SPATIAL_PAIRS, lhs_dilation=SPATIAL_STEPS,
        rhs_dilation=SPATIAL_STEPS, dimension_numbers=numbered(ConvDimensionNumbers),
        feature_group_count=POSITIVE, batch_group_count=POSITIVE,
        precision=PRECISION, preferred_element_type=optional(DTYPE)),
    linearity=PRODUCT,
    abstract=_abstract,
    evaluate=_evaluate,
    host=Host(specialize=_specialize, calls_blas=True),
    lower=_lower,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    factors=_factors,
    cost=Cost(flops=_flops, xla=ALONE.xla, roofline=_ROOFLINE),
    values=Values(may_give_nan=True),
    printed=Printed(lambda params: {**params, "out_sharding": None}),
)
