"""jax.scipy.stats.cauchy: the Cauchy distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy.stats._common import floats


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.cauchy.logpdf(jnp.array([0.2, 0.5]))
    Array([-1.1839507, -1.3678735], dtype=float32)
    """
    x, loc, scale = floats("cauchy.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return -(jnp.log(np.pi * scale) + jnp.log1p(z * z))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    >>> jax.scipy.stats.cauchy.pdf(jnp.array([0.2, 0.5]))
    Array([0.30606717, 0.25464788], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.cauchy.cdf(jnp.array([0.2, 0.5]))
    Array([0.56283295, 0.64758354], dtype=float32)
    """
    x, loc, scale = floats("cauchy.cdf", x, loc, scale)
    return jnp.arctan2(1, -(x - loc) / scale) / np.pi


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the distribution function.

    >>> jax.scipy.stats.cauchy.logcdf(jnp.array([0.2, 0.5]))
    Array([-0.5747724 , -0.43450746], dtype=float32)
    """
    return jnp.log(cdf(x, loc, scale))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``.

    >>> jax.scipy.stats.cauchy.sf(jnp.array([0.2, 0.5]))
    Array([0.43716705, 0.3524164 ], dtype=float32)
    """
    x, loc, scale = floats("cauchy.sf", x, loc, scale)
    return cdf(-x, -loc, scale)


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``log(1 - cdf)``.

    >>> jax.scipy.stats.cauchy.logsf(jnp.array([0.2, 0.5]))
    Array([-0.8274399, -1.0429418], dtype=float32)
    """
    x, loc, scale = floats("cauchy.logsf", x, loc, scale)
    return logcdf(-x, -loc, scale)


def _quantile(q: Any) -> Array:
    """For the standard distribution, by a tangent away from its pole: of the distance from the
    nearer end, or from the middle."""
    upper = q > 0.5
    distance = 1 / jnp.tan(np.pi * jnp.where(upper, 1 - q, q))
    outer = jnp.where(upper, distance, -distance)
    result = jnp.where(abs(q - 0.5) < 0.25, jnp.tan(np.pi * (q - 0.5)), outer)
    return jnp.where((q < 0) | (q > 1), np.nan, result)


def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The inverse of ``sf``.

    >>> jax.scipy.stats.cauchy.isf(jnp.array([0.3, 0.5]))
    Array([0.7265425, 0.       ], dtype=float32)
    """
    q, loc, scale = floats("cauchy.isf", q, loc, scale)
    return loc - scale * _quantile(q)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile function, the inverse of ``cdf``.

    >>> jax.scipy.stats.cauchy.ppf(jnp.array([0.3, 0.5]))
    Array([-0.7265425,  0.       ], dtype=float32)
    """
    q, loc, scale = floats("cauchy.ppf", q, loc, scale)
    return loc + scale * _quantile(q)
