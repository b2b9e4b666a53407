"""Groups as code for the vector machine (``pack/vector.mojo``), which runs them without a kernel.

Code is a flat array of integers: a head, the lengths of the phases, then the instructions. It is
made from a schedule (``schedule.py``): what that computes once a call, once a line and for all
elements are parts of their own, and the phases are its phases. An instruction is for one element,
for one of each line of a tile, or for all of them:

  apply     a register becomes a function of others; the pack has it for each operation and dtype
  load      a register becomes a copy of an operand's elements
  view      the same, but where the elements follow one another the register is the memory
  store     a register's elements to an operand
  spread    what there is once, or once a line, for all elements
  ramp      an iota's values
  reduce    each line's elements to one, or lines to one line, gathered from tile to tile
  aim       the next instruction writes to an operand where it can

A phase has a part for lines, a part for all elements and one at its end.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from maxjax._base.dtypes import name_of
from maxjax._max.mojo import schedule as schedules
from maxjax._max.mojo.abi import (
    FULL,
    LINE,
    ONCE,
    STACK_BYTES,
    VECTOR_KINDS,
    VECTOR_OPCODES,
    VectorHead,
    VectorPhase,
    VectorWords,
    odometer_bytes,
)
from maxjax._max.mojo.schedule import CALL, POINT, SWEEP, Schedule, Store, Value
from maxjax._max.mojo.structure import BOOL
from maxjax._max.mojo.vector_functions import (
    COMPENSATED,
    SETTLE,
    accumulated,
    joint_operations,
    operation,
    ramp,
    reduction,
)

MACHINE = "vector_machine"

# Those whose source is an operand.
READING = ("load", "view", "ramp", "aim")
# The level of instructions, by the scope of what they compute. A point is a line of a tile, unless
# its rows are: then it is a tile's one element.
_LEVEL_OF = (ONCE, LINE, LINE, FULL)
_LEVELS = {ONCE: "", LINE: " a line", FULL: " all"}

# Registers together stay within the L2 cache: an instruction reads mostly what those just before it
# have written, which is in L1, and longer blocks are fewer. A line that is reduced is rather one
# block than computed again for each reduction.
_REGISTER_MEMORY = 96 << 10
_LINE_MEMORY = 256 << 10
LEAST_BLOCK, _MOST_BLOCK = 128, 1024       # the least is as long as any vector
SINGLE_BLOCK = 8        # for groups of single elements: a cache line at most
# What a block of columns may be as long as (`plan._BLOCK`, and what its parts are rounded to).
_COLUMNS = 512 + 128
_MOST_REGISTERS = 256


class Instruction(NamedTuple):
    """One instruction; registers are numbers, and operands those of the call.

    Attributes:
      target: the register that is written; of ``store`` the operand.
      sources: registers; of ``load`` and ``ramp`` the operand, as the second of ``aim``.
      function: of the pack, or "".
      size: bytes of an element, where it is copied; of ``apply`` 1 if all its registers are memory
        of their own, so that it may go on to the end of a vector.
      level: ONCE, LINE or FULL.
    """

    opcode: str
    target: int
    sources: tuple[int, ...] = ()
    function: str = ""
    size: int = 0
    level: int = FULL

    def __str__(self) -> str:
        sources = ", ".join(
            f"operand {x}" if self.opcode in READING else f"r{x}"
            for x in self.sources)
        name = self.function.removeprefix("vector_") if self.opcode == "apply" else self.opcode
        if self.function and self.opcode != "apply":
            name += f" {self.function.removeprefix('vector_')}"
        target = f"operand {self.target}" if self.opcode == "store" else f"r{self.target}"
        return f"{target} = {name}({sources}){_LEVELS.get(self.level, '')}"


@dataclass
class Phase:
    """The instructions of a phase: for lines, for all elements, and at its end."""

    line: list[Instruction] = field(default_factory=list)
    full: list[Instruction] = field(default_factory=list)
    end: list[Instruction] = field(default_factory=list)

    @property
    def parts(self) -> tuple[list[Instruction], ...]:
        return self.line, self.full, self.end


@dataclass(eq=False)
class Code:
    """A group for the vector machine.

    Attributes:
      kind: "map", "rows" or "columns".
      block: how many elements a register holds.
      registers: how many there are.
      itemsize: bytes of the widest element.
      operands: of the call.
      call: what is computed once.
    """

    kind: str
    operands: int
    block: int = 0
    registers: int = 0
    itemsize: int = 1
    call: list[Instruction] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)

    @property
    def parts(self) -> list[list[Instruction]]:
        return [self.call, *(part for phase in self.phases for part in phase.parts)]

    @property
    def functions(self) -> dict[str, None]:
        """The pack's functions that it needs."""
        return dict.fromkeys([MACHINE, *(
            x.function for part in self.parts for x in part if x.function)])

    @property
    def head(self) -> VectorHead:
        """The first words, with where things are in memory."""
        register, odometer = self.block * self.itemsize, odometer_bytes(self.operands)
        begin = -(-(8 * self.registers + 2 * odometer) // 64) * 64
        return VectorHead(
            VECTOR_KINDS.index(self.kind), self.block, self.registers, register, self.operands,
            len(self.phases), len(self.call), odometer, begin, begin + self.registers * register)

    def words(self, addresses: Mapping[str, int]) -> list[int]:
        """The integers, with the functions' addresses."""
        words = [*self.head]
        for phase in self.phases:
            words += VectorPhase(*map(len, phase.parts))
        for part in self.parts:
            for x in part:
                a, b, c = (*x.sources, 0, 0, 0)[:3]
                words += VectorWords(
                    VECTOR_OPCODES.index(x.opcode), x.target, a, b, c,
                    addresses[x.function] if x.function else 0, x.size, x.level)
        return words

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.registers} registers of {self.block} elements"]
        names = ["call", *(f"phase {number} {name}" for number in range(len(self.phases))
                           for name in ("lines", "elements", "end"))]
        for name, part in zip(names, self.parts, strict=True):
            if part:
                lines += [f"  {name}:", *(f"    {x}" for x in part)]
        return "\n".join(lines)


