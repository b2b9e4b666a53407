"""The lowering of elements to nodes: constants, elementwise operations, and what changes shapes."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._max.lowering import Lowering
from maxjax._max.mojo.nodes import (
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
    Movement,
    Node,
    Piece,
    Reshape,
    Result,
    View,
    base_of,
    compose,
    identity_map,
    is_row_major,
    memory_dtype,
    piece_within,
    reshape_access,
    strided,
)

_ON_BOOLS = {"add": "or", "mul": "and", "max": "or", "min": "and", "logical_and": "and",
             "logical_or": "or", "logical_xor": "xor", "logical_not": "not"}
_BOOL = np.dtype(bool)
_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))
# An operand that is read so many times, by operations of at least so many elements, is copied where
# its elements are not next to one another.
_READ_AGAIN = 8
_LEAST_GATHERED = 4096
# Elements next to one another that are read in a row although others come between the rows.
_SHORT_RUN = 16


class ElementContext(Lowering[Node]):
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


@functools.lru_cache(maxsize=4096)
def _common_shape(shapes: tuple[tuple[int, ...], ...]) -> tuple[int, ...]:
    return np.broadcast_shapes(*shapes)


def sizes(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(int, shape))


def _uniform(value: np.ndarray) -> bool:
    """All elements have the same bits."""
    flat = np.ascontiguousarray(value).reshape(-1).view(np.uint8).reshape(value.size, -1)
    return bool((flat == flat[0]).all())
