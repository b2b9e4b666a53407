"""Puts short trailing dimensions first, where they would make the innermost loop.

Dimensions are looped over together where all operands lie in memory alike. A value of shape
(500, 500, 3) that is broadcast from (500, 1, 3), or summed along its last dimension, is looped over
by rows of 3 elements instead, which no vector fills. Stored and computed as (3, 500, 500), it is
looped over by rows of 500.

A *region* is what is computed elementwise in one such shape. It is turned as a whole, if that
avoids rows that short and few values of its size must be transposed on its border.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import NamedTuple

from maxjax._max.mojo.context import MojoContext
from maxjax._max.mojo.fusion import ordered, users_of
from maxjax._max.mojo.nodes import (
    Apply,
    Assemble,
    Constant,
    Iota,
    Node,
    Piece,
    Reduce,
    View,
    base_of,
)
from maxjax._max.mojo.rebuild import rebuilt

# A row of so many elements or fewer is short, one of so many or more is long; smaller values are
# not worth another plan.
_SHORT, _LONG, _LEAST_ELEMENTS = 8, 12, 256
# Up to so many are a fraction of a long row's pace still: worth it where nothing is transposed but
# what is broadcast, as in the distances between all pairs of points.
_SHORT_WITHOUT_BORDER = 48
# The same of what is computed once: a plan that suits few sizes better is another one for others,
# and compiles for them.
_LONG_ONCE, _LEAST_ELEMENTS_ONCE = 32, 4096


def turn_short_dimensions(context: MojoContext, results: Sequence[Node], is_repeated: bool
                          ) -> list[Node]:
    """Equal results of equal shapes, computed with long rows where rows were short.

    Args:
      is_repeated: they are a loop's.
    """
    if not any(map(trailing_count, {
            node.shape for node in context.nodes if isinstance(node, Apply)})):
        return list(results)
    nodes = ordered(results)
    users = users_of(nodes)
    wanted = set(results)
    regions = [region for region in _regions(nodes) if (
        is_repeated or _is_large(region[0].shape)) and _is_worth_it(region, users, wanted)]
    if not regions:
        return list(results)
    turn = _Turn(context, {node for region in regions for node in region})
    for node in nodes:
        turn.visit(node)
    return [turn.usual(node) for node in results]


@functools.lru_cache(maxsize=4096)
def trailing_count(shape: tuple[int, ...]) -> int:
    """How many trailing dimensions of a shape make short rows of a value that could have long ones.
    """
    return (_count_within(shape, _SHORT, _LONG)
            or _count_within(shape, _SHORT_WITHOUT_BORDER, _LONG_ONCE))


def _count_within(shape: tuple[int, ...], short: int, long: int) -> int:
    count, row = 0, 1
    for size in reversed(shape):
        if row * size > short:
            break
        row *= size
        count += 1
    else:
        return 0
    if row == 1 or shape[-1 - count] < long or math.prod(shape) < _LEAST_ELEMENTS:
        return 0
    return count


def _is_large(shape: tuple[int, ...]) -> bool:
    return (shape[-1 - trailing_count(shape)] >= _LONG_ONCE
            and math.prod(shape) >= _LEAST_ELEMENTS_ONCE)


# --- what is turned -------------------------------------------------------------------------------
def _regions(nodes: Iterable[Node]) -> list[list[Node]]:
    """The nodes of each region, in their order."""
    number: dict[Node, int] = {}
    members: dict[int, list[Node]] = {}
    for node in nodes:
        if not isinstance(node, (Apply, Assemble)) or not trailing_count(node.shape):
            continue
        own = len(number)
        number[node] = own
        members[own] = [node]
        for operand in node.inputs:
            other = number.get(operand, own)
            if other != own and operand.shape == node.shape:
                # The longer list takes the other's nodes.
                if len(members[other]) > len(members[own]):
                    own, other = other, own
                for moved in members[other]:
                    number[moved] = own
                members[own] += members.pop(other)
    return list(members.values())


def _is_worth_it(region: Sequence[Node], users: Mapping[Node, Sequence[Node]],
                 wanted: Set[Node]) -> bool:
    inside = set(region)
    shape = region[0].shape
    first = len(shape) - trailing_count(shape)       # of the trailing dimensions
    gains = 0                                   # rows that would be short
    border: set[Node] = set()                   # values that must be transposed
    for node in region:
        for operand in node.inputs:
            if operand in inside or isinstance(operand, Constant) or operand.shape != shape:
                continue
            if isinstance(operand, View):
                dims = [dim for _, _, dim in operand.index_map if dim >= 0]
                trailing = any(dim >= first for dim in dims)
                if 2 * operand.inputs[0].size <= operand.size:
                    gains += bool(dims) and not (trailing and len(dims) == len(shape) - first)
                    continue
                if isinstance(base_of(operand), Iota):
                    continue
            border.add(operand)
    for node in region:
        for user in users.get(node, ()):
            if user in inside:
                continue
            if isinstance(user, Reduce):
                gains += user.axes[-1] >= first
            elif not isinstance(user, View) or 2 * user.size > node.size:
                border.add(node)
    border |= inside & wanted
    if border and math.prod(shape[first:]) > _SHORT:
        return False
    return gains > 0 and 3 * len(border) <= gains + len(region)


# --- turning --------------------------------------------------------------------------------------
class _Turn:
    """Makes nodes anew, those of regions in turned shapes.

    Args:
      region: the nodes that are turned.
    """

    def __init__(self, context: MojoContext, region: set[Node]):
        self.context = context
        self.region = region
        self._turned: dict[Node, Node] = {}
        self._usual: dict[Node, Node] = {}

    def visit(self, node: Node) -> None:
        """Makes one node anew; its operands were visited before."""
        if node in self.region:
            self._turned[node] = self._member(node)
        elif any(self._is_changed(operand) for operand in node.inputs):
            self._usual[node] = self._outside(node)

    def _is_changed(self, node: Node) -> bool:
        return node in self._turned or node in self._usual

    def usual(self, node: Node) -> Node:
        """The new node for one, in its own shape."""
        made = self._usual.get(node)
        if made is None:
            made = node
            if node in self._turned:
                order = _Order.of(node.shape)
                made = self._usual[node] = self.context.transpose(self._turned[node], order.back)
        return made

    def _as_turned(self, node: Node, order: _Order) -> Node:
        """The new node for one, in the turned shape."""
        if node in self._turned and _Order.of(node.shape) == order:
            return self._turned[node]
        context = self.context
        if isinstance(node, Constant):
            return context.constant(node.value.transpose(order.there))
        view = context.transpose(self.usual(node), order.there)
        if not isinstance(view, View) or isinstance(base_of(view), Iota):
            return view
        dims = [dim for _, _, dim in view.index_map if dim >= 0]
        if dims == sorted(dims):
            return view
        base = view.inputs[0]
        if base.size > view.size:
            return context.copy(view)
        # What is read is transposed before it is spread.
        permutation = sorted(range(len(base.shape)), key=lambda place: view.index_map[place][2])
        return context.view(context.copy(context.transpose(base, permutation)), view.shape,
                            [view.index_map[place] for place in permutation])

    def _member(self, node: Node) -> Node:
        context, order = self.context, _Order.of(node.shape)
        if isinstance(node, Apply):
            operands = [self._as_turned(operand, order) for operand in node.inputs]
            return context.shared(Apply(
                order.turned(node.shape), node.dtype, context.aligned(operands), node.name,
                node.source))
        assert isinstance(node, Assemble)
        operands = [self._as_turned(piece, order) for piece in node.sources]
        if node.filler is not None:
            operands.append(self.usual(node.filler))
        pieces = tuple([Piece(order.turned(piece.starts), order.turned(piece.steps))
                        for piece in node.pieces])
        return context.shared(Assemble(
            order.turned(node.shape), node.dtype, tuple(operands), pieces))

    def _outside(self, node: Node) -> Node:
        operands = [self.usual(operand) for operand in node.inputs]
        if isinstance(node, Reduce):
            return self._reduction(node, operands[0])
        return rebuilt(self.context, node, operands)

    def _reduction(self, node: Reduce, operand: Node) -> Node:
        context, source = self.context, node.inputs[0]
        if source not in self._turned:
            return context.reduce(node.name, operand, node.axes)
        order = _Order.of(source.shape)
        result = context.reduce(node.name, self._turned[source],
                                [order.back[axis] for axis in node.axes])
        left = [dim for dim in order.there if dim not in node.axes]
        return context.transpose(result, sorted(range(len(left)), key=left.__getitem__))


class _Order(NamedTuple):
    """The dimensions of a turned value, and of the value in terms of the turned one's."""

    there: tuple[int, ...]
    back: tuple[int, ...]

    @classmethod
    def of(cls, shape: tuple[int, ...]) -> _Order:
        rank = len(shape)
        count = trailing_count(shape)
        return cls((*range(rank - count, rank), *range(rank - count)),
                   (*range(count, rank), *range(count)))

    def turned(self, entries: Sequence[int]) -> tuple[int, ...]:
        return tuple([entries[dim] for dim in self.there])
