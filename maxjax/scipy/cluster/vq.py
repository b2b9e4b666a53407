"""jax.scipy.cluster.vq: vector quantisation."""

from __future__ import annotations

from typing import Any

from maxjax import numpy as jnp
from maxjax._base.missing import explain_missing_names
from maxjax._ir.trace import Array
from maxjax.numpy._promotion import check_arraylike, promote_inexact

explain_missing_names(__name__)


def vq(obs: Any, code_book: Any, check_finite: bool = True) -> tuple[Array, Array]:
    """The nearest code to each observation, and its distance.

    Args:
      obs, code_book: shapes ``(M, N)`` and ``(K, N)``, or ``(M,)`` and ``(K,)``.

    Raises:
      ValueError: the shapes do not fit.

    >>> jax.scipy.cluster.vq.vq(jnp.array([[1.], [6.]]), jnp.array([[0.], [5.]]))
    (Array([0, 1], dtype=int32), Array([1., 1.], dtype=float32))
    """
    check_arraylike("scipy.cluster.vq.vq", obs, code_book)
    if jnp.ndim(obs) != jnp.ndim(code_book):
        raise ValueError("Observation and code_book should have the same rank")
    obs, code_book = (jnp.asarray(x) for x in promote_inexact("vq", obs, code_book))
    if obs.ndim == 1:
        obs, code_book = obs[:, None], code_book[:, None]
    if obs.ndim != 2:
        raise ValueError("ndim different than 1 or 2 are not supported")
    gaps = jnp.linalg.norm(obs[:, None, :] - code_book[None], axis=-1)
    return jnp.argmin(gaps, axis=1), jnp.min(gaps, axis=1)
