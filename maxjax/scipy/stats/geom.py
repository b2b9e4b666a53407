"""jax.scipy.stats.geom: the geometric distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import outside, reals


def logpmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of ``k``.

    >>> jax.scipy.stats.geom.logpmf(jnp.array([0, 1]), 0.3)
    Array([      -inf, -1.2039728], dtype=float32)
    """
    k, p, loc = reals("geom.logpmf", k, p, loc)
    z = k - loc
    return outside(z <= 0, -np.inf, special.xlog1py(z - 1, -p) + jnp.log(p))


def pmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """The probability of ``k``.

    >>> jax.scipy.stats.geom.pmf(jnp.array([0, 1]), 0.3)
    Array([0.        , 0.29999998], dtype=float32)
    """
    return jnp.exp(logpmf(k, p, loc))
