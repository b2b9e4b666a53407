"""Code of the scalar machine (``pack/scalars.mojo``): a loop over few elements.

A loop's values are registers, in one block of memory; its code is a tree of instructions, loops
and choices, which is written one after the other with jumps:

  apply, reduce   a register becomes a function of others, the same that the vector machine has;
                  a few elements, each by an instruction of its own, are written as one
  call            a function of the pack, or a step of the host, on registers; a product of few
                  elements, and an array with a row written, the machine makes itself
  spread, move    one element for all of a register; elements from one register to another
  load, store     a register from an operand of the call, or to it
  point, aim      a register holds where an operand, or another register, begins
  next, put       the elements there to a register, or from it; the place moves on
  read, write     a row of a large array to a register, or from it, by its index; or elements from
                  one on, which are rows that overlap
  assign          a register becomes another, in which some elements are others, from one on
  set             a register holds a number: how often a loop runs

Registers of one element take eight bytes. Others are of whole vectors: an operation goes on to the
end of one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from maxjax._max.host_step import HostStep
from maxjax._max.mojo.abi import POINTER, SCALAR_OPCODES, SCALAR_WORDS, ScalarWords
from maxjax._max.mojo.vector_operations import STEPS, own_operations, pairs, singles

MACHINE = "scalar_machine"
_VECTOR_BYTES = 128     # of the longest that an operation goes through at a time
_NANOSECONDS = 1.5      # of an instruction
_FAR = 16               # instructions between two that may be one
_MOST_TERMS = 16        # of an element of a product that is no call
_MOST_PRODUCTS = 128    # in such a product
_LEAST_VECTOR_BYTES = 16    # every processor's vectors have as many, or more
_SCATTER = "scatter_rows_"
# The operations that combine a row with what is there.
COMBINED = ("add", "mul", "min", "max")

Place = tuple[int, int]     # slot, byte offset
LinkHost = Callable[[HostStep, Sequence[Place]], int]


@dataclass(eq=False, slots=True)
class Register:
    """Some elements in the block of registers, in row-major order.

    Attributes:
      number: for people to read.
      offset: its first byte.
      invariant: written before the loop alone.
      whole: the register of which this is one element, if any; its own number is the element's.
    """

    number: int
    elements: int
    dtype: np.dtype
    offset: int
    invariant: bool = False
    whole: Register | None = None

    @property
    def nbytes(self) -> int:
        return self.elements * self.dtype.itemsize

    @property
    def room(self) -> int:
        """Bytes that are its own."""
        return room(self.nbytes, self.elements)

    @property
    def root(self) -> Register:
        return self if self.whole is None else self.whole

    def overlaps(self, other: Register) -> bool:
        return self is other or self.root is other.root and (
            self.whole is None or other.whole is None or self.number == other.number)

    def __str__(self) -> str:
        return f"r{self.number}" if self.whole is None else f"{self.whole}[{self.number}]"


def room(nbytes: int, elements: int) -> int:
    return 8 if elements == 1 else -(-nbytes // _VECTOR_BYTES) * _VECTOR_BYTES


class Instruction(NamedTuple):
    """One instruction.

    Attributes:
      target: the register that is written; None of ``store``, and of ``call``.
      sources: registers that are read.
      function: of the pack, or "".
      name: of the operation that ``apply`` computes.
      elements: how many; of a reduction, of each line.
      numbers: further ones: of ``apply`` none; of ``reduce`` the lines; of ``spread`` the source's
        first element; of ``move`` the first elements and the steps of target and source; of
        ``load``, ``store`` and ``point`` the operand, and of the last a byte offset; of ``next``
        and ``put`` the bytes from one to the next; of ``aim`` a byte offset; of ``set`` the number;
        of ``call`` its integers behind the places; of ``read`` and ``write`` the bytes from one row
        to the next, those before the first row, the number of rows, and 1 if the index is known to
        be that of one; of ``assign``, which writes several lines of so many elements, those from
        one place to the next, the number of places, and where each line begins.
      results: registers that a ``call`` writes.
      host: the step of the host that is called, if it is one.
    """

    opcode: str
    target: Register | None
    sources: tuple[Register, ...] = ()
    function: str = ""
    elements: int = 1
    numbers: tuple[int, ...] = ()
    results: tuple[Register, ...] = ()
    name: str = ""
    host: HostStep | None = None

    @property
    def is_single(self) -> bool:
        """Whether the machine computes it itself."""
        return self.opcode == "apply" and self.elements == 1 and self.function in singles()

    @property
    def is_product(self) -> bool:
        """Whether a call is a product of few elements that adds in the order of its terms, as the
        pack's function does: that sums by vectors where a vector is multiplied by columns."""
        if self.function not in ("matmul_float32", "matmul_float64"):
            return False
        batch, m, n, k, _, a_row, a_col, _, b_row, b_col = self.numbers[:10]
        if not 0 < k <= _MOST_TERMS or batch * m * n * k > _MOST_PRODUCTS:
            return False
        if k < _LEAST_VECTOR_BYTES // self.sources[0].dtype.itemsize:
            return True
        if m == 1 and 1 in (b_row, b_col):
            return b_col == 1 and (b_row != 1 or n >= k)
        if n == 1 and 1 in (a_row, a_col):
            return a_row == 1 and (a_col != 1 or m >= k)
        return True

    @property
    def assigned(self) -> str:
        """What becomes of rows of a register that a call writes: "set", or what they are COMBINED
        by with what is there; "" of other calls."""
        kind = self.function.removeprefix(_SCATTER).partition("_")[0] \
            if self.function.startswith(_SCATTER) else ""
        return kind if kind == "set" or kind in COMBINED else ""

    @property
    def is_bounded(self) -> bool:
        """Whether a row that is read or written is there."""
        return self.opcode in ("read", "write") and len(self.numbers) > 3

    @property
    def is_own(self) -> bool:
        """Whether the machine does itself what it calls."""
        return self.is_product or self.assigned == "set" and self.numbers[2] == 1 \
            and self.sources[1].nbytes in (4, 8)

    @property
    def written(self) -> tuple[Register, ...]:
        return self.results if self.target is None else (self.target, *self.results)

    def __str__(self) -> str:
        inputs = [*map(str, self.sources)]
        name = self.function.removeprefix("vector_") or self.opcode
        if self.opcode in ("load", "point", "store"):
            inputs.append(f"operand {self.numbers[0]}")
        elif self.opcode == "set":
            inputs.append(str(self.numbers[0]))
        elif self.opcode == "move":
            to, step, source, source_step = self.numbers
            return (f"{self.target}[{to}::{step}] = {self.elements} of "
                    f"{self.sources[0]}[{source}::{source_step}]")
        if self.opcode == "store":
            return f"operand {self.numbers[0]} = {self.sources[0]}"
        if self.opcode == "put":
            return f"at {self.target} = {self.sources[0]}"
        if self.opcode == "read":
            return f"{self.target} = at {inputs[0]}[{inputs[1]}]"
        if self.opcode == "write":
            return f"at {inputs[0]}[{inputs[1]}] = {inputs[2]}"
        if self.opcode == "assign":
            return f"{self.target} = {inputs[0]}, at [{inputs[1]}] {inputs[2]}"
        if self.opcode == "reduce" and self.numbers[0] > 1:
            inputs.append(f"{self.numbers[0]} lines")
        targets = ", ".join(map(str, self.written))
        size = f" of {self.elements}" if self.opcode == "apply" and self.elements > 1 else ""
        return f"{targets} = {name}({', '.join(inputs)}){size}"


