"""Functions that no interrupt keeps from their beginning.

Python runs signals' handlers, which may raise whatever they like, between instructions: after
calls of functions in C, at jumps back, and where a function of Python is entered. So an error can
come in the place of an ``__exit__`` that would have put something back, before its first line.
"""

from __future__ import annotations

import dis
import functools
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, Generic, ParamSpec, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")
_Yielded = TypeVar("_Yielded")

# The instruction at the entry of a function. Its operand says where it stands: 0 at the beginning;
# behind an `await`, 3, handlers do not run (see `dis` in Python's documentation).
_RESUME = dis.opmap.get("RESUME")
_BEGINNING, _AFTER_AWAIT = 0, 3


def entered_at_once(function: _Function) -> _Function:
    """A function whose entry runs no signal's handler: it comes at least to its first call.

    What it puts back it has to put back by then. Where Python has no such instruction, the function
    is as it was.
    """
    code = function.__code__
    content = bytearray(code.co_code)
    for position in range(0, len(content), 2):
        if content[position] == _RESUME:
            if content[position + 1] == _BEGINNING:
                content[position + 1] = _AFTER_AWAIT
                function.__code__ = code.replace(
                    co_code=bytes(content))
            break
    return function


class _Manager(Generic[_Yielded]):
    """What a function made by ``context_manager`` returns; also a decorator."""

    __slots__ = ("_begin", "_steps")

    def __init__(self, begin: Callable[[], Any]):
        self._begin = begin

    def __enter__(self) -> _Yielded:
        self._steps = self._begin()
        try:
            yielded = next(self._steps)
        except StopIteration:
            raise RuntimeError("generator didn't yield") from None
        except BaseException:       # an interrupt: nobody calls `__exit__`
            self._steps.close()
            raise
        return yielded

    @entered_at_once
    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> bool | None:
        if error is None:
            # What comes behind the `yield` is the first that is run.
            next(self._steps, None)
            return False
        try:
            self._steps.throw(error)
        except StopIteration as end:
            return end is not error
        except BaseException as raised:
            # A generator makes a RuntimeError of a StopIteration.
            if raised is not error and not (
                    isinstance(error, StopIteration) and raised.__cause__ is error):
                raise
            error.__traceback__ = trace
            return False
        raise RuntimeError("generator didn't stop after throw()")

    def __call__(self, function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        @functools.wraps(function)
        def within(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
            with _Manager(self._begin):
                return function(*args, **kwargs)

        return within


def context_manager(function: Callable[_Parameters, Iterator[_Yielded]]
                    ) -> Callable[_Parameters, _Manager[_Yielded]]:
    """As ``contextlib.contextmanager``, whose ``__exit__`` may be interrupted before it begins.

    What the generator changes is put back if nothing can be interrupted between the change and the
    ``try`` around the ``yield``, and if the ``finally`` puts back by assignments, or by its first
    call.
    """
    @functools.wraps(function)
    def manager(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Manager[_Yielded]:
        return _Manager(functools.partial(function, *args, **kwargs))

    return manager
