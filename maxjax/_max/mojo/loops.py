"""Control flow as calls of the driver: loops whose bodies are tapes of their own.

A carried value has two buffers, each behind a slot: the body reads one and writes the other, and
the driver exchanges the slots after each iteration. A scanned input has a slot that advances. The
body's temporaries are in a part of the arena, which also has a slot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base import dtypes
from maxjax._ir.control_flow import Body, Role, Structure
from maxjax._ir.types import ShapedArray
from maxjax._max.mojo.emit_loop import loop_form, numbers_of
from maxjax._max.mojo.nodes import Loop
from maxjax._max.mojo.scalar_code import MACHINE
from maxjax._max.mojo.small_loops import SmallLoop, small_loop

if TYPE_CHECKING:
    from maxjax._max.mojo.plan import Part, Place, Tape

_SMALL = "a loop over few elements"


def emit_loop(part: Part, unit: Loop, number: int) -> None:
    """Adds the calls of a loop to its part; ``number`` is the loop's step in it."""
    calls = _LoopCalls(part, unit, number)
    flow = unit.flow
    slot = part.plan.new_slots(1)[0]
    small = small_loop(part.plan, slot, flow, calls.operands, calls.results)
    if small is not None:
        calls.small(small, slot)
    elif not flow.is_loop:
        calls.switch(flow)
    elif flow.predicate is not None:
        calls.while_loop(flow, flow.predicate)
    else:
        calls.scan(flow)


