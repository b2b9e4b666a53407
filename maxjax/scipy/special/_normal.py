"""The error function, the normal distribution, and related functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._ir.trace import Array
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.special_functions import (
    dawsn_p,
    erfcx_p,
    fresnel_c_p,
    fresnel_s_p,
    log_ndtr_p,
    ndtri_p,
    owens_t_p,
    wofz_p,
)
from maxjax.numpy._at_once import all_at_once
from maxjax.numpy._promotion import bind, check_arraylike
from maxjax.scipy.special._common import (
    only_wide,
    operands,
    refuse_complex,
    short,
    strong,
)

TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
# sqrt(1 / 2) minus its value in a dtype
ROOT_HALF_RESTS = {dtypes.float64: -4.833646656726457e-17,
                   dtypes.float32: math.sqrt(0.5) - float(np.float32(math.sqrt(0.5)))}


def erf(x: Any) -> Array:
    """The error function.

    >>> jax.scipy.special.erf(0.5)
    Array(0.5204999, dtype=float32, weak_type=True)
    """
    return lax.erf(*operands("erf", x))


def erfc(x: Any) -> Array:
    """``1 - erf(x)``, without cancellation.

    Args:
      x: a real array or number; integers become floats.

    Returns:
      An array of floats of the shape of ``x``.

    Raises:
      TypeError: ``x`` is complex, or no array or number.

    See also: ``special.erf``, ``special.erfinv``, ``special.log_ndtr``, ``lax.erfc``.

    >>> jax.scipy.special.erfc(0.5)
    Array(0.47950011, dtype=float32, weak_type=True)
    """
    return lax.erfc(*operands("erfc", x))


def erfinv(x: Any) -> Array:
    """The inverse of ``erf``.

    >>> jax.scipy.special.erfinv(0.5)
    Array(0.47693628, dtype=float32, weak_type=True)
    """
    return lax.erf_inv(*operands("erfinv", x))


@custom_jvp
def _erfcinv(y: Any) -> Array:
    return 0 - ndtri(0.5 * y) * math.sqrt(0.5)


_erfcinv.defjvps(lambda t, ans, y: t * (-1 / TWO_OVER_ROOT_PI) * lax.exp(lax.square(ans)))


def erfcinv(y: Any) -> Array:
    """The inverse of ``erfc``; NaN outside [0, 2].

    >>> jax.scipy.special.erfcinv(0.5)
    Array(0.47693625, dtype=float32)
    """
    y, = operands("erfcinv", y)
    if dtypes.is_complex(y.dtype):
        raise ValueError("erfcinv does not support complex-valued inputs.")
    wide = lax.convert_element_type(y, np.float32) if y.dtype.itemsize < 4 else y
    return lax.convert_element_type(_erfcinv(wide), y.dtype) if wide is not y else _erfcinv(y)


@custom_jvp
def _wofz(z: Any) -> Array:
    return bind(wofz_p, z)


_wofz.defjvps(lambda t, ans, z: t * (1j * TWO_OVER_ROOT_PI - 2 * z * ans))


def wofz(z: Any) -> Array:
    """The Faddeeva function ``exp(-z**2) erfc(-i z)``; complex.

    >>> jax.scipy.special.wofz(1j)
    Array(0.42758358+0.j, dtype=complex64)
    """
    z, = operands("wofz", z)
    if not dtypes.is_complex(z.dtype):
        z = z.astype(dtypes.complex_dtype(z.dtype))
    return strong(_wofz(z))


@custom_jvp
def _erfcx(x: Any) -> Array:
    return bind(erfcx_p, x)


_erfcx.defjvps(lambda t, ans, x: t * (2 * x * ans - TWO_OVER_ROOT_PI))


def erfcx(x: Any) -> Array:
    """``exp(x**2) * erfc(x)``.

    >>> jax.scipy.special.erfcx(10.0)
    Array(0.05614099, dtype=float32)
    """
    x, = operands("erfcx", x)
    return strong(_wofz(1j * x) if dtypes.is_complex(x.dtype) else _erfcx(x))


@custom_jvp
def _dawsn(x: Any) -> Array:
    return bind(dawsn_p, x)


_dawsn.defjvps(lambda t, ans, x: t * (1 - 2 * x * ans))


def dawsn(x: Any) -> Array:
    """Dawson's integral.

    >>> jax.scipy.special.dawsn(1.0)
    Array(0.5380795, dtype=float32)
    """
    x, = operands("dawsn", x)
    refuse_complex("dawsn", x)
    return strong(_dawsn(x))


# --- the normal distribution ----------------------------------------------------------------------

def ndtr(x: Any) -> Array:
    """The normal distribution function.

    Raises:
      TypeError: ``x`` is neither float32 nor float64.

    >>> jax.scipy.special.ndtr(jnp.array([-1.0, 0.0, 2.0]))
    Array([0.15865526, 0.5       , 0.97724986], dtype=float32)
    """
    x = jnp.asarray(x)
    only_wide(x)
    return strong(_ndtr(x))


@custom_jvp
def _ndtr(x: Any) -> Any:
    root = x.dtype.type(math.sqrt(0.5))
    high = short(root)
    scaled = x * root
    size = jnp.abs(scaled)
    # The tail would magnify the rounding of x / sqrt(2) to a hundred units in the last place.
    part = jnp.where(size < 40, x, 0)
    head = short(part)
    rest = (head * high - scaled) + head * (root - high) + (part - head) * root
    rest = jnp.where(size < 40, rest + part * ROOT_HALF_RESTS[x.dtype], 0) * jnp.sign(x)
    # The upper bound of the integral (Abramowitz and Stegun 7.1.13) gives the logarithm's slope
    # to 5%, which is less than half a unit of the tail.
    near = jnp.minimum(size, 40)
    tail = lax.erfc(size) * (1 - (near + jnp.sqrt(near * near + 4 / math.pi)) * rest)
    value = jnp.where(size < root, 1 + lax.erf(scaled), jnp.where(scaled > 0, 2 - tail, tail))
    return 0.5 * value


def _density(x: Any) -> Array:
    """The normal density. Beyond 40 it is 0, and so are its derivatives, also at infinity."""
    near = jnp.clip(x, -40, 40)
    return jnp.exp(-0.5 * near * near) / math.sqrt(2 * math.pi)


_ndtr.defjvps(lambda t, ans, x: t * _density(x))


@custom_jvp
def _ndtri(p: Any) -> Array:
    return bind(ndtri_p, p)


_ndtri.defjvps(lambda t, ans, p: t * math.sqrt(2 * math.pi) * jnp.exp(ans * ans / 2))


def ndtri(p: Any) -> Array:
    """The inverse of ``ndtr``.

    Raises:
      TypeError: ``p`` is neither float32 nor float64.

    >>> jax.scipy.special.ndtri(jnp.array([0.1, 0.5]))
    Array([-1.2815516,  0.       ], dtype=float32)
    """
    check_arraylike("ndtri", p)
    p = jnp.asarray(p)
    only_wide(p)
    return strong(_ndtri(p))


@custom_jvp
def _log_ndtr(x: Any) -> Array:
    return bind(log_ndtr_p, x)


@custom_jvp
def _normal_slope(x: Any) -> Any:
    """The density over the distribution, in the tail too, where both vanish."""
    return math.sqrt(2 / math.pi) / _erfcx(-x * math.sqrt(0.5))


@_normal_slope.defjvp
def _normal_slope_jvp(primals: Any, tangents: Any) -> Any:
    """s' = -s (s + x), whose sum cancels in the tail: there by the first terms in 1 / x**2."""
    (x,), (t,) = primals, tangents
    slope = _normal_slope(x)
    inverse = 1 / jnp.square(jnp.where(x < -30, x, -30))
    change = jnp.where(x < -30, 1 - inverse * (1 - 6 * inverse),
                       slope * jnp.where(slope == 0, 0, x + slope))
    return slope, -t * change


