"""Eigenvalues, and the forms of a matrix that show them: Schur, Hessenberg."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._higher_order.jit_function import make_jit
from maxjax._ir.trace import Array
from maxjax.lax import linalg as lax_linalg
from maxjax.numpy._at_once import at_once
from maxjax.scipy.linalg._decompositions import inexact


@at_once
def eigh(a: Any, b: Any = None, lower: bool = True, eigvals_only: bool = False,
         overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True,
         eigvals: None = None, type: int = 1, check_finite: bool = True) -> Any:
    """The eigenvalues, ascending, and the eigenvectors of a Hermitian matrix.

    Args:
      b: positive definite; then the problem is ``a v = w b v`` (``type`` 1), ``a b v = w v`` (2),
        or ``b a v = w v`` (3).

    Raises:
      NotImplementedError: ``eigvals`` is given.
      ValueError: ``type`` is not 1, 2 or 3, or matrices are not square.

    >>> jax.scipy.linalg.eigh(jnp.array([[2., 1.], [1., 2.]]), eigvals_only=True)
    Array([1., 3.], dtype=float32)
    """
    if type not in (1, 2, 3):
        raise ValueError("type must be 1, 2, or 3.")
    if eigvals is not None:
        raise NotImplementedError("Only the eigvals=None case of eigh is implemented.")
    matrices = inexact("eigh", *([a] if b is None else [a, b]))
    for name, x in zip("ab", matrices, strict=False):
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise ValueError(f"Argument {name} to linalg.eigh must have shape [..., n, n], got "
                             f"{x.shape}.")
    if b is None:
        v, w = lax_linalg.eigh(*matrices, lower=lower)
        return w if eigvals_only else (w, v)
    solve = jnp.vectorize(functools.partial(_generalized_eigh, lower, type),
                          signature="(n,n),(n,n)->(n),(n,n)")
    w, v = solve(*matrices)
    return w if eigvals_only else (w, v)


def _generalized_eigh(lower: bool, kind: int, a: Array, b: Array) -> tuple[Array, Array]:
    """By the Cholesky factor L of ``b``: the values of ``L^-1 a L^-H``, or of ``L^H a L``, are
    those of the problem, and ``L^-H v``, or ``L v`` for the third kind, its vectors."""
    def product(x: Array, y: Array) -> Array:
        return jnp.matmul(x, y, precision=lax.Precision.HIGHEST)

    factor = lax_linalg.cholesky(b)
    adjoint = jnp.conj(factor.mT)
    a = (a + jnp.conj(a.mT)) / 2
    if kind == 1:
        half = lax_linalg.triangular_solve(factor, a, left_side=True, lower=True)
        a = lax_linalg.triangular_solve(factor, half, lower=True, transpose_a=True,
                                        conjugate_a=True)
    else:
        a = product(product(adjoint, a), factor)
    v, w = lax_linalg.eigh(a, lower=lower)
    if kind == 3:
        return w, product(factor, v)
    return w, lax_linalg.triangular_solve(factor, v, left_side=True, lower=True, transpose_a=True,
                                          conjugate_a=True)


@at_once
def schur(a: Any, output: str = "real") -> tuple[Array, Array]:
    """``T, Z`` with ``Z @ T @ Z.conj().T = a``, ``Z`` unitary and ``T`` (quasi-)triangular.

    Raises:
      ValueError: ``output`` is neither "real" nor "complex".

    >>> jax.scipy.linalg.schur(jnp.array([[1., 2.], [0., 3.]]))[0]
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ValueError(f"Expected 'output' to be either 'real' or 'complex', got {output=}.")
    a, = inexact("schur", a)
    if output == "complex":
        a = a.astype(dtypes.complex_dtype(a.dtype))
    T, Z = lax_linalg.schur(a)
    return T, Z


