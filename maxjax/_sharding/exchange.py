"""Collectives of programs over processes: a step in which the host calls the engine.

A process computes the shards of its devices together, stacked along a leading dimension where they
differ. A collective combines the shards of its groups that are here, exchanges the rest with the
processes that have the other members, and hands each device its part. Processes take groups in one
order, so that nobody waits in a circle.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from maxjax._base import caches
from maxjax._base.processes import job
from maxjax._distributed.communicator import combined
from maxjax._distributed.group import Group
from maxjax._distributed.native import NativeCollective
from maxjax._distributed.start import connection
from maxjax._ir.effects import Effect
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Derivative, Effectful, Host
from maxjax._ir.types import ShapedArray

HOST_REASON = "it exchanges values with other processes"

# Positions among the devices of a mesh, of the devices that communicate with one another.
Groups = tuple[tuple[int, ...], ...]


class CommunicationEffect(Effect):
    """Values are exchanged with other processes, which must do so in the same order."""

    def __init__(self) -> None:
        super().__init__("Communication")


communication_effect = CommunicationEffect()


class Kind(enum.Enum):
    """What a collective does with the values of a group."""

    SUM = enum.auto()
    MAXIMUM = enum.auto()
    MINIMUM = enum.auto()
    GATHER = enum.auto()
    SCATTERED_SUM = enum.auto()
    TRANSPOSE = enum.auto()
    PERMUTE = enum.auto()


@dataclasses.dataclass(frozen=True)
class Exchange:
    """What a collective does.

    Attributes:
      kind: of the collective.
      groups: who communicates with whom, each in the order of the axes.
      owners: the process of each device of the mesh.
      what: the collective and its program, in words that are the same in all processes.
      dims: of the shard: the one that is scattered, or the split and the concatenated ones.
      perm: of a permutation: (source, target) within each group.
      reduced: each process has combined what its devices hold, all of one group, already.
    """

    kind: Kind
    groups: Groups
    owners: tuple[int, ...]
    what: str
    dims: tuple[int, ...] = ()
    perm: tuple[tuple[int, int], ...] = ()
    reduced: bool = False

    def shape(self, shard: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a shard of the result."""
        count = len(self.groups[0])
        if self.kind is Kind.GATHER:
            return (count, *shard)
        sizes = list(shard)
        if self.kind in (Kind.SCATTERED_SUM, Kind.TRANSPOSE):
            sizes[self.dims[0]] //= count
        if self.kind is Kind.TRANSPOSE:
            sizes[self.dims[1]] *= count
        return tuple(sizes)

    @property
    def gives_one(self) -> bool:
        """Whether all devices of this process get the same."""
        if self.reduced:
            return True
        plan = plan_of(self.groups, self.owners, job.index)
        return (self.kind in _COMMON and len(plan.own) == 1) or len(plan.local) == 1


REDUCTIONS: dict[Kind, np.ufunc] = {
    Kind.SUM: np.add, Kind.MAXIMUM: np.maximum, Kind.MINIMUM: np.minimum}
# All members of a group get the same.
_COMMON = (*REDUCTIONS, Kind.GATHER)


class Batch:
    """The groups that the same processes share: one exchange does for all of them.

    Attributes:
      processes: those that have members, in order.
      groups: each as rows of (process, which of its members) in the order of the group.
      rows: for each group the rows, among this process's devices, of its members here.
      most, even: how many members of a group each process has at most; whether all have as many.
      is_here: whether this process alone has members.
    """

    def __init__(self, processes: tuple[int, ...], groups: Sequence[Sequence[int]],
                 owners: Sequence[int], row_of: dict[int, int]):
        self.processes = processes
        self.rows: list[list[int]] = []
        self.positions: list[list[int]] = []      # in the group, of the members here
        self.sources: list[list[tuple[int, int]]] = []
        counts: set[int] = set()
        me = job.index
        for group in groups:
            seen = dict.fromkeys(processes, 0)
            source = []
            for position in group:
                owner = owners[position]
                source.append((processes.index(owner), seen[owner]))
                seen[owner] += 1
            self.sources.append(source)
            self.rows.append([row_of[position] for position in group if owners[position] == me])
            self.positions.append(
                [number for number, position in enumerate(group) if owners[position] == me])
            counts.update(seen.values())
        self.most = max(counts)
        self.even = len(counts) == 1
        self.is_here = processes == (me,)
        # Whether what the processes have, one after another, is the one group.
        self.is_in_order = self.sources == [[(number, 0) for number in range(len(processes))]]

    @property
    def group(self) -> Group:
        return connection.among(self.processes)


