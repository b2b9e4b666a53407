"""jax.lax.linalg: decompositions and solvers of the matrices in the last two dimensions.

All dimensions before these are batch dimensions. Dtypes are float32, float64, complex64 and
complex128 unless stated otherwise; others raise TypeError, narrower floats NotImplementedError. A
matrix for which an algorithm fails gives NaN. Values are LAPACK's, including signs and phases of
vectors.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base import dtypes
from maxjax._higher_order.function_stages import add_stages
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Array
from maxjax._primitives import linalg_rules as rules
from maxjax._primitives.arithmetic import add, div, of_the_type
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.lapack import LAPACK_DTYPES, not_lapack
from maxjax._primitives.linalg_factors import (
    cholesky_p,
    cholesky_update_p,
    householder_product_p,
    lu_p,
    lu_pivots_to_permutation_p,
    ormqr_p,
    qr_p,
    symmetric_product_p,
)
from maxjax._primitives.linalg_solve import triangular_solve_p, tridiagonal_solve_p
from maxjax._primitives.linalg_spectral import (
    eig_p,
    eigh_p,
    hessenberg_p,
    schur_p,
    svd_p,
    tridiagonal_p,
)
from maxjax._primitives.rules import scalar_like
from maxjax.lax._operands import check_accepted, operand, same_dtypes_error
from maxjax.lax._qdwh import qdwh
from maxjax.lax._shape import transpose as checked_transpose

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p",
    "cholesky_update", "cholesky_update_p", "eig", "eig_p", "eigh", "eigh_p", "hessenberg",
    "hessenberg_p", "householder_product", "householder_product_p", "lu", "lu_p",
    "lu_pivots_to_permutation", "lu_pivots_to_permutation_p", "ormqr", "ormqr_p", "qdwh", "qr",
    "qr_p", "schur", "schur_p", "svd", "svd_p", "symmetric_product", "symmetric_product_p",
    "triangular_solve", "triangular_solve_p", "tridiagonal", "tridiagonal_p", "tridiagonal_solve",
    "tridiagonal_solve_p",
]


class EigImplementation(enum.Enum):
    """Libraries for ``eig``; here only LAPACK.

    >>> lax.linalg.EigImplementation.LAPACK.value
    'lapack'
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class EighImplementation(enum.Enum):
    """Algorithms for ``eigh``; here only QR.

    >>> lax.linalg.EighImplementation("qr")
    <EighImplementation.QR: 'qr'>
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class SvdAlgorithm(enum.Enum):
    """Algorithms for ``svd``; DEFAULT is DIVIDE_AND_CONQUER, JACOBI and POLAR are not supported.

    >>> [algorithm.name for algorithm in lax.linalg.SvdAlgorithm]
    ['DEFAULT', 'QR', 'JACOBI', 'POLAR', 'DIVIDE_AND_CONQUER']
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


# --- operands -------------------------------------------------------------------------------------

def _operands(primitive: Primitive, *values: Any, ranks: Sequence[int] = (2,)) -> list[Array]:
    """The checked operands of a primitive: dtypes, minimum ranks, batch dimensions."""
    name = primitive.name
    xs = [operand(value, name, position) for position, value in enumerate(values)]
    avals = [x.aval for x in xs]
    check_accepted(primitive, avals)
    if len({aval.dtype for aval in avals}) > 1:
        raise same_dtypes_error(name, avals)
    for position, (aval, rank) in enumerate(zip(avals, ranks, strict=True)):
        if aval.ndim < rank:
            raise TypeError(f"Input {position} to {name} must have rank at least {rank}, but got "
                            f"shape={aval.shape}")
    counts = [aval.ndim - rank for aval, rank in zip(avals, ranks, strict=True)]
    if len(set(counts)) > 1:
        raise TypeError(f"All inputs to {name} must have the same number of batch dimensions, but "
                        f"got {counts} batch dimensions for the inputs.")
    for dimension in range(counts[0]):
        sizes = {aval.shape[dimension]: None for aval in avals}
        if len(sizes) > 1:
            raise ValueError(f"{name}: batch dimension {dimension} corresponds to several sizes: "
                             f"{' and '.join(map(str, sizes))}")
    return xs


