"""The parts of all kernels' texts: operands, values, loads and stores, and closures over rows.

A kernel iterates over its space by points (the kept dimensions except the inner one), at each point
by rows (the reduced dimensions except the inner one), and sweeps each row by vectors. Each value is
computed in the outermost scope possible: once per call ("call"), per point ("point"), per row
("row"), or in the sweep ("sweep").
"""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.dtypes import name_of
from maxjax._max.elementwise_kernels import CHEAP
from maxjax._max.mojo.layout import KernelLayout
from maxjax._max.mojo.structure import (
    INNER,
    NEXT,
    ROWS,
    SAME,
    STRIDED,
    KernelStructure,
    ValueStructure,
)
from maxjax._primitives.kernels import struct_name

REDUCERS = {"sum": "Summing", "prod": "Multiplying", "max": "Maximizing", "min": "Minimizing",
             "and": "Anding", "or": "Oring", "xor": "Xoring"}
_INFIX = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
# What no processor here does in bfloat16: in float32, rounded (kernels/halves.mojo).
_ROUNDED = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
BOOL = np.dtype(bool)
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


class Value:
    """A value that a kernel computes.

    Attributes:
      kind, name, dtype, operand, source: as in `ValueStructure`.
      varies: the sum of the loops along which it differs, POINTS only where no other decides.
      phase: the length of the longest chain of reductions it depends on.
      scope: where it is computed.
    """

    __slots__ = ("dtype", "inputs", "kind", "name", "number", "operand", "phase", "scope",
                 "source", "varies")

    def __init__(self, structure: ValueStructure, inputs: tuple[Value, ...]):
        self.kind, self.name, self.dtype, _, self.operand, self.source = structure
        self.inputs = inputs
        self.varies = 0
        self.phase = 0
        self.scope = ""
        self.number = -1


def kind_name(dtype: np.dtype) -> str:
    return f"DType.{name_of(dtype)}"


def stored_name(dtype: np.dtype) -> str:
    return "DType.uint8" if dtype == BOOL else kind_name(dtype)


