"""Checks that the calls of a program, and its values' locations, are well formed.

Run in tests. The memory that each step needs is recomputed from the units and the tape's integers,
not taken from the planner's records.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from maxjax._base.errors import InternalError
from maxjax._max.host_step import HostStep
from maxjax._max.mojo.abi import Move, ScanCall, SwitchCall, WhileCall
from maxjax._max.mojo.arena import ALIGNMENT
from maxjax._max.mojo.bytecode import MACHINE as VECTOR_MACHINE
from maxjax._max.mojo.check import check_groups, check_nodes, require
from maxjax._max.mojo.check_code import check_code, check_loop
from maxjax._max.mojo.context import THREADS
from maxjax._max.mojo.emit_loop import called, numbers_of
from maxjax._max.mojo.forms import GroupCode
from maxjax._max.mojo.fusion import Group
from maxjax._max.mojo.gather import Kernel, Operand
from maxjax._max.mojo.layout import MOST_DIMENSIONS, KernelIntegers, KernelLayout
from maxjax._max.mojo.nodes import (
    ON_HOST,
    Call,
    Composed,
    Constant,
    Empty,
    Input,
    Iota,
    Loop,
    Node,
    Overlay,
    Result,
    base_of,
    is_update,
)
from maxjax._max.mojo.overlays import may_overwrite
from maxjax._max.mojo.part import Part
from maxjax._max.mojo.plan import Plan
from maxjax._max.mojo.reuse import reads
from maxjax._max.mojo.scalar_code import MACHINE, LoopCode
from maxjax._max.mojo.tape import CALL_PYTHON, Step, Tape


class CheckedPlan(Plan):
    """A plan whose every stage is checked."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        check_plan(self)

    def part(self, wanted: Sequence[Node], carried: Mapping[Node, Node]) -> Part:
        check_nodes(wanted)
        part = super().part(wanted, carried)
        check_groups(part.fusion)
        return part

    def finished(self, part: Part) -> None:
        super().finished(part)
        check_part(part)


def check_plan(plan: Plan) -> None:
    """Checks the parts of a plan other than its steps.

    Raises:
      InternalError: kernels or functions are not those that its tapes call, a constant is
        misplaced, or a result refers to nothing that exists.
    """
    steps = list(_all_steps(plan.tape))
    for what, held, named in (
            ("kernels", plan.kernels, {step.kernel for step in steps} - {None}),
            ("functions", plan.functions, _functions(steps))):
        require(set(held) == named, "the plan", f"its {what} are not those that its calls name")
    require(len(plan.constants) % ALIGNMENT == 0, "the plan", "its constants are not aligned")
    results = sum(type(x) is tuple for x in plan.outputs)
    require(results == plan.written, "the plan",
            f"it writes {plan.written} results, and has {results}")
    numbers = [x for x in plan.outputs if type(x) is int]
    first_result = plan.arena_slot - plan.written
    require(all(0 <= number < first_result for number in numbers), "the plan",
            f"its results are arguments {numbers} of {first_result}")


def _all_steps(tape: Tape) -> Iterator[Step]:
    for step in tape.steps:
        yield step
        for x in step.integers:
            if isinstance(x, Tape):
                yield from _all_steps(x)


def _functions(steps: Sequence[Step]) -> set[str]:
    codes = [x.code for step in steps if step.kernel is None for x in step.integers
             if isinstance(x, (GroupCode, LoopCode))]
    named = {step.function for step in steps} - {"", ON_HOST}
    named |= {x.native_name or CALL_PYTHON for step in steps for x in step.integers[-1:]
              if isinstance(x, HostStep)}
    kernels = [called(x) for step in steps if step.kernel is not None for x in step.integers
               if isinstance(x, LoopCode)]
    return named.union(*kernels, *(code.functions for code in codes if code is not None))


def _is_group(step: Step) -> bool:
    """Whether a step is the call of a group, by a kernel or by the vector machine."""
    return bool(step.integers) and isinstance(step.integers[-1], GroupCode)


