"""Exponentials, logarithms, trigonometric and hyperbolic functions, roots and powers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.contract import takes
from maxjax._ir.costs import Cost
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Host
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params, Value
from maxjax._primitives import complex_values, costs, elementary, fitting
from maxjax._primitives.arithmetic import (
    abs_,
    add,
    constant,
    div,
    integer_pow,
    maximum,
    minimum,
    mul,
    neg,
    of_the_type,
    one_minus_square,
    square,
    sub,
)
from maxjax._primitives.broadcasting import broadcast_to_shape
from maxjax._primitives.builders import elementwise
from maxjax._primitives.comparison import eq, ge, select, where_zero
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.kernels import Kernel
from maxjax._primitives.rules import native, scalar_like
from maxjax._primitives.widths import (
    FLOATING,
    INEXACT,
    specialized,
    vectorized,
    vectorized_pair,
    widened,
)

if TYPE_CHECKING:
    from maxjax._primitives.widths import Accepted


_TRANSCENDENTAL = costs.elementwise(0, 1)


def _unary(name: str, function: Callable[..., np.ndarray], jvp: Callable[..., Any],
           lower: Callable[..., Any] | None = None, accepts: Accepted = INEXACT, *,
           may_give_nan: bool = True, cost: Cost = _TRANSCENDENTAL, **rules: Any) -> Primitive:
    rule = complex_values.RULES.get(name, function)
    return elementwise(
        name, accepts=accepts, evaluate=widened(rule),
        host=Host(specialize=specialized(function, rule)),
        lower=lower, kernels=(Kernel(name, dtypes.FLOATS),), jvp=jvp, may_give_nan=may_give_nan,
        cost=cost, **rules)


def _one(x: Array) -> Value:
    return constant(1, x)


def _one_of_the_type(x: Array) -> Value:
    """With the weak type of arrays too: JAX's rules have ones of both kinds."""
    return of_the_type(1, x)


# --- exponentials and logarithms ------------------------------------------------------------------

exp_p = _unary("exp", vectorized("exp", elementary.exp), lambda t, x, out: mul(t, out))
exp2_p = _unary("exp2", vectorized("exp2", elementary.exp2),
                lambda t, x, out: mul(t, mul(constant(math.log(2), x), out)))
# Not by the result plus 1, of which nothing is left for negative arguments.
expm1_p = _unary("expm1", vectorized("expm1", elementary.expm1),
                 lambda t, x, out: mul(t, exp_p.bind(x)), keeps_zero=True)
log_p = _unary("log", vectorized("log", elementary.log), lambda t, x, out: div(t, x), native("log"))
log2_p = _unary("log2", vectorized("log2", elementary.log2),
                lambda t, x, out: div(t, mul(x, log_p.bind(constant(2, x)))),
                cost=costs.ONE_EACH)
log1p_p = _unary(
    "log1p", vectorized("log1p", elementary.log1p),
    lambda t, x, out: div(t, add(x, _one_of_the_type(x))), native("log1p"), keeps_zero=True)


def _logistic(x: np.ndarray) -> np.ndarray:
    if dtypes.is_complex(x.dtype):
        return complex_values.logistic(x)
    one = np.ones((), x.dtype)
    return one / (one + elementary.exp(-x))


logistic_p = _unary(
    "logistic", vectorized("logistic", _logistic),
    lambda t, x, out: mul(t, mul(out, sub(_one_of_the_type(x), out))), cost=costs.elementwise(3, 1))

# --- trigonometry ---------------------------------------------------------------------------------

sin_p = _unary("sin", vectorized("sin", elementary.sin, 4096),
               lambda t, x, out: mul(t, cos_p.bind(x)), native("sin"), keeps_zero=True)
cos_p = _unary("cos", vectorized("cos", elementary.cos, 4096),
               lambda t, x, out: neg(mul(t, sin_p.bind(x))), native("cos"))
tan_p = _unary("tan", vectorized("tan", elementary.tan),
               lambda t, x, out: mul(t, add(_one(x), square(out))), keeps_zero=True)
asin_p = _unary("asin", elementary.asin, lambda t, x, out: mul(t, rsqrt(one_minus_square(x))),
                keeps_zero=True, cost=costs.elementwise(5, 2))
acos_p = _unary("acos", elementary.acos,
                lambda t, x, out: mul(t, neg(rsqrt(one_minus_square(x)))),
                cost=costs.elementwise(6, 2))
atan_p = _unary("atan", elementary.atan, lambda t, x, out: div(t, add(_one(x), square(x))),
                keeps_zero=True)


def _atan2(y: np.ndarray, x: np.ndarray) -> np.ndarray:
    if y.dtype.kind == "c":
        return (-1j * np.log((x + 1j * y) / np.sqrt(x * x + y * y))).astype(y.dtype)
    return elementary.atan2(y, x)


atan2_p = elementwise(
    "atan2", accepts=INEXACT, evaluate=widened(_atan2),
    kernels=(Kernel("atan2", dtypes.FLOATS, 2),),
    jvp=(lambda t, y, x, out: mul(t, div(x, add(square(y), square(x)))),
         lambda t, y, x, out: mul(t, div(neg(y), add(square(y), square(x))))), may_give_nan=True,
    cost=costs.TRANSCENDENTAL)

