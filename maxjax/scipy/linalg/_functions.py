"""Functions of matrices: exponential, square root, Sylvester's equation."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._higher_order.jit_function import make_jit
from maxjax._ir.trace import Array
from maxjax._transforms.autodiff import jvp
from maxjax._transforms.vmap import vmap
from maxjax.numpy._at_once import all_at_once
from maxjax.numpy._promotion import promote_inexact
from maxjax.scipy.linalg._decompositions import inexact
from maxjax.scipy.linalg._eigenvalues import rsf2csf, schur
from maxjax.scipy.linalg._linear_systems import solve_triangular

# Padé approximants of exp: degree, the largest 1-norm for which it is exact to rounding, and the
# numerator's coefficients (Higham, 2005).
_PADE = {
    3: (120., 60., 12., 1.),
    5: (30240., 15120., 3360., 420., 30., 1.),
    7: (17297280., 8648640., 1995840., 277200., 25200., 1512., 56., 1.),
    9: (17643225600., 8821612800., 2075673600., 302702400., 30270240., 2162160., 110880., 3960.,
        90., 1.),
    13: (64764752532480000., 32382376266240000., 7771770303897600., 1187353796428800.,
         129060195264000., 10559470521600., 670442572800., 33522128640., 1323241920., 40840800.,
         960960., 16380., 182., 1.),
}
_BOUNDS = {
    np.dtype(np.float32): ((3, 4.258730016922831e-1), (5, 1.880152677804762),
                           (7, 3.925724783138660)),
    np.dtype(np.float64): ((3, 1.495585217958292e-2), (5, 2.539398330063230e-1),
                           (7, 9.504178996162932e-1), (9, 2.097847961257068),
                           (13, 5.371920351148152)),
}


def _fraction(A: Any, degree: int) -> tuple[Any, Any]:
    """Odd and even parts of the numerator; the denominator is their difference."""
    coefficients = _PADE[degree]
    identity = jnp.eye(A.shape[-1], dtype=A.dtype)
    square = A @ A
    power, odd, even = identity, jnp.zeros_like(A), jnp.zeros_like(A)
    for k in range(0, degree + 1, 2):
        even = even + coefficients[k] * power
        odd = odd + coefficients[k + 1] * power
        if k + 2 <= degree:
            power = power @ square
    return A @ odd, even


def expm(A: Any, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of square matrices, by a Padé approximant, scaling and squaring.

    Args:
      A: shape ``(..., N, N)``.
      upper_triangular: whether ``A`` is.
      max_squarings: if more are needed the result is NaN.

    Returns:
      An array of the same shape, of a float or complex dtype.

    Raises:
      ValueError: ``A`` is not square.

    See also: ``linalg.expm_frechet``, ``linalg.sqrtm``, ``linalg.funm``.

    >>> jax.scipy.linalg.expm(jnp.array([[0., 1.], [0., 0.]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    A, = promote_inexact("expm", A)
    A = jnp.asarray(A)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError(f"Expected A to be a (batched) square matrix, got {A.shape=}.")

    def one(A: Any) -> Any:
        return _expm(A, upper_triangular, max_squarings)

    if not A.size:
        return A
    for _ in range(A.ndim - 2):
        one = vmap(one)
    return one(A)


@functools.partial(make_jit, static_argnums=(1, 2))
def _expm(A: Any, upper_triangular: bool, max_squarings: int) -> Any:
    real = dtypes.real_dtype(A.dtype)
    bounds = _BOUNDS.get(np.dtype(real), _BOUNDS[np.dtype(np.float32)])
    norm = jnp.max(jnp.sum(jnp.abs(A), axis=0), initial=0)
    last = bounds[-1][1]
    squarings = jnp.maximum(0, jnp.ceil(jnp.log2(norm / last)))
    squarings = jnp.where(jnp.isfinite(squarings), squarings, 0).astype(jnp.int32)
    A = A / jnp.ldexp(jnp.ones((), real), squarings).astype(A.dtype)
    choice = jnp.digitize(norm, jnp.array([bound for _, bound in bounds[:-1]], real))
    odd, even = lax.switch(choice, [lambda A, degree=degree: _fraction(A, degree)
                                    for degree, _ in bounds], A)
    numerator, denominator = even + odd, even - odd
    result = (solve_triangular(denominator, numerator) if upper_triangular
              else jnp.linalg.solve(denominator, numerator))

    def square(i: Any, R: Any) -> Any:
        return lax.cond(i < squarings, lambda R: R @ R, lambda R: R, R)

    result = lax.fori_loop(0, max_squarings, square, result)
    return jnp.where(squarings > max_squarings, jnp.full_like(result, np.nan), result)


def expm_frechet(A: Any, E: Any, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """``expm(A)``, and its derivative in the direction ``E``.

    Args:
      method: None or "SPS"; the derivative is that of ``expm`` here.
      compute_expm: if False, only the derivative is returned.

    >>> A = jnp.array([[0., 1.], [0., 0.]])
    >>> jax.scipy.linalg.expm_frechet(A, A, compute_expm=False)
    Array([[0., 1.],
           [0., 0.]], dtype=float32)
    """
    A, E = inexact("expm_frechet", A, E)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ValueError("expected A to be a square matrix")
    if E.ndim < 2 or E.shape[-1] != E.shape[-2]:
        raise ValueError("expected E to be a square matrix")
    if A.shape != E.shape:
        raise ValueError("expected A and E to be the same shape")
    if method not in (None, "SPS"):
        raise ValueError("only method='SPS' is supported")
    value, slope = jvp(expm, (A,), (E,))
    return (value, slope) if compute_expm else slope


def _fill_triangle(diagonal: Any, element: Callable[[Any, Any, Any], Any]) -> Any:
    """The upper triangle of a function of a triangular matrix, one superdiagonal at a time.

    Args:
      diagonal: its diagonal, ``(N,)``.
      element: gives the element at (i, j) from the matrix as far as it is known, zero elsewhere.
    """
    size = diagonal.shape[0]

    def superdiagonal(p: Any, F: Any) -> Any:
        return lax.fori_loop(
            0, size - p, lambda i, F: F.at[i, i + p].set(element(i, i + p, F)), F)

    return lax.fori_loop(1, size, superdiagonal, jnp.diag(diagonal))


def funm(A: Any, func: Callable[[Array], Array], disp: bool = True) -> Any:
    """A function of a matrix, through its Schur form (Golub and Van Loan, algorithm 11.1.1).

    Args:
      func: the scalar function, applied to vectors.
      disp: if False, also return an estimate of the relative error.

    >>> jax.scipy.linalg.funm(jnp.array([[1., 1.], [0., 2.]]), jnp.square).real
    Array([[1., 3.],
           [0., 4.]], dtype=float32)
    """
    A = jnp.asarray(A)
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError("expected square array_like input")
    T, Z = schur(A)
    T, Z = rsf2csf(T, Z)
    F, smallest = _function_of_triangular(T, func(jnp.diag(T)))
    F = Z @ F @ jnp.conj(Z.T)
    if disp:
        return F
    tolerance = float(np.finfo(dtypes.real_dtype(F.dtype)).eps)
    smallest = jnp.where(smallest == 0, tolerance, smallest)
    above = jnp.linalg.norm(jnp.triu(T, 1), 1)
    error = jnp.minimum(1, jnp.maximum(tolerance, (tolerance / smallest) * above))
    bad = ~jnp.all(jnp.isfinite(F)) | jnp.isnan(error)
    return F, jnp.where(bad, np.inf, error)


@make_jit
def _function_of_triangular(T: Any, diagonal: Any) -> tuple[Any, Any]:
    """The function with this diagonal, and the least distance of two eigenvalues."""
    places = jnp.arange(T.shape[0])

    def element(i: Any, j: Any, F: Any) -> Any:
        inner = (places > i) & (places < j)
        above, right = jnp.where(inner, T[i], 0), jnp.where(inner, T[:, j], 0)
        total = T[i, j] * (F[j, j] - F[i, i]) + (above @ F[:, j] - F[i] @ right)
        gap = T[j, j] - T[i, i]
        return jnp.where(gap != 0, total / jnp.where(gap != 0, gap, 1), total)

    F = _fill_triangle(diagonal, element)
    values = jnp.diag(T)
    distances = jnp.abs(values[None] - values[:, None])
    gaps = jnp.where(places[:, None] < places[None], distances, jnp.inf)
    return F, jnp.minimum(jnp.min(gaps, initial=jnp.inf), jnp.abs(T[0, 0]) if T.size else 0)


def sqrtm(A: Any, blocksize: int = 1) -> Array:
    """The complex principal square root of a matrix, through its Schur form.

    Raises:
      NotImplementedError: ``blocksize`` is above 1.

    >>> jax.scipy.linalg.sqrtm(jnp.array([[4., 0.], [0., 9.]])).real
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    A = jnp.asarray(A)
    if A.ndim < 2:
        raise TypeError(f"Input 0 to schur must have rank at least 2, but got shape={A.shape}")
    if A.ndim != 2 or A.shape[0] != A.shape[1]:
        raise ValueError("expected square array_like input")
    if blocksize > 1:
        raise NotImplementedError("Blocked version is not implemented yet.")
    return _square_root(A)


