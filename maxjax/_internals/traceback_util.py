"""Frames that tracebacks may omit: maxjax's are complete, but libraries register theirs."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TypeVar

from maxjax._base.source import exclude

_Function = TypeVar("_Function", bound=Callable[..., object])
_exclude_paths: list[str] = []


def register_exclusion(path: str) -> None:
    """Records a file whose frames are irrelevant to the user."""
    _exclude_paths.append(path)
    exclude(path)


def include_frame(f: types.FrameType) -> bool:
    """Whether a frame belongs to the user's code."""
    return not any(f.f_code.co_filename.startswith(path) for path in _exclude_paths)


def api_boundary(fun: _Function, **options: object) -> _Function:
    """Marks where the user's code ends; returns the function unchanged."""
    return fun
