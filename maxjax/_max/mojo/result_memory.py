"""Memory of large results and of large arenas, reused when nothing needs it any more.

Fresh pages cost more than many of the kernels that fill them: the operating system takes 0.5 ms to
provide and clear 8 MB, and 8 ms for 32 MB. The C library retains freed blocks up to some size, but
returns the end of its heap as soon as a loop holds one result while it computes the next.
"""

from __future__ import annotations

import contextlib
import sys
from collections import deque

import numpy as np

from maxjax._base import aligned, threads
from maxjax._base.ownership import kept_blocks

# The number of bytes from which reuse is worth the 1 us.
LEAST_BYTES = 1 << 20
# The most bytes to retain, in use or not.
KEPT_BYTES = 1 << 27
# The count by `sys.getrefcount` of a block that only its entry and a variable of `empty` refer to.
_UNUSED = 3
# A block, and from which of its bytes on it is used.
_Block = tuple[np.ndarray, int]
_NONE: deque[_Block] = deque()


class ResultMemory:
    """Blocks of memory by size.

    A block is an array, of which every result, and every view of a result, is a view: its reference
    count tells whether it is in use. Threads that search for one need no lock: a thread takes a
    block out of its queue before it examines it.
    """

    def __init__(self, kept_bytes: int = KEPT_BYTES):
        self._kept_bytes = kept_bytes
        self._kept_blocks = kept_blocks     # modules may be gone before this is
        self._ids: dict[int, set[int]] = {}     # of the blocks in the queues, by size
        self._changing = threads.lock()
        self._blocks: dict[int, deque[_Block]] = {}     # the size used last comes last

    def empty(self, shape: tuple[int, ...], dtype: np.dtype, size: int) -> np.ndarray:
        """An uninitialised array of ``size`` bytes, more than 0."""
        blocks = self._blocks.get(size, _NONE)
        for _ in range(len(blocks)):
            try:
                entry = blocks.popleft()
            except IndexError:      # another thread examines it
                break
            block, start = entry
            if sys.getrefcount(block) == _UNUSED:
                result = np.ndarray(shape, dtype, block, start)
                blocks.append(entry)
                return result
            blocks.append(entry)
        entry = aligned.block(size)
        result = np.ndarray(shape, dtype, *entry)
        # If another thread does the same, this block is not retained.
        if size <= self._kept_bytes and self._changing.acquire(blocking=False):
            try:
                self._keep(size, entry)
            finally:
                self._changing.release()
        return result

    def _keep(self, size: int, entry: _Block) -> None:
        blocks = self._blocks.pop(size, None) or deque()
        blocks.append(entry)
        self._blocks[size] = blocks
        self._ids.setdefault(size, set()).add(id(entry[0]))
        kept_blocks.add(id(entry[0]))
        # Dropped blocks are freed with the last array that needs them.
        while self.bytes > self._kept_bytes:
            oldest = next(iter(self._blocks))
            with contextlib.suppress(IndexError):
                block, _ = self._blocks[oldest].popleft()
                self._ids[oldest].discard(id(block))
                kept_blocks.discard(id(block))
            if not self._blocks[oldest]:
                del self._blocks[oldest]
                # Another thread may examine one that it puts back into this queue: it is not kept.
                kept_blocks.difference_update(self._ids.pop(oldest))

    def __del__(self) -> None:
        for ids in self._ids.values():
            self._kept_blocks.difference_update(ids)

    @property
    def bytes(self) -> int:
        """The bytes retained, in use or not."""
        return sum(size * len(blocks) for size, blocks in list(self._blocks.items()))


class ArenaMemory:
    """Blocks for the temporaries of calls, each of which has one to itself.

    A block serves programs of all sizes, so that a new batch size finds pages that are there.
    """

    KEPT_BLOCKS = 4

    def __init__(self) -> None:
        self._blocks: list[np.ndarray] = []

    def take(self, size: int) -> np.ndarray:
        """At least ``size`` bytes, uninitialised."""
        try:
            while True:
                block = self._blocks.pop()
                if block.size >= size:
                    return block
                # A larger one takes its place.
        except IndexError:
            # Room to grow: pages that nothing writes to are not provided.
            return aligned.empty(1 << (size - 1).bit_length())

    def give_back(self, block: np.ndarray) -> None:
        if len(self._blocks) < self.KEPT_BLOCKS:
            self._blocks.append(block)


memory = ResultMemory()
arenas = ArenaMemory()
