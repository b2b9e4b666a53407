"""Distributions derived from gamma and normal variates."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._higher_order.constraints import with_out_sharding
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives.random_bits import multiply_add
from maxjax._primitives.random_rejection import random_gamma_p
from maxjax.numpy._promotion import canonical_shape, promote_shapes
from maxjax.random import _approximate
from maxjax.random._arguments import (
    as_float,
    as_floats,
    broadcast_shapes,
    float_dtype,
    result_shape,
    unstack,
)
from maxjax.random._inversion import _exponential
from maxjax.random._keys import jitted, partitionable, single_key, split_typed
from maxjax.random._normal import _normal, normal_dtype
from maxjax.random._uniform import _rademacher, _uniform

# --- gamma and its kin ----------------------------------------------------------------------------

def gamma(key: Any, a: Any, shape: Any = None, dtype: Any = None, *,
          method: str = "exact", out_sharding: Any = None) -> Array:
    """Gamma floats with shape parameter ``a`` and scale 1.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      a: positive floats.
      shape: of the result, to which ``a`` broadcasts; None: that of ``a``.
      dtype: a float dtype; None: the default float, float32 unless 64 bits are enabled.
      method: "exact", by rejection, or "approximate", without a loop.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape. It is differentiable by ``a``.

    Raises:
      ValueError: ``dtype`` is no float dtype, there is no such ``method``, or ``a`` does not
        broadcast.

    See also: ``loggamma``, ``beta``, ``chisquare``, ``exponential``, ``dirichlet``.

    >>> jax.random.gamma(jax.random.key(0), 2.0, (2,))
    Array([1.5897877, 1.7599413], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(gamma, out_sharding, key, a, shape, dtype, method=method)
    typed = single_key("gamma", key)
    sampler = _sampler("gamma", method)
    dtype = float_dtype(dtype, "gamma")
    return sampler(typed, a, result_shape(shape, np.shape(a)), dtype, False)


def loggamma(key: ArrayLike, a: ArrayLike, shape: Any = None, dtype: DTypeLike | None = None, *,
             method: str = "exact", out_sharding: Any = None) -> Array:
    """Logarithms of gamma floats; accurate even where those would underflow.

    Args:
      method: "exact", by rejection, or "approximate", without a loop.

    >>> jax.random.loggamma(jax.random.key(0), 2.0, (2,))
    Array([0.46360058, 0.5652805 ], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(loggamma, out_sharding, key, a, shape, dtype, method=method)
    typed = single_key("loggamma", key)
    sampler = _sampler("loggamma", method)
    dtype = float_dtype(dtype, "loggamma")
    return sampler(typed, a, result_shape(shape, np.shape(a)), dtype, True)


def _sampler(name: str, method: str) -> Callable[..., Any]:
    """What samples gamma variates in the way that is asked for."""
    return _approximate.gamma if _approximate.check_method(name, method) else _gamma


@jitted("shape", "dtype", "log_space")
def _gamma(key: Any, a: Any, shape: tuple[int, ...], dtype: Any, log_space: bool) -> Any:
    a = jnp.broadcast_to(as_float(a, dtype), shape)
    return random_gamma_p.bind(key, a, log_space=log_space, partitionable=partitionable())


def beta(key: ArrayLike, a: ArrayLike, b: ArrayLike, shape: Any = None,
         dtype: DTypeLike | None = None, *, method: str = "exact",
         out_sharding: Any = None) -> Array:
    """Beta floats with parameters ``a`` and ``b``.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      a, b: positive floats that broadcast.
      shape: of the result, to which they broadcast; None: their common shape.
      dtype: a float dtype; None: the default float, float32 unless 64 bits are enabled.
      method: "exact", by rejection, or "approximate", without a loop.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape, of numbers from 0 to 1.

    Raises:
      ValueError: ``dtype`` is no float dtype, or ``a`` and ``b`` do not broadcast to the shape.

    See also: ``gamma``, ``dirichlet``, ``jax.scipy.stats.beta.logpdf``.

    >>> jax.random.beta(jax.random.key(0), 2.0, 3.0, (2,))
    Array([0.23627362, 0.49045953], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(beta, out_sharding, key, a, b, shape, dtype, method=method)
    typed = single_key("beta", key)
    _approximate.check_method("beta", method)
    dtype = float_dtype(dtype, "beta", a, b)
    return _beta(typed, a, b, result_shape(shape, np.shape(a), np.shape(b)), dtype, method)


@jitted("shape", "dtype", "method")
def _beta(key: Any, a: Any, b: Any, shape: tuple[int, ...], dtype: Any, method: str) -> Any:
    first, second = unstack(split_typed(key))
    sampler = _sampler("beta", method)
    logs = [sampler(k, jnp.broadcast_to(as_float(parameter, dtype), shape), shape, dtype, True)
            for k, parameter in ((first, a), (second, b))]
    largest = lax.max(*logs)
    x, y = (lax.exp(lax.sub(value, largest)) for value in logs)
    return lax.div(x, lax.add(x, y))


def dirichlet(key: ArrayLike, alpha: Any, shape: Any = None, dtype: DTypeLike | None = None, *,
              out_sharding: Any = None) -> Array:
    """Points of the simplex; ``alpha`` has the parameters along its last axis.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      alpha: positive floats ``(..., n)``.
      shape: of the result without the last dimension; None: that of ``alpha`` without it.
      dtype: a float dtype; None: the default float, float32 unless 64 bits are enabled.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of shape ``shape + alpha.shape[-1:]``.

    Raises:
      ValueError: ``alpha`` is a scalar, ``dtype`` is no float dtype, or ``alpha`` does not
        broadcast.

    See also: ``beta``, ``gamma``, ``categorical``, ``jax.scipy.stats.dirichlet.logpdf``.

    >>> jax.random.dirichlet(jax.random.key(0), jnp.ones(3))
    Array([0.36472055, 0.4282893 , 0.20699008], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(dirichlet, out_sharding, key, alpha, shape, dtype)
    typed = single_key("dirichlet", key)
    dtype = float_dtype(dtype, "dirichlet")
    if not np.ndim(alpha):
        raise ValueError(
            f"dirichlet requires alpha.ndim >= 1, got alpha.ndim == {np.ndim(alpha)}")
    outer = result_shape(shape, np.shape(alpha)[:-1])
    return _dirichlet(typed, alpha, outer, dtype)


@jitted("shape", "dtype")
def _dirichlet(key: Any, alpha: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    alpha = as_float(alpha, dtype)
    if not alpha.shape[-1]:
        return jnp.zeros((*shape, 0), dtype)
    logs = _gamma(key, alpha, (*shape, alpha.shape[-1]), dtype, True)
    powers = lax.exp(logs - lax.stop_gradient(jnp.max(logs, -1, keepdims=True)))
    return powers / jnp.sum(powers, -1, keepdims=True)


def chisquare(key: ArrayLike, df: Any, shape: Any = None, dtype: DTypeLike | None = None, *,
              method: str = "exact", out_sharding: Any = None) -> Array:
    """Chi-square floats with ``df`` degrees of freedom.

    Args:
      method: "exact", by rejection, or "approximate", without a loop.

    >>> jax.random.chisquare(jax.random.key(0), 2.0, (2,))
    Array([1.2369726, 1.4525698], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(chisquare, out_sharding, key, df, shape, dtype, method=method)
    typed = single_key("chisquare", key)
    _approximate.check_method("chisquare", method)
    dtype = float_dtype(dtype, "chisquare", df)
    return _chisquare(typed, df, result_shape(shape, np.shape(df)), dtype, method)


@jitted("shape", "dtype", "method")
def _chisquare(key: Any, df: Any, shape: tuple[int, ...], dtype: Any, method: str) -> Any:
    two = np.array(2, dtype)[()]
    logs = _sampler("chisquare", method)(key, lax.div(as_float(df, dtype), two), shape, dtype, True)
    return lax.mul(lax.exp(logs), two)


def f(key: ArrayLike, dfnum: Any, dfden: Any, shape: Any = None, dtype: DTypeLike | None = None, *,
      out_sharding: Any = None) -> Array:
    """F floats with ``dfnum`` and ``dfden`` degrees of freedom.

    >>> jax.random.f(jax.random.key(0), 2.0, 3.0, (2,))
    Array([3.2702725 , 0.06339812], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(f, out_sharding, key, dfnum, dfden, shape, dtype)
    typed = single_key("f", key)
    dtype = float_dtype(dtype, "f", dfnum, dfden)
    return _f(typed, dfnum, dfden, result_shape(shape, np.shape(dfnum), np.shape(dfden)), dtype)


@jitted("shape", "dtype")
def _f(key: Any, dfnum: Any, dfden: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    dfden, dfnum = as_float(dfden, dtype), as_float(dfnum, dtype)
    first, second = unstack(split_typed(key))
    upper = _chisquare(second, dfnum, shape, dtype, "exact") / dfnum
    return upper / (_chisquare(first, dfden, shape, dtype, "exact") / dfden)


def t(key: ArrayLike, df: Any, shape: Any = None, dtype: DTypeLike | None = None, *,
      out_sharding: Any = None) -> Array:
    """Student's t floats with ``df`` degrees of freedom.

    >>> jax.random.t(jax.random.key(0), 2.0, (2,))
    Array([ 0.6536968, -7.017804 ], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(t, out_sharding, key, df, shape, dtype)
    typed = single_key("t", key)
    dtype = float_dtype(dtype, "t", df)
    return _t(typed, df, result_shape(shape, np.shape(df)), dtype)


@jitted("shape", "dtype")
def _t(key: Any, df: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    df = as_float(df, dtype)
    first, second = unstack(split_typed(key))
    normals = _normal(first, shape, dtype)
    half = lax.div(df, np.array(2, dtype)[()])
    return normals * jnp.sqrt(half / _gamma(second, half, shape, dtype, False))


def generalized_normal(key: ArrayLike, p: ArrayLike, shape: Any = (),
                       dtype: DTypeLike | None = None, *, out_sharding: Any = None) -> Array:
    """Floats with density proportional to ``exp(-|x|**p)``.

    >>> jax.random.generalized_normal(jax.random.key(0), 2.0, (2,))
    Array([0.9542763 , 0.09015025], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(generalized_normal, out_sharding, key, p, shape, dtype)
    typed = single_key("generalized_normal", key)
    return _generalized_normal(
        typed, p, canonical_shape(shape), float_dtype(dtype, "generalized_normal"))


@jitted("shape", "dtype")
def _generalized_normal(key: Any, p: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    first, second = unstack(split_typed(key))
    magnitudes = _gamma(first, 1 / p, shape, dtype, False)
    signs = _rademacher(second, shape, dtype)
    return signs * jnp.power(magnitudes, jnp.asarray(1 / p).astype(dtype))


def ball(key: ArrayLike, d: int, p: float = 2, shape: Any = (), dtype: DTypeLike | None = None, *,
         out_sharding: Any = None) -> Array:
    """Points of the unit ball of the p-norm in ``d`` dimensions: shape ``shape + (d,)``.

    >>> jax.random.ball(jax.random.key(0), 3)
    Array([0.91715974, 0.39274216, 0.0116535 ], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(ball, out_sharding, key, d, p, shape, dtype)
    typed = single_key("ball", key)
    return _ball(typed, p, operator.index(d), canonical_shape(shape), float_dtype(dtype, "ball"))


@jitted("d", "shape", "dtype")
def _ball(key: Any, p: Any, d: int, shape: tuple[int, ...], dtype: Any) -> Any:
    first, second = unstack(split_typed(key))
    points = _generalized_normal(first, p, (*shape, d), dtype)
    extra = _exponential(second, shape, dtype)
    norms = jnp.sum(jnp.abs(points) ** p, -1) + extra
    return points / jnp.expand_dims(norms ** jnp.asarray(1 / p).astype(dtype), -1)


# --- from normal variates -------------------------------------------------------------------------

_ONE = np.float32(1)


def lognormal(key: ArrayLike, sigma: Any = _ONE, shape: Any = None, dtype: DTypeLike | None = None,
              *, out_sharding: Any = None) -> Array:
    """``exp(sigma * x)`` for normal ``x``.

    >>> jax.random.lognormal(jax.random.key(0), 0.5, (2,))
    Array([2.2508795, 2.752838 ], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(lognormal, out_sharding, key, sigma, shape, dtype)
    typed = single_key("lognormal", key)
    dtype = float_dtype(dtype, "lognormal", sigma, may_be_complex=True)
    shape = result_shape(shape, np.shape(sigma))
    return lax.exp(_normal(typed, shape, dtype) * jnp.broadcast_to(as_float(sigma, dtype), shape))


def maxwell(key: ArrayLike, shape: Any = (), dtype: DTypeLike | None = None, *,
            out_sharding: Any = None) -> Array:
    """Lengths of normal vectors in three dimensions.

    >>> jax.random.maxwell(jax.random.key(0), (2,))
    Array([2.6310966, 0.9910329], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(maxwell, out_sharding, key, shape, dtype)
    typed = single_key("maxwell", key)
    return _maxwell(typed, canonical_shape(shape), float_dtype(dtype, "maxwell"))


@jitted("shape", "dtype")
def _maxwell(key: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    vectors = _normal(key, (*shape, 3), dtype)
    return jnp.sqrt(jnp.sum(vectors * vectors, -1))


def double_sided_maxwell(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Any = (),
                         dtype: DTypeLike | None = None) -> Array:
    """``loc + scale * x`` for Maxwell floats x of either sign: ``shape`` for each parameter.

    >>> jax.random.double_sided_maxwell(jax.random.key(0), 0.0, 1.0, (2,))
    Array([1.5457209, 1.5741276], dtype=float32)
    """
    typed = single_key("double_sided_maxwell", key)
    dtype = float_dtype(dtype, "double_sided_maxwell")
    shape = canonical_shape(shape) + broadcast_shapes(np.shape(loc), np.shape(scale))
    first, second = unstack(split_typed(typed))
    values = _maxwell(first, shape, dtype) * _rademacher(second, shape, dtype)
    return values * as_float(scale, dtype) + as_float(loc, dtype)


def wald(key: ArrayLike, mean: Any, shape: Any = None, dtype: DTypeLike | None = None, *,
         out_sharding: Any = None) -> Array:
    """Wald (inverse Gaussian) floats with the given mean and scale 1.

    >>> jax.random.wald(jax.random.key(0), 2.0, (2,))
    Array([0.533422  , 0.59811544], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(wald, out_sharding, key, mean, shape, dtype)
    typed = single_key("wald", key)
    dtype = float_dtype(dtype, "wald", mean)
    shape = result_shape(shape, np.shape(mean))
    return _wald(typed, mean, shape, dtype)


@jitted("shape", "dtype")
def _wald(key: Any, mean: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    first, second = unstack(split_typed(key))
    mean = jnp.broadcast_to(as_float(mean, dtype), shape)
    squares = _normal(first, shape, dtype) ** 2
    uniforms = _uniform(second, shape, dtype, 0.0, 1.0)
    # Large terms cancel: unless rounded where XLA rounds, no digit would agree.
    root = jnp.sqrt(multiply_add(4 * mean, squares, mean ** 2 * squares ** 2))
    x = multiply_add(-mean / 2, root, mean + mean ** 2 * squares / 2)
    return jnp.where(uniforms <= mean / (mean + x), x, mean ** 2 / x)


def multivariate_normal(key: ArrayLike, mean: Any, cov: Any, shape: Any = None,
                        dtype: DTypeLike | None = None, method: str = "cholesky", *,
                        out_sharding: Any = None) -> Array:
    """Normal vectors with the given mean and covariance.

    Args:
      key: a key from ``jax.random.key`` or ``PRNGKey``; each use should have its own.
      mean: shape ``(..., n)``.
      cov: shape ``(..., n, n)``.
      shape: of the result without the last dimension; None: the common one of ``mean`` and ``cov``.
      dtype: of the underlying normal numbers; the result is as wide as ``mean`` and ``cov``.
      method: how the square root of ``cov`` is computed: "cholesky", "eigh" or "svd".
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array ``(*shape, n)``.

    Raises:
      ValueError: the shapes do not fit, ``dtype`` is no float dtype, or there is no such
        ``method``.

    See also: ``normal``, ``jnp.linalg.cholesky``, ``jax.scipy.stats.multivariate_normal.logpdf``.

    >>> jax.random.multivariate_normal(jax.random.key(0), jnp.zeros(2), jnp.eye(2))
    Array([1.6226422, 2.0252647], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(multivariate_normal, out_sharding, key, mean, cov, shape, dtype,
            method)
    typed = single_key("multivariate_normal", key)
    mean, cov = as_floats(mean, cov)
    dtype = mean.dtype if dtype is None else float_dtype(dtype, "multivariate_normal")
    if method not in ("svd", "eigh", "cholesky"):
        raise ValueError("method must be one of {'svd', 'eigh', 'cholesky'}")
    if not mean.ndim:
        raise ValueError("multivariate_normal requires mean.ndim >= 1, got mean.ndim == 0")
    n = mean.shape[-1]
    if cov.shape[-2:] != (n, n):
        raise ValueError("multivariate_normal requires cov.shape == (..., n, n) for "
                         f"n={n}, but got cov.shape == {cov.shape}.")
    shape = result_shape(shape, mean.shape[:-1], cov.shape[:-2])
    if method == "cholesky":
        factor = jnp.linalg.cholesky(cov)
    elif method == "eigh":
        values, vectors = jnp.linalg.eigh(cov)
        factor = vectors * jnp.sqrt(values[..., None, :])
    else:
        left, values, _ = jnp.linalg.svd(cov)
        factor = left * jnp.sqrt(values[..., None, :])
    normals = _normal(typed, (*shape, n), dtype)
    # The mean and the covariance are as wide as the result, whatever the noise is.
    wide = dtypes.common(mean.dtype, normals.dtype)
    spread = jnp.einsum("...ij,...j->...i", factor.astype(wide), normals.astype(wide))
    return jnp.add(*promote_shapes("", mean.astype(wide), spread))


def orthogonal(key: ArrayLike, n: int, shape: Any = (), dtype: DTypeLike | None = None,
               m: int | None = None, *, out_sharding: Any = None) -> Array:
    """Random orthogonal (or unitary) matrices of shape ``shape + (n, m)``.

    >>> q = jax.random.orthogonal(jax.random.key(0), 2)
    >>> jnp.allclose(q @ q.T, jnp.eye(2), atol=1e-6)
    Array(True, dtype=bool)
    """
    if out_sharding is not None:
        return with_out_sharding(orthogonal, out_sharding, key, n, shape, dtype, m)
    typed = single_key("orthogonal", key)
    shape = canonical_shape(shape)
    dtype = normal_dtype(dtype)
    columns = n if m is None else m
    values = _normal(typed, (*shape, max(n, columns), min(n, columns)), dtype)
    factor, triangle = jnp.linalg.qr(values)
    factor = factor * jnp.expand_dims(
        jnp.sign(jnp.diagonal(triangle, axis1=-2, axis2=-1)), -2)
    return factor if n >= columns else jnp.conj(jnp.swapaxes(factor, -1, -2))
