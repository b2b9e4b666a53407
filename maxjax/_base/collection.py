"""Python's garbage collector, stopped while many objects are made at once, all of which stay.

Every few hundred new objects it looks through the young ones, and now and then through all there
are: it would take a third of the time that planning a program takes, and find nothing.
"""

from __future__ import annotations

import gc

from maxjax._base import threads
from maxjax._base.interrupts import entered_at_once


class _Stopped:
    """A context; several threads may be in it.

    It holds no lock, and an interrupt leaves the collector as it was: each thread changes an entry
    of its own. Where two enter and leave at the same moment it may run for one of them.
    """

    def __init__(self) -> None:
        self._inside: dict[int, int] = {}       # how often, by threads
        self._was_running = False
        threads.after_fork(self._after_fork_in_child)

    def __enter__(self) -> None:
        thread = threads.this.number
        inside = self._inside.get(thread, 0)
        if not self._inside:
            self._was_running = gc.isenabled()
        try:
            self._inside[thread] = inside + 1
            gc.disable()
        except BaseException:       # an interrupt: nobody calls `__exit__`
            self.__exit__()
            raise

    @entered_at_once
    def __exit__(self, *error: object) -> None:
        thread = threads.this.number
        inside = self._inside[thread] - 1
        if inside:
            self._inside[thread] = inside
        else:
            del self._inside[thread]
            if not self._inside and self._was_running:
                gc.enable()

    def _after_fork_in_child(self) -> None:
        """Who else was inside was another thread."""
        thread = threads.this.number
        before = self._inside
        self._inside = {thread: before[thread]} if thread in before else {}
        if before and not self._inside and self._was_running:
            gc.enable()


stopped = _Stopped()
