"""Elementwise arithmetic, extrema, rounding, and the parts of complex numbers."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base import native as native_functions
from maxjax._ir.contract import DTYPE, integer, one_of, takes
from maxjax._ir.costs import XlaCost, bytes_of
from maxjax._ir.jaxpr import Literal
from maxjax._ir.linearity import FIRST, PRODUCT, SUM
from maxjax._ir.primitive import Primitive, op_spec
from maxjax._ir.rule_groups import Host, Sharded
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params, Value
from maxjax._primitives import complex_values, costs, kernels
from maxjax._primitives.broadcasting import broadcast_to_shape
from maxjax._primitives.builders import elementwise
from maxjax._primitives.comparison import eq, ge, gt, select, where_zero
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.kernels import Kernel, to_bool
from maxjax._primitives.rules import aval_of, is_linear, native, scalar_like
from maxjax._primitives.slicing import provide
from maxjax._primitives.widths import (
    FLOATING,
    NUMBERS,
    REALS,
    accepted,
    specialized,
    vectorized_pair,
    widened,
)

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering
    from maxjax._primitives.rules import Linear
    from maxjax._primitives.widths import Accepted

NO_COMPLEX = "MAX has no complex numbers"


def constant(value: float, like: Array) -> Value:
    """A scalar of the dtype of ``like``, weakly typed if that is a weakly typed scalar."""
    return scalar_like(value, like.dtype) if aval_of(like).shape else of_the_type(value, like)


def of_the_type(value: float, like: Array) -> Value:
    """A scalar of the dtype of ``like``, weakly typed if that is weakly typed."""
    if aval_of(like).weak_type:
        kind = _PYTHON_KINDS.get(like.dtype)
        if kind is not None:      # what a Python scalar becomes
            weak = installed.runtime.concrete(kind(value))
            if weak.dtype == like.dtype:
                return weak
    return scalar_like(value, like.dtype)


_PYTHON_KINDS = {dtypes.float32: float, dtypes.float64: float, dtypes.int32: int,
                 dtypes.int64: int, dtypes.complex64: complex, dtypes.complex128: complex}


def _ufunc(name: str, function: np.ufunc, *, accepts: Accepted = NUMBERS, **rules: Any
           ) -> Primitive:
    rule = complex_values.RULES.get(name, function)
    return elementwise(name, accepts=accepts, evaluate=widened(rule),
                       host=Host(specialize=specialized(function, rule)), cost=costs.ELEMENTWISE,
                       **rules)


neg_p = _ufunc(
    "neg", np.negative, linearity=SUM, sharded=Sharded(passes_unreduced=slice(None)), cheap=True,
    kernels=(Kernel("neg", kernels.NUMBERS),),
    lower=lambda ctx, x: ctx.native("neg", x) if ctx.is_float(x) else ctx.kernel("neg", x),
    jvp=lambda t, x, out: neg(t),
    transpose=lambda cotangent, x: [neg(cotangent)],
    keeps_zero=True,
)

add_p = _ufunc(
    "add", np.add, linearity=SUM, cheap=True, lower=native("add"),
    jvp=(lambda t, x, y, out: broadcast_to_shape(t, out.shape),
         lambda t, x, y, out: broadcast_to_shape(t, out.shape)),
    transpose=lambda cotangent, x, y: [cotangent, cotangent],
    may_give_nan=True,
)

sub_p = _ufunc(
    "sub", np.subtract, linearity=SUM, cheap=True, lower=native("sub"),
    jvp=(lambda t, x, y, out: broadcast_to_shape(t, out.shape),
         lambda t, x, y, out: neg(broadcast_to_shape(t, out.shape))),
    transpose=lambda cotangent, x, y: [cotangent, neg(cotangent) if is_linear(y) else None],
    may_give_nan=True,
)
provide(sub_p)

mul_p = _ufunc(
    "mul", np.multiply, linearity=PRODUCT, cheap=True, lower=native("mul"),
    jvp=(lambda t, x, y, out: mul(t, y), lambda t, x, y, out: mul(x, t)),
    transpose=lambda cotangent, x, y: [mul(cotangent, y) if is_linear(x) else None,
                                       mul(x, cotangent) if is_linear(y) else None],
    may_give_nan=True,
)

# --- division -------------------------------------------------------------------------------------


def _int_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """C's division, towards zero. Divided by zero: all ones; the least integer by -1: itself."""
    x, y = np.asarray(x), np.asarray(y)
    if y.dtype.kind == "u":
        return np.where(y == 0, np.iinfo(y.dtype).max, x // np.where(y == 0, 1, y).astype(y.dtype))
    least = np.iinfo(y.dtype).min
    trap = (y == 0) | ((x == least) & (y == -1))
    safe = np.where(trap, 1, y).astype(y.dtype)
    quotient = x // safe
    remainder = x - quotient * safe
    # NumPy floors: where the signs differ and there is a remainder, that is one too low.
    quotient = quotient + ((remainder != 0) & ((x < 0) != (safe < 0))).astype(y.dtype)
    return np.where(y == 0, np.array(-1, y.dtype), np.where(trap, x, quotient)).astype(y.dtype)


def _divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return _int_divide(x, y) if x.dtype.kind in "iu" else complex_values.divide(x, y)


def _div_specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                    out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any] | None:
    dtype = in_avals[0].dtype
    if dtypes.is_integer(dtype):
        return None
    return specialized(np.divide, complex_values.divide)(in_avals, params, out_avals)


