"""jax.scipy.stats.gamma: the gamma distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import inside, outside, reals, weak_reals


def log_density(x: Any, a: Any, loc: Any, scale: Any) -> Array:
    """Where ``x`` is not below ``loc``."""
    z = outside(x < loc, 1, (x - loc) / scale)
    return special.xlogy(a - 1, z) - z - special.gammaln(a) - jnp.log(scale)


def logpdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.gamma.logpdf(jnp.array([0.2, 0.5]), 2.0)
    Array([-1.809438 , -1.1931472], dtype=float32)
    """
    x, a, loc, scale = reals("gamma.logpdf", x, a, loc, scale)
    return inside(x >= loc, log_density(x, a, loc, scale), -np.inf)


def pdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    >>> jax.scipy.stats.gamma.pdf(jnp.array([0.2, 0.5]), 2.0)
    Array([0.16374613, 0.30326533], dtype=float32)
    """
    return jnp.exp(logpdf(x, a, loc, scale))


def cdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.gamma.cdf(jnp.array([0.2, 0.5]), 2.0)
    Array([0.0175231 , 0.09020401], dtype=float32)
    """
    x, a, loc, scale = reals("gamma.cdf", x, a, loc, scale)
    return special.gammainc(a, jnp.clip((x - loc) / scale, 0))


def logcdf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the distribution function.

    >>> jax.scipy.stats.gamma.logcdf(jnp.array([0.2, 0.5]), 2.0)
    Array([-4.044235 , -2.4056814], dtype=float32)
    """
    return jnp.log(cdf(x, a, loc, scale))


def sf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``.

    >>> jax.scipy.stats.gamma.sf(jnp.array([0.2, 0.5]), 2.0)
    Array([0.9824769, 0.909796 ], dtype=float32)
    """
    x, a, loc, scale = weak_reals("gamma.sf", x, a, loc, scale)
    z = (x - loc) / scale
    return outside(z < 0, 1, special.gammaincc(a, jnp.clip(z, 0)))


def logsf(x: Any, a: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``log(1 - cdf)``.

    >>> jax.scipy.stats.gamma.logsf(jnp.array([0.2, 0.5]), 2.0)
    Array([-0.01767846, -0.09453488], dtype=float32)
    """
    return jnp.log(sf(x, a, loc, scale))