_log_ndtr.defjvps(lambda t, ans, x: t * _normal_slope(x))


def log_ndtr(x: Any, series_order: int = 3) -> Array:
    """``log(ndtr(x))``, accurate far into the tails.

    Args:
      series_order: accepted; the value is accurate to the last places.

    Raises:
      TypeError: ``x`` is neither float32 nor float64, or ``series_order`` is not an integer.
      ValueError: ``series_order`` is negative or above 30.

    >>> jax.scipy.special.log_ndtr(jnp.array([-50.0, 0.0]))
    Array([-1.2548314e+03, -6.9314718e-01], dtype=float32)
    """
    if not isinstance(series_order, int):
        raise TypeError("series_order must be a Python integer.")
    if series_order < 0:
        raise ValueError("series_order must be non-negative.")
    if series_order > 30:
        raise ValueError("series_order must be <= 30.")
    x = jnp.asarray(x)
    only_wide(x, "")
    return strong(_log_ndtr(x))


@custom_jvp
def _owens_t(h: Any, a: Any) -> Array:
    if dtypes.is_complex(a.dtype):
        return lax.sign(a) * bind(owens_t_p, lax.abs(h), lax.abs(a))
    return bind(owens_t_p, h, a)


_owens_t.defjvps(
    lambda t, ans, h, a: -t * jnp.exp(-h * h / 2) * lax.erf(a * h / math.sqrt(2))
    / math.sqrt(8 * math.pi),
    lambda t, ans, h, a: t * jnp.exp(-h * h * (1 + a * a) / 2) / (2 * math.pi * (1 + a * a)))


def owens_t(h: Any, a: Any) -> Array:
    """Owen's T function: the probability of ``X > h`` and ``0 < Y < a X`` for normal X and Y.

    Its dtype is the widest in use: float32, float64 in x64 mode. Of complex numbers it is that of
    the moduli, with the direction of ``a``, and has no derivative: as JAX's.

    >>> jax.scipy.special.owens_t(1.0, 2.0)
    Array(0.07846819, dtype=float32)
    """
    h, a = operands("owens_t", h, a)
    dtype = dtypes.canonical(np.complex128 if dtypes.is_complex(a.dtype) else np.float64)
    return _owens_t(convert_element_type(h, dtype), convert_element_type(a, dtype))


# --- Fresnel's integrals --------------------------------------------------------------------------

@custom_jvp
def _fresnel(x: Any) -> tuple[Array, Array]:
    return bind(fresnel_s_p, x), bind(fresnel_c_p, x)


@_fresnel.defjvp
def _fresnel_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    angle = x.dtype.type(np.pi / 2) * x * x
    return _fresnel(x), (t * jnp.sin(angle), t * jnp.cos(angle))


def fresnel(x: Any) -> tuple[Array, Array]:
    """The Fresnel integrals of ``sin(pi t**2 / 2)`` and ``cos(pi t**2 / 2)`` from 0 to ``x``.

    >>> jax.scipy.special.fresnel(1.0)[0]
    Array(0.43825915, dtype=float32)
    """
    check_arraylike("fresnel", x)
    x, = operands("fresnel", x)
    if dtypes.is_complex(x.dtype):
        raise NotImplementedError("Support for complex-valued inputs is not implemented yet.")
    return _fresnel(lax.convert_element_type(x, x.dtype))


all_at_once(globals())
