"""NumPy's floating-point errors, which computations of arrays leave unsaid.

``np.errstate`` takes as long as adding two small arrays. NumPy keeps the setting in a context
variable, which this finds, and sets to what ``np.errstate(all="ignore")`` does.
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable
from typing import Any

import numpy as np


def _found() -> tuple[contextvars.ContextVar[Any], Any] | None:
    """The variable and the value by which all errors are ignored; None if NumPy has no such."""
    context = contextvars.Context()
    context.run(np.seterr, all="ignore")
    items = list(context.items())
    if len(items) != 1:
        return None
    variable, value = items[0]
    other = contextvars.Context()
    other.run(variable.set, value)
    is_right = set(other.run(np.geterr).values()) == {"ignore"}
    return (variable, value) if is_right else None


_state = _found()

if _state is not None:
    _variable, _ignored = _state

    # From now on errors are ignored; it gives what ``restore`` takes.
    ignore: Callable[[], Any] = functools.partial(_variable.set, _ignored)
    restore: Callable[[Any], object] = _variable.reset
else:
    ignore = functools.partial(np.seterr, all="ignore")
    restore = lambda before: np.seterr(**before)
