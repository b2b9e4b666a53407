"""Kernels whose innermost dimension is reduced: a pass over a point's rows for each phase."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from maxjax._max.mojo.emitter import Emitter, is_costly, kind_name
from maxjax._max.mojo.schedule import ROW, SWEEP, Phase, Schedule, Value
from maxjax._max.mojo.structure import BOOL


class RowsEmitter(Emitter):
    """Prints a group that reduces its inner dimension.

    Attributes:
      lanes: the accumulator of a row's sweep.
      unit: which of its parts takes a vector.
    """

    lanes, unit = "Lanes", "unit"

    def __init__(self, schedule: Schedule):
        super().__init__(schedule)
        self._stored: set[Value] = set()    # saved in memory by now
        self._pointers: set[int] = set()    # of operands, that are declared
        self._walks = False                 # `row` is declared

    def write(self) -> None:
        self._start()
        saved = self.schedule.saved
        for value in saved:
            self.number(value)
        for value in saved:
            memory, kind = self.name("m", value), kind_name(value.dtype)
            self.line(1, f"var {memory} = List[Scalar[{kind}]](length=n, fill=0)")
            self.line(1, f"var {self.name('s', value)} = {memory}.unsafe_ptr()"
                         ".as_unsafe_any_origin()")
        self._begin_points()
        for number, phase in enumerate(self.schedule.phases):
            self._compute_all(2, phase.line, "1", self._pointer_point)
            if phase.gathered or phase.stored:
                self._pass(f"pass{number}", phase)
            for value, operand in phase.last:
                self._store(2, value, operand, "1", self._pointer_point)
        self._end_point()
        for value in saved:
            self.line(1, f"keep({self.name('m', value)})")
        self._finish()

    def _begin_points(self) -> None:
        """The loop over this thread's points."""
        self.line(1, f"var walk = Walk[{self._count}](points, begin)")
        if self.rows:
            self._declare_rows()
        self.line(0, "")
        self.line(1, "for _ in range(begin, end):")

    def _end_point(self) -> None:
        self.line(2, "walk.advance(points)")

    def _pass(self, name: str, phase: Phase) -> None:
        """One loop over a point's rows."""
        swept = [value for value in phase.full if value.scope == SWEEP]
        numbers = self._touched(swept, phase.stored)
        units = self._units(value for value in swept if value not in self._stored)
        many = ", many=True" if self.rows and self.lanes == RowsEmitter.lanes else ""
        accumulators = self._accumulators(2, phase.gathered, self.lanes, f", W{units}{many}", "")
        depth = self._begin_rows()
        self._compute_all(depth, [x for x in phase.full if x.scope == ROW], "1",
                          self._pointer_row)
        self._row_pointers(depth, [x for x in numbers if x not in self._pointers],
                           self._pointer_row)
        if not self.rows:
            self._pointers.update(numbers)
        self.line(0, "")
        parameters = "w: Int, unit: Int" if phase.gathered and self.unit == "unit" else "w: Int"
        self._closure(depth, f"{name}[{parameters}]", [
            *self._captures(numbers, [x for x in swept if x not in self._stored], [
                *(x.inputs[0] for x in phase.gathered), *(x for x, _ in phase.stored)], swept),
            *(f"var {self.name('s', x)}" for x in swept if x in self.schedule.saved),
            *(f"mut {x}" for x in accumulators)])
        self._sweep(depth + 1, swept, phase)
        self._over_row(depth, name, bool(phase.gathered), units)
        self._end_row(depth)
        for value in phase.gathered:
            self.line(2, f"var {self.name('v', value)} = {self._result(value)}")
        self.line(0, "")

    def _units(self, computed: Iterable[Value]) -> str:
        """The parameter that says how many accumulators a pass is to have, if it is not the usual
        number: one, where computing a vector takes longer than to add it."""
        costly = self.lanes == RowsEmitter.lanes and is_costly(computed)
        return ", units=1" if costly else ""

    def _over_row(self, depth: int, name: str, reduces: bool, units: str) -> None:
        sweep = f"sweep_units[W{units}]" if reduces else "sweep[W]"
        self.line(depth, f"{sweep}({name}, 0, n)")

    def _begin_rows(self) -> int:
        """The loop over a point's rows, if it has several; returns the depth of a row's lines."""
        if not self.rows:
            return 2
        self.line(2, f"{'' if self._walks else 'var '}row = Walk[{self._count}](row_args)")
        self._walks = True
        self.line(2, "for _ in range(rows):")
        return 3

    def _end_row(self, depth: int) -> None:
        if self.rows:
            self.line(depth, "row.advance(row_args)")

    def _sweep(self, depth: int, swept: Sequence[Value], phase: Phase) -> None:
        """The computation on each vector of a row."""
        for value in swept:
            memory = self.name("s", value) if value in self.schedule.saved else ""
            if value in self._stored:
                self.line(depth, f"var {self.name('v', value)} = "
                                 f"load[{kind_name(value.dtype)}, w]({memory}, i)")
                continue
            self._compute(depth, value, "w", self._pointer_sweep)
            if memory:
                self.line(depth, f"{memory}.unsafe_store(i, {self.name('v', value)})")
                self._stored.add(value)
        for value in phase.gathered:
            operand = value.inputs[0]
            text = self._name(operand, "w", SWEEP)
            if operand.dtype == BOOL:
                text = f"as_bytes({text})"
            self.line(depth, f"{self.name('a', value)}.take[w, {self.unit}]({text})")
        self._store_all(depth, phase.stored)
        self.line(0, "")

    def _result(self, value: Value) -> str:
        name = self.name("a", value)
        if value.dtype == BOOL:
            return f"{name}.result().ne(0)"
        return f"{name}.result().cast[{kind_name(value.dtype)}]()"
