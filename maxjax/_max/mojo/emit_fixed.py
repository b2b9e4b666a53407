"""Writes a group as a function for its sizes: those, and all strides, are numbers in its text, and
it is given where its operands are. Loops that are one function consist of such ones
(``loop_function.py``): a row of 24 elements is three vectors there, without a loop."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from maxjax._base import dtypes
from maxjax._base.dtypes import name_of
from maxjax._max.elementwise_kernels import CHEAP
from maxjax._max.mojo.emit import MapEmitter
from maxjax._max.mojo.emit_columns import ColumnsEmitter
from maxjax._max.mojo.emit_rows import RowsEmitter
from maxjax._max.mojo.emitter import (
    BOOL,
    REDUCERS,
    Emitter,
    Value,
    expression,
    kind_name,
    stored_name,
)
from maxjax._max.mojo.layout import KernelIntegers
from maxjax._max.mojo.structure import STRIDED, KernelStructure

_SHORT_ROW_BYTES = 128
# Elements of all rows of a point, and lines that they may take, for which points are computed side
# by side; so many of these, or more.
_MOST_BESIDE, _MOST_LINES, _LEAST_POINTS = 8, 256, 16
_NEAR = 4               # as `kernels/copies.mojo` has it
_VECTOR_BYTES = 32      # of a row that is a vector by itself
# Of columns that are added up in one accumulator: rounding errors grow with them.
_MOST_ROWS = 64


def fixed_function(structure: KernelStructure, call: KernelIntegers, name: str,
                   known: Mapping[int, str]) -> list[str] | None:
    """The lines of a function; None for a group that has none.

    Args:
      known: of operands that are one number, and always the same one, its text.
    """
    if structure.kind == "map":
        emitter: _Fixed = _FixedMap(structure, call, name, known)
    elif structure.kind == "rows":
        short = _FixedShortRows(structure, call, name, known)
        if not short.is_suited and len(call.row_dims) > 1:
            return None
        emitter = short if short.is_suited else _FixedRows(structure, call, name, known)
    elif structure.kind == "columns" and call.rows <= _MOST_ROWS:
        emitter = _FixedColumns(structure, call, name, known)
        if not emitter.is_suited:
            return None
    else:
        return None
    emitter.write(emitter.outputs)
    return emitter.lines


class _Fixed(Emitter):
    """What both kinds have in common."""

    def __init__(self, structure: KernelStructure, call: KernelIntegers, name: str,
                 known: Mapping[int, str]):
        super().__init__(structure)
        self.call = call
        self.name = name
        self.known = known

    def _load(self, value: Value, w: str, pointer: Any) -> str:
        known = self.known.get(value.operand)
        if known is None or value.scope == "sweep":
            return super()._load(value, w, pointer)
        return f"Scalar[{kind_name(value.dtype)}]({known})"

    def _begin(self) -> None:
        operands = ", ".join(
            f"p{number}: " + ("Int" if x.is_iota else
                              f"Pointer[Scalar[{stored_name(x.dtype)}], MutAnyOrigin]")
            for number, x in enumerate(self.operands))
        self.line(0, "@always_inline")
        self.line(0, f"def {self.name}({operands}):")
        names = [f"{name_of(x.dtype)}" for x in self.operands]
        self.line(1, f'"""Of {", ".join(dict.fromkeys(names))}."""')

    def _start(self) -> None:
        """The function up to its first loop."""
        self._begin()
        for number in range(len(self.operands)):
            if self.inner_stride(number) == STRIDED:
                self.line(1, f"var t{number} = {self.call.strides[number]}")
        costly = any(value.scope == "sweep" and value.kind == "apply"
                     and value.name not in CHEAP for value in self.values)
        width = f"{'2 * ' if costly else ''}simd_width_of[{self._widest()}]()"
        if not costly and all(self.inner_stride(number) == STRIDED
                              for number, x in enumerate(self.operands)
                              if x.varies and not x.is_iota):
            width = "1"         # vectors would be put together, and taken apart
        self.line(1, f"comptime W = {width}")
        for value in self.values:
            if value.scope == "call":
                self._compute(1, value, "1", self._pointer_call)

    def _finish(self) -> None:
        pass

    def _pointer_point(self, number: int) -> tuple[str, str]:
        return f"p{number}", _position("i", self.call.point_dims, number)

    def _pointer_row(self, number: int) -> tuple[str, str]:
        _, place = self._pointer_point(number)
        return f"p{number}", f"{place} + {_position('j', self.call.row_dims, number)}"


def _position(loop: str, dims: Sequence[Sequence[int]], number: int) -> str:
    """The offset of an operand's element, by the numbers of loops."""
    terms = [f"{loop}{k} * {dim[1 + number]}" for k, dim in enumerate(dims) if dim[1 + number]]
    return " + ".join(terms) or "0"


