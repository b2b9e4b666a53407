"""Reductions along axes other than the sum, and the positions of extremes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, native
from maxjax._ir.contract import AXES, INTEGER_DTYPE, ONE_AXIS, takes
from maxjax._ir.costs import Cost, XlaCost
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Host, Printed, Values
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params, Shape
from maxjax._primitives import costs, fitting
from maxjax._primitives.arithmetic import div, mul
from maxjax._primitives.broadcasting import reduce_sum
from maxjax._primitives.builders import add_tangents
from maxjax._primitives.comparison import eq
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.layout import reshape, transpose
from maxjax._primitives.rules import (
    MOST_INT32,
    factor_rule,
    of_numbers,
    reduced_shape,
    reduction_batch,
    reduction_factors,
)
from maxjax._primitives.slicing import pad, slice_in_dim

_MANY, _LANES = 16_384, 1024


def _product_of_many(x: np.ndarray) -> Any:
    """The product of all elements, in independent lanes: NumPy's own waits for each product."""
    flat = x.reshape(-1)
    whole = flat.size - flat.size % _LANES
    lanes = np.multiply.reduce(flat[:whole].reshape(-1, _LANES), axis=0)
    return np.asarray(np.multiply.reduce(lanes) * np.multiply.reduce(flat[whole:]))


def _reduction(name: str, kind: str, ufunc: np.ufunc, identity: Callable[[np.dtype], object],
               factor: str, *, keeps_weak: bool = True, takes_bits: bool = False, **rules: Any
               ) -> Primitive:
    """A reduction by an associative function.

    ``identity`` gives the result over no elements, from the dtype; ``factor`` is how partial
    results of shards combine; ``keeps_weak`` says whether a weakly typed operand's result is;
    ``takes_bits``, whether operands are of integers and booleans.
    """
    def evaluate(x: np.ndarray, *, axes: tuple[int, ...]) -> np.ndarray:
        x = np.asarray(x)
        if not axes:
            return x
        dtype = x.dtype
        if kind == "prod":
            if dtypes.is_floating(dtype) and dtype.itemsize < 4:
                product = np.multiply.reduce(np.asarray(x, np.float32), axis=axes)
                return np.asarray(product).astype(dtype)
            return np.multiply.reduce(x, axis=axes, dtype=dtype)
        if not x.size:
            return np.full(reduced_shape(x.shape, axes), identity(dtype), dtype)
        out = np.asarray(ufunc.reduce(x, axis=axes)).astype(dtype, copy=False)
        if kind in ("max", "min") and dtypes.is_floating(dtype):
            return _signed_zeros(x, out, axes, kind)
        return out

    def specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                   out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any] | None:
        x, axes = in_avals[0], params["axes"]
        if not x.size or not axes or x.dtype not in (
                dtypes.float32, dtypes.float64, dtypes.int32, dtypes.bool_):
            return None
        axis = axes[0] if len(axes) == 1 else axes
        reduce, dtype = ufunc.reduce, x.dtype
        if (kind == "prod" and len(axes) == len(x.shape) and x.size >= _MANY
                and dtypes.is_floating(dtype)):
            return _product_of_many
        if kind in ("max", "min") and dtypes.is_floating(dtype):
            return lambda x: _signed_zeros(x, reduce(x, axis, dtype), axes, kind)
        return lambda x: reduce(x, axis, dtype)

    primitive = Primitive(
        name,
        contract=takes(1, fitting.BITS if takes_bits else fitting.NO_KEYS, axes=AXES),
        abstract=of_numbers(name, lambda x, *, axes: ShapedArray(
            reduced_shape(x.shape, axes), x.dtype, keeps_weak and x.weak_type)),
        evaluate=evaluate,
        host=Host(specialize=specialize),
        lower=lambda ctx, x, *, axes: ctx.reduce(kind, x, axes),
        batch=lambda size, operands, batch_axes, **params: reduction_batch(primitive)(
            size, operands, batch_axes, **params),
        factors=reduction_factors(factor),
        cost=costs.REDUCTION,
        **rules,
    )
    return primitive


