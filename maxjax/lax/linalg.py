"""jax.lax.linalg: decompositions and solvers of the matrices in the last two dimensions."""

from __future__ import annotations

from typing import Any

from maxjax._base import dtypes
from maxjax._ir.trace import Array, base_trace
from maxjax._primitives import linalg as primitives
from maxjax._primitives.arithmetic import add, conj, div
from maxjax._primitives.linalg import (
    LAPACK_DTYPES,
    cholesky_p,
    eigh_p,
    lu_p,
    qr_p,
    solve_p,
    svd_p,
    triangular_solve_p,
)
from maxjax._primitives.rules import scalar_like
from maxjax.lax._shape import transpose as checked_transpose

__all__ = [
    "cholesky", "cholesky_p", "eigh", "eigh_p", "lu", "lu_p", "qr", "qr_p", "solve_p", "svd",
    "svd_p", "symmetrize", "triangular_solve", "triangular_solve_p",
]


def _matrices(name: str, x: Any) -> Array:
    x = base_trace[0].operand(x)
    if x.ndim < 2:
        raise TypeError(f"Input 0 to {name} must have rank at least 2, but got shape={x.shape}")
    if x.dtype not in LAPACK_DTYPES:
        if dtypes.is_floating(x.dtype):
            raise NotImplementedError(f"Unsupported dtype {x.dtype.name}.")
        raise TypeError(f"{name} does not accept dtype {x.dtype.name}. Accepted dtypes are "
                        "subtypes of float32, float64, complex64, complex128.")
    return x


def _square(name: str, x: Any) -> Array:
    x = _matrices(name, x)
    if x.shape[-1] != x.shape[-2]:
        raise TypeError(f"The input to {name} must be a batch of square matrices, but got "
                        f"shape={x.shape}")
    return x


def symmetrize(x: Array) -> Array:
    """``(x + x^H) / 2``."""
    rank = len(x.shape)
    swapped = checked_transpose(x, (*range(rank - 2), rank - 1, rank - 2))
    if dtypes.is_complex(x.dtype):
        swapped = conj(swapped)
    return div(add(x, swapped), scalar_like(2, x.dtype))


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular ``L`` with ``L L^H = x``; NaN where ``x`` is not positive definite."""
    x = base_trace[0].operand(x)
    return cholesky_p.bind(_square("cholesky", symmetrize(x) if symmetrize_input else x))


def qr(x: Any, *, pivoting: bool = False, full_matrices: bool = True,
       use_magma: bool | None = None) -> tuple[Array, Array]:
    """``(q, r)`` with ``q r = x``, ``q`` unitary and ``r`` upper triangular."""
    if pivoting:
        raise NotImplementedError("lax.linalg.qr: pivoting is not there yet")
    return tuple(qr_p.bind(_matrices("qr", x), full_matrices=full_matrices))


def lu(x: Any) -> tuple[Array, Array, Array]:
    """The factors in one matrix, the exchanges of rows, and the permutation they make."""
    return tuple(lu_p.bind(_matrices("lu", x)))


def eigh(x: Any, *, lower: bool = True, symmetrize_input: bool = True,
         sort_eigenvalues: bool = True, subset_by_index: tuple[int, int] | None = None,
         implementation: Any = None) -> tuple[Array, Array]:
    """The eigenvectors and the ascending eigenvalues of Hermitian matrices."""
    if subset_by_index is not None:
        raise NotImplementedError("lax.linalg.eigh: subset_by_index is not there yet")
    x = base_trace[0].operand(x)
    return tuple(eigh_p.bind(_square("eigh", symmetrize(x) if symmetrize_input else x),
                             lower=lower))


def svd(x: Any, *, full_matrices: bool = True, compute_uv: bool = True,
        subset_by_index: tuple[int, int] | None = None, algorithm: Any = None) -> Any:
    """``(u, s, vh)`` with ``u diag(s) vh = x``; ``s`` alone without ``compute_uv``."""
    if subset_by_index is not None:
        raise NotImplementedError("lax.linalg.svd: subset_by_index is not there yet")
    results = svd_p.bind(_matrices("svd", x), full_matrices=full_matrices, compute_uv=compute_uv)
    if not compute_uv:
        return results[0]
    values, left, right = results
    return left, values, right


def triangular_solve(a: Any, b: Any, *, left_side: bool = False, lower: bool = False,
                     transpose_a: bool = False, conjugate_a: bool = False,
                     unit_diagonal: bool = False) -> Array:
    """Solves ``op(a) x = b`` or ``x op(a) = b`` for triangular ``a``.

    Args:
      a: shape ``(..., m, m)``; the other triangle is not read.
      b: shape ``(..., m, n)`` with ``left_side``, else ``(..., n, m)``; or vectors ``(..., m)``.
    """
    a, b = _square("triangular_solve", a), base_trace[0].operand(b)
    conjugate_a = conjugate_a and dtypes.is_complex(a.dtype)
    vectors = b.ndim == a.ndim - 1
    if vectors:
        b = b[..., None] if left_side else b[..., None, :]
    if b.ndim != a.ndim or a.shape[:-2] != b.shape[:-2] or (
            a.shape[-1] != b.shape[-2 if left_side else -1]):
        raise TypeError(
            "triangular_solve requires both arguments to have the same number of dimensions and "
            f"equal batch dimensions and sizes, got {a.shape} and {b.shape}.")
    out = primitives.triangular_solve(
        a, b, left_side=left_side, lower=lower, transpose_a=transpose_a, conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal)
    if vectors:
        return out[..., 0] if left_side else out[..., 0, :]
    return out
