"""The program that keeps what the processes of a job tell one another by name.

Process 0 starts it beside itself, on its own and with the standard library alone (without asyncio,
whose import takes longer than all else here): it answers also while that process waits in an engine
that lets no Python run. It ends when its input ends, with the process that started it. Its
arguments are a listening socket and the number of processes; its input begins with the job's key.

Strangers can connect. Until a connection has proved that it has the key, no more is read of it than
a handshake of one fixed size, within seconds, and only so many such connections are open at a time:
the oldest gives way. Each side has the other sign random bytes:

    server   GREETING, random bytes
    client   number, random bytes, signature(CLIENT, both random, number)
    server   signature(SERVER, both random, number), or zeros: another key

Then each request is ``[name, arguments]`` and each answer ``[whether there is a result, it or the
error]``, in JSON after their length; bytes are text in Latin-1.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import hmac
import json
import os
import selectors
import socket
import sys
import time
from collections.abc import Callable
from typing import Any

try:
    import resource
except ImportError:     # Windows
    resource = None     # type: ignore[assignment]

# As the client has them (store.py), which can import nothing from here.
GREETING = b"maxjax-1"
KEY_BYTES = NONCE_BYTES = SIGNED_BYTES = 32
CLIENT, SERVER = b"client", b"server"
MOST_MESSAGE_BYTES = 1 << 28

_NUMBER_BYTES, _LENGTH_BYTES = 4, 8
_HANDSHAKE_BYTES = _NUMBER_BYTES + NONCE_BYTES + SIGNED_BYTES
# How long a connection may take to prove itself, how many may be about to, and how many more are
# looked at before those that have done so have their turn.
_HANDSHAKE_SECONDS = 10.0
_MOST_STRANGERS, _MOST_ACCEPTED = 256, 16
# For what the others are told to be sent.
_TOLD_SECONDS = 0.1
# Addresses of which those that were turned away are counted.
_MOST_ADDRESSES = 8
_MOST_READ = 1 << 18


class Refused(Exception):
    """A request that has no result; the text begins with the status."""


class Waiting:
    """A request that is answered once something is true, or after so long.

    Attributes:
      ready: whether it is.
      deadline: by the monotonic clock.
      result: what the answer is then; raises Refused.
    """

    def __init__(self, ready: Callable[[], bool], milliseconds: float, result: Callable[[], Any]):
        self.ready, self.result = ready, result
        self.deadline = time.monotonic() + milliseconds / 1e3


class Stranger:
    """A connection that has proved nothing yet.

    Attributes:
      deadline: by the monotonic clock, for the proof.
    """

    def __init__(self, connection: socket.socket, key: bytes):
        self.connection, self._key = connection, key
        self.deadline = time.monotonic() + _HANDSHAKE_SECONDS
        self._ours = os.urandom(NONCE_BYTES)
        self._said = b""
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.send(GREETING + self._ours)

    def hear(self) -> int | None:
        """The number of the process that it has proved to be; None: it is still speaking.

        Raises:
          OSError: the connection has ended.
          Refused: it has another key.
        """
        with contextlib.suppress(BlockingIOError):
            said = self.connection.recv(_HANDSHAKE_BYTES - len(self._said))
            if not said:
                raise ConnectionError("the connection has ended")
            self._said += said
        if len(self._said) < _HANDSHAKE_BYTES:
            return None
        number, theirs = self._said[:_NUMBER_BYTES], self._said[_NUMBER_BYTES:-SIGNED_BYTES]
        random = self._ours + theirs + number
        if not hmac.compare_digest(hmac.digest(self._key, CLIENT + random, "sha256"),
                                   self._said[-SIGNED_BYTES:]):
            self.connection.send(bytes(SIGNED_BYTES))
            raise Refused("another key")
        self.connection.send(hmac.digest(self._key, SERVER + random, "sha256"))
        return int.from_bytes(number, "little")


class Peer:
    """A connection of a process of the job.

    Attributes:
      process: its number.
      waiting: what it waits for, if it does.
    """

    def __init__(self, connection: socket.socket, process: int):
        self.connection, self.process = connection, process
        self.waiting: Waiting | None = None
        self._received, self._unsent = bytearray(), bytearray()

    def receive(self) -> None:
        """
        Raises:
          OSError: the connection has ended, or says more than it may.
        """
        with contextlib.suppress(BlockingIOError):
            data = self.connection.recv(_MOST_READ)
            if not data:
                raise ConnectionError("the connection has ended")
            self._received += data
        if len(self._received) >= _LENGTH_BYTES and self._size() > MOST_MESSAGE_BYTES:
            raise ConnectionError("the message is too long")

    def _size(self) -> int:
        return int.from_bytes(self._received[:_LENGTH_BYTES], "little")

    def request(self) -> Any:
        """The next request; None: it has not come yet, or an earlier one waits."""
        end = _LENGTH_BYTES + self._size()
        if self.waiting is not None or len(self._received) < max(end, _LENGTH_BYTES):
            return None
        message = bytes(self._received[_LENGTH_BYTES:end])
        del self._received[:end]
        return json.loads(message)

    def answer(self, done: bool, result: Any) -> None:
        message = json.dumps((done, result)).encode()
        self._unsent += len(message).to_bytes(_LENGTH_BYTES, "little") + message

    def send(self) -> bool:
        """Sends what can be sent; whether something is left.

        Raises:
          OSError: the connection has ended.
        """
        with contextlib.suppress(BlockingIOError):
            while self._unsent:
                del self._unsent[:self.connection.send(self._unsent)]
        return bool(self._unsent)


class Values:
    """The values, and who has come: what requests do. The first argument of each is the process
    that asks.

    Attributes:
      ended: the processes whose last connection is closed.
      turned_away: by address, how many had another key.
      changed: something has, since this was last set to False.
    """

    def __init__(self, count: int):
        self._count = count
        self._values: dict[str, str] = {}
        # By the barrier's name: what those that are there say; how often all were, and what the
        # last ones said.
        self._there: dict[str, dict[int, str]] = {}
        self._passed: dict[str, tuple[int, dict[int, str]]] = {}
        # Who has joined, and as whom; why the job cannot begin.
        self._joined: dict[int, str] = {}
        self._given_up: str | None = None
        self.ended: set[int] = set()
        self.turned_away: collections.Counter[str] = collections.Counter()
        self.changed = False

    def left(self, process: int) -> None:
        """The last connection of a process is closed."""
        self.ended.add(process)
        if len(self._joined) < self._count:     # it may be started again
            self._joined.pop(process, None)
        self.changed = True

    def on_join(self, process: int, count: int, name: str, milliseconds: float) -> Waiting:
        """Waits until all processes have come; ``name`` is this one's own."""
        if count != self._count or not 0 <= process < self._count:
            raise Refused(f"INVALID_ARGUMENT: process {process} was started as one of {count}, and "
                          f"process 0 as one of {self._count}")
        twice = self._joined.setdefault(process, name) != name
        self.changed = True

        def result() -> Waiting | None:
            if twice:
                raise Refused(f"ALREADY_EXISTS: another process has the number {process} too")
            if self._given_up is None and len(self._joined) < self._count:
                text = self._who_is_missing()
                if process:
                    raise Refused(text)
                # Process 0 ends this one when it hears it: the others shall have heard it before.
                self._given_up = text
                self.changed = True
                return Waiting(lambda: False, _TOLD_SECONDS * 1e3, result)
            if self._given_up is not None:
                raise Refused(self._given_up)
            return None

        # Where two have the same number another one may be missing, whom all others name.
        return Waiting(lambda: self._given_up is not None
                       or not twice and len(self._joined) == self._count, milliseconds, result)

    def _who_is_missing(self) -> str:
        missing = set(range(self._count)).difference(self._joined)
        come = self.ended & missing
        return "DEADLINE_EXCEEDED: " + " and ".join(
            f"{_some(numbers)} {what}" for numbers, what in
            ((missing - come, "not come"), (come, "ended")) if numbers) + "".join(
                f"; {many} from {address} did not have the job's secret"
                for address, many in self.turned_away.items())

    def on_set(self, _: int, key: str, value: str, overwrites: bool) -> None:
        if not overwrites and key in self._values:
            raise Refused(f"ALREADY_EXISTS: key {key} already exists.")
        self._values[key] = value
        self.changed = True

    def on_increment(self, _: int, key: str, increment: int) -> int:
        value = int(self._values.get(key, "0")) + increment
        self._values[key] = str(value)
        self.changed = True
        return value

    def on_get(self, _: int, key: str) -> str:
        if key not in self._values:
            raise Refused(f"NOT_FOUND: Config key {key} not found.")
        return self._values[key]

    def on_await(self, _: int, key: str, milliseconds: float) -> Waiting:
        def result() -> str:
            if key not in self._values:
                raise Refused(f"DEADLINE_EXCEEDED: GetKeyValue() timed out with key: {key} and "
                              f"duration: {milliseconds:g}ms")
            return self._values[key]

        return Waiting(lambda: key in self._values, milliseconds, result)

    def on_within(self, _: int, folder: str) -> list[tuple[str, str]]:
        prefix = folder.removesuffix("/") + "/"
        return sorted((key, value) for key, value in self._values.items()
                      if key.startswith(prefix))

    def on_delete(self, _: int, key: str) -> None:
        prefix = key.removesuffix("/") + "/"
        self._values = {known: value for known, value in self._values.items()
                        if known != key and not known.startswith(prefix)}

    def on_barrier(self, process: int, name: str, milliseconds: float, members: list[int] | None,
                   text: str) -> Waiting:
        """Waits for the members; the result is what each of them says."""
        order = list(range(self._count)) if members is None else members
        everybody = set(order)
        if process not in everybody or not everybody.issubset(range(self._count)):
            raise Refused(f"INVALID_ARGUMENT: process {process} of {self._count} waits at barrier "
                          f"{name} of processes {sorted(everybody)}")
        there = self._there.setdefault(name, {})
        there[process] = text
        before, _ = self._passed.get(name, (0, {}))
        if there.keys() >= everybody:
            self._passed[name] = before + 1, there
            del self._there[name]
            self.changed = True

        def has_passed() -> bool:
            return name in self._passed and self._passed[name][0] > before

        def result() -> list[str]:
            if has_passed():
                said = self._passed[name][1]
                return [said.get(member, "") for member in order]
            missing = sorted(everybody.difference(there))
            there.pop(process, None)
            ended = sorted(self.ended.intersection(missing))
            if ended:
                raise Refused(f"UNAVAILABLE: barrier {name}: of the processes, {ended} have ended")
            raise Refused(f"DEADLINE_EXCEEDED: barrier {name} timed out after {milliseconds:g} ms: "
                          f"processes {missing} have not come")

        return Waiting(
            lambda: has_passed() or bool(self.ended.intersection(everybody).difference(there)),
            milliseconds, result)


