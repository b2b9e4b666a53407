"""jax.scipy.stats.gumbel_r: the right-skewed Gumbel distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import nn
from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy.stats._common import inside, weak_reals


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.gumbel_r.logpdf(jnp.array([0.2, 0.5]))
    Array([-1.0187308, -1.1065307], dtype=float32)
    """
    x, loc, scale = weak_reals("gumbel_r.logpdf", x, loc, scale)
    z = -(x - loc) / scale
    return inside(scale > 0, z - jnp.exp(z) - jnp.log(scale), np.nan)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    >>> jax.scipy.stats.gumbel_r.pdf(jnp.array([0.2, 0.5]))
    Array([0.3610529, 0.3307043], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the distribution function.

    >>> jax.scipy.stats.gumbel_r.logcdf(jnp.array([0.2, 0.5]))
    Array([-0.8187308 , -0.60653067], dtype=float32)
    """
    x, loc, scale = weak_reals("gumbel_r.logcdf", x, loc, scale)
    return inside(scale > 0, -jnp.exp(-(x - loc) / scale), np.nan)


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.gumbel_r.cdf(jnp.array([0.2, 0.5]))
    Array([0.440991 , 0.5452392], dtype=float32)
    """
    return jnp.exp(logcdf(x, loc, scale))


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``.

    >>> jax.scipy.stats.gumbel_r.sf(jnp.array([0.2, 0.5]))
    Array([0.55900896, 0.4547608 ], dtype=float32)
    """
    x, loc, scale = weak_reals("gumbel_r.sf", x, loc, scale)
    return inside(scale > 0, -jnp.expm1(-jnp.exp(-(x - loc) / scale)), np.nan)


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``log(1 - cdf)``.

    >>> jax.scipy.stats.gumbel_r.logsf(jnp.array([0.2, 0.5]))
    Array([-0.58158976, -0.7879837 ], dtype=float32)
    """
    x, loc, scale = weak_reals("gumbel_r.logsf", x, loc, scale)
    return inside(scale > 0, nn.log1mexp(jnp.exp(-(x - loc) / scale)), np.nan)


def ppf(p: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile function, the inverse of ``cdf``.

    >>> jax.scipy.stats.gumbel_r.ppf(jnp.array([0.3, 0.5]))
    Array([-0.18562678,  0.36651292], dtype=float32)
    """
    p, loc, scale = weak_reals("gumbel_r.ppf", p, loc, scale)
    return inside((p > 0) & (p < 1), -jnp.log(-jnp.log(p)) * scale + loc, np.nan)