# In which XLA multiplies by a reciprocal instead of dividing by what is the same for many elements
# (maxjax/_transforms/quotients.py says where).
_WITH_RECIPROCALS = (dtypes.float16, dtypes.float32, dtypes.float64)


def has_reciprocal(dtype: np.dtype) -> bool:
    """Whether a quotient of this dtype may be a product with a reciprocal."""
    return dtype in _WITH_RECIPROCALS


def one_over(aval: ShapedArray) -> Literal:
    """The number 1 of which a reciprocal of this type is computed."""
    return Literal(aval.dtype.type(1), ShapedArray((), aval.dtype, aval.weak_type))


def _div_alone(in_avals: tuple[ShapedArray, ...], params: Params,
               out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any] | None:
    """By a divisor that is broadcast: outside a program nothing else reads it."""
    out, (x, y) = out_avals[0], in_avals
    if not has_reciprocal(out.dtype) or x.shape != out.shape or y.shape == x.shape or (
            not y.shape and x.size == 1):
        return None
    number = one_over(y)
    one = np.asarray(number.val)
    invert = op_spec(div_p, (number.aval, y), {}).run
    multiply = op_spec(mul_p, (x, y), {}).run
    assert invert is not None and multiply is not None
    return lambda x, y: multiply(x, invert(one, y))


# For fewer elements one division takes less time than several operations.
_FEWEST_SHIFTED = 256


def _known_exponent(ctx: Lowering) -> int:
    """n where many integers are divided by 2**n, n > 0, which is written down; otherwise 0."""
    divisor = ctx.eqn.invars[1] if ctx.eqn is not None else None
    if not isinstance(divisor, Literal) or not dtypes.is_integer(divisor.aval.dtype) \
            or math.prod(ctx.out_avals[0].shape) < _FEWEST_SHIFTED:
        return 0
    value = int(divisor.val)
    return value.bit_length() - 1 if value > 1 and value & (value - 1) == 0 else 0


def _lifted(ctx: Lowering, x: object, exponent: int) -> Any:
    """x, and 2**exponent - 1 more where it is negative: then bits may be cut off, which rounds
    down, where division rounds towards zero."""
    dtype = ctx.in_avals[0].dtype
    if dtype.kind == "u":
        return x
    signs = ctx.kernel("shift_right_arithmetic", x, ctx.scalar(8 * dtype.itemsize - 1, x))
    return ctx.native("add", x, ctx.kernel("and", signs, ctx.scalar((1 << exponent) - 1, x)))


def _lower_div(ctx: Lowering, x: object, y: object) -> Any:
    if ctx.is_float(x):
        return ctx.native("div", x, y)
    exponent = _known_exponent(ctx)
    if not exponent:
        return ctx.kernel("div", x, y)
    shift = "logical" if ctx.in_avals[0].dtype.kind == "u" else "arithmetic"
    return ctx.kernel(f"shift_right_{shift}", _lifted(ctx, x, exponent), ctx.scalar(exponent, x))


