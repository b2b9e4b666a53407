"""Kernels whose innermost dimension is kept: reductions accumulate in blocks of columns.

An item is a block of columns at a point. The loop runs over its rows, several in one sweep if
possible; when the reductions are known, another sweep writes the values that depend on them.
"""

from __future__ import annotations

from typing import NamedTuple

from maxjax._base.dtypes import name_of
from maxjax._max.mojo.emitter import BOOL, REDUCERS, Emitter, Value, kind_name, stored_name
from maxjax._max.mojo.structure import ROWS

Stores = list[tuple[Value, int]]    # values, and the operands they are stored to


class _Rows(NamedTuple):
    """The work of the loop over a block's rows.

    Attributes:
      reductions: the values it accumulates.
      written: the values it stores.
      needed: the values that it computes for both, in order.
      numbers: the operands that its sweep reads and writes.
      together: whether one sweep covers several rows.
      steps: the operands that differ from row to row, if a sweep covers several.
    """

    reductions: list[Value]
    written: Stores
    needed: list[Value]
    numbers: list[int]
    together: bool
    steps: list[int]

    @property
    def swept(self) -> list[Value]:
        return [value for value in self.needed if value.scope == "sweep"]

    @property
    def depth(self) -> int:
        """The depth of the swept lines."""
        return 5 if self.together else 4