def _signed_zeros(x: np.ndarray, out: np.ndarray, axes: tuple[int, ...], kind: str) -> np.ndarray:
    """0.0 is greater than -0.0; NumPy takes either."""
    zero = out == 0
    if not zero.any():
        return out
    wanted = kind == "min"
    found = ((x == 0) & (np.signbit(x) == wanted)).any(axes)
    value = np.asarray(-0.0 if wanted else 0.0, x.dtype)
    return np.where(zero & found, value, out)


def _with_ones(shape: Shape, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(1 if dim in axes else size for dim, size in enumerate(shape))


def _extreme_jvp(primals: Sequence[Array], tangents: Sequence[Array], *, primitive: Primitive,
                 axes: tuple[int, ...]) -> tuple[Array, Array | None]:
    """The mean of the tangents of the elements that are the extreme: ties share evenly."""
    (operand,), (tangent,) = primals, tangents
    out = primitive.bind(operand, axes=axes)
    chosen = convert_element_type(
        eq(operand, reshape(out, _with_ones(operand.shape, axes))), tangent.dtype)
    count = reduce_sum(chosen, axes)
    return out, div(reduce_sum(mul(tangent, chosen), axes), count)


def _no_tangent(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    return lambda primals, tangents, **params: (primitive().bind(*primals, **params), None)


reduce_max_p = _reduction(
    "reduce_max", "max", np.maximum, lambda dtype: dtypes.extremes(dtype)[0], "max",
    printed=Printed(lambda params: {**params, "out_sharding": None}),
    jvp=lambda primals, tangents, **params: _extreme_jvp(
        primals, tangents, primitive=reduce_max_p, **params))

reduce_min_p = _reduction(
    "reduce_min", "min", np.minimum, lambda dtype: dtypes.extremes(dtype)[1], "min",
    printed=Printed(lambda params: {**params, "out_sharding": None}),
    jvp=lambda primals, tangents, **params: _extreme_jvp(
        primals, tangents, primitive=reduce_min_p, **params))


def _product_jvp(primals: Sequence[Array], tangents: Sequence[Array], *, axes: tuple[int, ...]
                 ) -> tuple[Array, Array | None]:
    """By halving: (x, x') (y, y') = (x y, x' y + x y'). Correct where elements are zero."""
    (operand,), (tangent,) = primals, tangents
    if not axes:
        return operand, tangent
    kept = tuple(dim for dim in range(len(operand.shape)) if dim not in axes)
    shape = tuple(operand.shape[dim] for dim in kept)
    size = math.prod(operand.shape[dim] for dim in axes)
    value, tangent = (reshape(transpose(x, (*axes, *kept)), (size, *shape))
                      for x in (operand, tangent))
    if not size:
        return full(shape, 1, operand.dtype), full(shape, 0, operand.dtype)
    while size > 1:
        half = (size + 1) // 2
        config = ((0, 2 * half - size, 0), *((0, 0, 0) for _ in shape))
        left, left_tangent = (slice_in_dim(x, 0, half, 0) for x in (value, tangent))
        right = pad(slice_in_dim(value, half, size, 0), 1, config)
        right_tangent = pad(slice_in_dim(tangent, half, size, 0), 0, config)
        value = mul(left, right)
        tangent = add_tangents(mul(left_tangent, right), mul(left, right_tangent))
        size = half
    return reshape(value, shape), reshape(tangent, shape)


reduce_prod_p = _reduction(
    "reduce_prod", "prod", np.multiply, lambda dtype: 1, "mul", jvp=_product_jvp,
    values=Values(may_give_nan=True))

reduce_and_p = _reduction(
    "reduce_and", "and", np.bitwise_and,
    lambda dtype: True if dtype == dtypes.bool_ else np.invert(np.zeros((), dtype)), "and",
    keeps_weak=False, takes_bits=True, jvp=_no_tangent(lambda: reduce_and_p))
reduce_or_p = _reduction(
    "reduce_or", "or", np.bitwise_or, lambda dtype: 0, "or",
    keeps_weak=False, takes_bits=True, jvp=_no_tangent(lambda: reduce_or_p))
reduce_xor_p = _reduction(
    "reduce_xor", "xor", np.bitwise_xor, lambda dtype: 0, "xor",
    keeps_weak=False, takes_bits=True, jvp=_no_tangent(lambda: reduce_xor_p))


def _position(name: str, kind: str, function: Callable[..., np.ndarray]) -> Primitive:
    """The first position of the extreme along one axis; a NaN is more extreme than any number."""
    lines, short, columns = (f"arg{kind}{layout}" for layout in ("", " short", " columns"))

    def evaluate(x: np.ndarray, *, axes: tuple[int, ...], index_dtype: np.dtype) -> np.ndarray:
        x = np.asarray(x)
        axis, = axes
        if x.size >= native.FEWEST and x.shape[axis] <= MOST_INT32:
            inner = math.prod(x.shape[axis + 1:])
            if inner == 1 or inner >= native.WIDE_COLUMNS:
                length = x.shape[axis]
                layout = (columns if inner > 1 else
                          short if length <= native.SHORT_ROWS else lines)
                native_function = native.find(layout, x.dtype, x.size)
                if native_function:
                    out = np.empty(reduced_shape(x.shape, axes), np.int32)
                    native_function((np.ascontiguousarray(x), out),
                                    (x.size // (length * inner), length, inner), x.size)
                    return out.astype(index_dtype, copy=False)
        if dtypes.is_floating(x.dtype) and x.dtype.itemsize < 4:
            x = x.astype(np.float32)      # ml_dtypes' own comparison is slow
        return np.asarray(function(x, axes[0])).astype(index_dtype)

    primitive = Primitive(
        name,
        contract=takes(1, fitting.ORDERED, fitting.nonempty, axes=ONE_AXIS,
                       index_dtype=INTEGER_DTYPE),
        abstract=of_numbers(name, lambda x, *, axes, index_dtype: ShapedArray(
            reduced_shape(x.shape, axes), index_dtype)),
        evaluate=evaluate,
        host=Host(condition=lambda x, *, axes, index_dtype: (
            "positions are more than int32 counts" if not is_dimension(x.shape[axes[0]])
            and x.shape[axes[0]] > MOST_INT32 else None)),
        lower=lambda ctx, x, *, axes, index_dtype: ctx.argreduce(kind, x, axes[0], index_dtype),
        jvp=lambda primals, tangents, **params: (primitive.bind(*primals, **params), None),
        batch=lambda size, operands, batch_axes, **params: reduction_batch(primitive)(
            size, operands, batch_axes, **params),
        factors=lambda in_avals, out_avals, *, axes, index_dtype: factor_rule(
            [range(in_avals[0].ndim)],
            [[dim for dim in range(in_avals[0].ndim) if dim not in axes]],
            in_avals, out_avals, replicated=frozenset(axes)),
        cost=Cost(xla=XlaCost(costs.combines(9), reduces=True)),
    )
    return primitive


argmax_p = _position("argmax", "max", np.argmax)
argmin_p = _position("argmin", "min", np.argmin)


# --- operations that rules are written with -------------------------------------------------------

def reduce_max(x: np.ndarray, axes: tuple[int, ...]) -> Any:
    axes = tuple(axes)
    return reduce_max_p.bind(x, axes=axes) if axes else x


def reduce_min(x: np.ndarray, axes: tuple[int, ...]) -> Any:
    axes = tuple(axes)
    return reduce_min_p.bind(x, axes=axes) if axes else x
