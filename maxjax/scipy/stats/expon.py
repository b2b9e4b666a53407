"""jax.scipy.stats.expon: the exponential distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy.stats._common import inside, weak_floats


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density."""
    x, loc, scale = weak_floats("expon.logpdf", x, loc, scale)
    return inside(x >= loc, -(x - loc) / scale - jnp.log(scale), -np.inf)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function."""
    x, loc, scale = weak_floats("expon.cdf", x, loc, scale)
    return inside(x >= loc, -jnp.expm1(-jnp.maximum(x - loc, 0) / scale), 0)


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the distribution function."""
    x, loc, scale = weak_floats("expon.logcdf", x, loc, scale)
    z = jnp.where(x > loc, (x - loc) / scale, 1)
    return inside(x > loc, jnp.log(-jnp.expm1(-z)), -np.inf)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``."""
    x, loc, scale = weak_floats("expon.sf", x, loc, scale)
    return inside(x >= loc, jnp.exp(-(x - loc) / scale), 1)


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``log(1 - cdf)``."""
    x, loc, scale = weak_floats("expon.logsf", x, loc, scale)
    return inside(x >= loc, -(x - loc) / scale, 0)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile function, the inverse of ``cdf``."""
    q, loc, scale = weak_floats("expon.ppf", q, loc, scale)
    return inside((q >= 0) & (q <= 1), loc - scale * jnp.log1p(-q), np.nan)
