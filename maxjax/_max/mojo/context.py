"""The lowering context for the Mojo backend: each operation returns a node."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.control_flow import Role, Structure
from maxjax._max.host_step import Called, CalledStep, HostStep
from maxjax._max.lowering import Lowering, reduction_identity
from maxjax._max.mojo.loop_windows import MOST_LINES, lines_of
from maxjax._max.mojo.nodes import (
    ON_HOST,
    PARTS,
    Alias,
    Apply,
    Assemble,
    Call,
    Computed,
    Constant,
    Empty,
    Input,
    Iota,
    Loop,
    Movement,
    Node,
    Overlay,
    Piece,
    Reduce,
    Reshape,
    Result,
    View,
    base_of,
    compose,
    identity_map,
    is_copy,
    is_row_major,
    memory_dtype,
    piece_within,
    reshape_access,
    row_major,
    strided,
)
from maxjax._max.operations import LoweringError
from maxjax._primitives import fourier
from maxjax._primitives.lapack import Routine

_ON_BOOLS = {"add": "or", "mul": "and", "max": "or", "min": "and", "logical_and": "and",
             "logical_or": "or", "logical_xor": "xor", "logical_not": "not"}
_BOOL = np.dtype(bool)
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
# Stacks of dots of so few terms, and of so many dots, are reductions.
_MOST_TERMS, _LEAST_DOTS = 32, 32
# Matrices of so few columns are multiplied by a row as they lie in memory.
_FEW_COLUMNS = 8
# An operand that is read so many times, by operations of at least so many elements, is copied where
# its elements are not next to one another.
_READ_AGAIN = 8
_LEAST_GATHERED = 4096
# A convolution's windows are multiplied block by block within these bounds: a row of windows of the
# result is a small part of a block, all windows do not fit in the cache, and the weights do.
_MOST_LINE_BYTES = 1 << 17
_LEAST_WINDOW_BYTES = 1 << 18
_MOST_WEIGHT_BYTES = 1 << 20
# Elements of a window that lie together; fewer are read in the kernel that needs them.
_LEAST_RUN = 8
# Elements next to one another that are read in a row although others come between the rows.
_SHORT_RUN = 16
THREADS = -1 << 62      # a placeholder in a call's integers for the number of threads


class MojoContext(Lowering[Node]):
    """Builds the nodes of one program.

    Attributes:
      opaque: assembled arrays whose views are of their memory, also where they lie in one piece.

    Args:
      overlays: whether windows at known places are written by what computes them, and all others
        of several lines are copied as windows: not in loops over few elements.
    """

    def __init__(self, overlays: bool = True) -> None:
        self._known: dict[Any, Node] = {}
        self._overlays = overlays
        self.opaque: set[Node] = set()

    # --- nodes ---
    @property
    def nodes(self) -> Iterable[Node]:
        """All that were made, also those that nothing needs."""
        return self._known.values()

    def shared(self, node: Node) -> Node:
        """The node, or an equal earlier one; an `Empty` for one without elements."""
        if 0 in node.shape and not isinstance(node, (Input, Result)):
            node = Empty(node.shape, node.dtype, ())
        return self._known.setdefault(
            (type(node), node.shape, node.dtype, node.details, node.inputs), node)

    memory_dtype = staticmethod(memory_dtype)

    def input(self, number: int, shape: Sequence[int], dtype: Any) -> Node:
        return self.shared(Input(sizes(shape), memory_dtype(dtype), (), number))

    def shape(self, x: Node) -> tuple[int, ...]:
        return x.shape

    def dtype(self, x: Node) -> np.dtype:
        return x.dtype

    def is_float(self, x: Node) -> bool:
        return x.dtype.kind in "fV" or x.dtype.name == "bfloat16"

    def constant(self, value: Any) -> Node:
        value = np.asarray(value)
        value = np.array(value, dtypes.physical(value.dtype), order="C")
        value = value.view(memory_dtype(value.dtype))
        if not value.size:
            return self.shared(Empty(value.shape, value.dtype, ()))
        if value.size > 1 and _uniform(value):
            return self._spread(self.constant(value.reshape(-1)[0].reshape(())), value.shape)
        return self._stored(value)

    def _stored(self, value: np.ndarray) -> Constant:
        """A constant of which memory has all elements."""
        key = (Constant, value.shape, value.dtype, value.tobytes())
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = Constant(value.shape, value.dtype, (), value)
        assert isinstance(known, Constant)
        return known

    def scalar(self, value: Any, like: Node) -> Node:
        return self.constant(np.asarray(value, like.dtype))

    def full(self, shape: Sequence[int], value: Any, dtype: Any) -> Node:
        return self._spread(self.constant(np.asarray(value, dtypes.physical(dtype))), shape)

    def full_like(self, x: Node, value: Any) -> Node:
        return self.full(x.shape, value, x.dtype)

    def iota(self, dtype: Any, shape: Sequence[int], dimension: int) -> Node:
        if shape[dimension] == 1:
            return self.full(shape, 0, dtype)
        line = self.shared(Iota(sizes([shape[dimension]]), dtypes.physical(dtype), ()))
        return self.broadcast(line, shape, (dimension,))

    # --- elementwise ---
    def apply(self, name: str, *xs: Node, dtype: Any = None) -> Node:
        operands = tuple([self._gathered(x) if isinstance(x, View) else x
                          for x in self.aligned(xs)])
        return self.shared(Apply(
            operands[0].shape, xs[0].dtype if dtype is None else np.dtype(dtype), operands, name))

    def _gathered(self, x: View) -> Node:
        """An operand that is read many times along a dimension where its elements lie apart: a
        copy in which they do not."""
        if not x.index_map or isinstance(x.inputs[0], (Iota, Movement)) \
                or x.size < max(_LEAST_GATHERED, _READ_AGAIN * x.inputs[0].size):
            return x
        inner = max(dim for dim, size in enumerate(x.shape) if size != 1)
        if abs(strided(x).strides[inner]) <= 1:
            return x
        dims = sorted(dim for _, _, dim in x.index_map if dim >= 0)
        part = self.view(x.inputs[0], [x.shape[dim] for dim in dims], [
            (start, step, dims.index(dim) if dim >= 0 else -1) for start, step, dim in x.index_map])
        copied, = self.call(f"copy_{8 * x.dtype.itemsize}", [part], (), [(part.shape, x.dtype)],
                            strided=True)
        return self.broadcast(copied, x.shape, dims)

    def native(self, name: str, *xs: Node) -> Node:
        if xs[0].dtype == _BOOL:
            name = _ON_BOOLS.get(name, name)
        if name in _COMPARISONS:
            return self.apply(name, *xs, dtype=_BOOL)
        return self.apply("round_half_even" if name == "round" else name, *xs)

    def kernel(self, name: str, *xs: Node, out_dtype: Any = None) -> Node:
        if out_dtype is not None:
            return self.apply(name, *xs, dtype=dtypes.physical(out_dtype))
        return self.native(name, *xs)

    def custom(self, source: str, name: str, dtype: Any, *xs: Node) -> Node:
        operands = self.aligned(xs)
        return self.shared(Apply(operands[0].shape, dtypes.physical(dtype), operands,
                                 f"custom {name}", source))

    def multiply_add(self, x: Node, y: Node, z: Node) -> Node:
        if x.dtype != np.float32:       # as tier 0
            return super().multiply_add(x, y, z)
        return self.apply("multiply_add", x, y, z)

    def aligned(self, xs: Sequence[Node]) -> tuple[Node, ...]:
        shape = xs[0].shape
        for x in xs:
            if x.shape != shape:
                shape = _common_shape(tuple([x.shape for x in xs]))
                xs = [x if x.shape == shape else self._spread(x, shape) for x in xs]
                break
        return tuple([self._in_order(x) if isinstance(x, View) else x for x in xs])

    def _in_order(self, x: Node) -> Node:
        """Copies a transposed value: a loop that reads it element by element, or a few at a time,
        would be slower."""
        if isinstance(x, View) and x.index_map and not isinstance(base_of(x), Iota):
            dims = [dim for _, _, dim in x.index_map if dim >= 0]
            if dims != sorted(dims):
                strides, last = strided(x).strides, max(dims)
                if strides[last] != 1 or x.shape[last] < _SHORT_RUN and (
                        last == 0 or strides[last - 1] != x.shape[last]):
                    return self.copy(x)
        return x

    def _spread(self, x: Node, shape: Sequence[int]) -> Node:
        """NumPy's broadcasting."""
        if isinstance(x, Constant) and not x.shape and shape:
            return self.shared(View(sizes(shape), x.dtype, (x,), ()))
        ahead = len(shape) - len(x.shape)
        return self.broadcast(x, shape, range(ahead, len(shape)))

    def select(self, which: Node, cases: Sequence[Node]) -> Node:
        if len(cases) == 1:
            return cases[0]
        if which.dtype == _BOOL:
            return self.apply("select", which, cases[1], cases[0], dtype=cases[0].dtype)
        result = cases[-1]
        for number in range(len(cases) - 2, -1, -1):
            chosen = self.native("le", which, self.scalar(number, which))
            result = self.select(chosen, [result, cases[number]])
        return result

    def convert(self, x: Node, dtype: Any) -> Node:
        kind = dtypes.physical(dtype)
        return x if x.dtype == kind else self.apply("convert", x, dtype=kind)

    def bitcast(self, x: Node, dtype: Any) -> Node:
        new = dtypes.physical(dtype)
        if x.dtype == new:
            return x
        if x.dtype.itemsize == new.itemsize:
            if _BOOL in (x.dtype, new):
                return self.convert(x, dtype)
            return self.apply("bitcast", x, dtype=new)
        x = self.memory(x)
        if new.itemsize < x.dtype.itemsize:
            shape = (*x.shape, x.dtype.itemsize // new.itemsize)
        else:
            shape = x.shape[:-1]
        return self.shared(Alias(shape, new, (x,)))

    def part(self, x: Node, number: int) -> Node:
        dtype = PARTS[x.dtype.itemsize]
        pairs = self.bitcast(x, dtype)
        return self.view(pairs, x.shape, [*identity_map(x.shape), (number, 0, -1)]) \
            if pairs.size else self.full(x.shape, 0, dtype)

    def pair(self, x: Node, y: Node) -> Node:
        x, y = self.aligned([x, y])
        shape = (*x.shape, 1)
        pairs = self.concatenate([self.reshape(x, shape), self.reshape(y, shape)], len(x.shape))
        return self.bitcast(pairs, memory_dtype(dtypes.complex_dtype(x.dtype)))

    # --- memory ---
    def copy(self, x: Node) -> Node:
        """A copy of the elements, in newly allocated memory."""
        base, index_map = x, identity_map(x.shape)
        if isinstance(x, View):
            base, index_map = x.inputs[0], x.index_map
        dims = [dim for _, _, dim in index_map if dim >= 0]
        if isinstance(base, (Computed, Iota)) and dims == sorted(dims):
            return self.shared(Apply(x.shape, x.dtype, (x,), "copy"))
        if isinstance(base_of(x), Iota):
            return self.shared(Apply(x.shape, x.dtype, (x,), "copy"))
        return self.call(f"copy_{8 * x.dtype.itemsize}", [x], (), [(x.shape, x.dtype)],
                         strided=True)[0]

    def memory(self, x: Node) -> Node:
        """A value whose elements are in row-major order in memory."""
        if isinstance(x, (Movement, Iota)):
            if isinstance(base_of(x), Iota) or not is_row_major(strided(x).strides, x.shape):
                return self.copy(x)
        return x

    # --- shapes ---
    def view(self, x: Node, shape: Sequence[int], index_map: Any) -> Node:
        shape = sizes(shape)
        index_map = tuple([(start, 0, -1) if dim < 0 or shape[dim] == 1 else (start, step, dim)
                           for start, step, dim in index_map])
        while True:
            if isinstance(x, View):
                index_map = compose(x.index_map, index_map)
                x = x.inputs[0]
            piece = piece_within(x, shape, index_map) if isinstance(
                x, Assemble) and x not in self.opaque else None
            if piece is None:
                break
            x, index_map = piece
        if x.shape == shape and index_map == identity_map(shape):
            return x
        return self.shared(View(shape, x.dtype, (x,), index_map))

    def reshape(self, x: Node, shape: Sequence[int]) -> Node:
        shape = sizes(shape)
        if x.shape == shape:
            return x
        if 0 in shape:
            return self.full(shape, 0, x.dtype)
        wide = [dim for dim, size in enumerate(shape) if size != 1]
        kept = [dim for dim, size in enumerate(x.shape) if size != 1]
        if [x.shape[dim] for dim in kept] == [shape[dim] for dim in wide]:
            places = dict(zip(kept, wide, strict=True))
            return self.view(x, shape, [(0, 1, places[dim]) if dim in places else (0, 0, -1)
                                        for dim in range(len(x.shape))])
        if isinstance(x, View) and all(dim < 0 for _, _, dim in x.index_map):   # one element
            return self.view(x.inputs[0], shape, x.index_map)
        if isinstance(x, Reshape):
            return self.reshape(x.inputs[0], shape)
        if isinstance(x, View) and reshape_access(strided(x), x.shape, shape) is None:
            x = self.copy(x)
        return self.shared(Reshape(shape, x.dtype, (x,)))

    def broadcast(self, x: Node, shape: Sequence[int], dims: Sequence[int]) -> Node:
        return self.view(x, shape, [
            (0, 1, dim) if size != 1 else (0, 0, -1)
            for dim, size in zip(dims, x.shape, strict=True)])

    def transpose(self, x: Node, permutation: Sequence[int]) -> Node:
        places = {dim: place for place, dim in enumerate(permutation)}
        return self.view(x, [x.shape[dim] for dim in permutation],
                         [(0, 1, places[dim]) for dim in range(len(x.shape))])

    def slice(self, x: Node, starts: Sequence[int], limits: Sequence[int],
              strides: Sequence[int] | None) -> Node:
        strides = strides or (1,) * len(starts)
        shape = [max(0, -(-(limit - start) // step))
                 for start, limit, step in zip(starts, limits, strides, strict=True)]
        if 0 in shape:
            return self.full(shape, 0, x.dtype)
        return self.view(x, shape, [(start, step, dim) for dim, (start, step)
                                    in enumerate(zip(starts, strides, strict=True))])

    def reverse(self, x: Node, dimensions: Sequence[int]) -> Node:
        return self.view(x, x.shape, [
            (size - 1, -1, dim) if dim in dimensions else (0, 1, dim)
            for dim, size in enumerate(x.shape)])

    def concatenate(self, xs: Sequence[Node], axis: int) -> Node:
        total = sum(x.shape[axis] for x in xs)
        xs = [self._piece(x) for x in xs if x.size] or [
            self.full((*xs[0].shape[:axis], total, *xs[0].shape[axis + 1:]), 0, xs[0].dtype)]
        if len(xs) == 1:
            return xs[0]
        pieces, position = [], 0
        rank = len(xs[0].shape)
        for x in xs:
            starts = [0] * rank
            starts[axis] = position
            pieces.append(Piece(tuple(starts), (1,) * rank))
            position += x.shape[axis]
        shape = list(xs[0].shape)
        shape[axis] = position
        return self.shared(Assemble(sizes(shape), xs[0].dtype, tuple(xs), tuple(pieces)))

    def _piece(self, x: Node) -> Node:
        """A piece of an assembled array; an iota, which is not in memory, cannot be one."""
        return self.copy(x) if isinstance(base_of(x), Iota) else x

    def pad(self, x: Node, value: Node, config: Sequence[Any]) -> Node:
        shape, starts, first, count, steps = [], [], [], [], []
        for size, (low, high, interior) in zip(x.shape, config, strict=True):
            step = interior + 1
            total = low + high + size + max(0, size - 1) * interior
            # The elements i of x whose position low + i * step is within [0, total).
            begin = max(0, -(low // step))
            end = max(begin, min(size, -((low - total) // step)))
            shape.append(total)
            first.append(begin)
            count.append(end - begin)
            starts.append(low + begin * step)
            steps.append(step)
        if 0 in shape:
            return self.full(shape, 0, x.dtype)
        if 0 in count:
            return self._spread(value, shape)
        x = self.slice(x, first, [b + n for b, n in zip(first, count, strict=True)], None)
        if x.shape == tuple(shape):
            return x
        return self.shared(Assemble(
            sizes(shape), x.dtype, (self._piece(x), self._piece(value)),
            (Piece(tuple(starts), tuple(steps)),)))

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

    def call(self, function: str, operands: Sequence[Node], integers: Sequence[int],
             results: Sequence[tuple[Sequence[int], Any]],
             strided: bool = False) -> list[Node]:
        if not strided:
            operands = [self.memory(x) for x in operands]
        call = self.shared(Call((), np.dtype(np.int8), tuple(operands), function,
                                tuple(integers), strided, tuple(
                                    math.prod(shape) * np.dtype(dtype).itemsize
                                    for shape, dtype in results)))
        return [self.shared(Result(sizes(shape), np.dtype(dtype), (call,), number))
                for number, (shape, dtype) in enumerate(results)]

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
        given = [self.convert(x, np.int32) if role is Role.INDEX else x
                 for x, role in zip(operands, flow.roles, strict=True)]
        loop = Loop((), np.dtype(np.int8), tuple(self.memory(x) for x in given), name, flow)
        return [self.shared(Result(sizes(aval.shape), memory_dtype(aval.dtype), (loop,), number))
                for number, aval in enumerate(flow.out_avals())]


@functools.lru_cache(maxsize=4096)
def _common_shape(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    return np.broadcast_shapes(*shapes)


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


def sizes(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(int, shape))


def _uniform(value: np.ndarray) -> bool:
    """All elements have the same bits."""
    flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8).reshape(value.size, -1)
    return bool((flat == flat[0]).all())

