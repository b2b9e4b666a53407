"""Tier 1: when a program is compiled, how its artifact is found, and how it runs.

A program that has cost tier 0 enough time is handed to the compile service. Until the artifact
is there, and wherever MAX cannot serve, it stays interpreted.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import config, dtypes
from maxjax._base.errors import CompileError
from maxjax._base.lazy import threadpoolctl
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, Literal, Var
from maxjax._ir.serialize import NotSerializable, dumps, encode
from maxjax._max import kernel_digest, session
from maxjax._max.service import CompileService, warn_once
from maxjax._runtime import program as program_module
from maxjax._runtime.program import Program
from maxjax._transforms.partition import partition

logger = logging.getLogger("maxjax")

BUILDER = "maxjax._max.graph.builder:build"

_clock = time.perf_counter_ns
# Calls that are timed before tier 1 is held against tier 0; the first one also warms up.
_TRIAL_CALLS = 6


class Tiering:
    """The policy and the compiled programs' life."""

    # What a compile costs in processor time: a program must have spent some of that first.
    HOT_NANOSECONDS = 400_000_000
    HOT_CALLS = 2
    # A call of a compiled program costs about this much, whatever it computes: a program that
    # tier 0 runs in less is never compiled.
    DISPATCH_NANOSECONDS = 40_000
    # A program that is estimated to take this long looks for its artifact at its first call.
    EAGER_LOOKUP_SECONDS = 3e-4

    def __init__(self) -> None:
        self._service: CompileService | None = None
        self._lock = threading.Lock()
        self.core = CompilerCore()

    @property
    def service(self) -> CompileService:
        if self._service is None:
            with self._lock:
                if self._service is None:
                    self._service = CompileService(BUILDER)
        return self._service

    def estimate(self, jaxpr: Jaxpr) -> float:
        return estimated_seconds(jaxpr)

    # --- finding or making the artifact ---
    def first_call(self, program: Program) -> None:
        """Loads the artifact of a substantial program that was compiled before."""
        if config.compile_mode.value == "auto" and program.cost > self.EAGER_LOOKUP_SECONDS:
            if not self.prepare(program):
                return
            path = self.service.cache.lookup(program.artifact_key)
            if path is not None:
                self.adopt(program, path, None)

    def request(self, program: Program) -> None:
        """Has a hot program compiled in the background."""
        if config.compile_mode.value != "auto":
            return
        if program.heat < self.DISPATCH_NANOSECONDS * program.interpreted_calls:
            program.state = "light"
            program.reason = "the interpreter takes less time than the dispatch of a MAX program"
            return
        if not self.prepare(program):
            return
        program.state = "queued"
        self.submit(program, priority=float(program.heat))

    def submit(self, program: Program, priority: float) -> Any:
        started = time.monotonic()
        self.core.leave()

        def done(path: Any, error: str | None) -> None:
            self.core.take_back()
            program.compile_seconds = time.monotonic() - started
            self.adopt(program, path, error)

        return self.service.submit(
            program.artifact_key, program.text, done, priority,
            {"directory": str(self.service.cache.directory)})

    def compile_now(self, program: Program) -> None:
        """Waits until MAX has compiled a program; for ``compile="always"`` and ahead of time.

        Raises:
          CompileError: MAX cannot compile it.
        """
        if program.compiled is not None or not self.prepare(program):
            return
        path = self.service.cache.lookup(program.artifact_key)
        if path is not None:
            self.adopt(program, path, None)
        if program.compiled is None:
            program.state = "queued"
            self.service.wait(self.submit(program, float("inf")), _progress_line(program))
        if program.compiled is None:
            raise CompileError(program.reason or "there is no compiled program")

    def compile_or_warn(self, program: Program) -> None:
        """Waits for MAX; where it fails, the program stays interpreted, and a warning says why."""
        try:
            self.compile_now(program)
        except CompileError as error:
            self.fail(program, str(error))

    def fail(self, program: Program, reason: str | None) -> None:
        program.state = "failed"
        program.reason = reason
        warn_once((reason or "unknown").splitlines()[0])
        logger.info("maxjax: a program stays interpreted: %s", reason)

    def prepare(self, program: Program) -> bool:
        """Cuts the program into pieces and makes its text and key; False if it has no tier 1."""
        if program.artifact_key:
            return True
        pieces = partition(program.opened.jaxpr)
        program.pieces = pieces
        compiled = [piece for piece in pieces if not piece.on_host]
        if not compiled:
            program.state = "host"
            program.reason = "; ".join(reason for piece in pieces for reason in piece.reasons) \
                or "there is nothing to compute"
            return False
        try:
            program.text = dumps({"pieces": [
                [f"piece_{number}", encode(piece.jaxpr)]
                for number, piece in enumerate(pieces) if not piece.on_host]})
        except NotSerializable as error:
            program.state = "host"
            program.reason = f"the program cannot be handed to the compiler: {error}"
            return False
        program.artifact_key = "\n".join([
            session.versions(), session.cpu_target(),
            kernel_digest.digest(), program.text]).encode()
        return True

    def adopt(self, program: Program, path: Any, error: str | None) -> None:
        """Swaps a compiled artifact in."""
        if path is None:
            self.fail(program, error)
            return
        try:
            program.compiled = CompiledProgram(program, session.load(path))
        except Exception as failure:
            self.service.cache.discard(program.artifact_key)
            self.fail(program,
                      f"the artifact cannot be loaded: {type(failure).__name__}: {failure}")
            return
        program.state = "compiled"
        program.reason = None
        if config.log_compiles.value:
            logger.warning("Finished MAX compilation of %s in %.1f s",
                           program.closed.jaxpr.debug_info or "a program", program.compile_seconds)

    # --- running ---
    def run_compiled(self, program: Program, values: list[Any]) -> list[Any]:
        program.compiled_calls += 1
        if config.check_tiers.value:
            return check_tiers(program, values)
        compiled = program.compiled
        if program.trial_calls >= _TRIAL_CALLS:
            return compiled(values)
        start = _clock()
        outputs = compiled(values)
        program.trial_calls += 1
        if program.trial_calls > 1:
            elapsed = _clock() - start
            program.trial_best = min(program.trial_best or elapsed, elapsed)
        if program.trial_calls == _TRIAL_CALLS and config.compile_mode.value == "auto":
            tier0 = program.best_interpreted
            if tier0 and program.trial_best > 1.2 * tier0:
                program.compiled = None
                program.state = "slower"
                program.reason = (
                    f"MAX took {program.trial_best / 1e3:.0f} us a call, the interpreter "
                    f"{tier0 / 1e3:.0f} us")
        return outputs


