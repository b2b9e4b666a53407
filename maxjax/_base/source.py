"""Which line of the user's code is running."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from types import CodeType, FrameType, MappingProxyType
from typing import Any

from maxjax._base.interrupts import entered_at_once

# The paths of maxjax's code.
_own_paths: tuple[str, ...] = (
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep,
    "<tier 0 of ", "<a loop of tier 0>", "<checks of ")      # generated code
# The paths of code that is not the user's: maxjax, and libraries which say so.
_internal_paths = _own_paths
# A code object is asked about once: tracing looks at the stack for each equation.
_is_internal: dict[CodeType, bool] = {}


def exclude(path: str) -> None:
    """Code of this file or folder does not count as the user's from now on."""
    global _internal_paths
    if path and path not in _internal_paths:
        _internal_paths = (*_internal_paths, path)
        _is_internal.clear()


def is_own(code: CodeType) -> bool:
    """Whether code belongs to maxjax."""
    return code.co_filename.startswith(_own_paths)


def is_internal(code: CodeType) -> bool:
    """Whether code belongs to maxjax, or to a library that stands between it and the user."""
    known = _is_internal.get(code)
    if known is None:
        if len(_is_internal) > 20_000:
            _is_internal.clear()
        known = _is_internal[code] = code.co_filename.startswith(_internal_paths)
    return known


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost frame of code that does not belong to maxjax."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None:
        internal = _is_internal.get(frame.f_code)      # asked for each equation that is traced
        if internal is None:
            internal = is_internal(frame.f_code)
        if not internal:
            return frame
        frame = frame.f_back
    return None


class Warned:
    """How often ``warn`` has been called: what has warned is to warn the next time, too."""

    count = 0


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warns of what the user's line asks for, however deep in maxjax that is noticed."""
    Warned.count += 1
    frame, level = sys._getframe(1), 2
    while is_internal(frame.f_code):
        if frame.f_back is None:
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


class Transformation(str):
    """Among the names of scopes: what follows is of a function that is differentiated or mapped."""

    __slots__ = ()


JVP = Transformation("jvp")
TRANSPOSE = Transformation("transpose")
VMAP = Transformation("vmap")


class Names(tuple[str, ...]):
    """The names of open scopes, and of the transformations between them.

    >>> str(Names(("layer", VMAP, JVP, "attention", "softmax")))
    'layer/vmap(jvp(attention))/softmax'

    Attributes:
      metadata: what ``set_xla_metadata`` says of the operations inside, by key.
    """

    metadata: Mapping[str, object] = MappingProxyType({})

    def and_name(self, name: str) -> Names:
        """These and one more."""
        return Names((*self, name)).with_metadata(self.metadata)

    def inside(self, outer: Names) -> Names:
        """These in the scopes ``outer``."""
        names = Names(outer + self)
        if outer.metadata or self.metadata:
            names.metadata = {**outer.metadata, **self.metadata}
        return names

    def __str__(self) -> str:
        parts: list[str] = []       # from the last to the first
        for name in reversed(self):
            if name.__class__ is Transformation:
                parts[-1:] = [f"{name}({parts[-1] if parts else ''})"]
            else:
                parts.append(name)
        return "/".join(reversed(parts))

    def with_metadata(self, metadata: Mapping[str, object]) -> Names:
        """These, with other metadata."""
        names = Names(self)
        if metadata:
            names.metadata = metadata
        return names


class _Scopes(threading.local):
    """The scopes and the source line that this thread gives to what it traces.

    Attributes:
      names: what ``jax.named_scope`` has open.
      source_line: where a pass rewrites or transposes a program, the line of the equation that it
        is at (None: it has none); elsewhere a text.
    """

    names = Names()
    source_line: SourceLine | str | None = "look at the stack"


scopes = _Scopes()


class kept_source_lines:
    """What is set as ``scopes.source_line`` inside does not stay."""

    __slots__ = ("_previous",)

    def __enter__(self) -> None:
        self._previous = scopes.source_line

    @entered_at_once
    def __exit__(self, *_: object) -> None:
        scopes.source_line = self._previous


class inherited_source_lines:
    """Equations traced inside take their lines from ``scopes.source_line``, not from the stack.

    The scopes that are open have no part in it: what is traced may be of use outside of them.
    """

    __slots__ = ("_previous",)

    def __enter__(self) -> None:
        self._previous = scopes.names, scopes.source_line
        scopes.names, scopes.source_line = NO_NAMES, None

    @entered_at_once
    def __exit__(self, *_: object) -> None:
        scopes.names, scopes.source_line = self._previous


