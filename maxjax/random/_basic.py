"""Samplers that are arithmetic on uniform bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import config, dtypes
from maxjax._higher_order.constraints import with_out_sharding
from maxjax._ir import dimensions
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.convert import bitcast_convert_type_p, convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.generators import defined_generators
from maxjax._primitives.layout import reshape, squeeze_p
from maxjax._primitives.random_bits import multiply_add, random_bits_p
from maxjax._primitives.slicing import slice_in_dim, slice_p
from maxjax.numpy._promotion import canonical_shape
from maxjax.random import _defined
from maxjax.random._keys import jitted, partitionable, single_key, split_typed


def float_dtype(dtype: Any, name: str) -> Any:
    """The dtype of a sampler's result; the default float if None.

    Raises:
      ValueError: it is not a float.
    """
    dtype = dtypes.canonical(dtypes.float64) if dtype is None else dtypes.argument(dtype, name)
    if not dtypes.is_floating(dtype):
        raise ValueError(f"dtype argument to `{name}` must be a float dtype, got {dtype.name}")
    return dtype


def int_dtype(dtype: Any, name: str) -> Any:
    dtype = dtypes.canonical(dtypes.int64) if dtype is None else dtypes.argument(dtype, name)
    if not dtypes.is_integer(dtype):
        raise ValueError(f"dtype argument to `{name}` must be an int dtype, got {dtype.name}")
    return dtype


def result_shape(shape: Any, *others: tuple[int, ...]) -> tuple[int, ...]:
    """The requested shape, to which parameters must broadcast; theirs if None.

    Raises:
      ValueError: they do not broadcast.
    """
    if shape is None:
        return broadcast_shapes(*others)
    shape = canonical_shape(shape)
    if broadcast_shapes(shape, *others) != shape:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={[shape, *others]}")
    return shape


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    for shape in shapes:
        if any(type(size) is int and size < 0 for size in shape):
            raise TypeError("Only non-negative indices are allowed when broadcasting static "
                            f"shapes, but got shape {shape}.")
    try:
        return tuple(dimensions.broadcast_shapes(*shapes))
    except ValueError:
        raise ValueError(
            f"Incompatible shapes for broadcasting: shapes={list(shapes)}") from None


def as_float(value: Any, dtype: Any) -> Any:
    """A parameter as a strong array of ``dtype``."""
    if isinstance(value, (bool, int, float, np.ndarray, np.generic)):
        return installed.runtime.operand(np.asarray(value).astype(dtype))
    return convert_element_type(installed.runtime.operand(value), dtype)


def as_floats(*values: Any) -> list[Any]:
    """Parameters as arrays of their common floating dtype, each with its own shape."""
    dtype = jnp.result_type(*values)
    if not dtypes.is_inexact(dtype):
        dtype = dtypes.canonical(dtypes.float64)
    return [as_float(value, dtype) for value in values]


def unstack(keys: Any) -> list[Any]:
    """The keys in a 1-D array."""
    return [squeeze_p.bind(slice_p.bind(keys, start_indices=(i,), limit_indices=(i + 1,),
                                        strides=(1,)), dimensions=(0,))
            for i in range(keys.shape[0])]


def _wide(value: Any, rank: int) -> Any:
    """A parameter with dimensions of size 1 before its own."""
    shape = (1,) * (rank - value.ndim) + value.shape
    if shape == value.shape:
        return value
    return broadcast_in_dim(value, shape, tuple(range(rank - value.ndim, rank)))


# --- bits and uniform -----------------------------------------------------------------------------

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
    low, high = _wide(low, rank), _wide(high, rank)
    floats = _unit_floats(key, shape, dtype)
    span = lax.sub(high, low)
    scaled = (multiply_add(floats, span, low) if fused
              else lax.add(lax.mul(floats, span), low))
    return lax.max(low, reshape(scaled, shape))


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
    low, high = _wide(low, rank), _wide(high, rank)
    width = dtype.itemsize * 8
    first, second = unstack(split_typed(key))
    higher, lower = _bits(first, width, shape), _bits(second, width, shape)
    unsigned = np.dtype(f"uint{width}")
    one = np.ones((), unsigned)[()]
    span = convert_element_type(lax.sub(high, low), unsigned)
    span = lax.select_n(lax.le(high, low), span, full(span.shape, 1, unsigned))
    past_end = lax.bitwise_and(_wide(past_end, rank) if rank else past_end, lax.gt(high, low))
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


# --- normal ---------------------------------------------------------------------------------------

def normal(key: ArrayLike, shape: Sequence[int] = (), dtype: DTypeLike | None = None, *,
           out_sharding: Any = None) -> Array:
    """Standard normal floats, or complex numbers of unit variance.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      shape: of the result; its dimensions are Python ints.
      dtype: a float or complex dtype; None: the default float.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape; for a mean and a deviation: ``mean + deviation * normal(key, shape)``.

    Raises:
      ValueError: ``dtype`` is neither floating nor complex.
      TypeError: ``key`` is no key, or a size is negative.

    See also: ``truncated_normal``, ``multivariate_normal``, ``uniform``,
    ``jax.scipy.stats.norm.logpdf``.

    >>> jax.random.normal(jax.random.key(0), (2,))
    Array([1.6226422, 2.0252647], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(normal, out_sharding, key, shape, dtype)
    typed = single_key("normal", key)
    return _normal(typed, canonical_shape(shape), normal_dtype(dtype))


def normal_dtype(dtype: Any) -> np.dtype:
    """The dtype of normal numbers.

    Raises:
      ValueError: the dtype is not supported.
    """
    if dtype is None:
        return dtypes.canonical(dtypes.float64)
    dtype = dtypes.argument(dtype, "normal")
    if not dtypes.is_inexact(dtype):
        raise ValueError(
            f"dtype argument to `normal` must be a float or complex dtype, got {dtype.name}")
    return dtype


@jitted("shape", "dtype")
def _normal(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    if not dtypes.is_complex(dtype):
        return _normal_real(key, shape, dtype)
    real = dtypes.real_dtype(dtype)
    first, second = unstack(split_typed(key))
    value = lax.add(
        convert_element_type(_normal_real(first, shape, real), dtype),
        lax.mul(np.array(1j, dtype)[()],
                convert_element_type(_normal_real(second, shape, real), dtype)))
    return lax.div(value, np.array(np.array(np.sqrt(2), real), dtype)[()])


@jitted("shape", "dtype")
def _normal_real(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    low = np.nextafter(np.array(-1.0, dtype), np.array(0.0, dtype), dtype=dtype)[()]
    values = _uniform(key, shape, dtype, low, np.ones((), dtype)[()])
    return lax.mul(np.array(np.sqrt(2), dtype)[()], lax.erf_inv(values))


def truncated_normal(key: ArrayLike, lower: ArrayLike, upper: ArrayLike, shape: Any = None,
                     dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Standard normal floats conditioned on ``lower < x < upper``.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      lower, upper: the bounds, floats that broadcast to ``shape``.
      shape: of the result; None: the common shape of the bounds.
      dtype: a float dtype; None: the default float, float32 unless 64 bits are enabled.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape.

    Raises:
      ValueError: ``dtype`` is no float dtype, or the bounds do not broadcast to the shape.

    See also: ``normal``, ``uniform``, ``jax.nn.initializers.truncated_normal``.

    >>> jax.random.truncated_normal(jax.random.key(0), -1.0, 1.0, (2,))
    Array([0.8618594, 0.9412883], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(truncated_normal, out_sharding, key, lower, upper, shape, dtype)
    typed = single_key("truncated_normal", key)
    dtype = float_dtype(dtype, "truncated_normal")
    shape = result_shape(shape, np.shape(lower), np.shape(upper))
    return _truncated_normal(typed, lower, upper, shape, dtype)


@jitted("shape", "dtype")
def _truncated_normal(key: Any, lower: Any, upper: Any, shape: tuple[int, ...],
                      dtype: Any) -> Any:
    lower, upper = as_float(lower, dtype), as_float(upper, dtype)
    root = np.array(np.sqrt(2), dtype)[()]
    low, high = (lax.erf(lax.div(bound, root)) for bound in (lower, upper))
    values = lax.mul(root, lax.erf_inv(
        _uniform(key, shape, dtype, low, high, dtype == dtypes.float32)))
    infinity = np.array(np.inf, dtype)[()]
    # Rounding may have left the open interval.
    return jnp.clip(values, lax.nextafter(lax.stop_gradient(lower), infinity),
                    lax.nextafter(lax.stop_gradient(upper), -infinity))


# --- Bernoulli ------------------------------------------------------------------------------------

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
        return lax.lt(_uniform(key, shape, dtype, 0.0, 1.0), _wide_or_scalar(p, shape))
    both = _uniform(key, (2, *shape), dtype, 0.0, 1.0)
    first, second = (reshape(slice_in_dim(both, i, i + 1, 0), shape) for i in (0, 1))
    epsilon = np.array(dtypes.finfo(dtype).eps, dtype)[()]
    return lax.lt(lax.mul(second, epsilon), lax.sub(_wide_or_scalar(p, shape), first))


def _wide_or_scalar(value: Any, shape: tuple[int, ...]) -> Any:
    return value if not value.shape or value.shape == shape else _wide(value, len(shape))


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


# --- by inversion ---------------------------------------------------------------------------------

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
