"""The functions of lax."""

from typing import Any

from maxjax import lax as _lax


def __getattr__(name: str) -> Any:
    return getattr(_lax, name)
