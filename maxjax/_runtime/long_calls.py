"""Calls that take long, noticed while they run."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable

from maxjax._base import threads
from maxjax._runtime.program import Program

_clock = time.perf_counter_ns


class LongCalls:
    """Notices calls that take long, while they run.

    Args:
      notice: called with the program of such a call, and the nanoseconds since its begin or since
        the last time, now and then until it ends.
    """

    LONG_NANOSECONDS = 100_000_000
    _LOOK_SECONDS = 0.05
    _MOST_IDLE_LOOKS = 20

    def __init__(self, notice: Callable[[Program, int], None]) -> None:
        self._notice = notice
        self._since: dict[Program, int] = {}
        self._charged: dict[Program, int] = {}
        self._watched = False
        self._lock = threads.lock()
        threads.after_fork(self._after_fork_in_child)

    def _after_fork_in_child(self) -> None:
        self._watched = False
        self._since = {}
        self._charged = {}

    def begin(self, program: Program) -> None:
        self._since[program] = _clock()
        if not self._watched:
            with self._lock:
                if not self._watched:
                    thread = threading.Thread(
                        target=self._watch, name="maxjax-calls", daemon=True)
                    # Where there are no more threads, the call goes on without.
                    with contextlib.suppress(RuntimeError):
                        thread.start()
                        self._watched = True

    def end(self, program: Program) -> int:
        """The nanoseconds of the call that have been told."""
        self._since.pop(program, None)
        return self._charged.pop(program, 0) if self._charged else 0

    def _watch(self) -> None:
        idle = 0
        while idle < self._MOST_IDLE_LOOKS:
            time.sleep(self._LOOK_SECONDS)
            idle = 0 if self._since else idle + 1
            now = _clock()
            for program, since in list(self._since.items()):
                if now - since > self.LONG_NANOSECONDS:
                    told = self._charged.get(program, 0)
                    self._charged[program] = now - since
                    self._notice(program, now - since - told)
        self._watched = False
