"""Native kernels by their full source text, built in the background and cached across processes.

A library holds the kernels that one request was missing. In the cache (see ``artifacts``) it is
one artifact under many keys: one for the library, and one for each of its kernels, which is
compared in full. A kernel's symbol is derived from its text, so a kernel can be found without
knowing the library it was built into. Any problem with a file is a miss, and a miss is rebuilt.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from maxjax._base import threads
from maxjax._base.interrupts import context_manager
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.folder_locks import KeyLock
from maxjax._max.mojo import crew, toolchain
from maxjax._max.mojo.toolchain import Pace, ToolchainError, build_library
from maxjax._max.warning import warn_once

HEADER = "from kernels.calling import *\n"
PLACEHOLDER = "KERNEL"

Done = Callable[["str | None"], None]

_LOCK_POLL_SECONDS = 0.1
WAIT_POLL_SECONDS = 0.002     # a compile takes a hundredfold
_BISECTIONS = 2
# For fewer kernels, starting the compiler twice costs more than it gains.
_FEWEST_PER_LIBRARY = 2
_LOCATED_ERROR = re.compile(
    rf"^[^\n]*{re.escape(toolchain.SOURCE_NAME)}:(\d+):\d+: error: (.*)$", re.MULTILINE)
_LOCATION = re.compile(rf"{re.escape(toolchain.SOURCE_NAME)}:(\d+):\d+")


class Written(Protocol):
    """A kernel whose source is written when it is needed, once for one object.

    Attributes:
      identity: a text that determines the source.
      source: as of `Kernel`.
    """

    @property
    def identity(self) -> str: ...

    @property
    def source(self) -> str: ...


# A kernel to find or to build: its source, or what has one.
Source = str | Written
_Source = TypeVar("_Source", bound=Source)


class Kernel(NamedTuple):
    """One kernel.

    Attributes:
      of: Mojo declarations, among them one exported function named ``KERNEL``, as in
        ``@export("KERNEL")``. Its other top-level names begin with ``KERNEL``, which is replaced
        wherever it occurs.
    """

    of: Source

    @property
    def identity(self) -> str:
        return self.of if isinstance(self.of, str) else self.of.identity

    @property
    def source(self) -> str:
        return self.of if isinstance(self.of, str) else self.of.source

    @property
    def symbol(self) -> str:
        return f"k_{hashlib.sha256(self.identity.encode()).hexdigest()[:32]}"

    @property
    def text(self) -> str:
        return self.source.replace(PLACEHOLDER, self.symbol)


_thread = threading.local()     # whether the current one builds


class Job:
    """A request for kernels.

    Attributes:
      sources, priority, label: as requested.
      pace: of its build: one that somebody waits for is urgent.
      error: why a kernel is missing, once the job is done; None when all can be found.
      ready: set after ``done`` has been called.
      submitted, started: ``time.monotonic()``; ``started`` is None while the job waits.
      begun: a thread is at it, or has been.
    """

    def __init__(self, work: Callable[[Pace], str | None], done: Done, priority: float,
                 label: str = "", sources: Sequence[Source] = ()):
        self.work = work
        self.done = done
        self.priority = priority
        self.label = label
        self.sources = tuple(sources)
        self.pace = Pace()
        self.error: str | None = None
        self.ready = threads.Event()
        self.submitted = time.monotonic()
        self.started: float | None = None
        self.begun = False

    def __repr__(self) -> str:
        state = ("failed" if self.error else "done") if self.ready.is_set() else (
            "waiting" if self.started is None else "building")
        return f"<Job {self.label!r} {state} priority={self.priority}>"


class Queue:
    """Jobs and the thread that runs them, those of the highest priority first; one that somebody
    waits for has a thread of its own."""

    def __init__(self, name: str):
        self.name = name
        self._jobs: list[Job] = []
        self._inherited: list[Job] = []     # by a fork
        self._thread: threading.Thread | None = None
        # Acquired directly, not through the condition, whose `with` an interrupt can leave locked.
        self._lock = threads.lock()
        self._condition = threads.condition(self._lock)
        threads.after_fork(self._after_fork_in_child)

    def submit(self, job: Job) -> None:
        """Returns at once and never raises."""
        with self._lock:
            self._jobs.append(job)
            problem = self._start()
            if problem is None:
                self._condition.notify_all()
                return
            self._jobs.remove(job)
        self._finish(job, problem)

    def unfinished(self) -> list[Job]:
        """The jobs that are not done, the most urgent first."""
        with self._lock:
            jobs = [job for job in self._jobs if not job.ready.is_set()]
        return sorted(jobs, key=lambda job: (-job.priority, job.submitted))

    def hasten(self, job: Job) -> str | None:
        """Has a job run now, beside the others; returns why it is not, or None."""
        with self._lock:
            job.pace.urgent = True
            if job in self._inherited:
                self._inherited.remove(job)
                self._jobs.append(job)
                job.started, job.begun = None, False
            if job not in self._jobs or job.started is not None:    # gone after a fork, or begun
                return None
            problem: str | None = "interrupted"
            try:
                job.started = time.monotonic()
                _, problem = self._thread_for(lambda: self._do(job))
            finally:
                # Also after an interrupt, with a thread or without: the next who waits hastens it.
                if problem is not None:
                    job.started = None
        return problem

    def wait(self, job: Job, progress: Callable[[float], None] | None = None) -> str | None:
        """Hastens a job and waits for it; returns its error.

        Args:
          progress: called many times a second with the seconds since the job was submitted.
        """
        problem = self.hasten(job)
        if problem is not None:
            return problem
        while not job.ready.is_set():
            if getattr(_thread, "builds", False):
                return "a callback of a build cannot wait for another build"
            if progress is not None:
                progress(time.monotonic() - job.submitted)
            time.sleep(WAIT_POLL_SECONDS)      # not Event.wait, for the same reason as above
        return job.error

    def _start(self) -> str | None:
        if self._thread is not None and self._thread.is_alive():
            return None
        thread, problem = self._thread_for(self._run)
        self._thread = thread or self._thread
        return problem

    def _thread_for(self, target: Callable[[], None]
                    ) -> tuple[threading.Thread | None, str | None]:
        thread = threading.Thread(target=target, name=self.name, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no more threads, or the interpreter is ending
            return None, f"no thread to build native code: {error}"
        return thread, None

    def _run(self) -> None:
        while True:
            with self._lock:
                while not (waiting := [job for job in self._jobs if job.started is None]):
                    self._condition.wait()
                job = max(waiting, key=lambda job: (job.priority, -job.submitted))
                job.started = time.monotonic()
            self._do(job)

    def _do(self, job: Job) -> None:
        with self._lock:
            if job.begun:
                return
            job.begun = True
            job.started = job.started or time.monotonic()
        _thread.builds = True
        try:
            error = job.work(job.pace)
        except Exception as problem:  # a bug in maxjax must not end the thread
            error = f"{type(problem).__name__}: {problem}"
        self._finish(job, error)
        # Last: a child forked before this line finds the job, and can run it.
        with self._lock:
            self._jobs.remove(job)

    def _finish(self, job: Job, error: str | None) -> None:
        job.error = error
        try:
            job.done(error)
        except Exception as problem:
            warn_once(f"{type(problem).__name__}: {problem}")
        job.ready.set()

    def _after_fork_in_child(self) -> None:
        """Pending jobs are the parent's: one that the child waits for is restarted."""
        self._thread = None
        _thread.builds = False
        self._inherited += self._jobs
        self._jobs = []
        for job in self._inherited:
            job.ready.clear()
            job.started, job.begun = None, False
            job.pace = Pace()


