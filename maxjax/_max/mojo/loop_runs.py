"""What the kernel of a loop over few elements (``emit_loop.py``) computes together.

Long registers whose elements follow from one another are a run: one loop, vector by vector, in
which what only the run reads is never stored. It may begin with rows of large arrays, which it
reads where they are, and end in sums, extremes and dot products of what it computes. So may it with
the lines of what is broadcast, which are a *tile*: then it goes through one line after the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from maxjax._max.elementwise_kernels import CHEAP
from maxjax._max.mojo.scalar_code import Instruction, Item, Register

VECTOR = 8              # elements of a longer one that are computed at a time
MOST_VARIABLES = 4      # elements of a register that are variables, and are not gone through
_MOST_PARTS = 2         # of vectors, in a line that ends in one
_SUMMED = tuple(map(np.dtype, ("float32", "float64", "int32", "int64", "uint32", "uint64")))


def is_long(x: Instruction) -> bool:
    """Whether it computes the elements of a register that is in memory, each like the others."""
    return x.opcode in ("apply", "spread", "tile") and x.elements > MOST_VARIABLES


def is_row(x: Instruction) -> bool:
    """Whether it reads a row of an array to a register that is in memory."""
    return x.opcode == "read" and x.target is not None and x.target.elements > MOST_VARIABLES


def is_total(x: Instruction) -> bool:
    """Whether it makes one number of all elements of one or two registers that are in memory."""
    source = x.sources[0] if x.sources else None
    if source is None or source.elements <= MOST_VARIABLES or source.dtype not in _SUMMED:
        return False
    if x.opcode == "reduce":
        return x.numbers[0] == 1 and x.elements == source.elements
    if x.opcode != "call" or x.function not in ("matmul_float32", "matmul_float64"):
        return False
    batch, m, n, k, _, _, a_col, _, b_row = x.numbers[:9]
    return batch == m == n == a_col == b_row == 1 and all(r.elements == k for r in x.sources)


def with_tiles(items: Iterable[Item]) -> Iterator[Item]:
    """The items, in which moves that make all lines of a register, each a vector or one element of
    another, are one instruction, a tile. Its numbers are the elements of a line, the source's step
    in one, where the first begins in the source, and how far it is from there to the next one."""
    moves: list[Instruction] = []
    for item in items:
        if moves and not _follows(item, moves):
            yield from _tile(moves)
            moves = []
        if isinstance(item, Instruction) and (moves or _begins(item)):
            moves.append(item)
        else:
            yield item
    yield from _tile(moves)


def _begins(x: Instruction) -> bool:
    return (x.opcode == "move" and MOST_VARIABLES < x.elements < x.written[0].elements
            and x.numbers[:2] == (0, 1) and x.numbers[3] in (0, 1)
            and x.written[0].whole is x.sources[0].whole is None
            and x.sources[0].elements > MOST_VARIABLES
            and x.written[0].dtype == x.sources[0].dtype and x.written[0] is not x.sources[0])


def _follows(x: Item, moves: list[Instruction]) -> bool:
    """Whether it makes the next line."""
    first, last = moves[0], moves[-1]
    if not isinstance(x, Instruction) or x.opcode != "move" or x.target is not first.target \
            or x.sources != first.sources or x.elements != first.elements:
        return False
    step = moves[1].numbers[2] - first.numbers[2] if len(moves) > 1 else None
    return (x.numbers[:2] == (last.numbers[0] + x.elements, 1) and x.numbers[3] == last.numbers[3]
            and step in (None, x.numbers[2] - last.numbers[2]))


def _tile(moves: list[Instruction]) -> list[Instruction]:
    if len(moves) < 2 or len(moves) * moves[0].elements != moves[0].written[0].elements:
        return moves
    line, (_, _, begin, step) = moves[0].elements, moves[0].numbers
    # The compiler itself makes vectors of stores of one element, and of all that is short.
    if line < VECTOR or step == 0 and _parts(line) > _MOST_PARTS:
        return moves
    return [Instruction("tile", moves[0].target, moves[0].sources,
                        elements=moves[0].written[0].elements,
                        numbers=(line, step, begin, moves[1].numbers[2] - begin))]


def _parts(line: int) -> int:
    """Vectors that a line is gone through by, and parts of one."""
    return line // VECTOR + (line % VECTOR).bit_count()


def elements_of(x: Instruction) -> int:
    """How many elements a member of a run goes through."""
    register = x.target if is_row(x) else x.sources[0] if is_total(x) else None
    return x.elements if register is None else register.elements


def _array_of(x: Instruction) -> Register:
    """The register that stands for the array of which a row is read or written: itself, or what
    holds where it is."""
    if x.opcode == "assign":
        return x.sources[0].root
    return x.sources[2].root if x.opcode == "read" and len(x.sources) > 2 else x.sources[0]


def _window_of(x: Instruction) -> tuple[Register, int, int] | None:
    """Where a line is that is read, or written in place: its index, how far in bytes those are
    apart that it counts, and the first; None of what may not be there, or is several lines."""
    if x.opcode == "assign":
        stride, _, *lines = x.numbers
        size = x.sources[2].dtype.itemsize
        return (x.sources[1], stride * size, lines[0] * size) \
            if len(lines) == 1 and x.target is x.sources[0] else None
    return (x.sources[1], x.numbers[0], x.numbers[1]) if x.is_bounded else None


def _is_cut(line: int, members: list[Instruction]) -> bool:
    """Whether a line ends in so many parts of a vector that more is computed than is saved."""
    return line % VECTOR > 0 and (_parts(line) > _MOST_PARTS or not all(
        x.name in CHEAP for x in members if x.opcode == "apply"))


class Run:
    """Instructions on equally many elements that are computed together, vector by vector.

    Attributes:
      members: long operations, rows that are read, and totals of what is computed.
      late: instructions on single elements that stand between them, and come after the run.
      stored: what writes a member's elements to a window of an array, while they are computed.
    """

    def __init__(self) -> None:
        self.members: list[Instruction] = []
        self.late: list[Instruction] = []
        self.stored: Instruction | None = None

    @property
    def is_exact(self) -> bool:
        """Whether it goes through no element beyond the last one."""
        return self.stored is not None or any(
            is_row(x) or is_total(x) or x.opcode == "tile" for x in self.members)

    @property
    def line(self) -> int:
        """Elements of a line of its tiles; 0 if there are none."""
        return next((x.numbers[0] for x in self.members if x.opcode == "tile"), 0)

    def take(self, item: Item) -> bool:
        """Adds an item, if it can be computed together with what is there."""
        if not isinstance(item, Instruction):
            return False
        if is_long(item) or is_row(item) or is_total(item):
            if self._continues(item):
                self.members.append(item)
                return True
        elif self.members and item.opcode in ("apply", "spread", "move", "read") \
                and item.elements <= MOST_VARIABLES \
                and all(r.root.elements <= MOST_VARIABLES for r in item.written):
            self.late.append(item)
            return True
        return False

    def store(self, item: Item) -> bool:
        """Ends the run with what writes one line of a window, if all that reads the array before
        that reads it there, element by element, or has read it when the run begins."""
        if not isinstance(item, Instruction) or item.opcode not in ("assign", "write"):
            return False
        place = _window_of(item)
        if place is None:
            return False
        array, index, update = _array_of(item), *item.sources[1:]
        made = [x for x in self.members if update in x.written]
        if len(made) != 1 or made[0].opcode != "apply" or elements_of(made[0]) != update.elements:
            return False
        for x in (*self.members, *self.late):
            if x.opcode == "read" and _array_of(x) is array:
                if x in self.late or _window_of(x) != place:
                    return False
            elif any(r.root is array for r in x.sources):
                return False
        if any(r.root is index.root for x in (*self.members, *self.late) for r in x.written) \
                or any(r.root is update for x in self.late for r in x.written):
            return False
        self.stored = item
        return True

    def _continues(self, item: Instruction) -> bool:
        if not self.members:
            return True
        members = [*self.members, item]
        rounded = {x.sources[0].dtype for x in members if is_total(x)}
        if elements_of(item) != elements_of(members[0]) or len(rounded) > 1:
            return False
        lines = {x.numbers[0] for x in members if x.opcode == "tile"}
        if len(lines) + len(rounded) > 1 or any(
                _is_cut(line, members) for line in lines):
            return False
        if any(map(is_total, members)) and not all(
                x.name in CHEAP for x in members if x.opcode == "apply"):
            return False        # what is costly is written once, for long vectors
        # What members read as a whole is there before them, and is not written by others.
        whole = {r.root for x in members if x.opcode in ("spread", "read", "tile")
                 for r in x.sources}
        totals = {r.root for x in members if is_total(x) for r in x.written}
        written = [r.root for x in members for r in x.written]
        if not whole.isdisjoint(x.target for x in members if not is_total(x)) or any(
                written.count(total) > 1 for total in totals):
            return False
        read = {r.root for r in item.sources}
        if read & {r.root for x in self.members if is_total(x) for r in x.written}:
            return False
        touched = {r.root for x in self.late for r in (*x.sources, *x.written)}
        return touched.isdisjoint(r.root for r in item.written) and read.isdisjoint(
            r.root for x in self.late for r in x.written)
