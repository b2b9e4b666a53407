"""jax.scipy.stats.laplace: the Laplace distribution."""

from __future__ import annotations

from typing import Any

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy.stats._common import reals


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.laplace.logpdf(jnp.array([0.2, 0.5]))
    Array([-0.8931472, -1.1931472], dtype=float32)
    """
    x, loc, scale = reals("laplace.logpdf", x, loc, scale)
    return -(jnp.abs(x - loc) / scale + jnp.log(2 * scale))


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    >>> jax.scipy.stats.laplace.pdf(jnp.array([0.2, 0.5]))
    Array([0.4093654 , 0.30326533], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.laplace.cdf(jnp.array([0.2, 0.5]))
    Array([0.5906346 , 0.69673467], dtype=float32)
    """
    x, loc, scale = reals("laplace.cdf", x, loc, scale)
    z = (x - loc) / scale
    half = 0.5 * jnp.exp(-jnp.abs(z))
    return jnp.where(z < 0, half, 1 - half)
