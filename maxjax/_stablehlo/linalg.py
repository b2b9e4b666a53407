"""Factorizations and solves, as calls of LAPACK: the targets that XLA has on CPUs, as JAX calls
them. Where a routine gives up, its results are NaN."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.types import ShapedArray
from maxjax._max.operations import LoweringError
from maxjax._primitives.lapack import LAPACK_DTYPES
from maxjax._stablehlo.emitter import Emitter, Rule, conjugate
from maxjax._stablehlo.text import boolean, integers, listed
from maxjax._stablehlo.writer import Value

_PREFIXES = dict(zip(LAPACK_DTYPES, "sdcz", strict=True))
_INT32 = np.dtype(np.int32)


def _layout(x: Value, vector: bool) -> str:
    """Matrices by columns, stacks and vectors by rows: dimensions from the fastest on."""
    rank = len(x.shape)
    order = [*range(rank)][::-1]
    if not vector:
        order[:2] = [rank - 2, rank - 1]
    entries = listed(order) if rank > 1 else "0" if rank else ""
    return f"dense<{entries}> : tensor<{rank}xindex>"


def _call(ctx: Emitter, routine: str, operands: Sequence[Value],
          results: Sequence[tuple[Sequence[int], Any]], vectors: Sequence[bool],
          options: Mapping[str, str | int | bool] | None = None) -> list[Value]:
    """A call of LAPACK.

    Args:
      routine: without the letter of its dtype; of two, the real or the complex one's.
      vectors: of each operand and result, whether its last dimension is a vector's (or it has
        none but the stack's), and not its last two a matrix's.
      options: letters, integers, flags.

    Raises:
      LoweringError: LAPACK has nothing of such a dtype, or there is nothing to compute.
    """
    dtype = operands[0].dtype
    prefix = _PREFIXES.get(dtype)
    if prefix is None:
        raise LoweringError(f"LAPACK has no routine for {dtype}")
    if any(0 in x.shape for x in operands):
        raise LoweringError("LAPACK is not called for nothing")
    names = routine.split()
    name = names[-1 if dtype.kind == "c" else 0]
    said = ", ".join([
        f"{key} = {_option(value)}" for key, value in sorted((options or {}).items())])
    batch = len(operands[0].shape) - (1 if vectors[0] else 2)
    made = [Value("", tuple(shape), np.dtype(kind)) for shape, kind in results]
    layouts = [_layout(x, vector) for x, vector in zip((*operands, *made), vectors, strict=True)]
    count = len(operands)
    shapes = ctx.shape_operands([shape for shape, _ in results])
    layouts[count:count] = [_layout(x, True) for x in shapes]
    places = range(count, count + len(shapes))
    count += len(shapes)
    told = (f"indices_of_shape_operands = dense<{listed(places)}> : tensor<{len(places)}xi64>, "
            if places else "")
    return ctx.emit_all(
        "stablehlo.custom_call", [*operands, *shapes], results,
        f'call_target_name = "lapack_{prefix}{name}_ffi", has_side_effect = false, '
        f"operand_layouts = [{', '.join(layouts[:count])}], "
        f"result_layouts = [{', '.join(layouts[count:])}]",
        discardable=f"{told}mhlo.backend_config = {{{said}}}, "
                    f'mhlo.frontend_attributes = {{num_batch_dims = "{batch}"}}')


def _option(value: str | int | bool) -> str:
    if isinstance(value, str):
        return f"{ord(value)} : ui8"
    return boolean(value) if isinstance(value, bool) else f"{value} : i32"


def _or_nan(ctx: Emitter, results: Sequence[Value], failed: Value) -> list[Value]:
    """Results, NaN of the matrices for which ``failed``, of the stack's shape, is set."""
    return [ctx.select(ctx.broadcast(failed, x.shape, range(len(failed.shape))),
                       [x, ctx.full_like(x, np.nan)]) for x in results]


def _unless(ctx: Emitter, results: Sequence[Value], info: Value) -> list[Value]:
    return _or_nan(ctx, results, ctx.compare("ne", info, ctx.full_like(info, 0)))


def _keeping(ctx: Emitter, x: Value, lower: bool) -> Value:
    """The lower or upper triangle of matrices, zeros elsewhere."""
    row, column = (ctx.iota(_INT32, x.shape, len(x.shape) - 2 + dim) for dim in range(2))
    kept = ctx.compare("ge" if lower else "le", row, column)
    return ctx.select(kept, [ctx.full_like(x, 0), x])


