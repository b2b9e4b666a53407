"""Turns a jaxpr into a tape: the calls of kernels in order, and each value's location in memory.

Slots name memory: first the program's arguments, then its results, the arena, the constants, and
pointers that loops advance. A value is at a byte offset of a slot. Temporaries share the arena,
each from the call that writes it to the last that reads it.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr
from maxjax._max.host_step import HostStep
from maxjax._max.mojo.arena import ALIGNMENT
from maxjax._max.mojo.bodies import lower_body
from maxjax._max.mojo.context import MojoContext
from maxjax._max.mojo.extents import check_extents
from maxjax._max.mojo.forms import Form, GroupCode
from maxjax._max.mojo.nodes import Input, Node, base_of
from maxjax._max.mojo.part import LoweredBody, Part, Place, writable
from maxjax._max.mojo.pieces import compute_by_pieces
from maxjax._max.mojo.reuse import heirs
from maxjax._max.mojo.scalar_code import LoopCode
from maxjax._max.mojo.short_dimensions import turn_short_dimensions
from maxjax._max.mojo.tape import Tape


class Plan:
    """A program, ready to be linked with the addresses of its kernels.

    Attributes:
      tape: its calls.
      inputs, outputs: types of its arguments and results; an output is an argument's number, a
        constant, or the shape and dtype of an array that the tape writes.
      overwritten: for each array that the tape writes, the argument whose memory it is, if any.
      slots: their number.
      arena: bytes of temporaries.
      constants: bytes that kernels read, and each one's offset.
      kernels: those that it needs, without repetition.
      codes: what stands in for kernels that are not compiled, by calls.
      costs: nanoseconds that all calls of a kernel take where it is not compiled, estimated.
      other_cost: the same of what is not generated.
      times: how often the part that is being planned runs.
      functions: the pack's functions that it needs.
      host_steps: what the host computes in loops and branches.
    """

    def __init__(self, jaxpr: Jaxpr, cores: int, donated: Sequence[int] = ()):
        """Args:
          donated: the arguments that results may overwrite.
        """
        self.cores = cores
        self.kernels: dict[Form, None] = {}
        self.codes: list[GroupCode | LoopCode] = []
        self.costs: dict[Form, float] = {}
        self.other_cost = 0.0
        self.times = 1.0
        self.functions: dict[str, None] = {}
        self.host_steps: list[HostStep] = []
        self._constants: list[bytes] = []
        self._constant_places: dict[bytes, int] = {}
        self._constant_at: dict[int, bytes] = {}
        self._constant_size = 0
        self._bodies: dict[ClosedJaxpr, LoweredBody] = {}
        context = MojoContext()
        nodes = [context.input(number, var.aval.shape, var.aval.dtype)
                 for number, var in enumerate(jaxpr.invars)]
        results = _arranged(context, context.lower_jaxpr(jaxpr, [], nodes), False)
        self.outputs: list[Any] = []
        written: dict[Node, int] = {}
        wanted: list[Node] = []
        for node, atom in zip(results, jaxpr.outvars, strict=True):
            kind = node.shape, dtypes.physical(atom.aval.dtype)
            if isinstance(node, Input):
                self.outputs.append(node.number)
                continue
            if 0 in node.shape:     # whatever it is, there is nothing to write
                self.outputs.append(np.zeros(*kind))
                continue
            final = writable(node, context, written)
            written[base_of(final)] = len(wanted)
            wanted.append(final)
            self.outputs.append(kind)
        first = len(jaxpr.invars)
        returned = {x for x in self.outputs if type(x) is int}
        carried = heirs(wanted, [nodes[number] for number in donated
                                 if number not in returned]) if donated else {}
        self.written = len(wanted)
        self.arena_slot = first + self.written
        self.constant_slot = self.arena_slot + 1
        self.slots = self.constant_slot + 1
        inputs = {number: (number, 0) for number in range(first)}
        outputs = {base_of(node): (first + number, 0) for number, node in enumerate(wanted)}
        part = self.part(wanted, carried)
        part.save_memory()
        self.overwritten: list[int | None] = [None] * self.written
        numbers = {node: number for number, node in enumerate(nodes)}
        for node, source in part.reuse.inputs.items():
            number = numbers[source]
            self.overwritten[written[node]] = number
            inputs[number] = outputs[node]
        part.finish(inputs, outputs, self.arena_slot)
        self._bodies.clear()
        self.tape = part.tape
        self.arena = part.arena.size
        self.constants = b"".join(self._constants)

    def part(self, wanted: Sequence[Node], carried: Mapping[Node, Node]) -> Part:
        """What computes nodes, of the program or of a loop's body; without places so far."""
        return Part(self, wanted, carried)

    def body(self, closed: ClosedJaxpr) -> LoweredBody:
        """The nodes of a loop's or a choice's body, which may be drafted more than once."""
        known = self._bodies.get(closed)
        if known is None:
            context = MojoContext()
            inputs = [context.input(number, var.aval.shape, var.aval.dtype)
                      for number, var in enumerate(closed.jaxpr.invars)]
            known = self._bodies[closed] = LoweredBody(
                context, inputs, _arranged(context, lower_body(context, closed, inputs), True))
        return known

    def finished(self, part: Part) -> None:
        """Called for each part when its calls are written."""
        check_extents(part)

    @property
    def peak_bytes(self) -> int:
        """Temporaries, results in memory of their own and constants together, in bytes."""
        written = [x for x in self.outputs if type(x) is tuple]
        results = sum(math.prod(shape) * dtype.itemsize for (shape, dtype), source in zip(
            written, self.overwritten, strict=True) if source is None)
        return self.arena + results + len(self.constants)

    def functions_without_kernels(self) -> dict[str, None] | None:
        """The pack's functions that it needs if no kernel is compiled; None if that cannot be."""
        functions = dict(self.functions)
        for group in self.codes:
            if group.code is None:
                return None
            functions.update(group.code.functions)
        return functions

    @property
    def uncompiled_source(self) -> str:
        """The vector machine's code, in the order of the calls that kernels are to do."""
        return "\n\n".join(str(group.code) for group in self.codes if group.code is not None)

    @property
    def source(self) -> str:
        """The kernels, numbered, and the calls in order, for people to read."""
        numbers = {kernel: f"kernel_{number}" for number, kernel in enumerate(self.kernels)}
        kernels = [kernel.source.replace("KERNEL", name).rstrip("\n")
                   for kernel, name in numbers.items()]

        def calls(tape: Tape, depth: int) -> list[str]:
            lines = []
            for step in tape.steps:
                name = step.function if step.kernel is None else numbers[step.kernel]
                lines += textwrap.wrap(
                    f"{name}: {step.note}" if str(step.note) else name, 100, break_long_words=False,
                    initial_indent="  " * depth, subsequent_indent="  " * (depth + 2))
                lines += [textwrap.indent(str(x), "  " * (depth + 1)) for x in step.integers
                          if isinstance(x, LoopCode) and step.kernel is None]
                tapes = [x for x in step.integers if isinstance(x, Tape)]
                for number, nested in enumerate(tapes):
                    if len(tapes) > 1:
                        label = ("condition", "body")[number] if step.function == "tape_while" \
                            else f"branch {number}"
                        lines.append("  " * (depth + 1) + f"({label})")
                    lines += calls(nested, depth + 1)
            return lines

        return "\n\n\n".join([*kernels, "\n".join(["calls:", *calls(self.tape, 1)])])

    def constant(self, value: np.ndarray) -> Place:
        data = value.tobytes()
        place = self._constant_places.get(data)
        if place is None:
            place = self._constant_places[data] = self._constant_size
            self._constant_at[place] = data
            padding = -len(data) % ALIGNMENT
            self._constants.append(data + bytes(padding))
            self._constant_size += len(data) + padding
        return self.constant_slot, place

    def constant_at(self, place: Place) -> bytes | None:
        """The bytes of the constant at a place, if there is one."""
        if place[0] != self.constant_slot:
            return None
        return self._constant_at.get(place[1])

    def new_slots(self, count: int) -> list[int]:
        self.slots += count
        return list(range(self.slots - count, self.slots))


def _arranged(context: MojoContext, results: list[Node], is_body: bool) -> list[Node]:
    """A jaxpr's results, in an arrangement that is faster to compute."""
    return compute_by_pieces(context, turn_short_dimensions(context, results, is_body))


def physical_types(jaxpr: Jaxpr) -> list[tuple[tuple[int, ...], np.dtype]]:
    return [(var.aval.shape, dtypes.physical(var.aval.dtype)) for var in jaxpr.invars]
