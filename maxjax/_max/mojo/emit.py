"""Writes the Mojo source of a group: one kernel, generic in sizes.

If the inner dimension is reduced, the number of passes over a point is the length of the longest
chain of reductions (``emit_rows.py``); if it is kept, reductions accumulate in blocks of columns
(``emit_columns.py``); without reductions there is one sweep.
"""

from __future__ import annotations

from typing import Any

from maxjax._max.mojo.emit_columns import ColumnsEmitter
from maxjax._max.mojo.emit_rows import RowsEmitter
from maxjax._max.mojo.emitter import Emitter, Kernel, Value
from maxjax._max.mojo.fusion import Fusion, Group


class MapEmitter(Emitter):
    """Writes a group without reductions."""

    kind = "map"

    def _write_scalars(self, outputs: list[tuple[Value, int]]) -> None:
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

    def write(self, outputs: list[tuple[Value, int]]) -> None:
        if self.inner < 0:
            self._write_scalars(outputs)
            return
        self._start()
        self.line(1, f"var pieces = integer(args, {self.layout.pieces})")
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
        self._closure(2, "body[w: Int]", self._captures(
            swept, [*numbers, *stores],
            more=[value for value, _ in outputs if value.scope != "sweep"]))
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


def emit(group: Group, fusion: Fusion, place: Any, written: dict[Any, str]) -> Kernel:
    """The kernel of a group; ``place`` gives a node's location, ``written`` caches the program's
    texts."""
    if group.axes is None:
        return MapEmitter(group, fusion, place).emit(written)
    return (RowsEmitter if group.inner else ColumnsEmitter)(group, fusion, place).emit(written)
