"""Special functions: NumPy rules from SciPy, and kernels where there are some."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.lazy import scipy_special
from maxjax._base.native import FEWEST
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Host
from maxjax._ir.trace import Array, aval_of
from maxjax._primitives import costs, xla_float32
from maxjax._primitives.arithmetic import (
    add,
    constant,
    div,
    maximum,
    minimum,
    mul,
    neg,
    of_the_type,
    sign,
    square,
    sub,
)
from maxjax._primitives.builders import elementwise
from maxjax._primitives.comparison import eq, select, where_zero
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.kernels import Kernel
from maxjax._primitives.rules import native, scalar_like
from maxjax._primitives.transcendental import exp
from maxjax._primitives.widths import FLOATING, vectorized, widened


def _special(name: str, function: Callable[..., np.ndarray],
             jvp: Callable[..., Any] | tuple[Callable[..., Any], ...],
             lower: Callable[..., Any] | None = None, host_reason: str | None = None, *,
             may_give_nan: bool = True, **rules: Any) -> Primitive:
    return elementwise(
        name, accepts=FLOATING, evaluate=widened(function), jvp=jvp, may_give_nan=may_give_nan,
        kernels=() if host_reason else (Kernel(name, dtypes.FLOATS),), lower=lower,
        host=Host(reason=host_reason), **rules)


def _gaussian(scale: float) -> Callable[..., Any]:
    """The derivative ``scale * exp(-x**2)``.

    Beyond 28 the exponential is 0 in every dtype, and so are its derivatives, also at infinity.
    """
    def rule(t: Array, x: Array, out: Array) -> Array:
        near = minimum(maximum(x, of_the_type(-28, x)), of_the_type(28, x))
        return mul(scalar_like(scale, x.dtype), mul(t, exp(neg(square(near)))))
    return rule


TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)

erf_p = _special(
    "erf", vectorized("erf", lambda x: scipy_special.erf(x)), _gaussian(TWO_OVER_ROOT_PI),
    native("erf"), keeps_zero=True, cost=costs.elementwise(0, 1))


def rounding_of_square(x: np.ndarray) -> np.ndarray:
    """The rounding error of the float64 ``x * x``, for squares inside an exponential."""
    high = x.astype(np.float32).astype(np.float64)
    low = x - high
    return (high * high - x * x) + 2 * high * low + low * low


def _erfc(x: np.ndarray) -> np.ndarray:
    value = scipy_special.erfc(x)
    if x.dtype != np.float64:
        return value
    # SciPy's is exp(-x**2) by a quotient, and magnifies the rounding of the square.
    with np.errstate(all="ignore"):
        return np.where((x > 1) & (value > 0), value - value * rounding_of_square(x), value)


erfc_p = _special("erfc", vectorized("erfc", _erfc), _gaussian(-TWO_OVER_ROOT_PI),
                  cost=costs.ELEMENTWISE)


def _erf_inv(x: np.ndarray) -> np.ndarray:
    if x.dtype == np.float32:      # normal variates are made with it
        return xla_float32.erf_inv(x)
    # SciPy's loses the sign of a zero.
    return np.where(x == 0, x, scipy_special.erfinv(x))


erf_inv_p = _special(
    "erf_inv", vectorized("erf_inv", _erf_inv, FEWEST),
    lambda t, x, out: mul(constant(math.sqrt(math.pi) / 2, x), mul(t, exp(square(out)))),
    keeps_zero=True, cost=costs.elementwise(36, 2))


def _lgamma(x: np.ndarray) -> np.ndarray:
    # XLA's limit at -inf is inf.
    return np.where(np.isinf(x), np.array(np.inf, x.dtype), scipy_special.gammaln(x))


def _digamma(x: np.ndarray) -> np.ndarray:
    # At 0 of either sign it is the limit from above, in XLA; at the other poles NaN.
    return np.where(x == 0, np.array(-np.inf, x.dtype), scipy_special.psi(x))


def _polygamma(order: np.ndarray, x: np.ndarray) -> np.ndarray:
    """(-1)**(m+1) m! zeta(m+1, x); digamma for m = 0, NaN for an m that is not a count."""
    order, x = np.broadcast_arrays(order, x)
    factor = np.where(order % 2 == 1, 1.0, -1.0) * scipy_special.gamma(order + 1.0)
    value = factor * _zeta(order + 1.0, x)
    value = np.where(order == 0, _digamma(x), value)
    return np.where((order < 0) | (order != np.floor(order)), np.nan, value).astype(x.dtype)


def _zeta(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The sum of (q + k)**-x over k >= 0."""
    value = scipy_special.zeta(x, q)
    poles = (q <= 0) & (q == np.floor(q))
    # At a pole, the terms of an odd power differ in sign.
    return np.where(poles & (x % 2 != 0), np.nan, value).astype(x.dtype)


HOST = "a special function that MAX does not have"


def _zeta_by_exponent(*operands: Sequence[Array]) -> Any:
    raise NotImplementedError("Differentiation rule for 'zeta' not implemented by its exponent: "
                              "scipy.special.zeta has it.")


def _polygamma_by_order(*operands: Sequence[Array]) -> Any:
    raise ValueError("polygamma gradient with respect to m is not supported")


polygamma_p = _special(
    "polygamma", _polygamma,
    (_polygamma_by_order, lambda t, m, x, out: mul(t, polygamma_p.bind(add(m, constant(1, m)), x))),
    host_reason=HOST, may_give_nan=False)
zeta_p = _special(
    "zeta", _zeta,
    (_zeta_by_exponent,
     lambda t, x, q, out: mul(t, mul(neg(x), zeta_p.bind(add(x, constant(1, x)), q)))),
    host_reason=HOST, may_give_nan=False)
digamma_p = _special(
    "digamma", vectorized("digamma", _digamma, 65536),
    lambda t, x, out: mul(t, polygamma_p.bind(constant(1, x), x)), cost=costs.ELEMENTWISE)
lgamma_p = _special(
    "lgamma", vectorized("lgamma", _lgamma, 65536), lambda t, x, out: mul(t, digamma_p.bind(x)),
    cost=costs.ELEMENTWISE)

bessel_i1e_p = _special(
    # SciPy's loses the sign of a zero.
    "bessel_i1e",
    vectorized("bessel_i1e", lambda x: np.where(x == 0, x, scipy_special.i1e(x)), FEWEST),
    lambda t, x, out: mul(t, _bessel_i1e_slope(x, out)), keeps_zero=True,
    cost=costs.ELEMENTWISE)
bessel_i0e_p = _special(
    "bessel_i0e", vectorized("bessel_i0e", lambda x: scipy_special.i0e(x), FEWEST),
    lambda t, x, out: mul(t, sub(bessel_i1e_p.bind(x), mul(sign(x), out))),
    cost=costs.ELEMENTWISE)


def _bessel_i1e_slope(x: Array, out: Array) -> Array:
    """I0e(x) - I1e(x) (sign(x) + 1/x), and its limit 1/2 at 0."""
    safe = where_zero(x, 1)
    slope = sub(bessel_i0e_p.bind(safe), mul(out, add(sign(safe), div(of_the_type(1, x), safe))))
    half = convert_element_type(full(x.shape, 0.5, x.dtype), x.dtype, aval_of(x).weak_type)
    return select(eq(x, constant(0, x)), slope, half)
