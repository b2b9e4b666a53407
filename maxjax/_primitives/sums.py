"""Sums whose rounding errors grow as those of pairwise sums do, whatever the axes.

NumPy adds pairwise along the axis that is innermost in memory, and one row after the other along
any other: the error of the latter grows with the number of rows. Here rows are added in blocks,
the sums of the blocks in turn, and so on. Running sums are computed in float64, which holds what
float32 rounds, and those of float64 in blocks as well.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.typing import Shape

# So many terms are added one after the other: NumPy's pairwise sums add 16 of each of eight lanes.
FEW = 64
# More rows are added up in blocks of this many.
_BLOCK = 32
# Narrow rows are put side by side, to this many elements: NumPy takes a row at a time.
_WIDE = 4096


def summing(shape: Shape, axes: tuple[int, ...], dtype: np.dtype) -> Callable[..., Any]:
    """Sums arrays of a shape, of floats or complex numbers, in their own precision."""
    add_reduce = np.add.reduce
    axis = axes[0] if len(axes) == 1 else axes
    count = math.prod([shape[axis] for axis in axes])
    if count == 1:      # NumPy adds to 0, which loses the sign of a negative zero
        result = tuple(size for axis, size in enumerate(shape) if axis not in axes)
        return lambda x: x.reshape(result).astype(dtype, copy=False)
    if count <= FEW:
        return lambda x: add_reduce(x, axis, dtype)
    groups = _groups(shape, axes, range(len(shape)))
    if len(groups) == 1 or len(groups) == 2 and groups[1][0]:
        # Pairwise, as rows lie in memory.
        return lambda x: (add_reduce(x, axis, dtype) if x.flags.c_contiguous
                          else _sum_as_it_lies(x, axes))
    if sum(reduced for reduced, _ in groups) > 1:
        return lambda x: _sum_as_it_lies(x, axes)
    outer = 1 if groups[0][0] else groups[0][1]
    middle = (outer, groups[-2][1], groups[-1][1])
    result = tuple(size for axis, size in enumerate(shape) if axis not in axes)

    def sum_of_rows(x: np.ndarray) -> Any:
        if x.flags.c_contiguous:
            return _sum_of_rows(x.reshape(middle)).reshape(result)
        return _sum_as_it_lies(x, axes)
    return sum_of_rows


_summing = functools.lru_cache(4096)(summing)


def sum_of(x: np.ndarray, axes: tuple[int, ...]) -> Any:
    """The sum of an array of floats or complex numbers, in their own precision."""
    return _summing(x.shape, axes, x.dtype)(x)


def _groups(shape: Shape, axes: tuple[int, ...], order: Iterable[int]) -> list[tuple[bool, int]]:
    """Dimensions in an order, neighbours that are reduced, or kept, as one: whether, and sizes."""
    groups: list[tuple[bool, int]] = []
    for axis in order:
        reduced, size = axis in axes, shape[axis]
        if size == 1:
            continue
        if groups and groups[-1][0] == reduced:
            groups[-1] = reduced, groups[-1][1] * size
        else:
            groups.append((reduced, size))
    return groups


def _sum_as_it_lies(x: np.ndarray, axes: tuple[int, ...]) -> Any:
    """The sum of what may lie in any order in memory."""
    order = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    kept = [axis for axis in order if axis not in axes]
    shape = tuple(x.shape[axis] for axis in kept)
    groups = _groups(x.shape, axes, order)
    # A view, but where elements lie apart.
    x = x.transpose(order).reshape([size for _, size in groups])
    while any(reduced for reduced, _ in groups):
        # The innermost is the quickest; else the longest leaves least to the others.
        axis = max((axis for axis, (reduced, _) in enumerate(groups) if reduced),
                   key=lambda axis: (axis == len(groups) - 1, groups[axis][1]))
        outer, count, inner = (math.prod([size for _, size in part]) for part in (
            groups[:axis], groups[axis:axis + 1], groups[axis + 1:]))
        if inner == 1:
            x = np.add.reduce(x.reshape(outer, count), 1)
        else:
            x = _sum_of_rows(x.reshape(outer, count, inner))
        del groups[axis]
        x = x.reshape([size for _, size in groups])
    x = x.reshape(shape)
    if kept != sorted(kept):
        x = x.transpose([kept.index(axis) for axis in sorted(kept)])
    return x if x.ndim else x[()]


def _sum_of_rows(x: np.ndarray) -> Any:
    """The sum along the middle axis of (outer, count, inner)."""
    outer, count, inner = x.shape
    for block, blocks, group in _levels(count, inner):
        sums = blocks * group
        done = sums * block
        whole = x if done == count else x[:, :done]
        if blocks == 1:
            parts = np.add.reduce(whole.reshape(outer, block, group * inner), 1)
        else:
            parts = np.add.reduce(whole.reshape(outer, blocks, block, group * inner), 2)
        parts = parts.reshape(outer, sums, inner)
        if 0 < count - done <= sums:
            parts[:, :count - done] += x[:, done:]
        elif done < count:
            parts[:, 0] += _sum_of_rows(x[:, done:])
        x, count = parts, sums
    return np.add.reduce(x, 1)


@functools.lru_cache(4096)
def _levels(count: int, inner: int) -> tuple[tuple[int, int, int], ...]:
    """How rows are added, until few are left: (rows that are added to one, blocks of them, rows
    that lie side by side)."""
    levels = []
    while count > FEW:
        block = _BLOCK
        if count <= FEW * FEW:      # all of them, if possible: what is left is one more operation
            block = max((size for size in range(count // FEW, FEW + 1)
                         if size and count % size == 0 and count // size <= FEW), default=block)
        height = count // block     # of one block, as tall as there are to be sums
        group = height if height * inner <= _WIDE else max(1, _WIDE // inner)
        levels.append((block, height // group, group))
        count = height // group * group
    return tuple(levels)


# --- running sums ---------------------------------------------------------------------------------

Accumulate = Callable[[np.ndarray, int], Any]      # along an axis, one element after the other


def from_zero(x: np.ndarray, axis: int) -> np.ndarray:
    """The array with 0 added to its first elements along an axis.

    XLA's running sums begin with 0: those of negative zeros are 0.
    """
    first = (slice(None),) * axis + (slice(0, 1),)
    if x[first].all() and not dtypes.is_complex(x.dtype):
        return x        # none of them is zero
    x = np.array(x)
    x[first] += np.zeros((), x.dtype)
    return x


def accumulated(ufunc: np.ufunc, x: np.ndarray, axis: int) -> Any:
    """``ufunc.accumulate`` for a running sum or product, in the dtype of ``x``."""
    dtype = x.dtype
    if not dtypes.is_inexact(dtype) or x.shape[axis] < 2:
        return ufunc.accumulate(x, axis, dtype)
    if ufunc is np.add:
        x = from_zero(x, axis)

    def plain(x: np.ndarray, axis: int) -> Any:
        return ufunc.accumulate(x, axis, x.dtype)

    wide = np.dtype(np.complex128 if dtypes.is_complex(dtype) else
                    np.float32 if dtype.itemsize < 4 else np.float64)
    if dtype == wide:
        # Each factor of a product adds a rounding error, whatever the order: blocks gain nothing.
        return plain(x, axis) if ufunc is np.multiply else in_blocks(plain, ufunc, x, axis)
    return _sticking(ufunc, x, plain(x.astype(wide), axis), axis)


def _sticking(ufunc: np.ufunc, x: np.ndarray, total: np.ndarray, axis: int) -> Any:
    """``total`` in the dtype of ``x``, in which what has become infinite, or zero, stays so."""
    out = total.astype(x.dtype)
    # Where that is not finite, something may have.
    if np.isfinite(np.add.reduce(out, None, total.dtype)) and (ufunc is np.add or out.all()):
        return out
    if dtypes.is_complex(x.dtype):
        return ufunc.accumulate(x, axis, x.dtype)
    lost = np.isinf(out) & np.isfinite(total)
    if ufunc is np.multiply:
        lost |= (out == 0) & (total != 0)
    if not lost.any():
        return out
    first = np.expand_dims(lost.argmax(axis), axis)
    x = x.astype(total.dtype)
    value, there, factor = (np.take_along_axis(values, first, axis) for values in (out, lost, x))
    value = value.astype(x.dtype)
    if ufunc is np.multiply:
        value = np.copysign(value, factor)
    np.put_along_axis(x, first, np.where(there, value, factor), axis)
    return ufunc.accumulate(x, axis, x.dtype).astype(out.dtype)


def in_blocks(accumulate: Accumulate, combine: Callable[..., np.ndarray], x: np.ndarray, axis: int
              ) -> Any:
    """What ``accumulate`` gives along an axis, by blocks: their totals are accumulated in turn, and
    combined with each element of the next block."""
    count = x.shape[axis]
    if count <= FEW:
        return accumulate(x, axis)
    shape = x.shape
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1:])
    x = x.reshape(outer, count, inner)
    blocks = count // _BLOCK
    done = blocks * _BLOCK
    out = np.empty(x.shape, x.dtype)
    parts = accumulate(x[:, :done].reshape(outer, blocks, _BLOCK, inner), 2)
    totals = in_blocks(accumulate, combine, parts[:, :, -1], 1)
    whole = out[:, :done].reshape(outer, blocks, _BLOCK, inner)
    whole[:, 0] = parts[:, 0]
    whole[:, 1:] = combine(totals[:, :-1, None], parts[:, 1:])
    if done < count:
        out[:, done:] = combine(totals[:, -1:], accumulate(x[:, done:], 1))
    return out.reshape(shape)
