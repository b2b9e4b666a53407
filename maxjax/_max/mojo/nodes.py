"""The operations that lowerings emit on the Mojo backend, and maps between their indices.

A ``Node`` is a value of static shape and physical dtype; its class says how it is computed, and
which properties it must have. ``check.py`` checks them. Nodes are compared and hashed by identity:
``MojoContext`` merges equal ones.

An index map gives, for each dimension of the source, ``(start, step, dim)``: the source's index is
``start + step * index[dim]``, or ``start`` alone where dim is -1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, dataclass_transform

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.control_flow import Structure
from maxjax._max.host_step import HostStep

IndexMap = tuple[tuple[int, int, int], ...]
ON_HOST = "host"
_Class = TypeVar("_Class")


@dataclass_transform(eq_default=False, frozen_default=True)
def node_class(cls: type[_Class]) -> type[_Class]:
    """A class of nodes, which only type checkers treat as frozen: at run time, creating a frozen
    node would take twice as long, and planning 5 % longer."""
    return dataclass(eq=False, slots=True, repr=False)(cls)


@node_class
class Node:
    """One value, or the producer of several.

    Attributes:
      shape: sizes; none is 0 except in `Input`, `Result` and `Empty`.
      dtype: a NumPy dtype that memory can hold.
      inputs: the operands.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    inputs: tuple[Node, ...]

    @property
    def details(self) -> tuple[Any, ...]:
        """What distinguishes nodes of one class, shape, dtype and operands; hashable."""
        return ()

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        words = [type(self).__name__.lower(), *(x for x in self.details if isinstance(x, str))]
        return f"<{' '.join(words)} {self.dtype}[{','.join(map(str, self.shape))}]>"


# --- what is in memory when a program begins ---
@node_class
class Input(Node):
    """An argument of the program, in row-major order; no operands.

    Attributes:
      number: which; not negative.
    """

    number: int

    @property
    def details(self) -> tuple[Any, ...]:
        return (self.number,)


@node_class
class Constant(Node):
    """An array that is stored with the program; no operands.

    Attributes:
      value: of the node's shape and dtype, in row-major order.
    """

    value: np.ndarray


@node_class
class Empty(Node):
    """A value without elements: a size is 0, and there are no operands."""


# --- what generated kernels compute ---
@node_class
class Computed(Node):
    """A value that a generated kernel computes.

    Attributes:
      name: of the operation.
    """

    name: str


@node_class
class Apply(Computed):
    """An elementwise operation on one or more operands, each of the node's own shape.

    The operations are those of ``kernels/*.mojo``, and ``copy``, of one operand of the same dtype.

    Attributes:
      source: the user's Mojo text that defines ``custom <name>``; None for all others.
    """

    source: str | None = None

    @property
    def details(self) -> tuple[Any, ...]:
        return self.name, self.source


@node_class
class Reduce(Computed):
    """A reduction (sum, prod, max, min, and, or, xor) of one operand of the same dtype.

    Attributes:
      axes: the operand's dimensions that are reduced, one or more, ascending; the node's shape is
        the rest.
    """

    axes: tuple[int, ...]

    @property
    def details(self) -> tuple[Any, ...]:
        return self.name, self.axes


# --- other ways to look at elements: no memory of their own ---
@node_class
class Movement(Node):
    """One operand's elements, where they are."""


@node_class
class View(Movement):
    """One operand's elements at other indices; the operand is not a view, and has the same dtype.

    Attributes:
      index_map: for each of the operand's dimensions. It is within bounds for all indices of the
        node; a nonzero step moves along a dimension of the node whose size is not 1, and each
        dimension of the node is used at most once.
    """

    index_map: IndexMap

    @property
    def details(self) -> tuple[Any, ...]:
        return (self.index_map,)


@node_class
class Reshape(Movement):
    """One operand's elements, in row-major order, in another shape of equal size.

    The operand is not a reshape; strides can express this one, or the operand has no memory of its
    own.
    """


@node_class
class Iota(Node):
    """The index along one dimension; not in memory, no operands."""


@node_class
class Alias(Node):
    """The operand's bytes as a dtype of another size; the operand is row-major in memory.

    The last dimension is added or removed to make up for the difference.
    """


# --- units of their own: neither one kernel with others nor part of one ---
@node_class
class Unit(Node):
    """Calls of functions that are not generated."""


