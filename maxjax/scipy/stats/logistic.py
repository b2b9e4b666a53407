"""jax.scipy.stats.logistic: the logistic distribution."""

from __future__ import annotations

from typing import Any

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import floats, weak_floats


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.logistic.logpdf(jnp.array([0.2, 0.5]))
    Array([-1.3962778, -1.448154 ], dtype=float32)
    """
    x, loc, scale = floats("logistic.logpdf", x, loc, scale)
    z = (x - loc) / scale
    half = z / 2
    return -2 * jnp.logaddexp(half, -half) - jnp.log(scale)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    >>> jax.scipy.stats.logistic.pdf(jnp.array([0.2, 0.5]))
    Array([0.24751656, 0.23500371], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


def ppf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile function, the inverse of ``cdf``.

    >>> jax.scipy.stats.logistic.ppf(jnp.array([0.3, 0.5]))
    Array([-0.8472978,  0.       ], dtype=float32)
    """
    x, loc, scale = floats("logistic.ppf", x, loc, scale)
    return special.logit(x) * scale + loc


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``.

    >>> jax.scipy.stats.logistic.sf(jnp.array([0.2, 0.5]))
    Array([0.45016602, 0.37754068], dtype=float32)
    """
    x, loc, scale = weak_floats("logistic.sf", x, loc, scale)
    return special.expit(-(x - loc) / scale)


def isf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The inverse of ``sf``.

    >>> jax.scipy.stats.logistic.isf(jnp.array([0.3, 0.5]))
    Array([0.8472978, 0.       ], dtype=float32)
    """
    x, loc, scale = floats("logistic.isf", x, loc, scale)
    return -special.logit(x) * scale + loc


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.logistic.cdf(jnp.array([0.2, 0.5]))
    Array([0.54983395, 0.62245935], dtype=float32)
    """
    x, loc, scale = weak_floats("logistic.cdf", x, loc, scale)
    return special.expit((x - loc) / scale)
