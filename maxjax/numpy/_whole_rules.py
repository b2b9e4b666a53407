"""NumPy rules for functions that otherwise are several operations."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from maxjax._base import native
from maxjax._primitives.gather_plan import GatherScatterMode, all_in_bounds
from maxjax._primitives.linalg_factors import KEPT_MASK, lower_part, upper_part
from maxjax._primitives.widths import native_result

_WIDE = 512       # the row length from which a loop over blocks of rows is faster
_ROWS = 64        # rows in a block
_BLOCK = 32768    # elements of several arrays that fit in the cache


def hypot(x: Any, y: Any) -> Any:
    return _native("hypot", x, y)


def logaddexp(x: Any, y: Any) -> Any:
    return _native("logaddexp", x, y)


def logaddexp2(x: Any, y: Any) -> Any:
    return _native("logaddexp2", x, y)


def spacing(x: Any) -> Any:
    """The float away from zero is the one with the next bits."""
    result = _native("spacing", x)
    if result is not None:
        return result
    word = np.dtype(f"u{x.dtype.itemsize}")
    return (x.view(word) + word.type(1)).view(x.dtype) - x


def frexp(x: Any) -> Any:
    result = _native("frexp", x, out_dtypes=(x.dtype, np.dtype(np.int32)))
    if result is not None:
        return result
    mantissa, exponent = np.frexp(x)
    return mantissa, np.where(np.isfinite(x), exponent, np.int32(0))


def ldexp(x: Any, shift: Any) -> Any:
    # Shifts of any integer dtype; beyond these bounds every float becomes 0 or infinite.
    return np.ldexp(x, np.clip(shift.astype(np.float64), -9999, 9999).astype(np.int32))


def sinc_series(dtype: np.dtype) -> list[float]:
    """The coefficients of ``sin(pi x) / (pi x) - 1``, divided by ``x**2``, in ``x**2``: Taylor's,
    as many as count where ``abs(x)`` is at most 0.5."""
    return [(-1) ** k * math.pi ** (2 * k) / math.factorial(2 * k + 1)
            for k in range(1, 7 if dtype.itemsize == 4 else 12)]


def complex_sinc_series(dtype: np.dtype) -> list[float]:
    """The coefficients of ``sin(z) / z`` in ``z**2``: Taylor's, as many as count where ``abs(z)``
    is below 1."""
    return [(-1) ** k / math.factorial(2 * k + 1) for k in range(6 if dtype.itemsize == 8 else 10)]


def modf(x: Any) -> Any:
    """Unlike C's, the fraction of an infinity is NaN."""
    integral = np.trunc(x)
    return x - integral, integral


def heaviside(x: Any, at_zero: Any) -> Any:
    shape = np.broadcast_shapes(x.shape, at_zero.shape)
    result = np.greater(x, 0, out=np.empty(shape, bool)).astype(x.dtype)
    np.copyto(result, at_zero, where=x == 0)
    np.copyto(result, x, where=x != x)      # NaN
    return result


def nan_to_num(x: Any, nan: Any, above: Any, below: Any) -> Any:
    if not x.shape or nan.shape or above.shape or below.shape:
        return None
    finite = np.isfinite(x)
    if finite.all():
        return x
    result = np.array(x)
    odd = np.nonzero(~finite)
    kind = x[odd]
    # One after the other: what stands for NaN may be infinite, and is replaced then.
    kind = np.where(np.isnan(kind), nan, kind)
    kind = np.where(kind == np.inf, above, kind)
    result[odd] = np.where(kind == -np.inf, below, kind)
    return result


def triangle(x: Any, *, k: int, upper: bool) -> Any:
    """By blocks of rows for a wide matrix: to one side of the diagonal a block needs no mask."""
    rows, columns = x.shape[-2:]
    if rows * columns <= KEPT_MASK:
        return upper_part(x, k) if upper else lower_part(x, k)
    if columns < _WIDE:
        return None
    result = np.array(x, order="C")
    zero = np.zeros((), x.dtype)
    k = min(max(k, -rows), columns)     # all diagonals beyond the corners are equivalent
    first = k + (not upper)             # the end of the first row's lower part
    ends = np.arange(first, first + rows)[:, None]
    indices = np.arange(columns)
    for top in range(0, rows, _ROWS):
        block = result[..., top:top + _ROWS, :]
        left = min(max(first + top, 0), columns)
        right = min(max(first + top + _ROWS, 0), columns)
        if upper:
            block[..., :left] = zero
        else:
            block[..., right:] = zero
        beyond = indices[left:right] >= ends[top:top + _ROWS]
        np.copyto(block[..., left:right], zero, where=beyond != upper)
    return result


