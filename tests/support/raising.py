"""Errors out of nowhere, as signals' handlers raise them: before any instruction of a function, at
its entry and at its exit."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any


class Stop(BaseException):
    """What is raised."""


class Raiser:
    """Counts the instructions of some functions while they run, and raises `Stop` at one of them.

    Args:
      number: of the instruction, from 0; None: none.
      chosen: whether a function's instructions count.

    Attributes:
      count: how many there were.
      where: which function it was raised in, None if it was not.
    """

    def __init__(self, number: int | None, chosen: Callable[[CodeType], bool]):
        self.number = number
        self.chosen = chosen
        self.count = 0
        self.where: str | None = None
        self._known: dict[CodeType, bool] = {}

    def _call(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        known = self._known.get(code)
        if known is None:
            known = self._known[code] = self.chosen(code)
        if not known:
            return None
        frame.f_trace_lines = False
        frame.f_trace_opcodes = True
        return self._step(frame, event, arg)

    def _step(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "exception":
            return self._step
        if self.count == self.number:
            self.where = f"{frame.f_code.co_qualname}, {event} {frame.f_lasti}"
            raise Stop
        self.count += 1
        return self._step

    @contextlib.contextmanager
    def active(self) -> Iterator[Raiser]:
        """It is at work in this thread."""
        sys.settrace(self._call)
        try:
            yield self
        finally:
            sys.settrace(None)
