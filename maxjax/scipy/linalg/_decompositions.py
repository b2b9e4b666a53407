"""Factorizations, and the solvers that use them."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._higher_order.jit_function import make_jit
from maxjax._ir.trace import Array
from maxjax.lax import linalg as lax_linalg
from maxjax.numpy._logic import input_dimensions
from maxjax.numpy._promotion import promote_inexact
from maxjax.numpy._reductions import strong


def _inexact(name: str, *args: Any) -> list[Any]:
    return [jnp.asarray(x) for x in promote_inexact(name, *args)]


def _adjoint(x: Any) -> Any:
    return jnp.conj(jnp.swapaxes(x, -1, -2))


# --- Cholesky -------------------------------------------------------------------------------------

def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False,
             check_finite: bool = True) -> Array:
    """The triangular factor of a Hermitian, positive definite matrix; the upper one by default.

    >>> jax.scipy.linalg.cholesky(jnp.array([[4., 2.], [2., 2.]]))
    Array([[2., 1.],
           [0., 1.]], dtype=float32)
    """
    a, = _inexact("cholesky", a)
    if a.ndim < 2 and not lower:
        raise ValueError("x must be at least two-dimensional for matrix_transpose; got "
                         f"ndim={a.ndim}")
    factor = lax_linalg.cholesky(a if lower else _adjoint(a), symmetrize_input=False)
    return factor if lower else _adjoint(factor)


def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> tuple[Array, bool]:
    """``cholesky(a, lower)`` and ``lower``, for ``cho_solve``.

    Args:
      a: positive definite matrices ``(..., n, n)``.
      lower: give the lower factor; otherwise the upper.
      overwrite_a, check_finite: accepted.

    Returns:
      A pair of the factor and ``lower``. The other triangle is 0, where SciPy's holds anything.

    Raises:
      ValueError: the matrices are not square.

    See also: ``linalg.cho_solve``, ``linalg.cholesky``, ``linalg.solve``.

    >>> jax.scipy.linalg.cho_factor(jnp.array([[4.]]))
    (Array([[2.]], dtype=float32), False)
    """
    return cholesky(a, lower=lower), lower


def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False,
              check_finite: bool = True) -> Array:
    """Solves ``a @ x = b`` with the factor of ``a``.

    Args:
      c_and_lower: a pair, as from ``cho_factor``.
      b: shape ``(..., n)`` or ``(..., n, m)``.
      overwrite_b, check_finite: accepted.

    Returns:
      An array of the shape of ``b``.

    Raises:
      ValueError: the sizes do not fit.

    See also: ``linalg.cho_factor``, ``linalg.solve``, ``linalg.solve_triangular``.

    >>> jax.scipy.linalg.cho_solve((jnp.array([[2.]]), False), jnp.array([8.]))
    Array([2.], dtype=float32)
    """
    c, lower = c_and_lower
    c, b = _inexact("cho_solve", c, b)
    first, second = (0, 2) if lower else (2, 0)
    right = _as_matrices("cho_solve", "c_and_lower", c, b)
    x = _triangular(c, _triangular(c, right, first, lower), second, lower)
    return x if right is b else x[..., 0]


# --- triangular and general systems ---------------------------------------------------------------

def solve_triangular(a: Any, b: Any, trans: int | str = 0, lower: bool = False,
                     unit_diagonal: bool = False, overwrite_b: bool = False, debug: Any = None,
                     check_finite: bool = True) -> Array:
    """Solves ``a @ x = b`` for a triangular ``a``.

    Args:
      a: shape ``(..., N, N)``.
      b: shape ``(..., N)`` or ``(..., N, M)``.
      trans: 0 or "N": ``a``; 1 or "T": its transpose; 2 or "C": its adjoint.
      lower, unit_diagonal: properties of ``a``.
      overwrite_b, debug, check_finite: accepted.

    Returns:
      An array of the shape of ``b``; the other triangle of ``a`` is not read.

    Raises:
      ValueError: the sizes do not fit.

    See also: ``linalg.solve``, ``linalg.cho_solve``, ``jax.lax.linalg.triangular_solve``.

    >>> jax.scipy.linalg.solve_triangular(jnp.array([[2., 1.], [0., 1.]]), jnp.array([4., 2.]))
    Array([1., 2.], dtype=float32)
    """
    if trans not in (0, 1, 2, "N", "T", "C"):
        raise ValueError(f"Invalid 'trans' value {trans}")
    a, b = _inexact("solve_triangular", a, b)
    right = _as_matrices("solve_triangular", "a", a, b)
    x = _triangular(a, right, trans, lower, unit_diagonal)
    return x if right is b else x[..., 0]


def _as_matrices(name: str, first: str, a: Array, b: Array) -> Array:
    """Right sides as matrices: vectors get an axis, also batches of them (with a warning).

    Raises:
      ValueError: ``a`` is no square matrix, or of another size than the right sides.
    """
    if b.ndim != 1 and (b.ndim != a.ndim - 1 or b.shape[-1] != a.shape[-1]):
        input_dimensions((a.shape, b.shape), (("n", "n"), ("n", "k")), f" in {name}")
        return b
    input_dimensions((a.shape, b.shape), (("n", "n"), ("n",)), f" in {name}")
    if b.ndim > 1:
        warnings.warn(
            f"jax.scipy.linalg.{name}: batched 1D solves with b.ndim > 1 are deprecated, and in "
            "the future will be treated as a batched 2D solve. Use "
            f"{name}({first}, b[..., None]).squeeze(-1) to avoid this warning.",
            FutureWarning, stacklevel=3)
    return b[..., None]


def _triangular(a: Array, right: Array, trans: int | str, lower: bool,
                unit_diagonal: bool = False) -> Array:
    batch = np.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    return lax_linalg.triangular_solve(
        jnp.broadcast_to(a, (*batch, *a.shape[-2:])),
        jnp.broadcast_to(right, (*batch, *right.shape[-2:])), left_side=True, lower=lower,
        transpose_a=trans not in (0, "N"), conjugate_a=trans in (2, "C"),
        unit_diagonal=unit_diagonal)


def solve(a: Any, b: Any, lower: bool = False, overwrite_a: bool = False,
          overwrite_b: bool = False, debug: bool = False, check_finite: bool = True,
          assume_a: str = "gen") -> Array:
    """Solves ``a @ x = b``.

    Args:
      a: shape ``(..., n, n)``.
      b: shape ``(..., n)`` or ``(..., n, m)``.
      lower: for "pos": read the lower triangle.
      overwrite_a, overwrite_b, debug, check_finite: accepted.
      assume_a: "gen", "sym", "her", or "pos" (positive definite: by Cholesky decomposition).

    Returns:
      An array of the shape of ``b``, with infinities and NaN for singular matrices.

    Raises:
      ValueError: there is no such ``assume_a``, or the shapes do not fit.

    See also: ``linalg.cho_solve``, ``linalg.lu_solve``, ``linalg.solve_triangular``,
    ``jnp.linalg.solve``.

    >>> jax.scipy.linalg.solve(jnp.array([[2., 0.], [0., 4.]]), jnp.array([2., 8.]))
    Array([1., 2.], dtype=float32)
    """
    if assume_a not in ("gen", "sym", "her", "pos"):
        raise ValueError(f"Expected assume_a to be one of ['gen', 'sym', 'her', 'pos']; "
                         f"got {assume_a!r}")
    if assume_a != "pos":
        return jnp.linalg.solve(a, b)
    a, b = _inexact("solve", a, b)
    if not (a.ndim >= 2 and b.ndim in (a.ndim, a.ndim - 1)
            and a.shape[-1] == a.shape[-2] == b.shape[a.ndim - 2]):
        raise ValueError("The arguments to solve must have shapes a=[..., m, m] and b=[..., m, k] "
                         f"or b=[..., m]; got a={a.shape} and b={b.shape}")
    right = b[..., None] if b.ndim < a.ndim else b
    x = jnp.vectorize(functools.partial(_solve_positive, lower),
                      signature="(n,n),(n,k)->(n,k)")(a, right)
    return x if right is b else x[..., 0]


def _solve_positive(lower: bool, a: Array, b: Array) -> Array:
    # The factor depends on one triangle, but the derivative is in all elements.
    factor = cho_factor(lax.stop_gradient(a), lower=lower)
    return lax.custom_linear_solve(lambda x: a @ x, b, lambda _, y: cho_solve(factor, y),
                                   symmetric=True)


def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse of a square matrix.

    >>> jax.scipy.linalg.inv(jnp.array([[2., 0.], [0., 4.]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return jnp.linalg.inv(a)


def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant.

    >>> jax.scipy.linalg.det(jnp.array([[2., 1.], [1., 4.]]))
    Array(7., dtype=float32)
    """
    return jnp.linalg.det(a)


