"""Writes a loop over few elements as one kernel, from its code (``scalar_code.py``).

Each element of a short register is a variable, so that the compiler keeps the loop's state in the
processor's registers. Longer ones, and those that functions of the pack are called on, stay in the
block of memory that the scalar machine has them in. How often loops run, where they begin in what
they go through, and how many rows large arrays have are integers of the call, behind its places:
loops that differ in those share a kernel.
"""

from __future__ import annotations

import re
import weakref
from collections import Counter

import numpy as np

from maxjax._base import dtypes
from maxjax._max.mojo.abi import ALIGNMENT
from maxjax._max.mojo.emitter import kind_name, stored_name, wrapped, zeros
from maxjax._max.mojo.forms import Form
from maxjax._max.mojo.loop_instructions import (
    MOST_UNROLLED,
    Instructions,
    has_integer,
    is_called,
    loaded,
    memory_of,
    pointer_to,
    stored_text,
    variable_of,
)
from maxjax._max.mojo.loop_runs import (
    VECTOR,
    Run,
    elements_of,
    is_row,
    is_total,
    with_tiles,
)
from maxjax._max.mojo.scalar_code import (
    Choice,
    Instruction,
    Item,
    LoopCode,
    Register,
    Repeat,
    calls_of,
    every_instruction,
    every_source,
)
from maxjax._max.mojo.structure import KernelStructure

_MOST_LINES = 2000
_HALVES = (dtypes.float16, dtypes.bfloat16)     # of one of which subnormal numbers would be lost
# What a function within the text takes from around it: variables, places, totals.
# Memory is reached by pointers that the compiler does not follow (see ``kernels/fixed.mojo``).
_CAPTURED = re.compile(r"\b(?:[mpr]\d+(?:_\d+)?|t\d+_\d+)\b")


def numbers_of(code: LoopCode) -> list[int]:
    """The integers behind the places of a call."""
    return [x.numbers[-1] for x in every_instruction(code.items) if has_integer(x)]


class LoopForm(Form):
    """The kernel of a loop, which its text tells from others."""

    __slots__ = ()

    def __init__(self, source: str):
        super().__init__(KernelStructure("loop", False, False, (), (), ()))
        self._source = self._identity = source

    def __repr__(self) -> str:
        return "<LoopForm>"


_forms: weakref.WeakValueDictionary[str, LoopForm] = weakref.WeakValueDictionary()


def loop_form(code: LoopCode) -> LoopForm | None:
    """The kernel of a loop, the same for equal texts; None for a loop that stays with the machine
    (`is_for_machine`), or whose text would be so long that it is rather a loop on the tape."""
    lines = 0
    for x in every_instruction(code.items):
        lines += 1 + x.elements // VECTOR
        if lines > _MOST_LINES:
            return None
    if is_for_machine(code):
        return None
    writer = _Writer(code)
    source = writer.written()
    if len(writer.lines) > _MOST_LINES:
        return None
    form = _forms.get(source)
    return _forms.setdefault(source, LoopForm(source)) if form is None else form


def is_for_machine(code: LoopCode) -> bool:
    """Whether no kernel is written of a loop: its results would not be the machine's."""
    return any(r.dtype in _HALVES for x in every_instruction(code.items)
               for r in (*x.sources, *x.written))


def called(code: LoopCode) -> dict[str, None]:
    """The pack's functions that the kernel of a loop calls, through the loop's code."""
    return dict.fromkeys(x.function for x in calls_of(code.items) if is_called(x))