class Plan:
    """How this process takes part in a collective.

    Attributes:
      local: the positions of its devices in the mesh.
      batches: in the order in which all take them.
      own: for each batch, numbered through, the groups with members here.
    """

    def __init__(self, groups: Groups, owners: tuple[int, ...], index: int):
        self.local = [position for position, owner in enumerate(owners) if owner == index]
        row_of = {position: row for row, position in enumerate(self.local)}
        sets: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        self.own: list[tuple[int, ...]] = []
        for group in groups:
            processes = tuple(sorted({owners[position] for position in group}))
            if index in processes:
                sets.setdefault(processes, []).append(group)
                self.own.append(group)
        self.batches = [Batch(processes, batch, owners, row_of)
                        for processes, batch in sets.items()]


@caches.memoized
def plan_of(groups: Groups, owners: tuple[int, ...], index: int) -> Plan:
    return Plan(groups, owners, index)


# --- the exchange itself --------------------------------------------------------------------------


def exchanged(x: np.ndarray, exchange: Exchange) -> np.ndarray:
    """The collective on the shards of this process's devices.

    Args:
      x: (devices, *shard); (1, *shard) where it is reduced.

    Returns:
      (devices, *shard of the result), or without the first dimension where all get the same.
    """
    plan = plan_of(exchange.groups, exchange.owners, job.index)
    x = np.asarray(x, order="C")
    direct = _direct(exchange, len(x))
    if direct is not None:
        return direct(x)
    results: dict[int, np.ndarray] = {}
    for batch in plan.batches:
        _KINDS[exchange.kind](x, exchange, batch, results)
    if exchange.gives_one:
        return np.asarray(results[0], order="C")
    return np.stack([results[row] for row in range(len(plan.local))])


Results = dict[int, np.ndarray]


class _Direct(Protocol):
    """An exchange in which other processes are sent just the operand, and what comes of it is the
    result."""

    def __call__(self, x: np.ndarray, result: np.ndarray | None = None,
                 native: NativeCollective | None = None) -> np.ndarray:
        """Exchanges.

        Args:
          result: where to put it.
          native: made ready to do it from now on.
        """


def _direct(exchange: Exchange, count: int) -> _Direct | None:
    """How to exchange an operand of so many rows, if that is direct."""
    batch, *others = plan_of(exchange.groups, exchange.owners, job.index).batches
    if others or batch.is_here:
        return None
    if exchange.kind in REDUCTIONS:
        return _direct_reduction(exchange, batch) if (
            exchange.reduced or batch.rows == [[row] for row in range(count)]) else None
    if not batch.is_in_order or exchange.reduced or any(exchange.dims):
        return None
    if exchange.kind is Kind.PERMUTE:
        return None if any(source == target for source, target in exchange.perm) else (
            _direct_permutation(exchange, batch))
    return _direct_blocks(exchange, batch)


def _direct_reduction(exchange: Exchange, batch: Batch) -> _Direct:
    function, what, gives_one = REDUCTIONS[exchange.kind], exchange.what, exchange.gives_one

    def reduce(x: np.ndarray, result: np.ndarray | None = None,
               native: NativeCollective | None = None) -> np.ndarray:
        if result is not None:
            result = result.reshape(x.shape)
        total = batch.group.all_reduce(x, function, what, result, native)
        return total[0] if gives_one else total

    return reduce


def _direct_blocks(exchange: Exchange, batch: Batch) -> _Direct:
    kind, what = exchange.kind, exchange.what

    def run(x: np.ndarray, result: np.ndarray | None = None,
            native: NativeCollective | None = None) -> np.ndarray:
        shard, group = x[0], batch.group
        if kind is Kind.GATHER:
            return group.all_gather(shard, what, result, native)
        if kind is Kind.TRANSPOSE:
            return group.all_to_all(shard, what, result, native)
        if result is not None:
            result = result.reshape(shard.shape[1:])
        return group.reduce_scatter(shard, what, result, native)[None]

    return run


def _direct_permutation(exchange: Exchange, batch: Batch) -> _Direct:
    me = batch.processes.index(job.index)
    sources = [source for source, target in exchange.perm if target == me]
    targets = [target for source, target in exchange.perm if source == me]

    def permute(x: np.ndarray, result: np.ndarray | None = None,
                native: NativeCollective | None = None) -> np.ndarray:
        shard = x[0, ...]
        if result is None:
            result = np.empty_like(shard)
        if not sources:
            result[...] = 0
        batch.group.permute(dict.fromkeys(targets, shard), dict.fromkeys(sources, result),
                            exchange.perm, f"{exchange.what} of {x.dtype.name}{list(shard.shape)}",
                            native)
        return result

    return permute


