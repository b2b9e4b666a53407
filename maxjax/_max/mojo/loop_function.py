"""A loop on the tape as one function, with what its body calls written into it.

The body of a loop over small arrays is some calls of a few hundred nanoseconds, each of which would
read its sizes, strides and places anew. So the tapes of a loop become one text: a loop with a
function for each group (``emit_fixed.py``), whose sizes are numbers, and with copies, fills, and
rows that are read and written as loops of known lengths. What has no text here, as a product of
matrices, is called where the tape has it. The function stands for the call of the driver that runs
the tape: it is given the same integers, finds nested tapes through them, and leaves the same in the
slots. Until it is compiled the driver runs the tape, with the vector machine for the groups.

This is for loops whose groups have too little work for a second thread (``cost.py``).
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxjax._max.host_step import HostStep
from maxjax._max.mojo.abi import (
    Move,
    ScanCall,
    SwitchCall,
    TapeCall,
    WhileCall,
    place_of,
)
from maxjax._max.mojo.bytecode import MACHINE
from maxjax._max.mojo.emit_fixed import fixed_function, is_left_to_machine
from maxjax._max.mojo.emit_loop import LoopForm
from maxjax._max.mojo.emitter import REDUCERS, stored_name
from maxjax._max.mojo.forms import Form, GroupCode
from maxjax._max.mojo.layout import KernelIntegers, KernelLayout
from maxjax._max.mojo.loop_instructions import is_fixed_product
from maxjax._max.mojo.pack_integers import merged
from maxjax._max.mojo.row_writes import RowGroup, writing_row
from maxjax._max.mojo.scalar_code import COMBINED, LoopCode
from maxjax._max.mojo.schedule import Schedule, schedule_of
from maxjax._max.mojo.tape import Step, Tape, WindowUpdate
from maxjax._max.mojo.window_reads import InPlace, reading_in_place
from maxjax._max.mojo.window_updates import Fused, fused

if TYPE_CHECKING:
    from maxjax._max.mojo.part import Part
    from maxjax._max.mojo.plan import Plan

_MOST_LINES = 1500
_MOST_STEPS = 128
# Elements that are moved by a loop in the text; more, by the pack, with its threads.
_MOST_MOVED = 1 << 14
# What combines a row with what is there.
_SCATTERED = {"scatter_rows_set": ""} | {
    f"scatter_rows_{kind}": ", " + REDUCERS[{"add": "sum", "mul": "prod"}.get(kind, kind)]
    for kind in COMBINED}
_ADDED = ("float32", "float64", "int32", "int64", "uint32", "uint64")


class FunctionForm(LoopForm):
    """The kernel that a loop on the tape is."""

    __slots__ = ()


_forms: weakref.WeakValueDictionary[str, FunctionForm] = weakref.WeakValueDictionary()


class Before(NamedTuple):
    """What a plan had before a loop's body was written: kernels, and their costs."""

    kernels: Mapping[Form, None]
    costs: Mapping[Form, float]


def before(plan: Plan) -> Before:
    return Before(dict(plan.kernels), dict(plan.costs))


def emit(part: Part, function: str, integers: list[Any], note: str, was: Before) -> None:
    """Adds the call of the driver that runs a loop, as a kernel if it can be one.

    Args:
      was: the plan's state before the loop's tapes were written.
    """
    plan = part.plan
    form = _form(plan, function, integers)
    if form is None:
        part.call(function, integers, note)
        return
    plan.functions.setdefault(function)
    cost = 0.0
    for kernel in [*plan.kernels]:
        if isinstance(kernel, LoopForm) and not isinstance(kernel, FunctionForm):
            continue
        old = was.costs.get(kernel, 0.0)
        cost += plan.costs[kernel] - old
        plan.costs[kernel] = old
        if kernel not in was.kernels:
            del plan.kernels[kernel], plan.costs[kernel]
    for x in integers:
        if isinstance(x, Tape):
            _without_kernels(plan, x)
    plan.kernels[form] = None
    plan.costs[form] = plan.costs.get(form, 0.0) + cost
    part.tape.steps.append(Step(function, form, integers, note))


