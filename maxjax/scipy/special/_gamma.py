"""The gamma function and related functions."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.lazy import scipy_special
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._ir.trace import Array
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.special_functions import gamma_complex_p, gamma_p, loggamma_complex_p
from maxjax._transforms.autodiff import jvp
from maxjax.numpy._at_once import all_at_once
from maxjax.numpy._promotion import bind, check_arraylike, concrete, type_of
from maxjax.scipy.special._common import operands, refuse_complex, strong


def gammaln(x: Any) -> Array:
    """``log(abs(gamma(x)))``.

    Args:
      x: a real array or number; integers become floats.

    Returns:
      An array of floats of the shape of ``x``; infinite at 0 and the negative integers.

    Raises:
      TypeError: ``x`` is complex, or no array or number.

    See also: ``special.gamma``, ``special.digamma``, ``special.betaln``, ``lax.lgamma``.

    >>> jax.scipy.special.gammaln(5.0)
    Array(3.1780539, dtype=float32, weak_type=True)
    """
    return lax.lgamma(*operands("gammaln", x))


@custom_jvp
def _complex_loggamma(z: Any) -> Array:
    return bind(loggamma_complex_p, z)


_complex_loggamma.defjvps(lambda t, ans, z: t * _complex_digamma(z))


@custom_jvp
def _complex_gamma(z: Any) -> Array:
    return bind(gamma_complex_p, z)


_complex_gamma.defjvps(lambda t, ans, z: t * ans * _complex_digamma(z))


def _complex_digamma(z: Any) -> Array:
    """By reflection to positive arguments, recurrence away from 0, and Stirling's series."""
    left = z.real < 0
    z = jnp.where(left, 1 - z, z)
    shifted, total = z, jnp.zeros_like(z)
    for _ in range(10):
        total = total - 1 / shifted
        shifted = shifted + 1
    square = 1 / (shifted * shifted)
    series = square * (1 / 12 - square * (1 / 120 - square * (1 / 252 - square * (
        1 / 240 - square * (1 / 132 - square * 691 / 32760)))))
    total = total + jnp.log(shifted) - 0.5 / shifted - series
    return jnp.where(left, total - np.pi / jnp.tan(np.pi * (1 - z)), total)


def loggamma(x: Any) -> Array:
    """The logarithm of the gamma function: NaN for negative reals; complex arguments are supported.

    >>> jax.scipy.special.loggamma(5.0)
    Array(3.1780539, dtype=float32, weak_type=True)
    """
    x, = operands("loggamma", x)
    if dtypes.is_complex(x.dtype):
        return strong(_complex_loggamma(x))
    return jnp.where(x < 0, np.nan, lax.lgamma(x))


def gammasgn(x: Any) -> Array:
    """The sign of the gamma function: NaN at its poles except 0.

    >>> jax.scipy.special.gammasgn(jnp.array([-1.5, -0.5, 0.5]))
    Array([ 1., -1.,  1.], dtype=float32)
    """
    x, = operands("gammasgn", x)
    refuse_complex("gammasgn", x)
    typed = x.dtype.type
    floor = jnp.floor(x)
    negative = jnp.where(floor == x, typed(np.nan),
                         jnp.where(jnp.mod(floor, 2) == 0, typed(1), typed(-1)))
    signed_zero = jnp.where(jnp.signbit(x), typed(-1), typed(1))
    return jnp.where(jnp.isnan(x), x, jnp.where(
        x < 0, jnp.where(x == -np.inf, typed(np.nan), negative),
        jnp.where(x == 0, signed_zero, typed(1))))


@custom_jvp
def _gamma(x: Any) -> Array:
    # NaN at -inf and at the negative integers, as in SciPy and JAX.
    return bind(gamma_p, x)


_gamma.defjvps(lambda t, ans, x: t * ans * lax.digamma(x))


def gamma(x: Any) -> Array:
    """The gamma function of real or complex arguments.

    >>> jax.scipy.special.gamma(jnp.array([0.5, 5.0]))
    Array([ 1.7724539, 24.       ], dtype=float32)
    """
    x, = operands("gamma", x)
    return strong(_complex_gamma(x) if dtypes.is_complex(x.dtype) else _gamma(x))


def digamma(x: Any) -> Array:
    """The derivative of ``gammaln``.

    Args:
      x: a real array or number; integers become floats.

    Returns:
      An array of floats of the shape of ``x``; infinite at 0, NaN at the negative
      integers.

    Raises:
      TypeError: ``x`` is complex, or no array or number.

    See also: ``special.gammaln``, ``special.polygamma``, ``lax.digamma``.

    >>> jax.scipy.special.digamma(1.0)
    Array(-0.5772157, dtype=float32, weak_type=True)
    """
    return lax.digamma(*operands("digamma", x))


def polygamma(n: Any, x: Any) -> Array:
    """The derivative of order ``n``, an integer, of ``digamma``.

    >>> jax.scipy.special.polygamma(1, 1.0)
    Array(1.644934, dtype=float32, weak_type=True)
    """
    check_arraylike("polygamma", n, x)
    if not np.issubdtype(jnp.result_type(n), np.integer):
        raise ValueError("Argument `n` to polygamma must be of integer type. "
                         f"Got dtype {jnp.result_type(n)}.")
    return lax.polygamma(*_spread("polygamma", n, x))