class Emitter:
    """Writes one kernel; each way to iterate over a space has a subclass.

    Attributes:
      operands: their structures.
      values: what the kernel computes, operands first.
      outputs: values and the operands that they are stored to.
      has_inner, rows: whether a dimension is swept, and whether points have rows.
    """

    def __init__(self, structure: KernelStructure):
        self.kind = structure.kind
        self.has_inner = structure.has_inner
        self.rows = structure.has_rows
        self.operands = structure.operands
        self.values: list[Value] = []
        self.lines: list[str] = []
        self._named = 0
        self._steps: set[int] = set()       # operands of which one sweep reads several rows
        for described in structure.values:
            value = Value(described, tuple([self.values[x] for x in described.inputs]))
            self._classify(value)
            self.values.append(value)
        self.outputs = [(self.values[value], number) for value, number in structure.outputs]

    def _classify(self, value: Value) -> None:
        if value.operand >= 0:
            value.varies = self.operands[value.operand].varies
        elif value.kind == "reduce":
            value.varies = INNER if self.kind == "columns" else 0
            value.phase = value.inputs[0].phase + 1
        else:
            for x in value.inputs:
                value.varies |= x.varies
                value.phase = max(value.phase, x.phase)
        if value.kind == "reduce":
            value.scope = "point" if self.kind == "rows" else "sweep"
        elif not value.varies and not value.phase:
            value.scope = "call"
        elif self.kind == "columns":
            value.scope = "sweep" if value.varies & INNER or value.phase else "row"
        elif not value.varies & (INNER | ROWS):
            value.scope = "point"
        else:
            value.scope = "sweep" if value.varies & INNER else "row"

    # --- the text ---
    def text(self) -> str:
        """Mojo text, with ``KERNEL`` as a placeholder for the kernel's name."""
        self.write(self.outputs)
        texts = dict.fromkeys(value.source for value in self.values if value.source is not None)
        return "\n".join([*(f"{renamed(text)}\n\n" for text in texts), *self.lines]) + "\n"

    def write(self, outputs: list[tuple[Value, int]]) -> None:
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
        costly = any(value.scope == "sweep" and value.kind == "apply"
                     and value.name not in CHEAP for value in self.values)
        self.line(1, f"comptime W = {'2 * ' if costly else ''}"
                     f"simd_width_of[{self._widest()}]()")
        for value in self.values:
            if value.scope == "call":
                self._compute(1, value, "1", self._pointer_call)

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

        operations = dict.fromkeys(value.name for value in self.values if value.inputs)
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
        kinds = [value.dtype for value in self.values if value.scope == "sweep"] \
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
        value.number, self._named = self._named, self._named + 1

    def _accumulators(self, depth: int, reductions: list[Value], kind: str, lanes: str,
                      arguments: str) -> list[str]:
        """Declares each reduction's accumulator; returns the names."""
        for value in reductions:
            self.number(value)
            self.line(depth, f"var a{value.number} = {kind}[{REDUCERS[value.name]}, "
                             f"{stored_name(value.dtype)}{lanes}]({arguments})")
        return [f"a{value.number}" for value in reductions]

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

    def _name(self, value: Value, w: str, scope: str) -> str:
        """A value's name, broadcast over the vector if it is a scalar."""
        name = f"v{value.number}"
        if scope == "sweep" and value.scope != "sweep":
            return f"SIMD[{kind_name(value.dtype)}, {w}]({name})"
        return name

    def _compute(self, depth: int, value: Value, w: str, pointer: Any) -> None:
        """Writes the line that computes a value."""
        if value.number < 0:
            self.number(value)
        if value.operand >= 0:
            text = self._load(value, w, pointer)
        else:
            operands = [self._name(x, w, value.scope) for x in value.inputs]
            text = expression(value, operands, w)
        self.line(depth, f"var v{value.number} = {text}")

    def _store(self, depth: int, value: Value, number: int, w: str, pointer: Any) -> None:
        base, place = pointer(number)
        base = self._unit_base(number, base)
        name = self._name(value, w, "sweep" if base.startswith("r") else value.scope)
        is_bool = value.dtype == BOOL
        if base.startswith("r") and self.inner_stride(number) != NEXT:
            text = f"as_bytes({name})" if is_bool else name
            self.line(depth, f"scatter({base}, i, t{number}, {text})")
        elif is_bool:
            self.line(depth, f"store_bool({base}, {place}, {name})")
        else:
            self.line(depth, f"{base}.unsafe_store({place}, {name})")

    def _store_all(self, depth: int, outputs: Sequence[tuple[Value, int]], w: str,
                   pointer: Callable[[int], tuple[str, str]]) -> None:
        """Stores results, two that lie apart at once: they may be the parts of complex numbers."""
        left = list(outputs)
        while left:
            (value, number), *left = left
            if left and all(self._is_apart(x, at, pointer) for x, at in (
                    (value, number), left[0])):
                (second, other), *left = left
                if second.dtype == value.dtype:
                    names = [self._name(x, w, "sweep") for x in (value, second)]
                    at = [f"{self._unit_base(k, pointer(k)[0])}, t{k}" for k in (number, other)]
                    self.line(depth, f"scatter_pair({', '.join(at)}, i, {', '.join(names)})")
                    continue
                left.insert(0, (second, other))
            self._store(depth, value, number, w, pointer)

    def _is_apart(self, value: Value, number: int, pointer: Callable[[int], tuple[str, str]]
                  ) -> bool:
        base = self._unit_base(number, pointer(number)[0])
        return (value.dtype != BOOL and base.startswith("r")
                and self.inner_stride(number) != NEXT)

    def _needed(self, roots: list[Value], stop: Any) -> list[Value]:
        """The values that roots need, including the roots, in order; not beyond ``stop``."""
        found: set[Value] = set()
        stack = list(roots)
        while stack:
            value = stack.pop()
            if value in found or stop(value):
                continue
            found.add(value)
            stack += value.inputs
        return [value for value in self.values if value in found]

    def _row_pointers(self, depth: int, numbers: list[int], pointer: Any) -> None:
        for number in sorted(set(numbers)):
            base, place = pointer(number)
            if self.operands[number].is_iota:
                self.line(depth, f"var r{number} = {base} + {place}")
            else:
                self.line(depth, f"var r{number} = {base}.unsafe_offset({place})")

    def _captures(self, values: list[Value], numbers: list[int], inside: Iterable[Value] = (),
                  more: Iterable[Value] = ()) -> list[str]:
        """What a closure over a row captures: its operands, and values from outside.

        Args:
          values: what it computes.
          numbers: operands that it reads or writes.
          inside: values that it gets from elsewhere.
          more: values that it uses without computing anything from them.
        """
        names = [f"var r{number}" for number in sorted(set(numbers))]
        names += [f"var t{number}" for number in sorted(set(numbers))
                  if self.inner_stride(number) == STRIDED]
        known = {*values, *inside}
        outer = {x for value in values for x in value.inputs if x not in known} | {*more}
        return names + [f"var v{x.number}" for x in self.values if x in outer]

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

    def _is_full(self, number: int) -> bool:
        """Whether an output has elements along the reduced dimensions."""
        reduced = ROWS if self.kind == "columns" else INNER | ROWS
        return bool(self.operands[number].varies & reduced)


def wrapped(text: str, indent: int) -> list[str]:
    """A list with commas as lines, broken between its members."""
    lines = textwrap.wrap(re.sub("(?<!,) ", "\xa0", text), _COLUMNS - indent,
                          break_long_words=False, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


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
