"""jax.numpy.linalg: solvers of linear systems, inverses, ranks."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from maxjax._base.tracebacks import boundary
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._ir.dimensions import broadcast_shapes, is_dimension
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.lapack import not_lapack
from maxjax._primitives.linalg_solve import solve_p
from maxjax.numpy import _contraction as contraction
from maxjax.numpy import _filled as filled
from maxjax.numpy import _ranges as ranges
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._at_once import at_once
from maxjax.numpy._decompositions import adjoint, eigvalsh, epsilon, inexact, square_matrices, svd
from maxjax.numpy._promotion import as_array, check_arraylike, promote_inexact, promote_shapes
from maxjax.numpy._where import where

__all__ = ["inv", "lstsq", "matrix_rank", "pinv", "solve"]


@at_once
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """``x`` with ``a x = b``.

    Args:
      a: shape ``(..., m, m)``.
      b: one vector ``(m,)``, or matrices ``(..., m, n)``; batch dimensions broadcast.

    Returns:
      An array of the shape of ``b``, of the promoted float or complex dtype. For singular matrices
      it has infinities and NaN; no error is raised, unlike NumPy's.

    Raises:
      ValueError: the matrices are not square, or the sizes do not fit.

    See also: ``linalg.inv``, ``linalg.lstsq``, ``jax.scipy.linalg.solve``,
    ``jax.scipy.linalg.solve_triangular``, ``jax.scipy.sparse.linalg.cg``.

    >>> jnp.linalg.solve(jnp.array([[2., 0.], [0., 4.]]), jnp.array([2., 2.]))
    Array([1. , 0.5], dtype=float32)
    """
    check_arraylike("jnp.linalg.solve", a, b)
    a, b = (as_array(x) for x in promote_inexact("jnp.linalg.solve", a, b))
    signature = "(m,m),(m)->(m)" if b.ndim == 1 else "(m,m),(m,n)->(m,n)"
    if a.ndim < 2:
        raise ValueError(
            f"left hand array must be at least two dimensional; got a.shape={a.shape}")
    if a.ndim == b.ndim + 1 and b.ndim > 1 and b.shape[-1] == a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"Invalid shapes for solve: {a.shape}, {b.shape}. Prior to JAX v0.5.0, this would have "
            "been treated as a batched 1-dimensional solve. To recover this behavior, use "
            "solve(a, b[..., None]).squeeze(-1).")
    if not b.ndim:
        raise ValueError(
            "input with shape () does not have enough dimensions for all core dimensions ('m', "
            f"'n') on vectorized function with excluded=frozenset() and signature='{signature}'")
    for size in (a.shape[-1], b.shape[-1 if b.ndim == 1 else -2]):
        if size != a.shape[-2]:
            raise ValueError(
                f"inconsistent size for core dimension 'm': {size} vs {a.shape[-2]} on vectorized "
                f"function with excluded=frozenset() and signature='{signature}'")
    if a.dtype.itemsize < 4:
        raise not_lapack("lu", a.dtype)
    vector = b.ndim == 1
    right = b[:, None] if vector else b
    batch = broadcast_shapes(a.shape[:-2], right.shape[:-2])
    out = solve_p.bind(shapes.broadcast_to(a, (*batch, *a.shape[-2:])),
                       shapes.broadcast_to(right, (*batch, *right.shape[-2:])))
    return out[..., 0] if vector else out


@at_once
@boundary
def inv(a: ArrayLike) -> Array:
    """The inverses of square matrices; infinities and NaN for singular ones.

    Args:
      a: matrices ``(..., n, n)``.

    Returns:
      An array of the same shape, of a float or complex dtype. No error is raised, unlike NumPy's;
      to solve equations, ``solve`` is more accurate.

    Raises:
      ValueError: the matrices are not square.

    See also: ``linalg.solve``, ``linalg.pinv``, ``linalg.det``.

    >>> jnp.linalg.inv(jnp.array([[2., 0.], [0., 4.]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    a = square_matrices("inv", a, "inv", ".")
    return solve(a, shapes.broadcast_to(ranges.eye(a.shape[-1], dtype=a.dtype), a.shape))


@at_once
def pinv(a: ArrayLike, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> Array:
    """The Moore-Penrose pseudo-inverses of matrices ``(..., m, n)``.

    Args:
      rtol: singular values up to ``rtol`` times the greatest one are treated as zero; by default 10
        times max(m, n) times the dtype's epsilon.

    >>> jnp.linalg.pinv(jnp.array([[2., 0.], [0., 0.]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    a = inexact("pinv", a)
    if a.ndim < 2:
        raise ValueError(f"not enough values to unpack (expected 2, got {a.ndim})")
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: only one of rtol and rcond may be specified.")
    if rtol is None:
        rtol = rcond if rcond is not None else 10.0 * max(a.shape[-2:]) * epsilon(a)
    return _pinv(a, as_array(rtol), hermitian)


@functools.partial(custom_jvp, nondiff_argnums=(2,))
def _pinv(a: Array, rtol: Array, hermitian: bool) -> Array:
    m, n = a.shape[-2:]
    if not m or not n:
        return filled.empty((*a.shape[:-2], n, m), a.dtype)
    left, values, right = svd(a, full_matrices=False, hermitian=hermitian)
    rtol, largest = promote_shapes("", rtol[..., None], values[..., :1])
    cutoff = rtol * largest
    values = where(values > cutoff, values, np.inf).astype(a.dtype)
    return contraction.matmul(adjoint(right), ufuncs.divide(adjoint(left), values[..., None]))


@_pinv.defjvp
def _pinv_jvp(hermitian: bool, primals: Any, tangents: Any) -> Any:
    """G. Golub and V. Pereyra (1973): -p a' p + p p^H a'^H (1 - a p) + (1 - p a) a'^H p^H p."""
    (a, rtol), (tangent, _) = primals, tangents
    p = _pinv(a, rtol, hermitian)
    if hermitian:
        tangent = (tangent + adjoint(tangent)) / 2
    p_adjoint, tangent_adjoint = adjoint(p), adjoint(tangent)
    first = _product(p, tangent, p)
    left = _product(p, p_adjoint, tangent_adjoint)
    left = left - _product(left, a, p)
    right = _product(tangent_adjoint, p_adjoint, p)
    right = right - _product(p, a, right)
    return p, left + right - first


def _product(x: Array, y: Array, z: Array) -> Array:
    """The product of three matrices, in the order whose intermediate matrix is the smaller."""
    rows, middle, columns = x.shape[-2], y.shape[-2:], z.shape[-1]
    if not any(map(is_dimension, (rows, *middle, columns))) and (
            middle[0] * columns < rows * middle[1]):
        return contraction.matmul(x, contraction.matmul(y, z))
    return contraction.matmul(contraction.matmul(x, y), z)


@at_once
def matrix_rank(M: ArrayLike, rtol: Any = None, *, hermitian: bool = False,
                tol: Any = None) -> Array:
    """The number of singular values above ``rtol``, or ``tol``: as in JAX, both are absolute.

    Without either, it is the greatest one times the epsilon times the number of rows or columns.

    >>> jnp.linalg.matrix_rank(jnp.array([[1., 2.], [2., 4.]]))
    Array(1, dtype=int32)
    """
    check_arraylike("jnp.linalg.matrix_rank", M)
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: only one of tol or rtol may be specified.")
    x = inexact("matrix_rank", M)
    if x.ndim < 2:
        return reductions.any(x != 0).astype(np.int32)
    values = ufuncs.abs(eigvalsh(x)) if hermitian else svd(x, full_matrices=False,
                                                           compute_uv=False)
    limit = rtol if tol is None else tol
    if limit is None:
        limit = max(x.shape[-2:]) * epsilon(values) * values.max(-1)
    return reductions.sum(values > as_array(limit)[..., None], -1)


@at_once
def lstsq(a: ArrayLike, b: ArrayLike, rcond: Any = None, *, numpy_resid: bool = False
          ) -> tuple[Array, ...]:
    """``(x, residuals, rank, singular values)`` for the least-squares solution of ``a x = b``.

    Args:
      a: shape ``(m, n)``.
      b: shape ``(m,)`` or ``(m, k)``.
      rcond: singular values below this share of the greatest count as 0; None: the dtype's
        precision times the greater size.
      numpy_resid: residuals are empty where NumPy's are; not under ``jit``.

    Returns:
      A tuple of arrays: ``(n,)`` or ``(n, k)``; the squared distances; a scalar; ``(min(m, n),)``.

    Raises:
      TypeError, ValueError: the shapes do not fit.

    See also: ``linalg.solve``, ``linalg.pinv``, ``linalg.svd``, ``polyfit``.

    >>> x, residuals, rank, _ = jnp.linalg.lstsq(jnp.array([[1.], [1.]]), jnp.array([1., 3.]))
    >>> x.round(3), rank
    (Array([2.], dtype=float32), Array(1, dtype=int32))
    """
    check_arraylike("jnp.linalg.lstsq", a, b)
    a, b = (as_array(x) for x in promote_inexact("jnp.linalg.lstsq", a, b))
    if a.shape[0] != b.shape[0]:
        raise ValueError("Leading dimensions of input arrays must match")
    if a.ndim != 2:
        raise TypeError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    if b.ndim not in (1, 2):
        raise TypeError(f"{b.ndim}-dimensional array given. Array must be one or two-dimensional")
    m, n = a.shape
    vector = b.ndim == 1
    right = b[:, None] if vector else b
    if not math.prod(a.shape):
        values = filled.empty(0, dtype=a.dtype)
        rank = as_array(np.int32(0))
        x = filled.zeros((n, right.shape[1]), a.dtype)
    else:
        limit = max(m, n) * epsilon(a) if rcond is None else where(
            as_array(rcond) < 0, epsilon(a), rcond)
        left, values, right_vectors = svd(a, full_matrices=False)
        kept = (values > 0) & (values >= as_array(limit).astype(values.dtype) * values[0])
        rank = reductions.sum(kept)
        inverse = where(kept, 1 / where(kept, values, 1), 0).astype(a.dtype)
        projected = contraction.matmul(adjoint(left), right)
        x = contraction.matmul(adjoint(right_vectors), inverse[:, None] * projected)
    if numpy_resid and (int(rank) < n or m <= n):
        residuals = filled.empty(0, dtype=values.dtype)
    else:
        difference = right - contraction.matmul(a, x)
        squares = ufuncs.abs(difference) ** 2
        residuals = reductions.sum(squares, 0)
    return x.ravel() if vector else x, residuals, rank, values
