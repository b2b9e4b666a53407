"""Uniform bits, floats and integers, and Bernoulli trials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._higher_order.constraints import with_out_sharding
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives.convert import bitcast_convert_type_p, convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.generators import defined_generators
from maxjax._primitives.layout import reshape
from maxjax._primitives.random_bits import multiply_add, random_bits_p
from maxjax._primitives.slicing import slice_in_dim
from maxjax.numpy._promotion import canonical_shape
from maxjax.random import _defined
from maxjax.random._arguments import (
    as_float,
    float_dtype,
    result_shape,
    unstack,
    widened,
    widened_or_scalar,
)
from maxjax.random._keys import jitted, partitionable, single_key, split_typed


def bits(key: ArrayLike, shape: Sequence[int] = (), dtype: Any = None, *,
         out_sharding: Any = None) -> Array:
    """Random unsigned integers, uniform over the dtype's range.

    Raises:
      ValueError: ``dtype`` is not an unsigned integer.

    >>> jax.random.bits(jax.random.key(0), (2,))
    Array([4070199207, 4202968722], dtype=uint32)
    """
    if out_sharding is not None:
        return with_out_sharding(bits, out_sharding, key, shape, dtype)
    dtype = dtypes.canonical(dtypes.uint64) if dtype is None else dtypes.argument(dtype, "bits")
    if not dtypes.is_unsigned(dtype):
        raise ValueError(
            f"dtype argument to `bits` must be an unsigned int dtype, got {dtype.name}")
    typed = single_key("bits", key)
    return _bits(typed, dtype.itemsize * 8, canonical_shape(shape))


def _bits(key: Any, width: int, shape: tuple[int, ...]) -> Any:
    generator = defined_generators.get(key.dtype)
    if generator is not None:
        return _defined.bits(generator, key, width, shape)
    return random_bits_p.bind(
        key, bit_width=width, shape=shape, partitionable=partitionable())


def uniform(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None,
            minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0, *, out_sharding: Any = None) -> Array:
    """Uniform floats in ``[minval, maxval)``.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      shape: of the result; its dimensions are Python ints.
      dtype: a float dtype; None: the default float, float32 unless 64 bits are enabled.
      minval, maxval: the bounds; arrays broadcast to ``shape``.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape. The numbers are those of JAX, bit by bit.

    Raises:
      ValueError: ``dtype`` is no float dtype.
      TypeError: ``key`` is no key, or a size is negative.

    See also: ``randint``, ``normal``, ``bits``, ``bernoulli``.

    >>> jax.random.uniform(jax.random.key(0), (2,))
    Array([0.947667 , 0.9785799], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(uniform, out_sharding, key, shape, dtype, minval, maxval)
    typed = single_key("uniform", key)
    dtype = float_dtype(dtype, "uniform")
    if (type(minval) is float and minval == 0.0 and type(maxval) is float and maxval == 1.0
            and not isinstance(typed, Tracer)):
        return _unit_uniform(typed, canonical_shape(shape), dtype)
    return _uniform(typed, canonical_shape(shape), dtype, minval, maxval,
                    _fused(minval, maxval, dtype))


def _fused(minval: Any, maxval: Any, dtype: Any) -> bool:
    """Whether it matters that XLA rounds ``floats * (maxval - minval) + minval`` only once."""
    if dtype != dtypes.float32:
        return False
    if not isinstance(minval, (int, float)) or not isinstance(maxval, (int, float)):
        return True
    span = float(np.subtract(maxval, minval, dtype=np.float32))
    return minval != 0 and abs(math.frexp(span)[0]) != 0.5


@jitted("shape", "dtype")
def _unit_uniform(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """An eager call without bounds. A trace has JAX's equations, with bounds, instead."""
    return _unit_floats(key, shape, dtype)


def _unit_floats(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Uniform floats in ``[0, 1)``."""
    info = dtypes.finfo(dtype)
    mantissa, width = info.nmant, dtype.itemsize * 8
    # Random bits for the mantissa of a number in [1, 2).
    random_width = 8 if mantissa < 8 else width
    random = _bits(key, random_width, shape)
    unsigned = np.dtype(f"uint{width}")
    if random_width != width:
        random = convert_element_type(random, unsigned)
    one = np.ones((), dtype).view(unsigned)[()]
    mantissa_bits = lax.bitwise_or(
        lax.shift_right_logical(random, np.array(random_width - mantissa, unsigned)[()]), one)
    return lax.sub(bitcast_convert_type_p.bind(mantissa_bits, new_dtype=dtype),
                   np.ones((), dtype)[()])


@jitted("shape", "dtype", "fused")
def _uniform(key: Any, shape: tuple[int, ...], dtype: Any, minval: Any, maxval: Any,
             fused: bool = False) -> Any:
    low, high = as_float(minval, dtype), as_float(maxval, dtype)
    rank = len(shape)
    low, high = widened(low, rank), widened(high, rank)
    floats = _unit_floats(key, shape, dtype)
    span = lax.sub(high, low)
    scaled = (multiply_add(floats, span, low) if fused
              else lax.add(lax.mul(floats, span), low))
    return lax.max(low, lax.reshape(scaled, shape))


def randint(key: ArrayLike, shape: Sequence[int], minval: ArrayLike, maxval: ArrayLike,
            dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Uniform integers in ``[minval, maxval)``.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      shape: of the result; its dimensions are Python ints.
      minval, maxval: the bounds, integers that broadcast to ``shape``. Floats are cut off.
      dtype: an integer dtype; None: the default one.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape; of ``minval`` where ``maxval`` is not above it.

    Raises:
      TypeError: ``dtype`` is not an integer.
      ValueError: the bounds do not broadcast to the shape.

    See also: ``uniform``, ``choice``, ``permutation``, ``bits``.

    >>> jax.random.randint(jax.random.key(0), (3,), 0, 10)
    Array([9, 0, 2], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(randint, out_sharding, key, shape, minval, maxval, dtype)
    typed = single_key("randint", key)
    dtype = dtypes.canonical(dtypes.int64) if dtype is None else dtypes.argument(dtype, "randint")
    if not dtypes.is_integer(dtype):
        raise TypeError(f"randint only accepts integer dtypes, got {dtype.name}")
    shape = canonical_shape(shape)
    if dtype.itemsize < 4 and dtype not in dtypes.SMALL_INTS:
        info = np.iinfo(dtype)
        low = jnp.clip(minval, int(info.min), int(info.max))
        high = jnp.clip(maxval, int(info.min), int(info.max) + 1)
        return convert_element_type(_randint(typed, shape, low, high, dtypes.int32), dtype)
    return _randint(typed, shape, minval, maxval, dtype)


@jitted("shape", "dtype")
def _randint(key: Any, shape: tuple[int, ...], minval: Any, maxval: Any, dtype: Any) -> Any:
    low, high = installed.runtime.operand(minval), installed.runtime.operand(maxval)
    # Floats are truncated; out-of-range values saturate.
    low, high = (value if dtypes.is_integer(value.dtype) else convert_element_type(value, dtype)
                 for value in (low, high))
    info = np.iinfo(dtype)
    result_shape(shape, low.shape, high.shape)
    largest = _clip_to(np.array(info.max, dtype), high.dtype)
    # The span of a range that ends at the dtype's greatest value does not fit in the dtype.
    past_end = lax.gt(high, largest)
    low, high = (convert_element_type(_clip_to_info(value, info), dtype) for value in (low, high))
    rank = len(shape)
    low, high = widened(low, rank), widened(high, rank)
    width = dtype.itemsize * 8
    first, second = unstack(split_typed(key))
    higher, lower = _bits(first, width, shape), _bits(second, width, shape)
    unsigned = np.dtype(f"uint{width}")
    one = np.ones((), unsigned)[()]
    span = convert_element_type(lax.sub(high, low), unsigned)
    span = lax.select_n(lax.le(high, low), span, full(span.shape, 1, unsigned))
    past_end = lax.bitwise_and(widened(past_end, rank) if rank else past_end, lax.gt(high, low))
    span = lax.select_n(jnp.broadcast_to(past_end, span.shape), span, lax.add(span, one))
    # (higher * 2**width + lower) mod span, with 2**width mod span by squares of half of it.
    half = lax.rem(np.array(1 << (width // 2), unsigned)[()], span)
    multiplier = lax.rem(lax.mul(half, half), span)
    offset = lax.add(lax.mul(lax.rem(higher, span), multiplier), lax.rem(lower, span))
    offset = lax.rem(offset, span)
    return lax.add(low, convert_element_type(offset, dtype))


def _clip_to(value: np.ndarray, dtype: Any) -> Any:
    info = np.iinfo(dtype)
    return np.array(min(max(int(value), int(info.min)), int(info.max)), dtype)[()]


def _clip_to_info(value: Any, info: Any) -> Any:
    own = np.iinfo(value.dtype)
    low = np.array(max(int(own.min), int(info.min)), value.dtype)[()]
    high = np.array(min(int(own.max), int(info.max)), value.dtype)[()]
    return lax.min(high, lax.max(low, value))


def bernoulli(key: ArrayLike, p: ArrayLike = 0.5, shape: Any = None, mode: str = "low", *,
              out_sharding: Any = None) -> Array:
    """Booleans that are true with probability ``p``.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      p: floats from 0 to 1.
      shape: of the result, to which ``p`` broadcasts; None: that of ``p``.
      mode: "high" draws twice as many bits, so that very small ``p`` are accurate.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of booleans.

    Raises:
      TypeError: ``p`` is not floating, even where it is 0 or 1.
      ValueError: there is no such ``mode``, or ``p`` does not broadcast to the shape.

    See also: ``uniform``, ``categorical``, ``binomial``.

    >>> jax.random.bernoulli(jax.random.key(0), 0.3, (4,))
    Array([False, False, False, False], dtype=bool)
    """
    if out_sharding is not None:
        return with_out_sharding(bernoulli, out_sharding, key, p, shape, mode)
    if mode not in ("high", "low"):
        raise ValueError(f"got {mode=}, expected 'high' or 'low'")
    dtype = jnp.result_type(p)
    if not dtypes.is_floating(dtype):
        raise TypeError(
            f"bernoulli probability `p` must have a floating dtype, got {dtype.name}.")
    typed = single_key("bernoulli", key)
    if shape is not None:
        shape = canonical_shape(shape)
    return _bernoulli(typed, as_float(p, dtype), result_shape(shape, np.shape(p)), mode)


@jitted("shape", "mode")
def _bernoulli(key: Any, p: Any, shape: tuple[int, ...], mode: str) -> Any:
    dtype = p.dtype
    if mode == "low":
        return lax.lt(_uniform(key, shape, dtype, 0.0, 1.0), widened_or_scalar(p, shape))
    both = _uniform(key, (2, *shape), dtype, 0.0, 1.0)
    first, second = (reshape(slice_in_dim(both, i, i + 1, 0), shape) for i in (0, 1))
    epsilon = np.array(dtypes.finfo(dtype).eps, dtype)[()]
    return lax.lt(lax.mul(second, epsilon), lax.sub(widened_or_scalar(p, shape), first))


def rademacher(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *,
               out_sharding: Any = None) -> Array:
    """-1 or 1, each with probability 1/2.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      shape: of the result; its dimensions are Python ints.
      dtype: None: the default integer type.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape.

    See also: ``bernoulli``, ``randint``.

    >>> jax.random.rademacher(jax.random.key(0), (2,))
    Array([-1, -1], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(rademacher, out_sharding, key, shape, dtype)
    typed = single_key("rademacher", key)
    dtype = dtypes.canonical(dtypes.int64) if dtype is None else dtypes.argument(
        dtype, "rademacher")
    return _rademacher(typed, canonical_shape(shape), dtype)


@jitted("shape", "dtype")
def _rademacher(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    heads = _bernoulli(key, as_float(0.5, dtypes.canonical(dtypes.float64)), shape, "low")
    heads = convert_element_type(heads, dtype)
    if dtypes.is_bool(dtype):      # both are true
        return full(shape, True, dtype)
    return lax.sub(lax.mul(np.array(2, dtype)[()], heads), np.array(1, dtype)[()])
