"""Python's garbage collector, stopped while many objects are made at once, all of which stay.

Every few hundred new objects it looks through the young ones, and now and then through all there
are: it would take a third of the time that planning a program takes, and find nothing.
"""

from __future__ import annotations

import gc

from maxjax._base import threads


class _Stopped:
    """A context; several threads may be in it."""

    def __init__(self) -> None:
        self._lock = threads.lock()
        self._inside = 0
        self._was_running = False
        threads.after_fork(self._after_fork_in_child)

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._was_running = gc.isenabled()
                gc.disable()

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside = max(0, self._inside - 1)
            if self._inside == 0 and self._was_running:
                gc.enable()

    def _after_fork_in_child(self) -> None:
        """Who was inside was another thread."""
        if self._inside and self._was_running:
            gc.enable()
        self._inside = 0


stopped = _Stopped()
