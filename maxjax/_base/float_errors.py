"""NumPy's floating-point errors, which computations of arrays leave unsaid.

``np.errstate`` takes as long as adding two small arrays, and an interrupt in its midst leaves its
state behind. NumPy keeps the state in a context variable, which this finds, and sets to what
``np.errstate(all="ignore")`` does:

    before = float_errors.state()
    try:
        float_errors.ignore()
        ...
    finally:
        float_errors.restore(before)
"""

from __future__ import annotations

import contextvars
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax._base.interrupts import entered_at_once


def _found() -> tuple[contextvars.ContextVar[Any], Any] | None:
    """The variable and the value by which all errors are ignored; None if NumPy has no such."""
    context = contextvars.Context()
    context.run(np.seterr, all="ignore")
    items = list(context.items())
    if len(items) != 1:
        return None
    variable, value = items[0]
    other = contextvars.Context()
    try:
        before = other.run(variable.get)
    except LookupError:      # it has no default: nothing could be restored to that
        return None
    usual = contextvars.Context().run(np.geterr)
    other.run(variable.set, value)
    ignored = other.run(np.geterr)
    other.run(variable.set, before)
    is_right = set(ignored.values()) == {"ignore"} and other.run(np.geterr) == usual
    return (variable, value) if is_right else None


_known = _found()

if _known is not None:
    _variable, _ignored = _known
    state: Callable[[], Any] = _variable.get
    ignore: Callable[[], object] = functools.partial(_variable.set, _ignored)
    restore: Callable[[Any], object] = _variable.set
else:
    state = np.geterr
    ignore = functools.partial(np.seterr, all="ignore")
    restore = entered_at_once(lambda before: np.seterr(**before))
