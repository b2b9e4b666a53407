"""Factorizations: Cholesky, LU, QR, singular values, polar."""

from __future__ import annotations

from typing import Any

from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._ir.trace import Array
from maxjax.lax import linalg as lax_linalg
from maxjax.numpy._at_once import at_once
from maxjax.numpy._promotion import promote_inexact
from maxjax.numpy._reductions import strong


def inexact(name: str, *args: Any) -> list[Any]:
    return [jnp.asarray(x) for x in promote_inexact(name, *args)]


def _adjoint(x: Any) -> Any:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


# --- Cholesky -------------------------------------------------------------------------------------

@at_once
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False,
             check_finite: bool = True) -> Array:
    """The triangular factor of a Hermitian, positive definite matrix; the upper one by default.

    >>> jax.scipy.linalg.cholesky(jnp.array([[4., 2.], [2., 2.]]))
    Array([[2., 1.],
           [0., 1.]], dtype=float32)
    """
    a, = inexact("cholesky", a)
    if a.ndim < 2 and not lower:
        raise ValueError("x must be at least two-dimensional for matrix_transpose; got "
                         f"ndim={a.ndim}")
    factor = lax_linalg.cholesky(a if lower else _adjoint(a), symmetrize_input=False)
    return factor if lower else _adjoint(factor)


# --- LU -------------------------------------------------------------------------------------------


@at_once
def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False,
       check_finite: bool = True) -> Any:
    """``P, L, U`` with ``P @ L @ U = a``; with ``permute_l``: ``P @ L, U``.

    >>> P, L, U = jax.scipy.linalg.lu(jnp.array([[1., 2.], [4., 4.]]))
    >>> U
    Array([[4., 4.],
           [0., 1.]], dtype=float32)
    """
    a, = inexact("lu", a)
    if a.ndim < 2:
        raise ValueError(
            f"input with shape {a.shape} does not have enough dimensions for all core dimensions "
            "('m', 'n') on vectorized function with excluded=frozenset() and "
            "signature='(m,n)->(m,m),(m,k),(k,n)'")
    factors, _, permutation = lax_linalg.lu(a)
    m, n = a.shape[-2:]
    k = min(m, n)
    dtype = dtypes.real_dtype(a.dtype)
    P = (permutation[..., None, :] == jnp.arange(m)[:, None]).astype(dtype)
    L = jnp.tril(factors, -1)[..., :k] + jnp.eye(m, k, dtype=a.dtype)
    U = jnp.triu(factors)[..., :k, :]
    return (jnp.matmul(P.astype(a.dtype), L), U) if permute_l else (P, L, U)


# --- QR, SVD, polar -------------------------------------------------------------------------------

@at_once
def qr(a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full",
       pivoting: bool = False, check_finite: bool = True) -> Any:
    """The QR decomposition.

    Args:
      mode: "full", "r" (which returns ``(r,)``) or "economic".
      pivoting: also return a permutation of the columns.

    Raises:
      ValueError: there is no such mode.

    >>> r, = jax.scipy.linalg.qr(jnp.array([[3., 0.], [4., 5.]]), mode="r")
    >>> jnp.abs(r)
    Array([[5., 4.],
           [0., 3.]], dtype=float32)
    """
    if mode not in ("full", "r", "economic"):
        raise ValueError(f"Unsupported QR decomposition mode {mode!r}")
    a, = inexact("qr", a)
    result = lax_linalg.qr(a, pivoting=pivoting, full_matrices=mode != "economic")
    q, r, *rest = result
    return (r, *rest) if mode == "r" else (q, r, *rest)


def qr_multiply(a: Any, c: Any, mode: str = "right", pivoting: bool = False,
                conjugate: bool = False, overwrite_a: bool = False,
                overwrite_c: bool = False) -> Any:
    """The product with the unitary factor of ``a``, and the triangular factor.

    Args:
      mode: "left": ``q @ c``; "right": ``c @ q``.
      conjugate: take the conjugate of ``q``.

    >>> a = jnp.array([[0., 2.], [1., 0.]])
    >>> jnp.abs(jax.scipy.linalg.qr_multiply(a, jnp.eye(2), "left")[1])
    Array([[1., 0.],
           [0., 2.]], dtype=float32)
    """
    if mode not in ("left", "right"):
        raise ValueError(f"mode must be 'left' or 'right', got {mode!r}")
    a, c = inexact("qr_multiply", a, c)
    q, r, *rest = qr(a, mode="economic", pivoting=pivoting)
    if conjugate:
        q = jnp.conj(q)
    if c.ndim == 1:
        rows = c[:, None] if mode == "left" else c[None, :]
        product = jnp.matmul(q, rows)[:, 0] if mode == "left" else jnp.matmul(rows, q)[0]
    elif mode == "left":
        product = jnp.matmul(q, c)
    else:
        product = jnp.matmul(c, q)
    return (product, r, *rest)


@at_once
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False,
        check_finite: bool = True, lapack_driver: str = "gesdd") -> Any:
    """The singular value decomposition ``u, s, vh``, or only ``s``.

    >>> jax.scipy.linalg.svd(jnp.array([[3., 0.], [0., 4.]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    a, = inexact("svd", a)
    if not compute_uv:
        return lax_linalg.svd(a, full_matrices=full_matrices, compute_uv=False)
    u, s, vh = lax_linalg.svd(a, full_matrices=full_matrices, compute_uv=True)
    return u, s, vh


def polar(a: Any, side: str = "right", *, method: str = "qdwh", eps: float | None = None,
          max_iterations: int | None = None) -> tuple[Array, Array]:
    """``u, p`` with ``u`` unitary, ``p`` positive semidefinite, and ``u @ p = a``.

    Args:
      side: "left": ``p @ u = a``.
      method: "qdwh" or "svd"; both use the singular value decomposition here.

    Raises:
      ValueError: there is no such side or method.
      NotImplementedError: "qdwh" on the right for a matrix with more columns than rows, on the left
        for any other.

    >>> jax.scipy.linalg.polar(jnp.array([[0., -2.], [3., 0.]]))[1]
    Array([[3., 0.],
           [0., 2.]], dtype=float32)
    """
    a, = inexact("polar", a)
    if a.ndim < 2:
        raise ValueError("The input `a` must be a 2-D array.")
    if side not in ("left", "right"):
        raise ValueError(f"The argument `side` must be either 'right' or 'left', got {side!r}")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"Unknown polar decomposition method {method}.")
    m, n = a.shape[-2:]
    if method == "qdwh" and ((side == "right" and m < n) or (side == "left" and m >= n)):
        raise NotImplementedError("method='qdwh' only supports mxn matrices where m < n where "
                                  "side='right' and m >= n side='left', got "
                                  f"{a.shape} with side={side!r}")
    if method == "qdwh":
        a = strong(a)      # JAX's iteration begins with a strongly typed quotient
    u, s, vh = lax_linalg.svd(a, full_matrices=False)
    unitary = u @ vh
    if side == "right":
        return unitary, (_adjoint(vh) * s[..., None, :].astype(vh.dtype)) @ vh
    return unitary, (u * s[..., None, :].astype(u.dtype)) @ _adjoint(u)
