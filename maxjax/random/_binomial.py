"""Binomial and multinomial variates.

Below ten expected successes: the number of geometric waiting times that fit (L. Devroye,
"Non-Uniform Random Variate Generation", X.4.3). Above: W. Hörmann, "The generation of binomial
random variates", transformed rejection (BTRS).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax.numpy._promotion import canonical_shape
from maxjax.random._arguments import as_float, as_floats, float_dtype, result_shape, unstack
from maxjax.random._keys import clone, jitted, single_key, split_typed
from maxjax.random._uniform import _uniform

_TABLE = 10
# log k! minus Stirling's formula at k + 1.
_TAILS = np.array([
    math.lgamma(k + 1) - (0.5 * math.log(2 * math.pi) + (k + 0.5) * math.log(k + 1) - (k + 1))
    for k in range(_TABLE)])


def binomial(key: ArrayLike, n: Any, p: ArrayLike, shape: Any = None,
             dtype: DTypeLike | None = None) -> Array:
    """The number of ``n`` trials that succeed, each with probability ``p``; as floats.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      n: the number of trials; NaN where it is negative.
      p: the probability of success; NaN where it is not a probability.
      shape: of the result, to which ``n`` and ``p`` are broadcast; by default their own.
      dtype: a floating dtype; by default float32, or float64 with 64-bit types.

    Returns:
      An array of that shape.

    Raises:
      ValueError: ``shape`` is incompatible with those of ``n`` and ``p``, or ``dtype`` is not a
        float.

    See also: ``bernoulli``, ``multinomial``, ``poisson``.

    >>> key = jax.random.key(0)
    >>> binomial(key, 10, 0.3, (5,))
    Array([2., 2., 1., 2., 1.], dtype=float32)
    """
    typed = single_key("binomial", key)
    dtype = float_dtype(dtype, "binomial")
    return _binomial(typed, n, p, result_shape(shape, np.shape(n), np.shape(p)), dtype)


@jitted("shape", "dtype")
def _binomial(key: Any, n: Any, p: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    # Drawn in the dtype of the probabilities, as in JAX; ``dtype`` is that of the counts.
    p = jnp.asarray(p)
    if not jnp.issubdtype(p.dtype, jnp.floating):
        p = as_float(p, dtypes.canonical(dtypes.float64))
    n, p = jnp.broadcast_to(as_float(n, p.dtype), shape), jnp.broadcast_to(p, shape)
    # The rarer outcome is counted.
    rare = p < 0.5
    q = jnp.where(rare, p, 1 - p)
    bad_count = jnp.isnan(n) | (n < 0)
    bad_chance = jnp.isnan(q) | (q < 0)
    q = jnp.where(bad_chance, 0.01, q)
    count = jnp.floor(n)
    by_waiting = bad_count | (n * q <= 10)
    waited = _by_waiting(key, jnp.where(by_waiting, count, 0), q, dtype)
    # Both are computed for all elements, and one is taken for each.
    rejected = _by_rejection(clone(key), jnp.where(by_waiting, 10_000, count),
                             jnp.where(by_waiting, 0.5, q), dtype)
    result = jnp.where(by_waiting, waited, rejected)
    infinite = jnp.isinf(n)
    invalid = bad_count | bad_chance
    result = jnp.where(invalid, jnp.nan, result)
    result = jnp.where(infinite & ~invalid, jnp.inf, result)
    return jnp.where(rare | bad_count | jnp.isnan(p) | infinite, result,
                     count.astype(dtype) - result)


def _loop(waits: Any, step: Any, state: Any, dtype: Any) -> Any:
    """While any are pending, but no more rounds than JAX: 65,488 for float16, whose sums stall."""
    largest = dtypes.finfo(dtype).max

    def going(state: Any) -> Any:
        return jnp.any(waits(state[0])) & (jnp.asarray(state[1]).astype(dtype) < largest)

    return lax.while_loop(going, lambda state: (step(state[0]), state[1] + 1), (state, 0))[0]


def _by_waiting(key: Any, count: Any, q: Any, dtype: Any) -> Any:
    log_failure = jnp.log1p(-q)

    def step(state: Any) -> Any:
        draws, trials, key = state
        subkey, key = unstack(split_typed(key))
        draws = jnp.where(trials <= count, draws + 1, draws)
        wait = jnp.ceil(jnp.log(_uniform(subkey, q.shape, q.dtype, 0.0, 1.0)) / log_failure)
        return draws, trials + wait, key

    zeros = jnp.zeros_like(q)
    draws, _, _ = _loop(lambda state: state[1] <= count, step, (zeros, zeros, key), dtype)
    return (draws - 1).astype(dtype)


def _stirling_tail(k: Any) -> Any:
    near = jnp.clip(k, 0, _TABLE - 1)
    table = jnp.asarray(_TAILS, k.dtype)[near.astype(jnp.int32)]
    square = (near + 1) * (near + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (near + 1)
    return jnp.where(k <= _TABLE - 1, table, series)


def _by_rejection(key: Any, count: Any, q: Any, dtype: Any) -> Any:
    odds = q / (1 - q)
    deviation = jnp.sqrt(count * q * (1 - q))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * q
    centre = count * q + 0.5
    bound = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * deviation
    mode = jnp.floor((count + 1) * q)

    def step(state: Any) -> Any:
        result, accepted, key = state
        key, first, second = unstack(split_typed(key, (3,)))
        u = _uniform(first, q.shape, q.dtype, 0.0, 1.0) - 0.5
        v = _uniform(second, q.shape, q.dtype, 0.0, 1.0)
        shifted = 0.5 - jnp.abs(u)
        k = jnp.floor((2 * a / shifted + b) * u + centre)
        quickly = (shifted >= 0.07) & (v <= bound)
        outside = (k < 0) | (k > count)
        height = jnp.log(v * alpha / (a / (shifted * shifted) + b))
        limit = ((mode + 0.5) * jnp.log((mode + 1) / (odds * (count - mode + 1)))
                 + (count + 1) * jnp.log((count - mode + 1) / (count - k + 1))
                 + (k + 0.5) * jnp.log(odds * (count - k + 1) / (k + 1))
                 + _stirling_tail(mode) + _stirling_tail(count - mode)
                 - _stirling_tail(k) - _stirling_tail(count - k))
        accept = quickly | (~outside & (height <= limit))
        # As in JAX, a later proposal replaces an earlier one while others are pending.
        return jnp.where(accept, k, result), accepted | accept, key

    result, _, _ = _loop(lambda state: ~state[1], step,
                         (jnp.full_like(q, -1), jnp.zeros(q.shape, bool), key), dtype)
    return result.astype(dtype)


def multinomial(key: Any, n: Any, p: Any, *, shape: Any = None, dtype: Any = None,
                unroll: int | bool = 1) -> Array:
    """The number of ``n`` trials with each of k outcomes; as floats.

    Args:
      n: the number of trials, of shape ``(...)``.
      p: the outcomes' probabilities, of shape ``(..., k)``; they sum to 1 along the last axis.
      shape: of the result without the last axis, to which ``n`` and ``p`` are broadcast.
      unroll: as in ``jax.lax.scan``, over the outcomes.

    Returns:
      Floats of shape ``(..., k)`` that sum to ``n`` along the last axis.

    Raises:
      ValueError: ``n`` or ``p`` cannot be broadcast to ``shape``.

    >>> key = jax.random.key(0)
    >>> multinomial(key, 10, jnp.array([0.2, 0.3, 0.5]))
    Array([1., 1., 8.], dtype=float32)
    """
    typed = single_key("multinomial", key)
    dtype = float_dtype(dtype, "multinomial")
    n, p = as_floats(n, p)
    if shape is None:
        batch = p.shape[:-1]
    else:
        batch = canonical_shape(shape)
        jnp.broadcast_shapes(batch, n.shape, p.shape[:-1])
    n, p = jnp.broadcast_to(n, batch), jnp.broadcast_to(p, (*batch, p.shape[-1]))
    # Each outcome takes its share of the trials left by those before it.
    left = lax.cumsum(p, axis=p.ndim - 1, reverse=True)
    shares = jnp.moveaxis(p / jnp.where(left == 0, 1, left), -1, 0)

    def draw(trials: Any, inputs: Any) -> Any:
        share, key = inputs
        count = _binomial(key, trials, jnp.clip(share, 0, 1), trials.shape, p.dtype)
        return trials - count, count

    _, counts = lax.scan(draw, n, (shares, split_typed(typed, (p.shape[-1],))), unroll=unroll)
    return jnp.moveaxis(counts, 0, -1).astype(dtype)
