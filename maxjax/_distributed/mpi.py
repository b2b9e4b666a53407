"""The engine for processes that ``mpiexec`` or ``srun`` started: MPI, through mpi4py."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._base.lazy import mpi as MPI
from maxjax._distributed.addresses import own_address
from maxjax._distributed.communicator import (
    Array,
    Communicator,
    Messages,
    Unanswered,
)

# Exchanges with so many processes go from each to each, so that a missing one can be named.
_FEW = 16
# Before a process that has failed ends the others: time for these to say what they know.
_GRACE_SECONDS = 1.0


def _bytes(value: Array) -> Array:
    return value.reshape(-1).view(np.uint8)


class MPICommunicator(Communicator):
    """All processes, or some.

    Attributes:
      comm: their intracommunicator, of mpi4py.
      timeout: seconds within which the others must answer.
      names_missing: whether messages go from each to each.
    """

    summed = frozenset({"float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
                        "uint32", "uint64", "complex64", "complex128"})

    def __init__(self, timeout: float, comm: Any = None):
        self._on_one_machine = False
        if comm is None:
            comm = MPI.COMM_WORLD.Dup()
            beside = comm.Split_type(MPI.COMM_TYPE_SHARED)
            self._on_one_machine = beside.Get_size() == comm.Get_size()
            beside.Free()
        self.comm = comm
        self.timeout = timeout
        self.rank, self.size = self.comm.Get_rank(), self.comm.Get_size()
        self.names_missing = self.size <= _FEW

    @property
    def address(self) -> str:       # type: ignore[override]
        if self._on_one_machine:
            return "127.0.0.1"
        try:
            return own_address()
        except OSError:     # there is no network
            return "127.0.0.1"

    def _wait(self, requests: Sequence[Any], peers: Sequence[int] | None = None) -> None:
        """Waits for requests that do not block, giving way to other processes.

        Args:
          peers: the process that each request waits for.
        """
        deadline = time.monotonic() + self.timeout
        spins = 0
        try:
            while not MPI.Request.Testall(requests):
                spins += 1
                if spins < 100:
                    continue
                if time.monotonic() > deadline:
                    missing = None
                    if peers is not None:
                        missing = next((peer for peer, request in zip(peers, requests, strict=True)
                                        if request != MPI.REQUEST_NULL and not request.Test()),
                                       None)
                    raise Unanswered(f"no answer within {self.timeout:g} s", missing)
                time.sleep(0 if spins < 5000 else 1e-4)
        except MPI.Exception as error:
            raise Unanswered(str(error)) from error

    def exchange(self, messages: Messages) -> None:
        sent, received = messages.sent, messages.received
        if not self.names_missing:
            self.all_gather(sent[self.rank], 0, received)
            return
        received[self.rank] = sent[self.rank]
        peers = [peer for peer in range(self.size) if peer != self.rank]
        receives = [self.comm.Irecv(received[peer], peer, 0) for peer in peers]
        sends = [self.comm.Isend(sent[peer], peer, 0) for peer in peers]
        self._wait([*receives, *sends], [*peers, *peers])

    def all_reduce(self, value: Array, tag: int, result: Array | None = None) -> Array:
        result = np.empty_like(value) if result is None else result
        self._wait([self.comm.Iallreduce(value, result, MPI.SUM)])
        return result

    def all_gather(self, value: Array, tag: int, result: Array | None = None) -> Array:
        if result is None:
            result = np.empty((self.size, *value.shape), value.dtype)
        self._wait([self.comm.Iallgather(_bytes(value), _bytes(result))])
        return result

    def all_to_all(self, blocks: Array, tag: int, result: Array | None = None) -> Array:
        result = np.empty_like(blocks) if result is None else result
        self._wait([self.comm.Ialltoall(_bytes(blocks), _bytes(result))])
        return result

    def reduce_scatter(self, blocks: Array, tag: int, result: Array | None = None) -> Array:
        if result is None:
            result = np.empty(blocks.shape[1:], blocks.dtype)
        self._wait([self.comm.Ireduce_scatter_block(blocks, result, MPI.SUM)])
        return result

    def broadcast(self, value: Array, root: int, tag: int) -> Array:
        result = np.array(value)
        self._wait([self.comm.Ibcast(_bytes(result), root)])
        return result

    def permute(self, sent: Mapping[int, Array], received: Mapping[int, Array],
                lanes: Sequence[tuple[int, int]], tag: int) -> None:
        receives = [self.comm.Irecv(_bytes(value), peer, 1) for peer, value in received.items()]
        sends = [self.comm.Isend(_bytes(value), peer, 1) for peer, value in sent.items()]
        self._wait([*receives, *sends], [*received, *sent])

    def subgroup(self, members: Sequence[int], name: str) -> Communicator:
        group = self.comm.Get_group().Incl(list(members))
        return MPICommunicator(self.timeout, self.comm.Create_group(group))

    def close(self, failed: bool) -> None:
        if failed:
            time.sleep(_GRACE_SECONDS)
            MPI.COMM_WORLD.Abort(1)
