"""jax.scipy.stats.gamma: the gamma distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import floats, inside, weak_floats


def logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density."""
    x, a, loc, scale = floats("gamma.logpdf", x, a, loc, scale)
    positive = x >= loc
    z = jnp.where(positive, (x - loc) / scale, 1)
    value = special.xlogy(a - 1, z) - z - special.gammaln(a) - jnp.log(scale)
    return inside(positive, value, -np.inf)


def pdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density."""
    return jnp.exp(logpdf(x, a, loc, scale))


def cdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function."""
    x, a, loc, scale = floats("gamma.cdf", x, a, loc, scale)
    return special.gammainc(a, jnp.clip((x - loc) / scale, 0))


def logcdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the distribution function."""
    return jnp.log(cdf(x, a, loc, scale))


def sf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``."""
    x, a, loc, scale = weak_floats("gamma.sf", x, a, loc, scale)
    return special.gammaincc(a, jnp.clip((x - loc) / scale, 0))


def logsf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``log(1 - cdf)``."""
    return jnp.log(sf(x, a, loc, scale))
