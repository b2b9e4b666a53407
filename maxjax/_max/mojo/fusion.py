"""Cuts a program's nodes into groups, each of which becomes one kernel.

Nodes are visited backwards from the outputs. An elementwise node joins the group that uses it, if
only one does; it is recomputed in each of several groups if that is cheap; otherwise its elements
are stored, by the group of a user that iterates over the same space, or by its own group. A
reduction pulls its users into its group where they fit: those over the kept dimensions and, if the
innermost dimension is reduced, those that broadcast the result over the whole space again.

docs/compiler.md explains this with examples. What was decided for one program is remembered for
those that differ in sizes only (``groupings.py``).
"""

from __future__ import annotations

import math
import types
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from maxjax._max.elementwise_kernels import CHEAP
from maxjax._max.mojo.groupings import LARGE, Grouping, GroupRecord, groupings, structure_of
from maxjax._max.mojo.nodes import (
    Alias,
    Apply,
    Composed,
    Computed,
    IndexMap,
    Iota,
    Movement,
    Node,
    Overlay,
    Reduce,
    Reshape,
    Result,
    Unit,
    View,
    base_of,
    compose,
    identity_map,
)
from maxjax._max.mojo.siblings import Siblings
from maxjax._max.mojo.unit_graph import UnitGraph

# A kernel with more memory operands or operations than this fuses no more.
MOST_MEMBERS = 96
# So many cheap operations take about as long as reading their result.
_FEW_OPERATIONS = 2
# A large value read at so many places of each point is not stored if it is computed from one array
# with that many operations at all places together: storing and reading it costs more.
_MOST_PLACES = 5
_MOST_AT_PLACES = 32
# Limits on the groups tried as the one that computes a node, and as another's sibling: a value that
# a thousand groups read does not make a million pairs.
_MOST_TRIES = 16
_MOST_SIBLINGS = 64


class Group:
    """The nodes of one kernel.

    Attributes:
      space: the sizes of the dimensions that its loops iterate over.
      axes: those that its reductions reduce; None if it has no reductions.
      inner: whether the innermost dimension is reduced.
      maps: each node computed here, with its index maps from the space.
      homes: those whose elements are stored in memory.
    """

    def __init__(self, space: tuple[int, ...], axes: tuple[int, ...] | None = None):
        self.space = space
        self.axes = axes
        self.maps: dict[Computed, list[IndexMap]] = {}
        self.homes: list[Computed] = []

    @property
    def inner(self) -> bool:
        return self.axes is not None and last_wide(self.space) in self.axes

    @property
    def kept(self) -> list[int]:
        axes = self.axes or ()
        return [dim for dim in range(len(self.space)) if dim not in axes]

    def wide(self, dims: Iterable[int]) -> list[int]:
        return [dim for dim in dims if self.space[dim] != 1]

    def level(self, node: Node, index_map: IndexMap) -> str:
        """"full" or "kept" if the map is one to one with that part of the space, otherwise ""."""
        if node.shape == self.space and index_map is identity_map(self.space):
            return "full"
        dims = []
        for size, (start, step, dim) in zip(node.shape, index_map, strict=True):
            if size == 1:
                continue
            if start != 0 or step != 1 or self.space[dim] != size:
                return ""
            dims.append(dim)
        if dims == self.wide(range(len(self.space))):
            return "full"
        if self.axes is not None and dims == self.wide(self.kept):
            return "kept"
        return ""

    def __repr__(self) -> str:
        return f"<Group {list(self.space)} axes={self.axes} {len(self.maps)} nodes>"


def last_wide(shape: Sequence[int]) -> int:
    return max((dim for dim, size in enumerate(shape) if size != 1), default=-1)


def is_spread(view: View) -> bool:
    """Whether it reads the same elements again along one of its dimensions."""
    dims = {dim for _, _, dim in view.index_map}
    return any(size != 1 and dim not in dims for dim, size in enumerate(view.shape))


def reduced_map(group: Group, node: Reduce) -> IndexMap:
    """The index map of a reduction of the group's space."""
    return tuple((0, 1, dim) if group.space[dim] != 1 else (0, 0, -1)
                 for dim in range(len(group.space)) if dim not in node.axes)


