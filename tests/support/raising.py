"""Errors out of nowhere, as signals' handlers raise them: before any instruction of a function, at
its entry and at its exit."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any


class Stop(BaseException):
    """What is raised."""


class Raiser:
    """Counts the instructions of some functions that run within it, and raises `Stop` at one.

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

    def __enter__(self) -> Raiser:
        sys.settrace(self._call)
        return self

    def __exit__(self, *error: object) -> None:
        sys.settrace(None)


class Interrupt(Raiser):
    """Raises `Stop` only where Python itself runs signals' handlers: at a function's entry, after a
    call, and after a jump back."""

    def __init__(self, number: int | None, chosen: Callable[[CodeType], bool]):
        super().__init__(number, chosen)
        self._moments: dict[CodeType, frozenset[int]] = {}
        self._entries: dict[CodeType, bool] = {}
        self._last: dict[FrameType, int] = {}

    def _step(self, frame: FrameType, event: str, arg: Any) -> Any:
        code = frame.f_code
        if code not in self._moments:
            instructions = list(dis.get_instructions(code))
            self._moments[code] = frozenset(x.offset for x in instructions if x.opname.startswith(
                ("CALL", "JUMP_BACKWARD")) and x.opname != "JUMP_BACKWARD_NO_INTERRUPT")
            first = next(x for x in instructions if x.opname == "RESUME")
            self._entries[code] = (first.arg or 0) & 3 < 2
        if event == "call":
            is_moment = self._entries[code]
        else:
            is_moment = event == "opcode" and self._last.get(frame) in self._moments[code]
            self._last[frame] = frame.f_lasti
        if event == "return":
            self._last.pop(frame, None)
        return super()._step(frame, event, arg) if is_moment else self._step
