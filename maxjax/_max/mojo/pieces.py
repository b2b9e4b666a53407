"""Computes piece by piece what reads assembled arrays elementwise, so that none is written.

Simulations read their neighbours: ``jnp.roll(x, 1)`` is a concatenation of two slices, a boundary
is a padding. A kernel's loop cannot test for each element in which piece it is. But the shape of
what is computed can be cut where pieces meet: within each of these boxes every operand is a
slice, and what is read is the memory that the pieces come from. The stencil of the game of life,
eight rolls, has nine boxes: nearly all is in the middle one, which reads nine slices of one array.

A *region* is what is computed elementwise in one shape. It is cut as a whole, if the arrays that
are then not written are worth the calls for more boxes.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from maxjax._max.mojo.context import MojoContext
from maxjax._max.mojo.fusion import last_wide, ordered, users_of
from maxjax._max.mojo.nodes import Apply, Assemble, Node, Piece, Reduce, View
from maxjax._max.mojo.rebuild import rebuilt

# Smaller arrays are not worth another plan.
_LEAST_BYTES = 1 << 15
# The most boxes of a region, and the most nodes of all regions: nodes are made once for each box.
_MOST_BOXES = 32
_MOST_NODES = 4096
# Nanoseconds: for a byte that is copied to an assembled array and read there, for a call, each of
# its operations (which are planned as well) and each line of its operands.
_BYTE = 0.1
_CALL = 500.0
_OPERATION = 50.0
_LINE = 4.0


class Box(NamedTuple):
    """A part of a region's shape."""

    starts: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def limits(self) -> tuple[int, ...]:
        return tuple([start + size for start, size in zip(self.starts, self.shape, strict=True)])

    @property
    def lines(self) -> int:
        """Those that memory holds in one: of single elements, if it is not as long as a row."""
        return math.prod(self.shape) // (self.shape[-1] if last_wide(self.shape) >= 0 else 1)


class Region(NamedTuple):
    """Elementwise operations of one shape that are computed box by box."""

    members: list[Apply]
    boxes: list[Box]


def compute_by_pieces(context: MojoContext, results: Sequence[Node]) -> list[Node]:
    """Equal results, of which what reads assembled arrays elementwise is assembled itself."""
    if not any(isinstance(node, Assemble) and node.nbytes >= _LEAST_BYTES
               for node in context.nodes):
        return list(results)
    nodes = ordered(results)
    regions = _Regions(nodes, results).worth_it()
    if not regions:
        return list(results)
    cut = _Cut(context, regions, Counter([*results, *(x for node in nodes for x in node.inputs)]))
    for node in nodes:
        cut.visit(node)
    return [cut.whole(node) for node in results]


