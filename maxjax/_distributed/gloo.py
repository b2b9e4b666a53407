"""The engine for processes started one by one: Gloo, through the binding that xoscar brings.

The extension alone is loaded: xoscar itself, and pandas with it, is not.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib.util
import signal
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from maxjax._base import caches
from maxjax._distributed.communicator import Array, Communicator, Unanswered, own_address

# Sums of so much in all are gathered: one wait in place of several. Between two processes no more
# is sent so, and the limit is what is kept for it.
_GATHERED_BYTES, _GATHERED_BYTES_OF_TWO = 64 << 10, 4 << 20
# Whole seconds after a failure for another process to say what it was doing; for the next ones
# after one that does not; how many are found missing until no more are asked.
_FIRST_SECONDS, _LATER_SECONDS, _MOST_MISSING = 2, 1, 5


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


def _seconds(count: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=count)


class GlooCommunicator(Communicator):
    """All processes, or some, connected each with each through a common store."""

    summed = frozenset({"float32", "float64", "int8", "int32", "int64", "uint8", "uint32",
                        "uint64"})
    tagged = True

    def __init__(self, place: tuple[str, int], contexts: list[Any], store: Any, device: Any,
                 timeout: float, numbers: Sequence[int], rank: int):
        """
        Args:
          place: address and port of the store.
          contexts: of the groups of this process so far; the last is that of this group.
          numbers: of the processes, in the group of all.
        """
        self._contexts, self._context = contexts, contexts[-1]
        self._place, self._store, self._device = place, store, device
        self._timeout = timeout
        self._numbers = numbers
        self.address = own_address(place[0])
        self.rank, self.size = rank, len(numbers)
        self._rooms: list[Array] = []       # for what is gathered

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
                library.transport.tcp.attr(own_address(address)))
            return cls._joined((address, port), [], store, device, "all", rank, range(size),
                               timeout, start_timeout)
        except (RuntimeError, OSError) as error:
            raise Unanswered(str(error)) from error

    @classmethod
    def _joined(cls, place: tuple[str, int], contexts: list[Any], store: Any, device: Any,
                name: str, rank: int, numbers: Sequence[int], timeout: float, start_timeout: float
                ) -> GlooCommunicator:
        library = _library()
        context = library.rendezvous.Context(rank, len(numbers))
        context.setTimeout(_seconds(start_timeout))
        with _ended_by_interrupt():
            context.connectFullMesh(library.rendezvous.PrefixStore(name, store), device)
        context.setTimeout(_seconds(timeout))
        contexts.append(context)
        return cls(place, contexts, store, device, timeout, numbers, rank)

    def _run(self, function: str, value: Array, result: Array, dtype: str, *rest: Any) -> Array:
        library = _library()
        kind = getattr(library.GlooDataType_t, f"gloo{dtype.capitalize()}")
        count = value.nbytes // np.dtype(dtype).itemsize
        try:
            with _ended_by_interrupt():
                getattr(library, function)(self._context, value.ctypes.data, result.ctypes.data,
                                           count, kind, *rest)
        except RuntimeError as error:
            raise Unanswered(_first_line(error)) from error
        return result

    def exchange(self, message: Array) -> Array:
        return self.all_gather(message, 0)

    def all_reduce(self, value: Array, tag: int, result: Array | None = None) -> Array:
        result = np.empty_like(value) if result is None else result
        if value.nbytes * (self.size - 1) <= (
                _GATHERED_BYTES_OF_TWO if self.size == 2 else _GATHERED_BYTES):
            return self._gathered_sum(value, tag, result)
        # The halving that Gloo calls BCUBE waits less often than the ring where there are more.
        library = _library()
        halves = self.size > 2 and self.size & self.size - 1 == 0
        return self._run("allreduce", value, result, value.dtype.name,
                         library.ReduceOp.SUM, library.AllreduceAlgorithm.BCUBE if halves
                         else library.AllreduceAlgorithm.RING, tag)

    def _gathered_sum(self, value: Array, tag: int, result: Array) -> Array:
        # Fresh memory costs as much as the exchange. Threads that sum at once each take their own.
        room = self._rooms.pop() if self._rooms else np.empty(0, np.uint8)
        if room.size < self.size * value.nbytes:
            room = np.empty(self.size * value.nbytes, np.uint8)
        gathered = room[:self.size * value.nbytes].view(value.dtype).reshape(
            self.size, *value.shape)
        self.all_gather(value, tag, gathered)
        result[...] = gathered[0]
        for rank in range(1, self.size):
            np.add(result, gathered[rank], out=result)
        self._rooms.append(room)
        return result

    def all_gather(self, value: Array, tag: int, result: Array | None = None) -> Array:
        if result is None:
            result = np.empty((self.size, *value.shape), value.dtype)
        return self._run("allgather", value, result, "uint8", tag)

    def all_to_all(self, blocks: Array, tag: int) -> Array:
        return self._run("all_to_all", blocks, np.empty_like(blocks), "uint8", tag)

    def reduce_scatter(self, blocks: Array, tag: int) -> Array:
        # Half of what an all-reduce sends.
        received = self.all_to_all(blocks, tag)
        total = received[0, ...]
        for rank in range(1, self.size):
            np.add(total, received[rank], out=total)
        return total

    def broadcast(self, value: Array, root: int, tag: int) -> Array:
        return self._run("broadcast", value, np.array(value), "uint8", root, tag)

    def permute(self, sent: Mapping[int, Array], received: Mapping[int, Array],
                lanes: Sequence[tuple[int, int]], tag: int) -> None:
        # A send ends when the other side receives. All take the lanes in one order, in which those
        # that follow one another are of different processes, as far as possible: nobody waits in a
        # circle, and few wait in a row.
        library = _library()
        kind = library.GlooDataType_t.glooUint8
        for source, target in in_rounds(lanes):
            if source == self.rank:
                self._with(target, library.send, sent[target], kind, target, tag)
            elif target == self.rank:
                self._with(source, library.recv, received[source], kind, source, tag)

    def _with(self, peer: int, function: Any, value: Array, *rest: Any) -> None:
        try:
            with _ended_by_interrupt():
                function(self._context, value.ctypes.data, value.nbytes, *rest)
        except RuntimeError as error:
            raise Unanswered(_first_line(error), peer) from error

    def subgroup(self, members: Sequence[int], name: str) -> Communicator:
        try:
            return self._joined(
                self._place, self._contexts, self._store, self._device, name,
                members.index(self.rank), [self._numbers[member] for member in members],
                self._timeout, self._timeout)
        except RuntimeError as error:
            raise Unanswered(_first_line(error)) from error

    def reports(self, text: str) -> dict[int, str | None] | None:
        me = self._numbers[self.rank]
        everybody = range(self._contexts[0].size)
        self._say(f"failed {me}", text)
        self.close(True)
        if self._said(f"failed {me}", _FIRST_SECONDS) is None:
            # The store is process 0's: that is missing.
            return {number: text if number else None for number in everybody}
        found: dict[int, str | None] = {me: text}
        missing = 0
        for number in sorted(everybody, key=lambda number: number not in self._numbers):
            if number != me and missing < _MOST_MISSING:
                found[number] = self._said(
                    f"failed {number}", _LATER_SECONDS if missing else _FIRST_SECONDS)
                missing += found[number] is None
        self._say(f"known {me}", "")
        if me == 0:      # what was said can be read as long as this process runs
            for number, said in found.items():
                if said is not None:
                    self._said(f"known {number}", _FIRST_SECONDS)
        return found

    def _say(self, key: str, text: str) -> None:
        with contextlib.suppress(RuntimeError):
            self._store.set(key, list(text.encode("ascii", "replace").decode() or " "))

    def _said(self, key: str, seconds: int) -> str | None:
        """What a process said; None: nothing in that time. Asks by a connection of its own, of
        which a wait that has timed out leaves nothing behind."""
        options = _library().rendezvous.TCPStoreOptions()
        options.port, options.numWorkers = self._place[1], self._contexts[0].size
        options.isServer, options.waitWorkers = False, False
        options.timeout = _seconds(seconds)
        try:
            with _ended_by_interrupt():
                store = _library().rendezvous.TCPStore(self._place[0], options)
                return "".join(store.get(key))
        except RuntimeError:
            return None

    def close(self, failed: bool) -> None:
        for context in self._contexts:
            context.closeConnections()


def in_rounds(lanes: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The lanes in rounds, in which each process is in one lane at most, one after another."""
    rounds: list[list[tuple[int, int]]] = []
    for lane in sorted(lanes):
        free = next((part for part in rounds
                     if all(not set(lane) & set(other) for other in part)), None)
        if free is None:
            rounds.append([lane])
        else:
            free.append(lane)
    return [lane for part in rounds for lane in part]


@contextlib.contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    """While Gloo waits no Python runs, not even the handler of Ctrl-C: that ends the process."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or (
            threading.current_thread() is not threading.main_thread()):
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].partition(". This is typically")[0]
