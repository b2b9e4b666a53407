"""Control flow as calls of the driver: loops whose bodies are tapes of their own.

A carried value that the body can update in place (``reuse.py``) has one buffer. Any other has two,
each behind a slot: the body reads one and writes the other, and the driver exchanges the slots
after each iteration. The first is the memory of the loop's result, and where that is also the
memory of the value before the loop, nothing is copied. A scanned input has a slot that advances.
The body's temporaries are in a part of the arena, which also has a slot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base import dtypes
from maxjax._ir.control_flow import Body, Role, Structure
from maxjax._ir.types import ShapedArray
from maxjax._max.mojo.abi import Move, ScanCall, SwitchCall, WhileCall
from maxjax._max.mojo.emit_loop import LoopForm, called, is_for_machine, loop_form, numbers_of
from maxjax._max.mojo.loop_function import before
from maxjax._max.mojo.loop_function import emit as emit_function
from maxjax._max.mojo.nodes import Loop
from maxjax._max.mojo.reuse import draft_branches
from maxjax._max.mojo.scalar_code import MACHINE
from maxjax._max.mojo.small_loops import SmallLoop, small_loop

if TYPE_CHECKING:
    from maxjax._max.mojo.part import Draft, Part, Place
    from maxjax._max.mojo.tape import Tape

_SMALL = "a loop over few elements"


def emit_loop(part: Part, unit: Loop, number: int) -> None:
    """Adds the calls of a loop to its part; ``number`` is the loop's step in it."""
    calls = _LoopCalls(part, unit, number)
    flow = unit.flow
    slot = part.plan.new_slots(1)[0]
    small = small_loop(part.plan, slot, flow, calls.operands, calls.results)
    form = None if small is None else loop_form(small.code)
    if small is not None and (form is not None or is_for_machine(small.code)):
        calls.small(small, slot, form)
    elif not flow.is_loop:
        calls.switch(flow, unit)
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
        self.before = before(part.plan)

    def temporary(self, nbytes: int) -> Place:
        """Memory for as long as the loop runs."""
        part = self.part
        return part.arena_slot, part.arena.allocate(nbytes, self.number, self.number)

    def slot_at(self, place: Place) -> int:
        """A new slot that is set to a place before the loop."""
        slot, = self.part.plan.new_slots(1)
        self.settings += Move(slot, *place, 0)
        return slot

    def body(self, draft: Draft, body: Body, inside: Mapping[int, Place] | Sequence[Place],
             outputs: Mapping[int, Place]) -> Tape:
        """A body's tape, with its temporaries in the arena.

        Args:
          inside: for each operand, its place in the body.
          outputs: for positions of results, their places.
        """
        slot, = self.part.plan.new_slots(1)
        inner = draft.finish([inside[number] for number in body.takes], outputs, slot)
        self.settings += Move(slot, *self.temporary(inner.arena.size), 0)
        return inner.tape

    def carried(self, body: Body, flow: Structure, fixed: set[int]) -> dict[int, int]:
        """The input of a body for each carried value that changes, by positions."""
        inputs = {number: position for position, number in enumerate(body.takes)}
        return {position: inputs[number] for position, number in enumerate(flow.carries)
                if position not in fixed}

    def buffers(self, position: int, aval: ShapedArray, draft: Draft, odd: bool = False
                ) -> tuple[Place, Place]:
        """Where a carried value is read and written in the first iteration.

        Args:
          odd: the last iteration is an odd one: then that is where its next value is to be.
        """
        first = self.result(position, aval)
        if position in draft.in_place:
            return first, first
        second = self.temporary(nbytes_of(aval))
        return (second, first) if odd else (first, second)

    def set_slots(self) -> None:
        if self.settings:
            count = len(self.settings) // len(Move._fields)
            self.part.call("tape_scan", [*ScanCall(1, 0, -1, count), *self.settings, 0,
                                         self.part.empty_tape()], f"sets {count} slots")

    def copy(self, source: Place, target: Place, nbytes: int) -> None:
        if nbytes and source != target:
            self.part.call("tape_copy_bytes", [*source, *target, nbytes], f"{nbytes} bytes")

    def result(self, position: int, aval: ShapedArray) -> Place:
        place = self.results.get(position)
        return self.temporary(nbytes_of(aval)) if place is None else place

    def small(self, loop: SmallLoop, slot: int, form: LoopForm | None) -> None:
        """A loop that is one call, of its kernel or of the scalar machine."""
        places = [self.temporary(loop.code.nbytes)]
        nbytes = {number: size for _, number, size in loop.copies}
        places += [self.temporary(nbytes[number]) if place is None else place
                   for number, place in enumerate(loop.places, 1)]
        for source, number, size in loop.copies:
            self.copy(source, places[number], size)
        integers = [*(x for place in places for x in place), *numbers_of(loop.code), slot,
                    loop.code]
        self.part.plan.host_steps += loop.code.host_steps
        if form is None:
            self.part.machine_call(MACHINE, integers, _SMALL, loop.code.step_nanoseconds)
        else:
            self.part.plan.functions.update(called(loop.code))
            self.part.kernel_call(form, integers, _SMALL, loop.code.step_nanoseconds)

    def scan(self, flow: Structure) -> None:
        body, = flow.producers
        avals, length = body.jaxpr.out_avals, flow.length or 0
        inside = dict(enumerate(self.operands))
        fixed = unchanged(body, flow)
        draft = self.part.draft(body.jaxpr, fixed, self.carried(body, flow, fixed))
        outputs: dict[int, Place] = {}
        exchanges: list[int] = []
        for position, number in enumerate(flow.carries):
            init, aval = self.operands[number], avals[position]
            if position in fixed:
                if position in self.results:
                    self.copy(init, self.results[position], nbytes_of(aval))
                continue
            buffers = self.buffers(position, aval, draft, length % 2 == 1)
            self.copy(init, buffers[0], nbytes_of(aval))
            exchanges += self.carry(number, position, buffers, inside, outputs)
        moves: list[int] = []
        for number, aval in zip(body.takes, body.jaxpr.in_avals, strict=True):
            if flow.roles[number] is Role.SCANNED:
                slot, = self.part.plan.new_slots(1)
                moves += Move(slot, *self.operands[number], nbytes_of(aval))
                inside[number] = slot, 0
        for position in range(len(flow.carries), len(avals)):
            if position not in self.results:
                # It is never read: each iteration writes the same memory.
                outputs[position] = self.slot_at(self.temporary(nbytes_of(avals[position]))), 0
                continue
            slot, = self.part.plan.new_slots(1)
            moves += Move(slot, *self.results[position], nbytes_of(avals[position]))
            outputs[position] = slot, 0
        tape = self.body(draft, body, inside, outputs)
        self.set_slots()
        emit_function(self.part, "tape_scan", [
            *ScanCall(length, int(flow.reverse), -1, len(moves) // len(Move._fields)), *moves,
            len(exchanges) // 2, *exchanges, tape], f"{length} times", self.before)

    def carry(self, number: int, position: int, buffers: tuple[Place, Place],
              inside: dict[int, Place], outputs: dict[int, Place]) -> list[int]:
        """Puts slots before a carried value's buffers; returns those to exchange."""
        a = b = self.slot_at(buffers[0])
        if buffers[1] != buffers[0]:
            b = self.slot_at(buffers[1])
        inside[number] = a, 0
        outputs[position] = b, 0
        return [a, b] if a != b else []

    def while_loop(self, flow: Structure, condition: Body) -> None:
        body, = flow.producers
        avals = body.jaxpr.out_avals
        inside = dict(enumerate(self.operands))
        fixed = unchanged(body, flow)
        draft = self.part.draft(body.jaxpr, fixed, self.carried(body, flow, fixed))
        outputs: dict[int, Place] = {}
        exchanges: list[int] = []
        for position, number in enumerate(flow.carries):
            if position in fixed:
                continue
            buffers = self.buffers(position, avals[position], draft)
            self.copy(self.operands[number], buffers[0], nbytes_of(avals[position]))
            exchanges += self.carry(number, position, buffers, inside, outputs)
        predicate = self.slot_at(self.temporary(1)), 0
        cond_tape = self.body(self.part.draft(condition.jaxpr), condition, inside, {0: predicate})
        body_tape = self.body(draft, body, inside, outputs)
        self.set_slots()
        emit_function(self.part, "tape_while", [
            *WhileCall(cond_tape, body_tape, *predicate, len(exchanges) // 2), *exchanges], "",
            self.before)
        for position, place in self.results.items():
            if position not in draft.in_place:
                self.copy(inside[flow.carries[position]], place, nbytes_of(avals[position]))

    def switch(self, flow: Structure, unit: Loop) -> None:
        index, = [self.operands[number] for number in flow.index]
        reuse, drafts = self.part.reuse, self.part.choices[unit]
        taken = {node.number for node in self.part.results_of(unit) if node in reuse.of}
        if taken != set(drafts[0].carried):
            # What one of them was to be in place of must not be written after all.
            drafts = self.part.choices[unit] = draft_branches(self.part, unit, {
                position: flow.bodies[0].takes[source]
                for position, source in drafts[0].carried.items() if position in taken})
        tapes = [self.body(draft, body, self.operands, self.results)
                 for draft, body in zip(drafts, flow.bodies, strict=True)]
        self.set_slots()
        self.part.call("tape_switch", [*SwitchCall(*index, len(tapes)), *tapes])


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