@dataclass(eq=False)
class Repeat:
    """A loop: a number of times, or as long as a predicate holds that its condition computes.

    Attributes:
      times: how often it runs, where that is known, or what is assumed.
      counter: the register of the number that is left, for a number of times.
      predicate: the register of one byte, otherwise.
    """

    body: list[Item]
    times: int = 1
    counter: Register | None = None
    condition: list[Item] = field(default_factory=list)
    predicate: Register | None = None


@dataclass(eq=False)
class Choice:
    """One of several branches, by an int32; out of bounds it means the nearest."""

    index: Register
    branches: list[list[Item]]


Item = Instruction | Repeat | Choice


def every_instruction(items: list[Item]) -> Iterator[Instruction]:
    for item in items:
        if isinstance(item, Repeat):
            yield from every_instruction(item.condition)
            yield from every_instruction(item.body)
        elif isinstance(item, Choice):
            for branch in item.branches:
                yield from every_instruction(branch)
        else:
            yield item


def calls_of(items: list[Item]) -> list[Instruction]:
    """The calls of the pack's functions. They stand, in this order, behind the code's first
    instruction, a jump, for kernels to find them (``emit_loop.py``)."""
    return [x for x in every_instruction(items) if x.opcode == "call"]


def every_source(items: list[Item]) -> Iterator[Register]:
    """Registers that are read, as often as they are."""
    for item in items:
        if isinstance(item, Repeat):
            if item.predicate is not None:
                yield item.predicate
            yield from every_source(item.condition)
            yield from every_source(item.body)
        elif isinstance(item, Choice):
            yield item.index
            for branch in item.branches:
                yield from every_source(branch)
        else:
            yield from item.sources