def _lapack_operands(primitive: Primitive, *values: Any,
                     ranks: Sequence[int] = (2,)) -> list[Array]:
    first = operand(values[0], primitive.name, 0)
    if first.dtype not in LAPACK_DTYPES:
        raise not_lapack(primitive.name, first.dtype)
    return _operands(primitive, *values, ranks=ranks)


def _square(x: Array, message: str) -> Array:
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"{message}ot shape {x.shape}")
    return x


def symmetrize(x: Any) -> Array:
    """``(x + x^H) / 2``; integers become floats."""
    x = operand(x, "symmetrize")
    if x.ndim < 2:
        raise TypeError(f"a matrix must have rank at least 2, but got shape={x.shape}")
    rank = x.ndim
    swapped = rules.conj(checked_transpose(x, (*range(rank - 2), rank - 1, rank - 2)))
    if x.shape != swapped.shape:
        raise TypeError(f"a symmetric matrix must be square, but got shape={x.shape}")
    if dtypes.is_inexact(x.dtype):
        total = add(x, swapped)
        return div(total, of_the_type(2, total))
    dtype = dtypes.canonical(dtypes.float64)
    total = add(x, swapped) if x.dtype != dtypes.bool_ else x | swapped
    half = div(convert_element_type(total, dtype), scalar_like(2, dtype))
    return convert_element_type(half, dtype, x.weak_type or x.dtype == dtypes.bool_)


# --- factorizations -------------------------------------------------------------------------------