class _Writer(Instructions):
    """The text of a loop: what is declared, loops, branches, and runs of long registers."""

    def __init__(self, code: LoopCode):
        super().__init__(code)
        self.lines: list[str] = []
        self.depth = 1
        self.reads = Counter(r.root for r in every_source(code.items))
        self.vectors = 0
        self.runs = 0       # that are functions

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def written(self) -> str:
        instructions = [*every_instruction(self.code.items)]
        names = dict.fromkeys(x.name for x in instructions if x.name)
        pointers = {x.target for x in instructions if x.opcode in ("point", "aim")}
        counters = {x.target for x in instructions if x.opcode == "set"}
        self.lines = ['@export("KERNEL")', 'def KERNEL(slots: Slots, args: Args) abi("C"):']
        for text in (*wrapped(f'"""loop: {", ".join(names) or "copy"}', 4), '"""'):
            self.line(text)
        self.head()
        numbers: list[tuple[str, np.dtype]] = []
        # Through what holds where it is, a register may be written that is only read by its name.
        for register in dict.fromkeys(r.root for x in instructions
                                      for r in (*x.written, *x.sources)):
            if register in self.memory:
                if register in self.local:
                    number, lines = register.number, -(-register.room // ALIGNMENT)
                    # What a vector reads behind the last element is a number, too.
                    self.line(f"var l{number} = FixedArray[SIMD[DType.uint64, 8], {lines}](fill=0)")
                    self.line(f"var b{number} = Pointer(to=l{number}).unsafe_bitcast[UInt8]()"
                              ".unsafe_origin_cast[MutUntrackedOrigin]()")
                self.line(f"var {memory_of(register)} = {self.address(register)}")
                if self.has_rest(register):
                    whole = register.elements // VECTOR * VECTOR
                    self.line(f"{memory_of(register)}.unsafe_store({whole}, "
                              f"SIMD[{kind_name(register.dtype)}, {VECTOR}](0))")
            elif register in counters:
                self.line(f"var {register} = 0")
            elif register in self.literals:
                self.line(f"comptime {variable_of(register, 0)} = "
                          f"Scalar[{kind_name(register.dtype)}]({self.literals[register]})")
            elif register not in pointers:
                numbers += ((variable_of(register, k), register.dtype)
                            for k in range(register.elements))
        for text in zeros(numbers):
            self.line(text)
        self.items(self.code.items)
        for register in sorted(self.local, key=lambda register: register.number):
            self.line(f"in_use(l{register.number})")
        return "\n".join([*self.lines, ""])

    def has_rest(self, register: Register) -> bool:
        """Whether vectors read numbers behind its last element, where anything may lie: functions
        of some, as sines of large ones, take ten times as long."""
        return (register not in self.local and register.elements > 1
                and register.elements % VECTOR > 0 and dtypes.is_floating(register.dtype))

    def head(self) -> None:
        """The block of registers, and where the code is that names the pack's functions."""
        self.line("var frame = Frame(slots, args)")
        if not self.memory:
            return
        self.line("from std.collections import Array as FixedArray")
        self.line("from std.memory import unsafe_memcpy")
        self.line("from kernels.few import accumulate_few, positions_of_few, reduce_few")
        self.line("var block = frame.address(0)")
        self.line(f"block = block.unsafe_offset(-Int(block) & {ALIGNMENT - 1})")
        if self.calls:
            self.line("comptime Function = def (Slots, Args) abi(\"C\") thin -> None")
            self.line("var last = frame.integer(-1) - 1")
            self.line("var code = args.unsafe_offset(last).unsafe_bitcast[Args]()[]")
            self.line("frame.slots.unsafe_offset(frame.integer(last - 1))[] = block")
        if self.code.host_steps:
            self.line("from kernels.host import is_stopped")

    def items(self, items: list[Item]) -> None:
        if not items:
            self.line("pass")
        run = Run()
        for item in with_tiles(items):
            if run.take(item):
                continue
            is_stored = run.store(item)
            self.run(run)
            run = Run()
            if is_stored:
                continue
            if isinstance(item, Repeat):
                self.repeat(item)
            elif isinstance(item, Choice):
                self.choice(item)
            elif not run.take(item):
                self.single(item)
        self.run(run)

    def single(self, item: Instruction) -> None:
        for text in self.instruction(item):
            self.line(text)

    def run(self, run: Run) -> None:
        """Computes long registers that follow from one another, a vector of all at a time: what
        only they read stays in the processor's registers."""
        members = run.members
        if len(members) == 1 and is_row(members[0]) and run.stored is None:
            self.single(members[0])
        elif run.is_exact:
            self.exact_run(members, run.stored, run.line)
        elif members:
            elements = members[0].elements
            if elements <= MOST_UNROLLED * VECTOR:
                for k in range(0, elements, VECTOR):
                    self.vector(members, str(k), str(VECTOR))
            else:
                self.line(f"for i in range(0, {elements}, {VECTOR}):")
                self.depth += 1
                self.vector(members, "i", str(VECTOR))
                self.depth -= 1
        for item in run.late:
            self.single(item)

    def exact_run(self, members: list[Instruction], stored: Instruction | None,
                  length: int) -> None:
        """A run with totals, which are added as the pack's functions do, or with rows or the lines
        of tiles, of a length, which end where they end."""
        if stored is not None:
            update = stored.sources[2]
            self.line(f"var p{update.number} = {pointer_to(update, self.window(stored))}")
        self.runs += 1
        totals = [x for x in members if is_total(x)]
        for x in members:
            if is_row(x):
                assert x.target is not None
                self.line(f"var p{x.target.number} = {pointer_to(x.target, self.row(x))}")
        for number, x in enumerate(totals):
            kind = f"DType.{x.sources[0].dtype}"
            struct = f"DotTotal[{kind}]" if x.opcode == "call" else (
                f"LineTotal[{self.reducer(x)}, {kind}]")
            self.line(f"var t{self.runs}_{number} = {struct}()")
        elements, row = elements_of(members[0]), f"j{self.runs}"
        if length:
            # The compiler keeps what is short in the processor's registers, if no number of a loop
            # chooses among its elements.
            word = "comptime for" if elements <= MOST_UNROLLED * VECTOR else "for"
            self.line(f"{word} {row} in range({elements // length}):")
            self.depth += 1
        first, lines = len(self.lines), self.lines
        self.depth += 1
        self.vector(members, f"{row} * {length} + i" if length else "i", "w", stored)
        self.depth -= 1
        body = lines[first:]
        del lines[first:]
        known = {variable_of(r, 0) for r in self.literals}
        names = dict.fromkeys(name for line in body for name in _CAPTURED.findall(line)
                              if name not in known)
        captures = ", ".join(f"{'mut' if name.startswith('t') else 'var'} {name}"
                             for name in names)
        if length and elements > MOST_UNROLLED * VECTOR:
            captures += f", var {row}"
        self.line("@always_inline")
        name = f"run{self.runs}"
        self.line(f"def {name}[w: Int, unit: Int](i: Int) {{{captures}}}:" if totals else
                  f"def {name}[w: Int](i: Int) {{{captures}}}:")
        lines += body
        if totals:
            kind = f"DType.{totals[0].sources[0].dtype}"
            self.line(f"sweep_line[simd_width_of[{kind}](), {elements}]({name})")
        else:
            self.line(f"sweep_fixed[{VECTOR}, {length or elements}]({name})")
        self.depth -= 1 if length else 0
        for number, x in enumerate(totals):
            target, = x.written
            self.line(self.set(target, 0, f"t{self.runs}_{number}.result()"
                               f".cast[{stored_name(target.dtype)}]()"))

    def vector(self, run: list[Instruction], at: str, width: str,
               stored: Instruction | None = None) -> None:
        names: dict[Register, str] = {}
        reads: Counter[Register] = Counter()    # of values that are at hand
        totals = 0
        for x in run:
            reads.update(r for r in x.sources if r in names)
            values = [names.get(r) or self.line_of(r, at, width) for r in x.sources] \
                if x.opcode not in ("spread", "read", "tile") else []
            if is_total(x):
                self.line(f"t{self.runs}_{totals}.take[w, unit]({', '.join(values)})")
                totals += 1
                continue
            assert x.target is not None
            if x.opcode == "spread":
                kind = kind_name(x.target.dtype)
                value = f"SIMD[{kind}, {width}]({self.value(x.sources[0], x.numbers[0])})"
            elif x.opcode == "read":
                place, dtype = f"p{x.target.number}", x.target.dtype
                value = loaded(place, at, dtype, width)
            elif x.opcode == "tile":
                value = self.line_of_tile(x, width)
            else:
                value = self.expression(x, values, width)
            self.vectors += 1
            self.line(f"var v{self.vectors} = {value}")
            names[x.target] = f"v{self.vectors}"
        if stored is not None:
            update = stored.sources[2]
            reads[update] += 1
            self.line(stored_text(f"p{update.number}", at, names[update], update.dtype))
        for register, name in names.items():
            if reads[register] < self.reads[register]:
                self.line(self.store(register, at, name))

    def line_of_tile(self, x: Instruction, width: str) -> str:
        """The text of some elements of a tile's line."""
        source, (_, step, begin, next_line) = x.sources[0], x.numbers
        at = f"{begin} + j{self.runs} * {next_line}"
        if step:
            return self.line_of(source, f"{at} + i", width)
        return f"SIMD[{kind_name(source.dtype)}, {width}]({self.load(source, at, '1')})"

    def repeat(self, loop: Repeat) -> None:
        self.line("while True:" if loop.counter is None else f"while {loop.counter} > 0:")
        self.depth += 1
        if loop.predicate is not None:
            self.items(loop.condition)
            self.line(f"if not {self.value(loop.predicate)}:")
            self.line("    break")
        self.items(loop.body)
        if loop.counter is not None:
            self.line(f"{loop.counter} -= 1")
        self.depth -= 1

    def choice(self, choice: Choice) -> None:
        last = len(choice.branches) - 1
        for number, branch in enumerate(choice.branches):
            word = "if" if number == 0 else "elif"
            self.line("else:" if number == last > 0 else f"{word} True:" if last == 0 else
                      f"{word} {self.value(choice.index)} <= {number}:")
            self.depth += 1
            self.items(branch)
            self.depth -= 1
