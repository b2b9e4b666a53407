"""Systems of linear equations: triangular, general, tridiagonal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.lazy import scipy_linalg
from maxjax._ir.contract import FLAG, takes
from maxjax._ir.linearity import Linearity, reduced_first
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value
from maxjax._primitives import costs, fitting
from maxjax._primitives.arithmetic import mul, neg, sub
from maxjax._primitives.builders import add_tangents
from maxjax._primitives.lapack import Call, address, bits, one_bits, stack_size
from maxjax._primitives.linalg_rules import (
    check,
    conj,
    each,
    lapack,
    linalg_primitive,
    lower,
    many_small,
    matmul,
    on_diagonal,
    rows,
    swapped,
    upper,
    weak,
)
from maxjax._primitives.rules import is_linear
from maxjax._primitives.slicing import pad, slice_in_dim
from maxjax._primitives.widths import WIDER

if TYPE_CHECKING:
    from maxjax._primitives.rules import Linear

# --- triangular -----------------------------------------------------------------------------------

_BLAS = {dtypes.float32: "strsm", dtypes.float64: "dtrsm", dtypes.complex64: "ctrsm",
         dtypes.complex128: "ztrsm"}


def _trsm(dtype: np.dtype) -> Any:
    # BLAS divides by zero as floats do, where LAPACK's solver gives up.
    return getattr(scipy_linalg.blas, _BLAS[dtype])


def _triangular_abstract(a: ShapedArray, b: ShapedArray, **params: object) -> ShapedArray:
    return ShapedArray(b.shape, b.dtype, weak(a, b))


def _triangular_evaluate(a: np.ndarray, b: np.ndarray, *, left_side: bool, lower: bool,
                         transpose_a: bool, conjugate_a: bool, unit_diagonal: bool) -> np.ndarray:
    a, b = np.asarray(a), np.asarray(b)
    dtype = b.dtype
    if not b.size:
        return np.zeros_like(b)
    if dtype in WIDER:
        a, b = a.astype(WIDER[dtype]), b.astype(WIDER[dtype])
    small = many_small(a.shape)
    if conjugate_a and (small or not transpose_a):
        a = np.conj(a)
    if small:
        turned = transpose_a == left_side       # x op(a) = b is op(a)^T x^T = b^T
        if turned:
            a = a.swapaxes(-1, -2)
        if not left_side:
            b = b.swapaxes(-1, -2)
        x = _substituted(a.reshape(-1, *a.shape[-2:]), b.reshape(-1, *b.shape[-2:]),
                         lower != turned, unit_diagonal).reshape(b.shape)
        return (x if left_side else x.swapaxes(-1, -2)).astype(dtype, copy=False)
    solve = _trsm(b.dtype)
    form = 0 if not transpose_a else 2 if conjugate_a else 1
    result, = each(lambda x, y: (solve(1, x, y, side=0 if left_side else 1, lower=int(lower),
                                       trans_a=form, diag=int(unit_diagonal)),),
                   [ShapedArray(b.shape, b.dtype)], a, b)
    return result.astype(dtype, copy=False)


def _substituted(a: np.ndarray, b: np.ndarray, lower: bool, unit_diagonal: bool) -> np.ndarray:
    """The solutions of all systems at once: operations on vectors over the batch."""
    a = np.ascontiguousarray(a.transpose(1, 2, 0))
    x = np.array(b.transpose(1, 2, 0), order="C")
    rows = range(len(a))
    with np.errstate(all="ignore"):
        for i in rows if lower else reversed(rows):
            for known in range(i) if lower else range(i + 1, len(a)):
                x[i] -= a[i, known] * x[known]
            if not unit_diagonal:
                x[i] /= a[i, i]
    return np.ascontiguousarray(x.transpose(2, 0, 1))


def _triangular_jvp(primals: Sequence[Array], tangents: Sequence[Array], **params: object) -> Any:
    a, b = primals
    a_tangent, b_tangent = tangents
    out = triangular_solve_p.bind(a, b, **params)
    total = None if b_tangent is None else triangular_solve_p.bind(a, b_tangent, **params)
    if a_tangent is not None:
        # op(a) x = b: the tangent of x solves op(a) x' = b' - op(a') x.
        triangle = lower if params["lower"] else upper
        change = triangle(a_tangent, keeps_weak=True)
        if params["unit_diagonal"]:
            change = sub(change, on_diagonal(change, keeps_weak=True))
        if params["transpose_a"]:
            change = swapped(change)
        if params["conjugate_a"]:
            change = conj(change)
        product = matmul(change, out) if params["left_side"] else matmul(out, change)
        total = add_tangents(total, triangular_solve_p.bind(a, neg(product), **params))
    return out, total


def _triangular_transpose(cotangent: Array, a: Array, b: Linear, *, transpose_a: bool,
                          conjugate_a: bool, **params: object) -> list[Any]:
    # The transposes are linear without conjugation: that of conj(a) solves with conj(a)^T.
    if conjugate_a:
        a = conj(a)
    return [None, triangular_solve_p.bind(a, cotangent, transpose_a=not transpose_a,
                                          conjugate_a=False, **params)]


_FORMS = {(False, False): 0, (True, False): 1, (True, True): 2}


def _triangular_call(a: ShapedArray, b: ShapedArray, *, left_side: bool, lower: bool,
                     transpose_a: bool, conjugate_a: bool, unit_diagonal: bool) -> Call | None:
    is_real = not dtypes.is_complex(b.dtype)
    form = _FORMS.get((transpose_a, conjugate_a and not is_real))
    if form is None:
        return None
    columns = b.shape[-1 if left_side else -2]
    return Call("trsm", (stack_size(b), a.shape[-1], columns, address("trsm", b.dtype),
                         left_side, lower, form, unit_diagonal, one_bits(b.dtype), is_real),
                [ShapedArray(b.shape, b.dtype)])


triangular_solve_p = linalg_primitive(
    "triangular_solve", unsplit=None,
    contract=takes(
        2, fitting.triangular, fitting.alike(), left_side=FLAG, lower=FLAG, transpose_a=FLAG,
        conjugate_a=FLAG, unit_diagonal=FLAG),
    calls=_triangular_call, linearity=Linearity(slice(1, 2), each=True),
    abstract=_triangular_abstract,
    evaluate=_triangular_evaluate,
    jvp=_triangular_jvp,
    transpose=_triangular_transpose,
    cost=costs.FREE,
)


def triangular_solve(a: Value, b: Value, *, left_side: bool = False, lower: bool = False,
                     transpose_a: bool = False, conjugate_a: bool = False,
                     unit_diagonal: bool = False) -> Any:
    """Solves ``op(a) x = b`` or ``x op(a) = b`` for triangular ``a``."""
    return triangular_solve_p.bind(
        a, b, left_side=left_side, lower=lower, transpose_a=transpose_a, conjugate_a=conjugate_a,
        unit_diagonal=unit_diagonal)


# --- general --------------------------------------------------------------------------------------


def _solve_one(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray]:
    """By LU; a singular matrix divides by zero."""
    factors, pivots, _ = lapack("getrf", a.dtype)(a)
    order = np.arange(len(a))
    for row, other in enumerate(pivots):
        order[[row, other]] = order[[other, row]]
    solve = _trsm(b.dtype)
    return solve(1, factors, solve(1, factors, b[order], lower=1, diag=1)),


def _solve_evaluate(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = np.asarray(a), np.asarray(b)
    if not b.size:
        return np.zeros_like(b)
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return each(_solve_one, [ShapedArray(b.shape, b.dtype)], a, b)[0]


def _solve_jvp(primals: Sequence[Array], tangents: Sequence[Array | None]) -> Any:
    a, b = primals
    a_tangent, b_tangent = tangents
    out = solve_p.bind(a, b)
    change = b_tangent
    if a_tangent is not None:
        product = neg(matmul(a_tangent, out))
        change = product if change is None else add_tangents(change, product)
    return out, None if change is None else solve_p.bind(a, change)


def _solve_call(a: ShapedArray, b: ShapedArray) -> Call:
    return Call("gesv", (stack_size(a), *b.shape[-2:], address("getrf", a.dtype),
                         address("trsm", a.dtype), one_bits(a.dtype),
                         not dtypes.is_complex(a.dtype)), [b])


solve_p = linalg_primitive(
    "linear_solve",
    unsplit="lu",      # by which JAX solves
    contract=takes(2, fitting.of_matrices("nn", "nk"), fitting.alike()),
    calls=_solve_call,
    linearity=Linearity(slice(1, 2), each=True, unreduced=reduced_first),
    abstract=lambda a, b: ShapedArray(b.shape, b.dtype, weak(a, b)),
    evaluate=_solve_evaluate,
    jvp=_solve_jvp,
    transpose=lambda cotangent, a, b: [None, solve_p.bind(swapped(a), cotangent)],
)


def solve(a: Value, b: Value) -> Any:
    """Solves ``a x = b`` for square ``a``."""
    return solve_p.bind(a, b)


# --- tridiagonal ----------------------------------------------------------------------------------


def _tridiagonal_one(dl: np.ndarray, d: np.ndarray, du: np.ndarray,
                     b: np.ndarray) -> tuple[np.ndarray]:
    n = len(d)
    du = np.append(du[:-1], 0).astype(d.dtype)
    if n < 3:       # fewer than LAPACK's wrapper takes: equations that say nothing of these
        dl, d, du = (np.pad(x, (0, 3 - n), constant_values=value)
                     for x, value in ((dl, 0), (d, 1), (du, 0)))
        b = np.pad(b, ((0, 3 - n), (0, 0)))
    *_, x, info = lapack("gtsv", d.dtype)(dl[1:], d, du[:-1], b)
    check(info)
    return x[:n],


def _tridiagonal_perturbed(dl: np.ndarray, d: np.ndarray, du: np.ndarray,
                           b: np.ndarray) -> tuple[np.ndarray]:
    """As LAPACK's LAGTS: a pivot of U that would make a division overflow is made greater."""
    n = len(d)
    d, du, b = d.copy(), du.copy(), b.copy()
    second = np.zeros_like(du)
    du[-1] = 0
    for i in range(n - 1):
        below = dl[i + 1]
        if abs(d[i]) >= abs(below):
            factor = below / d[i] if d[i] else d.dtype.type(0)
            d[i + 1] -= factor * du[i]
        else:
            factor = d[i] / below
            d[i], du[i], d[i + 1] = below, d[i + 1], du[i] - factor * d[i + 1]
            second[i], du[i + 1] = du[i + 1], -factor * du[i + 1]
            b[[i, i + 1]] = b[[i + 1, i]]
        b[i + 1] -= factor * b[i]
    info = np.finfo(d.dtype)
    greatest = max(np.abs(x).max() for x in (d, du, second))
    for i in reversed(range(n)):
        if i + 1 < n:
            b[i] -= du[i] * b[i + 1]
        if i + 2 < n:
            b[i] -= second[i] * b[i + 2]
        step = max(info.eps * greatest, info.tiny)
        if d.dtype.kind != "c":
            step = np.copysign(step, d[i])
        pivot = d[i]
        while not pivot or np.abs(b[i]).max() * info.tiny > abs(pivot):
            pivot, step = pivot + step, 2 * step
        b[i] /= pivot
    return b,


