"""jax.scipy.stats.expon: the exponential distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy.stats._common import inside, outside, weak_floats, weak_reals


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.expon.logpdf(jnp.array([0.2, 0.5]))
    Array([-0.2, -0.5], dtype=float32)
    """
    x, loc, scale = weak_reals("expon.logpdf", x, loc, scale)
    return outside(x < loc, -np.inf, -(x - loc) / scale - jnp.log(scale))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    >>> jax.scipy.stats.expon.pdf(jnp.array([0.2, 0.5]))
    Array([0.8187308 , 0.60653067], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.expon.cdf(jnp.array([0.2, 0.5]))
    Array([0.18126924, 0.39346933], dtype=float32)
    """
    x, loc, scale = weak_reals("expon.cdf", x, loc, scale)
    return outside(x < loc, 0, -jnp.expm1(-jnp.maximum(x - loc, 0) / scale))


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the distribution function.

    >>> jax.scipy.stats.expon.logcdf(jnp.array([0.2, 0.5]))
    Array([-1.7077718 , -0.93275213], dtype=float32)
    """
    x, loc, scale = weak_reals("expon.logcdf", x, loc, scale)
    z = outside(x < loc, 1, (x - loc) / scale)
    return outside(x < loc, -np.inf, jnp.log(-jnp.expm1(-z)))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``.

    >>> jax.scipy.stats.expon.sf(jnp.array([0.2, 0.5]))
    Array([0.8187308 , 0.60653067], dtype=float32)
    """
    x, loc, scale = weak_reals("expon.sf", x, loc, scale)
    return outside(x < loc, 1, jnp.exp(-(x - loc) / scale))


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``log(1 - cdf)``.

    >>> jax.scipy.stats.expon.logsf(jnp.array([0.2, 0.5]))
    Array([-0.2, -0.5], dtype=float32)
    """
    x, loc, scale = weak_reals("expon.logsf", x, loc, scale)
    return outside(x < loc, 0, -(x - loc) / scale)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile function, the inverse of ``cdf``.

    >>> jax.scipy.stats.expon.ppf(jnp.array([0.3, 0.5]))
    Array([0.35667497, 0.6931472 ], dtype=float32)
    """
    q, loc, scale = weak_floats("expon.ppf", q, loc, scale)
    return inside((q >= 0) & (q <= 1), loc - scale * jnp.log1p(-q), np.nan)
