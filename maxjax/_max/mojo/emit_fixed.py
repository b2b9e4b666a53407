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
from maxjax._max.mojo.cost import suits_machine
from maxjax._max.mojo.emit import MapEmitter
from maxjax._max.mojo.emit_columns import ColumnsEmitter
from maxjax._max.mojo.emit_rows import RowsEmitter
from maxjax._max.mojo.emitter import REDUCERS, Emitter, expression, kind_name, stored_name
from maxjax._max.mojo.layout import KernelIntegers
from maxjax._max.mojo.schedule import CALL, POINT, ROW, SWEEP, Schedule, Value
from maxjax._max.mojo.structure import BOOL, STRIDED

_SHORT_ROW_BYTES = 128
# Elements of all rows of a point, and lines that they may take, for which points are computed side
# by side; so many of these, or more.
_MOST_BESIDE, _MOST_LINES, _LEAST_POINTS = 8, 256, 16
# Elements of a row that fill a vector, or nearly: many shorter ones are the vector machine's, which
# gathers them to long lines. With a few cheap operations that is not worth it from here on.
_LEAST_ROW, _LEAST_CHEAP_ROW = 8, 3
_NEAR = 4               # as `kernels/copies.mojo` has it
_VECTOR_BYTES = 32      # of a row that is a vector by itself
# So many rows of a column are added up in one accumulator: rounding errors grow with them. Columns
# of more rows are added up in parts, if all they read is in the nearest cache.
_MOST_ROWS, _MOST_IN_PARTS = 64, 1 << 12


def fixed_function(schedule: Schedule, call: KernelIntegers, name: str,
                   known: Mapping[int, str]) -> list[str] | None:
    """The lines of a function; None for a group that has none.

    Args:
      known: of operands that are one number, and always the same one, its text.
    """
    if not has_fixed_function(schedule, call):
        return None
    emitters = {"map": _FixedMap, "rows": _FixedRows, "columns": _FixedColumns}
    emitter = (_FixedShortRows if is_of_short_rows(schedule, call)
               else emitters[schedule.structure.kind])(schedule, call, name, known)
    emitter.write()
    return emitter.lines


def has_fixed_function(schedule: Schedule, call: KernelIntegers) -> bool:
    kind = schedule.structure.kind
    if kind == "columns":
        return call.rows <= _MOST_ROWS or call.rows * call.length <= _MOST_IN_PARTS
    return kind == "map" or is_of_short_rows(schedule, call) or len(call.row_dims) <= 1


def is_of_short_rows(schedule: Schedule, call: KernelIntegers) -> bool:
    """Whether a row fills no vector, but as many rows as a vector has elements do."""
    if schedule.structure.kind not in ("map", "rows") or not schedule.phases:
        return False
    length, elements = call.length, call.length * call.rows
    if (elements > _MOST_BESIDE or len(schedule.values) * elements > _MOST_LINES
            or not call.point_dims or call.point_dims[-1][0] < _LEAST_POINTS):
        return False
    swept = [value for value in schedule.values if value.scope == SWEEP]
    if any(value.kind == "apply" and value.name not in CHEAP for value in swept):
        return True
    widest = max((value.dtype.itemsize for value in swept), default=1)
    return length <= _NEAR and length * widest < _VECTOR_BYTES


def is_left_to_machine(schedule: Schedule, call: KernelIntegers) -> bool:
    """Whether a group is one of many short rows, which a vector does not go through well."""
    structure = schedule.structure
    points = math.prod(dim[0] for dim in call.point_dims)
    return (structure.kind != "rows" and not is_of_short_rows(schedule, call)
            and call.length < _least_row(schedule)
            and suits_machine(structure.kind, points, call.rows, call.length))


def _least_row(schedule: Schedule) -> int:
    is_cheap = all(value.name in CHEAP for value in schedule.values
                   if value.kind == "apply" and value.scope == SWEEP)
    return _LEAST_CHEAP_ROW if is_cheap else _LEAST_ROW


