"""jax.scipy.stats.poisson: the Poisson distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import floats, inside, outside, weak_floats


def logpmf(k: Any, mu: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of ``k``.

    >>> jax.scipy.stats.poisson.logpmf(jnp.array([0, 1]), 2.5)
    Array([-2.5      , -1.5837092], dtype=float32, weak_type=True)
    """
    k, mu, loc = weak_floats("poisson.logpmf", k, mu, loc)
    z = k - loc
    value = special.xlogy(z, mu) - special.gammaln(z + 1) - mu
    return outside((z < 0) | (z != jnp.round(z)), -np.inf, value)


def pmf(k: Any, mu: Any, loc: Any = 0) -> Array:
    """The probability of ``k``.

    >>> jax.scipy.stats.poisson.pmf(jnp.array([0, 1]), 2.5)
    Array([0.082085 , 0.2052125], dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, mu, loc))


def cdf(k: Any, mu: Any, loc: Any = 0) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.poisson.cdf(jnp.array([0, 1]), 2.5)
    Array([0.082085 , 0.2872975], dtype=float32)
    """
    k, mu, loc = floats("poisson.cdf", k, mu, loc)
    z = k - loc
    value = special.gammaincc(jnp.floor(jnp.maximum(z, 0)) + 1, mu)
    return outside(z < 0, 0, value)


def entropy(mu: Any, loc: Any = 0) -> Array:
    """The entropy, summed up to where the probabilities vanish; ``loc`` affects only the shape.

    >>> jax.scipy.stats.poisson.entropy(jnp.array([0.5, 2.5]))
    Array([0.92763746, 1.8307266 ], dtype=float32)
    """
    mu, loc = floats("poisson.entropy", mu, loc)
    mu = jnp.broadcast_to(mu, jnp.broadcast_shapes(jnp.shape(mu), jnp.shape(loc)))
    # For large mu only the expansion in 1 / mu is accurate to rounding.
    safe = jnp.where(mu > 0, mu, 1)
    small = jnp.where(safe < 100, safe, 1)
    counts = jnp.arange(256, dtype=mu.dtype)
    logs = logpmf(counts, small[..., None])
    summed = -jnp.sum(jnp.exp(logs) * logs, axis=-1)
    series = (0.5 * jnp.log(2 * np.pi * np.e * safe)
              - (1 / 12 + (1 / 24 + 19 / 360 / safe) / safe) / safe)
    value = jnp.where(safe < 100, summed, series)
    return jnp.where(mu == 0, 0, inside(mu > 0, value, np.nan))
