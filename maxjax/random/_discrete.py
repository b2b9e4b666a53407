"""Distributions of integers: geometric, Poisson."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._higher_order.constraints import with_out_sharding
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.random_rejection import random_poisson_p
from maxjax.numpy._promotion import canonical_shape
from maxjax.random import _approximate
from maxjax.random._arguments import (
    as_float,
    broadcast_shapes,
    float_dtype,
    int_dtype,
    result_shape,
)
from maxjax.random._keys import jitted, partitionable, single_key
from maxjax.random._uniform import _uniform


def geometric(key: ArrayLike, p: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
              out_sharding: Any = None) -> Array:
    """The number of trials with success probability ``p`` up to the first success.

    >>> jax.random.geometric(jax.random.key(0), 0.3, (3,))
    Array([1, 1, 4], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(geometric, out_sharding, key, p, shape, dtype)
    typed = single_key("geometric", key)
    dtype = int_dtype(dtype, "geometric")
    shape = result_shape(shape, np.shape(p))
    return _geometric(typed, p, shape, dtype)


@jitted("shape", "dtype")
def _geometric(key: Any, p: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    p = jnp.asarray(p)
    if not jnp.issubdtype(p.dtype, jnp.floating):
        p = p.astype(float_dtype(None, "geometric"))
    p = convert_element_type(p, p.dtype)
    uniforms = _uniform(key, shape, p.dtype, 0.0, 1.0)
    uniforms = jnp.where(uniforms == 0, 1, uniforms)
    trials = jnp.floor(lax.log(uniforms) / jnp.broadcast_to(lax.log1p(-p), shape)) + 1
    return convert_element_type(trials, dtype)


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = None, *,
            method: str = "exact", out_sharding: Any = None) -> Array:
    """Poisson integers with mean ``lam``; -1 where that is NaN.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      lam: the mean, floats.
      shape: of the result, to which ``lam`` broadcasts; None: that of ``lam``.
      dtype: None: the default integer type.
      method: "exact", by rejection, or "approximate", without a loop.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape.

    Raises:
      NotImplementedError: "exact" with a key of another generator than "threefry2x32".
      ValueError: ``lam`` does not broadcast to the shape, or there is no such ``method``.

    See also: ``exponential``, ``gamma``, ``binomial``.

    >>> jax.random.poisson(jax.random.key(0), 2.0, (2,))
    Array([0, 0], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(poisson, out_sharding, key, lam, shape, dtype, method=method)
    typed = single_key("poisson", key)
    if _approximate.check_method("poisson", method):
        dtype = int_dtype(dtype, "poisson")
        sizes = canonical_shape(np.shape(lam) if shape is None else shape)
        if broadcast_shapes(np.shape(lam), sizes) != sizes:
            raise ValueError("lam shape must be broadcastable to shape argument; got lam.shape "
                             f"{np.shape(lam)}, shape {sizes}")
        return _approximate.poisson(typed, lam, sizes, dtype)
    if typed.dtype.impl != "threefry2x32":
        raise NotImplementedError("`poisson` is only implemented for the threefry2x32 RNG, not "
                                  f"{typed.dtype.tag}")
    dtype = int_dtype(dtype, "poisson")
    shape = result_shape(shape, np.shape(lam))
    means = as_float(jnp.broadcast_to(lam, shape), np.dtype(np.float32))
    return random_poisson_p.bind(typed, means, dtype=dtype, partitionable=partitionable())
