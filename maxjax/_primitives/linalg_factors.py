"""Factorizations that need no iteration: Cholesky, LU, QR, and products of reflections."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import caches, dtypes, native
from maxjax._ir.contract import COUNT, FLAG, NUMBER, optional, takes
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import BatchAxis
from maxjax._primitives import costs, fitting
from maxjax._primitives.arithmetic import add, mul, sub
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.comparison import eq
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full, iota
from maxjax._primitives.gather_plan import GatherDimensionNumbers, GatherScatterMode
from maxjax._primitives.indexing import gather_p
from maxjax._primitives.joining import concatenate
from maxjax._primitives.lapack import Call, address, bits, run, stack_size
from maxjax._primitives.layout import reshape
from maxjax._primitives.linalg_rules import (
    HOST_REASON,
    adjoint,
    as_dtype,
    each,
    eye_like,
    fitted,
    hermitian_of,
    lapack,
    like,
    linalg_primitive,
    lower,
    lower_call,
    many_small,
    matmul,
    on_diagonal,
    real,
    result_types,
    swapped,
    together,
    upper,
    weak,
)
from maxjax._primitives.linalg_solve import solve, triangular_solve
from maxjax._primitives.rules import scalar_like
from maxjax._primitives.slicing import pad, slice_in_dim
from maxjax._primitives.widths import FLOATING, WIDER, accepted

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering

# --- cholesky -------------------------------------------------------------------------------------

# Elements of a mask that is kept: making it takes longer than a small decomposition.
KEPT_MASK = 4096


@caches.memoized
def _below(rows: int, columns: int, k: int) -> np.ndarray:
    """Which elements of a matrix lie on the ``k``-th diagonal or below."""
    return np.tri(rows, columns, min(max(k, -rows), columns), np.bool_)


def upper_part(x: np.ndarray, k: int = 0) -> np.ndarray:
    """Matrices with zeros below their ``k``-th diagonals."""
    *_, rows, columns = x.shape
    if rows * columns > KEPT_MASK:
        return np.triu(x, k)
    result = np.array(x, order="C")
    np.copyto(result, np.zeros((), x.dtype), where=_below(rows, columns, k - 1))
    return result


def lower_part(x: np.ndarray, k: int = 0) -> np.ndarray:
    """Matrices with zeros above their ``k``-th diagonals."""
    *_, rows, columns = x.shape
    if rows * columns > KEPT_MASK:
        return np.tril(x, k)
    result = np.zeros_like(x, order="C")
    np.copyto(result, x, where=_below(rows, columns, k))
    return result


def _cholesky_call(a: ShapedArray) -> Call:
    return Call("potrf", (stack_size(a), a.shape[-1], address("potrf", a.dtype),
                          bits(math.nan, a.dtype)), [a])


def _cholesky_jvp(primals: Sequence[Array], tangents: Sequence[Array]) -> Any:
    factor = cholesky_p.bind(*primals)
    # L' = L Phi(L^-1 a' L^-H), where Phi takes the lower triangle and halves the diagonal. Only the
    # lower triangle of a counts.
    change = hermitian_of(tangents[0])
    inner = triangular_solve(factor, change, left_side=False, lower=True, transpose_a=True,
                             conjugate_a=True)
    inner = triangular_solve(factor, inner, left_side=True, lower=True)
    half = scalar_like(0.5, inner.dtype)
    inner = convert_element_type(inner, inner.dtype)      # triangles are strongly typed
    inner = sub(lower(inner), mul(half, on_diagonal(inner)))
    return factor, matmul(factor, inner)


def _cholesky_evaluate(a: np.ndarray) -> np.ndarray:
    if a.ndim == 2 and 0 < a.size <= KEPT_MASK:
        # NumPy's function takes three times as long for a small matrix.
        factor, failed = lapack("potrf", a.dtype)(a, lower=True, clean=True)
        if not failed:
            return np.ascontiguousarray(factor)
    # The upper triangle is zero even where the matrix is not positive definite.
    return lower_part(together(
        lambda x: (np.linalg.cholesky(x),), [ShapedArray(a.shape, a.dtype)], a)[0])


cholesky_p = linalg_primitive(
    "cholesky",
    contract=takes(1, fitting.square),
    abstract=lambda a: a,
    evaluate=_cholesky_evaluate,
    calls=_cholesky_call,
    jvp=_cholesky_jvp,
    cost=costs.FREE,
)


def _cholesky_update_evaluate(r: np.ndarray, w: np.ndarray) -> np.ndarray:
    """By one rotation of a row of R and what is left of w for each element of w."""
    dtype = r.dtype
    wide = WIDER.get(dtype, dtype)
    r, w = np.array(r, wide), np.array(w, wide)
    for k in range(len(w)):
        if not w[k]:
            continue
        length = np.hypot(r[k, k], w[k])
        cosine, sine = r[k, k] / length, w[k] / length
        r[k], w = cosine * r[k] + sine * w, cosine * w - sine * r[k]
    return r.astype(dtype, copy=False)


def _no_batches(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis]) -> Any:
    raise NotImplementedError("vmap of cholesky_update: JAX has none either")


cholesky_update_p = linalg_primitive(
    "cholesky_update", unsplit=None,
    contract=takes(2, fitting.of_matrices("nn", "n"), fitting.alike()),
    accepts=FLOATING,
    abstract=lambda r, w: ShapedArray(r.shape, r.dtype, weak(r, w)),
    evaluate=_cholesky_update_evaluate,
    host_reason="a loop over rows, each of which needs the one before",
    batch=_no_batches,
    no_derivative="the rank-1 update has no derivative in JAX either",
)

# --- lu -------------------------------------------------------------------------------------------


def _lu_abstract(a: ShapedArray) -> tuple[ShapedArray, ...]:
    *batch, m, n = a.shape
    return (a, like(a, (*batch, min(m, n)), dtypes.int32), like(a, (*batch, m), dtypes.int32))


def permutation_of(pivots: np.ndarray, size: int) -> np.ndarray:
    """The order of rows that results from exchanging row i with row ``pivots[i]``, one by one."""
    order, last = [*range(size)], max(size - 1, 0)
    for row, other in enumerate(np.clip(pivots, 0, last).tolist()):
        order[row], order[other] = order[other], order[row]
    return np.array(order, np.int32)


def _lu_one(a: np.ndarray) -> tuple[np.ndarray, ...]:
    if not a.size:
        return a, np.zeros(0, np.int32), np.arange(len(a), dtype=np.int32)
    factors, pivots, _ = lapack("getrf", a.dtype)(a)
    return factors, pivots, permutation_of(pivots, len(a))


def _lu_evaluate(a: np.ndarray) -> list[np.ndarray]:
    avals = result_types(_lu_abstract, a.shape, a.dtype)
    if not many_small(a.shape):
        return each(_lu_one, avals, a)
    return [x.reshape(aval.shape) for x, aval in zip(
        _lu_together(a.reshape(-1, *a.shape[-2:])), avals, strict=True)]


def _lu_together(a: np.ndarray) -> tuple[np.ndarray, ...]:
    """Elimination in all matrices (batch, m, n) at once: operations on vectors over the batch."""
    count, m, n = a.shape
    k = min(m, n)
    x = np.ascontiguousarray(a.transpose(1, 2, 0))
    every = np.arange(count)
    order = np.repeat(np.arange(m, dtype=np.int32)[:, None], count, 1)
    pivots = np.empty((k, count), np.int32)
    with np.errstate(all="ignore"):
        for i in range(k):
            column = x[i:, i]
            # LAPACK's magnitude of complex numbers.
            size = np.abs(column) if x.dtype.kind == "f" else (
                np.abs(column.real) + np.abs(column.imag))
            row = pivots[i] = i + np.argmax(np.where(np.isnan(size), -1, size), axis=0)
            held, x[i] = x[row, :, every].T, x[i].copy()
            x[row, :, every] = x[i].T
            x[i] = held
            order[row, every], order[i] = order[i].copy(), order[row, every]
            # A column of zeros is left as it is.
            x[i + 1:, i] = np.where(x[i, i] == 0, x[i + 1:, i], x[i + 1:, i] / x[i, i])
            x[i + 1:, i + 1:] -= x[i + 1:, i, None] * x[i, i + 1:]
    return (np.ascontiguousarray(x.transpose(2, 0, 1)), np.ascontiguousarray(pivots.T),
            np.ascontiguousarray(order.T))


def _lu_call(a: ShapedArray) -> Call:
    return Call("getrf", (stack_size(a), *a.shape[-2:], address("getrf", a.dtype)),
                _lu_abstract(a))


def permuted_rows(x: Array, order: Array) -> Any:
    """The rows of matrices in the given order: a product with the permutation's matrix."""
    batch = len(x.shape) - 2
    m = x.shape[-2]
    square = (*x.shape[:-2], m, m)
    chosen = eq(broadcast_in_dim(order, square, (*range(batch), batch)),
                iota(dtypes.int32, square, batch + 1))
    return matmul(as_dtype(chosen, x.dtype), x)