class CompilerCore:
    """Leaves one core to the compiler while it works.

    NumPy's matrix products wait for the slowest of their threads. With as many threads as cores,
    one of them shares its core with the compiler, and products that take a millisecond take ten.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs = 0
        self._limits: Any = None

    def leave(self) -> None:
        with self._lock:
            self._jobs += 1
            if self._jobs == 1:
                cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") \
                    else os.cpu_count() or 1
                self._limits = threadpoolctl.threadpool_limits(
                    limits=max(1, cores - 1), user_api="blas")

    def take_back(self) -> None:
        with self._lock:
            self._jobs -= 1
            if self._jobs == 0 and self._limits is not None:
                self._limits.restore_original_limits()
                self._limits = None


class CompiledProgram:
    """The pieces of a program, some on MAX and some on the host, called in order."""

    __slots__ = ("direct", "outputs", "slots", "steps")

    def __init__(self, program: Program, models: dict[str, Any], prefix: str = ""):
        jaxpr = program.opened.jaxpr
        slots: dict[Var, int] = {}

        def slot(var: Var) -> int:
            return slots.setdefault(var, len(slots))

        for var in jaxpr.invars:
            slot(var)
        self.steps = []
        for number, piece in enumerate(program.pieces):
            run = _host_step(piece.jaxpr) if piece.on_host else session.Executable(
                models[f"{prefix}piece_{number}"])
            self.steps.append((run, [slot(v) for v in piece.inputs],
                               [slot(v) for v in piece.outputs]))
        self.outputs = [
            np.asarray(atom.val) if isinstance(atom, Literal) else slot(atom)
            for atom in jaxpr.outvars]
        self.slots = len(slots)
        # One compiled piece that takes just what the program takes and gives what it gives.
        self.direct = None
        if len(self.steps) == 1:
            run, inputs, outputs = self.steps[0]
            if inputs == list(range(len(jaxpr.invars))) and outputs == self.outputs:
                self.direct = run

    def __call__(self, values: Sequence[Any]) -> list[Any]:
        if self.direct is not None:
            return self.direct([x if type(x) is np.ndarray else np.asarray(x) for x in values])
        places: list[Any] = [None] * self.slots
        places[:len(values)] = values
        for run, inputs, outputs in self.steps:
            results = run([np.asarray(places[number]) for number in inputs])
            for number, result in zip(outputs, results, strict=True):
                places[number] = result
        return [places[x] if type(x) is int else x for x in self.outputs]


def _host_step(jaxpr: Jaxpr) -> Any:
    run = interpreter(ClosedJaxpr(jaxpr))

    def step(values: Sequence[Any]) -> list[Any]:
        with np.errstate(all="ignore"):
            return run(*values)
    return step


def estimated_seconds(jaxpr: Jaxpr) -> float:
    """What a call of a program will roughly take: to decide, not to report."""
    total = 0.0
    for eqn in jaxpr.eqns:
        bytes_moved = sum(var.aval.nbytes for var in eqn.outvars)
        total += 1e-6 + bytes_moved * 5e-10
        if eqn.primitive.flops is not None:
            avals = [atom.aval for atom in eqn.invars]
            total += eqn.primitive.flops(avals, [v.aval for v in eqn.outvars], **eqn.params) * 2e-11
    return total


def check_tiers(program: Program, values: list[Any]) -> list[Any]:
    """Runs both tiers.

    Raises:
      AssertionError: they differ by more than rounding.
    """
    with np.errstate(all="ignore"):
        expected = program.tier0(*values)
    results = program.compiled(values)
    for number, (aval, ours, theirs) in enumerate(
            zip(program.out_avals, results, expected, strict=True)):
        difference = disagreement(np.asarray(ours), np.asarray(theirs), aval)
        if difference:
            raise AssertionError(
                f"the tiers differ: output {number} ({aval.str_short()}) of "
                f"{program.closed.jaxpr.debug_info or 'a program'}: {difference}")
    return results


# Rounding errors grow with the length of sums: relative to the largest element of the output.
_RELATIVE = {"float16": 2e-2, "bfloat16": 6e-2, "float32": 2e-4, "float64": 1e-10}


def disagreement(ours: np.ndarray, theirs: np.ndarray, aval: Any) -> str | None:
    """How two results differ by more than rounding; None if they do not."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"MAX gives {ours.dtype}{ours.shape}, the interpreter {theirs.dtype}{theirs.shape}"
    if not dtypes.is_inexact(aval.dtype):
        count = int(np.sum(ours != theirs))
        return f"{count} of {ours.size} elements" if count else None
    left, right = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    if not np.array_equal(np.isnan(left), np.isnan(right)):
        return "NaN at different places"
    finite = np.isfinite(left) & np.isfinite(right)
    if not np.array_equal(left[~finite & ~np.isnan(left)], right[~finite & ~np.isnan(right)]):
        return "infinities at different places"
    if not finite.any():
        return None
    scale = max(float(np.max(np.abs(right[finite]))), 1e-30)
    worst = float(np.max(np.abs(left[finite] - right[finite])))
    if worst > _RELATIVE.get(aval.dtype.name, 0.1) * scale:
        return f"by up to {worst:.3g}, at a scale of {scale:.3g}"
    return None


def _progress_line(program: Program) -> Any:
    """A line on the terminal that tells what is waited for."""
    if not sys.stderr.isatty():
        return None
    name = program.closed.jaxpr.debug_info.split(" at ")[0] or "a program"
    last = [0.0]

    def show(seconds: float) -> None:
        if seconds - last[0] > 0.5:
            last[0] = seconds
            sys.stderr.write(f"\rmaxjax: MAX compiles {name}: {seconds:.0f} s ")
            sys.stderr.flush()
    return show



tiering = Tiering()
program_module.set_tiering(tiering)