# --- LU -------------------------------------------------------------------------------------------

def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Array, Array]:
    """Both factors of LU with pivoting in one matrix, and the pivots.

    Args:
      a: matrices ``(..., m, n)``.
      overwrite_a, check_finite: accepted.

    Returns:
      A pair of an array ``(..., m, n)`` and of int32 ``(..., min(m, n))``.

    Raises:
      TypeError: ``a`` has fewer than two dimensions.

    See also: ``linalg.lu_solve``, ``linalg.lu``, ``linalg.solve``, ``jax.lax.linalg.lu``.

    >>> jax.scipy.linalg.lu_factor(jnp.array([[1., 2.], [4., 4.]]))[1]
    Array([1, 1], dtype=int32)
    """
    a, = _inexact("lu_factor", a)
    factors, pivots, _ = lax_linalg.lu(a)
    return factors, pivots


def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False,
             check_finite: bool = True) -> Array:
    """Solves ``a @ x = b`` with ``lu_factor(a)``; ``trans`` 1: with its transpose, 2: adjoint.

    Args:
      b: shape ``(..., N)`` with one dimension less than ``a``, or ``(..., N, K)``. Batch dimensions
        are broadcast.

    Raises:
      ValueError: the shapes do not fit, or there is no such ``trans``.

    >>> factors = jax.scipy.linalg.lu_factor(jnp.array([[2., 0.], [0., 4.]]))
    >>> jax.scipy.linalg.lu_solve(factors, jnp.array([2., 8.]))
    Array([1., 2.], dtype=float32)
    """
    if trans not in (0, 1, 2):
        raise ValueError(f"'trans' value must be 0, 1, or 2, got {trans}")
    factors, pivots = lu_and_piv
    factors, b = _inexact("lu_solve", factors, b)
    right = _as_matrices("lu_solve", "lu_and_piv", factors, b)
    x = jnp.vectorize(functools.partial(_lu_solve_one, trans), signature="(n,n),(n),(n,k)->(n,k)")(
        factors, jnp.asarray(pivots), right)
    return x if right is b else x[..., 0]


