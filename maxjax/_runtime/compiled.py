"""Compiled programs: pieces that a backend compiled, and host steps between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import spans
from maxjax._ir.jaxpr import Jaxpr, Literal, Var
from maxjax._max.backend import Run, Runs
from maxjax._max.host_step import HostStep
from maxjax._runtime.cells import HostValue
from maxjax._transforms.partition import Piece


class CompiledProgram:
    """The pieces of a program, some compiled and some on the host, called in order.

    Args:
      jaxpr: the program's, with its constants as inputs.
      pieces: what a backend cut it into.
      runs: what runs each compiled piece, by its number.
    """

    __slots__ = ("direct", "on_host", "outputs", "slots", "steps")

    def __init__(self, jaxpr: Jaxpr, pieces: Sequence[Piece], runs: Runs):
        slots: dict[Var, int] = {}

        def slot(var: Var) -> int:
            return slots.setdefault(var, len(slots))

        for var in jaxpr.invars:
            slot(var)
        self.steps = []
        wanted = set(jaxpr.outvars)
        last = {var: number for number, piece in enumerate(pieces) for var in piece.inputs}
        freed: list[list[int]] = [[] for _ in pieces]
        for var, number in last.items():
            if var not in wanted:
                freed[number].append(slot(var))
        self.on_host = {number for number, piece in enumerate(pieces) if piece.on_host}
        for number, piece in enumerate(pieces):
            run: Run = HostStep(piece) if piece.on_host else runs[number]
            self.steps.append((run, [slot(v) for v in piece.inputs],
                               [slot(v) for v in piece.outputs], freed[number]))
        self.outputs = [
            np.asarray(atom.val) if isinstance(atom, Literal) else slot(atom)
            for atom in jaxpr.outvars]
        self.slots = len(slots)
        # One compiled piece that takes just what the program takes and gives what it gives.
        self.direct = None
        if len(self.steps) == 1:
            run, inputs, outputs, _ = self.steps[0]
            if inputs == list(range(len(jaxpr.invars))) and outputs == self.outputs:
                self.direct = run

    def exchange(self) -> None:
        """Has the kernels that are compiled by now take the vector machine's place."""
        for run, *_ in self.steps:
            exchange = getattr(run, "exchange", None)
            if exchange is not None:
                exchange()

    @property
    def is_complete(self) -> bool:
        """Whether nothing stands in the place of a kernel any more."""
        return all(getattr(run, "is_complete", True) for run, *_ in self.steps)

    def __call__(self, values: Sequence[HostValue]) -> list[Any]:
        direct = self.direct
        if direct is not None:
            for x in values:
                if x.__class__ is not np.ndarray:
                    return direct([np.asarray(x) for x in values])
            return direct(values)      # type: ignore[arg-type]  # all are arrays
        buffers: list[Any] = [None] * self.slots
        buffers[:len(values)] = values
        recorded = spans.state.record is not None
        for position, (run, inputs, outputs, freed) in enumerate(self.steps):
            start = spans.clock() if recorded else 0
            results = run([np.asarray(buffers[number]) for number in inputs])
            if recorded:
                kind = "host step" if position in self.on_host else "compiled piece"
                spans.add(f"{kind} {position}", kind, start)
            for number, result in zip(outputs, results, strict=True):
                buffers[number] = result
            for number in freed:
                buffers[number] = None
        return [buffers[x] if type(x) is int else x for x in self.outputs]
