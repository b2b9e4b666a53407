"""Kernels, one object for equal ones: their schedules, texts and code of the vector machine."""

from __future__ import annotations

from maxjax._base.dtypes import name_of
from maxjax._max.mojo.bytecode import Code, Sizes, code_of, sizes_of
from maxjax._max.mojo.emit import text_of, writers
from maxjax._max.mojo.schedule import Schedule, schedule_of
from maxjax._max.mojo.structure import KernelStructure

# Forms are few, and small: programs repeat them.
_MOST_FORMS = 4096
_MOST_CODES = 64     # kept of a kernel, for calls of different sizes


class Form:
    """A kernel: one object for all calls, plans and programs, whatever the sizes.

    Its schedule is made, and its text written, when somebody asks for it.

    Attributes:
      structure: all that tells it from others.
      codes: what the vector machine has for it, by sizes; None where it has no code.
      heat: nanoseconds that calls have taken while it was not compiled, in all programs.
    """

    __slots__ = ("__weakref__", "_identity", "_schedule", "_source", "codes", "heat", "structure")

    def __init__(self, structure: KernelStructure):
        self.structure = structure
        self.codes: dict[Sizes, Code | None] = {}
        self.heat = 0.0
        self._identity: str | None = None
        self._schedule: Schedule | None = None
        self._source: str | None = None

    @property
    def schedule(self) -> Schedule:
        """What it computes, and when."""
        if self._schedule is None:
            self._schedule = schedule_of(self.structure)
        return self._schedule

    @property
    def source(self) -> str:
        """Mojo text, with ``KERNEL`` as a placeholder for its name."""
        if self._source is None:
            self._source = text_of(self.schedule)
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
                  for x in operands], writers()))
        return self._identity

    def code(self, sizes: Sizes) -> Code | None:
        """The vector machine's code; None where it has no instruction for what is computed."""
        try:
            return self.codes[sizes]
        except KeyError:
            if len(self.codes) >= _MOST_CODES:
                self.codes.clear()
            code = self.codes[sizes] = code_of(self.schedule, *sizes)
            return code

    def __repr__(self) -> str:
        names = dict.fromkeys(x.name for x in self.structure.values if x.name)
        return f"<Form {self.structure.kind}: {', '.join(names) or 'copy'}>"


class GroupCode:
    """The code for a call of a kernel, assembled when it is first asked for.

    Args:
      form: of the kernel.
      elements: of the space.
      length: elements of a sweep.
      has_rows: a point has several lines, all of which are reduced.
    """

    __slots__ = ("form", "sizes")

    def __init__(self, form: Form, elements: int, length: int, has_rows: bool):
        self.form = form
        self.sizes = sizes_of(form.structure.kind, elements, length, has_rows)

    @property
    def code(self) -> Code | None:
        """None where the machine has no instruction for what the kernel computes."""
        return self.form.code(self.sizes)


_forms: dict[KernelStructure, Form] = {}


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
