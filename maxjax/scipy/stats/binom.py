"""jax.scipy.stats.binom: the binomial distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import inside, weak_floats


def logpmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of ``k``.

    >>> jax.scipy.stats.binom.logpmf(jnp.array([0, 1]), 5, 0.3)
    Array([-1.7833748, -1.0212348], dtype=float32, weak_type=True)
    """
    k, n, p, loc = weak_floats("binom.logpmf", k, n, p, loc)
    z = k - loc
    ways = special.gammaln(n + 1) - special.gammaln(z + 1) - special.gammaln(n - z + 1)
    value = ways + special.xlogy(z, p) + special.xlog1py(n - z, -p)
    return inside((z >= 0) & (z < n + 1), value, -np.inf)


def pmf(k: Any, n: Any, p: Any, loc: Any = 0) -> Array:
    """The probability of ``k``.

    >>> jax.scipy.stats.binom.pmf(jnp.array([0, 1]), 5, 0.3)
    Array([0.16806999, 0.36014998], dtype=float32, weak_type=True)
    """
    return jnp.exp(logpmf(k, n, p, loc))
