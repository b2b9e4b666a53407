"""jax.scipy.stats.gennorm: the generalized normal distribution."""

from __future__ import annotations

from typing import Any

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import weak_floats


def logpdf(x: Any, beta: Any) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.gennorm.logpdf(jnp.array([0.2, 0.5]), 1.5)
    Array([-0.6802751 , -0.94438577], dtype=float32)
    """
    x, beta = weak_floats("gennorm.logpdf", x, beta)
    return jnp.log(beta / 2) - special.gammaln(1 / beta) - jnp.abs(x) ** beta


def cdf(x: Any, beta: Any) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.gennorm.cdf(jnp.array([0.2, 0.5]), 1.5)
    Array([0.60691845, 0.7417493 ], dtype=float32)
    """
    x, beta = weak_floats("gennorm.cdf", x, beta)
    return (1 + jnp.sign(x) * special.gammainc(1 / beta, jnp.abs(x) ** beta)) / 2


def pdf(x: Any, beta: Any) -> Array:
    """The density.

    >>> jax.scipy.stats.gennorm.pdf(jnp.array([0.2, 0.5]), 1.5)
    Array([0.50647765, 0.38891837], dtype=float32)
    """
    return jnp.exp(logpdf(x, beta))
