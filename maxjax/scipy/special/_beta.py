"""The beta function and related quotients of gamma functions.

For x >= 8, with a small c(x), Stirling's formula is

    gamma(x) = sqrt(2 pi / x) (x / e)^x exp(c(x))

Quotients are combined before anything cancels: with y = x + m and v = m / (x + y),

    x log(y / x) = 2 x atanh(v) = m - h,    h = m v - 2 x (v^3 / 3 + v^5 / 5 + ...)
    gamma(y) / gamma(x) = sqrt(x / y) y^m exp(c(y) - c(x) - h)

float32 is evaluated through logarithms in float64. In float64 an exponential would magnify the
rounding of its argument: there the large factors are powers, whose exponents are exact, and the
rounding errors of their bases are carried along.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._ir.trace import Array
from maxjax.numpy._at_once import all_at_once
from maxjax.scipy.special._common import (
    atanh_rest,
    horner,
    in_float64,
    operands,
    refuse_complex,
    short,
    strong,
)
from maxjax.scipy.special._gamma import gammasgn

ROOT_TWO_PI = math.sqrt(2 * math.pi)
# Chebyshev's fit of x c(x) by 1 / x^2 for x >= 8, the leading coefficient first; to 4e-17.
_REST = (
    -0.0016526004455594968, 0.0008372834512071329, -0.0005952025951802712,
    0.0007936506649488252, -0.002777777777606244, 0.0833333333333333)
_DIGAMMA = (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12)
# Where |m v| is below this, h is part of an exponent; otherwise a power replaces it.
_NEAR = 3.0


# --- parts ----------------------------------------------------------------------------------------

def _rest(x: Any) -> Array:
    """c(x), for x >= 8: lgamma minus Stirling's formula."""
    inverse = 1 / x
    return inverse * horner(_REST, inverse * inverse)


