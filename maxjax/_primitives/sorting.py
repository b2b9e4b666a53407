"""Sorting, and the largest elements.

Order: NaN after all numbers, -0.0 equal to 0.0, equal elements as they stood. Only ``top_k``
distinguishes zeros and NaNs of either sign: it follows the total order of IEEE 754.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes, native
from maxjax._ir.contract import AXIS, COUNT, FLAG, NATURAL, takes
from maxjax._ir.costs import Cost, XlaCost
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import BatchAxis, Shape
from maxjax._primitives import costs, fitting
from maxjax._primitives.broadcasting import broadcast_leading
from maxjax._primitives.creation import full, iota
from maxjax._primitives.gather_plan import GatherDimensionNumbers, GatherScatterMode
from maxjax._primitives.indexing import gather_p
from maxjax._primitives.layout import move_axis, reshape
from maxjax._primitives.rules import axis_factors, factor_rule, of_numbers

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering
    from maxjax._primitives.rules import FactorRule


def take_along(x: Array, indices: Array, axis: int) -> Array:
    """``x[..., indices, ...]`` with one index an element; other dimensions are matched."""
    if 0 in indices.shape:
        return full(indices.shape, 0, x.dtype)
    rank = len(x.shape)
    others = tuple(dim for dim in range(rank) if dim != axis)
    return gather_p.bind(
        x, reshape(indices, (*indices.shape, 1)),
        dimension_numbers=GatherDimensionNumbers((), (axis,), (axis,), others, others),
        slice_sizes=(1,) * rank, mode=GatherScatterMode.PROMISE_IN_BOUNDS, fill_value=None,
        unique_indices=False, indices_are_sorted=False)


# --- the order on the host ------------------------------------------------------------------------

def widened(x: np.ndarray) -> np.ndarray:
    """An array that NumPy sorts correctly: it knows no NaN of bfloat16 or float8."""
    if dtypes.is_floating(x.dtype) and x.dtype not in (
            dtypes.float16, dtypes.float32, dtypes.float64):
        return x.astype(np.float32)
    return x.astype(np.int8) if x.dtype in dtypes.SMALL_INTS else x


def order_bits(x: np.ndarray) -> np.ndarray:
    """Integers that stand in the order of the elements' bits (IEEE's total order)."""
    if x.dtype == np.bool_:
        return x.view(np.uint8)
    if x.dtype.kind in "iu":
        return x
    bits = np.ascontiguousarray(x).view(f"i{x.itemsize}").reshape(x.shape)
    return bits ^ ((bits >> (8 * x.itemsize - 1)) & np.iinfo(bits.dtype).max)


# Up to this many elements NumPy's stable sort takes less time than the detour by integers.
_SHORT = 256


def stable_argsort(x: np.ndarray) -> np.ndarray:
    """Positions along the last axis in sorted order.

    Up to 32 bits the key and the position together make one integer of 64: sorting these needs
    no stability, which is many times faster.
    """
    size = x.shape[-1]
    if size >= native.FEWEST and (argsort := native.find("argsort", x.dtype, size)):
        return _native_sort(argsort, x, np.int32).astype(np.intp)
    x = widened(x)
    if x.dtype.kind == "c" or x.itemsize > 4 or size <= _SHORT:
        return x.argsort(-1, "stable")
    if x.dtype.kind == "f":
        nan = x != x
        x = order_bits(x + np.zeros((), x.dtype))      # -0.0 + 0.0 is 0.0
        x[nan] = np.iinfo(x.dtype).max
    key = x.astype(np.int64)
    if x.dtype == np.uint32:
        key -= 1 << 31      # so that the upper half holds it
    key <<= 32
    key |= np.arange(size, dtype=np.int64)
    key.sort(axis=-1)
    key &= 0xFFFFFFFF
    return key


def _native_sort(function: native.Function, x: np.ndarray, dtype: np.dtype | type) -> Any:
    out = np.empty(x.shape, dtype)
    size = x.shape[-1]
    function((np.ascontiguousarray(x), out), (x.size // size, size), x.size)
    return out


def _sort_evaluate(*operands: np.ndarray, dimension: int, is_stable: bool, num_keys: int
                   ) -> list[np.ndarray]:
    arrays = [np.asarray(x) for x in operands]
    if len(arrays) == 1:
        x = arrays[0]
        size = x.shape[dimension]
        if size >= native.FEWEST and (sort := native.find("sort", x.dtype, size)):
            rows = np.moveaxis(x, dimension, -1)
            return [np.moveaxis(_native_sort(sort, rows, x.dtype), -1, dimension)]
        wide = widened(x)
        result = wide.copy() if wide is x else wide
        result.sort(dimension, None if _equal_are_alike(wide) else "stable")
        return [result.astype(x.dtype, copy=False)]
    return sorted_together(arrays, dimension, num_keys)


def _equal_are_alike(x: np.ndarray) -> bool:
    """Whether nobody can tell in which order equal elements stand."""
    if x.dtype.kind in "iub":
        return True
    if x.dtype.kind != "f":
        return False
    # Equal floats may differ (0.0 and -0.0).
    zeros = x.size - np.count_nonzero(x)
    return bool(zeros < 2 or not np.any((x == 0) & np.signbit(x)))


def sorted_together(arrays: Sequence[np.ndarray], dimension: int, num_keys: int
                    ) -> list[np.ndarray]:
    """Arrays in the order of the first ``num_keys`` of them."""
    if not arrays[0].size:
        return list(arrays)
    is_last = dimension == arrays[0].ndim - 1
    rows = arrays if is_last else [np.moveaxis(x, dimension, -1) for x in arrays]
    if num_keys == 1:
        order = stable_argsort(rows[0])
    else:
        order = np.lexsort([widened(key) for key in reversed(rows[:num_keys])])
    *outer, size = order.shape
    if outer:       # places in all rows together
        order = order.reshape(-1, size)
        order = order + np.arange(0, order.size, size).reshape(-1, 1)
        results = [x.reshape(-1).take(order).reshape(x.shape) for x in rows]
    else:
        results = [x.take(order) for x in rows]
    return results if is_last else [np.moveaxis(x, -1, dimension) for x in results]


# --- sort -----------------------------------------------------------------------------------------

def _sort_jvp(primals: Sequence[Array], tangents: Sequence[Array | None], *, dimension: int,
              is_stable: bool, num_keys: int) -> tuple[Any, ...]:
    """The tangents in the order of the values."""
    params = {"dimension": dimension, "is_stable": is_stable, "num_keys": num_keys}
    if all(tangent is None for tangent in tangents):
        return sort_p.bind(*primals, **params), [None] * len(primals)
    positions = iota(dtypes.int32, primals[0].shape, dimension)
    *outs, order = sort_p.bind(*primals, positions, **params)
    return outs, [None if tangent is None else take_along(tangent, order, dimension)
                  for tangent in tangents]


def _sort_batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis], *, dimension: int,
                is_stable: bool, num_keys: int) -> tuple[list[Array], list[int]]:
    moved = [broadcast_leading(x, size) if axis is None else move_axis(x, axis, 0)
             for x, axis in zip(operands, axes, strict=True)]
    outs = sort_p.bind(*moved, dimension=dimension + 1, is_stable=is_stable, num_keys=num_keys)
    return outs, [0] * len(outs)


def _lowered_rows(ctx: Lowering, x: object, shape: Shape, dimension: int) -> Any:
    """x as rows along ``dimension``: (rows, size)."""
    rank = len(shape)
    order = (*(dim for dim in range(rank) if dim != dimension), dimension)
    size = shape[dimension]
    return ctx.reshape(ctx.transpose(x, order), (math.prod(shape) // max(size, 1), size))


def _lowered_take(ctx: Lowering, x: object, order: object, rows: int, columns: int, count: int
                  ) -> Any:
    """x[r, order[r, j]] of rows (rows, columns); ``order`` is (rows, count)."""
    if is_dimension(rows):
        places = ctx.iota(dtypes.int32, (rows, 1), 0)
        starts = ctx.kernel("mul", places, ctx.scalar(columns, places))
    else:
        starts = ctx.constant(np.arange(rows, dtype=np.int32).reshape(rows, 1) * columns)
    flat = ctx.native("add", order, ctx.broadcast(starts, (rows, count), (0, 1)))
    taken = ctx.gather_rows(ctx.reshape(x, (rows * columns,)),
                            ctx.reshape(flat, (rows * count,)), 0)
    return ctx.reshape(taken, (rows, count))


def _lowered_back(ctx: Lowering, x: object, shape: Shape, dimension: int, count: int) -> Any:
    """Rows (rows, count) as an array whose dimension ``dimension`` has ``count`` elements."""
    rest = tuple(size for dim, size in enumerate(shape) if dim != dimension)
    x = ctx.reshape(x, (*rest, count))
    order = list(range(len(rest)))
    order.insert(dimension, len(rest))
    return ctx.transpose(x, tuple(order))


def _sort_lower(ctx: Lowering, *operands: object, dimension: int, is_stable: bool, num_keys: int
                ) -> Any:
    shape = ctx.in_avals[0].shape
    if not math.prod(shape):
        return list(operands)
    rows = [_lowered_rows(ctx, x, shape, dimension) for x in operands]
    size = shape[dimension]
    count = math.prod(shape) // size
    if len(rows) == 1:
        alone = ctx.sort_values(rows[0])
        if alone is not None:
            return [_lowered_back(ctx, alone, shape, dimension, size)]
    # From the last key to the first: each sort keeps the order of the one before among equals.
    order = None
    for key in reversed(rows[:num_keys]):
        if order is None:
            order = ctx.sort_permutation(key)
        else:
            again = ctx.sort_permutation(_lowered_take(ctx, key, order, count, size, size))
            order = _lowered_take(ctx, order, again, count, size, size)
    sorted_rows = [
        ctx.convert(order, ctx.dtype(x)) if ctx.is_column_index(x)
        else _lowered_take(ctx, x, order, count, size, size) for x in rows]
    return [_lowered_back(ctx, x, shape, dimension, size) for x in sorted_rows]


def _sort_abstract(*avals: ShapedArray, dimension: int, is_stable: bool, num_keys: int
                   ) -> list[ShapedArray]:
    of_numbers("sort", lambda *keys: None)(*avals[:num_keys])
    return list(avals)


_SORT_COST = XlaCost(
    lambda ins, outs, params: ins[0].size * math.ceil(math.log2(max(ins[0].size, 1))), alone=True)

sort_p = Primitive(
    "sort",
    contract=takes((1, None), fitting.sort, dimension=AXIS, is_stable=FLAG, num_keys=NATURAL),
    abstract=_sort_abstract,
    evaluate=_sort_evaluate,
    lower=_sort_lower,
    jvp=_sort_jvp,
    batch=_sort_batch,
    factors=lambda in_avals, out_avals, *, dimension, **params: axis_factors(
        in_avals, out_avals, whole=(dimension,)),
    multiple_results=True,
    cost=Cost(xla=_SORT_COST),
)

# --- top_k ----------------------------------------------------------------------------------------


def _top_k_shape(shape: Shape, k: int, axis: int) -> tuple[int, ...]:
    return (*shape[:axis], k, *shape[axis + 1:])


def _top_k_evaluate(x: np.ndarray, *, k: int, axis: int, is_stable: bool) -> list[np.ndarray]:
    x = np.asarray(x)
    is_last = axis == x.ndim - 1
    rows = x if is_last else np.moveaxis(x, axis, -1)
    # The complement reverses the order of integers, so that equals keep theirs.
    key = ~order_bits(widened(rows))
    size = rows.shape[-1]
    few = native.find("argsort_few", key.dtype, key.size) if (
        key.size >= native.FEWEST and k) else None
    if few:
        order = np.empty((*key.shape[:-1], k), np.int32)
        few((np.ascontiguousarray(key), order), (key.size // size, size, k), key.size)
    elif k and size >= 64 and k * 8 <= size:
        order = _least_few(key, k)
    else:
        order = stable_argsort(key)[..., :k]
    values = rows.take(order) if rows.ndim == 1 else np.take_along_axis(rows, order, -1)
    order = order.astype(np.int32, copy=False)
    results = [values, order]
    return results if is_last else [np.moveaxis(result, -1, axis) for result in results]


def _least_few(key: np.ndarray, k: int) -> np.ndarray:
    """The positions of the k least along the last axis, in order: a threshold, then a sort."""
    if key.ndim == 1:
        found = np.argpartition(key, k - 1)[:k]
        least = key[found]
        equal = least.max()
        if np.count_nonzero(key == equal) == np.count_nonzero(least == equal):
            found.sort()      # of equal ones the first comes first
            return found[np.argsort(key[found], kind="stable")]
    bound = np.partition(key, k - 1, axis=-1)[..., k - 1:k]
    below = key < bound
    ties = key == bound
    room = k - below.sum(-1, keepdims=True)
    chosen = below | (ties & (np.cumsum(ties, -1) <= room))
    found = np.nonzero(chosen)[-1].reshape(*key.shape[:-1], k)
    return np.take_along_axis(found, np.argsort(
        np.take_along_axis(key, found, -1), axis=-1, kind="stable"), -1)


def _top_k_jvp(primals: Sequence[Array], tangents: Sequence[Array], *, k: int, axis: int,
               is_stable: bool) -> tuple[Any, ...]:
    values, indices = top_k_p.bind(*primals, k=k, axis=axis, is_stable=is_stable)
    return [values, indices], [take_along(tangents[0], indices, axis), None]


def _top_k_lower(ctx: Lowering, x: object, *, k: int, axis: int, is_stable: bool) -> Any:
    """The first k of a stable descending sort: of the complement of the order's integers."""
    shape, dtype = ctx.in_avals[0].shape, ctx.in_avals[0].dtype
    if not math.prod(shape) or not k:
        return [ctx.full(aval.shape, 0, aval.dtype) for aval in ctx.out_avals]
    rows = _lowered_rows(ctx, x, shape, axis)
    size = shape[axis]
    count = math.prod(shape) // size
    if dtypes.is_floating(dtype):
        width = dtype.itemsize * 8
        integer = np.dtype(f"int{width}")
        bits = ctx.bitcast(rows, integer)
        flipped = ctx.kernel("xor", bits, ctx.scalar(np.iinfo(integer).max, bits))
        negative = ctx.native("lt", bits, ctx.scalar(0, bits))
        key = ctx.select(negative, [bits, flipped])
    elif dtype == dtypes.bool_:
        key = ctx.convert(rows, dtypes.int32)
    else:
        key = rows
    order = ctx.first_of_sorted(ctx.kernel("not", key), k)
    values = _lowered_take(ctx, rows, order, count, size, k)
    return [_lowered_back(ctx, value, shape, axis, k) for value in (values, order)]