class _FixedMap(_Fixed, MapEmitter):
    """Writes a group without reductions."""

    def write(self, outputs: list[tuple[Value, int]]) -> None:
        if not self.has_inner:
            self._write_scalars(outputs)
            return
        self._start()
        depth = 1
        for number, dim in enumerate(self.call.point_dims):
            self.line(depth, f"for i{number} in range({dim[0]}):")
            depth += 1
        for value in self.values:
            if value.scope == "point":
                self._compute(depth, value, "1", self._pointer_point)
        swept = [value for value in self.values if value.scope == "sweep"]
        numbers = [value.operand for value in swept if value.operand >= 0]
        stores = [number for _, number in outputs]
        self._row_pointers(depth, [*numbers, *stores], self._pointer_point)
        self._closure(depth, "body[w: Int]", self._captures(
            swept, [*numbers, *stores],
            more=[value for value, _ in outputs if value.scope != "sweep"]))
        for value in swept:
            self._compute(depth + 1, value, "w", self._pointer_sweep)
        for value, number in outputs:
            self._store(depth + 1, value, number, "w", self._pointer_sweep)
        self.line(depth, f"sweep_fixed[W, {self.call.length}](body)")


class _FixedRows(_Fixed, RowsEmitter):
    """Writes a group that reduces its inner dimension, and perhaps one other."""

    def _over_row(self, depth: int, name: str, reduces: bool) -> None:
        if reduces and self.unit == "0":
            self.line(depth, f"sweep_fixed[W, {self.call.length}]({name})")
        else:
            super()._over_row(depth, name, reduces)

    def _start(self) -> None:
        if (self.call.length * max(x.dtype.itemsize for x in self.values) <= _SHORT_ROW_BYTES
                and (not self.rows or self.call.rows <= _MOST_ROWS)):
            # Each vector is folded at once, without an accumulator for each lane.
            self.lanes, self.unit = "RowTotal", "0"
        super()._start()
        self.line(1, f"var n = {self.call.length}")

    def _begin_points(self) -> None:
        sizes = [dim[0] for dim in self.call.point_dims]
        if len(sizes) <= 1:
            self.line(1, f"for {'i0' if sizes else '_'} in range({sizes[0] if sizes else 1}):")
            return
        self.line(1, f"for i in range({math.prod(sizes)}):")
        for number, size in enumerate(sizes):
            behind = math.prod(sizes[number + 1:])
            self.line(2, f"var i{number} = i // {behind} % {size}")

    def _end_point(self) -> None:
        pass

    def _begin_rows(self) -> int:
        if not self.rows:
            return 2
        self.line(2, f"for {'j0' if self.call.row_dims else '_'} in range("
                     f"{self.call.row_dims[0][0] if self.call.row_dims else 1}):")
        return 3

    def _end_row(self, depth: int) -> None:
        pass

    def _pointer_row(self, number: int) -> tuple[str, str]:
        return _Fixed._pointer_row(self, number) if self.rows else self._pointer_point(number)


