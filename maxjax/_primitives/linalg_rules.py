"""What the primitives of linear algebra are written with.

Every one of them works on the last two dimensions; the leading ones are batch dimensions, so that
its batching rule only moves an axis to the front.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import caches, dtypes, native
from maxjax._base.lazy import scipy_linalg
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Compiled, Derivative, Host, Sharded, Values
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import BatchAxis, HostValue, Params, Shape, Value
from maxjax._primitives import lapack as lapack_calls
from maxjax._primitives.arithmetic import add, real_p
from maxjax._primitives.arithmetic import conj as elementwise_conj
from maxjax._primitives.broadcasting import broadcast_in_dim, broadcast_leading, reduce_sum
from maxjax._primitives.comparison import eq, ge, select
from maxjax._primitives.contraction import dot_general
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full, iota
from maxjax._primitives.lapack import LAPACK_DTYPES, Call
from maxjax._primitives.layout import move_axis, transpose
from maxjax._primitives.rules import FactorRule, aval_of, batch_factors
from maxjax._primitives.widths import INEXACT, WIDER

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering
    from maxjax._primitives.widths import Accepted

HOST_REASON = "MAX has no LAPACK"

# --- on tracers -----------------------------------------------------------------------------------


def matmul(x: Array, y: Array) -> Any:
    """The product of the matrices in the last two dimensions."""
    rank = len(x.shape)
    batch = tuple(range(rank - 2))
    return dot_general(x, y, (((rank - 1,), (rank - 2,)), (batch, batch)))


def swapped(x: Array) -> Any:
    """The transposed matrices."""
    rank = len(x.shape)
    return transpose(x, (*range(rank - 2), rank - 1, rank - 2))


def conj(x: Array) -> Any:
    return elementwise_conj(x) if dtypes.is_complex(x.dtype) else x


def adjoint(x: Array) -> Any:
    return conj(swapped(x))


def real(x: Value) -> Any:
    return real_p.bind(x) if dtypes.is_complex(x.dtype) else x


def as_dtype(x: Array, dtype: np.dtype) -> Any:
    return x if x.dtype == dtype else convert_element_type(x, dtype)


def _where_lower(x: Array, offset: int, otherwise: Array) -> Any:
    """``x`` on and below the diagonal number ``offset``, ``otherwise`` above."""
    last = len(x.shape) - 1
    row, column = (iota(dtypes.int32, x.shape, axis) for axis in (last - 1, last))
    return select(ge(add(row, np.int32(offset)), column), otherwise, x)


def _zeros(x: Array, keeps_weak: bool) -> Any:
    zeros = full(x.shape, 0, x.dtype)
    return convert_element_type(zeros, x.dtype, aval_of(x).weak_type) if keeps_weak else zeros


def lower(x: Array, offset: int = 0, keeps_weak: bool = False) -> Any:
    """The lower triangle, with zeros above.

    Args:
      keeps_weak: whether it is as weakly typed as ``x``; else it is strongly typed.
    """
    return _where_lower(x, offset, _zeros(x, keeps_weak))


def upper(x: Array, offset: int = 0, keeps_weak: bool = False) -> Any:
    """The upper triangle, with zeros below; see ``lower``."""
    return _where_lower(_zeros(x, keeps_weak), offset - 1, x)


def on_diagonal(x: Array, keeps_weak: bool = False) -> Any:
    """``x`` on the diagonal, zero elsewhere; see ``lower``."""
    last = len(x.shape) - 1
    row, column = (iota(dtypes.int32, x.shape, axis) for axis in (last - 1, last))
    return select(eq(row, column), _zeros(x, keeps_weak), x)


def hermitian_of(x: Array) -> Any:
    """The Hermitian matrices with the lower triangles of ``x``, as weakly typed as they are."""
    half = lower(x, -1, keeps_weak=True)
    middle = real(on_diagonal(x, keeps_weak=True))
    return add(add(half, adjoint(half)), as_dtype(middle, x.dtype))


def diagonal(x: Array) -> Any:
    """The diagonals of square matrices, as weakly typed as they are."""
    found = reduce_sum(on_diagonal(x), (len(x.shape) - 1,))
    return convert_element_type(found, x.dtype, aval_of(x).weak_type)


def eye_like(x: Array) -> Any:
    return on_diagonal(full(x.shape, 1, x.dtype))


def columns(x: Array, matrix: Array) -> Any:
    """Vectors ``(..., n)``, an element for each column of ``matrix``."""
    rank = len(matrix.shape)
    return broadcast_in_dim(x, matrix.shape, (*range(rank - 2), rank - 1))


def rows(x: Array, matrix: Array) -> Any:
    """Vectors ``(..., m)``, an element for each row of ``matrix``."""
    rank = len(matrix.shape)
    return broadcast_in_dim(x, matrix.shape, (*range(rank - 2), rank - 2))


# --- on the host ----------------------------------------------------------------------------------


@functools.cache
def lapack(name: str, dtype: np.dtype) -> Callable[..., Any]:
    """The LAPACK routine of that name for a dtype; of two names, the real or the complex one.

    ``lapack("sytrd hetrd", dtype)`` is ``dsytrd`` for float64 and ``zhetrd`` for complex128.
    """
    names = name.split()
    chosen = names[-1] if dtype.kind == "c" else names[0]
    return scipy_linalg.get_lapack_funcs((chosen,), dtype=dtype)[0]


def fitted(routine: Callable[..., Any], *args: np.ndarray | str | Callable[..., Any],
           **options: Any) -> tuple[Any, ...]:
    """Calls a routine that returns its workspace with as much of it as it asks for.

    Raises:
      LinAlgError: it failed.
    """
    # It depends on the sizes, and asking takes as long as a small decomposition.
    key = (routine, *[x.shape if isinstance(x, np.ndarray) else x if isinstance(x, str) else None
                      for x in args], *options.items())
    size = _workspaces.get(key)
    if size is None:
        if len(_workspaces) >= _MOST_WORKSPACES:
            _workspaces.clear()
        size = _workspaces[key] = max(1, int(routine(*args, lwork=-1, **options)[-2][0].real))
    *results, _, info = routine(*args, lwork=size, **options)
    check(info)
    return tuple(results)


_workspaces: dict[Any, int] = caches.cache()
_MOST_WORKSPACES = 1024


@functools.lru_cache(_MOST_WORKSPACES)
def workspace(routine: str, dtype: np.dtype, *sizes: int, **options: object) -> int:
    """The elements of its workspace that a routine asks for by a function of its own; of two names,
    the real or the complex one's.

    Raises:
      LinAlgError: it failed.
    """
    names = " ".join(f"{name}_lwork" for name in routine.split())
    size, info = lapack(names, dtype)(*sizes, **options)
    check(info)
    return int(size.real)


@functools.lru_cache(_MOST_WORKSPACES)
def result_types(abstract: Callable[..., Any], shape: Shape, dtype: np.dtype, **params: object
                 ) -> Any:
    """The types of a primitive's results for an array: to make them takes as long as a routine for
    a small matrix."""
    return abstract(ShapedArray(shape, dtype), **params)


def check(info: int) -> None:
    """Raises LinAlgError for a routine that failed."""
    if info:
        raise np.linalg.LinAlgError(f"info = {info}")


def many_small(shape: Shape) -> bool:
    """Whether operations on vectors over the batch are faster than a call for each matrix."""
    return 0 < max(shape[-2:]) <= 16 and math.prod(shape[:-2]) >= 64


_FAILED = {"f": np.nan, "c": complex(np.nan, np.nan)}


def each(function: Callable[..., Sequence[HostValue | complex]], avals: Sequence[ShapedArray],
         *arrays: np.ndarray, ranks: Sequence[int] | None = None) -> list[np.ndarray]:
    """The results of a function of matrices, for each element of the batch.

    All of an element's results are NaN (0 if integers) where the function raises LinAlgError, as
    in JAX.

    Args:
      avals: the types of all results together, ``abstract``'s.
      ranks: of the function's arguments, 2 by default.
    """
    arrays = tuple(map(np.asarray, arrays))
    ranks = ranks or [2] * len(arrays)
    batch = arrays[0].shape[:arrays[0].ndim - ranks[0]]
    if not batch:
        try:
            return [np.asarray(result, aval.dtype) for result, aval in zip(
                function(*arrays), avals, strict=True)]
        except np.linalg.LinAlgError:
            pass
    outs = [np.empty(aval.shape, aval.dtype) for aval in avals]
    for index in np.ndindex(*batch):
        try:
            results = function(*[x[index] for x in arrays])
        except np.linalg.LinAlgError:
            results = [_FAILED.get(out.dtype.kind, 0) for out in outs]
        for out, result in zip(outs, results, strict=True):
            out[index] = result
    return outs


def together(function: Callable[..., Sequence[HostValue | complex]], avals: Sequence[ShapedArray],
             *arrays: np.ndarray) -> list[np.ndarray]:
    """``each``, for functions that take a batch and fail for all of it if one matrix does.

    The halves of a batch that fails are tried again, so that a few failures cost little.
    """
    arrays = tuple(map(np.asarray, arrays))
    try:
        return [np.asarray(x, aval.dtype) for x, aval in zip(
            function(*arrays), avals, strict=True)]
    except np.linalg.LinAlgError:
        pass
    batch = arrays[0].shape[:-2]
    count = math.prod(batch)
    if count <= 1:
        return each(function, avals, *arrays)
    middle = count // 2
    flat = [x.reshape(count, *x.shape[len(batch):]) for x in arrays]
    halves = [together(function, [
        ShapedArray((stop - start, *aval.shape[len(batch):]), aval.dtype) for aval in avals],
        *[x[start:stop] for x in flat]) for start, stop in ((0, middle), (middle, count))]
    return [np.concatenate(parts).reshape(aval.shape) for parts, aval in zip(
        zip(*halves, strict=True), avals, strict=True)]


# --- the primitives -------------------------------------------------------------------------------


def lower_call(ctx: Lowering, call: Call, values: Sequence[object]) -> list[Any]:
    """The results of a call in a program, of operands that are as wide as LAPACK's."""
    wide = [ctx.convert(value, WIDER[aval.dtype]) if aval.dtype in WIDER else value
            for value, aval in zip(values, ctx.in_avals, strict=True)]
    return [ctx.convert(out, aval.dtype) if aval.dtype in WIDER else out for out, aval in zip(
        lapack_calls.lower(ctx, call, wide), ctx.out_avals, strict=True)]


