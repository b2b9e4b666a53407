"""Calls: a program runs on concrete operands, with the checks around it that options ask for.

What does not depend on the operands is decided before (``maxjax._ir.runtime.Call``). The rest
follows from where the operands are placed, and is decided once for all calls with the same
placements: a ``Way``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.config import status
from maxjax._base.meshes import around
from maxjax._base.meshes import use as mesh_use
from maxjax._base.processes import job
from maxjax._base.shardings import Sharding
from maxjax._ir.runtime import Call, Runtime
from maxjax._ir.trace import Array, Tracer, leaked_tracer_error
from maxjax._ir.types import ShapedArray
from maxjax._runtime import (
    invalid,
    keys,
    on_device,
    on_mesh,
    spanning,
    transfer_guard,
)
from maxjax._runtime import program as program_module
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.devices import allow_execution, default_device_override, memory_of
from maxjax._runtime.donation import check_donated_once, fitting, give_up
from maxjax._runtime.memory import out_of_memory, sharing
from maxjax._runtime.operand_devices import Leaf, asked_of
from maxjax._runtime.outside_values import plain
from maxjax._runtime.program import Program, program_of
from maxjax._runtime.result_placement import (
    PlacedResults,
    common_placement,
    placed_results,
    put_on_default_device,
)
from maxjax._runtime.spanning_array import SpanningArray
from maxjax._sharding.summands import unreduced_axes, with_summands


class Way:
    """How calls run whose operands have the same placements.

    Attributes:
      placed: where the results are; None: no operand was put anywhere explicitly.
      donated: the donated operands whose memory results take.
      program: what runs; None: it depends on more than where operands lie, or is not made yet.
    """

    __slots__ = ("donated", "placed", "program")

    def __init__(self, placed: PlacedResults | None = None):
        self.placed = placed
        self.donated: tuple[int, ...] = ()
        self.program: Program | None = None

    def prepare(self, call: Call, leaves: Sequence[Leaf]) -> Program:
        """Makes the program."""
        placed = self.placed
        if placed is not None and placed.summands:
            self.donated = tuple(fitting(leaves, call.donated, placed.results))
            return program_of(with_summands(
                on_mesh.without_types(call.closed),
                tuple([hasattr(leaf, "_summands") for leaf in leaves])))
        ran = call.closed
        self.donated = call.donated
        if placed is not None:
            ran = placed.closed or ran
            if call.donated:
                self.donated = tuple(fitting(leaves, call.donated, placed.results))
        self.program = program_of(ran, self.donated)
        return self.program


class Ways:
    """The ways in which a call ran last.

    Attributes:
      plain: where no operand was put anywhere explicitly.
      placed: where one was.
      over_processes: over the devices of several processes: the operands' placements, and the
        program.
    """

    __slots__ = ("over_processes", "placed", "plain")

    def __init__(self) -> None:
        self.plain = Way()
        self.placed: Way | None = None
        self.over_processes: tuple[Any, spanning.ProcessProgram] | None = None


class Watch:
    """The checks around one call that options ask for (``config.status.watched``)."""

    __slots__ = ("_call", "_kept", "_leaves", "_note_keys", "_runtime")

    def __init__(self, runtime: Runtime, call: Call, leaves: Sequence[Leaf],
                 values: Sequence[np.ndarray]):
        """Checks the operands, before the call.

        Raises:
          RuntimeError: no program may run.
          JaxRuntimeError: a transfer guard forbids an operand.
          KeyReuseError: a random key is used again.
        """
        self._runtime, self._call, self._leaves = runtime, call, leaves
        self._note_keys = self._kept = None
        allow_execution(call.name)
        if status.guards_transfers:
            transfer_guard.check_operands(leaves, Array)
        if status.checks_keys:
            self._note_keys = keys.used(
                call.closed, leaves, call.operation or "jit-compiled function")
        if status.checks_values:
            # The operations may have to run again one by one.
            self._kept = [leaf if leaf.__class__ is ArrayImpl else ArrayImpl(aval, value)
                          for leaf, value, aval in zip(
                              leaves, values, call.closed.in_avals, strict=True)]
            for position in call.donated:
                self._kept[position] = self._kept[position]._with_value(values[position])

    def finish(self, results: Sequence[ArrayImpl]) -> None:
        """Checks the results, after the call.

        Raises:
          FloatingPointError: a result is invalid.
          JaxRuntimeError: a transfer guard forbids that operands go where results are.
        """
        if self._kept is not None:
            if self._call.operation:        # of a loop, say: it counts as one operation
                invalid.check(self._call.operation, results)
            else:
                invalid.check_program(self._call.closed, self._kept, results, self._runtime.apply)
        put_on_default_device(results)
        if status.guards_transfers:
            transfer_guard.between_devices(self._leaves, results)
        if self._note_keys is not None:
            self._note_keys(results)


class Caller(Runtime):
    """The runtime, as far as it runs calls."""

    __slots__ = ()

    def call(self, call: Call, leaves: Sequence[Leaf]) -> list[ArrayImpl]:
        if job.device_counts or status.accelerators:
            elsewhere, leaves = self._call_elsewhere(call, leaves)
            if elsewhere is not None:
                return elsewhere
        values = []
        foreign = []
        is_placed = False
        for leaf in leaves:
            if leaf.__class__ is ArrayImpl:
                value = leaf._value
                values.append(leaf.host() if value is None else value)
                if leaf._placement is not None:
                    is_placed = True
            elif isinstance(leaf, np.ndarray):
                value = plain(leaf)
                values.append(value)
                if value.dtype == leaf.dtype:
                    foreign.append(value)
            elif isinstance(leaf, Tracer):
                raise leaked_tracer_error(leaf)
            else:
                values.append(self.concrete(leaf).host())
        ways: Ways = call.ways or _ways_of(call)
        way, placed = ways.plain, None
        if is_placed or call.asked is not None or mesh_use.ever_set:
            way = _placed_way(call, ways, leaves)
            placed = way.placed
            if placed.summands:
                values += [leaf._summands for leaf in leaves if hasattr(leaf, "_summands")]
        watch = Watch(self, call, leaves, values) if status.watched else None
        program = way.program or way.prepare(call, leaves)
        if call.donated:
            check_donated_once(leaves, call.donated)
            value = None    # a further reference to the last operand, which may be donated
            give_up(leaves, values, way.donated)
        try:
            outputs = program.run(values)
        except MemoryError as error:
            raise out_of_memory(error) from error
        if foreign:
            # The caller may write to its arrays later: no result is one of them, or a view of one.
            shares = sharing(foreign)
            outputs = [value.copy() if shares(value) else value for value in outputs]
        types = call.out_types
        if placed is not None:
            results = _results_at(placed, types, outputs)
        elif len(outputs) == len(types) == 1:
            results = [ArrayImpl(types[0], outputs[0])]
        else:
            results = [ArrayImpl(aval, value) for aval, value in zip(types, outputs, strict=True)]
        if watch is not None:
            watch.finish(results)
        return results

    def compile(self, call: Call, in_shardings: Sequence[Sharding | None]
                ) -> tuple[list[Sharding], list[Sharding]]:
        """Compiles a call's jaxpr ahead of time, as far as the mode allows, for operands with given
        shardings (None: any), and waits. Returns the shardings of all operands and results."""
        ran, ins, outs = on_mesh.compiled_for(
            call.closed, in_shardings, asked_of(call.asked, ()))
        program = program_of(ran, call.donated)
        if program_module.config.compile_mode.value != "never":
            program_module.policy.tiering.compile_now(program)
        return ins, outs

    def _call_elsewhere(self, call: Call, leaves: Sequence[Leaf]) -> tuple[
            list[Any] | None, Sequence[Leaf]]:
        """The results of a call over several processes or on an accelerator; None if it is neither,
        and what this host is to run it on."""
        if job.device_counts and spanning.concerns(
                call.closed, leaves, asked_of(call.asked, leaves)):
            made = self._call_over_processes(call, leaves)
            if made is not None:
                return made, leaves
            leaves = [_unread(leaf.aval) if leaf.__class__ is SpanningArray else leaf
                      for leaf in leaves]
        return self._call_on_accelerator(call, leaves) if status.accelerators else None, leaves

    def _call_on_accelerator(self, call: Call, leaves: Sequence[Leaf]) -> list[ArrayImpl] | None:
        """Runs a call on the one accelerator where its operands are, or its results are to be; None
        if there is none, or the program is not compiled for it: the host runs it then."""
        if status.checks_values or any(isinstance(leaf, Tracer) for leaf in leaves):
            return None
        operands: list[Any] = [self.concrete(leaf) for leaf in leaves]
        if any(operand.__class__ is not ArrayImpl for operand in operands):
            return None
        placed = _placed_way(call, call.ways or _ways_of(call), operands).placed
        default = default_device_override()
        where = {default if placement is None else placement
                 for _, placement, _ in placed.results}
        memory = memory_of(where.pop()) if len(where) == 1 else None
        if memory is None or placed.summands:
            return None
        if call.donated:
            check_donated_once(leaves, call.donated)
        results = on_device.call(placed.closed or call.closed, operands, placed.results, memory,
                                 call.name)
        if results is None:
            return None
        for position in call.donated:
            if leaves[position].__class__ is ArrayImpl:
                operands[position].delete()
        if status.watched:
            put_on_default_device(results)
        return results

    def _call_over_processes(self, call: Call, leaves: Sequence[Leaf]) -> list[Any] | None:
        operands: list[Any] = [self.concrete(leaf) for leaf in leaves]
        if call.donated:
            check_donated_once(operands, call.donated)
        closed, name = call.closed, call.name.split(" at ")[0]
        if status.watched:
            allow_execution(name)
        key = ([(operand.__class__, operand._placement, operand._committed)
                for operand in operands], around() if mesh_use.ever_set else None)
        ways: Ways = call.ways or _ways_of(call)
        known = ways.over_processes
        results: list[Any] | None
        try:
            if known is not None and known[0] == key:      # most often the same objects
                results = [*known[1].run(operands, closed.out_avals)]
            else:
                placed = None
                for operand in operands:
                    if operand._placement is not None:
                        placed = common_placement(name, placed, operand, operands, closed)
                results, program = spanning.call(
                    closed, operands, placed, asked_of(call.asked, operands), name)
                if program is not None:
                    ways.over_processes = key, program
        except MemoryError as error:
            raise out_of_memory(error) from error
        if status.checks_values and results:
            kind = spanning.check_values(name, results)
            if kind is not None:
                # All processes know, and run the operations one by one together.
                invalid.blame(kind, closed, operands, self.apply, call.operation)
        for position in call.donated if results is not None else ():
            operands[position].delete()
        return results


def _ways_of(call: Call) -> Ways:
    call.ways = ways = Ways()
    return ways


def _placed_way(call: Call, ways: Ways, leaves: Sequence[Leaf]) -> Any:
    """The way of a call with its operands where they are.

    Raises:
      ValueError: operands, or what the program or its caller names, are on different devices.
    """
    key = ([(leaf._placement, leaf._committed) if leaf.__class__ is ArrayImpl else None
            for leaf in leaves], around() if mesh_use.ever_set else None)
    known = ways.placed
    if known is None or known.placed is None or known.placed.key != key:
        # Most often the same objects.
        known = ways.placed = Way(placed_results(
            key, call.operation, call.closed, leaves, asked_of(call.asked, leaves)))
    return known


def _results_at(placed: PlacedResults, avals: Sequence[ShapedArray],
                outputs: Sequence[np.ndarray]) -> list[ArrayImpl]:
    """A program's results as arrays where they are to be, with their summands if it gives them."""
    if len(outputs) == len(placed.results) == 1:
        (aval, placement, committed), = placed.results
        return [ArrayImpl(aval, outputs[0], None, placement, committed)]
    results = [ArrayImpl(aval, value, None, placement, committed)
               for (aval, placement, committed), value in zip(
                   placed.results, outputs, strict=not placed.summands)]
    if placed.summands:
        summands = iter(outputs[len(results):])
        for result, aval in zip(results, avals, strict=True):
            if unreduced_axes(aval):
                result._summands = next(summands)
    return results


def _unread(aval: ShapedArray) -> ArrayImpl:
    """Stands for an operand that nothing reads."""
    zero = np.zeros((), dtypes.physical(aval.dtype))
    return ArrayImpl(aval.off_mesh(), np.broadcast_to(zero, aval.shape))
