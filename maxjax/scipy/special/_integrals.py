"""Bessel functions, exponential and trigonometric integrals, hypergeometric and Legendre
functions."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._higher_order.jit_function import make_jit
from maxjax._ir.trace import Array
from maxjax._primitives.special_functions import (
    bessel_jv_p,
    cosine_integral_p,
    expi_p,
    expn_p,
    hyp1f1_p,
    hyp1f1_slopes,
    hyp2f1_p,
    hyp2f1_slopes,
    sine_integral_p,
    spence_p,
)
from maxjax.numpy._at_once import all_at_once
from maxjax.numpy._promotion import bind, check_arraylike, concrete
from maxjax.scipy.special._common import only_wide, operands, refuse_complex, strong

# --- Bessel functions -----------------------------------------------------------------------------

def _refuse_complex(name: str, x: Array) -> None:
    if dtypes.is_complex(x.dtype):
        raise ValueError(f"Unsupported input type to jax.scipy.special.{name}: {x.dtype}")


def i0e(x: Any) -> Array:
    """``exp(-abs(x)) * i0(x)``.

    Args:
      x: a real array or number; integers become floats.

    Returns:
      An array of floats of the shape of ``x``.

    Raises:
      TypeError: ``x`` is complex, or no array or number.

    See also: ``special.i0``, ``special.i1e``, ``lax.bessel_i0e``.

    >>> jax.scipy.special.i0e(1.0)
    Array(0.4657596, dtype=float32, weak_type=True)
    """
    return lax.bessel_i0e(*operands("i0e", x))


def i0(x: Any) -> Array:
    """The modified Bessel function of order 0.

    >>> jax.scipy.special.i0(0.0)
    Array(1., dtype=float32, weak_type=True)
    """
    x, = operands("i0", x)
    _refuse_complex("i0", x)
    return _i0(x)


@custom_jvp
def _i0(x: Any) -> Array:
    return jnp.exp(jnp.abs(x)) * i0e(x)


# The product rule would take the derivative of abs(x) at its kink.
_i0.defjvps(lambda t, ans, x: t * _i1(x))


def i1e(x: Any) -> Array:
    """``exp(-abs(x)) * i1(x)``.

    >>> jax.scipy.special.i1e(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    return lax.bessel_i1e(*operands("i1e", x))


def i1(x: Any) -> Array:
    """The modified Bessel function of order 1.

    >>> jax.scipy.special.i1(0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x, = operands("i1", x)
    _refuse_complex("i1", x)
    return _i1(x)


@custom_jvp
def _i1(x: Any) -> Array:
    return jnp.exp(jnp.abs(x)) * i1e(x)


@_i1.defjvp
def _i1_jvp(primals: Any, tangents: Any) -> Any:
    """I1' = I0 - I1 / x."""
    (x,), (t,) = primals, tangents
    small = jnp.abs(x) < 1
    y = jnp.where(small, 1, x)
    # Of I1 / x near 0 the sum of (x / 2)**(2 k) / (2 k! (k + 1)!), which has no kink.
    near = _i0(jnp.where(small, x, 0)) - jnp.polyval(
        jnp.asarray(_I1_SHARE, x.dtype), jnp.where(small, x * x / 4, 0))
    return _i1(x), t * jnp.where(small, near, jnp.exp(jnp.abs(y)) * (i0e(y) - i1e(y) / y))


_I1_SHARE = [0.5 / (math.factorial(k) * math.factorial(k + 1)) for k in range(10, -1, -1)]


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _jv(z: Any, v: int) -> Array:
    return bind(bessel_jv_p, jnp.full((), v, z.dtype), z)


@_jv.defjvp
def _jv_jvp(v: int, primals: Any, tangents: Any) -> Any:
    (z,), (t,) = primals, tangents
    return _jv(z, v), t * 0.5 * (_jv(z, v - 1) - _jv(z, v + 1))


def bessel_jn(z: Any, *, v: int, n_iter: int = 50) -> Array:
    """The Bessel functions of the first kind of orders 0 to ``v``.

    Args:
      z: a scalar or vector of floats.
      n_iter: accepted; the values are accurate to the last places.

    Returns:
      An array of shape ``(v + 1, *z.shape)``.

    >>> jax.scipy.special.bessel_jn(1.0, v=1)
    Array([0.7651977 , 0.44005057], dtype=float32)
    """
    z, = operands("bessel_jn", z)
    refuse_complex("bessel_jn", z)
    z = lax.convert_element_type(z, z.dtype)
    orders = [_jv(z, order) for order in range(operator.index(v) + 1)]
    return jnp.stack(orders) if orders else jnp.zeros((0, *z.shape), z.dtype)


# --- exponential integrals ------------------------------------------------------------------------

@custom_jvp
def expi(x: Any) -> Array:
    """The exponential integral Ei: the integral of ``exp(t) / t`` from -inf to ``x``.

    >>> jax.scipy.special.expi(1.0)
    Array(1.8951178, dtype=float32)
    """
    check_arraylike("expi", x)
    x, = operands("expi", x)
    refuse_complex("expi", x)
    return strong(bind(expi_p, x))


expi.defjvps(lambda t, ans, x: t * jnp.exp(x) / x)


@custom_jvp
def expn(n: Any, x: Any) -> Array:
    """The exponential integral E_n: the integral of ``exp(-x t) / t**n`` from 1 to infinity.

    Args:
      n: nonnegative integers; not differentiable.
      x: positive.

    >>> jax.scipy.special.expn(2, 1.0)
    Array(0.14849551, dtype=float32)
    """
    n, x = operands("expn", n, x)
    return lax.convert_element_type(bind(expn_p, n, x), x.dtype)


@expn.defjvp
def _expn_jvp(primals: Any, tangents: Any) -> Any:
    n, x = primals
    slope = -jnp.where(jnp.asarray(n) == 0, jnp.exp(-x) * (1 / x + 1 / (x * x)),
                       expn(jnp.maximum(jnp.asarray(n) - 1, 0), x))
    return expn(n, x), slope * tangents[1]


def exp1(x: Any) -> Array:
    """The exponential integral E_1: the integral of ``exp(-t) / t`` from ``x`` to infinity.

    >>> jax.scipy.special.exp1(1.0)
    Array(0.21938394, dtype=float32)
    """
    check_arraylike("exp1", x)
    x, = operands("exp1", x)
    if dtypes.is_complex(x.dtype):
        raise ValueError("exp1 does not support complex-valued inputs.")
    return expn(1, x)


@custom_jvp
def _spence(x: Any) -> Array:
    return bind(spence_p, x)


_spence.defjvps(lambda t, ans, x: t * jnp.where(x == 1, -1, jnp.log(x) / jnp.where(
    x == 1, 1, 1 - x)))


def spence(x: Any) -> Array:
    """The dilogarithm: the integral of ``log(t) / (1 - t)`` from 1 to ``x``.

    Raises:
      TypeError: ``x`` is neither float32 nor float64.

    >>> jax.scipy.special.spence(0.0)
    Array(1.644934, dtype=float32)
    """
    x = jnp.asarray(x)
    only_wide(x)
    return strong(_spence(x))


@custom_jvp
def sici(x: Any) -> tuple[Array, Array]:
    """The sine and cosine integrals: the integrals of ``sin(t) / t`` and ``cos(t) / t``.

    >>> jax.scipy.special.sici(1.0)
    (Array(0.946083..., ...), Array(0.337403..., ...))
    """
    x, = operands("sici", x)
    x = lax.convert_element_type(x, x.dtype)
    if dtypes.is_complex(x.dtype):
        raise ValueError(f"Argument `x` to sici must be real-valued. Got dtype {x.dtype}.")
    # On the negative axis the cosine integral is complex: NaN, also at -inf.
    cosine = jnp.where(x == -np.inf, np.nan, bind(cosine_integral_p, x))
    return bind(sine_integral_p, x), cosine


@sici.defjvp
def _sici_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return sici(x), (t * jnp.sinc(x / np.pi), t * jnp.cos(x) / x)


# --- hypergeometric functions ---------------------------------------------------------------------

@custom_jvp
def hyp1f1(a: Any, b: Any, x: Any) -> Array:
    """Kummer's confluent hypergeometric function.

    >>> jax.scipy.special.hyp1f1(1.0, 2.0, 3.0)
    Array(6.3618455, dtype=float32)
    """
    return strong(bind(hyp1f1_p, *operands("hyp1f1", a, b, x)))


hyp1f1.defjvps(
    *[lambda t, ans, a, b, x, primitive=primitive: t * bind(
        primitive, *operands("hyp1f1", a, b, x)) for primitive in hyp1f1_slopes],
    lambda t, ans, a, b, x: t * a / b * hyp1f1(a + 1, b + 1, x))


@custom_jvp
def hyp2f1(a: Any, b: Any, c: Any, x: Any) -> Array:
    """Gauss' hypergeometric function.

    The derivatives in ``a``, ``b`` and ``c`` are NaN where ``abs(x) >= 1``.

    >>> jax.scipy.special.hyp2f1(1.0, 1.0, 2.0, 0.5)
    Array(1.3862944, dtype=float32)
    """
    return strong(bind(hyp2f1_p, *operands("hyp2f1", a, b, c, x)))


hyp2f1.defjvps(
    *[lambda t, ans, a, b, c, x, primitive=primitive: t * bind(
        primitive, *operands("hyp2f1", a, b, c, x)) for primitive in hyp2f1_slopes],
    lambda t, ans, a, b, c, x: t * a * b / c * hyp2f1(a + 1, b + 1, c + 1, x))


# --- Legendre functions ---------------------------------------------------------------------------

def _legendre(degree: int, z: Any, normalized: bool = False) -> Array:
    """P[m, l] of all orders m and degrees l up to ``degree``, with the Condon-Shortley phase;
    ``normalized`` as for spherical harmonics, where P(m, m) alone would overflow.

    P(m, m) = -d(m) s P(m - 1, m - 1) with s = sqrt(1 - z**2), and
    P(m, l) = a(m, l) z P(m, l - 1) - b(m, l) P(m, l - 2).
    """
    z = jnp.asarray(z)
    root = jnp.sqrt(1 - z * z)
    orders = np.arange(degree + 1)
    first = 1 / math.sqrt(4 * math.pi) if normalized else 1.0
    diagonal = jnp.full_like(z, first)
    rows = [jnp.zeros((degree + 1, *z.shape), z.dtype).at[0].set(diagonal)]
    for l in range(1, degree + 1):
        m = orders[:l]
        if normalized:
            a = np.sqrt((4 * l * l - 1) / (l * l - m * m))
            b = a * np.sqrt(np.maximum((l - 1) ** 2 - m * m, 0) / (4 * (l - 1) ** 2 - 1))
            d = math.sqrt((2 * l + 1) / (2 * l))
        else:
            a, b, d = (2 * l - 1) / (l - m), (l + m - 1) / (l - m), 2 * l - 1
        row = a.astype(z.dtype)[:, None] * z[None] * rows[-1][:l]
        if l > 1:
            row = row - b.astype(z.dtype)[:, None] * rows[-2][:l]
        diagonal = -d * root * diagonal
        rest = jnp.zeros((degree - l, *z.shape), z.dtype)
        rows.append(jnp.concatenate([row, diagonal[None], rest]))
    return jnp.stack(rows, axis=1)


def _check_orders(m: int, n: int, z: Any) -> None:
    if z.dtype not in (dtypes.float32, dtypes.float64):
        raise TypeError(f"z.dtype={z.dtype} is not supported, see docstring for supported types.")
    if z.ndim != 1:
        raise ValueError("z must be a 1D array.")
    if m != n:
        raise NotImplementedError("Computations for m!=n are not yet supported.")


def lpmn(m: int, n: int, z: Any) -> tuple[Array, Array]:
    """The associated Legendre functions of all orders and degrees, and their derivatives.

    Args:
      m, n: the largest order and degree, which are equal.
      z: vector in [-1, 1].

    Returns:
      Two arrays of shape ``(m + 1, n + 1, len(z))``.

    >>> jax.scipy.special.lpmn(1, 1, jnp.array([0.5]))[0][0]
    Array([[1. ],
           [0.5]], dtype=float32)
    """
    _check_orders(m, n, z)
    return _legendre_and_slopes(n, z)


@functools.partial(make_jit, static_argnums=0)
def _legendre_and_slopes(degree: int, z: Any) -> tuple[Array, Array]:
    table = _legendre(degree, z)
    # (z**2 - 1) dP(m, l)/dz = l z P(m, l) - (l + m) P(m, l - 1)
    m, l = np.ogrid[:degree + 1, :degree + 1]
    before = jnp.concatenate([jnp.zeros_like(table[:, :1]), table[:, :-1]], axis=1)
    points = z[None, None]
    slopes = (l.astype(z.dtype)[..., None] * points * table
              - (l + m).astype(z.dtype)[..., None] * before) / (points * points - 1)
    return table, jnp.where((l < m)[..., None], 0, slopes)


def lpmn_values(m: int, n: int, z: Any, is_normalized: bool) -> Array:
    """The associated Legendre functions of all orders and degrees.

    Args:
      is_normalized: normalize as for spherical harmonics.

    >>> jax.scipy.special.lpmn_values(1, 1, jnp.array([0.5]), False)[0]
    Array([[1. ],
           [0.5]], dtype=float32)
    """
    _check_orders(m, n, z)
    return _legendre_values(n, z, bool(is_normalized))


_legendre_values = make_jit(_legendre, static_argnums=(0, 2))


def sph_harm_y(n: Any, m: Any, theta: Any, phi: Any, diff_n: int | None = None,
               n_max: int | None = None) -> Array:
    """Spherical harmonics.

    Args:
      n, m: vectors of integers: degrees and orders, ``abs(m) <= n``.
      theta, phi: vectors: polar and azimuthal angles.
      n_max: the largest degree; required under jit.

    Raises:
      NotImplementedError: ``diff_n`` is given.

    >>> Y = jax.scipy.special.sph_harm_y
    >>> Y(jnp.array([1]), jnp.array([0]), jnp.array([0.0]), jnp.array([0.0]))
    Array([0.48860252+0.j], dtype=complex64)
    """
    if diff_n is not None:
        raise NotImplementedError(
            "The 'diff_n' argument to jax.scipy.special.sph_harm_y is not supported.")
    if jnp.ndim(phi) == 0:
        phi = jnp.array([phi])
    if n_max is None:
        n_max = int(np.max(concrete(jnp.asarray(n), "The `n_max` argument of "
                                    "`jnp.scipy.special.sph_harm` must be statically specified to "
                                    "use `sph_harm` within JAX transformations.")))
    count = len(theta)
    cosine = jnp.cos(theta)
    values = lpmn_values(n_max, n_max, cosine, True)
    order = jnp.abs(m)
    radial = values.at[order, n, jnp.arange(count)].get(mode="clip")
    angle = order * phi
    value = lax.complex(radial * jnp.cos(angle), radial * jnp.sin(angle))
    return jnp.where(m < 0, (-1.0) ** order * jnp.conj(value), value)


all_at_once(globals())
