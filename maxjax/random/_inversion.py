"""Distributions sampled by inversion: functions of one uniform float."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import config, dtypes
from maxjax._higher_order.constraints import with_out_sharding
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives.layout import reshape
from maxjax._primitives.random_bits import multiply_add
from maxjax._primitives.slicing import slice_in_dim
from maxjax.numpy._promotion import canonical_shape
from maxjax.random._arguments import as_float, float_dtype, result_shape
from maxjax.random._keys import jitted, single_key
from maxjax.random._uniform import _bits, _uniform


def exponential(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *,
                out_sharding: Any = None) -> Array:
    """Exponential floats with mean 1.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      shape: of the result; its dimensions are Python ints.
      dtype: a float dtype; None: the default float, float32 unless 64 bits are enabled.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape; divide by a rate for another mean.

    Raises:
      ValueError: ``dtype`` is no float dtype.

    See also: ``gamma``, ``uniform``, ``poisson``.

    >>> jax.random.exponential(jax.random.key(0), (2,))
    Array([2.950128 , 3.8434246], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(exponential, out_sharding, key, shape, dtype)
    typed = single_key("exponential", key)
    return _exponential(typed, canonical_shape(shape), float_dtype(dtype, "exponential"))


@jitted("shape", "dtype")
def _exponential(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    return lax.neg(lax.log1p(lax.neg(_uniform(key, shape, dtype, 0.0, 1.0))))


def gumbel(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, mode: str | None = None,
           *, out_sharding: Any = None) -> Array:
    """Gumbel floats, with density ``exp(-(x + exp(-x)))``.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      shape: of the result; its dimensions are Python ints.
      dtype: a float dtype; None: the default float, float32 unless 64 bits are enabled.
      mode: "low"; "high", which draws twice as many bits for the tail; or "highest", which uses
        all 64 of them (of float32; otherwise as "high").
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape. The position of the greatest of ``logits + gumbel`` is distributed as
      ``categorical``.

    Raises:
      ValueError: ``dtype`` is no float dtype, or there is no such ``mode``.

    See also: ``categorical``, ``uniform``, ``logistic``.

    >>> jax.random.gumbel(jax.random.key(0), (2,))
    Array([2.9233725, 3.8326175], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(gumbel, out_sharding, key, shape, dtype, mode)
    typed = single_key("gumbel", key)
    dtype = float_dtype(dtype, "gumbel")
    return _gumbel(typed, canonical_shape(shape), dtype, gumbel_mode(mode))


def _uniform_positive(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """In [tiny, 1)."""
    tiny = np.array(dtypes.finfo(dtype).tiny, dtype)[()]
    return _uniform(key, shape, dtype, minval=tiny, maxval=1.0)


def gumbel_mode(mode: str | None) -> str:
    if mode is None:
        return "high" if config.high_dynamic_range_gumbel.value else "low"
    if mode not in ("highest", "high", "low"):
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    return mode


@jitted("shape", "dtype", "mode")
def _gumbel(key: Any, shape: tuple[int, ...], dtype: Any, mode: str) -> Any:
    info = dtypes.finfo(dtype)
    tiny = np.array(info.tiny, dtype)[()]
    if mode == "low":
        values = _uniform_positive(key, shape, dtype)
        return lax.neg(lax.log(lax.neg(lax.log(values))))
    if mode == "highest" and dtype == dtypes.float32:
        return _gumbel_of_all_bits(_bits(key, 32, (2, *shape)))
    both = _uniform(key, (2, *shape), dtype, minval=0.0, maxval=1.0)
    high, low = (reshape(slice_in_dim(both, i, i + 1, 0), shape) for i in (0, 1))
    epsilon = np.array(info.eps, dtype)[()]
    half = np.array(0.5, dtype)[()]
    small = lax.add(multiply_add(low, epsilon, high), tiny)
    x = lax.select_n(lax.ge(high, half), small, high)
    return lax.neg(lax.log(lax.neg(lax.log1p(lax.neg(x)))))


def _gumbel_of_all_bits(bits: Any) -> Any:
    """From 64 bits as two words, the higher one first, read as a fraction below 1.

    The half above 1/2 is taken from the other end, so that both tails have every bit.
    """
    high, low = bits
    below_half = high < np.uint32(1 << 31)
    # 1 - fraction: the complement, plus one in the last place.
    opposite_low = ~low + np.uint32(1)
    opposite_high = ~high + (opposite_low == 0).astype(np.uint32)
    x = _fraction_of_words(jnp.where(below_half, high, opposite_high),
                           jnp.where(below_half, low, opposite_low))
    return lax.neg(lax.log(lax.neg(jnp.where(below_half, lax.log1p(-x), lax.log(x)))))


def _fraction_of_words(high: Any, low: Any) -> Any:
    """(2**32 high + low) / 2**64 as float32, rounded towards zero."""
    zeros_high, zeros_low = lax.clz(high), lax.clz(low)
    no_high = high == 0
    # The leading 24 bits, the first of which is left out of a float.
    significant = (high << zeros_high) | jnp.where(
        no_high, low << zeros_low, low >> (np.uint32(32) - zeros_high))
    mantissa = (significant >> np.uint32(8)) & np.uint32((1 << 23) - 1)
    exponent = np.uint32(126) - jnp.where(no_high, np.uint32(32) + zeros_low, zeros_high)
    return lax.bitcast_convert_type((exponent << np.uint32(23)) | mantissa, np.float32)


def laplace(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *,
            out_sharding: Any = None) -> Array:
    """Laplace floats, with density ``exp(-|x|) / 2``.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      shape: of the result; its dimensions are Python ints.
      dtype: a float dtype; None: the default float, float32 unless 64 bits are enabled.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape.

    Raises:
      ValueError: ``dtype`` is no float dtype.

    See also: ``exponential``, ``normal``, ``logistic``.

    >>> jax.random.laplace(jax.random.key(0), (2,))
    Array([-2.2569816, -3.1502788], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(laplace, out_sharding, key, shape, dtype)
    typed = single_key("laplace", key)
    return _laplace(typed, canonical_shape(shape), float_dtype(dtype, "laplace"))


@jitted("shape", "dtype")
def _laplace(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    low = np.array(-1.0 + dtypes.finfo(dtype).epsneg, dtype)[()]
    values = _uniform(key, shape, dtype, low, 1.0)
    return lax.mul(lax.sign(values), lax.log1p(lax.neg(lax.abs(values))))


def logistic(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *,
             out_sharding: Any = None) -> Array:
    """Logistic floats, whose cumulative distribution is the sigmoid.

    >>> jax.random.logistic(jax.random.key(0), (2,))
    Array([2.896376 , 3.8217716], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(logistic, out_sharding, key, shape, dtype)
    typed = single_key("logistic", key)
    return _logistic(typed, canonical_shape(shape), float_dtype(dtype, "logistic"))


@jitted("shape", "dtype")
def _logistic(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    values = _uniform_positive(key, shape, dtype)
    return lax.sub(lax.log(values), lax.log1p(lax.neg(values)))


def cauchy(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *,
           out_sharding: Any = None) -> Array:
    """Cauchy floats, with density ``1 / (pi * (1 + x**2))``.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      shape: of the result; its dimensions are Python ints.
      dtype: a float dtype; None: the default float, float32 unless 64 bits are enabled.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape.

    Raises:
      ValueError: ``dtype`` is no float dtype.

    See also: ``t``, ``normal``, ``laplace``.

    >>> jax.random.cauchy(jax.random.key(0), (2,))
    Array([ 6.0274944, 14.837895 ], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(cauchy, out_sharding, key, shape, dtype)
    typed = single_key("cauchy", key)
    return _cauchy(typed, canonical_shape(shape), float_dtype(dtype, "cauchy"))


@jitted("shape", "dtype")
def _cauchy(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    low = np.array(dtypes.finfo(dtype).eps, dtype)[()]
    values = _uniform(key, shape, dtype, low, 1.0, dtype == dtypes.float32)
    return lax.tan(lax.mul(np.array(math.pi, dtype)[()],
                           lax.sub(values, np.array(0.5, dtype)[()])))


def pareto(key: ArrayLike, b: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
           out_sharding: Any = None) -> Array:
    """Pareto floats with shape parameter ``b``, from 1 on.

    >>> jax.random.pareto(jax.random.key(0), 2.0, (2,))
    Array([4.3713155, 6.832648 ], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(pareto, out_sharding, key, b, shape, dtype)
    typed = single_key("pareto", key)
    dtype = float_dtype(dtype, "pareto", b)
    shape = result_shape(shape, np.shape(b))
    return lax.exp(_exponential(typed, shape, dtype) / as_float(b, dtype))


def weibull_min(key: ArrayLike, scale: ArrayLike, concentration: Any, shape: Any = (),
                dtype: DTypeLike | None = None) -> Array:
    """Weibull floats.

    >>> jax.random.weibull_min(jax.random.key(0), 1.0, 2.0, (2,))
    Array([1.7175937, 1.9604654], dtype=float32)
    """
    typed = single_key("weibull_min", key)
    dtype = float_dtype(dtype, "weibull_min")
    uniforms = _uniform(typed, canonical_shape(shape), dtype, 0, 1)
    power = as_float(1.0 / jnp.asarray(concentration), dtype)
    return jnp.power(-jnp.log1p(-uniforms), power) * as_float(scale, dtype)


def rayleigh(key: ArrayLike, scale: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
             out_sharding: Any = None) -> Array:
    """Rayleigh floats.

    >>> jax.random.rayleigh(jax.random.key(0), 2.0, (2,))
    Array([0.65575665, 0.41620055], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(rayleigh, out_sharding, key, scale, shape, dtype)
    typed = single_key("rayleigh", key)
    dtype = float_dtype(dtype, "rayleigh", scale)
    shape = result_shape(shape, np.shape(scale))
    uniforms = _uniform(typed, shape, dtype, 0.0, 1.0)
    return jnp.broadcast_to(as_float(scale, dtype), shape) * jnp.sqrt(
        jnp.log(uniforms) * np.array(-2, dtype)[()])


def triangular(key: ArrayLike, left: Any, mode: Any, right: Any, shape: Any = None,
               dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Triangular floats between ``left`` and ``right``, with the peak at ``mode``.

    >>> jax.random.triangular(jax.random.key(0), 0.0, 0.5, 1.0, (2,))
    Array([0.8382394, 0.8965106], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(triangular, out_sharding, key, left, mode, right, shape, dtype)
    typed = single_key("triangular", key)
    dtype = float_dtype(dtype, "triangular", left, mode, right)
    shape = result_shape(shape, np.shape(left), np.shape(mode), np.shape(right))
    left, mode, right = (jnp.broadcast_to(as_float(x, dtype), shape) for x in (left, mode, right))
    turn = (mode - left) / (right - left)
    uniforms = _uniform(typed, shape, dtype, 0.0, 1.0)
    rising = left + jnp.sqrt(uniforms * (right - left) * (mode - left))
    falling = right - jnp.sqrt((1.0 - uniforms) * (right - left) * (right - mode))
    return jnp.where(uniforms < turn, rising, falling)
