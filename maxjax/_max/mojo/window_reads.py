"""Windows at computed places that groups read where they are.

``c + a[:, j] * b[i, j]`` in a loop is some calls: the column and the number are read into buffers,
of which a group computes. Where nothing but groups reads a buffer, and nothing writes to the array
meanwhile, they may as well read the array itself. The calls remain, for the machines; what a loop
becomes as one function (``loop_function.py``) has the groups alone.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from maxjax._max.mojo.emit_fixed import has_fixed_function, is_left_to_machine
from maxjax._max.mojo.fusion import Group
from maxjax._max.mojo.layout import KernelIntegers
from maxjax._max.mojo.nodes import Call, Constant, Input, Node, base_of
from maxjax._max.mojo.pack_integers import merged
from maxjax._max.mojo.row_writes import RowGroup, written_out
from maxjax._max.mojo.schedule import schedule_of
from maxjax._max.mojo.structure import INNER, NEXT, SAME, STRIDED, KernelStructure
from maxjax._max.mojo.tape import RowWrite, Step, Tape, WindowRead, WindowUpdate
from maxjax._max.mojo.window_updates import Fused

if TYPE_CHECKING:
    from maxjax._max.mojo.part import Part

Dims = list[tuple[int, int, int]]       # sizes, strides in the array and in the buffer


def window_reads(part: Part, steps: Sequence[int], writes: Sequence[WindowUpdate | RowWrite],
                 taken: Collection[int]) -> list[WindowRead]:
    """The windows among a part's units that only groups read.

    Args:
      steps: for each unit its first step on the tape, and at the end how many there are.
      writes: the windows and rows that groups compute where they are.
      taken: steps that read such windows.
    """
    units = {step: number for number, step in enumerate(steps[:-1])}
    written = {units[write.group]: base_of(part.units[units[write.write]][0].inputs[0])
               for write in writes}
    found = []
    for number, (unit, _) in enumerate(part.units):
        if steps[number] not in taken and isinstance(unit, Call) and unit.function.startswith(
                ("read_window_", "gather_rows_")):
            groups = _groups_that_read(part, number)
            array = part.owner(base_of(unit.inputs[0]))
            if groups and all(steps[x + 1] == steps[x] + 1 for x in (number, *groups)) and not any(
                    _overlap(part, array, part.owner(written[x])) for x in groups if x in written):
                found.append(WindowRead(steps[number], [steps[x] for x in groups]))
    return found


def _groups_that_read(part: Part, read: int) -> list[int]:
    """The units that read what a unit has read; none where others do, or where the array is not
    there any more, or not as it was."""
    array = part.owner(base_of(part.units[read][0].inputs[0]))
    buffer = next(map(part.owner, part.makes(*part.units[read])), None)
    if buffer is None or buffer in {part.owner(output) for output in part.outputs}:
        return []
    last = part.last[buffer]
    # What dies at once may lie where the next calls have their own temporaries.
    if not isinstance(array, (Input, Constant)) and part.last[array] < last:
        return []
    groups = []
    for number in range(read + 1, last + 1):
        unit, detail = part.units[number]
        if any(_overlap(part, array, part.owner(node)) for node in part.makes(unit, detail)):
            return []
        if buffer in map(part.owner, part.reads(unit, detail)):
            if not isinstance(unit, Group):
                return []
            groups.append(number)
    return groups


def _overlap(part: Part, a: Node, b: Node) -> bool:
    """Whether two buffers have memory in common."""
    (slot, begin), (other, first) = part.place(a), part.place(b)
    return slot == other and begin < first + b.nbytes and first < begin + a.nbytes


class Window(NamedTuple):
    """A window or a row that a step reads.

    Attributes:
      place: where the step would write it.
      dims: of neighbours none can be one.
      itemsize: bytes of an element.
    """

    place: tuple[int, int]
    dims: Dims
    itemsize: int

    @property
    def size(self) -> int:
        return math.prod(size for size, _, _ in self.dims)

    def has(self, place: tuple[int, int]) -> bool:
        """Whether a place is in it."""
        distance = place[1] - self.place[1]
        return place[0] == self.place[0] and 0 <= distance < self.size * self.itemsize


def window_of(step: Step) -> Window | None:
    """What a step reads; None where it is several rows."""
    integers = step.integers
    kind, _, bits = step.function.rpartition("_")
    if kind == "read_window":
        rank = integers[6]
        part, strides, lines = (integers[7 + k * rank:7 + (k + 1) * rank] for k in range(3))
        dims = merged([*zip(part, strides, lines, strict=True)])
    else:
        outer, size, inner, count = integers[6:10]
        if count != 1:
            return None
        dims = merged([(outer, size * inner, inner), (inner, 1, 1)])
    return Window(tuple(integers[4:6]), dims or [(1, 1, 1)], int(bits) // 8)


class InPlace(NamedTuple):
    """A group that reads windows where they are.

    Attributes:
      operands: of those that it reads there, the step that would have read it, and by how many
        elements the operand begins after the window does.
    """

    structure: KernelStructure
    call: KernelIntegers
    operands: Mapping[int, tuple[int, int]]


def reading_in_place(tape: Tape, updates: Mapping[int, Fused | RowGroup]) -> dict[int, InPlace]:
    """The groups of a tape that read windows where they are, or compute them there, by their steps.

    Args:
      updates: the latter.
    """
    found = {number: InPlace(group.structure, group.call, {}) for number, group in updates.items()}
    for read, groups in tape.reads:
        new = {number: _with_window(tape, number, found.get(number), read) for number in groups}
        known = {number: group for number, group in new.items() if group is not None}
        if len(known) == len(new):
            found |= known
    return found


def _with_window(tape: Tape, number: int, group: InPlace | None, read: int) -> InPlace | None:
    """A group that reads a window where it is as well, if it can.

    Args:
      group: what it was so far, if it is known to have a text.
    """
    if group is None:
        known = written_out(tape.steps[number])
        if known is None:
            return None
        group = InPlace(*known, {})
    group = read_where_it_is(group, read, tape.steps[read])
    if group is None:
        return None
    schedule = schedule_of(group.structure)
    is_suited = (has_fixed_function(schedule, group.call)
                 and not is_left_to_machine(schedule, group.call))
    return group if is_suited else None


def read_where_it_is(group: InPlace, read: int, step: Step) -> InPlace | None:
    """A group that reads what a step would read where it is, too; None where it cannot read that in
    loops that it has, or would go through what does not lie together again and again.

    Args:
      read: the step's number.
    """
    window = window_of(step)
    if window is None:
        return None
    found: InPlace | None = group
    for number, (place, x) in enumerate(
            zip(group.call.places, group.structure.operands, strict=True)):
        if not x.is_iota and not x.is_output and window.has(place) and found is not None:
            found = _there(found, number, read, window)
    return found


def _there(group: InPlace, number: int, read: int, window: Window) -> InPlace | None:
    """A group with one more operand that it reads where it is."""
    structure, call, _ = group
    if structure.operands[number].dtype.itemsize != window.itemsize:
        return None
    size, _, _ = window.dims[-1]
    if (len(window.dims) > 1 and call.strides[number] == 1 and structure.kind == "map"
            and call.length > size and call.length % size == 0):
        # A sweep over lines of the window is one over each of them.
        call = call._replace(length=size, point_dims=[
            *call.point_dims, [call.length // size, *(x * size for x in call.strides)]])
    loops = [(call.length, call.strides[number]),
             *((dim[0], dim[1 + number]) for dim in (*call.point_dims, *call.row_dims))]
    placed = _strides_there(window.dims, (call.places[number][1] - window.place[1])
                            // window.itemsize, loops)
    if placed is None:
        return None
    operand = structure.operands[number]
    offset, (inner, *outer) = placed
    stride = SAME if inner == 0 else NEXT if inner == 1 else STRIDED
    operand = structure.operands[number]
    if call.strides[number] and stride == STRIDED and operand.stride != STRIDED and (
            math.prod(count for count, _ in loops) > window.size
            or structure.kind == "rows" and not _is_swept_once(structure)):
        return None     # it is read again and again
    operands = list(structure.operands)
    if call.strides[number]:
        operands[number] = operand._replace(stride=stride)

    def replaced(numbers: Sequence[int], position: int, value: int) -> list[int]:
        return [value if k == position else x for k, x in enumerate(numbers)]

    points = len(call.point_dims)
    dims: list[Any] = [replaced(dim, 1 + number, x) for dim, x in zip(
        (*call.point_dims, *call.row_dims), outer, strict=True)]
    return InPlace(
        structure._replace(operands=tuple(operands)),
        call._replace(strides=replaced(call.strides, number, inner), point_dims=dims[:points],
                      row_dims=dims[points:]),
        {**group.operands, number: (read, offset)})


def _is_swept_once(structure: KernelStructure) -> bool:
    """Whether all that is wanted of a row is one reduction of it."""
    return (sum(value.kind == "reduce" for value in structure.values) == 1
            and not any(x.is_output and x.varies & INNER for x in structure.operands))


def _strides_there(dims: Dims, begin: int, loops: Sequence[tuple[int, int]]
                   ) -> tuple[int, list[int]] | None:
    """Where loops over a buffer begin in the array that it is a window of, and their strides there;
    None where a loop goes from one line of the window to the next.

    Args:
      loops: sizes and strides.
    """
    if len(dims) == 1:
        step = dims[0][1]
        return begin * step, [stride * step for _, stride in loops]
    first, offset = [], 0
    for _, step, line in dims:
        first.append(begin // line)
        offset += begin // line * step
        begin %= line
    least, most = list(first), list(first)
    strides = []
    for count, stride in loops:
        if stride == 0 or count == 1:
            strides.append(stride)
            continue
        k = next((k for k, (_, _, line) in enumerate(dims) if stride % line == 0), None)
        if k is None:
            return None
        _, step, line = dims[k]
        far = stride // line * (count - 1)
        least[k], most[k] = least[k] + min(far, 0), most[k] + max(far, 0)
        strides.append(stride // line * step)
    if any(low < 0 or high >= size
           for low, high, (size, _, _) in zip(least, most, dims, strict=True)):
        return None
    return offset, strides
