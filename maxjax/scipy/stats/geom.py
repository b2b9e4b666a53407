"""jax.scipy.stats.geom: the geometric distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import floats, inside


def logpmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """The logarithm of the probability of ``k``."""
    k, p, loc = floats("geom.logpmf", k, p, loc)
    z = k - loc
    return inside(z > 0, special.xlog1py(z - 1, -p) + jnp.log(p), -np.inf)


def pmf(k: Any, p: Any, loc: Any = 0) -> Array:
    """The probability of ``k``."""
    return jnp.exp(logpmf(k, p, loc))
