"""jax.scipy.stats.betabinom: the beta-binomial distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import floats, outside


def logpmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of ``k``.

    >>> jax.scipy.stats.betabinom.logpmf(jnp.array([0, 1]), 5, 2.0, 3.0)
    Array([-1.7917595, -1.4350843], dtype=float32)
    """
    k, n, a, b, loc = floats("betabinom.logpmf", k, n, a, b, loc)
    z = jnp.floor(k) - loc
    ways = -jnp.log1p(n) - special.betaln(n - z + 1, z + 1)
    value = ways + special.betaln(z + a, n - z + b) - special.betaln(a, b)
    value = outside((z < 0) | (z > n), -np.inf, value)
    return outside((n < 0) | (a <= 0) | (b <= 0), np.nan, value)


def pmf(k: Any, n: Any, a: Any, b: Any, loc: Any = 0) -> Array:
    """The probability of ``k``.

    >>> jax.scipy.stats.betabinom.pmf(jnp.array([0, 1]), 5, 2.0, 3.0)
    Array([0.16666666, 0.23809528], dtype=float32)
    """
    return jnp.exp(logpmf(k, n, a, b, loc))
