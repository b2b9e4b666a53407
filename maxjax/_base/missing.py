"""The error for a name of JAX's that maxjax does not have."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any


def attribute_error(module: str, name: str) -> AttributeError:
    """The error of a module without an attribute; tells a gap in maxjax from Python's own names."""
    hint = "" if name.startswith("_") else " (maxjax does not have it yet)"
    return AttributeError(f"module {module!r} has no attribute {name!r}{hint}", name=name)


def explain_missing_names(module: str, reasons: Mapping[str, str] = MappingProxyType({})) -> None:
    """Has a module's error for names that it lacks tell of the gap; for some, in words of its own.

    The module's source holds no ``__getattr__`` then, behind which a type checker would take every
    misspelt name for one of the module's.
    """
    def __getattr__(name: str) -> Any:
        if name in reasons:
            raise AttributeError(reasons[name], name=name)
        raise attribute_error(module, name)

    vars(sys.modules[module])["__getattr__"] = __getattr__
