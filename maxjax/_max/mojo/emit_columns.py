"""Kernels whose innermost dimension is kept: reductions accumulate in blocks of columns."""

from __future__ import annotations

from maxjax._base.dtypes import name_of
from maxjax._max.mojo.emitter import BOOL, REDUCERS, Emitter, Value, kind_name, stored_name


class ColumnsEmitter(Emitter):
    """Writes a group that reduces outer dimensions and keeps its inner one."""

    kind = "columns"

    def write(self, outputs: list[tuple[Value, int]]) -> None:
        self._start()
        count = self._count
        self.line(1, f"var blocks = integer(args, {self.layout.pieces})")
        self._declare_rows()
        self.line(1, f"var walk = Walk[{count}](points, begin // blocks)")
        reductions = [value for value in self.values if value.kind == "reduce"]
        accumulators = self._accumulators(1, reductions, "Columns", "", "part_size(n, blocks)")
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
        captures = [*self._captures(swept, numbers, more=extra), "var first",
                    *(f"var d{number}" for number in sorted(steps)),
                    *(f"var q{value.number}" for value in reductions)]
        for value in reductions:
            self.line(3, f"var q{value.number} = a{value.number}.partial()")
        self.line(0, "")
        self._closure(3, "body[w: Int, units: Int]" if together else "body[w: Int]", captures)
        if together:
            for value in reductions:
                kind = self._accumulated(value)
                self.line(4, f"var b{value.number} = SIMD[{kind}, w]"
                             f"({REDUCERS[value.name]}.identity[{kind}]())")
            self.line(4, "comptime for unit in range(units):")
        depth = 5 if together else 4
        self._steps = steps
        for value in swept:
            self._compute(depth, value, "w", self._pointer_sweep)
        for value in reductions:
            operand, reducer = value.inputs[0], REDUCERS[value.name]
            name, kind = self._name(operand, "w", "sweep"), self._accumulated(value)
            if operand.node.dtype == BOOL:
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
                self.line(4, f"take_column[{REDUCERS[value.name]}](q{value.number}, "
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
        captures = [*self._captures(after, numbers, used, [
            value for value, _ in finals if value not in inside]), "var first",
            *(f"var q{value.number}" for value in used)]
        self.line(0, "")
        self._closure(2, "finish[w: Int]", captures)
        for value in used:
            text = f"q{value.number}.unsafe_load[width=w](i - first)"
            text = f"rebind[SIMD[{self._accumulated(value)}, w]]({text})"
            if value.node.dtype == BOOL:
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

    def _accumulated(self, value: Value) -> str:
        if name_of(value.node.dtype) in ("float16", "bfloat16"):
            return "DType.float32"
        return stored_name(value.node.dtype)