def _through_lapack(calls: Callable[..., Call | None], rank: int, evaluate: Callable[..., Any],
                    multiple_results: bool) -> dict[str, Any]:
    """The rules of a primitive for which the pack has a function (``linalg_primitive``)."""
    def call_for(avals: Sequence[ShapedArray], params: Params) -> Call | None:
        wide = [ShapedArray(aval.shape, WIDER.get(aval.dtype, aval.dtype)) for aval in avals]
        if 0 in [aval.size for aval in wide] or wide[0].dtype not in LAPACK_DTYPES:
            return None
        return calls(*wide, **params)

    def evaluate_together(*arrays: np.ndarray, **params: Any) -> Any:
        arrays = tuple(map(np.asarray, arrays))
        first = arrays[0]
        if first.ndim > rank and first.size >= native.FEWEST and first.dtype in LAPACK_DTYPES:
            call = call_for([ShapedArray(x.shape, x.dtype) for x in arrays], params)
            outs = None if call is None else lapack_calls.run(call, arrays)
            if outs is not None:
                return outs if multiple_results else outs[0]
        return evaluate(*arrays, **params)

    def lower(ctx: Lowering, *values: object, **params: Any) -> Any:
        avals, out_avals = ctx.in_avals, ctx.out_avals
        call = call_for(avals, params)
        if call is None:        # empty matrices, whose results depend on no value
            outs = evaluate(*[np.zeros(aval.shape, aval.dtype) for aval in avals], **params)
            outs = outs if multiple_results else [outs]
            results = [ctx.constant(np.asarray(out, aval.dtype))
                       for out, aval in zip(outs, out_avals, strict=True)]
        else:
            results = lower_call(ctx, call, values)
        return results if multiple_results else results[0]

    def condition(*avals: ShapedArray, **params: Any) -> str | None:
        if 0 in [aval.size for aval in avals] or call_for(avals, params) is not None:
            return None
        return HOST_REASON

    return {"evaluate": evaluate_together, "lower": lower, "condition": condition}