def _lower_rem(ctx: Lowering, x: object, y: object) -> Any:
    exponent = 0 if ctx.is_float(x) else _known_exponent(ctx)
    if not exponent:
        return ctx.kernel("rem", x, y)
    rest = (1 << exponent) - 1
    if ctx.in_avals[0].dtype.kind == "u":
        return ctx.kernel("and", x, ctx.scalar(rest, x))
    return ctx.native("sub", x, ctx.kernel("and", _lifted(ctx, x, exponent),
                                           ctx.scalar(~rest, x)))


div_p = elementwise(
    "div", linearity=FIRST, accepts=NUMBERS,
    evaluate=widened(_divide), host=Host(specialize=_div_specialize, alone=_div_alone),
    kernels=(Kernel("div", kernels.NUMBERS, 2),), lower=_lower_div,
    jvp=(lambda t, x, y, out: div(t, y),
         lambda t, x, y, out: mul(mul(neg(t), x), integer_pow(y, -2))),
    transpose=lambda cotangent, x, y: [div(cotangent, y), None],
    may_give_nan=True,
    cost=costs.ELEMENTWISE,
)


_float_remainder = vectorized_pair("rem", np.fmod)


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """C's remainder, with the sign of ``x``; modulo zero, ``x`` itself for integers."""
    if x.dtype.kind not in "iu":
        return _float_remainder(x, y)
    if y.size == 1 and y > 0:       # as most often, and no array is made for it
        return np.fmod(x, y)
    x, y = np.asarray(x), np.asarray(y)
    trap = y == 0
    unsafe = trap | (y == -1) if y.dtype.kind == "i" else trap
    remainder = np.fmod(x, np.where(unsafe, 1, y).astype(y.dtype))
    return np.where(trap, x, remainder).astype(x.dtype)


def _truncate(x: Value) -> Array:
    return mul(sign(x), floor_p.bind(abs_(x)))


rem_p = elementwise(
    "rem", accepts=REALS,
    evaluate=widened(_remainder),
    kernels=(Kernel("rem", kernels.NUMBERS, 2),), lower=_lower_rem,
    jvp=(lambda t, x, y, out: broadcast_to_shape(t, out.shape),
         lambda t, x, y, out: mul(neg(t), _truncate(div(x, y)))),
    may_give_nan=True,
    cost=costs.ELEMENTWISE,
)

# --- rounding -------------------------------------------------------------------------------------

floor_p = _ufunc("floor", np.floor, accepts=FLOATING, lower=native("floor"), keeps_zero=True,
                 cheap=True, kernels=(Kernel("floor", dtypes.FLOATS),))
ceil_p = _ufunc("ceil", np.ceil, accepts=FLOATING, lower=native("ceil"), keeps_zero=True,
                cheap=True, kernels=(Kernel("ceil", dtypes.FLOATS),))


def _round_away(x: np.ndarray) -> np.ndarray:
    # Added to what is below a half, the number before 1/2 does not reach the next whole number;
    # added to a half it does, by rounding to even. The sign of a zero result is x's.
    below_half = np.nextafter(np.array(0.5, x.dtype), np.array(0, x.dtype))
    return np.trunc(x + np.copysign(below_half, x))


AWAY_FROM_ZERO, TO_NEAREST_EVEN = 0, 1

round_p = elementwise(
    "round",
    contract=takes(1, rounding_method=one_of(0, 1)),
    accepts=FLOATING,
    evaluate=widened(lambda x, *, rounding_method: (
        np.rint(x) if rounding_method == TO_NEAREST_EVEN else _round_away(x))),
    lower=lambda ctx, x, *, rounding_method: ctx.kernel(
        "round_half_even" if rounding_method == TO_NEAREST_EVEN else "round_half_away", x),
    kernels=(Kernel("round_half_even", dtypes.FLOATS), Kernel("round_half_away", dtypes.FLOATS)),
    keeps_zero=True,
    cost=costs.ELEMENTWISE,
)


def _is_finite_specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                          out_avals: tuple[ShapedArray, ...]) -> np.ufunc:
    return np.isfinite


