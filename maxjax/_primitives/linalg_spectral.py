"""Eigenvalues and singular values, and the reductions that lead to them.

Derivatives follow M. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation".
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.contract import FLAG, NONE, OPTION, takes
from maxjax._ir.dimensions import smaller
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._primitives import costs, fitting
from maxjax._primitives.arithmetic import abs_, add, complex_p, conj, div, imag_p, mul, real_p, sub
from maxjax._primitives.broadcasting import reduce_sum
from maxjax._primitives.comparison import eq, select
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full, iota
from maxjax._primitives.lapack import Call, address, bits, stack_size
from maxjax._primitives.linalg_rules import (
    adjoint,
    as_dtype,
    check,
    columns,
    diagonal,
    each,
    eye_like,
    fitted,
    lapack,
    like,
    linalg_primitive,
    matmul,
    on_diagonal,
    real,
    result_types,
    rows,
    together,
    workspace,
)
from maxjax._primitives.linalg_solve import solve
from maxjax._primitives.reduction import argmax_p
from maxjax._primitives.rules import scalar_like

# --- hermitian ------------------------------------------------------------------------------------


def _eigh_abstract(a: ShapedArray, **params: object) -> tuple[ShapedArray, ShapedArray]:
    return a, like(a, a.shape[:-1], dtypes.real_dtype(a.dtype))


# SciPy's LAPACK, which JAX calls too, decides the signs of vectors. NumPy computes single precision
# in double, with other roundings; in double precision the signs of Hermitian ones are the same.


def _is_double(x: np.ndarray) -> bool:
    return x.dtype in (dtypes.float64, dtypes.complex128)


def _eigh_evaluate(a: np.ndarray, *, lower: bool, sort_eigenvalues: bool, subset_by_index: object,
                   algorithm: enum.Enum | None) -> list[np.ndarray]:
    def decompose(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, vectors = np.linalg.eigh(x, "L" if lower else "U")
        return vectors, values

    def decompose_one(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        values, vectors, info = lapack("syevd heevd", x.dtype)(x, lower=int(lower))
        check(info)
        return vectors, values

    avals = result_types(_eigh_abstract, a.shape, a.dtype)
    if _is_double(a) or not a.size:
        return together(decompose, avals, a)
    return each(decompose_one, avals, a)


@functools.cache
def _eigh_workspace(n: int, lower: bool, dtype: np.dtype) -> tuple[int, int, int]:
    """Elements of the dtype, real ones, integers."""
    size, integers, *reals, info = lapack("syevd_lwork heevd_lwork", dtype)(n, lower=int(lower))
    check(info)
    return int(size.real), int(reals[0]) if reals else 0, int(integers)


def _eigh_call(a: ShapedArray, *, lower: bool, **params: object) -> Call:
    real = dtypes.real_dtype(a.dtype)
    return Call("syevd", (stack_size(a), a.shape[-1], address("syevd heevd", a.dtype), lower,
                          *_eigh_workspace(a.shape[-1], lower, a.dtype), bits(math.nan, a.dtype),
                          real.itemsize), _eigh_abstract(a))


def _gaps(values: Array, matrix: Array) -> Any:
    """1 / (w[j] - w[i]) off the diagonal, 0 on it."""
    eye = eye_like(matrix)
    gaps = sub(add(eye, columns(values, matrix)), rows(values, matrix))
    return sub(div(scalar_like(1, matrix.dtype), gaps), eye)


def _eigh_jvp(primals: Sequence[Array], tangents: Sequence[Array], **params: object) -> Any:
    vectors, values = eigh_p.bind(*primals, **params)
    inner = matmul(adjoint(vectors), matmul(tangents[0], vectors))
    share = _gaps(as_dtype(values, vectors.dtype), inner)
    turn = mul(share, convert_element_type(inner, inner.dtype))      # by strongly typed shares
    return [vectors, values], [matmul(vectors, turn), real(diagonal(inner))]


eigh_p = linalg_primitive(
    "eigh",
    contract=takes(
        1, fitting.square, lower=FLAG, sort_eigenvalues=FLAG, subset_by_index=NONE,
        algorithm=OPTION),
    abstract=_eigh_abstract, evaluate=_eigh_evaluate,
    calls=_eigh_call, jvp=_eigh_jvp, multiple_results=True, cost=costs.FREE)

# --- general eigenvalues --------------------------------------------------------------------------


def _eig_abstract(a: ShapedArray, *, compute_left_eigenvectors: bool,
                  compute_right_eigenvectors: bool, **params: object) -> tuple[ShapedArray, ...]:
    dtype = dtypes.complex_dtype(a.dtype)
    vectors = like(a, a.shape, dtype)
    return (like(a, a.shape[:-1], dtype),
            *[vectors] * (compute_left_eigenvectors + compute_right_eigenvectors))


def _eig_one(a: np.ndarray, *, left: bool, right: bool) -> list[np.ndarray]:
    if not a.size:
        return [a.ravel(), *[a] * (left + right)]
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError("not finite")
    routine = lapack("geev", a.dtype)
    options = {"compute_vl": left, "compute_vr": right}
    *values, left_vectors, right_vectors, info = routine(
        a, **options, lwork=workspace("geev", a.dtype, len(a), **options))
    check(info)
    wanted = [vectors for vectors, chosen in ((left_vectors, left), (right_vectors, right))
              if chosen]
    if a.dtype.kind == "c":
        return [values[0], *wanted]
    real_part, imaginary = values
    return [real_part + 1j * imaginary, *[_paired(vectors, imaginary) for vectors in wanted]]


def _paired(vectors: np.ndarray, imaginary: np.ndarray) -> np.ndarray:
    """Complex vectors of a real matrix: of a conjugate pair, LAPACK gives the two parts."""
    result = vectors.astype(dtypes.complex_dtype(vectors.dtype))
    for first in np.nonzero(imaginary > 0)[0]:
        result.imag[:, first] = vectors[:, first + 1]
        result[:, first + 1] = result[:, first].conj()
    return result


def _eig_evaluate(a: np.ndarray, *, compute_left_eigenvectors: bool,
                  compute_right_eigenvectors: bool, **params: object) -> list[np.ndarray]:
    avals = _eig_abstract(ShapedArray(a.shape, a.dtype),
                          compute_left_eigenvectors=compute_left_eigenvectors,
                          compute_right_eigenvectors=compute_right_eigenvectors)
    # Not NumPy's: the signs of its vectors are not always those of SciPy's LAPACK, which JAX calls.
    return each(lambda x: _eig_one(
        x, left=compute_left_eigenvectors, right=compute_right_eigenvectors), avals, a)


@functools.cache
def _eig_workspace(n: int, left: bool, right: bool, dtype: np.dtype) -> int:
    size, info = lapack("geev_lwork", dtype)(n, compute_vl=left, compute_vr=right)
    check(info)
    return int(size.real)


def _eig_call(a: ShapedArray, *, compute_left_eigenvectors: bool,
              compute_right_eigenvectors: bool, **params: object) -> Call:
    left, right = compute_left_eigenvectors, compute_right_eigenvectors
    kind = "geev_both" if left and right else "geev" if left or right else "geev_values"
    return Call(kind, (stack_size(a), a.shape[-1], address("geev", a.dtype), left, right,
                       _eig_workspace(a.shape[-1], left, right, a.dtype), bits(math.nan, a.dtype),
                       dtypes.real_dtype(a.dtype).itemsize),
                _eig_abstract(a, compute_left_eigenvectors=left, compute_right_eigenvectors=right))


def _normalized_tangent(vectors: Array, change: Array) -> Any:
    """Adds multiples of the vectors so that they keep LAPACK's form.

    That is, length 1, and an element of greatest magnitude that is real.
    """
    rank = len(vectors.shape)
    row = rank - 2
    index = argmax_p.bind(abs_(vectors), axes=(row,), index_dtype=dtypes.int32)
    greatest = eq(columns(index, vectors), iota(dtypes.int32, vectors.shape, row))
    zero = full(vectors.shape, 0, vectors.dtype)

    def at_greatest(x: Array) -> Any:
        return reduce_sum(select(greatest, zero, x), (row,))

    lengthening = real_p.bind(reduce_sum(mul(conj(vectors), change), (row,)))
    turning = div(imag_p.bind(at_greatest(change)), real_p.bind(at_greatest(vectors)))
    return sub(change, mul(vectors, columns(complex_p.bind(lengthening, turning), vectors)))


def _vectors_tangent(values: Array, vectors: Array, tangent: Array) -> tuple[Any, Any]:
    """The tangents of the eigenvalues and of the right eigenvectors."""
    inner = solve(vectors, matmul(tangent, vectors))
    change = matmul(vectors, mul(_gaps(values, inner), inner))
    return diagonal(inner), _normalized_tangent(vectors, change)


def _eig_jvp(primals: Sequence[Array], tangents: Sequence[Array], *,
             compute_left_eigenvectors: bool, compute_right_eigenvectors: bool,
             enable_eigvec_derivs: bool, implementation: object) -> Any:
    a = primals[0]
    wanted = compute_left_eigenvectors or compute_right_eigenvectors
    if wanted and not enable_eigvec_derivs:
        raise NotImplementedError(
            "The derivatives of non-symmetric eigenvectors hold only where all eigenvalues "
            "differ, which cannot be checked. Pass enable_eigvec_derivs=True to "
            "jax.lax.linalg.eig to have them (see https://github.com/jax-ml/jax/issues/2748).")
    outs = eig_p.bind(a, compute_left_eigenvectors=compute_left_eigenvectors,
                      compute_right_eigenvectors=True, enable_eigvec_derivs=enable_eigvec_derivs,
                      implementation=implementation)
    values, *left, right = outs
    tangent = as_dtype(tangents[0], values.dtype)
    if not wanted:
        # diag(V^-1 a' V)
        inner = solve(right, matmul(tangent, right))
        return [values], [diagonal(inner)]
    values_tangent, right_tangent = _vectors_tangent(values, right, tangent)
    results, result_tangents = [values], [values_tangent]
    if left:      # the right eigenvectors of a^H
        _, left_tangent = _vectors_tangent(conj(values), left[0], adjoint(tangent))
        results.append(left[0])
        result_tangents.append(left_tangent)
    if compute_right_eigenvectors:
        results.append(right)
        result_tangents.append(right_tangent)
    return results, result_tangents


eig_p = linalg_primitive(
    "eig",
    contract=takes(
        1, fitting.square, compute_left_eigenvectors=FLAG, compute_right_eigenvectors=FLAG,
        enable_eigvec_derivs=FLAG, implementation=OPTION),
    abstract=_eig_abstract, evaluate=_eig_evaluate, jvp=_eig_jvp, calls=_eig_call,
    multiple_results=True, cost=costs.FREE)

# --- schur, hessenberg, tridiagonal ---------------------------------------------------------------


def _schur_abstract(a: ShapedArray, *, compute_schur_vectors: bool, **params: object
                    ) -> tuple[ShapedArray, ...]:
    return (a, a) if compute_schur_vectors else (a,)


def _schur_evaluate(a: np.ndarray, *, compute_schur_vectors: bool, **params: object
                    ) -> list[np.ndarray]:
    def decompose(x: np.ndarray) -> list[np.ndarray]:
        if not x.size:
            return [x, x][:1 + compute_schur_vectors]
        triangle, *_, vectors = fitted(lapack("gees", x.dtype), lambda *values: None, x,
                                       compute_v=int(compute_schur_vectors), sort_t=0)
        return [triangle, vectors] if compute_schur_vectors else [triangle]

    return each(decompose, _schur_abstract(ShapedArray(a.shape, a.dtype),
                                           compute_schur_vectors=compute_schur_vectors), a)


@functools.cache
def _schur_workspace(n: int, vectors: bool, dtype: np.dtype) -> int:
    *_, work, info = lapack("gees", dtype)(
        lambda *values: None, np.zeros((n, n), dtype), compute_v=int(vectors), sort_t=0, lwork=-1)
    check(info)
    return int(work[0].real)


def _schur_call(a: ShapedArray, *, compute_schur_vectors: bool, **params: object) -> Call:
    return Call("gees" if compute_schur_vectors else "gees_values",
                (stack_size(a), a.shape[-1], address("gees", a.dtype),
                 _schur_workspace(a.shape[-1], compute_schur_vectors, a.dtype),
                 bits(math.nan, a.dtype), dtypes.real_dtype(a.dtype).itemsize),
                _schur_abstract(a, compute_schur_vectors=compute_schur_vectors))


schur_p = linalg_primitive(
    "schur",
    contract=takes(
        1, fitting.square, compute_schur_vectors=FLAG, sort_eig_vals=FLAG, select_callable=NONE),
    abstract=_schur_abstract, evaluate=_schur_evaluate, calls=_schur_call, multiple_results=True,
    no_derivative="the Schur decomposition has no derivative in JAX either", cost=costs.FREE)


def _hessenberg_abstract(a: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    return a, like(a, (*a.shape[:-2], a.shape[-1] - 1))


@functools.cache
def _hessenberg_workspace(n: int, dtype: np.dtype) -> int:
    size, _ = lapack("gehrd_lwork", dtype)(n)
    return max(int(size.real), n)


def _hessenberg_call(a: ShapedArray) -> Call | None:
    n = a.shape[-1]
    if n < 2:       # there is no reflection
        return None
    return Call("gehrd", (stack_size(a), n, address("gehrd", a.dtype),
                          _hessenberg_workspace(n, a.dtype), bits(math.nan, a.dtype)),
                _hessenberg_abstract(a))


def _hessenberg_one(a: np.ndarray) -> tuple[np.ndarray, ...]:
    packed, taus, info = lapack("gehrd", a.dtype)(
        a, lwork=_hessenberg_workspace(len(a), a.dtype))
    check(info)
    return packed, taus


hessenberg_p = linalg_primitive(
    "hessenberg",
    contract=takes(1, fitting.square),
    abstract=_hessenberg_abstract, calls=_hessenberg_call, multiple_results=True,
    evaluate=lambda a: each(
        _hessenberg_one, _hessenberg_abstract(ShapedArray(a.shape, a.dtype)), a),
    no_derivative="the Hessenberg reduction has no derivative in JAX either", cost=costs.FREE)


def _tridiagonal_abstract(a: ShapedArray, *, lower: bool) -> tuple[ShapedArray, ...]:
    *batch, n, _ = a.shape
    dtype = dtypes.real_dtype(a.dtype)
    return (a, like(a, (*batch, n), dtype), like(a, (*batch, n - 1), dtype),
            like(a, (*batch, n - 1)))


@functools.cache
def _tridiagonal_workspace(n: int, lower: bool, dtype: np.dtype) -> int:
    size, _ = lapack("sytrd_lwork hetrd_lwork", dtype)(n, lower=int(lower))
    return max(int(size.real), 1)


def _tridiagonal_call(a: ShapedArray, *, lower: bool) -> Call | None:
    n = a.shape[-1]
    if n < 2:       # there is nothing beside the diagonal
        return None
    return Call("sytrd", (stack_size(a), n, address("sytrd hetrd", a.dtype), lower,
                          _tridiagonal_workspace(n, lower, a.dtype), bits(math.nan, a.dtype),
                          dtypes.real_dtype(a.dtype).itemsize),
                _tridiagonal_abstract(a, lower=lower))


def _tridiagonal_evaluate(a: np.ndarray, *, lower: bool) -> list[np.ndarray]:
    def reduce(x: np.ndarray) -> tuple[np.ndarray, ...]:
        *results, info = lapack("sytrd hetrd", x.dtype)(
            x, lower=int(lower), lwork=_tridiagonal_workspace(len(x), lower, x.dtype))
        check(info)
        return tuple(results)

    return each(reduce, _tridiagonal_abstract(ShapedArray(a.shape, a.dtype), lower=lower), a)


tridiagonal_p = linalg_primitive(
    "tridiagonal",
    contract=takes(1, fitting.square, lower=FLAG),
    abstract=_tridiagonal_abstract, evaluate=_tridiagonal_evaluate,
    calls=_tridiagonal_call, multiple_results=True,
    no_derivative="the reduction to tridiagonal form has no derivative in JAX either",
    cost=costs.FREE)

# --- singular values ------------------------------------------------------------------------------


def _svd_abstract(a: ShapedArray, *, full_matrices: bool, compute_uv: bool, **params: object
                  ) -> tuple[ShapedArray, ...]:
    *batch, m, n = a.shape
    k = smaller(m, n)
    values = like(a, (*batch, k), dtypes.real_dtype(a.dtype))
    if not compute_uv:
        return (values,)
    return (values, like(a, (*batch, m, m if full_matrices else k)),
            like(a, (*batch, n if full_matrices else k, n)))


def _svd_one(routine: str, a: np.ndarray, full_matrices: bool,
             compute_uv: bool) -> Sequence[np.ndarray]:
    options = {"compute_uv": compute_uv, "full_matrices": full_matrices}
    left, values, right, info = lapack(routine, a.dtype)(
        a, **options, lwork=workspace(routine, a.dtype, *a.shape, **options))
    check(info)
    return (values, left, right) if compute_uv else (values,)


def _svd_evaluate(a: np.ndarray, *, full_matrices: bool, compute_uv: bool, subset_by_index: object,
                  algorithm: enum.Enum | None) -> list[np.ndarray]:
    avals = result_types(_svd_abstract, a.shape, a.dtype, full_matrices=full_matrices,
                         compute_uv=compute_uv)
    by_qr = algorithm is not None and algorithm.name == "QR"
    if a.size and (by_qr or compute_uv):
        routine = "gesvd" if by_qr else "gesdd"
        return each(lambda x: _svd_one(routine, x, full_matrices, compute_uv), avals, a)

    def decompose(x: np.ndarray) -> tuple[np.ndarray, ...]:
        if not compute_uv:
            return np.linalg.svd(x, compute_uv=False),
        left, values, right = np.linalg.svd(x, full_matrices)       # of no elements
        return values, left, right

    return together(decompose, avals, a)


@functools.cache
def _svd_workspace(m: int, n: int, full: bool, vectors: bool, dtype: np.dtype) -> tuple[int, int]:
    """Elements of the dtype, real ones."""
    size, info = lapack("gesdd_lwork", dtype)(m, n, compute_uv=vectors, full_matrices=full)
    check(info)
    fewer, more = min(m, n), max(m, n)
    reals = 7 * fewer if not vectors else fewer * max(5 * fewer + 7, 2 * more + 2 * fewer + 1)
    return int(size.real), reals if dtypes.is_complex(dtype) else 0


def _svd_call(a: ShapedArray, *, full_matrices: bool, compute_uv: bool, subset_by_index: object,
              algorithm: enum.Enum | None) -> Call | None:
    if algorithm is not None and algorithm.name == "QR":
        return None
    m, n = a.shape[-2:]
    return Call("gesdd" if compute_uv else "gesdd_values",
                (stack_size(a), m, n, address("gesdd", a.dtype), full_matrices,
                 *_svd_workspace(m, n, full_matrices, compute_uv, a.dtype),
                 bits(math.nan, a.dtype), dtypes.real_dtype(a.dtype).itemsize),
                _svd_abstract(a, full_matrices=full_matrices, compute_uv=compute_uv))


def _svd_jvp(primals: Sequence[Array], tangents: Sequence[Array], *, full_matrices: bool,
             compute_uv: bool, subset_by_index: object, algorithm: enum.Enum | None) -> Any:
    a, tangent = primals[0], tangents[0]
    m, n = a.shape[-2:]
    if compute_uv and full_matrices and m != n:
        raise NotImplementedError(
            "Singular value decomposition JVP not implemented for full matrices")
    values, left, right = svd_p.bind(a, full_matrices=False, compute_uv=True,
                                     subset_by_index=subset_by_index, algorithm=algorithm)
    left_adjoint, right_vectors = adjoint(left), adjoint(right)
    inner = matmul(matmul(left_adjoint, tangent), right_vectors)
    values_tangent = real(diagonal(inner))
    if not compute_uv:
        return [values], [values_tangent]
    wide = as_dtype(values, a.dtype)
    column, row = columns(wide, inner), rows(wide, inner)
    eye = eye_like(inner)
    # The difference of squares as a product: less is lost where values are close.
    gaps = mul(add(column, row), sub(column, row))
    share = sub(div(scalar_like(1, a.dtype), add(gaps, eye)), eye)
    scaled, scaling = mul(inner, column), mul(row, inner)
    left_turn, right_turn = (
        mul(share, convert_element_type(add(x, adjoint(x)), a.dtype)) for x in (scaled, scaling))
    if dtypes.is_complex(a.dtype):      # the phase, which left vectors take
        skew = on_diagonal(sub(inner, adjoint(inner)))
        left_turn = add(left_turn, div(skew, mul(scalar_like(2, a.dtype), column)))
    left_tangent = matmul(left, left_turn)
    right_tangent = matmul(right_vectors, right_turn)
    if m > n:      # what leaves the span of the left vectors
        image = matmul(tangent, right_vectors)
        image = div(image, columns(wide, image))
        left_tangent = add(left_tangent, sub(image, matmul(left, matmul(left_adjoint, image))))
    if n > m:
        image = matmul(adjoint(tangent), left)
        image = div(image, columns(wide, image))
        right_tangent = add(
            right_tangent, sub(image, matmul(right_vectors, matmul(right, image))))
    return [values, left, right], [values_tangent, left_tangent, adjoint(right_tangent)]


svd_p = linalg_primitive(
    "svd",
    contract=takes(
        1, fitting.ranks(2), full_matrices=FLAG, compute_uv=FLAG, subset_by_index=NONE,
        algorithm=OPTION),
    abstract=_svd_abstract, evaluate=_svd_evaluate, calls=_svd_call,
    jvp=_svd_jvp, multiple_results=True, cost=costs.FREE)