def _top_k_batch(size: int, operands: Sequence[Array], axes: Sequence[int], *, k: int, axis: int,
                 is_stable: bool) -> tuple[list[Array], list[int]]:
    outs = top_k_p.bind(operands[0], k=k, axis=axis + (axis >= axes[0]),
                        is_stable=is_stable)
    return outs, [axes[0]] * 2


def _top_k_factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *, k: int,
                   axis: int, is_stable: bool) -> FactorRule:
    names = list(range(in_avals[0].ndim))
    results = ["k" if dim == axis else dim for dim in names]
    return factor_rule([names], [results, results], in_avals, out_avals,
                       replicated=frozenset((axis, "k")))


top_k_p = Primitive(
    "top_k",
    contract=takes(1, fitting.ORDERED, fitting.top_k, k=COUNT, axis=AXIS, is_stable=FLAG),
    abstract=of_numbers("top_k", lambda x, *, k, axis, is_stable: [
        ShapedArray(_top_k_shape(x.shape, k, axis), x.dtype, x.weak_type),
        ShapedArray(_top_k_shape(x.shape, k, axis), dtypes.int32, x.weak_type)]),
    evaluate=_top_k_evaluate,
    lower=_top_k_lower,
    jvp=_top_k_jvp,
    batch=_top_k_batch,
    factors=_top_k_factors,
    multiple_results=True,
    cost=costs.FREE,
)
