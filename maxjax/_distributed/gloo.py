"""The engine for processes started one by one: Gloo, through the binding that xoscar brings.

The extension alone is loaded: xoscar itself, and pandas with it, is not.
"""

from __future__ import annotations

import datetime
import importlib.util
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from maxjax._base import caches
from maxjax._distributed.communicator import Array, Communicator, Unanswered

# Exchanges among so many processes go from each to each, so that a missing one can be named.
_FEW = 8


@caches.memoized
def _library() -> Any:
    """The extension module.

    Raises:
      ImportError: xoscar is not installed.
    """
    found = importlib.util.find_spec("xoscar")
    if found is None or found.origin is None:
        raise ImportError("several processes without MPI need Gloo, which the package xoscar "
                          "brings: pip install 'maxjax[distributed]'")
    folder = Path(found.origin).parent / "collective"
    path = next(iter(sorted(folder.glob("xoscar_pygloo*.so"))), None)
    spec = None if path is None else importlib.util.spec_from_file_location("xoscar_pygloo", path)
    if spec is None or spec.loader is None:
        raise ImportError(f"xoscar has no Gloo in {folder}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _own_address(host: str, port: int) -> str:
    """The address of this machine that the coordinator sees."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((host, port))
        return probe.getsockname()[0]


def _seconds(count: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=count)


class GlooCommunicator(Communicator):
    """All processes, or some, connected each with each through a common store."""

    summed = frozenset({"float32", "float64", "int8", "int32", "int64", "uint8", "uint32",
                        "uint64"})

    def __init__(self, context: Any, store: Any, device: Any, timeout: float, rank: int, size: int):
        self._context, self._store, self._device = context, store, device
        self._timeout = timeout
        self.rank, self.size = rank, size

    @classmethod
    def connect(cls, host: str, port: int, size: int, rank: int, timeout: float,
                start_timeout: float) -> GlooCommunicator:
        """Joins the others at the coordinator's address, where process 0 listens.

        Raises:
          Unanswered: not all have come in time.
        """
        library = _library()
        options = library.rendezvous.TCPStoreOptions()
        options.port, options.numWorkers = port, size
        options.isServer, options.waitWorkers = rank == 0, False
        options.timeout = _seconds(start_timeout)
        try:
            address = socket.gethostbyname(host)
            store = library.rendezvous.TCPStore(address, options)
            device = library.transport.tcp.CreateDevice(
                library.transport.tcp.attr(_own_address(address, port)))
            return cls._joined(store, device, "all", rank, size, timeout, start_timeout)
        except (RuntimeError, OSError) as error:
            raise Unanswered(str(error)) from error

    @classmethod
    def _joined(cls, store: Any, device: Any, name: str, rank: int, size: int, timeout: float,
                start_timeout: float) -> GlooCommunicator:
        library = _library()
        context = library.rendezvous.Context(rank, size)
        context.setTimeout(_seconds(start_timeout))
        context.connectFullMesh(library.rendezvous.PrefixStore(name, store), device)
        context.setTimeout(_seconds(timeout))
        return cls(context, store, device, timeout, rank, size)

    def _run(self, function: str, value: Array, result: Array, dtype: str, *rest: Any) -> Array:
        library = _library()
        kind = getattr(library.GlooDataType_t, f"gloo{dtype.capitalize()}")
        count = value.nbytes // np.dtype(dtype).itemsize
        try:
            getattr(library, function)(self._context, value.ctypes.data, result.ctypes.data, count,
                                       kind, *rest)
        except RuntimeError as error:
            raise Unanswered(_first_line(error)) from error
        return result

    def exchange(self, message: Array) -> Array:
        if self.size == 2:
            try:
                return self.all_gather(message)
            except Unanswered as error:
                raise Unanswered(str(error), 1 - self.rank) from error
        if self.size > _FEW:
            return self.all_gather(message)
        library = _library()
        result = np.empty((self.size, *message.shape), message.dtype)
        result[self.rank] = message
        peers = [peer for peer in range(self.size) if peer != self.rank]
        kind = library.GlooDataType_t.glooUint8
        # A send ends when the other side receives. All take the pairs in the same order, and the
        # first process of each sends first: nobody waits in a circle.
        for peer in peers:
            send = library.send, message.ctypes.data
            receive = library.recv, result[peer].ctypes.data
            for function, address in (send, receive) if self.rank < peer else (receive, send):
                self._with(peer, function, address, message.nbytes, kind, peer)
        return result

    def _with(self, peer: int, function: Any, *args: Any) -> None:
        try:
            function(self._context, *args)
        except RuntimeError as error:
            raise Unanswered(_first_line(error), peer) from error

    def all_reduce(self, value: Array) -> Array:
        return self._run("allreduce", value, np.empty_like(value), value.dtype.name,
                         _library().ReduceOp.SUM)

    def all_gather(self, value: Array) -> Array:
        result = np.empty((self.size, *value.shape), value.dtype)
        return self._run("allgather", value, result, "uint8")

    def all_to_all(self, blocks: Array) -> Array:
        return self._run("all_to_all", blocks, np.empty_like(blocks), "uint8")

    def reduce_scatter(self, blocks: Array) -> Array:
        return self.all_reduce(blocks)[self.rank].copy()

    def broadcast(self, value: Array, root: int) -> Array:
        return self._run("broadcast", value, np.array(value), "uint8", root)

    def subgroup(self, members: Sequence[int], name: str) -> Communicator:
        try:
            return self._joined(self._store, self._device, name, members.index(self.rank),
                                len(members), self._timeout, self._timeout)
        except RuntimeError as error:
            raise Unanswered(_first_line(error)) from error

    def close(self, failed: bool) -> None:
        self._context.closeConnections()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].partition(". This is typically")[0]