class _Fixed(Emitter):
    """What all kinds have in common."""

    def __init__(self, schedule: Schedule, call: KernelIntegers, name: str,
                 known: Mapping[int, str]):
        super().__init__(schedule)
        self.call = call
        self.function = name
        self.known = known

    def _load(self, value: Value, w: str, pointer: Any) -> str:
        known = self.known.get(value.operand)
        if known is None or value.scope == SWEEP:
            return super()._load(value, w, pointer)
        return f"Scalar[{kind_name(value.dtype)}]({known})"

    def _begin(self) -> None:
        operands = ", ".join(
            f"p{number}: " + ("Int" if x.is_iota else
                              f"Pointer[Scalar[{stored_name(x.dtype)}], MutAnyOrigin]")
            for number, x in enumerate(self.operands))
        self.line(0, "@always_inline")
        self.line(0, f"def {self.function}({operands}):")
        names = [f"{name_of(x.dtype)}" for x in self.operands]
        self.line(1, f'"""Of {", ".join(dict.fromkeys(names))}."""')

    def _start(self) -> None:
        """The function up to its first loop."""
        self._begin()
        for number in range(len(self.operands)):
            if self.inner_stride(number) == STRIDED:
                self.line(1, f"var t{number} = {self.call.strides[number]}")
        self.line(1, f"comptime W = {self._width()}")
        self._compute_all(1, self.schedule.call, "1", self._pointer_call)

    def _width(self) -> str:
        if not self._is_costly() and all(
                self.inner_stride(number) == STRIDED for number, x in enumerate(self.operands)
                if x.varies and not x.is_iota):
            return "1"          # vectors would be put together, and taken apart
        return super()._width()

    def _begin_loops(self, loop: str, dims: Sequence[Sequence[int]], depth: int,
                     first: int = 0) -> int:
        """A loop for each dimension, from a number on; returns the depth of their lines."""
        for number, dim in enumerate(dims[first:]):
            self.line(depth + number, f"for {loop}{first + number} in range({dim[0]}):")
        return depth + len(dims) - first

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
    """Prints a group without reductions."""

    _store_all = Emitter._store_all

    def _gap(self) -> None:
        pass

    def _begin_points(self) -> int:
        return self._begin_loops("i", self.call.point_dims, 1)

    def _end_points(self, depth: int) -> None:
        self.line(depth, f"sweep_fixed[W, {self.call.length}](body)")


