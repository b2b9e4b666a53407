"""jax.scipy.stats.bernoulli: the Bernoulli distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import inside, outside, reals


def logpmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of ``k``.

    >>> jax.scipy.stats.bernoulli.logpmf(jnp.array([0, 1]), 0.3)
    Array([-0.35667497, -1.2039728 ], dtype=float32)
    """
    k, p, loc = reals("bernoulli.logpmf", k, p, loc)
    z = k - loc
    value = special.xlogy(z, p) + special.xlog1py(1 - z, -p)
    return outside((z < 0) | (z > 1), -np.inf, value)


def pmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """The probability of ``k``.

    >>> jax.scipy.stats.bernoulli.pmf(jnp.array([0, 1]), 0.3)
    Array([0.7       , 0.29999998], dtype=float32)
    """
    return jnp.exp(logpmf(k, p, loc))


def cdf(k: Any, p: Any) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.bernoulli.cdf(jnp.array([0, 1]), 0.3)
    Array([0.7, 1. ], dtype=float32)
    """
    k, p = reals("bernoulli.cdf", k, p)
    value = jnp.where(k < 0, jnp.zeros_like(p), jnp.where(k < 1, 1 - p, 1))
    return inside((p >= 0) & (p <= 1) & ~jnp.isnan(k), value, np.nan)


def ppf(q: Any, p: Any) -> Array:
    """The quantile function, the inverse of ``cdf``.

    >>> jax.scipy.stats.bernoulli.ppf(jnp.array([0.3, 0.5]), 0.3)
    Array([0., 0.], dtype=float32)
    """
    q, p = reals("bernoulli.ppf", q, p)
    valid = (q >= 0) & (q <= 1) & (p >= 0) & (p <= 1)
    value = jnp.where(q <= 1 - p, jnp.zeros_like(p), jnp.ones_like(p))
    return inside(valid, value, np.nan)
