"""Writes the Mojo source of a kernel, generic in sizes, from its structure.

If the inner dimension is reduced, the number of passes over a point is the length of the longest
chain of reductions (``emit_rows.py``); if it is kept, reductions accumulate in blocks of columns
(``emit_columns.py``); without reductions there is one sweep.
"""

from __future__ import annotations

import functools
import hashlib
import re
from pathlib import Path
from typing import Any

from maxjax._base.dtypes import name_of
from maxjax._max.elementwise_kernels import CHEAP
from maxjax._max.mojo.emit_columns import ColumnsEmitter
from maxjax._max.mojo.emit_rows import RowsEmitter
from maxjax._max.mojo.emitter import Emitter, Value
from maxjax._max.mojo.structure import KernelStructure

# Forms are few, and small: programs repeat them.
_MOST_FORMS = 4096


class MapEmitter(Emitter):
    """Writes a group without reductions."""

    def _begin(self) -> None:
        """The head of a kernel of single elements."""
        self.line(0, '@export("KERNEL")')
        self.line(0, 'def KERNEL(slots: Slots, args: Args) abi("C"):')
        self._describe()
        self._declare_operands()
        self.line(0, "")

    def _write_scalars(self, outputs: list[tuple[Value, int]]) -> None:
        """A kernel of single elements."""
        self._begin()
        for value in self.values:
            self._compute(1, value, "1", self._pointer_call)
        for value, number in outputs:
            self._store(1, value, number, "1", self._pointer_call)

    def write(self, outputs: list[tuple[Value, int]]) -> None:
        if not self.has_inner:
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
        self._store_all(3, outputs, "w", self._pointer_sweep)
        self.line(0, "")
        self.line(2, "sweep[W](body, part_begin(n, piece, pieces), "
                     "part_begin(n, piece + 1, pieces))")
        self.line(2, "if piece + 1 == pieces:")
        self.line(3, "walk.advance(points)")
        self._finish()


_EMITTERS: dict[str, type[Emitter]] = {
    "map": MapEmitter, "rows": RowsEmitter, "columns": ColumnsEmitter}


def emitter_of(structure: KernelStructure) -> Emitter:
    return _EMITTERS[structure.kind](structure)


class Form:
    """A kernel: one object for all calls, plans and programs, whatever the sizes.

    Its text is written when somebody asks for it.

    Attributes:
      structure: all that tells it from others.
      codes: what the vector machine has for it, by sizes (`bytecode.code_of`).
      heat: nanoseconds that calls have taken while it was not compiled, in all programs.
    """

    __slots__ = ("__weakref__", "_identity", "_source", "codes", "heat", "structure")

    def __init__(self, structure: KernelStructure):
        self.structure = structure
        self.codes: dict[Any, Any] = {}
        self.heat = 0.0
        self._identity: str | None = None
        self._source: str | None = None

    @property
    def source(self) -> str:
        """Mojo text, with ``KERNEL`` as a placeholder for its name."""
        if self._source is None:
            self._source = emitter_of(self.structure).text()
        return self._source

    @property
    def identity(self) -> str:
        """What no other form has, sooner made than the text."""
        if self._identity is None:
            kind, has_inner, has_rows, values, operands, outputs = self.structure
            self._identity = "\n".join((
                f"{kind} {has_inner:d} {has_rows:d} {outputs}",
                *[f"{x.kind} {x.name} {name_of(x.dtype)} {x.inputs} {x.operand} {x.source!r}"
                  for x in values],
                *[f"{name_of(x.dtype)} {x.is_iota:d} {x.is_output:d} {x.stride} {x.varies}"
                  for x in operands], _writers()))
        return self._identity

    def __repr__(self) -> str:
        names = dict.fromkeys(x.name for x in self.structure.values if x.name)
        return f"<Form {self.structure.kind}: {', '.join(names) or 'copy'}>"


_forms: dict[KernelStructure, Form] = {}

_IMPORT = re.compile(rb"\nfrom maxjax\._max\.mojo\.(\w+) import ")


def form_of(structure: KernelStructure) -> Form:
    """The form of a structure, the same for equal ones."""
    form = _forms.get(structure)
    if form is None:
        if len(_forms) >= _MOST_FORMS:
            _forget()
        form = _forms.setdefault(structure, Form(structure))
    return form


def _forget() -> None:
    """Forgets the colder half of the forms; plans keep theirs."""
    by_heat = sorted([*_forms.items()], key=lambda item: item[1].heat)
    for structure, _ in by_heat[:len(by_heat) // 2]:
        _forms.pop(structure, None)


@functools.cache
def _writers() -> str:
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
