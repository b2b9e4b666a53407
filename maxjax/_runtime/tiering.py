"""Tier 1: when a program is compiled, by which backend, and how it runs.

A program that has cost tier 0 enough time is handed to a backend. Until it is compiled, and
wherever no backend can serve, it stays interpreted.
"""

from __future__ import annotations

import logging
import sys
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from maxjax._base import collection, config, logs, monitoring, spans, threads, variables
from maxjax._base.blas import blas_threads
from maxjax._base.errors import CompileError
from maxjax._base.interrupts import context_manager
from maxjax._ir.jaxpr import Jaxpr
from maxjax._max.backend import Backend, Prepared, Progress, Runs
from maxjax._max.graph.backend import GraphBackend
from maxjax._max.mojo.backend import MojoBackend
from maxjax._max.mojo.pack_library import Pack
from maxjax._max.warning import warn_once
from maxjax._runtime import notebooks
from maxjax._runtime import program as program_module
from maxjax._runtime.agreement import check_tiers
from maxjax._runtime.compiled import CompiledProgram
from maxjax._runtime.estimates import equation_count, estimated_seconds
from maxjax._runtime.long_calls import LongCalls
from maxjax._runtime.program import Program

logger = logging.getLogger("maxjax")

_clock = time.perf_counter_ns
# Calls that are timed before tier 1 is held against tier 0; the first one also warms up.
_TRIAL_CALLS = 8
# Interpreted calls after which it is tried once more, and eight times as many from then on.
_RETRY_CALLS = 256


