"""Collectives of the devices of several processes, as what the processes exchange.

A process computes the shards of its devices together. Where each process has as many members in
each group of devices, one after another, what it sends is one array and so is what it gets: to cut
and to put these together are operations of the program, which may be compiled, and the exchange is
one of as many devices as there are processes. Other groups are the host's (``exchange.py``).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import caches, dtypes
from maxjax._base.processes import job
from maxjax._base.specs import AxisName
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Communication, Derivative, Effectful, Host
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._primitives.arithmetic import maximum, minimum
from maxjax._primitives.broadcasting import (
    broadcast_in_dim,
    broadcast_leading,
    expand_axis,
    reduce_sum,
)
from maxjax._primitives.creation import zeros_like
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import move_axis, reshape, transpose
from maxjax._primitives.reduction import reduce_max, reduce_min
from maxjax._primitives.slicing import slice_in_dim
from maxjax._sharding.exchange import (
    HOST_REASON,
    REDUCTIONS,
    Exchange,
    Groups,
    Kind,
    communication_effect,
    exchange_p,
)

# The name of the axis that a process's devices lie along.
DEVICES = "devices of a process"


@dataclasses.dataclass(frozen=True)
class Layout:
    """Groups of which each process has as many, with as many members each.

    Attributes:
      processes: all.
      among: positions in ``processes`` of those that share groups.
      groups, members: how many groups a process shares, and of each how many members it has.
      by_member: a process's devices lie by member and group, not by group and member.
    """

    processes: tuple[int, ...]
    among: Groups
    groups: int
    members: int
    by_member: bool

    @property
    def count(self) -> int:
        """How many processes share a group."""
        return len(self.among[0])

    @property
    def position(self) -> int:
        """This process's among those that share its groups."""
        me = self.processes.index(job.index)
        return next(part.index(me) for part in self.among if me in part)

    def grouped(self, x: Array) -> Any:
        """(devices, *shard) -> (groups, members, *shard)"""
        if self.by_member:
            return move_axis(reshape(x, (self.members, self.groups, *x.shape[1:])), 0, 1)
        return reshape(x, (self.groups, self.members, *x.shape[1:]))

    def of_devices(self, x: Array) -> tuple[Any, int | None]:
        """(groups, members, *shard) -> (devices, *shard), or the shard of the one device; and the
        number of the dimension of devices."""
        if self.by_member:
            x = move_axis(x, 0, 1)
        if self.groups * self.members == 1:
            return reshape(x, x.shape[2:]), None
        return reshape(x, (self.groups * self.members, *x.shape[2:])), 0

    def for_all(self, x: Array) -> tuple[Any, int | None]:
        """What all members of each group get: (groups, *shard), as ``of_devices``."""
        if self.groups == 1:
            return reshape(x, x.shape[1:]), None
        shape = (self.groups, self.members, *x.shape[1:])
        return self.of_devices(broadcast_in_dim(x, shape, (0, *range(2, len(shape)))))


