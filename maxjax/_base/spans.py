"""Time spans for a profile: who wants them, and how they are told.

``wanted[0]`` is None but while a profile is being recorded; then it takes a name, a category, the
two times in nanoseconds of ``clock`` and further arguments.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

clock = time.perf_counter_ns

wanted: list[Callable[[str, str, int, int, dict[str, Any]], None] | None] = [None]
# Called when recording begins or ends.
on_change: list[Callable[[], None]] = []


def set_recorder(record: Callable[[str, str, int, int, dict[str, Any]], None] | None) -> None:
    wanted[0] = record
    for call in on_change:
        call()


def add(name: str, category: str, start: int, **arguments: Any) -> None:
    """A span that ends now, if anybody wants it."""
    record = wanted[0]
    if record is not None:
        record(name, category, start, clock(), arguments)
