"""jax.scipy.stats.multinomial: the multinomial distribution."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._ir.trace import Array
from maxjax.numpy._promotion import promote_inexact
from maxjax.scipy import special
from maxjax.scipy.stats._common import inside


def logpmf(x: Any, n: Any, p: Any) -> Array:
    """The logarithm of the probability of the counts ``x``, which sum to ``n``.

    Args:
      x, p: shape ``(..., K)``.

    Raises:
      ValueError: ``x`` or ``n`` is not of integers.

    >>> jax.scipy.stats.multinomial.logpmf(jnp.array([1, 2, 1]), 4, jnp.array([0.2, 0.3, 0.5]))
    Array(-2.225624, dtype=float32)
    """
    p, = promote_inexact("multinomial.logpmf", p)
    x, n = jnp.asarray(x), jnp.asarray(n)
    if not dtypes.is_integer(x.dtype) or not dtypes.is_integer(n.dtype):
        raise ValueError(f"x and n must be of integer type; got x.dtype={x.dtype}, "
                         f"n.dtype={n.dtype}")
    counts = x.astype(p.dtype)
    value = (special.gammaln(n.astype(p.dtype) + 1)
             + jnp.sum(special.xlogy(counts, p) - special.gammaln(counts + 1), axis=-1))
    return inside(jnp.sum(x) == n, value, -np.inf)


def pmf(x: Any, n: Any, p: Any) -> Array:
    """The probability of the counts ``x``.

    >>> jax.scipy.stats.multinomial.pmf(jnp.array([1, 2, 1]), 4, jnp.array([0.2, 0.3, 0.5]))
    Array(0.108, dtype=float32)
    """
    return jnp.exp(logpmf(x, n, p))