def linspace(start: Any, stop: Any, *, num: int, endpoint: bool) -> Any:
    """By blocks that stay in the cache from one operation to the next.

    Rounding happens in the same places as in the function's own operations.
    """
    dtype = start.dtype.type
    steps = num - endpoint
    scale = 0.5 ** steps.bit_length()
    result = np.empty((num, *start.shape), dtype)
    rows = max(1, _BLOCK // max(1, start.size))
    ramp = np.arange(rows, dtype=np.float64).reshape(-1, *(1,) * start.ndim)
    with np.errstate(all="ignore"):
        factor = dtype(1) / dtype(steps * scale)
    half, last = start * dtype(0.5), stop * dtype(0.5)
    difference = last - np.where(np.isinf(half), dtype(0), half)
    for top in range(0, steps, rows):
        part = result[top:min(top + rows, steps)]
        position = (ramp[:len(part)] + top).astype(dtype) * dtype(scale)
        np.multiply(difference, position, out=part)
        part *= factor
        part += half
        part *= dtype(2)
    if endpoint:
        result[-1] = stop
    return result


def isclose(x: Any, y: Any, relative: Any, absolute: Any, *, equal_nan: bool) -> Any:
    if relative.shape or absolute.shape or x.shape != y.shape:
        return None
    close = _close(x, y, relative, absolute)
    if equal_nan:
        np.logical_or(close, (x != x) & (y != y), out=close)
    return close


def allclose(x: Any, y: Any, *, relative: float, absolute: float, equal_nan: bool) -> Any:
    kind = x.dtype.type
    close = isclose(x, y, kind(relative), kind(absolute), equal_nan=equal_nan)
    return None if close is None else np.asarray(np.count_nonzero(close) == close.size)


def _close(x: Any, y: Any, relative: Any, absolute: Any) -> np.ndarray:
    if x.dtype == np.float32 and x.size >= native.FEWEST:
        found = native.find("isclose", x.dtype, x.size)
        if found is not None:
            result = np.empty(x.shape, np.bool_)
            found((np.ascontiguousarray(x), np.ascontiguousarray(y), relative, absolute, result),
                  (x.size,), x.size)
            return result
    distance = np.asarray(x - y)
    np.abs(distance, out=distance)
    bound = np.asarray(np.abs(y))
    np.multiply(bound, relative, out=bound)
    np.add(bound, absolute, out=bound)
    close = np.asarray(distance <= bound)
    np.logical_and(close, np.isfinite(y), out=close)
    np.logical_or(close, x == y, out=close)
    return close


def floor_divide(x: Any, y: Any) -> Any:
    return np.floor_divide(x, y) if y.all() else None


def remainder(x: Any, y: Any) -> Any:
    return np.remainder(x, y) if y.all() else None


def power(x: Any, y: Any) -> Any:
    return _native("integer_power", x, y)


def searchsorted(x: Any, y: Any, *, side: Literal["left", "right"], dtype: Any) -> Any:
    if x[-1] != x[-1] or not (x[:-1] <= x[1:]).all():     # with NaN, or unsorted
        return None
    found = None
    if y.size >= native.FEWEST and dtype == np.int32 and x.dtype in native.LEAST["searchsorted"]:
        found = native.find("searchsorted", x.dtype, y.size)
    if found is None:
        return np.searchsorted(x, y, side).astype(dtype)
    x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)
    result = np.empty(y.shape, np.int32)
    found((x, y, result), (x.size, side == "right", y.size), y.size)
    return result


def take(x: Any, indices: Any, *, axis: int, mode: GatherScatterMode, **options: Any) -> Any:
    """Modes do not matter if all indices are in bounds; -1 is the last unless it is clipped."""
    if not indices.size or not x.size:
        return None
    size = x.shape[axis]
    if all_in_bounds(indices, size - 1):
        return x.take(indices, axis, None, "clip")
    least = int(indices.min())
    if least < (0 if mode is GatherScatterMode.CLIP else -size) or indices.max() >= size:
        return None
    return x.take(indices.astype(np.intp), axis, mode="wrap" if least < 0 else "clip")


def take_along_axis(x: Any, indices: Any, *, axis: int | None, **options: Any) -> Any:
    """As ``take``, where all indices are in bounds and other axes are of the same sizes."""
    rank = x.ndim
    if (axis is None or indices.ndim != rank or not -rank <= axis < rank
            or not x.size or not indices.size or not all_in_bounds(indices, x.shape[axis] - 1)):
        return None
    if rank == 1:
        return x.take(indices, None, None, "clip")
    if axis not in (-1, rank - 1):
        turned = take_along_axis(x.swapaxes(axis, -1), indices.swapaxes(axis, -1), axis=-1)
        return None if turned is None else turned.swapaxes(axis, -1)
    if x.shape[:-1] != indices.shape[:-1]:
        return None
    size = x.shape[-1]
    starts = np.arange(0, x.size, size).reshape(-1, 1)
    places = indices.reshape(-1, indices.shape[-1]) + starts
    return x.reshape(-1).take(places, None, None, "clip").reshape(indices.shape)


def digitize(edges: Any, x: Any, *, side: Literal["left", "right"]) -> Any:
    """The edges increase or decrease."""
    if edges.dtype != x.dtype:
        return None
    rising = searchsorted(edges, x, side=side, dtype=np.int32)
    if rising is not None or edges[-1] >= edges[0]:
        return rising
    falling = searchsorted(edges[::-1], x, side=side, dtype=np.int32)
    return None if falling is None else np.int32(edges.size) - falling


def _native(name: str, *operands: Any, out_dtypes: Any = ()) -> Any:
    if (max(operand.size for operand in operands) < native.FEWEST
            or operands[0].dtype not in native.LEAST[name]):
        return None
    return native_result(name, *operands, out_dtypes=out_dtypes)