class ColumnsEmitter(Emitter):
    """Writes a group that reduces outer dimensions and keeps its inner one."""

    def write(self, outputs: Stores) -> None:
        written = [output for output in outputs if self._is_full(output[1])]
        reductions = [value for value in self.values if value.kind == "reduce"]
        self._start()
        accumulators = self._begin_block(reductions)
        rows = self._rows_of(reductions, written)
        self._begin_row(rows)
        self._sweep_row(rows)
        self._end_row(rows, accumulators)
        for name in accumulators:
            self.line(2, f"{name}.finish()")
        self._write_results(reductions, [output for output in outputs if output not in written])
        self.line(2, "if item % blocks + 1 == blocks:")
        self.line(3, "walk.advance(points)")
        for name in accumulators:
            self.line(1, f"{name}.keep()")
        self._finish()

    def _begin_block(self, reductions: list[Value]) -> list[str]:
        """The accumulators, whose names are returned, and the loop over the items."""
        self.line(1, f"var blocks = integer(args, {self.layout.pieces})")
        self._declare_rows()
        self.line(1, f"var walk = Walk[{self._count}](points, begin // blocks)")
        accumulators = self._accumulators(1, reductions, "Columns", "", "part_size(n, blocks)")
        self.line(0, "")
        self.line(1, "for item in range(begin, end):")
        self.line(2, "var first = part_begin(n, item % blocks, blocks)")
        self.line(2, "var last = part_begin(n, item % blocks + 1, blocks)")
        for name in accumulators:
            self.line(2, f"{name}.clear(last - first)")
        return accumulators

    # --- the loop over rows ---
    def _rows_of(self, reductions: list[Value], written: Stores) -> _Rows:
        roots = [value.inputs[0] for value in reductions] + [value for value, _ in written]
        needed = self._needed(roots, lambda value: value.scope == "call")
        numbers = [value.operand for value in needed
                   if value.scope == "sweep" and value.operand >= 0]
        numbers += [number for _, number in written]
        # If no value is computed once per row, one sweep covers several rows.
        together = not any(value.scope == "row" for value in needed)
        steps = {number for number in numbers
                 if together and self.operands[number].varies & ROWS}
        return _Rows(reductions, written, needed, numbers, together, sorted(steps))

    def _begin_row(self, rows: _Rows) -> None:
        """The loop's head, and what is computed once per row."""
        count = self._count
        self.line(2, f"var row = Walk[{count}](row_args, 0)")
        if rows.together:
            self.line(2, "var done = 0")
            self.line(2, "var is_line = integer(row_args, 0) == 1")
        for number in rows.steps:
            self.line(2, f"var d{number} = Walk[{count}].stride(row_args, {number}, 0) "
                         "if is_line else 0")
        self.line(2, "while done < rows:" if rows.together else "for _ in range(rows):")
        for value in rows.needed:
            if value.scope == "row":
                self._compute(3, value, "1", self._pointer_row)
        self._row_pointers(3, rows.numbers, self._pointer_row)
        for value in rows.reductions:
            self.line(3, f"var q{value.number} = a{value.number}.partial()")
        self.line(0, "")

    def _sweep_row(self, rows: _Rows) -> None:
        """The closure that computes a vector of one row, or of several."""
        outer = [value.inputs[0] for value in rows.reductions]
        outer += [value for value, _ in rows.written]
        captures = [*self._captures(rows.swept, rows.numbers, more=[
                        value for value in outer if value.scope != "sweep"]),
                    "var first", *(f"var d{number}" for number in rows.steps),
                    *(f"var q{value.number}" for value in rows.reductions)]
        parameters = "w: Int, units: Int" if rows.together else "w: Int"
        self._closure(3, f"body[{parameters}]", captures)
        if rows.together:
            for value in rows.reductions:
                kind = self._accumulated(value)
                self.line(4, f"var b{value.number} = SIMD[{kind}, w]"
                             f"({REDUCERS[value.name]}.identity[{kind}]())")
            self.line(4, "comptime for unit in range(units):")
        self._steps = {*rows.steps}
        for value in rows.swept:
            self._compute(rows.depth, value, "w", self._pointer_sweep)
        for value in rows.reductions:
            self._take(rows, value)
        for value, number in rows.written:
            self._store(rows.depth, value, number, "w", self._pointer_sweep)
        self._steps = set()
        if rows.together:
            for value in rows.reductions:
                self.line(4, f"take_column[{REDUCERS[value.name]}](q{value.number}, "
                             f"i - first, b{value.number})")
        self.line(0, "")

    def _take(self, rows: _Rows, value: Value) -> None:
        """Accumulates a vector: into the block's, or first into one for the rows of a sweep."""
        operand, reducer, kind = value.inputs[0], REDUCERS[value.name], self._accumulated(value)
        name = self._name(operand, "w", "sweep")
        if operand.dtype == BOOL:
            name = f"as_bytes({name})"
        elif rows.together and kind != kind_name(operand.dtype):
            name = f"{name}.cast[{kind}]()"
        if rows.together:
            self.line(rows.depth, f"b{value.number} = {reducer}.combine[{kind}, w]"
                                  f"(b{value.number}, {name})")
        else:
            self.line(rows.depth, f"take_column[{reducer}](q{value.number}, i - first, {name})")

    def _end_row(self, rows: _Rows, accumulators: list[str]) -> None:
        if rows.together:
            self.line(3, "var count = UNITS if is_line and done + UNITS <= rows else 1")
            self.line(3, "sweep_rows[W](body, first, last, count)")
            self.line(3, "row.skip(row_args, count)")
            self.line(3, "done += count")
        else:
            self.line(3, "sweep[W](body, first, last)")
            self.line(3, "row.advance(row_args)")
        for name in accumulators:
            self.line(3, f"{name}.count_rows({'count' if rows.together else '1'})")

    # --- what follows from the results ---
    def _write_results(self, reductions: list[Value], finals: Stores) -> None:
        wanted = self._needed_after([value for value, _ in finals])
        after = [value for value in self.values if value in wanted and value.scope != "call"
                 and value not in reductions]
        used = [value for value in reductions if value in wanted]
        for value in after:
            value.number = -1       # the loop over rows may have computed its own copy
            if value.scope == "row":
                self._compute(2, value, "1", self._pointer_point)
        self._sweep_results([value for value in after if value.scope == "sweep"], used, finals)

    def _sweep_results(self, after: list[Value], used: list[Value], finals: Stores) -> None:
        """The sweep that computes values from reductions, and stores the outputs among both."""
        numbers = [value.operand for value in after if value.operand >= 0]
        numbers += [number for _, number in finals]
        self._row_pointers(2, numbers, self._pointer_point)
        for value in used:
            self.line(2, f"var q{value.number} = a{value.number}.result()")
        inside = {*after, *used}
        captures = [*self._captures(after, numbers, used, [
            value for value, _ in finals if value not in inside]), "var first",
            *(f"var q{value.number}" for value in used)]
        self.line(0, "")
        self._closure(2, "finish[w: Int]", captures)
        for value in used:
            self.line(3, f"var v{value.number} = {self._result(value)}")
        for value in after:
            self._compute(3, value, "w", self._pointer_sweep)
        for value, number in finals:
            self._store(3, value, number, "w", self._pointer_sweep)
        self.line(0, "")
        self.line(2, "sweep[W](finish, first, last)")

    def _result(self, value: Value) -> str:
        """A vector of a reduction's results."""
        text = f"q{value.number}.unsafe_load[width=w](i - first)"
        text = f"rebind[SIMD[{self._accumulated(value)}, w]]({text})"
        if value.dtype == BOOL:
            return f"{text}.ne(0)"
        if self._accumulated(value) != kind_name(value.dtype):
            return f"{text}.cast[{kind_name(value.dtype)}]()"
        return text

    def _needed_after(self, roots: list[Value]) -> set[Value]:
        """What is needed once the reductions are known: they are not recomputed."""
        found: set[Value] = set()
        stack = list(roots)
        while stack:
            value = stack.pop()
            if value not in found:
                found.add(value)
                if value.kind != "reduce":
                    stack += value.inputs
        return found

    def _accumulated(self, value: Value) -> str:
        if name_of(value.dtype) in ("float16", "bfloat16"):
            return "DType.float32"
        return stored_name(value.dtype)
