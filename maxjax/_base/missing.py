"""The error for a name that a module does not have."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any


def attribute_error(module: str, name: str) -> AttributeError:
    """The error of a module without an attribute, to which Python adds similar names."""
    return AttributeError(f"module {module!r} has no attribute {name!r}", name=name,
                          obj=sys.modules.get(module))


def explain_missing_names(module: str, reasons: Mapping[str, str] = MappingProxyType({}),
                          deprecated: Mapping[str, tuple[Any, str]] = MappingProxyType({})) -> None:
    """Has a module raise ``attribute_error`` for names that it lacks; for some, with a reason.

    ``deprecated`` names values that the module gives with a DeprecationWarning of this text, the
    first time.

    The module's source holds no ``__getattr__`` then, behind which a type checker would take every
    misspelt name for one of the module's.
    """
    def __getattr__(name: str) -> Any:
        if name in deprecated:
            value, message = deprecated[name]
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            vars(sys.modules[module])[name] = value
            return value
        if name in reasons:
            raise AttributeError(reasons[name], name=name)
        raise attribute_error(module, name)

    vars(sys.modules[module])["__getattr__"] = __getattr__