class _FixedShortRows(_Fixed):
    """Writes a group that reduces few elements at each point: a vector of points at a time, of
    which each element is a vector of its own."""

    @property
    def is_suited(self) -> bool:
        """Whether a row fills no vector, but as many rows as a vector has elements do."""
        length, elements = self.call.length, self.call.length * self.call.rows
        if (elements > _MOST_BESIDE or len(self.values) * elements > _MOST_LINES
                or not self.call.point_dims or self.call.point_dims[-1][0] < _LEAST_POINTS):
            return False
        swept = [value for value in self.values if value.scope == "sweep"]
        if any(value.kind == "apply" and value.name not in CHEAP for value in swept):
            return True
        widest = max((value.dtype.itemsize for value in swept), default=1)
        return length <= _NEAR and length * widest < _VECTOR_BYTES

    def write(self, outputs: list[tuple[Value, int]]) -> None:
        self._begin()
        self.line(1, f"comptime W = simd_width_of[{self._widest()}]()")
        for value in self.values:
            if value.scope == "call":
                self._compute(1, value, "1", self._pointer_call)
            else:
                self.number(value)
        depth = 1
        *outer, (count, *_) = self.call.point_dims
        for number, dim in enumerate(outer):
            self.line(depth, f"for i{number} in range({dim[0]}):")
            depth += 1
        used = {value.operand for value in self.values if value.operand >= 0}
        self._closure(depth, "body[w: Int]", [
            *(f"var p{number}" for number in sorted(used | {number for _, number in outputs})),
            *(f"var i{number}" for number in range(len(outer))),
            *(f"var v{value.number}" for value in self.values if value.scope == "call")])
        for value in self.values:
            if value.scope == "point" and value.kind == "reduce":
                self._fold(depth + 1, value)
            elif value.scope != "call":
                for at in self._elements(value):
                    self.line(depth + 1, f"var {self._of(value, at)} = {self._text(value, at)}")
        for value, number in outputs:
            for at in self._places if self._is_full(number) else [(0, 0)]:
                self._store_element(depth + 1, value, number, at)
        self.line(depth, f"sweep_fixed[W, {count}](body)")

    @property
    def _places(self) -> list[tuple[int, int]]:
        """The elements at a point, by their rows."""
        return [(j, k) for j in range(self.call.rows) for k in range(self.call.length)]

    def _elements(self, value: Value) -> list[tuple[int, int]]:
        """Those that a value has of its own; of a row, the first of it."""
        if value.scope == "point":
            return [(0, 0)]
        return [at for at in self._places if value.scope == "sweep" or at[1] == 0]

    def _of(self, value: Value, at: tuple[int, int]) -> str:
        """The name of a vector of values at points."""
        if value.scope == "point":
            return f"v{value.number}"
        return f"v{value.number}_{at[0]}_{at[1] if value.scope == 'sweep' else 0}"

    def _vector(self, value: Value, at: tuple[int, int]) -> str:
        if value.scope == "call":
            return f"SIMD[{kind_name(value.dtype)}, w](v{value.number})"
        return self._of(value, at)

    def _text(self, value: Value, at: tuple[int, int]) -> str:
        if value.operand < 0:
            return expression(value, [self._vector(x, at) for x in value.inputs], "w")
        number, kind = value.operand, kind_name(value.dtype)
        place, step = self._place(number, at), self.call.point_dims[-1][1 + number]
        if value.kind == "iota":
            return f"ramp[{kind}, w](p{number} + {place} + i * {step}, {step})"
        base = f"p{number}.unsafe_offset({place})"
        if step == 0:
            one = f"load_bool[1]({base}, 0)" if value.dtype == BOOL else (
                f"load[{kind}, 1]({base}, 0)")
            return f"SIMD[{kind}, w]({one})"
        if step == 1:
            return f"load_bool[w]({base}, i)" if value.dtype == BOOL else (
                f"load[{kind}, w]({base}, i)")
        text = f"gather[{stored_name(value.dtype)}, w]({base}, i, {step})"
        return f"{text}.ne(0)" if value.dtype == BOOL else text

    def _place(self, number: int, at: tuple[int, int]) -> str:
        """Where an element at the first point of a line of them is."""
        row, rest = 0, at[0]
        for dim in reversed(self.call.row_dims):
            row += rest % dim[0] * dim[1 + number]
            rest //= dim[0]
        first = row + at[1] * self.call.strides[number]
        outer = [f"i{k} * {dim[1 + number]}" for k, dim in enumerate(self.call.point_dims[:-1])
                 if dim[1 + number]]
        return " + ".join([*outer, str(first)] if first or not outer else outer)

    def _fold(self, depth: int, value: Value) -> None:
        """A reduction, of one element after the other."""
        operand, name = value.inputs[0], f"v{value.number}"
        kind = "DType.float32" if value.dtype in (dtypes.float16, dtypes.bfloat16) \
            else stored_name(value.dtype)
        for number, at in enumerate(self._places):
            text = self._vector(operand, at)
            text = f"as_bytes({text})" if operand.dtype == BOOL else text
            if kind != stored_name(operand.dtype):
                text = f"{text}.cast[{kind}]()"
            self.line(depth, f"var {name}_0 = {text}" if number == 0 else
                      f"{name}_0 = {REDUCERS[value.name]}.combine[{kind}, w]({name}_0, {text})")
        end = ".ne(0)" if value.dtype == BOOL else "" if kind == kind_name(value.dtype) else (
            f".cast[{kind_name(value.dtype)}]()")
        self.line(depth, f"var {name} = {name}_0{end}")

    def _store_element(self, depth: int, value: Value, number: int, at: tuple[int, int]) -> None:
        name, step = self._vector(value, at), self.call.point_dims[-1][1 + number]
        base = f"p{number}.unsafe_offset({self._place(number, at)})"
        if step == 1:
            self.line(depth, f"store_bool({base}, i, {name})" if value.dtype == BOOL else
                      f"{base}.unsafe_store(i, {name})")
        else:
            name = f"as_bytes({name})" if value.dtype == BOOL else name
            self.line(depth, f"scatter({base}, i, {step}, {name})")


