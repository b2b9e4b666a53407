"""Writes a loop over few elements as one kernel, from its code (``scalar_code.py``).

Each element of a register is a variable, so that the compiler keeps the loop's state in the
processor's registers. How often loops run, where they begin in what they go through, and how many
rows large arrays have are integers of the call, behind its places: loops that differ in those share
a kernel.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator

from maxjax._base import dtypes
from maxjax._max.mojo.emit import Form
from maxjax._max.mojo.emitter import BOOL, Value, expression, kind_name, stored_name, wrapped
from maxjax._max.mojo.scalar_code import (
    Choice,
    Instruction,
    Item,
    LoopCode,
    Register,
    Repeat,
    every_instruction,
)
from maxjax._max.mojo.structure import KernelStructure, ValueStructure

_MOST_ELEMENTS = 4      # of a register: more are rather gone through by vectors
_MOST_LINES = 2000
_WRITTEN = ("apply", "spread", "move", "load", "store", "point", "next", "put", "set", "read",
            "write")
_WITH_INTEGER = ("set", "point", "read", "write")
_HALVES = (dtypes.float16, dtypes.bfloat16)     # of one of which subnormal numbers would be lost


def numbers_of(code: LoopCode) -> list[int]:
    """The integers behind the places of a call."""
    return [x.numbers[-1] for x in every_instruction(code.items) if x.opcode in _WITH_INTEGER]


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
    """The kernel of a loop, the same for equal texts; None for a loop that rather stays with the
    machine, because of longer registers, calls, or bits that change their dtype."""
    lines = 0
    for x in every_instruction(code.items):
        lines += x.elements
        registers = (*x.sources, *x.written)
        if x.opcode not in _WRITTEN or lines > _MOST_LINES or any(
                r.root.elements > _MOST_ELEMENTS or r.dtype in _HALVES for r in registers) \
                or x.opcode == "move" and len({r.dtype for r in registers}) > 1:
            return None
    source = _Writer(code).written()
    form = _forms.get(source)
    return _forms.setdefault(source, LoopForm(source)) if form is None else form


class _Writer:
    def __init__(self, code: LoopCode):
        self.code = code
        self.lines: list[str] = []
        self.depth = 1
        # The positions of integers, by instructions.
        first = 2 * code.operands
        self.integers = {id(x): first + number for number, x in enumerate(
            x for x in every_instruction(code.items) if x.opcode in _WITH_INTEGER)}

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def written(self) -> str:
        instructions = [*every_instruction(self.code.items)]
        names = dict.fromkeys(x.name for x in instructions if x.name)
        pointers = {x.target for x in instructions if x.opcode == "point"}
        counters = {x.target for x in instructions if x.opcode == "set"}
        self.lines = ['@export("KERNEL")', 'def KERNEL(slots: Slots, args: Args) abi("C"):']
        for text in wrapped(f'"""loop: {", ".join(names) or "copy"}', 4):
            self.line(text)
        self.line('"""')
        for register in dict.fromkeys(r.root for x in instructions for r in x.written):
            if register in counters:
                self.line(f"var {register} = 0")
            elif register not in pointers:
                for k in range(register.elements):
                    self.line(f"var {_element(register, k)} = "
                              f"Scalar[{kind_name(register.dtype)}](0)")
        self.items(self.code.items)
        return "\n".join([*self.lines, ""])

    def items(self, items: list[Item]) -> None:
        if not items:
            self.line("pass")
        for item in items:
            if isinstance(item, Repeat):
                self.repeat(item)
            elif isinstance(item, Choice):
                self.choice(item)
            else:
                for text in self.instruction(item):
                    self.line(text)

    def repeat(self, loop: Repeat) -> None:
        self.line("while True:" if loop.counter is None else f"while {loop.counter} > 0:")
        self.depth += 1
        if loop.predicate is not None:
            self.items(loop.condition)
            self.line(f"if not {_value(loop.predicate)}:")
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
                      f"{word} {_value(choice.index)} <= {number}:")
            self.depth += 1
            self.items(branch)
            self.depth -= 1

    def instruction(self, x: Instruction) -> Iterator[str]:
        target, source = x.target, x.sources[0] if x.sources else None
        match x.opcode:
            case "apply":
                assert target is not None
                value = Value(ValueStructure("apply", x.name, target.dtype), tuple(
                    Value(ValueStructure("load", "", r.dtype), ()) for r in x.sources))
                for k in range(x.elements):
                    yield f"{_element(target, k)} = " + expression(
                        value, [_element(r, k) for r in x.sources], "1")
            case "spread":
                assert target is not None and source is not None
                for k in range(x.elements):
                    yield f"{_element(target, k)} = {_element(source, x.numbers[0])}"
            case "move":
                assert target is not None and source is not None
                to, step, begin, source_step = x.numbers
                # A value may be moved within itself.
                for k in range(x.elements):
                    yield (f"{_element(target, to + k * step)} = "
                           f"{_element(source, begin + k * source_step)}")
            case "load":
                assert target is not None
                yield from self.load(target, _pointer(target, f"address(slots, args, "
                                                              f"{x.numbers[0]})"))
            case "store":
                assert source is not None
                yield from self.store(source, _pointer(source, f"address(slots, args, "
                                                               f"{x.numbers[0]})"))
            case "point":
                yield (f"var {target} = address(slots, args, {x.numbers[0]})"
                       f".unsafe_offset(integer(args, {self.integers[id(x)]}))")
            case "next":
                assert target is not None
                yield from self.load(target, _pointer(target, str(source)))
                yield f"{source} = {source}.unsafe_offset({x.numbers[0]})"
            case "put":
                assert source is not None
                yield from self.store(source, _pointer(source, str(target)))
                yield f"{target} = {target}.unsafe_offset({x.numbers[0]})"
            case "read":
                assert target is not None
                last = f"integer(args, {self.integers[id(x)]}) - 1"
                yield from self.load(target, _pointer(target, _row(
                    x, f"max(0, min({_index(x)}, {last}))")))
            case "write":
                yield (f"if 0 <= {_index(x)} and "
                       f"{_index(x)} < integer(args, {self.integers[id(x)]}):")
                for text in self.store(x.sources[2], _pointer(
                        x.sources[2], _row(x, _index(x)))):
                    yield f"    {text}"
            case _:
                yield f"{target} = integer(args, {self.integers[id(x)]})"

    def load(self, register: Register, pointer: str) -> Iterator[str]:
        for k in range(register.elements):
            read = f"load_bool[1]({pointer}, {k})" if register.dtype == BOOL else (
                f"load[{kind_name(register.dtype)}, 1]({pointer}, {k})")
            yield f"{_element(register, k)} = {read}"

    def store(self, register: Register, pointer: str) -> Iterator[str]:
        for k in range(register.elements):
            name = _element(register, k)
            yield (f"store_bool({pointer}, {k}, {name})" if register.dtype == BOOL
                   else f"{pointer}.unsafe_store({k}, {name})")


def _element(register: Register, number: int) -> str:
    """The variable of an element."""
    if register.whole is not None:
        return f"r{register.whole.number}_{register.number}"
    return f"r{register.number}" if register.elements == 1 else f"r{register.number}_{number}"


def _value(register: Register) -> str:
    return _element(register, 0)


def _index(x: Instruction) -> str:
    """Of the row that is read or written."""
    return f"Int({_value(x.sources[1])})"


def _row(x: Instruction, index: str) -> str:
    nbytes, before, _ = x.numbers
    return f"{x.sources[0]}.unsafe_offset({before} + {nbytes} * {index})"


def _pointer(register: Register, place: str) -> str:
    return f"{place}.unsafe_bitcast[Scalar[{stored_name(register.dtype)}]]()"
