"""Frames that tracebacks may leave out: maxjax's tracebacks are whole, but libraries register."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TypeVar

from maxjax._base.source import exclude

_Function = TypeVar("_Function", bound=Callable[..., object])
_exclude_paths: list[str] = []


def register_exclusion(path: str) -> None:
    """Remembers a file whose frames are of no interest to the user."""
    _exclude_paths.append(path)
    exclude(path)


def include_frame(f: types.FrameType) -> bool:
    """Whether a frame belongs to the user's code."""
    return not any(f.f_code.co_filename.startswith(path) for path in _exclude_paths)


def api_boundary(fun: _Function, **options: object) -> _Function:
    """Marks where the user's code ends; the function as it is."""
    return fun