# --- what is cut ----------------------------------------------------------------------------------
class _Regions:
    """The regions of a program, and the assembled arrays that only one of them reads."""

    def __init__(self, nodes: Sequence[Node], results: Sequence[Node]):
        self.wanted = set(results)
        self.users = users_of(nodes)
        self.members: dict[int, list[Apply]] = {}
        self.number: dict[Node, int] = {}
        self._join(nodes, self._shapes(nodes))
        # The region that alone reads an assembled array, or a view.
        self.reader: dict[Node, int] = {}
        self.assembled: defaultdict[int, list[Assemble]] = defaultdict(list)
        for node in reversed(nodes) if self.number else ():
            if isinstance(node, View) or isinstance(node, Assemble) and all(
                    step == 1 for piece in node.pieces for step in piece.steps):
                readers = {self.number.get(user, self.reader.get(user))
                           for user in self.users[node]}
                only = readers.pop() if len(readers) == 1 and node not in self.wanted else None
                if only is not None:
                    self.reader[node] = only
                    if isinstance(node, Assemble):
                        self.assembled[only].append(node)
        self.edges: dict[Node, Sequence[Collection[int]]] = {}
        for node in nodes if self.assembled else ():
            if node in self.reader:
                self.edges[node] = self._edges(node)

    def _shapes(self, nodes: Iterable[Node]) -> set[tuple[int, ...]]:
        """Those of what reads assembled arrays elementwise: regions have no others."""
        shapes: set[tuple[int, ...]] = set()
        found: set[Node] = set()
        for node in nodes:
            if isinstance(node, Assemble) or node in found:
                for user in self.users[node]:
                    if isinstance(user, View):
                        found.add(user)
                    elif isinstance(user, Apply):
                        shapes.add(user.shape)
        return shapes

    def _join(self, nodes: Sequence[Node], shapes: Collection[tuple[int, ...]]) -> None:
        """Numbers regions. What an assembled array is made of is not in the region that reads it.
        """
        level: dict[Node, int] = {}
        for node in nodes if shapes else ():
            level[node] = isinstance(node, Assemble) + max(
                [level[operand] for operand in node.inputs], default=0)
        members = [node for node in nodes if isinstance(node, Apply) and node.shape in shapes]
        for node in reversed(members):
            if node not in self.wanted and all(
                    isinstance(user, Apply) and user.shape == node.shape
                    for user in self.users[node]):
                level[node] = min(level[user] for user in self.users[node])
        for node in members:
            own = self.number[node] = len(self.number)
            self.members[own] = [node]
            for operand in node.inputs:
                other = self.number.get(operand, own)
                if other != own and operand.shape == node.shape and level[operand] == level[node]:
                    # The longer list takes the other's nodes.
                    if len(self.members[other]) > len(self.members[own]):
                        own, other = other, own
                    for moved in self.members[other]:
                        self.number[moved] = own
                    self.members[own] += self.members.pop(other)

    def worth_it(self) -> list[Region]:
        regions: list[Region] = []
        count = 0
        for number, arrays in self.assembled.items():
            if sum(node.nbytes for node in arrays) < _LEAST_BYTES:
                continue
            members = self.members[number]
            boxes = self._boxes(number)
            count += len(boxes) * len(members)
            if 1 < len(boxes) <= _MOST_BOXES and count <= _MOST_NODES and self._gain(
                    number, arrays, boxes) > 0:
                regions.append(Region(members, boxes))
        return regions

    def _boxes(self, number: int) -> list[Box]:
        members = self.members[number]
        edges: list[set[int]] = [{0, size} for size in members[0].shape]
        for operand in dict.fromkeys(x for node in members for x in node.inputs):
            if self.reader.get(operand) == number:
                for known, more in zip(edges, self.edges[operand], strict=True):
                    known.update(more)
        if math.prod(len(known) - 1 for known in edges) > _MOST_BOXES:
            return []
        intervals = [list(itertools.pairwise(sorted(known))) for known in edges]
        return [Box(tuple([begin for begin, _ in ranges]),
                    tuple([end - begin for begin, end in ranges]))
                for ranges in itertools.product(*intervals)]

    def _edges(self, node: Node) -> Sequence[Collection[int]]:
        """Where, along each dimension, a value's elements begin to come from another piece."""
        edges: list[set[int]] = [set() for _ in node.shape]
        if isinstance(node, Assemble):
            for source, piece in zip(node.sources, node.pieces, strict=True):
                inner = self._edges_for(source, node)
                for dim, start in enumerate(piece.starts):
                    edges[dim] |= {start, start + source.shape[dim]}
                    edges[dim].update([start + place for place in inner[dim]])
        elif isinstance(node, View):
            for (start, step, dim), places in zip(
                    node.index_map, self._edges_for(node.inputs[0], node), strict=True):
                if dim >= 0:
                    # The first index at or beyond the place.
                    edges[dim].update([-((start - place) // step) if step > 0
                                       else (start - place) // -step + 1 for place in places])
        # More than there may be boxes are too many anyway.
        return [list(itertools.islice((place for place in places if 0 < place < size), _MOST_BOXES))
                for places, size in zip(edges, node.shape, strict=True)]

    def _edges_for(self, node: Node, user: Node) -> Sequence[Collection[int]]:
        """The edges of an operand, if the region that reads its user reads nothing else of it; none
        otherwise."""
        if node in self.reader and self.reader[node] == self.reader[user]:
            return self.edges[node]
        return [()] * len(node.shape)

    def _gain(self, number: int, arrays: Iterable[Assemble], boxes: Sequence[Box]) -> float:
        """Nanoseconds that are saved by cutting a region, roughly."""
        members = self.members[number]
        gain = sum(node.nbytes for node in arrays)
        for node in members:
            users = self.users[node]
            if users and node not in self.wanted and all(
                    isinstance(user, Reduce) or self.number.get(user) == number
                    for user in users) and any(isinstance(user, Reduce) for user in users):
                gain -= node.nbytes         # it would not be written
        inside = set(members)
        reads = len({x for node in members for x in node.inputs} - inside)
        return _BYTE * gain - sum(
            _CALL + _OPERATION * len(members) + _LINE * box.lines * reads for box in boxes)


# --- cutting --------------------------------------------------------------------------------------
class _Cut:
    """Makes nodes anew, those of regions for each box.

    Args:
      uses: how often each node is an operand or a result.
    """

    def __init__(self, context: MojoContext, regions: Sequence[Region], uses: Mapping[Node, int]):
        self.context = context
        self.uses = uses
        self.region: Mapping[Node, Region] = {
            node: region for region in regions for node in region.members}
        self._parts: dict[Node, list[Node]] = {}
        self._whole: dict[Node, Node] = {}

    def visit(self, node: Node) -> None:
        """Makes one node anew; its operands were visited before."""
        region = self.region.get(node)
        if region is not None:
            assert isinstance(node, Apply)
            self._parts[node] = [self.context.shared(Apply(
                box.shape, node.dtype,
                tuple([self._part(x, region, number) for x in node.inputs]),
                node.name, node.source)) for number, box in enumerate(region.boxes)]
        elif isinstance(node, Assemble) and any(self._is_only_within(x) for x in node.sources):
            self._whole[node] = self._flat(node)
        elif any(x in self._parts or x in self._whole for x in node.inputs):
            self._whole[node] = rebuilt(self.context, node, [self.whole(x) for x in node.inputs])

    def _part(self, node: Node, region: Region, number: int) -> Node:
        """What an operand of a region is in a box."""
        if self.region.get(node) is region:
            return self._parts[node][number]
        box = region.boxes[number]
        return self.context.slice(self.whole(node), box.starts, box.limits, None)

    def _is_only_within(self, node: Node) -> bool:
        """Whether a value is computed by pieces, and only as a part of another array."""
        return node in self._parts and self.uses[node] == 1

    def _flat(self, node: Assemble) -> Node:
        """An assembled array of the pieces that some of its pieces are computed by."""
        operands: list[Node] = []
        pieces: list[Piece] = []
        for source, piece in zip(node.sources, node.pieces, strict=True):
            if not self._is_only_within(source):
                operands.append(self.whole(source))
                pieces.append(piece)
                continue
            operands += self._parts[source]
            pieces += [piece._replace(starts=tuple([
                start + step * place for start, step, place in zip(
                    piece.starts, piece.steps, box.starts, strict=True)]))
                for box in self.region[source].boxes]
        if node.filler is not None:
            operands.append(self.whole(node.filler))
        return self.context.shared(Assemble(
            node.shape, node.dtype, tuple(operands), tuple(pieces)))

    def whole(self, node: Node) -> Node:
        """The new node for one."""
        made = self._whole.get(node)
        if made is None:
            made = node
            if node in self._parts:
                pieces = [Piece(box.starts, (1,) * len(box.starts))
                          for box in self.region[node].boxes]
                made = self._whole[node] = self.context.shared(Assemble(
                    node.shape, node.dtype, tuple(self._parts[node]), tuple(pieces)))
                self.context.opaque.add(made)
        return made
