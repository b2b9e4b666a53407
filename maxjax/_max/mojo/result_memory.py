"""Memory of large results, taken again when nobody refers to the result any more.

Fresh pages cost more than many a kernel that fills them: 8 MB take the kernel 0.5 ms to provide
and clear, 32 MB take 8 ms. The C library keeps freed blocks up to some size, but gives the end of
its heap back as soon as a loop holds one result while it computes the next.
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque

import numpy as np

from maxjax._base import threads

# From how many bytes it is worth the 1 us.
LEAST_BYTES = 1 << 20
# How much is kept at most, in use or not.
KEPT_BYTES = 1 << 27
# A block that only the variable of `empty` refers to, as `sys.getrefcount` counts.
_UNUSED = 2
_NONE: deque[np.ndarray] = deque()


class ResultMemory:
    """Blocks of memory by their sizes.

    A block is an array, of which every result, and every view of one, is a view: its count of
    references tells whether it is in use. Threads that look for one need no lock: who looks at a
    block has taken it out of its queue.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES):
        self._kept_bytes = kept_bytes
        self._changing = threads.lock()
        self._blocks: dict[int, deque[np.ndarray]] = {}     # the size used last comes last

    def empty(self, shape: tuple[int, ...], dtype: np.dtype, size: int) -> np.ndarray:
        """An uninitialised array of ``size`` bytes, more than 0."""
        blocks = self._blocks.get(size, _NONE)
        for _ in range(len(blocks)):
            try:
                block = blocks.popleft()
            except IndexError:      # another thread looks at it
                break
            if sys.getrefcount(block) == _UNUSED:
                result = np.ndarray(shape, dtype, block)
                blocks.append(block)
                return result
            blocks.append(block)
        block = np.empty(size, np.uint8)
        result = np.ndarray(shape, dtype, block)
        # Where another thread does the same, this block is not kept.
        if size <= self._kept_bytes and self._changing.acquire(blocking=False):
            try:
                self._keep(size, block)
            finally:
                self._changing.release()
        return result

    def _keep(self, size: int, block: np.ndarray) -> None:
        blocks = self._blocks.pop(size, None) or deque()
        blocks.append(block)
        self._blocks[size] = blocks
        # Forgotten blocks are freed with the last array that needs them.
        while self.bytes > self._kept_bytes:
            oldest = next(iter(self._blocks))
            with contextlib.suppress(IndexError):
                self._blocks[oldest].popleft()
            if not self._blocks[oldest]:
                del self._blocks[oldest]

    @property
    def bytes(self) -> int:
        """How much is kept, in use or not."""
        return sum(size * len(blocks) for size, blocks in list(self._blocks.items()))


memory = ResultMemory()
