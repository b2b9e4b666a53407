"""``ragged_all_to_all``: slices of different sizes, exchanged between the elements of a named axis.

Each of n elements has K slices, K / n for each element, numbered in the order of their receivers.
A program that runs has an ``all_to_all`` of offsets and sizes and an ``all_gather`` of the data in
its place (``received``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from maxjax._base import dtypes
from maxjax._ir.linearity import Linearity, reduced_first
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Communication, Host, Printed
from maxjax._ir.trace import Array, Value
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import AxisName, BatchAxis
from maxjax._primitives.arithmetic import add_p, mul_p, neg, sub_p
from maxjax._primitives.broadcasting import broadcast_in_dim, broadcast_leading, expand_axis
from maxjax._primitives.collective import HOST_REASON, all_to_all_p, unbound
from maxjax._primitives.comparison import gt_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full, iota
from maxjax._primitives.cumulative import cumsum
from maxjax._primitives.gather_plan import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from maxjax._primitives.indexing import gather_p, scatter_add_p
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import move_axis, reshape, squeeze_p, transpose
from maxjax._primitives.rules import aval_of, is_linear, replicated_factors, scalar_like
from maxjax._primitives.slicing import select, slice_in_dim
from maxjax._primitives.varying import like_type

if TYPE_CHECKING:
    from maxjax._primitives.rules import Linear

# --- the slices that one element receives ---------------------------------------------------------
# Along the rows of the result, what belongs to a slice is added at its start and taken away at its
# end, so that a cumulative sum gives each row the values of the slice that it lies in.


def _of_one_dtype(*xs: Array) -> list[Any]:
    """As int32, or as int64 where one of them has 64 bits."""
    dtype = dtypes.int64 if any(x.dtype.itemsize > 4 for x in xs) else dtypes.int32
    return [x if x.dtype == dtype else convert_element_type(x, dtype) for x in xs]


def _of_slices(starts: Array, sizes: Array, values: Array, rows: int) -> Array:
    """For each of the rows the values (K, V) of the slice that it lies in, or zeros: (rows, V)."""
    numbers = ScatterDimensionNumbers((1,), (0,), (0,))
    ends = add_p.bind(starts, sizes)
    places = concatenate([expand_axis(starts, 1), expand_axis(ends, 1)], 0)
    changes = scatter_add_p.bind(
        like_type(full((rows, values.shape[1]), 0, values.dtype), aval_of(values)), places,
        concatenate([values, neg(values)], 0), dimension_numbers=numbers,
        indices_are_sorted=False, unique_indices=False, mode=GatherScatterMode.FILL_OR_DROP)
    return cumsum(changes, 0)


def _column(values: Array, number: int) -> Array:
    return squeeze_p.bind(slice_in_dim(values, number, number + 1, 1), dimensions=(1,))


def _in_slice(starts: Array, sizes: Array, rows: int) -> Array:
    """Which of the rows lie in one of the slices."""
    starts, sizes = _of_one_dtype(starts, sizes)
    ones = like_type(full((starts.shape[0], 1), 1, starts.dtype), aval_of(starts))
    return gt_p.bind(_column(_of_slices(starts, sizes, ones, rows), 0),
                     scalar_like(0, starts.dtype))


def received(data: Value, output: Value, offsets: Array, sizes: Array, starts: Array) -> Any:
    """What one element gets.

    Args:
      data: (n, N, ...), the operands of all.
      output: (M, ...), what stays where nothing is received.
      offsets: (K,), where each slice that it gets lies in its sender's operand; the first K / n are
        the first sender's.
      sizes: (K,), their sizes.
      starts: (K,), where they go in ``output``.
    """
    offsets, sizes, starts = _of_one_dtype(offsets, sizes, starts)
    dtype = starts.dtype
    count, rows = data.shape[0], output.shape[0]
    senders = reshape(iota(dtype, (count, starts.shape[0] // count), 0), starts.shape)
    values = concatenate([expand_axis(x, 1) for x in (
        full(starts.shape, 1, dtype), senders, sub_p.bind(offsets, starts))], 1)
    found = _of_slices(starts, sizes, values, rows)
    row = add_p.bind(_column(found, 2), iota(dtype, (rows,), 0))
    rest = data.shape[2:]
    taken = gather_p.bind(
        data, concatenate([expand_axis(x, 1) for x in (_column(found, 1), row)], 1),
        dimension_numbers=GatherDimensionNumbers(tuple(range(1, len(rest) + 1)), (0, 1), (0, 1)),
        slice_sizes=(1, 1, *rest), indices_are_sorted=False, unique_indices=False,
        mode=GatherScatterMode.FILL_OR_DROP, fill_value=None)
    inside = gt_p.bind(_column(found, 0), scalar_like(0, dtype))
    return select(broadcast_in_dim(inside, output.shape, (0,)), output, taken)


def of_collectives(all_gather: Callable[..., Array], all_to_all: Callable[..., Array]
                   ) -> Callable[..., Any]:
    """``ragged_all_to_all`` made of those two."""
    def exchanged(operand: Value, output: Value, input_offsets: Value, send_sizes: Value,
                  output_offsets: Value, recv_sizes: Value, *, axis_name: tuple[AxisName, ...],
                  axis_sizes: tuple[int, ...],
                  axis_index_groups: Sequence[Sequence[int]] | None) -> Any:
        data = all_gather(
            operand, all_gather_dimension=0, axis_name=axis_name, tiled=False,
            axis_size=math.prod(axis_sizes), axis_index_groups=axis_index_groups)
        return received(data, output, *[
            all_to_all(x, split_axis=0, concat_axis=0, axis_name=axis_name, axis_sizes=axis_sizes,
                       axis_index_groups=axis_index_groups, tiled=True)
            for x in (input_offsets, send_sizes, output_offsets)])

    return exchanged


# --- rules ----------------------------------------------------------------------------------------


def _zeros(aval: ShapedArray) -> Any:
    return like_type(full(aval.shape, 0, aval.dtype), aval)


def _jvp(primals: Sequence[Array], tangents: Sequence[Array | None], **params: object
         ) -> tuple[Any, Any]:
    out = ragged_all_to_all_p.bind(*primals, **params)
    if tangents[0] is None and tangents[1] is None:
        return out, None
    filled = [_zeros(aval_of(primal)) if tangent is None else tangent
              for primal, tangent in zip(primals[:2], tangents[:2], strict=True)]
    return out, ragged_all_to_all_p.bind(*filled, *primals[2:], **params)


def _transpose(cotangent: Array, operand: Array | Linear, output: Array | Linear,
               input_offsets: Array, send_sizes: Array, output_offsets: Array, recv_sizes: Array,
               **params: Any) -> list[Any]:
    """The slices go back to where they came from; where they went, ``output`` has no part in the
    result."""
    def exchanged(x: Array) -> Any:
        return all_to_all_p.bind(x, split_axis=0, concat_axis=0, tiled=True, **params)

    starts = exchanged(output_offsets)
    result: list[Any] = [None] * 6
    if is_linear(operand):
        result[0] = ragged_all_to_all_p.bind(
            cotangent, _zeros(operand.aval), starts, recv_sizes, exchanged(input_offsets),
            send_sizes, **params)
    if is_linear(output):
        gone = broadcast_in_dim(_in_slice(starts, recv_sizes, output.shape[0]), output.shape, (0,))
        result[1] = select(gone, cotangent, _zeros(output.aval))
    return result


def _batch(size: int, operands: Sequence[Array], axes: Sequence[BatchAxis], *,
           axis_sizes: tuple[int, ...], **params: object) -> tuple[Any, int]:
    """The elements of a batch one below the other, their slices next to one another for each
    receiver."""
    full = [broadcast_leading(x, size) if axis is None else move_axis(x, axis, 0)
            for x, axis in zip(operands, axes, strict=True)]
    operand, output, *slices = full
    rows = operand.shape[1], output.shape[1]
    receivers = math.prod(axis_sizes)

    def joined(x: Array, step: int) -> Any:
        x, = _of_one_dtype(x)
        if step:
            first = mul_p.bind(iota(x.dtype, x.shape, 0), scalar_like(step, x.dtype))
            x = add_p.bind(x, like_type(first, aval_of(x)))
        each = x.shape[1] // receivers
        x = transpose(reshape(x, (size, receivers, each)), (1, 0, 2))
        return reshape(x, (receivers * size * each,))

    result = ragged_all_to_all_p.bind(
        *[reshape(x, (size * x.shape[1], *x.shape[2:])) for x in (operand, output)],
        *map(joined, slices, (rows[0], 0, rows[1], 0)), axis_sizes=axis_sizes, **params)
    return reshape(result, output.shape), 0


def _batch_named(mapped: str, size: int, operands: Sequence[Array], axes: Sequence[BatchAxis],
                 **params: object) -> NoReturn:
    raise NotImplementedError("Please open a feature request!")


ragged_all_to_all_p = Primitive(
    "ragged_all_to_all",
    abstract=lambda operand, output, *slices, **params: output,
    evaluate=unbound,
    host=Host(reason=HOST_REASON),
    printed=Printed(lambda params: {
        name: value for name, value in params.items() if name != "axis_sizes"}),
    linearity=Linearity(slice(2), unreduced=reduced_first),
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    communication=Communication(
        axis_names=lambda *, axis_name, **params: axis_name,
        batch_named=_batch_named),
    factors=replicated_factors,
)