@node_class
class Composed(Unit):
    """An array of whose windows pieces are written, each by what computes it if that can be.

    Attributes:
      pieces: the window of each of the first operands.
    """

    pieces: tuple[Piece, ...]

    @property
    def details(self) -> tuple[Any, ...]:
        return (self.pieces,)

    @property
    def sources(self) -> tuple[Node, ...]:
        """The operands that are pieces."""
        return self.inputs[:len(self.pieces)]

    @property
    def filler(self) -> Node | None:
        """What is written before the pieces, if anything."""
        return self.inputs[-1] if len(self.inputs) > len(self.pieces) else None


@node_class
class Assemble(Composed):
    """Pieces put into windows of a new array of their dtype.

    Without a filler the windows, which do not overlap, cover the array. The filler, the operand
    after the pieces, is one element.
    """


@node_class
class Overlay(Composed):
    """An array of which one window is overwritten, in the memory of the array if that is not read
    any more. The operands are the piece and the array, of the node's shape and row-major."""

    @property
    def ground(self) -> Node:
        """The array."""
        return self.inputs[-1]


@node_class
class Call(Unit):
    """A function of the kernel pack, or a step of the host; its results are `Result` nodes, its
    shape and dtype are meaningless.

    Attributes:
      function: the function's name; `ON_HOST` for a step of the host.
      integers: those that follow the places of operands and results.
      strided: whether the operands may be any views and reshapes; the planner then makes the
        integers, and there are none here. Otherwise each operand is row-major in memory.
      result_bytes: the size of each result: all are written, also those that nobody reads.
      host: the step of the host.
    """

    function: str
    integers: tuple[int, ...] = ()
    strided: bool = False
    result_bytes: tuple[int, ...] = ()
    host: HostStep | None = None

    @property
    def details(self) -> tuple[Any, ...]:
        return self.function, self.integers, self.strided, self.result_bytes, self.host


@node_class
class Loop(Unit):
    """Programs that run within this one; the results are `Result` nodes, shape and dtype are
    meaningless. Each operand is row-major in memory; an index is an int32.

    Attributes:
      name: of the loop or choice.
      flow: the roles of its operands in its programs.
    """

    name: str
    flow: Structure

    @property
    def details(self) -> tuple[Any, ...]:
        flow = self.flow
        return (self.name, flow.operands, *(id(body.jaxpr) for body in flow.bodies), flow.length,
                flow.reverse)


@node_class
class Result(Node):
    """One result of its operand, a call or a loop, in row-major order.

    Attributes:
      number: which; not negative.
    """

    number: int

    @property
    def details(self) -> tuple[Any, ...]:
        return (self.number,)


class Piece(NamedTuple):
    """The window of a piece of an ``Assemble``: its first element's index and the steps."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]


# Complex numbers are computed with in parts: whole ones are only bits that lie in memory.
_PAIRS = {np.dtype(np.complex64): np.dtype(np.uint64), np.dtype(np.complex128): np.dtype("V16")}
# The sizes in bytes of elements that the pack copies; the parts of complex numbers of others.
COPIED = (1, 2, 4, 8)
PARTS = {8: np.dtype(np.float32), 16: np.dtype(np.float64)}


def memory_dtype(dtype: Any) -> np.dtype:
    """The dtype that nodes of a dtype have: of complex ones, that of a pair's bits."""
    known = dtypes.physical(dtype)
    return _PAIRS.get(known, known)


@functools.lru_cache(maxsize=4096)
def identity_map(shape: tuple[int, ...]) -> IndexMap:
    return tuple((0, 1, dim) if size != 1 else (0, 0, -1) for dim, size in enumerate(shape))


def compose(inner: IndexMap, outer: IndexMap) -> IndexMap:
    """The map of a view (``outer``) of a view (``inner``): to the index of inner's source."""
    result = []
    for start, step, dim in inner:
        if dim >= 0:
            start2, step2, dim2 = outer[dim]
            start, step, dim = start + step * start2, step * step2, dim2
            if dim < 0 or step == 0:
                step, dim = 0, -1
        result.append((start, step, dim))
    return tuple(result)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    return _row_major(tuple(shape))


@functools.lru_cache(maxsize=4096)
def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for dim in range(len(shape) - 2, -1, -1):
        strides[dim] = strides[dim + 1] * shape[dim + 1]
    return tuple(strides)


