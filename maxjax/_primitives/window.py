"""Sums and extremes over sliding windows, and the derivatives of the latter."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.contract import PAIRS, STEPS, one_of, takes
from maxjax._ir.linearity import REDUCED_FIRST, SUM
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Values
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Params, Shape
from maxjax._primitives import costs, fitting
from maxjax._primitives.arithmetic import add
from maxjax._primitives.broadcasting import broadcast_leading
from maxjax._primitives.comparison import eq, ge_p, le_p, not_p, select
from maxjax._primitives.convolution import dilated, output_spatial
from maxjax._primitives.convolution_numpy import overlap
from maxjax._primitives.creation import full
from maxjax._primitives.layout import move_axis
from maxjax._primitives.rules import axis_factors, linear_primitive
from maxjax._primitives.slicing import pad, slice_p
from maxjax._primitives.sums import FEW, sum_of

if TYPE_CHECKING:
    from maxjax._max.lowering import Lowering
    from maxjax._primitives.rules import FactorRule, Linear


def window_abstract(x: ShapedArray, *, window_dimensions: tuple[int, ...],
                    window_strides: tuple[int, ...], padding: tuple[tuple[int, int], ...],
                    base_dilation: tuple[int, ...], window_dilation: tuple[int, ...]
                    ) -> ShapedArray:
    shape = output_spatial(x.shape, window_dimensions, window_strides, padding, base_dilation,
                           window_dilation)
    return ShapedArray(shape, x.dtype, x.weak_type)


def _with_axis(params: Params, axis: int) -> Params:
    """The parameters for one more dimension, which windows do not extend along."""
    def insert(values: tuple[int | tuple[int, ...], ...], value: int | tuple[int, ...]
               ) -> tuple[Any, ...]:
        return (*values[:axis], value, *values[axis:])

    return {name: value if name == "select_prim" else insert(
        value, (0, 0) if name == "padding" else 1) for name, value in params.items()}


def _factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
             window_dimensions: tuple[int, ...], window_strides: tuple[int, ...],
             padding: tuple[tuple[int, int], ...], **params: object) -> FactorRule:
    """Dimensions that windows extend along stay whole."""
    whole = [dim for dim, (width, stride, pads) in enumerate(zip(
        window_dimensions, window_strides, padding, strict=True))
        if width > 1 or stride > 1 or tuple(pads) != (0, 0)]
    return axis_factors(in_avals, out_avals, whole=whole)


# --- the NumPy rules ------------------------------------------------------------------------------

def _like(x: np.ndarray, shape: Shape, value: int | np.generic) -> np.ndarray:
    """An array filled with ``value``, with the memory order of ``x``'s dimensions."""
    order = np.argsort([-abs(stride) for stride in x.strides], kind="stable")
    return np.full([shape[dim] for dim in order], value, x.dtype).transpose(np.argsort(order))


def padded(x: np.ndarray, value: int | np.generic, padding: tuple[tuple[int, int], ...],
           base_dilation: tuple[int, ...]) -> np.ndarray:
    """``x`` with its padding and holes filled with ``value``; negative padding crops."""
    if all(tuple(pads) == (0, 0) for pads in padding) and all(d == 1 for d in base_dilation):
        return x
    shape = tuple(max(0, dilated(size, dilation) + low + high) for size, dilation, (low, high)
                  in zip(x.shape, base_dilation, padding, strict=True))
    out = _like(x, shape, value)
    source, target = zip(*(
        overlap(size, total, low, dilation) for size, total, (low, _), dilation in zip(
            x.shape, shape, padding, base_dilation, strict=True)), strict=True)
    out[target] = x[source]
    return out


def _combined(ufunc: np.ufunc, element: Callable[[int], np.ndarray], begin: int, end: int) -> Any:
    """The elements of windows from one number to another: few one after the other, of more the
    halves, so that sums are pairwise."""
    if end - begin > FEW:
        middle = (begin + end) // 2
        total = _combined(ufunc, element, begin, middle)
        return ufunc(total, _combined(ufunc, element, middle, end), out=total)
    if end - begin == 1:
        return element(begin)
    total = ufunc(element(begin), element(begin + 1))
    for number in range(begin + 2, end):
        ufunc(total, element(number), out=total)
    return total


