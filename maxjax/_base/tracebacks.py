"""Tracebacks without maxjax's own frames, as ``jax_traceback_filtering`` asks for them.

What users call and what calls users' functions is a boundary. The outermost boundary that an error
leaves takes maxjax's frames out of the error's traceback.
"""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable, Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from maxjax._base.config import traceback_filtering
from maxjax._base.errors import UnfilteredStackTrace
from maxjax._base.source import is_own

F = TypeVar("F", bound=Callable[..., Any])

NOTE = ("--------------------\nFor simplicity, JAX has removed its internal frames from the "
        "traceback of the following exception. Set JAX_TRACEBACK_FILTERING=off to include these.")
_CAUSE = ("The stack trace below excludes JAX-internal frames.\n"
          "The preceding is the original exception that occurred, unmodified.\n\n"
          "--------------------")

# What maxjax calls and what calls it back. Called by maxjax's code, their frames are no more the
# user's than its own.
_LIBRARIES = frozenset({"contextlib", "functools", "ml_dtypes", "numpy", "opt_einsum", "optree",
                        "scipy"})
_boundaries: set[CodeType] = set()
# Files and folders of libraries that ask for their frames to be taken out, too; they may change it.
excluded_paths: list[str] = []


def is_boundary(function: F) -> F:
    """Declares a function that calls ``shorten`` for the errors that it lets pass."""
    _boundaries.add(function.__code__)      # type: ignore[attr-defined]
    return function


def boundary(function: F) -> F:
    """The function, out of which errors come with shortened tracebacks."""
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    typed: Any = call
    is_boundary(typed)      # the code is the same object for all functions
    return typed


def shorten(error: Exception) -> None:
    """Takes maxjax's frames out of the traceback of an error that leaves the caller.

    The caller handles the error, and is to raise it by a ``raise`` without an operand, which adds
    no frame. Within another boundary nothing is done: that one will.
    """
    if not _is_within_boundary(sys._getframe(2)):
        _shorten(error)


def shorten_uncaught() -> None:
    """From now on errors that end the process are reported with shortened tracebacks: functions
    that are no boundaries, as it would cost their calls time, may have raised them."""
    report = sys.excepthook

    def excepthook(kind: type[BaseException], error: BaseException,
                   trace: TracebackType | None) -> None:
        if isinstance(error, Exception) and next(_hidden(error.__traceback__), None) is not None:
            _shorten(error)
            trace = error.__traceback__
        report(kind, error, trace)

    sys.excepthook = excepthook


def _shorten(error: Exception) -> None:
    mode = _mode()
    if mode == "off":
        return
    if mode == "tracebackhide":
        for frame, _ in _hidden(error.__traceback__):
            values = frame.f_locals
            values["__tracebackhide__"] = True
            # Before Python 3.13 it is a copy, which would keep the error, which has the frame.
            if type(values) is dict:
                for name in [name for name, value in values.items() if value is error]:
                    del values[name]
        return
    whole = error.__traceback__
    if mode == "quiet_remove_frames":
        error.add_note(NOTE)
    else:
        text = "".join(traceback.format_exception_only(type(error), error)).strip()
        unfiltered = UnfilteredStackTrace(f"{text}\n\n{_CAUSE}").with_traceback(whole)
        unfiltered.__cause__ = error.__cause__
        unfiltered.__context__ = error.__context__
        unfiltered.__suppress_context__ = error.__suppress_context__
        error.__cause__, error.__context__ = unfiltered, None
    error.__traceback__ = of_user(whole)


def of_user(whole: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames that are not the user's."""
    hidden = {id(frame) for frame, _ in _hidden(whole)}
    kept = None
    for frame, line in reversed(list(traceback.walk_tb(whole))):
        if id(frame) not in hidden:
            kept = TracebackType(kept, frame, frame.f_lasti, line)
    return kept


def _hidden(whole: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    follows_hidden = False
    excluded = tuple(excluded_paths)
    for frame, line in traceback.walk_tb(whole):
        code = frame.f_code
        follows_hidden = is_own(code) or code.co_filename.startswith(excluded) or (
            follows_hidden and frame.f_globals.get("__name__", "").partition(".")[0] in _LIBRARIES)
        if follows_hidden:
            yield frame, line


def _is_within_boundary(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code in _boundaries:
            return True
        frame = frame.f_back
    return False


def _mode() -> str:
    mode: str = traceback_filtering.value or "auto"
    if mode != "auto":
        return mode
    ipython = sys.modules.get("IPython")
    in_session = ipython is not None and ipython.get_ipython() is not None
    return "tracebackhide" if in_session else "quiet_remove_frames"
