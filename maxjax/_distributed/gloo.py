"""The engine for processes started one by one: Gloo, through the binding that xoscar brings.

The extension alone is loaded: xoscar itself, and pandas with it, is not.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import contextlib
import datetime
import importlib.util
import signal
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from maxjax._base import caches
from maxjax._distributed.communicator import (
    Array,
    Communicator,
    Messages,
    Unanswered,
    combined,
    own_address,
)

# What is gathered is copied for each process and sent to all at once, up to so much in all.
_COPIED_BYTES = 32 << 10
# Sums of so much in all are gathered: one wait in place of several.
_GATHERED_BYTES, _GATHERED_BYTES_OF_TWO = 64 << 10, 256 << 10
_INTERRUPT = int(signal.SIGINT)
# What is kept for the next sum.
_MOST_ROOM = 8 << 20
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


@caches.memoized
def _kinds() -> dict[str, tuple[Any, int]]:
    """Gloo's types, with their sizes in bytes."""
    kinds = _library().GlooDataType_t
    return {name: (getattr(kinds, f"gloo{name.capitalize()}"), np.dtype(name).itemsize)
            for name in GlooCommunicator.summed}


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
        self._library = _library()
        self._bytes, _ = _kinds()["uint8"]
        self._timeout = timeout
        self._numbers = numbers
        self.address = own_address(place[0])
        self.rank, self.size = rank, len(numbers)

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
            if rank:
                _wait_for_listener(address, port, start_timeout)
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

    def _run(self, function: Any, value: Array, result: Array, *rest: Any, dtype: str = "uint8"
             ) -> Array:
        kind, itemsize = _kinds()[dtype]
        self._call(function, value.ctypes.data, result.ctypes.data, value.nbytes // itemsize, kind,
                   *rest)
        return result

    def _call(self, function: Any, *args: Any, peer: int | None = None) -> None:
        ends = _interrupt_ends()
        try:
            function(self._context, *args)
        except RuntimeError as error:
            raise Unanswered(_first_line(error), peer) from error
        finally:
            if ends:
                _interrupt_raises()

    def exchange(self, messages: Messages) -> None:
        self._call(self._library.all_to_all, *messages.addresses, messages.sent.nbytes,
                   self._bytes, 0)

    def all_reduce(self, value: Array, tag: int, result: Array | None = None) -> Array:
        result = np.empty_like(value) if result is None else result
        total = value.nbytes * (self.size - 1)
        if total <= (_GATHERED_BYTES_OF_TWO if self.size == 2 else _GATHERED_BYTES):
            return combined(self.all_gather(value, tag), np.add, result)
        # The halving that Gloo calls BCUBE waits less often than the ring.
        library = self._library
        return self._run(library.allreduce, value, result, library.ReduceOp.SUM,
                         library.AllreduceAlgorithm.RING if self.size & self.size - 1
                         else library.AllreduceAlgorithm.BCUBE, tag, dtype=value.dtype.name)

    def all_gather(self, value: Array, tag: int, result: Array | None = None) -> Array:
        if value.nbytes * (self.size - 1) <= _COPIED_BYTES:
            return self._gathered_at_once(value, tag, result)
        if result is None:
            result = np.empty((self.size, *value.shape), value.dtype)
        return self._run(self._library.allgather, value, result, tag)

    def _gathered_at_once(self, value: Array, tag: int, result: Array | None) -> Array:
        # By Gloo's all-gather everything goes round from process to process, in halves.
        copies = np.empty((self.size, *value.shape), value.dtype)
        copies[...] = value
        return self.all_to_all(copies, tag, result)

    def all_to_all(self, blocks: Array, tag: int, result: Array | None = None) -> Array:
        result = np.empty_like(blocks) if result is None else result
        return self._run(self._library.all_to_all, blocks, result, tag)

    def reduce_scatter(self, blocks: Array, tag: int, result: Array | None = None) -> Array:
        # Half of what an all-reduce sends.
        return combined(self.all_to_all(blocks, tag), np.add, result)

    def broadcast(self, value: Array, root: int, tag: int) -> Array:
        return self._run(self._library.broadcast, value, np.array(value), root, tag)

    def permute(self, sent: Mapping[int, Array], received: Mapping[int, Array],
                lanes: Sequence[tuple[int, int]], tag: int) -> None:
        # A send ends when the other side receives. All take the lanes in one order, in which those
        # that follow one another are of different processes, as far as possible: nobody waits in a
        # circle, and few wait in a row.
        for source, target in in_rounds(lanes):
            if source == self.rank:
                self._with(target, self._library.send, sent[target], tag)
            elif target == self.rank:
                self._with(source, self._library.recv, received[source], tag)

    def _with(self, peer: int, function: Any, value: Array, tag: int) -> None:
        self._call(function, value.ctypes.data, value.nbytes, self._bytes, peer, tag, peer=peer)

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


def _wait_for_listener(address: str, port: int, seconds: float) -> None:
    """Waits until somebody listens: Gloo's store looks again after a second only.

    Raises:
      OSError: nobody does in time.
    """
    deadline, pause = time.monotonic() + seconds, 0.002
    while True:
        try:
            socket.create_connection((address, port), seconds).close()
            return
        except OSError:
            if time.monotonic() + pause > deadline:
                raise
        time.sleep(pause)
        pause = min(2 * pause, 0.1)


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


def _interrupt_ends() -> bool:
    """While Gloo waits no Python runs, not even the handler of Ctrl-C: from now on that ends the
    process. Whether it has not done so before. (`signal` itself makes enumerations of its results,
    which takes a tenth of the time that a small collective does.)"""
    if (threading.get_ident() != threading.main_thread().ident
            or _signal.getsignal(_INTERRUPT) is not signal.default_int_handler):
        return False
    _signal.signal(_INTERRUPT, _signal.SIG_DFL)
    return True


def _interrupt_raises() -> None:
    _signal.signal(_INTERRUPT, signal.default_int_handler)


@contextlib.contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    ends = _interrupt_ends()
    try:
        yield
    finally:
        if ends:
            _interrupt_raises()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].partition(". This is typically")[0]
