"""Elementwise arithmetic."""

from __future__ import annotations

import numpy as np

from maxjax._base import dtypes
from maxjax._primitives.builders import elementwise
from maxjax._primitives.comparison import eq, ge, select
from maxjax._primitives.rules import is_linear, kernel, native, scalar_like
from maxjax._primitives.shape import broadcast_to_shape, full, provide

NUMBERS = (*dtypes.INTS, *dtypes.SMALL_INTS, *dtypes.FLOATS, *dtypes.SMALL_FLOATS, *dtypes.COMPLEX)
INEXACT = (*dtypes.FLOATS, *dtypes.SMALL_FLOATS, *dtypes.COMPLEX)
REALS = (*dtypes.INTS, *dtypes.SMALL_INTS, *dtypes.FLOATS, *dtypes.SMALL_FLOATS)
ANY = (dtypes.bool_, *NUMBERS)


def ufunc(function):
    """Specializes to the NumPy function itself where it gives the right dtype by its own rules."""
    def specialize(in_avals, params, out_avals):
        dtype = in_avals[0].dtype
        return function if dtype in dtypes.FLOATS or dtype in dtypes.INTS else None
    return specialize


def constant(value, like):
    """A scalar of the dtype of ``like``."""
    return scalar_like(value, like.dtype)


neg_p = elementwise(
    "neg", accepts=NUMBERS,
    evaluate=np.negative,
    lower=native("neg"),
    jvp=lambda t, x, out: neg(t),
    transpose=lambda ct, x: [neg(ct)],
)

add_p = elementwise(
    "add", accepts=ANY,
    evaluate=np.add, specialize=ufunc(np.add),
    lower=native("add"),
    jvp=(lambda t, x, y, out: broadcast_to_shape(t, out.shape),
         lambda t, x, y, out: broadcast_to_shape(t, out.shape)),
    transpose=lambda ct, x, y: [ct, ct],
)

sub_p = elementwise(
    "sub", accepts=NUMBERS,
    evaluate=np.subtract, specialize=ufunc(np.subtract),
    lower=native("sub"),
    jvp=(lambda t, x, y, out: broadcast_to_shape(t, out.shape),
         lambda t, x, y, out: neg(broadcast_to_shape(t, out.shape))),
    transpose=lambda ct, x, y: [ct, neg(ct) if is_linear(y) else None],
)
provide(sub_p)


def _mul_transpose(ct, x, y):
    return [mul(ct, y) if is_linear(x) else None, mul(x, ct) if is_linear(y) else None]


mul_p = elementwise(
    "mul", accepts=ANY,
    evaluate=np.multiply, specialize=ufunc(np.multiply),
    lower=native("mul"),
    jvp=(lambda t, x, y, out: mul(t, y), lambda t, x, y, out: mul(x, t)),
    transpose=_mul_transpose,
)


