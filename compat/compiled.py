"""Tier 1: cases run on what a backend compiles, the compiles of many cases at once.

Everything runs twice. The first time each program is planned, and interpreted; then all that the
programs of the batch need is built; the second time they run compiled, host steps included.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from compat import evaluate
from compat.answers import FOLDER, Question
from compat.outcome import Outcome
from maxjax._base import config
from maxjax._ir.serialize import dumps
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.graph import session
from maxjax._max.graph.backend import executables, texts
from maxjax._max.mojo.backend import MojoBackend
from maxjax._max.mojo.emitter import HEADER
from maxjax._max.mojo.store import KernelStore
from maxjax._max.versions import cpu_target, versions
from maxjax._runtime import cells
from maxjax._runtime import program as program_module
from maxjax._runtime.compiled import CompiledProgram
from maxjax._runtime.program import Program
from maxjax._runtime.tiering import tiering

PER_LIBRARY = 64


class BuildFailed(Exception):
    """What a program needs could not be built."""


class Mojo:
    """The default backend; kernels are kept in a folder of the suite's own."""

    name = "mojo"

    def __init__(self, folder: Path = FOLDER):
        self.backend = MojoBackend()
        kept = folder / "kernels"
        kept.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.backend.store = KernelStore(
            HEADER, ArtifactCache(kept, max_bytes=8 << 30), PER_LIBRARY)
        self.backend.store.libraries.compiler_threads = 1
        self._kernels: dict[str, None] = {}

    def add(self, program: Program) -> None:
        for plan in program.prepared.plans.values():
            self._kernels.update(dict.fromkeys(plan.kernels))

    def build(self) -> int:
        """Builds what the programs need; returns how many kernels there were."""
        if self.backend.pack.build() is not None:
            raise BuildFailed("the kernel pack")
        store = self.backend.store
        missing = store._missing(self._kernels)
        # Neighbours resemble one another: each library gets some of all sorts.
        count = -(-len(missing) // PER_LIBRARY)
        for number in range(count):
            store.build(missing[number::count])
        self._kernels.clear()
        return len(missing)

    def find(self, program: Program) -> CompiledProgram:
        failures = self.backend.store.failures()
        for plan in program.prepared.plans.values():
            for source in plan.kernels:
                if source in failures:
                    raise BuildFailed(failures[source])
        runs = self.backend.find(program.prepared)
        if runs is None:
            raise BuildFailed(f"missing: {self.backend.missing(program.prepared)[:1]}")
        return CompiledProgram(program.opened.jaxpr, program.prepared.pieces, runs)


class Graph:
    """The graph backend: all pieces of a batch in one MAX module."""

    name = "graph"

    def __init__(self, timeout: float = 1500.0) -> None:
        self.backend = tiering.graph
        self.timeout = timeout
        self._waiting: dict[bytes, Program] = {}
        self._models: dict[bytes, tuple[dict[str, Any], str]] = {}
        self._failures: dict[bytes, str] = {}

    def add(self, program: Program) -> None:
        key = program.prepared.key
        if key not in self._models:
            self._waiting[key] = program

    def build(self) -> int:
        programs, self._waiting = self._waiting, {}
        self._build(list(programs.items()))
        return len(programs)

    def _build(self, programs: Sequence[tuple[bytes, Program]]) -> None:
        """Compiles programs together; where one of them is at fault, in halves."""
        if not programs:
            return
        pieces = [text for number, (_, program) in enumerate(programs)
                  for text in texts(program.prepared.pieces, f"program{number}_")]
        text = dumps({"pieces": pieces})
        service = self.backend.service
        key = "\n".join([versions(), cpu_target(), text]).encode()
        options = {"directory": str(service.cache.directory)}
        job = service.submit(key, text, lambda path, error: None, 0.0, options)
        try:
            models = session.load(service.wait(job, timeout=self.timeout))
        except Exception as error:
            if len(programs) == 1:
                self._failures[programs[0][0]] = f"{type(error).__name__}: {error}"
                return
            half = len(programs) // 2
            self._build(programs[:half])
            self._build(programs[half:])
            return
        for number, (own, _) in enumerate(programs):
            self._models[own] = (models, f"program{number}_")

    def find(self, program: Program) -> CompiledProgram:
        key, pieces = program.prepared.key, program.prepared.pieces
        if key in self._failures:
            raise BuildFailed(self._failures[key])
        return CompiledProgram(
            program.opened.jaxpr, pieces, executables(pieces, *self._models[key]))


@dataclasses.dataclass
class Usage:
    """What a case's programs were: compiled pieces, host steps and their reasons."""

    compiled: int = 0
    host: set[str] = dataclasses.field(default_factory=set)

    def __str__(self) -> str:
        return "; ".join(filter(None, [
            f"{self.compiled} programs compiled" if self.compiled else "",
            "on the host: " + ", ".join(sorted(self.host)) if self.host else ""]))


class Policy(program_module.Tiering):
    """Takes tiering's place: every program is planned, then found compiled."""

    def __init__(self, backend: Mojo | Graph):
        self.backend = backend
        self.recording = True
        self.usage = Usage()

    def first_call(self, program: Program) -> None:
        self.compile_or_warn(program)

    def compile_or_warn(self, program: Program) -> None:
        self.compile_now(program)

    def compile_now(self, program: Program) -> None:
        if program.prepared is None or program.backend != self.backend.name:
            program.backend = self.backend.name
            program.compiled = None
            program.prepared = self.backend.backend.prepare(program.opened.jaxpr)
            program.state, program.reason = "cold", program.prepared.reason
            if program.reason is not None:
                program.state = "host"
        if not self.recording:
            self.usage.host.update(
                reason for piece in program.prepared.pieces for reason in piece.reasons)
        if program.state == "host":
            return
        if self.recording:
            self.backend.add(program)
        else:
            program.compiled = self.backend.find(program)
            program.state = "compiled"

    def run_compiled(self, program: Program, compiled: Any, values: list[Any]) -> list[Any]:
        self.usage.compiled += 1
        return compiled(values)


@contextlib.contextmanager
def _in_place(policy: Policy) -> Iterator[None]:
    """Every program compiles, those of eager operations too, however light."""
    tiering, light = program_module.policy.tiering, cells.LIGHT_BYTES
    program_module.policy.tiering = policy
    cells.LIGHT_BYTES = -1
    program_module._graph_programs.clear()
    try:
        with config.compile_mode("always"):
            yield
    finally:
        program_module.policy.tiering = tiering
        cells.LIGHT_BYTES = light
        program_module._graph_programs.clear()


class Batch:
    """Cases whose programs are compiled together."""

    def __init__(self, backend: Mojo | Graph):
        self.backend = backend

    def plan(self, question: Question) -> None:
        """Finds out what the programs of a case need."""
        with _in_place(Policy(self.backend)):
            evaluate.run(evaluate.own(), *question)

    def build(self) -> int:
        return self.backend.build()

    def run(self, question: Question) -> tuple[Outcome, Usage]:
        outcome, usage = self._run(question)
        if outcome.error is not None and BuildFailed.__name__ in outcome.error[0]:
            # Eager operations share scalars that are known from the calls before: a case's program
            # is another one the second time.
            self.plan(question)
            self.build()
            outcome, usage = self._run(question)
        return outcome, usage

    def _run(self, question: Question) -> tuple[Outcome, Usage]:
        policy = Policy(self.backend)
        policy.recording = False
        with _in_place(policy):
            outcome = evaluate.run(evaluate.own(), *question)
        return outcome, policy.usage