class _LoopCalls:
    def __init__(self, part: Part, unit: Loop, number: int):
        self.part = part
        self.number = number
        self.operands = [part.operand_place(x) for x in unit.inputs]
        self.results: dict[int, Place] = {
            node.number: part.place(node) for node in part.results_of(unit)}
        # The slots' values before the loop: slot, base slot, byte offset, stride.
        self.settings: list[int] = []

    def temporary(self, nbytes: int) -> Place:
        """Memory for as long as the loop runs."""
        part = self.part
        return part.arena_slot, part.arena.allocate(nbytes, self.number, self.number)

    def slot_at(self, place: Place) -> int:
        """A new slot that is set to a place before the loop."""
        slot, = self.part.plan.new_slots(1)
        self.settings += [slot, *place, 0]
        return slot

    def body(self, body: Body, inside: Mapping[int, Place] | Sequence[Place],
             outputs: list[Place | None]) -> Tape:
        """A body's tape, with its temporaries in the arena.

        Args:
          inside: for each operand, its place in the body.
        """
        slot, = self.part.plan.new_slots(1)
        inner = self.part.subpart(
            body.jaxpr, [inside[number] for number in body.takes], outputs, slot)
        self.settings += [slot, *self.temporary(inner.arena.size), 0]
        return inner.tape

    def set_slots(self) -> None:
        if self.settings:
            self.part.call("tape_scan", [1, 0, -1, len(self.settings) // 4, *self.settings, 0,
                                         self.part.empty_tape()],
                           f"sets {len(self.settings) // 4} slots")

    def copy(self, source: Place, target: Place, nbytes: int) -> None:
        if nbytes:
            self.part.call("tape_copy_bytes", [*source, *target, nbytes], f"{nbytes} bytes")

    def result(self, position: int, aval: ShapedArray) -> Place:
        place = self.results.get(position)
        return self.temporary(nbytes_of(aval)) if place is None else place

    def small(self, loop: SmallLoop, slot: int) -> None:
        """A loop that is one call, of its kernel or of the scalar machine."""
        form = loop_form(loop.code)
        places = [self.temporary(loop.code.nbytes), *loop.places]
        integers = [*(x for place in places for x in place), *numbers_of(loop.code), slot,
                    loop.code]
        if form is None:
            for function in loop.code.functions:
                self.part.plan.functions.setdefault(function)
            self.part.plan.other_cost += self.part.plan.times * loop.code.step_nanoseconds
            self.part.call(MACHINE, integers, _SMALL)
        else:
            self.part.kernel_call(form, integers, _SMALL, loop.code.step_nanoseconds)

    def scan(self, flow: Structure) -> None:
        body, = flow.producers
        avals, length = body.jaxpr.out_avals, flow.length or 0
        inside = dict(enumerate(self.operands))
        outputs: list[Place | None] = []
        exchanges: list[int] = []
        fixed = unchanged(body, flow)
        for position, number in enumerate(flow.carries):
            init, aval = self.operands[number], avals[position]
            size = nbytes_of(aval)
            if position in fixed:
                if position in self.results:
                    self.copy(init, self.results[position], size)
                outputs.append(None)
                continue
            buffers = self.result(position, aval), self.temporary(size)
            # After this many exchanges the last value is in the result's memory.
            first, second = buffers if length % 2 == 0 else buffers[::-1]
            self.copy(init, first, size)
            a, b = self.slot_at(first), self.slot_at(second)
            inside[number] = a, 0
            outputs.append((b, 0))
            exchanges += (a, b)
        moves: list[int] = []
        for number, aval in zip(body.takes, body.jaxpr.in_avals, strict=True):
            if flow.roles[number] is Role.SCANNED:
                slot, = self.part.plan.new_slots(1)
                moves += [slot, *self.operands[number], nbytes_of(aval)]
                inside[number] = slot, 0
        for position in range(len(flow.carries), len(avals)):
            if position not in self.results:
                # It is never read: each iteration writes the same memory.
                outputs.append((self.slot_at(self.temporary(nbytes_of(avals[position]))), 0))
                continue
            slot, = self.part.plan.new_slots(1)
            moves += [slot, *self.results[position], nbytes_of(avals[position])]
            outputs.append((slot, 0))
        tape = self.body(body, inside, outputs)
        self.set_slots()
        self.part.call("tape_scan", [
            length, int(flow.reverse), -1, len(moves) // 4, *moves, len(exchanges) // 2,
            *exchanges, tape], f"{length} times")

    def while_loop(self, flow: Structure, condition: Body) -> None:
        body, = flow.producers
        avals = body.jaxpr.out_avals
        inside = dict(enumerate(self.operands))
        fixed = unchanged(body, flow)
        outputs: list[Place | None] = []
        exchanges: list[int] = []
        for position, number in enumerate(flow.carries):
            size = nbytes_of(avals[position])
            if position in fixed:
                outputs.append(None)
                continue
            first, second = self.temporary(size), self.temporary(size)
            self.copy(self.operands[number], first, size)
            a, b = self.slot_at(first), self.slot_at(second)
            inside[number] = a, 0
            outputs.append((b, 0))
            exchanges += (a, b)
        predicate = self.slot_at(self.temporary(1)), 0
        cond_tape = self.body(condition, inside, [predicate])
        body_tape = self.body(body, inside, outputs)
        self.set_slots()
        self.part.call("tape_while", [
            cond_tape, body_tape, *predicate, len(exchanges) // 2, *exchanges])
        for position, place in self.results.items():
            self.copy(inside[flow.carries[position]], place, nbytes_of(avals[position]))

    def switch(self, flow: Structure) -> None:
        index, = [self.operands[number] for number in flow.index]
        tapes = []
        for branch in flow.bodies:
            outputs: list[Place | None] = [
                self.result(position, aval)
                for position, aval in enumerate(branch.jaxpr.out_avals)]
            tapes.append(self.body(branch, self.operands, outputs))
        self.set_slots()
        self.part.call("tape_switch", [*index, len(tapes), *tapes])


def unchanged(body: Body, flow: Structure) -> set[int]:
    """The carried values that a body returns unchanged."""
    jaxpr = body.jaxpr.jaxpr
    inputs = dict(zip(body.takes, jaxpr.invars, strict=True))
    return {position for position, number in enumerate(flow.carries)
            if jaxpr.outvars[position] is inputs[number]}


def nbytes_of(aval: Any) -> int:
    size = dtypes.physical(aval.dtype).itemsize
    for dim in aval.shape:
        size *= dim
    return size
