"""The Mojo backend: pieces of a program as tapes of the kernel pack and of generated kernels."""

from __future__ import annotations

import atexit
import contextlib
import functools
import itertools
import math
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maxjax._base import native, threads
from maxjax._base.blas import blas_threads
from maxjax._ir.jaxpr import Jaxpr
from maxjax._max import backend
from maxjax._max.backend import Done, Progress, Runs, nothing_compiled
from maxjax._max.mojo import crew, detached
from maxjax._max.mojo.emitter import HEADER
from maxjax._max.mojo.executable import Executable, runner
from maxjax._max.mojo.forms import Form
from maxjax._max.mojo.pack_library import Pack
from maxjax._max.mojo.plan import Plan, physical_types
from maxjax._max.mojo.store import WAIT_POLL_SECONDS, KernelStore
from maxjax._transforms.partition import host_reason, overwritable, partition
from maxjax._transforms.tokens import order_steps

_DRIVER = "run_program"
_PACK_PRIORITY = 1e18


@dataclass(frozen=True)
class Prepared(backend.Prepared):
    """Adds the plans of the pieces that are compiled, by their numbers."""

    plans: Mapping[int, Plan] = field(default_factory=dict)

    def reasons(self, number: int) -> list[str]:
        steps = self.plans[number].host_steps if number in self.plans else ()
        within = [f"within, on host: {reason}" for step in steps for reason in step.reasons]
        return [*super().reasons(number), *dict.fromkeys(within)]

    @property
    def peak_bytes(self) -> int:
        return max((plan.peak_bytes for plan in self.plans.values()), default=0)

    @property
    def uncompiled_source(self) -> str:
        return "\n\n".join(plan.uncompiled_source for plan in self.plans.values())

    @property
    def source(self) -> str:
        return "\n".join(plan.source for plan in self.plans.values())

    @threads.cached
    def shares(self) -> dict[Form, float]:
        """The part of an uncompiled call's time that each kernel takes, estimated."""
        total = sum(sum(plan.costs.values()) + plan.other_cost for plan in self.plans.values())
        shares: dict[Form, float] = {}
        for plan in self.plans.values():
            for form, cost in plan.costs.items():
                # Where all that there is is loops without an iteration, nothing takes time.
                shares[form] = shares.get(form, 0.0) + (cost / total if total else 0.0)
        return shares


