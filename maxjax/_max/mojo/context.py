"""The lowering context for the Mojo backend: each operation returns a node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.control_flow import Role, Structure
from maxjax._max.host_step import Called, CalledStep, HostStep
from maxjax._max.lowering import reduction_identity
from maxjax._max.mojo.element_context import ElementContext, sizes
from maxjax._max.mojo.loop_windows import MOST_LINES, lines_of
from maxjax._max.mojo.nodes import (
    ON_HOST,
    PARTS,
    Call,
    Constant,
    Iota,
    Loop,
    Node,
    Overlay,
    Piece,
    Reduce,
    Reshape,
    Result,
    View,
    base_of,
    is_copy,
    memory_dtype,
    reshape_access,
    row_major,
    strided,
)
from maxjax._max.operations import LoweringError
from maxjax._primitives import fourier
from maxjax._primitives.lapack import Routine
from maxjax._transforms.unroll import together, unrolled

_BOOL = np.dtype(bool)
# Stacks of dots of so few terms, and of so many dots, are reductions.
_MOST_TERMS, _LEAST_DOTS = 32, 32
# Matrices of so few columns are multiplied by a row as they lie in memory.
_FEW_COLUMNS = 8
# A convolution's windows are multiplied block by block within these bounds: a row of windows of the
# result is a small part of a block, all windows do not fit in the cache, and the weights do.
_MOST_LINE_BYTES = 1 << 17
_LEAST_WINDOW_BYTES = 1 << 18
_MOST_WEIGHT_BYTES = 1 << 20
# Elements of a window that lie together; fewer are read in the kernel that needs them.
_LEAST_RUN = 8
THREADS = -1 << 62      # a placeholder in a call's integers for the number of threads


class MojoContext(ElementContext):
    """Builds the nodes of one program: with reductions, products, indexing and control flow."""

    # --- reductions and products ---
    def reduce(self, kind: str, x: Node, axes: Sequence[int]) -> Node:
        shape = tuple(size for dim, size in enumerate(x.shape) if dim not in axes)
        if not axes:
            return x
        if not x.size:
            return self.full(shape, reduction_identity(kind, x.dtype), x.dtype)
        if all(x.shape[dim] == 1 for dim in axes):
            return self.reshape(x, shape)
        if x.dtype == _BOOL:
            kind = {"and": "min", "or": "max"}.get(kind, kind)
        return self.shared(Reduce(shape, x.dtype, (self._in_order(x),), kind,
                                  tuple(sorted(axes))))

    def matrices(self, kind: str, operands: Sequence[Node], integers: Sequence[int],
                 results: Sequence[tuple[Sequence[int], Any]]) -> list[Node]:
        return self.call(f"{kind}_{8 * operands[0].dtype.itemsize}", operands,
                         (*[x if isinstance(x, Routine) else int(x) for x in integers], THREADS),
                         [(shape, memory_dtype(dtype)) for shape, dtype in results])

    def fourier(self, x: Node, kind: fourier.Kind, n: int, axis: int, inverse: bool,
                scale: float) -> Node:
        x = self.memory(x)
        part: Any = x.dtype if kind.is_from_real else PARTS[x.dtype.itemsize]
        outer, _, inner = self._canonical(x, axis)
        call = fourier.call_of(fourier.Lines(kind, outer, n, inner, inverse), scale, part, THREADS)
        shape = (*x.shape[:axis], n // 2 + 1 if kind.is_from_real else n, *x.shape[axis + 1:])
        dtype = part if kind.is_to_real else memory_dtype(dtypes.complex_dtype(part))
        return self.call(f"fourier_{part}", [x, self.constant(call.table)], call.integers,
                         [(shape, dtype), ((call.scratch,), part)])[0]

    def _canonical(self, x: Node, axis: int) -> tuple[int, int, int]:
        return math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1:])

    def argreduce(self, kind: str, x: Node, axis: int, dtype: Any) -> Node:
        shape = [size for dim, size in enumerate(x.shape) if dim != axis]
        result, = self.call(f"arg{kind}_{x.dtype}", [x], (*self._canonical(x, axis), THREADS),
                            [(shape, np.int32)])
        return self.convert(result, dtype)

    def cumulative(self, kind: str, x: Node, axis: int, reverse: bool) -> Node:
        if not x.size:
            return x
        return self.call(f"cum{kind}_{x.dtype}", [x],
                         (*self._canonical(x, axis), int(reverse), THREADS),
                         [(x.shape, x.dtype)])[0]

    def matmul(self, a: Node, b: Node, transpose_a: bool = False,
               transpose_b: bool = False) -> Node:
        rank = len(a.shape)
        swap = [*range(rank - 2), rank - 1, rank - 2]
        if transpose_a:
            a = self.transpose(a, swap)
        if transpose_b:
            b = self.transpose(b, swap)
        shape = (*a.shape[:-1], b.shape[-1])
        if 0 in (*a.shape, *b.shape):
            return self.full(shape, 0, a.dtype)
        if a.dtype.kind == "f" and a.dtype.itemsize > 2 and (
                a.shape[-1] == 1 or _is_stack_of_dots(a.shape, b.shape)):
            return self._few_terms(a, b, shape)
        if a.shape[0] == 1 and rank == 2:
            product = self._row_by_stack(a, b, 0)
            if product is not None:
                return self.reshape(product, shape)
        elif b.shape[1] == 1 and rank == 2:
            product = self._row_by_stack(self.transpose(b, swap), a, -1)
            if product is not None:
                return self.reshape(product, shape)
        a, b = self._matrices(a), self._matrices(b)
        return self.call(f"matmul_{dtypes.name_of(a.dtype)}", [a, b], (), [(shape, a.dtype)],
                         strided=True)[0]

    def _few_terms(self, a: Node, b: Node, shape: Sequence[int]) -> Node:
        """A product of matrices whose elements are sums of few terms: what computes them is fused
        with other operations."""
        rank = len(a.shape)
        if a.shape[-1] == 1:
            dims = range(rank)
            return self.native("mul", self.broadcast(a, shape, dims),
                               self.broadcast(b, shape, dims))
        lines = (*a.shape[:-2], a.shape[-1])
        terms = self.native("mul", self.reshape(a, lines), self.reshape(b, lines))
        return self.reshape(self.reduce("sum", terms, (rank - 2,)), shape)

    def _row_by_stack(self, row: Node, x: Node, contracted: int) -> Node | None:
        """A row by a matrix that is a copy of a stack of matrices of few columns, without the copy.

        Args:
          contracted: the dimension of the row, in the matrix and in what was copied.
        """
        copied = x.inputs[0] if isinstance(x, Reshape) else x
        if not isinstance(copied, Result) or not is_copy(copied.inputs[0]) \
                or row.dtype not in (np.float32, np.float64):
            return None
        view = copied.inputs[0].inputs[0]
        dims = [*range(len(view.shape))]
        middle = dims.pop(contracted)
        size, columns = view.shape[middle], view.shape[dims[-1]]
        if size != row.size or not 1 < columns <= _FEW_COLUMNS or len(dims) < 2:
            return None
        moved = self.transpose(view, (*dims[:-1], middle, dims[-1]))
        shape = (x.size // (size * columns), size, columns)
        access = reshape_access(strided(moved), moved.shape, shape)
        if access is None or access.strides[-1] != 1:
            return None
        stack = self.reshape(moved, shape)
        row = self.broadcast(row, (shape[0], 1, size), (1, 2))
        return self.call(f"matmul_{dtypes.name_of(x.dtype)}", [row, stack], (),
                         [((shape[0], 1, columns), x.dtype)], strided=True)[0]

    def _matrices(self, x: Node) -> Node:
        """Matrices whose leading dimensions have a single stride."""
        if isinstance(base_of(x), Iota):
            return self.copy(x)
        stack = (math.prod(x.shape[:-2]), *x.shape[-2:])
        return x if reshape_access(strided(x), x.shape, stack) else self.copy(x)

    def sliding(self, kernel: str, operands: Sequence[Node], shape: Sequence[int],
                window: Sequence[int], strides: Sequence[int], low: Sequence[int],
                window_dilation: Sequence[int], base_dilation: Sequence[int]) -> Node:
        x = operands[0]
        if 0 in shape or 0 in x.shape:
            raise LoweringError(f"{kernel} of nothing")
        geometry = (*window, *strides, *low, *window_dilation, *base_dilation)
        name = f"{kernel}_{8 * x.dtype.itemsize if kernel == 'unfold' else x.dtype}"
        windows = operands[-1].shape if kernel.startswith("select") else tuple(shape)
        outer, height, width, inner = x.shape
        return self.call(
            name, operands,
            (outer, height, width, inner, windows[1], windows[2], *map(int, geometry), THREADS),
            [(shape, x.dtype)])[0]

    def convolve(self, x: Node, weights: Node, result: Sequence[int], window: Sequence[int],
                 strides: Sequence[int], low: Sequence[int], window_dilation: Sequence[int]
                 ) -> Node | None:
        depth, outputs = weights.shape
        line = result[1] * depth * x.dtype.itemsize
        if (x.dtype not in (np.float32, np.float64) or 0 in (*x.shape, *weights.shape, *result)
                or line > _MOST_LINE_BYTES or x.shape[0] * result[0] * line < _LEAST_WINDOW_BYTES
                or depth * outputs * x.dtype.itemsize > _MOST_WEIGHT_BYTES):
            return None
        geometry = (*window, *strides, *low, *window_dilation, 1, 1)
        return self.call(f"convolve_{x.dtype}", [x, weights],
                         (*x.shape, *result, *map(int, geometry), outputs, THREADS),
                         [((x.shape[0], *result, outputs), x.dtype)])[0]

    # --- indexing ---
    def read_window(self, x: Node, starts: Sequence[Node], shape: Sequence[int]) -> Node | None:
        if self._overlays and isinstance(x, View) and _is_part(x):
            # A part of a part of an array, `x[i, 1:-1]`: the first need not be copied.
            starts = [self._within(start, begin, size - part) if size != whole else start
                      for start, (begin, _, _), size, part, whole in zip(
                          starts, x.index_map, x.shape, shape, x.inputs[0].shape, strict=True)]
            x = x.inputs[0]
        if not self._is_window(x.shape, shape, starts):
            return None
        return self.call(f"read_window_{8 * x.dtype.itemsize}", [x, self._positions(starts)],
                         _window_integers(x.shape, shape), [(shape, x.dtype)])[0]

    def write_window(self, x: Node, update: Node, starts: Sequence[Node]) -> Node | None:
        is_window = self._is_window(x.shape, update.shape, starts)
        known = [int(start.value) for start in starts if isinstance(start, Constant)]
        if len(known) == len(starts) and (self._overlays or is_window) and update.size:
            # What computes the window writes it to its place.
            begins = [max(0, min(start, size - part)) for start, size, part in zip(
                known, x.shape, update.shape, strict=True)]
            base = base_of(x)
            if base.size == 1 and isinstance(x, View):
                return self.pad(update, self.reshape(base, ()), [
                    (begin, size - part - begin, 0) for begin, size, part in zip(
                        begins, x.shape, update.shape, strict=True)])
            if self._overlays:
                return self.shared(Overlay(
                    x.shape, x.dtype, (self._piece(update), self.memory(x)),
                    (Piece(tuple(begins), (1,) * len(begins)),)))
        if not is_window:
            return None
        return self.call(f"write_window_{8 * x.dtype.itemsize}",
                         [x, self._positions(starts), update],
                         _window_integers(x.shape, update.shape), [(x.shape, x.dtype)])[0]

    def _is_window(self, whole: Sequence[int], part: Sequence[int], starts: Sequence[Node]) -> bool:
        """Whether a part is copied as a window: as rows, it would be many short ones."""
        axes = [axis for axis, (size, bound) in enumerate(zip(part, whole, strict=True))
                if size != bound]
        lines, size = lines_of(part, whole), math.prod(part)
        if not self._overlays:
            # A line is an instruction of a loop over few elements; so is a row, by its index.
            is_row = len(axes) == 1 and lines == part[axes[0]] == 1
            is_window = size > 1 and lines <= MOST_LINES and not is_row
        elif len(axes) == 1 and part[axes[0]] > 1 and size >= _LEAST_RUN:
            is_window = True    # what lies together comes at once, not row by row
        else:                   # of a row's part, the same part of all rows would be copied first
            is_window = size > 0 and (lines > 1 or len(axes) > 1)
        return (is_window
                and all(start.dtype.kind == "i" or start.dtype.itemsize < 8 for start in starts))

    def _within(self, start: Node, begin: int, last: int) -> Node:
        """Where a part of a part begins in the whole: as near to `start` as it fits in that."""
        if isinstance(start, Constant):
            return self.constant(np.int64(begin + max(0, min(int(start.value), last))))
        start = self.convert(start, np.int64)
        start = self.native("min", start, self.scalar(last, start))
        start = self.native("max", start, self.scalar(0, start))
        return self.native("add", start, self.scalar(begin, start))

    def _positions(self, starts: Sequence[Node]) -> Node:
        """A vector of int64."""
        known = [start.value for start in starts if isinstance(start, Constant)]
        if len(known) == len(starts):
            return self._stored(np.array(known, np.int64))
        return self.concatenate([self.reshape(self.convert(start, np.int64), (1,))
                                 for start in starts], 0)

    def gather_rows(self, x: Node, indices: Any, axis: int) -> Node:
        if isinstance(indices, np.ndarray):
            indices = self.constant(indices)
        if indices.dtype.itemsize not in (4, 8) or indices.dtype.kind != "i":
            indices = self.convert(indices, np.int64)
        shape = (*x.shape[:axis], *indices.shape, *x.shape[axis + 1:])
        if 0 in shape:
            return self.full(shape, 0, x.dtype)
        outer, size, inner = self._canonical(x, axis)
        return self.call(
            f"gather_rows_{8 * x.dtype.itemsize}", [x, indices],
            (outer, size, inner, indices.size, indices.dtype.itemsize, THREADS),
            [(shape, x.dtype)])[0]

    def scatter_rows(self, kind: str, x: Node, rows: Node, updates: Node) -> Node:
        if x.dtype == _BOOL:
            kind = {"add": "max", "mul": "min"}.get(kind, kind)
        if not x.size or not updates.size:
            return x
        return self.call(f"scatter_rows_{kind}_{x.dtype}", [x, rows, updates],
                         (x.shape[0], x.shape[1], updates.shape[0], THREADS),
                         [(x.shape, x.dtype)])[0]

    def permutation_of_exchanges(self, places: Node, count: int) -> Node:
        *outer, exchanges = places.shape
        return self.call("permutation_of_exchanges", [places],
                         (math.prod(outer), exchanges, count), [((*outer, count), np.int32)])[0]

    def first_of_sorted(self, x: Node, count: int) -> Node:
        """The first ``count`` columns of the permutation of ``sort_permutation``, of integers."""
        return self.call(f"argsort_few_{x.dtype}", [x], (*x.shape, count, THREADS),
                         [((x.shape[0], count), np.int32)])[0]

    def sort_permutation(self, x: Node) -> Node:
        if not x.size:
            return self.full(x.shape, 0, np.int32)
        return self.call(f"argsort_{x.dtype}", [x], (*x.shape, THREADS),
                         [(x.shape, np.int32)])[0]

    def sort_values(self, x: Node) -> Node:
        return self.call(f"sort_{x.dtype}", [x], (*x.shape, THREADS), [(x.shape, x.dtype)])[0]

    def is_column_index(self, x: Node) -> bool:
        return isinstance(base_of(x), Iota) and strided(x) == (0, (0, 1))

    def threefry(self, key0: Node, key1: Node, counter0: Node, counter1: Node) -> list[Node]:
        kind = np.dtype(np.uint32)
        return self.call("threefry2x32", [key0, key1, counter0, counter1],
                         (key0.size, counter0.size, THREADS),
                         [(counter0.shape, kind), (counter0.shape, kind)])

    def gamma_cubes(self, keys: Node, alpha: Node) -> list[Node]:
        return self.call(f"gamma_cubes_{alpha.dtype}", [keys, alpha], (keys.size, THREADS),
                         [(alpha.shape, alpha.dtype)] * 2)

    def poisson_counts(self, keys: Node, rates: Node) -> list[Node]:
        return self.call(f"poisson_counts_{rates.dtype}", [keys, rates],
                         (keys.size, rates.size // keys.size, THREADS),
                         [(rates.shape, np.int32), (rates.shape, rates.dtype)])

    # --- steps of the host ---
    def host_step(self, step: HostStep, operands: Sequence[Node]) -> list[Node]:
        """The results of a step of the host."""
        nbytes = tuple(math.prod(shape) * dtype.itemsize for shape, dtype in step.outputs)
        call = self.shared(Call((), np.dtype(np.int8), tuple(map(self.memory, operands)), ON_HOST,
                                result_bytes=nbytes, host=step))
        return [self.shared(Result(sizes(shape), memory_dtype(dtype), (call,), number))
                for number, (shape, dtype) in enumerate(step.outputs)]

    def called_on_host(self, called: Called, operands: Sequence[Node],
                       results: Sequence[tuple[tuple[int, ...], np.dtype]], reason: str
                       ) -> list[Node]:
        return self.host_step(CalledStep(
            called, [(x.shape, x.dtype) for x in operands], results, reason), operands)

    # --- control flow ---
    def control_flow(self, name: str, flow: Structure, operands: Sequence[Node]) -> list[Node]:
        count = together(flow)
        if count > 1:
            flow = unrolled(flow, count)
            operands = [self.reshape(x, (x.shape[0] // count, count, *x.shape[1:]))
                        if role is Role.SCANNED else x
                        for x, role in zip(operands, flow.roles, strict=True)]
        given = [self.convert(x, np.int32) if role is Role.INDEX else x
                 for x, role in zip(operands, flow.roles, strict=True)]
        loop = Loop((), np.dtype(np.int8), tuple(self.memory(x) for x in given), name, flow)
        return [self.shared(Result(sizes(aval.shape), memory_dtype(aval.dtype), (loop,), number))
                for number, aval in enumerate(flow.out_avals())]


def _is_stack_of_dots(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether products of matrices are many dots of short vectors."""
    return (len(a) > 2 and a[-2] == 1 and b[-1] == 1 and a[-1] <= _MOST_TERMS
            and math.prod(a[:-2]) >= _LEAST_DOTS)


def _is_part(x: View) -> bool:
    """Whether a view is a box of its operand."""
    return len(x.index_map) == len(x.shape) and all(
        (dim == axis and step == 1) or (size == 1 and dim < 0)
        for axis, (size, (_, step, dim)) in enumerate(zip(x.shape, x.index_map, strict=True)))


def _window_integers(whole: Sequence[int], part: Sequence[int]) -> tuple[int, ...]:
    """As ``pack/movement.mojo`` has them."""
    return (len(part), *part, *row_major(whole), *row_major(part), *whole, math.prod(whole), 1,
            THREADS)
