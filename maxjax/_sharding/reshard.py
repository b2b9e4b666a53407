"""From one layout of a value to another, by the cheapest sequence of collectives.

A layout is the axes of each dimension and the axes along which shards hold partial results. Steps
are the edges of a graph of layouts, with costs from the model; Dijkstra's algorithm finds the
cheapest path. A step never adds an axis where the target does not have it, so the graph is small.
"""

from __future__ import annotations

import functools
import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from maxjax._base.errors import InternalError
from maxjax._sharding.cost_model import CostModel, link_bytes
from maxjax._sharding.projection import COMBINES
from maxjax._sharding.specs import Axes, Dims, show

Unreduced = tuple[tuple[str, str], ...]      # (axis, how the parts combine), sorted by axis


@dataclass(frozen=True)
class Layout:
    dims: Dims
    unreduced: Unreduced = ()

    def __str__(self) -> str:
        text = show(self.dims)
        if self.unreduced:
            text += " unreduced={" + ", ".join(f"{a}:{kind}" for a, kind in self.unreduced) + "}"
        return text


@dataclass(frozen=True)
class Step:
    """One collective (or local slice) of a path.

    Attributes:
      kind: of ``cost_model.KINDS``.
      axes: the mesh axes it runs over.
      source, target: the dimension that loses the axes, the one that gains them.
      nbytes: of the operand's shard.
      links: the bytes that each link carries.
      layout: what it leads to.
    """

    kind: str
    axes: Axes
    source: int | None
    target: int | None
    nbytes: int
    links: float
    layout: Layout


MeshItems = tuple[tuple[str, int], ...]


@functools.lru_cache(maxsize=100_000)
def cheapest_path(start: Layout, end: Layout, nbytes: int, mesh: MeshItems,
                  model: CostModel) -> tuple[float, tuple[Step, ...]]:
    """The cheapest steps between two layouts and their seconds.

    Args:
      nbytes: of the global value.
      mesh: the items of the mesh.
    """
    if start == end:
        return 0.0, ()
    sizes = dict(mesh)
    counter = itertools.count()
    queue: list[tuple[float, int, Layout, tuple[Step, ...]]] = [(0.0, next(counter), start, ())]
    done: set[Layout] = set()
    while queue:
        cost, _, layout, steps = heapq.heappop(queue)
        if layout == end:
            return cost, steps
        if layout in done:
            continue
        done.add(layout)
        shard = nbytes
        for axes in layout.dims:
            for axis in axes:
                shard //= sizes[axis]
        for kind, axes, source, target, following in _moves(layout, end):
            if following in done:
                continue
            seconds, links, part = 0.0, 0.0, shard
            groups = [axes] if kind in ("psum", "pmax", "pmin", "all_to_all", "slice") else [
                (axis,) for axis in (reversed(axes) if kind == "all_gather" else axes)]
            for group in groups:       # the others go axis by axis
                count = 1
                for axis in group:
                    count *= sizes[axis]
                seconds += model.collective(kind, part, count)
                links += link_bytes(kind, part, count)
                if kind == "all_gather":
                    part *= count
                elif kind == "reduce_scatter":
                    part //= count
            heapq.heappush(queue, (cost + seconds, next(counter), following, (
                *steps, Step(kind, axes, source, target, shard, links, following))))
    raise InternalError(f"no way from {start} to {end}")


def _replace(dims: Dims, number: int, axes: Axes) -> Dims:
    return (*dims[:number], axes, *dims[number + 1:])


Move = tuple[str, Axes, int | None, int | None, Layout]


def _moves(layout: Layout, end: Layout) -> Iterator[Move]:
    dims, unreduced = layout.dims, dict(layout.unreduced)
    wanted = dict(end.unreduced)
    used = {axis for axes in dims for axis in axes}
    # The dimensions whose axes the target extends -> the axes to add.
    coming = {number: there[len(here):]
              for number, (here, there) in enumerate(zip(dims, end.dims, strict=True))
              if len(there) > len(here) and there[:len(here)] == here}
    leaving = {axis: kind for axis, kind in unreduced.items() if axis not in wanted}
    for kind in sorted(set(leaving.values())):
        axes = tuple(axis for axis, k in leaving.items() if k == kind)
        for count in range(1, len(axes) + 1):
            for group in itertools.combinations(axes, count):
                rest = tuple((a, k) for a, k in layout.unreduced if a not in group)
                yield COMBINES[kind], group, None, None, Layout(dims, rest)
    for number, axes in coming.items():
        for count in range(1, len(axes) + 1):
            group = axes[:count]
            if all(leaving.get(axis) == "add" for axis in group):
                rest = tuple((a, k) for a, k in layout.unreduced if a not in group)
                yield "reduce_scatter", group, None, number, Layout(
                    _replace(dims, number, (*dims[number], *group)), rest)
            elif all(axis not in used and axis not in unreduced for axis in group):
                yield "slice", group, None, number, Layout(
                    _replace(dims, number, (*dims[number], *group)), layout.unreduced)
            for source, here in enumerate(dims):
                if source != number and here[-count:] == group:
                    moved = _replace(dims, source, here[:-count])
                    yield "all_to_all", group, source, number, Layout(
                        _replace(moved, number, (*dims[number], *group)), layout.unreduced)
    for number, here in enumerate(dims):
        for count in range(1, len(here) + 1):
            yield "all_gather", here[-count:], number, None, Layout(
                _replace(dims, number, here[:-count]), layout.unreduced)
