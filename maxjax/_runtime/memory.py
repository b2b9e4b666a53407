"""Memory of the host: which arrays share it, and what is said where there is none."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from maxjax._base.errors import JaxRuntimeError


def out_of_memory(error: MemoryError) -> JaxRuntimeError:
    """JAX's error for memory that the host does not have."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:      # not NumPy's own
        return JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory.")
    return JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating "
                           f"{math.prod(shape) * dtype.itemsize} bytes.")


# Up to so many arrays are compared with a result one by one: whether they share memory.
_FEW = 8


def sharing(arrays: Sequence[np.ndarray]) -> Callable[[Any], bool]:
    """Tells whether a value, which a program has given, may share memory with one of many arrays.

    A value that is no view is memory of its own, or one of them.
    """
    own = {*map(id, arrays)}
    if len(arrays) <= _FEW:
        return lambda value: (value.base is not None or id(value) in own) and any(
            np.may_share_memory(value, array) for array in arrays)
    views: list[Callable[[Any], bool]] = []

    def shares(value: Any) -> bool:
        if value.base is None and id(value) not in own:
            return False
        if not views:
            views.append(_overlapping(arrays))
        return views[0](value)

    return shares


def _overlapping(arrays: Sequence[np.ndarray]) -> Callable[[Any], bool]:
    """Tells whether a value's memory may overlap with an array's, by a search in their bounds."""
    bounds = sorted(byte_bounds(array) for array in arrays if array.size)
    begins = [begin for begin, _ in bounds]
    ends = list(itertools.accumulate((end for _, end in bounds), max))

    def shares(value: Any) -> bool:
        if value.__class__ is not np.ndarray or not value.size:     # NumPy's scalars are copies
            return False
        begin, end = byte_bounds(value)
        earlier = bisect.bisect_left(begins, end)
        return earlier > 0 and ends[earlier - 1] > begin

    return shares
