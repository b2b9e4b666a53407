"""jax.scipy.stats.nbinom: the negative binomial distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import floats, outside


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of ``k``.

    >>> jax.scipy.stats.nbinom.logpmf(jnp.array([0, 1]), 4, 0.3)
    Array([-4.8158913, -3.7862718], dtype=float32)
    """
    k, n, p, loc = floats("nbinom.logpmf", k, n, p, loc)
    z = k - loc
    ways = special.gammaln(z + n) - special.gammaln(n) - special.gammaln(z + 1)
    value = ways + special.xlogy(n, p) + special.xlogy(z, 1 - p)
    return outside(z < 0, -np.inf, value)


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """The probability of ``k``.

    >>> jax.scipy.stats.nbinom.pmf(jnp.array([0, 1]), 4, 0.3)
    Array([0.0081 , 0.02268], dtype=float32)
    """
    return jnp.exp(logpmf(k, n, p, loc))
