"""jax.scipy.stats.chi2: the chi-square distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats import gamma
from maxjax.scipy.stats._common import floats, outside, reals


def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.chi2.logpdf(jnp.array([0.2, 0.5]), 3.0)
    Array([-1.8236575, -1.5155121], dtype=float32)
    """
    x, df, loc, scale = floats("chi2.logpdf", x, df, loc, scale)
    return outside(x < loc, -np.inf, gamma.log_density(x, df / 2, loc, 2 * scale))


def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    >>> jax.scipy.stats.chi2.pdf(jnp.array([0.2, 0.5]), 3.0)
    Array([0.16143422, 0.21969564], dtype=float32)
    """
    return jnp.exp(logpdf(x, df, loc, scale))


def cdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.chi2.cdf(jnp.array([0.2, 0.5]), 3.0)
    Array([0.0224107 , 0.08110859], dtype=float32)
    """
    x, df, loc, scale = reals("chi2.cdf", x, df, loc, scale)
    return gamma.cdf(x, df / 2, loc, 2 * scale)


def logcdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the distribution function.

    >>> jax.scipy.stats.chi2.logcdf(jnp.array([0.2, 0.5]), 3.0)
    Array([-3.7982166, -2.5119665], dtype=float32)
    """
    x, df, loc, scale = reals("chi2.logcdf", x, df, loc, scale)
    return gamma.logcdf(x, df / 2, loc, 2 * scale)


def sf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``.

    >>> jax.scipy.stats.chi2.sf(jnp.array([0.2, 0.5]), 3.0)
    Array([0.9775893 , 0.91889143], dtype=float32)
    """
    x, df, loc, scale = reals("chi2.sf", x, df, loc, scale)
    return special.gammaincc(df / 2, jnp.clip((x - loc) / (2 * scale), 0))


def logsf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``log(1 - cdf)``.

    >>> jax.scipy.stats.chi2.logsf(jnp.array([0.2, 0.5]), 3.0)
    Array([-0.02266563, -0.08458731], dtype=float32)
    """
    return jnp.log(sf(x, df, loc, scale))