def _lu_jvp(primals: Sequence[Array], tangents: Sequence[Array]) -> Any:
    a = primals[0]
    factors, pivots, order = lu_p.bind(a)
    m, n = a.shape[-2:]
    k = min(m, n)
    batch = len(a.shape) - 2
    tangent = permuted_rows(tangents[0], order)
    none = ((0, 0, 0),) * batch
    left = lower(slice_in_dim(factors, 0, k, batch + 1), -1)
    left = pad(left, 0, (*none, (0, 0, 0), (0, m - k, 0)))
    left = add(left, eye_like(left))
    right = upper(slice_in_dim(factors, 0, k, batch))
    right = pad(right, 0, (*none, (0, n - k, 0), (0, 0, 0)))
    if n > k:      # ones below, so that it can be inverted
        ones = full((*a.shape[:-2], n - k, n - k), 1, a.dtype)
        right = add(right, pad(on_diagonal(ones), 0, (*none, (k, 0, 0), (k, 0, 0))))
    inner = triangular_solve(left, tangent, left_side=True, lower=True, unit_diagonal=True)
    inner = triangular_solve(right, inner)
    change = add(matmul(left, lower(inner, -1)), matmul(upper(inner), right))
    return [factors, pivots, order], [change, None, None]


lu_p = linalg_primitive(
    "lu",
    contract=takes(1, fitting.ranks(2)),
    abstract=_lu_abstract, jvp=_lu_jvp, multiple_results=True,
    evaluate=_lu_evaluate, calls=_lu_call,
    cost=costs.FREE,
)


