"""jax.numpy.linalg: decompositions of matrices, and the solvers that use them."""

from __future__ import annotations

import functools
import math
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from maxjax._base import dtypes
from maxjax._base.tracebacks import boundary
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._ir.dimensions import broadcast_shapes, is_dimension
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import iota_p
from maxjax._primitives.lapack import not_lapack
from maxjax._primitives.linalg_factors import geqrf_p
from maxjax._primitives.linalg_solve import solve_p
from maxjax.lax import linalg as lax_linalg
from maxjax.numpy import _contraction as contraction
from maxjax.numpy import _filled as filled
from maxjax.numpy import _joining
from maxjax.numpy import _matrices as matrices
from maxjax.numpy import _ranges as ranges
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _repeating as repeating
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._complex import conj, real
from maxjax.numpy._promotion import as_array, check_arraylike, promote_inexact, promote_shapes
from maxjax.numpy._special_values import isfinite
from maxjax.numpy._where import where

__all__ = [
    "cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "lstsq", "matrix_rank", "pinv",
    "qr", "slogdet", "solve", "svd", "svdvals",
]


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


class SlogdetResult(NamedTuple):
    """The results of ``slogdet``."""

    sign: Array
    logabsdet: Array


def _inexact(name: str, x: Any) -> Array:
    check_arraylike(f"jnp.linalg.{name}", x)
    return as_array(promote_inexact(f"jnp.linalg.{name}", x)[0])


def _adjoint(x: Array) -> Array:
    swapped = shapes.matrix_transpose(x)
    return conj(swapped) if dtypes.is_complex(x.dtype) else swapped


def _epsilon(x: Array) -> float:
    return float(dtypes.finfo(x.dtype).eps)


# --- decompositions -------------------------------------------------------------------------------

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
    a = _square("cholesky", a, "linalg.cholesky", ".")
    factor = lax_linalg.cholesky(a, symmetrize_input=symmetrize_input)
    return _adjoint(factor) if upper else factor


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete", "raw", "full"] = "reduced"
       ) -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...
@overload
def qr(a: ArrayLike, mode: str) -> Array | QRResult: ...


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
    a = _inexact("qr", a)
    if mode == "raw":
        packed, taus = geqrf_p.bind(*lax_linalg._lapack_operands(geqrf_p, a))
        return QRResult(shapes.matrix_transpose(packed), taus)
    if mode not in ("reduced", "r", "full", "complete"):
        raise ValueError(f"Unsupported QR decomposition mode '{mode}'")
    q, r = lax_linalg.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