def _windowed_evaluate(ufunc: np.ufunc, identity: Callable[[np.dtype], Any]
                       ) -> Callable[..., Any]:
    """A dimension at a time, each in as many steps as the window is wide."""
    def evaluate(x: np.ndarray, *, window_dimensions: tuple[int, ...],
                 window_strides: tuple[int, ...], padding: tuple[tuple[int, int], ...],
                 base_dilation: tuple[int, ...], window_dilation: tuple[int, ...]) -> np.ndarray:
        x = np.asarray(x)
        dtype = x.dtype
        if ufunc is np.add and dtypes.is_floating(dtype) and dtype.itemsize < 4:
            x = x.astype(np.float32)
        shape = output_spatial(x.shape, window_dimensions, window_strides, padding,
                               base_dilation, window_dilation)
        if not all(shape):
            return np.zeros(shape, dtype)
        x = padded(x, identity(x.dtype), padding, base_dilation)
        # The outermost in memory first: its steps run over long contiguous blocks.
        for dim in sorted(range(x.ndim), key=lambda dim: -abs(x.strides[dim])):
            width, stride, step = (values[dim] for values in (
                window_dimensions, window_strides, window_dilation))
            if width == 1 and stride == 1:
                continue
            span = (shape[dim] - 1) * stride + 1
            before = (slice(None),) * dim

            def shifted(k: int, x: np.ndarray = x, span: int = span, stride: int = stride,
                        step: int = step, before: tuple[slice, ...] = before) -> np.ndarray:
                return x[(*before, slice(k * step, k * step + span, stride))]

            if width == 1:
                x = shifted(0)
            elif shape[dim] == 1 and step == 1:
                x = x[(*before, slice(0, width))]
                if ufunc is np.add and dtypes.is_inexact(x.dtype):
                    x = np.expand_dims(sum_of(x, (dim,)), dim)
                else:
                    x = ufunc.reduce(x, axis=dim, keepdims=True, dtype=x.dtype)
            else:
                x = _combined(ufunc, shifted, 0, width)
        return x.astype(dtype, copy=False)
    return evaluate


def _window_slices(counts: tuple[int, ...], window: tuple[int, ...], strides: tuple[int, ...],
                   dilation: tuple[int, ...]) -> Iterator[Any]:
    """For each element of the window, where the windows hold it in the padded operand."""
    for offset in np.ndindex(*window):
        yield tuple(
            slice(k * step, k * step + (count - 1) * stride + 1, stride)
            for k, step, count, stride in zip(offset, dilation, counts, strides, strict=True))


def _selection(x: np.ndarray, places: Sequence[tuple[slice, ...]], chosen_first: np.ufunc
               ) -> np.ndarray:
    """For each window the number of the element that is selected: the first of equals.

    As in XLA the selected one stays while ``chosen_first(selected, other)`` holds, so that the next
    element replaces a NaN, and padding is an element like others.
    """
    best = x[places[0]].copy(order="K")
    index = np.zeros_like(best, np.int8 if len(places) < 128 else np.int32)
    for number, place in enumerate(places[1:], 1):
        current = x[place]
        stays = chosen_first(best, current)
        take = np.logical_not(stays, out=stays)
        np.copyto(best, current, where=take)
        np.copyto(index, number, where=take)
    return index


def _least(select_prim: Primitive, dtype: np.dtype) -> np.generic:
    """The value, that of padding, which any other replaces."""
    return dtypes.extremes(dtype)[0 if select_prim is ge_p else 1]


def _compare(select_prim: Primitive) -> np.ufunc:
    return np.greater_equal if select_prim is ge_p else np.less_equal


def _hits(x: np.ndarray, places: Sequence[tuple[slice, ...]], select_prim: Primitive
          ) -> Iterator[Any]:
    """For each element of the window, which windows select it."""
    extreme = np.maximum if select_prim is ge_p else np.minimum
    best = x[places[0]]
    if len(places) > 1:
        best = extreme(best, x[places[1]])
        for place in places[2:]:
            extreme(best, x[place], out=best)
    if dtypes.is_inexact(x.dtype) and np.isnan(best).any():
        index = _selection(x, places, _compare(select_prim))
        for number in range(len(places)):
            yield index == number
        return
    left = None
    for place in places:
        hit = np.equal(x[place], best)
        if left is None:
            left = ~hit
        else:
            hit &= left
            left ^= hit
        yield hit


