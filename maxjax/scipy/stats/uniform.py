"""jax.scipy.stats.uniform: the uniform distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy.stats._common import floats, inside, outside


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.uniform.logpdf(jnp.array([0.2, 0.5]))
    Array([-0., -0.], dtype=float32)
    """
    x, loc, scale = floats("uniform.logpdf", x, loc, scale)
    value = outside((x < loc) | (x > loc + scale), -np.inf, -jnp.log(scale))
    return outside(jnp.isnan(x) | jnp.isnan(loc), np.nan, value)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    >>> jax.scipy.stats.uniform.pdf(jnp.array([0.2, 0.5]))
    Array([1., 1.], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.uniform.cdf(jnp.array([0.2, 0.5]))
    Array([0.2, 0.5], dtype=float32)
    """
    x, loc, scale = floats("uniform.cdf", x, loc, scale)
    return jnp.clip((x - loc) / scale, 0, 1)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile function, the inverse of ``cdf``.

    >>> jax.scipy.stats.uniform.ppf(jnp.array([0.3, 0.5]))
    Array([0.3, 0.5], dtype=float32)
    """
    q, loc, scale = floats("uniform.ppf", q, loc, scale)
    return inside((q >= 0) & (q <= 1), q * scale + loc, np.nan)