def _tridiagonal_evaluate(dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray, *,
                          perturb_singular: bool) -> np.ndarray:
    b = np.asarray(b)
    if not b.size:
        return np.zeros_like(b)
    return each(_tridiagonal_perturbed if perturb_singular else _tridiagonal_one,
                [ShapedArray(b.shape, b.dtype)], dl, d, du, b, ranks=(1, 1, 1, 2))[0]


def _tridiagonal_call(dl: ShapedArray, d: ShapedArray, du: ShapedArray, b: ShapedArray, *,
                      perturb_singular: bool) -> Call | None:
    if perturb_singular:
        return None
    return Call("gtsv", (stack_size(b), *b.shape[-2:], address("gtsv", b.dtype),
                         bits(math.nan, b.dtype)), [b])


def _shifted(x: Array, by: int) -> Any:
    """The rows of ``x`` moved down by one (up: -1), zeros in the free row."""
    axis = len(x.shape) - 2
    n = x.shape[axis]
    none = (0, 0, 0)
    if not n:
        return x
    if by > 0:
        return pad(slice_in_dim(x, 0, n - 1, axis), 0, ((none,) * axis) + ((1, 0, 0), none))
    return pad(slice_in_dim(x, 1, n, axis), 0, ((none,) * axis) + ((0, 1, 0), none))


