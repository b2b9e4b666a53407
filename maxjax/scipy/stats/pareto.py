"""jax.scipy.stats.pareto: the Pareto distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy.stats._common import floats, inside, weak_floats


def logpdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density."""
    x, b, loc, scale = floats("pareto.logpdf", x, b, loc, scale)
    z = (x - loc) / scale
    return inside(z >= 1, jnp.log(b / scale) - (b + 1) * jnp.log(jnp.where(z >= 1, z, 1)), -np.inf)


def pdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density."""
    return jnp.exp(logpdf(x, b, loc, scale))


def cdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function."""
    x, b, loc, scale = floats("pareto.cdf", x, b, loc, scale)
    z = jnp.maximum((x - loc) / scale, 1)
    return -jnp.expm1(-b * jnp.log(z))


def logcdf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the distribution function."""
    x, b, loc, scale = weak_floats("pareto.logcdf", x, b, loc, scale)
    z = (x - loc) / scale
    return inside(z >= 1, jnp.log1p(-jnp.where(z >= 1, z, 1) ** -b), -np.inf)


def logsf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``log(1 - cdf)``."""
    x, b, loc, scale = floats("pareto.logsf", x, b, loc, scale)
    z = (x - loc) / scale
    return inside(z >= 1, -b * jnp.log(jnp.where(z >= 1, z, 1)), 0)


def sf(x: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``."""
    return jnp.exp(logsf(x, b, loc, scale))


def ppf(q: Any, b: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile function, the inverse of ``cdf``."""
    q, b, loc, scale = floats("pareto.ppf", q, b, loc, scale)
    return inside((q >= 0) & (q <= 1), loc + scale * (1 - q) ** (-1 / b), np.nan)
