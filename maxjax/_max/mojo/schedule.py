"""What a group computes, and when: decided once, from its structure, for both forms that it has.

A kernel goes through its space by points (the kept dimensions except the inner one), at each point
by rows (the reduced dimensions except the inner one), and sweeps each row. Each value is computed
in the outermost scope possible: once a call, once a point, once a row, or in the sweep.

A *phase* is a loop over a point's rows, with what is computed before it and after it. A map has one
phase, without reductions; a map of single elements has none, and all of it is computed once a call.
Where the inner dimension is reduced ("rows"), each phase gathers the reductions that need no later
one, and what is to be stored over the whole space once they are known is one more. Where it is kept
("columns"), a point is a block of columns; its only phase gathers all reductions, and what follows
from them is computed at the end.

``emit.py`` prints a schedule as Mojo text, and ``bytecode.py`` makes words of it for the vector
machine. Neither decides anything that is said here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import NamedTuple, NoReturn

from maxjax._base.dtypes import name_of
from maxjax._base.errors import InternalError
from maxjax._max.elementwise_kernels import CHEAP
from maxjax._max.mojo.structure import (
    BOOL,
    INNER,
    POINTS,
    ROWS,
    KernelStructure,
    OperandStructure,
    ValueStructure,
)

# Where values are computed, from the widest scope to the narrowest.
CALL, POINT, ROW, SWEEP = range(4)
# The loops within each scope.
_WITHIN = (INNER | ROWS | POINTS, INNER | ROWS, INNER, 0)


class Value:
    """A value that a kernel computes.

    Attributes:
      kind, name, dtype, operand, source: as in `ValueStructure`.
      number: its place among the kernel's values.
      varies: the sum of the loops along which it differs, POINTS only where no other decides.
      phase: the length of the longest chain of reductions it depends on.
      scope: where it is computed.
    """

    __slots__ = ("dtype", "inputs", "kind", "name", "number", "operand", "phase", "scope",
                 "source", "varies")

    def __init__(self, structure: ValueStructure, inputs: tuple[Value, ...], number: int = 0):
        self.kind, self.name, self.dtype, _, self.operand, self.source = structure
        self.inputs = inputs
        self.number = number
        self.varies = 0
        self.phase = 0
        self.scope = CALL

    def __repr__(self) -> str:
        return f"v{self.number}"

    def __str__(self) -> str:
        if self.operand >= 0:
            return f"v{self.number} = {self.kind} operand {self.operand}"
        return f"v{self.number} = {self.name}({', '.join(map(repr, self.inputs))})"


class Store(NamedTuple):
    """A value, and the operand that it is stored to."""

    value: Value
    operand: int


class Phase(NamedTuple):
    """A loop over a point's rows, and what is around it.

    Attributes:
      line: computed before it, once a point.
      full: computed in it, once a row or in its sweep, in this order.
      gathered: reductions of what it computes, which are known when it is over.
      stored: by its sweep.
      end: computed from the reductions of columns.
      last: stored when all of that is known.
    """

    line: tuple[Value, ...] = ()
    full: tuple[Value, ...] = ()
    gathered: tuple[Value, ...] = ()
    stored: tuple[Store, ...] = ()
    end: tuple[Value, ...] = ()
    last: tuple[Store, ...] = ()


class Schedule(NamedTuple):
    """What a group computes, and when.

    Attributes:
      structure: of the kernel.
      values: each after those that it is computed from.
      call: computed once a call.
      phases: one after the other, at each point.
      stored: once a call, of single elements.
      saved: swept values that the first phase that needs them keeps for later ones: to compute them
        again would cost more than to read them.
    """

    structure: KernelStructure
    values: tuple[Value, ...]
    call: tuple[Value, ...]
    phases: tuple[Phase, ...] = ()
    stored: tuple[Store, ...] = ()
    saved: tuple[Value, ...] = ()

    @property
    def operands(self) -> tuple[OperandStructure, ...]:
        return self.structure.operands

    def __str__(self) -> str:
        operands = ", ".join(name_of(x.dtype) for x in self.operands)
        parts: list[tuple[str, Collection[object]]] = [("once", (*self.call, *_said(self.stored)))]
        for number, phase in enumerate(self.phases):
            gathered = [f"v{x.number} gathers {x.name}({x.inputs[0]!r})" for x in phase.gathered]
            parts += [
                (f"phase {number}, a point", phase.line),
                (f"phase {number}, a row", [x for x in phase.full if x.scope == ROW]),
                (f"phase {number}, all", [*(x for x in phase.full if x.scope == SWEEP), *gathered,
                                          *_said(phase.stored)]),
                (f"phase {number}, end", (*phase.end, *_said(phase.last)))]
        lines = [f"{self.structure.kind} of {operands}"]
        left = set(self.saved)      # not saved yet
        for name, held in parts:
            lines += [f"  {name}:"] if held else []
            for x in held:
                text = f"{x}, saved" if x in left else f"{x!r}, saved" if x in self.saved else x
                lines.append(f"    {text}")
            left.difference_update(held)
        return "\n".join(lines)


def _said(stores: Iterable[Store]) -> list[str]:
    return [f"operand {number} = v{value.number}" for value, number in stores]


def schedule_of(structure: KernelStructure) -> Schedule:
    """The schedule of a kernel, checked.

    Raises:
      InternalError: the structure is of no group that can be computed; see `check_schedule`.
    """
    values = _classified(structure)
    outputs = [Store(values[value], number) for value, number in structure.outputs]
    call = tuple([value for value in values if value.scope == CALL])
    schedule = Schedule(structure, tuple(values), call)
    if structure.kind == "map" and not structure.has_inner:
        schedule = schedule._replace(stored=tuple(outputs))
    elif structure.kind == "map":
        schedule = schedule._replace(phases=(Phase(
            tuple([value for value in values if value.scope == POINT]),
            tuple([value for value in values if value.scope == SWEEP]), (), tuple(outputs)),))
    elif structure.kind == "rows":
        schedule = _of_rows(schedule, outputs)
    else:
        schedule = schedule._replace(phases=(_of_columns(schedule, outputs),))
    check_schedule(schedule)
    return schedule


def _classified(structure: KernelStructure) -> list[Value]:
    """The values: along which loops they vary, in which phase they are known, and their scopes."""
    columns = structure.kind == "columns"
    values: list[Value] = []
    for number, described in enumerate(structure.values):
        try:
            value = Value(described, tuple([values[x] for x in described.inputs]), number)
        except IndexError:
            raise InternalError(f"value {number} of a group is computed from values "
                                f"{described.inputs}, of which not all come before it") from None
        if value.operand >= 0:
            value.varies = structure.operands[value.operand].varies
        elif value.kind == "reduce":
            value.varies = INNER if columns else 0
            value.phase = value.inputs[0].phase + 1
        else:
            for x in value.inputs:
                value.varies |= x.varies
                value.phase = max(value.phase, x.phase)
        if value.varies & INNER:
            value.scope = SWEEP
        elif value.varies & ROWS:
            value.scope = ROW
        elif value.varies or value.phase:
            # A block of columns has nothing that is computed once a point.
            value.scope = ROW if columns else POINT
        values.append(value)
    return values


def _is_full(structure: KernelStructure, number: int) -> bool:
    """Whether an output has elements along the reduced dimensions."""
    reduced = ROWS if structure.kind == "columns" else INNER | ROWS
    return bool(structure.operands[number].varies & reduced)


def _of_rows(schedule: Schedule, outputs: Sequence[Store]) -> Schedule:
    structure, values = schedule.structure, schedule.values
    full = [store for store in outputs if _is_full(structure, store.operand)]
    reductions = [value for value in values if value.kind == "reduce"]
    points = [value for value in values if value.scope == POINT and value.kind != "reduce"]
    swept: set[Value] = set()
    saved: set[Value] = set()

    def is_saved(value: Value) -> bool:
        if value not in swept or structure.has_rows or not _is_costly(value):
            return False
        saved.add(value)
        return True

    phases: list[Phase] = []
    for number in range(max([value.phase for value in values]) + 1):
        gathered = tuple([value for value in reductions if value.phase == number + 1])
        stored = tuple([store for store in full if store.value.phase == number])
        needed = _needed(values, gathered, stored, is_saved)
        swept.update([value for value in needed if value.scope == SWEEP])
        phases.append(Phase(tuple([value for value in points if value.phase == number]),
                            needed, gathered, stored))
    phases[-1] = phases[-1]._replace(last=tuple([x for x in outputs if x not in full]))
    return schedule._replace(phases=tuple(phases), saved=tuple([x for x in values if x in saved]))


def _of_columns(schedule: Schedule, outputs: Sequence[Store]) -> Phase:
    values = schedule.values
    stored = tuple([store for store in outputs if _is_full(schedule.structure, store.operand)])
    last = tuple([store for store in outputs if store not in stored])
    gathered = tuple([value for value in values if value.kind == "reduce"])
    return Phase((), _needed(values, gathered, stored), gathered, stored,
                 _needed(values, (), last), last)


def _needed(values: Iterable[Value], gathered: Iterable[Value], stored: Iterable[Store],
            is_saved: Callable[[Value], bool] = lambda value: False) -> tuple[Value, ...]:
    """The values that reductions and stores need, in order, other than what is computed in wider
    scopes, and reductions.

    Args:
      is_saved: whether a value is there from an earlier phase: nothing is needed for it.
    """
    found: set[Value] = set()
    stack = [value.inputs[0] for value in gathered]
    stack += [value for value, _ in stored]
    while stack:
        value = stack.pop()
        if value.scope >= ROW and value not in found and value.kind != "reduce":
            found.add(value)
            if not is_saved(value):
                stack += value.inputs
    return tuple([value for value in values if value in found])


def _is_costly(value: Value) -> bool:
    """Whether recomputing a swept value costs more than reading it."""
    if value.kind != "apply" or value.dtype == BOOL:
        return False
    if value.name not in CHEAP:
        return True
    return any(_is_costly(x) for x in value.inputs if x.scope == SWEEP)


# --- the checks ---
def check_schedule(schedule: Schedule) -> None:
    """Refuses a schedule that would give wrong values.

    Raises:
      InternalError: a value is used before it is computed, or where it is not known; it is computed
        in a wider scope than it varies in; what is stored is not computed, or is not all that the
        kernel stores; an operand is both read and stored to. The message names the value.
    """
    _Checks(schedule).run()


def check_memory(group: object, stored: Collection[object], read: Iterable[object]) -> None:
    """Refuses a group that reads memory that it stores to, in whatever view: what it would read
    there is not stored yet, or already another value.

    Args:
      stored, read: what the elements lie in that the group stores and reads.

    Raises:
      InternalError: names the group and the memory.
    """
    for memory in read:
        if memory in stored:
            raise InternalError(f"{group!r} reads {memory!r}, which it stores")


class _Checks:
    def __init__(self, schedule: Schedule):
        self.schedule = schedule
        self.stored: list[int] = []
        self.left = set(schedule.saved)     # not computed yet

    def run(self) -> None:
        schedule = self.schedule
        known: set[Value] = set()
        self.computed(schedule.call, (CALL,), known)
        self.store(schedule.stored, known)
        for phase in schedule.phases:
            self.computed(phase.line, (POINT,), known)
            inside = set(known)
            self.computed(phase.full, (ROW, SWEEP), inside)
            for value in phase.gathered:
                if value.kind != "reduce" or value.inputs[0] not in inside:
                    self.refuse(value, "it gathers what is not computed")
            self.store(phase.stored, inside)
            known.update(phase.gathered)
            self.computed(phase.end, (ROW, SWEEP), known)
            for value in phase.end:
                if value.varies & ROWS:
                    self.refuse(value, "it is computed when no row is left")
            self.store(phase.last, known)
        wanted = sorted(number for _, number in schedule.structure.outputs)
        if sorted(self.stored) != wanted:
            raise InternalError(f"operands {self.stored} are stored, and should be {wanted}\n"
                                f"{schedule}")

    def computed(self, values: Iterable[Value], scopes: Collection[int], known: set[Value]
                 ) -> None:
        """Adds values to those that are known."""
        operands = self.schedule.operands
        for value in values:
            scope, varies = value.scope, value.varies
            if value.kind == "reduce" or scope not in scopes:
                self.refuse(value, "it is computed in another scope than its own")
            if varies & _WITHIN[scope]:
                self.refuse(value, "it varies in its scope")
            if value.operand >= 0:
                if operands[value.operand].is_output:
                    self.refuse(value, "it reads what is stored")
                if varies != operands[value.operand].varies:
                    self.refuse(value, "it varies otherwise than its operand")
            elif value not in self.schedule.saved or value in self.left:
                for x in value.inputs:
                    if x not in known:
                        self.refuse(value, f"it is computed where {x!r} is not known")
                    if x.scope > scope:
                        self.refuse(value, f"{x!r} has a narrower scope")
                    if x.varies & ~varies:
                        self.refuse(value, f"{x!r} varies more")
            known.add(value)
        self.left.difference_update(values)

    def store(self, stores: Iterable[Store], known: set[Value]) -> None:
        for value, number in stores:
            if value not in known:
                self.refuse(value, "it is stored where it is not known")
            if not self.schedule.operands[number].is_output:
                self.refuse(value, "it is stored to an operand that is read")
            self.stored.append(number)

    def refuse(self, value: Value, message: str) -> NoReturn:
        raise InternalError(f"{value}: {message}\n{self.schedule}")
