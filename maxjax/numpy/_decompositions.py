"""jax.numpy.linalg: decompositions of matrices."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, overload

from maxjax._base import dtypes
from maxjax._higher_order.named_calls import named
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.linalg_factors import geqrf_p
from maxjax.lax import linalg as lax_linalg
from maxjax.numpy import _contraction as contraction
from maxjax.numpy import _ranges as ranges
from maxjax.numpy import _repeating as repeating
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._at_once import at_once
from maxjax.numpy._complex import conj
from maxjax.numpy._promotion import as_array, check_arraylike, promote_inexact
from maxjax.numpy._where import where

__all__ = ["cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"]


class QRResult(NamedTuple):
    """The results of ``qr``."""

    Q: Array
    R: Array


class EigResult(NamedTuple):
    """The results of ``eig``."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """The results of ``eigh``."""

    eigenvalues: Array
    eigenvectors: Array


class SVDResult(NamedTuple):
    """The results of ``svd``."""

    U: Array
    S: Array
    Vh: Array


def inexact(name: str, x: Any) -> Array:
    check_arraylike(f"jnp.linalg.{name}", x)
    return as_array(promote_inexact(f"jnp.linalg.{name}", x)[0])


def square_matrices(name: str, a: Any, label: str, stop: str = "") -> Array:
    a = inexact(name, a)
    if a.ndim < 2 or a.shape[-2] != a.shape[-1]:
        raise ValueError(f"Argument to {label} must have shape [..., n, n], got {a.shape}{stop}")
    return a


def adjoint(x: Array) -> Array:
    swapped = shapes.matrix_transpose(x)
    return conj(swapped) if dtypes.is_complex(x.dtype) else swapped


def epsilon(x: Array) -> float:
    return float(dtypes.finfo(x.dtype).eps)


@at_once
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The lower triangular ``L`` with ``L L^H = a``, or its adjoint.

    Args:
      a: positive definite matrices ``(..., n, n)``; the result is NaN for any that is not.
      upper: give the adjoint, an upper triangular matrix.
      symmetrize_input: decompose ``(a + a^H) / 2``; otherwise only the lower triangle is read.

    Returns:
      Matrices ``(..., n, n)`` of ``a``'s float or complex dtype. No error is raised, unlike
      NumPy's.

    Raises:
      ValueError: the matrices are not square.

    See also: ``linalg.solve``, ``linalg.eigh``, ``jax.scipy.linalg.cho_factor``,
    ``lax.linalg.cholesky``.

    >>> jnp.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    a = square_matrices("cholesky", a, "linalg.cholesky", ".")
    factor = lax_linalg.cholesky(a, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete", "raw", "full"] = "reduced"
       ) -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...
@overload
def qr(a: ArrayLike, mode: str) -> Array | QRResult: ...


@at_once
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """``(Q, R)`` with ``Q R = a``, ``Q`` with orthonormal columns and ``R`` upper triangular.

    Args:
      a: shape ``(..., m, n)``.
      mode: "reduced" (``Q`` has min(m, n) columns), "complete" (m columns) or "r" (``R`` alone).

    Returns:
      A pair, of shapes ``(..., m, k)`` and ``(..., k, n)``, or ``R`` alone.

    Raises:
      ValueError: there is no such ``mode``.
      TypeError: ``a`` has fewer than two dimensions.

    See also: ``linalg.svd``, ``linalg.lstsq``, ``linalg.cholesky``.

    >>> q, r = jnp.linalg.qr(jnp.array([[0., 2.], [3., 4.]]))
    >>> (q @ r).round(3)
    Array([[0.       , 2.       ],
           [3.0000002, 4.       ]], dtype=float32)
    """
    a = inexact("qr", a)
    if mode == "raw":
        packed, taus = geqrf_p.bind(*lax_linalg._lapack_operands(geqrf_p, a))
        return QRResult(shapes.matrix_transpose(packed), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    return _qr(a, mode=mode)


@named("qr", "mode")
def _qr(a: Array, *, mode: str) -> Any:
    q, r = lax_linalg.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def eig(a: ArrayLike) -> EigResult:
    """The eigenvalues and the eigenvectors of square matrices ``(..., n, n)``, complex.

    Vectors are columns of length 1. They have no derivative: see ``jax.lax.linalg.eig``.

    >>> values, vectors = jnp.linalg.eig(jnp.array([[0., -1.], [1., 0.]]))
    >>> values
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return EigResult(*lax_linalg.eig(inexact("eig", a), compute_left_eigenvectors=False))