is_finite_p = elementwise(
    "is_finite", accepts=FLOATING, evaluate=np.isfinite, out_dtype=dtypes.bool_,
    host=Host(specialize=_is_finite_specialize),
    lower=lambda ctx, x: ctx.kernel("is_finite", x, out_dtype=dtypes.bool_), cheap=True,
    kernels=(Kernel("is_finite", dtypes.FLOATS, results=to_bool),), cost=costs.ELEMENTWISE)

nextafter_p = elementwise(
    "nextafter", accepts=FLOATING,
    # The second of equal zeros, also for float16, where NumPy gives the first.
    evaluate=vectorized_pair("nextafter", lambda x, y: np.where(x == y, y, np.nextafter(x, y))),
    kernels=(Kernel("nextafter", dtypes.FLOATS, 2),),
    jvp=(lambda t, x, y, out: broadcast_to_shape(t, out.shape), None))      # of x, nearly

# --- extrema, absolute value, sign ----------------------------------------------------------------


def _extremum_jvp(first: bool, greatest: bool) -> Callable[..., Any]:
    """Ties are split evenly."""
    def rule(t: Array, x: Array, y: Array, out: Array) -> Array:
        mine, other = (x, y) if first else (y, x)
        more, less = (mine, other) if greatest else (other, mine)
        wins = _spread(gt(more, less), out)
        return mul(t, _share(wins, eq(more, less), out))
    return rule


def _share(wins: Array, tie: Array, out: Array) -> Array:
    """1 where an operand is the result, 1/2 where both are, 0 elsewhere."""
    def filled(value: float) -> Array:
        return full(out.shape, value, out.dtype)

    equal = _spread(tie, out)
    one, zero = filled(1), filled(0)
    return select(wins, select(equal, zero, filled(0.5)), one)


def _spread(mask: Array, out: Array) -> Array:
    return broadcast_to_shape(mask, out.shape)


def _extremum(name: str, function: np.ufunc) -> Primitive:
    greatest = name == "max"
    return _ufunc(name, function, accepts=accepted("integer bool floating complexfloating"),
                  cheap=True, kernels=(Kernel(name, kernels.ALL, 2),),
                  jvp=(_extremum_jvp(True, greatest), _extremum_jvp(False, greatest)))


max_p = _extremum("max", np.maximum)
min_p = _extremum("min", np.minimum)


def _abs_jvp(t: Array, x: Array, out: Array) -> Array:
    if dtypes.is_complex(x.dtype):
        magnitude = convert_element_type(out, x.dtype)
        safe = select(eq(magnitude, constant(0, x)), magnitude, full(x.shape, 1, x.dtype))
        return real_p.bind(mul(t, div(conj(x), safe)))
    # JAX takes the derivative at 0 to be 1.
    return select(ge(x, constant(0, x)), neg(t), t)


abs_p = _ufunc("abs", np.abs, accepts=accepted("floating complexfloating signedinteger"),
               out_dtype=dtypes.real_dtype, cheap=True, kernels=(Kernel("abs", kernels.NUMBERS),),
               jvp=_abs_jvp, keeps_zero=True)


def _sign(x: np.ndarray) -> np.ndarray:
    if x.dtype.kind == "c":
        return complex_values.sign(x)
    if x.dtype.kind in "iu":
        return np.sign(x)
    if x.size >= native_functions.FEWEST:
        return _large_sign(x)
    # NumPy loses the sign of a zero.
    return np.copysign(np.sign(x), x)


def _large_sign(x: np.ndarray) -> Any:
    """Scaled until even the least number is beyond 1, then clipped there; zeros of either
    sign and NaN remain. NumPy has vector code for that, and none for ``sign`` or ``copysign``."""
    scale = x.dtype.type(2.0 ** (np.finfo(x.dtype).maxexp - 1))
    result = x * scale
    np.multiply(result, scale, out=result)
    return np.clip(result, -1.0, 1.0, out=result)


def _sign_jvp(t: Array, x: Array, out: Array) -> Array | None:
    """Zero, but of complex numbers, which turn: ``i out Im(conj(out) t) / |x|``."""
    if not dtypes.is_complex(x.dtype):
        return None
    turn = div(imag_p.bind(mul(conj(out), t)), where_zero(abs_(x), 1))
    return mul(out, complex_p.bind(scalar_like(0, turn.dtype), turn))