@dataclass
class LoopCode:
    """A loop for the scalar machine.

    Attributes:
      items: the tree, with what is before and after the loop.
      operands: how many the call has.
      slot: of the block of registers, in calls of the pack.
      nbytes: of the block.
      known: integers that are loaded from what is stored with the program.
    """

    items: list[Item]
    operands: int
    slot: int
    nbytes: int
    known: Mapping[Register, int] = field(default_factory=dict)

    @property
    def functions(self) -> dict[str, None]:
        """The pack's functions that it needs."""
        return dict.fromkeys([MACHINE, *(
            x.function for x in every_instruction(self.items)
            if x.function and not x.is_single and not x.is_own)])

    @property
    def host_steps(self) -> list[HostStep]:
        return [x.host for x in every_instruction(self.items) if x.host is not None]

    @property
    def step_nanoseconds(self) -> float:
        """What one time through the outermost loop takes, roughly."""
        return _NANOSECONDS * sum(_length(item.body) + _length(item.condition)
                                  for item in self.items if isinstance(item, Repeat))

    @property
    def code(self) -> LoopCode:
        """As groups have it."""
        return self

    def words(self, addresses: Mapping[str, int], keep: Callable[[list[int]], int],
              link: LinkHost) -> list[int]:
        """The integers.

        Args:
          addresses: of the functions; of those of calls alone if a kernel is to read it.
          keep: stores integers, and returns where they are.
          link: gives the address of a step of the host, for the places of operands and results.
        """
        writer = _Writer(self.slot, addresses, keep, link, _Reads(self.items))
        writer.calls(calls_of(self.items))
        writer.items(self.items)
        writer.put("end")
        return writer.finished()

    def __str__(self) -> str:
        return "\n".join(["loop:", *_lines(self.items, 1)])


def _length(items: list[Item]) -> int:
    """Instructions that run."""
    total = 0
    for item in items:
        if isinstance(item, Repeat):
            total += item.times * (_length(item.body) + _length(item.condition))
        elif isinstance(item, Choice):
            total += max(map(_length, item.branches))
        else:
            total += 1
    return total


class _Reads:
    """How often registers are read."""

    def __init__(self, items: list[Item]):
        self._counts = Counter((x.root, x.number if x.whole is not None else -1)
                               for x in every_source(items))

    def of(self, register: Register) -> int:
        whole = self._counts[register.root, -1]
        return whole if register.whole is None else whole + self._counts[
            register.root, register.number]


def _pair(first: Instruction, then: Instruction) -> tuple[str, str, bool]:
    return first.function, then.function, then.sources[-1] is first.target


