"""jax.scipy.stats.laplace: Laplace's distribution."""

from __future__ import annotations

from typing import Any

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy.stats._common import floats


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density."""
    x, loc, scale = floats("laplace.logpdf", x, loc, scale)
    return -(jnp.abs(x - loc) / scale + jnp.log(2 * scale))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density."""
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function."""
    x, loc, scale = floats("laplace.cdf", x, loc, scale)
    z = (x - loc) / scale
    half = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z <= 0, half, 1 - half)
