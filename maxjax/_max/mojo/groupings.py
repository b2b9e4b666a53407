"""Remembers how programs were cut into groups, for programs that differ in sizes only.

The cut depends on the nodes, and on sizes only as far as ``structure_of`` says: which are equal,
which are 1, and which computed values are small. Programs with equal structures are cut alike, so
that what was decided for one batch size is read off for the next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from maxjax._base import caches
from maxjax._max.mojo.nodes import Apply, IndexMap, Node, Reduce, View

# A value of so many elements is worth a kernel of its own if it is read more than once.
LARGE = 4096
_DETAILED = (Apply, Reduce, View)
# Nodes of the programs that are remembered, some 400 bytes each.
_MOST_NODES = 50_000


@dataclass(slots=True)
class GroupRecord:
    """A group, its nodes by their numbers; attributes as those of ``Group``.

    Attributes:
      space: the number of a node whose shape is the group's space.
      kernel: what `gather` remembers of its kernel, once it was made.
    """

    space: int
    axes: tuple[int, ...] | None
    maps: list[tuple[int, tuple[IndexMap, ...]]]
    homes: list[int]
    kernel: Any = None


@dataclass(slots=True)
class Grouping:
    """The groups of a program, and the order of its units: a node's number, or the complement of a
    group's."""

    groups: list[GroupRecord] = field(default_factory=list)
    units: list[int] = field(default_factory=list)


def structure_of(numbers: Mapping[Node, int], outputs: Sequence[Node],
                 overwrites: Mapping[Node, Node]) -> tuple[Any, ...]:
    """All that a program's groups depend on; nodes by their numbers, sizes by where each comes
    first.

    The number of elements of each value counts as well: arrays of equal ones may be read together.

    Args:
      numbers: of all nodes, in an order in which operands come first.
    """
    sizes, counts = {0: 0, 1: 1}, {1: 0}
    shapes: dict[tuple[int, ...], tuple[Any, ...]] = {}
    structure: list[Any] = []
    for node in numbers:
        kind = type(node)
        shape = shapes.get(node.shape)
        if shape is None:
            count = math.prod(node.shape)
            shape = shapes[node.shape] = (
                *[sizes.setdefault(size, len(sizes)) for size in node.shape],
                counts.setdefault(count, len(counts)))
        structure.append((
            kind, node.details if kind in _DETAILED else None, node.dtype, shape,
            isinstance(node, Apply) and node.size < LARGE,
            *[numbers[operand] for operand in node.inputs]))
    return (tuple(structure), tuple([numbers[node] for node in outputs]),
            tuple([(numbers.get(node), numbers.get(source))
                   for node, source in overwrites.items()]))


class Groupings:
    """Groupings by structures, the latest ones."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Grouping] = caches.cache()
        self.made = 0       # how many were not known

    def get(self, structure: tuple[Any, ...]) -> Grouping | None:
        return self._known.get(structure)

    def keep(self, structure: tuple[Any, ...], grouping: Grouping) -> None:
        self.made += 1
        known = self._known
        known[structure] = grouping
        total = sum([len(nodes) for nodes, *_ in [*known]])
        for oldest in [*known]:
            if total <= _MOST_NODES:
                break
            total -= len(oldest[0])
            known.pop(oldest, None)


groupings = Groupings()