def _tridiagonal_jvp(primals: Sequence[Array], tangents: Sequence[Array], **params: object) -> Any:
    *bands, b = primals
    out = tridiagonal_solve_p.bind(*bands, b, **params)
    *band_tangents, change = tangents
    # Row i of A' x is dl'[i] x[i - 1] + d'[i] x[i] + du'[i] x[i + 1].
    neighbours = (_shifted(out, 1), out, _shifted(out, -1))
    for tangent, neighbour in zip(band_tangents, neighbours, strict=True):
        if tangent is not None:
            term = neg(mul(rows(tangent, out), neighbour))
            change = term if change is None else add_tangents(change, term)
    return out, None if change is None else tridiagonal_solve_p.bind(*bands, change, **params)


def _tridiagonal_transpose(cotangent: Array, dl: Array, d: Array, du: Array, b: Linear,
                           **params: object) -> list[Any]:
    assert is_linear(b)
    last = len(d.shape) - 1
    n = d.shape[last]
    none = ((0, 0, 0),) * last
    below = pad(slice_in_dim(du, 0, n - 1, last), 0, (*none, (1, 0, 0)))
    above = pad(slice_in_dim(dl, 1, n, last), 0, (*none, (0, 1, 0)))
    return [None, None, None, tridiagonal_solve_p.bind(below, d, above, cotangent, **params)]


tridiagonal_solve_p = linalg_primitive(
    "tridiagonal_solve",
    contract=takes(
        4, fitting.of_matrices("n", "n", "n", "nk"), fitting.alike(), perturb_singular=FLAG),
    rank=1,
    linearity=Linearity(slice(3, 4), each=True, unreduced=reduced_first),
    abstract=lambda dl, d, du, b, **params: ShapedArray(b.shape, b.dtype, weak(dl, d, du, b)),
    evaluate=_tridiagonal_evaluate, calls=_tridiagonal_call,
    jvp=_tridiagonal_jvp,
    transpose=_tridiagonal_transpose,
    cost=costs.FREE,
)