def _masked(x: np.ndarray, hit: np.ndarray) -> np.ndarray:
    """x where ``hit``, else 0: by bits, which is several times faster than np.where."""
    bits = f"i{x.itemsize}"
    mask = hit.view(np.int8).astype(bits)
    np.negative(mask, out=mask)
    return np.bitwise_and(x.view(bits), mask, out=mask).view(x.dtype)


def _scatter_evaluate(source: np.ndarray, operand: np.ndarray, *, select_prim: Primitive,
                      window_dimensions: tuple[int, ...], window_strides: tuple[int, ...],
                      padding: tuple[tuple[int, int], ...]) -> np.ndarray:
    source, x = np.asarray(source), np.asarray(operand)
    if not source.size:
        return np.zeros(x.shape, source.dtype)
    ones = (1,) * x.ndim
    wide = padded(x, _least(select_prim, x.dtype), padding, ones)
    places = list(_window_slices(source.shape, window_dimensions, window_strides, ones))
    out = _like(wide, wide.shape, 0).astype(source.dtype, copy=False)
    apart = all(width <= stride for width, stride in zip(
        window_dimensions, window_strides, strict=True))
    for place, hit in zip(places, _hits(wide, places, select_prim), strict=True):
        part = _masked(source, hit)
        if apart:
            out[place] = part
        else:
            view = out[place]
            np.add(view, part, out=view)
    return padded(out, 0, tuple((-low, -high) for low, high in padding), ones)


def _gather_evaluate(tangents: np.ndarray, operand: np.ndarray, *, select_prim: Primitive,
                     window_dimensions: tuple[int, ...], window_strides: tuple[int, ...],
                     padding: tuple[tuple[int, int], ...], base_dilation: tuple[int, ...],
                     window_dilation: tuple[int, ...]) -> np.ndarray:
    tangents, x = np.asarray(tangents), np.asarray(operand)
    counts = output_spatial(x.shape, window_dimensions, window_strides, padding, base_dilation,
                            window_dilation)
    if not all(counts):
        return np.zeros(counts, tangents.dtype)
    x = padded(x, _least(select_prim, x.dtype), padding, base_dilation)
    tangents = padded(tangents, 0, padding, base_dilation)
    places = list(_window_slices(counts, window_dimensions, window_strides, window_dilation))
    index = _selection(x, places, _compare(select_prim))
    out = np.zeros_like(index, tangents.dtype)
    for number, place in enumerate(places):
        np.copyto(out, tangents[place], where=index == number)
    return out


# --- lowerings: kernels where windows extend along few dimensions, else strided slices ------------

def _neighbours(shape: Shape, chosen: Sequence[int]) -> Any:
    """Whether only dimensions of size 1 lie between two dimensions."""
    return all(shape[dim] == 1 for dim in range(chosen[0] + 1, chosen[-1]))


def _slide(ctx: Lowering, kernel: Any, operands: Sequence[object], shape: Shape,
           chosen: Sequence[int], window: tuple[int, ...], strides: tuple[int, ...],
           padding: tuple[tuple[int, int], ...], window_dilation: tuple[int, ...],
           base_dilation: tuple[int, ...]) -> Any:
    """A kernel of windows along the one or two neighbouring dimensions in ``chosen``."""
    first, last = chosen[0], chosen[-1]

    def wide(shape: Shape) -> Any:
        height = shape[first] if len(chosen) == 2 else 1
        return (math.prod(shape[:first]), height, shape[last], math.prod(shape[last + 1:]))

    def two(values: Sequence[object], filler: object) -> Any:
        return (filler,) * (2 - len(chosen)) + tuple(values[dim] for dim in chosen)

    result = ctx.sliding(
        kernel, [ctx.reshape(x, wide(ctx.shape(x))) for x in operands], wide(shape),
        two(window, 1), two(strides, 1), two([low for low, _ in padding], 0),
        two(window_dilation, 1), two(base_dilation, 1))
    return ctx.reshape(result, shape)


