"""broadcast_in_dim, and reduce_sum, its adjoint."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import config, dtypes
from maxjax._ir.contract import AXES, INTEGERS, SHAPE, takes
from maxjax._ir.costs import Roofline
from maxjax._ir.linearity import MOVEMENT, SUM
from maxjax._ir.primitive import forget_specs
from maxjax._ir.rule_groups import Compiled, Host, Printed, Sharded, Values
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params, Shape, Value
from maxjax._primitives import costs, fitting
from maxjax._primitives.layout import move_axis, reshape
from maxjax._primitives.rules import (
    factor_rule,
    linear_primitive,
    nonnegative,
    of_numbers,
    reduced_shape,
    reduction_batch,
    reduction_factors,
)
from maxjax._primitives.sums import sum_of, summing

if TYPE_CHECKING:
    from maxjax._primitives.rules import FactorRule, Linear

# --- broadcast_in_dim -----------------------------------------------------------------------------


def _broadcast_in_dim_evaluate(x: np.ndarray, *, shape: Shape,
                               broadcast_dimensions: tuple[int, ...]) -> np.ndarray:
    if broadcast_dimensions:
        sizes = [1] * len(shape)
        for size, dim in zip(x.shape, broadcast_dimensions, strict=True):
            sizes[dim] = size
        x = x.reshape(sizes)
    return np.broadcast_to(x, shape)


def has_buffer(dtype: Any) -> bool:
    """Whether NumPy makes views of such an array's memory at once, by ``np.ndarray``: not of dtypes
    that it does not have itself."""
    return not dtypes.is_opaque(dtype) and dtypes.physical(dtype).kind in "biufc"


def known_sizes(shape: Shape) -> bool:
    """Whether a shape is known, and no dimension is empty."""
    return all(type(size) is int and size > 0 for size in shape)


def _broadcast_in_dim_specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                                 out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any] | None:
    """A rule for scalars and for what lies row by row, which gives a view of their memory: NumPy's
    ``broadcast_to`` takes four times as long to make it. None for other operands."""
    aval, = in_avals
    dtype, shape = dtypes.physical(aval.dtype), params["shape"]
    if not has_buffer(aval.dtype) or not known_sizes(shape) or not known_sizes(aval.shape):
        return None
    if aval.shape:
        return _spread_rows(aval.shape, dtype, **params)
    strides = (0,) * len(shape)

    def spread(x: np.ndarray) -> np.ndarray:
        view: np.ndarray = np.ndarray(shape, dtype, np.asarray(x, dtype), 0, strides)
        view.flags.writeable = False
        return view
    return spread


def _spread_rows(operand: Shape, dtype: np.dtype, *, shape: Shape,
                 broadcast_dimensions: tuple[int, ...]) -> Callable[..., Any]:
    lengths = [dtype.itemsize * math.prod(operand[axis + 1:]) for axis in range(len(operand))]
    sizes, steps = [1] * len(shape), [0] * len(shape)
    for axis, dimension in enumerate(broadcast_dimensions):
        sizes[dimension] = operand[axis]
        steps[dimension] = lengths[axis] if operand[axis] != 1 else 0
    strides = tuple(steps)
    # With dimensions of size 1 alone the elements are the operand's own.
    is_reshape = tuple(sizes) == shape

    def spread(x: np.ndarray) -> np.ndarray:
        if is_reshape:
            return x.reshape(shape)
        if not x.flags.c_contiguous:
            return np.broadcast_to(x.reshape(sizes), shape)
        view: np.ndarray = np.ndarray(shape, dtype, x, 0, strides)
        view.flags.writeable = False
        return view
    return spread


def _broadcast_in_dim_transpose(cotangent: Array, operand: Linear, *, shape: Shape,
                                broadcast_dimensions: tuple[int, ...]) -> list[Array]:
    kept = {dim: n for n, (dim, size) in enumerate(
        zip(broadcast_dimensions, operand.shape, strict=True)) if size == shape[dim] != 1}
    summed = tuple(dim for dim in range(len(shape)) if dim not in kept)
    result = reduce_sum(cotangent, summed)
    if len(kept) == len(operand.shape):
        return [result]
    return [broadcast_in_dim(result, operand.shape, tuple(kept.values()))]


def _broadcast_in_dim_batch(size: int, operands: Sequence[Array], axes: Sequence[int], *,
                            shape: Shape, broadcast_dimensions: tuple[int, ...]
                            ) -> tuple[Array, int]:
    operand = move_axis(operands[0], axes[0], 0)
    return broadcast_in_dim_p.bind(
        operand, shape=(size, *shape),
        broadcast_dimensions=(0, *(dim + 1 for dim in broadcast_dimensions))), 0


def _broadcast_in_dim_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
                              shape: Shape, broadcast_dimensions: tuple[int, ...]) -> FactorRule:
    operand = [dim if size == shape[dim] else None
               for dim, size in zip(broadcast_dimensions, in_avals[0].shape, strict=True)]
    return factor_rule([operand], [range(len(shape))], in_avals, out_avals)


broadcast_in_dim_p = linear_primitive(
    "broadcast_in_dim",
    contract=takes(1, fitting.broadcast_in_dim, shape=SHAPE, broadcast_dimensions=INTEGERS),
    sharded=Sharded(
        shard_params=lambda params, avals, shapes, out: {**params, "shape": out},
        passes_unreduced=slice(None)),
    linearity=MOVEMENT,
    printed=Printed(lambda params: {
        name: dims for name, dims in params.items() if name == "broadcast_dimensions" and dims}),
    abstract=lambda x, *, shape, broadcast_dimensions: ShapedArray(
        nonnegative("broadcast_in_dim", shape), x.dtype, x.weak_type),
    evaluate=_broadcast_in_dim_evaluate,
    host=Host(specialize=_broadcast_in_dim_specialize),
    lower=lambda ctx, x, *, shape, broadcast_dimensions: ctx.broadcast(
        x, shape, broadcast_dimensions),
    transpose=_broadcast_in_dim_transpose,
    batch=_broadcast_in_dim_batch,
    factors=_broadcast_in_dim_factors,
    compiled=Compiled(takes_complex=dtypes.COMPLEX_WORDS),
)

# --- reduce_sum -----------------------------------------------------------------------------------


def _reduce_sum_abstract(x: ShapedArray, *, axes: tuple[int, ...]) -> ShapedArray:
    if not config.allow_f16_reductions.value and x.dtype in (
            dtypes.bfloat16, dtypes.float16) and any(x.shape[axis] != 1 for axis in axes):
        raise ValueError(f"reduce_sum on operand {x.str_short(True)} is not allowed when "
                         "jax_allow_f16_reductions=False.")
    return ShapedArray(reduced_shape(x.shape, axes), x.dtype, x.weak_type)


config.allow_f16_reductions.on_change.append(forget_specs)


def _reduce_sum_evaluate(x: np.ndarray, *, axes: tuple[int, ...]) -> np.ndarray:
    dtype = x.dtype
    if dtype in (dtypes.bfloat16, dtypes.float16) or dtype in dtypes.SMALL_FLOATS:
        # Narrow floats are summed in float32: otherwise a sum of many would stop growing.
        return np.asarray(sum_of(np.asarray(x, np.float32), axes)).astype(dtype)
    if dtypes.is_inexact(dtype):
        return np.asarray(sum_of(x, axes))
    return np.add.reduce(x, axis=axes, dtype=dtype)


def _reduce_sum_specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                           out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any] | None:
    dtype, axes = in_avals[0].dtype, params["axes"]
    if dtype in (dtypes.float32, dtypes.float64, dtypes.complex64, dtypes.complex128):
        return summing(in_avals[0].shape, axes, dtype)
    if dtype == dtypes.int32:
        axis = axes[0] if len(axes) == 1 else axes
        add_reduce = np.add.reduce
        return lambda x: add_reduce(x, axis, dtype)
    return None


reduce_sum_p = linear_primitive(
    "reduce_sum",
    contract=takes(1, fitting.NUMBERS, axes=AXES),
    cost=dataclasses.replace(costs.REDUCTION, roofline=Roofline(costs.combines())),
    linearity=SUM, sharded=Sharded(passes_unreduced=slice(None)),
    printed=Printed(lambda params: {**params, "out_sharding": None}),
    abstract=of_numbers("reduce_sum", _reduce_sum_abstract),
    evaluate=_reduce_sum_evaluate,
    host=Host(specialize=_reduce_sum_specialize),
    lower=lambda ctx, x, *, axes: ctx.reduce("sum", x, axes),
    transpose=lambda cotangent, operand, *, axes: [broadcast_in_dim(
        cotangent, operand.shape,
        tuple(dim for dim in range(len(operand.shape)) if dim not in axes))],
    batch=lambda size, operands, batch_axes, **params: reduction_batch(reduce_sum_p)(
        size, operands, batch_axes, **params),
    factors=reduction_factors("add"),
    values=Values(may_give_nan=True),
)

# --- operations that rules are written with -------------------------------------------------------
# Operands are trusted; an operation that changes nothing binds nothing.

def broadcast_in_dim(x: Value, shape: Sequence[int], broadcast_dimensions: range | Sequence[int]
                     ) -> Any:
    shape = tuple(shape)
    if shape == x.shape and len(broadcast_dimensions) == len(shape):
        return x
    return broadcast_in_dim_p.bind(
        x, shape=shape, broadcast_dimensions=tuple(broadcast_dimensions))


def expand_axis(x: Array, axis: int) -> Array:
    """Inserts a dimension of size 1."""
    shape = (*x.shape[:axis], 1, *x.shape[axis:])
    return broadcast_in_dim(x, shape, tuple(d for d in range(len(shape)) if d != axis))


def broadcast_leading(x: Array, size: int) -> Array:
    """Repeats ``x`` along a new first dimension."""
    return broadcast_in_dim(x, (size, *x.shape), tuple(range(1, len(x.shape) + 1)))


def broadcast_to_shape(x: Array, shape: Shape) -> Array:
    """Broadcasts a scalar, or an array of the same rank."""
    if x.shape == tuple(shape):
        return x
    return broadcast_in_dim(x, shape, tuple(range(len(shape))) if x.shape else ())


def reduce_sum(x: Array, axes: range | Sequence[int]) -> Array:
    axes = tuple(axes)
    return reduce_sum_p.bind(x, axes=axes) if axes else x


def unbroadcast(x: Array, aval: ShapedArray) -> Array:
    """Sums ``x`` to the shape of an operand that elementwise broadcasting has widened."""
    if x.shape == aval.shape:
        return x
    if not aval.shape:
        return reduce_sum(x, range(len(x.shape)))
    axes = [dim for dim, (wide, size) in enumerate(zip(x.shape, aval.shape, strict=True))
            if wide != size]
    return reshape(reduce_sum(x, axes), aval.shape)
