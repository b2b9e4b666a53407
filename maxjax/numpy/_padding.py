"""pad, in all of NumPy's modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._higher_order.named_calls import named
from maxjax._ir.dimensions import constant_size, is_dimension, larger
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import layout, slicing
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.slicing import pad_p
from maxjax.numpy import _creation as creation
from maxjax.numpy import _joining as joining
from maxjax.numpy import _moments as moments
from maxjax.numpy import _quantiles as quantiles
from maxjax.numpy import _ranges as ranges
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _repeating as repeating
from maxjax.numpy import _rounding as rounding
from maxjax.numpy import _shape as shapes
from maxjax.numpy._at_once import at_once
from maxjax.numpy._promotion import apart, as_array, cast, check_arraylike, concrete, static
from maxjax.numpy._where import where

__all__ = ["pad"]

_OPTIONS = {
    "constant": {"constant_values"}, "edge": set(), "linear_ramp": {"end_values"},
    "maximum": {"stat_length"}, "mean": {"stat_length"}, "median": {"stat_length"},
    "minimum": {"stat_length"}, "reflect": {"reflect_type"}, "symmetric": {"reflect_type"},
    "wrap": set(), "empty": set(),
}
# Padding that consists of more runs of consecutive positions than this is gathered by index.
_MOST_RUNS = 4
_STATISTICS: dict[str, Callable[..., Array]] = {
    "maximum": reductions.max, "minimum": reductions.min, "mean": moments.mean,
    "median": quantiles.median,
}


@at_once
def pad(array: ArrayLike, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    """The array with borders of ``pad_width`` elements.

    Args:
      array: an array.
      pad_width: a number; a pair (before, after); or such a pair for each axis.
      mode: "constant", "edge", "linear_ramp", "maximum", "mean", "median", "minimum", "reflect",
        "symmetric", "wrap", "empty", or a function of (vector, widths, axis, options).
      kwargs: options of the mode, as NumPy has them: "constant": ``constant_values`` (0 by
        default); "linear_ramp": ``end_values``; "maximum", "mean", "median" and "minimum":
        ``stat_length``; "reflect" and "symmetric": ``reflect_type``.

    Returns:
      An array of ``array``'s dtype, each size greater by the two widths.

    Raises:
      ValueError: a width is negative, or does not fit the dimensions, or the mode has no such
        option.
      NotImplementedError: there is no such mode.
      TypeError: a width is no integer.

    See also: ``concatenate``, ``roll``, ``lax.pad``.

    >>> jnp.pad(jnp.array([1, 2, 3]), 2, mode="reflect")
    Array([3, 2, 1, 2, 3, 2, 1], dtype=int32)
    >>> jnp.pad(jnp.array([1, 2, 3]), (1, 2), constant_values=9)
    Array([9, 1, 2, 3, 9, 9], dtype=int32)
    """
    check_arraylike("pad", array)
    x = as_array(array)
    widths = _pad_widths(pad_width, x.ndim)
    if callable(mode):
        return _by_function(x, widths, mode, kwargs)
    if mode not in _OPTIONS:
        raise NotImplementedError(f"Unimplemented padding mode '{mode}' for np.pad.")
    unsupported = set(kwargs) - _OPTIONS[mode]
    if unsupported:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unsupported}")
    if any(width < 0 for pair in widths for width in pair):
        raise ValueError("index can't contain negative values")
    if mode == "constant":
        values = kwargs.get("constant_values", 0)
        if isinstance(values, (bool, int, float, complex, np.generic, Array)) and not np.ndim(
                values):
            return _pad(x, values, widths=tuple(widths))
        return _constant(x, widths, values)
    if mode == "empty":
        return slicing.pad(x, 0, tuple((low, high, 0) for low, high in widths))
    if mode == "linear_ramp":
        return _ramp(x, widths, kwargs.get("end_values", 0))
    if mode in _STATISTICS:
        if isinstance(kwargs.get("stat_length"), Array):
            static(kwargs["stat_length"], "stat_length")
        return _statistic(x, widths, mode, kwargs.get("stat_length"))
    return _by_position(x, widths, mode, kwargs.get("reflect_type", "even"))


def _pad_widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    pad_width = _known(pad_width)
    widths = pad_width if _has_dimension(pad_width) else np.asarray(pad_width)
    if rank and isinstance(widths, np.ndarray) and widths.size and widths.dtype.kind not in "iu":
        raise TypeError("`pad_width` must be of integral type.")
    return [(constant_size(low), constant_size(high))
            for low, high in _for_each_axis(widths, rank, "pad_width")]


def _has_dimension(width: Any) -> bool:
    return any(map(_has_dimension, width)) if isinstance(width, (list, tuple)) else is_dimension(
        width)


def _known(width: Any) -> Any:
    if isinstance(width, (list, tuple)):
        return [_known(part) for part in width]
    return concrete(width, "pad_width argument of jnp.pad")


def _for_each_axis(value: Any, rank: int, name: str) -> list[Any]:
    """A pair for each axis, of a number, a pair, or one or several pairs."""
    shape = _nested_shape(value)
    if shape in ((), (1,)):
        number = (value if is_dimension(value) else value[0] if isinstance(value, (list, tuple))
                  else np.reshape(value, ())[()])
        return [(number, number)] * rank
    if shape == (2,):
        return [(value[0], value[1])] * rank
    if shape == (1, 2):
        return [(value[0][0], value[0][1])] * rank
    if shape == (rank, 2):
        return [(value[i][0], value[i][1]) for i in range(rank)]
    if shape == (rank, 1) and name != "pad_width":
        return [(value[i][0], value[i][0]) for i in range(rank)]
    raise ValueError(f"jnp.pad: {name} with nested structure {value} is not broadcastable to "
                     f"({rank}, 2)")


def _nested_shape(value: Any) -> tuple[int, ...]:
    """The shape of nested lists of numbers, which may be traced; uneven lists have no size."""
    if not isinstance(value, (list, tuple)):
        return () if is_dimension(value) else np.shape(value)
    parts = {_nested_shape(part) for part in value}
    return (len(value), *(parts.pop() if len(parts) == 1 else (-1,) if parts else ()))


@named("_pad", "widths")
def _pad(x: Array, value: Any, *, widths: tuple[tuple[int, int], ...]) -> Array:
    return _constant(x, list(widths), value)


def _constant(x: Array, widths: list[tuple[int, int]], values: Any) -> Array:
    if not isinstance(values, (list, tuple)):
        values = creation.asarray(values) if not isinstance(values, (int, float)) else values
    if isinstance(values, (Array, int, float, complex, np.generic)) and not np.shape(values):
        config = tuple((low, high, 0) for low, high in widths)
        if all(entry == (0, 0, 0) for entry in config):
            return apart(x)
        return pad_p.bind(x, cast(values, x.dtype, x.weak_type), padding_config=config)
    for axis, ((low, high), (before, after)) in enumerate(zip(
            widths, _for_each_axis(values, x.ndim, "constant_values"), strict=True)):
        for entry, value in (((low, 0, 0), before), ((0, high, 0), after)):
            if entry != (0, 0, 0):
                entries = [(0, 0, 0)] * x.ndim
                entries[axis] = entry
                x = pad_p.bind(x, cast(value, x.dtype, x.weak_type),
                               padding_config=tuple(entries))
    return x


def _positions(size: int, low: int, high: int, mode: str) -> np.ndarray:
    """The index of the element at each position of the padded line; of "edge" see there."""
    places = np.arange(-low, size + high)
    if mode == "wrap":
        return places % size
    period = 2 * size if mode == "symmetric" else max(1, 2 * (size - 1))
    places = places % period
    return np.where(places < size, places,
                    (2 * size - 1 if mode == "symmetric" else period) - places)


def _open_positions(size: Any, low: Any, high: Any, mode: str) -> Array:
    """``_positions`` where sizes are symbols: a traced array of int32."""
    places = ranges.arange(low + size + high, dtype=dtypes.int32) - low
    if mode == "wrap":
        return places % size
    period = 2 * size if mode == "symmetric" else larger(2 * size - 2, 1)
    places = places % period
    mirrored = (2 * size - 1 if mode == "symmetric" else period) - places
    return where(places < size, places, mirrored)


def _by_position(x: Array, widths: list[tuple[int, int]], mode: str, reflect_type: str) -> Array:
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"unsupported value for reflect_type, {reflect_type!r}")
    for axis, (low, high) in enumerate(widths):
        size = x.shape[axis]
        if not (low or high):
            continue
        if size == 0:
            raise ValueError(
                f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'")
        if reflect_type == "odd":
            x = _odd(x, axis, low, high, mode)
            continue
        if mode == "edge":
            x = joining.joined([_run(x, axis, 0, low, 0), x, _run(x, axis, size - 1, high, 0)],
                               axis)
            continue
        if any(map(is_dimension, (size, low, high))):
            x = shapes.take_in_bounds(x, _open_positions(size, low, high, mode), axis)
            continue
        places = _positions(size, low, high, mode)
        before, after = (_runs(part) for part in (places[:low], places[low + size:]))
        if len(before) + len(after) > _MOST_RUNS:
            x = shapes.take_in_bounds(x, as_array(places.astype(np.int32)), axis)
        else:
            x = joining.joined([*(_run(x, axis, *run) for run in before), x,
                                *(_run(x, axis, *run) for run in after)], axis)
    return x


def _runs(places: np.ndarray) -> list[tuple[int, int, int]]:
    """Positions as runs: the first one, how many there are, and the step between them."""
    runs: list[tuple[int, int, int]] = []
    for place in places.tolist():
        if runs:
            first, count, step = runs[-1]
            if count == 1 and abs(place - first) <= 1:
                runs[-1] = first, 2, place - first
                continue
            if count > 1 and place == first + count * step:
                runs[-1] = first, count + 1, step
                continue
        runs.append((place, 1, 1))
    return runs


def _run(x: Array, axis: int, first: int, count: int, step: int) -> Array:
    if step == 0:
        line = slicing.slice_in_dim(x, first, first + 1, axis)
        return shapes.broadcast_to(line, (*x.shape[:axis], count, *x.shape[axis + 1:]))
    if step == 1:
        return slicing.slice_in_dim(x, first, first + count, axis)
    return repeating.flip(slicing.slice_in_dim(x, first - count + 1, first + 1, axis), axis)


def _odd(x: Array, axis: int, low: int, high: int, mode: str) -> Array:
    """Reflects about the edge elements: twice the edge minus the mirrored element."""
    offset = 1 if mode == "reflect" else 0
    while low or high:
        size = x.shape[axis]
        room = size - offset
        before, after = min(low, room), min(high, room)
        if room <= 0:       # one element, which is repeated
            return _by_position(x, [(low, high) if i == axis else (0, 0) for i in range(x.ndim)],
                                "edge", "even")
        parts = [x]
        if before:
            mirrored = repeating.flip(
                slicing.slice_in_dim(x, offset, offset + before, axis), axis)
            parts.insert(0, 2 * slicing.slice_in_dim(x, 0, 1, axis) - mirrored)
        if after:
            mirrored = repeating.flip(
                slicing.slice_in_dim(x, size - offset - after, size - offset, axis), axis)
            parts.append(2 * slicing.slice_in_dim(x, size - 1, size, axis) - mirrored)
        x = joining.joined(parts, axis)
        low, high = low - before, high - after
    return x


def _ramp(x: Array, widths: list[tuple[int, int]], end_values: Any) -> Array:
    for axis, ((low, high), (before, after)) in enumerate(zip(
            widths, _for_each_axis(end_values, x.ndim, "end_values"), strict=True)):
        size = x.shape[axis]
        if size == 0:
            raise TypeError(f"can't extend empty axis {axis} by a ramp")
        first = slicing.slice_in_dim(x, 0, 1, axis)
        last = slicing.slice_in_dim(x, size - 1, size, axis)
        parts = [x]
        if low:
            parts.insert(0, _line(cast(before, x.dtype), first, low, axis))
        if high:
            parts.append(repeating.flip(_line(cast(after, x.dtype), last, high, axis), axis))
        x = joining.joined(parts, axis)
    return x


def _line(start: Any, stop: Array, count: int, axis: int) -> Array:
    line = ranges.linspace(start, shapes.squeeze(stop, axis), count, endpoint=False, axis=axis,
                             dtype=stop.dtype)
    return convert_element_type(line, stop.dtype, stop.aval.weak_type)


def _statistic(x: Array, widths: list[tuple[int, int]], mode: str, stat_length: Any) -> Array:
    lengths = None if stat_length is None else _for_each_axis(
        stat_length if _has_dimension(stat_length) else np.asarray(stat_length), x.ndim,
        "stat_length")
    for axis, (low, high) in enumerate(widths):
        size = x.shape[axis]
        samples = [x, x]
        if lengths is not None:
            before, after = [min(constant_size(length), size) for length in lengths[axis]]
            samples = [slicing.slice_in_dim(x, 0, before, axis),
                       slicing.slice_in_dim(x, size - after, size, axis)]
        parts = [x]
        for width, sample, place in ((low, samples[0], 0), (high, samples[1], 2)):
            if not width:
                continue
            value = _STATISTICS[mode](sample, axis=axis, keepdims=True)
            if dtypes.is_integer(x.dtype):
                value = rounding.round(value)
            value = convert_element_type(value, x.dtype)
            shape = tuple(width if i == axis else n for i, n in enumerate(x.shape))
            block = shapes.broadcast_to(value, shape)
            parts.insert(0, block) if place == 0 else parts.append(block)
        x = joining.joined(parts, axis)
    return x


def _by_function(x: Array, widths: list[tuple[int, int]], function: Callable[..., Any],
                 options: dict[str, Any]) -> Array:
    x = slicing.pad(x, 0, tuple((low, high, 0) for low, high in widths))
    for axis, pair in enumerate(widths):
        moved = shapes.moveaxis(x, axis, -1)
        lines = layout.reshape(moved, (moved.size // max(moved.shape[-1], 1),
                                           moved.shape[-1]))
        rows = [function(row, pair, axis, options) for row in lines]
        x = shapes.moveaxis(layout.reshape(joining.stack(rows), moved.shape), -1, axis)
    return x
