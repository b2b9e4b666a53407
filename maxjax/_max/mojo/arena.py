"""Offsets of temporaries, each live from the step that writes it to the last that reads it.

In the order of the steps, each at the first offset that is free, is soon decided, and leaves gaps
below values that live long. The largest first, each at the lowest offset that is free for as long
as it lives, leaves few.
"""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Sequence

import numpy as np

ALIGNMENT = 64
# From so many bytes on gaps are worth looking for the order with fewer, which takes time by the
# square of the number of values.
_LARGE_BYTES = 1 << 24
_MOST_VALUES = 8192
_ENDLESS = 1 << 62
# Gaps are searched in chunks: a chunk with none large enough is skipped.
_CHUNK = 64


class Arena:
    """First-fit memory for values that live for some of the steps.

    Steps only increase, so that each block is freed once; ``restart`` goes through them again, with
    all earlier allocations in place.

    Attributes:
      size: the total bytes.
      blocks: what has been allocated: begin, end, first step, last step.
    """

    def __init__(self) -> None:
        self.size = 0
        self.blocks: list[list[int]] = []
        self.restart()

    def restart(self) -> None:
        """Goes back to the first step."""
        self._free = FreeSpace()
        self._alive: dict[int, list[int]] = {}          # by their begins
        self._ends: list[tuple[int, int]] = []          # a heap of last steps and begins
        self.blocks.sort(key=lambda block: block[2])
        self._known = len(self.blocks)                 # those of earlier sweeps
        self._entered = 0

    def allocate(self, size: int, first: int, last: int) -> int:
        """The first offset that is free in steps ``first`` to ``last``.

        In one sweep ``first`` does not decrease, and no block of an earlier sweep begins in the
        steps after ``first`` to ``last``.
        """
        size = _aligned(size)
        self._advance(first)
        begin = self._free.take(size)
        block = [begin, begin + size, first, last]
        self.blocks.append(block)
        self._enter(block)
        self.size = max(self.size, begin + size)
        return begin

    def allocate_all(self, lives: Sequence[tuple[int, int, int]]) -> list[int]:
        """Offsets of values, given by their sizes, first and last steps, in the order of the first
        ones. They are the arena's first."""
        begins = [self.allocate(*life) for life in lives]
        if self.size < _LARGE_BYTES or len(lives) > _MOST_VALUES:
            return begins
        blocks = _largest_first(lives)
        size = max((end for _, end, _, _ in blocks), default=0)
        if size >= self.size:
            return begins
        self.size, self.blocks = size, sorted(blocks, key=lambda block: block[2])
        return [begin for begin, _, _, _ in blocks]

    def _enter(self, block: list[int]) -> None:
        self._alive[block[0]] = block
        heapq.heappush(self._ends, (block[3], block[0]))

    def _advance(self, step: int) -> None:
        while self._ends and self._ends[0][0] < step:
            _, begin = heapq.heappop(self._ends)
            block = self._alive.pop(begin)
            self._free.release(block[0], block[1])
        while self._entered < self._known and self.blocks[self._entered][2] <= step:
            block = self.blocks[self._entered]
            self._entered += 1
            if block[3] >= step:
                self._free.occupy(block[0], block[1])
                self._enter(block)


def _largest_first(lives: Sequence[tuple[int, int, int]]) -> list[list[int]]:
    """A block for each of some values, in their order."""
    count = len(lives)
    blocks: list[list[int]] = [[]] * count
    placed = np.zeros((4, count), np.int64)     # as blocks are
    order = sorted(range(count), key=lambda number: (-lives[number][0], number))
    for position, number in enumerate(order):
        size, first, last = lives[number]
        size = _aligned(size)
        begins, ends, firsts, lasts = placed[:, :position]
        others = np.flatnonzero((firsts <= last) & (lasts >= first))
        others = others[np.argsort(begins[others])]
        # Where the gap before each of them begins.
        offsets = np.maximum.accumulate(np.concatenate([[0], ends[others]]))
        fits = begins[others] - offsets[:-1] >= size
        offset = int(offsets[np.argmax(fits) if fits.any() else -1])
        blocks[number] = [offset, offset + size, first, last]
        placed[:, position] = blocks[number]
    return blocks


def _aligned(size: int) -> int:
    return -(-max(size, 1) // ALIGNMENT) * ALIGNMENT


class FreeSpace:
    """The free gaps of an unbounded memory, in the order of their offsets, in chunks.

    Finding one takes about the square root of the number of gaps.
    """

    def __init__(self) -> None:
        self._chunks: list[list[tuple[int, int]]] = [[(0, _ENDLESS)]]
        self._begins = [0]              # of each chunk's first gap
        self._largest = [_ENDLESS]      # of each chunk's gaps

    def take(self, size: int) -> int:
        """Allocates this many bytes at the first offset where they fit, and returns it."""
        number = next(number for number, largest in enumerate(self._largest) if largest >= size)
        place, (begin, end) = next(
            (place, gap) for place, gap in enumerate(self._chunks[number])
            if gap[1] - gap[0] >= size)
        self._replace(number, place, [(begin + size, end)] if begin + size < end else [])
        return begin

    def occupy(self, begin: int, end: int) -> None:
        """Marks free bytes as used."""
        number, place = self._at(begin)
        gap = self._chunks[number][place]
        self._replace(number, place, [
            part for part in ((gap[0], begin), (end, gap[1])) if part[0] < part[1]])

    def release(self, begin: int, end: int) -> None:
        """Frees used bytes."""
        number, place = self._at(end)
        if place >= 0 and self._chunks[number][place][0] == end:
            end = self._chunks[number][place][1]
            self._replace(number, place, [])
        number, place = self._at(begin)
        if place < 0:
            self._replace(number, place, [(begin, end)])
            return
        gap = self._chunks[number][place]
        self._replace(number, place, [(gap[0], end)] if gap[1] == begin else [gap, (begin, end)])

    def _at(self, offset: int) -> tuple[int, int]:
        """The chunk, and the index in it, of the last gap that begins at an offset or before.

        Index -1 of the first chunk if there is none.
        """
        number = max(bisect.bisect_right(self._begins, offset) - 1, 0)
        return number, bisect.bisect_right(self._chunks[number], (offset, _ENDLESS)) - 1

    def _replace(self, number: int, place: int, gaps: list[tuple[int, int]]) -> None:
        """Replaces one gap by others; inserts them before all where the index is -1."""
        chunk = self._chunks[number]
        chunk[max(place, 0):place + 1] = gaps
        if not chunk and len(self._chunks) > 1:
            parts = []
        elif len(chunk) > _CHUNK:
            parts = [chunk[:_CHUNK // 2], chunk[_CHUNK // 2:]]
        else:
            parts = [chunk]
        self._chunks[number:number + 1] = parts
        self._begins[number:number + 1] = [part[0][0] if part else 0 for part in parts]
        self._largest[number:number + 1] = [
            max([end - begin for begin, end in part]) if part else 0 for part in parts]
