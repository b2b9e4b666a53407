"""What a module says about its names: which it has for users, and which it lacks."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from types import MappingProxyType, ModuleType
from typing import Any

# Where names come from that a module imports for its own use.
_HELPERS = ("typing", "collections", "collections.abc", "maxjax._base.missing",
            "maxjax._base.lazy", "maxjax._higher_order.function_stages")


def attribute_error(module: str, name: str) -> AttributeError:
    """The error of a module without an attribute, to which Python adds similar names."""
    return AttributeError(f"module {module!r} has no attribute {name!r}", name=name,
                          obj=sys.modules.get(module))


def public_names(module: str) -> list[str]:
    """The names of a module without those that are private, and those that it brings in from
    outside for its own use."""
    return sorted(name for name, value in vars(sys.modules[module]).items()
                  if _is_public(name, value) or (name.startswith("__") and name.endswith("__")))


def _is_public(name: str, value: object) -> bool:
    if name.startswith("_") or name in ("annotations", "TYPE_CHECKING"):
        return False
    if isinstance(value, ModuleType):
        path = value.__name__.split(".")
        return path[0] == "maxjax" and path[-1] == name and not any(
            part.startswith("_") for part in path)
    return getattr(value, "__module__", "") not in _HELPERS or (
        getattr(value, "__name__", name) != name)


def explain_missing_names(module: str, reasons: Mapping[str, str] = MappingProxyType({}),
                          deprecated: Mapping[str, tuple[object, str]] = MappingProxyType({})
                          ) -> None:
    """Has a module raise ``attribute_error`` for names that it lacks, for some with a reason, and
    ``dir`` of it list its ``public_names``.

    ``deprecated`` names values that the module gives with a DeprecationWarning of this text, the
    first time; ``dir`` does not list them.

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

    namespace = vars(sys.modules[module])
    namespace["__getattr__"] = __getattr__
    namespace["__dir__"] = lambda: [
        name for name in public_names(module) if name not in deprecated]
