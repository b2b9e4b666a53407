"""Running sums, products and extremes along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes, native
from maxjax._ir.contract import AXIS, FLAG, takes
from maxjax._ir.costs import Cost
from maxjax._ir.linearity import SUM
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Values
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value
from maxjax._primitives import complex_values, costs, fitting
from maxjax._primitives.arithmetic import (
    add,
    complex_p,
    div,
    floor_p,
    imag_p,
    maximum,
    minimum,
    mul,
    real_p,
    sub,
)
from maxjax._primitives.builders import add_tangents
from maxjax._primitives.comparison import eq, select
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import rev_p
from maxjax._primitives.rules import (
    aval_of,
    axis_factors,
    linear_primitive,
    of_numbers,
    scalar_like,
)
from maxjax._primitives.slicing import pad, slice_in_dim
from maxjax._primitives.sums import accumulated, from_zero, in_blocks
from maxjax._primitives.transcendental import exp_p, log1p_p, log_p

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering
    from maxjax._primitives.rules import FactorRule


def scan_pairs(combine: Callable[..., list[Array]], values: Sequence[Array], axis: int
               ) -> list[Array]:
    """The prefixes of ``combine`` over a list of arrays, along ``axis``, in log2(n) steps.

    Neighbours are combined in pairs, the pairs' prefixes are found in the same way, and each
    prefix of even length gives that of odd length by one more element. This is JAX's order of
    combining, which decides how ties of ``cummax`` share a gradient.
    """
    size = values[0].shape[axis]
    if size < 2:
        return list(values)
    left = [slice_in_dim(x, 0, size - 1, axis, 2) for x in values]
    right = [slice_in_dim(x, 1, size, axis, 2) for x in values]
    odd = scan_pairs(combine, combine(left, right), axis)
    rest = [slice_in_dim(x, 2, size, axis, 2) for x in values]
    before = odd
    if size % 2 == 0:
        before = [slice_in_dim(x, 0, x.shape[axis] - 1, axis) for x in odd]
    even = combine(before, rest) if rest[0].shape[axis] else rest
    even = [concatenate([slice_in_dim(x, 0, 1, axis), e], axis) if e.shape[axis]
            else slice_in_dim(x, 0, 1, axis) for x, e in zip(values, even, strict=True)]
    return [_interleave(e, o, axis) for e, o in zip(even, odd, strict=True)]


def _interleave(even: Array, odd: Array, axis: int) -> Array:
    """even[0], odd[0], even[1], ...: the two never overlap, so that adding zeros joins them."""
    rank = len(even.shape)
    longer = even.shape[axis] > odd.shape[axis]

    def config(low: int, high: int) -> tuple[Any, ...]:
        return tuple((low, high, 1) if dim == axis else (0, 0, 0) for dim in range(rank))

    return add(pad(even, 0, config(0, 0 if longer else 1)),
               pad(odd, 0, config(1, 1 if longer else 0)))


def _reversed(x: Array, axis: int, reverse: bool) -> Array:
    return rev_p.bind(x, dimensions=(axis,)) if reverse else x


def _scan_jvp(combine: Callable[..., list[Array]]) -> Callable[..., Any]:
    """The jvp by a scan over (value, tangent) pairs; the result itself from the primitive."""
    def rule(primals: Sequence[Array], tangents: Sequence[Array], *, primitive: Primitive,
             axis: int, reverse: bool) -> tuple[Array, Array | None]:
        (operand,), (tangent,) = primals, tangents
        out = primitive.bind(operand, axis=axis, reverse=reverse)
        pair = [_reversed(operand, axis, reverse), _reversed(tangent, axis, reverse)]
        prefixes, tangent = scan_pairs(combine, pair, axis)
        # What is interleaved is strongly typed, a single element is as it was.
        out = convert_element_type(out, out.dtype, aval_of(prefixes).weak_type)
        return out, _reversed(tangent, axis, reverse)
    return rule


def _product(left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
    (x, x_tangent), (y, y_tangent) = left, right
    return [mul(x, y), add_tangents(mul(x_tangent, y), mul(x, y_tangent))]


def _extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    def combine(left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
        (x, x_tangent), (y, y_tangent) = left, right
        out = function(x, y)
        return [out, add_tangents(mul(x_tangent, _share(x, y, out)),
                                  mul(y_tangent, _share(y, x, out)))]
    return combine


def _share(mine: Array, other: Array, out: Array) -> Array:
    """1 where ``mine`` alone is the result, 1/2 where both are, 0 elsewhere."""
    def constant(value: int) -> Array:
        return full(out.shape, value, out.dtype)

    hit = select(eq(mine, out), constant(0), constant(1))
    return div(hit, select(eq(other, out), constant(1), constant(2)))


def log_add_exp(x: Array, y: Array) -> Array:
    """log(exp(x) + exp(y)), infinities and NaN as NumPy has them."""
    if dtypes.is_complex(x.dtype):
        return _complex_log_add_exp(x, y)
    top = maximum(x, y)
    delta = sub(x, y)
    same = eq(x, y)       # infinities of one sign: their difference is NaN
    zero = full(x.shape, 0, x.dtype)
    delta = select(same, delta, zero)
    one = scalar_like(1, x.dtype)
    spread = exp_p.bind(minimum(delta, sub(zero, delta)))
    return add(top, log_p.bind(add(spread, one)))


def _complex_log_add_exp(x: Array, y: Array) -> Any:
    """The imaginary part lies within pi of 0."""
    top = maximum(x, y)
    delta = sub(add(x, y), mul(scalar_like(2, x.dtype), top))
    out = add(top, log1p_p.bind(exp_p.bind(delta)))
    half, turn = (scalar_like(value, dtypes.real_dtype(x.dtype)) for value in (np.pi, 2 * np.pi))
    shifted = add(imag_p.bind(out), half)
    return complex_p.bind(
        real_p.bind(out), sub(sub(shifted, mul(turn, floor_p.bind(div(shifted, turn)))), half))


def _log_sum(left: Sequence[Array], right: Sequence[Array]) -> list[Array]:
    (x, x_tangent), (y, y_tangent) = left, right
    out = log_add_exp(x, y)
    # exp(-inf - -inf) is computed as exp(-inf - 0) = 0.
    finite = select(eq(out, scalar_like(-np.inf, out.dtype)), out, full(out.shape, 0, out.dtype))
    return [out, add_tangents(mul(x_tangent, exp_p.bind(sub(x, finite))),
                              mul(y_tangent, exp_p.bind(sub(y, finite))))]


def _complex_log_add_exp_evaluate(x: np.ndarray, y: np.ndarray) -> Any:
    """NumPy's logaddexp takes only real numbers."""
    top = complex_values.maximum(x, y)
    out = top + complex_values.log1p(complex_values.exp(x + y - 2 * top))
    turned = np.remainder(out.imag + np.pi, 2 * np.pi) - np.pi
    return complex_values.join(out.real, turned.astype(out.real.dtype))