def _some(processes: set[int]) -> str:
    """As the start of a sentence."""
    numbers = sorted(processes)
    return f"process {numbers[0]} has" if len(numbers) == 1 else f"processes {numbers} have"


class Server:
    """One thread answers all."""

    def __init__(self, listener: socket.socket, key: bytes, count: int):
        self._listener, self._key = listener, key
        self._values = Values(count)
        self._selector = selectors.DefaultSelector()
        listener.setblocking(False)
        self._selector.register(listener, selectors.EVENT_READ, self._accept)
        self._strangers: dict[Stranger, None] = {}      # the oldest first
        self._open: collections.Counter[int] = collections.Counter()    # connections of a process
        self._waiting: dict[Peer, None] = {}

    def serve(self) -> None:
        """Until the input ends."""
        self._selector.register(sys.stdin, selectors.EVENT_READ, lambda: os._exit(0))
        while True:
            for found, _ in self._selector.select(self._seconds_to_wait()):
                # One that was looked at before may have closed it, and opened another.
                known = self._selector.get_map().get(found.fd)
                if known is not None and known.fileobj is found.fileobj:
                    known.data()
            now = time.monotonic()
            for stranger in list(self._strangers):
                if stranger.deadline > now:
                    break
                self._drop(stranger)
            while self._values.changed:
                self._values.changed = False
                self._answer_waiting(lambda waiting: waiting.ready())
            self._answer_waiting(lambda waiting: waiting.deadline <= time.monotonic())

    def _seconds_to_wait(self) -> float | None:
        if self._values.changed:
            return 0.0
        first = [stranger.deadline for stranger in (next(iter(self._strangers), None),) if stranger]
        first += [peer.waiting.deadline for peer in self._waiting if peer.waiting is not None]
        return max(0.0, min(first) - time.monotonic()) if first else None

    def _accept(self) -> None:
        for _ in range(_MOST_ACCEPTED):
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if len(self._strangers) >= _MOST_STRANGERS:
                self._drop(next(iter(self._strangers)))
            try:
                stranger = Stranger(connection, self._key)
            except OSError:
                connection.close()
                continue
            self._strangers[stranger] = None
            self._selector.register(connection, selectors.EVENT_READ,
                                    functools.partial(self._hear, stranger))

    def _drop(self, stranger: Stranger) -> None:
        del self._strangers[stranger]
        self._selector.unregister(stranger.connection)
        stranger.connection.close()

    def _hear(self, stranger: Stranger) -> None:
        try:
            process = stranger.hear()
        except Refused:
            with contextlib.suppress(OSError):
                address = str(stranger.connection.getpeername()[0])
                counts = self._values.turned_away
                if address in counts or len(counts) < _MOST_ADDRESSES:
                    counts[address] += 1
            self._drop(stranger)
        except OSError:
            self._drop(stranger)
        else:
            if process is not None:
                del self._strangers[stranger]
                self._open[process] += 1
                self._values.ended.discard(process)
                peer = Peer(stranger.connection, process)
                self._selector.modify(peer.connection, selectors.EVENT_READ,
                                      lambda: self._on_event(peer))

    def _on_event(self, peer: Peer) -> None:
        try:
            peer.receive()
            self._go_on(peer)
        except Exception:
            # It has ended, or asks for what there is not: the others are served all the same.
            self._close(peer)

    def _go_on(self, peer: Peer) -> None:
        """Answers what a peer has asked for."""
        while (request := peer.request()) is not None:
            name, arguments = request
            self._answer(peer, functools.partial(
                getattr(self._values, "on_" + name), peer.process, *arguments))
        self._selector.modify(
            peer.connection, selectors.EVENT_READ | (selectors.EVENT_WRITE if peer.send() else 0),
            lambda: self._on_event(peer))

    def _answer(self, peer: Peer, result: Callable[[], Any]) -> None:
        try:
            found = result()
        except Refused as error:
            peer.answer(False, str(error))
            return
        if isinstance(found, Waiting):
            peer.waiting = found
            self._waiting[peer] = None
            # It may be ready already.
            self._values.changed = True
        else:
            peer.answer(True, found)

    def _answer_waiting(self, is_over: Callable[[Waiting], bool]) -> None:
        for peer in list(self._waiting):
            waiting = peer.waiting
            if waiting is not None and peer in self._waiting and is_over(waiting):
                peer.waiting = None
                del self._waiting[peer]
                try:
                    self._answer(peer, waiting.result)
                    self._go_on(peer)
                except Exception:
                    self._close(peer)

    def _close(self, peer: Peer) -> None:
        self._selector.unregister(peer.connection)
        peer.connection.close()
        self._waiting.pop(peer, None)
        self._open[peer.process] -= 1
        if not self._open[peer.process]:
            self._values.left(peer.process)


def _allow_many_files() -> None:
    """As many descriptors as the system gives: a large job has several connections a process."""
    if resource is not None:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main(descriptor: int, count: int) -> None:
    key = sys.stdin.buffer.read(KEY_BYTES)
    _allow_many_files()
    Server(socket.socket(fileno=descriptor), key, count).serve()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