class Tiering(program_module.Tiering):
    """The policy and the compiled programs' life."""

    # A program is compiled once it has cost a quarter of what that takes; this much where it takes
    # what one kernel does (`Backend.compile_cost`).
    HOT_NANOSECONDS = 50_000_000
    HOT_CALLS = 2
    # What is estimated to take so long in tier 0, for the same compile, is compiled while its first
    # call runs.
    LONG_SECONDS = 0.5
    # What has run native for so long is accounted for at once.
    CHARGE_NANOSECONDS = 10_000_000
    # After so much time in tier 0 for each thousand of equations, which is what planning takes, it
    # is worth planning a program, to see whether all it needs has been compiled before.
    LOOKUP_NANOSECONDS = 30_000_000
    # Once a program has brought in the backend, small programs are planned as soon as they have
    # cost what that takes: so much, and so much for each equation.
    LEAST_LOOKUP_NANOSECONDS = 3_000_000
    EQUATION_LOOKUP_NANOSECONDS = 200_000
    SHORT_NANOSECONDS = 10_000      # of a compiled call; the interpreter may take less still
    # A program that is estimated to take this long looks for its artifact at its first call.
    EAGER_LOOKUP_SECONDS = 3e-4

    def __init__(self) -> None:
        self.mojo = MojoBackend()
        self.graph = GraphBackend(lambda: self.mojo.pack)
        self.backends: dict[str, Backend[Any, Any]] = {
            backend.name: backend for backend in (self.mojo, self.graph)}
        self.planning = threads.lock()
        # The programs that are with a compiler or compiled, which a fork may take from them.
        self._submitted: weakref.WeakSet[Program] = weakref.WeakSet()
        self.long_calls = LongCalls(self._charge_within)
        self._has_run_native = False
        threads.after_fork(self._after_fork_in_child)

    def _after_fork_in_child(self) -> None:
        """Programs that the parent's threads have compiled become hot again, and what cannot run
        in a child is interpreted from now on."""
        for program in list(self._submitted):
            unavailable = self.backend_of(program).why_unavailable()
            if program.state == "queued":
                program.state = "native" if program.uncompiled else "cold"
            elif unavailable is not None:
                program.compiled = program.proven = program.rejected = None
                program.state, program.reason = "host", unavailable

    def backend_of(self, program: Program) -> Backend[Any, Any]:
        return self.backends[program.backend or config.backend.value]

    def estimate(self, jaxpr: Jaxpr) -> tuple[float, float]:
        """Seconds that a call takes, and thousands of equations."""
        return estimated_seconds(jaxpr), equation_count(jaxpr) / 1000

    # --- finding or making what is compiled ---
    def first_call(self, program: Program) -> None:
        """Loads a substantial program that was compiled before, or whose kernels are known."""
        if config.compile_mode.value != "auto":
            return
        planning = self._lookup_heat(program)
        if program.heat > planning or program.cost > self.EAGER_LOOKUP_SECONDS and (
                program.size <= 1.0 or program.cost * 1e9 > planning):
            self.look(program)
        if program.compiled is None and program.state == "cold" \
                and program.cost > self.LONG_SECONDS and self.prepare(program) and program.cost > \
                self.LONG_SECONDS * self.backend_of(program).compile_cost(program.prepared):
            self.submit(program, priority=program.cost * 1e9)

    def warm(self, program: Program) -> None:
        """Loads a program on which tier 0 has spent as much as planning it takes."""
        if config.compile_mode.value != "auto":
            return
        program.look_heat = max(program.look_heat, self._lookup_heat(program))
        if program.heat > program.look_heat:
            self.look(program)

    def _lookup_heat(self, program: Program) -> int:
        """How much a program costs tier 0 before it is planned."""
        planning = int(self.LOOKUP_NANOSECONDS * max(1.0, program.size))
        if not self._has_run_native:
            return planning
        return min(planning, self.LEAST_LOOKUP_NANOSECONDS
                   + int(self.EQUATION_LOOKUP_NANOSECONDS * 1000 * program.size))

    def look(self, program: Program, uncompiled: bool = True) -> None:
        """Loads a program if nothing is left to compile.

        Args:
          uncompiled: whether it may run with the vector machine in place of kernels until then.
        """
        with collection.stopped:
            self._look(program, uncompiled)

    def _look(self, program: Program, uncompiled: bool) -> None:
        program.looked = True
        if not self.prepare(program):
            return
        try:
            runs = self.backend_of(program).find(program.prepared)
        except RuntimeError as error:
            self.fail(program, str(error))
            return
        if runs is not None:
            self._has_run_native = True
            self.adopt(program, runs, None)
        elif uncompiled:
            self._run_uncompiled(program)

    def _run_uncompiled(self, program: Program) -> None:
        """Takes a program from the interpreter before its kernels are compiled."""
        prepared = program.prepared
        assert prepared is not None
        backend = self.backend_of(program)
        runs = backend.find_uncompiled(prepared)
        if runs is None:
            if backend.can_run_uncompiled(prepared):
                # Once the pack has what it needs.
                program.looked = False
                program.look_heat = 2 * program.heat
                self._request_pack()
            return
        self._submitted.add(program)
        self._has_run_native = True
        program.compiled = CompiledProgram(program.opened.jaxpr, prepared.pieces, runs)
        program.uncompiled = True
        if program.state != "queued":       # else its kernels are on their way
            program.state = "native"
        program.trial_calls = program.trial_best = 0

    def _request_pack(self) -> None:
        """Has the kernel pack built, as a program would run native that cannot without it."""
        pack = self.mojo.pack
        if not pack.requested:
            left, many = len(pack.missing()), len(pack.units)
            blas_threads.leave_core()
            if not pack.request_once(lambda error: blas_threads.take_core_back()):
                blas_threads.take_core_back()
                return
            logger.warning(
                "building the kernel library in the background, once on this machine: %d of %d "
                "parts are there, the rest takes %s. Your program goes on, on NumPy meanwhile",
                many - left, many, pack.estimate(left))

    def request(self, program: Program) -> None:
        """Has a hot program of tier 0 compiled in the background."""
        # To plan a thousand equations takes as long as they must have cost.
        if config.compile_mode.value != "auto" \
                or program.heat < self.HOT_NANOSECONDS * program.size:
            return
        backend = self.backend_of(program)
        if program.heat < backend.DISPATCH_NANOSECONDS * program.interpreted_calls:
            program.state = "light"
            light = "the interpreter takes less time than the dispatch of a MAX program"
            # Where it had turned from another backend, that one's reason as well.
            program.reason = f"{program.reason}; {light}" if program.reason else light
            return
        if self.prepare(program) and self._is_hot(program):
            self.submit(program, priority=float(program.heat))

    def _is_hot(self, program: Program, heat: float = 0.0) -> bool:
        """Whether a program has cost what makes it worth compiling.

        Args:
          heat: what its kernels have cost, in whatever programs.
        """
        # What kernels take of a program's time is an estimate that may be far off: the time of the
        # whole program counts as well.
        return max(heat, program.heat) > \
            self.HOT_NANOSECONDS * self.backend_of(program).compile_cost(program.prepared)

    def submit(self, program: Program, priority: float) -> Any:
        started, start, since = time.monotonic(), spans.clock(), time.time()
        self._submitted.add(program)
        program.state = "queued"
        blas_threads.leave_core()

        def done(runs: Runs | None, error: str | None) -> None:
            blas_threads.take_core_back()
            program.compile_seconds = time.monotonic() - started
            spans.add(f"compile {program.name}", "compile", start)
            monitoring.record_phase("/jax/core/compile/backend_compile_duration", since,
                                    time.time(), fun_name=program.name)
            self.adopt(program, runs, error)

        return self.backend_of(program).submit(program.prepared, priority, done)

    def compile_now(self, program: Program, waits_for_graph: bool = True) -> None:
        """Waits until a program is compiled; for ``compile="always"`` and ahead of time.

        Args:
          waits_for_graph: whether the graph backend, which takes minutes, stands in for the Mojo
            backend where that one has no compiler.

        Raises:
          CompileError: it cannot be. Where only a place to build lacks, it stays interpreted.
        """
        if program.state == "failed":
            program.reason = None
        if program.compiled is not None and not program.uncompiled:
            return
        if not self.prepare(program):
            prepared = program.prepared
            if prepared is not None and prepared.failed:
                raise CompileError(prepared.reason or "planning failed")
            return
        self.look(program, uncompiled=False)
        while (program.compiled is None or program.uncompiled) and program.state != "host":
            backend = self.backend_of(program)
            with _progress_line(program, self.mojo.pack) as progress:
                backend.wait(self.submit(program, float("inf")), progress)
            if program.state == "failed" and (
                    backend.broken and not waits_for_graph or not self._fall_back(program)):
                if backend.lacks_place:     # nothing is wrong with the program
                    self.fail(program, program.reason)
                    return
                raise CompileError(program.reason or "there is no compiled program")

    def compile_or_warn(self, program: Program) -> None:
        """Waits for the compiler; where it fails, the program stays interpreted, with a warning.
        """
        try:
            self.compile_now(program, waits_for_graph=False)
        except CompileError as error:
            self.fail(program, str(error))

    def fail(self, program: Program, reason: str | None) -> None:
        program.state = "failed"
        program.reason = reason
        first = (reason or "unknown").splitlines()[0]
        warn_once(f"programs stay interpreted: {first}")
        logger.info("maxjax: a program stays interpreted: %s", reason)

    def _fall_back(self, program: Program) -> bool:
        """Turns from the Mojo backend, where it fails, to the graph backend; False if there is
        nothing to turn to: what has no place to build has none on the graph backend either."""
        backend = self.backend_of(program)
        if backend.name == "graph" or backend.lacks_place:
            return False
        logger.info("maxjax: a program turns to the graph backend: %s", program.reason)
        program.backend = "graph"
        program.prepared = None
        program.state = "cold"
        return self.prepare(program)

    def retry(self, program: Program) -> None:
        """Tries a compiled program again that was slower: the machine may have been busy."""
        with self.planning:
            if program.rejected is None:        # another thread was faster
                return
            program.trial_calls = program.trial_best = 0
            program.compiled, program.rejected = program.rejected, None
            program.state = "compiled"
            program.reason = None

    def prepare(self, program: Program) -> bool:
        """Cuts the program into pieces and makes them ready to compile; False if it has no
        tier 1."""
        with self.planning, collection.stopped:
            return self._prepare(program)

    def _prepare(self, program: Program) -> bool:
        if program.prepared is not None:
            return program.state != "host" and program.prepared.reason is None
        backend = self.backend_of(program)
        program.backend = backend.name
        start = spans.clock()
        try:
            prepared = backend.prepare(program.opened.jaxpr, program.donated)
            spans.add(f"plan {program.name}", "plan", start, backend=backend.name)
        except Exception as error:      # the compiler's own mistakes stop no program
            if variables.strict():
                raise
            program.reason = f"planning failed: {type(error).__name__}: {error}"
            logger.info("maxjax: %s", program.reason)
            prepared = Prepared(reason=program.reason, failed=True)
            if self._fall_back(program):
                return True
            warn_once(f"programs stay interpreted: {str(prepared.reason).splitlines()[0]}")
        program.prepared = prepared
        if prepared.reason is not None:
            program.state = "host"
            program.reason = prepared.reason
            return False
        return True

    def adopt(self, program: Program, runs: Runs | None, error: str | None) -> None:
        """Swaps a compiled program in."""
        prepared = program.prepared
        if program.uncompiled and runs is None:
            program.state, program.reason = "failed", error
            first = (error or "unknown").splitlines()[0]
            warn_once(f"programs run without compiled kernels: {first}")
            return
        if runs is None or prepared is None:
            program.state = "failed"
            # Where it had turned from another backend, that one's reason as well.
            program.reason = f"{program.reason}; {error}" if program.reason else error
            if config.compile_mode.value == "auto":
                if self._fall_back(program):
                    warn_once(error or "unknown")
                    self.submit(program, priority=float(program.heat))
                else:
                    self.fail(program, program.reason)
            return
        self._submitted.add(program)
        if program.uncompiled:
            self._complete(program)
        else:
            program.compiled = CompiledProgram(program.opened.jaxpr, prepared.pieces, runs)
            program.state = "compiled"
            program.reason = None
        logs.DISPATCH.log(
            logging.WARNING if config.log_compiles.value else logging.DEBUG,
            "Finished MAX compilation of %s in %.1f s",
            program.closed.jaxpr.debug_info or "a program", program.compile_seconds)

    def _complete(self, program: Program) -> None:
        """Marks a program as compiled whose kernels have all taken the vector machine's place."""
        program.compiled.exchange()
        program.trial_calls = program.trial_best = 0
        program.uncompiled = False
        program.state = "compiled"
        program.reason = None

    # --- running ---
    def run_compiled(self, program: Program, compiled: CompiledProgram,
                     values: list[np.ndarray]) -> list[Any]:
        program.compiled_calls += 1
        if config.check_tiers.value and not program.effects:      # they happen once a call
            return check_tiers(program, compiled, values)
        if program.uncompiled:
            return self._call_uncompiled(program, compiled, values)
        if program.trial_calls >= _TRIAL_CALLS:
            program.proven = program.compiled
            return compiled(values)
        start = _clock()
        outputs = compiled(values)
        program.trial_calls += 1
        if program.trial_calls > 1:
            elapsed = _clock() - start
            program.trial_best = min(program.trial_best or elapsed, elapsed)
        if program.trial_calls == _TRIAL_CALLS and config.compile_mode.value == "auto":
            best, tier0 = program.trial_best, program.best_interpreted
            if program.interpreted_calls and best > 1.2 * tier0:
                program.has_won = False
                times = f"{best / 1e3:.0f} us a call, the interpreter {tier0 / 1e3:.0f} us"
                self._reject(program, compiled, (8 if program.retry_at else 1) * _RETRY_CALLS,
                             f"MAX took {times}")
            elif best < self.SHORT_NANOSECONDS and not program.has_won:
                # A few microseconds are soon lost to another process: it has to be faster twice.
                program.has_won, program.best_interpreted = True, 1 << 62
                self._reject(program, compiled, _TRIAL_CALLS, "the interpreter is tried")
            else:
                program.rejected = None
        return outputs

    def _reject(self, program: Program, compiled: CompiledProgram, calls: int, why: str) -> None:
        """Lets the interpreter run the next calls."""
        program.rejected, program.compiled, program.state = compiled, None, "slower"
        program.retry_at, program.reason = calls + program.interpreted_calls, why

    def _call_uncompiled(self, program: Program, compiled: CompiledProgram,
                         values: list[np.ndarray]) -> list[Any]:
        """A call on the vector machine; it is timed, as those of tier 0 are."""
        if config.compile_mode.value == "always" and program.state in ("native", "queued"):
            self.compile_or_warn(program)
            compiled = program.compiled
        start = _clock()
        try:
            self.long_calls.begin(program)
            outputs = compiled(values)
        finally:
            charged = self.long_calls.end(program)
        elapsed = _clock() - start
        program.heat += elapsed - charged
        program.uncharged += elapsed - charged
        if program.family is not None:
            program.family.heat = max(program.heat, program.family.heat)
        program.trial_calls += 1
        program.trial_best = min(program.trial_best or elapsed, elapsed)
        if program.trial_calls == _TRIAL_CALLS and program.interpreted_calls \
                and program.trial_best > 1.2 * program.best_interpreted:
            program.uncompiled = False
            program.compiled = None
            program.state = "cold"
        elif program.uncharged > min(self.CHARGE_NANOSECONDS, self.HOT_NANOSECONDS):
            uncharged, program.uncharged = program.uncharged, 0
            self._charge(program, uncharged)
        return outputs

    def _charge_within(self, program: Program, nanoseconds: int) -> None:
        """Charges a program for a part of a call that goes on."""
        program.heat += nanoseconds
        self._charge(program, nanoseconds)

    def _charge(self, program: Program, nanoseconds: int) -> None:
        """Charges the kernels of a program that runs without them, and has them compiled once
        this program has cost enough, or they have in whatever programs."""
        prepared, compiled = program.prepared, program.compiled
        if prepared is None or compiled is None or not program.uncompiled:
            return
        heat = self.backend_of(program).charge(prepared, nanoseconds)
        if program.state != "native":
            return
        if compiled.is_complete:
            self._complete(program)
        elif config.compile_mode.value == "auto" and self._is_hot(program, heat):
            self.submit(program, priority=heat)


@context_manager
def _progress_line(program: Program, pack: Pack) -> Iterator[Progress | None]:
    """A line on the terminal, or in a notebook, that says what is waited for, as long as it is."""
    if not notebooks.rewrites_lines(sys.stderr):
        yield None
        return
    name = program.closed.jaxpr.debug_info.split(" at ")[0] or "a program"
    started = last = time.monotonic()

    def show(seconds: float) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last > 0.5:
            last = now
            left, many = len(pack.missing()), len(pack.units)
            once = f"; the kernel pack, once a machine: {many - left} of {many}" if left else ""
            notebooks.write_over(sys.stderr,
                                 f"maxjax: compiling {name}: {now - started:.0f} s{once} ")

    try:
        yield show
    finally:
        if last != started:
            notebooks.write_over(sys.stderr, "")


tiering = Tiering()
program_module.policy.tiering = tiering
