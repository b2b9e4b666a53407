"""Which groups share a key, searched by their positions."""

from __future__ import annotations

import bisect
import heapq
from collections.abc import Iterable, Iterator
from typing import Any


class Siblings:
    """Groups by position, and which of them share a key."""

    def __init__(self, keys: Iterable[Iterable[Any]]):
        numbers: dict[Any, int] = {}
        self._keys = [[numbers.setdefault(key, len(numbers)) for key in names] for names in keys]
        self._positions: list[list[int]] = [[] for _ in numbers]
        for position, names in enumerate(self._keys):
            for name in names:
                self._positions[name].append(position)
        # For each of a key's positions, where to continue the search for one that is not taken.
        self._skips = [list(range(len(positions) + 1)) for positions in self._positions]
        self._taken: set[int] = set()

    def take(self, position: int) -> None:
        """Marks a group as taken; `after` then also follows its keys."""
        self._taken.add(position)
        for name in self._keys[position]:
            index = bisect.bisect_left(self._positions[name], position)
            self._skips[name][index] = index + 1

    def after(self, position: int) -> Iterator[int]:
        """The siblings at later positions that have not been taken, in order."""
        names: set[int] = set()
        heap: list[tuple[int, int, int]] = []

        def look(name: int, index: int) -> None:
            skips = self._skips[name]
            while skips[index] != index:
                skips[index] = index = skips[skips[index]]
            if index < len(self._positions[name]):
                heapq.heappush(heap, (self._positions[name][index], name, index))

        def enter(number: int, last: int) -> None:
            for name in self._keys[number]:
                if name not in names:
                    names.add(name)
                    look(name, bisect.bisect_right(self._positions[name], last))

        if position not in self._taken:
            enter(position, position)
        last = position
        while heap:
            other, name, index = heapq.heappop(heap)
            look(name, index + 1)
            if other > last and other not in self._taken:
                last = other
                yield other
                if other in self._taken:
                    enter(other, other)
