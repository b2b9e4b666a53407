"""Options."""

from typing import Any

from maxjax._base import config as _options


def __getattr__(name: str) -> Any:
    """The object ``config``, and the options themselves by name."""
    return getattr(_options, name)