class ExchangeStep:
    """``ordered_exchange_p`` in a native program: its arrays are (value, token, result, token).

    Attributes:
      native_name: of the pack's function that has MPI do it, without Python.
    """

    def __init__(self, exchange: Exchange):
        self._exchange = exchange
        self._direct: _Direct | None = None
        self._is_known = False
        self.native_name = "mpi_collective" if connection.is_mpi else None

    def native(self) -> NativeCollective:
        return NativeCollective()

    def __call__(self, *arrays: np.ndarray, native: NativeCollective | None = None) -> None:
        x, token, result, after = arrays
        after[...] = token
        if not self._is_known:
            self._direct, self._is_known = _direct(self._exchange, len(x)), True
        if self._direct is None:
            result[...] = exchanged(x, self._exchange)
        else:
            self._direct(x, result, native)


def _hand_out(batch: Batch, values: Sequence[np.ndarray], results: Results) -> None:
    """Gives all members of each group the group's value."""
    for rows, value in zip(batch.rows, values, strict=True):
        results.update(dict.fromkeys(rows, value))


def _reduce(x: np.ndarray, exchange: Exchange, batch: Batch, results: Results) -> None:
    function = REDUCTIONS[exchange.kind]
    first = batch.rows[0]
    if exchange.reduced:
        totals = x
    elif len(batch.rows) == len(first) == 1:
        totals = x[first[0]:first[0] + 1]
    else:
        totals = np.stack([x[rows[0]] if len(rows) == 1 else combined(x[rows], function)
                           for rows in batch.rows])
    if not batch.is_here:
        totals = batch.group.all_reduce(totals, function, exchange.what)
    _hand_out(batch, list(totals), results)


def _all_values(x: np.ndarray, exchange: Exchange, batch: Batch) -> list[np.ndarray]:
    """For each group the values of all members."""
    if batch.is_here:
        return [x[rows] for rows in batch.rows]
    mine = np.zeros((len(batch.rows), batch.most, *x.shape[1:]), x.dtype)
    for number, rows in enumerate(batch.rows):
        mine[number, :len(rows)] = x[rows]
    gathered = batch.group.all_gather(mine, exchange.what)
    values = []
    for number, source in enumerate(batch.sources):
        processes, members = np.array(source).T
        values.append(gathered[processes, number, members])
    return values


def _all_gather(x: np.ndarray, exchange: Exchange, batch: Batch, results: Results) -> None:
    _hand_out(batch, _all_values(x, exchange, batch), results)