def check_part(part: Part) -> None:
    """Checks the steps of a program, or of a loop's body.

    Raises:
      InternalError: a unit reads a value that is not computed yet, a value is outside the arena or
        overlaps a live one, or a call's integers are not those its function reads. Names the node,
        the group or the step.
    """
    lives = _check_order(part)
    _check_blocks(part.arena.blocks, part.arena.size)
    _check_places(part, lives)
    groups = [unit for unit, _ in part.units if isinstance(unit, Group)]
    calls = [step for step in part.tape.steps if _is_group(step)]
    require(len(groups) == len(calls), "the part",
            f"it calls {len(calls)} groups, and has {len(groups)}")
    for group, step in zip(groups, calls, strict=True):
        require(step.integers[-1].form is part.kernels[group].form and (
            step.function == VECTOR_MACHINE if step.kernel is None
            else step.kernel is step.integers[-1].form), group, "its step calls another kernel")
        _check_kernel_call(part, group, step)
    counts = _counts(part)
    for step in part.tape.steps:
        if not _is_group(step):
            _check_call(part, step, counts)


# --- memory ---
def _check_order(part: Part) -> dict[Node, tuple[int, int]]:
    """Each unit follows all that it reads; returns the first and last unit of each buffer."""
    made: dict[Node, tuple[int, int]] = {}
    for number, (unit, detail) in enumerate(part.units):
        for node in part.makes(unit, detail):
            owner = part.owner(node)
            made[owner] = (made.get(owner, (number, 0))[0], number)
    lives = dict(made)
    for number, (unit, detail) in enumerate(part.units):
        for node in part.reads(unit, detail):
            owner = part.owner(node)
            if isinstance(owner, (Input, Constant, Empty)):
                continue
            require(owner in made, unit, f"it reads {owner!r}, which is nowhere made")
            require(made[owner][1] < number, unit, f"it reads {owner!r} before it is made")
            lives[owner] = (lives[owner][0], max(number, lives[owner][1]))
    return lives


def _check_blocks(blocks: Sequence[Sequence[int]], size: int) -> None:
    """No two blocks of an arena overlap while both live."""
    begins: list[int] = []
    alive: dict[int, Sequence[int]] = {}
    ends: list[tuple[int, int]] = []
    for block in sorted(blocks, key=lambda block: block[2]):
        begin, end, first, last = block
        require(0 <= begin < end <= size and begin % ALIGNMENT == 0, block,
                f"a block that is not within the arena of {size} bytes")
        while ends and ends[0][0] < first:
            over = heapq.heappop(ends)[1]
            del alive[over], begins[bisect.bisect_left(begins, over)]
        place = bisect.bisect_left(begins, begin)
        for other in begins[max(place - 1, 0):place + 1]:
            require(alive[other][1] <= begin or end <= other, block,
                    f"a block of the arena that overlaps {list(alive[other])}")
        begins.insert(place, begin)
        alive[begin] = block
        heapq.heappush(ends, (last, begin))


def _check_places(part: Part, lives: dict[Node, tuple[int, int]]) -> None:
    """Each value has its own location; in the arena, for as long as it lives.

    It may be that of another value whose last reader overwrites it, and that of an input whose
    memory an output takes.
    """
    end = len(part.units)
    blocks: dict[int, list[Sequence[int]]] = {}
    for block in part.arena.blocks:
        blocks.setdefault(block[0], []).append(block)
    tenants: dict[Any, list[tuple[int, int, Node]]] = {}
    for node, (first, last) in lives.items():
        require(node in part.places, node, "it has no place")
        slot, offset = part.places[node]
        require(0 <= slot < part.plan.slots and offset >= 0, node,
                f"its place is slot {slot}, byte {offset}")
        if slot != part.arena_slot:
            tenants.setdefault((slot, offset), []).append(
                (first, end if node in part.outputs else last, node))
            continue
        holding = [block for block in blocks.get(offset, ())
                   if block[2] <= first and last <= block[3]
                   and offset + node.nbytes <= block[1]]
        require(len(holding) == 1, node,
                f"it lives in units {first} to {last}, and has no block of the arena there")
        tenants.setdefault(id(holding[0]), []).append((first, last, node))
    for node, source in part.reuse.of.items():
        require(part.place(node) == part.place(source), node,
                f"it takes the memory of {source!r}, and is elsewhere")
    for output, source in part.reuse.inputs.items():
        readers = [number for number, (unit, detail) in enumerate(part.units)
                   if source in map(part.owner, part.reads(unit, detail))]
        tenants[part.places[output]].append((-1, max(readers, default=-1), source))
    for held in tenants.values():
        held.sort(key=lambda life: life[:2])
        for (_, last, before), (first, _, node) in zip(held, held[1:], strict=False):
            require(last < first or _is_laid_over(part, node, before, first) or (
                last == first and _overwrites(part, part.units[first][0], node, before)), node,
                f"it lies where {before!r} still lives")