def cholesky(x: Any, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular ``L`` with ``L L^H = x``; NaN where ``x`` is not positive definite.

    Args:
      x: shape ``(..., n, n)``.
      symmetrize_input: decompose ``(x + x^H) / 2``, whose derivative is symmetric too; otherwise
        only the lower triangle is read.

    >>> lax.linalg.cholesky(jnp.array([[4., 2.], [2., 5.]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = _square(operand(x, "cholesky"),
                "The input to linalg.cholesky must have shape [..., n, n], g")
    x, = _lapack_operands(cholesky_p, symmetrize(x) if symmetrize_input else x)
    return cholesky_p.bind(x)


def cholesky_update(r_matrix: Any, w_vector: Any) -> Array:
    """The upper triangular factor of ``R^H R + w w^T``, given that of ``R^H R``.

    Args:
      r_matrix: shape ``(n, n)``, real, of any floating dtype; it has no batch dimensions.
      w_vector: shape ``(n,)``.

    >>> lax.linalg.cholesky_update(jnp.array([[3., 0.], [0., 1.]]), jnp.array([4., 0.]))
    Array([[5., 0.],
           [0., 1.]], dtype=float32)
    """
    name = "cholesky_update"
    r = operand(r_matrix, name)
    w = operand(w_vector, name, 1)
    check_accepted(cholesky_update_p, (r.aval, w.aval))
    if r.dtype != w.dtype:
        raise same_dtypes_error(name, (r.aval, w.aval))
    for position, (x, rank) in enumerate(((r, 2), (w, 1))):
        if x.ndim != rank:
            raise TypeError(f"Input {position} to {name} must have a rank of exactly {rank}, but "
                            f"got shape={x.shape}")
    if r.shape != (w.shape[0], w.shape[0]):
        raise ValueError("The rank-1 update of a Cholesky decomposition takes a square matrix and "
                         f"a vector of the same size. Got shapes {r.shape} and {w.shape}")
    return cholesky_update_p.bind(r, w)


def lu(x: Any) -> list[Array]:
    """The decomposition ``x[permutation] = L U`` with exchanges of rows.

    Args:
      x: shape ``(..., m, n)``.

    Returns:
      ``[factors, pivots, permutation]``: L below the diagonal (its own is 1) and U in one matrix;
      for each of min(m, n) rows the one it was exchanged with; the final order of all m rows.

    >>> factors, pivots, permutation = lax.linalg.lu(jnp.array([[1., 2.], [4., 4.]]))
    >>> factors, permutation
    (Array([[4.  , 4.  ],
           [0.25, 1.  ]], dtype=float32), Array([1, 0], dtype=int32))
    """
    return list(lu_p.bind(*_lapack_operands(lu_p, x)))


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Array:
    """The permutation that results from exchanging row i with row ``pivots[i]``, in order.

    Args:
      pivots: shape ``(..., k)``, int32.
      permutation_size: the number of rows, at least k.

    >>> lax.linalg.lu_pivots_to_permutation(jnp.array([2, 2, 2]), 4)
    Array([2, 0, 1, 3], dtype=int32)
    """
    x, = _operands(lu_pivots_to_permutation_p, pivots, ranks=(1,))
    if permutation_size < x.shape[-1]:
        raise ValueError(f"The permutation size {permutation_size} must be at least the number of "
                         f"pivots, {x.shape[-1]}")
    return lu_pivots_to_permutation_p.bind(x, permutation_size=permutation_size)


def qr(x: Any, *, pivoting: bool = False, full_matrices: bool = True,
       use_magma: bool | None = None) -> Any:
    """``(q, r)`` with ``q r = x``, ``q`` unitary and ``r`` upper triangular.

    Args:
      x: shape ``(..., m, n)``.
      pivoting: exchange columns so that r's diagonal descends: ``(q, r, p)`` with
        ``q r = x[:, p]``.
      full_matrices: ``q`` has m columns, otherwise min(m, n).
      use_magma: ignored.

    >>> q, r = lax.linalg.qr(jnp.array([[3.], [4.]]), full_matrices=False)
    >>> abs(q * r).round(3).ravel()
    Array([3.0000002, 4.       ], dtype=float32)
    """
    x, = _lapack_operands(qr_p, x)
    return tuple(qr_p.bind(x, full_matrices=full_matrices, pivoting=pivoting,
                           use_magma=use_magma))


def householder_product(a: Any, taus: Any) -> Array:
    """The first columns of the product of the reflections ``I - tau v v^H``.

    Args:
      a: shape ``(..., m, n)``, m >= n: the vectors v below its diagonal (where they are 1).
      taus: shape ``(..., k)``, k <= n.

    >>> lax.linalg.householder_product(jnp.array([[0.], [1.]]), jnp.array([1.]))
    Array([[ 0.],
           [-1.]], dtype=float32)
    """
    a, taus = _lapack_operands(householder_product_p, a, taus, ranks=(2, 1))
    m, n = a.shape[-2:]
    if m < n:
        raise ValueError("The first argument to householder_product must have at least as many "
                         f"rows as columns, got shape {a.shape}")
    if taus.shape[-1] > n:
        raise ValueError("The second argument to householder_product must not have more elements "
                         f"than the first one has columns, got {taus.shape[-1]} and {n}.")
    return householder_product_p.bind(a, taus)


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Array:
    """``q c`` (``c q`` without ``left``), without forming the product ``q`` of reflections.

    Args:
      a, taus: as in ``householder_product``; shapes ``(..., m, n)`` and ``(..., k)``.
      c: shape ``(..., m, p)`` with ``left``, otherwise ``(..., p, m)``.
      transpose: take ``q^H``.

    >>> a, taus = jnp.array([[0.], [1.]]), jnp.array([1.])
    >>> lax.linalg.ormqr(a, taus, jnp.eye(2))
    Array([[ 0., -1.],
           [-1.,  0.]], dtype=float32)
    """
    a, taus, c = _lapack_operands(ormqr_p, a, taus, c, ranks=(2, 1, 2))
    if left and a.shape[-2] != c.shape[-2]:
        raise ValueError("ormqr with left=True expects c to have as many rows as a. Got a of shape "
                         f"{a.shape} and c of shape {c.shape}.")
    if not left and a.shape[-2] != c.shape[-1]:
        raise ValueError("ormqr with left=False expects c to have as many columns as a has rows. "
                         f"Got a of shape {a.shape} and c of shape {c.shape}.")
    return ormqr_p.bind(a, taus, c, left=left, transpose=transpose)


def symmetric_product(a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0,
                      symmetrize_output: bool = False) -> Array:
    """``alpha a a^T + beta c``, float32 or float64.

    Args:
      a_matrix: shape ``(..., n, k)``.
      c_matrix: shape ``(..., n, n)``.
      symmetrize_output: copy the lower triangle to the upper one.

    >>> lax.linalg.symmetric_product(jnp.array([[1.], [2.]]), jnp.eye(2), beta=10.)
    Array([[11.,  2.],
           [ 2., 14.]], dtype=float32)
    """
    a, c = _operands(symmetric_product_p, a_matrix, c_matrix, ranks=(2, 2))
    n = a.shape[-2]
    if c.shape[-2:] != (n, n):
        raise ValueError("symmetric_product expects a matrix of shape (m, n) and a square matrix "
                         f"of shape (m, m). Got shapes {a.shape} and {c.shape}.")
    # Parameters compare by value, so -0.0 is replaced by 0.0.
    out = symmetric_product_p.bind(a, c, alpha=float(alpha) + 0.0, beta=float(beta) + 0.0)
    if not symmetrize_output:
        return out
    return add(rules.lower(out), rules.swapped(rules.lower(out, -1)))


# --- eigenvalues and singular values --------------------------------------------------------------

def eig(x: Any, *, compute_left_eigenvectors: bool = True,
        compute_right_eigenvectors: bool = True, enable_eigvec_derivs: bool = False,
        implementation: EigImplementation | None = None,
        use_magma: bool | None = None) -> list[Array]:
    """``[eigenvalues, left eigenvectors, right eigenvectors]`` of any square matrices, complex.

    Vectors are columns of length 1 whose largest element is real.

    Args:
      x: shape ``(..., n, n)``.
      enable_eigvec_derivs: allow derivatives of the vectors, which are valid where all eigenvalues
        differ. Those of the eigenvalues alone are always allowed.

    Raises:
      ValueError: an implementation other than LAPACK's is requested.

    >>> values, = lax.linalg.eig(jnp.array([[0., -1.], [1., 0.]]), compute_left_eigenvectors=False,
    ...                          compute_right_eigenvectors=False)
    >>> values
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    x, = _lapack_operands(eig_p, x)
    _square(x, "The input to eig must be a square matrix. G")
    if use_magma or implementation not in (None, EigImplementation.LAPACK):
        raise ValueError("eig: only the LAPACK implementation is supported on CPUs.")
    return list(eig_p.bind(
        x, compute_left_eigenvectors=bool(compute_left_eigenvectors),
        compute_right_eigenvectors=bool(compute_right_eigenvectors),
        enable_eigvec_derivs=bool(enable_eigvec_derivs), implementation=implementation))


def eigh(x: Any, *, lower: bool = True, symmetrize_input: bool = True,
         sort_eigenvalues: bool = True, subset_by_index: tuple[int, int] | None = None,
         implementation: EighImplementation | None = None) -> tuple[Array, Array]:
    """The eigenvectors and the ascending eigenvalues of Hermitian matrices: ``(v, w)``.

    Args:
      x: shape ``(..., n, n)``.
      lower: read the lower triangle, without ``symmetrize_input``.
      sort_eigenvalues: ignored: they are always sorted.
      subset_by_index: the whole range or None.

    Raises:
      NotImplementedError: a part of the range, or an implementation other than QR.

    >>> vectors, values = lax.linalg.eigh(jnp.array([[2., 1.], [1., 2.]]))
    >>> values
    Array([1., 3.], dtype=float32)
    """
    x = _square(operand(x, "eigh"), "The input to linalg.eigh must have shape [..., n, n], g")
    x, = _lapack_operands(eigh_p, symmetrize(x) if symmetrize_input else x)
    if subset_by_index not in (None, (0, x.shape[-1])):
        raise NotImplementedError("eigh: subset_by_index is not supported on CPUs")
    if implementation not in (None, EighImplementation.QR):
        raise NotImplementedError(f"eigh: {implementation} is not supported on CPUs")
    return tuple(eigh_p.bind(x, lower=bool(lower), sort_eigenvalues=bool(sort_eigenvalues),
                             subset_by_index=None, algorithm=implementation))


def svd(x: Any, *, full_matrices: bool = True, compute_uv: bool = True,
        subset_by_index: tuple[int, int] | None = None,
        algorithm: SvdAlgorithm | None = None) -> Any:
    """``(u, s, vh)`` with ``u diag(s) vh = x`` and descending ``s``; ``s`` alone without vectors.

    Args:
      x: shape ``(..., m, n)``.
      full_matrices: ``u`` is ``(..., m, m)`` and ``vh`` ``(..., n, n)``; otherwise their inner
        dimension is min(m, n). Vectors of full matrices that are not square have no derivative.
      compute_uv: False for the singular values alone.
      subset_by_index: the whole range or None.

    Raises:
      NotImplementedError: a part of the range, or the algorithms JACOBI and POLAR.

    >>> lax.linalg.svd(jnp.array([[0., 2.], [1., 0.]]), compute_uv=False)
    Array([2., 1.], dtype=float32)
    """
    x, = _lapack_operands(svd_p, x)
    if subset_by_index is not None and subset_by_index != (0, min(x.shape[-2:])):
        if full_matrices and compute_uv:
            raise ValueError("svd: full_matrices and subset_by_index cannot both be set")
        raise NotImplementedError("svd: subset_by_index is not supported on CPUs")
    if algorithm not in (None, SvdAlgorithm.DEFAULT, SvdAlgorithm.QR,
                         SvdAlgorithm.DIVIDE_AND_CONQUER):
        raise NotImplementedError("svd: the Jacobi and polar algorithms are not supported on CPUs.")
    results = svd_p.bind(x, full_matrices=bool(full_matrices), compute_uv=bool(compute_uv),
                         subset_by_index=None, algorithm=algorithm)
    if not compute_uv:
        return results[0]
    values, left, right = results
    return left, values, right


def schur(x: Any, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False,
          select_callable: Callable[..., Any] | None = None) -> list[Array]:
    """``[t, z]`` with ``z t z^H = x``, ``z`` unitary and ``t`` upper triangular.

    Real matrices have real factors: a pair of complex eigenvalues is a 2 x 2 block in ``t``.

    Args:
      x: shape ``(..., n, n)``.
      compute_schur_vectors: False for ``[t]``.

    Raises:
      NotImplementedError: ``sort_eig_vals``.

    >>> t, z = lax.linalg.schur(jnp.array([[1., 2.], [0., 3.]]))
    >>> t
    Array([[1., 2.],
           [0., 3.]], dtype=float32)
    """
    x, = _lapack_operands(schur_p, x)
    _square(x, "The input to schur must be a square matrix. G")
    if sort_eig_vals:
        raise NotImplementedError("schur: sorting the eigenvalues is not implemented.")
    return list(schur_p.bind(x, compute_schur_vectors=bool(compute_schur_vectors),
                             sort_eig_vals=False, select_callable=select_callable))


def hessenberg(a: Any) -> list[Array]:
    """The reduction to upper Hessenberg form by reflections: ``[packed, taus]``.

    Args:
      a: shape ``(..., n, n)``.

    Returns:
      The Hessenberg matrix, with the reflections' vectors below it, and the n - 1 factors for
      ``householder_product``.

    >>> packed, taus = lax.linalg.hessenberg(jnp.array([[1., 2.], [3., 4.]]))
    >>> packed, taus
    (Array([[1., 2.],
           [3., 4.]], dtype=float32), Array([0.], dtype=float32))
    """
    a, = _lapack_operands(hessenberg_p, a)
    _square(a, "Argument to Hessenberg reduction must have shape [..., n, n], g")
    if not a.shape[-1]:
        raise ValueError("hessenberg: the matrix has no rows")
    return list(hessenberg_p.bind(a))


def tridiagonal(a: Any, *, lower: bool = True) -> list[Array]:
    """The reduction of Hermitian matrices to real tridiagonal form by reflections.

    Args:
      a: shape ``(..., n, n)``.
      lower: read the lower triangle.

    Returns:
      ``[packed, d, e, taus]``: the matrix with the reflections' vectors, the diagonal, the
      off-diagonal, and the reflections' factors.

    >>> _, d, e, _ = lax.linalg.tridiagonal(jnp.array([[1., 2.], [2., 5.]]))
    >>> d, e
    (Array([1., 5.], dtype=float32), Array([2.], dtype=float32))
    """
    a, = _lapack_operands(tridiagonal_p, a)
    _square(a, "The input to tridiagonal must be a square matrix. G")
    if not a.shape[-1]:
        raise ValueError(f"The input to tridiagonal must be a square matrix. Got shape {a.shape}")
    return list(tridiagonal_p.bind(a, lower=bool(lower)))


# --- equations ------------------------------------------------------------------------------------

def triangular_solve(a: Any, b: Any, *, left_side: bool = False, lower: bool = False,
                     transpose_a: bool = False, conjugate_a: bool = False,
                     unit_diagonal: bool = False) -> Array:
    """Solves ``op(a) x = b`` or ``x op(a) = b`` for triangular ``a``; any inexact dtype.

    Args:
      a: shape ``(..., m, m)``; the other triangle is not read.
      b: shape ``(..., m, n)`` with ``left_side``, otherwise ``(..., n, m)``; or vectors ``(...,
        m)``.
      unit_diagonal: assume the diagonal to be 1, without reading it.

    >>> a, b = jnp.array([[2., 0.], [1., 4.]]), jnp.array([[2.], [9.]])
    >>> lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
    Array([[1.],
           [2.]], dtype=float32)
    """
    conjugate_a = conjugate_a and dtypes.is_complex(getattr(a, "dtype", None))
    vectors = getattr(b, "ndim", 0) == getattr(a, "ndim", 0) - 1
    if vectors:
        b = operand(b, "triangular_solve", 1)
        b = b[..., None] if left_side else b[..., None, :]
    a, b = _operands(triangular_solve_p, a, b, ranks=(2, 2))
    _square(a, "The first input to triangular_solve must be a square matrix. G")
    if a.shape[-1] != b.shape[-2 if left_side else -1]:
        raise ValueError(f"Incompatible shapes for arguments to triangular_solve: {a.shape} and "
                         f"{b.shape}.")
    out = triangular_solve_p.bind(
        a, b, left_side=bool(left_side), lower=bool(lower), transpose_a=bool(transpose_a),
        conjugate_a=conjugate_a, unit_diagonal=bool(unit_diagonal))
    if vectors:
        return out[..., 0] if left_side else out[..., 0, :]
    return out


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any, *,
                      perturb_singular: bool = False) -> Array:
    """Solves ``a x = b`` for tridiagonal ``a``; NaN where it is singular.

    Args:
      dl, d, du: the diagonals, shape ``(..., n)``: row i of ``a`` has ``dl[i], d[i], du[i]`` in
        columns i - 1, i, i + 1; ``dl[0]`` and ``du[n - 1]`` are not read.
      b: shape ``(..., n, k)``.
      perturb_singular: enlarge pivots near zero, so that results are finite.

    >>> d = jnp.full(3, 2.)
    >>> lax.linalg.tridiagonal_solve(0 * d, d, d, jnp.array([[4.], [4.], [2.]]))
    Array([[1.],
           [1.],
           [1.]], dtype=float32)
    """
    dl, d, du, b = _lapack_operands(tridiagonal_solve_p, dl, d, du, b, ranks=(1, 1, 1, 2))
    if not dl.shape == d.shape == du.shape:
        raise TypeError("tridiagonal_solve requires that all diagonals have the same shape, got "
                        f"{dl.shape}, {d.shape} and {du.shape}.")
    if b.shape[:-1] != d.shape:
        raise TypeError("tridiagonal_solve requires that the leading dimensions of b equal those "
                        f"of the diagonals, got {b.shape} and {d.shape}.")
    return tridiagonal_solve_p.bind(dl, d, du, b, perturb_singular=bool(perturb_singular))


add_stages(globals(), "qdwh")