class Libraries:
    """Shared libraries in the cache: loads them, and builds each in only one process.

    Attributes:
      foreign_seconds: how long to wait for another process that builds a key.
      build_seconds: a build that takes longer is considered hung.
      compiler_threads: that a build may use. Of a kernel a second one finds nothing to do, and
        costs a twentieth of a second.
      keeps: whether the cache has taken all that was built.
    """

    foreign_seconds = 600.0
    build_seconds = 300.0
    compiler_threads = 1

    def __init__(self, cache: ArtifactCache | None = None):
        self._cache = cache
        self.keeps = True
        self._held: list[KeyLock] = []
        self._loaded: dict[str, ctypes.CDLL] = {}
        threads.after_fork(self._after_fork_in_child)

    @property
    def cache(self) -> ArtifactCache:
        if self._cache is None:
            self._cache = ArtifactCache()
            if not self._cache.usable:
                warn_once(f"native code is not kept for other processes: {self._cache.reason}")
        return self._cache

    def load(self, key: bytes) -> ctypes.CDLL | None:
        """The library stored under a key, or None."""
        path = self.cache.lookup(key)
        if path is None:
            return None
        library = self._loaded.get(path.name)
        if library is None:
            library = open_library(path)
            if library is None:
                self.cache.discard(key)
                return None
            self._loaded[path.name] = library
        return library

    def build(self, source: str, key: bytes, also: Sequence[bytes] = (),
              pace: Pace | None = None) -> ctypes.CDLL:
        """Builds, stores and loads a library.

        Raises:
          ToolchainError: there is none.
        """
        output = self.cache.incoming(".so")
        try:
            build_library(source, output, directory=self.cache.directory,
                          seconds=self.build_seconds, threads=self.compiler_threads, pace=pace)
            # If the cache cannot store it, only this process uses it.
            stored = self.cache.store(key, output, also, suffix=".so")
            if stored is None:
                self.keeps = False
                warn_once("native code is not kept for other processes: "
                          f"{self.cache.directory} cannot take it (is the disk full?)")
            library = open_library(stored or output)
            if library is None:
                self.cache.discard(key)
                raise ToolchainError("crashed", "the library that was built cannot be loaded")
            if stored is not None:
                self._loaded[stored.name] = library
            return library
        finally:
            with contextlib.suppress(OSError):
                output.unlink()

    @context_manager
    def locked(self, keys: Iterable[bytes]) -> Any:
        """Takes the locks of those keys that no other process holds; returns these keys."""
        locks: dict[bytes, KeyLock] = {}
        for key in keys:
            lock = self.cache.key_lock(key)
            with threads.unforked:      # a child unaware of the lock would hold it too
                if lock.acquire():
                    locks[key] = lock
                    self._held.append(lock)
        try:
            yield set(locks)
        finally:
            for lock in locks.values():
                lock.release()
                with contextlib.suppress(ValueError):
                    self._held.remove(lock)

    def _after_fork_in_child(self) -> None:
        for lock in self._held:
            lock.abandon()
        self._held = []


