"""jax.scipy.stats.t: Student's t distribution."""

from __future__ import annotations

from typing import Any

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import floats


def logpdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.t.logpdf(jnp.array([0.2, 0.5]), 4.0)
    Array([-1.0057051, -1.1323907], dtype=float32)
    """
    x, df, loc, scale = floats("t.logpdf", x, df, loc, scale)
    z = (x - loc) / scale
    norm = -special.betaln(df / 2, 0.5) - jnp.log(df) / 2
    return norm - jnp.log(jnp.abs(scale)) - (df + 1) / 2 * jnp.log1p(z * z / df)


def pdf(x: Any, df: Any, loc: Any = 0, scale: Any = 1) -> Array:
    """The density.

    >>> jax.scipy.stats.t.pdf(jnp.array([0.2, 0.5]), 4.0)
    Array([0.3657866, 0.3222619], dtype=float32)
    """
    return jnp.exp(logpdf(x, df, loc, scale))
