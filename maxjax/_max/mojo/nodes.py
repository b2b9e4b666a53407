"""The operations that lowerings come down to on the Mojo backend, and how an index maps to another.

A ``Node`` is a value of static shape and physical dtype. Its kind says how it is made:

  input       argument ``params`` of the program
  constant    an array, kept with the program
  apply       an elementwise operation on operands of the node's own shape
  view        another node's elements at other places, by an index map
  reshape     the same elements, row by row
  iota        the index along one dimension
  reduce      a reduction over axes
  assemble    pieces put into windows of a new array, over a filler
  call        a function of the kernel pack; its results are ``result`` nodes
  loop        scan, while or cond, with programs of their own; its results are ``result`` nodes
  result      one result of a call or a loop
  alias       the same memory as another dtype
  empty       no elements

An index map gives, for each dimension of the source, ``(start, step, dim)``: the source's index is
``start + step * index[dim]``, or ``start`` alone where dim is -1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

IndexMap = tuple[tuple[int, int, int], ...]


class Node:
    """One value; see the module.

    Attributes:
      kind, shape, dtype: as the module says; dtype is a NumPy dtype.
      name: of the elementwise operation, the reduction, the pack's function or the loop.
      inputs: the operands.
      params: what else there is to say, by kind.
    """

    __slots__ = ("dtype", "inputs", "kind", "name", "number", "params", "shape")

    def __init__(self, kind: str, shape: tuple[int, ...], dtype: np.dtype,
                 inputs: tuple[Node, ...] = (), name: str = "", params: Any = None):
        self.kind = kind
        self.shape = shape
        self.dtype = dtype
        self.inputs = inputs
        self.name = name
        self.params = params
        self.number = 0

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name} {self.dtype}{list(self.shape)}>"


class CallSpec(NamedTuple):
    """What a ``call`` needs beside its operands.

    Attributes:
      function: the pack's function.
      integers: sizes that follow the operands.
      strided: the operands may have any strides; the planner makes the integers of them.
    """

    function: str
    integers: tuple[int, ...]
    strided: bool = False


class LoopSpec(NamedTuple):
    """A loop's programs and the counts of its operands, in the order consts, carry, xs."""

    bodies: tuple[Any, ...]     # ClosedJaxprs
    counts: tuple[int, ...]
    length: int = 0
    reverse: bool = False


class Piece(NamedTuple):
    """Where a piece of an ``assemble`` goes: its first element's index and the steps."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]


def identity_map(shape: Sequence[int]) -> IndexMap:
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
    strides = [1] * len(shape)
    for dim in range(len(shape) - 2, -1, -1):
        strides[dim] = strides[dim + 1] * shape[dim + 1]
    return tuple(strides)


class Access(NamedTuple):
    """Elements of an array in memory: where the first is, and the stride of each dimension."""

    offset: int
    strides: tuple[int, ...]


def map_access(access: Access, index_map: IndexMap, rank: int) -> Access:
    """The same memory through an index map, over a space of ``rank`` dimensions."""
    offset = access.offset
    strides = [0] * rank
    for stride, (start, step, dim) in zip(access.strides, index_map, strict=True):
        offset += start * stride
        if dim >= 0:
            strides[dim] += step * stride
    return Access(offset, tuple(strides))


def reshape_access(access: Access, old: Sequence[int], new: Sequence[int]) -> Access | None:
    """The same memory in another shape, where strides can say it."""
    if 0 in old:
        return Access(access.offset, (0,) * len(new))
    # Dimensions of size 1 have no stride to respect; runs that lie as one are one.
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
    """What a chain of views and reshapes looks at."""
    while node.kind in ("view", "reshape"):
        node = node.inputs[0]
    return node


def strided(node: Node) -> Access:
    """Where a chain of views and reshapes looks, in its base's memory."""
    if node.kind == "view":
        return map_access(strided(node.inputs[0]), node.params, len(node.shape))
    if node.kind == "reshape":
        source = node.inputs[0]
        access = reshape_access(strided(source), source.shape, node.shape)
        assert access is not None, "a reshape that strides cannot say was not copied"
        return access
    return Access(0, row_major(node.shape))


def is_row_major(strides: Sequence[int], shape: Sequence[int]) -> bool:
    return all(stride == wanted for stride, wanted, size
               in zip(strides, row_major(shape), shape, strict=True) if size != 1)