@make_jit
def _square_root(A: Any) -> Any:
    T, Z = schur(A, output="complex")
    roots = jnp.sqrt(jnp.diag(T))

    def element(i: Any, j: Any, F: Any) -> Any:
        # The products with k outside i < k < j are zero, as one of the factors is not yet filled.
        rest = T[i, j] - F[i] @ F[:, j].at[j].set(0)
        below = roots[i] + roots[j]
        return jnp.where(below != 0, rest / jnp.where(below != 0, below, 1), 0)

    return Z @ _fill_triangle(roots, element) @ jnp.conj(Z.T)


def _sylvester_by_schur(A: Array, B: Array, C: Array) -> tuple[Array, Array]:
    """The solution, and the sums of the eigenvalues of ``A`` and ``B``."""
    R, U = schur(A, output="complex")
    S, V = schur(B, output="complex")
    F = jnp.conj(U.T) @ C.astype(U.dtype) @ V
    Y = jnp.zeros_like(F)
    identity = jnp.eye(len(A), dtype=R.dtype)
    places = jnp.arange(len(B))

    def column(k: Any, Y: Any) -> Any:
        known = jnp.where(places < k, S[:, k], 0)
        return Y.at[:, k].set(solve_triangular(R + S[k, k] * identity, F[:, k] - Y @ known))

    Y = lax.fori_loop(0, len(B), column, Y)
    return U @ Y @ jnp.conj(V.T), jnp.diag(R)[:, None] + jnp.diag(S)[None, :]


