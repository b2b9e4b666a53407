"""Compiling in the background: jobs, one worker process, and the thread that feeds it.

The thread and the process start with the first job, never at import. Programs never wait here and
nothing here raises into them: a failed job records its reason.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, cast

from maxjax._base import threads
from maxjax._base.errors import CompileError
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.folder_locks import KeyLock
from maxjax._max.graph.messages import read_message, write_message
from maxjax._max.warning import warn_once

Done = Callable[["Path | None", "str | None"], None]

_LOCK_POLL_SECONDS = 0.1
_WAIT_POLL_SECONDS = 0.02
_LOG_TAIL_BYTES = 4096
_MOST_DEATHS = 6  # of consecutive workers, after which no more are started


class Job:
    """One program to be compiled into an artifact.

    Attributes:
      key, program, priority: as submitted.
      path: the artifact, once there is one.
      error: why there is none, once known.
      started: ``time.monotonic()`` when its compile began, or None.
      phases: seconds by phase of the compile, as the worker measured them; empty when the
        artifact was found in the cache.
    """

    def __init__(self, key: bytes, program: str, priority: float, options: dict[str, Any]):
        self.key = key
        self.program = program
        self.priority = priority
        self.options = options
        self.path: Path | None = None
        self.error: str | None = None
        self.started: float | None = None
        self.phases: dict[str, float] = {}
        self.submitted = time.monotonic()
        self.callbacks: list[Done] = []
        self.ready = threads.Event()
        self.process = threads.process.forks  # the process in which it runs
        self.not_before = 0.0  # while another process compiles the same key
        self.unlocked_after = 0.0

    @property
    def finished(self) -> bool:
        return self.path is not None or self.error is not None

    def __repr__(self) -> str:
        state = ("done" if self.path else "failed" if self.error
                 else "compiling" if self.started else "waiting")
        return f"<Job {state} priority={self.priority}>"


class _WorkerDied(Exception):
    """The worker ended without an answer; the message says how."""


class _CannotStart(Exception):
    """No worker process can be started."""


class _Worker:
    """The parent's side of one worker process."""

    def __init__(self, most_compiles: int, most_bytes: int, directory: Path):
        package = str(Path(__file__).resolve().parents[3])
        paths = [os.path.abspath(path) for path in sys.path]
        environment = dict(os.environ)
        inherited = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([package, *([inherited] if inherited else [])])
        environment["PYTHONSAFEPATH"] = "1"  # do not import from the working directory
        environment["MAXJAX_COMPILE"] = "never"  # the worker starts no workers
        # Not -m, which would run a second copy of a module that the package has imported.
        command = [sys.executable, "-c", "from maxjax._max.graph.worker import main; main()",
                   f"--parent={os.getpid()}", f"--path={os.pathsep.join(paths)}",
                   f"--most-compiles={most_compiles}", f"--most-bytes={most_bytes}"]
        try:
            self._log, name = tempfile.mkstemp(prefix="maxjax-worker-")
            os.unlink(name)
        except OSError as error:
            raise _CannotStart(f"no log file for the compile process: {error}") from error
        try:
            self._process = subprocess.Popen(
                command, bufsize=0, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=self._log, env=environment, cwd=directory, start_new_session=True)
        except (OSError, ValueError, TypeError) as error:  # TypeError: sys.executable is None
            os.close(self._log)
            raise _CannotStart(f"no compile process: {error}") from error
        self._requests = cast(BinaryIO, self._process.stdin)
        self._replies = cast(BinaryIO, self._process.stdout)
        self.pid = self._process.pid
        self._log_start = 0

    def run(self, message: dict[str, Any], limit: float) -> dict[str, Any]:
        """Sends one job and waits for its answer.

        Raises:
          _WorkerDied: it ended first, or was ended because it took longer than ``limit`` seconds.
        """
        self._log_start = os.fstat(self._log).st_size
        try:
            write_message(self._requests, message)
        except (OSError, ValueError):
            raise _WorkerDied(self._how_it_ended()) from None
        if not _readable(self._replies, limit):
            self.kill()
            raise _WorkerDied(f"the compile took more than {limit:.0f} s")
        try:
            answer = read_message(self._replies)
        except (OSError, ValueError):
            answer = None
        if answer is None:
            raise _WorkerDied(self._how_it_ended())
        return answer

    def log_tail(self) -> str:
        """The end of what the compiler printed during the last job."""
        try:
            # Not a seek: the worker writes through the same file offset.
            size = os.fstat(self._log).st_size
            start = max(self._log_start, size - _LOG_TAIL_BYTES)
            tail = os.pread(self._log, size - start, start)
            return tail.decode(errors="replace").strip()
        except (OSError, ValueError):
            return ""

    def _how_it_ended(self) -> str:
        self.kill(grace=1.0)
        code = self._process.returncode
        if code is not None and code < 0:
            try:
                how = f"was ended by {signal.Signals(-code).name}"
            except ValueError:
                how = f"was ended by signal {-code}"
            if code == -signal.SIGKILL:
                how += " (out of memory?)"
        else:
            how = f"ended with status {code}"
        tail = self.log_tail()
        return f"the compile process {how}" + (f"; it printed:\n{tail}" if tail else "")

    def kill(self, grace: float = 0.0) -> None:
        """Ends the process and its children, and reaps it."""
        with contextlib.suppress(OSError, ValueError):
            self._requests.close()
        if grace:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(grace)
        with contextlib.suppress(OSError):
            # Its process group; after it has ended its number may belong to another.
            if self._process.poll() is None:
                os.killpg(self.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(2.0)

    def close(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._replies.close()
            os.close(self._log)

    def abandon(self) -> None:
        """Closes a forked child's copies of the pipes; the process is the parent's."""
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (self._requests, self._replies):
            # If the descriptors were closed under their streams, the streams would close them
            # again, when they may belong to another file.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(null, stream.fileno(), inheritable=False)
        with contextlib.suppress(OSError):
            os.close(self._log)
        os.close(null)
        self._process.returncode = 0  # not a child of this process: nothing to wait for


def _readable(stream: BinaryIO, limit: float) -> bool:
    poll = select.poll()
    poll.register(stream, select.POLLIN)
    return bool(poll.poll(int(limit * 1000)))


class CompileService:
    """Compiles programs into artifacts in the background, the most urgent first.

    Args:
      builder: ``"module:function"``, called in the worker as ``builder(module, program,
        options)``: adds the program's graphs to the ``max.graph.Module``, and may return paths
        of Mojo kernel libraries.
      cache: where artifacts are stored; by default the user's cache.
      options: passed to the builder with every job (see ``worker``).

    Attributes:
      most_compiles, most_bytes: a worker retires after this many compiles, or when it holds this
        much memory: each compile leaks some in MAX.
      idle_seconds: an idle worker holds close to a gigabyte, and is ended after this long.
      compile_seconds: a compile that takes longer is considered hung.
      foreign_seconds: how long to wait for another process that is compiling a key.
    """

    most_compiles = 100
    most_bytes = 2_500_000_000
    idle_seconds = 20.0
    compile_seconds = 1800.0
    foreign_seconds = 600.0

    def __init__(self, builder: str, cache: ArtifactCache | None = None,
                 options: dict[str, Any] | None = None):
        self.builder = builder
        self.options = dict(options or {})
        if os.environ.get("MAXJAX_CPU_TARGET"):  # part of the keys, see cpu_target
            self.options.setdefault("cpu_target", os.environ["MAXJAX_CPU_TARGET"])
        self._cache = cache
        self._jobs: dict[bytes, Job] = {}
        self._failed: dict[bytes, str] = {}
        self._broken: str | None = None
        self._closed = False
        self._worker: _Worker | None = None
        self._key_lock: KeyLock | None = None
        self._thread: threading.Thread | None = None
        self._unstored: list[Path] = []
        self._serial = 0
        self._deaths = 0
        # Acquired directly, not through the condition, whose `with` an interrupt can leave locked.
        self._lock = threads.lock()
        self._condition = threads.condition(self._lock)
        _services.add(self)
        threads.after_fork(self._after_fork_in_child)

    @property
    def cache(self) -> ArtifactCache:
        if self._cache is None:
            self._cache = ArtifactCache()
        return self._cache

    @property
    def worker_pid(self) -> int | None:
        """The process id of the current worker, if there is one."""
        worker = self._worker
        return worker.pid if worker is not None else None

    def submit(self, key: bytes, program: str, done: Done, priority: float = 0.0,
               options: dict[str, Any] | None = None) -> Job:
        """Requests the artifact of a program. Returns at once, and never raises.

        A key that is already being compiled is not compiled twice: its job gets another ``done``
        callback and the higher of the priorities. A program that failed is not tried again in this
        process.

        Args:
          key: the program's full identity in the cache: text, versions, processor.
          program: the builder's input.
          done: called with the artifact's path, or with None and the error, on the service's
            thread (on the caller's, once the service is shut down).
        """
        with self._lock:
            job = self._jobs.get(key)
            if job is None:
                job = Job(key, program, priority, {**self.options, **(options or {})})
            job.priority = max(job.priority, priority)
            job.callbacks.append(done)
            refusal = "the compile service is shut down" if self._closed else None
            if refusal is None:
                try:
                    self._start_thread()
                    self._jobs[key] = job
                    self._condition.notify_all()
                except RuntimeError as error:  # no more threads, or the interpreter is ending
                    self._jobs.pop(key, None)
                    refusal = f"no compile thread: {error}"
        if refusal is not None:
            job.error = refusal
            self._announce(job, job.callbacks)
        return job

    def wait(self, job: Job, progress: Callable[[float], None] | None = None,
             timeout: float | None = None) -> Path:
        """Moves a job ahead of all others and waits for it; its callbacks have run on return.

        An interrupt ends the wait, not the job.

        Args:
          progress: called many times a second with the seconds since the job was submitted.
          timeout: in seconds.

        Raises:
          CompileError: there will be no artifact; the message says why.
          TimeoutError: the time is over; the job continues.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            job.priority = float("inf")
            if job.process != threads.process.forks and not job.ready.is_set():
                job.process = threads.process.forks
                job = self._jobs.setdefault(job.key, job)
            if job.key in self._jobs:
                self._start_thread()
            self._condition.notify_all()
        on_own_thread = threading.current_thread() is self._thread
        while not job.ready.is_set():
            if on_own_thread:
                if job.finished:
                    break
                raise CompileError("a compile callback cannot wait for another compile")
            now = time.monotonic()
            if deadline is not None and now >= deadline:
                raise TimeoutError(f"no compiled program after {timeout} s")
            if progress is not None:
                progress(now - job.submitted)
            # Not Event.wait, for the same reason as with the lock.
            time.sleep(_WAIT_POLL_SECONDS if deadline is None else min(
                _WAIT_POLL_SECONDS, deadline - now))
        if job.path is None:
            raise CompileError(job.error or "there is no compiled program")
        return job.path

    def pending(self) -> list[Job]:
        """The jobs that are not finished, most urgent first."""
        with self._lock:
            return sorted(self._jobs.values(), key=lambda job: -job.priority)

    def shutdown(self) -> None:
        """Ends the worker and abandons all jobs. Takes a few seconds at most."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            jobs, self._jobs = list(self._jobs.values()), {}
            self._condition.notify_all()
        worker = self._worker
        if worker is not None:
            worker.kill()  # the thread, waiting for an answer, sees the pipe end
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(3.0)
        for job in jobs:
            if not job.finished:
                job.error = "the compile service was shut down"
            job.ready.set()
        for path in self._unstored:
            with contextlib.suppress(OSError):
                path.unlink()

    # ---- the service's thread ----

    def _start_thread(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._run, name="maxjax-compile", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        try:
            while (job := self._next()) is not None:
                try:
                    self._attempt(job)
                except Exception as error:  # a bug in maxjax must not end the program
                    self._finish(job, None, f"{type(error).__name__}: {error}")
        finally:
            self._stop_worker()

    def _next(self) -> Job | None:
        """The most urgent job that is ready to run; None when the service is closed."""
        idle_since = time.monotonic()
        with self._lock:
            while not self._closed:
                now = time.monotonic()
                due = [job for job in self._jobs.values() if job.not_before <= now]
                if due:
                    return max(due, key=lambda job: (job.priority, -job.submitted))
                if self._jobs:
                    self._condition.wait(
                        min(job.not_before for job in self._jobs.values()) - now)
                    continue
                if self._worker is None:
                    self._condition.wait()
                    idle_since = time.monotonic()
                elif not self._condition.wait(
                        max(0.0, idle_since + self.idle_seconds - now)) and not self._jobs:
                    self._stop_worker()
        return None

    def _attempt(self, job: Job) -> None:
        """Finishes the job from the cache or the worker, or postpones it."""
        if job.key in self._failed:
            self._finish(job, None, self._failed[job.key])
            return
        path = self.cache.lookup(job.key)
        if path is not None:
            self._finish(job, path, None)
            return
        if self._broken is not None:
            self._finish(job, None, self._broken)
            return
        lock = self.cache.key_lock(job.key)
        try:
            now = time.monotonic()
            with threads.unforked:      # a child unaware of the lock would hold it too
                acquired = lock.acquire()
                self._key_lock = lock
            if not acquired:
                job.unlocked_after = job.unlocked_after or now + self.foreign_seconds
                if now < job.unlocked_after:
                    job.not_before = now + _LOCK_POLL_SECONDS
                    return
            # The other process may have stored it between the check and the lock.
            path, error = self.cache.lookup(job.key), None
            if path is None:
                job.started = now
                path, error = self._compile(job)
        finally:
            lock.release()
            self._key_lock = None
        self._finish(job, path, error)

    def _compile(self, job: Job) -> tuple[Path | None, str | None]:
        reason = ""
        for _ in range(2):
            if self._closed:
                return None, "the compile service was shut down"
            output = self.cache.incoming()
            self._serial += 1
            message = {"id": self._serial, "program": job.program, "builder": self.builder,
                       "output": str(output), "options": job.options}
            try:
                if self._worker is None:
                    # A child unaware of the worker would keep its pipes open.
                    with threads.unforked:
                        self._worker = _Worker(self.most_compiles, self.most_bytes,
                                               self.cache.directory)
                worker = self._worker
                answer = worker.run(message, self.compile_seconds)
            except _CannotStart as error:
                return None, self._break(str(error))
            except _WorkerDied as error:
                reason = f"{error} (tried twice)"
                self._deaths += 1
                self._stop_worker()
                with contextlib.suppress(OSError):
                    output.unlink()
                continue
            self._deaths = 0
            if answer["ok"]:
                job.phases = answer["phases"]
                path = self._keep(job.key, output)
                failure = None if path else "the compiler wrote no file"
            else:
                path, failure = None, self._describe(answer, worker)
            if answer["fatal"]:
                self._break(answer["error"])
            elif failure is not None:
                self._failed[job.key] = failure
            if answer["retires"]:
                self._stop_worker(grace=1.0)
            return path, failure
        if self._closed:
            return None, "the compile service was shut down"
        self._failed[job.key] = reason
        warn_once(f"programs stay interpreted: {reason}")
        if self._deaths >= _MOST_DEATHS:
            self._break(reason)
        return None, reason

    def _keep(self, key: bytes, output: Path) -> Path | None:
        """The artifact in the cache or, if it cannot be stored there, for this process only."""
        path = self.cache.store(key, output)
        if path is None and output.exists():
            self._unstored.append(output)
            return output
        return path

    def _describe(self, answer: dict[str, Any], worker: _Worker) -> str:
        tail = worker.log_tail()
        return answer["error"] + (f"\n\nThe compiler printed:\n{tail}" if tail else "")

    def _break(self, reason: str) -> str:
        """From here on every job fails at once."""
        self._broken = reason
        first = reason.splitlines()[0] if reason else "unknown"
        warn_once(f"programs stay interpreted: {first}")
        return reason

    def _stop_worker(self, grace: float = 0.0) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill(grace)
            worker.close()

    def _finish(self, job: Job, path: Path | None, error: str | None) -> None:
        with self._lock:
            if self._closed:
                return
            self._jobs.pop(job.key, None)
            job.path, job.error = path, error
            if path is None and error is None:
                job.error = "there is no compiled program"
            callbacks, job.callbacks = job.callbacks, []
        self._announce(job, callbacks)

    def _announce(self, job: Job, callbacks: list[Done]) -> None:
        for done in callbacks:
            try:
                done(job.path, job.error)
            except Exception as error:
                warn_once(f"programs stay interpreted: {type(error).__name__}: {error}")
        job.ready.set()

    def _after_fork_in_child(self) -> None:
        """A forked child has neither the thread nor the worker: it drops its copies of the pipes.

        Pending jobs are the parent's: one that the child waits for is restarted, with a thread and
        a worker that start at the child's first request.
        """
        if self._worker is not None:
            self._worker.abandon()
        if self._key_lock is not None:
            self._key_lock.abandon()
        self._worker = self._key_lock = self._thread = None
        self._unstored = []
        for job in self._jobs.values():
            job.started = None
            job.not_before = 0.0
        self._jobs = {}


_services: weakref.WeakSet[CompileService] = weakref.WeakSet()


def _shutdown_all() -> None:
    for service in list(_services):
        service.shutdown()


atexit.register(_shutdown_all)
