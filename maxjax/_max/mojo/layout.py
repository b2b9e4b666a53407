"""The layout of the integers in a generated kernel's call: planners write them, kernels read them.

For a call with ``operands`` operands, each an array in memory or an iota:

  place(k)       operand k's slot and byte offset; for an iota 0 and its first value
  threads        how many threads share the call's items
  items          points, times pieces
  length         elements of a sweep
  pieces         of each point's sweep, which are separate items: pieces of a map, blocks of columns
  rows           how many rows a point has
  stride(k)      operand k's stride in a sweep
  points         a walk over the points
  (behind it)    a walk over a point's rows

Mojo text has the positions from ``kernels/abi.mojo``, which is written from `KernelLayout`
(``abi.py``).

A walk is a rank, the sizes of that many dimensions, and each operand's stride in each of them;
``Walk`` of ``kernels/loops.mojo`` reads it. ``operand`` of ``kernels/calling.mojo`` reads places,
``launch`` of ``kernels/launching.mojo`` the threads and the items after them. Strides are in
elements; an iota's are in its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

# Of a walk.
MOST_DIMENSIONS = 16


class KernelIntegers(NamedTuple):
    """The decoded integers of a call.

    Attributes:
      places: of each operand, see above.
      threads, items, length, pieces, rows: see above.
      strides: of each operand in a sweep.
      point_dims, row_dims: each dimension's size, then the operands' strides.
    """

    places: list[tuple[int, int]]
    threads: int
    items: int
    length: int
    pieces: int
    rows: int
    strides: list[int]
    point_dims: list[list[int]]
    row_dims: list[list[int]]


@dataclass(frozen=True, slots=True)
class KernelLayout:
    """The positions of integers in the calls of kernels with this many operands."""

    operands: int

    def place(self, operand: int) -> int:
        """The slot's position; the byte offset, or an iota's first value, follows it."""
        return 2 * operand

    @property
    def threads(self) -> int:
        return 2 * self.operands

    @property
    def items(self) -> int:
        return self.threads + 1

    @property
    def length(self) -> int:
        return self.threads + 2

    @property
    def pieces(self) -> int:
        return self.threads + 3

    @property
    def rows(self) -> int:
        return self.threads + 4

    def stride(self, operand: int) -> int:
        return self.threads + 5 + operand

    @property
    def points(self) -> int:
        return self.stride(self.operands)

    @property
    def dimension(self) -> int:
        """How many integers each dimension of a walk adds to it."""
        return 1 + self.operands

    def walk_length(self, rank: str) -> str:
        """The Mojo expression for a walk's number of integers, given one for its rank."""
        return f"1 + {self.dimension} * {rank}"

    def write(self, call: KernelIntegers) -> list[int]:
        """The integers, in their order."""
        integers: list[int] = []
        for slot, offset in call.places:
            integers += (slot, offset)
        integers += (call.threads, call.items, call.length, call.pieces, call.rows, *call.strides)
        for dims in (call.point_dims, call.row_dims):
            integers.append(len(dims))
            for column in range(self.dimension):
                integers += [dim[column] for dim in dims]
        return integers

    def read(self, integers: Sequence[int]) -> KernelIntegers:
        """Decodes integers.

        Raises:
          ValueError: their number is not the one they state.
        """
        walks: list[list[list[int]]] = []
        begin = self.points
        for _ in range(2):
            rank = integers[begin] if begin < len(integers) else 0
            end = begin + 1 + self.dimension * rank
            columns = integers[begin + 1:end]
            walks.append([list(columns[dim::rank]) for dim in range(rank)])
            begin = end
        if begin != len(integers):
            raise ValueError(f"there are {len(integers)} integers, and should be {begin}")
        return KernelIntegers(
            [(integers[self.place(k)], integers[self.place(k) + 1])
             for k in range(self.operands)],
            integers[self.threads], integers[self.items], integers[self.length],
            integers[self.pieces], integers[self.rows],
            [integers[self.stride(k)] for k in range(self.operands)], *walks)
