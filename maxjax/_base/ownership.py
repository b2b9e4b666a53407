"""Whether an array's memory is referred to from elsewhere: if not, it may be written to.

Whatever holds an array or a view of it holds a reference: another array of maxjax's, NumPy's views,
buffers and DLPack capsules that were handed out, constants of programs, operations that still wait
for their operands. So counts of references tell, of the array and of the one that owns its memory.
"""

from __future__ import annotations

import sys

import numpy as np

# Blocks that a pool refers to as well, by their ids. An id is here only while the pool holds the
# block; a block that has been dropped is not kept again.
kept_blocks: set[int] = set()


def is_alone(array: np.ndarray) -> bool:
    """Whether nothing but one variable of the caller's refers to an array, and nothing but that
    array to its memory, which may be written to."""
    if sys.getrefcount(array) != _OWN or array.__class__ is not np.ndarray:
        return False
    flags = array.flags
    if not flags.carray:        # row-major, aligned, and it may be written to
        return False
    base = array.base
    if base is None:
        return flags.owndata
    if base.__class__ is not np.ndarray or not base.flags.owndata or base.base is not None:
        return False
    # The count comes first: a block that is kept after it was kept before.
    count = sys.getrefcount(base)
    return count == _OF_BASE or count == _OF_BASE + 1 and id(base) in kept_blocks


def _counts() -> tuple[int, int]:
    """The counts that `is_alone` finds where nothing else refers to an array, or to its memory:
    what the interpreter itself adds differs between Python's versions."""
    def count(array: np.ndarray) -> tuple[int, int]:
        own = sys.getrefcount(array)
        base = array.base
        return own, sys.getrefcount(base)

    array = np.empty(2, np.uint8)[:1]
    return count(array)


_OWN, _OF_BASE = _counts()


def locked(array: np.ndarray) -> np.ndarray:
    """A view that says that nothing may be written to the memory."""
    view = array.view()
    view.flags.writeable = False
    return view