class Access(NamedTuple):
    """Elements of an array in memory: the first one's offset, and each dimension's stride."""

    offset: int
    strides: tuple[int, ...]


@functools.lru_cache(maxsize=4096)
def map_access(access: Access, index_map: IndexMap, rank: int) -> Access:
    """How memory is accessed through an index map, over a space of ``rank`` dimensions."""
    offset = access.offset
    strides = [0] * rank
    for stride, (start, step, dim) in zip(access.strides, index_map, strict=True):
        offset += start * stride
        if dim >= 0:
            strides[dim] += step * stride
    return Access(offset, tuple(strides))


def is_copy(node: Node) -> bool:
    """Whether a call only copies elements from where strides say."""
    return isinstance(node, Call) and node.strided and node.function.startswith("copy_")


def is_update(node: Node) -> bool:
    """Whether a call has its first operand as its result but for some elements, which it may write
    in place."""
    return isinstance(node, Call) and node.function.startswith(("scatter_rows_", "write_window_"))


@functools.lru_cache(maxsize=4096)
def reshape_access(access: Access, old: tuple[int, ...], new: tuple[int, ...]) -> Access | None:
    """How memory is accessed in another shape; None where strides cannot express it."""
    if 0 in old:
        return Access(access.offset, (0,) * len(new))
    # Dimensions of size 1 have no stride to respect; contiguous runs are merged.
    runs: list[tuple[int, int]] = []
    for size, stride in zip(old, access.strides, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * stride:
            runs[-1] = (runs[-1][0] * size, stride)
        else:
            runs.append((size, stride))
    strides = [0] * len(new)
    position = len(runs) - 1
    left, stride = runs[position] if runs else (1, 0)
    for dim in range(len(new) - 1, -1, -1):
        size = new[dim]
        if size == 1:
            continue
        while left == 1 and position > 0:
            position -= 1
            left, stride = runs[position]
        if left % size:
            return None
        strides[dim] = stride
        stride *= size
        left //= size
    return Access(access.offset, tuple(strides))


def base_of(node: Node) -> Node:
    """The base of a chain of views and reshapes."""
    while isinstance(node, Movement):
        node = node.inputs[0]
    return node


def strided(node: Node) -> Access:
    """The access of a chain of views and reshapes to its base's memory."""
    if not isinstance(node, Movement):
        return _whole(node.shape)
    if isinstance(node, View):
        return map_access(strided(node.inputs[0]), node.index_map, len(node.shape))
    if isinstance(node, Reshape):
        source = node.inputs[0]
        access = reshape_access(strided(source), source.shape, node.shape)
        assert access is not None, "a reshape that strides cannot say was not copied"
        return access
    raise AssertionError(f"{node!r} moves nothing")


@functools.lru_cache(maxsize=4096)
def _whole(shape: tuple[int, ...]) -> Access:
    return Access(0, row_major(shape))


def is_row_major(strides: Sequence[int], shape: Sequence[int]) -> bool:
    return all(stride == wanted for stride, wanted, size
               in zip(strides, row_major(shape), shape, strict=True) if size != 1)


# Pieces of an assembled array that are looked through for what a view shows.
_MOST_PIECES = 32


def piece_within(x: Assemble, shape: tuple[int, ...], index_map: IndexMap
                  ) -> tuple[Node, IndexMap] | None:
    """The piece that a view of an assembled array lies in, or the filler, and the view's map of it.
    """
    ranges = []
    for start, step, dim in index_map:
        last = start if dim < 0 else start + step * (shape[dim] - 1)
        ranges.append((min(start, last), max(start, last)))
    for source, piece in zip(x.sources[:_MOST_PIECES], x.pieces, strict=False):
        if all(step == 1 for step in piece.steps) and all(
                begin <= low and high < begin + size for (low, high), begin, size in zip(
                    ranges, piece.starts, source.shape, strict=True)):
            return source, tuple((start - begin, step, dim) for (start, step, dim), begin in zip(
                index_map, piece.starts, strict=True))
    if x.filler is not None and len(x.pieces) <= _MOST_PIECES and all(
            any(high < begin or low > begin + step * (size - 1)
                for (low, high), begin, step, size in zip(
                    ranges, piece.starts, piece.steps, source.shape, strict=True))
            for source, piece in zip(x.sources, x.pieces, strict=True)):
        return x.filler, ((0, 0, -1),) * len(x.filler.shape)
    return None
