"""jax.scipy.stats.beta: the beta distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import floats, inside


def logpdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.beta.logpdf(jnp.array([0.2, 0.5]), 2.0, 3.0)
    Array([0.42918158, 0.40546513], dtype=float32)
    """
    x, a, b, loc, scale = floats("beta.logpdf", x, a, b, loc, scale)
    z = (x - loc) / scale
    value = (special.xlogy(a - 1, z) + special.xlog1py(b - 1, -z) - special.betaln(a, b)
             - jnp.log(scale))
    value = jnp.where((z < 0) | (z > 1), -np.inf, value)
    return inside((a <= 0) | (b <= 0) | (scale <= 0), np.nan, value)


def pdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    >>> jax.scipy.stats.beta.pdf(jnp.array([0.2, 0.5]), 2.0, 3.0)
    Array([1.5359999, 1.5      ], dtype=float32)
    """
    return jnp.exp(logpdf(x, a, b, loc, scale))


def cdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.beta.cdf(jnp.array([0.2, 0.5]), 2.0, 3.0)
    Array([0.1808, 0.6875], dtype=float32)
    """
    x, a, b, loc, scale = floats("beta.cdf", x, a, b, loc, scale)
    return special.betainc(a, b, jnp.clip((x - loc) / scale, 0, 1))


def logcdf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the distribution function.

    >>> jax.scipy.stats.beta.logcdf(jnp.array([0.2, 0.5]), 2.0, 3.0)
    Array([-1.7103637 , -0.37469345], dtype=float32)
    """
    return jnp.log(cdf(x, a, b, loc, scale))


def sf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``.

    >>> jax.scipy.stats.beta.sf(jnp.array([0.2, 0.5]), 2.0, 3.0)
    Array([0.81920004, 0.3125    ], dtype=float32)
    """
    x, a, b, loc, scale = floats("beta.sf", x, a, b, loc, scale)
    return special.betainc(b, a, 1 - jnp.clip((x - loc) / scale, 0, 1))


def logsf(x: Any, a: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``log(1 - cdf)``.

    >>> jax.scipy.stats.beta.logsf(jnp.array([0.2, 0.5]), 2.0, 3.0)
    Array([-0.19942698, -1.1631508 ], dtype=float32)
    """
    return jnp.log(sf(x, a, b, loc, scale))