def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of square matrices ``(..., n, n)``, complex, in no particular order.

    The derivative is defined where they are all distinct.

    Args:
      a: matrices ``(..., n, n)``.

    Returns:
      An array of complex numbers ``(..., n)``.

    Raises:
      ValueError: the matrices are not square.

    See also: ``linalg.eig``, ``linalg.eigvalsh``, ``roots``.

    >>> jnp.linalg.eigvals(jnp.array([[1., 2.], [0., 3.]]))
    Array([1.+0.j, 3.+0.j], dtype=complex64)
    """
    return lax_linalg.eig(inexact("eigvals", a), compute_left_eigenvectors=False,
                          compute_right_eigenvectors=False)[0]


@at_once
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """The ascending eigenvalues and the eigenvectors of Hermitian matrices.

    The derivative of the eigenvectors is defined where all eigenvalues are distinct.

    Args:
      a: Hermitian matrices ``(..., n, n)``.
      UPLO: "L" or "U": which triangle is read, without ``symmetrize_input``; None: the lower.
      symmetrize_input: decompose ``(a + a^H) / 2``.

    Returns:
      A named tuple of ``eigenvalues``, real floats ``(..., n)``, and ``eigenvectors``, in the
      columns of matrices ``(..., n, n)``.

    Raises:
      ValueError: the matrices are not square, or ``UPLO`` is neither.

    See also: ``linalg.eigvalsh``, ``linalg.eig``, ``linalg.svd``, ``jax.scipy.linalg.eigh``.

    >>> values, vectors = jnp.linalg.eigh(jnp.array([[2., 1.], [1., 2.]]))
    >>> values
    Array([1., 3.], dtype=float32)
    """
    a = square_matrices("eigh", a, "linalg.eigh", ".")
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    return _eigh(a, lower=UPLO != "U", symmetrize_input=bool(symmetrize_input))


@named("eigh", "lower", "symmetrize_input")
def _eigh(a: Array, *, lower: bool, symmetrize_input: bool) -> EighResult:
    vectors, values = lax_linalg.eigh(a, lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(values, vectors)


@at_once
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The ascending eigenvalues of Hermitian matrices.

    Args:
      a: Hermitian matrices ``(..., n, n)``.
      UPLO: "L" or "U": which triangle is read, without ``symmetrize_input``.
      symmetrize_input: of ``(a + a^H) / 2``.

    Returns:
      An array of real floats ``(..., n)``.

    Raises:
      ValueError: the matrices are not square, or ``UPLO`` is neither.

    See also: ``linalg.eigh``, ``linalg.eigvals``, ``linalg.svdvals``.

    >>> jnp.linalg.eigvalsh(jnp.array([[2., 1.], [1., 2.]]))
    Array([1., 3.], dtype=float32)
    """
    return eigh(a, UPLO, symmetrize_input).eigenvalues


@overload
def svd(a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[True],
        hermitian: bool = False, subset_by_index: tuple[int, int] | None = None) -> SVDResult: ...
@overload
def svd(a: ArrayLike, full_matrices: bool, compute_uv: Literal[True], hermitian: bool = False,
        subset_by_index: tuple[int, int] | None = None) -> SVDResult: ...
@overload
def svd(a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False],
        hermitian: bool = False, subset_by_index: tuple[int, int] | None = None) -> Array: ...
@overload
def svd(a: ArrayLike, full_matrices: bool, compute_uv: Literal[False], hermitian: bool = False,
        subset_by_index: tuple[int, int] | None = None) -> Array: ...
@overload
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True,
        hermitian: bool = False, subset_by_index: tuple[int, int] | None = None
        ) -> Array | SVDResult: ...


@at_once
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
        subset_by_index: tuple[int, int] | None = None) -> Any:
    """``(U, S, Vh)`` with ``U diag(S) Vh = a`` and descending ``S``; without vectors ``S`` alone.

    Args:
      a: shape ``(..., m, n)``.
      full_matrices: ``U`` is (m, m) and ``Vh`` (n, n); otherwise they have min(m, n) columns and
        rows.
      compute_uv: False: ``S`` alone.
      hermitian: ``a`` is Hermitian, so that its eigendecomposition is used.
      subset_by_index: a pair (first, end): only these singular values.

    Returns:
      A named tuple of ``U``, ``S``, real floats ``(..., min(m, n))``, and ``Vh``; or ``S``.

    Raises:
      TypeError: ``a`` has fewer than two dimensions.

    See also: ``linalg.svdvals``, ``linalg.eigh``, ``linalg.qr``, ``linalg.pinv``.

    >>> u, s, vh = jnp.linalg.svd(jnp.array([[0., 2.], [1., 0.], [0., 0.]]))
    >>> s, u.shape
    (Array([2., 1.], dtype=float32), (3, 3))
    """
    a = inexact("svd", a)
    return _svd(a, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv),
                hermitian=bool(hermitian), subset_by_index=subset_by_index)


@named("svd", "full_matrices", "compute_uv", "hermitian", "subset_by_index")
def _svd(a: Array, *, full_matrices: bool, compute_uv: bool, hermitian: bool,
         subset_by_index: tuple[int, int] | None) -> Any:
    if not hermitian:
        result = lax_linalg.svd(a, full_matrices=full_matrices, compute_uv=compute_uv,
                                subset_by_index=subset_by_index)
        return SVDResult(*result) if compute_uv else result
    values, vectors = eigh(a)
    magnitudes = ufuncs.abs(values)
    order = repeating.flip(magnitudes.argsort(-1), -1)
    ordered = magnitudes.sort(-1)[..., ::-1]
    if not compute_uv:
        return ordered
    signs = ufuncs.sign(values)
    gather = where(order[..., None, :] == ranges.arange(order.shape[-1])[:, None], 1, 0).astype(
        a.dtype)
    vectors = contraction.matmul(vectors, gather)
    signs = contraction.matmul(signs[..., None, :].astype(a.dtype), gather)
    return SVDResult(vectors, ordered, adjoint(vectors * signs))


@at_once
def svdvals(x: ArrayLike, /) -> Array:
    """The singular values, descending.

    >>> jnp.linalg.svdvals(jnp.array([[0., 2.], [1., 0.]]))
    Array([2., 1.], dtype=float32)
    """
    return svd(x, compute_uv=False)
