"""The engine for processes started one by one: Gloo, through the binding that xoscar brings.

The extension alone is loaded: xoscar itself, and pandas with it, is not. Its store, at which
processes would meet and which anybody may write to, is not used: they meet at our own (store.py).

Gloo itself believes whoever connects and names a pair by its number. It counts pairs, so the count
begins anywhere. And a group is formed in three steps: each process waits until the others are
there; Gloo connects each with each, listening for that time alone (listener.py); and each proves to
each, over the connection that Gloo will use, that it has the job's secret.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import contextlib
import datetime
import hmac
import importlib.util
import os
import secrets
import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from maxjax._base import caches
from maxjax._base.errors import JaxRuntimeError
from maxjax._base.interrupts import context_manager
from maxjax._distributed.communicator import (
    Array,
    Communicator,
    Messages,
    Unanswered,
    combined,
)
from maxjax._distributed.listener import Listener
from maxjax._distributed.store import Client

# What is gathered is copied for each process and sent to all at once, up to so much in all.
_COPIED_BYTES = 32 << 10
# Sums of so much in all are gathered: one wait in place of several.
_GATHERED_BYTES, _GATHERED_BYTES_OF_TWO = 64 << 10, 256 << 10
_INTERRUPT = int(signal.SIGINT)
# Whole seconds after a failure for another process to say what it was doing; for the next ones
# after one that does not; how many are found missing until no more are asked.
_FIRST_SECONDS, _LATER_SECONDS, _MOST_MISSING = 2, 1, 5
# How often a group is formed anew where a stranger has come between; how long the processes, which
# are all there, take to connect and to prove who they are; a random number, and its signature.
_MOST_ATTEMPTS, _CONNECT_SECONDS, _PROVE_SECONDS, _PROOF_BYTES = 4, 20.0, 10.0, 32
_PREFIX = "maxjax/gloo/"
# A pair of processes has a random one of so many numbers. Those before it are passed over, so many
# at once, at half a microsecond each.
_MOST_NUMBERS, _NUMBERS_AT_ONCE = 1 << 16, 1 << 12


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


# What strangers have spoken to: to take it down can wait for them.
_left_alone: list[tuple[Any, ...]] = []


def _seconds(count: float) -> datetime.timedelta:
    return datetime.timedelta(seconds=count)


class _Passed(Exception):
    """Ends Gloo's attempt to connect pairs, which has counted them by then."""


class _Nobody:
    """A store at which nobody meets."""

    def set_tcp(self, key: str, value: bytes) -> None:
        raise _Passed


class _Meeting:
    """What Gloo asks of a store: each process sets the value of its rank, and then wants those of
    all. So one question to ours does."""

    def __init__(self, tell: Callable[[str], list[str]]):
        self._tell = tell
        self._told: list[str] = []

    def set_tcp(self, key: str, value: bytes) -> None:
        self._told = self._tell(value.decode("latin-1"))

    def get_tcp(self, key: str) -> bytes:
        return self._told[int(key)].encode("latin-1")

    def wait(self, keys: Sequence[str]) -> None:
        """They are there."""


