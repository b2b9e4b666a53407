"""Registers of a loop over few elements (``small_loops.py``): what gives them their places, and
instructions that fill one with the elements of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from maxjax._max.mojo.abi import ALIGNMENT
from maxjax._max.mojo.loop_copies import without_unread
from maxjax._max.mojo.loop_memory import MOST_ELEMENTS, Memory, Unsuited, Value
from maxjax._max.mojo.loop_ranges import Ranges, known_range
from maxjax._max.mojo.loop_runs import VECTOR
from maxjax._max.mojo.loop_windows import MOST_LINES
from maxjax._max.mojo.nodes import COPIED, Access, row_major
from maxjax._max.mojo.pack_integers import merged
from maxjax._max.mojo.scalar_code import (
    Instruction,
    Item,
    LoopCode,
    Place,
    Register,
    every_instruction,
)

if TYPE_CHECKING:
    from maxjax._max.mojo.plan import Plan

MOST_SINGLES = 4                # elements that are rather computed one by one
_MOST_BYTES = 48 << 10          # of registers
_MOST_INSTRUCTIONS = 4096


class Registers:
    """The registers of a loop while its code is made, and what fills them from one another.

    Attributes:
      block: where instructions are added; ``prologue``: those before the loop.
      loaded: registers of what is in memory throughout the loop, and where that is.
      ranges: what is known of integers.
    """

    def __init__(self, plan: Plan, slot: int):
        self.plan = plan
        self.slot = slot
        self.places: list[Place | None] = []
        self.copies: list[tuple[Place, int, int]] = []
        self.prologue: list[Item] = []
        self.block = self.prologue      # where instructions are added
        self.nbytes = 0
        self.count = 0
        self.constants: dict[Place, Register] = {}
        self.tables: dict[Place, Memory] = {}
        # What is made of a register once: one element spread to many, and elements.
        self.spreads: dict[tuple[Register, int, int], Register] = {}
        self.elements: dict[tuple[Register, int], Register] = {}
        self.sources: dict[Register, Register] = {}     # of what is spread, the element
        self.ranges = Ranges()
        self.loaded: dict[Register, Place] = {}
        self.known: dict[Register, int] = {}
        self.aims: dict[Register, Register] = {}    # where registers begin

    def new(self, elements: int, dtype: np.dtype, invariant: bool = False) -> Register:
        if elements > MOST_ELEMENTS or dtype.itemsize not in COPIED:
            raise Unsuited
        register = Register(self.count, elements, dtype, self.nbytes, invariant)
        size = register.room
        if size > 8:        # vectors are aligned
            self.nbytes = register.offset = -(-self.nbytes // ALIGNMENT) * ALIGNMENT
        self.count += 1
        self.nbytes += size
        if self.nbytes > _MOST_BYTES:
            raise Unsuited
        return register

    def element(self, register: Register, number: int) -> Register:
        """One element of a register."""
        if register.elements == 1:
            return register
        known = self.elements.get((register, number))
        if known is None:
            known = self.elements[register, number] = Register(
                number, 1, register.dtype, register.offset + number * register.dtype.itemsize,
                register.invariant, register)
        return known

    def number(self) -> Register:
        """A register for a number or an address."""
        return self.new(1, np.dtype(np.int64))

    def operand(self, place: Place | None) -> int:
        self.places.append(place)
        return len(self.places)

    def put(self, opcode: str, target: Register | None, *sources: Register, function: str = "",
            elements: int = 1, numbers: tuple[int, ...] = (),
            results: tuple[Register, ...] = ()) -> None:
        self.block.append(Instruction(opcode, target, sources, function, elements, numbers,
                                      results))

    def constant(self, place: Place, elements: int, dtype: np.dtype) -> Value:
        """What is in memory throughout the loop."""
        if elements <= MOST_ELEMENTS:
            return self.load(place, elements, dtype)
        known = self.tables.get(place)
        if known is None or (known.elements, known.dtype) != (elements, dtype):
            known = self.tables[place] = self.memory(place, elements, dtype, True)
        return known

    def memory(self, place: Place | None, elements: int, dtype: np.dtype, is_constant: bool
               ) -> Memory:
        """A large array that the code reaches there."""
        cell = self.new(1, np.dtype(np.int64), True)
        self.prologue.append(Instruction("point", cell, numbers=(self.operand(place), 0)))
        return Memory(cell, elements, dtype, is_constant)

    def load(self, place: Place, elements: int, dtype: np.dtype) -> Register:
        """A register that the code loads from a place of few elements, once."""
        known = self.constants.get(place)
        if known is not None and (known.elements, known.dtype) == (elements, dtype):
            return known
        register = self.new(elements, dtype, True)
        self.prologue.append(Instruction("load", register, numbers=(self.operand(place),)))
        self.constants[place] = register
        self.loaded[register] = place
        data = self.plan.constant_at(place)
        self.ranges.set(register, known_range(data, elements, dtype))
        if elements == 1 and dtype.kind in "iu" and data is not None \
                and len(data) == dtype.itemsize:
            self.known[register] = int(np.frombuffer(data, dtype)[0])
        return register

    def copy(self, target: Register, source: Register) -> None:
        if target.dtype == source.dtype and source.elements <= MOST_SINGLES:
            for k in range(source.elements):
                self.put("move", self.element(target, k), self.element(source, k),
                         numbers=(0, 1, 0, 1))
        else:
            self.put("move", target, source, elements=source.elements, numbers=(0, 1, 0, 1))

    def computed(self, given: Sequence[Register], elements: int, dtype: np.dtype, opcode: str,
                 function: str, count: int, numbers: tuple[int, ...] = (),
                 name: str = "") -> Register:
        """A function of registers: before the loop where they are known there."""
        invariant = all(x.invariant for x in given)
        register = self.new(elements, dtype, invariant)
        (self.prologue if invariant else self.block).append(
            Instruction(opcode, register, tuple(given), function, count, numbers, name=name))
        return register

    def view(self, source: Register, access: Access, shape: tuple[int, ...]) -> Register:
        """Elements of a register in row-major order."""
        dims = merged([(size, target, stride) for size, target, stride
                        in zip(shape, row_major(shape), access.strides, strict=True)])
        elements = math.prod(shape)
        if not any(stride for _, _, stride in dims):
            if elements == 1:
                return self.element(source, access.offset)
            known = self.spreads.get((source, elements, access.offset))
            if known is not None:
                return known
            register = self.computed([source], elements, source.dtype, "spread", "", elements,
                                     (access.offset,))
            self.sources[register] = self.element(source, access.offset)
            if register.invariant:
                self.spreads[source, elements, access.offset] = register
            return register
        if access.offset == 0 and dims == [(source.elements, 1, 1)]:
            return source
        register = self.new(elements, source.dtype, source.invariant)
        self.move(register, 0, source, access.offset, dims)
        return register

    def move(self, target: Register, to: int, source: Register, begin: int,
             dims: Sequence[tuple[int, int, int]]) -> None:
        """Copies elements.

        Args:
          dims: sizes, and strides of target and source.
        """
        line = self.line(dims)
        count, step, source_step = dims[line] if dims else (1, 1, 1)
        rest = [dim for number, dim in enumerate(dims) if number != line]
        if math.prod(size for size, _, _ in rest) > MOST_LINES:
            raise Unsuited
        offsets = [(to, begin)]
        for size, target_stride, source_stride in rest:
            offsets = [(a + i * target_stride, b + i * source_stride)
                       for a, b in offsets for i in range(size)]
        block = self.prologue if target.invariant else self.block
        if count * len(offsets) <= MOST_SINGLES:
            block += [Instruction("move", self.element(target, a + i * step),
                                  (self.element(source, b + i * source_step),),
                                  numbers=(0, 1, 0, 1))
                      for a, b in offsets for i in range(count)]
            return
        block += [Instruction("move", target, (source,), elements=count,
                              numbers=(a, step, b, source_step)) for a, b in offsets]

    @staticmethod
    def line(dims: Sequence[tuple[int, int, int]]) -> int:
        """The dimension whose elements one instruction moves: the longest, or, as a kernel has
        vectors of them, one that stays one in the target and comes from a vector or an element."""
        elements = math.prod(size for size, _, _ in dims)
        for number, (size, step, source_step) in enumerate(dims):
            if size >= VECTOR and step == 1 and source_step in (0, 1) \
                    and elements <= MOST_LINES * size:
                return number
        return max(range(len(dims)), key=lambda dim: dims[dim][0], default=-1)

    def table(self, x: Register) -> Memory:
        """A register as an array that rows are read of: of what is in memory, where it is."""
        place = self.loaded.get(x)
        if place is not None:
            known = self.tables.get(place)
            if known is None or (known.elements, known.dtype) != (x.elements, x.dtype):
                known = self.tables[place] = self.memory(place, x.elements, x.dtype, True)
            return known
        cell = self.aims.get(x.root)
        if cell is None:
            cell = self.aims[x.root] = self.new(1, np.dtype(np.int64), True)
            self.prologue.append(Instruction("aim", cell, (x.root,), numbers=(0,)))
        return Memory(cell, x.elements, x.dtype, x.invariant)

    def row(self, opcode: str, target: Register | None, sources: tuple[Register, ...], rows: int,
            stride: int, offset: int = 0, is_bounded: bool = False) -> Instruction:
        if max(offset, stride) >= 1 << 31:      # beyond an instruction's numbers
            raise Unsuited
        return Instruction(opcode, target, sources, numbers=(
            stride, offset, rows, *([1] if is_bounded else [])))

    def slices(self, register: Register, length: int, reverse: bool) -> tuple[Register, int]:
        """A register that holds where a stack's next slice is, and the bytes to the next one."""
        cell, stride = self.number(), register.nbytes // length
        self.put("aim", cell, register, numbers=((length - 1) * stride if reverse else 0,))
        return cell, stride

    def finished(self) -> LoopCode:
        without_unread(self.prologue)
        if sum(1 for _ in every_instruction(self.prologue)) > _MOST_INSTRUCTIONS:
            raise Unsuited
        # The block is aligned where it is.
        return LoopCode(self.prologue, 1 + len(self.places), self.slot,
                        self.nbytes + ALIGNMENT, self.known)
