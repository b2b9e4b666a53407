"""jax.scipy.stats.gumbel_l: the left-skewed Gumbel distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import nn
from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy.stats._common import inside, weak_reals


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.gumbel_l.logpdf(jnp.array([0.2, 0.5]))
    Array([-1.0214027, -1.1487212], dtype=float32)
    """
    x, loc, scale = weak_reals("gumbel_l.logpdf", x, loc, scale)
    z = (x - loc) / scale
    return inside(scale > 0, z - jnp.exp(z) - jnp.log(scale), np.nan)


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    >>> jax.scipy.stats.gumbel_l.pdf(jnp.array([0.2, 0.5]))
    Array([0.36008948, 0.31704193], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``log(1 - cdf)``.

    >>> jax.scipy.stats.gumbel_l.logsf(jnp.array([0.2, 0.5]))
    Array([-1.2214028, -1.6487212], dtype=float32)
    """
    x, loc, scale = weak_reals("gumbel_l.logsf", x, loc, scale)
    return inside(scale > 0, -jnp.exp((x - loc) / scale), np.nan)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``.

    >>> jax.scipy.stats.gumbel_l.sf(jnp.array([0.2, 0.5]))
    Array([0.29481632, 0.19229566], dtype=float32)
    """
    return jnp.exp(logsf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.gumbel_l.cdf(jnp.array([0.2, 0.5]))
    Array([0.7051837, 0.8077043], dtype=float32)
    """
    x, loc, scale = weak_reals("gumbel_l.cdf", x, loc, scale)
    return inside(scale > 0, -jnp.expm1(-jnp.exp((x - loc) / scale)), np.nan)


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the distribution function.

    >>> jax.scipy.stats.gumbel_l.logcdf(jnp.array([0.2, 0.5]))
    Array([-0.34929696, -0.2135592 ], dtype=float32)
    """
    x, loc, scale = weak_reals("gumbel_l.logcdf", x, loc, scale)
    return inside(scale > 0, nn.log1mexp(jnp.exp((x - loc) / scale)), np.nan)


def ppf(p: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile function, the inverse of ``cdf``.

    >>> jax.scipy.stats.gumbel_l.ppf(jnp.array([0.3, 0.5]))
    Array([-1.0309304 , -0.36651292], dtype=float32)
    """
    p, loc, scale = weak_reals("gumbel_l.ppf", p, loc, scale)
    return inside((p > 0) & (p < 1), jnp.log(-jnp.log1p(-p)) * scale + loc, np.nan)
