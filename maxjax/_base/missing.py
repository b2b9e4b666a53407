"""The error for a name of JAX's that maxjax does not have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def attribute_error(module: str, name: str) -> AttributeError:
    """The error of a module without an attribute; tells a gap in maxjax from Python's own names."""
    hint = "" if name.startswith("_") else " (maxjax does not have it yet)"
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name)


def missing_names(module: str) -> Callable[[str], Any]:
    """A module's ``__getattr__``."""
    def __getattr__(name: str) -> Any:
        raise attribute_error(module, name)

    return __getattr__