class _Writer:
    """Writes instructions one after the other; jumps are filled in when their ends are known."""

    def __init__(self, slot: int, addresses: Mapping[str, int],
                 keep: Callable[[list[int]], int], link: LinkHost, reads: _Reads):
        self.reads = reads
        self.slot = slot
        self.addresses = addresses
        self.keep = keep
        self.link = link
        self.long: list[tuple[int, int]] = []
        self.short: list[ScalarWords] = []
        self.integers: dict[int, int] = {}      # where calls have theirs
        self.landed = 0     # the last position that a jump leads to

    def put(self, opcode: str | int, t: int = 0, a: int = 0, b: int = 0, c: int = 0, n: int = 0,
            word: int = 0, last: tuple[int, int] = (0, 0), pointer: int = 0) -> int:
        """Returns its position."""
        self.long.append((word, pointer))
        number = SCALAR_OPCODES.index(opcode) if isinstance(opcode, str) else opcode
        self.short.append(ScalarWords(t, a, b, c, n, number, *last))
        return len(self.short) - 1

    @property
    def here(self) -> int:
        """Where a jump leads that comes here."""
        self.landed = len(self.short)
        return self.landed

    def own(self, number: int, target: int, sources: Sequence[Register], size: int) -> None:
        """One of the machine's own operations on an element: with the one before it, if that is the
        same one on the elements before.

        Args:
          size: of an element of the target, in bytes.
        """
        places, one = [x.offset for x in sources], len(SCALAR_OPCODES) + number
        if self.short and self.landed != len(self.short):
            before = self.short[-1]
            count = before.number
            # How far the operands are from those of the first element.
            moved = [place - first for place, first in zip(
                places, (before.a, before.b, before.c), strict=False)]
            wanted = sum(bit for bit, by in zip(STEPS, moved, strict=False) if by)
            if before.opcode == (one if count == 1 else one + own_operations()) \
                    and target == before.target + count * size \
                    and (count == 1 or before.first == wanted) and all(
                        by in (0, count * x.dtype.itemsize)
                        for by, x in zip(moved, sources, strict=True)):
                self.short[-1] = before._replace(
                    number=count + 1, opcode=one + own_operations(), first=wanted, second=0)
                return
        a, b, c = (*places, 0, 0)[:3]
        self.put(one, target, a, b, c, 1)

    def land(self, position: int) -> None:
        """The jump at a position leads here."""
        self.short[position] = self.short[position]._replace(number=self.here)

    def finished(self) -> list[int]:
        numbers = np.zeros((len(self.short), SCALAR_WORDS), np.int64)
        numbers.view(np.int32)[:, -len(ScalarWords._fields):] = self.short
        words = numbers.ravel().tolist()
        # As they are: in a library an address is an object that names what it is of.
        for position, (word, pointer) in enumerate(self.long):
            words[SCALAR_WORDS * position] = word
            if pointer:
                words[SCALAR_WORDS * position + POINTER] = pointer
        return words

    def calls(self, calls: list[Instruction]) -> None:
        if not calls:
            return
        entry = self.put("jump")
        for x in calls:
            places = [(self.slot, register.offset) for register in (*x.sources, *x.results)]
            self.integers[id(x)] = self.keep(
                [*(number for place in places for number in place), *x.numbers]
                if x.host is None else [self.link(x.host, places)])
            # A kernel may call what the machine does itself.
            self.put("call", word=self.addresses.get(x.function, 0), pointer=self.integers[id(x)])
        self.land(entry)

    def items(self, items: list[Item]) -> None:
        joined = self.joined(items)
        for number, item in enumerate(items):
            if number in joined:
                partner = joined[number]
                if partner is not None:
                    self.pair(partner, item)
            elif isinstance(item, Repeat):
                self.repeat(item)
            elif isinstance(item, Choice):
                self.choice(item)
            else:
                self.instruction(item)

    def joined(self, items: list[Item]) -> dict[int, Instruction | None]:
        """Instructions that are one with a later one, which alone reads what they compute: None by
        their number, and they by the later one's."""
        found: dict[int, Instruction | None] = {}
        for number, first in enumerate(items):
            if number in found or not isinstance(first, Instruction) or not first.is_single \
                    or first.target is None or self.reads.of(first.target) != 1:
                continue
            for later in range(number + 1, min(number + _FAR, len(items))):
                then = items[later]
                if not isinstance(then, Instruction):
                    break
                if any(x is first.target for x in then.sources):
                    if later not in found and _pair(first, then) in pairs():
                        found[number], found[later] = None, first
                    break
                if any(x.overlaps(y) for x in then.written for y in first.sources):
                    break
        return found

    def pair(self, first: Instruction, then: Item) -> None:
        assert isinstance(then, Instruction) and then.target is not None
        pair = _pair(first, then)
        other = then.sources[0 if pair[2] else 1]
        self.own(pairs()[pair], then.target.offset, (*first.sources, other),
                 then.target.dtype.itemsize)

    def repeat(self, loop: Repeat) -> None:
        if loop.counter is not None:
            begin = self.here
            self.items(loop.body)
            self.put("count", loop.counter.offset, n=begin)
            return
        assert loop.predicate is not None
        entry = self.put("jump")
        begin = self.here
        self.items(loop.body)
        self.land(entry)
        self.items(loop.condition)
        self.put("if", a=loop.predicate.offset, n=begin)

    def choice(self, choice: Choice) -> None:
        self.put("switch", a=choice.index.offset, n=len(choice.branches))
        jumps = [self.put("jump") for _ in choice.branches]
        ends = []
        for jump, branch in zip(jumps, choice.branches, strict=True):
            self.land(jump)
            self.items(branch)
            ends.append(self.put("jump"))
        for end in ends:
            self.land(end)

    def instruction(self, x: Instruction) -> None:
        target = 0 if x.target is None else x.target.offset
        a, b, c = (*(source.offset for source in x.sources[:3]), 0, 0, 0)[:3]
        function = 0 if x.is_single else self.addresses.get(x.function, 0)
        size = x.sources[0].dtype.itemsize if x.sources else 0
        match x.opcode:
            case "apply" if x.is_single:
                assert x.target is not None
                self.own(singles()[x.function], target, x.sources, x.target.dtype.itemsize)
            case "apply":
                self.put("apply", target, a, b, c, -x.elements, function)
            case "reduce":
                self.put("reduce", target, a, 0, x.numbers[0], x.elements, function)
            case "call" if x.is_product:
                self.put("product", x.results[0].offset, a, b, size,
                         pointer=self.integers[id(x)])
            case "call" if x.is_own:
                rows, width = x.numbers[:2]
                self.assign(x.results[0], x.sources, a, width * size, rows, width * size)
            case "call":
                self.put("call", word=function, pointer=self.integers[id(x)])
            case "spread":
                self.put("spread", target, a + x.numbers[0] * size, size, 0, x.elements)
            case "move":
                to, step, source, source_step = x.numbers
                self.put("move", target + to * size, a + source * size, size, 0, x.elements,
                         last=(step, source_step))
            case "load":
                assert x.target is not None
                self.put("load", target, x.numbers[0], n=x.target.nbytes)
            case "store":
                self.put("store", x.numbers[0], a, n=x.sources[0].nbytes)
            case "point":
                self.put("point", target, x.numbers[0], word=x.numbers[1])
            case "next":
                assert x.target is not None
                self.put("next", target, a, 0, x.numbers[0], x.target.nbytes)
            case "put":
                self.put("put", target, a, 0, x.numbers[0], x.sources[0].nbytes)
            case "aim":
                self.put("aim", target, word=x.sources[0].offset + x.numbers[0])
            case "set":
                self.put("set", target, word=x.numbers[0])
            case "read" | "write":
                stride, offset, rows = x.numbers[:3]
                wide = x.sources[1].dtype.itemsize
                value = x.sources[2] if x.target is None else x.target
                self.put(x.opcode, value.offset, a, b, wide, value.nbytes,
                         word=rows, last=(offset, stride))
            case "assign":
                assert x.target is not None
                stride, places, *lines = x.numbers
                for number, line in enumerate(lines):
                    self.assign(x.target, x.sources, x.target.offset if number else a,
                                x.elements * size, places, stride * size, line * size,
                                number * x.elements * size)
            case _:
                raise AssertionError(x.opcode)

    def assign(self, target: Register, sources: Sequence[Register], given: int, nbytes: int,
               places: int, stride: int, at: int = 0, begin: int = 0) -> None:
        """Bytes of the third source, from ``begin`` on, at a place of the target.

        Args:
          given: what is copied to the target before, if that is not there.
          places, stride: how many there are, and the bytes from one to the next.
          at: the first place.
        """
        self.put("assign", target.offset + at, given + at if given == target.offset else given,
                 sources[1].offset, sources[2].offset + begin, target.nbytes,
                 word=stride << 32 | places, last=(nbytes, sources[1].nbytes))


def _lines(items: list[Item], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for item in items:
        if isinstance(item, Repeat):
            yield indent + ("repeat:" if item.predicate is None else "while:")
            if item.predicate is not None:
                yield from _lines(item.condition, depth + 1)
                yield f"{indent}  ({item.predicate})"
                yield indent + "do:"
            yield from _lines(item.body, depth + 1)
        elif isinstance(item, Choice):
            for number, branch in enumerate(item.branches):
                yield f"{indent}if {item.index} is {number}:"
                yield from _lines(branch, depth + 1)
        else:
            yield f"{indent}{item}"