class MojoBackend(backend.Backend[Prepared, "_Compile"]):
    """Compiles with the Mojo compiler, kernel by kernel; for CPUs."""

    name = "mojo"
    DISPATCH_NANOSECONDS = 1_500

    def __init__(self) -> None:
        # What has the vector machine in the place of kernels.
        self._incomplete: weakref.WeakSet[Executable] = weakref.WeakSet()
        self._lock = threads.lock()

    @threads.cached
    def store(self) -> KernelStore:
        store = KernelStore(header=HEADER)
        atexit.register(self._hand_over)
        return store

    def _hand_over(self) -> None:
        """Leaves to a detached builder what this process has requested, and had no time for."""
        # A program must not end with a traceback of ours.
        with contextlib.suppress(Exception):
            if self.broken is None:
                detached.hand_over(self.store, self.pack.is_unfinished)

    @threads.cached
    def pack(self) -> Pack:
        return Pack()

    @property
    def directory(self) -> str:
        return str(self.store.libraries.cache.directory)

    @property
    def broken(self) -> str | None:
        return self.pack.broken or self.store.broken

    @property
    def lacks_place(self) -> bool:
        return self.pack.lacks_place or self.store.lacks_place

    def prepare(self, jaxpr: Jaxpr, donated: tuple[int, ...] = ()) -> Prepared:
        jaxpr = order_steps(jaxpr)
        pieces = partition(jaxpr, functools.partial(host_reason, control_flow=True))
        overwritten = overwritable(jaxpr, donated, pieces)
        plans = {number: Plan(piece.jaxpr, crew.cores(), overwritten[number])
                 for number, piece in enumerate(pieces) if not piece.on_host}
        return Prepared(pieces, nothing_compiled(pieces), plans)

    def is_kept(self, prepared: Prepared) -> bool:
        return not self.missing(prepared)

    def missing(self, prepared: Prepared) -> list[Any]:
        """The kernels and pack functions that are missing."""
        missing: list[Any] = []
        for plan in prepared.plans.values():
            found = self.store.find(plan.kernels)
            missing += [kernel for kernel in plan.kernels if kernel not in found]
            missing += [name for name in (_DRIVER, *plan.functions)
                        if self.pack.address(name) is None]
        return missing

    def find(self, prepared: Prepared) -> Runs | None:
        """The linked pieces, if all their kernels exist, whoever first needed them."""
        if self.missing(prepared):
            return None
        return {number: MojoPiece(self, prepared.pieces[number].jaxpr, plan)
                for number, plan in prepared.plans.items()}

    def find_uncompiled(self, prepared: Prepared) -> Runs | None:
        """The pieces, the vector machine in the place of kernels that `find` has not found."""
        needed = [plan.functions_without_kernels() for plan in prepared.plans.values()]
        for functions in needed:
            if functions is None or any(
                    self.pack.address(name) is None for name in (_DRIVER, *functions)):
                return None
        return {number: MojoPiece(self, prepared.pieces[number].jaxpr, plan, functions)
                for functions, (number, plan) in zip(needed, prepared.plans.items(), strict=True)
                if functions is not None}

    def can_run_uncompiled(self, prepared: Prepared) -> bool:
        return all(plan.functions_without_kernels() is not None
                   for plan in prepared.plans.values())

    def link(self, jaxpr: Jaxpr, plan: Plan, functions: Iterable[str]) -> Executable:
        """A piece with the kernels that were found, and functions of the pack."""
        addresses: dict[Any, int] = dict(self.store.loaded(plan.kernels))
        for name in (_DRIVER, *functions):
            address = self.pack.address(name)
            if address is None:
                raise RuntimeError(f"the kernel pack has lost {name}")
            addresses[name] = address
        return Executable(plan, physical_types(jaxpr), addresses, _runner(addresses[_DRIVER]))

    def complete(self, executable: Executable, plan: Plan) -> None:
        """Has an executable take over kernels as they are built, for whichever program."""
        if not executable.is_complete:
            with self._lock:
                self._incomplete.add(executable)
            self.exchange(self.store.loaded(plan.kernels))

    def exchange(self, kernels: Iterable[Form]) -> None:
        """Has all programs take kernels that exist by now, in the midst of calls as well."""
        found = self.store.find(kernels)
        with self._lock:
            for executable in list(self._incomplete) if found else ():
                executable.exchange(found)
                if executable.is_complete:
                    self._incomplete.discard(executable)

    def charge(self, prepared: Prepared, nanoseconds: float) -> float:
        missing = self._not_loaded(prepared)
        for form in missing:
            form.heat += prepared.shares[form] * nanoseconds
        return sum(form.heat for form in missing)

    def compile_cost(self, prepared: Prepared) -> float:
        # The start of the compiler, and each kernel.
        return 0.6 + 0.4 * len(self._not_loaded(prepared))

    def _not_loaded(self, prepared: Prepared) -> list[Form]:
        loaded = self.store.loaded(prepared.shares)
        return [form for form in prepared.shares if form not in loaded]

    def submit(self, prepared: Prepared, priority: float, done: Done) -> _Compile:
        return _Compile(self, prepared, priority, done)

    def wait(self, job: _Compile, progress: Progress | None) -> None:
        job.wait(progress)


# So many kernels are built together: to start the compiler again costs as much as two kernels, and
# the hottest are soon there.
_TOGETHER = 8
# Where few kernels take so much of the time, they come alone and first.
_MOST_OF_THE_HEAT = 0.75


def _by_heat(kernels: Iterable[Form]) -> list[list[Form]]:
    """Kernels in the order in which they are built, the hottest first; parts are built together."""
    ordered = sorted(dict.fromkeys(kernels), key=lambda form: -form.heat)
    heat = list(itertools.accumulate(form.heat for form in ordered))
    first = 1 + sum(reached <= _MOST_OF_THE_HEAT * heat[-1] for reached in heat)
    if first > min(_TOGETHER, len(ordered)) // 2:
        first = _TOGETHER
    rest = ordered[first:]
    parts = [ordered[:first]] if ordered else []
    return parts + [rest[start:start + _TOGETHER] for start in range(0, len(rest), _TOGETHER)]