def _along(window: tuple[int, ...], strides: tuple[int, ...], padding: tuple[tuple[int, int], ...],
           base_dilation: tuple[int, ...]) -> Any:
    """The dimensions in which there is something to do."""
    return [dim for dim, (width, stride, pads, base) in enumerate(zip(
        window, strides, padding, base_dilation, strict=True))
        if width > 1 or stride > 1 or tuple(pads) != (0, 0) or base > 1]


def _config(padding: Sequence[tuple[int, int]], base_dilation: tuple[int, ...]) -> Any:
    return tuple((low, high, dilation - 1) for (low, high), dilation in zip(
        padding, base_dilation, strict=True))


def _strided(x: Array, starts: Sequence[int], counts: tuple[int, ...], strides: tuple[int, ...]
             ) -> Any:
    limits = tuple(start + (count - 1) * stride + 1 for start, count, stride in zip(
        starts, counts, strides, strict=True))
    return slice_p.bind(x, start_indices=tuple(starts), limit_indices=limits,
                        strides=tuple(strides))


# Above this many elements a window's dimensions are reduced one after the other.
_SMALL = 16


def _windowed_lower(kind: str, identity: Callable[[np.dtype], Any]
                    ) -> Callable[..., Any]:
    def lower(ctx: Lowering, x: object, *, window_dimensions: tuple[int, ...],
              window_strides: tuple[int, ...], padding: tuple[tuple[int, int], ...],
              base_dilation: tuple[int, ...], window_dilation: tuple[int, ...]) -> Any:
        counts, dtype = ctx.out_avals[0].shape, ctx.out_avals[0].dtype
        if not all(counts):
            return ctx.full(counts, 0, dtype)
        if not all(ctx.shape(x)):
            return ctx.full(counts, identity(dtype), dtype)
        if dtypes.is_floating(dtype) and dtype.itemsize < 4:
            x = ctx.convert(x, dtypes.float32)
        elif dtype == dtypes.bool_:
            x = ctx.convert(x, dtypes.uint8)
        left = _along(window_dimensions, window_strides, padding, base_dilation)
        while left:
            chosen = left[:2]
            if (len(chosen) == 2 and not _neighbours(ctx.shape(x), chosen)
                    or math.prod(window_dimensions[dim] for dim in chosen) > _SMALL):
                chosen = left[:1]
            left = left[len(chosen):]
            shape = tuple(counts[dim] if dim in chosen else size
                          for dim, size in enumerate(ctx.shape(x)))
            x = _slide(ctx, f"window_{kind}", [x], shape, chosen, window_dimensions,
                       window_strides, padding, window_dilation, base_dilation)
        return ctx.convert(x, dtype)
    return lower


def _selected(x: Array, counts: tuple[int, ...], select_prim: Primitive, window: tuple[int, ...],
              strides: tuple[int, ...], dilation: tuple[int, ...]) -> Iterator[Any]:
    """Goes through the elements of windows of a padded operand: yields (number, first positions,
    whether it is selected so far)."""
    best = None
    for number, offset in enumerate(np.ndindex(*window)):
        starts = tuple(k * step for k, step in zip(offset, dilation, strict=True))
        current = _strided(x, starts, counts, strides)
        if best is None:
            best, take = current, None
        else:
            take = not_p.bind(select_prim.bind(best, current))
            best = select(take, best, current)
        yield number, starts, take


def _gather_lower(ctx: Lowering, tangents: Sequence[Array], operand: object, *,
                  select_prim: Primitive, window_dimensions: tuple[int, ...],
                  window_strides: tuple[int, ...], padding: tuple[tuple[int, int], ...],
                  base_dilation: tuple[int, ...], window_dilation: tuple[int, ...]) -> Any:
    counts = ctx.out_avals[0].shape

    def compose(tangents: Array, x: Array) -> Any:
        if not all(counts):
            return full(counts, 0, tangents.dtype)
        config = _config(padding, base_dilation)
        x = pad(x, _least(select_prim, x.dtype), config)
        tangents = pad(tangents, 0, config)
        total: Any = None
        for _, starts, take in _selected(x, counts, select_prim, window_dimensions,
                                         window_strides, window_dilation):
            here = _strided(tangents, starts, counts, window_strides)
            total = here if take is None else select(take, total, here)
        return total

    return ctx.decompose(compose, tangents, operand)


