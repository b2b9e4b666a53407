"""jax.scipy.stats.norm: the normal distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import floats


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density."""
    x, loc, scale = floats("norm.logpdf", x, loc, scale)
    return -(jnp.log(2 * np.pi * scale * scale) + ((x - loc) / scale) ** 2) / 2


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function."""
    x, loc, scale = floats("norm.cdf", x, loc, scale)
    return special.ndtr((x - loc) / scale)


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the distribution function."""
    x, loc, scale = floats("norm.logcdf", x, loc, scale)
    return jnp.asarray(special.log_ndtr((x - loc) / scale), x.dtype)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile function, the inverse of ``cdf``."""
    return jnp.asarray(special.ndtri(q) * scale + loc, float)


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``log(1 - cdf)``."""
    x, loc, scale = floats("norm.logsf", x, loc, scale)
    return jnp.asarray(special.log_ndtr(-(x - loc) / scale), x.dtype)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``."""
    x, loc, scale = floats("norm.sf", x, loc, scale)
    return special.ndtr(-(x - loc) / scale)


def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The inverse of ``sf``."""
    return jnp.asarray(-special.ndtri(q) * scale + loc, float)
