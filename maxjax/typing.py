"""jax.typing: annotations."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from maxjax._ir.trace import Array


class SupportsDType(Protocol):
    """Has a dtype."""

    @property
    def dtype(self) -> np.dtype: ...


# What functions of maxjax.numpy accept as an array, and as a dtype.
ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike = str | type[Any] | np.dtype | SupportsDType