def _of_avals(avals: Sequence[ShapedArray]) -> list[tuple[Sequence[int], Any]]:
    return [(aval.shape, aval.dtype) for aval in avals]


def _identities(ctx: Emitter) -> list[Value]:
    """Factors of matrices without elements: identities, and orders that change nothing."""
    found = []
    for aval in ctx.out_avals:
        if dtypes.is_integer(aval.dtype) or len(aval.shape) < 2:
            found.append(ctx.iota(aval.dtype, aval.shape, len(aval.shape) - 1))
            continue
        row, column = (ctx.iota(_INT32, aval.shape, len(aval.shape) - 2 + dim) for dim in range(2))
        found.append(ctx.convert(ctx.compare("eq", row, column), dtypes.physical(aval.dtype)))
    return found


# --- cholesky, triangular systems -----------------------------------------------------------------

def _cholesky(ctx: Emitter, x: Value, **params: Any) -> Value:
    if 0 in x.shape:
        return x
    stack = x.shape[:-2]
    factor, info = _call(ctx, "potrf", [x], [(x.shape, x.dtype), (stack, _INT32)],
                         [False, False, True], {"uplo": "L"})
    factor, = _unless(ctx, [factor], info)
    return _keeping(ctx, factor, lower=True)


def _triangular_solve(ctx: Emitter, a: Value, b: Value, *, left_side: bool, lower: bool,
                      transpose_a: bool, conjugate_a: bool, unit_diagonal: bool) -> Value:
    if 0 in b.shape:
        return b
    if conjugate_a and not transpose_a:
        a = conjugate(ctx, a)
    form = "N" if not transpose_a else "C" if conjugate_a else "T"
    return _call(ctx, "trsm", [a, b], [(b.shape, b.dtype)], [False] * 3, {
        "diag": "U" if unit_diagonal else "N", "side": "L" if left_side else "R",
        "trans_x": form, "uplo": "L" if lower else "U"})[0]


# --- lu, and systems by it ------------------------------------------------------------------------

def _lu(ctx: Emitter, a: Value) -> list[Value]:
    return _identities(ctx) if 0 in a.shape else _factored(ctx, a)


def _factored(ctx: Emitter, a: Value) -> list[Value]:
    """The factors, the exchanges of rows, and the order of rows that results."""
    *stack, m, n = a.shape
    places = (*stack, min(m, n))
    factors, pivots, info = _call(
        ctx, "getrf", [a], [(a.shape, a.dtype), (places, _INT32), (stack, _INT32)],
        [False, False, True, True])
    pivots = ctx.kernel("sub", pivots, ctx.full_like(pivots, 1))
    # A singular matrix, which has a positive number here, has factors all the same.
    factors, = _or_nan(ctx, [factors], ctx.compare("lt", info, ctx.full_like(info, 0)))
    return [factors, pivots, permutation(ctx, pivots, m)]


def permutation(ctx: Emitter, pivots: Value, count: int) -> Value:
    """The order of rows after exchanging row i with row ``pivots[..., i]``, one by one."""
    shape = (*pivots.shape[:-1], count)
    axis = len(shape) - 1
    zero, one = ctx.constant(np.int32(0)), ctx.constant(np.int32(1))
    places = ctx.iota(_INT32, shape, axis)
    limit = ctx.constant(np.int32(pivots.shape[-1]))
    moved = ctx.transpose(pivots, [axis, *range(axis)])
    nothing = ctx.full(shape, 0, _INT32)

    def at(order: Value, here: Value) -> Value:
        found = ctx.select(here, [nothing, order])
        return ctx.broadcast(ctx.reduce("sum", found, [axis]), shape, range(axis))

    def step(order: Value, counter: Value) -> Sequence[Value]:
        first = ctx.compare("eq", places, ctx.broadcast(counter, shape, ()))
        other = ctx.compare(
            "eq", places, ctx.broadcast(ctx.at(moved, counter), shape, range(axis)))
        row, exchanged = at(order, first), at(order, other)
        return [ctx.select(first, [ctx.select(other, [order, row]), exchanged]),
                ctx.kernel("add", counter, one)]

    types = [(shape, _INT32), ((), _INT32)]
    return ctx.emit_all("stablehlo.while", [places, zero], types, regions=[
        ctx.region(types, lambda order, counter: [ctx.compare("lt", counter, limit)]),
        ctx.region(types, step)])[0]


def _pivots_to_permutation(ctx: Emitter, pivots: Value, *, permutation_size: int) -> Value:
    if 0 in pivots.shape:
        return ctx.iota(_INT32, ctx.out_avals[0].shape, len(pivots.shape) - 1)
    return permutation(ctx, pivots, permutation_size)


