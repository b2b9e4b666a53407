"""How many threads NumPy's and SciPy's BLAS use: as many as there are processors that are free.

A product waits for the slowest of its threads. Where one of them shares its processor with another
process, or with the compiler, a product that takes 45 us on one thread takes 330 us on two.
"""

from __future__ import annotations

import os
import time
from typing import Any

from maxjax._base import threads
from maxjax._base.lazy import threadpoolctl

_LOOK_SECONDS = 0.25


class BlasThreads:
    """The number of threads, which follows what else runs.

    Attributes:
      cores: the processors that this process may use.
    """

    def __init__(self, cores: int):
        self.cores = cores
        self._lock = threads.lock()
        self._compilers = 0
        self._others = 0        # processors that other processes keep busy
        self._next_look = 0.0
        self._last: tuple[float, float] | None = None       # when, and what others had used by then
        self._set = cores
        self._originals: dict[str, int] = {}                # by libraries' files
        threads.after_fork(self._after_fork_in_child)

    def _after_fork_in_child(self) -> None:
        """The compilers are the parent's, and this process has used nothing yet."""
        self._compilers = 0
        self._last, self._next_look = None, 0.0

    def look(self) -> None:
        """Adapts the number, now and then; before calls of BLAS."""
        now = time.monotonic()
        if now < self._next_look or self.cores == 1:
            return
        with self._lock:
            self._next_look = now + _LOOK_SECONDS
            used = used_by_others()
            if used is None:
                return
            last, self._last = self._last, (now, used)
            # The load at first, of the last minute.
            busy = os.getloadavg()[0] if last is None else (used - last[1]) / (now - last[0])
            self._others = int(max(0.0, busy) + 0.5)
            self._adapt()

    def leave_core(self) -> None:
        """Leaves one core to a compiler."""
        with self._lock:
            self._compilers += 1
            self._adapt()

    def take_core_back(self) -> None:
        """A compiler has ended."""
        with self._lock:
            self._compilers = max(0, self._compilers - 1)
            self._adapt()

    def _adapt(self) -> None:
        wanted = max(1, self.cores - max(self._others, int(self._compilers > 0)))
        if wanted == self._set:
            return
        self._set = wanted
        with threads.unforked:
            libraries: Any = threadpoolctl.ThreadpoolController().select(user_api="blas")
            for library in libraries.lib_controllers:
                # Whoever chose fewer, in the environment, keeps them.
                most = self._originals.setdefault(library.filepath, library.get_num_threads())
                library.set_num_threads(min(most, wanted))


def used_by_others() -> float | None:
    """Processor seconds that other processes have used since some time, those of low priority left
    out; None where the system does not say."""
    try:
        with open("/proc/stat", encoding="ascii") as lines:
            user, _, system = map(int, lines.readline().split()[1:4])
        return (user + system) / os.sysconf("SC_CLK_TCK") - time.process_time()
    except (OSError, ValueError):
        return None


blas_threads = BlasThreads(threads.cores())
