"""Which unit of a program reads which, in an order that is kept while units are joined.

Each unit has a rank, higher than those of the units that it reads. So most questions whether one
needs another are answered by their ranks, and the others by a search among the ranks between.
Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs" (2006): an edge
against the ranks moves only what lies between its ends.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable
from typing import Any

# Units that are looked at to answer whether one needs another. Where that is not enough the answer
# is yes, which forgoes a kernel that would do a little more: planning stays linear.
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
        """Units of higher ranks read one."""
        for reader in readers:
            self.reads[reader][unit] = None
            self._readers[unit][reader] = None

    def joins(self, unit: Any, readers: Collection[Any]) -> bool:
        """Makes units read another, unless that one needs one of them."""
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
        """Makes one unit of two, ``first``, unless one of them needs the other."""
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
        """What a unit needs, while nothing changes."""
        return Needs(self.reads, self._rank, unit)

    def _sorted(self, units: Iterable[Any]) -> list[Any]:
        return sorted(units, key=self._rank.__getitem__)

    def _rerank(self, units: list[Any]) -> None:
        """Gives units their ranks anew, in this order."""
        ranks = sorted(map(self._rank.__getitem__, units))
        self._rank.update(zip(units, ranks, strict=True))

    def _below(self, unit: Any, lowest: int, forbidden: set[Any]) -> set[Any] | None:
        """A unit and those that it needs, down to a rank; None where one of them is forbidden.

        The lowest go first: what a step far back has kept leads there in few steps.
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
    """The units that one needs, found as far down as they are asked for."""

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
