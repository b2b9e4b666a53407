"""The program that keeps what the processes of a job tell one another by name.

Process 0 starts it beside itself, on its own and with the standard library alone: it answers also
while that process waits in an engine that lets no Python run. It ends when its input ends, with the
process that started it. Its arguments are a listening socket and the number of processes; its input
begins with the key of the job.

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

import asyncio
import collections
import contextlib
import hmac
import json
import os
import socket
import sys
from collections.abc import Callable, Coroutine
from typing import Any

try:
    import resource
except ImportError:     # Windows
    resource = None     # type: ignore[assignment]

# As the client has them (store.py), which can import nothing from here.
GREETING = b"maxjax-1"
KEY_BYTES = NONCE_BYTES = SIGNED_BYTES = 32
NUMBER_BYTES = 4
CLIENT, SERVER = b"client", b"server"
MOST_MESSAGE_BYTES = 1 << 28

# How long a connection may take to prove itself, how many may be about to, and how many more are
# looked at before those that have done so have their turn.
_HANDSHAKE_SECONDS = 10.0
_MOST_STRANGERS, _MOST_ACCEPTED = 256, 16
# For what the others are told to be sent.
_TOLD_SECONDS = 0.1
# Addresses of which those that were turned away are counted.
_MOST_ADDRESSES = 8


class Refused(Exception):
    """A request that has no result; the text begins with the status."""


class _Stranger:
    """A connection that has proved nothing yet, without a task or a buffer that can grow: there can
    be many.

    Attributes:
      deadline: by the loop's clock, for the proof.
    """

    def __init__(self, connection: socket.socket, deadline: float):
        self.connection, self.deadline = connection, deadline
        self._ours = os.urandom(NONCE_BYTES)
        self._said = b""
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.send(GREETING + self._ours)

    def hear(self, key: bytes) -> int | None:
        """The number of the process that it has proved to be; None: it is still speaking.

        Raises:
          OSError: the connection has ended.
          PermissionError: it has another key.
        """
        try:
            said = self.connection.recv(NUMBER_BYTES + NONCE_BYTES + SIGNED_BYTES - len(self._said))
        except BlockingIOError:
            return None
        if not said:
            raise ConnectionError("the connection has ended")
        self._said += said
        unsigned, proof = (self._said[:NUMBER_BYTES + NONCE_BYTES],
                           self._said[NUMBER_BYTES + NONCE_BYTES:])
        if len(proof) < SIGNED_BYTES:
            return None
        number, theirs = unsigned[:NUMBER_BYTES], unsigned[NUMBER_BYTES:]
        random = self._ours + theirs + number
        if not hmac.compare_digest(hmac.digest(key, CLIENT + random, "sha256"), proof):
            self.connection.send(bytes(SIGNED_BYTES))
            raise PermissionError("another key")
        self.connection.send(hmac.digest(key, SERVER + random, "sha256"))
        return int.from_bytes(number, "little")


class Door:
    """Lets those in who have the key. Who is in is served though strangers crowd outside."""

    def __init__(self, listener: socket.socket, key: bytes,
                 serve: Callable[[int, socket.socket], Coroutine[Any, Any, None]]):
        """
        Args:
          serve: a connection, of a process of this number.
        """
        self._listener, self._key, self._serve = listener, key, serve
        self._loop = asyncio.get_running_loop()
        self._strangers: dict[int, _Stranger] = {}      # by descriptor, the oldest first
        self._tasks: set[asyncio.Task[None]] = set()
        # By address, how many had another key.
        self.turned_away: collections.Counter[str] = collections.Counter()
        listener.setblocking(False)
        self._loop.add_reader(listener.fileno(), self._accept)
        self._loop.call_later(1.0, self._drop_late)

    def _accept(self) -> None:
        # A few at a time: those who are in come in between.
        for _ in range(_MOST_ACCEPTED):
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if len(self._strangers) >= _MOST_STRANGERS:
                self._drop(next(iter(self._strangers)))
            descriptor = connection.fileno()
            try:
                stranger = _Stranger(connection, self._loop.time() + _HANDSHAKE_SECONDS)
            except OSError:
                connection.close()
                continue
            self._strangers[descriptor] = stranger
            self._loop.add_reader(descriptor, self._hear, descriptor)

    def _hear(self, descriptor: int) -> None:
        stranger = self._strangers[descriptor]
        try:
            process = stranger.hear(self._key)
        except PermissionError:
            with contextlib.suppress(OSError):
                address = str(stranger.connection.getpeername()[0])
                if address in self.turned_away or len(self.turned_away) < _MOST_ADDRESSES:
                    self.turned_away[address] += 1
            self._drop(descriptor)
        except OSError:
            self._drop(descriptor)
        else:
            if process is not None:
                del self._strangers[descriptor]
                self._loop.remove_reader(descriptor)
                task = self._loop.create_task(self._serve(process, stranger.connection))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _drop(self, descriptor: int) -> None:
        self._loop.remove_reader(descriptor)
        self._strangers.pop(descriptor).connection.close()

    def _drop_late(self) -> None:
        now = self._loop.time()
        for descriptor in [descriptor for descriptor, stranger in self._strangers.items()
                           if stranger.deadline < now]:
            self._drop(descriptor)
        self._loop.call_later(1.0, self._drop_late)


class Server:
    """The values, and who waits for what. One thread answers all."""

    def __init__(self, listener: socket.socket, key: bytes, count: int):
        self._count = count
        self._door = Door(listener, key, self._serve)
        self._changed = asyncio.Condition()
        self._values: dict[str, str] = {}
        # By the barrier's name: who is there, and how often all were.
        self._waiting: dict[str, set[int]] = {}
        self._passed: dict[str, int] = {}
        # The connections of each process; the processes whose last one is closed.
        self._open: dict[int, int] = {}
        self._ended: set[int] = set()
        # Who has joined, and as whom; why the job cannot begin.
        self._joined: dict[int, str] = {}
        self._given_up: str | None = None

    async def _serve(self, process: int, connection: socket.socket) -> None:
        """Answers what a process asks by one connection."""
        self._open[process] = self._open.get(process, 0) + 1
        self._ended.discard(process)
        reader, writer = await asyncio.open_connection(sock=connection)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(8), "little")
                if size > MOST_MESSAGE_BYTES:
                    return
                name, arguments = json.loads(await reader.readexactly(size))
                try:
                    result = True, await getattr(self, "on_" + name)(process, *arguments)
                except Refused as error:
                    result = False, str(error)
                message = json.dumps(result).encode()
                writer.write(len(message).to_bytes(8, "little") + message)
                await writer.drain()
        except (EOFError, OSError):
            pass
        finally:
            writer.close()
            self._open[process] -= 1
            if not self._open[process]:
                self._ended.add(process)
                if len(self._joined) < self._count:     # it may be started again
                    self._joined.pop(process, None)
                async with self._changed:
                    self._changed.notify_all()

    async def _until(self, condition: Any, milliseconds: float) -> None:
        """Waits for something to be true, or for so long."""
        async def wait() -> None:
            async with self._changed:
                await self._changed.wait_for(condition)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(wait(), milliseconds / 1e3)

    async def _put(self, key: str, value: str) -> None:
        self._values[key] = value
        async with self._changed:
            self._changed.notify_all()

    # --- requests: the first argument is the process that asks ---
    async def on_join(self, process: int, count: int, name: str, milliseconds: float) -> None:
        """Waits until all processes have come; ``name`` is this one's own."""
        if count != self._count or not 0 <= process < self._count:
            raise Refused(f"INVALID_ARGUMENT: process {process} was started as one of {count}, and "
                          f"process 0 as one of {self._count}")
        twice = self._joined.setdefault(process, name) != name
        async with self._changed:
            self._changed.notify_all()
        # Where two have the same number another one may be missing, whom all others name.
        await self._until(
            lambda: self._given_up is not None
            or not twice and len(self._joined) == self._count, milliseconds)
        if twice:
            raise Refused(f"ALREADY_EXISTS: another process has the number {process} too")
        if self._given_up is None and len(self._joined) < self._count:
            missing = set(range(self._count)).difference(self._joined)
            come = self._ended & missing
            text = "DEADLINE_EXCEEDED: " + " and ".join(
                f"{_some(numbers)} {what}" for numbers, what in
                ((missing - come, "not come"), (come, "ended")) if numbers) + "".join(
                f"; {many} from {address} did not have the job's secret"
                for address, many in self._door.turned_away.items())
            if process:
                raise Refused(text)
            # Process 0 ends this one when it hears it: the others shall have heard it before.
            self._given_up = text
            async with self._changed:
                self._changed.notify_all()
            await asyncio.sleep(_TOLD_SECONDS)
        if self._given_up is not None:
            raise Refused(self._given_up)

    async def on_set(self, _: int, key: str, value: str, overwrites: bool) -> None:
        if not overwrites and key in self._values:
            raise Refused(f"ALREADY_EXISTS: key {key} already exists.")
        await self._put(key, value)

    async def on_increment(self, _: int, key: str, increment: int) -> int:
        value = int(self._values.get(key, "0")) + increment
        await self._put(key, str(value))
        return value

    async def on_get(self, _: int, key: str) -> str:
        if key not in self._values:
            raise Refused(f"NOT_FOUND: Config key {key} not found.")
        return self._values[key]

    async def on_await(self, _: int, key: str, milliseconds: float) -> str:
        await self._until(lambda: key in self._values, milliseconds)
        if key not in self._values:
            raise Refused(f"DEADLINE_EXCEEDED: GetKeyValue() timed out with key: {key} and "
                          f"duration: {milliseconds:g}ms")
        return self._values[key]

    async def on_within(self, _: int, folder: str) -> list[tuple[str, str]]:
        prefix = folder.removesuffix("/") + "/"
        return sorted((key, value) for key, value in self._values.items()
                      if key.startswith(prefix))

    async def on_delete(self, _: int, key: str) -> None:
        prefix = key.removesuffix("/") + "/"
        self._values = {known: value for known, value in self._values.items()
                        if known != key and not known.startswith(prefix)}

    async def on_barrier(self, process: int, name: str, milliseconds: float,
                         members: list[int] | None) -> None:
        everybody = set(range(self._count) if members is None else members)
        if process not in everybody or not everybody.issubset(range(self._count)):
            raise Refused(f"INVALID_ARGUMENT: process {process} of {self._count} waits at barrier "
                          f"{name} of processes {sorted(everybody)}")
        waiting = self._waiting.setdefault(name, set())
        waiting.add(process)
        before = self._passed.get(name, 0)
        if waiting >= everybody:
            self._passed[name] = before + 1
            del self._waiting[name]
            async with self._changed:
                self._changed.notify_all()
            return

        def has_passed() -> bool:
            return self._passed.get(name, 0) > before

        await self._until(
            lambda: has_passed() or bool(self._ended & (everybody - waiting)), milliseconds)
        if has_passed():
            return
        missing = sorted(everybody - waiting)
        waiting.discard(process)
        ended = sorted(self._ended.intersection(missing))
        if ended:
            raise Refused(f"UNAVAILABLE: barrier {name}: of the processes, {ended} have ended")
        raise Refused(f"DEADLINE_EXCEEDED: barrier {name} timed out after {milliseconds:g} ms: "
                      f"processes {missing} have not come")


def _some(processes: set[int]) -> str:
    """As the start of a sentence."""
    numbers = sorted(processes)
    return f"process {numbers[0]} has" if len(numbers) == 1 else f"processes {numbers} have"


def _allow_many_files() -> None:
    """As many descriptors as the system gives: a large job has several connections a process."""
    if resource is not None:
        _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


async def main(descriptor: int, count: int) -> None:
    key = sys.stdin.buffer.read(KEY_BYTES)
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), lambda: os._exit(0))
    _allow_many_files()
    Server(socket.socket(fileno=descriptor), key, count)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
