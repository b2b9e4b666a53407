"""Kernels whose innermost dimension is kept: reductions accumulate in blocks of columns.

An item is a block of columns at a point. The loop runs over its rows, several in one sweep if
possible; when the reductions are known, another sweep writes the values that depend on them.
"""

from __future__ import annotations

from collections.abc import Sequence

from maxjax._base.dtypes import name_of
from maxjax._max.mojo.emitter import REDUCERS, Emitter, kind_name, stored_name
from maxjax._max.mojo.schedule import ROW, SWEEP, Phase, Schedule, Value
from maxjax._max.mojo.structure import BOOL, ROWS


class ColumnsEmitter(Emitter):
    """Prints a group that reduces outer dimensions and keeps its inner one.

    Attributes:
      phase: the only one.
      once, swept: of what its loop computes, what is once a row and what is swept.
      touched: the operands that a row's sweep reads and writes.
      together: whether one sweep covers several rows: no value is computed once per row.
    """

    def __init__(self, schedule: Schedule):
        super().__init__(schedule)
        self.phase, = schedule.phases
        self.touched = self._touched(self.phase.full, self.phase.stored)
        self.swept = [value for value in self.phase.full if value.scope == SWEEP]
        self.once = [value for value in self.phase.full if value.scope == ROW]
        self.together = not self.once

    def write(self) -> None:
        phase = self.phase
        self._start()
        accumulators = self._begin_block(phase.gathered)
        if self.together:
            self._steps = [number for number in self.touched
                           if self.operands[number].varies & ROWS]
        self._begin_row()
        self._sweep_row()
        self._steps = ()
        self._end_row(accumulators)
        for name in accumulators:
            self.line(2, f"{name}.finish()")
        self._write_results(phase)
        self.line(2, "if item % blocks + 1 == blocks:")
        self.line(3, "walk.advance(points)")
        for name in accumulators:
            self.line(1, f"{name}.keep()")
        self._finish()

    def _begin_block(self, reductions: Sequence[Value]) -> list[str]:
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
    def _begin_row(self) -> None:
        """The loop's head, and what is computed once per row."""
        count = self._count
        self.line(2, f"var row = Walk[{count}](row_args)")
        if self.together:
            self.line(2, "var done = 0")
            self.line(2, "var is_line = integer(row_args, 0) == 1")
        for number in self._steps:
            self.line(2, f"var d{number} = Walk[{count}].stride(row_args, {number}, 0) "
                         "if is_line else 0")
        self.line(2, "while done < rows:" if self.together else "for _ in range(rows):")
        self._compute_all(3, self.once, "1", self._pointer_row)
        self._row_pointers(3, self.touched, self._pointer_row)
        for value in self.phase.gathered:
            self.line(3, f"var {self.name('q', value)} = {self.name('a', value)}.partial()")
        self.line(0, "")

    def _sweep_row(self) -> None:
        """The closure that computes a vector of one row, or of several."""
        gathered, stored = self.phase.gathered, self.phase.stored
        captures = [*self._captures(self.touched, self.swept, [
                        *(x.inputs[0] for x in gathered), *(x for x, _ in stored)]),
                    "var first", *(f"var d{number}" for number in self._steps),
                    *(f"var {self.name('q', value)}" for value in gathered)]
        parameters = "w: Int, units: Int" if self.together else "w: Int"
        self._closure(3, f"body[{parameters}]", captures)
        depth = 4
        if self.together:
            self._begin_totals(4, gathered)
            self.line(4, "comptime for unit in range(units):")
            depth = 5
        self._compute_all(depth, self.swept, "w", self._pointer_sweep)
        for value in gathered:
            if self.together:
                self._add(depth, value)
            else:
                self._take(depth, value, self._gathered(value))
        self._store_all(depth, stored)
        if self.together:
            for value in gathered:
                self._take(4, value, self.name("b", value))
        self.line(0, "")

    def _begin_totals(self, depth: int, reductions: Sequence[Value]) -> None:
        """A vector for each reduction, of the rows that are gone through together."""
        for value in reductions:
            kind = self._accumulated(value)
            self.line(depth, f"var {self.name('b', value)} = SIMD[{kind}, w]"
                             f"({REDUCERS[value.name]}.identity[{kind}]())")

    def _gathered(self, value: Value) -> str:
        """The vector that a reduction gathers."""
        name = self._name(value.inputs[0], "w", SWEEP)
        return f"as_bytes({name})" if value.inputs[0].dtype == BOOL else name

    def _add(self, depth: int, value: Value) -> None:
        """Adds a row's vector to that of several rows."""
        operand, kind, text = value.inputs[0], self._accumulated(value), self._gathered(value)
        if operand.dtype != BOOL and kind != kind_name(operand.dtype):
            text = f"{text}.cast[{kind}]()"
        total = self.name("b", value)
        self.line(depth, f"{total} = {REDUCERS[value.name]}.combine[{kind}, w]({total}, {text})")

    def _take(self, depth: int, value: Value, text: str) -> None:
        """Adds a vector to the block's."""
        self.line(depth, f"take_column[{REDUCERS[value.name]}]({self.name('q', value)}, "
                         f"i - first, {text})")

    def _end_row(self, accumulators: Sequence[str]) -> None:
        if self.together:
            self.line(3, "var count = UNITS if is_line and done + UNITS <= rows else 1")
            self.line(3, "sweep_rows[W](body, first, last, count)")
            self.line(3, "row.skip(row_args, count)")
            self.line(3, "done += count")
        else:
            self.line(3, "sweep[W](body, first, last)")
            self.line(3, "row.advance(row_args)")
        for name in accumulators:
            self.line(3, f"{name}.count_rows({'count' if self.together else '1'})")

    # --- what follows from the results ---
    def _write_results(self, phase: Phase) -> None:
        """The sweep that computes values from reductions, and stores the outputs among both."""
        for value in phase.end:
            self.numbers.pop(value, None)   # the loop over rows may have computed its own copy
        self._compute_all(2, [x for x in phase.end if x.scope == ROW], "1", self._pointer_point)
        after = [value for value in phase.end if value.scope == SWEEP]
        numbers = self._touched(after, phase.last)
        self._row_pointers(2, numbers, self._pointer_point)
        for value in phase.gathered:
            self.line(2, f"var {self.name('q', value)} = {self.name('a', value)}.result()")
        self.line(0, "")
        self._closure(2, "finish[w: Int]", [
            *self._captures(numbers, after, [value for value, _ in phase.last], phase.gathered),
            "var first", *(f"var {self.name('q', value)}" for value in phase.gathered)])
        for value in phase.gathered:
            text = f"{self.name('q', value)}.unsafe_load[width=w](i - first)"
            text = f"rebind[SIMD[{self._accumulated(value)}, w]]({text})"
            self._result(3, value, text)
        self._compute_all(3, after, "w", self._pointer_sweep)
        self._store_all(3, phase.last)
        self.line(0, "")
        self.line(2, "sweep[W](finish, first, last)")

    def _result(self, depth: int, value: Value, text: str) -> None:
        """A vector of a reduction's results, from one of what is accumulated."""
        if value.dtype == BOOL:
            text += ".ne(0)"
        elif self._accumulated(value) != kind_name(value.dtype):
            text += f".cast[{kind_name(value.dtype)}]()"
        self.line(depth, f"var {self.name('v', value)} = {text}")

    def _accumulated(self, value: Value) -> str:
        if name_of(value.dtype) in ("float16", "bfloat16"):
            return "DType.float32"
        return stored_name(value.dtype)