class _FixedColumns(_Fixed, ColumnsEmitter):
    """Writes a group that reduces outer dimensions: a vector of columns at a time, all its rows."""

    @property
    def is_suited(self) -> bool:
        """Whether nothing is stored while rows are gone through."""
        return not any(self._is_full(number) for _, number in self.outputs)

    def write(self, outputs: list[tuple[Value, int]]) -> None:
        self._start()
        reductions = [value for value in self.values if value.kind == "reduce"]
        needed = self._needed([value.inputs[0] for value in reductions],
                              lambda value: value.scope == "call")
        wanted = self._needed_after([value for value, _ in outputs])
        after = [value for value in self.values if value in wanted and value.scope != "call"
                 and value not in reductions]
        depth = 1
        for number, dim in enumerate(self.call.point_dims):
            self.line(depth, f"for i{number} in range({dim[0]}):")
            depth += 1
        swept = [value.operand for value in (*needed, *after)
                 if value.scope == "sweep" and value.operand >= 0]
        self._row_pointers(depth, [*swept, *(number for _, number in outputs)],
                           self._pointer_point)
        rows = {value.operand for value in (*needed, *after)
                if value.scope == "row" and value.operand >= 0}
        strided = {number for number in (*swept, *(number for _, number in outputs))
                   if self.inner_stride(number) == STRIDED}
        call = [value for value in self.values if value.scope == "call"]
        self._closure(depth, "body[w: Int]", [
            *(f"var r{number}" for number in sorted({*swept, *(x for _, x in outputs)})),
            *(f"var t{number}" for number in sorted(strided)),
            *(f"var p{number}" for number in sorted(rows)),
            *(f"var i{number}" for number in range(len(self.call.point_dims)) if rows),
            *(f"var v{value.number}" for value in call)])
        self._reduce(depth + 1, reductions, needed)
        for value in after:
            value.number = -1       # the loop over rows may have computed its own copy
            self._compute(depth + 1, value, "w" if value.scope == "sweep" else "1",
                          self._pointer_sweep if value.scope == "sweep" else self._pointer_point)
        for value, number in outputs:
            self._store(depth + 1, value, number, "w", self._pointer_sweep)
        self.line(depth, f"sweep_fixed[W, {self.call.length}](body)")

    def _reduce(self, depth: int, reductions: list[Value], needed: list[Value]) -> None:
        """All rows of some columns, into one vector for each reduction."""
        for value in reductions:
            self.number(value)
            kind = self._accumulated(value)
            self.line(depth, f"var b{value.number} = SIMD[{kind}, w]"
                             f"({REDUCERS[value.name]}.identity[{kind}]())")
        inner = depth
        for number, dim in enumerate(self.call.row_dims):
            self.line(inner, f"for j{number} in range({dim[0]}):")
            inner += 1
        for value in needed:
            self._compute(inner, value, "w" if value.scope == "sweep" else "1",
                          self._pointer_of_row if value.scope == "sweep" else self._pointer_row)
        for value in reductions:
            operand, kind = value.inputs[0], self._accumulated(value)
            name = self._name(operand, "w", "sweep")
            if operand.dtype == BOOL:
                name = f"as_bytes({name})"
            elif kind != kind_name(operand.dtype):
                name = f"{name}.cast[{kind}]()"
            self.line(inner, f"b{value.number} = {REDUCERS[value.name]}.combine[{kind}, w]"
                             f"(b{value.number}, {name})")
        for value in reductions:
            text = f"b{value.number}"
            if value.dtype == BOOL:
                text += ".ne(0)"
            elif self._accumulated(value) != kind_name(value.dtype):
                text += f".cast[{kind_name(value.dtype)}]()"
            self.line(depth, f"var v{value.number} = {text}")

    def _pointer_of_row(self, number: int) -> tuple[str, str]:
        place = _position("j", self.call.row_dims, number)
        if self.operands[number].is_iota:
            return f"r{number} + {place}", "i"
        return f"r{number}.unsafe_offset({place})", "i"
