"""Control flow as calls of the driver: loops whose bodies are tapes of their own.

A carried value has two buffers, each behind a slot: the body reads one and writes the other, and
the driver exchanges the slots after each iteration. A scanned input has a slot that advances. The
body's temporaries are in a part of the arena, which also has a slot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from maxjax._base import dtypes
from maxjax._ir.jaxpr import ClosedJaxpr, Var
from maxjax._ir.types import ShapedArray
from maxjax._max.mojo.nodes import Loop

if TYPE_CHECKING:
    from maxjax._max.mojo.plan import Part, Place, Tape


def emit_loop(part: Part, unit: Loop, number: int) -> None:
    """Adds the calls of a loop to its part; ``number`` is the loop's step in it."""
    calls = _LoopCalls(part, unit, number)
    if unit.name == "scan":
        calls.scan(unit)
    elif unit.name == "while":
        calls.while_loop(unit)
    else:
        calls.switch(unit)


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

    def body(self, closed: ClosedJaxpr, inputs: list[Place], outputs: list[Place | None]) -> Tape:
        """A body's tape, its temporaries in the arena."""
        slot, = self.part.plan.new_slots(1)
        inner = self.part.subpart(closed, inputs, outputs, slot)
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

    def scan(self, loop: Loop) -> None:
        closed, = loop.bodies
        n_consts, n_carry, n_xs = loop.counts
        avals = closed.out_avals
        operands = self.operands
        inputs: list[Place] = operands[:n_consts]
        outputs: list[Place | None] = []
        exchanges: list[int] = []
        fixed = unchanged(closed, n_consts, n_carry)
        for position in range(n_carry):
            init, aval = operands[n_consts + position], avals[position]
            size = nbytes_of(aval)
            if position in fixed:
                if position in self.results:
                    self.copy(init, self.results[position], size)
                inputs.append(init)
                outputs.append(None)
                continue
            buffers = self.result(position, aval), self.temporary(size)
            # After this many exchanges the last value is in the result's memory.
            first, second = buffers if loop.length % 2 == 0 else buffers[::-1]
            self.copy(init, first, size)
            a, b = self.slot_at(first), self.slot_at(second)
            inputs.append((a, 0))
            outputs.append((b, 0))
            exchanges += (a, b)
        moves: list[int] = []
        for position in range(n_xs):
            slot, = self.part.plan.new_slots(1)
            aval = closed.in_avals[n_consts + n_carry + position]
            moves += [slot, *operands[n_consts + n_carry + position], nbytes_of(aval)]
            inputs.append((slot, 0))
        for position in range(n_carry, len(avals)):
            if position not in self.results:
                # It is never read: each iteration writes the same memory.
                outputs.append((self.slot_at(self.temporary(nbytes_of(avals[position]))), 0))
                continue
            slot, = self.part.plan.new_slots(1)
            moves += [slot, *self.results[position], nbytes_of(avals[position])]
            outputs.append((slot, 0))
        tape = self.body(closed, inputs, outputs)
        self.set_slots()
        self.part.call("tape_scan", [
            loop.length, int(loop.reverse), -1, len(moves) // 4, *moves, len(exchanges) // 2,
            *exchanges, tape], f"{loop.length} times")

    def while_loop(self, loop: Loop) -> None:
        cond, body = loop.bodies
        n_cond, n_body, n_carry = loop.counts
        avals = body.out_avals
        init = self.operands[n_cond + n_body:]
        fixed = unchanged(body, n_body, n_carry)
        carried: list[Place] = []
        outputs: list[Place | None] = []
        exchanges: list[int] = []
        for position in range(n_carry):
            size = nbytes_of(avals[position])
            if position in fixed:
                carried.append(init[position])
                outputs.append(None)
                continue
            first, second = self.temporary(size), self.temporary(size)
            self.copy(init[position], first, size)
            a, b = self.slot_at(first), self.slot_at(second)
            carried.append((a, 0))
            outputs.append((b, 0))
            exchanges += (a, b)
        predicate = self.slot_at(self.temporary(1)), 0
        cond_tape = self.body(cond, [*self.operands[:n_cond], *carried], [predicate])
        body_tape = self.body(body, [*self.operands[n_cond:n_cond + n_body], *carried], outputs)
        self.set_slots()
        self.part.call("tape_while", [
            cond_tape, body_tape, *predicate, len(exchanges) // 2, *exchanges])
        for position, place in self.results.items():
            self.copy(carried[position], place, nbytes_of(avals[position]))

    def switch(self, loop: Loop) -> None:
        index, *operands = self.operands
        tapes = []
        for branch in loop.bodies:
            outputs: list[Place | None] = [
                self.result(position, aval) for position, aval in enumerate(branch.out_avals)]
            tapes.append(self.body(branch, operands, outputs))
        self.set_slots()
        self.part.call("tape_switch", [*index, len(tapes), *tapes])


def unchanged(closed: ClosedJaxpr, first: int, count: int) -> set[int]:
    """The carried values that a body returns unchanged."""
    jaxpr = closed.jaxpr
    return {position for position in range(count)
            if isinstance(jaxpr.outvars[position], Var)
            and jaxpr.outvars[position] is jaxpr.invars[first + position]}


def nbytes_of(aval: Any) -> int:
    size = dtypes.physical(aval.dtype).itemsize
    for dim in aval.shape:
        size *= dim
    return size