class transformed:
    """What is traced inside is of a function that is transformed so."""

    __slots__ = ("_previous", "_transformation")

    def __init__(self, transformation: Transformation):
        self._transformation = transformation

    def __enter__(self) -> None:
        self._previous = scopes.names, scopes.source_line
        scopes.names, scopes.source_line = inside_scope(self._transformation)

    @entered_at_once
    def __exit__(self, *_: object) -> None:
        scopes.names, scopes.source_line = self._previous


# Whoever opens a scope or leaves them all sets both attributes at once, to what these give: no
# interrupt comes between the change and whoever changes it back.
def inside_scope(name: str) -> tuple[Names, SourceLine | str | None]:
    """The names and the inherited line in one more scope."""
    line = scopes.source_line
    if line.__class__ is SourceLine:
        line = SourceLine(line.code, line.instruction, line.scopes.and_name(name))
    return scopes.names.and_name(name), line


def outside_scopes() -> tuple[Names, SourceLine | str | None]:
    """The names and the inherited line outside of all: a program is of use there."""
    names, line = scopes.names, scopes.source_line
    if line.__class__ is SourceLine and line.scopes:
        line = line.without(len(line.scopes))
    return NO_NAMES.with_metadata(names.metadata) if names else names, line


NO_NAMES = Names()


class SourceLine:
    """A place in the user's code, resolved to text only when somebody asks.

    >>> info = jax.make_jaxpr(jnp.sin)(1.0).eqns[0].source_info
    >>> isinstance(info, jax.extend.source_info_util.SourceInfo)
    True

    Attributes:
      scopes: the names of ``jax.named_scope`` around it.
    """

    __slots__ = ("code", "instruction", "scopes")

    def __init__(self, code: CodeType, instruction: int, names: Names = NO_NAMES):
        self.code = code
        self.instruction = instruction
        self.scopes = names

    @property
    def line(self) -> int:
        for start, end, line in self.code.co_lines():
            if start <= self.instruction < end and line is not None:
                return line
        return self.code.co_firstlineno

    traceback = None        # JAX's object; the line is resolved from the code itself

    @property
    def name_stack(self) -> str:
        """The scopes, as JAX prints them."""
        return str(self.scopes)

    def inside(self, outer: Names) -> SourceLine:
        """This line with its scopes inside of others."""
        return SourceLine(self.code, self.instruction, self.scopes.inside(outer))

    def without(self, count: int) -> SourceLine:
        """This line without so many of its outermost scopes."""
        names = Names(self.scopes[count:]).with_metadata(self.scopes.metadata)
        return SourceLine(self.code, self.instruction, names)

    @property
    def name(self) -> str:
        return getattr(self.code, "co_qualname", self.code.co_name)

    def __str__(self) -> str:
        return f"{self.code.co_filename}:{self.line} ({self.name})"

    def with_column(self) -> str:
        """``file:line:column (function)``, without a column that is 0."""
        positions = list(self.code.co_positions())
        index = self.instruction // 2
        column = positions[index][2] if index < len(positions) else None
        place = f"{self.line}:{column}" if column else f"{self.line}"
        return f"{self.code.co_filename}:{place} ({self.name})"


# Stands for the line of equations that have none.
UNKNOWN_LINE = SourceLine(compile("", "unknown", "exec"), 0)


def current_line(depth: int = 2) -> SourceLine | None:
    line = scopes.source_line
    if not isinstance(line, str):
        return line
    frame = user_frame(depth)
    return None if frame is None else SourceLine(frame.f_code, frame.f_lasti, scopes.names)


def occurs_at(depth: int = 3) -> str:
    """The end of an error's message: the line of the user's that it is of."""
    line = current_line(depth)
    return f" This error occurs at source:  {'' if line is None else line.with_column()}"


def show_as(wrapper: Callable[..., object], function: object) -> None:
    """Has messages name ``function``, which is the user's, instead of ``wrapper``."""
    vars(wrapper)["__wrapped__"] = function


def unwrapped(function: object) -> Any:
    """The function inside decorators and ``functools.partial``."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    while hasattr(function, "func"):
        function = function.func
    return function


def function_location(function: object) -> str:
    """``name at file:line``, as far as they are known."""
    function = unwrapped(function)
    name = getattr(function, "__name__", None) or type(function).__name__
    code = getattr(function, "__code__", None)
    if code is None:
        return name
    return f"{name} at {code.co_filename}:{code.co_firstlineno}"
