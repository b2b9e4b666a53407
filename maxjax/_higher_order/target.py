"""What a function under jit is to be compiled for: a platform, and XLA options."""

from __future__ import annotations

import enum
import logging
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from maxjax._base.errors import JaxRuntimeError
from maxjax._base.meshes import around
from maxjax._higher_order.xla_options import XLA_OPTIONS
from maxjax._ir.runtime import installed
from maxjax._ir.trace import context

logger = logging.getLogger("maxjax")

# XLA options that do not begin with its name: levels of effort.
_FIELDS = ("optimization_level", "memory_fitting_level")
_warned: set[str] = set()


class CompilerEffortLevel(enum.Enum):
    """How much work XLA is to do; accepted, all programs are compiled alike.

    >>> jax.CompilerEffortLevel.O1.value
    19
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


class Target(NamedTuple):
    """The platform, and options of the compiler.

    Attributes:
      backend: the platform's name; None for the default one.
      options: by name; never empty.
    """

    backend: str | None
    options: Mapping[str, Any] | None

    def check(self, name: str, location: str) -> None:
        """Called where a function is traced.

        Raises:
          RuntimeError: there is no such platform.
          ValueError: a mesh is set, too; or options are given to a function that another jitted
            one calls.
          JaxRuntimeError, TypeError: see ``check_options``.
        """
        installed.runtime.devices(self.backend)
        if self.backend is not None:
            refuse_mesh()
        if self.options is None:
            return
        if context.trace is not installed.runtime:
            raise ValueError(
                "`compiler_options` can only be passed to top-level `jax.jit`. Got "
                f"compiler_options={dict(self.options)} specified on a nested jit with name: "
                f"{name} and source info: {location}")
        check_options(self.options)


def refuse_mesh() -> None:
    """Raises ValueError where a mesh is set for a function with a device or platform of its own."""
    if not around().concrete.empty:
        raise ValueError("Mesh context manager should not be used with jit when backend or device "
                         "is also specified as an argument to jit.")


def check_options(options: Mapping[str, object]) -> None:
    """Warns once of each XLA option that it has no effect.

    Raises:
      JaxRuntimeError: XLA has no option of that name, or it does not take the value.
      TypeError: a name is not a string, or a value neither a string nor a number.
      ValueError: a level of effort is none.
    """
    for name, value in options.items():
        if name in _FIELDS:
            value = (CompilerEffortLevel[value] if isinstance(value, str)
                     and value in CompilerEffortLevel.__members__ else
                     CompilerEffortLevel(value)).name
        if not isinstance(name, str) or not isinstance(value, (str, bool, int, float)):
            raise TypeError("compiler_options maps names to strings, bools, ints or floats; got "
                            f"{name!r}: {value!r}")
        if name not in XLA_OPTIONS and name not in _FIELDS:
            raise JaxRuntimeError(f"INVALID_ARGUMENT: No such compile option: '{name}'")
        kind = XLA_OPTIONS.get(name)
        if kind is not None and not _takes(kind, value):
            shown = int(value) if isinstance(value, bool) else value
            raise JaxRuntimeError(f"INVALID_ARGUMENT: While setting option {name}, '{shown}' is "
                                  f"not a valid {kind} value.")
        if name not in _warned:
            _warned.add(name)
            logger.warning("compiler option %s=%r has no effect: XLA is not what compiles here",
                           name, value)


_INTEGER = re.compile("[+-]?[0-9]+")
_NUMBER = re.compile("[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?")


def _takes(kind: str, value: str | bool | int | float) -> bool:
    """Whether an option of that type takes the value; of enumerations that is not known."""
    if kind == "bool":
        return value in ("True", "False", 0, 1)
    if kind == "string":
        return isinstance(value, str)
    if kind == "float":
        return not isinstance(value, str) or _NUMBER.fullmatch(value) is not None
    if kind in ("int32", "int64"):
        if isinstance(value, (bool, float)) or (
                isinstance(value, str) and not _INTEGER.fullmatch(value)):
            return False
        limit = 2 ** (int(kind.removeprefix("int")) - 1)
        return -limit <= int(value) < limit
    return True
