"""Decompositions and solvers of matrices, by LAPACK on the host.

Every primitive works on the last two dimensions; the leading ones are batch dimensions, so that
its batching rule only moves an axis to the front. Derivatives follow M. Giles, "Collected matrix
derivative results for forward and reverse mode algorithmic differentiation".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.lazy import scipy_linalg
from maxjax._ir.primitive import Primitive
from maxjax._ir.types import ShapedArray
from maxjax._primitives.arithmetic import add, conj, div, mul, neg, real_p, sub
from maxjax._primitives.builders import add_tangents
from maxjax._primitives.comparison import eq, ge, select
from maxjax._primitives.contraction import dot_general
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.rules import FactorRule, factor_rule
from maxjax._primitives.shape import (
    broadcast_in_dim,
    broadcast_leading,
    full,
    iota,
    move_axis,
    pad,
    reduce_sum,
    slice_in_dim,
    transpose,
)
from maxjax._primitives.widths import accepted

HOST_REASON = "MAX has no LAPACK"
LAPACK_DTYPES = tuple(dtype for dtype in accepted("floating complexfloating")
                      if dtype in (dtypes.float32, dtypes.float64, dtypes.complex64,
                                   dtypes.complex128))

# --- what the rules are written with --------------------------------------------------------------


def _matmul(x: Any, y: Any) -> Any:
    """The product of the matrices in the last two dimensions."""
    rank = len(x.shape)
    batch = tuple(range(rank - 2))
    return dot_general(x, y, (((rank - 1,), (rank - 2,)), (batch, batch)))


def _swapped(x: Any) -> Any:
    rank = len(x.shape)
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def _conj(x: Any) -> Any:
    return conj(x) if dtypes.is_complex(x.dtype) else x


def _adjoint(x: Any) -> Any:
    return _conj(_swapped(x))


def _real(x: Any) -> Any:
    return real_p.bind(x) if dtypes.is_complex(x.dtype) else x


def _as(x: Any, dtype: Any) -> Any:
    return x if x.dtype == dtype else convert_element_type(x, dtype)


def _where_lower(x: Any, offset: int, otherwise: Any = None) -> Any:
    """``x`` on and below the diagonal number ``offset``, zero (or ``otherwise``) above."""
    last = len(x.shape) - 1
    row, column = (iota(dtypes.int32, x.shape, axis) for axis in (last - 1, last))
    zero = full(x.shape, 0, x.dtype) if otherwise is None else otherwise
    return select(ge(add(row, np.int32(offset)), column), zero, x)


def _lower(x: Any, offset: int = 0) -> Any:
    return _where_lower(x, offset)


def _upper(x: Any, offset: int = 0) -> Any:
    zero = full(x.shape, 0, x.dtype)
    return _where_lower(zero, offset - 1, x)


def _on_diagonal(x: Any) -> Any:
    """``x`` on the diagonal, zero elsewhere."""
    last = len(x.shape) - 1
    row, column = (iota(dtypes.int32, x.shape, axis) for axis in (last - 1, last))
    return select(eq(row, column), full(x.shape, 0, x.dtype), x)


def _diagonal(x: Any) -> Any:
    """The diagonals of square matrices."""
    return reduce_sum(_on_diagonal(x), (len(x.shape) - 1,))


def _eye_like(x: Any) -> Any:
    return _on_diagonal(full(x.shape, 1, x.dtype))


def _columns(x: Any, matrix: Any) -> Any:
    """Vectors ``(..., n)``, an element for each column of ``matrix``."""
    rank = len(matrix.shape)
    return broadcast_in_dim(x, matrix.shape, (*range(rank - 2), rank - 1))


def _rows(x: Any, matrix: Any) -> Any:
    """Vectors ``(..., m)``, an element for each row of ``matrix``."""
    rank = len(matrix.shape)
    return broadcast_in_dim(x, matrix.shape, (*range(rank - 2), rank - 2))


def _each(function: Callable[..., Any], count: int, *matrices: np.ndarray) -> tuple[Any, ...]:
    """``count`` results of a function of matrices, stacked over the batch dimensions.

    All of a matrix's results are NaN where the function raises LinAlgError, as in JAX.
    """
    batch = matrices[0].shape[:-2]
    flat = [x.reshape((-1, *x.shape[-2:])) for x in matrices]
    results: list[Any] = []
    failed = []
    for position, parts in enumerate(zip(*flat, strict=True)):
        try:
            results.append(function(*parts))
        except np.linalg.LinAlgError:
            results.append(None)
            failed.append(position)
    if failed:
        # The shapes and dtypes of the results, from a matrix that never fails.
        model = function(*[np.eye(*x.shape[-2:], dtype=x.dtype) for x in flat])
        nans = tuple(np.full_like(x, np.nan) for x in model)
        results = [nans if result is None else result for result in results]
    return tuple(np.stack([result[i] for result in results]).reshape(
        (*batch, *np.shape(results[0][i]))) for i in range(count))


def _together(function: Callable[..., Any], count: int, *matrices: Any) -> tuple[Any, ...]:
    """All matrices at once if none fails, else each by itself."""
    arrays = [np.asarray(x) for x in matrices]
    try:
        return tuple(function(*arrays))
    except np.linalg.LinAlgError:
        return _each(function, count, *arrays)


def _factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
             **params: Any) -> FactorRule:
    """Batch dimensions correspond; the matrices themselves cannot be split."""
    batch = in_avals[0].ndim - 2
    names = iter(range(batch, batch + 2 * len(in_avals) + 2 * len(out_avals) + batch))
    dims = [[*range(batch), *(next(names) for _ in aval.shape[batch:])]
            for aval in (*in_avals, *out_avals)]
    rule = factor_rule(dims[:len(in_avals)], dims[len(in_avals):], in_avals, out_avals)
    rule.replicated = frozenset(name for name in rule.sizes if name >= batch)
    return rule


def _primitive(name: str, **rules: Any) -> Primitive:
    def batch(size: int, operands: Any, axes: Any, **params: Any) -> tuple[Any, Any]:
        moved = [broadcast_leading(x, size) if axis is None else move_axis(x, axis, 0)
                 for x, axis in zip(operands, axes, strict=True)]
        out = primitive.bind(*moved, **params)
        return out, [0] * len(out) if primitive.multiple_results else 0

    primitive = Primitive(name, host_reason=HOST_REASON, accepts=LAPACK_DTYPES, batch=batch,
                          factors=_factors, **rules)
    return primitive


def _real_dtype(dtype: Any) -> Any:
    return dtypes.real_dtype(dtype) if dtypes.is_complex(dtype) else dtype


def _like(a: ShapedArray, shape: tuple[int, ...], dtype: Any = None) -> ShapedArray:
    return ShapedArray(shape, dtype or a.dtype, a.weak_type)


# --- triangular solve -----------------------------------------------------------------------------

_BLAS = {dtypes.float32: "strsm", dtypes.float64: "dtrsm", dtypes.complex64: "ctrsm",
         dtypes.complex128: "ztrsm"}


def _triangular_solve_evaluate(a: Any, b: Any, *, left_side: bool, lower: bool, transpose_a: bool,
                               conjugate_a: bool, unit_diagonal: bool) -> np.ndarray:
    a, b = np.asarray(a), np.asarray(b)
    if not b.size:
        return np.zeros_like(b)
    if conjugate_a and not transpose_a:
        a = np.conj(a)
    solve = getattr(scipy_linalg.blas, _BLAS[b.dtype])
    form = 0 if not transpose_a else 2 if conjugate_a else 1
    # BLAS divides by zero as floats do, where LAPACK's solver gives up.
    result, = _each(lambda x, y: (solve(1, x, y, side=0 if left_side else 1, lower=int(lower),
                                        trans_a=form, diag=int(unit_diagonal)),), 1, a, b)
    return result.astype(b.dtype, copy=False)


def _triangular_solve_jvp(primals: Any, tangents: Any, **params: Any) -> Any:
    a, b = primals
    a_tangent, b_tangent = tangents
    out = triangular_solve_p.bind(a, b, **params)
    total = None if b_tangent is None else triangular_solve_p.bind(a, b_tangent, **params)
    if a_tangent is not None:
        # op(a) x = b: the tangent of x solves op(a) x' = b' - op(a') x.
        change = _lower(a_tangent) if params["lower"] else _upper(a_tangent)
        if params["unit_diagonal"]:
            change = sub(change, _on_diagonal(change))
        if params["transpose_a"]:
            change = _swapped(change)
        if params["conjugate_a"]:
            change = _conj(change)
        product = _matmul(change, out) if params["left_side"] else _matmul(out, change)
        total = add_tangents(total, triangular_solve_p.bind(a, neg(product), **params))
    return out, total


def _triangular_solve_transpose(cotangent: Any, a: Any, b: Any, *, transpose_a: bool,
                                conjugate_a: bool, **params: Any) -> list[Any]:
    # The transposes are linear without conjugation: that of conj(a) solves with conj(a)^T.
    if conjugate_a:
        a = _conj(a)
    return [None, triangular_solve_p.bind(a, cotangent, transpose_a=not transpose_a,
                                          conjugate_a=False, **params)]


triangular_solve_p = _primitive(
    "triangular_solve",
    abstract=lambda a, b, **params: ShapedArray(b.shape, b.dtype),
    evaluate=_triangular_solve_evaluate,
    jvp=_triangular_solve_jvp,
    transpose=_triangular_solve_transpose,
)


def triangular_solve(a: Any, b: Any, *, left_side: bool = False, lower: bool = False,
                     transpose_a: bool = False, conjugate_a: bool = False,
                     unit_diagonal: bool = False) -> Any:
    """Solves ``op(a) x = b`` or ``x op(a) = b`` for triangular ``a``."""
    return triangular_solve_p.bind(
        a, b, left_side=left_side, lower=lower, transpose_a=transpose_a, conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal)


# --- general solve --------------------------------------------------------------------------------


def _solve_one(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray]:
    """By LU; a singular matrix divides by zero."""
    factors, pivots, _ = scipy_linalg.get_lapack_funcs(("getrf",), (a,))[0](a)
    rows = np.arange(len(a))
    for row, other in enumerate(pivots):
        rows[[row, other]] = rows[[other, row]]
    solve = getattr(scipy_linalg.blas, _BLAS[b.dtype])
    return solve(1, factors, solve(1, factors, b[rows], lower=1, diag=1)),


def _solve_evaluate(a: Any, b: Any) -> np.ndarray:
    a, b = np.asarray(a), np.asarray(b)
    if not b.size:
        return np.zeros_like(b)
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return _each(_solve_one, 1, a, b)[0].astype(b.dtype, copy=False)


def _solve_jvp(primals: Any, tangents: Any) -> Any:
    a, b = primals
    a_tangent, b_tangent = tangents
    out = solve_p.bind(a, b)
    change = b_tangent
    if a_tangent is not None:
        product = neg(_matmul(a_tangent, out))
        change = product if change is None else add_tangents(change, product)
    return out, None if change is None else solve_p.bind(a, change)


solve_p = _primitive(
    "linear_solve",
    abstract=lambda a, b: ShapedArray(b.shape, b.dtype),
    evaluate=_solve_evaluate,
    jvp=_solve_jvp,
    transpose=lambda cotangent, a, b: [None, solve_p.bind(_swapped(a), cotangent)],
)

# --- cholesky -------------------------------------------------------------------------------------


def _cholesky_jvp(primals: Any, tangents: Any) -> Any:
    factor = cholesky_p.bind(*primals)
    # L^-1 a' L^-H, its lower triangle with half the diagonal.
    inner = triangular_solve(factor, tangents[0], left_side=False, lower=True, transpose_a=True,
                             conjugate_a=True)
    inner = triangular_solve(factor, inner, left_side=True, lower=True)
    half = np.asarray(0.5, inner.dtype)[()]
    inner = sub(_lower(inner), mul(half, _on_diagonal(inner)))
    return factor, _matmul(factor, inner)


cholesky_p = _primitive(
    "cholesky",
    abstract=lambda a: a,
    # The upper triangle is zero even where the matrix is not positive definite.
    evaluate=lambda a: np.tril(_together(lambda x: (np.linalg.cholesky(x),), 1, a)[0]),
    jvp=_cholesky_jvp,
)

# --- qr -------------------------------------------------------------------------------------------


def _qr_abstract(a: ShapedArray, *, full_matrices: bool) -> tuple[ShapedArray, ShapedArray]:
    *batch, m, n = a.shape
    k = m if full_matrices else min(m, n)
    return _like(a, (*batch, m, k)), _like(a, (*batch, k, n))


def _qr_evaluate(a: Any, *, full_matrices: bool) -> list[np.ndarray]:
    a = np.asarray(a)
    *batch, m, n = a.shape
    if not a.size:
        k = m if full_matrices else min(m, n)
        q = np.broadcast_to(np.eye(m, k, dtype=a.dtype), (*batch, m, k))
        return [q, np.zeros((*batch, k, n), a.dtype)]
    return list(np.linalg.qr(a, "complete" if full_matrices else "reduced"))


def _qr_jvp(primals: Any, tangents: Any, *, full_matrices: bool) -> Any:
    a, tangent = primals[0], tangents[0]
    m, n = a.shape[-2:]
    if m < n or (full_matrices and m != n):
        raise NotImplementedError(
            "Unimplemented case of QR decomposition derivative")
    q, r = qr_p.bind(a, full_matrices=False)
    whole = triangular_solve(r, tangent)                   # a' r^-1
    projected = _matmul(_adjoint(q), whole)
    strict = _lower(projected, -1)
    turn = sub(strict, _adjoint(strict))                   # q^H q' is skew-Hermitian
    if dtypes.is_complex(a.dtype):                         # and r has a real diagonal
        turn = add(turn, _on_diagonal(sub(projected, _as(_real(projected), a.dtype))))
    q_tangent = add(_matmul(q, sub(turn, projected)), whole)
    return [q, r], [q_tangent, _matmul(sub(projected, turn), r)]


qr_p = _primitive("qr", abstract=_qr_abstract, evaluate=_qr_evaluate, jvp=_qr_jvp,
                  multiple_results=True)

# --- lu -------------------------------------------------------------------------------------------


def _lu_abstract(a: ShapedArray) -> tuple[ShapedArray, ...]:
    *batch, m, n = a.shape
    return (a, ShapedArray((*batch, min(m, n)), dtypes.int32),
            ShapedArray((*batch, m), dtypes.int32))


def _lu_one(a: np.ndarray) -> tuple[np.ndarray, ...]:
    factors, pivots, _ = scipy_linalg.get_lapack_funcs(("getrf",), (a,))[0](a)
    rows = np.arange(a.shape[0], dtype=np.int32)
    for row, other in enumerate(pivots):
        rows[[row, other]] = rows[[other, row]]
    return factors, pivots.astype(np.int32), rows


def _lu_evaluate(a: Any) -> list[np.ndarray]:
    a = np.asarray(a)
    if not a.size:
        *batch, m, n = a.shape
        rows = np.broadcast_to(np.arange(m, dtype=np.int32), (*batch, m))
        return [a, np.zeros((*batch, min(m, n)), np.int32), rows]
    return list(_each(_lu_one, 3, a))


def _lu_jvp(primals: Any, tangents: Any) -> Any:
    a = primals[0]
    factors, pivots, rows = lu_p.bind(a)
    m, n = a.shape[-2:]
    k = min(m, n)
    batch = len(a.shape) - 2
    # The rows of the tangent in their new order: a product with the permutation's matrix.
    square = (*a.shape[:-2], m, m)
    chosen = eq(broadcast_in_dim(rows, square, (*range(batch), batch)),
                iota(dtypes.int32, square, batch + 1))
    tangent = _matmul(_as(chosen, a.dtype), tangents[0])
    none = ((0, 0, 0),) * batch
    left = _lower(slice_in_dim(factors, 0, k, batch + 1), -1)
    left = pad(left, 0, (*none, (0, 0, 0), (0, m - k, 0)))
    left = add(left, _eye_like(left))
    right = _upper(slice_in_dim(factors, 0, k, batch))
    right = pad(right, 0, (*none, (0, n - k, 0), (0, 0, 0)))
    if n > k:      # ones below, so that it can be inverted
        ones = full((*a.shape[:-2], n - k, n - k), 1, a.dtype)
        right = add(right, pad(_on_diagonal(ones), 0, (*none, (k, 0, 0), (k, 0, 0))))
    inner = triangular_solve(left, tangent, left_side=True, lower=True, unit_diagonal=True)
    inner = triangular_solve(right, inner)
    change = add(_matmul(left, _lower(inner, -1)), _matmul(_upper(inner), right))
    return [factors, pivots, rows], [change, None, None]


lu_p = _primitive("lu", abstract=_lu_abstract, evaluate=_lu_evaluate, jvp=_lu_jvp,
                  multiple_results=True)

# --- eigh -----------------------------------------------------------------------------------------


def _eigh_abstract(a: ShapedArray, *, lower: bool) -> tuple[ShapedArray, ShapedArray]:
    return a, _like(a, a.shape[:-1], _real_dtype(a.dtype))


def _eigh_evaluate(a: Any, *, lower: bool) -> list[np.ndarray]:
    def decompose(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = np.linalg.eigh(x, "L" if lower else "U")
        return vectors, values

    vectors, values = _together(decompose, 2, a)
    return [vectors, values]


def _eigh_jvp(primals: Any, tangents: Any, *, lower: bool) -> Any:
    vectors, values = eigh_p.bind(*primals, lower=lower)
    inner = _matmul(_adjoint(vectors), _matmul(tangents[0], vectors))
    wide = _as(values, vectors.dtype)
    eye = _eye_like(inner)
    gaps = sub(add(eye, _columns(wide, inner)), _rows(wide, inner))
    one = np.ones((), inner.dtype)[()]
    share = sub(div(one, gaps), eye)
    return [vectors, values], [_matmul(vectors, mul(share, inner)), _real(_diagonal(inner))]


eigh_p = _primitive("eigh", abstract=_eigh_abstract, evaluate=_eigh_evaluate, jvp=_eigh_jvp,
                    multiple_results=True)

# --- svd ------------------------------------------------------------------------------------------


def _svd_abstract(a: ShapedArray, *, full_matrices: bool,
                  compute_uv: bool) -> tuple[ShapedArray, ...]:
    *batch, m, n = a.shape
    k = min(m, n)
    values = _like(a, (*batch, k), _real_dtype(a.dtype))
    if not compute_uv:
        return (values,)
    return (values, _like(a, (*batch, m, m if full_matrices else k)),
            _like(a, (*batch, n if full_matrices else k, n)))


def _svd_evaluate(a: Any, *, full_matrices: bool, compute_uv: bool) -> list[np.ndarray]:
    def decompose(x: np.ndarray) -> tuple[np.ndarray, ...]:
        if not compute_uv:
            return np.linalg.svd(x, compute_uv=False),
        left, values, right = np.linalg.svd(x, full_matrices)
        return values, left, right

    return list(_together(decompose, 3 if compute_uv else 1, a))


def _svd_jvp(primals: Any, tangents: Any, *, full_matrices: bool, compute_uv: bool) -> Any:
    a, tangent = primals[0], tangents[0]
    m, n = a.shape[-2:]
    values, left, right = svd_p.bind(a, full_matrices=False, compute_uv=True)
    if compute_uv and full_matrices and m != n:
        raise NotImplementedError(
            "Singular value decomposition JVP not implemented for full matrices")
    left_adjoint, right_vectors = _adjoint(left), _adjoint(right)
    inner = _matmul(_matmul(left_adjoint, tangent), right_vectors)
    values_tangent = _real(_diagonal(inner))
    if not compute_uv:
        return [values], [values_tangent]
    wide = _as(values, a.dtype)
    column, row = _columns(wide, inner), _rows(wide, inner)
    one = np.ones((), a.dtype)[()]
    eye = _eye_like(inner)
    # The difference of squares as a product: less is lost where values are close.
    gaps = mul(add(column, row), sub(column, row))
    share = sub(div(one, add(gaps, eye)), eye)
    scaled, scaling = mul(inner, column), mul(row, inner)
    left_turn = mul(share, add(scaled, _adjoint(scaled)))
    right_turn = mul(share, add(scaling, _adjoint(scaling)))
    if dtypes.is_complex(a.dtype):      # the phase, which left vectors take
        skew = _on_diagonal(sub(inner, _adjoint(inner)))
        left_turn = add(left_turn, div(skew, mul(np.asarray(2, a.dtype)[()], column)))
    left_tangent = _matmul(left, left_turn)
    right_tangent = _matmul(right_vectors, right_turn)
    if m > n:      # what leaves the span of the left vectors
        image = _matmul(tangent, right_vectors)
        image = div(image, _columns(wide, image))
        left_tangent = add(left_tangent, sub(image, _matmul(left, _matmul(left_adjoint, image))))
    if n > m:
        image = _matmul(_adjoint(tangent), left)
        image = div(image, _columns(wide, image))
        right_tangent = add(
            right_tangent, sub(image, _matmul(right_vectors, _matmul(right, image))))
    return [values, left, right], [values_tangent, left_tangent, _adjoint(right_tangent)]


svd_p = _primitive("svd", abstract=_svd_abstract, evaluate=_svd_evaluate, jvp=_svd_jvp,
                   multiple_results=True)
