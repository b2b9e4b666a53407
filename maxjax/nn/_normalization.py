"""Normalization along axes: softmax and related functions, standardize, one_hot."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, overload

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import config, dtypes
from maxjax._base.errors import ShardingTypeError
from maxjax._base.shardings import NamedSharding
from maxjax._base.specs import PartitionSpec
from maxjax._higher_order.constraints import over_context, with_out_sharding
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._higher_order.jit_function import make_jit
from maxjax._ir.dimensions import size_index
from maxjax._ir.trace import Array, aval_of
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.convert import stop_gradient_p
from maxjax.lax._operands import canonical_axis
from maxjax.numpy._at_once import all_at_once
from maxjax.numpy._promotion import canonical_axes, check_arraylike, concrete, promote_inexact


def _jit(name: str, *static: str) -> Any:
    def decorate(function: Any) -> Any:
        function.__name__ = function.__qualname__ = name
        return make_jit(function, static_argnames=static)
    return decorate


def softmax(x: ArrayLike, axis: Any = -1, where: ArrayLike | None = None) -> Array:
    """``exp(x) / sum(exp(x))`` along one or more axes.

    Args:
      x: an array; integers become floats.
      axis: an axis, or a tuple of them; None: all.
      where: the elements to include; the others give 0.

    Returns:
      An array of floats of the shape of ``x``, whose sum is 1. The maximum is subtracted first, so
      that nothing overflows; NaN where the maximum is infinite.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      ValueError: there is no such axis.

    See also: ``log_softmax``, ``sigmoid``, ``logsumexp``, ``jax.random.categorical``.

    >>> jax.nn.softmax(jnp.array([0.0, 1.0, 2.0]))
    Array([0.09003057, 0.24472848, 0.66524094], dtype=float32)
    """
    check_arraylike("softmax", x)
    x = _as_broad_as(where, jnp.asarray(x))
    if config.softmax_custom_jvp.value:
        return _softmax_with_jvp(x, axis, where)
    return _softmax(x, axis, where, stop_gradient_p.bind)


def _as_broad_as(where: Any, x: Any) -> Any:
    """The operand in the shape that it has beside a mask, in which its axes are counted."""
    return x if where is None else jnp.broadcast_to(
        x, jnp.broadcast_shapes(x.shape, jnp.shape(where)))


def _softmax(x: Any, axis: Any, where: Any, constant: Callable[[Any], Any]) -> Any:
    """``constant`` is applied to the largest element, which does not affect the result."""
    largest = jnp.max(x, axis, where=where, initial=-jnp.inf, keepdims=True)
    kept = x if where is None else jnp.where(where, x, -jnp.inf)
    powers = jnp.exp(kept - constant(largest))
    result = powers / jnp.sum(powers, axis, where=where, keepdims=True)
    return result if where is None else jnp.where(where, result, 0)


@partial(custom_jvp, nondiff_argnums=(1,))
def _softmax_with_jvp(x: Any, axis: Any, where: Any) -> Any:
    return _softmax(x, axis, where, lambda largest: largest)


@_softmax_with_jvp.defjvp
def _softmax_jvp(axis: Any, primals: Any, tangents: Any) -> Any:
    (x, where), (tangent, _) = primals, tangents
    y = _softmax_with_jvp(x, axis, where)
    return y, y * (tangent - (y * tangent).sum(axis, where=where, keepdims=True))


@_jit("log_softmax", "axis")
def _log_softmax(x: Any, axis: Any, where: Any) -> Any:
    x = _as_broad_as(where, jnp.asarray(x))
    largest = jnp.max(x, axis, where=where, initial=-jnp.inf, keepdims=True)
    kept = x if where is None else jnp.where(where, x, -jnp.inf)
    shifted = kept - stop_gradient_p.bind(largest)
    logarithm = jnp.log(jnp.sum(jnp.exp(shifted), axis, where=where, keepdims=True))
    result = shifted - logarithm
    return result if where is None else jnp.where(where, result, -jnp.inf)


def log_softmax(x: ArrayLike, axis: Any = -1, where: ArrayLike | None = None) -> Array:
    """``log(softmax(x))``, without overflow.

    Args:
      x: an array; integers become floats.
      axis: an axis, or a tuple of them; None: all.
      where: the elements to include; the others give minus infinity.

    Returns:
      An array of floats of the shape of ``x``.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      ValueError: there is no such axis.

    See also: ``softmax``, ``logsumexp``, ``log_sigmoid``, ``jax.random.categorical``.

    >>> jax.nn.log_softmax(jnp.array([0.0, 1.0, 2.0]))
    Array([-2.407606  , -1.4076059 , -0.40760595], dtype=float32)
    """
    check_arraylike("log_softmax", x)
    return _log_softmax(x, axis, where)


@overload
def logsumexp(a: ArrayLike, axis: int | Sequence[int] | None = None, b: ArrayLike | None = None,
              keepdims: bool = False,
              return_sign: Literal[False] = False, where: ArrayLike | None = None) -> Array: ...
@overload
def logsumexp(a: ArrayLike, axis: int | Sequence[int] | None = None, b: ArrayLike | None = None,
              keepdims: bool = False,
              *, return_sign: Literal[True], where: ArrayLike | None = None
              ) -> tuple[Array, Array]: ...
@overload
def logsumexp(a: ArrayLike, axis: int | Sequence[int] | None = None, b: ArrayLike | None = None,
              keepdims: bool = False,
              return_sign: bool = False, where: ArrayLike | None = None
              ) -> Array | tuple[Array, Array]: ...


def logsumexp(a: ArrayLike, axis: int | Sequence[int] | None = None, b: ArrayLike | None = None,
              keepdims: bool = False, return_sign: bool = False,
              where: ArrayLike | None = None) -> Any:
    """``log(sum(b * exp(a)))`` along axes, without overflow.

    Args:
      a: an array; integers become floats.
      axis: an axis, or a tuple of them; None: all.
      b: factors that broadcast, of either sign.
      keepdims: whether the reduced axes stay, with size 1.
      return_sign: also return the sign of the sum, and the logarithm of its absolute value.
      where: the elements to include.

    Returns:
      An array of floats without the reduced axes, or with ``return_sign`` the pair of it and the
      sign; minus infinity for no elements. NaN for a negative sum of real numbers without
      ``return_sign``.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      ValueError: there is no such axis.

    See also: ``jax.nn.softmax``, ``jax.nn.log_softmax``, ``jnp.logaddexp``.

    >>> jax.nn.logsumexp(jnp.zeros(2))
    Array(0.6931472, dtype=float32)
    """
    check_arraylike("logsumexp", a)
    if where is not None:      # excluded elements must not overflow: their derivative would be NaN
        a = jnp.where(where, a, 0)
    if b is None:
        array = promote_inexact("logsumexp", a)[0]
        factor = None
    else:
        array, factor = promote_inexact("logsumexp", a, b)
        array = jnp.where(factor != 0, array, -jnp.inf)
        array, factor = jnp.broadcast_arrays(array, factor)
    axes = canonical_axes(axis, array.ndim)
    largest = jnp.max(array.real if dtypes.is_complex(array.dtype) else array, axes,
                      keepdims=keepdims, where=where, initial=-jnp.inf)
    largest = stop_gradient_p.bind(
        lax.select(jnp.isfinite(largest), largest, lax.full_like(largest, 0)))
    shift = largest if keepdims else jnp.expand_dims(largest, axes)
    # Without promotion: the derivative of a weakly typed array has no weak type, as in JAX.
    powers = jnp.exp(lax.sub(array, shift.astype(array.dtype)))
    if factor is not None:
        powers = powers * factor
    total = jnp.sum(powers, axes, keepdims=keepdims, where=where)
    sign = jnp.sign(total)
    if return_sign or not dtypes.is_complex(total.dtype):
        total = jnp.abs(total)
    result = jnp.log(total) + largest.astype(total.dtype)
    if return_sign:
        return result, sign
    if factor is not None and not dtypes.is_complex(result.dtype):
        result = jnp.where(sign < 0, jnp.array(np.nan, result.dtype), result)
    return result


def logmeanexp(x: ArrayLike, axis: int | Sequence[int] | None = None,
               where: ArrayLike | None = None, keepdims: bool = False) -> Array:
    """``log(mean(exp(x)))`` along axes.

    >>> jax.nn.logmeanexp(jnp.array([0.0, 1.0, 2.0]))
    Array(1.3089936, dtype=float32)
    """
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    shape = np.shape(x)
    if where is None:
        count = math.prod(shape[dim] for dim in canonical_axes(axis, len(shape)))
        return total - np.array(math.log(count) if count else -np.inf, total.dtype)
    count = jnp.sum(jnp.broadcast_to(where, shape), axis=axis, keepdims=keepdims)
    return total - jnp.log(count.astype(total.dtype))


# The default of standardize; a number that is given is another object, even of this value.
_EPSILON = 1e-5


@_jit("standardize", "axis", "algorithm")
def _standardize(x: Any, axis: Any, mean: Any, variance: Any, where: Any, algorithm: str,
                 epsilon: Any = _EPSILON) -> Any:
    x = promote_inexact("standardize", x)[0]
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        if algorithm == "fast":
            # E[x**2] - E[x]**2, which rounding may make negative.
            square = jnp.mean(jnp.square(x), axis, keepdims=True, where=where)
            variance = jnp.clip(square - jnp.square(mean), min=0)
        else:
            variance = jnp.mean(jnp.square(x - mean), axis, keepdims=True, where=where)
    return jnp.subtract(x, mean) * lax.rsqrt(jnp.asarray(variance) + epsilon)


def standardize(x: ArrayLike, axis: Any = -1, mean: Any = None, variance: Any = None,
                epsilon: Any = _EPSILON, where: ArrayLike | None = None, *,
                algorithm: str = "fast") -> Array:
    """``(x - mean) / sqrt(variance + epsilon)`` along axes.

    Args:
      x: an array.
      axis: an axis, or a tuple of them.
      mean, variance: those of ``x``, if known already.
      epsilon: added to the variance.
      where: the elements to include.
      algorithm: how the variance is computed where it is not given, as in JAX: "fast", from the
        mean of the squares, or "stable", from the distances.

    Returns:
      An array of floats of the shape of ``x``.

    Raises:
      ValueError: there is no such ``algorithm``.
      IndexError: there is no such axis.
      TypeError: ``x`` is no array or number.

    See also: ``softmax``, ``jnp.mean``, ``jnp.var``.

    >>> jax.nn.standardize(jnp.array([0.0, 1.0, 2.0]))
    Array([-1.2247356,  0.       ,  1.2247356], dtype=float32)
    """
    check_arraylike("standardize", x)
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"Unknown algorithm '{algorithm}'. Expected 'fast' or 'stable'.")
    # A default epsilon is no operand of the call in a jaxpr.
    given = {} if epsilon is _EPSILON else {"epsilon": epsilon}
    return _standardize(x, axis, mean, variance, where, algorithm, **given)


@_jit("_one_hot", "num_classes", "dtype", "axis")
def _one_hot(x: Any, num_classes: int, dtype: Any, axis: int) -> Any:
    x = jnp.asarray(x)
    position = axis if axis >= 0 else axis + x.ndim + 1
    shape = [1] * (x.ndim + 1)
    shape[position] = num_classes
    wide = jnp.expand_dims(x, position)
    return (wide == lax.broadcasted_iota(x.dtype, shape, position)).astype(dtype)


def _check_one_hot(x: Array, axis: int, out_sharding: Any) -> None:
    """Checks that indices lie as the result is to lie along all axes but the new one.

    Raises:
      ShardingTypeError: they do not.
      NotImplementedError: the result would be unreduced or reduced.
    """
    sharding = over_context(out_sharding) if isinstance(out_sharding, PartitionSpec) else (
        out_sharding)
    if not isinstance(sharding, NamedSharding) or sharding.mesh.empty:
        return
    spec = sharding.spec
    if spec.unreduced or spec.reduced:
        raise NotImplementedError("the result of one_hot is neither unreduced nor reduced, but "
                                  f"out_sharding.spec={spec}")
    position = canonical_axis(axis, x.ndim + 1)
    rest = [*spec.partitions[:position], *spec.partitions[position + 1:]]
    asked = PartitionSpec(*rest, *[None] * (x.ndim - len(rest)))
    own = aval_of(x).sharding.spec
    if asked != own:
        raise ShardingTypeError(
            "The input part of spec in out_sharding should match the spec of `x`. Got "
            f"typeof(x).spec={own} and out_sharding.spec={asked}")


def one_hot(x: Any, num_classes: int, *, dtype: Any = None, axis: int = -1,
            out_sharding: Any = None) -> Array:
    """1 at each index of ``x`` along a new axis, 0 elsewhere; all 0 for indices out of range.

    Args:
      x: indices.
      num_classes: the size of the new axis.
      dtype: of the result; the default float if None.
      axis: where the new axis stands in the result.
      out_sharding: how the result is to lie, of which ``x`` decides all but the new axis.

    Returns:
      An array of ``x``'s shape with the new axis. It has no derivative by the indices.

    Raises:
      ShardingTypeError: ``x`` lies otherwise.
      NotImplementedError: the result would be unreduced or reduced.

    See also: ``jnp.eye``, ``jnp.where``, ``jnp.take``.

    >>> jax.nn.one_hot(jnp.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    if out_sharding is not None:
        _check_one_hot(jnp.asarray(x), axis, out_sharding)
        return with_out_sharding(one_hot, out_sharding, x, num_classes, dtype=dtype, axis=axis)
    x = jnp.asarray(x)
    if not jnp.issubdtype(x.dtype, jnp.integer):
        warnings.warn(f"jax.nn.one_hot input should be integer-typed; got dtype={x.dtype}",
                      DeprecationWarning, stacklevel=2)
    number = size_index(concrete(
        num_classes, "The error arose in jax.nn.one_hot argument `num_classes`."))
    kind = dtypes.canonical(dtypes.float64) if dtype is None else jnp.dtype(dtype)
    position = canonical_axis(axis, np.ndim(x) + 1)
    return _one_hot(x, number, dtypes.canonical(kind), position)


all_at_once(globals())