class _FixedRows(_Fixed, RowsEmitter):
    """Writes a group that reduces its inner dimension, and perhaps one other."""

    def _over_row(self, depth: int, name: str, reduces: bool, units: str) -> None:
        if reduces and self.unit == "0":
            self.line(depth, f"sweep_fixed[W, {self.call.length}]({name})")
        else:
            super()._over_row(depth, name, reduces, units)

    def _start(self) -> None:
        size = max(x.dtype.itemsize for x in self.schedule.values)
        if (self.call.length * size <= _SHORT_ROW_BYTES
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
    """Prints a group of few elements at each point, which it may reduce: a vector of points at a
    time, of which each element is a vector of its own."""

    def write(self) -> None:
        values = self.schedule.values
        outputs = [(values[place], number) for place, number in self.schedule.structure.outputs]
        full = {store.operand for phase in self.schedule.phases for store in phase.stored}
        self._begin()
        self.line(1, f"comptime W = simd_width_of[{self._widest()}]()")
        for value in values:
            if value.scope == CALL:
                self._compute(1, value, "1", self._pointer_call)
            else:
                self.number(value)
        *outer, (count, *_) = self.call.point_dims
        depth = self._begin_loops("i", outer, 1)
        used = {value.operand for value in values if value.operand >= 0}
        self._closure(depth, "body[w: Int]", [
            *(f"var p{number}" for number in sorted(used | {number for _, number in outputs})),
            *(f"var i{number}" for number in range(len(outer))),
            *(f"var {self.name('v', value)}" for value in values if value.scope == CALL)])
        for value in values:
            if value.scope == POINT and value.kind == "reduce":
                self._fold(depth + 1, value)
            elif value.scope != CALL:
                for at in self._elements(value):
                    self.line(depth + 1, f"var {self._of(value, at)} = {self._text(value, at)}")
        for value, number in outputs:
            for at in self._places if number in full else [(0, 0)]:
                self._store_element(depth + 1, value, number, at)
        self.line(depth, f"sweep_fixed[W, {count}](body)")

    @property
    def _places(self) -> list[tuple[int, int]]:
        """The elements at a point, by their rows."""
        return [(j, k) for j in range(self.call.rows) for k in range(self.call.length)]

    def _elements(self, value: Value) -> list[tuple[int, int]]:
        """Those that a value has of its own; of a row, the first of it."""
        if value.scope == POINT:
            return [(0, 0)]
        return [at for at in self._places if value.scope == SWEEP or at[1] == 0]

    def _of(self, value: Value, at: tuple[int, int]) -> str:
        """The name of a vector of values at points."""
        if value.scope == POINT:
            return self.name("v", value)
        return f"{self.name('v', value)}_{at[0]}_{at[1] if value.scope == SWEEP else 0}"

    def _vector(self, value: Value, at: tuple[int, int]) -> str:
        if value.scope == CALL:
            return f"SIMD[{kind_name(value.dtype)}, w]({self.name('v', value)})"
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
        operand, name = value.inputs[0], self.name("v", value)
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
    """Prints a group that reduces outer dimensions: a vector of columns at a time, all its rows."""

    def write(self) -> None:
        self._start()
        phase = self.phase
        values = [*phase.full, *phase.end]
        depth = self._begin_loops("i", self.call.point_dims, 1)
        numbers = self._touched(values, [*phase.stored, *phase.last])
        self._row_pointers(depth, numbers, self._pointer_point)
        rows = sorted({x.operand for x in values if x.scope == ROW and x.operand >= 0})
        self._closure(depth, "body[w: Int]", [
            *(f"var r{number}" for number in numbers),
            *(f"var t{number}" for number in numbers if self.inner_stride(number) == STRIDED),
            *(f"var p{number}" for number in rows),
            *(f"var i{number}" for number in range(len(self.call.point_dims)) if rows),
            *(f"var {self.name('v', value)}" for value in self.schedule.call)])
        self._reduce(depth + 1)
        for value in phase.end:
            self.numbers.pop(value, None)   # the loop over rows may have computed its own copy
            swept = value.scope == SWEEP
            self._compute(depth + 1, value, "w" if swept else "1",
                          self._pointer_sweep if swept else self._pointer_point)
        self._store_all(depth + 1, phase.last)
        self.line(depth, f"sweep_fixed[W, {self.call.length}](body)")

    def _reduce(self, depth: int) -> None:
        """All rows of some columns, into one vector for each reduction."""
        gathered = self.phase.gathered
        for value in gathered:
            self.number(value)
        if self.call.rows > _MOST_ROWS:
            self._reduce_parts(depth)
            return
        self._begin_totals(depth, gathered)
        self._add_rows(self._begin_loops("j", self.call.row_dims, depth))
        for value in gathered:
            self._result(depth, value, self.name("b", value))

    def _reduce_parts(self, depth: int) -> None:
        """The same of many rows, a part of them after the other."""
        gathered, dims = self.phase.gathered, self.call.row_dims
        split, rows = len(dims) - 1, 1      # the dimension of which a part has some
        while rows * dims[split][0] <= _MOST_ROWS:
            rows *= dims[split][0]
            split -= 1
        size, count = dims[split][0], _MOST_ROWS // rows
        for value in gathered:
            kind = self._accumulated(value)
            self.line(depth, f"var {self.name('z', value)} = SIMD[{kind}, w]"
                             f"({REDUCERS[value.name]}.identity[{kind}]())")
        inner = self._begin_loops("j", dims[:split], depth)
        self.line(inner, f"for part in range(0, {size}, {count}):")
        inner += 1
        self._begin_totals(inner, gathered)
        self.line(inner, f"for j{split} in range(part, min(part + {count}, {size})):")
        self._add_rows(self._begin_loops("j", dims, inner + 1, split + 1))
        for value in gathered:
            total, part = self.name("z", value), self.name("b", value)
            self.line(inner, f"{total} = {REDUCERS[value.name]}.combine"
                             f"[{self._accumulated(value)}, w]({total}, {part})")
        for value in gathered:
            self._result(depth, value, self.name("z", value))

    def _add_rows(self, inner: int) -> None:
        """What is done for a row."""
        for value in self.phase.full:
            swept = value.scope == SWEEP
            self._compute(inner, value, "w" if swept else "1",
                          self._pointer_of_row if swept else self._pointer_row)
        for value in self.phase.gathered:
            self._add(inner, value)
        for value, number in self.phase.stored:
            self._store(inner, value, number, "w", self._pointer_of_row)

    def _pointer_of_row(self, number: int) -> tuple[str, str]:
        place = _position("j", self.call.row_dims, number)
        if self.operands[number].is_iota:
            return f"r{number} + {place}", "i"
        return f"r{number}.unsafe_offset({place})", "i"
