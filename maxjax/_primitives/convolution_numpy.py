"""The NumPy rule of conv_general_dilated: views of windows, and BLAS.

Two ways, each with one product of matrices:
- gather: a matrix with a row for each position of the result and a column for each element of a
  window, times the window. The matrix has C K columns.
- scatter (strides of 1): each element of lhs times the whole window, then the K results are added
  where they belong. That matrix has O K columns: better where the result has fewer features, and
  without products by the zeros of a dilated lhs. It is the adjoint of the first.

Which dimension runs fastest in memory decides how fast the matrix is filled: the one of lhs stays
so where its runs are long enough, else the longest is chosen. Results keep that order (they are
transposed views), so that the next convolution finds it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax._primitives.contraction import convert_operand, convert_result, integer_matmul

_SHORT_LINE = 1024          # elements; longer lines are windowed, in products of matrices
_LONG_RUN = 16              # elements; shorter copies are dominated by NumPy's loop
_CHUNK_BYTES = 32 << 20     # of the matrix of windows at a time

as_strided = np.lib.stride_tricks.as_strided


def convolution(lhs_sizes: tuple[int, ...], rhs_sizes: tuple[int, ...], out_sizes: tuple[int, ...],
                lhs_spec: tuple[int, ...], rhs_spec: tuple[int, ...], out_order: tuple[int, ...],
                compute: np.dtype, dtype: np.dtype, strides: tuple[int, ...],
                padding: tuple[tuple[int, int], ...], lhs_dilation: tuple[int, ...],
                rhs_dilation: tuple[int, ...], feature_groups: int, batch_groups: int
                ) -> Callable[..., Any]:
    """A function of lhs and rhs; sizes are (N, C, S...), (O, C, K...) and (N, O, P...)."""
    groups = max(feature_groups, batch_groups)
    spatial, window, result = lhs_sizes[2:], rhs_sizes[2:], out_sizes[2:]
    batch = lhs_sizes[0] // batch_groups
    features = rhs_sizes[1]
    outputs = rhs_sizes[0] // groups
    product = integer_matmul if compute.kind in "iu" else np.matmul
    plan = _Plan(groups, batch, features, outputs, spatial, window, result, strides, padding,
                 lhs_dilation, rhs_dilation, product)
    empty = not math.prod(out_sizes) or not features or not math.prod(window)
    # Scattering computes products at each element of lhs, gathering at each of the result.
    work = outputs * math.prod(spatial), features * math.prod(result)
    scatter = all(s == 1 for s in strides) and math.prod(window) > 1 and work[0] < work[1] and (
        math.prod(spatial) <= math.prod(result))
    compute_result = plan.scatter if scatter else plan.gather
    # Gathering multiplies zeros of a padding, too, which gives NaN where the window has any.
    if plan.is_line and (scatter or not plan.is_padded) and (
            spatial[0] <= _SHORT_LINE and window[0] <= _SHORT_LINE):
        compute_result = plan.line
    out_shape = tuple(out_sizes[dim] for dim in out_order)

    def run(lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        if empty or not lhs.size:
            return np.zeros(out_shape, dtype)
        x = convert_operand(lhs, compute).transpose(lhs_spec)
        w = convert_operand(rhs, compute).transpose(rhs_spec)
        if feature_groups > 1:     # (N, G C, S) -> (G, N, C, S)
            x = x.reshape(batch, groups, features, *spatial).swapaxes(0, 1)
        else:
            x = x.reshape(groups, batch, features, *spatial)
        w = w.reshape(groups, outputs, features, *window)
        out = compute_result(x, w)                     # (G, N, O, P)
        out = out.swapaxes(0, 1).reshape(out_sizes) if groups > 1 else out[0]
        out = out.transpose(out_order)
        return out if out.dtype == dtype else convert_result(out, dtype)

    return run


class _Plan:
    """The sizes of a convolution, and its two ways; G, N, C, O, S, K, P are as in the rules."""

    def __init__(self, groups: int, batch: int, features: int, outputs: int,
                 spatial: tuple[int, ...], window: tuple[int, ...], result: tuple[int, ...],
                 strides: tuple[int, ...], padding: tuple[tuple[int, int], ...],
                 lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...],
                 product: Callable[..., np.ndarray]) -> None:
        self.groups, self.batch, self.features, self.outputs = groups, batch, features, outputs
        self.spatial, self.window, self.result = spatial, window, result
        self.strides, self.padding = strides, padding
        self.lhs_dilation, self.rhs_dilation = lhs_dilation, rhs_dilation
        self.product = product
        self.rank = len(spatial)
        self.padded = tuple(
            max(0, (size - 1) * dilation + 1 + low + high)
            for size, dilation, (low, high) in zip(spatial, lhs_dilation, padding, strict=True))
        self.is_padded = any(pair != (0, 0) for pair in padding) or any(
            d != 1 for d in lhs_dilation)
        self.places = math.prod(window)
        self.positions = math.prod(result)

    @property
    def is_line(self) -> bool:
        """Whether it is one line along another, in steps of one element."""
        return (self.rank == 1 and self.groups * self.batch * self.features * self.outputs == 1
                and self.strides == self.lhs_dilation == self.rhs_dilation == (1,)
                and self.padding[0][0] >= 0 and self.padding[0][1] >= 0
                and self.product is np.matmul)

    def line(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        """One line along another: the places where they overlap, and zeros beyond."""
        size, reach, (low, _) = self.spatial[0], self.window[0] - 1, self.padding[0]
        # NumPy's convolution of both as they are is that of a padding of ``reach`` on both sides.
        full = np.convolve(x.reshape(-1), w.reshape(-1)[::-1])
        first, count = reach - low, self.result[0]
        if first >= 0 and first + count <= full.size:
            return full[first:first + count].reshape(1, 1, 1, count)
        out = np.zeros(count, x.dtype)
        start, stop = max(first, 0), min(first + count, size + reach)
        out[start - first:stop - first] = full[start:stop]
        return out.reshape(1, 1, 1, count)

    # --- gather ---
    def innermost(self, x: np.ndarray) -> str:
        """The dimension that runs fastest in the matrix of windows: of x (G, N, C, S)."""
        row = max([1, *self.result[-1:], *self.window[-1:]])
        runs = {"N": self.batch, "C": self.features, "S": row}
        held, least = "S", None
        for name, stride, size in zip("GNC" + "S" * self.rank, x.strides, x.shape, strict=True):
            if size > 1 and name != "G" and (least is None or stride < least):
                held, least = name, stride
        return held if runs[held] >= _LONG_RUN else max(runs, key=lambda name: runs[name])

    def gather(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        inner = self.innermost(x)
        spatial_dims = tuple(range(3, 3 + self.rank))
        # The layout in which the elements to be copied lie side by side.
        layout = {"N": (0, 2, *spatial_dims, 1), "C": (0, 1, *spatial_dims, 2),
                  "S": (0, 1, 2, *spatial_dims)}[inner]
        x = self.pad(x, layout)
        steps = x.strides
        window_steps = tuple(s * d for s, d in zip(steps[3:], self.rhs_dilation, strict=True))
        result_steps = tuple(s * d for s, d in zip(steps[3:], self.strides, strict=True))
        rows_inner = inner == "N" or (
            inner == "S" and (not self.rank or self.result[-1] >= self.window[-1]))
        rows: Any
        columns: Any
        if inner == "N":
            rows = (self.result, (self.batch,)), (result_steps, (steps[1],))
        else:
            rows = ((self.batch,), self.result), ((steps[1],), result_steps)
        if inner == "C":
            columns = (self.window, (self.features,)), (window_steps, (steps[2],))
            depth_dims = (*spatial_dims, 2)
        else:
            columns = ((self.features,), self.window), ((steps[2],), window_steps)
            depth_dims = (2, *spatial_dims)
        rows_shape, rows_steps = ((*a, *b) for a, b in rows)
        columns_shape, columns_steps = ((*a, *b) for a, b in columns)
        depth = self.features * self.places
        # Whichever of (O, C K) and its transpose is a view: BLAS takes both.
        if w.strides[1] == w.itemsize:
            weights = w.transpose(0, *depth_dims, 1).reshape(
                self.groups, depth, self.outputs).swapaxes(1, 2)
        else:
            weights = w.transpose(0, 1, *depth_dims).reshape(self.groups, self.outputs, depth)
        first, second = ((columns_shape, columns_steps), (rows_shape, rows_steps))
        if not rows_inner:
            first, second = second, first
        windows = as_strided(x, (self.groups, *first[0], *second[0]),
                             (steps[0], *first[1], *second[1]), writeable=False)
        out = self.multiply(windows, weights, rows_shape, depth, rows_inner)
        # (G, O, rows) as (G, N, O, P)
        out = out.reshape(self.groups, self.outputs, *rows_shape)
        if inner == "N":
            return out.transpose(0, self.rank + 2, 1, *range(2, self.rank + 2))
        return out.swapaxes(1, 2)

    def multiply(self, windows: np.ndarray, weights: np.ndarray, rows_shape: tuple[int, ...],
                 depth: int, rows_inner: bool) -> np.ndarray:
        """(G, O, rows), in pieces where the matrix of windows would be large."""
        groups, rows = self.groups, math.prod(rows_shape)
        leading = rows_shape[0]
        pieces = min(leading, -(-windows.size * windows.itemsize // _CHUNK_BYTES))
        axis = windows.ndim - len(rows_shape) if rows_inner else 1

        def part(view: np.ndarray) -> np.ndarray:
            count = view.shape[axis] * (rows // leading)
            if rows_inner:
                return self.matmul(weights, view.reshape(groups, depth, count))
            # In the order of the rows, so that features stay side by side.
            matrix = view.reshape(groups, count, depth)
            return self.matmul(matrix, weights.swapaxes(1, 2)).swapaxes(1, 2)

        if pieces <= 1:
            return part(windows)
        shape = (groups, self.outputs, rows)
        out = np.empty(shape, windows.dtype) if rows_inner else np.empty(
            (groups, rows, self.outputs), windows.dtype).swapaxes(1, 2)
        per = rows // leading
        bounds = np.linspace(0, leading, pieces + 1).astype(int).tolist()
        for start, stop in zip(bounds, bounds[1:], strict=False):
            view = windows[(slice(None),) * axis + (slice(start, stop),)]
            out[:, :, start * per:stop * per] = part(view)
        return out

    def matmul(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """A product of stacks of matrices; a stack of one goes straight to BLAS."""
        if self.groups == 1:
            return self.product(x[0], y[0])[None]
        return self.product(x, y)

    def pad(self, x: np.ndarray, layout: tuple[int, ...]) -> np.ndarray:
        """x (G, N, C, S) with its padding and holes, stored in ``layout``; shaped as before."""
        order = np.argsort(layout)
        if not self.is_padded:
            moved = x.transpose(layout)
            if self.places > 1 and moved.strides[-1] != x.itemsize:
                return np.ascontiguousarray(moved).transpose(order)
            return x
        shape = (*x.shape[:3], *self.padded)
        out = np.zeros([shape[dim] for dim in layout], x.dtype).transpose(order)
        source, target = [slice(None)] * 3, [slice(None)] * 3
        for size, total, (low, _), dilation in zip(
                self.spatial, self.padded, self.padding, self.lhs_dilation, strict=True):
            held, place = overlap(size, total, low, dilation)
            source.append(held)
            target.append(place)
        out[tuple(target)] = x[tuple(source)]
        return out

    # --- scatter ---
    def scatter(self, x: np.ndarray, w: np.ndarray) -> np.ndarray:
        inner = self.innermost(x)
        area = math.prod(self.spatial)
        spatial_dims = tuple(range(3, 3 + self.rank))
        weights = w.transpose(0, *spatial_dims, 1, 2).reshape(
            self.groups, self.places, self.outputs, self.features)
        # The layout of the result, and where O, N and P stand in it.
        lead: tuple[int, ...]
        tail: tuple[int, ...]
        if inner == "C":
            matrix = x.transpose(0, 1, *spatial_dims, 2).reshape(
                self.groups, self.batch * area, self.features)
            lead, tail = (self.groups, self.batch), (self.outputs,)
            order = (0, 1, self.rank + 2, *range(2, self.rank + 2))
        elif inner == "N":
            matrix = x.transpose(0, 2, *spatial_dims, 1).reshape(
                self.groups, self.features, area * self.batch)
            lead, tail = (self.groups, self.outputs), (self.batch,)
            order = (0, self.rank + 2, 1, *range(2, self.rank + 2))
        else:
            matrix = x.transpose(0, 2, 1, *spatial_dims).reshape(
                self.groups, self.features, self.batch * area)
            lead, tail = (self.groups, self.outputs, self.batch), ()
            order = (0, 2, 1, *range(3, self.rank + 3))
        before = (slice(None),) * len(lead)
        out = np.zeros((*lead, *self.result, *tail), x.dtype)
        for place, offset in enumerate(np.ndindex(*self.window)):
            source, target = [], []
            for size, total, (low, _), ld, rd, k in zip(
                    self.spatial, self.result, self.padding, self.lhs_dilation,
                    self.rhs_dilation, offset, strict=True):
                # Element i of lhs meets element k of the window at i * ld + low - k * rd.
                held, position = overlap(size, total, low - k * rd, ld)
                source.append(held)
                target.append(position)
            # A product for each element of the window: each stays in the cache until it is added.
            part = (self.matmul(matrix, weights[:, place].swapaxes(1, 2)) if inner == "C"
                    else self.matmul(weights[:, place], matrix))
            part = part.reshape(*lead, *self.spatial, *tail)
            view = out[(*before, *target)]
            np.add(view, part[(*before, *source)], out=view)
        return out.transpose(order)


def overlap(size: int, total: int, low: int, dilation: int):
    """The slices of elements 0..size that land in 0..total at ``low + i * dilation``, and where."""
    first = max(0, -(low // dilation)) if low < 0 else 0
    last = min(size, -(-(total - low) // dilation))
    if last <= first:
        return slice(0, 0), slice(0, 0)
    start = low + first * dilation
    return slice(first, last), slice(start, start + (last - first - 1) * dilation + 1, dilation)
