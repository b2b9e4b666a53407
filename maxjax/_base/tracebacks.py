"""Tracebacks without maxjax's own frames, as ``jax_traceback_filtering`` asks for them.

What users call and what calls users' functions is a boundary. The outermost boundary that an error
leaves takes maxjax's frames out of the error's traceback.
"""

from __future__ import annotations

import ast
import functools
import itertools
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from types import CodeType, FrameType, TracebackType
from typing import Any, TypeVar

from maxjax._base.config import traceback_filtering
from maxjax._base.errors import UnfilteredStackTrace
from maxjax._base.source import is_own

# Code, and an instruction in it.
Place = tuple[CodeType, int]
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
    _boundaries.add(function.__code__)
    return function


def boundary(function: F) -> F:
    """The function, out of which errors come with shortened tracebacks."""
    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    typed: Any = call
    typed.stays_outermost = boundary
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
    session = _session()
    if session is not None and not getattr(session, "custom_exceptions", True):
        session.set_custom_exc((Exception,), _show_in_session)


def _show_in_session(session: Any, kind: type[BaseException], error: Exception,
                     trace: TracebackType | None, tb_offset: int | None = None) -> None:
    """What an IPython session does with an error that a cell raises: as it would, but shortened."""
    if next(_hidden(trace), None) is not None:
        _shorten(error)
    session.showtraceback((kind, error, error.__traceback__), tb_offset=tb_offset,
                          running_compiled_code=True)


def _session() -> Any:
    """The IPython session that this is, if it is one."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def forget(error: BaseException, handled: BaseException) -> None:
    """Takes an error that was being handled out of what another one says came before it."""
    while error is not handled and error.__context__ is not None:
        if error.__context__ is handled:
            error.__context__ = None
            return
        error = error.__context__


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
        if traceback_filtering.value in (None, "auto"):
            _cut_end(error)
        return
    whole = error.__traceback__
    if mode == "quiet_remove_frames":
        # An error may leave several boundaries, as when a user's function hands it on.
        if NOTE not in getattr(error, "__notes__", ()):
            error.add_note(NOTE)
    else:
        text = "".join(traceback.format_exception_only(type(error), error)).strip()
        unfiltered = UnfilteredStackTrace(f"{text}\n\n{_CAUSE}").with_traceback(whole)
        unfiltered.__cause__ = error.__cause__
        unfiltered.__context__ = error.__context__
        unfiltered.__suppress_context__ = error.__suppress_context__
        error.__cause__, error.__context__ = unfiltered, None
    error.__traceback__ = of_user(whole)


def places_of_user() -> list[Place]:
    """Where the user's code is now, the innermost place last."""
    places = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not is_own(code):
            places.append((code, frame.f_lasti))
        elif code.co_filename.endswith("__main__.py"):
            break      # what started the user's script
        if frame.f_globals.get("__name__") == "IPython.core.interactiveshell":
            places.pop()
            break
        frame = frame.f_back
    return places[::-1]


def traceback_of(places: Sequence[Place]) -> TracebackType | None:
    """A traceback of places where code has been. Its frames are of code that raises an error there:
    those that were would have kept their values alive."""
    trace = None
    for code, instruction in reversed(places):
        line, end_line, column, end_column = next(
            itertools.islice(code.co_positions(), instruction // 2, None), (None,) * 4)
        line = line or code.co_firstlineno
        tree = ast.parse("raise LookupError")
        for node in ast.walk(tree):
            if isinstance(node, (ast.stmt, ast.expr)):
                node.lineno, node.end_lineno = line, end_line or line
                node.col_offset, node.end_col_offset = column or 0, end_column or 0
        try:
            exec(compile(tree, code.co_filename, "exec").replace(co_name=code.co_name), {})
        except LookupError as error:
            inner = error.__traceback__ and error.__traceback__.tb_next
            if inner is not None:
                trace = TracebackType(trace, inner.tb_frame, inner.tb_lasti, line)
    return trace


def _cut_end(error: Exception) -> None:
    """Ends an error's traceback with the user's innermost frame: IPython shows the last one, hidden
    or not."""
    whole = error.__traceback__
    hidden = {id(frame) for frame, _ in _hidden(whole)}
    last = None
    while whole is not None:
        if id(whole.tb_frame) not in hidden:
            last = whole
        whole = whole.tb_next
    if last is None:
        error.__traceback__ = None      # the frames of those who called are still to come
    else:
        last.tb_next = None


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
    return "quiet_remove_frames" if _session() is None else "tracebackhide"
