"""The lines and scopes of equations."""

from typing import Any

from maxjax.extend import source_info_util as _public


def __getattr__(name: str) -> Any:
    return getattr(_public, name)