def _sum(x: Any, y: Any) -> tuple[Array, Array]:
    """``x + y`` and its rounding error."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _power(above: Any, below: Any, exponent: Any, above_low: Any, below_low: Any
           ) -> tuple[Array, Array]:
    """``(above / below) ** exponent`` as a power and the remaining exponent."""
    base, high = short(above / below), short(below)
    error = (above - base * high) - base * (below - high) + (above_low - base * below_low)
    error = error / above
    # error is of above / base below - 1, by above: log(1 / (1 - error))
    return jnp.power(base, exponent), exponent * (error + 0.5 * error * error)


def _bend(x: Any, m: Any, y: Any) -> Array:
    """h, for |v| <= 1/3."""
    v = m / (x + y)
    square = v * v
    return v * (m - 2 * x * square * atanh_rest(square))


def _rising(x: Any, low: Any) -> tuple[Array, Array]:
    """``x (x + 1) ... (x + 7)`` as a factor and an exponent, of ``x + low``."""
    other, other_low = _sum(x, 7.0)
    q = x * other
    high, other_high = short(x), short(other)
    error = (high * other_high - q) + high * (other - other_high) + (x - high) * other
    factors = (q, q + 6, q + 10, q + 12)
    slope = sum((1 / factor for factor in factors[1:]), 1 / q)
    return math.prod(factors), (error + x * other_low + (2 * x + 7) * low) * slope


def _shifted(x: Any, low: Any) -> tuple[Array, Array, Array, Array]:
    """A number >= 8, its low part, and the factor and exponent by which its gamma is too large."""
    small = x < 8
    moved, rounded = _sum(x, jnp.where(small, 8.0, 0.0))
    factor, exponent = _rising(jnp.where(small, x, 1), low)
    return (moved, low + rounded, jnp.where(small, factor, 1), jnp.where(small, exponent, 0))


def _small_gamma(x: Any) -> tuple[Array, Array]:
    """A factor, and the number whose lgamma is the exponent: gamma for x < 8."""
    below = x < 1
    factor = jnp.where(below, jnp.abs(1 / x), 1)
    for step in range(1, 6):
        rest = x - step
        factor = factor * jnp.where(rest >= 2, rest, 1)
    return factor, jnp.where(below, x + 1, x - jnp.maximum(jnp.floor(x) - 2, 0))


# --- the beta function ----------------------------------------------------------------------------

def _log_quotient(x: Any, m: Any) -> Array:
    """``log(gamma(x) / gamma(x + m))`` in float64, less accurate; both x, x + m >= 8."""
    return (_rest(x) - _rest(x + m) + m - m * jnp.log(x + m) - (x - 0.5) * jnp.log1p(m / x))


def _log_beta(a: Any, b: Any) -> Array:
    """betaln in float64, less accurate."""
    small, large = jnp.minimum(a, b), jnp.maximum(a, b)
    total = small + large
    stirling = (large >= 8) & (small > -0.5 * large) & (total >= 8) & jnp.isfinite(large)
    quotient = _log_quotient(jnp.where(stirling, large, 8.0), jnp.where(stirling, small, 1.0))
    return lax.lgamma(small) + jnp.where(
        stirling, quotient, lax.lgamma(large) - lax.lgamma(total))


def _exact_beta(b: Any, x: Any, x_low: Any, y: Any, y_low: Any) -> tuple[Array, Array]:
    """|beta| and betaln for ``b <= x``, ``y = b + x``, where their Stirling quotient is valid."""
    moved = x < 8
    x, x_low, below, slope = _shifted(x, x_low)
    shift, lift = _rising(jnp.where(moved, y, 1), y_low)
    shift, lift = jnp.where(moved, shift / below, 1), jnp.where(moved, lift - slope, 0)
    y, rounded = _sum(y, jnp.where(moved, 8.0, 0.0))
    y_low = y_low + rounded

    h = _bend(x, b, y)
    big = b >= 8
    bent = big & (b * (b / (x + y)) >= _NEAR)
    factor, rest = _small_gamma(jnp.where(big, 1, b))
    safe = jnp.where(big, b, 1)
    root = jnp.where(big, ROOT_TWO_PI / jnp.sqrt(safe), factor) * jnp.sqrt(y / x) * shift
    series = (_rest(x) - _rest(y) + lift + jnp.where(big, _rest(safe), lax.lgamma(rest))
              + jnp.where(bent, 0, h))
    # gamma(b) y^-b as (b / (e y))^b, where b is large
    power, left = _power(safe, y, b, 0.0, y_low)
    power = jnp.where(big, power, jnp.power(y, -b))
    left = jnp.where(big, left, -b * y_low / y)
    # and exp(h - b) as (x / y)^x, where h is large
    ratio, ratio_left = _power(x, y, x, x_low, y_low)
    power = power * jnp.where(bent, ratio, jnp.where(big, jnp.exp(-b), 1))
    left = left + jnp.where(bent, ratio_left + x_low * jnp.log(x / y), 0)
    value = jnp.where(power == 0, 0, root * jnp.exp(series + left) * power)

    info = dtypes.finfo(value.dtype)
    normal = (value > info.tiny) & (value < np.inf)
    tail = jnp.where(bent, x * jnp.log1p(-b / y), jnp.where(big, -b, 0))
    logarithm = jnp.log(jnp.where(normal, value, root)) + jnp.where(
        normal, 0, b * jnp.log(safe / y) + tail + series)
    return value, logarithm


def _beta_pair(a: Any, b: Any) -> tuple[Array, Array]:
    """|beta| and betaln in float64, to the last places."""
    small, large = jnp.minimum(a, b), jnp.maximum(a, b)
    total, low = _sum(large, small)
    holds = jnp.isfinite(total) & jnp.where(
        small > 0, True, (total >= 8) & (small * small < large))
    value, logarithm = _exact_beta(
        jnp.where(holds, small, 1), jnp.where(holds, large, 8), 0.0,
        jnp.where(holds, total, 9), jnp.where(holds, low, 0))
    direct = lax.lgamma(small) + (lax.lgamma(large) - lax.lgamma(total))
    return (jnp.where(holds, value, jnp.exp(direct)), jnp.where(holds, logarithm, direct))


# --- derivatives ----------------------------------------------------------------------------------

def _digamma_rest(x: Any) -> Array:
    """log(x) - 1 / (2 x) - digamma(x), for x >= 8."""
    square = 1 / (x * x)
    return square * horner(_DIGAMMA, square)


def _digamma_step(x: Any, m: Any) -> Array:
    """``digamma(x + m) - digamma(x)`` in float64."""
    y = x + m
    far = (x >= 8) & (y >= 8) & jnp.isfinite(x) & jnp.isfinite(y)
    p, q = jnp.where(far, x, 8.0), jnp.where(far, y, 8.0)
    ratio = jnp.where(far, m, 0) / p
    close = jnp.abs(ratio) < 0.5
    log = jnp.where(close, jnp.log1p(jnp.where(close, ratio, 0)), jnp.log(q / p))
    stirling = log + 0.5 * ratio / q + _digamma_rest(p) - _digamma_rest(q)
    return jnp.where(far, stirling, lax.digamma(y) - lax.digamma(x))


@in_float64
def _beta_slope(a: Any, b: Any, *, wide: bool) -> Array:
    """The derivative of betaln in ``a``."""
    return -_digamma_step(a, b)


@in_float64
def _poch_slope(z: Any, m: Any, *, wide: bool) -> Array:
    """The derivative of the logarithm of poch in ``z``."""
    return _digamma_step(z, m)


@in_float64
def _poch_end(z: Any, m: Any, *, wide: bool) -> Array:
    """The derivative of the logarithm of poch in ``m``."""
    return lax.digamma(z + m)


@in_float64
def _comb_slope(n: Any, k: Any, *, wide: bool) -> Array:
    """The derivative of the logarithm of comb in ``n``."""
    return -_digamma_step(n + 1, -k)


@in_float64
def _comb_part(n: Any, k: Any, *, wide: bool) -> Array:
    """The derivative of the logarithm of comb in ``k``."""
    return _digamma_step(k + 1, n - 2 * k)


# --- the functions --------------------------------------------------------------------------------

@custom_jvp
@in_float64
def _betaln(a: Any, b: Any, *, wide: bool) -> Array:
    return _beta_pair(a, b)[1] if wide else _log_beta(a, b)


_betaln.defjvps(lambda t, ans, a, b: t * _beta_slope(a, b),
                lambda t, ans, a, b: t * _beta_slope(b, a))


@custom_jvp
@in_float64
def _beta(a: Any, b: Any, *, wide: bool) -> Array:
    sign = gammasgn(a) * gammasgn(b) * gammasgn(a + b)
    return sign * (_beta_pair(a, b)[0] if wide else jnp.exp(_log_beta(a, b)))


_beta.defjvps(lambda t, ans, a, b: t * ans * _beta_slope(a, b),
              lambda t, ans, a, b: t * ans * _beta_slope(b, a))


def betaln(a: Any, b: Any) -> Array:
    """``log(abs(beta(a, b)))``.

    Args:
      a, b: real arrays or numbers of shapes that broadcast; integers become floats.

    Returns:
      An array of floats of the common shape.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``special.beta``, ``special.gammaln``, ``special.betainc``.

    >>> jax.scipy.special.betaln(2.0, 3.0)
    Array(-2.4849067, dtype=float32, weak_type=True)
    """
    return _betaln(*operands("betaln", a, b))


def beta(a: Any, b: Any) -> Array:
    """``gamma(a) * gamma(b) / gamma(a + b)``.

    >>> jax.scipy.special.beta(2.0, 4.0)
    Array(0.05, dtype=float32)
    """
    a, b = operands("beta", a, b)
    refuse_complex("beta", a)
    return strong(_beta(a, b))


@custom_jvp
@in_float64
def _comb(n: Any, k: Any, *, wide: bool) -> Array:
    """For 0 <= k <= n."""
    if wide:
        rest = n - k
        part = rest - n     # n - k = rest + low
        low = (n - (rest - part)) - (k + part)
        tiny = dtypes.finfo(n.dtype).tiny
        inside = (k > tiny) & (rest > tiny) & jnp.isfinite(n)
        k_safe, rest_safe, n_safe = (
            jnp.where(inside, x, 8.0 * i) for i, x in enumerate((k, rest, n), 1))
        value, _ = _exact_beta(
            jnp.minimum(k_safe, rest_safe), jnp.maximum(k_safe, rest_safe),
            jnp.where(inside & (rest >= k), low, 0), n_safe, 0.0)
        value = jnp.where(inside, n_safe / k_safe / rest_safe / value,
                          jnp.where(jnp.isfinite(n), 1.0, np.nan))
    else:
        value = jnp.exp(-_log_beta(1 + (n - k), 1 + k) - jnp.log1p(n))
    count = (jnp.floor(n) == n) & (jnp.floor(k) == k) & (value * 2.0 ** -52 < 0.01)
    return jnp.where(count, jnp.round(value), value)


_comb.defjvps(lambda t, ans, n, k: t * ans * _comb_slope(n, k),
              lambda t, ans, n, k: t * ans * _comb_part(n, k))


def comb(N: Any, k: Any, *, repetition: bool = False) -> Array:
    """The number of ways to choose ``k`` of ``N``; 0 if there are none.

    Args:
      repetition: the same element may be chosen repeatedly.

    >>> jax.scipy.special.comb(jnp.array([5.0, 4.0]), 2.0)
    Array([10.,  6.], dtype=float32)
    """
    N, k = operands("comb", N, k)
    if repetition:
        return jnp.where((k == 0) & (N >= 0), 1, comb(N + k - 1, k))
    valid = (k <= N) & (N >= 0) & (k >= 0)
    return jnp.where(valid, _comb(jnp.where(valid, N, 1), jnp.where(valid, k, 0)), 0)


def _exact_poch(z: Any, m: Any, s: Any, s_low: Any) -> Array:
    """poch in float64, to the last places, for z > 0 and s = z + m > 0."""
    x, x_low, x_factor, x_slope = _shifted(z, 0.0)
    y, y_low, y_factor, y_slope = _shifted(s, s_low)
    step, step_low = _sum(m, jnp.where(s < 8, 8.0, 0.0) - jnp.where(z < 8, 8.0, 0.0))
    h = _bend(x, step, y)
    v = jnp.abs(step / (x + y))
    bent = (v > 1 / 3) | (v * jnp.abs(step) >= _NEAR)
    ratio, left = _power(y, x, x, y_low, x_low)
    left = left + x_low * jnp.log(y / x)
    exponent = (_rest(y) - _rest(x) + x_slope - y_slope + step_low * jnp.log(y)
                + step * y_low / y + jnp.where(bent, left, -h))
    half = jnp.power(y, 0.5 * step)     # the full power may overflow although the product does not
    power = half * jnp.where(bent, jnp.exp(-step) * ratio, 1) * half
    value = jnp.sqrt(x / y) * jnp.exp(exponent) * (x_factor / y_factor) * power
    return jnp.where((half == 0) | (half == np.inf), half, value)


@custom_jvp
@in_float64
def _poch(z: Any, m: Any, *, wide: bool) -> Array:
    s, low = _sum(z, m)
    sign = gammasgn(s) * gammasgn(z)
    direct = lax.lgamma(s) - lax.lgamma(z)
    finite = jnp.isfinite(s) & jnp.isfinite(z)
    if wide:
        holds = (z > 0) & (s > 0) & finite
        exact = _exact_poch(*(jnp.where(holds, value, other) for value, other in (
            (z, 9.0), (m, 0.0), (s, 9.0), (low, 0.0))))
        value = jnp.where(holds, exact, sign * jnp.exp(direct))
    else:
        holds = (z >= 8) & (s >= 8) & finite
        quotient = -_log_quotient(jnp.where(holds, z, 8.0), jnp.where(holds, m, 0.0))
        value = sign * jnp.exp(jnp.where(holds, quotient, direct))
    return jnp.where(m == 0, 1.0, value)


_poch.defjvps(lambda t, ans, z, m: t * ans * _poch_slope(z, m),
              lambda t, ans, z, m: t * ans * _poch_end(z, m))


def poch(z: Any, m: Any) -> Array:
    """The Pochhammer symbol ``gamma(z + m) / gamma(z)``.

    >>> jax.scipy.special.poch(2.0, 0.0)
    Array(1., dtype=float32)
    """
    z, m = operands("poch", z, m)
    refuse_complex("jnp.poch", z)
    return strong(_poch(z, m))


all_at_once(globals())