def _spread(name: str, *args: Any) -> tuple[Array, ...]:
    """Operands of one shape, as jax.lax requires."""
    return jnp.broadcast_arrays(*operands(name, *args))


def zeta(x: Any, q: Any = None) -> Array:
    """The Hurwitz zeta function: the sum of ``(q + k) ** -x`` over ``k >= 0``.

    Raises:
      NotImplementedError: ``q`` is None.

    >>> jax.scipy.special.zeta(2.0, 1.0)
    Array(1.644934, dtype=float32, weak_type=True)
    """
    if q is None:
        raise NotImplementedError("Riemann zeta function not implemented; pass q != None to "
                                  "compute the Hurwitz Zeta function.")
    return _zeta(*_spread("zeta", x, q))


@custom_jvp
def _zeta(x: Array, q: Array) -> Array:
    return lax.zeta(x, q)


@_zeta.defjvp
def _zeta_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    return jvp(_zeta_series, primals, tangents)


def _zeta_series(x: Array, q: Array) -> Array:
    """The Euler-Maclaurin formula for the sum from the term ``count`` on.

    F. Johansson, "Rigorous high-precision computation of the Hurwitz zeta function and its
    derivatives", Numerical Algorithms 69 (2015), formula (5).
    """
    count = 16 if x.dtype == dtypes.float64 else 8
    far = q + count
    terms = [(q + k) ** -x for k in range(count)]
    power = far ** -x
    # x (x + 1) ... / far**(2 j - 1), times the Bernoulli number of order 2 j over (2 j)!.
    bernoulli = scipy_special.bernoulli(2 * count)
    rising, rest = x / far, jnp.full_like(x, 0.5)
    for j in range(1, count + 1):
        rest = rest + rising * float(bernoulli[2 * j] / math.factorial(2 * j))
        rising = rising * ((x + (2 * j - 1)) / far) * ((x + 2 * j) / far)
    return sum(terms[1:], terms[0]) + far ** (1 - x) / (x - 1) + power * rest


def betainc(a: Any, b: Any, x: Any) -> Array:
    """The regularized incomplete beta function; differentiable in ``x``.

    >>> jax.scipy.special.betainc(1.0, 2.0, 0.5)
    Array(0.75, dtype=float32, weak_type=True)
    """
    return lax.betainc(*_spread("betainc", a, b, x))


def gammainc(a: Any, x: Any) -> Array:
    """The regularized lower incomplete gamma function.

    >>> jax.scipy.special.gammainc(1.0, 2.0)
    Array(0.86466473, dtype=float32, weak_type=True)
    """
    return lax.igamma(*_spread("gammainc", a, x))


def gammaincc(a: Any, x: Any) -> Array:
    """The regularized upper incomplete gamma function, ``1 - gammainc``.

    >>> jax.scipy.special.gammaincc(1.0, 2.0)
    Array(0.13533528, dtype=float32, weak_type=True)
    """
    return lax.igammac(*_spread("gammaincc", a, x))


def multigammaln(a: Any, d: Any) -> Array:
    """The logarithm of the multivariate gamma function in ``d`` dimensions.

    >>> jax.scipy.special.multigammaln(3.0, 2)
    Array(1.550195, dtype=float32)
    """
    d = int(concrete(d, "d argument of multigammaln"))
    a, = operands("multigammaln", a)
    constant = 0.25 * d * (d - 1) * math.log(math.pi)
    parts = jnp.expand_dims(a, -1) - (jnp.arange(d, dtype=a.dtype) / 2)[(None,) * a.ndim]
    return jnp.sum(gammaln(parts), axis=-1) + constant


def factorial(n: Any, exact: bool = False) -> Array:
    """``gamma(n + 1)``, 0 for negative ``n``.

    Raises:
      NotImplementedError: ``exact`` is requested.
      TypeError: ``n`` is complex.

    >>> jax.scipy.special.factorial(jnp.array([0, 3, 5]))
    Array([  1.,   6., 120.], dtype=float32)
    """
    if exact:
        raise NotImplementedError("factorial with exact=True")
    n, = operands("factorial", n)
    if dtypes.is_complex(n.dtype):
        raise TypeError(f"factorial does not accept dtype {n.dtype}: use gamma(n + 1).")
    # Where n + 1 is rounded, n gamma(n): gamma would magnify the rounding.
    rounded = (n > 1) & ((n + 1) - 1 != n)
    value = jnp.where(rounded, n * gamma(jnp.where(rounded, n, 1)), gamma(n + 1))
    value = jnp.where(n < 0, 0, value)
    return convert_element_type(value, value.dtype, type_of(n)[1])


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers of order 0 to ``n``.

    Raises:
      ValueError: ``n`` is negative.

    >>> jax.scipy.special.bernoulli(4)
    Array([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333334],      dtype=float32)
    """
    n = operator.index(n)
    if n < 0:
        raise ValueError("n must be a non-negative integer.")
    return jnp.asarray(scipy_special.bernoulli(max(n, 2))[:n + 1],
                       dtypes.canonical(dtypes.float64))


all_at_once(globals())
