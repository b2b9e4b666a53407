"""The graph of which unit of a program reads which, in an order maintained while units merge.

Each unit has a rank, higher than those of the units that it reads. So whether one needs another is
mostly decided by their ranks, and otherwise by a search among the ranks between.
Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs" (2006): an edge
against the ranks moves only the units between its ends.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable
from typing import Any

# The most units searched to decide whether one needs another. If that is not enough the answer is
# yes, which only loses some fusion: planning stays linear.
_EFFORT = 256


class UnitGraph:
    """Units (groups and nodes), what each reads, and their ranks."""

    def __init__(self) -> None:
        self.reads: dict[Any, dict[Any, None]] = {}
        self._readers: dict[Any, dict[Any, None]] = {}
        self._rank: dict[Any, int] = {}
        self._lowest = 0

    def add(self, unit: Any) -> None:
        """A unit that reads nothing so far is ranked below all others."""
        self._lowest -= 1
        self._rank[unit] = self._lowest
        self.reads.setdefault(unit, {})
        self._readers.setdefault(unit, {})

    def connect(self, readers: Iterable[Any], unit: Any) -> None:
        """Records that units of higher ranks read one."""
        for reader in readers:
            self.reads[reader][unit] = None
            self._readers[unit][reader] = None

    def joins(self, unit: Any, readers: Collection[Any]) -> bool:
        """Makes units read another, unless it needs one of them."""
        rank = self._rank
        against = {reader for reader in readers if rank[reader] < rank[unit]}
        if against:
            below = self._below(unit, min(map(rank.__getitem__, against)), against)
            above = None if below is None else self._above(against, rank[unit])
            if below is None or above is None:
                return False
            self._rerank([*self._sorted(below), *self._sorted(above)])
        self.connect(readers, unit)
        return True

    def merge(self, first: Any, second: Any) -> bool:
        """Merges two units into ``first``, unless one of them needs the other."""
        rank = self._rank
        low, high = sorted((first, second), key=rank.__getitem__)
        below = self._below(high, rank[low], {low})
        above = None if below is None else self._above({low}, rank[high])
        if below is None or above is None:
            return False
        self._rerank([*self._sorted(below - {high}), low, high, *self._sorted(above - {low})])
        for edges, back in ((self.reads, self._readers), (self._readers, self.reads)):
            for unit in edges.pop(second):
                del back[unit][second]
                edges[first][unit] = None
                back[unit][first] = None
        return True

    def needs(self, unit: Any) -> Needs:
        """The units that a unit needs; valid until the graph changes."""
        return Needs(self.reads, self._rank, unit)

    def _sorted(self, units: Iterable[Any]) -> list[Any]:
        return sorted(units, key=self._rank.__getitem__)

    def _rerank(self, units: list[Any]) -> None:
        """Reassigns the ranks of units, in this order."""
        ranks = sorted(map(self._rank.__getitem__, units))
        self._rank.update(zip(units, ranks, strict=True))

    def _below(self, unit: Any, lowest: int, forbidden: set[Any]) -> set[Any] | None:
        """A unit and those that it needs, down to a rank; None if one of them is forbidden.

        The lowest come first: a value saved far back leads there in few steps.
        """
        rank, found, heap = self._rank, {unit}, [(self._rank[unit], unit)]
        while heap:
            for other in self.reads[heapq.heappop(heap)[1]]:
                if other not in found and rank[other] >= lowest:
                    if other in forbidden or len(found) > _EFFORT:
                        return None
                    found.add(other)
                    heapq.heappush(heap, (rank[other], other))
        return found

    def _above(self, units: set[Any], highest: int) -> set[Any] | None:
        """Units and those that need them, up to a rank."""
        rank, found, stack = self._rank, set(units), list(units)
        while stack:
            for other in self._readers[stack.pop()]:
                if other not in found and rank[other] <= highest:
                    if len(found) > _EFFORT:
                        return None
                    found.add(other)
                    stack.append(other)
        return found


class Needs:
    """The units that one needs, found only as far down as requested."""

    def __init__(self, reads: dict[Any, dict[Any, None]], rank: dict[Any, int], unit: Any):
        self._reads = reads
        self._rank = rank
        self._found = {unit}
        self._heap = [(-rank[unit], unit)]

    def __contains__(self, unit: Any) -> bool:
        rank, found, heap = self._rank, self._found, self._heap
        while heap and -heap[0][0] > rank[unit]:
            if len(found) > _EFFORT:
                return True
            for other in self._reads[heapq.heappop(heap)[1]]:
                if other not in found:
                    found.add(other)
                    heapq.heappush(heap, (-rank[other], other))
        return unit in found
