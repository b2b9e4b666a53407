"""Kernels whose innermost dimension is reduced: passes over a point's rows.

The number of passes is the length of the longest chain of reductions, plus one if their results are
used over the whole space.
"""

from __future__ import annotations

from typing import Any

from maxjax._max.elementwise_kernels import CHEAP
from maxjax._max.mojo.emitter import BOOL, Emitter, Value, kind_name


class RowsEmitter(Emitter):
    """Writes a group that reduces its inner dimension.

    Attributes:
      lanes: the accumulator of a row's sweep.
      unit: which of its parts takes a vector.
    """

    lanes, unit = "Lanes", "unit"

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.kept: set[Value] = set()       # saved in memory by the pass that computes it
        self._stored: set[Value] = set()    # saved, and computed by now
        self._walks = False                 # `row` is declared

    def write(self, outputs: list[tuple[Value, int]]) -> None:
        passes = self._passes(outputs)
        self._start()
        kept = [value for value in self.values if value in self.kept]
        for value in kept:
            self.number(value)
        kept.sort(key=lambda value: value.number)
        for value in kept:
            kind = kind_name(value.dtype)
            self.line(1, f"var m{value.number} = List[Scalar[{kind}]](length=n, fill=0)")
            self.line(1, f"var s{value.number} = m{value.number}.unsafe_ptr()"
                         ".as_unsafe_any_origin()")
        self._begin_points()
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
        self._end_point()
        for value in kept:
            self.line(1, f"keep(m{value.number})")
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

    def _passes(self, outputs: list[tuple[Value, int]]) -> list[tuple[
            list[Value], list[tuple[Value, int]], list[Value]]]:
        """For each pass, its reductions, its stores and the values it needs for them.

        Values that are costly and needed again in a later pass are saved: ``self.kept``.
        """
        passes = []
        swept: set[Value] = set()
        for phase in range(max(value.phase for value in self.values) + 1):
            reductions = [value for value in self.values
                          if value.kind == "reduce" and value.phase == phase + 1]
            written = [(value, number) for value, number in outputs
                       if self._is_full(number) and value.phase == phase]
            roots = [value.inputs[0] for value in reductions] + [value for value, _ in written]
            needed = self._needed_of(roots, swept)
            swept |= {value for value in needed if value.scope == "sweep"}
            passes.append((reductions, written, [x for x in self.values if x in needed]))
        return passes

    def _needed_of(self, roots: list[Value], swept: set[Value]) -> set[Value]:
        """The values a pass needs for its roots; ``swept`` are those of earlier passes."""
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
        return needed

    def _pass(self, name: str, reductions: list[Value], written: list[tuple[Value, int]],
              needed: list[Value], pointers: set[int]) -> None:
        """One loop over a point's rows; ``pointers`` are those already declared."""
        swept = [value for value in needed if value.scope == "sweep"]
        numbers = [value.operand for value in swept if value.operand >= 0]
        numbers += [number for _, number in written]
        accumulators = self._accumulators(2, reductions, self.lanes, ", W", "")
        depth = self._begin_rows()
        for value in needed:
            if value.scope == "row":
                self._compute(depth, value, "1", self._pointer_row)
        self._row_pointers(depth, [x for x in numbers if x not in pointers], self._pointer_row)
        if not self.rows:
            pointers.update(numbers)
        self.line(0, "")
        parameters = "w: Int, unit: Int" if reductions and self.unit == "unit" else "w: Int"
        self._closure(depth, f"{name}[{parameters}]",
                      [*self._swept_captures(swept, numbers, reductions, written),
                       *(f"mut {x}" for x in accumulators)])
        self._sweep(depth + 1, swept, reductions, written)
        self._over_row(depth, name, bool(reductions))
        self._end_row(depth)
        for value in reductions:
            self.line(2, f"var v{value.number} = {self._result(value, f'a{value.number}')}")
        self.line(0, "")

    def _over_row(self, depth: int, name: str, reduces: bool) -> None:
        self.line(depth, f"{'sweep_units' if reduces else 'sweep'}[W]({name}, 0, n)")

    def _swept_captures(self, swept: list[Value], numbers: list[int], reductions: list[Value],
                        written: list[tuple[Value, int]]) -> list[str]:
        """What the function of a sweep's vectors captures, other than its accumulators."""
        computed = [value for value in swept if value not in self._stored]
        ends = [x.inputs[0] for x in reductions] + [x for x, _ in written]
        return [*self._captures(computed, numbers, swept,
                                [x for x in ends if x.scope != "sweep"]),
                *(f"var s{value.number}" for value in swept if value in self.kept)]

    def _begin_rows(self) -> int:
        """The loop over a point's rows, if it has several; returns the depth of a row's lines."""
        if not self.rows:
            return 2
        self.line(2, f"{'' if self._walks else 'var '}row = Walk[{self._count}](row_args, 0)")
        self._walks = True
        self.line(2, "for _ in range(rows):")
        return 3

    def _end_row(self, depth: int) -> None:
        if self.rows:
            self.line(depth, "row.advance(row_args)")

    def _sweep(self, depth: int, swept: list[Value], reductions: list[Value],
               written: list[tuple[Value, int]]) -> None:
        """The computation on each vector of a row."""
        for value in swept:
            if value in self._stored:
                kind = kind_name(value.dtype)
                self.line(depth, f"var v{value.number} = load[{kind}, w](s{value.number}, i)")
                continue
            self._compute(depth, value, "w", self._pointer_sweep)
            if value in self.kept:
                self.line(depth, f"s{value.number}.unsafe_store(i, v{value.number})")
        self._stored |= self.kept.intersection(swept)
        for value in reductions:
            operand = value.inputs[0]
            text = self._name(operand, "w", "sweep")
            if operand.dtype == BOOL:
                text = f"as_bytes({text})"
            self.line(depth, f"a{value.number}.take[w, {self.unit}]({text})")
        for value, number in written:
            self._store(depth, value, number, "w", self._pointer_sweep)
        self.line(0, "")

    def _result(self, value: Value, name: str) -> str:
        if value.dtype == BOOL:
            return f"{name}.result().ne(0)"
        return f"{name}.result().cast[{kind_name(value.dtype)}]()"


def _is_costly(value: Value) -> bool:
    """Whether recomputing a swept value costs more than reading it."""
    if value.kind != "apply" or value.dtype == BOOL:
        return False
    if value.name not in CHEAP:
        return True
    return any(_is_costly(x) for x in value.inputs if x.scope == "sweep")
