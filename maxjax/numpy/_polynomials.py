"""Polynomials: vectors of coefficients, the highest power first."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from maxjax import lax
from maxjax._base import dtypes
from maxjax._higher_order.jit_function import make_jit
from maxjax._higher_order.named_calls import named
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.convert import convert_element_type
from maxjax.numpy import _arg_reductions as arg_reductions
from maxjax.numpy import _creation as creation
from maxjax.numpy import _filled as filled
from maxjax.numpy import _joining as joining
from maxjax.numpy import _matrices as matrices
from maxjax.numpy import _ranges as ranges
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _repeating as repeating
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _sorting as sorting
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._at_once import at_once
from maxjax.numpy._contraction import dot, outer
from maxjax.numpy._decompositions import eigvals
from maxjax.numpy._linear_systems import inv, lstsq
from maxjax.numpy._promotion import (
    as_array,
    broadcast_to,
    check_arraylike,
    concrete,
    promote_dtypes,
    promote_inexact,
)
from maxjax.numpy._signal import convolve, trim_zeros
from maxjax.numpy._where import where

__all__ = [
    "poly", "polyadd", "polyder", "polydiv", "polyfit", "polyint", "polymul", "polysub", "polyval",
    "roots",
]


@at_once
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int | None = None) -> Array:
    """The polynomial with coefficients ``p`` at ``x``, by Horner's scheme.

    Args:
      p: shape ``(n, ...)``; further dimensions broadcast with ``x``.
      x: an array or scalar.
      unroll: how many steps JAX unrolls; here it changes nothing.

    Returns:
      An array of the common shape, of the promoted dtype.

    See also: ``polyfit``, ``polyder``, ``polyint``, ``roots``.

    >>> jnp.polyval(jnp.array([1, 2, 3]), jnp.array([0, 10]))
    Array([  3, 123], dtype=int32)
    """
    check_arraylike("polyval", p, x)
    return _polyval(p, x, unroll=unroll)


@named("polyval", "unroll")
def _polyval(p: Any, x: Any, *, unroll: int | None) -> Array:
    p, x = (as_array(v) for v in promote_dtypes("polyval", p, x))
    shape = shapes.broadcast_shapes(p.shape[1:], x.shape)
    # In JAX the coefficients are traced, so that no result is weakly typed.
    x = broadcast_to(convert_element_type(x, x.dtype, False), shape)
    coefficients = [lax.index_in_dim(p, i, keepdims=False)
                    for i in range(p.shape[0] - 1, -1, -1)]
    return lax.polynomial(x, [c if not c.ndim else broadcast_to(c, shape) for c in coefficients],
                          unroll=unroll)


def _operands(name: str, a1: Any, a2: Any) -> tuple[Array, Array]:
    a1, a2 = (as_array(v) for v in promote_dtypes(name, a1, a2))
    return a1, a2


def _sum(name: str, a1: Array, a2: Array) -> Array:
    if not a1.ndim or not a2.ndim:
        raise IndexError(f"{name} takes arrays of coefficients, got a scalar")
    if a1.dtype == dtypes.bool_:
        raise TypeError(f"{name} does not accept dtype bool.")
    longer, shorter = (a1, a2) if a2.shape[0] <= a1.shape[0] else (a2, a1)
    # An empty operand meets the whole of the other, as `-0:` is the whole.
    return longer.at[-shorter.shape[0]:].add(shorter)


@at_once
def polyadd(a1: Any, a2: Any) -> Array:
    """The sum of two polynomials; the shorter one is added to the end of the longer one.

    Args:
      a1, a2: (N, ...) and (M, ...); the rest of the shorter one broadcasts to that of the longer.

    Raises:
      ValueError: it does not.

    >>> jnp.polyadd(jnp.array([1, 2, 3]), jnp.array([10, 10]))
    Array([ 1, 12, 13], dtype=int32)
    """
    return _sum("polyadd", *_operands("polyadd", a1, a2))


@at_once
def polysub(a1: Any, a2: Any) -> Array:
    """The difference of two polynomials; shapes are as in ``polyadd``.

    >>> jnp.polysub(jnp.array([1, 2, 3]), jnp.array([1, 1]))
    Array([1, 1, 2], dtype=int32)
    """
    a1, a2 = _operands("polysub", a1, a2)
    return _sum("polysub", a1, -a2)


@at_once
def polymul(a1: Any, a2: Any, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials; integers become floats.

    Args:
      trim_leading_zeros: drop the operands' leading zeros, whose values must then be known.

    >>> jnp.polymul(jnp.array([1, 2]), jnp.array([1, -2]))
    Array([ 1.,  0., -4.], dtype=float32)
    """
    a1, a2 = (as_array(v) for v in promote_inexact("polymul", a1, a2))
    if trim_leading_zeros:
        a1, a2 = trim_zeros(a1, "f"), trim_zeros(a2, "f")
    a1, a2 = (creation.asarray([0], x.dtype) if not len(x) else x for x in (a1, a2))
    return convolve(a1, a2)


