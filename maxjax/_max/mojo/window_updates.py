"""Windows at computed places that one group computes anew where they are.

``x.at[:, i].set(2 * x[:, i])`` in a loop is three calls: the column is read into a buffer, a group
computes the new one into another, and that is written over the old one. Where nothing else reads
the buffers, the group may as well read and write the column itself. The calls remain, for the
machines; what a loop becomes as one function (``loop_function.py``) has the group alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from maxjax._max.mojo.fusion import Group
from maxjax._max.mojo.layout import KernelIntegers
from maxjax._max.mojo.nodes import Call, base_of
from maxjax._max.mojo.pack_integers import merged
from maxjax._max.mojo.structure import NEXT, SAME, STRIDED, KernelStructure
from maxjax._max.mojo.tape import Tape, WindowUpdate

if TYPE_CHECKING:
    from maxjax._max.mojo.part import Part

# Integers of a window's calls before its sizes: the places of the operands and the result.
_READ, _WRITE = 6, 8


def window_updates(part: Part, steps: Sequence[int]) -> list[WindowUpdate]:
    """The updates of windows among a part's units.

    Args:
      steps: for each unit its first step on the tape, and at the end how many there are.
    """
    reads: dict[Any, int] = {}      # by what tells windows apart
    found = []
    for number, (unit, _) in enumerate(part.units):
        if not isinstance(unit, Call):
            continue
        if unit.function.startswith("read_window_"):
            reads[_window(part, unit)] = number
        elif unit.function.startswith("write_window_"):
            read = reads.get(_window(part, unit))
            group = None if read is None else _group_between(part, read, number)
            if read is not None and group is not None:
                update = WindowUpdate(steps[read], steps[group], steps[number])
                if all(steps[x + 1] == steps[x] + 1 for x in (read, group, number)):
                    found.append(update)
    return found


def _window(part: Part, unit: Call) -> tuple[Any, ...]:
    """What identifies a window: its array, its places and its sizes."""
    return (part.owner(base_of(unit.inputs[0])), unit.inputs[1], tuple(unit.integers))


def _group_between(part: Part, read: int, write: int) -> int | None:
    """The unit that alone reads what was read, and alone makes what is written; None where there
    is none, or where the array is touched between."""
    array, made = (part.owner(base_of(part.units[write][0].inputs[k])) for k in (0, 2))
    before = next(map(part.owner, part.makes(*part.units[read])), None)
    group = part.first.get(made)
    if (before is None or group is None or not read < group < write
            or {before, made} & {part.owner(output) for output in part.outputs}
            or part.last[before] != group or part.last[made] != write):
        return None
    for number in range(read + 1, write):
        unit, detail = part.units[number]
        touched = {part.owner(node) for node in (*part.reads(unit, detail),
                                                 *part.makes(unit, detail))}
        if array in touched or number != group and {before, made} & touched:
            return None
    unit = part.units[group][0]
    owners = [(part.owner(x.node), x.is_output) for x in part.kernels[unit].operands] \
        if isinstance(unit, Group) else []
    return group if owners.count((before, False)) == owners.count((made, True)) == 1 else None


class Fused(NamedTuple):
    """A group that is given a window's place instead of its buffers'."""

    structure: KernelStructure
    call: KernelIntegers
    windows: list[int]      # of the operands, those that are the window


def fused(tape: Tape, update: WindowUpdate, structure: KernelStructure, call: KernelIntegers
          ) -> Fused | None:
    """The group with the window's strides; None where it does not go through it in order."""
    read, write = tape.steps[update.read].integers, tape.steps[update.write].integers
    is_same = (read[:4] == write[:4] and write[:2] == write[6:8]
               and read[_READ:] == write[_WRITE:])
    numbers = [number for number, (place, x) in enumerate(
        zip(call.places, structure.operands, strict=True))
        if not x.is_iota and place == tuple((write if x.is_output else read)[4:6])]
    if not is_same or structure.kind != "map" or call.point_dims or len(numbers) != 2:
        return None
    if any(x.stride != NEXT if number in numbers else x.stride == STRIDED
           for number, x in enumerate(structure.operands)):
        return None
    rank = write[_WRITE]
    part, strides, lines = (write[_WRITE + 1 + k * rank:_WRITE + 1 + (k + 1) * rank]
                            for k in range(3))
    dims = merged([*zip(part, strides, lines, strict=True)])
    if math.prod(size for size, _, _ in dims) != call.length or not dims:
        return None
    *outer, (length, step, _) = dims
    stride = SAME if step == 0 else NEXT if step == 1 else STRIDED
    return Fused(
        structure._replace(operands=tuple([
            x._replace(stride=stride) if number in numbers else x
            for number, x in enumerate(structure.operands)])),
        call._replace(
            length=length,
            strides=[step if number in numbers else x for number, x in enumerate(call.strides)],
            point_dims=[[size, *(along if number in numbers else line * x
                                 for number, x in enumerate(call.strides))]
                        for size, along, line in outer]),
        numbers)
