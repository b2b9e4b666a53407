"""Rows that one group computes where they are to be.

``c.at[i].add(a[:, j] * s)`` in a loop is two calls: a group computes what is added, and that is
scattered to a row of ``c``. Where nothing else reads what the group has computed, it may as well
write the row itself. The calls remain, for the machines; what a loop becomes as one function
(``loop_function.py``) has the group alone, if the row is there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from maxjax._base import dtypes
from maxjax._max.mojo.emit_fixed import is_left_to_machine
from maxjax._max.mojo.fusion import Group
from maxjax._max.mojo.layout import KernelIntegers, KernelLayout
from maxjax._max.mojo.nodes import Call, base_of
from maxjax._max.mojo.structure import (
    INNER,
    NEXT,
    KernelStructure,
    OperandStructure,
    ValueStructure,
)
from maxjax._max.mojo.tape import RowWrite, Step, Tape

if TYPE_CHECKING:
    from maxjax._max.mojo.part import Part

# Of an operand that is no operand of the call on the tape.
_NOWHERE = -1, 0
_KINDS = ("scatter_rows_set_", "scatter_rows_add_")


def row_writes(part: Part, steps: Sequence[int]) -> list[RowWrite]:
    """The rows among a part's units that one group may write.

    Args:
      steps: for each unit its first step on the tape, and at the end how many there are.
    """
    found = []
    for number, (unit, _) in enumerate(part.units):
        if isinstance(unit, Call) and unit.function.startswith(_KINDS):
            group = _group_of(part, number)
            if group is not None and all(steps[x + 1] == steps[x] + 1 for x in (group, number)):
                found.append(RowWrite(steps[group], steps[number]))
    return found


def _group_of(part: Part, write: int) -> int | None:
    """The unit that makes what a unit scatters; None where others read that, where the array is
    read or written from there on, or where the places are not known before."""
    unit = part.units[write][0]
    array, places, made = (part.owner(base_of(x)) for x in unit.inputs)
    group = part.first.get(made)
    if (group is None or not isinstance(part.units[group][0], Group) or part.last[made] != write
            or part.first.get(places, -1) >= group
            or made in {part.owner(output) for output in part.outputs}):
        return None
    for number in range(group, write):
        inner, detail = part.units[number]
        reads = {part.owner(node) for node in part.reads(inner, detail)}
        makes = {part.owner(node) for node in part.makes(inner, detail)}
        if array in reads | makes or made in (reads | makes if number != group else reads):
            return None
    kernel = part.kernels[part.units[group][0]]
    return group if sum(x.is_output for x in kernel.operands) == 1 else None


class RowGroup(NamedTuple):
    """A group that is given a row's place instead of its buffer's.

    Attributes:
      operands: those that are the row.
    """

    structure: KernelStructure
    call: KernelIntegers
    operands: list[int]


def written_out(step: Step) -> tuple[KernelStructure, KernelIntegers] | None:
    """The structure and the call of a group that a loop's function consists of; None of others."""
    *integers, code = step.integers
    structure = code.form.structure
    if code.code is None or any(x.source is not None for x in structure.values):
        return None
    call = KernelLayout(len(structure.operands)).read(integers)
    if call.threads > 1 or is_left_to_machine(code.form.schedule, call):
        return None
    return structure, call


def writing_row(tape: Tape, row: RowWrite) -> RowGroup | None:
    """A group that writes a row of an array, or adds to it; None where it does not go through it in
    order, or where the array is copied first."""
    group, write = written_out(tape.steps[row.group]), tape.steps[row.write]
    if group is None:
        return None
    structure, call = group
    integers = write.integers
    _, width, count = integers[8:11]
    number = next(k for k, x in enumerate(structure.operands) if x.is_output)
    output = structure.operands[number]
    if (structure.kind != "map" or not structure.has_inner or call.point_dims or count != 1
            or call.length != width or output.stride != NEXT or call.strides[number] != 1
            or call.places[number] != tuple(integers[4:6]) or integers[:2] != integers[6:8]
            or len(structure.outputs) != 1 or output.dtype == dtypes.bool_):
        return None
    if write.function.startswith("scatter_rows_set_"):
        return RowGroup(structure, call, [number])
    (value, _), = structure.outputs
    there = len(structure.operands)
    load = ValueStructure("load", "", output.dtype, (), there)
    total = ValueStructure("apply", "add", output.dtype, (len(structure.values), value))

    return RowGroup(
        structure._replace(
            values=(*structure.values, load, total),
            operands=(*structure.operands, OperandStructure(
                output.dtype, False, False, NEXT, INNER)),
            outputs=((len(structure.values) + 1, number),)),
        call._replace(places=[*call.places, _NOWHERE], strides=[*call.strides, 1]),
        [number, there])