def _sylvester_by_eig(A: Array, B: Array, C: Array) -> tuple[Array, Array]:
    a, U = jnp.linalg.eig(A)
    b, V = jnp.linalg.eig(B)
    F = jnp.linalg.solve(U, C.astype(U.dtype)) @ V
    sums = a[:, None] + b[None, :]
    return jnp.linalg.solve(V.T, (U @ (F / jnp.where(sums == 0, 1, sums))).T).T, sums


_SYLVESTER = {"schur": _sylvester_by_schur, "eigen": _sylvester_by_eig}


@functools.partial(make_jit, static_argnums=(0, 1))
def _solve_one_sylvester(solver: Callable[..., Any], tol: float, A: Array, B: Array, C: Array
                         ) -> Array:
    X, sums = solver(A, B, C)
    result = X if dtypes.is_complex(C.dtype) else X.real
    return jnp.where(jnp.any(jnp.abs(sums) < tol), jnp.full_like(result, np.nan), result)


def solve_sylvester(A: Any, B: Any, C: Any, *, method: str = "schur", tol: float = 1e-8) -> Array:
    """Solves ``A @ X + X @ B = C``.

    Args:
      A, B, C: shapes ``(..., M, M)``, ``(..., N, N)`` and ``(..., M, N)``; their batch dimensions
        are broadcast.
      method: "schur" or "eigen".
      tol: if eigenvalues of ``A`` and ``-B`` are this close, there is no solution: NaN.

    Raises:
      ValueError: the shapes do not fit, or there is no such method.

    >>> jax.scipy.linalg.solve_sylvester(jnp.eye(1), jnp.eye(1), 4 * jnp.eye(1))
    Array([[2.]], dtype=float32)
    """
    A, B, C = inexact("solve_sylvester", A, B, C)
    if C.ndim < 2:
        raise ValueError(f"solve_sylvester: C needs to have two dimensions or more, got {C.ndim}")
    m, n = C.shape[-2:]
    if A.shape[-2:] != (m, m) or B.shape[-2:] != (n, n):
        raise ValueError(f"Incompatible shapes for Sylvester equation:\nA: {A.shape}\n"
                         f"B: {B.shape}\nC: {C.shape}")
    if method not in _SYLVESTER:
        raise ValueError(f"Unrecognized method {method}. The two valid methods are either "
                         "\"schur\" or \"eigen\".")
    one = functools.partial(_solve_one_sylvester, _SYLVESTER[method], tol)
    return jnp.vectorize(one, signature="(m,m),(n,n),(m,n)->(m,n)")(A, B, C)


all_at_once(globals())
