"""jax.scipy.stats.dirichlet: the Dirichlet distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.numpy._promotion import promote_inexact
from maxjax.scipy import special
from maxjax.scipy.stats._common import inside


def logpdf(x: Any, alpha: Any) -> Array:
    """The logarithm of the density.

    Args:
      x: shape ``(N, ...)``, or ``(N - 1, ...)`` without the last component of a sum of 1.
      alpha: shape ``(N,)``.

    >>> jax.scipy.stats.dirichlet.logpdf(jnp.array([0.2, 0.3, 0.5]), jnp.array([1.0, 2.0, 3.0]))
    Array(1.5040774, dtype=float32)
    """
    x, alpha = (jnp.asarray(v) for v in promote_inexact("dirichlet.logpdf", x, alpha))
    if alpha.ndim != 1:
        raise ValueError(f"`alpha` must be one-dimensional; got alpha.shape={alpha.shape}")
    if x.shape[0] not in (alpha.shape[0], alpha.shape[0] - 1):
        raise ValueError("`x` must have either the same number of entries as `alpha` or one entry "
                         f"fewer; got x.shape={x.shape}, alpha.shape={alpha.shape}")
    if x.shape[0] == alpha.shape[0] - 1:
        x = jnp.concatenate([x, 1 - jnp.sum(x, axis=0, keepdims=True)])
    norm = jnp.sum(special.gammaln(alpha)) - special.gammaln(jnp.sum(alpha))
    column = alpha.reshape(-1, *(1,) * (x.ndim - 1))
    value = jnp.sum(special.xlogy(column - 1, x), axis=0) - norm
    simplex = jnp.all(x > 0, axis=0) & (jnp.abs(jnp.sum(x, axis=0) - 1) < 1e-6)
    return inside(simplex, value, -np.inf)


def pdf(x: Any, alpha: Any) -> Array:
    """The density; see ``logpdf``.

    >>> jax.scipy.stats.dirichlet.pdf(jnp.array([0.2, 0.3, 0.5]), jnp.array([1.0, 2.0, 3.0]))
    Array(4.5, dtype=float32)
    """
    return jnp.exp(logpdf(x, alpha))
