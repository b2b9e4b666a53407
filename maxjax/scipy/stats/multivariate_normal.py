"""jax.scipy.stats.multivariate_normal: the multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.numpy._promotion import promote_inexact

_LOG_2_PI = math.log(2 * math.pi)


def logpdf(x: Any, mean: Any, cov: Any, allow_singular: None = None) -> Array:
    """The logarithm of the density.

    Args:
      x: shape ``(..., N)``.
      mean: shape ``(..., N)`` or a scalar.
      cov: shape ``(..., N, N)``, or a scalar times the identity.

    Raises:
      NotImplementedError: ``allow_singular`` is given.

    >>> jax.scipy.stats.multivariate_normal.logpdf(jnp.array([1.0, 0.0]), jnp.zeros(2), jnp.eye(2))
    Array(-2.337877, dtype=float32)
    """
    if allow_singular is not None:
        raise NotImplementedError("allow_singular argument of multivariate_normal.logpdf")
    x, mean, cov = (jnp.asarray(v)
                    for v in promote_inexact("multivariate_normal.logpdf", x, mean, cov))
    if not mean.shape:
        return -0.5 * jnp.square(x - mean) / cov - 0.5 * (_LOG_2_PI + jnp.log(cov))
    size = mean.shape[-1]
    if not cov.shape:
        y = x - mean
        return (-0.5 * jnp.einsum("...i,...i->...", y, y) / cov
                - size / 2 * (_LOG_2_PI + jnp.log(cov)))
    if cov.ndim < 2 or cov.shape[-2:] != (size, size):
        raise ValueError("multivariate_normal.logpdf got incompatible shapes")
    factor = jnp.linalg.cholesky(cov)
    batch = np.broadcast_shapes(x.shape[:-1], mean.shape[:-1], cov.shape[:-2])
    y = jnp.broadcast_to(x - mean, (*batch, size))[..., None]
    z = lax.linalg.triangular_solve(jnp.broadcast_to(factor, (*batch, size, size)), y,
                                    left_side=True, lower=True)[..., 0]
    logs = jnp.sum(jnp.log(jnp.diagonal(factor, axis1=-1, axis2=-2)), axis=-1)
    return -0.5 * jnp.einsum("...i,...i->...", z, z) - size / 2 * _LOG_2_PI - logs


def pdf(x: Any, mean: Any, cov: Any) -> Array:
    """The density; see ``logpdf``.

    >>> jax.scipy.stats.multivariate_normal.pdf(jnp.array([1.0, 0.0]), jnp.zeros(2), jnp.eye(2))
    Array(0.09653235, dtype=float32)
    """
    return jnp.exp(logpdf(x, mean, cov))