def _solve(ctx: Emitter, a: Value, b: Value) -> Value:
    if 0 in b.shape:
        return b
    factors, _, order = _factored(ctx, a)
    batch = len(b.shape) - 2
    stack = range(batch)
    b = ctx.emit(
        "stablehlo.gather", [b, order], b.shape, b.dtype,
        f"dimension_numbers = #stablehlo.gather<offset_dims = [{batch + 1}], "
        f"collapsed_slice_dims = [{batch}], operand_batching_dims = {listed(stack)}, "
        f"start_indices_batching_dims = {listed(stack)}, start_index_map = [{batch}], "
        f"index_vector_dim = {batch + 1}>, "
        f"slice_sizes = {integers((1,) * (batch + 1) + b.shape[-1:])}, "
        "indices_are_sorted = false")
    options = {"left_side": True, "transpose_a": False, "conjugate_a": False}
    b = _triangular_solve(ctx, factors, b, lower=True, unit_diagonal=True, **options)
    return _triangular_solve(ctx, factors, b, lower=False, unit_diagonal=False, **options)


def _tridiagonal_solve(ctx: Emitter, dl: Value, d: Value, du: Value, b: Value, *,
                       perturb_singular: bool) -> Value:
    if perturb_singular:
        raise LoweringError("XLA has no tridiagonal solver that makes pivots greater")
    if 0 in b.shape:
        return b
    vectors = [True, True, True, False]
    *_, x, info = _call(
        ctx, "gtsv", [dl, d, du, b],
        [*((x.shape, x.dtype) for x in (dl, d, du, b)), (d.shape[:-1], _INT32)],
        [*vectors, *vectors, True])
    return _unless(ctx, [x], info)[0]


# --- products of reflections ----------------------------------------------------------------------

def _geqrf(ctx: Emitter, a: Value) -> list[Value]:
    if 0 in a.shape:
        return [a, ctx.full(ctx.out_avals[1].shape, 0, a.dtype)]
    return _call(ctx, "geqrf", [a], _of_avals(ctx.out_avals), [False, False, True])


def _householder_product(ctx: Emitter, a: Value, taus: Value) -> Value:
    if 0 in a.shape or 0 in taus.shape:
        return _identities(ctx)[0]
    return _call(ctx, "orgqr ungqr", [a, taus], [(a.shape, a.dtype)], [False, True, False])[0]


def _ormqr(ctx: Emitter, a: Value, taus: Value, c: Value, *, left: bool, transpose: bool) -> Value:
    if any(0 in x.shape for x in (a, taus, c)):
        return c
    return _call(ctx, "ormqr unmqr", [a, taus, c], [(c.shape, c.dtype)],
                 [False, True, False, False], {"left": left, "transpose": transpose})[0]


def _qr(ctx: Emitter, a: Value, *, full_matrices: bool, pivoting: bool, use_magma: bool | None
        ) -> list[Value]:
    *stack, m, n = a.shape
    k = min(m, n)
    columns = m if full_matrices else k
    if not k or 0 in stack:
        q, *order = _identities(ctx)[::2]
        return [q, ctx.full((*stack, columns, n), 0, a.dtype), *order]
    reduced, few = [(a.shape, a.dtype)], ((*stack, k), a.dtype)
    order = []
    if pivoting:
        free = ctx.full((*stack, n), 0, _INT32)
        packed, order_from_one, taus = _call(
            ctx, "geqp3", [a, free], [*reduced, (free.shape, _INT32), few],
            [False, True, False, True, True])
        order = [ctx.kernel("sub", order_from_one, ctx.full(free.shape, 1, _INT32))]
    else:
        packed, taus = _call(ctx, "geqrf", [a], [*reduced, few], [False, False, True])
    vectors = ctx.slice(packed, (0,) * len(a.shape), (*stack, m, k), None) if k < n else packed
    if k < columns:
        none = [(0, 0, 0)] * (len(stack) + 1)
        vectors = ctx.pad(vectors, ctx.constant(np.zeros((), a.dtype)),
                          [*none, (0, columns - k, 0)])
    q = _call(ctx, "orgqr ungqr", [vectors, taus], [(vectors.shape, a.dtype)],
              [False, True, False])[0]
    r = ctx.slice(packed, (0,) * len(a.shape), (*stack, columns, n), None) \
        if columns < m else packed
    return [q, _keeping(ctx, r, lower=False), *order]


# --- spectra --------------------------------------------------------------------------------------