def _is_laid_over(part: Part, node: Node, before: Node, first: int) -> bool:
    """Whether a value is another, of which only what writes a window is read where it writes."""
    return isinstance(node, Overlay) and base_of(node.ground) is before \
        and part.units[first] == (node, "fill") and may_overwrite(part, node, before, first)


def _overwrites(part: Part, unit: Any, node: Node, before: Node) -> bool:
    """Whether a unit may write a value where it reads another: once, and no element before it has
    read that one."""
    if reads(part, unit).count(before) != 1 or node.nbytes != before.nbytes:
        return False
    if isinstance(unit, Group):
        kernel = part.kernels[unit]
        accesses = {x.access for x in kernel.operands if x.node in (before, node)}
        return kernel.kind == "map" and len(accesses) == 1
    if isinstance(unit, Call):
        return is_update(unit) and base_of(unit.inputs[0]) is before
    if isinstance(unit, Composed):
        return False
    assert isinstance(unit, Loop) and isinstance(node, Result)
    if unit.flow.is_loop:
        return base_of(unit.inputs[unit.flow.carries[node.number]]) is before
    return all(
        node.number in draft.in_place
        and base_of(unit.inputs[body.takes[draft.carried[node.number]]]) is before
        for draft, body in zip(part.choices[unit], unit.flow.bodies, strict=True))


# --- the calls of generated kernels ---
def _check_kernel_call(part: Part, group: Group, step: Step) -> None:
    """The integers cover the group's space, and its operands' elements, exactly once."""
    kernel = part.kernels[group]
    try:
        call = KernelLayout(len(kernel.operands)).read(step.integers[:-1])
    except ValueError as error:
        raise InternalError(f"{group!r}: {error}") from None
    code = step.integers[-1].code
    if code is not None:
        check_code(code, kernel)
    point_sizes, row_sizes = ([dim[0] for dim in dims] for dims in (call.point_dims, call.row_dims))
    require(max(len(point_sizes), len(row_sizes)) <= MOST_DIMENSIONS, group,
            f"it walks through {len(point_sizes)} and {len(row_sizes)} dimensions")
    points = math.prod(point_sizes)
    require(call.rows == math.prod(row_sizes), group,
            f"it has {call.rows} rows, of dimensions {row_sizes}")
    require(points * call.rows * call.length == math.prod(group.space), group,
            f"it goes through {points} points, {call.rows} rows and {call.length} elements")
    require(1 <= call.pieces <= call.length and call.items == points * call.pieces, group,
            f"it has {call.items} items, of {points} points in {call.pieces} pieces")
    require(1 <= call.threads <= call.items, group,
            f"{call.threads} threads share {call.items} items")
    for number, operand in enumerate(kernel.operands):
        _check_operand(part, group, kernel, call, number, operand)


def _check_operand(part: Part, group: Group, kernel: Kernel, call: KernelIntegers, number: int,
                   operand: Operand) -> None:
    node, access = operand.node, operand.access
    words = f"operand {number}, {node!r}, "
    reached = _reach([*zip(group.space, access.strides, strict=True)])
    by_call = _reach([(call.length, call.strides[number]), *(
        (dim[0], dim[1 + number]) for dim in (*call.point_dims, *call.row_dims))])
    require(reached == by_call, group,
            f"{words}reaches from {reached[0]} to {reached[1]}, and its integers from "
            f"{by_call[0]} to {by_call[1]}")
    if isinstance(node, Iota):
        wanted = (0, access.offset)
        size = node.size
    else:
        slot, offset = part.place(node)
        wanted = (slot, offset + access.offset * node.dtype.itemsize)
        size = max(node.size, 1)        # for Empty a zero is stored, which is not read
    require(call.places[number] == wanted, group,
            f"{words}is at {wanted}, and in its integers at {call.places[number]}")
    first, last = access.offset + reached[0], access.offset + reached[1]
    require(0 <= first and last < size, group,
            f"{words}is accessed from element {first} to {last}")


