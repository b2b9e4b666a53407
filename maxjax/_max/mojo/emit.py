"""Writes the Mojo source of a group: one kernel, generic in sizes.

A kernel goes through its space point by point (the kept dimensions but the inner one), and at each
point through rows (the reduced dimensions but the inner one), and sweeps each row by vectors. What
it computes stands as far out as it can: once a call ("call"), once a point ("point"), once a row
("row"), or in the sweep ("sweep"). Where the inner dimension is reduced there are as many passes
over a point as reductions depend on one another, and one more where their results go back over the
whole space. Where the inner dimension is kept, reductions accumulate in blocks of columns.
"""

from __future__ import annotations

import re
import textwrap
from typing import Any, NamedTuple

import numpy as np

from maxjax._max.mojo.fusion import CHEAP, Fusion, Group, last_wide, reduced_map
from maxjax._max.mojo.nodes import (
    Access,
    IndexMap,
    Node,
    base_of,
    compose,
    identity_map,
    map_access,
    strided,
)

_REDUCERS = {"sum": "Summing", "prod": "Multiplying", "max": "Maximizing", "min": "Minimizing",
             "and": "Anding", "or": "Oring", "xor": "Xoring"}
_INFIX = {"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"}
_BOOL = np.dtype(bool)
_COLUMNS = 100

HEADER = '''from std.math import trunc
from std.sys.info import simd_width_of
from kernels.arithmetic import *
from kernels.calling import *
from kernels.comparison import *
from kernels.conversion import *
from kernels.loops import *
from kernels.reduction import Anding, Maximizing, Minimizing, Multiplying, Oring, Summing, Xoring
from kernels.unary import *
'''


class Operand(NamedTuple):
    """A memory operand: whose memory, and where each step in the space leads.

    An iota has no memory: its ``access`` tells values instead of elements.
    """

    node: Node
    access: Access
    is_output: bool


class Kernel(NamedTuple):
    """A group's source, and what a call of it needs.

    Attributes:
      source: Mojo text, ``KERNEL`` standing for its name.
      operands: in the order of the call's operands.
      points, rows: the dimensions of the space that each goes through.
      inner: the swept dimension, or -1.
      kind: "map", "rows" or "columns".
    """

    source: str
    operands: list[Operand]
    points: list[int]
    rows: list[int]
    inner: int
    kind: str


class Value:
    """Something a kernel computes.

    Attributes:
      dims: the dimensions of the space that it varies along.
      phase: how many reductions, one on another, it depends on.
      scope: where it is computed.
    """

    __slots__ = ("dims", "inputs", "kind", "node", "number", "operand", "phase", "scope")

    def __init__(self, kind: str, node: Node, inputs: tuple[Value, ...] = (), operand: int = -1):
        self.kind = kind
        self.node = node
        self.inputs = inputs
        self.operand = operand
        self.dims: frozenset[int] = frozenset()
        self.phase = 0
        self.scope = ""
        self.number = -1


def kind_name(dtype: np.dtype) -> str:
    return f"DType.{dtype.name}"


def stored_name(dtype: np.dtype) -> str:
    return "DType.uint8" if dtype == _BOOL else kind_name(dtype)


