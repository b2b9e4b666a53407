"""Writes a group as a function for its sizes: those, and all strides, are numbers in its text, and
it is given where its operands are. Loops that are one function consist of such ones
(``loop_function.py``): a row of 24 elements is three vectors there, without a loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
    kind_name,
    stored_name,
)
from maxjax._max.mojo.layout import KernelIntegers
from maxjax._max.mojo.structure import STRIDED, KernelStructure

_SHORT_ROW_BYTES = 128
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
    elif structure.kind == "rows" and max(len(call.point_dims), len(call.row_dims)) <= 1:
        emitter = _FixedRows(structure, call, name, known)
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
        self.line(1, f"for {'i0' if self.call.point_dims else '_'} in range("
                     f"{self.call.point_dims[0][0] if self.call.point_dims else 1}):")

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