def open_library(path: Path) -> ctypes.CDLL | None:
    """The loaded library, its symbols private; None if the system refuses it."""
    try:
        with threads.unforked:
            library = ctypes.CDLL(str(path), mode=getattr(os, "RTLD_NOW", 0) | ctypes.RTLD_LOCAL)
    except OSError:
        return None
    crew.join(library)
    return library


def address(library: ctypes.CDLL, name: str) -> int | None:
    """The address of the function of that name."""
    try:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    except AttributeError:
        return None


class KernelStore:
    """Native kernels by their source text.

    Args:
      header: the text before the kernels of every library: imports and shared declarations.
      cache: where libraries are stored; by default the user's cache.
      per_library: the most kernels in one library.

    Attributes:
      workers: the most concurrent builds for somebody who waits. In the background there is one at
        a time, which leaves the other processors to the program.
    """

    workers = min(2, os.cpu_count() or 1)

    def __init__(self, header: str = HEADER, cache: ArtifactCache | None = None,
                 per_library: int = 64):
        self.header = header
        self.per_library = per_library
        self.libraries = Libraries(cache)
        self._addresses: dict[Source, int] = {}
        self._failed: dict[Source, str] = {}
        self._killed: set[Source] = set()       # those whose compiler was, once
        self.broken: str | None = None
        self.lacks_place = False
        self._queue = Queue("maxjax-kernels")

    def find(self, sources: Iterable[_Source]) -> dict[_Source, int]:
        """The addresses of those kernels that exist, loaded if necessary. Never raises."""
        known = self._addresses
        found = {}
        for source in sources:
            place = known.get(source)
            if place is None:
                place = self._load(source)
            if place is not None:
                found[source] = place
        return found

    def loaded(self, sources: Iterable[_Source]) -> dict[_Source, int]:
        """The addresses of those kernels that this process has used, or built."""
        known = self._addresses
        return {source: known[source] for source in sources if source in known}

    def request(self, sources: Sequence[Source], done: Done, priority: float = 0.0,
                label: str = "") -> Job:
        """Requests kernels. Returns at once, and never raises.

        Args:
          done: called on the building thread, with None when ``find`` finds them all, or with why
            it does not.
        """
        sources = tuple(dict.fromkeys(sources))
        job = Job(lambda pace: self._work(sources, pace), done, priority, label, sources)
        self._queue.submit(job)
        return job

    def wait(self, job: Job, progress: Callable[[float], None] | None = None) -> str | None:
        """Has a request built now and waits for it; returns what its ``done`` received.

        Args:
          progress: called many times a second with the seconds since the request.
        """
        return self._queue.wait(job, progress)

    def unfinished(self) -> list[Source]:
        """The kernels that are requested, not built and not known to fail, the most urgent first.
        """
        sources = (source for job in self._queue.unfinished() for source in job.sources)
        return [source for source in dict.fromkeys(sources)
                if source not in self._failed and source not in self._addresses]

    def build(self, sources: Iterable[Source], pace: Pace | None = None) -> str | None:
        """Builds missing kernels in this thread; returns why one is missing, or None.

        Args:
          pace: by default, that of a build that somebody waits for.
        """
        return self._work(sources, pace or Pace(urgent=True))

    def _work(self, sources: Iterable[Source], pace: Pace) -> str | None:
        wanted = list(dict.fromkeys(sources))
        deadline = time.monotonic() + self.libraries.foreign_seconds
        while True:
            missing = self._missing(wanted)
            if not missing or self.broken is not None or pace.stopped:
                break
            keys = {self._key(source): source for source in missing}
            patient = time.monotonic() < deadline
            with self.libraries.locked(keys) as locked:
                mine = [source for key, source in keys.items() if key in locked or not patient]
                # Another process may have stored some between the check and the lock.
                mine = self._missing(mine)
                self._build_side_by_side(mine, pace)
            if not mine and self._missing(wanted):
                pace.look()
                time.sleep(_LOCK_POLL_SECONDS)
        failed = [self._failed[source] for source in wanted if source in self._failed]
        if failed:
            return failed[0] + (f" ({len(failed)} kernels)" if len(failed) > 1 else "")
        return self.broken if self._missing(wanted) else None

    def failures(self) -> dict[Source, str]:
        """The kernels that cannot be built, and why."""
        return dict(self._failed)

    def _missing(self, sources: Iterable[Source]) -> list[Source]:
        sources = [source for source in sources if source not in self._failed]
        found = self.find(sources)
        return [source for source in sources if source not in found]

    def _key(self, source: Source) -> bytes:
        return "\0".join((toolchain.identity(self.header), "kernel", self.header,
                          Kernel(source).identity)).encode()

    def _load(self, source: Source) -> int | None:
        try:
            key = self._key(source)
            library = self.libraries.load(key)
            place = None if library is None else address(library, Kernel(source).symbol)
        except (OSError, ValueError):
            return None
        if place is not None:
            self._addresses[source] = place
        elif library is not None:
            self.libraries.cache.discard(key)
        return place

    def _build_side_by_side(self, sources: Sequence[Source], pace: Pace) -> None:
        """Builds kernels into as many libraries as there are processors, or more if necessary.

        A build is single-threaded most of the time, so two of half the size finish sooner.
        """
        workers = min(self.workers if pace.urgent else 1,
                      max(1, len(sources) // _FEWEST_PER_LIBRARY))
        count = max(workers, -(-len(sources) // self.per_library))
        # The longest first, each to the library with the least text.
        libraries: list[list[Source]] = [[] for _ in range(count)]
        lengths = {source: len(Kernel(source).source) for source in sources}
        for source in sorted(sources, key=lengths.__getitem__, reverse=True):
            open_ = [library for library in libraries if len(library) < self.per_library]
            min(open_, key=lambda library: sum(map(lengths.__getitem__, library))).append(source)
        waiting = iter(libraries)

        def work() -> None:
            while (library := next(waiting, None)) is not None:
                self._build(library, pace)

        # Daemon threads, not a concurrent.futures pool: the interpreter must not wait for a build.
        helpers = [threading.Thread(target=work, name="maxjax-kernels-build", daemon=True)
                   for _ in range(workers - 1)]
        for helper in helpers:
            helper.start()
        work()
        for helper in helpers:
            helper.join()

    def _build(self, sources: Sequence[Source], pace: Pace, bisections: int = 0) -> None:
        """Builds kernels into one library or, if one of them is at fault, into several."""
        if self.broken is not None or pace.stopped or not sources:
            return
        kernels = [Kernel(source) for source in sources]
        text, first_lines = self._assemble(kernels)
        keys = [self._key(source) for source in sources]
        own = "\0".join((toolchain.identity(text), "library", text)).encode()
        try:
            library = self.libraries.build(text, own, keys, pace)
        except ToolchainError as error:
            if error.kind != "stopped":
                self._recover(error, sources, first_lines, pace, bisections)
            return
        for kernel in kernels:
            place = address(library, kernel.symbol)
            if place is None:
                self._fail([kernel.of], f"a kernel does not export {PLACEHOLDER}")
            else:
                self._addresses[kernel.of] = place

    def _recover(self, error: ToolchainError, sources: Sequence[Source],
                 first_lines: Sequence[int], pace: Pace, bisections: int) -> None:
        """Salvages what it can after a failed build."""
        self.lacks_place = error.kind == "disk"
        if error.kind in ("missing", "ending"):
            self.broken = str(error)
            if error.kind == "missing":
                warn_once(str(error))
            return
        guilty: dict[Source, str] = {}
        if error.kind == "rejected":
            located = [(int(line), f"the Mojo compiler failed: {said}")
                       for line, said in _LOCATED_ERROR.findall(error.output)]
            located = located or [(int(line), str(error))
                                  for line in _LOCATION.findall(error.output)]
            for line, said in located:
                owners = [i for i, first in enumerate(first_lines) if first <= line]
                if not owners:  # the header: no kernel can be built
                    self._fail(sources, said)
                    return
                guilty.setdefault(sources[owners[-1]], said)
        if error.kind == "killed" and not self._killed.issuperset(sources):
            self._killed.update(sources)
            self._build(sources, pace, bisections)
        elif guilty:
            for source, said in guilty.items():
                self._fail([source], said)
            self._build([source for source in sources if source not in guilty], pace, bisections)
        elif error.kind in ("rejected", "crashed") and len(sources) > 1 and (
                bisections < _BISECTIONS):
            half = len(sources) // 2
            self._build(sources[:half], pace, bisections + 1)
            self._build(sources[half:], pace, bisections + 1)
        else:
            self._fail(sources, str(error))

    def _fail(self, sources: Iterable[Source], reason: str) -> None:
        self._failed.update(dict.fromkeys(sources, reason))
        warn_once(f"native code is missing: {reason}")

    def _assemble(self, kernels: Sequence[Kernel]) -> tuple[str, list[int]]:
        """The library's text, and the line where each kernel begins."""
        parts, lines = [self.header + "\n\n"], []
        line = 1 + parts[0].count("\n")
        for kernel in kernels:
            lines.append(line)
            parts.append(kernel.text.rstrip("\n") + "\n\n\n")
            line += parts[-1].count("\n")
        return "".join(parts), lines