class Fusion:
    """The groups of a program, and the order of its units.

    Attributes:
      units: groups and nodes (calls, loops, assembles) in an order to run them in.
      home: the group that stores an elementwise or reduction node.
      outputs: the requested nodes.
      numbers: of the nodes, in their order.
      records: what is remembered of each group, for other sizes as well.

    Args:
      overwrites: nodes that are to be written to the memory of an input, if all others have read
        that before.
    """

    def __init__(self, outputs: Sequence[Node],
                 overwrites: Mapping[Node, Node] = types.MappingProxyType({})):
        self.outputs = outputs
        self.order = ordered(outputs)
        self.users = users_of(self.order)
        self.groups_of: dict[Node, dict[Group, None]] = {}
        self.home: dict[Node, Group] = {}
        self.numbers = {node: number for number, node in enumerate(self.order)}
        structure = structure_of(self.numbers, outputs, overwrites)
        known = groupings.get(structure)
        if known is None:
            self._cut(overwrites)
            groupings.keep(structure, self._recorded())
        else:
            self._restore(known)

    def _cut(self, overwrites: Mapping[Node, Node]) -> None:
        self.demanded: set[Node] = set()
        self.graph = UnitGraph()
        self.leaves: dict[Node, tuple[Node, ...]] = {}
        self.operations: dict[Node, int] = {}       # of an expression, with repetitions
        for node in self.order:
            if isinstance(node, Apply):
                if node.name in CHEAP:
                    self.leaves[node] = self._leaves(node)
                self.operations[node] = min(1 + sum(
                    [self.operations.get(operand, 0) for operand in node.inputs]), LARGE)
        for output in self.outputs:
            self.demanded.add(base_of(output))
        for node in reversed(self.order):
            self._visit(node)
        self._merge_siblings()
        for node in self.order:
            if isinstance(node, Overlay):
                self._read_before(node, base_of(node.ground))
        for node, source in overwrites.items():
            self._read_before(node, source)
        self.units = self._schedule()

    # --- what other sizes have in common ---
    def _recorded(self) -> Grouping:
        numbers = self.numbers
        spaces: dict[tuple[int, ...], int] = {}
        for number, node in enumerate(self.order):
            spaces.setdefault(node.shape, number)
        grouping = Grouping()
        for unit in self.units:
            if isinstance(unit, Group):
                grouping.units.append(~len(grouping.groups))
                grouping.groups.append(GroupRecord(
                    spaces[unit.space], unit.axes,
                    [(numbers[node], tuple(maps)) for node, maps in unit.maps.items()],
                    [numbers[node] for node in unit.homes]))
            else:
                grouping.units.append(numbers[unit])
        self.records = dict(zip(
            [unit for unit in self.units if isinstance(unit, Group)], grouping.groups, strict=True))
        return grouping

    def _restore(self, grouping: Grouping) -> None:
        order = self.order
        groups = []
        for record in grouping.groups:
            group = Group(order[record.space].shape, record.axes)
            groups.append(group)
            for number, maps in record.maps:
                node: Any = order[number]
                group.maps[node] = [*maps]
                self.groups_of.setdefault(node, {})[group] = None
            for number in record.homes:
                node = order[number]
                group.homes.append(node)
                self.home[node] = group
        self.units = [groups[~unit] if unit < 0 else order[unit] for unit in grouping.units]
        self.records = dict(zip(groups, grouping.groups, strict=True))

    # --- groups beside one another ---
    def _merge_siblings(self) -> None:
        """Merges two groups that iterate over the same space and read the same memory."""
        groups = list(dict.fromkeys(
            group for node in reversed(self.order) for group in self.groups_of.get(node, ())))
        smallest = min((len(group.maps) for group in groups), default=0)
        fellows = Siblings(map(self._sibling_keys, groups))
        for position, first in enumerate(groups):
            tries = 0
            needs = self.graph.needs(first)
            for other in fellows.after(position):
                if len(first.maps) + smallest > MOST_MEMBERS or tries == _MOST_SIBLINGS:
                    break
                second = groups[other]
                if len(first.maps) + len(second.maps) <= MOST_MEMBERS and second not in needs \
                        and self.graph.merge(first, second):
                    self._merge(first, second)
                    fellows.take(other)
                    needs = self.graph.needs(first)
                else:
                    tries += 1

    def _sibling_keys(self, group: Group) -> list[Any]:
        """Keys that siblings share, one for each array of which a group reads one element per point
        of its space, or one of the elements that lie together there (a coordinate of a vector, a
        part of a complex number): they iterate over the same space in the same way."""
        size = math.prod(group.space)
        bases = dict.fromkeys(base for node in group.maps for base in map(base_of, node.inputs)
                              if (base.shape == group.space or base.size == size
                                  or base.shape[:-1] == group.space != ()
                                  or isinstance(base, Alias) and base.shape == (*group.space, 2))
                              and base not in group.maps and not isinstance(base, Iota))
        axes = None if group.axes is None else tuple(group.wide(group.axes))
        return [(group.space, axes, base) for base in bases]

    def _merge(self, first: Group, second: Group) -> None:
        for node, maps in second.maps.items():
            self._join(node, first, maps)
            del self.groups_of[node][second]
            if self.home.get(node) is second:
                self.home[node] = first
        first.homes += second.homes

    def _leaves(self, node: Node) -> tuple[Node, ...]:
        """The memory operands, other than scalars, of the cheap expressions that a node uses: two
        of them at most."""
        found: tuple[Node, ...] = ()
        for operand in node.inputs:
            base = base_of(operand)
            if base.size == 1 or isinstance(base, Iota):
                continue
            is_cheap = (isinstance(base, Apply) and base.name in CHEAP
                        and not isinstance(operand, Reshape))
            for leaf in self.leaves[base] if is_cheap else (base,):
                if leaf not in found:
                    found = (*found, leaf)
                    if len(found) == 2:
                        return found
        return found

    # --- visiting ---
    def _visit(self, node: Node) -> None:
        if isinstance(node, Computed):
            self._place(node)
        elif isinstance(node, View):
            pass
        elif isinstance(node, Unit):
            for operand in node.inputs:
                self.demanded.add(base_of(operand))
            if isinstance(node, Composed):
                self._made(node, self._units_using(node))
            else:
                self.graph.add(node)
        elif isinstance(node, Result):
            self._made(node.inputs[0], self._units_using(node))
        elif isinstance(node, Alias):
            self.demanded.add(base_of(node.inputs[0]))
        elif isinstance(node, Reshape):
            base = base_of(node)
            if isinstance(base, Computed):
                self.demanded.add(base)

    def _made(self, unit: Any, readers: Iterable[Any]) -> None:
        """A unit whose operands have not been visited is read by others."""
        self.graph.add(unit)
        self.graph.connect(readers, unit)

    def _units_using(self, node: Node) -> dict[Any, None]:
        """The units that read a node's memory, through views, reshapes and aliases."""
        found: dict[Any, None] = {}
        for user in self.users[node]:
            if isinstance(user, (Movement, Alias)):
                found.update(self._units_using(user))
            elif isinstance(user, Computed):
                found.update(self.groups_of.get(user, {}))
            else:
                found[user] = None
        return found

    def _units_reading_rearranged(self, node: Node) -> dict[Any, None]:
        """The units among them that read it through a reshape or an alias, so that no index map
        says which element of the node they read at which point of their spaces."""
        found: dict[Any, None] = {}
        for user in self.users[node]:
            if isinstance(user, View):
                found.update(self._units_reading_rearranged(user))
            elif isinstance(user, (Reshape, Alias)):
                found.update(self._units_using(user))
        return found

    def _uses(self, node: Node) -> dict[Group, list[tuple[Node, IndexMap]]]:
        """The groups that use a node, with each user and the node's index map there."""
        found: dict[Group, list[tuple[Node, IndexMap]]] = {}

        def follow(value: Node, chain: IndexMap | None) -> None:
            """``chain`` is the map of the views from the node to a value, if there are any."""
            for user in self.users[value]:
                if isinstance(user, View):
                    follow(user, user.index_map if chain is None
                           else compose(chain, user.index_map))
                elif isinstance(user, Computed):
                    for group in self.groups_of.get(user, ()):
                        for index_map in (group.maps[user] if isinstance(user, Apply)
                                          else (identity_map(group.space),)):
                            found.setdefault(group, []).append(
                                (user, index_map if chain is None else compose(chain, index_map)))

        follow(node, None)
        return found

    def _place(self, node: Computed) -> None:
        uses = self._uses(node)
        if node not in self.demanded and isinstance(node, Apply) and uses:
            if all(self._can_inline(node, group, maps) for group, maps in uses.items()) and (
                    len(uses) == 1 or self._is_cheap(node)):
                for group, maps in uses.items():
                    self._join(node, group, [index_map for _, index_map in maps])
                return
        units = self._units_using(node)
        # What they read of its memory is not written yet where they would compute it themselves.
        rearranged = self._units_reading_rearranged(node)
        tries = 0
        for group, maps in uses.items():
            if group in rearranged or not self._can_join(node, group, maps):
                continue
            others = [unit for unit in units if unit is not group]
            if self.graph.joins(group, others):
                if isinstance(node, Reduce):
                    self._turn(node, group, maps)
                    self._join(node, group, [reduced_map(group, node)])
                else:
                    self._join(node, group, [maps[0][1]])
                self._settle(node, group, others)
                return
            tries += 1
            if tries == _MOST_TRIES:
                break
        if isinstance(node, Reduce):
            group = Group(node.inputs[0].shape, node.axes)
            self._join(node, group, [reduced_map(group, node)])
        else:
            group = Group(node.shape)
            self._join(node, group, [identity_map(node.shape)])
        self._made(group, units)
        self._settle(node, group, units)

    def _is_cheap(self, node: Computed) -> bool:
        return node.name in CHEAP and (len(self.leaves[node]) <= 1 or all(
            isinstance(operand, View) and is_spread(operand) for operand in node.inputs))

    def _is_small_stencil(self, node: Computed, places: int) -> bool:
        return (node.size >= LARGE and places <= _MOST_PLACES and self._is_cheap(node)
                and places * self.operations[node] <= _MOST_AT_PLACES
                and not any(isinstance(leaf, Computed) for leaf in self.leaves[node]))

    def _can_inline(self, node: Computed, group: Group,
                    uses: Sequence[tuple[Node, IndexMap]]) -> bool:
        if len(group.maps) >= MOST_MEMBERS:
            return False
        maps = {index_map for _, index_map in uses}
        if len(maps) > 2 and not self._is_small_stencil(node, len(maps)):
            return False
        for index_map in maps:
            if group.level(node, index_map):
                continue
            dims = [dim for _, _, dim in index_map if dim >= 0]
            if dims != sorted(dims):
                return False        # a transposition: read it from memory
            if len(dims) == 0 or node.name in CHEAP and (
                    node.size < LARGE or self.operations[node] <= _FEW_OPERATIONS):
                continue
            spread = any(dim not in dims for dim in group.wide(range(len(group.space))))
            if spread and last_wide(group.space) in dims:
                return False        # it would be recomputed for each row
        return True

    def _can_join(self, node: Computed, group: Group,
                  uses: Sequence[tuple[Node, IndexMap]]) -> bool:
        """Whether a stored node can be computed in a user's group."""
        if len(group.maps) >= MOST_MEMBERS or len({index_map for _, index_map in uses}) != 1:
            return False
        index_map = uses[0][1]
        level = group.level(node, index_map)
        if not isinstance(node, Reduce):
            return level in ("full", "kept") if group.axes is not None else level == "full"
        operand = node.inputs[0]
        if group.axes is None:
            if level == "full":     # an epilogue: its space is the group's kept dimensions
                return True
            if group.space != operand.shape or last_wide(operand.shape) not in node.axes:
                return False
            return self._is_kept(node, group, index_map)
        if group.space != operand.shape or not same_dims(group, node.axes):
            return False
        if not self._is_kept(node, group, index_map):
            return False
        if not group.inner:
            # The loop over the whole space has ended when the reductions are known.
            return all(group.level(user, group.maps[user][0]) == "kept" and isinstance(user, Apply)
                       for user in self._users_within(node, group))
        return True

    def _users_within(self, node: Node, group: Group) -> set[Computed]:
        """The nodes that a group computes from a node."""
        found: set[Node] = set()
        stack = [node]
        while stack:
            for user in self.users[stack.pop()]:
                if user not in found and (isinstance(user, View) or user in group.maps):
                    found.add(user)
                    stack.append(user)
        return {user for user in found if isinstance(user, Computed)}

    def _is_kept(self, node: Reduce, group: Group, index_map: IndexMap) -> bool:
        """Whether an index map broadcasts a reduction's result over the group's space."""
        dims = []
        for size, (start, step, dim) in zip(node.shape, index_map, strict=True):
            if size == 1:
                continue
            if start != 0 or step != 1:
                return False
            dims.append(dim)
        return dims == [dim for dim in range(len(group.space))
                        if dim not in node.axes and group.space[dim] != 1]

    def _turn(self, node: Reduce, group: Group, uses: Sequence[tuple[Node, IndexMap]]) -> None:
        """Turns a group without reductions into one over the space of a reduction."""
        if group.axes is not None:
            return
        operand = node.inputs[0]
        if group.level(node, uses[0][1]) != "full" or group.space == operand.shape:
            group.axes = node.axes
            return
        kept = [dim for dim in range(len(operand.shape)) if dim not in node.axes]
        places = {}
        for (_, _, dim), target in zip(uses[0][1], kept, strict=True):
            if dim >= 0:
                places[dim] = target
        for member, maps in group.maps.items():
            group.maps[member] = [tuple(
                (start, step, places[dim]) if dim in places else (start, 0, -1)
                for start, step, dim in index_map) for index_map in maps]
        group.space = operand.shape
        group.axes = node.axes

    def _join(self, node: Computed, group: Group, maps: Sequence[IndexMap]) -> None:
        known = group.maps.setdefault(node, [])
        known += [index_map for index_map in dict.fromkeys(maps) if index_map not in known]
        self.groups_of.setdefault(node, {})[group] = None

    def _settle(self, node: Computed, group: Group, others: Collection[Any]) -> None:
        """Stores a node in its home, if other units read it."""
        if node in self.demanded or others:
            self.home[node] = group
            group.homes.append(node)

    # --- the order ---
    def _read_before(self, node: Node, source: Node) -> None:
        """Has others read a value before a node is written, where they do not need that node."""
        writers: list[Any]
        if isinstance(node, Result):
            writers = [node.inputs[0]]
        elif isinstance(node, Overlay):     # what computes the window may write it there
            writers = [node, self.home.get(base_of(node.sources[0]))]
        else:
            writers = [self.home.get(node)]
        for writer in writers if source in self.users else ():
            if writer is not None:
                for reader in self._units_using(source):
                    if reader not in writers:
                        self.graph.joins(reader, [writer])

    def _schedule(self) -> list[Any]:
        first: dict[Any, int] = {}
        for number, node in enumerate(self.order):
            if isinstance(node, Unit):
                first[node] = number
            for group in self.groups_of.get(node, ()):
                first[group] = max(number, first.get(group, 0))
        done: dict[Any, None] = {}
        reads = self.graph.reads

        def visit(unit: Any) -> None:
            stack = [(unit, iter(sorted(reads[unit], key=first.__getitem__)))]
            entered = {unit}
            while stack:
                current, rest = stack[-1]
                for other in rest:
                    if other not in done and other not in entered:
                        entered.add(other)
                        stack.append((other, iter(sorted(
                            reads[other], key=first.__getitem__))))
                        break
                else:
                    done[current] = None
                    stack.pop()

        for unit in sorted(first, key=first.__getitem__):
            if unit not in done:
                visit(unit)
        return list(done)


def same_dims(group: Group, axes: Sequence[int]) -> bool:
    return group.axes is not None and group.wide(group.axes) == group.wide(axes)


def ordered(outputs: Sequence[Node]) -> list[Node]:
    """All nodes that the outputs need, operands first."""
    done: dict[Node, None] = {}
    for output in outputs:
        stack = [(output, iter(output.inputs))]
        while stack:
            node, rest = stack[-1]
            if node in done:
                stack.pop()
                continue
            for operand in rest:
                if operand not in done:
                    stack.append((operand, iter(operand.inputs)))
                    break
            else:
                done[node] = None
                stack.pop()
    return list(done)


def users_of(order: Sequence[Node]) -> dict[Node, list[Node]]:
    """The nodes that read each node, as often as they do."""
    users: dict[Node, list[Node]] = {node: [] for node in order}
    for node in order:
        for operand in node.inputs:
            users[operand].append(node)
    return users
