"""Functions that no interrupt keeps from their beginning.

Python runs signals' handlers, which may raise whatever they like, between instructions: after
calls of functions in C, at jumps back, and where a function of Python is entered. So an error can
come in the place of an ``__exit__`` that would have put something back, before its first line.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])

# The instruction at the entry of a function. Its operand says where it stands: 0 at the beginning;
# behind an `await`, 3, handlers do not run (see `dis` in Python's documentation).
_RESUME = dis.opmap.get("RESUME")
_BEGINNING, _AFTER_AWAIT = 0, 3


def entered_at_once(function: _Function) -> _Function:
    """A function whose entry runs no signal's handler: it comes at least to its first call.

    What it puts back it has to put back by then. Where Python has no such instruction, the function
    is as it was.
    """
    code = function.__code__        # type: ignore[attr-defined]
    content = bytearray(code.co_code)
    for position in range(0, len(content), 2):
        if content[position] == _RESUME:
            if content[position + 1] == _BEGINNING:
                content[position + 1] = _AFTER_AWAIT
                function.__code__ = code.replace(       # type: ignore[attr-defined]
                    co_code=bytes(content))
            break
    return function
