"""jax.scipy.stats.gennorm: the generalized normal distribution."""

from __future__ import annotations

from typing import Any

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import weak_floats


def logpdf(x: Any, beta: Any) -> Array:
    """The logarithm of the density."""
    x, beta = weak_floats("gennorm.logpdf", x, beta)
    return jnp.log(beta / 2) - special.gammaln(1 / beta) - jnp.abs(x) ** beta


def cdf(x: Any, beta: Any) -> Array:
    """The distribution function."""
    x, beta = weak_floats("gennorm.cdf", x, beta)
    return (1 + jnp.sign(x) * special.gammainc(1 / beta, jnp.abs(x) ** beta)) / 2


def pdf(x: Any, beta: Any) -> Array:
    """The density."""
    return jnp.exp(logpdf(x, beta))