class GlooCommunicator(Communicator):
    """All processes, or some, connected each with each."""

    summed = frozenset({"float32", "float64", "int8", "int32", "int64", "uint8", "uint32",
                        "uint64"})
    tagged = True

    def __init__(self, client: Client, key: bytes, address: str, timeout: float,
                 numbers: Sequence[int], rank: int, listeners: list[Listener], contexts: list[Any]):
        """
        Args:
          client: by which the processes have met.
          key: of the job.
          address: where this process listens for the others.
          numbers: of the processes, in the group of all.
          listeners: the one of this process, for all groups, once there is one.
          contexts: of the groups of this process so far.
        """
        self._client, self._key = client, key
        self._listeners, self._contexts = listeners, contexts
        self._library = _library()
        self._bytes, _ = _kinds()["uint8"]
        self._timeout = timeout
        self._numbers = numbers
        self.address = address
        self.rank, self.size = rank, len(numbers)

    @classmethod
    def connect(cls, client: Client, key: bytes, address: str, size: int, rank: int,
                timeout: float) -> GlooCommunicator:
        """All processes, which have met.

        Raises:
          Unanswered: one does not connect.
        """
        made = cls(client, key, address, timeout, range(size), rank, [], [])
        made._connect("all", is_met=True)
        return made

    def _connect(self, name: str, is_met: bool = False) -> None:
        """Connects the processes of this group, under a name that no other group has.

        Args:
          is_met: they have met just now.

        Raises:
          Unanswered: one does not connect, or somebody else did each time.
        """
        reasons: list[str] = []
        for attempt in range(_MOST_ATTEMPTS):
            place = f"{_PREFIX}{name}/{attempt}/"
            try:
                # One that is late shall not have the others listen for it.
                if attempt or not is_met:
                    self._tell(place, "", self._timeout)
                # All listen until all have connected: one whose place was taken would wait. And
                # all go on, or none.
                with self._listener().hearing():
                    reason = self._attempt(place)
                    said = self._tell(f"{place}proved", reason or "",
                                      _CONNECT_SECONDS + self._timeout)
            except JaxRuntimeError as error:
                raise Unanswered(_first_line(error)) from error
            reasons = [f"process {number}: {text}"
                       for number, text in zip(self._numbers, said, strict=True) if text]
            if not reasons:
                self._contexts.append(self._context)
                return
            # The next attempt is at a port that nobody has seen.
            _left_alone.append((self._context, *self._listeners))
            self._listeners.clear()
        raise Unanswered(f"in {_MOST_ATTEMPTS} attempts the processes did not connect, or a "
                         "stranger came between: " + "; ".join(reasons))

    def _tell(self, place: str, text: str, seconds: float) -> list[str]:
        return self._client.tell(place, text, int(seconds * 1e3), self._numbers)

    def _listener(self) -> Listener:
        if not self._listeners:
            try:
                self._listeners.append(Listener(self._device))
            except RuntimeError as error:
                raise Unanswered(
                    f"one cannot listen at {self.address}: {_first_line(error)}") from error
        return self._listeners[0]

    def _device(self) -> Any:
        """A device that listens, whose next pair has a number that nobody can guess."""
        library = self._library
        tcp, rendezvous = library.transport.tcp, library.rendezvous
        device = tcp.CreateDevice(tcp.attr(self.address))
        left = secrets.randbelow(_MOST_NUMBERS)
        while left:
            many = min(left, _NUMBERS_AT_ONCE)
            with contextlib.suppress(_Passed):      # one with each of the others
                rendezvous.Context(0, many + 1).connectFullMesh(
                    rendezvous.CustomStore(_Nobody()), device)
            left -= many
        return device

    def _attempt(self, place: str) -> str | None:
        """Connects the processes of the group; why one of them is not who it should be, if so."""
        library = self._library
        self._context = context = library.rendezvous.Context(self.rank, self.size)
        context.setTimeout(_seconds(_CONNECT_SECONDS))
        meeting = library.rendezvous.CustomStore(_Meeting(
            lambda text: self._tell(f"{place}addresses", text, _CONNECT_SECONDS)))
        try:
            with _ended_by_interrupt():
                context.connectFullMesh(meeting, self._listener().opened)
            context.setTimeout(_seconds(_PROVE_SECONDS))
            self._prove(place)
        except JaxRuntimeError:
            raise
        except (RuntimeError, Unanswered) as error:
            return _first_line(error)
        context.setTimeout(_seconds(self._timeout))
        return None

    def _prove(self, place: str) -> None:
        """Has each process sign a random number of each other one's.

        Raises:
          Unanswered: one does not answer, or is not who it should be.
        """
        given = np.frombuffer(os.urandom(self.size * _PROOF_BYTES), np.uint8).reshape(
            self.size, _PROOF_BYTES)
        asked = self.all_to_all(given, 0)
        proofs = np.stack([self._signed(place, self.rank, other, asked[other])
                           for other in range(self.size)])
        got = self.all_to_all(proofs, 0)
        for other in range(self.size):
            expected = self._signed(place, other, self.rank, given[other])
            if not hmac.compare_digest(expected.tobytes(), got[other].tobytes()):
                raise Unanswered(f"who connects as process {self._numbers[other]} does not have "
                                 "the job's secret", other)

    def _signed(self, place: str, sender: int, receiver: int, random: Array) -> Array:
        return np.frombuffer(hmac.digest(
            self._key, f"{place} {sender} {receiver} ".encode() + random.tobytes(), "sha256"),
            np.uint8)

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
        made = GlooCommunicator(
            self._client, self._key, self.address, self._timeout,
            [self._numbers[member] for member in members], members.index(self.rank),
            self._listeners, self._contexts)
        made._connect(name)
        return made

    def reports(self, text: str) -> dict[int, str | None] | None:
        me = self._numbers[self.rank]
        everybody = range(self._contexts[0].size)
        self.close(True)
        try:
            self._say(f"failed {me}", text)
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
        except ConnectionError:
            # What keeps the values has ended, and this process 0 that it is beside.
            return None if me == 0 else {
                number: text if number else None for number in everybody}

    def _say(self, key: str, text: str) -> None:
        """
        Raises:
          ConnectionError: nobody keeps values any more.
        """
        try:
            self._client.key_value_set(
                _PREFIX + key, text.encode("ascii", "replace").decode(), allow_overwrite=True)
        except JaxRuntimeError as error:
            raise ConnectionError(str(error)) from error

    def _said(self, key: str, seconds: int) -> str | None:
        """What a process said; None: nothing in that time.

        Raises:
          ConnectionError: nobody keeps values any more.
        """
        try:
            return self._client.blocking_key_value_get(_PREFIX + key, seconds * 1000)
        except JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" in str(error):
                return None
            raise ConnectionError(str(error)) from error

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


@context_manager
def _ended_by_interrupt() -> Iterator[None]:
    ends = _interrupt_ends()
    try:
        yield
    finally:
        if ends:
            _interrupt_raises()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].partition(". This is typically")[0]