def _int_divide(x, y):
    """C's division: towards zero; by zero -1 (all ones), and the least integer by -1 is itself."""
    x, y = np.asarray(x), np.asarray(y)
    if y.dtype.kind == "u":
        return np.where(y == 0, np.iinfo(y.dtype).max, x // np.where(y == 0, 1, y).astype(y.dtype))
    least = np.iinfo(y.dtype).min
    trap = (y == 0) | ((x == least) & (y == -1))
    safe = np.where(trap, 1, y).astype(y.dtype)
    quotient = x // safe
    remainder = x - quotient * safe
    # NumPy floors; where the signs differ and something is left, that is one too low.
    quotient = quotient + ((remainder != 0) & ((x < 0) != (safe < 0))).astype(y.dtype)
    return np.where(y == 0, np.array(-1, y.dtype), np.where(trap, x, quotient)).astype(y.dtype)


def _div_evaluate(x, y):
    if x.dtype.kind in "iu":
        return _int_divide(x, y)
    return np.divide(x, y)


def _div_specialize(in_avals, params, out_avals):
    return np.divide if dtypes.is_inexact(in_avals[0].dtype) else None


div_p = elementwise(
    "div", accepts=NUMBERS,
    evaluate=_div_evaluate, specialize=_div_specialize,
    lower=lambda ctx, x, y: (ctx.native("div", x, y) if ctx.is_float(x)
                             else ctx.kernel("div", x, y)),
    jvp=(lambda t, x, y, out: div(t, y),
         lambda t, x, y, out: mul(mul(neg(t), x), integer_pow(y, -2))),
    transpose=lambda ct, x, y: [div(ct, y), None],
)


def _rem_evaluate(x, y):
    if x.dtype.kind in "iu":
        x, y = np.asarray(x), np.asarray(y)
        trap = y == 0
        if y.dtype.kind == "i":
            minus_one = y == -1
            safe = np.where(trap | minus_one, 1, y).astype(y.dtype)
        else:
            safe = np.where(trap, 1, y).astype(y.dtype)
        return np.where(trap, x, np.fmod(x, safe)).astype(x.dtype)
    return np.fmod(x, y)


rem_p = elementwise(
    "rem", accepts=REALS,
    evaluate=_rem_evaluate,
    lower=kernel("rem"),
    jvp=(lambda t, x, y, out: broadcast_to_shape(t, out.shape),
         lambda t, x, y, out: mul(neg(t), _truncate(div(x, y)))),
)


def _truncate(x):
    return mul(sign(x), floor_p.bind(abs_(x)))


floor_p = elementwise(
    "floor", accepts=dtypes.FLOATS, evaluate=np.floor, lower=native("floor"))


def _extremum_jvp(first):
    """Ties are split evenly."""
    def rule(t, x, y, out):
        mine = x if first else y
        other = y if first else x
        return mul(t, _balanced(mine, other, out))
    return rule


def _balanced(mine, other, out):
    """1 where ``mine`` alone is the result, 1/2 where both are, 0 elsewhere."""
    one, zero, half = (scalar_like(v, out.dtype) for v in (1, 0, 0.5))
    hit = select(eq(mine, out), full(out.shape, zero, out.dtype),
                          full(out.shape, one, out.dtype))
    tie = select(eq(other, out), full(out.shape, one, out.dtype),
                          full(out.shape, half, out.dtype))
    return mul(hit, tie)


max_p = elementwise(
    "max", accepts=ANY,
    evaluate=np.maximum, specialize=ufunc(np.maximum),
    lower=kernel("max"),
    jvp=(_extremum_jvp(True), _extremum_jvp(False)),
)

min_p = elementwise(
    "min", accepts=ANY,
    evaluate=np.minimum, specialize=ufunc(np.minimum),
    lower=kernel("min"),
    jvp=(_extremum_jvp(True), _extremum_jvp(False)),
)


def _abs_jvp(t, x, out):
    if dtypes.is_complex(x.dtype):
        raise NotImplementedError("Differentiation rule for 'abs' of complex numbers")
    # JAX takes the derivative at 0 to be 1.
    positive = ge(x, constant(0, x))
    return select(positive, neg(t), t)


abs_p = elementwise(
    "abs", accepts=NUMBERS,
    out_dtype=lambda dtype: dtypes.real_dtype(dtype),
    evaluate=np.abs,
    lower=kernel("abs"),
    jvp=_abs_jvp,
)


def _sign_evaluate(x):
    if np.iscomplexobj(x):
        magnitude = np.abs(x)
        return np.where(magnitude == 0, 0, x / np.where(magnitude == 0, 1, magnitude)).astype(x.dtype)
    result = np.sign(x)
    # NumPy loses the sign of a zero.
    return np.where(x == 0, x, result).astype(x.dtype) if x.dtype.kind not in "iu" else result


sign_p = elementwise("sign", accepts=NUMBERS, evaluate=_sign_evaluate, lower=kernel("sign"))

square_p = elementwise(
    "square", accepts=NUMBERS,
    evaluate=lambda x: np.multiply(x, x),
    lower=lambda ctx, x: ctx.native("mul", x, x),
    jvp=lambda t, x, out: mul(t, mul(constant(2, x), x)),
)


def _integer_pow_evaluate(x, *, y):
    """By repeated squaring, as JAX expands it."""
    if y == 0:
        return np.ones_like(x)
    result, base, exponent = None, np.asarray(x), abs(y)
    while exponent:
        if exponent & 1:
            result = base if result is None else np.multiply(result, base)
        exponent >>= 1
        if exponent:
            base = np.multiply(base, base)
    return np.divide(np.ones((), x.dtype), result) if y < 0 else result


def _integer_pow_lower(ctx, x, *, y):
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


def _integer_pow_jvp(t, x, out, *, y):
    if y == 0:
        return None
    return mul(t, mul(constant(y, x), integer_pow(x, y - 1)))


integer_pow_p = elementwise(
    "integer_pow", accepts=NUMBERS,
    evaluate=_integer_pow_evaluate, lower=_integer_pow_lower, jvp=_integer_pow_jvp)


# --- operations that rules are written with -------------------------------------------------------

def neg(x):
    return neg_p.bind(x)


def add(x, y):
    return add_p.bind(x, y)


def sub(x, y):
    return sub_p.bind(x, y)


def mul(x, y):
    return mul_p.bind(x, y)


def div(x, y):
    return div_p.bind(x, y)


def square(x):
    return square_p.bind(x)


def sign(x):
    return sign_p.bind(x)


def abs_(x):
    return abs_p.bind(x)


def maximum(x, y):
    return max_p.bind(x, y)


def minimum(x, y):
    return min_p.bind(x, y)


def integer_pow(x, y: int):
    if y == 1:
        return x
    return square(x) if y == 2 else integer_pow_p.bind(x, y=y)