@caches.memoized
def layout_of(groups: Groups, owners: tuple[int, ...]) -> Layout | None:
    """How alike the parts of all processes are; None: not so. The same in all processes."""
    processes = tuple(sorted(set(owners)))
    shared: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for group in groups:
        shared.setdefault(tuple(dict.fromkeys(owners[n] for n in group)), []).append(group)
    counts = {(len(around), len(parts), len(group))
              for around, parts in shared.items() for group in parts}
    if len(counts) > 1 or sorted(n for around in shared for n in around) != list(processes):
        return None
    (count, number, size), = counts
    members, rest = divmod(size, count)
    if count == 1 or rest or any(list(around) != sorted(around) for around in shared):
        return None
    places: list[tuple[int, int]] = []       # of each device: its process, and its row there
    rows = dict.fromkeys(processes, 0)
    for owner in owners:
        places.append((owner, rows[owner]))
        rows[owner] += 1
    for by_member in (False, True):
        if all(places[position] == (around[n // members],
                                    n % members * number + index if by_member
                                    else index * members + n % members)
               for around, parts in shared.items() for index, group in enumerate(parts)
               for n, position in enumerate(group)):
            among = tuple(tuple(map(processes.index, around)) for around in sorted(shared))
            return Layout(processes, among, number, members, by_member)
    return None


def _between(value: Array, exchange: Exchange, layout: Layout, kind: Kind,
             dims: tuple[int, ...] = (), perm: tuple[tuple[int, int], ...] = ()) -> Any:
    """What comes of one array of each process."""
    return exchange_p.bind(expand_axis(value, 0), exchange=dataclasses.replace(
        exchange, kind=kind, groups=layout.among, owners=layout.processes, dims=dims, perm=perm,
        reduced=False))


_FEW = 8
_EXTREMES: dict[Kind, Callable[..., Any]] = {Kind.MAXIMUM: maximum, Kind.MINIMUM: minimum}
_REDUCED: dict[Kind, Callable[..., Any]] = {
    Kind.SUM: reduce_sum, Kind.MAXIMUM: reduce_max, Kind.MINIMUM: reduce_min}


def _of_members(parts: Array, kind: Kind) -> Any:
    """(groups, members, *shard) -> (groups, *shard)"""
    if parts.shape[1] == 1:
        return reshape(parts, (parts.shape[0], *parts.shape[2:]))
    return _REDUCED[kind](parts, (1,))


def _reduce(parts: Array, exchange: Exchange, layout: Layout) -> tuple[Any, int | None]:
    mine = _of_members(parts, exchange.kind)
    if layout.groups == 1:
        return _reduced(reshape(mine, mine.shape[1:]), exchange, layout), None
    return layout.for_all(_reduced(mine, exchange, layout))


def _reduced(mine: Array, exchange: Exchange, layout: Layout) -> Any:
    if exchange.kind is Kind.SUM:
        return _between(mine, exchange, layout, Kind.SUM)
    # The engines' maxima and minima ignore NaN.
    gathered = _between(mine, exchange, layout, Kind.GATHER)
    if layout.count > _FEW:
        return _REDUCED[exchange.kind](gathered, (0,))
    # A few arrays are combined whole, in a quarter of the time of a reduction along their axis.
    return functools.reduce(_EXTREMES[exchange.kind], [
        reshape(slice_in_dim(gathered, number, number + 1, 0), mine.shape)
        for number in range(layout.count)])


def _all_gather(parts: Array, exchange: Exchange, layout: Layout) -> tuple[Any, int | None]:
    shard = parts.shape[2:]
    if layout.groups == layout.members == 1:
        return _between(reshape(parts, shard), exchange, layout, Kind.GATHER), None
    gathered = move_axis(_between(parts, exchange, layout, Kind.GATHER), 0, 1)
    return layout.for_all(reshape(
        gathered, (layout.groups, layout.count * layout.members, *shard)))


def _reduce_scatter(parts: Array, exchange: Exchange, layout: Layout) -> tuple[Any, int | None]:
    dim, = exchange.dims
    mine = _of_members(parts, Kind.SUM)
    # (groups, ..., count, members, block, ...) -> (count, groups, members, ..., block, ...)
    at = dim + 1
    cut = _cut(mine, at, layout)
    mine = transpose(cut, (at, 0, at + 1, *[n for n in range(1, len(cut.shape))
                                            if n not in (at, at + 1)]))
    total = _between(mine, exchange, layout, Kind.SCATTERED_SUM, (0,))
    return layout.of_devices(reshape(total, total.shape[1:]))


def _cut(x: Array, dim: int, layout: Layout) -> Any:
    """A dimension divided by process, member and block."""
    shape = x.shape
    count = layout.count * layout.members
    return reshape(x, (*shape[:dim], layout.count, layout.members, shape[dim] // count,
                       *shape[dim + 1:]))


def _all_to_all(parts: Array, exchange: Exchange, layout: Layout) -> tuple[Any, int | None]:
    split, concat = exchange.dims
    # (groups, members, ..., count, others, block, ...)
    #   -> (count, groups, members, others, ..., block, ...)
    at = split + 2
    cut = _cut(parts, at, layout)
    sent = transpose(cut, (at, 0, 1, at + 1, *[n for n in range(2, len(cut.shape))
                                               if n not in (at, at + 1)]))
    received = _between(sent, exchange, layout, Kind.TRANSPOSE, (0, 0))
    # (count, groups, others, members, *block) -> (groups, members, ..., count, others, block, ...)
    first, last = range(4, 4 + concat), range(4 + concat, len(received.shape))
    block = received.shape[4:]
    joined = transpose(received, (1, 3, *first, 0, 2, *last))
    return layout.of_devices(reshape(joined, (
        layout.groups, layout.members, *block[:concat],
        layout.count * layout.members * block[concat], *block[concat + 1:])))


def _ppermute(parts: Array, exchange: Exchange, layout: Layout
              ) -> tuple[Any, int | None] | None:
    """None: a process sends to several, or some send more than others."""
    members = layout.members
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for source, target in exchange.perm:
        lanes.setdefault((source // members, target // members), []).append(
            (source % members, target % members))
    between = {lane: moved for lane, moved in lanes.items() if lane[0] != lane[1]}
    sizes = set(map(len, between.values()))
    if len(sizes) > 1 or any(len(set(ends)) < len(ends) for ends in zip(*between, strict=True)):
        return None
    columns: dict[int, Any] = {}
    me = layout.position

    def column(x: Array, number: int) -> Array:
        return slice_in_dim(x, number, number + 1, 1)

    for source, target in lanes.get((me, me), ()):
        columns[target] = column(parts, source)
    if between:
        size, = sizes
        leaving = next((moved for lane, moved in between.items() if lane[0] == me), None)
        sent = zeros_like(slice_in_dim(parts, 0, size, 1)) if leaving is None else concatenate(
            [column(parts, source) for source, _ in leaving], 1)
        received = _between(sent, exchange, layout, Kind.PERMUTE, perm=tuple(sorted(between)))
        for lane, moved in between.items():
            if lane[1] == me:
                columns.update((target, column(received, number))
                               for number, (_, target) in enumerate(moved))
    nothing = zeros_like(column(parts, 0))
    return layout.of_devices(concatenate(
        [columns.get(number, nothing) for number in range(members)], 1))


_KINDS: dict[Kind, Callable[[Array, Exchange, Layout], tuple[Any, int | None] | None]] = {
    **dict.fromkeys(REDUCTIONS, _reduce), Kind.GATHER: _all_gather,
    Kind.SCATTERED_SUM: _reduce_scatter, Kind.TRANSPOSE: _all_to_all, Kind.PERMUTE: _ppermute}


def _collective_batch(mapped: AxisName, size: int, operands: Sequence[Array],
                      axes: Sequence[int | None], *, exchange: Exchange) -> tuple[Any, int | None]:
    (operand,), (axis,) = operands, axes
    layout = layout_of(exchange.groups, exchange.owners)
    if exchange.reduced:
        if layout is not None:
            return _reduced(operand, exchange, layout), None
        return exchange_p.bind(expand_axis(operand, 0), exchange=exchange), None
    x = broadcast_leading(operand, size) if axis is None else move_axis(operand, axis, 0)
    found = None if layout is None else _KINDS[exchange.kind](layout.grouped(x), exchange, layout)
    if found is not None:
        return found
    return exchange_p.bind(x, exchange=exchange), None if exchange.gives_one else 0


collective_p = Primitive(
    "collective",
    abstract=lambda x, *, exchange: ShapedArray(exchange.shape(x.shape), x.dtype, x.weak_type),
    host=Host(reason=HOST_REASON),
    derivative=Derivative(
        missing="derivatives are taken before programs are divided over processes"),
    communication=Communication(
        axis_names=lambda **params: (DEVICES,),
        batch_named=_collective_batch),
    effects=Effectful(lambda **params: frozenset({communication_effect})),
)


def _coordinate_batch(mapped: AxisName, size: int, operands: Sequence[Array],
                      axes: Sequence[int | None], *, table: tuple[int, ...]
                      ) -> tuple[Any, int | None]:
    if len(set(table)) == 1:
        return np.int32(table[0]), None
    return np.array(table, np.int32), 0


# The coordinate of the running device; ``table`` has those of this process's devices.
coordinate_p = Primitive(
    "coordinate",
    abstract=lambda **params: ShapedArray((), dtypes.int32),
    host=Host(reason=HOST_REASON),
    derivative=Derivative(missing="it has no operands"),
    communication=Communication(
        axis_names=lambda **params: (DEVICES,),
        batch_named=_coordinate_batch),
)
