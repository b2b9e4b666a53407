"""How busy the machine is."""

from __future__ import annotations

import time

from maxjax._max.mojo.crew import cores

_WINDOW_SECONDS = 0.2
_KEPT_SECONDS = 1.0

_last: tuple[float, float] = float("-inf"), 0.0     # when it was measured, and what was found


def idle_cores() -> float:
    """How many processors are idle; all, where nothing says so.

    It takes a fifth of a second, once a second.
    """
    global _last
    when, found = _last
    if time.monotonic() - when < _KEPT_SECONDS:
        return found
    before = _ticks()
    time.sleep(_WINDOW_SECONDS)
    after = _ticks()
    found = float(cores())
    if before is not None and after is not None and after[1] > before[1]:
        found *= 1 - (after[0] - before[0]) / (after[1] - before[1])
    _last = time.monotonic(), found
    return found


def _ticks() -> tuple[int, int] | None:
    """Processor time spent on work, and all there was; None if it is unknown."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            user, low, system, idle, *rest = map(int, file.readline().split()[1:9])
    except (OSError, ValueError):
        return None
    waiting, *interrupts = rest     # for a disk, which takes no processor
    busy = user + low + system + sum(interrupts)
    return busy, busy + idle + waiting
