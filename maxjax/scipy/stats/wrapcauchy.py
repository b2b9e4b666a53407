"""jax.scipy.stats.wrapcauchy: the wrapped Cauchy distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy.stats._common import inside, weak_reals


def logpdf(x: Any, c: Any) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.wrapcauchy.logpdf(jnp.array([0.2, 0.5]), 0.4)
    Array([-1.0339224, -1.2312   ], dtype=float32)
    """
    x, c = weak_reals("wrapcauchy.logpdf", x, c)
    value = jnp.log(1 - c * c) - jnp.log(2 * np.pi) - jnp.log(1 + c * c - 2 * c * jnp.cos(x))
    return inside((c > 0) & (c < 1), inside((x >= 0) & (x <= 2 * np.pi), value, -np.inf), np.nan)


def pdf(x: Any, c: Any) -> Array:
    """The density.

    >>> jax.scipy.stats.wrapcauchy.pdf(jnp.array([0.2, 0.5]), 0.4)
    Array([0.35560936, 0.29194203], dtype=float32)
    """
    return jnp.exp(logpdf(x, c))
