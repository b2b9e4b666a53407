"""Programs on an accelerator: compiled for it, with buffers that stay in its memory between calls.

Until a program is compiled, and where it cannot be, the host runs it: an array of an accelerator
may have its value in the host's memory, and moves when a compiled program needs it.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import collection, config, spans, threads, variables
from maxjax._base.config import status
from maxjax._base.errors import CompileError
from maxjax._ir.jaxpr import ClosedJaxpr, Literal, Var
from maxjax._ir.types import ShapedArray
from maxjax._max.backend import Prepared
from maxjax._max.device_memory import DeviceBuffer, DeviceExecutable, DeviceMemory
from maxjax._max.graph.accelerator import AcceleratorBackend
from maxjax._max.host_step import HostStep
from maxjax._max.warning import warn_once
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.cells import HostValue
from maxjax._runtime.devices import allow_execution, default_device_override, memory_of
from maxjax._runtime.made import made_of
from maxjax._runtime.program import Program, program_of
from maxjax._runtime.tiering import tiering

# A call that is never repeated is not worth a compile.
_HOT_CALLS = 2

_backends: dict[DeviceMemory, AcceleratorBackend] = {}
_lock = threads.lock()


def backend_of(memory: DeviceMemory) -> AcceleratorBackend:
    """What compiles for an accelerator."""
    with _lock:
        known = _backends.get(memory)
        if known is None:
            known = _backends[memory] = AcceleratorBackend(memory, lambda: tiering.mojo.pack)
    return known


class _Place:
    """One value within a call: in the host's memory, in the accelerator's, or in both."""

    __slots__ = ("buffer", "host")

    def __init__(self, host: HostValue | None = None, buffer: DeviceBuffer | None = None):
        self.host = host
        self.buffer = buffer


class DeviceProgram:
    """A program and an accelerator that it runs on.

    Attributes:
      state: "cold", "queued" (for the compiler), "compiled", "failed" or "host" (nothing of it can
        be compiled).
      reason: why it is not compiled, where it failed or cannot be.
      calls: how often it has run on the accelerator.
      host_calls: how often the host had to run it.
    """

    def __init__(self, program: Program, memory: DeviceMemory):
        self.program = program
        self.memory = memory
        self.backend = backend_of(memory)
        self.state = "cold"
        self.reason: str | None = None
        self.calls = self.host_calls = 0
        self.compile_seconds = 0.0
        self._lock = threads.lock()
        self._prepared: Prepared | None = None
        self._looked = False
        self._runs: dict[int, DeviceExecutable] = {}
        # What runs, on the host or not, and the slots of its operands and results.
        self._steps: list[tuple[Any, bool, list[int], list[int]]] = []
        self._slots = 0
        self._outputs: list[Any] = []
        self._constants = [_Place(value) for value in program.consts]

    # --- compiling ---
    @property
    def prepared(self) -> Prepared:
        """Its pieces."""
        with self._lock, collection.stopped:
            if self._prepared is None:
                try:
                    self._prepared = self.backend.prepare(self.program.opened.jaxpr)
                except Exception as error:      # the compiler's own mistakes stop no program
                    if variables.strict():
                        raise
                    reason = f"planning failed: {type(error).__name__}: {error}"
                    warn_once(f"programs for {self.memory.name} run on the host: "
                              f"{reason.splitlines()[0]}")
                    self._prepared = Prepared(reason=reason, failed=True)
                if self._prepared.reason is not None:
                    self.state, self.reason = "host", self._prepared.reason
            return self._prepared

    def is_ready(self) -> bool:
        """Whether it can run on the accelerator; what is not compiled is asked for, as the mode
        says."""
        if self.state == "compiled":
            return config.compile_mode.value != "never"
        if self.state in ("failed", "host") or config.compile_mode.value == "never":
            return False
        if self.state == "cold":
            prepared = self.prepared
            if self.state == "cold" and not self._looked:
                self._looked = True
                self._find(prepared)
        waits = config.compile_mode.value == "always"
        is_asked_for = waits or self.state == "cold" and self.host_calls + 1 >= _HOT_CALLS
        if is_asked_for and self.state in ("cold", "queued"):
            self._submit(waits)
        return self.state == "compiled"

    def _find(self, prepared: Any) -> None:
        try:
            runs = self.backend.find(prepared)
        except RuntimeError as error:
            self._fail(str(error))
            return
        if runs is not None:
            self._adopt(runs)

    def _submit(self, waits: bool) -> None:
        self.state = "queued"
        started = time.monotonic()

        def done(runs: Any, error: str | None) -> None:
            self.compile_seconds = time.monotonic() - started
            if runs is None:
                self._fail(error or "unknown")
            else:
                self._adopt(runs)

        job = self.backend.submit(self.prepared, float("inf") if waits else 1.0,  # type: ignore[arg-type]
                                  done)
        if waits:
            try:
                self.backend.wait(job, None)
            except CompileError as error:
                self._fail(str(error))

    def _fail(self, reason: str) -> None:
        self.state, self.reason = "failed", reason
        warn_once(f"programs for {self.memory.name} run on the host: {reason.splitlines()[0]}")

    def _adopt(self, runs: Any) -> None:
        """Makes the steps."""
        with self._lock:
            if self.state == "compiled":
                return
            jaxpr = self.program.opened.jaxpr
            slots: dict[Var, int] = {}

            def slot(var: Var) -> int:
                return slots.setdefault(var, len(slots))

            for var in jaxpr.invars:
                slot(var)
            assert self._prepared is not None
            self._steps = [
                (HostStep(piece) if piece.on_host else runs[number], piece.on_host,
                 [slot(v) for v in piece.inputs], [slot(v) for v in piece.outputs])
                for number, piece in enumerate(self._prepared.pieces)]
            self._outputs = [np.asarray(atom.val) if isinstance(atom, Literal) else slot(atom)
                             for atom in jaxpr.outvars]
            self._slots = len(slots)
            self.state = "compiled"

    def __str__(self) -> str:
        prepared = self.prepared
        lines = [f"on {self.memory.name} ({self.memory.kind}): state {self.state}"
                 + (f" ({self.reason})" if self.reason else "")
                 + f", {self.calls} calls there, {self.host_calls} by the host"]
        for number, piece in enumerate(prepared.pieces):
            place = "the host, with transfers" if piece.on_host else self.memory.name
            counted = Counter(eqn.primitive.name for eqn in piece.jaxpr.eqns)
            lines.append(f"  piece {number} on {place}: " + ", ".join(
                f"{name} x{times}" if times > 1 else name
                for name, times in counted.most_common()))
            lines += [f"    {reason}" for reason in prepared.reasons(number)]
        return "\n".join(lines)

    # --- running ---
    def __call__(self, operands: Sequence[ArrayImpl]) -> list[_Place]:
        """The results, each where it was computed."""
        memory = self.memory
        self.calls += 1
        places: list[Any] = [None] * self._slots
        count = len(self._constants)
        places[:count] = self._constants
        places[count:count + len(operands)] = [
            _Place(operand._value, operand.stored_in(memory)) for operand in operands]
        # What only the host reads stays where it is; what another device has comes by the host.
        for place, operand in zip(places[count:], operands, strict=False):
            if place.buffer is None and place.host is None:
                place.host = operand.host()
        recorded = spans.state.record is not None
        for number, (run, on_host, inputs, outputs) in enumerate(self._steps):
            start = spans.clock() if recorded else 0
            taken = [places[x] for x in inputs]
            if on_host:
                results = [_Place(value) for value in run([self._on_host(x) for x in taken])]
            else:
                results = [_Place(None, buffer)
                           for buffer in run([self._on_device(x) for x in taken])]
            if recorded:
                kind = "host step" if on_host else "compiled piece"
                spans.add(f"{kind} {number}", kind, start)
            for x, place in zip(outputs, results, strict=True):
                places[x] = place
        # What has moved need not move again.
        for place, operand in zip(places[count:], operands, strict=False):
            if place.buffer is not None and not operand.is_deleted():
                operand.store(place.buffer)
        return [places[x] if type(x) is int else _Place(x) for x in self._outputs]

    def _on_host(self, place: _Place) -> np.ndarray:
        if place.host is None:
            assert place.buffer is not None
            place.host = self.memory.load(place.buffer)
        return np.asarray(place.host)

    def _on_device(self, place: _Place) -> DeviceBuffer:
        if place.buffer is None:
            place.buffer = self.memory.store(np.asarray(place.host))
        return place.buffer


def device_program(closed: ClosedJaxpr, memory: DeviceMemory) -> DeviceProgram:
    """The program of a jaxpr for an accelerator."""
    known = made_of(closed).on_accelerators
    return known.get(memory) or known.setdefault(
        memory, DeviceProgram(program_of(closed), memory))


def call(closed: ClosedJaxpr, operands: Sequence[ArrayImpl],
         where: Sequence[tuple[ShapedArray, Any, bool]], memory: DeviceMemory,
         name: str) -> list[ArrayImpl] | None:
    """Runs a jaxpr on an accelerator; None if it is not compiled for it.

    Args:
      where: type, placement and whether on purpose of each result.
      name: what may be forbidden to run.
    """
    program = device_program(closed, memory)
    if not program.is_ready():
        program.host_calls += 1
        return None
    if status.watched:
        allow_execution(name)
    results = []
    for (aval, placement, committed), place in zip(where, program(operands), strict=True):
        result = ArrayImpl(aval, None if place.buffer is not None else np.asarray(place.host))
        if place.buffer is not None:
            result.store(place.buffer)
        result._placement, result._committed = placement, committed
        results.append(result)
    return results


def explained(closed: ClosedJaxpr, leaves: Sequence[object]) -> DeviceProgram | None:
    """The program of a jaxpr on the accelerator where its operands, or new arrays, are; None if
    they are on none."""
    if not status.accelerators:
        return None
    placements = [leaf._placement for leaf in leaves if isinstance(leaf, ArrayImpl)]
    for placement in (*placements, default_device_override()):
        memory = memory_of(placement)
        if memory is not None:
            return device_program(closed, memory)
    return None