def _without_kernels(plan: Plan, tape: Tape) -> None:
    """Leaves the groups of a tape to the vector machine, and its loops to the driver."""
    for number, step in enumerate(tape.steps):
        for x in step.integers:
            if isinstance(x, Tape):
                _without_kernels(plan, x)
            elif isinstance(x, GroupCode) and step.kernel is not None:
                assert x.code is not None
                plan.functions.update(x.code.functions)
                tape.steps[number] = step._replace(function=MACHINE, kernel=None)
        if isinstance(step.kernel, FunctionForm):
            tape.steps[number] = step._replace(kernel=None)


def _form(plan: Plan, function: str, integers: Sequence[Any]) -> FunctionForm | None:
    writer = _Writer(plan)
    try:
        source = writer.written(function, integers)
    except _Unsuited:
        return None
    form = _forms.get(source)
    return _forms.setdefault(source, FunctionForm(source)) if form is None else form


class _Unsuited(Exception):
    """A loop that is rather no function."""


class _At(NamedTuple):
    """Where the integers of a call are: the text of the address, and of the call itself."""

    args: str
    call: str


class _Writer:
    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.head: list[str] = []
        self.lines: list[str] = []
        self.depth = 1
        self.functions: dict[Any, str] = {}
        self.texts: list[str] = []
        self.slots: dict[int, str] = {}
        self.count = 0          # of variables
        self.steps = 0
        self.own = 0            # of the calls, those with a text

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)
        if len(self.lines) + len(self.texts) > _MOST_LINES:
            raise _Unsuited

    def new(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def written(self, function: str, integers: Sequence[Any]) -> str:
        self.control(function, integers, _At("args", ""))
        if not self.own:
            raise _Unsuited
        return "\n".join([
            *self.texts, '@export("KERNEL")', 'def KERNEL(slots: Slots, args: Args) abi("C"):',
            f'    """A loop on the tape: {self.own} of {self.steps} calls written here."""',
            '    comptime Function = def (Slots, Args) abi("C") thin -> None',
            *self.head, *self.lines, ""])

    # --- slots and places ---
    def slot(self, number: int, at: _At, position: int) -> str:
        """The variable of what a slot holds; its number is read where it was met first."""
        name = self.slots.get(number)
        if name is None:
            name = self.slots[number] = self.new("s")
            self.head += [f"    var n{name} = integer({at.args}, {position})",
                          f"    var {name} = slots.unsafe_offset(n{name})[]"]
        return name

    def assign(self, name: str, value: str) -> None:
        self.line(f"{name} = {value}")
        self.line(f"slots.unsafe_offset(n{name})[] = {name}")

    def place(self, integers: Sequence[Any], at: _At, operand: int, kind: str = "") -> str:
        """Where an operand is, by the place's number among the integers."""
        slot, offset = integers[2 * operand:2 * operand + 2]
        text = f"{self.slot(slot, at, 2 * operand)}.unsafe_offset({offset})"
        return f"{text}.unsafe_bitcast[Scalar[DType.{kind}]]()" if kind else text

    # --- tapes ---
    def tape(self, tape: Tape, at: _At, position: int) -> None:
        """The calls of a tape, whose address is among the integers."""
        name = self.new("tape")
        self.head.append(f"    var {name} = {at.args}.unsafe_offset({position})"
                         ".unsafe_bitcast[Args]()[]")
        word, head = 0, len(TapeCall._fields)
        if not tape.steps:
            self.line("pass")
        ats = []
        for step in tape.steps:
            ats.append(_At(f"{name}.unsafe_offset({word + head})", f"{name}.unsafe_offset({word})"))
            word += head + sum(2 if isinstance(x, Tape) else 1 for x in step.integers)
        updates = {update.group: (update, group) for update in tape.updates
                   if (group := self.in_place(tape, update)) is not None}
        moved = {x for update, _ in updates.values() for x in (update.read, update.write)}
        rows = {row.group: (row, made) for row in tape.rows
                if row.group not in updates and (made := writing_row(tape, row)) is not None}
        moved |= {row.write for row, _ in rows.values()}
        there = reading_in_place(tape, {
            **{number: group for number, (_, group) in updates.items()},
            **{number: made for number, (_, made) in rows.items()}})
        read = {x for group in there.values() for x, _ in group.operands.values()}
        windows: dict[int, str] = {}    # that are read where they are, the texts of their addresses
        for number, (step, at) in enumerate(zip(tape.steps, ats, strict=True)):
            self.steps += 1
            if self.steps > _MOST_STEPS:
                raise _Unsuited
            if number in moved:
                self.own += 1
            elif number in read:
                windows[number] = self.read_there(step, at)
            elif number in updates:
                update, group = updates[number]
                self.window_update(step.integers, at, there[number], windows, group.windows,
                                   tape.steps[update.write].integers, ats[update.write])
            elif number in rows:
                row, written = rows[number]
                self.row_write(step.integers, at, there[number], windows, written,
                               tape.steps[row.write].integers, ats[row.write])
            elif number in there:
                self.group_there(step.integers, at, there[number], windows, {})
            else:
                self.step(step, at)

    def step(self, step: Step, at: _At) -> None:
        integers, name = step.integers, step.function
        last = integers[-1] if integers else None
        # What a step of the host raises ends the driver's loops, not one that is written here.
        if isinstance(last, HostStep) or isinstance(last, LoopCode) and last.host_steps:
            raise _Unsuited
        if isinstance(last, GroupCode):
            self.group(last, integers, at)
        elif isinstance(last, LoopCode):
            self.call(at)
        elif name in ("tape_scan", "tape_while", "tape_switch"):
            self.control(name, integers, at)
        elif name == "tape_copy_bytes":
            self.line(f"copy_unless_there({self.place(integers, at, 0)}, "
                      f"{self.place(integers, at, 1)}, {integers[4]})")
        elif self.movement(name, integers, at):
            self.own += 1
        else:
            self.call(at)

    def call(self, at: _At) -> None:
        """A call of what the tape has there."""
        self.line(f"{at.call}.unsafe_bitcast[Function]()[](slots, {at.args})")

    # --- the driver's calls ---
    def control(self, function: str, integers: Sequence[Any], at: _At) -> None:
        {"tape_scan": self.scan, "tape_while": self.while_loop,
         "tape_switch": self.switch}[function](integers, at)

    def exchange(self, integers: Sequence[Any], first: int, count: int, at: _At) -> None:
        for k in range(first, first + 2 * count, 2):
            a, b = (self.slot(integers[x], at, x + self._shift(integers, x)) for x in (k, k + 1))
            held = self.new("held")
            self.line(f"var {held} = {a}")
            self.assign(a, b)
            self.assign(b, held)

    @staticmethod
    def _shift(integers: Sequence[Any], position: int) -> int:
        """By how much an integer comes later where tapes are two."""
        return sum(isinstance(x, Tape) for x in integers[:position])

    def scan(self, integers: Sequence[Any], at: _At) -> None:
        call, begin = ScanCall(*integers[:len(ScanCall._fields)]), len(ScanCall._fields)
        behind = begin + len(Move._fields) * call.moves
        tape = integers[-1]
        number = self.new("i")
        if call.times == 1 and not tape.steps:
            self.line(f"var {number} = 0")
        else:
            times = f"integer({at.args}, {place_of(ScanCall._fields, 'times')})"
            self.line(f"for step_{number} in range({times}):")
            self.depth += 1
            back = f"{times} - 1 - step_{number}"
            self.line(f"var {number} = {back if call.reverse else f'step_{number}'}")
        depth = self.depth
        for k in range(begin, behind, len(Move._fields)):
            move = Move(*integers[k:k + len(Move._fields)])
            target = self.slot(move.slot, at, k + place_of(Move._fields, "slot"))
            source = self.slot(move.base, at, k + place_of(Move._fields, "base"))
            self.assign(target, f"{source}.unsafe_offset({move.offset} + {number} * {move.stride})")
        self.tape(tape, at, len(integers) - 1)
        self.exchange(integers, behind + 1, integers[behind], at)
        self.depth = depth if call.times == 1 and not tape.steps else depth - 1

    def while_loop(self, integers: Sequence[Any], at: _At) -> None:
        call = WhileCall(*integers[:len(WhileCall._fields)])
        self.line("while True:")
        self.depth += 1
        self.tape(call.condition, at, place_of(WhileCall._fields, "condition"))
        slot = self.slot(call.slot, at, place_of(WhileCall._fields, "slot"))
        self.line(f"if {slot}.unsafe_offset({call.offset})[] == 0:")
        self.line("    break")
        self.tape(call.body, at, place_of(WhileCall._fields, "body"))
        self.exchange(integers, len(call), call.exchanges, at)
        self.depth -= 1

    def switch(self, integers: Sequence[Any], at: _At) -> None:
        index = self.new("index")
        self.line(f"var {index} = Int({self.place(integers, at, 0, 'int32')}"
                  ".unsafe_load[width=1](0))")
        first = len(SwitchCall._fields)
        tapes = integers[first:]
        for number, tape in enumerate(tapes):
            word = "if" if number == 0 else "elif"
            self.line("else:" if number == len(tapes) - 1 > 0 else "if True:"
                      if len(tapes) == 1 else f"{word} {index} <= {number}:")
            self.depth += 1
            self.tape(tape, at, first + 2 * number)
            self.depth -= 1

    # --- groups ---
    def group(self, code: GroupCode, integers: Sequence[Any], at: _At) -> None:
        structure = code.form.structure
        if code.code is None or any(x.source is not None for x in structure.values):
            raise _Unsuited
        call = KernelLayout(len(structure.operands)).read(integers[:-1])
        if call.threads > 1:
            raise _Unsuited
        self.own += 1
        schedule = code.form.schedule
        if is_left_to_machine(schedule, call):
            self.call(at)
            return
        name = self.fixed(code.form, schedule, call)
        if name is not None:
            self.line(f"{name}({', '.join(self.operands(code.form, call, integers, at))})")
        else:
            self.line(f"{self.part(code.form)}(slots, {at.args}, 0, {call.items})")

    def group_there(self, integers: Sequence[Any], at: _At, group: InPlace,
                    windows: Mapping[int, str], others: Mapping[int, str]) -> None:
        """A group that reads windows where they are.

        Args:
          windows: their addresses, by the steps that would read them.
          others: the texts of other operands.
        """
        form = integers[-1].form
        name = self.fixed(form, schedule_of(group.structure), group.call)
        if name is None:
            raise _Unsuited
        self.own += 1
        operands = self.operands(form, group.call, integers, at)
        for number, (read, offset) in group.operands.items():
            kind = stored_name(group.structure.operands[number].dtype)
            operands[number] = (f"{windows[read]}.unsafe_offset({offset})"
                                f".unsafe_bitcast[Scalar[{kind}]]()")
        texts = {**dict(enumerate(operands)), **others}
        self.line(f"{name}({', '.join(map(texts.__getitem__, range(len(texts))))})")

    def operands(self, form: Form, call: KernelIntegers, integers: Sequence[Any], at: _At
                 ) -> list[str]:
        return [str(call.places[number][1]) if x.is_iota else self.place(
            integers, at, number, stored_name(x.dtype).removeprefix("DType."))
            for number, x in enumerate(form.structure.operands)]

    def known(self, place: tuple[int, int], dtype: np.dtype) -> str | None:
        """The text of an integer or a truth value that is stored with the program."""
        data = self.plan.constant_at(place) if dtype.kind in "iub" else None
        if data is None or len(data) < dtype.itemsize:
            return None
        value = np.frombuffer(data, dtype, 1)[0].item()
        return str(value) if abs(value) < 1 << 62 else None

    def in_place(self, tape: Tape, update: WindowUpdate) -> Fused | None:
        """The group of an update, if it can compute the window where it is."""
        *integers, code = tape.steps[update.group].integers
        structure = code.form.structure
        if code.code is None or any(x.source is not None for x in structure.values):
            return None
        call = KernelLayout(len(structure.operands)).read(integers)
        return fused(tape, update, structure, call) if call.threads == 1 else None

    def row_write(self, integers: Sequence[Any], at: _At, group: InPlace,
                  windows: Mapping[int, str], written: RowGroup, write: Sequence[Any],
                  at_write: _At) -> None:
        """A row that a group computes where it is, if that is within the array.

        Args:
          write: the integers of the call that would scatter it.
        """
        rows, width = write[8:10]
        place = self.new("place")
        self.line(f"var {place} = Int({self.place(write, at_write, 1, 'int32')}"
                  ".unsafe_load[width=1](0))")
        self.line(f"if 0 <= {place} and {place} < {rows}:")
        self.depth += 1
        kind = stored_name(group.structure.operands[written.operands[0]].dtype)
        text = (f"{self.place(write, at_write, 3, kind.removeprefix('DType.'))}"
                f".unsafe_offset({place} * {width})")
        self.group_there(integers, at, group, windows, dict.fromkeys(written.operands, text))
        self.depth -= 1

    def window_update(self, integers: Sequence[Any], at: _At, group: InPlace,
                      windows: Mapping[int, str], own: Sequence[int], write: Sequence[Any],
                      at_write: _At) -> None:
        """A window that a group computes where it is.

        Args:
          windows: the addresses of others that it reads, by steps.
          own: its operands that are this window.
          write: the integers of the call that would write it.
        """
        begin = self.begin(write, at_write, 8)
        kinds = {number: stored_name(group.structure.operands[number].dtype).removeprefix("DType.")
                 for number in own}
        self.group_there(integers, at, group, windows, {
            number: f"{self.place(write, at_write, 3, kind)}.unsafe_offset({begin})"
            for number, kind in kinds.items()})

    def read_there(self, step: Step, at: _At) -> str:
        """The variable of where a window begins that a step would read."""
        self.own += 1
        kind, _, bits = step.function.rpartition("_")
        integers = step.integers
        if kind == "read_window":
            begin = self.begin(integers, at, 6)
        else:
            inner, index = integers[8], f"int{8 * integers[10]}"
            begin = self.new("begin")
            self.line(f"var {begin} = Int({self.place(integers, at, 1, index)}"
                      f".unsafe_load[width=1](0)) * {inner}")
        name = self.new("window")
        self.line(f"var {name} = {self.place(integers, at, 0, f'uint{bits}')}"
                  f".unsafe_offset({begin})")
        return name

    def fixed(self, form: Form, schedule: Schedule, call: KernelIntegers) -> str | None:
        """The function of a group for its sizes, if it has one."""
        known = {number: text for number, x in enumerate(schedule.operands)
                 if not x.is_output and not x.is_iota and not x.varies
                 and (text := self.known(call.places[number], x.dtype)) is not None}
        key = form, call.length, str((call.strides, call.point_dims, call.row_dims, known))
        name = self.functions.get(key)
        if name is None:
            name = f"KERNEL_{len(self.functions)}"
            lines = fixed_function(schedule, call, name, known)
            if lines is None:
                return None
            self.functions[key] = name
            self.texts += [*lines, "", ""]
        return name

    def part(self, form: Form) -> str:
        """The function of a group with reductions, whose sizes are integers of its call."""
        name = self.functions.get(form)
        if name is None:
            name = self.functions[form] = f"KERNEL_{len(self.functions)}_part"
            text, _, _ = form.source.partition('@export("KERNEL")')
            self.texts += [text.replace("KERNEL_part", name).rstrip("\n"), "", ""]
        return name

    # --- what moves elements ---
    def movement(self, function: str, integers: Sequence[Any], at: _At) -> bool:
        """Whether a call of the pack is written here."""
        kind, _, last = function.rpartition("_")
        if kind == "copy":
            return self.copy(f"uint{last}", integers, at)
        if kind == "fill":
            return self.fill(f"uint{last}", integers, at)
        if kind == "gather_rows":
            outer, size, inner, count, index = integers[6:11]
            if outer * inner * count > _MOST_MOVED:
                return False
            self.line(f"gather_fixed[DType.uint{last}, DType.int{8 * index}, {outer}, {size}, "
                      f"{inner}, {count}]({self.place(integers, at, 0, f'uint{last}')}, "
                      f"{self.place(integers, at, 1, f'int{8 * index}')}, "
                      f"{self.place(integers, at, 2, f'uint{last}')})")
            return True
        if kind in _SCATTERED:
            return self.scatter(_SCATTERED[kind], last, integers, at)
        if kind in ("read_window", "write_window"):
            return self.window(kind == "write_window", f"uint{last}", integers, at)
        if kind == "matmul" and last in ("float32", "float64"):
            return self.product(last, integers, at)
        return False

    def product(self, kind: str, integers: Sequence[Any], at: _At) -> bool:
        sizes, strides = integers[6:10], integers[10:17]
        _, m, n, _ = sizes
        if not is_fixed_product(*sizes) or m > 1 and integers[17] != n:
            return False
        a, b, c = (self.place(integers, at, number, kind) for number in range(3))
        numbers = ", ".join(map(str, (*sizes, *strides)))
        self.line(f"products_fixed[DType.{kind}, {numbers}]({a}, {b}, {c})")
        return True

    def window(self, writes: bool, kind: str, integers: Sequence[Any], at: _At) -> bool:
        """A part of an array that begins at computed places."""
        own = integers[8 if writes else 6:]
        rank = own[0]
        part, strides, lines, whole = (own[1 + k * rank:1 + (k + 1) * rank] for k in range(4))
        if math.prod(part) > _MOST_MOVED or writes and _is_copied(integers, 3, whole):
            return False
        name = self.begin(integers, at, 8 if writes else 6)
        if not writes:
            self.copied_lines(
                kind, [*zip(part, strides, lines, strict=True)],
                f"{self.place(integers, at, 0, kind)}.unsafe_offset({name})",
                self.place(integers, at, 2, kind))
            return True
        result = self.place(integers, at, 3, kind)
        nbytes = math.prod(whole) * int(kind.removeprefix("uint")) // 8
        self.line(f"copy_unless_there({self.place(integers, at, 0)}, "
                  f"{self.place(integers, at, 3)}, {nbytes})")
        self.copied_lines(kind, [*zip(part, lines, strides, strict=True)],
                          self.place(integers, at, 2, kind), f"{result}.unsafe_offset({name})")
        return True

    def begin(self, integers: Sequence[Any], at: _At, first: int) -> str:
        """The variable of a window's first element.

        Args:
          first: the place of its rank among the integers.
        """
        rank = integers[first]
        part, strides, _, whole = (integers[first + 1 + k * rank:first + 1 + (k + 1) * rank]
                                   for k in range(4))
        starts = self.place(integers, at, 1, "int64")
        begin = " + ".join(f"clamped({starts}, {dim}, {size - own_size}) * {stride}"
                           for dim, (size, own_size, stride) in enumerate(
                               zip(whole, part, strides, strict=True)) if size != own_size)
        name = self.new("begin")
        self.line(f"var {name} = {begin or '0'}")
        return name

    def scatter(self, combine: str, kind: str, integers: Sequence[Any], at: _At) -> bool:
        rows, width, count = integers[8:11]
        if count * width > _MOST_MOVED or kind not in _ADDED or _is_copied(
                integers, 3, (rows, width)):
            return False
        x, places, updates, result = (self.place(integers, at, number, k) for number, k in
                                      enumerate((kind, "int32", kind, kind)))
        self.line(f"scatter_fixed[DType.{kind}, {rows}, {width}, {count}{combine}]"
                  f"({x}, {places}, {updates}, {result})")
        return True

    def copy(self, kind: str, integers: Sequence[Any], at: _At) -> bool:
        rank = integers[4]
        sizes, strides, targets = (integers[5 + k * rank:5 + (k + 1) * rank] for k in range(3))
        return self.lines_of(kind, [*zip(sizes, strides, targets, strict=True)], integers, at)

    def fill(self, kind: str, integers: Sequence[Any], at: _At) -> bool:
        rank = integers[4]
        sizes, targets = (integers[5 + k * rank:5 + (k + 1) * rank] for k in range(2))
        return self.lines_of(kind, [*zip(sizes, [0] * rank, targets, strict=True)], integers, at)

    def lines_of(self, kind: str, dims: Sequence[tuple[int, int, int]], integers: Sequence[Any],
                 at: _At) -> bool:
        if math.prod(size for size, _, _ in dims) > _MOST_MOVED:
            return False
        self.copied_lines(kind, dims, *(self.place(integers, at, k, kind) for k in (0, 1)))
        return True

    def copied_lines(self, kind: str, dims: Sequence[tuple[int, int, int]], source: str,
                     result: str) -> None:
        """Copies lines of elements; dimensions are sizes, and strides of source and result."""
        *outer, inner = merged(dims) or [(1, 1, 1)]
        depth = self.depth
        names = [self.new("i") for _ in outer]
        for name, (count, _, _) in zip(names, outer, strict=True):
            self.line(f"for {name} in range({count}):")
            self.depth += 1
        offsets = [" + ".join(f"{name} * {dim[k]}" for name, dim in zip(names, outer, strict=True))
                   or "0" for k in (1, 2)]
        self.line(f"copy_fixed[DType.{kind}, {inner[0]}, {inner[1]}, {inner[2]}]"
                  f"({source}.unsafe_offset({offsets[0]}), {result}.unsafe_offset({offsets[1]}))")
        self.depth = depth


def _is_copied(integers: Sequence[Any], result: int, shape: Sequence[int]) -> bool:
    """Whether the first operand, a large array, is elsewhere than a result: the pack copies it."""
    return integers[:2] != integers[2 * result:2 * result + 2] and math.prod(shape) > _MOST_MOVED