def _lu_solve_one(trans: int, factors: Array, pivots: Array, b: Array) -> Array:
    permutation = lax_linalg.lu_pivots_to_permutation(pivots, len(factors))
    if trans == 0:
        x = solve_triangular(factors, b[permutation], lower=True, unit_diagonal=True)
        return solve_triangular(factors, x)
    x = solve_triangular(factors, b, trans=trans)
    x = solve_triangular(factors, x, trans=trans, lower=True, unit_diagonal=True)
    return x[jnp.argsort(permutation)]


def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False,
       check_finite: bool = True) -> Any:
    """``P, L, U`` with ``P @ L @ U = a``; with ``permute_l``: ``P @ L, U``.

    >>> P, L, U = jax.scipy.linalg.lu(jnp.array([[1., 2.], [4., 4.]]))
    >>> U
    Array([[4., 4.],
           [0., 1.]], dtype=float32)
    """
    a, = _inexact("lu", a)
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
    a, = _inexact("qr", a)
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
    a, c = _inexact("qr_multiply", a, c)
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


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False,
        check_finite: bool = True, lapack_driver: str = "gesdd") -> Any:
    """The singular value decomposition ``u, s, vh``, or only ``s``.

    >>> jax.scipy.linalg.svd(jnp.array([[3., 0.], [0., 4.]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    a, = _inexact("svd", a)
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
    a, = _inexact("polar", a)
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


# --- eigenvalues ----------------------------------------------------------------------------------

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
    matrices = _inexact("eigh", *([a] if b is None else [a, b]))
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
    a, = _inexact("schur", a)
    if output == "complex":
        a = a.astype(dtypes.complex_dtype(a.dtype))
    T, Z = lax_linalg.schur(a)
    return T, Z


def hessenberg(a: Any, *, calc_q: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> Any:
    """``h``, zero below its first subdiagonal, and ``q`` with ``q @ h @ q.conj().T = a``.

    >>> jax.scipy.linalg.hessenberg(jnp.array([[1., 2.], [3., 4.]]))
    Array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    a, = _inexact("hessenberg", a)
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
    d, e = _inexact("eigh_tridiagonal", d, e)
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