class _Compile:
    """A request for a program's kernels: those of the pack, then its own, the hottest first."""

    def __init__(self, backend: MojoBackend, prepared: Prepared, priority: float, done: Done):
        self.backend = backend
        self.prepared = prepared
        self.done = done
        self.ready = threads.Event()
        self._lock = threads.lock()
        self._errors: list[str] = []
        functions = {_DRIVER, *(name for plan in prepared.plans.values()
                                for name in plan.functions)}
        needs_pack = any(backend.pack.address(name) is None for name in functions)
        # By names, because a forked child restarts jobs that were about to end in the parent.
        missing = backend._not_loaded(prepared)
        # Where somebody waits for them all, together is sooner.
        parts = [missing] if priority == math.inf else _by_heat(missing) or [[]]
        self._left = {*range(len(parts)), *(["pack"] if needs_pack else [])}
        self._pack_job = backend.pack.request(
            functools.partial(self._part, "pack"), _PACK_PRIORITY, functions) \
            if needs_pack else None
        self._jobs = [
            backend.store.request(part, functools.partial(self._built, number, part),
                                  min(priority, sum(form.heat for form in part) or priority))
            for number, part in enumerate(parts)]

    def _built(self, number: int, kernels: Sequence[Form], error: str | None) -> None:
        self.backend.exchange(kernels)
        self._part(number, error)

    def _part(self, name: str | int, error: str | None) -> None:
        """Called when the pack, or kernels, are built or have failed."""
        with self._lock:
            self._left.discard(name)
            if error is not None:
                self._errors.append(error)
            if self._left:
                return
        runs, reason = None, None
        try:
            runs = self.backend.find(self.prepared)
        except Exception as failure:
            reason = f"{type(failure).__name__}: {failure}"
        if runs is None:
            # A failure in the pack matters only if this program needs the failed part.
            reason = reason or "; ".join(dict.fromkeys(self._errors)) or "a kernel is gone"
        try:
            self.done(runs, reason)
        finally:
            self.ready.set()

    def wait(self, progress: Progress | None) -> None:
        if self._pack_job is not None:
            self.backend.pack.hasten(self._pack_job)
        for job in self._jobs:
            self.backend.store.wait(job, progress)
        if self._pack_job is not None:
            self.backend.pack.wait(self._pack_job, progress)
        started = time.monotonic()
        while not self.ready.is_set():
            time.sleep(WAIT_POLL_SECONDS)  # as in `Queue.wait`: an interrupt leaves no lock
            if progress is not None:
                progress(time.monotonic() - started)


class MojoPiece:
    """A piece of a program on the Mojo backend."""

    def __init__(self, backend: MojoBackend, jaxpr: Jaxpr, plan: Plan,
                 functions: Iterable[str] | None = None):
        self.backend = backend
        self.plan = plan
        self.executable = backend.link(
            jaxpr, plan, plan.functions if functions is None else functions)
        # LAPACK's threads do not survive a fork amid a call.
        names = {name.rpartition("_")[0] for name in plan.functions}
        self.calls_blas = not names.isdisjoint(native.MATRICES)
        self.process = -1
        backend.complete(self.executable, plan)

    @property
    def is_complete(self) -> bool:
        """Whether all its kernels are compiled."""
        return self.executable.is_complete

    def exchange(self) -> None:
        """Takes the kernels that are known by now, in the midst of a call as well."""
        self.backend.exchange(self.plan.kernels)

    def __call__(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        if self.process != threads.process.forks:    # threads do not survive a fork
            crew.start(self.backend.pack)
            self.process = threads.process.forks
        if self.calls_blas:
            blas_threads.look()
            with threads.unforked:
                return self.executable(arrays)
        return self.executable(arrays)


@functools.cache
def _runner(address: int) -> Callable[..., int]:
    return runner(address)