def _reach(dims: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """The least and the greatest offset that sizes and strides reach."""
    ends = [(size - 1) * stride for size, stride in dims]
    return sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)


# --- the calls of the pack's functions ---
def _counts(part: Part) -> dict[str, set[tuple[int, int]]]:
    """The number of locations, and of all integers, in calls of the pack's functions, by name."""
    counts: dict[str, set[tuple[int, int]]] = {}
    for unit, _ in part.units:
        if isinstance(unit, Call) and not unit.strided:
            places = len(unit.inputs) + len(unit.result_bytes)
            counts.setdefault(unit.function, set()).add(
                (places, 2 * places + len(unit.integers)))
    return counts


def _check_call(part: Part, step: Step, counts: dict[str, set[tuple[int, int]]]) -> None:
    """A call has as many integers as its function reads, and its locations are valid."""
    integers = step.integers
    name = step.function.rpartition("_")[0]
    slots: list[int] = []
    if integers and isinstance(integers[-1], LoopCode):     # numbers, a slot, code
        code = integers[-1]
        check_loop(code)
        require(code.slot == integers[-2], step.function, "its slot is not that of its code")
        places, slots = code.operands, [integers[-2]]
        wanted = 2 * places + len(numbers_of(code)) + 2
        require(step.function == (MACHINE if step.kernel is None else ""), step.function,
                "its function")
    elif integers and isinstance(integers[-1], HostStep):   # numbers, a step
        host = integers[-1]
        places = len(host.inputs) + len(host.outputs)
        wanted = 2 * places + 1
        require(step.function == ON_HOST, step.function, "its function")
    elif step.function.startswith("tape_") and step.function != "tape_copy_bytes":
        places, wanted, slots = _control(step)
    elif step.function == "tape_copy_bytes":
        places, wanted = 2, 5
    elif name == "copy":            # rank; sizes, strides, the target's strides; threads
        places, wanted = 2, 6 + 3 * _count(step, 4)
    elif name == "fill":            # rank; sizes, strides; threads
        places, wanted = 2, 6 + 2 * _count(step, 4)
    elif name == "matmul":          # batch, m, n, k; three strides of each operand, two of the
        places, wanted = 3, 19      # result; threads
    else:
        known = counts.get(step.function, set())
        require(bool(known), step.function, "its function is called by no unit")
        places, wanted = min(known, key=lambda count: count[1] != len(integers))
    where = f"{step.function} of {step.note}"
    require(len(integers) == wanted, where, f"it has {len(integers)} integers, and needs {wanted}")
    require(THREADS not in integers, where, "it has no number of threads")
    first = WhileCall._fields.index("slot") if step.function == "tape_while" else 0
    for k in range(places):
        slot, offset = integers[first + 2 * k:first + 2 * k + 2]
        limit = part.arena.size if slot == part.arena_slot else math.inf
        require(0 <= slot < part.plan.slots and 0 <= offset <= limit, where,
                f"its place {k} is slot {slot}, byte {offset}")
    require(all(0 <= slot < part.plan.slots for slot in slots), where,
            f"its slots {slots} are not all below {part.plan.slots}")


def _control(step: Step) -> tuple[int, int, list[int]]:
    """The locations, integers (a tape counts as one) and slots of a call that runs tapes."""
    integers = step.integers
    if step.function == "tape_scan":
        begin, length = len(ScanCall._fields), len(Move._fields)
        moves = begin + length * _count(step, ScanCall._fields.index("moves"))
        end = moves + 1 + 2 * _count(step, moves)
        slots = [x for k in range(begin, moves, length)
                 for x in Move(*integers[k:k + length])[:Move._fields.index("offset")]]
        return 0, end + 1, slots + integers[moves + 1:end]
    if step.function == "tape_while":
        begin = len(WhileCall._fields)
        return 1, begin + 2 * _count(step, WhileCall._fields.index("exchanges")), integers[begin:]
    return 1, len(SwitchCall._fields) + _count(step, SwitchCall._fields.index("tapes")), []


def _count(step: Step, position: int) -> int:
    """The integer at a position, a count of others."""
    count = step.integers[position] if position < len(step.integers) else None
    if type(count) is not int:
        raise InternalError(f"{step.function}: integer {position} is no count, but {count!r}")
    return count
