"""What a function under jit is to be compiled for: a platform, and options of XLA's."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

from maxjax._base.errors import JaxRuntimeError
from maxjax._ir.runtime import installed
from maxjax._ir.trace import context

logger = logging.getLogger("maxjax")

# Options of XLA's that do not begin with its name.
_FIELDS = ("exec_time_optimization_effort", "memory_fitting_effort", "optimization_level",
           "memory_fitting_level")
_told: set[str] = set()


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
          ValueError: options are given to a function that another one's program calls.
          JaxRuntimeError, TypeError: see ``check_options``.
        """
        installed.runtime.devices(self.backend)
        if self.options is None:
            return
        if context.trace is not installed.runtime:
            raise ValueError(
                "`compiler_options` can only be passed to top-level `jax.jit`. Got "
                f"compiler_options={dict(self.options)} specified on a nested jit with name: "
                f"{name} and source info: {location}")
        check_options(self.options)


def check_options(options: Mapping[str, object]) -> None:
    """Says once of each option of XLA's that it has no effect.

    Raises:
      JaxRuntimeError: it is none of XLA's.
      TypeError: a name is no string, or a value no string and no number.
    """
    for name, value in options.items():
        if not isinstance(name, str) or not isinstance(value, (str, bool, int, float)):
            raise TypeError("compiler_options maps names to strings, bools, ints or floats; got "
                            f"{name!r}: {value!r}")
        if not name.startswith("xla_") and name not in _FIELDS:
            raise JaxRuntimeError(f"INVALID_ARGUMENT: No such compile option: '{name}'")
        if name not in _told:
            _told.add(name)
            logger.warning("compiler option %s=%r has no effect: XLA is not what compiles here",
                           name, value)