class Emitter:
    """Writes one group."""

    def __init__(self, group: Group, fusion: Fusion, place: Any):
        self.group = group
        self.fusion = fusion
        self.place = place
        self.operands: list[Operand] = []
        self.values: list[Value] = []
        self.lines: list[str] = []
        self.kept: set[Value] = set()
        self._steps: set[int] = set()       # operands that one sweep reads several rows of
        self._stored: set[Value] = set()
        self._pulled: dict[Any, Value] = {}
        self._operand_numbers: dict[Any, int] = {}
        self.inner = last_wide(group.space)
        self.kind = "map" if group.axes is None else "rows" if group.inner else "columns"
        reduced = set(group.axes or ())
        wide = [dim for dim in group.wide(range(len(group.space))) if dim != self.inner]
        self.points = [dim for dim in wide if dim not in reduced]
        self.rows = [dim for dim in wide if dim in reduced]

    # --- what is computed ---
    def operand(self, node: Node, access: Access, is_output: bool = False) -> int:
        key = (node, access, is_output)
        number = self._operand_numbers.get(key)
        if number is None:
            number = self._operand_numbers[key] = len(self.operands)
            self.operands.append(Operand(node, access, is_output))
        return number

    def pull(self, node: Node, index_map: IndexMap) -> Value:
        while node.kind == "view" or self._is_copied_here(node):
            if node.kind == "view":
                index_map = compose(node.params, index_map)
            node = node.inputs[0]
        key = (node, index_map)
        value = self._pulled.get(key)
        if value is None:
            value = self._pulled[key] = self._make(node, index_map)
            self._classify(value)
            self.values.append(value)
        return value

    def _is_copied_here(self, node: Node) -> bool:
        return node.name == "copy" and self.group in self.fusion.groups_of.get(node, ())

    def _make(self, node: Node, index_map: IndexMap) -> Value:
        group = self.group
        here = group in self.fusion.groups_of.get(node, ())
        if here and node.kind == "apply":
            return Value("apply", node, tuple(self.pull(x, index_map) for x in node.inputs))
        if here and node.kind == "reduce":
            operand = self.pull(node.inputs[0], identity_map(group.space))
            return Value("reduce", node, (operand,))
        access = map_access(strided(node), index_map, len(group.space))
        base = base_of(node)
        return Value("iota" if base.kind == "iota" else "load", node, (),
                     self.operand(base, access))

    def _classify(self, value: Value) -> None:
        group = self.group
        if value.operand >= 0:
            strides = self.operands[value.operand].access.strides
            value.dims = frozenset(dim for dim, stride in enumerate(strides) if stride)
        elif value.kind == "reduce":
            value.dims = frozenset(group.wide(group.kept))
            value.phase = value.inputs[0].phase + 1
        else:
            value.dims = frozenset().union(*(x.dims for x in value.inputs))
            value.phase = max((x.phase for x in value.inputs), default=0)
        if value.kind == "reduce":
            value.scope = "point" if self.kind == "rows" else "sweep"
        elif not value.dims and not value.phase:
            value.scope = "call"
        elif self.kind == "columns":
            value.scope = "sweep" if self.inner in value.dims or value.phase else "row"
        elif not value.dims & {self.inner, *self.rows}:
            value.scope = "point"
        else:
            value.scope = "sweep" if self.inner in value.dims else "row"

    # --- the text ---
    def emit(self) -> Kernel:
        group = self.group
        maps = [reduced_map(group, node) if node.kind == "reduce" else group.maps[node][0]
                for node in group.homes]
        values = [self.pull(*home) for home in zip(group.homes, maps, strict=True)]
        outputs = []
        for node, index_map, value in zip(group.homes, maps, values, strict=True):
            # Where the node's element of a point of the space goes: the map is one to one.
            base, access = self.place(node)
            strides = [0] * len(group.space)
            for stride, (_, _, dim) in zip(access.strides, index_map, strict=True):
                if dim >= 0:
                    strides[dim] = stride
            number = self.operand(base, Access(access.offset, tuple(strides)), True)
            outputs.append((value, number))
        self._names: dict[int, str] = {}
        getattr(self, f"_emit_{self.kind}")(outputs)
        return Kernel("\n".join(self.lines) + "\n", self.operands, self.points, self.rows,
                      self.inner, self.kind)

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text if text else "")

    def inner_stride(self, number: int) -> int:
        return self.operands[number].access.strides[self.inner] if self.inner >= 0 else 1

    @property
    def _count(self) -> int:
        return len(self.operands)

    def _start(self) -> None:
        """The function that does a range of the items, up to its first loop."""
        count = self._count
        self.line(0, "def KERNEL_part(slots: Slots, args: Args, begin: Int, end: Int):")
        self._describe()
        self._declare_operands()
        self.line(1, f"var n = integer(args, {2 * count + 2})")
        for number in range(count):
            if self.inner_stride(number) not in (0, 1):
                self.line(1, f"var t{number} = integer(args, {2 * count + 5 + number})")
        self.line(1, f"var points = args.unsafe_offset({3 * count + 5})")
        costly = any(value.scope == "sweep" and value.kind == "apply"
                     and value.node.name not in CHEAP for value in self.values)
        self.line(1, f"comptime W = {'2 * ' if costly else ''}"
                     f"simd_width_of[{self._widest()}]()")
        for value in self.values:
            if value.scope == "call":
                self._compute(1, value, "1", self._pointer_call)

    def _describe(self) -> None:
        """The docstring: operations, and types of operands; ``[n]`` is swept, ``[1]`` is one
        element a row, a scalar is read once a call."""
        def kind(number: int) -> str:
            operand = self.operands[number]
            name, strides = operand.node.dtype.name, operand.access.strides
            if self.inner >= 0 and strides[self.inner]:
                return f"{name}[n]" if strides[self.inner] == 1 else f"{name}[strided n]"
            return f"{name}[1]" if any(strides) or operand.is_output else name

        operations = dict.fromkeys(value.node.name for value in self.values if value.inputs)
        inputs = [kind(k) for k, x in enumerate(self.operands) if not x.is_output]
        outputs = [kind(k) for k, x in enumerate(self.operands) if x.is_output]
        lines = _wrapped(f'"""{self.kind}: {", ".join(operations) or "copy"}', 4)
        lines += ["", *_wrapped(f"({', '.join(inputs)}) -> ({', '.join(outputs)})", 4)]
        for text in lines:
            self.line(1 if text else 0, text)
        self.line(1, '"""')

    def _declare_operands(self) -> None:
        for number, operand in enumerate(self.operands):
            if operand.node.kind == "iota":
                self.line(1, f"var p{number} = integer(args, {2 * number + 1})")
            else:
                self.line(1, f"var p{number} = operand[{stored_name(operand.node.dtype)}]"
                             f"(slots, args, {number})")

    def _finish(self) -> None:
        self.line(0, "")
        self.line(0, "")
        self.line(0, '@export("KERNEL")')
        self.line(0, 'def KERNEL(slots: Slots, args: Args) abi("C"):')
        self.line(1, f"launch(KERNEL_part, slots, args, {2 * self._count})")

    def _widest(self) -> str:
        kinds = [value.node.dtype for value in self.values if value.scope == "sweep"] \
            or [self.operands[0].node.dtype]
        widest = max(kinds, key=lambda dtype: dtype.itemsize)
        if widest.itemsize < 4 and any(x.name in ("float16", "bfloat16") for x in kinds):
            return "DType.float32"
        return stored_name(widest)

    # Where operands' elements are, by the scope that reads them.
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
        """Where an operand's row begins, of several that one sweep goes through."""
        if not base.startswith("r") or number not in self._steps:
            return base
        if self.operands[number].node.kind == "iota":
            return f"{base} + unit * d{number}"
        return f"{base}.unsafe_offset(unit * d{number})"

    def _load(self, value: Value, w: str, pointer: Any) -> str:
        number, dtype = value.operand, value.node.dtype
        base, place = pointer(number)
        base = self._unit_base(number, base)
        stride = self.inner_stride(number) if base.startswith("r") else 0
        if value.kind == "iota":
            if base.startswith("r"):
                if stride == 1:
                    return f"ramp[{kind_name(dtype)}, {w}]({base} + i, 1)"
                return f"ramp[{kind_name(dtype)}, {w}]({base} + i * t{number}, t{number})"
            return f"ramp[{kind_name(dtype)}, 1]({base} + {place}, 0)"
        if base.startswith("r") and stride != 1:
            text = f"gather[{stored_name(dtype)}, {w}]({base}, i, t{number})"
            return f"{text}.ne(0)" if dtype == _BOOL else text
        if dtype == _BOOL:
            return f"load_bool[{w}]({base}, {place})"
        return f"load[{kind_name(dtype)}, {w}]({base}, {place})"

    def _name(self, value: Value, w: str, scope: str) -> str:
        """A value's name, spread over the vector where it is a scalar."""
        name = f"v{value.number}"
        if scope == "sweep" and value.scope != "sweep":
            return f"SIMD[{kind_name(value.node.dtype)}, {w}]({name})"
        return name

    def _compute(self, depth: int, value: Value, w: str, pointer: Any,
                 scope: str = "") -> None:
        """Writes the line that computes a value."""
        if value.number < 0:
            value.number = len(self._names)
            self._names[value.number] = f"v{value.number}"
        scope = scope or value.scope
        if value.operand >= 0:
            text = self._load(value, w, pointer)
        else:
            operands = [self._name(x, w, scope) for x in value.inputs]
            text = expression(value.node, [x.node.dtype for x in value.inputs], operands, w)
        self.line(depth, f"var v{value.number} = {text}")

    def _store(self, depth: int, value: Value, number: int, w: str, pointer: Any,
               name: str = "") -> None:
        base, place = pointer(number)
        base = self._unit_base(number, base)
        name = name or self._name(value, w, "sweep" if base.startswith("r") else value.scope)
        is_bool = value.node.dtype == _BOOL
        if base.startswith("r") and self.inner_stride(number) != 1:
            text = f"as_bytes({name})" if is_bool else name
            self.line(depth, f"scatter({base}, i, t{number}, {text})")
        elif is_bool:
            self.line(depth, f"store_bool({base}, {place}, {name})")
        else:
            self.line(depth, f"{base}.unsafe_store({place}, {name})")

    def _needed(self, roots: list[Value], stop: Any) -> list[Value]:
        """The values that roots need, themselves among them, in order; not behind ``stop``."""
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
            if self.operands[number].node.kind == "iota":
                self.line(depth, f"var r{number} = {base} + {place}")
            else:
                self.line(depth, f"var r{number} = {base}.unsafe_offset({place})")

    def _captures(self, values: list[Value], numbers: list[int], extra: list[str]) -> str:
        swept = set(values)
        names = [f"var r{number}" for number in sorted(set(numbers))]
        names += [f"var t{number}" for number in sorted(set(numbers))
                  if self.inner_stride(number) not in (0, 1)]
        outer = {x for value in values if value not in self._stored
                 for x in value.inputs if x not in swept}
        names += [f"var v{x.number}" for x in self.values if x in outer]
        return ", ".join([*dict.fromkeys(names), *extra])

    def _closure(self, depth: int, signature: str, captures: str) -> None:
        self.line(depth, "@always_inline")
        text = f"def {signature}(i: Int) {{{captures}}}:"
        if 4 * depth + len(text) <= _COLUMNS:
            self.line(depth, text)
            return
        self.line(depth, f"def {signature}(i: Int) {{")
        for part in _wrapped(captures, 4 * (depth + 1)):
            self.line(depth + 1, part)
        self.line(depth, "}:")

    # --- kernels without reductions ---
    def _emit_scalar(self, outputs: list[tuple[Value, int]]) -> None:
        """A kernel of single elements."""
        self.line(0, '@export("KERNEL")')
        self.line(0, 'def KERNEL(slots: Slots, args: Args) abi("C"):')
        self._describe()
        self._declare_operands()
        self.line(0, "")
        for value in self.values:
            self._compute(1, value, "1", self._pointer_call)
        for value, number in outputs:
            self._store(1, value, number, "1", self._pointer_call)

    def _emit_map(self, outputs: list[tuple[Value, int]]) -> None:
        if self.inner < 0:
            self._emit_scalar(outputs)
            return
        self._start()
        self.line(1, f"var pieces = integer(args, {2 * self._count + 3})")
        self.line(1, f"var walk = Walk[{self._count}](points, begin // pieces)")
        self.line(0, "")
        self.line(1, "for item in range(begin, end):")
        self.line(2, "var piece = item % pieces if pieces > 1 else 0")
        for value in self.values:
            if value.scope == "point":
                self._compute(2, value, "1", self._pointer_point)
        swept = [value for value in self.values if value.scope == "sweep"]
        numbers = [value.operand for value in swept if value.operand >= 0]
        stores = [number for _, number in outputs]
        self._row_pointers(2, [*numbers, *stores], self._pointer_point)
        self.line(0, "")
        extra_values = [value for value, _ in outputs if value.scope != "sweep"]
        captures = self._captures(swept, [*numbers, *stores], [
            f"var v{value.number}" for value in extra_values])
        captures = ", ".join(dict.fromkeys(captures.split(", ")))
        self._closure(2, "body[w: Int]", captures)
        for value in swept:
            self._compute(3, value, "w", self._pointer_sweep)
        for value, number in outputs:
            self._store(3, value, number, "w", self._pointer_sweep)
        self.line(0, "")
        self.line(2, "sweep[W](body, part_begin(n, piece, pieces), "
                     "part_begin(n, piece + 1, pieces))")
        self.line(2, "if piece + 1 == pieces:")
        self.line(3, "walk.advance(points)")
        self._finish()

    # --- the innermost dimension is reduced ---
    def _emit_rows(self, outputs: list[tuple[Value, int]]) -> None:
        passes = self._passes(outputs)
        self._start()
        for value in self.kept:
            value.number = len(self._names)
            self._names[value.number] = f"v{value.number}"
        kept = sorted(self.kept, key=lambda value: value.number)
        for value in kept:
            kind = kind_name(value.node.dtype)
            self.line(1, f"var m{value.number} = List[Scalar[{kind}]](length=n, fill=0)")
            self.line(1, f"var s{value.number} = m{value.number}.unsafe_ptr()"
                         ".as_unsafe_any_origin()")
        count = self._count
        self.line(1, f"var walk = Walk[{count}](points, begin)")
        if self.rows:
            self.line(1, f"var rows = integer(args, {2 * count + 4})")
            self.line(1, f"var row_args = points.unsafe_offset(1 + {count + 1} * "
                         "integer(points, 0))")
        self.line(0, "")
        self.line(1, "for _ in range(begin, end):")
        done: set[Value] = set()
        pointers: set[int] = set()
        for phase, (reductions, written, needed) in enumerate(passes):
            for value in self.values:
                if value.scope == "point" and value.kind != "reduce" and value not in done \
                        and value.phase <= phase:
                    self._compute(2, value, "1", self._pointer_point)
                    done.add(value)
            if reductions or written:
                self._pass(f"pass{phase}", reductions, written, needed, pointers)
        for value, number in outputs:
            if not self._is_full(number):
                self._store(2, value, number, "1", self._pointer_point)
        self.line(2, "walk.advance(points)")
        for value in kept:
            self.line(1, f"keep(m{value.number})")
        self._finish()

    def _passes(self, outputs: list[tuple[Value, int]]) -> list[tuple[
            list[Value], list[tuple[Value, int]], list[Value]]]:
        """For each pass its reductions, its stores and what it needs for them.

        What is costly and needed again in a later pass is kept: ``self.kept``.
        """
        passes = []
        swept: set[Value] = set()
        for phase in range(max(value.phase for value in self.values) + 1):
            reductions = [value for value in self.values
                          if value.kind == "reduce" and value.phase == phase + 1]
            written = [(value, number) for value, number in outputs
                       if self._is_full(number) and value.phase == phase]
            roots = [value.inputs[0] for value in reductions] + [value for value, _ in written]
            needed: set[Value] = set()
            stack = roots
            while stack:
                value = stack.pop()
                if value in needed or value.scope in ("point", "call"):
                    continue
                needed.add(value)
                if value in swept and not self.rows and _is_costly(value):
                    self.kept.add(value)
                else:
                    stack += value.inputs
            swept |= {value for value in needed if value.scope == "sweep"}
            passes.append((reductions, written, [x for x in self.values if x in needed]))
        return passes

    def _pass(self, name: str, reductions: list[Value], written: list[tuple[Value, int]],
              needed: list[Value], pointers: set[int]) -> None:
        """One loop over a point's rows; ``pointers`` are those that stand already."""
        swept = [value for value in needed if value.scope == "sweep"]
        numbers = [value.operand for value in swept if value.operand >= 0]
        numbers += [number for _, number in written]
        kept = [value for value in swept if value in self.kept]
        accumulators = []
        for value in reductions:
            value.number = len(self._names)
            self._names[value.number] = f"v{value.number}"
            accumulators.append(f"a{value.number}")
            self.line(2, f"var a{value.number} = Lanes[{_REDUCERS[value.node.name]}, "
                         f"{stored_name(value.node.dtype)}, W]()")
        depth = 2
        if self.rows:
            again = any(line.startswith("        var row = ") for line in self.lines)
            self.line(2, f"{'' if again else 'var '}row = Walk[{self._count}](row_args, 0)")
            self.line(2, "for _ in range(rows):")
            depth = 3
        for value in needed:
            if value.scope == "row":
                self._compute(depth, value, "1", self._pointer_row)
        self._row_pointers(depth, [x for x in numbers if x not in pointers], self._pointer_row)
        if not self.rows:
            pointers.update(numbers)
        extra = [x.inputs[0] for x in reductions if x.inputs[0].scope != "sweep"]
        extra += [x for x, _ in written if x.scope != "sweep"]
        captures = self._captures(swept, numbers, [
            *(f"var v{value.number}" for value in extra),
            *(f"var s{value.number}" for value in kept), *(f"mut {x}" for x in accumulators)])
        captures = ", ".join(dict.fromkeys(captures.split(", ")))
        self.line(0, "")
        parameters = "w: Int, unit: Int" if reductions else "w: Int"
        self._closure(depth, f"{name}[{parameters}]", captures)
        for value in swept:
            if value in self._stored:
                kind = kind_name(value.node.dtype)
                self.line(depth + 1, f"var v{value.number} = load[{kind}, w](s{value.number}, i)")
                continue
            self._compute(depth + 1, value, "w", self._pointer_sweep)
            if value in self.kept:
                self.line(depth + 1, f"s{value.number}.unsafe_store(i, v{value.number})")
        self._stored |= self.kept.intersection(swept)
        for value in reductions:
            operand = value.inputs[0]
            text = self._name(operand, "w", "sweep")
            if operand.node.dtype == _BOOL:
                text = f"as_bytes({text})"
            self.line(depth + 1, f"a{value.number}.take[w, unit]({text})")
        for value, number in written:
            self._store(depth + 1, value, number, "w", self._pointer_sweep)
        self.line(0, "")
        self.line(depth, f"{'sweep_units' if reductions else 'sweep'}[W]({name}, 0, n)")
        if self.rows:
            self.line(depth, "row.advance(row_args)")
        for value in reductions:
            self.line(2, f"var v{value.number} = {self._result(value, f'a{value.number}')}")
        self.line(0, "")

    def _result(self, value: Value, name: str) -> str:
        if value.node.dtype == _BOOL:
            return f"{name}.result().ne(0)"
        return f"{name}.result().cast[{kind_name(value.node.dtype)}]()"

    # --- the innermost dimension is kept ---
    def _emit_columns(self, outputs: list[tuple[Value, int]]) -> None:
        self._start()
        count = self._count
        self.line(1, f"var blocks = integer(args, {2 * count + 3})")
        self.line(1, f"var rows = integer(args, {2 * count + 4})")
        self.line(1, f"var row_args = points.unsafe_offset(1 + {count + 1} * integer(points, 0))")
        self.line(1, f"var walk = Walk[{count}](points, begin // blocks)")
        reductions = [value for value in self.values if value.kind == "reduce"]
        accumulators = []
        for value in reductions:
            value.number = len(self._names)
            self._names[value.number] = f"v{value.number}"
            accumulators.append(f"a{value.number}")
            self.line(1, f"var a{value.number} = Columns[{_REDUCERS[value.node.name]}, "
                         f"{stored_name(value.node.dtype)}](part_size(n, blocks))")
        self.line(0, "")
        self.line(1, "for item in range(begin, end):")
        self.line(2, "var first = part_begin(n, item % blocks, blocks)")
        self.line(2, "var last = part_begin(n, item % blocks + 1, blocks)")
        for name in accumulators:
            self.line(2, f"{name}.clear(last - first)")
        # The loop over rows.
        written = [(value, number) for value, number in outputs
                   if self._is_full(number)]
        roots = [value.inputs[0] for value in reductions] + [value for value, _ in written]
        needed = self._needed(roots, lambda value: value.scope == "call")
        swept = [value for value in needed if value.scope == "sweep"]
        numbers = [value.operand for value in swept if value.operand >= 0]
        numbers += [number for _, number in written]
        reduced = set(self.rows)
        # Without values of a row's own, several rows go into one sweep.
        together = not any(value.scope == "row" for value in needed)
        steps = {number for number in numbers if together and any(
            self.operands[number].access.strides[dim] for dim in reduced)}
        self.line(2, f"var row = Walk[{count}](row_args, 0)")
        if together:
            self.line(2, "var done = 0")
            self.line(2, "var is_line = integer(row_args, 0) == 1")
        for number in sorted(steps):
            self.line(2, f"var d{number} = Walk[{count}].stride(row_args, {number}, 0) "
                         "if is_line else 0")
        self.line(2, "while done < rows:" if together else "for _ in range(rows):")
        for value in needed:
            if value.scope == "row":
                self._compute(3, value, "1", self._pointer_row)
        self._row_pointers(3, numbers, self._pointer_row)
        extra = [x.inputs[0] for x in reductions if x.inputs[0].scope != "sweep"]
        extra += [x for x, _ in written if x.scope != "sweep"]
        captures = self._captures(swept, numbers, [
            *(f"var v{value.number}" for value in extra), "var first",
            *(f"var d{number}" for number in sorted(steps)),
            *(f"var q{value.number}" for value in reductions)])
        captures = ", ".join(dict.fromkeys(captures.split(", ")))
        for value in reductions:
            self.line(3, f"var q{value.number} = a{value.number}.partial()")
        self.line(0, "")
        self._closure(3, "body[w: Int, units: Int]" if together else "body[w: Int]", captures)
        if together:
            for value in reductions:
                kind = self._accumulated(value)
                self.line(4, f"var b{value.number} = SIMD[{kind}, w]"
                             f"({_REDUCERS[value.node.name]}.identity[{kind}]())")
            self.line(4, "comptime for unit in range(units):")
        depth = 5 if together else 4
        self._steps = steps
        for value in swept:
            self._compute(depth, value, "w", self._pointer_sweep)
        for value in reductions:
            operand, reducer = value.inputs[0], _REDUCERS[value.node.name]
            name, kind = self._name(operand, "w", "sweep"), self._accumulated(value)
            if operand.node.dtype == _BOOL:
                name = f"as_bytes({name})"
            elif together and kind != kind_name(operand.node.dtype):
                name = f"{name}.cast[{kind}]()"
            if together:
                self.line(depth, f"b{value.number} = {reducer}.combine[{kind}, w]"
                                 f"(b{value.number}, {name})")
            else:
                self.line(depth, f"take_column[{reducer}](q{value.number}, i - first, {name})")
        for value, number in written:
            self._store(depth, value, number, "w", self._pointer_sweep)
        self._steps = set()
        if together:
            for value in reductions:
                self.line(4, f"take_column[{_REDUCERS[value.node.name]}](q{value.number}, "
                             f"i - first, b{value.number})")
        self.line(0, "")
        if together:
            self.line(3, "var count = UNITS if is_line and done + UNITS <= rows else 1")
            self.line(3, "sweep_rows[W](body, first, last, count)")
            self.line(3, "row.skip(row_args, count)")
            self.line(3, "done += count")
        else:
            self.line(3, "sweep[W](body, first, last)")
            self.line(3, "row.advance(row_args)")
        for name in accumulators:
            self.line(3, f"{name}.count_rows({'count' if together else '1'})")
        # What follows from the results.
        for name in accumulators:
            self.line(2, f"{name}.finish()")
        finals = [(value, number) for value, number in outputs if (value, number) not in written]
        wanted = self._needed_after([value for value, _ in finals])
        after = [value for value in self.values if value in wanted and value.scope != "call"
                 and value not in reductions]
        used = [value for value in reductions if value in wanted]
        scalars = [value for value in after if value.scope == "row"]
        for value in scalars:
            value.number = -1
            self._compute(2, value, "1", self._pointer_point)
        after = [value for value in after if value.scope == "sweep"]
        numbers = [value.operand for value in after if value.operand >= 0]
        numbers += [number for _, number in finals]
        self._row_pointers(2, numbers, self._pointer_point)
        for value in used:
            self.line(2, f"var q{value.number} = a{value.number}.result()")
        inside = {*after, *used}
        outer = [x for value in after for x in value.inputs if x not in inside]
        outer += [value for value, _ in finals if value not in inside]
        captures = ", ".join(dict.fromkeys([
            *(f"var r{number}" for number in sorted(set(numbers))),
            *(f"var t{number}" for number in sorted(set(numbers))
              if self.inner_stride(number) not in (0, 1)),
            *(f"var v{x.number}" for x in outer), "var first",
            *(f"var q{value.number}" for value in used)]))
        self.line(0, "")
        self._closure(2, "finish[w: Int]", captures)
        for value in used:
            text = f"q{value.number}.unsafe_load[width=w](i - first)"
            text = f"rebind[SIMD[{self._accumulated(value)}, w]]({text})"
            if value.node.dtype == _BOOL:
                text += ".ne(0)"
            elif self._accumulated(value) != kind_name(value.node.dtype):
                text += f".cast[{kind_name(value.node.dtype)}]()"
            self.line(3, f"var v{value.number} = {text}")
        for value in after:
            value.number = -1
            self._compute(3, value, "w", self._pointer_sweep)
        for value, number in finals:
            self._store(3, value, number, "w", self._pointer_sweep)
        self.line(0, "")
        self.line(2, "sweep[W](finish, first, last)")
        self.line(2, "if item % blocks + 1 == blocks:")
        self.line(3, "walk.advance(points)")
        for name in accumulators:
            self.line(1, f"{name}.keep()")
        self._finish()

    def _needed_after(self, roots: list[Value]) -> set[Value]:
        """What is needed when the reductions are known: they are not computed again."""
        found: set[Value] = set()
        stack = list(roots)
        while stack:
            value = stack.pop()
            if value not in found:
                found.add(value)
                if value.kind != "reduce":
                    stack += value.inputs
        return found

    def _is_full(self, number: int) -> bool:
        """Whether an output has elements along the reduced dimensions."""
        strides = self.operands[number].access.strides
        return any(strides[dim] for dim in self.group.axes or ())

    def _accumulated(self, value: Value) -> str:
        if value.node.dtype.name in ("float16", "bfloat16"):
            return "DType.float32"
        return stored_name(value.node.dtype)


