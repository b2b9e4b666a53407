"""The parts of all kernels' texts: operands, values, loads and stores, and closures over rows.

What is computed where is in the kernel's schedule (``schedule.py``): texts are printed from it.
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.dtypes import name_of
from maxjax._max.elementwise_kernels import CHEAP
from maxjax._max.mojo.layout import KernelLayout
from maxjax._max.mojo.schedule import SWEEP, Schedule, Store, Value
from maxjax._max.mojo.structure import BOOL, INNER, NEXT, SAME, STRIDED
from maxjax._primitives.kernels import struct_name

REDUCERS = {"sum": "Summing", "prod": "Multiplying", "max": "Maximizing", "min": "Minimizing",
             "and": "Anding", "or": "Oring", "xor": "Xoring"}
_INFIX = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
# Methods of numbers: what a struct of `kernels/` makes of two is the same, and takes the compiler
# three times as long. `ne` is not among them, as it would be false of NaN.
_COMPARED = frozenset(("eq", "lt", "le", "gt", "ge"))
_EXTREME = {"max": "gt", "min": "lt"}     # of integers
# What no processor here does in bfloat16: in float32, rounded (kernels/halves.mojo).
_ROUNDED = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
_COLUMNS = 100

HEADER = '''from std.math import trunc
from std.sys.info import simd_width_of
from kernels.arithmetic import *
from kernels.calling import *
from kernels.comparison import *
from kernels.conversion import *
from kernels.fixed import *
from kernels.halves import rounded_to
from kernels.launching import launch
from kernels.loops import *
from kernels.reduction import Anding, Maximizing, Minimizing, Multiplying, Oring, Summing, Xoring
from kernels.unary import *
'''


def kind_name(dtype: np.dtype) -> str:
    return f"DType.{name_of(dtype)}"


def stored_name(dtype: np.dtype) -> str:
    return "DType.uint8" if dtype == BOOL else kind_name(dtype)


def zeros(numbers: Iterable[tuple[str, np.dtype]]) -> list[str]:
    """Declarations of variables, by their names and dtypes. Each is a copy of the first of its
    dtype: one that is converted from a literal takes the compiler 0.3 ms more."""
    firsts: dict[np.dtype, str] = {}
    return [f"var {name} = {firsts[dtype]}" if firsts.setdefault(dtype, name) != name
            else f"var {name} = Scalar[{kind_name(dtype)}](0)" for name, dtype in numbers]


class Emitter:
    """Prints the schedule of one kernel; each way to iterate over a space has a subclass.

    Attributes:
      kind: "map", "rows" or "columns".
      rows: whether points have rows.
      operands: their structures.
      lines: of the text.
      numbers: in the names of values that have been printed.
    """

    def __init__(self, schedule: Schedule):
        self.schedule = schedule
        self.kind, _, self.rows = schedule.structure[:3]
        self.operands = schedule.operands
        self.lines: list[str] = []
        self.numbers: dict[Value, int] = {}
        self._named = 0
        self._steps: Collection[int] = ()       # operands of which one sweep reads several rows

    # --- the text ---
    def text(self) -> str:
        """Mojo text, with ``KERNEL`` as a placeholder for the kernel's name."""
        self.write()
        texts = dict.fromkeys(x.source for x in self.schedule.values if x.source is not None)
        return "\n".join([*(f"{renamed(text)}\n\n" for text in texts), *self.lines]) + "\n"

    def write(self) -> None:
        """Writes the lines that compute values and store them to operands."""
        raise NotImplementedError

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text if text else "")

    def inner_stride(self, number: int) -> int:
        """SAME, NEXT or STRIDED."""
        return self.operands[number].stride

    @property
    def _count(self) -> int:
        return len(self.operands)

    @property
    def layout(self) -> KernelLayout:
        return KernelLayout(self._count)

    def _start(self) -> None:
        """The function that computes a range of the items, up to its first loop."""
        layout = self.layout
        self.line(0, "def KERNEL_part(slots: Slots, args: Args, begin: Int, end: Int):")
        self._describe()
        self._declare_operands()
        self.line(1, f"var n = integer(args, {layout.length})")
        for number in range(layout.operands):
            if self.inner_stride(number) == STRIDED:
                self.line(1, f"var t{number} = integer(args, {layout.stride(number)})")
        self.line(1, f"var points = args.unsafe_offset({layout.points})")
        self.line(1, f"comptime W = {self._width()}")
        self._compute_all(1, self.schedule.call, "1", self._pointer_call)

    def _width(self) -> str:
        """Elements of a vector: of the widest dtype, and twice as many where each takes long."""
        return f"{'2 * ' if self._is_costly() else ''}simd_width_of[{self._widest()}]()"

    def _is_costly(self) -> bool:
        return is_costly(self.schedule.values)

    def _declare_rows(self) -> None:
        """The number of rows of a point, and their walk, which follows that of the points."""
        self.line(1, f"var rows = integer(args, {self.layout.rows})")
        self.line(1, "var row_args = points.unsafe_offset("
                     f"{self.layout.walk_length('integer(points, 0)')})")

    def _describe(self) -> None:
        """The docstring: operations, and types of operands; ``[n]`` is swept, ``[1]`` is one
        element per row, a scalar is read once per call."""
        def kind(number: int) -> str:
            operand = self.operands[number]
            name = name_of(operand.dtype)
            if operand.varies & INNER:
                return f"{name}[n]" if operand.stride == NEXT else f"{name}[strided n]"
            return f"{name}[1]" if operand.varies or operand.is_output else name

        operations = dict.fromkeys(x.name for x in self.schedule.values if x.inputs)
        inputs = [kind(k) for k, x in enumerate(self.operands) if not x.is_output]
        outputs = [kind(k) for k, x in enumerate(self.operands) if x.is_output]
        lines = wrapped(f'"""{self.kind}: {", ".join(operations) or "copy"}', 4)
        lines += ["", *wrapped(f"({', '.join(inputs)}) -> ({', '.join(outputs)})", 4)]
        for text in lines:
            self.line(1 if text else 0, text)
        self.line(1, '"""')

    def _declare_operands(self) -> None:
        for number, operand in enumerate(self.operands):
            if operand.is_iota:
                self.line(1, f"var p{number} = integer(args, {self.layout.place(number) + 1})")
            else:
                self.line(1, f"var p{number} = operand[{stored_name(operand.dtype)}]"
                             f"(slots, args, {number})")

    def _finish(self) -> None:
        self.line(0, "")
        self.line(0, "")
        self.line(0, '@export("KERNEL")')
        self.line(0, 'def KERNEL(slots: Slots, args: Args) abi("C"):')
        self.line(1, f"launch(KERNEL_part, slots, args, {self.layout.threads})")

    def _widest(self) -> str:
        kinds = [value.dtype for value in self.schedule.values if value.scope == SWEEP] \
            or [self.operands[0].dtype]
        widest = max(kinds, key=lambda dtype: dtype.itemsize)
        if widest.itemsize < 4 and any(x.name in ("float16", "bfloat16") for x in kinds):
            return "DType.float32"
        return stored_name(widest)

    # The positions of operands' elements, by the scope that reads them.
    def _pointer_call(self, number: int) -> tuple[str, str]:
        return f"p{number}", "0"

    def _pointer_point(self, number: int) -> tuple[str, str]:
        return f"p{number}", f"walk.offsets[{number}]"

    def _pointer_row(self, number: int) -> tuple[str, str]:
        if self.rows:
            return f"p{number}", f"walk.offsets[{number}] + row.offsets[{number}]"
        return self._pointer_point(number)

    def _pointer_sweep(self, number: int) -> tuple[str, str]:
        return f"r{number}", "i"

    def _unit_base(self, number: int, base: str) -> str:
        """Where an operand's row begins, among several covered by one sweep."""
        if not base.startswith("r") or number not in self._steps:
            return base
        if self.operands[number].is_iota:
            return f"{base} + unit * d{number}"
        return f"{base}.unsafe_offset(unit * d{number})"

    def number(self, value: Value) -> None:
        self.numbers[value], self._named = self._named, self._named + 1

    def name(self, prefix: str, value: Value) -> str:
        """The name of a value, or of something that belongs to it."""
        return f"{prefix}{self.numbers[value]}"

    def _accumulators(self, depth: int, reductions: Sequence[Value], kind: str, lanes: str,
                      arguments: str) -> list[str]:
        """Declares each reduction's accumulator; returns the names."""
        for value in reductions:
            self.number(value)
            self.line(depth, f"var {self.name('a', value)} = {kind}[{REDUCERS[value.name]}, "
                             f"{stored_name(value.dtype)}{lanes}]({arguments})")
        return [self.name("a", value) for value in reductions]

    def _load(self, value: Value, w: str, pointer: Any) -> str:
        number, dtype = value.operand, value.dtype
        base, place = pointer(number)
        base = self._unit_base(number, base)
        stride = self.inner_stride(number) if base.startswith("r") else SAME
        if value.kind == "iota":
            if base.startswith("r"):
                if stride == NEXT:
                    return f"ramp[{kind_name(dtype)}, {w}]({base} + i, 1)"
                return f"ramp[{kind_name(dtype)}, {w}]({base} + i * t{number}, t{number})"
            return f"ramp[{kind_name(dtype)}, 1]({base} + {place}, 0)"
        if base.startswith("r") and stride != NEXT:
            text = f"gather[{stored_name(dtype)}, {w}]({base}, i, t{number})"
            return f"{text}.ne(0)" if dtype == BOOL else text
        if dtype == BOOL:
            return f"load_bool[{w}]({base}, {place})"
        return f"load[{kind_name(dtype)}, {w}]({base}, {place})"

    def _name(self, value: Value, w: str, scope: int) -> str:
        """A value's name, broadcast over the vector if it is a scalar."""
        name = self.name("v", value)
        if scope == SWEEP and value.scope != SWEEP:
            return f"SIMD[{kind_name(value.dtype)}, {w}]({name})"
        return name

    def _compute(self, depth: int, value: Value, w: str, pointer: Any) -> None:
        """Writes the line that computes a value."""
        if value not in self.numbers:
            self.number(value)
        if value.operand >= 0:
            text = self._load(value, w, pointer)
        else:
            operands = [self._name(x, w, value.scope) for x in value.inputs]
            text = expression(value, operands, w)
        self.line(depth, f"var {self.name('v', value)} = {text}")

    def _compute_all(self, depth: int, values: Iterable[Value], w: str, pointer: Any) -> None:
        for value in values:
            self._compute(depth, value, w, pointer)

    def _store(self, depth: int, value: Value, number: int, w: str, pointer: Any) -> None:
        base, place = pointer(number)
        base = self._unit_base(number, base)
        name = self._name(value, w, SWEEP if base.startswith("r") else value.scope)
        is_bool = value.dtype == BOOL
        if base.startswith("r") and self.inner_stride(number) != NEXT:
            text = f"as_bytes({name})" if is_bool else name
            self.line(depth, f"scatter({base}, i, t{number}, {text})")
        elif is_bool:
            self.line(depth, f"store_bool({base}, {place}, {name})")
        else:
            self.line(depth, f"{base}.unsafe_store({place}, {name})")

    def _store_all(self, depth: int, stores: Iterable[Store]) -> None:
        """Stores what a sweep has computed."""
        for value, number in stores:
            self._store(depth, value, number, "w", self._pointer_sweep)

    @staticmethod
    def _touched(values: Iterable[Value], stores: Iterable[Store]) -> list[int]:
        """The operands that a sweep reads and writes."""
        return sorted({*(x.operand for x in values if x.scope == SWEEP and x.operand >= 0),
                       *(number for _, number in stores)})

    def _row_pointers(self, depth: int, numbers: Iterable[int], pointer: Any) -> None:
        for number in numbers:
            base, place = pointer(number)
            if self.operands[number].is_iota:
                self.line(depth, f"var r{number} = {base} + {place}")
            else:
                self.line(depth, f"var r{number} = {base}.unsafe_offset({place})")

    def _captures(self, numbers: Sequence[int], values: Iterable[Value], ends: Iterable[Value],
                  inside: Iterable[Value] = ()) -> list[str]:
        """What a closure over a row captures: its operands, and values from outside.

        Args:
          numbers: operands that it reads or writes.
          values: what it computes.
          ends: what it stores or gathers.
          inside: values that it gets from elsewhere.
        """
        names = [f"var r{number}" for number in numbers]
        names += [f"var t{number}" for number in numbers if self.inner_stride(number) == STRIDED]
        outer = {*(x for value in values for x in value.inputs), *ends}.difference(values, inside)
        return names + [f"var {self.name('v', x)}" for x in self.schedule.values if x in outer]

    def _closure(self, depth: int, signature: str, names: list[str]) -> None:
        captures = ", ".join(names)
        self.line(depth, "@always_inline")
        text = f"def {signature}(i: Int) {{{captures}}}:"
        if 4 * depth + len(text) <= _COLUMNS:
            self.line(depth, text)
            return
        self.line(depth, f"def {signature}(i: Int) {{")
        for part in wrapped(captures, 4 * (depth + 1)):
            self.line(depth + 1, part)
        self.line(depth, "}:")


