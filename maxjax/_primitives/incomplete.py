"""Incomplete gamma and beta functions, and the former's derivatives in their parameter."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base.lazy import scipy_special
from maxjax._ir.rule_groups import Host
from maxjax._ir.trace import Array
from maxjax._primitives import elementary
from maxjax._primitives.arithmetic import add, constant, mul, neg, sub
from maxjax._primitives.builders import elementwise
from maxjax._primitives.special import HOST, lgamma_p
from maxjax._primitives.transcendental import exp, log, log1p_p
from maxjax._primitives.widths import FLOATING, widened

# --- d P(a, x) / d a ------------------------------------------------------------------------------
#
# With p the density of the gamma distribution, g(a, x) = dP/da / p(a, x) does not underflow. It is
# minus the derivative of a gamma variate x in its parameter a at a fixed quantile.
#
# P = x**a e**-x / Gamma(a + 1) * S,  S = sum of x**n / ((a + 1) ... (a + n)), so for small x
#     g = (x / a) (S (log x - psi(a + 1)) + dS/da).
# Elsewhere dP/da is the integral of p(a, t) (log t - psi(a)) over t up to x, or minus that from x
# on: the factor changes its sign at t = e**psi(a), and the side of x is taken where it has but one.
# With t = x e**-u, or x e**u, the integrand falls to nothing within a known length.

_SERIES_BELOW = 2.0        # x for which the series loses no more than two digits
_LARGE = 20.0              # parameters from which the integral needs few nodes
_NEGLIGIBLE = 40.0         # e**-40 is negligible


@functools.cache
def _nodes() -> tuple[np.ndarray, np.ndarray]:
    """Gauss and Legendre's nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    return (nodes + 1) / 2, weights / 2