def eig(a: ArrayLike) -> EigResult:
    """The eigenvalues and the eigenvectors of square matrices ``(..., n, n)``, complex.

    Vectors are columns of length 1. They have no derivative: see ``jax.lax.linalg.eig``.

    >>> values, vectors = jnp.linalg.eig(jnp.array([[0., -1.], [1., 0.]]))
    >>> values
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return EigResult(*lax_linalg.eig(_inexact("eig", a), compute_left_eigenvectors=False))


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
    return lax_linalg.eig(_inexact("eigvals", a), compute_left_eigenvectors=False,
                          compute_right_eigenvectors=False)[0]


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
    a = _square("eigh", a, "linalg.eigh", ".")
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"UPLO must be one of None, 'L', or 'U', got {UPLO}")
    vectors, values = lax_linalg.eigh(a, lower=UPLO != "U", symmetrize_input=symmetrize_input)
    return EighResult(values, vectors)


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
    a = _inexact("svd", a)
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
    return SVDResult(vectors, ordered, _adjoint(vectors * signs))


def svdvals(x: ArrayLike, /) -> Array:
    """The singular values, descending.

    >>> jnp.linalg.svdvals(jnp.array([[0., 2.], [1., 0.]]))
    Array([2., 1.], dtype=float32)
    """
    return svd(x, compute_uv=False)


# --- determinants ---------------------------------------------------------------------------------

def _square(name: str, a: Any, label: str, stop: str = "") -> Array:
    a = _inexact(name, a)
    if a.ndim < 2 or a.shape[-2] != a.shape[-1]:
        raise ValueError(f"Argument to {label} must have shape [..., n, n], got {a.shape}{stop}")
    return a


def _places(x: Array) -> Array:
    """The place of each element along the last axis."""
    return iota_p.bind(dtype=dtypes.int32, shape=x.shape, dimension=x.ndim - 1)


def _parity(pivots: Array) -> Array:
    """The parity of the row exchanges: 1 if odd, 0 if even."""
    moved = ufuncs.not_equal(pivots, _places(pivots))
    return reductions.sum(moved, -1, dtype=np.int32) % 2


@boundary
def det(a: ArrayLike) -> Array:
    """The determinants of square matrices ``(..., n, n)``.

    Args:
      a: matrices ``(..., n, n)``.

    Returns:
      An array ``(...)`` of a float or complex dtype.

    Raises:
      ValueError: the matrices are not square.

    See also: ``linalg.slogdet``, ``linalg.inv``, ``linalg.matrix_rank``.

    >>> jnp.linalg.det(jnp.array([[1., 2.], [3., 4.]]))
    Array(-2., dtype=float32)
    """
    a = _square("det", a, "_det()")
    n = a.shape[-1]
    if n == 0:
        return filled.ones(a.shape[:-2], a.dtype)
    if n == 1:
        return convert_element_type(a[..., 0, 0], a.dtype)      # strongly typed, as of all sizes
    if n == 2:
        return a[..., 0, 0] * a[..., 1, 1] - a[..., 0, 1] * a[..., 1, 0]
    if n == 3:
        return (a[..., 0, 0] * a[..., 1, 1] * a[..., 2, 2]
                + a[..., 0, 1] * a[..., 1, 2] * a[..., 2, 0]
                + a[..., 0, 2] * a[..., 1, 0] * a[..., 2, 1]
                - a[..., 0, 2] * a[..., 1, 1] * a[..., 2, 0]
                - a[..., 0, 0] * a[..., 1, 2] * a[..., 2, 1]
                - a[..., 0, 1] * a[..., 1, 0] * a[..., 2, 2])
    return _det(a)


@custom_jvp
def _det(a: Array) -> Array:
    factors, pivots, _ = lax_linalg.lu(a)
    product = reductions.prod(matrices.diagonal(factors, 0, -2, -1), -1)
    return where(_parity(pivots) == 1, -product, product)


@_det.defjvp
def _det_jvp(primals: Any, tangents: Any) -> Any:
    """det(a)' = trace(det(a) a^-1 a'), which is finite at matrices of rank n - 1 too."""
    a, tangent = primals[0], tangents[0]
    factors, pivots, rows = lax_linalg.lu(a)
    diagonal = matrices.diagonal(factors, 0, -2, -1)
    sign = where(_parity(pivots) == 1, -1, 1).astype(a.dtype)
    minor = sign * reductions.prod(diagonal[..., :-1], -1)      # det without the last factor
    value = minor * diagonal[..., -1]
    chosen = ufuncs.equal(rows[..., :, None], _places(rows)[..., None, :]).astype(a.dtype)
    image = lax_linalg.triangular_solve(
        factors, contraction.matmul(chosen, tangent), left_side=True, lower=True,
        unit_diagonal=True)
    # The last row of U x = det(a) image, divided by U's last element, is minor * image.
    image = _joining.concatenate([image[..., :-1, :] * value[..., None, None],
                                image[..., -1:, :] * minor[..., None, None]], -2)
    last = np.zeros(a.shape[-2:], bool)
    last[-1, -1] = True
    upper = where(last, 1, factors)
    # For rank n - 2 and less the derivative is zero. The condition may not depend on the tangent,
    # and the system to solve must be regular there, for the transpose.
    probe = lax_linalg.triangular_solve(
        upper, filled.ones((*a.shape[:-1], 1), a.dtype), left_side=True)
    regular = reductions.all(isfinite(probe), (-2, -1), keepdims=True)
    upper = where(regular, upper, ranges.eye(a.shape[-1], dtype=a.dtype))
    image = where(regular, lax_linalg.triangular_solve(upper, image, left_side=True), 0)
    return value, matrices.trace(image, 0, -2, -1)


@boundary
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """The signs (phases) of the determinants, and the logarithms of their magnitudes.

    Args:
      a: matrices ``(..., n, n)``.
      method: the decomposition, "lu" (None) or "qr" (real matrices).

    Returns:
      A named tuple of ``sign`` and ``logabsdet``, arrays ``(...)``; 0 and minus infinity for
      singular ones.

    Raises:
      ValueError: the matrices are not square, or there is no such ``method``.

    See also: ``linalg.det``, ``linalg.cholesky``.

    >>> jnp.linalg.slogdet(jnp.array([[1., 2.], [2., 3.]]))
    SlogdetResult(sign=Array(-1., dtype=float32), logabsdet=Array(0., dtype=float32))
    """
    a = _square("slogdet", a, "slogdet()")
    if method not in (None, "lu", "qr"):
        raise ValueError(f"Unknown slogdet method '{method}'. Supported methods are 'lu' "
                         "(`None`), and 'qr'.")
    if method == "qr" and dtypes.is_complex(a.dtype):
        raise NotImplementedError("slogdet method='qr' not implemented for complex inputs")
    if a.dtype in (dtypes.float16, dtypes.bfloat16) and a.shape[-1] <= 2 and method != "qr":
        value = det(a)      # there is no decomposition in half precision
        return SlogdetResult(ufuncs.sign(value), ufuncs.log(ufuncs.abs(value)))
    # A determinant that JAX writes out is as weakly typed as the matrix.
    weak = a.weak_type and a.shape[-1] <= 2
    return SlogdetResult(*(
        convert_element_type(x, x.dtype, weak) for x in _slogdet(a, method == "qr")))


@functools.partial(custom_jvp, nondiff_argnums=(1,))
def _slogdet(a: Array, by_qr: bool) -> tuple[Array, Array]:
    if by_qr:
        packed, taus = geqrf_p.bind(*lax_linalg._lapack_operands(geqrf_p, a))
        # Each reflection has the determinant -1; a tau of 0 means there is none.
        exchanges = reductions.sum(taus != 0, -1, dtype=np.int32) % 2
    else:
        packed, pivots, _ = lax_linalg.lu(a)
        exchanges = _parity(pivots)
    diagonal = matrices.diagonal(packed, 0, -2, -1)
    sign = reductions.prod(ufuncs.sign(diagonal), -1)
    sign = where(exchanges == 1, -sign, sign)
    return sign, reductions.sum(ufuncs.log(ufuncs.abs(diagonal)), -1)


@_slogdet.defjvp
def _slogdet_jvp(by_qr: bool, primals: Any, tangents: Any) -> Any:
    """log(det(a))' = trace(a^-1 a'), whose imaginary part rotates the phase."""
    sign, logarithm = _slogdet(primals[0], by_qr)
    change = matrices.trace(solve(primals[0], tangents[0]), 0, -2, -1)
    if not dtypes.is_complex(change.dtype):
        return (sign, logarithm), (filled.zeros_like(sign), change)
    of_modulus = real(change)
    return (sign, logarithm), ((change - of_modulus.astype(change.dtype)) * sign, of_modulus)


# --- equations ------------------------------------------------------------------------------------

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
    a = _square("inv", a, "inv", ".")
    return solve(a, shapes.broadcast_to(ranges.eye(a.shape[-1], dtype=a.dtype), a.shape))


def pinv(a: ArrayLike, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> Array:
    """The Moore-Penrose pseudo-inverses of matrices ``(..., m, n)``.

    Args:
      rtol: singular values up to ``rtol`` times the greatest one are treated as zero; by default 10
        times max(m, n) times the dtype's epsilon.

    >>> jnp.linalg.pinv(jnp.array([[2., 0.], [0., 0.]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    a = _inexact("pinv", a)
    if a.ndim < 2:
        raise ValueError(f"not enough values to unpack (expected 2, got {a.ndim})")
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: only one of rtol and rcond may be specified.")
    if rtol is None:
        rtol = rcond if rcond is not None else 10.0 * max(a.shape[-2:]) * _epsilon(a)
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
    return contraction.matmul(_adjoint(right), ufuncs.divide(_adjoint(left), values[..., None]))


@_pinv.defjvp
def _pinv_jvp(hermitian: bool, primals: Any, tangents: Any) -> Any:
    """G. Golub and V. Pereyra (1973): -p a' p + p p^H a'^H (1 - a p) + (1 - p a) a'^H p^H p."""
    (a, rtol), (tangent, _) = primals, tangents
    p = _pinv(a, rtol, hermitian)
    if hermitian:
        tangent = (tangent + _adjoint(tangent)) / 2
    p_adjoint, adjoint = _adjoint(p), _adjoint(tangent)
    first = _product(p, tangent, p)
    left = _product(p, p_adjoint, adjoint)
    left = left - _product(left, a, p)
    right = _product(adjoint, p_adjoint, p)
    right = right - _product(p, a, right)
    return p, left + right - first


def _product(x: Array, y: Array, z: Array) -> Array:
    """The product of three matrices, in the order whose intermediate matrix is the smaller."""
    rows, middle, columns = x.shape[-2], y.shape[-2:], z.shape[-1]
    if not any(map(is_dimension, (rows, *middle, columns))) and (
            middle[0] * columns < rows * middle[1]):
        return contraction.matmul(x, contraction.matmul(y, z))
    return contraction.matmul(contraction.matmul(x, y), z)


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
    x = _inexact("matrix_rank", M)
    if x.ndim < 2:
        return reductions.any(x != 0).astype(np.int32)
    values = ufuncs.abs(eigvalsh(x)) if hermitian else svd(x, full_matrices=False,
                                                           compute_uv=False)
    limit = rtol if tol is None else tol
    if limit is None:
        limit = max(x.shape[-2:]) * _epsilon(values) * values.max(-1)
    return reductions.sum(values > as_array(limit)[..., None], -1)


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
        limit = max(m, n) * _epsilon(a) if rcond is None else where(
            as_array(rcond) < 0, _epsilon(a), rcond)
        left, values, right_vectors = svd(a, full_matrices=False)
        kept = (values > 0) & (values >= as_array(limit).astype(values.dtype) * values[0])
        rank = reductions.sum(kept)
        inverse = where(kept, 1 / where(kept, values, 1), 0).astype(a.dtype)
        projected = contraction.matmul(_adjoint(left), right)
        x = contraction.matmul(_adjoint(right_vectors), inverse[:, None] * projected)
    if numpy_resid and (int(rank) < n or m <= n):
        residuals = filled.empty(0, dtype=values.dtype)
    else:
        difference = right - contraction.matmul(a, x)
        squares = ufuncs.abs(difference) ** 2
        residuals = reductions.sum(squares, 0)
    return x.ravel() if vector else x, residuals, rank, values
