"""Memory that begins where vectors and pages do.

NumPy aligns its memory to 16 bytes. A vector of 64 bytes then lies on two cache lines, and half of
a result of 4 MB on pages of 4 KB, whose addresses cost more to look up than their contents: the
system provides large pages for whole ones alone.
"""

from __future__ import annotations

import numpy as np

LINE = 64
# Copies of so many bytes are worth the microsecond that alignment takes.
LARGE_BYTES = 1 << 16
# What takes up so many bytes begins with a large page. NumPy asks the system for these.
PAGED_BYTES = 1 << 22
PAGE = 1 << 21


def block(size: int) -> tuple[np.ndarray, int]:
    """Uninitialised bytes, and from which of them on ``size`` are aligned."""
    alignment = LINE if size < PAGED_BYTES else PAGE
    try:
        memory = np.empty(size + alignment, np.uint8)
    except MemoryError:
        return np.empty(size, np.uint8), 0      # the error tells the bytes that are needed
    return memory, -memory.__array_interface__["data"][0] % alignment


def empty(size: int) -> np.ndarray:
    """Uninitialised bytes, aligned."""
    memory, start = block(size)
    return memory[start:start + size]


def copied(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A copy as `np.array` makes it, aligned if it is large."""
    if array.nbytes < LARGE_BYTES or not array.flags.c_contiguous:
        return np.array(array, dtype=dtype)
    memory, start = block(array.size * dtype.itemsize)
    copy = np.ndarray(array.shape, dtype, memory, start)
    copy[...] = array
    return copy