@at_once
def hessenberg(a: Any, *, calc_q: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> Any:
    """``h``, zero below its first subdiagonal, and ``q`` with ``q @ h @ q.conj().T = a``.

    >>> jax.scipy.linalg.hessenberg(jnp.array([[1., 2.], [3., 4.]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    a, = inexact("hessenberg", a)
    reflectors, taus = lax_linalg.hessenberg(a)
    h = jnp.triu(reflectors, -1)
    if not calc_q:
        return h
    size = a.shape[-1]
    if size < 2:
        return h, jnp.broadcast_to(jnp.eye(size, dtype=a.dtype), a.shape)
    inner = lax_linalg.householder_product(reflectors[..., 1:, :-1], taus)
    q = jnp.broadcast_to(jnp.eye(size, dtype=a.dtype), a.shape)
    return h, q.at[..., 1:, 1:].set(inner)


def rsf2csf(T: Any, Z: Any, check_finite: bool = True) -> tuple[Array, Array]:
    """The complex Schur form of a real one.

    >>> T, Z = jax.scipy.linalg.rsf2csf(jnp.array([[0., -1.], [1., 0.]]), jnp.eye(2))
    >>> jnp.abs(jnp.diag(T)).round(4)
    Array([1., 1.], dtype=float32)
    """
    T, Z = (jnp.asarray(x) for x in (T, Z))
    if T.ndim < 2 or T.shape[-2] != T.shape[-1]:
        raise ValueError("Input 'T' must be square.")
    if Z.ndim < 2 or Z.shape[-2] != Z.shape[-1]:
        raise ValueError("Input 'Z' must be square.")
    if T.shape[-1] != Z.shape[-1]:
        raise ValueError(f"Input array shapes must match: Z: {Z.shape} vs. T: {T.shape}")
    return jnp.vectorize(_complex_schur_form, signature="(n,n),(n,n)->(n,n),(n,n)")(T, Z)


@make_jit
def _complex_schur_form(T: Array, Z: Array) -> tuple[Array, Array]:
    dtype = dtypes.complex_dtype(jnp.result_type(T, Z))
    eps = float(np.finfo(dtypes.real_dtype(dtype)).eps)
    T, Z = T.astype(dtype), Z.astype(dtype)
    size = T.shape[0]
    places = jnp.arange(size)

    def rotate(m: Any, T: Array, Z: Array) -> tuple[Array, Array]:
        """A rotation of rows and columns m - 1 and m that makes the element at (m, m - 1) zero.

        Elements to the left of its block and below it are assumed to be zero, and are not changed.
        """
        block = lax.dynamic_slice(T, (m - 1, m - 1), (2, 2))
        mu = jnp.linalg.eigvals(block)[0] - block[1, 1]
        r = jnp.hypot(jnp.abs(mu), jnp.abs(block[1, 0])).astype(dtype)
        c, s = mu / r, block[1, 0] / r
        G = jnp.array([[jnp.conj(c), s], [-s, c]])
        rows = lax.dynamic_slice_in_dim(T, m - 1, 2, axis=0)
        right = places >= m - 1
        T = lax.dynamic_update_slice_in_dim(
            T, jnp.where(right, G @ jnp.where(right, rows, 0), rows), m - 1, axis=0)
        columns = lax.dynamic_slice_in_dim(T, m - 1, 2, axis=1)
        above = places[:, None] <= m
        T = lax.dynamic_update_slice_in_dim(
            T, jnp.where(above, jnp.where(above, columns, 0) @ jnp.conj(G.T), columns), m - 1,
            axis=1)
        vectors = lax.dynamic_slice_in_dim(Z, m - 1, 2, axis=1) @ jnp.conj(G.T)
        return T, lax.dynamic_update_slice_in_dim(Z, vectors, m - 1, axis=1)

    def body(i: Any, state: tuple[Array, Array]) -> tuple[Array, Array]:
        m, (T, Z) = size - i, state
        scale = jnp.abs(T[m - 1, m - 1]) + jnp.abs(T[m, m])
        T, Z = lax.cond(jnp.abs(T[m, m - 1]) > eps * scale, rotate, lambda m, T, Z: (T, Z),
                        m, T, Z)
        return T.at[m, m - 1].set(0.0), Z

    return lax.fori_loop(1, size, body, (T, Z)) if size > 1 else (T, Z)


def eigh_tridiagonal(d: Any, e: Any, *, eigvals_only: bool = False, select: str = "a",
                     select_range: Any = None, tol: float | None = None,
                     key: Any = None) -> Any:
    """Eigenvalues, and eigenvectors, of a symmetric or Hermitian tridiagonal matrix.

    Args:
      d, e: the diagonal, shape ``(N,)``, and what is above it, shape ``(N - 1,)``.
      select: "a": all; "i": those numbered from ``select_range[0]`` to ``select_range[1]``; "v",
        which JAX does not support either.
      tol, key: accepted: the values are accurate to rounding.

    >>> jax.scipy.linalg.eigh_tridiagonal(jnp.zeros(2), jnp.ones(1), eigvals_only=True)
    Array([-1.,  1.], dtype=float32)
    """
    d, e = inexact("eigh_tridiagonal", d, e)
    if d.ndim != 1 or e.ndim != 1 or e.shape[0] != d.shape[0] - 1:
        raise ValueError("d and e must be vectors, e one shorter than d")
    if select == "v":
        raise NotImplementedError("select='v' is not implemented")
    if select not in ("a", "i"):
        raise ValueError(f"'select must have a value in {{'a', 'i', 'v'}}, got {select=}")
    matrix = jnp.diag(d) + jnp.diag(e, 1) + jnp.diag(jnp.conj(e), -1)
    v, w = lax_linalg.eigh(matrix)
    if select == "i":
        if select_range is None:
            raise ValueError("for select='i', select_range must be given")
        low, high = select_range
        v, w = v[:, low:high + 1], w[low:high + 1]
    return w if eigvals_only else (w, v)
