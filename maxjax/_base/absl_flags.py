"""JAX's options as flags of absl's, for programs whose ``main`` absl runs."""

from __future__ import annotations

import importlib
import itertools
import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from maxjax._base.options import Option

_KINDS = {bool: "DEFINE_bool", int: "DEFINE_integer", float: "DEFINE_float"}
_state = {"parsed": False}


def define(options: Iterable[Option]) -> None:
    """A flag for each of JAX's options; those given are set when absl's ``app`` has read them.

    Raises:
      absl.flags.DuplicateFlagError: the flags are there already.
    """
    options = [option for option in options if not option.is_own]
    flags, app = _absl("flags"), _absl("app")
    for option in options:
        value = option.process_value
        define_flag = getattr(flags, _KINDS.get(type(value), "DEFINE_string"))
        define_flag(option.name, value if type(value) in _KINDS else _text(value), option.__doc__)
    app.call_after_init(lambda: _set(options, flags.FLAGS))


def parse(options: Iterable[Option]) -> None:
    """Defines the flags, reads those that the command line has as ``--jax...``, and sets them."""
    if _state["parsed"]:
        return
    options = [option for option in options if not option.is_own]
    define(options)
    flags = _absl("flags").FLAGS
    given = itertools.takewhile(lambda argument: argument != "--", sys.argv)
    flags(["", *(argument for argument in given if argument.startswith("--jax"))], known_only=True)
    _set(options, flags)
    _state["parsed"] = True


def _absl(name: str) -> Any:
    return importlib.import_module(f"absl.{name}")


def _set(options: Iterable[Option], flags: Mapping[str, Any]) -> None:
    for option in options:
        flag = flags[option.name]
        if flag.present:
            option.set(option.kind.read(option.name, f"--{option.name}", flag.value)
                       if isinstance(flag.value, str) else flag.value)


def _text(value: object) -> str | None:
    return None if value is None else str(value)