def solve_by_factors(a: Array, b: Array) -> Any:
    """Solves ``a x = b`` for one square matrix as ``linear_solve`` does, with its factors apart."""
    factors, _, order = lu_p.bind(a)
    size, columns = b.shape
    rows = gather_p.bind(
        b, reshape(order, (size, 1)),
        dimension_numbers=GatherDimensionNumbers((1,), (0,), (0,)), slice_sizes=(1, columns),
        indices_are_sorted=False, unique_indices=True,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS, fill_value=None)
    inner = triangular_solve(factors, rows, left_side=True, lower=True, unit_diagonal=True)
    return triangular_solve(factors, inner, left_side=True)


def _permutation_abstract(pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
    return like(pivots, (*pivots.shape[:-1], permutation_size))


def _permutation_lower(ctx: Lowering, pivots: object, *, permutation_size: int) -> Any:
    aval, = ctx.out_avals
    return ctx.permutation_of_exchanges(pivots, permutation_size) if aval.size \
        else ctx.full(aval.shape, 0, aval.dtype)


lu_pivots_to_permutation_p = linalg_primitive(
    "lu_pivots_to_permutation", unsplit=None,
    contract=takes(1, fitting.ranks(1), fitting.permutation_size, permutation_size=COUNT),
    rank=1, accepts=accepted("int32"),
    abstract=_permutation_abstract,
    evaluate=lambda pivots, *, permutation_size: each(
        lambda x: (permutation_of(x, permutation_size),),
        [_permutation_abstract(ShapedArray(pivots.shape, pivots.dtype),
                               permutation_size=permutation_size)], pivots, ranks=(1,))[0],
    lower=_permutation_lower,
    host_reason="a loop over exchanges, each of which changes what the next one finds",
    jvp=lambda primals, tangents, **params: (
        lu_pivots_to_permutation_p.bind(*primals, **params), None),
)

# --- products of reflections ----------------------------------------------------------------------


def _householder_one(a: np.ndarray, taus: np.ndarray) -> tuple[np.ndarray]:
    if not a.size:
        return a,
    if not len(taus):
        return np.eye(*a.shape, dtype=a.dtype),
    return fitted(lapack("orgqr ungqr", a.dtype), a, taus)[0],


@functools.cache
def _product_workspace(m: int, n: int, k: int, dtype: np.dtype) -> int:
    routine = lapack("orgqr ungqr", dtype)
    size = routine(np.empty((m, n), dtype), np.empty(k, dtype), lwork=-1)[-2][0].real
    return max(int(size), n)


def _product_call(a: ShapedArray, taus: ShapedArray) -> Call:
    m, n = a.shape[-2:]
    k = taus.shape[-1]
    return Call("orgqr", (stack_size(a), m, n, k, address("orgqr ungqr", a.dtype),
                          _product_workspace(m, n, k, a.dtype)), [a])


householder_product_p = linalg_primitive(
    "householder_product",
    contract=takes(2, fitting.reflections, fitting.alike()),
    calls=_product_call,
    abstract=lambda a, taus: ShapedArray(a.shape, a.dtype, weak(a, taus)),
    evaluate=lambda a, taus: each(
        _householder_one, [ShapedArray(a.shape, a.dtype)], a, taus, ranks=(2, 1))[0],
    no_derivative="the product of reflections has no derivative in JAX either",
    cost=costs.FREE,
)


def _ormqr_evaluate(a: np.ndarray, taus: np.ndarray, c: np.ndarray, *, left: bool, transpose: bool
                    ) -> np.ndarray:
    def multiply(a: np.ndarray, taus: np.ndarray, c: np.ndarray) -> tuple[np.ndarray]:
        count = min(*a.shape, len(taus))
        if not c.size or not count:
            return c,
        form = "N" if not transpose else "C" if c.dtype.kind == "c" else "T"
        return fitted(_with_workspace(lapack("ormqr unmqr", c.dtype)), "L" if left else "R", form,
                      a[:, :count], taus[:count], c)[0],

    return each(multiply, [ShapedArray(c.shape, c.dtype)], a, taus, c, ranks=(2, 1, 2))[0]


@functools.cache
def _with_workspace(routine: Callable[..., Any]) -> Any:
    """``ormqr`` with its workspace's size by name, as in other routines."""
    return lambda *args, lwork: routine(*args, lwork)


@functools.cache
def _ormqr_workspace(m: int, n: int, k: int, left: bool, dtype: np.dtype) -> int:
    routine = lapack("ormqr unmqr", dtype)
    rows = m if left else n
    size = routine("L" if left else "R", "N", np.empty((rows, k), dtype), np.empty(k, dtype),
                   np.empty((m, n), dtype), -1)[-2][0].real
    return max(int(size), m, n)


def _ormqr_call(a: ShapedArray, taus: ShapedArray, c: ShapedArray, *, left: bool, transpose: bool
                ) -> Call:
    m, n = c.shape[-2:]
    count = min(*a.shape[-2:], taus.shape[-1])
    form = 0 if not transpose else 2 if dtypes.is_complex(c.dtype) else 1
    return Call("ormqr", (stack_size(c), m, n, *a.shape[-2:], taus.shape[-1], count,
                          address("ormqr unmqr", c.dtype),
                          _ormqr_workspace(m, n, count, left, c.dtype), left, form), [c])


def _ormqr_lower(ctx: Lowering, a: object, taus: object, c: object, **params: Any) -> Any:
    avals = [ShapedArray(aval.shape, WIDER.get(aval.dtype, aval.dtype)) for aval in ctx.in_avals]
    if 0 in [aval.size for aval in avals]:      # no reflection changes anything
        return c
    return lower_call(ctx, _ormqr_call(*avals, **params), [a, taus, c])[0]


ormqr_p = linalg_primitive(
    "ormqr", unsplit=None,
    contract=takes(3, fitting.by_reflections, fitting.alike(), left=FLAG, transpose=FLAG),
    lower=_ormqr_lower, calls=_ormqr_call,
    abstract=lambda a, taus, c, **params: ShapedArray(c.shape, c.dtype, weak(a, taus, c)),
    evaluate=_ormqr_evaluate,
    no_derivative="the product with reflections has no derivative in JAX either",
)

# --- qr -------------------------------------------------------------------------------------------


def _geqrf_abstract(a: ShapedArray) -> tuple[ShapedArray, ShapedArray]:
    *batch, m, n = a.shape
    return a, like(a, (*batch, min(m, n)))


def _geqrf_one(a: np.ndarray) -> tuple[np.ndarray, ...]:
    if not a.size:
        return a, np.zeros(0, a.dtype)
    return fitted(lapack("geqrf", a.dtype), a)


@functools.cache
def _geqrf_workspace(m: int, n: int, dtype: np.dtype) -> int:
    size, _ = lapack("geqrf_lwork", dtype)(m, n)
    return max(int(size.real), n)


def _geqrf_call(a: ShapedArray) -> Call:
    m, n = a.shape[-2:]
    return Call("geqrf", (stack_size(a), m, n, address("geqrf", a.dtype),
                          _geqrf_workspace(m, n, a.dtype)), _geqrf_abstract(a))


geqrf_p = linalg_primitive(
    "geqrf",
    contract=takes(1, fitting.ranks(2)),
    abstract=_geqrf_abstract, multiple_results=True, calls=_geqrf_call,
    evaluate=lambda a: each(_geqrf_one, result_types(_geqrf_abstract, a.shape, a.dtype), a),
    no_derivative="the reflections of a QR decomposition have no derivative in JAX either",
    cost=costs.FREE,
)


def _qr_abstract(a: ShapedArray, *, full_matrices: bool, pivoting: bool,
                 use_magma: bool | None) -> tuple[ShapedArray, ...]:
    *batch, m, n = a.shape
    k = m if full_matrices else min(m, n)
    factors = like(a, (*batch, m, k)), like(a, (*batch, k, n))
    return (*factors, like(a, (*batch, n), dtypes.int32)) if pivoting else factors


def qr_by_reflections(a: Array, *, full_matrices: bool, **params: object) -> tuple[Any, Any]:
    """Q and R without pivoting, by the primitives that it is composed of."""
    m, n = a.shape[-2:]
    columns = m if full_matrices else min(m, n)
    packed, taus = geqrf_p.bind(a)
    batch = len(a.shape) - 2
    vectors = slice_in_dim(packed, 0, min(m, n), batch + 1)
    none = ((0, 0, 0),) * (batch + 1)
    vectors = pad(vectors, 0, (*none, (0, columns - min(m, n), 0)))
    return (householder_product_p.bind(vectors, taus),
            upper(slice_in_dim(packed, 0, columns, batch)))


def _qr_lower(ctx: Lowering, a: object, **params: Any) -> Any:
    return ctx.decompose(functools.partial(qr_by_reflections, **params), a)


def _qr_one(a: np.ndarray, columns: int) -> tuple[np.ndarray, ...]:
    packed, taus = fitted(lapack("geqrf", a.dtype), a)
    return _unpacked(packed, taus, columns)


def _for_product(packed: np.ndarray, columns: int) -> np.ndarray:
    """The reflections of packed decompositions, with zeros up to so many columns."""
    k = min(packed.shape[-2:])
    vectors = np.zeros((*packed.shape[:-1], columns), packed.dtype)
    vectors[..., :k] = packed[..., :k]
    return vectors


def _unpacked(packed: np.ndarray, taus: np.ndarray, columns: int) -> tuple[np.ndarray, ...]:
    """Q and R of a packed decomposition."""
    return _householder_one(_for_product(packed, columns), taus)[0], upper_part(packed[:columns])


def _pivoted_one(a: np.ndarray, columns: int) -> tuple[np.ndarray, ...]:
    m, n = a.shape
    if not a.size:
        return (np.eye(m, columns, dtype=a.dtype), np.zeros((columns, n), a.dtype),
                np.arange(n, dtype=np.int32))
    packed, order, taus = fitted(lapack("geqp3", a.dtype), a)
    q, r = _unpacked(packed, taus, columns)
    return q, r, order - 1


def _qr_evaluate(a: np.ndarray, *, full_matrices: bool, pivoting: bool, use_magma: bool | None
                 ) -> list[np.ndarray]:
    a = np.asarray(a)
    *batch, m, n = a.shape
    k = m if full_matrices else min(m, n)
    avals = result_types(_qr_abstract, a.shape, a.dtype, full_matrices=full_matrices,
                         pivoting=pivoting, use_magma=None)
    if pivoting:
        return each(lambda x: _pivoted_one(x, k), avals, a)
    if not a.size:
        q = np.broadcast_to(np.eye(m, k, dtype=a.dtype), (*batch, m, k))
        return [q, np.zeros((*batch, k, n), a.dtype)]
    reflections = run(_geqrf_call(ShapedArray(a.shape, a.dtype)), [a]) if (
        a.size >= native.FEWEST) else None
    if reflections is not None:
        packed, taus = reflections
        vectors = _for_product(packed, k)
        product = run(_product_call(ShapedArray(vectors.shape, a.dtype),
                                    ShapedArray(taus.shape, a.dtype)), [vectors, taus])
        if product is not None:
            return [product[0], np.triu(packed[..., :k, :])]
    if batch and math.prod(batch) > 1:      # NumPy's loop over a batch; it computes in double
        return list(np.linalg.qr(a, "complete" if full_matrices else "reduced"))
    return each(lambda x: _qr_one(x, k), avals, a)


def _reduced_tangents(q: Array, r: Array, tangent: Array) -> tuple[Any, Any]:
    """The tangents of ``q`` and ``r``, where ``a = q r`` with square ``r``, from that of ``a``."""
    whole = triangular_solve(r, tangent)                   # a' r^-1
    projected = matmul(adjoint(q), whole)
    strict = lower(projected, -1)
    turn = sub(strict, adjoint(strict))                    # q^H q' is skew-Hermitian
    if dtypes.is_complex(q.dtype):                         # and r has a real diagonal
        turn = add(turn, on_diagonal(sub(projected, as_dtype(real(projected), q.dtype))))
    return (add(matmul(q, sub(turn, projected)), whole),
            matmul(sub(projected, turn), r))


def _complement_tangent(q: Array, tangent: Array) -> Any:
    """The tangent of the columns of square ``q`` beyond those whose tangent is given.

    A product of n reflections is ``I - Y T Y^H`` with m x n matrices Y. With its first n columns
    ``Q1 = [B; C]``, the others are ``[0; I] + (Q1 - [I; 0]) K``, where ``(B - I)^H K = C^H``.
    """
    m, n = tangent.shape[-2:]
    row, column = len(q.shape) - 2, len(q.shape) - 1
    first = slice_in_dim(q, 0, n, column)
    first = sub(first, eye_like(first))
    top, bottom = slice_in_dim(first, 0, n, row), slice_in_dim(first, n, m, row)
    mixing = solve(adjoint(top), adjoint(bottom))
    change = sub(adjoint(slice_in_dim(tangent, n, m, row)),
                 matmul(adjoint(slice_in_dim(tangent, 0, n, row)), mixing))
    return add(matmul(tangent, mixing), matmul(first, solve(adjoint(top), change)))


def _qr_jvp(primals: Sequence[Array], tangents: Sequence[Array], *, full_matrices: bool,
            pivoting: bool, use_magma: bool | None) -> Any:
    a, tangent = primals[0], tangents[0]
    m, n = a.shape[-2:]
    row, column = len(a.shape) - 2, len(a.shape) - 1
    q, r, *order = outs = qr_p.bind(a, full_matrices=full_matrices, pivoting=pivoting,
                                    use_magma=use_magma)
    if pivoting:
        tangent = swapped(permuted_rows(swapped(tangent), order[0]))
    if m < n:
        # The first columns alone give q; the others of r are q^H times theirs.
        q_tangent, r_tangent = _reduced_tangents(
            q, slice_in_dim(r, 0, m, column), slice_in_dim(tangent, 0, m, column))
        others = slice_in_dim(tangent, m, n, column)
        # q^H a = r for them, so that q'^H a = q'^H q r.
        rest = add(matmul(adjoint(q), others),
                   matmul(matmul(adjoint(q_tangent), q), slice_in_dim(r, m, n, column)))
        return list(outs), [q_tangent, concatenate([r_tangent, rest], column), *[None] * pivoting]
    if not full_matrices or m == n:
        return list(outs), [*_reduced_tangents(q, r, tangent), *[None] * pivoting]
    q_tangent, r_tangent = _reduced_tangents(
        slice_in_dim(q, 0, n, column), slice_in_dim(r, 0, n, row), tangent)
    q_tangent = concatenate([q_tangent, _complement_tangent(q, q_tangent)], column)
    zeros = full((*a.shape[:-2], m - n, n), 0, a.dtype)
    return list(outs), [q_tangent, concatenate([r_tangent, zeros], row), *[None] * pivoting]


qr_p = linalg_primitive(
    "qr",
    contract=takes(
        1, fitting.ranks(2), full_matrices=FLAG, pivoting=FLAG, use_magma=optional(FLAG)),
    abstract=_qr_abstract, evaluate=_qr_evaluate, jvp=_qr_jvp, lower=_qr_lower,
    host_condition=lambda a, *, pivoting, **params: HOST_REASON if pivoting else None,
    multiple_results=True)

# --- symmetric product ----------------------------------------------------------------------------


def _symmetric_product(a: Array, c: Array, *, alpha: float, beta: float) -> Any:
    product = mul(scalar_like(alpha, a.dtype), matmul(a, swapped(a)))
    return add(product, mul(scalar_like(beta, c.dtype), c))


def _symmetric_product_evaluate(a: np.ndarray, c: np.ndarray, *, alpha: float, beta: float
                                ) -> np.ndarray:
    dtype = a.dtype
    wide = WIDER.get(dtype, dtype)
    a, c = np.asarray(a, wide), np.asarray(c, wide)
    product = wide.type(alpha) * (a @ np.swapaxes(a, -1, -2)) + wide.type(beta) * c
    return product.astype(dtype, copy=False)


symmetric_product_p = linalg_primitive(
    "symmetric_product",
    contract=takes(2, fitting.of_matrices("nk", "nn"), alpha=NUMBER, beta=NUMBER),
    accepts=accepted("float32 float64"), same_dtypes=slice(None),
    abstract=lambda a, c, **params: ShapedArray(c.shape, c.dtype, weak(a, c)),
    evaluate=_symmetric_product_evaluate,
    host_reason=None,
    lower=lambda ctx, a, c, **params: ctx.decompose(
        functools.partial(_symmetric_product, **params), a, c),
    no_derivative="the symmetric product has no derivative in JAX either",
)