def _by_series(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    term, change = np.ones_like(x), np.zeros_like(x)        # of S, and of dlog(term)/da
    total, slope = np.ones_like(x), np.zeros_like(x)
    n = 0
    while n < 500:
        n += 1
        term = term * (x / (a + n))
        change = change - 1 / (a + n)
        step = term * change
        total += term
        slope += step
        if (np.abs(step) <= 1e-17 * np.abs(slope)).all() and (term <= 1e-17 * total).all():
            break
    return x / a * (total * (elementary.log(x) - scipy_special.psi(a + 1)) + slope)


def _by_integral(a: np.ndarray, x: np.ndarray, lower: bool) -> np.ndarray:
    # The exponent is a u - x (1 - e**-u) below, x (e**u - 1) - a u above: convex, 0 at 0.
    offset = elementary.log(x) - scipy_special.psi(a)
    gap = np.maximum(a - x if lower else x - a, 1e-300)
    length = np.minimum(_NEGLIGIBLE / gap, np.sqrt(2 * _NEGLIGIBLE / x) * (2 if lower else 1))
    if lower:       # a bound from above; Newton's steps come nearer to where it is 40
        length = np.maximum(length, _NEGLIGIBLE / a)
        for _ in range(6):
            value = a * length + x * elementary.expm1(-length) - _NEGLIGIBLE
            length = length - np.maximum(value, 0) / (a - x * elementary.exp(-length))
    total = np.zeros_like(x)
    for node, weight in zip(*_nodes(), strict=True):
        u = length * node
        if lower:
            total += weight * elementary.exp(-a * u - x * elementary.expm1(-u)) * (offset - u)
        else:
            total -= weight * elementary.exp(a * u - x * elementary.expm1(u)) * (offset + u)
    return x * length * total


def gamma_quantile_slope(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    """g(a, x) for positive a and x in float64, of one shape; see above."""
    out = np.full(x.shape, np.nan)
    series = (x <= _SERIES_BELOW) | ((a < _LARGE) & (x < a))
    lower = ~series & (elementary.log(x) < scipy_special.psi(a))
    for where, function in ((series, _by_series),
                            (lower, functools.partial(_by_integral, lower=True)),
                            (~series & ~lower, functools.partial(_by_integral, lower=False))):
        if where.any():
            out[where] = function(a[where], x[where])
    return out


def _both(a: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    shape = np.broadcast_shapes(np.shape(a), np.shape(x))
    return np.broadcast_to(a, shape), np.broadcast_to(x, shape)


def _slope(a: np.ndarray, x: np.ndarray, of: Callable[..., np.ndarray]) -> np.ndarray:
    """``of(g, a, x)`` for positive and finite operands, 0 at x = 0, else NaN."""
    dtype = x.dtype
    a, x = (part.astype(np.float64) for part in _both(a, x))
    inside = (a > 0) & (x > 0) & np.isfinite(a) & np.isfinite(x)
    out = np.where((x == 0) & (a > 0), 0.0, np.nan)
    a, x = a[inside], x[inside]
    out[inside] = of(gamma_quantile_slope(a, x), a, x)
    return out.astype(dtype)


def _igamma_grad_a(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    return _slope(a, x, lambda g, a, x: g * elementary.exp(
        (a - 1) * elementary.log(x) - x - scipy_special.gammaln(a)))


def _random_gamma_grad(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    return _slope(a, x, lambda g, a, x: -g)


# --- the primitives -------------------------------------------------------------------------------

def _density(t: Array, a: Array, x: Array) -> Any:
    """t * x**(a - 1) e**-x / Gamma(a)."""
    exponent = sub(add(neg(x), mul(sub(a, constant(1, a)), log(x))), lgamma_p.bind(a))
    return mul(t, exp(exponent))


igamma_grad_a_p = elementwise(
    "igamma_grad_a", accepts=FLOATING, evaluate=widened(_igamma_grad_a), host=Host(reason=HOST),
    no_derivative="the second derivative of igamma by its parameter is not implemented",
    may_give_nan=True)

random_gamma_grad_p = elementwise(
    "random_gamma_grad", accepts=FLOATING, evaluate=widened(_random_gamma_grad),
    host=Host(reason=HOST),
    no_derivative="the second derivative of a gamma variate by its parameter")


igamma_p = elementwise(
    "igamma", accepts=FLOATING, host=Host(reason=HOST),
    evaluate=widened(lambda a, x: scipy_special.gammainc(a, x)),
    jvp=(lambda t, a, x, out: mul(t, igamma_grad_a_p.bind(a, x)),
         lambda t, a, x, out: _density(t, a, x)), may_give_nan=True)

igammac_p = elementwise(
    "igammac", accepts=FLOATING, host=Host(reason=HOST),
    evaluate=widened(lambda a, x: scipy_special.gammaincc(a, x)),
    jvp=(lambda t, a, x, out: mul(neg(t), igamma_grad_a_p.bind(a, x)),
         lambda t, a, x, out: _density(neg(t), a, x)), may_give_nan=True)


def _by_parameter(t: Array, *operands: Sequence[Array]) -> Any:
    raise ValueError("Betainc gradient with respect to a and b not supported.")


def _beta_density(t: Array, a: Array, b: Array, x: Array, out: Array) -> Any:
    """t * x**(a - 1) (1 - x)**(b - 1) / B(a, b)."""
    one = constant(1, x)
    beta = sub(add(lgamma_p.bind(a), lgamma_p.bind(b)), lgamma_p.bind(add(a, b)))
    exponent = add(mul(sub(b, one), log1p_p.bind(neg(x))), mul(sub(a, one), log(x)))
    return mul(exp(sub(exponent, beta)), t)


def _betainc(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    """With the limits at 0 and infinity, where all mass lies at one end."""
    dtype = x.dtype
    zero, one = dtype.type(0), dtype.type(1)
    at_zero = (a == 0) | (b == np.inf)
    at_one = (b == 0) | (a == np.inf)
    valid = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1) & ~(at_zero & at_one)
    inside = valid & ~at_zero & ~at_one
    # In float64: SciPy's float32 loop is hundreds of units in the last place off.
    value = scipy_special.betainc(*[np.where(inside, array, filler).astype(np.float64)
                                    for array, filler in ((a, one), (b, one), (x, zero))])
    value = np.where(at_zero, np.where(x > 0, one, zero), value)
    value = np.where(at_one, np.where(x < 1, zero, one), value)
    return np.where(valid, value, dtype.type(np.nan)).astype(dtype)


regularized_incomplete_beta_p = elementwise(
    "regularized_incomplete_beta", accepts=FLOATING, evaluate=widened(_betainc),
    host=Host(reason=HOST),
    jvp=(_by_parameter, _by_parameter, _beta_density), may_give_nan=True)