def _log_sums(x: np.ndarray, axis: int) -> Any:
    if not dtypes.is_complex(x.dtype):
        return in_blocks(np.logaddexp.accumulate, np.logaddexp, x.astype(np.float64), axis)

    def accumulate(x: np.ndarray, axis: int) -> Any:
        lines = np.moveaxis(np.array(x), axis, 0)
        for number in range(1, len(lines)):
            lines[number] = _complex_log_add_exp_evaluate(lines[number - 1], lines[number])
        return np.moveaxis(lines, 0, axis)

    return in_blocks(accumulate, _complex_log_add_exp_evaluate, x.astype(np.complex128), axis)


def _accumulate(kind: str, ufunc: np.ufunc) -> Callable[..., Any]:
    """The NumPy rule."""
    functions = (f"cum{kind}", f"cum{kind} columns")

    def evaluate(x: np.ndarray, *, axis: int, reverse: bool) -> np.ndarray:
        x = np.asarray(x)
        if x.size >= native.FEWEST:
            inner = math.prod(x.shape[axis + 1:])
            if inner == 1 or inner >= native.COLUMNS:
                function = native.find(functions[inner > 1], x.dtype, x.size)
                if function:
                    out = np.empty(x.shape, x.dtype)
                    length = x.shape[axis]
                    function((np.ascontiguousarray(x), out),
                             (x.size // (length * inner), length, inner, int(reverse)), x.size)
                    return out
        dtype = x.dtype
        if reverse:
            x = np.flip(x, axis)
        if ufunc in (np.add, np.multiply):
            out = accumulated(ufunc, x, axis)
        elif ufunc is np.logaddexp:
            out = _log_sums(from_zero(x, axis), axis)
        else:
            out = ufunc.accumulate(x, axis)
        if reverse:
            out = np.flip(out, axis)
        return out.astype(dtype, copy=False)
    return evaluate


def _cumulative_batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def batch(size: int, operands: Sequence[Array], axes: Sequence[int], *, axis: int,
              reverse: bool) -> tuple[Array, int]:
        moved = axis + (axis >= axes[0])
        return primitive().bind(operands[0], axis=moved, reverse=reverse), axes[0]
    return batch


def _cumulative_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
                        axis: int, reverse: bool) -> FactorRule:
    return axis_factors(in_avals, out_avals, whole=(axis,))


def _cumulative(name: str, kind: str, ufunc: np.ufunc, combine: Callable[..., Any],
                lower: Callable[..., Any] | None = None, cost: Cost = costs.CUMULATIVE
                ) -> Primitive:
    primitive = Primitive(
        name,
        contract=takes(1, fitting.NUMBERS, axis=AXIS, reverse=FLAG),
        abstract=of_numbers(name, lambda x, *, axis, reverse: x),
        evaluate=_accumulate(kind, ufunc),
        lower=lower or (lambda ctx, x, *, axis, reverse: ctx.cumulative(kind, x, axis, reverse)),
        jvp=lambda primals, tangents, **params: _scan_jvp(combine)(
            primals, tangents, primitive=primitive, **params),
        batch=_cumulative_batch(lambda: primitive),
        factors=_cumulative_factors,
        values=Values(may_give_nan=True),
        cost=cost,
    )
    return primitive


cumsum_p = linear_primitive(
    "cumsum",
    contract=takes(1, fitting.NUMBERS, axis=AXIS, reverse=FLAG),
    linearity=SUM,
    abstract=of_numbers("cumsum", lambda x, *, axis, reverse: ShapedArray(
        x.shape, x.dtype, x.weak_type)),
    evaluate=_accumulate("sum", np.add),
    lower=lambda ctx, x, *, axis, reverse: ctx.cumulative("sum", x, axis, reverse),
    transpose=lambda cotangent, operand, *, axis, reverse: [
        cumsum_p.bind(cotangent, axis=axis, reverse=not reverse)],
    batch=_cumulative_batch(lambda: cumsum_p),
    factors=_cumulative_factors,
    values=Values(may_give_nan=True),
    cost=costs.CUMULATIVE,
)

cumprod_p = _cumulative("cumprod", "prod", np.multiply, _product)
cummax_p = _cumulative("cummax", "max", np.maximum, _extreme(maximum))
cummin_p = _cumulative("cummin", "min", np.minimum, _extreme(minimum))


def _cumlogsumexp_lower(ctx: Lowering, x: object, *, axis: int, reverse: bool) -> Any:
    def compose(x: Array) -> Any:
        x = _reversed(x, axis, reverse)
        out, = scan_pairs(lambda left, right: [log_add_exp(left[0], right[0])], [x], axis)
        return _reversed(out, axis, reverse)
    return ctx.decompose(compose, x)


cumlogsumexp_p = _cumulative("cumlogsumexp", "logsumexp", np.logaddexp, _log_sum,
                             lower=_cumlogsumexp_lower, cost=costs.CUMULATIVE_OF_TWO)


def cumsum(x: Value, axis: int, reverse: bool = False) -> Array:
    return cumsum_p.bind(x, axis=axis, reverse=reverse)
