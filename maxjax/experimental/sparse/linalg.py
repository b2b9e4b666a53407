"""Linear algebra with sparse matrices: linear systems, and some of the greatest eigenvalues."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

import maxjax
from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._ir.trace import Array
from maxjax.experimental.sparse._primitives import sparse_primitive
from maxjax.experimental.sparse.util import promoted, relaxed, stored_rows

# --- linear systems -------------------------------------------------------------------------------


def _solve_on_host(data: Any, indices: Any, indptr: Any, b: Any, transposed: bool) -> np.ndarray:
    data, indices, indptr, b = map(np.asarray, (data, indices, indptr, b))
    size = b.shape[0]
    mat = scipy.sparse.csr_matrix((data, indices, indptr), shape=(size, size))
    mat = mat.T.tocsr() if transposed else mat
    return scipy.sparse.linalg.spsolve(mat, b).astype(b.dtype)


def _spsolve(data: Any, indices: Any, indptr: Any, b: Any, *, tol: float, reorder: int) -> Any:
    rows = stored_rows(indices, indptr)

    def times(x: Any) -> Any:
        return jnp.zeros(b.shape, b.dtype).at[rows].add(data * x[indices])

    def solve(transposed: bool, _: Any, b: Any) -> Any:
        return maxjax.pure_callback(
            functools.partial(_solve_on_host, transposed=transposed),
            maxjax.ShapeDtypeStruct(b.shape, b.dtype), lax.stop_gradient(data), indices, indptr, b,
            vmap_method="sequential")

    return lax.custom_linear_solve(times, b, functools.partial(solve, False),
                                   functools.partial(solve, True))


spsolve_p = sparse_primitive("spsolve", _spsolve)


def spsolve(data: Any, indices: Any, indptr: Any, b: Any, tol: float = 1e-6,
            reorder: int = 1) -> Array:
    """The solution of a linear system with a matrix of compressed rows; computed on the host.

    Args:
      data, indices, indptr: the matrix, as of ``CSR``: (nse,), (nse,), (N + 1,).
      b: the right-hand side (N,).
      tol, reorder: how the solver of GPUs works; without effect.

    Raises:
      ValueError: shapes or dtypes do not fit.

    Differentiable in ``data`` and ``b``.

    >>> from maxjax.experimental.sparse import CSR, linalg
    >>> m = CSR.fromdense(jnp.array([[2., 0.], [0., 4.]]))
    >>> linalg.spsolve(m.data, m.indices, m.indptr, jnp.array([2., 2.]))
    Array([1. , 0.5], dtype=float32)
    """
    data, indices, indptr, b = map(jnp.asarray, (data, indices, indptr, b))
    if not data.ndim == indices.ndim == indptr.ndim == b.ndim == 1:
        raise ValueError(f"Arrays must be one-dimensional. Got data.shape={data.shape} "
                         f"indices.shape={indices.shape} indptr.shape={indptr.shape} "
                         f"b.shape={b.shape}")
    if indptr.size != b.size + 1 or data.shape != indices.shape:
        raise ValueError(f"Invalid CSR buffer sizes: data.shape={data.shape} "
                         f"indices.shape={indices.shape} indptr.shape={indptr.shape}")
    if data.dtype != b.dtype:
        raise ValueError(f"data types do not match: data.dtype={data.dtype!r} b.dtype={b.dtype!r}")
    if not (dtypes.is_integer(indices.dtype) and dtypes.is_integer(indptr.dtype)):
        raise ValueError(f"index arrays must be integer typed; got indices.dtype={indices.dtype!r} "
                         f"indptr.dtype={indptr.dtype!r}")
    return spsolve_p.bind(data, indices, indptr, b, tol=tol, reorder=reorder)


# --- eigenvalues ----------------------------------------------------------------------------------

def lobpcg_standard(A: Any, X: Any, m: int = 100, tol: Any = None) -> tuple[Any, Any, Any]:
    """The k greatest eigenvalues of a symmetric matrix, by locally optimal conjugate gradients.

    Each step minimizes over the span of the present vectors, their residuals and the last steps'
    directions (A. V. Knyazev, SIAM J. Sci. Comput. 23, 2001), all of them orthonormal.

    Args:
      A: a positive semidefinite matrix (n, n), or the function that multiplies one by (n, k).
      X: where to begin, (n, k); its columns are linearly independent, and n > 5 k.
      m: the greatest number of steps.
      tol: the residual, relative to the eigenvalue and the size of the matrix, at which a vector
        counts as found; by default the precision of the dtype.

    Returns:
      The eigenvalues (k,), greatest first; the eigenvectors (n, k); the number of steps.

    Raises:
      ValueError: shapes do not fit.

    >>> from maxjax.experimental.sparse import linalg
    >>> theta, U, steps = linalg.lobpcg_standard(jnp.diag(jnp.arange(1.0, 21.0)), jnp.ones((20, 1)))
    >>> theta.round(3)
    Array([20.], dtype=float32)
    """
    X = jnp.asarray(X)
    if isinstance(A, (Array, np.ndarray)):
        matrix = jnp.asarray(A)
        times: Callable[[Any], Any] = functools.partial(_mm, matrix)
    else:
        times = A
    n, k = X.shape
    if k * 5 >= n:
        raise ValueError(f"expected search dim * 5 < matrix dim (got {k * 5}, {n})")
    out = maxjax.eval_shape(times, maxjax.ShapeDtypeStruct((n, 1), X.dtype))
    if out.shape != (n, 1):
        raise ValueError(f"A must be ({n}, {n}) matrix A, got output {out.shape}")
    if tol is None:
        tol = jnp.finfo(X.dtype).eps
    with relaxed():
        return _lobpcg(times, X, m, tol)


def _mm(a: Any, b: Any) -> Any:
    a, b = promoted(a, b)
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def _adjoint(x: Any) -> Any:
    return jnp.conj(x.T)


def _lobpcg(times: Callable[[Any], Any], X: Any, m: int, tol: Any) -> tuple[Any, Any, Any]:
    n, k = X.shape
    X = _orthonormal(X)
    AX = times(X)
    theta = jnp.sum(jnp.conj(X) * AX, 0).real
    R = AX - theta * X

    def going_on(state: Any) -> Any:
        step, _, _, _, _, converged = state
        return (step < m) & (converged < k)

    def one_step(state: Any) -> Any:
        step, X, P, R, theta, _ = state
        # Against what is already spanned, and among themselves; a vector that vanishes is zero.
        R = _orthonormal(_project_out(X, R))
        P = _orthonormal(_project_out(jnp.concatenate([X, R], 1), P))
        S = jnp.concatenate([X, R, P], 1)
        AS = times(S)
        gram = _mm(_adjoint(S), AS)
        values, vectors = jnp.linalg.eigh((gram + _adjoint(gram)) / 2)
        best = vectors[:, ::-1][:, :k]
        # The directions of the step: what the new vectors have of all but the old ones.
        others = best.at[:k].set(0)
        X_new = _orthonormal(_mm(S, best))
        P_new = _mm(S, others)
        AX = times(X_new)
        theta = jnp.sum(jnp.conj(X_new) * AX, 0).real
        R_new = AX - theta * X_new
        # Rounding in the products grows with the size of the matrix.
        residual = jnp.linalg.norm(R_new, axis=0) / (
            (theta + jnp.max(jnp.abs(theta))) * 10 * n)
        converged = jnp.sum(residual < tol)
        return step + 1, X_new, P_new, R_new, theta, converged

    state = (0, X, jnp.zeros_like(X), R, theta, jnp.zeros((), np.int32))
    state = _while(going_on, one_step, state)
    step, X, _, _, theta, _ = state
    order = jnp.argsort(-theta)
    return theta[order], X[:, order], step


def _while(condition: Any, body: Any, state: Any) -> Any:
    first = maxjax.tree_util.tree_map(jnp.asarray, state)
    types = [x.dtype for x in maxjax.tree_util.tree_leaves(first)]

    def cast(state: Any) -> Any:
        leaves, tree = maxjax.tree_util.tree_flatten(state)
        return maxjax.tree_util.tree_unflatten(
            tree, [x.astype(t) for x, t in zip(leaves, types, strict=True)])
    return lax.while_loop(condition, lambda state: cast(body(state)), first)


def _project_out(basis: Any, U: Any) -> Any:
    for _ in range(2):      # once more against the rounding of the first time
        U = U - _mm(basis, _mm(_adjoint(basis), U))
    return U


def _orthonormal(U: Any) -> Any:
    """An orthonormal basis of the same span, with zeros for what is dependent."""
    for _ in range(2):
        scale = jnp.linalg.norm(U, axis=0)
        U = U / jnp.where(scale == 0, jnp.ones_like(scale), scale)
        values, vectors = jnp.linalg.eigh(_mm(_adjoint(U), U))
        least = jnp.finfo(U.dtype).eps * 10 * jnp.max(values)
        good = values > least
        U = _mm(U, vectors) * jnp.where(good, lax.rsqrt(jnp.where(good, values, 1)), 0)
    return U
