"""Numbers of Python with a dtype."""

from __future__ import annotations

from maxjax._base.typed_numbers import TypedComplex as TypedComplex
from maxjax._base.typed_numbers import TypedFloat as TypedFloat
from maxjax._base.typed_numbers import TypedInt as TypedInt
