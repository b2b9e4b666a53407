"""jax.scipy.stats.truncnorm: the normal distribution truncated to two bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats import norm
from maxjax.scipy.stats._common import floats, inside, outside, reals


def _log_mass(a: Any, b: Any) -> Array:
    """log(ndtr(b) - ndtr(a)), on the side where neither is near 1."""
    flip = a > 0
    low, high = jnp.where(flip, -b, a), jnp.where(flip, -a, b)
    straddles = (low <= 0) & (high > 0)
    log_low, log_high = special.log_ndtr(low), special.log_ndtr(high)
    beyond = jnp.exp(log_low) + special.ndtr(-high)
    tail = log_high + jnp.log1p(-jnp.exp(jnp.where(straddles, -1, log_low - log_high)))
    mass = jnp.where(straddles, jnp.log1p(-jnp.where(straddles, beyond, 0)), tail)
    return lax.convert_element_type(mass, mass.dtype)      # strongly typed


def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.truncnorm.logpdf(jnp.array([0.2, 0.5]), -1.0, 1.5).round(4)
    Array([-0.6834, -0.7884], dtype=float32)
    """
    x, a, b, loc, scale = floats("truncnorm.logpdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    value = norm.logpdf(x, loc, scale) - _log_mass(a, b)
    return outside(~(a < b), np.nan, outside((z < a) | (z > b), -np.inf, value))


def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    >>> jax.scipy.stats.truncnorm.pdf(jnp.array([0.2, 0.5]), -1.0, 1.5)
    Array([0.5048725, 0.4545491], dtype=float32)
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``log(1 - cdf)``.

    >>> jax.scipy.stats.truncnorm.logsf(jnp.array([0.2, 0.5]), -1.0, 1.5)
    Array([-0.78315824, -1.1644433 ], dtype=float32)
    """
    x, a, b, loc, scale = reals("truncnorm.logsf", x, a, b, loc, scale)
    z = (x - loc) / scale
    value = _log_mass(jnp.clip(z, a, b), b) - _log_mass(a, b)
    value = inside(z <= a, 0, inside(z >= b, -np.inf, value))
    return outside(~(a < b), np.nan, value)


def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``.

    >>> jax.scipy.stats.truncnorm.sf(jnp.array([0.2, 0.5]), -1.0, 1.5)
    Array([0.45696053, 0.31209636], dtype=float32)
    """
    return jnp.exp(logsf(x, a, b, loc, scale))


def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the distribution function.

    >>> jax.scipy.stats.truncnorm.logcdf(jnp.array([0.2, 0.5]), -1.0, 1.5).round(4)
    Array([-0.6106, -0.3741], dtype=float32)
    """
    x, a, b, loc, scale = reals("truncnorm.logcdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    value = _log_mass(a, jnp.clip(z, a, b)) - _log_mass(a, b)
    value = inside(z <= a, -np.inf, inside(z >= b, 0, value))
    return outside(~(a < b), np.nan, value)


def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.truncnorm.cdf(jnp.array([0.2, 0.5]), -1.0, 1.5)
    Array([0.5430395 , 0.68790364], dtype=float32)
    """
    return jnp.exp(logcdf(x, a, b, loc, scale))
