"""Solvers of linear systems, also by a matrix's factors; inverses and determinants."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._higher_order.named_calls import named
from maxjax._ir.trace import Array
from maxjax.lax import linalg as lax_linalg
from maxjax.numpy._at_once import all_at_once, at_once
from maxjax.numpy._logic import input_dimensions
from maxjax.scipy.linalg._decompositions import cholesky, inexact


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


@at_once
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
    c, b = inexact("cho_solve", c, b)
    is_vector = _are_vectors("cho_solve", "c_and_lower", c, b)
    return _cho_solve(c, b, lower=bool(lower), is_vector=is_vector)


@named("_cho_solve", "lower", "is_vector")
def _cho_solve(c: Array, b: Array, *, lower: bool, is_vector: bool) -> Array:
    first, second = (0, 2) if lower else (2, 0)
    for trans in (first, second):
        x = _triangular(c, b[..., None] if is_vector else b, trans, lower)
        b = x[..., 0] if is_vector else x
    return b


@at_once
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
    a, b = inexact("solve_triangular", a, b)
    return _solve_triangular(a, b, trans=trans, lower=bool(lower),
                             unit_diagonal=bool(unit_diagonal),
                             is_vector=_are_vectors("solve_triangular", "a", a, b))


@named("_solve_triangular", "trans", "lower", "unit_diagonal", "is_vector")
def _solve_triangular(a: Array, b: Array, *, trans: int | str, lower: bool, unit_diagonal: bool,
                      is_vector: bool) -> Array:
    x = _triangular(a, b[..., None] if is_vector else b, trans, lower, unit_diagonal)
    return x[..., 0] if is_vector else x


def _are_vectors(name: str, first: str, a: Array, b: Array) -> bool:
    """Whether right sides are vectors, also batches of them (with a warning).

    Raises:
      ValueError: ``a`` is no square matrix, or of another size than the right sides.
    """
    if b.ndim != 1 and (b.ndim != a.ndim - 1 or b.shape[-1] != a.shape[-1]):
        input_dimensions((a.shape, b.shape), (("n", "n"), ("n", "k")), f" in {name}")
        return False
    input_dimensions((a.shape, b.shape), (("n", "n"), ("n",)), f" in {name}")
    if b.ndim > 1:
        warnings.warn(
            f"jax.scipy.linalg.{name}: batched 1D solves with b.ndim > 1 are deprecated, and in "
            "the future will be treated as a batched 2D solve. Use "
            f"{name}({first}, b[..., None]).squeeze(-1) to avoid this warning.",
            FutureWarning, stacklevel=3)
    return True


def _triangular(a: Array, right: Array, trans: int | str, lower: bool,
                unit_diagonal: bool = False) -> Array:
    batch = np.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    return lax_linalg.triangular_solve(
        jnp.broadcast_to(a, (*batch, *a.shape[-2:])),
        jnp.broadcast_to(right, (*batch, *right.shape[-2:])), left_side=True, lower=lower,
        transpose_a=trans not in (0, "N"), conjugate_a=trans in (2, "C"),
        unit_diagonal=unit_diagonal)


@at_once
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
    a, b = inexact("solve", a, b)
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


@at_once
def inv(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse of a square matrix.

    >>> jax.scipy.linalg.inv(jnp.array([[2., 0.], [0., 4.]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return jnp.linalg.inv(a)


@at_once
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant.

    >>> jax.scipy.linalg.det(jnp.array([[2., 1.], [1., 4.]]))
    Array(7., dtype=float32)
    """
    return jnp.linalg.det(a)


@at_once
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
    a, = inexact("lu_factor", a)
    factors, pivots, _ = lax_linalg.lu(a)
    return factors, pivots


@at_once
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
    factors, b = inexact("lu_solve", factors, b)
    right = b[..., None] if _are_vectors("lu_solve", "lu_and_piv", factors, b) else b
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


all_at_once(globals())