def _eigh(ctx: Emitter, a: Value, *, lower: bool, **params: Any) -> list[Value]:
    if 0 in a.shape:
        return _identities(ctx)
    vectors, values = _of_avals(ctx.out_avals)
    *results, info = _call(
        ctx, "syevd heevd", [a], [vectors, values, (a.shape[:-2], _INT32)],
        [False, False, True, True], {"mode": "V", "uplo": "L" if lower else "U"})
    return _unless(ctx, results, info)


def _eig(ctx: Emitter, a: Value, *, compute_left_eigenvectors: bool,
         compute_right_eigenvectors: bool, **params: Any) -> list[Value]:
    if 0 in a.shape:
        return _identities(ctx)
    kind = ctx.out_avals[0].dtype
    values, vectors = a.shape[:-1], (a.shape, kind)
    is_complex = a.dtype.kind == "c"
    parts = 1 if is_complex else 2
    *results, left, right, info = _call(
        ctx, "geev", [a], [*[(values, a.dtype)] * parts, vectors, vectors,
                           (a.shape[:-2], _INT32)],
        [False, *[True] * parts, False, False, True],
        {"compute_left": "V" if compute_left_eigenvectors else "N",
         "compute_right": "V" if compute_right_eigenvectors else "N"})
    if not is_complex:
        results = [ctx.emit("stablehlo.complex", results, values, kind)]
    return _unless(ctx, [*results, *[left] * compute_left_eigenvectors,
                         *[right] * compute_right_eigenvectors], info)


def _schur(ctx: Emitter, a: Value, *, compute_schur_vectors: bool, **params: Any) -> list[Value]:
    if 0 in a.shape:
        return [a] * len(ctx.out_avals)
    same, stack = (a.shape, a.dtype), (a.shape[:-2], _INT32)
    parts = 1 if a.dtype.kind == "c" else 2
    triangle, vectors, *_, info = _call(
        ctx, "gees", [a], [same, same, *[(a.shape[:-1], a.dtype)] * parts, stack, stack],
        [False, False, False, *[True] * (parts + 2)],
        {"mode": "V" if compute_schur_vectors else "N", "sort": "N"})
    return _unless(ctx, [triangle, *[vectors] * compute_schur_vectors], info)


def _hessenberg(ctx: Emitter, a: Value) -> list[Value]:
    if 0 in a.shape:
        raise LoweringError("there is no reduction of matrices without elements")
    *results, info = _call(
        ctx, "gehrd", [a], [*_of_avals(ctx.out_avals), (a.shape[:-2], _INT32)],
        [False, False, True, True], {"low": 1, "high": a.shape[-1]})
    return _unless(ctx, results, info)


def _tridiagonal(ctx: Emitter, a: Value, *, lower: bool) -> list[Value]:
    if 0 in a.shape:
        raise LoweringError("there is no reduction of matrices without elements")
    *results, info = _call(
        ctx, "sytrd hetrd", [a], [*_of_avals(ctx.out_avals), (a.shape[:-2], _INT32)],
        [False, False, *[True] * 4], {"uplo": "L" if lower else "U"})
    return _unless(ctx, results, info)


def _svd(ctx: Emitter, a: Value, *, full_matrices: bool, compute_uv: bool, subset_by_index: Any,
         algorithm: Any) -> list[Value]:
    if 0 in a.shape:
        return _identities(ctx)
    *stack, m, n = a.shape
    k = min(m, n)
    whole = full_matrices or not compute_uv
    values, left, right, info = _call(
        ctx, "gesvd" if algorithm is not None and algorithm.name == "QR" else "gesdd", [a],
        [(a.shape, a.dtype), ((*stack, k), dtypes.real_dtype(a.dtype)),
         ((*stack, m, m if whole else k), a.dtype), ((*stack, n if whole else k, n), a.dtype),
         (stack, _INT32)], [False, False, True, False, False, True],
        {"mode": "N" if not compute_uv else "A" if full_matrices else "S"})[1:]
    return _unless(ctx, [values, left, right] if compute_uv else [values], info)


RULES: Mapping[str, Rule] = {
    "cholesky": _cholesky, "triangular_solve": _triangular_solve, "lu": _lu,
    "lu_pivots_to_permutation": _pivots_to_permutation, "linear_solve": _solve,
    "tridiagonal_solve": _tridiagonal_solve, "geqrf": _geqrf,
    "householder_product": _householder_product, "ormqr": _ormqr, "qr": _qr, "eigh": _eigh,
    "eig": _eig, "schur": _schur, "hessenberg": _hessenberg, "tridiagonal": _tridiagonal,
    "svd": _svd,
}
