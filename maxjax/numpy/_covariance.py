"""Covariance and correlation."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax.numpy import _filled as filled
from maxjax.numpy import _joining as joining
from maxjax.numpy import _moments as moments
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _rounding as rounding
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._at_once import at_once
from maxjax.numpy._complex import complex_of, conj, imag, real
from maxjax.numpy._contraction import dot
from maxjax.numpy._promotion import as_array, check_arraylike, promote_inexact

__all__ = ["corrcoef", "cov"]


@at_once
def cov(m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False,
        ddof: int | None = None, fweights: Any = None, aweights: Any = None,
        dtype: DTypeLike | None = None) -> Array:
    """The covariance matrix of variables in rows (columns with ``rowvar=False``).

    Args:
      m: a matrix of observations, or a vector of one variable's.
      y: further variables, in the same form.
      rowvar: whether variables are rows; otherwise columns.
      bias: divide by the number of observations N rather than N - 1.
      ddof: N - ddof is the divisor, whatever ``bias`` says.
      fweights: how often each observation counts, integers ``(N,)``.
      aweights: its importance, ``(N,)``.
      dtype: in which to compute; None: the promoted float dtype.

    Returns:
      A symmetric matrix with a row for each variable; a scalar for one.

    Raises:
      ValueError: there are more than two dimensions.
      TypeError: ``fweights`` are no integers.

    See also: ``corrcoef``, ``var``, ``linalg.eigh``.

    >>> jnp.cov(jnp.array([[1., 2., 3.], [3., 2., 1.]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    return _cov("cov", m, y, rowvar, bias, ddof, fweights, aweights, dtype)


def _cov(name: str, m: Any, y: Any, rowvar: bool, bias: bool, ddof: int | None, fweights: Any,
         aweights: Any, dtype: Any) -> Array:
    values = [m] if y is None else [m, y]
    check_arraylike(name, *values)
    arrays = [as_array(v) for v in promote_inexact(name, *values)]
    if dtype is not None:
        if not dtypes.is_inexact(dtypes.as_dtype(dtype)):
            raise ValueError(f"{name}: dtype must be a subclass of float or complex; got {dtype=}")
        arrays = [v.astype(dtype) for v in arrays]
    if any(v.ndim > 2 for v in arrays):
        raise ValueError("m has more than 2 dimensions")
    rows: list[Array] = []
    for v, given in zip(arrays, values, strict=True):
        v = joining.atleast_2d(v)
        # A single row of y, but not of m, is one variable even if variables are columns.
        turned = not rowvar and (np.ndim(given) != 1 if not rows else v.shape[0] != 1)
        rows.append(v.T if turned else v)
    if not rows[0].shape[0]:
        return filled.full((0, 0), 0, rows[0].dtype)
    x = rows[0] if len(rows) == 1 else joining.concatenate(rows, 0)
    if not x.shape[1]:
        count = x.shape[0]
        return filled.full(() if count == 1 else (count, count), np.nan, x.dtype)
    if ddof is None:
        ddof = 0 if bias else 1
    weights = _weights_of_observations(x, fweights, aweights)
    if weights is None:
        center = moments.mean(x, axis=1, keepdims=True)
        norm: Any = x.shape[1] - ddof
    else:
        total = reductions.sum(weights)
        center = shapes.expand_dims(moments.average(
            x, axis=1, weights=shapes.broadcast_to(weights, x.shape)), 1)
        if ddof == 0:
            norm = total
        elif aweights is None:
            norm = total - ddof
        else:
            norm = total - ddof * reductions.sum(weights * as_array(aweights)) / total
    x = x - center
    right = x if weights is None else x * weights[None]
    return shapes.squeeze(dot(x, conj(right.T)) / norm)


def _weights_of_observations(x: Array, fweights: Any, aweights: Any) -> Array | None:
    """How much each observation counts: its frequency times its importance; None: all the same."""
    weights = None
    if fweights is not None:
        check_arraylike("cov", fweights)
        weights = as_array(fweights)
        _check_weights("fweights", weights, x)
        if not dtypes.is_integer(weights.dtype):
            raise TypeError("fweights must be integer.")
        weights = ufuncs.abs(weights)
    if aweights is not None:
        check_arraylike("cov", aweights)
        reliability = ufuncs.abs(as_array(aweights))
        _check_weights("aweights", reliability, x)
        weights = reliability if weights is None else weights * reliability
    return weights


def _check_weights(name: str, weights: Array, x: Array) -> None:
    if weights.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if weights.shape[0] != x.shape[1]:
        raise RuntimeError(f"incompatible numbers of samples and {name}")


@at_once
def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True,
             dtype: DTypeLike | None = None) -> Array:
    """The correlation coefficients of variables in rows (columns with ``rowvar=False``).

    Args:
      x: a matrix of observations, or a vector of one variable's.
      y: further variables, in the same form.
      rowvar: whether variables are rows; otherwise columns.
      dtype: in which to compute; None: the promoted float dtype.

    Returns:
      A symmetric matrix with a row for each variable, and ones on its diagonal.

    See also: ``cov``, ``correlate``, ``std``.

    >>> jnp.corrcoef(jnp.array([[1., 2., 3.], [3., 2., 1.]])).round(3)
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    c = _cov("corrcoef", x, y, rowvar, False, None, None, None, dtype)
    if c.ndim == 0:
        return c / c
    deviation = ufuncs.sqrt(real(c.diagonal()))
    deviation = deviation.astype(c.dtype)
    c = c / shapes.expand_dims(deviation, 1) / shapes.expand_dims(deviation, 0)
    if dtypes.is_complex(c.dtype):
        parts = real(c), imag(c)
        return complex_of(*(rounding.clip(part, -1, 1) for part in parts))
    return rounding.clip(c, -1, 1)
