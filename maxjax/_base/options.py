"""What an option is: its values for the process, for a thread and for a block of code."""

from __future__ import annotations

import enum
import functools
import logging
import os
import threading
from collections.abc import Callable
from typing import Any, NoReturn, ParamSpec, TypeVar

from maxjax._base import absl_flags, option_kinds
from maxjax._base.errors import InternalError
from maxjax._base.interrupts import entered_at_once
from maxjax._base.option_kinds import Kind

logger = logging.getLogger("maxjax")
_MISSING: Any = object()
Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class _Overrides(threading.local):
    """Values that context managers have set in this thread."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}


_overrides = _Overrides()


class Option:
    """One option: a process-wide value and, inside ``with option(value):``, a thread's own.

    Attributes:
      is_flag: set for the process alone, to anything, and read by ``config.read`` alone.
      is_own: JAX does not have it.
      by_read: whether ``config.read`` gives it.
      without_effect: why values other than ``suffices`` have no effect; None for options that act.
    """

    def __init__(self, name: str, default: object, doc: str, kind: Kind, variable: str | None, *,
                 is_flag: bool = False, is_own: bool = False, by_read: bool = False,
                 without_effect: str | None = None, suffices: tuple[object, ...] = ()):
        self.name = name
        self.__name__ = name.removeprefix("jax_")
        self.__doc__ = doc
        self.kind = kind
        self.is_flag = is_flag
        self.is_own = is_own
        self.by_read = by_read
        self.without_effect = without_effect
        self.suffices = (default, *suffices)
        self.on_change: list[Callable[[], None]] = []
        self.process_value: Any = default
        # The context managers that are open, in all threads: a set, since adding and removing one
        # are done or not, whenever an interrupt comes.
        self.overrides: set[OptionContext] = set()
        text = None if variable is None else os.environ.get(variable)
        if text is not None:
            self.process_value = kind.read(name, str(variable), text)
            self._tell(self.process_value)

    def add_check(self, check: Callable[[object], None]) -> None:
        """Has ``check`` raise for values that the option does not take, beginning with its own."""
        parse = self.kind.parse

        def checked(value: object) -> Any:
            value = parse(value)
            check(value)
            return value

        self.kind = Kind(checked, self.kind.read, self.kind.is_boolean)
        check(self.process_value)

    def parse(self, value: object) -> Any:
        """The value as it is kept.

        Raises:
          ValueError, TypeError: the option does not take it.
        """
        value = self.kind.parse(value)
        self._tell(value)
        return value

    def _tell(self, value: object) -> None:
        """Warns once that a value has no effect."""
        if self.without_effect is not None and value not in self.suffices:
            logger.warning("%s=%r has no effect: %s", self.name,
                           value.value if isinstance(value, enum.Enum) else value,
                           self.without_effect)
            self.without_effect = None

    @property
    def value(self) -> Any:
        override = _overrides.values.get(self.name, _MISSING)
        return self.process_value if override is _MISSING else override

    def set(self, value: object) -> None:
        self.process_value = self.parse(value)
        self.changed()

    @entered_at_once
    def changed(self) -> None:
        try:
            for callback in self.on_change:
                callback()
        except BaseException:       # an interrupt: all are to know of the change still
            for callback in self.on_change:
                callback()
            raise

    def __call__(self, new_val: object = _MISSING) -> OptionContext:
        if new_val is _MISSING:
            if not self.kind.is_boolean:
                raise TypeError(
                    f"Context manager for {self.__name__} config option requires an argument "
                    "representing the new value for the config option.")
            new_val = True
        return OptionContext(self, self.parse(new_val))

    def __bool__(self) -> NoReturn:
        raise TypeError("bool() not supported for instances of type 'State' (did you mean to use "
                        "'State.value' instead?)")

    def __repr__(self) -> str:
        return f"<maxjax option {self.name}={self.value!r}>"


class OptionContext:
    """An option's value for a block of code in one thread, or for the calls of a function."""

    __slots__ = ("option", "previous", "value")

    def __init__(self, option: Option, value: object):
        self.option = option
        self.value = value

    def __enter__(self) -> None:
        option = self.option
        self.previous = _overrides.values.get(option.name, _MISSING)
        try:
            option.overrides.add(self)
            _overrides.values[option.name] = self.value
            option.changed()
        except BaseException:       # an interrupt: nobody calls `__exit__`
            self.__exit__()
            raise

    @entered_at_once
    def __exit__(self, *_: object) -> None:
        option = self.option
        if self.previous is not _MISSING:
            _overrides.values[option.name] = self.previous
        elif option.name in _overrides.values:
            del _overrides.values[option.name]
        try:
            option.overrides.discard(self)
        finally:
            option.changed()

    def __call__(self, function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
        @functools.wraps(function)
        def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            with OptionContext(self.option, self.value):
                return function(*args, **kwargs)

        return call


class Config:
    """All options, as attributes; ``update(name, value)`` sets one for the process."""

    _options: dict[str, Option]

    def __init__(self) -> None:
        object.__setattr__(self, "_options", {})

    def define(self, name: str, default: object, doc: str, kind: Kind | None = None,
               **settings: Any) -> Option:
        """A new option of JAX's: its environment variable is its name in capitals.

        Args:
          kind: what values it takes; absent: those like the default.
          settings: of ``Option``.

        Raises:
          InternalError: there is one of that name.
        """
        return self._add(Option(name, default, doc, kind or option_kinds.kind_of(default),
                                name.upper(), **settings))

    def define_flag(self, name: str, default: object, doc: str, variable: str | None = None,
                    kind: Kind = option_kinds.ANYTHING, **settings: Any) -> Option:
        """A new flag of JAX's, which takes any value; ``kind`` reads its environment variable."""
        kind = Kind(option_kinds.ANYTHING.parse, kind.read)
        return self._add(Option(name, default, doc, kind, variable, is_flag=True, by_read=True,
                                **settings))

    def define_own(self, name: str, default: object, doc: str, kind: Kind | None = None) -> Option:
        """A new option of maxjax's own: its environment variable is MAXJAX_ and its name."""
        variable = f"MAXJAX_{name.upper()}"
        return self._add(Option(name, default, doc, kind or option_kinds.kind_of(default),
                                variable if os.environ.get(variable) else None, is_own=True,
                                by_read=True))

    def _add(self, option: Option) -> Option:
        if option.name in self._options:
            raise InternalError(f"two options are called {option.name!r}")
        self._options[option.name] = option
        return option

    @property
    def names(self) -> list[str]:
        """All options."""
        return list(self._options)

    @property
    def own_names(self) -> list[str]:
        """The options that JAX does not have."""
        return [name for name, option in self._options.items() if option.is_own]

    def option(self, name: str) -> Option:
        """The option of a name: also its context manager."""
        return self._options[name]

    def _known(self, name: str) -> Option:
        option = self._options.get(name)
        if option is None:
            raise AttributeError(f"Unrecognized config option: {name}")
        return option

    def update(self, name: str, value: object) -> None:
        """Sets an option for the whole process.

        Raises:
          AttributeError: there is no option of that name.
          ValueError, TypeError: the option does not take that value.
          RuntimeError: it is too late to set it.
        """
        self._known(name).set(value)

    def read(self, name: str) -> Any:
        """The present value of an option that has no context manager.

        Raises:
          AttributeError: there is no option of that name, or it is to be read as an attribute.
        """
        option = self._options.get(name)
        if option is not None and not option.by_read:
            raise AttributeError(
                "For flags with a corresponding contextmanager, read their value via e.g. "
                f"`config.{name}` rather than `config.FLAGS.{name}`.")
        return self._known(name).value

    def config_with_absl(self) -> None:
        """Makes absl flags of JAX's options; ``absl.app.run`` then sets those that are given.

        Raises:
          ModuleNotFoundError: absl-py is not installed.
        """
        absl_flags.define(self._options.values())

    def parse_flags_with_absl(self) -> None:
        """Sets the options that the command line has as ``--jax_...``; later calls do nothing.

        Raises:
          ModuleNotFoundError: absl-py is not installed.
        """
        absl_flags.parse(self._options.values())

    @property
    def values(self) -> dict[str, Any]:
        return {name: option.value for name, option in self._options.items()}

    def __getattr__(self, name: str) -> Any:
        option = self._options.get("jax_enable_x64" if name == "x64_enabled" else name)
        if option is None or option.is_flag:
            raise AttributeError(f"'Config' object has no attribute '{name}'")
        return option.value

    def __setattr__(self, name: str, value: object) -> None:
        known = self._known(name)
        raise AttributeError(f"property '{known.name}' of 'Config' object has no setter")


class NumpyDtypePromotion(enum.StrEnum):
    """What an implicit promotion of dtypes does."""

    STANDARD = "standard"
    STRICT = "strict"


class LegacyPrngKeyState(enum.StrEnum):
    """What becomes of random keys that are arrays of integers."""

    ALLOW = "allow"
    WARN = "warn"
    ERROR = "error"


class ExplicitX64Mode(enum.IntEnum):
    """What becomes of 64-bit dtypes that are asked for by name while they are off."""

    WARN = 1
    ERROR = 2
    ALLOW = 3

    @classmethod
    def _missing_(cls, value: object) -> ExplicitX64Mode | None:
        members = {member.name.lower(): member for member in cls}
        return members.get(value) if isinstance(value, str) else None
