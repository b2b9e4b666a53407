"""What operands, parameters and axes are, for annotations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import numpy as np

from maxjax._ir.trace import Array


class SupportsDType(Protocol):
    """Has a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


# A value that no function is traced over.
StaticScalar = np.bool_ | np.number | bool | int | float | complex
# What functions of maxjax.numpy take as an array, and as a dtype.
ArrayLike = Array | np.ndarray | StaticScalar
DTypeLike = str | type[Any] | np.dtype | SupportsDType

# What a transformation gives back as it was typed: the function, its results, a pytree.
Function = TypeVar("Function", bound=Callable[..., Any])
Result = TypeVar("Result")
Aux = TypeVar("Aux")
Tree = TypeVar("Tree")
Class = TypeVar("Class", bound=type)