def linalg_primitive(name: str, *, rank: int = 2, accepts: Accepted = INEXACT,
                     same_dtypes: slice | None = None, host_reason: str | None = HOST_REASON,
                     host_condition: Callable[..., str | None] | None = None,
                     calls: Callable[..., Call | None] | None = None,
                     no_derivative: str | None = None, unsplit: str | None = "",
                     **rules: Any) -> Primitive:
    """A primitive of matrices with leading batch dimensions, which all operands have.

    Args:
      rank: of the first operand without its batch dimensions.
      same_dtypes, host_reason, host_condition, no_derivative: as the groups of rules have them.
      calls: gives the call of the pack for operands of given types and parameters, or None where
        there is none; the NumPy rule makes it for stacks of matrices, and the lowering, unless
        there is another.
      unsplit: the name in the error of matrices that are split along Explicit axes; "": its own;
        None: they may be.
    """
    if calls is not None:
        rules = {**_through_lapack(calls, rank, rules["evaluate"],
                                    rules.get("multiple_results", False)),
                 **{name: rule for name, rule in rules.items() if name != "evaluate"}}
        host_condition = rules.pop("condition")

    def batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis], **params: object
              ) -> tuple[Any, Any]:
        moved = [broadcast_leading(x, size) if axis is None else move_axis(x, axis, 0)
                 for x, axis in zip(operands, axes, strict=True)]
        out = primitive.bind(*moved, **params)
        return out, [0] * len(out) if primitive.multiple_results else 0

    def factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray],
                **params: object) -> FactorRule:
        return batch_factors(in_avals, out_avals, batch=in_avals[0].ndim - rank)

    rules = {"batch": batch, "factors": factors, **rules}
    primitive = Primitive(
        name, values=Values(accepts, same_dtypes),
        host=Host(host_reason, host_condition, calls_blas=True),
        compiled=Compiled(takes_complex=() if calls is None else dtypes.COMPLEX),
        derivative=Derivative(missing=no_derivative),
        sharded=Sharded(unsplit=name if unsplit == "" else unsplit), **rules)
    return primitive


def like(a: ShapedArray, shape: Sequence[int], dtype: np.dtype | None = None) -> ShapedArray:
    """The type of a result with the weakness of ``a``."""
    return ShapedArray(tuple(shape), dtype or a.dtype, a.weak_type)


def weak(*avals: ShapedArray) -> bool:
    return all(aval.weak_type for aval in avals)
