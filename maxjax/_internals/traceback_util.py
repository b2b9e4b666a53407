"""Frames that tracebacks omit: libraries name theirs."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TypeVar

from maxjax._base.errors import UnfilteredStackTrace as UnfilteredStackTrace
from maxjax._base.source import is_own
from maxjax._base.tracebacks import boundary
from maxjax._base.tracebacks import excluded_paths as _exclude_paths

_Function = TypeVar("_Function", bound=Callable[..., object])


def register_exclusion(path: str) -> None:
    """Has the frames of a file or folder taken out of tracebacks."""
    _exclude_paths.append(path)


def include_frame(f: types.FrameType) -> bool:
    """Whether a frame belongs to the user's code, and not to what ``python -m`` runs it by."""
    code = f.f_code
    return not (is_own(code) or code.co_filename == "<frozen runpy>" or any(
        code.co_filename.startswith(path) for path in _exclude_paths))


def api_boundary(fun: _Function, **options: object) -> _Function:
    """The function, out of which errors come with shortened tracebacks."""
    return boundary(fun)