sign_p = elementwise("sign", accepts=NUMBERS, jvp=_sign_jvp, evaluate=widened(_sign), cheap=True,
                     kernels=(Kernel("sign", kernels.NUMBERS),), keeps_zero=True,
                     cost=costs.ELEMENTWISE)

# --- powers ---------------------------------------------------------------------------------------

square_p = elementwise(
    "square", accepts=NUMBERS,
    evaluate=widened(complex_values.square),
    host=Host(specialize=specialized(np.square, complex_values.square)),
    lower=lambda ctx, x: ctx.native("mul", x, x),
    jvp=lambda t, x, out: mul(t, mul(constant(2, x), x)),
    keeps_zero=True,
    cost=costs.ELEMENTWISE,
)


def _integer_pow(x: np.ndarray, *, y: int) -> np.ndarray:
    """By repeated squaring, as XLA expands it."""
    if y == 0:
        return np.ones_like(x)
    if y == 2:
        return complex_values.square(x)
    result: Any = None
    base, exponent = np.asarray(x), abs(y)
    while exponent:
        if exponent & 1:
            result = base if result is None else np.multiply(result, base)
        exponent >>= 1
        if exponent:
            base = np.multiply(base, base)
    return _divide(np.ones((), x.dtype), result) if y < 0 else result


def _integer_pow_lower(ctx: Lowering, x: object, *, y: int) -> Any:
    if y == 0:
        return ctx.full_like(x, 1)
    result, base, exponent = None, x, abs(y)
    while exponent:
        if exponent & 1:
            result = base if result is None else ctx.native("mul", result, base)
        exponent >>= 1
        if exponent:
            base = ctx.native("mul", base, base)
    return ctx.native("div", ctx.scalar(1, x), result) if y < 0 else result


def _integer_pow_jvp(t: Array, x: Array, out: Array, *, y: int) -> Array | None:
    if y == 0:
        return None
    if y == 1:
        return t
    return mul(t, mul(constant(y, x), integer_pow(x, y - 1)))


def _integer_pow_specialized(in_avals: tuple[ShapedArray, ...], params: Params,
                             out_avals: tuple[ShapedArray, ...]) -> Any:
    assert square_p.host.specialize is not None
    return square_p.host.specialize(in_avals, {}, out_avals) if params["y"] == 2 else None


def _products(params: Params) -> int:
    """How many products give the power, by repeated squares."""
    power = abs(params["y"])
    return max(power.bit_length() + power.bit_count() - 2, 0)


_POWER_COST = XlaCost(
    lambda ins, outs, params: outs[0].size * _products(params),
    moved=lambda ins, outs, params: 3 * bytes_of(outs) * max(_products(params), 1))

integer_pow_p = elementwise(
    "integer_pow",
    contract=takes(1, y=integer(-(1 << 31), (1 << 31) - 1)),
    accepts=NUMBERS, host=Host(specialize=_integer_pow_specialized),
    evaluate=widened(_integer_pow), lower=_integer_pow_lower, jvp=_integer_pow_jvp,
    may_give_nan=True, keeps_zero=True,
    cost=dataclasses.replace(costs.ELEMENTWISE, xla=_POWER_COST))

def _one_minus_square(x: np.ndarray) -> Any:
    """``1 - x**2``, without losing all digits where x nears 1."""
    one = np.ones((), x.dtype)
    return (one + x) * (one - x)


one_minus_square_p = elementwise(
    "one_minus_square", accepts=accepted("integer complexfloating floating"),
    evaluate=_one_minus_square, cheap=True,
    lower=lambda ctx, x: ctx.native("mul", ctx.native("add", ctx.scalar(1, x), x),
                                    ctx.native("sub", ctx.scalar(1, x), x)),
    jvp=lambda t, x, out: mul(t, mul(constant(-2, x), x)))

# --- complex numbers ------------------------------------------------------------------------------

COMPLEX = accepted("complexfloating")

