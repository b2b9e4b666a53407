"""How tests are distributed over worker processes: in groups, and neighbours together.

pytest-xdist hands out each test that is of no group by itself. Of tens of thousands, most of which
take milliseconds, that has its own costs. Neighbours, which use the same small programs of JAX's
and the same fixtures, run in different workers, each of which makes these anew. And with each test
xdist counts what is left of all that it has handed out, and searches the next in a list of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xdist.scheduler import LoadGroupScheduling

# Of tests of no group, so many of one file are handed out at once. Workers end as far apart as the
# last ones take: few enough for that, enough for what neighbours share.
TOGETHER = 16


class Chunks(LoadGroupScheduling):
    """Groups of many tests, greatest first; chunks of the others, in their order; small groups."""

    def add_node_collection(self, node: Any, collection: Sequence[str]) -> None:
        super().add_node_collection(node, collection)
        if node in self.registered_collections:
            self.registered_collections[node] = Places(collection)

    def schedule(self) -> None:
        first = self.collection is None
        if first:
            self._chunks = chunks(next(iter(self.registered_collections.values())))
        super().schedule()
        if first:
            for unit in sorted(self.workqueue, key=self._rank):
                self.workqueue.move_to_end(unit)

    def _rank(self, unit: str) -> int:
        """Chunks of few tests are files of long ones: small groups fill the workers' last time."""
        tests = self.workqueue[unit]
        if next(iter(tests)) in self._chunks:
            return 1
        return 0 if len(tests) > TOGETHER else 2

    def _split_scope(self, nodeid: str) -> str:
        return self._chunks.get(nodeid) or super()._split_scope(nodeid)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        super().mark_test_complete(node, item_index, duration)
        unit = self._split_scope(self.registered_collections[node][item_index])
        assigned = self.assigned_work[node]
        if all(assigned[unit].values()):
            del assigned[unit]


class Places(list[str]):
    """A list of unequal texts that knows where each is."""

    def __init__(self, texts: Iterable[str]) -> None:
        super().__init__(texts)
        self._places = {text: place for place, text in enumerate(self)}

    def index(self, text: str, *bounds: Any) -> int:
        return self._places[text]


def chunks(nodeids: Iterable[str]) -> dict[str, str]:
    """For each test of no group the name of its chunk: its file's, and a number."""
    met: dict[str, int] = {}
    found = {}
    for nodeid in nodeids:
        if nodeid.rfind("@") > nodeid.rfind("]"):       # a group's name, as xdist appends it
            continue
        file = nodeid.partition("::")[0]
        met[file] = met.get(file, 0) + 1
        found[nodeid] = f"{file} {(met[file] - 1) // TOGETHER}"
    return found