class NoCode(Exception):
    """A group that the machine cannot run; says why."""


class _Assembler:
    """Makes the code of one kernel; registers have a name of their own until all is written.

    Args:
      schedule: what it computes, and when.
      elements: of the space; of sizes that make no difference, any.
      length: elements of a sweep, likewise.
      has_rows: a point has several lines, all of which are reduced.
      single: a line is one block, so that what one phase computes the next ones have.
    """

    def __init__(self, schedule: Schedule, elements: int, length: int, has_rows: bool,
                 single: bool):
        self.schedule = schedule
        self.has_rows = has_rows
        self.elements = elements
        self.length = length
        self.single = single
        self.code = Code(schedule.structure.kind, len(schedule.operands))
        self.part: list[Instruction] = self.code.call
        self.names = 0
        self.at: dict[tuple[Value, int], int] = {}     # registers by values and scopes
        self.fixed: set[int] = set()        # what outlives the part that it is written in
        self.movable: set[int] = set()      # whose place is an operand's memory at times
        self.sizes: dict[int, int] = {}     # of an element, by register
        self.narrow: set[int] = set()       # those that hold one element of each line

    def new(self, size: int) -> int:
        self.names += 1
        self.sizes[self.names] = size
        return self.names

    def put(self, opcode: str, target: int, sources: Iterable[int] = (), function: str = "",
            size: int = 0, level: int = FULL) -> None:
        self.part.append(Instruction(opcode, target, tuple(sources), function, size, level))
        if opcode == "reduce" or level == LINE and opcode in ("apply", "load", "ramp"):
            self.narrow.add(target)

    def value(self, value: Value, scope: int) -> int:
        """The register that has a value for a scope that is no wider than its own."""
        register = self.at.get((value, scope))
        if register is not None:
            return register
        own = value.scope
        if own == scope:
            return self.compute(value, scope)
        source = self.value(value, own)
        size = value.dtype.itemsize
        register = self.new(size)
        if own == CALL or own == POINT and self.has_rows:
            # One element, for a whole block: it serves whatever is within its scope.
            part = self.part
            self.part = self.code.call if own == CALL else self.code.phases[-1].line
            self.put("spread", register, (source,), size=size, level=ONCE)
            self.part = part
            for inner in range(own + 1, SWEEP + 1):
                self.at[value, inner] = register
        else:
            self.put("spread", register, (source,), size=size, level=LINE)
            self.at[value, scope] = register
        return register

    def compute(self, value: Value, scope: int) -> int:
        if value.kind == "reduce":
            raise AssertionError("a reduction is known when its phase is over")
        size, level = value.dtype.itemsize, _LEVEL_OF[scope]
        part = self.part
        if scope == CALL:
            self.part = self.code.call
        if value.operand >= 0:
            register = self.new(size)
            if value.kind == "iota":
                self.put("ramp", register, (value.operand,), ramp(value.dtype), size, level)
            else:
                # So few elements are copied sooner than told from a part of a vector.
                views = level == FULL and self.elements > LEAST_BLOCK
                if views:
                    self.movable.add(register)
                self.put("view" if views else "load", register, (value.operand,), size=size,
                         level=level)
        else:
            if value.source is not None:
                raise NoCode(f"{value.name} is the user's own")
            sources = [self.value(x, scope) for x in value.inputs]
            register = self.new(size)
            self.put("apply", register, sources, operation(
                value.name, value.inputs[0].dtype, value.dtype), size, level)
        self.part = part
        self.at[value, scope] = register
        return register

    def store(self, value: Value, number: int, scope: int) -> None:
        size = value.dtype.itemsize
        register = self.value(value, scope)
        self.put("store", number, (register,), size=size, level=_LEVEL_OF[scope])

    def store_all(self, outputs: Sequence[Store], aims: bool = False) -> None:
        """Stores values when all are computed; the one that is computed last straight away."""
        for value, _ in outputs:
            register = self.value(value, SWEEP)
            if len(outputs) > 1 and register in self.movable:
                # Another's store may be to the memory that the register is.
                size = value.dtype.itemsize
                copied = self.at[value, SWEEP] = self.new(size)
                self.put("apply", copied, (register,), f"vector_copy_{8 * size}", size)
        last = self.part[-1] if aims and len(outputs) == 1 and self.part else None
        if last is not None and last.opcode == "apply" and self.elements > LEAST_BLOCK:
            value, number = outputs[0]
            if last.target == self.at[value, SWEEP]:
                self.movable.add(last.target)
                self.part.insert(-1, Instruction(
                    "aim", last.target, (number,), "", value.dtype.itemsize))
        for value, number in outputs:
            self.store(value, number, SWEEP)

    # --- the schedule ---
    def assemble(self) -> Code:
        for value, _ in self.schedule.stored:
            self.value(value, CALL)
        for value, number in self.schedule.stored:
            self.store(value, number, CALL)
        for number, phase in enumerate(self.schedule.phases):
            if number and not self.single:
                self._forget()
            self._phase(phase, number + 1 == len(self.schedule.phases))
        self._join()
        self._finish()
        return self.code

    def _phase(self, scheduled: schedules.Phase, is_last: bool) -> None:
        phase = Phase()
        self.code.phases.append(phase)
        columns = self.code.kind == "columns"
        self.part = phase.line
        for value in scheduled.line:
            self.value(value, POINT)
        self.part = phase.full
        for value in scheduled.gathered:
            self._reduce(phase, value, columns)
        self.store_all(scheduled.stored, aims=is_last and not columns)
        self.part = phase.end
        if columns:
            # What follows is of the results' own lines.
            results = {(value, SWEEP): self.at[value, SWEEP] for value in scheduled.gathered}
            self._forget()
            self.at.update(results)
            self.store_all(scheduled.last)
        else:
            for value, number in scheduled.last:
                self.store(value, number, POINT)

    def _join(self) -> None:
        """Makes two operations one where the second alone reads what the first computes."""
        read = Counter(register for part in self.code.parts for x in part
                       if x.opcode not in READING for register in x.sources)
        joint = joint_operations()
        for part in self.code.parts:
            made: dict[int, int] = {}       # positions of operations, by registers
            kept: list[Instruction | None] = []
            for x in part:
                if x.opcode == "store":
                    made.clear()
                elif x.opcode == "apply" and x.level == FULL and len(x.sources) == 2:
                    for right, register in enumerate(x.sources):
                        position = made.get(register)
                        before = None if position is None else kept[position]
                        both = None if before is None or read[register] != 1 else joint.get(
                            (before.function, x.function, bool(right)))
                        if both is not None and before is not None and position is not None:
                            kept[position] = None
                            x = x._replace(function=both.function, sources=(
                                *before.sources, x.sources[1 - right]))
                            break
                    else:
                        made[x.target] = len(kept)
                kept.append(x)
            part[:] = [x for x in kept if x is not None]

    def _forget(self) -> None:
        """What registers hold of all elements, or of rows, is not the next phase's."""
        self.at = {(value, scope): register for (value, scope), register in self.at.items()
                   if value.scope == CALL or value.scope == POINT and (
                       scope == POINT or self.has_rows)}

    def _reduce(self, phase: Phase, value: Value, columns: bool) -> None:
        """Gathers a reduction in a phase, and has it at its end."""
        operand, dtype = value.inputs[0], value.dtype
        source = self.value(operand, SWEEP)
        wide = accumulated(value.name, dtype)
        compensated = value.name == "sum" and dtype == np.float64
        size = 2 * wide.itemsize if compensated else wide.itemsize
        register = self.new(size)
        self.fixed.add(register)
        self.put("reduce_columns" if columns else "reduce", register, (source,),
                 reduction(COMPENSATED if compensated else value.name, dtype, columns), size)
        scope = SWEEP if columns else POINT
        if compensated or wide != dtype and dtype != BOOL:
            part, self.part = self.part, phase.end
            result = self.new(dtype.itemsize)
            self.put("apply", result, (register,), SETTLE if compensated else
                     f"vector_convert_{name_of(wide)}_{name_of(dtype)}", dtype.itemsize,
                     _LEVEL_OF[scope])
            self.part, register = part, result
        self.at[value, scope] = register

    # --- registers ---
    def _finish(self) -> None:
        """Gives registers numbers: few, for all that are in use at a time."""
        code = self.code
        lives = self._lives()
        numbers: dict[int, int] = {}
        free: dict[bool, list[int]] = {True: [], False: []}
        busy: list[tuple[int, int, bool]] = []      # ends, numbers, whether it is movable
        count = 0
        for register, (begin, end) in sorted(lives.items(), key=lambda x: x[1]):
            while busy and busy[0][0] < begin:
                _, number, movable = heapq.heappop(busy)
                free[movable].append(number)
            movable = register in self.movable
            if free[movable]:
                number = free[movable].pop()
            else:
                number, count = count, count + 1
            numbers[register] = number
            heapq.heappush(busy, (end, number, movable))
        for part in code.parts:
            part[:] = [_renumbered(x, numbers, self.movable) for x in part]
        code.registers = count
        code.itemsize = max((
            # A tile has at most half as many lines as elements (`vector.mojo`).
            -(-size // 2) if register in self.narrow else size
            for register, size in self.sizes.items()), default=1)
        # A block is whole vectors of the longest kind, as an instruction on registers alone goes
        # on to the end of one.
        block = _REGISTER_MEMORY // max(1, count * code.itemsize) // LEAST_BLOCK * LEAST_BLOCK
        code.block = max(LEAST_BLOCK, min(_MOST_BLOCK, block, _whole(self.elements)))
        if code.kind == "columns":
            code.block = max(code.block, _COLUMNS)
        elif not code.phases:
            code.block = SINGLE_BLOCK
        elif code.kind == "rows" and self.single and self.length > code.block \
                and self.length * count * code.itemsize <= _LINE_MEMORY:
            code.block = _whole(self.length)

    def _lives(self) -> dict[int, tuple[int, int]]:
        """From where to where each register is in use, in all instructions one after the other.

        A part is run again for each tile: what it has from before, it needs to its end, and what
        it gathers it has from its beginning. What is computed once a call and read by a later part
        is needed to the end.
        """
        code = self.code
        lives: dict[int, tuple[int, int]] = {}
        total = sum(map(len, code.parts))
        position = 0
        for part in code.parts:
            begin, end = position, position + len(part)
            for x in part:
                for register in _registers(x):
                    first, last = lives.get(register, (position, position))
                    if part is code.call:
                        last = position
                    elif first < len(code.call):
                        last = total
                    elif register in self.fixed:
                        first, last = min(first, begin), max(last, end)
                    else:
                        last = max(last, end if first < begin else position)
                    lives[register] = first, last
                position += 1
        return lives


def _whole(elements: int) -> int:
    """The least block that holds so many elements."""
    return -(-elements // LEAST_BLOCK) * LEAST_BLOCK


def _registers(x: Instruction) -> list[int]:
    sources = [] if x.opcode in READING else [*x.sources]
    return sources if x.opcode == "store" else [*sources, x.target]


def _renumbered(x: Instruction, numbers: dict[int, int], movable: set[int]) -> Instruction:
    opcode, target, sources, function, size, level = x
    if opcode == "apply":
        size = int(movable.isdisjoint((*sources, target)))
    if opcode not in READING:
        sources = tuple([numbers[source] for source in sources])
    if opcode != "store":
        target = numbers[target]
    return Instruction(opcode, target, sources, function, size, level)


class Sizes(NamedTuple):
    """The sizes of a call, as far as they make a difference to its code.

    Attributes:
      elements: of the space.
      length: elements of a sweep.
      has_rows: a point has several lines, all of which are reduced.
    """

    elements: int
    length: int
    has_rows: bool


def sizes_of(kind: str, elements: int, length: int, has_rows: bool) -> Sizes:
    """What calls of many sizes have in common."""
    return Sizes(min(_whole(elements), _MOST_BLOCK), _whole(length) if kind == "rows" else 0,
                 has_rows)


def code_of(schedule: Schedule, elements: int, length: int, has_rows: bool) -> Code | None:
    """The code of a kernel for some sizes; None where the machine has no instruction for what it
    computes, or too few registers."""
    single = not has_rows and length * 4 <= _LINE_MEMORY
    try:
        code = _Assembler(schedule, elements, length, has_rows, single).assemble()
        if single and code.kind == "rows" and length > code.block:
            code = _Assembler(schedule, elements, length, has_rows, False).assemble()
    except NoCode:
        return None
    fits = code.registers <= _MOST_REGISTERS if code.phases else (
        code.registers * code.block * code.itemsize <= STACK_BYTES)
    return code if fits else None
