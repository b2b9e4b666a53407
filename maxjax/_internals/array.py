"""What pickles that JAX wrote call: see ``maxjax._internals``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax._runtime.array import ArrayImpl, _restore


def _reconstruct_array(fun: Callable[..., np.ndarray], args: tuple[Any, ...], arr_state: Any,
                       aval_state: dict[str, Any]) -> ArrayImpl:
    """An array that JAX pickled: as NumPy pickles one, with whether its type is weak.

    ``fun(*args)`` gives an empty array of NumPy, whose state is ``arr_state``.
    """
    value = fun(*args)
    value.__setstate__(arr_state)
    return _restore(value, bool(aval_state.get("weak_type", False)))
