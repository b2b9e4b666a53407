"""Primitives that move elements about: broadcast, reshape, transpose, slice, pad and so on."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, native
from maxjax._ir.linearity import MOVEMENT, SUM, Linearity
from maxjax._ir.primitive import Primitive
from maxjax._ir.types import ShapedArray
from maxjax._primitives.rules import (
    FactorRule,
    OnShard,
    axis_factors,
    factor_rule,
    is_linear,
    linear_primitive,
    no_flops,
    reduction_flops,
    replicated_factors,
    scalar_like,
)

# --- broadcast_in_dim -----------------------------------------------------------------------------


def _broadcast_in_dim_evaluate(x, *, shape, broadcast_dimensions):
    if broadcast_dimensions:
        sizes = [1] * len(shape)
        for size, dim in zip(x.shape, broadcast_dimensions, strict=True):
            sizes[dim] = size
        x = x.reshape(sizes)
    return np.broadcast_to(x, shape)


def _broadcast_in_dim_transpose(cotangent, operand, *, shape, broadcast_dimensions):
    kept = {dim for dim, size in zip(broadcast_dimensions, operand.shape, strict=True)
            if size == shape[dim]}
    summed = tuple(dim for dim in range(len(shape)) if dim not in kept)
    result = reduce_sum(cotangent, summed)
    return [reshape(result, operand.shape)]


def _broadcast_in_dim_batch(size, operands, axes, *, shape, broadcast_dimensions):
    operand = move_axis(operands[0], axes[0], 0)
    return broadcast_in_dim_p.bind(
        operand, shape=(size, *shape),
        broadcast_dimensions=(0, *(dim + 1 for dim in broadcast_dimensions))), 0


def _broadcast_in_dim_factors(in_avals, out_avals, *, shape, broadcast_dimensions):
    operand = [dim if size == shape[dim] else None
               for dim, size in zip(broadcast_dimensions, in_avals[0].shape, strict=True)]
    return factor_rule([operand], [range(len(shape))], in_avals, out_avals)


broadcast_in_dim_p = linear_primitive(
    "broadcast_in_dim", shard_params=lambda params, avals, shapes, out: {**params, "shape": out},
    linearity=MOVEMENT, passes_unreduced=slice(None),
    shown=lambda params: {name: dims for name, dims in params.items()
                          if name == "broadcast_dimensions" and dims},
    abstract=lambda x, *, shape, broadcast_dimensions: ShapedArray(shape, x.dtype, x.weak_type),
    evaluate=_broadcast_in_dim_evaluate,
    lower=lambda ctx, x, *, shape, broadcast_dimensions: ctx.broadcast(
        x, shape, broadcast_dimensions),
    transpose=_broadcast_in_dim_transpose,
    batch=_broadcast_in_dim_batch,
    factors=_broadcast_in_dim_factors,
)

# --- reshape --------------------------------------------------------------------------------------


def _reshape_factors(in_avals, out_avals, *, new_sizes, dimensions):
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
        """A factor of all that is left of a dimension, which may not be split."""
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
        # Sizes like 2, 3 -> 3, 2: blocks of the one are none of the other, until both have as many.
        done = [whole(0), whole(1)]
        while done[0] != done[1]:
            side = int(done[0] > done[1])
            done[side] *= whole(side)
    for side in (0, 1):
        if sides[side]:
            dims[side].append(tuple(current[side]))
    return FactorRule((tuple(dims[0]),), (tuple(dims[1]),), sizes,
                      replicated=frozenset(replicated))


def _reshape_evaluate(x, *, new_sizes, dimensions):
    if x.size >= native.FEWEST and not x.flags.c_contiguous:
        x = _contiguous(x)
    return x.reshape(new_sizes)


def _contiguous(x):
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


def _reshape_batch(size, operands, axes, *, new_sizes, dimensions):
    operand = move_axis(operands[0], axes[0], 0)
    return reshape_p.bind(operand, new_sizes=(size, *new_sizes), dimensions=None), 0


reshape_p = linear_primitive(
    "reshape", shard_params=lambda params, avals, shapes, out: {**params, "new_sizes": out},
    linearity=MOVEMENT, passes_unreduced=slice(None),
    shown=lambda params: {**params, "sharding": None},
    abstract=lambda x, *, new_sizes, dimensions: ShapedArray(new_sizes, x.dtype, x.weak_type),
    evaluate=_reshape_evaluate,
    lower=lambda ctx, x, *, new_sizes, dimensions: ctx.reshape(x, new_sizes),
    transpose=lambda cotangent, operand, **params: [reshape(cotangent, operand.shape)],
    batch=_reshape_batch,
    factors=_reshape_factors,
)

# --- squeeze --------------------------------------------------------------------------------------


def _squeezed(shape: tuple[int, ...], dimensions: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size for dim, size in enumerate(shape) if dim not in dimensions)


def _squeeze_batch(size, operands, axes, *, dimensions):
    axis = axes[0]
    moved = tuple(dim + (dim >= axis) for dim in dimensions)
    return squeeze_p.bind(operands[0], dimensions=moved), axis - sum(d < axis for d in moved)


squeeze_p = linear_primitive(
    "squeeze", linearity=MOVEMENT, passes_unreduced=slice(None),
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
)

# --- transpose ------------------------------------------------------------------------------------


def _transpose_batch(size, operands, axes, *, permutation):
    axis = axes[0]
    moved = tuple(dim + (dim >= axis) for dim in permutation)
    return transpose_p.bind(operands[0], permutation=(axis, *moved)), 0


transpose_p = linear_primitive(
    "transpose", linearity=MOVEMENT, passes_unreduced=slice(None),
    abstract=lambda x, *, permutation: ShapedArray(
        tuple(x.shape[dim] for dim in permutation), x.dtype, x.weak_type),
    evaluate=lambda x, *, permutation: x.transpose(permutation),
    lower=lambda ctx, x, *, permutation: ctx.transpose(x, permutation),
    transpose=lambda cotangent, operand, *, permutation: [
        transpose(cotangent, tuple(np.argsort(permutation).tolist()))],
    batch=_transpose_batch,
    factors=lambda in_avals, out_avals, *, permutation: factor_rule(
        [range(in_avals[0].ndim)], [permutation], in_avals, out_avals),
)

# --- concatenate ----------------------------------------------------------------------------------


def _concatenate_abstract(*avals, dimension):
    shape = list(avals[0].shape)
    shape[dimension] = sum(aval.shape[dimension] for aval in avals)
    return ShapedArray(shape, avals[0].dtype, all(aval.weak_type for aval in avals))


def joining_jvp(bind):
    """The jvp of an operation, ``bind(*operands, **params)``, that puts its operands together."""
    def jvp(primals, tangents, **params):
        out = bind(*primals, **params)
        if all(tangent is None for tangent in tangents):
            return out, None
        filled = [zeros_like(primal) if tangent is None else tangent
                  for primal, tangent in zip(primals, tangents, strict=True)]
        return out, bind(*filled, **params)

    return jvp


def _concatenate_transpose(cotangent, *operands, dimension):
    result = []
    start = 0
    for operand in operands:
        stop = start + operand.shape[dimension]
        result.append(slice_in_dim(cotangent, start, stop, dimension)
                      if is_linear(operand) else None)
        start = stop
    return result


def _concatenate_batch(size, operands, axes, *, dimension):
    moved = [move_axis(x, axis, 0) if axis is not None else broadcast_leading(x, size)
             for x, axis in zip(operands, axes, strict=True)]
    return concatenate_p.bind(*moved, dimension=dimension + 1), 0


concatenate_p = Primitive(
    "concatenate", flops=no_flops, same_dtypes=slice(None),
    linearity=SUM, passes_unreduced=slice(None),
    abstract=_concatenate_abstract,
    evaluate=lambda *xs, dimension: np.concatenate(xs, dimension),
    lower=lambda ctx, *xs, dimension: ctx.concatenate(xs, dimension),
    jvp=joining_jvp(lambda *xs, **params: concatenate_p.bind(*xs, **params)),
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
    factors=lambda in_avals, out_avals, *, dimension: axis_factors(
        in_avals, out_avals, whole=(dimension,)),
)

# --- pad ------------------------------------------------------------------------------------------


def _pad_abstract(x, value, *, padding_config):
    shape = tuple(
        low + high + size + (max(size - 1, 0) * interior if interior else 0)
        for size, (low, high, interior) in zip(x.shape, padding_config, strict=True))
    return ShapedArray(shape, x.dtype, x.weak_type and value.weak_type)


def _pad_evaluate(x, value, *, padding_config):
    x = np.asarray(x)
    shape = _pad_abstract(ShapedArray(x.shape, x.dtype), ShapedArray((), x.dtype),
                          padding_config=padding_config).shape
    out = np.full(shape, value, x.dtype)
    target, source = [], []
    for size, (low, _high, interior), total in zip(x.shape, padding_config, shape, strict=True):
        step = interior + 1
        # The first and last elements that a negative padding leaves.
        first = max(0, -(low // step)) if low < 0 else 0
        last = size - 1
        while last >= first and low + last * step >= total:
            last -= 1
        source.append(slice(first, last + 1))
        target.append(slice(low + first * step, max(low + last * step + 1, 0), step)
                      if last >= first else slice(0, 0))
    out[tuple(target)] = x[tuple(source)]
    return out


def _pad_jvp(primals, tangents, *, padding_config):
    out = pad_p.bind(*primals, padding_config=padding_config)
    if tangents[0] is None and tangents[1] is None:
        return out, None
    filled = [zeros_like(primal) if tangent is None else tangent
              for primal, tangent in zip(primals, tangents, strict=True)]
    return out, pad_p.bind(*filled, padding_config=padding_config)


def _pad_transpose(cotangent, operand, value, *, padding_config):
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


def _pad_batch(size, operands, axes, *, padding_config):
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
    "pad", flops=no_flops, linearity=Linearity(slice(2)), passes_unreduced=slice(1),
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
    may_give_nan=True,
)

# --- slice ----------------------------------------------------------------------------------------


def _slice_shape(start_indices, limit_indices, strides):
    strides = strides or (1,) * len(start_indices)
    return tuple(max(-(-(limit - start) // stride), 0)
                 for start, limit, stride in zip(
                     start_indices, limit_indices, strides, strict=True))


def _slice_index(start_indices, limit_indices, strides):
    strides = strides or (1,) * len(start_indices)
    return tuple(map(slice, start_indices, limit_indices, strides))


def _slice_transpose(cotangent, operand, *, start_indices, limit_indices, strides):
    strides = strides or (1,) * len(start_indices)
    config = []
    for start, stride, size, width in zip(
            start_indices, strides, operand.shape, cotangent.shape, strict=True):
        covered = start + (width - 1) * stride + 1 if width else start
        config.append((start, size - covered, stride - 1))
    return [pad(cotangent, 0, tuple(config))]


def _slice_batch(size, operands, axes, *, start_indices, limit_indices, strides):
    axis = axes[0]

    def insert(values, value):
        return (*values[:axis], value, *values[axis:])

    return slice_p.bind(
        operands[0], start_indices=insert(start_indices, 0),
        limit_indices=insert(limit_indices, size),
        strides=None if strides is None else insert(strides, 1)), axis


def _slice_factors(in_avals, out_avals, *, start_indices, limit_indices, strides):
    cut = [dim for dim, (a, b) in enumerate(
        zip(in_avals[0].shape, out_avals[0].shape, strict=True)) if a != b]
    return axis_factors(in_avals, out_avals, whole=cut)


def _slice_specialize(in_avals, params, out_avals):
    index = _slice_index(**params)
    return lambda x: x[index]


def _slice_on_shard(params, in_avals, shapes, out):
    limits = tuple(limit if here == size else here for limit, here, size in zip(
        params["limit_indices"], shapes[0], in_avals[0].shape, strict=True))
    return {**params, "limit_indices": limits}


slice_p = linear_primitive(
    "slice", shard_params=_slice_on_shard, linearity=MOVEMENT, passes_unreduced=slice(None),
    abstract=lambda x, **params: ShapedArray(_slice_shape(**params), x.dtype, x.weak_type),
    evaluate=lambda x, **params: x[_slice_index(**params)],
    specialize=_slice_specialize,
    lower=lambda ctx, x, *, start_indices, limit_indices, strides: ctx.slice(
        x, start_indices, limit_indices, strides),
    transpose=_slice_transpose,
    batch=_slice_batch,
    factors=_slice_factors,
)

# --- split ----------------------------------------------------------------------------------------


def _split_bounds(sizes):
    """(start, stop) of each part."""
    stops = list(itertools.accumulate(sizes))
    return list(zip([0, *stops[:-1]], stops, strict=True)) if sizes else []


def _split_evaluate(x, *, sizes, axis):
    before = (slice(None),) * axis
    return [x[(*before, slice(start, stop))] for start, stop in _split_bounds(sizes)]


def _split_shapes(shape, sizes, axis):
    return [(*shape[:axis], size, *shape[axis + 1:]) for size in sizes]


def _split_jvp(primals, tangents, **params):
    outs = split_p.bind(*primals, **params)
    return outs, split_p.bind(*tangents, **params)


def _split_transpose(cotangents, operand, *, sizes, axis):
    filled = [full(shape, 0, operand.dtype) if cotangent is None else cotangent
              for cotangent, shape in zip(
                  cotangents, _split_shapes(operand.shape, sizes, axis), strict=True)]
    return [concatenate(filled, axis)]


def _split_batch(size, operands, axes, *, sizes, axis):
    outs = split_p.bind(operands[0], sizes=sizes, axis=axis + (axis >= axes[0]))
    return outs, [axes[0]] * len(outs)


split_p = Primitive(
    "split", flops=no_flops, linearity=SUM, passes_unreduced=slice(None),
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

# --- rev ------------------------------------------------------------------------------------------


def _rev_evaluate(x, *, dimensions):
    return x[tuple(slice(None, None, -1 if dim in dimensions else None) for dim in range(x.ndim))]


def _rev_batch(size, operands, axes, *, dimensions):
    axis = axes[0]
    return rev_p.bind(operands[0], dimensions=tuple(d + (d >= axis) for d in dimensions)), axis


def _rev_on_shard(shard, eqn, operands, params, in_dims, out_dims):
    out = rev_p.bind(*operands, **params)
    for dimension in params["dimensions"]:
        for axis in out_dims[0][dimension]:
            out = shard.reversed_along(out, axis)
    return out


rev_p = linear_primitive(
    "rev", linearity=MOVEMENT,
    # A shard reverses its own part, which is then sent on.
    on_shard=OnShard(_rev_on_shard, computed=lambda eqn, rule: None),
    abstract=lambda x, *, dimensions: x,
    evaluate=_rev_evaluate,
    lower=lambda ctx, x, *, dimensions: ctx.reverse(x, dimensions),
    transpose=lambda cotangent, operand, *, dimensions: [
        rev_p.bind(cotangent, dimensions=dimensions)],
    batch=_rev_batch,
    factors=lambda in_avals, out_avals, *, dimensions: axis_factors(
        in_avals, out_avals, permuted=dimensions),
)

# --- iota -----------------------------------------------------------------------------------------


def _iota_evaluate(*, dtype, shape, dimension):
    sizes = [1] * len(shape)
    sizes[dimension] = shape[dimension]
    if dtypes.is_integer(dtype) and dtype.itemsize < 4:   # wraps around, as XLA's does
        line = np.arange(shape[dimension]).astype(dtype)
    else:
        line = np.arange(shape[dimension]).astype(dtype)
    return np.broadcast_to(line.reshape(sizes), shape)


def _split_where_exact(eqn, rule):
    """Each shard counts from its own start: not where numbers wrap around."""
    if eqn.params["dtype"] in (dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.float32,
                               dtypes.float64):
        rule.replicated = frozenset()


def _iota_on_shard(shard, eqn, operands, params, in_dims, out_dims):
    axes = out_dims[0][eqn.params["dimension"]]
    out = iota_p.bind(**params)
    return shard.counted_from_start(out, eqn.params["dimension"], axes) if axes else out


iota_p = Primitive(
    "iota", flops=no_flops,
    shard_params=lambda params, avals, shapes, out: {**params, "shape": out},
    on_shard=OnShard(_iota_on_shard, computed=_split_where_exact),
    shown=lambda params: {**params, "sharding": None},
    abstract=lambda *, dtype, shape, dimension: ShapedArray(shape, dtype),
    evaluate=_iota_evaluate,
    lower=lambda ctx, *, dtype, shape, dimension: ctx.iota(dtype, shape, dimension),
    no_derivative="iota has no operands",
    factors=lambda in_avals, out_avals, *, dtype, shape, dimension: axis_factors(
        in_avals, out_avals, whole=(dimension,)),
)

# --- copy -----------------------------------------------------------------------------------------

copy_p = linear_primitive(
    "copy", linearity=MOVEMENT, passes_unreduced=slice(None), cheap=True,
    abstract=lambda x: x,
    evaluate=lambda x: np.array(x),
    lower=lambda ctx, x: x,
    transpose=lambda cotangent, operand: [cotangent],
    batch=lambda size, operands, axes: (copy_p.bind(operands[0]), axes[0]),
    factors=lambda in_avals, out_avals: axis_factors(in_avals, out_avals),
    keeps_zero=True,
)

# --- reduce_sum -----------------------------------------------------------------------------------
# The adjoint of broadcasting: it stands here because the transposes above need it.


def reduced_shape(shape: tuple[int, ...], axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(size for dim, size in enumerate(shape) if dim not in axes)


def reduction_batch(primitive: Primitive):
    """The batching rule of a reduction with a parameter ``axes``."""
    def batch(size, operands, batch_axes, *, axes, **params):
        axis = batch_axes[0]
        moved = tuple(dim + (dim >= axis) for dim in axes)
        out = primitive.bind(operands[0], axes=moved, **params)
        return out, axis - sum(dim < axis for dim in moved)
    return batch


def reduction_factors(kind: str):
    """The factors of a reduction: the reduced ones give partial results that combine by ``kind``.
    """
    def factors(in_avals, out_avals, *, axes, **params):
        names = range(in_avals[0].ndim)
        return factor_rule([names], [[dim for dim in names if dim not in axes]] * len(out_avals),
                           in_avals, out_avals, reduction=dict.fromkeys(axes, kind))
    return factors


def _reduce_sum_evaluate(x, *, axes):
    dtype = x.dtype
    if dtype in (dtypes.bfloat16, dtypes.float16) or dtype in dtypes.SMALL_FLOATS:
        # Narrow floats are summed in float32: a sum of many would stand still otherwise.
        return np.asarray(np.add.reduce(np.asarray(x, np.float32), axis=axes)).astype(dtype)
    return np.add.reduce(x, axis=axes, dtype=dtype)


def _reduce_sum_specialize(in_avals, params, out_avals):
    dtype = in_avals[0].dtype
    if dtype in (dtypes.float32, dtypes.float64, dtypes.int32):
        axes = params["axes"]
        axis = axes[0] if len(axes) == 1 else axes
        add_reduce = np.add.reduce
        return lambda x: add_reduce(x, axis, dtype)
    return None


reduce_sum_p = linear_primitive(
    "reduce_sum", flops=reduction_flops, linearity=SUM, passes_unreduced=slice(None),
    shown=lambda params: {**params, "out_sharding": None},
    abstract=lambda x, *, axes: ShapedArray(reduced_shape(x.shape, axes), x.dtype, x.weak_type),
    evaluate=_reduce_sum_evaluate,
    specialize=_reduce_sum_specialize,
    lower=lambda ctx, x, *, axes: ctx.reduce("sum", x, axes),
    transpose=lambda cotangent, operand, *, axes: [broadcast_in_dim(
        cotangent, operand.shape,
        tuple(dim for dim in range(len(operand.shape)) if dim not in axes))],
    batch=lambda size, operands, batch_axes, **params: reduction_batch(reduce_sum_p)(
        size, operands, batch_axes, **params),
    factors=reduction_factors("add"),
    may_give_nan=True,
)


# --- operations that rules are written with -------------------------------------------------------
# Operands are trusted; what changes nothing binds nothing.

def broadcast_in_dim(x, shape, broadcast_dimensions):
    shape = tuple(shape)
    if shape == x.shape and len(broadcast_dimensions) == len(shape):
        return x
    return broadcast_in_dim_p.bind(
        x, shape=shape, broadcast_dimensions=tuple(broadcast_dimensions))


def reshape(x, shape):
    shape = tuple(shape)
    return x if x.shape == shape else reshape_p.bind(x, new_sizes=shape, dimensions=None)


def transpose(x, permutation):
    permutation = tuple(permutation)
    if permutation == tuple(range(len(permutation))):
        return x
    return transpose_p.bind(x, permutation=permutation)


def move_axis(x, source: int, target: int):
    if source == target:
        return x
    order = [dim for dim in range(len(x.shape)) if dim != source]
    order.insert(target, source)
    return transpose_p.bind(x, permutation=tuple(order))


def expand_axis(x, axis: int):
    """Inserts a dimension of size 1."""
    shape = (*x.shape[:axis], 1, *x.shape[axis:])
    return broadcast_in_dim(x, shape, tuple(d for d in range(len(shape)) if d != axis))


def broadcast_leading(x, size: int):
    """Repeats ``x`` along a new first dimension."""
    return broadcast_in_dim(x, (size, *x.shape), tuple(range(1, len(x.shape) + 1)))


def broadcast_to_shape(x, shape):
    """Broadcasts a scalar, or an array of the same rank."""
    if x.shape == tuple(shape):
        return x
    return broadcast_in_dim(x, shape, tuple(range(len(shape))) if x.shape else ())


def reduce_sum(x, axes):
    axes = tuple(axes)
    return reduce_sum_p.bind(x, axes=axes) if axes else x


def unbroadcast(x, aval):
    """Sums ``x`` to the shape of an operand that elementwise broadcasting has widened."""
    if x.shape == aval.shape:
        return x
    if not aval.shape:
        return reduce_sum(x, range(len(x.shape)))
    axes = [dim for dim, (wide, size) in enumerate(zip(x.shape, aval.shape, strict=True))
            if wide != size]
    return reshape(reduce_sum(x, axes), aval.shape)


def slice_in_dim(x, start: int, stop: int, dim: int, stride: int = 1):
    starts = [0] * len(x.shape)
    limits = list(x.shape)
    starts[dim], limits[dim] = start, stop
    strides = None
    if stride != 1:
        strides = tuple(stride if d == dim else 1 for d in range(len(x.shape)))
    return slice_p.bind(x, start_indices=tuple(starts), limit_indices=tuple(limits),
                        strides=strides)


def pad(x, value, padding_config):
    if all(config == (0, 0, 0) for config in padding_config):
        return x
    return pad_p.bind(x, scalar_like(value, x.dtype), padding_config=tuple(padding_config))


def full(shape, value, dtype):
    return broadcast_in_dim(scalar_like(value, dtype), tuple(shape), ())


def zeros_like(x):
    return full(x.shape, 0, x.dtype)


def ones_like(x):
    return full(x.shape, 1, x.dtype)


def concatenate(xs, dimension: int):
    return xs[0] if len(xs) == 1 else concatenate_p.bind(*xs, dimension=dimension)


def iota(dtype, shape, dimension: int):
    return iota_p.bind(dtype=dtypes.as_dtype(dtype), shape=tuple(shape), dimension=dimension)


def select(which, on_false, on_true):
    return _later["select_n"].bind(which, on_false, on_true)


def subtract(x, y):
    return _later["sub"].bind(x, y)


# Two elementwise primitives that rare rules above need; that family stands on this one.
_later: dict[str, Primitive] = {}


def provide(primitive: Primitive) -> None:
    _later[primitive.name] = primitive


