"""Numbers of Python with a dtype, into which JAX makes arguments of its primitives.

maxjax makes none; libraries register conversions of these classes.
"""

from __future__ import annotations

from typing import Any


class _Typed:
    dtype: Any

    def __new__(cls, value: Any, dtype: Any) -> Any:
        made: Any = super().__new__(cls, value)      # type: ignore[call-arg]
        made.dtype = dtype
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({super().__repr__()}, dtype={self.dtype})"


class TypedInt(_Typed, int):
    """An integer with a dtype."""


class TypedFloat(_Typed, float):
    """A float with a dtype."""


class TypedComplex(_Typed, complex):
    """A complex number with a dtype."""
