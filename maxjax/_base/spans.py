"""Time spans for a profile, and who records them.

``state.record`` is None except while a profile is recorded; then it takes a name, a category, the
two times in nanoseconds of ``clock``, and further arguments.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

clock = time.perf_counter_ns

Recorder = Callable[[str, str, int, int, dict[str, Any]], None]


class _State:
    __slots__ = ("record",)

    def __init__(self) -> None:
        self.record: Recorder | None = None


state = _State()
# Called when recording begins or ends.
on_change: list[Callable[[], None]] = []


def set_recorder(record: Recorder | None) -> None:
    state.record = record
    for call in on_change:
        call()


def add(name: str, category: str, start: int, **arguments: object) -> None:
    """A span that ends now, if anybody wants it."""
    record = state.record
    if record is not None:
        record(name, category, start, clock(), arguments)