def _wrapped(text: str, indent: int) -> list[str]:
    """A list with commas as lines, broken between its members."""
    lines = textwrap.wrap(re.sub("(?<!,) ", "\xa0", text), _COLUMNS - indent,
                          break_long_words=False, break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in lines]


def _is_costly(value: Value) -> bool:
    """Whether computing a swept value again costs more than reading it."""
    if value.kind != "apply" or value.node.dtype == _BOOL:
        return False
    if value.node.name not in CHEAP:
        return True
    return any(_is_costly(x) for x in value.inputs if x.scope == "sweep")


def expression(node: Node, kinds: list[np.dtype], xs: list[str], w: str) -> str:
    """The Mojo expression of an elementwise operation."""
    name = node.name
    if name in _INFIX:
        return f"{xs[0]} {_INFIX[name]} {xs[1]}"
    if name == "select":
        return f"{xs[0]}.select({xs[1]}, {xs[2]})"
    if name == "not" and kinds[0] == _BOOL:
        return f"~{xs[0]}"
    if name == "div" and kinds[0].name.startswith(("float", "bfloat")):
        return f"{xs[0]} / {xs[1]}"
    if name == "multiply_add":
        return f"{xs[0]}.fma({xs[1]}, {xs[2]})"
    if name == "trunc":
        return f"trunc({xs[0]})"
    struct = "".join(part.capitalize() for part in name.split("_"))
    if name in ("convert", "bitcast", "is_finite"):
        return (f"{struct}.elementwise[{kind_name(kinds[0])}, {kind_name(node.dtype)}, {w}]"
                f"({xs[0]})")
    return f"{struct}.elementwise[{kind_name(kinds[0])}, {w}]({', '.join(xs)})"