real_p = elementwise(
    "real", linearity=SUM, accepts=COMPLEX, evaluate=np.real, out_dtype=dtypes.real_dtype,
    host=Host(reason=NO_COMPLEX), lower=lambda ctx, x: ctx.part(x, 0),
    takes_complex=dtypes.COMPLEX,
    jvp=lambda t, x, out: real_p.bind(t),
    transpose=lambda cotangent, x: [
        complex_p.bind(cotangent, scalar_like(0, cotangent.dtype))],
    keeps_zero=True, cost=costs.ELEMENTWISE)

imag_p = elementwise(
    "imag", linearity=SUM, accepts=COMPLEX, evaluate=np.imag, out_dtype=dtypes.real_dtype,
    host=Host(reason=NO_COMPLEX), lower=lambda ctx, x: ctx.part(x, 1),
    takes_complex=dtypes.COMPLEX,
    jvp=lambda t, x, out: imag_p.bind(t),
    # A linear function's transpose, without conjugation: imag(i w) = w, and so on.
    transpose=lambda cotangent, x: [
        complex_p.bind(scalar_like(0, cotangent.dtype), neg(cotangent))],
    keeps_zero=True, cost=costs.ELEMENTWISE)


def _conj_abstract(x: ShapedArray, *, input_dtype: np.dtype) -> ShapedArray:
    return ShapedArray(x.shape, dtypes.complex_dtype(x.dtype), x.weak_type)


def _conj_transpose(cotangent: Value, x: Linear, *, input_dtype: np.dtype) -> list[Array]:
    if dtypes.is_complex(input_dtype):
        return [conj(cotangent)]
    return [real_p.bind(cotangent)]


conj_p = elementwise(
    "conj",
    contract=takes(1, input_dtype=DTYPE),
    linearity=SUM, accepts=accepted("float32 complexfloating float64"),
    abstract=_conj_abstract,
    evaluate=lambda x, *, input_dtype: np.conj(x).astype(dtypes.complex_dtype(x.dtype)),
    host=Host(reason=NO_COMPLEX),
    jvp=lambda t, x, out, *, input_dtype: conj_p.bind(t, input_dtype=input_dtype),
    transpose=_conj_transpose, keeps_zero=True, cost=costs.ELEMENTWISE)


def _complex_evaluate(real: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    """Assembled part by part: a sum with 1j would turn infinite parts into NaN."""
    shape = np.broadcast_shapes(real.shape, imaginary.shape)
    out = np.empty(shape, dtypes.complex_dtype(real.dtype))
    out.real = real
    out.imag = imaginary
    return out


complex_p = elementwise(
    "complex", linearity=SUM, accepts=accepted("float32 float64"),
    evaluate=_complex_evaluate,
    out_dtype=lambda real, imaginary: dtypes.complex_dtype(real),
    host=Host(reason=NO_COMPLEX), lower=lambda ctx, x, y: ctx.pair(x, y),
    takes_complex=dtypes.COMPLEX,
    jvp=(lambda t, x, y, out: complex_p.bind(t, constant(0, t)),
         lambda t, x, y, out: complex_p.bind(constant(0, t), t)),
    transpose=lambda cotangent, x, y: [real_p.bind(cotangent) if is_linear(x) else None,
                                       imag_p.bind(neg(cotangent)) if is_linear(y) else None])


# --- operations that rules are written with -------------------------------------------------------

def neg(x: Value) -> Array:
    return neg_p.bind(x)


def add(x: Value, y: Value) -> Array:
    return add_p.bind(x, y)


def sub(x: Value, y: Value) -> Array:
    return sub_p.bind(x, y)


def mul(x: Value, y: Value) -> Array:
    return mul_p.bind(x, y)


def div(x: Value, y: Value) -> Array:
    return div_p.bind(x, y)


def square(x: Value) -> Array:
    return square_p.bind(x)


def sign(x: Value) -> Array:
    return sign_p.bind(x)


def abs_(x: Value) -> Array:
    return abs_p.bind(x)


def maximum(x: Value, y: Value) -> Array:
    return max_p.bind(x, y)


def minimum(x: Value, y: Value) -> Array:
    return min_p.bind(x, y)


def conj(x: Value) -> Array:
    return conj_p.bind(x, input_dtype=x.dtype)


def one_minus_square(x: Value) -> Array:
    return one_minus_square_p.bind(x)


def integer_pow(x: Array, y: int) -> Array:
    return x if y == 1 else integer_pow_p.bind(x, y=y)
