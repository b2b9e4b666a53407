"""Prints the schedule of a kernel as Mojo text, generic in sizes.

A group whose inner dimension is reduced goes over a point once for each phase (``emit_rows.py``);
if it is kept, reductions accumulate in blocks of columns (``emit_columns.py``); without reductions
there is one sweep.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

from maxjax._max.elementwise_kernels import CHEAP
from maxjax._max.mojo.emit_columns import ColumnsEmitter
from maxjax._max.mojo.emit_rows import RowsEmitter
from maxjax._max.mojo.emitter import Emitter
from maxjax._max.mojo.schedule import SWEEP, Schedule, Store
from maxjax._max.mojo.structure import BOOL, NEXT

# So many addresses are more than processors have registers for; an operand whose elements lie apart
# counts for several.
_MANY, _LANES = 16, 3


class MapEmitter(Emitter):
    """Prints a group without reductions."""

    _touches = 0        # addresses that the sweep computes

    def _begin(self) -> None:
        """The head of a kernel of single elements."""
        self.line(0, '@export("KERNEL")')
        self.line(0, 'def KERNEL(slots: Slots, args: Args) abi("C"):')
        self._describe()
        self._declare_operands()
        self.line(0, "")

    def write(self) -> None:
        if not self.schedule.phases:
            self._begin()
            self._compute_all(1, self.schedule.call, "1", self._pointer_call)
            for value, number in self.schedule.stored:
                self._store(1, value, number, "1", self._pointer_call)
            return
        phase, = self.schedule.phases
        self._start()
        depth = self._begin_points()
        self._compute_all(depth, phase.line, "1", self._pointer_point)
        numbers = self._touched(phase.full, phase.stored)
        self._touches = sum(1 if self.inner_stride(x) == NEXT else _LANES for x in numbers)
        self._row_pointers(depth, numbers, self._pointer_point)
        self._gap()
        self._closure(depth, "body[w: Int]", self._captures(
            numbers, phase.full, [value for value, _ in phase.stored]))
        self._compute_all(depth + 1, phase.full, "w", self._pointer_sweep)
        self._store_all(depth + 1, phase.stored)
        self._gap()
        self._end_points(depth)
        self._finish()

    def _gap(self) -> None:
        self.line(0, "")

    def _begin_points(self) -> int:
        """The loop over this thread's points; returns the depth of its lines."""
        self.line(1, f"var pieces = integer(args, {self.layout.pieces})")
        self.line(1, f"var walk = Walk[{self._count}](points, begin // pieces)")
        self.line(0, "")
        self.line(1, "for item in range(begin, end):")
        self.line(2, "var piece = item % pieces if pieces > 1 else 0")
        return 2

    def _end_points(self, depth: int) -> None:
        """The sweep of a point's elements, and the step to the next point."""
        many = ", many=True" if self._touches >= _MANY else ""
        self.line(depth, f"sweep[W{many}](body, part_begin(n, piece, pieces), "
                         "part_begin(n, piece + 1, pieces))")
        self.line(depth, "if piece + 1 == pieces:")
        self.line(depth + 1, "walk.advance(points)")

    def _store_all(self, depth: int, stores: Iterable[Store]) -> None:
        """Stores results, two that lie apart at once: they may be the parts of complex numbers."""
        left = list(stores)
        while left:
            pair = left[:2]
            if len(pair) == 2 and all(map(self._is_apart, pair)) \
                    and pair[0].value.dtype == pair[1].value.dtype:
                names = [self._name(value, "w", SWEEP) for value, _ in pair]
                at = [f"r{number}, t{number}" for _, number in pair]
                self.line(depth, f"scatter_pair({', '.join(at)}, i, {', '.join(names)})")
            else:
                pair = pair[:1]
                super()._store_all(depth, pair)
            del left[:len(pair)]

    def _is_apart(self, store: Store) -> bool:
        return store.value.dtype != BOOL and self.inner_stride(store.operand) != NEXT


_EMITTERS: dict[str, type[Emitter]] = {
    "map": MapEmitter, "rows": RowsEmitter, "columns": ColumnsEmitter}


def text_of(schedule: Schedule) -> str:
    """The Mojo text of a kernel, with ``KERNEL`` as a placeholder for its name."""
    return _EMITTERS[schedule.structure.kind](schedule).text()


_IMPORT = re.compile(rb"\nfrom maxjax\._max\.mojo\.(\w+) import ")


@functools.cache
def writers() -> str:
    """A digest of what writes texts: another text is another kernel."""
    folder, total = Path(__file__).parent, hashlib.sha256(repr(sorted(CHEAP)).encode())
    for content in (*writing_modules(folder).values(),
                    (folder / "../../_primitives/kernels.py").read_bytes()):
        total.update(content)
    return total.hexdigest()


def writing_modules(folder: Path) -> dict[str, bytes]:
    """The contents of this module and of those of its folder that it imports, directly or not."""
    left, found = [Path(__file__).stem], dict[str, bytes]()
    while left:
        name = left.pop()
        if name not in found:
            found[name] = (folder / f"{name}.py").read_bytes()
            left += map(bytes.decode, _IMPORT.findall(found[name]))
    return dict(sorted(found.items()))