def _blocks(x: np.ndarray, dim: int, count: int) -> np.ndarray:
    """(..., count * size, ...) -> (count, ..., size, ...)"""
    shape = x.shape
    return np.moveaxis(x.reshape(*shape[:dim], count, shape[dim] // count, *shape[dim + 1:]),
                       dim, 0)


def _reduce_scatter(x: np.ndarray, exchange: Exchange, batch: Batch, results: Results) -> None:
    dim, = exchange.dims
    count = len(exchange.groups[0])
    parts = [_blocks(combined(x[rows], np.add), dim, count) for rows in batch.rows]
    mine: Sequence[np.ndarray]
    if batch.is_here:
        mine = parts
    elif batch.even:
        # (process, group, member, block)
        blocks = np.empty((len(batch.processes), len(parts), batch.most, *parts[0].shape[1:]),
                          x.dtype)
        for number, (part, source) in enumerate(zip(parts, batch.sources, strict=True)):
            for block, (process, member) in zip(part, source, strict=True):
                blocks[process, number, member] = block
        mine = list(batch.group.reduce_scatter(blocks, exchange.what))
        for number, rows in enumerate(batch.rows):
            results.update(zip(rows, mine[number], strict=True))
        return
    else:
        mine = list(batch.group.all_reduce(np.stack(parts), np.add, exchange.what))
    for rows, positions, part in zip(batch.rows, batch.positions, mine, strict=True):
        results.update((row, part[position]) for row, position in zip(rows, positions, strict=True))


def _all_to_all(x: np.ndarray, exchange: Exchange, batch: Batch, results: Results) -> None:
    split, concat = exchange.dims
    count = len(exchange.groups[0])

    def put_together(pieces: Sequence[np.ndarray]) -> np.ndarray:
        return np.concatenate(pieces, axis=concat)

    if batch.is_here or not batch.even:
        for rows, positions, values in zip(
                batch.rows, batch.positions, _all_values(x, exchange, batch), strict=True):
            parts = [_blocks(value, split, count) for value in values]
            for row, position in zip(rows, positions, strict=True):
                results[row] = put_together([part[position] for part in parts])
        return
    size = batch.most
    cut = [[_blocks(x[row], split, count) for row in rows] for rows in batch.rows]
    # (process of the target, group, member here, member there, block)
    sent = np.empty((len(batch.processes), len(cut), size, size, *cut[0][0].shape[1:]), x.dtype)
    for number, (members, source) in enumerate(zip(cut, batch.sources, strict=True)):
        for here, blocks in enumerate(members):
            for block, (process, there) in zip(blocks, source, strict=True):
                sent[process, number, here, there] = block
    received = batch.group.all_to_all(sent, exchange.what)
    for number, (rows, source) in enumerate(zip(batch.rows, batch.sources, strict=True)):
        for here, row in enumerate(rows):
            results[row] = put_together([received[process, number, there, here]
                                         for process, there in source])


def _ppermute(x: np.ndarray, exchange: Exchange, batch: Batch, results: Results) -> None:
    nothing = np.zeros(x.shape[1:], x.dtype)
    for rows in batch.rows:
        results.update(dict.fromkeys(rows, nothing))
    # What goes from each process to each, in an order that all know.
    lanes: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for number, sources in enumerate(batch.sources):
        for start, end in exchange.perm:
            (source, member), (target, other) = sources[start], sources[end]
            lanes.setdefault((source, target), []).append((number, member, other))
    me = batch.processes.index(job.index)
    for number, member, other in lanes.get((me, me), ()):
        results[batch.rows[number][other]] = x[batch.rows[number][member]]
    between = sorted(lane for lane in lanes if lane[0] != lane[1])
    if not between:
        return
    sent = {peer: np.stack([x[batch.rows[number][member]] for number, member, _ in lane])
            for (source, peer), lane in lanes.items() if source == me != peer}
    received = {peer: np.empty((len(lane), *x.shape[1:]), x.dtype)
                for (peer, target), lane in lanes.items() if target == me != peer}
    batch.group.permute(sent, received, between,
                        f"{exchange.what} of {x.dtype.name}{list(x.shape[1:])}")
    for peer, parts in received.items():
        for part, (number, _, other) in zip(parts, lanes[peer, me], strict=True):
            results[batch.rows[number][other]] = part


_KINDS: dict[Kind, Callable[[np.ndarray, Exchange, Batch, Results], None]] = {
    **dict.fromkeys(REDUCTIONS, _reduce), Kind.GATHER: _all_gather,
    Kind.SCATTERED_SUM: _reduce_scatter, Kind.TRANSPOSE: _all_to_all, Kind.PERMUTE: _ppermute}


# --- the primitives -------------------------------------------------------------------------------


def _exchange_abstract(x: ShapedArray, *, exchange: Exchange) -> ShapedArray:
    shape = exchange.shape(x.shape[1:])
    return ShapedArray(shape if exchange.gives_one else (x.shape[0], *shape), x.dtype, x.weak_type)


exchange_p = Primitive(
    "exchange",
    abstract=_exchange_abstract,
    evaluate=exchanged,
    host=Host(reason=HOST_REASON),
    derivative=Derivative(
        missing="derivatives are taken before programs are divided over processes"),
    effects=Effectful(lambda **params: frozenset({communication_effect})),
)

def _lower_exchange(ctx: Any, x: Any, token: Any, *, exchange: Exchange) -> list[Any]:
    shape = exchange.shape(x.shape[1:])
    result = (shape if exchange.gives_one else (x.shape[0], *shape)), x.dtype
    return ctx.called_on_host(ExchangeStep(exchange), [x, token],
                              [result, (token.shape, token.dtype)],
                              f"{ordered_exchange_p.name}: {HOST_REASON}")


# With an order: of the operands the last, and of the results, is a token (``tokens.py``).
ordered_exchange_p = Primitive(
    "ordered_exchange",
    abstract=lambda x, token, *, exchange: (_exchange_abstract(x, exchange=exchange), token),
    evaluate=lambda x, token, *, exchange: [exchanged(x, exchange), token],
    lower=_lower_exchange,
    host=Host(reason=HOST_REASON),
    derivative=Derivative(
        missing="derivatives are taken before programs are divided over processes"),
    multiple_results=True,
    effects=Effectful(lambda **params: frozenset({communication_effect}), ordered_by_operands=True),
)