def _scatter_lower(ctx: Lowering, source: np.ndarray, operand: object, *, select_prim: Primitive,
                   window_dimensions: tuple[int, ...], window_strides: tuple[int, ...],
                   padding: tuple[tuple[int, int], ...]) -> Any:
    counts, shape = ctx.in_avals[0].shape, ctx.in_avals[1].shape
    ones = (1,) * len(shape)
    if not all(counts) or not all(shape):
        return ctx.full(shape, 0, ctx.dtype(source))
    chosen = _along(window_dimensions, window_strides, padding, ones)
    if not chosen:
        return source
    if (ctx.selects_in_windows and len(chosen) <= 2 and _neighbours(shape, chosen)
            and ctx.dtype(source) == ctx.dtype(operand)):
        return _slide(ctx, f"select_scatter_{select_prim.name}", [operand, source], shape, chosen,
                      window_dimensions, window_strides, padding, ones, ones)

    def compose(source: np.ndarray, x: Array) -> Any:
        x = pad(x, _least(select_prim, x.dtype), _config(padding, ones))
        index = full(counts, 0, dtypes.int32)
        for number, _, take in _selected(x, counts, select_prim, window_dimensions,
                                         window_strides, ones):
            if take is not None:
                index = select(take, index, full(counts, number, dtypes.int32))
        total = full(shape, 0, source.dtype)
        zeros = full(counts, 0, source.dtype)
        for number, offset in enumerate(np.ndindex(*window_dimensions)):
            hit = eq(index, full(counts, number, dtypes.int32))
            config = []
            for size, count, stride, k, (before, _) in zip(
                    shape, counts, window_strides, offset, padding, strict=True):
                start = k - before
                config.append((start, size - (start + (count - 1) * stride + 1), stride - 1))
            total = add(total, pad(select(hit, zeros, source), 0, tuple(config)))
        return total

    return ctx.decompose(compose, source, operand)


# --- the primitives -------------------------------------------------------------------------------

