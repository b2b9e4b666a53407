"""jax.scipy.stats.nbinom: the negative binomial distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import floats, inside


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of ``k``."""
    k, n, p, loc = floats("nbinom.logpmf", k, n, p, loc)
    z = k - loc
    ways = special.gammaln(z + n) - special.gammaln(n) - special.gammaln(z + 1)
    value = ways + special.xlogy(n, p) + special.xlogy(z, 1 - p)
    return inside(z >= 0, value, -np.inf)


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """The probability of ``k``."""
    return jnp.exp(logpmf(k, n, p, loc))
