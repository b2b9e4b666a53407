"""jax.scipy.stats.gumbel_l: Gumbel's distribution, skewed to the left."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import nn
from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy.stats._common import inside, weak_floats


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density."""
    x, loc, scale = weak_floats("gumbel_l.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return inside(scale > 0, z - jnp.exp(z) - jnp.log(scale), np.nan)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density."""
    return jnp.exp(logpdf(x, loc, scale))


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``log(1 - cdf)``."""
    x, loc, scale = weak_floats("gumbel_l.logsf", x, loc, scale)
    return inside(scale > 0, -jnp.exp((x - loc) / scale), np.nan)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``."""
    return jnp.exp(logsf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function."""
    x, loc, scale = weak_floats("gumbel_l.cdf", x, loc, scale)
    return inside(scale > 0, -jnp.expm1(-jnp.exp((x - loc) / scale)), np.nan)


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the distribution function."""
    x, loc, scale = weak_floats("gumbel_l.logcdf", x, loc, scale)
    return inside(scale > 0, nn.log1mexp(jnp.exp((x - loc) / scale)), np.nan)


def ppf(p: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile function, the inverse of ``cdf``."""
    p, loc, scale = weak_floats("gumbel_l.ppf", p, loc, scale)
    return inside((p > 0) & (p < 1) & (scale > 0), jnp.log(-jnp.log1p(-p)) * scale + loc, np.nan)