def polydiv(u: Any, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """Quotient and remainder of two polynomials; the remainder is as long as ``u``.

    Args:
      trim_leading_zeros: drop the remainder's, whose values must then be known.

    >>> jnp.polydiv(jnp.array([1., 5., 7.]), jnp.array([1., 2.]))
    (Array([1., 3.], dtype=float32), Array([0., 0., 1.], dtype=float32))
    """
    u, v = (as_array(x) for x in promote_inexact("polydiv", u, v))
    m, n = u.shape[0] - 1, v.shape[0] - 1
    count = max(m - n + 1, 1)
    quotient = []
    scale = 1.0 / v[0]
    for k in range(m - n + 1):
        factor = scale * u[k]
        quotient.append(factor)
        u = u.at[k:k + n + 1].add(-factor * v)
    q = (reductions.strong(joining.stack(quotient)) if quotient
         else filled.zeros((count,), u.dtype))
    if trim_leading_zeros:
        u = trim_zeros(u, "f")
    return q, u


@at_once
def poly(seq_of_zeros: Any) -> Array:
    """The polynomial with the given zeros, or with a matrix's eigenvalues as zeros.

    Args:
      seq_of_zeros: zeros ``(n,)``, or a square matrix; then the result is complex.

    >>> jnp.poly(jnp.array([1., 2.]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    z = joining.atleast_1d(as_array(promote_inexact("poly", seq_of_zeros)[0]))
    if z.ndim == 2 and z.shape[0] == z.shape[1] != 0:
        z = eigvals(z)
    if z.ndim != 1:
        raise ValueError("input must be 1d or non-empty square 2d array.")
    if not z.size:
        return filled.ones((), z.dtype)
    return _polynomial_with_zeros(z)


@make_jit
def _polynomial_with_zeros(z: Array) -> Array:
    result = filled.ones((1,), z.dtype)
    for i in range(z.shape[0]):
        result = convolve(result, joining.stack([filled.ones((), z.dtype), -z[i]]))
    return result


@at_once
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The ``m``-th derivative of a polynomial; integers become floats.

    >>> jnp.polyder(jnp.array([1, 2, 3]))
    Array([2., 2.], dtype=float32)
    """
    m = operator.index(concrete(m, "'m' argument of jnp.polyder"))
    p = as_array(promote_inexact("polyder", p)[0])
    if m < 0:
        raise ValueError("Order of derivative must be positive")
    if m == 0:
        return p
    size = len(p)
    factors = np.array([math.prod(range(k - m + 1, k + 1)) for k in range(size - 1, m - 1, -1)])
    return p[:-m] * as_array(factors.astype(p.dtype))


@at_once
def polyint(p: ArrayLike, m: int = 1, k: Any = None) -> Array:
    """The ``m``-th integral of a polynomial; integers become floats.

    Args:
      k: the constants of integration, a scalar or ``(m,)``; by default 0.

    >>> jnp.polyint(jnp.array([6, 2]), k=5)
    Array([3., 2., 5.], dtype=float32)
    """
    m = operator.index(concrete(m, "'m' argument of jnp.polyint"))
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    constants = 0 if k is None else k
    p, constants = (as_array(v) for v in promote_inexact("polyint", p, constants))
    constants = joining.atleast_1d(constants)
    if m == 0:
        return p
    if p.ndim > 1:
        raise TypeError(f"polyint takes a vector of coefficients, got shape {p.shape}")
    if constants.shape[0] == 1 and m > 1:
        constants = shapes.broadcast_to(constants, (m,))
    if constants.shape != (m,):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    for i in range(m):
        size = len(p)
        divisors = as_array(np.arange(size, 0, -1).astype(p.dtype))
        p = joining.concatenate([p / divisors, constants[i:i + 1]])
    return p


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The zeros of a polynomial, complex, as eigenvalues of its companion matrix.

    Args:
      p: shape ``(n,)``.
      strip_zeros: drop leading zeros, whose values must then be known. Without it there are always
        n - 1 results, with NaN for each leading zero.

    >>> jnp.roots(jnp.array([1., -3., 2.]))
    Array([2.+0.j, 1.+0.j], dtype=complex64)
    """
    check_arraylike("roots", p)
    x = joining.atleast_1d(as_array(promote_inexact("roots", p)[0]))
    if x.ndim != 1:
        raise ValueError("Input must be a rank-1 array.")
    size = x.shape[0]
    if size < 2:
        return filled.zeros((0,), dtypes.complex_dtype(x.dtype))
    zeros = arg_reductions.argmax(joining.append(x != 0, True))
    if not strip_zeros:
        return _roots_behind_zeros(x, zeros)
    start = int(concrete(zeros, "The error occurred in the jnp.roots() function. To use this "
                         "within a JIT-compiled context, pass strip_zeros=False"))
    if size - start < 2:
        return filled.zeros((0,), dtypes.complex_dtype(x.dtype))
    return _companion_eigenvalues(x[start:])


def _companion_eigenvalues(p: Array) -> Array:
    below = matrices.diag(filled.ones((p.shape[0] - 2,), p.dtype), -1)
    return eigvals(below.at[0, :].set(-p[1:] / p[0]))


def _roots_behind_zeros(p: Array, zeros: Array) -> Array:
    """Moves leading zeros to the end, where each is a root 0, which becomes NaN."""
    size = p.shape[0]
    p = where(zeros == size, 1, p).astype(p.dtype)      # all zero: NaN in any case
    found = _companion_eigenvalues(repeating.roll(p, -zeros))
    found = found[sorting.argsort(found == 0, stable=True)]
    return where(ranges.arange(size - 1) < size - 1 - zeros, found, complex(np.nan, np.nan))


@at_once
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False,
            w: Any = None, cov: bool = False) -> Array | tuple[Array, ...]:
    """The polynomial of degree ``deg`` that best fits points, by least squares.

    Args:
      x: shape ``(m,)``, not integers.
      y: shape ``(m,)``, or ``(m, k)`` for k fits at once.
      rcond: singular values up to ``rcond`` times the greatest one are treated as zero; by default
        m times the dtype's epsilon.
      full: return ``(coefficients, residuals, rank, singular values, rcond)``.
      w: weights of the residuals, shape ``(m,)``.
      cov: return ``(coefficients, their covariance)``; "unscaled" uses the weights unchanged.

    Raises:
      TypeError, ValueError: shapes do not fit, the degree is negative, or there are too few
        points for a covariance.

    >>> jnp.polyfit(jnp.array([0., 1., 2.]), jnp.array([1., 3., 5.]), 1).round(3)
    Array([2., 1.], dtype=float32)
    """
    check_arraylike("polyfit", x, y)
    degree = int(concrete(deg, "deg must be int"))
    count = degree + 1
    x, y = as_array(x), as_array(y)
    if degree < 0:
        raise ValueError("expected deg >= 0")
    if x.ndim != 1:
        raise TypeError("expected 1D vector for x")
    if not x.size:
        raise TypeError("expected non-empty vector for x")
    if y.ndim not in (1, 2):
        raise TypeError("expected 1D or 2D array for y")
    if x.shape[0] != y.shape[0]:
        raise TypeError("expected x and y to have same length")
    if rcond is None:
        if not dtypes.is_inexact(x.dtype):
            raise ValueError(f"data type {x.dtype.name} not inexact")
        rcond = x.shape[0] * float(dtypes.finfo(x.dtype).eps)
    left, right = matrices.vander(x, count), y
    if w is not None:
        check_arraylike("polyfit", w)
        w = as_array(promote_inexact("polyfit", w)[0])
        if w.ndim != 1:
            raise TypeError("expected a 1-d array for weights")
        if w.shape[0] != y.shape[0]:
            raise TypeError("expected w and y to have the same length")
        left = left * w[:, None]
        right = right * (w[:, None] if y.ndim == 2 else w)
    # Columns of length 1 condition the problem better.
    scale = ufuncs.sqrt(reductions.sum(left * left, 0))
    left = left / scale[None]
    found, residuals, rank, values = lstsq(left, right, rcond)
    found = found / (scale[:, None] if found.ndim == 2 else scale)
    if full:
        return found, residuals, rank, values, as_array(rcond)
    if not cov:
        return found
    covariance = inv(dot(left.T, left)) / outer(scale, scale)
    factor: Any = 1
    if cov != "unscaled":
        if x.shape[0] <= count:
            raise ValueError("the number of data points must exceed order to scale the "
                             "covariance matrix")
        factor = (residuals / (x.shape[0] - count))[(None,) * y.ndim]
    return found, (covariance if y.ndim == 1 else covariance[:, :, None]) * factor
