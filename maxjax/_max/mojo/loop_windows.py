"""Windows of arrays in loops over few elements: where their lines lie, and what moves them.

What ``dynamic_slice`` reads and ``dynamic_update_slice`` writes is some lines, each of elements
that lie together, and each at a known distance from the first. So a line is one instruction, of an
index that all lines share. What an array is joined of are windows at known places.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from maxjax._max.mojo.loop_memory import Unsuited, Value
from maxjax._max.mojo.nodes import Access, Assemble, Call, Node, View, map_access, row_major
from maxjax._max.mojo.pack_integers import merged
from maxjax._max.mojo.scalar_code import Register
from maxjax._max.mojo.vector_functions import operation

if TYPE_CHECKING:
    from maxjax._max.mojo.small_loops import Builder

# Lines that are moved by one instruction each.
MOST_LINES = 16


@dataclass(frozen=True)
class Window:
    """Where a window may be in a row-major array.

    Attributes:
      axes: the dimensions of which it is a part; along others it begins at 0.
      strides: how far positions along those are apart, in elements.
      lasts: the last positions along those at which it may begin.
      run: how many elements of a line lie together.
      lines: where lines begin, from where the window does.
    """

    axes: tuple[int, ...]
    strides: tuple[int, ...]
    lasts: tuple[int, ...]
    run: int
    lines: tuple[int, ...]

    @property
    def stride(self) -> int:
        """How far those that an index counts are apart: positions, if along one dimension."""
        return self.strides[0] if len(self.axes) == 1 else 1

    @property
    def places(self) -> int:
        """How many values that index has."""
        span = sum(last * stride for last, stride in zip(self.lasts, self.strides, strict=True))
        return span // self.stride + 1


def lines_of(part: Sequence[int], whole: Sequence[int]) -> int:
    """How many lines a window of that shape has in an array."""
    last = max((axis for axis, (size, bound) in enumerate(zip(part, whole, strict=True))
                if size != bound), default=0)
    return math.prod(part[:last])


def window(integers: Sequence[int]) -> Window:
    """The window of a call of ``read_window`` or ``write_window``, of its integers."""
    rank = integers[0]
    part, strides, _, whole = (integers[1 + k * rank:1 + (k + 1) * rank] for k in range(4))
    axes = tuple(axis for axis in range(rank) if part[axis] != whole[axis])
    last = max(axes, default=0)
    return Window(
        axes, tuple(strides[axis] for axis in axes),
        tuple(whole[axis] - part[axis] for axis in axes), math.prod(part[last:]),
        tuple(sum(place * stride for place, stride in zip(at, strides, strict=False))
              for at in itertools.product(*map(range, part[:last]))))


def read_window(builder: Builder, node: Call, x: Value, positions: Register) -> Register:
    """A window at a computed place, each line by an instruction of its own."""
    place = window(node.integers)
    own = x if isinstance(x, Register) and x not in builder.loaded else None
    memory = builder.table(x) if isinstance(x, Register) else x
    index = _index(builder, place, positions)
    count, itemsize = place.run, memory.dtype.itemsize
    target = builder.new(count * len(place.lines), memory.dtype,
                         memory.is_constant and memory.cell.invariant and index.invariant)
    block = builder.prologue if target.invariant else builder.block
    for number, line in enumerate(place.lines):
        piece = target if len(place.lines) == 1 else builder.new(
            count, memory.dtype, target.invariant)
        # What is read of a register is read after that is written.
        block.append(builder.row("read", piece, (memory.cell, index, *([own] if own else [])),
                                 place.places, place.stride * itemsize, line * itemsize, True))
        if piece is not target:
            builder.move(target, number * count, piece, 0, [(count, 1, 1)])
    return target


def write_window(builder: Builder, node: Call, x: Value, positions: Register,
                 updates: Register) -> Value:
    """An array with a window written at a computed place."""
    place = window(node.integers)
    index = _index(builder, place, positions)
    count, itemsize = place.run, updates.dtype.itemsize
    if isinstance(x, Register):
        made = builder.new(x.elements, x.dtype)
        builder.put("assign", made, x, index, updates, elements=count, numbers=(
            place.stride, place.places, *place.lines))
        return made
    if x.is_constant:
        raise Unsuited
    for number, line in enumerate(place.lines):
        piece = updates
        if len(place.lines) > 1:
            piece = builder.new(count, x.dtype)
            builder.move(piece, 0, updates, number * count, [(count, 1, 1)])
        builder.block.append(builder.row("write", None, (x.cell, index, piece), place.places,
                                         place.stride * itemsize, line * itemsize, True))
    return x


def _index(builder: Builder, place: Window, positions: Register) -> Register:
    """The index of a window's place, which is one that is there."""
    word = np.dtype(np.int64)
    index: Register | None = None
    for axis, stride, last in zip(place.axes, place.strides, place.lasts, strict=True):
        position = _integer(builder, "min", builder.element(positions, axis), last)
        position = _integer(builder, "max", position, 0)
        if stride != place.stride:
            position = _integer(builder, "mul", position, stride)
        index = position if index is None else builder.computed(
            [index, position], 1, word, "apply", operation("add", word, word), 1, name="add")
    assert index is not None
    return index


def _integer(builder: Builder, name: str, x: Register, number: int) -> Register:
    """An integer and a number."""
    given = [x, builder.load(builder.plan.constant(np.array(number, x.dtype)), 1, x.dtype)]
    same = builder.ranges.unchanged(name, given)
    if same is not None:
        return same
    made = builder.computed(given, 1, x.dtype, "apply", operation(name, x.dtype, x.dtype), 1,
                            name=name)
    builder.ranges.set(made, builder.ranges.result(name, given, x.dtype))
    return made


def assemble(builder: Builder, node: Assemble, given: Sequence[Register],
             values: Mapping[Node, Value]) -> Register:
    """The register of an array that is joined of pieces, which are computed already."""
    register = builder.new(node.size, node.dtype)
    if node.filler is not None:
        builder.put("spread", register, given[-1], elements=node.size, numbers=(0,))
    strides = row_major(node.shape)
    for source, x, piece in zip(node.sources, given, node.pieces, strict=False):
        dims = merged([
            (size, step * stride, own) for size, step, stride, own in zip(
                source.shape, piece.steps, strides, row_major(source.shape), strict=True)])
        begin = sum(start * stride for start, stride
                    in zip(piece.starts, strides, strict=True))
        # A slice is copied once, to where it goes.
        whole = values[source.inputs[0]] if isinstance(source, View) else None
        if isinstance(source, View) and isinstance(whole, Register):
            access = map_access(Access(0, row_major(source.inputs[0].shape)),
                                source.index_map, len(source.shape))
            direct = merged([
                (size, step * stride, own) for size, step, stride, own in zip(
                    source.shape, piece.steps, strides, access.strides, strict=True)])
            if len(direct) <= 1:
                builder.move(register, begin, whole, access.offset, direct)
                continue
        builder.move(register, begin, x, 0, dims)
    builder.ranges.set(register, builder.ranges.joined(given))
    return register
