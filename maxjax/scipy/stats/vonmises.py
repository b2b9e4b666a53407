"""jax.scipy.stats.vonmises: the von Mises distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.scipy import special
from maxjax.scipy.stats._common import inside, weak_reals


def logpdf(x: Any, kappa: Any) -> Array:
    """The logarithm of the density.

    >>> jax.scipy.stats.vonmises.logpdf(jnp.array([0.2, 0.5]), 1.2)
    Array([-0.99377763, -1.1167586 ], dtype=float32)
    """
    x, kappa = weak_reals("vonmises.logpdf", x, kappa)
    value = kappa * (jnp.cos(x) - 1) - jnp.log(2 * np.pi * special.i0e(kappa))
    return inside(kappa > 0, value, np.nan)


def pdf(x: Any, kappa: Any) -> Array:
    """The density.

    >>> jax.scipy.stats.vonmises.pdf(jnp.array([0.2, 0.5]), 1.2)
    Array([0.37017566, 0.3273391 ], dtype=float32)
    """
    return jnp.exp(logpdf(x, kappa))
