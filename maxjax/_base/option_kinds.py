"""What values an option takes: JAX's kinds of options, with JAX's messages."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable
from typing import Any


@dataclasses.dataclass(frozen=True)
class Kind:
    """Reads an option's value, and the text of its environment variable.

    Attributes:
      parse: what a given value is kept as; raises ValueError or TypeError.
      read: what a text is kept as, given the option's name, the variable's and the text; raises
        ValueError.
      is_boolean: whether a context manager without an argument switches the option on.
    """

    parse: Callable[[Any], Any]
    read: Callable[[str, str, str], Any]
    is_boolean: bool = False


def _text_itself(name: str, variable: str, text: str) -> str:
    return text


def _invalid(name: str, variable: str, text: str) -> ValueError:
    """The error for an environment variable's text that the option does not take."""
    which = f"JAX flag {name}" if variable == name.upper() else f"environment variable {variable}"
    return ValueError(f'Invalid value "{text}" for {which}')


def _read_boolean(name: str, variable: str, text: str) -> bool:
    lowered = text.lower()
    if lowered in ("y", "yes", "t", "true", "on", "1"):
        return True
    if lowered in ("n", "no", "f", "false", "off", "0"):
        return False
    raise ValueError(f"invalid truth value {lowered!r} for environment {variable!r}")


def _read_as(kind: Callable[[str], object]) -> Callable[[str, str, str], Any]:
    """Reads an environment variable by ``kind``; ValueError where that cannot."""
    def read(name: str, variable: str, text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            raise _invalid(name, variable, text) from None

    return read


def _number(kind: type, accepts: type | tuple[type, ...]) -> Kind:
    def parse(value: object) -> Any:
        if value is not None and not isinstance(value, accepts):
            raise ValueError(
                f"new {kind.__name__} config value must be None or of type {kind.__name__}, got "
                f"{value} of type {type(value)}")
        return value

    return Kind(parse, _read_as(kind))


def _parse_string(value: object) -> Any:
    if not isinstance(value, str):
        raise TypeError(f"new string config value must be of type str, got {value} of type "
                        f"{type(value)}.")
    return value


def _parse_optional_string(value: object) -> Any:
    if value is not None and not isinstance(value, str):
        raise ValueError(f"new string config value must be None or of type str, got {value} of "
                         f"type {type(value)}.")
    return value


BOOLEAN = Kind(bool, _read_boolean, is_boolean=True)
OPTIONAL_BOOLEAN = Kind(lambda value: None if value is None else bool(value), _read_boolean,
                        is_boolean=True)
INTEGER = _number(int, int)
FLOATING = _number(float, (float, int))
STRING = Kind(_parse_string, _text_itself)
OPTIONAL_STRING = Kind(_parse_optional_string, _text_itself)
ANYTHING = Kind(lambda value: value, _text_itself)


def one_of(choices: tuple[str | None, ...]) -> Kind:
    """One of some strings, and None where that is among the choices."""
    names = [choice for choice in choices if choice is not None]
    optional = len(names) < len(choices)

    def parse(value: object) -> Any:
        if not (value is None and optional) and (type(value) is not str or value not in names):
            raise ValueError(f"new enum value must be {'None or ' if optional else ''}in {names}, "
                             f"got {value} of type {type(value)}.")
        return value

    def read(name: str, variable: str, text: str) -> str:
        if text not in names:
            raise _invalid(name, variable, text)
        return text

    return Kind(parse, read)


def member_of(kind: type[enum.Enum]) -> Kind:
    """A member of an enumeration, or its name in small letters."""
    def parse(value: object) -> Any:
        if isinstance(value, str):
            return kind(value)
        if not isinstance(value, kind):
            raise TypeError(f"new enum value must be an instance of {kind}, got {value} of type "
                            f"{type(value)}.")
        return value

    return Kind(parse, _read_as(kind))


def kind_of(default: object) -> Kind:
    """The kind of an option that follows from its default."""
    if isinstance(default, enum.Enum):
        return member_of(type(default))
    kinds = {bool: BOOLEAN, int: INTEGER, float: FLOATING, str: STRING}
    return kinds[type(default)]
