"""jax.scipy.stats.norm: the normal distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import floats


def logpdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    Args:
      x: an array or number; integers become floats.
      loc: the mean.
      scale: the standard deviation.

    Returns:
      An array of floats of the common shape.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``norm.pdf``, ``norm.logcdf``, ``jax.random.normal``.

    >>> jax.scipy.stats.norm.logpdf(jnp.array([0.2, 0.5]))
    Array([-0.9389385, -1.0439385], dtype=float32)
    """
    x, loc, scale = floats("norm.logpdf", x, loc, scale)
    return -(jnp.log(2 * np.pi * scale * scale) + ((x - loc) / scale) ** 2) / 2


def pdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    >>> jax.scipy.stats.norm.pdf(jnp.array([0.2, 0.5]))
    Array([0.3910427 , 0.35206532], dtype=float32)
    """
    return jnp.exp(logpdf(x, loc, scale))


def cdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The distribution function.

    >>> jax.scipy.stats.norm.cdf(jnp.array([0.2, 0.5]))
    Array([0.5792597 , 0.69146246], dtype=float32)
    """
    x, loc, scale = floats("norm.cdf", x, loc, scale)
    return special.ndtr((x - loc) / scale)


def logcdf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the distribution function.

    >>> jax.scipy.stats.norm.logcdf(jnp.array([0.2, 0.5]))
    Array([-0.54600435, -0.3689464 ], dtype=float32)
    """
    x, loc, scale = floats("norm.logcdf", x, loc, scale)
    return jnp.asarray(special.log_ndtr((x - loc) / scale), x.dtype)


def ppf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The quantile function, the inverse of ``cdf``.

    >>> jax.scipy.stats.norm.ppf(jnp.array([0.3, 0.5]))
    Array([-0.5244005,  0.       ], dtype=float32)
    """
    return jnp.asarray(special.ndtri(q) * scale + loc, float)


def logsf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``log(1 - cdf)``.

    >>> jax.scipy.stats.norm.logsf(jnp.array([0.2, 0.5]))
    Array([-0.8657395, -1.1759118], dtype=float32)
    """
    x, loc, scale = floats("norm.logsf", x, loc, scale)
    return jnp.asarray(special.log_ndtr(-(x - loc) / scale), x.dtype)


def sf(x: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """``1 - cdf``.

    >>> jax.scipy.stats.norm.sf(jnp.array([0.2, 0.5]))
    Array([0.42074028, 0.30853754], dtype=float32)
    """
    x, loc, scale = floats("norm.sf", x, loc, scale)
    return special.ndtr(-(x - loc) / scale)


def isf(q: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The inverse of ``sf``.

    >>> jax.scipy.stats.norm.isf(jnp.array([0.3, 0.5]))
    Array([0.5244005, 0.       ], dtype=float32)
    """
    q, loc, scale = floats("norm.isf", q, loc, scale)
    return jnp.asarray(-special.ndtri(q) * scale + loc, float)