def is_costly(values: Iterable[Value]) -> bool:
    """Whether one of the values that a vector has of its own takes long to compute."""
    return any(value.scope == SWEEP and value.kind == "apply" and value.name not in CHEAP
               for value in values)


def wrapped(text: str, indent: int) -> list[str]:
    """A list with commas as lines, broken between its members."""
    lines = textwrap.wrap(re.sub("(?<!,) ", "\xa0", text), _COLUMNS - indent,
                          break_long_words=False, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


def _is_cast(given: np.dtype, result: np.dtype) -> bool:
    """Whether a conversion is the processor's own: between numbers of which none is a float of 16
    bits, and not from a float to an integer, which has bounds."""
    floats = [x in (dtypes.float32, dtypes.float64) for x in (given, result)]
    integers = [x.kind in "iu" for x in (given, result)]
    return all(integers) or all(floats) or integers[0] and floats[1]


_DEFINITION = re.compile(r"^(?:def|struct|comptime) +(\w+)", re.MULTILINE)


def own_name(name: str, source: str) -> str:
    """The name, in a kernel, of something that the user's Mojo text defines."""
    return f"KERNEL_{name}_{hashlib.sha256(source.encode()).hexdigest()[:8]}"


def renamed(source: str) -> str:
    """The user's Mojo text with names that are unique in a library."""
    text = source
    for name in dict.fromkeys(_DEFINITION.findall(source)):
        text = re.sub(rf"\b{name}\b", own_name(name, source), text)
    return text.strip("\n")


def expression(value: Value, xs: list[str], w: str) -> str:
    """The Mojo expression of an elementwise operation."""
    name, kinds = value.name, [x.dtype for x in value.inputs]
    if value.source is not None:
        own = own_name(name.removeprefix("custom "), value.source)
        return f"{own}[{kind_name(kinds[0])}, {w}]({', '.join(xs)})"
    if kinds[0] == dtypes.bfloat16 and name in _ROUNDED:
        a, b = (f"{x}.cast[DType.float32]()" for x in xs)
        return f"rounded_to[DType.bfloat16]({a} {_ROUNDED[name]} {b})"
    if name in _INFIX:
        return f"{xs[0]} {_INFIX[name]} {xs[1]}"
    if name in _COMPARED and kinds[0] != BOOL:
        return f"{xs[0]}.{name}({xs[1]})"
    if name == "ne" and kinds[0] != BOOL:
        return f"~{xs[0]}.eq({xs[1]})"
    if name == "convert" and _is_cast(kinds[0], value.dtype):
        return f"{xs[0]}.cast[{kind_name(value.dtype)}]()"
    if name in _EXTREME and kinds[0].kind in "iu" and all(map(str.isidentifier, xs)):
        return f"{xs[0]}.{_EXTREME[name]}({xs[1]}).select({xs[0]}, {xs[1]})"
    if name == "select":
        return f"{xs[0]}.select({xs[1]}, {xs[2]})"
    if name == "not" and kinds[0] == BOOL:
        return f"~{xs[0]}"
    if name == "div" and kinds[0].name.startswith(("float", "bfloat")):
        return f"{xs[0]} / {xs[1]}"
    if name == "multiply_add":
        return f"{xs[0]}.fma({xs[1]}, {xs[2]})"
    if name == "trunc":
        return f"trunc({xs[0]})"
    struct = struct_name(name)
    if name in ("convert", "bitcast", "is_finite"):
        return (f"{struct}.elementwise[{kind_name(kinds[0])}, {kind_name(value.dtype)}, {w}]"
                f"({xs[0]})")
    return f"{struct}.elementwise[{kind_name(kinds[0])}, {w}]({', '.join(xs)})"
