"""Numbers of Python's with a dtype: what functions with derivative rules get for plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np


def _new(cls: Any, value: complex, dtype: np.dtype) -> Any:
    made = cls.__base__.__new__(cls, value)
    made.dtype = dtype
    return made


def _text(self: Any) -> str:
    kind: Any = type(self)
    return f"{kind.__name__}({kind.__base__.__repr__(self)}, dtype={self.dtype})"


def _arguments(self: Any) -> tuple[Any, ...]:
    base: Any = type(self).__base__
    return base(self), self.dtype


class TypedInt(int):
    """An integer with a dtype."""

    dtype: Any
    __new__ = _new      # type: ignore[assignment]
    __repr__ = _text
    __getnewargs__ = _arguments


class TypedFloat(float):
    """A float with a dtype, which ``str`` gives as a float."""

    dtype: Any
    __new__ = _new      # type: ignore[assignment]
    __repr__ = _text
    __str__ = float.__repr__
    __getnewargs__ = _arguments


class TypedComplex(complex):
    """A complex number with a dtype."""

    dtype: Any
    __new__ = _new      # type: ignore[assignment]
    __repr__ = _text
    __getnewargs__ = _arguments


KINDS: dict[type, type] = {int: TypedInt, float: TypedFloat, complex: TypedComplex}