def _batch_one(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def batch(size: int, operands: Sequence[Array], axes: Sequence[int], **params: object
              ) -> tuple[Array, int]:
        return primitive().bind(operands[0], **_with_axis(params, axes[0])), axes[0]
    return batch


def _batch_two(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def batch(size: int, operands: Sequence[Array], axes: Sequence[int], **params: object
              ) -> tuple[Array, int]:
        moved = [broadcast_leading(x, size) if axis is None else move_axis(x, axis, 0)
                 for x, axis in zip(operands, axes, strict=True)]
        return primitive().bind(*moved, **_with_axis(params, 0)), 0
    return batch


def _sum_transpose(cotangent: Array, operand: Linear, *, window_dimensions: tuple[int, ...],
                   window_strides: tuple[int, ...], padding: tuple[tuple[int, int], ...],
                   base_dilation: tuple[int, ...], window_dilation: tuple[int, ...]) -> list[Array]:
    """Each element gathers from the windows that held it: strides and holes exchanged."""
    pads = []
    for size, width, count, stride, (low, _), bd, wd in zip(
            operand.shape, window_dimensions, cotangent.shape, window_strides, padding,
            base_dilation, window_dilation, strict=True):
        before = dilated(width, wd) - 1 - low
        pads.append((before, dilated(size, bd) + dilated(width, wd) - 1
                     - dilated(count, stride) - before))
    return [reduce_window_sum_p.bind(
        cotangent, window_dimensions=window_dimensions, window_strides=base_dilation,
        padding=tuple(pads), base_dilation=window_strides, window_dilation=window_dilation)]


_PLAIN_WINDOWS = {"window_dimensions": STEPS, "window_strides": STEPS, "padding": PAIRS}
_WINDOWS = {**_PLAIN_WINDOWS, "base_dilation": STEPS, "window_dilation": STEPS}
_CONTRACT = takes(1, fitting.NUMBERS, fitting.window, **_WINDOWS)

reduce_window_sum_p = linear_primitive(
    "reduce_window_sum",
    contract=_CONTRACT,
    linearity=SUM,
    abstract=window_abstract,
    evaluate=_windowed_evaluate(np.add, lambda dtype: np.zeros((), dtype)[()]),
    lower=_windowed_lower("sum", lambda dtype: 0),
    transpose=_sum_transpose,
    batch=_batch_one(lambda: reduce_window_sum_p),
    factors=_factors,
    values=Values(may_give_nan=True),
    cost=costs.REDUCED_WINDOWS,
)


def _extreme(kind: str, ufunc: np.ufunc, identity: Callable[[np.dtype], Any],
             select_prim: Primitive) -> Primitive:
    def jvp(primals: Sequence[Array], tangents: Sequence[Array], **params: object
            ) -> tuple[Array, Array | None]:
        out = primitive.bind(*primals, **params)
        return out, select_and_gather_add_p.bind(
            tangents[0], primals[0], select_prim=select_prim, **params)

    primitive = Primitive(
        f"reduce_window_{kind}",
        contract=_CONTRACT,
        abstract=window_abstract,
        evaluate=_windowed_evaluate(ufunc, identity),
        lower=_windowed_lower(kind, identity),
        jvp=jvp,
        batch=_batch_one(lambda: primitive),
        factors=_factors,
        cost=costs.REDUCED_WINDOWS,
    )
    return primitive


reduce_window_max_p = _extreme("max", np.maximum,
                               lambda dtype: dtypes.extremes(dtype)[0], ge_p)
reduce_window_min_p = _extreme("min", np.minimum,
                               lambda dtype: dtypes.extremes(dtype)[1], le_p)


def _selection_jvp(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Linear in the first operand; the choice that the second makes is constant."""
    def jvp(primals: Sequence[Array], tangents: Sequence[Array], **params: object
            ) -> tuple[Array, Array | None]:
        out = primitive().bind(*primals, **params)
        if tangents[0] is None:
            return out, None
        return out, primitive().bind(tangents[0], primals[1], **params)
    return jvp


def _gather_transpose(cotangent: Array, tangents: Linear, operand: Array, *,
                      base_dilation: tuple[int, ...], window_dilation: tuple[int, ...],
                      **params: Any) -> list[Array | None]:
    if any(d != 1 for d in window_dilation):
        raise NotImplementedError(
            "The transpose of select_and_gather_add (reverse-mode differentiation of the extremes "
            f"of windows) needs a window_dilation of 1, got {window_dilation}.")
    if all(d == 1 for d in base_dilation):
        return [select_and_scatter_add_p.bind(cotangent, operand, **params), None]
    # No window selects what is between the elements.
    least = _least(params["select_prim"], operand.aval.dtype)
    spread = pad(operand, least, [(0, 0, d - 1) for d in base_dilation])
    result = select_and_scatter_add_p.bind(cotangent, spread, **params)
    return [slice_p.bind(result, start_indices=(0,) * len(base_dilation),
                         limit_indices=result.aval.shape, strides=base_dilation), None]


def _scatter_transpose(cotangent: Array, source: np.ndarray, operand: Array, **params: object
                       ) -> Any:
    ones = (1,) * len(operand.shape)
    return [select_and_gather_add_p.bind(
        cotangent, operand, base_dilation=ones, window_dilation=ones, **params), None]


select_and_gather_add_p = Primitive(
    "select_and_gather_add",
    contract=takes(
        2, fitting.same_shapes, fitting.window, select_prim=one_of(ge_p, le_p),
        **_WINDOWS),
    linearity=REDUCED_FIRST,
    abstract=lambda tangents, operand, *, select_prim, **params: window_abstract(
        tangents, **params),
    evaluate=_gather_evaluate,
    lower=_gather_lower,
    jvp=_selection_jvp(lambda: select_and_gather_add_p),
    transpose=_gather_transpose,
    batch=_batch_two(lambda: select_and_gather_add_p),
    factors=_factors,
    cost=costs.WINDOWS,
)

select_and_scatter_add_p = Primitive(
    "select_and_scatter_add",
    contract=takes(
        2, fitting.selects, select_prim=one_of(ge_p, le_p),
        **_PLAIN_WINDOWS),
    linearity=REDUCED_FIRST,
    abstract=lambda source, operand, **params: ShapedArray(operand.shape, source.dtype),
    evaluate=_scatter_evaluate,
    lower=_scatter_lower,
    jvp=_selection_jvp(lambda: select_and_scatter_add_p),
    transpose=_scatter_transpose,
    batch=_batch_two(lambda: select_and_scatter_add_p),
    factors=_factors,
    cost=costs.WINDOWS,
)
