"""Normal floats, also truncated ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._higher_order.constraints import with_out_sharding
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives.convert import convert_element_type
from maxjax.numpy._promotion import canonical_shape
from maxjax.random._arguments import as_float, float_dtype, result_shape, unstack
from maxjax.random._keys import jitted, single_key, split_typed
from maxjax.random._uniform import _uniform


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
