"""jax.scipy.stats.pareto: the Pareto distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy.stats._common import floats, inside, outside, reals, weak_reals


def logpdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.pareto.logpdf(jnp.array([1.5, 2.0]), 1.5)
    Array([-0.60819757, -1.3274028 ], dtype=float32)
    """
    x, b, loc, scale = reals("pareto.logpdf", x, b, loc, scale)
    below = x < loc + scale
    z = outside(below, 1, (x - loc) / scale)
    return outside(below, -np.inf, jnp.log(b) - jnp.log(scale) - (b + 1) * jnp.log(z))


def pdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    >>> jax.scipy.stats.pareto.pdf(jnp.array([1.5, 2.0]), 1.5)
    Array([0.54433113, 0.26516506], dtype=float32)
    """
    return jnp.exp(logpdf(x, b, loc, scale))


def cdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.pareto.cdf(jnp.array([1.5, 2.0]), 1.5)
    Array([0.45566893, 0.6464466 ], dtype=float32)
    """
    x, b, loc, scale = reals("pareto.cdf", x, b, loc, scale)
    below = x < loc + scale
    z = outside(below, 1, (x - loc) / scale)
    return outside(below, 0, -jnp.expm1(-b * jnp.log(z)))


def logcdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the distribution function.

    >>> jax.scipy.stats.pareto.logcdf(jnp.array([1.5, 2.0]), 1.5)
    Array([-0.78598875, -0.43626466], dtype=float32)
    """
    x, b, loc, scale = weak_reals("pareto.logcdf", x, b, loc, scale)
    below = x < loc + scale
    z = outside(below, 1, (x - loc) / scale)
    return outside(below, -np.inf, jnp.log1p(-z ** -b))


def logsf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``log(1 - cdf)``.

    >>> jax.scipy.stats.pareto.logsf(jnp.array([1.5, 2.0]), 1.5)
    Array([-0.6081976, -1.0397208], dtype=float32)
    """
    x, b, loc, scale = reals("pareto.logsf", x, b, loc, scale)
    below = x < loc + scale
    z = outside(below, 1, (x - loc) / scale)
    return outside(below, 0, -b * jnp.log(z))


def sf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``.

    >>> jax.scipy.stats.pareto.sf(jnp.array([1.5, 2.0]), 1.5)
    Array([0.5443311 , 0.35355338], dtype=float32)
    """
    return jnp.exp(logsf(x, b, loc, scale))


def ppf(q: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile function, the inverse of ``cdf``.

    >>> jax.scipy.stats.pareto.ppf(jnp.array([0.3, 0.5]), 1.5)
    Array([1.2684343, 1.587401 ], dtype=float32)
    """
    q, b, loc, scale = floats("pareto.ppf", q, b, loc, scale)
    return inside((q >= 0) & (q <= 1), loc + scale * (1 - q) ** (-1 / b), np.nan)