# --- hyperbolic functions -------------------------------------------------------------------------

sinh_p = _unary("sinh", vectorized("sinh", elementary.sinh),
                lambda t, x, out: mul(t, cosh_p.bind(x)), keeps_zero=True,
                cost=costs.elementwise(10, 3))
cosh_p = _unary("cosh", vectorized("cosh", elementary.cosh),
                lambda t, x, out: mul(t, sinh_p.bind(x)), cost=costs.elementwise(5, 2))
tanh_p = _unary("tanh", vectorized("tanh", elementary.tanh),
                lambda t, x, out: mul(t, one_minus_square(out)), keeps_zero=True,
                cost=costs.TRANSCENDENTAL)

def _asinh_jvp(t: Array, x: Array, out: Array) -> Array:
    """``t / sqrt(x**2 + 1)``; far away the square would overflow, and the 1 is nothing."""
    if dtypes.is_complex(x.dtype):
        return mul(t, rsqrt(add(square(x), _one(x))))
    far = constant(2.0 ** 8 if x.dtype == dtypes.float16 else 2.0 ** 32, x)
    size = abs_(x)
    near = rsqrt(add(square(minimum(size, far)), _one(x)))
    return mul(t, select(ge(size, far), near, integer_pow(maximum(size, far), -1)))


asinh_p = _unary("asinh", vectorized("asinh", elementary.asinh), _asinh_jvp, keeps_zero=True,
                 cost=costs.ONE_EACH)
# Two roots: a square would overflow.
acosh_p = _unary("acosh", vectorized("acosh", elementary.acosh),
                 lambda t, x, out: mul(t, mul(rsqrt(sub(x, _one_of_the_type(x))),
                                              rsqrt(add(x, _one_of_the_type(x))))),
                 cost=costs.ONE_EACH)
atanh_p = _unary(
    "atanh", vectorized("atanh", elementary.atanh),
    lambda t, x, out: div(t, one_minus_square(x)), keeps_zero=True,
    cost=costs.ONE_EACH)

# --- roots and powers -----------------------------------------------------------------------------

sqrt_p = _unary("sqrt", np.sqrt, lambda t, x, out: mul(t, div(constant(0.5, x), out)),
                keeps_zero=True)


def _rsqrt(x: np.ndarray) -> np.ndarray:
    if dtypes.is_complex(x.dtype):
        return complex_values.rsqrt(x)
    return np.ones((), x.dtype) / np.sqrt(x)


rsqrt_p = _unary(
    "rsqrt", _rsqrt,
    lambda t, x, out: mul(t, mul(constant(-0.5, x), div(out, x))), native("rsqrt"))
cbrt_p = _unary(
    "cbrt", elementary.cbrt,
    lambda t, x, out: mul(t, mul(constant(1 / 3, x), integer_pow(out, -2))), accepts=FLOATING,
    keeps_zero=True)


def _pow_jvp_base(t: Array, x: Array, y: Array, out: Array) -> Array:
    """``y x**(y-1)``; for integers ``y`` zero where y is zero, also at x = 0."""
    if dtypes.is_integer(y.dtype):
        y = convert_element_type(y, x.dtype)
        one = full(y.shape, 1, y.dtype)
        power = mul(where_zero(y, 1), pow_p.bind(x, sub(y, one)))
        still = eq(y, scalar_like(0, y.dtype))
        return mul(t, select(broadcast_to_shape(still, out.shape), power,
                             full(out.shape, 0, out.dtype)))
    # As in JAX, only of complex numbers is a weakly typed operand's derivative weakly typed.
    less = sub(y, constant(1, y) if dtypes.is_complex(y.dtype) else scalar_like(1, y.dtype))
    return mul(t, mul(y, pow_p.bind(x, less)))


def _pow_jvp_exponent(t: Value, x: Array, y: Value, out: Value) -> Array:
    """``log(x) x**y``, and 0 at x = 0; as in JAX, of no weak type."""
    return convert_element_type(mul(t, mul(log_p.bind(where_zero(x, 1)), out)), out.dtype)


_power = vectorized_pair("pow", complex_values.power)


def _pow_specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                    out_avals: tuple[ShapedArray, ...]) -> Callable[..., Any] | None:
    if in_avals[0].dtype == in_avals[1].dtype:
        return specialized(_power, complex_values.power)(in_avals, params, out_avals)
    return None


pow_p = elementwise(
    "pow", accepts=INEXACT, same_dtypes=slice(1),
    contract=takes(2, fitting.power),
    evaluate=lambda x, y: widened(_power)(x, y.astype(x.dtype)),
    host=Host(specialize=_pow_specialize),
    kernels=(Kernel("pow", dtypes.FLOATS, 2),),
    lower=lambda ctx, x, y: ctx.kernel("pow", x, ctx.convert(y, ctx.dtype(x))),
    jvp=(_pow_jvp_base, _pow_jvp_exponent), may_give_nan=True, cost=costs.TRANSCENDENTAL)


# --- operations that rules are written with -------------------------------------------------------

def exp(x: Value) -> Array:
    return exp_p.bind(x)


def log(x: Value) -> Array:
    return log_p.bind(x)


def rsqrt(x: Value) -> Array:
    return rsqrt_p.bind(x)
