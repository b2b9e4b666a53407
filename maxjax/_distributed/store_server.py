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

# How long a connection may take to prove itself, and how many may be about to.
_HANDSHAKE_SECONDS = 10.0
_MOST_UNPROVED = 128
# For what the others are told to be sent.
_TOLD_SECONDS = 0.1
# Addresses of which those that were turned away are counted.
_MOST_ADDRESSES = 8


class Refused(Exception):
    """A request that has no result; the text begins with the status."""


class Server:
    """The values, and who waits for what. One thread answers all."""

    def __init__(self, key: bytes, count: int):
        self._key, self._count = key, count
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
        # Connections that have proved nothing yet, the oldest first; how many had another key.
        self._unproved: dict[asyncio.StreamWriter, None] = {}
        self._turned_away: collections.Counter[str] = collections.Counter()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        process = None
        try:
            process = await self._proved(reader, writer)
            if process is None:
                return
            self._open[process] = self._open.get(process, 0) + 1
            self._ended.discard(process)
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
            if process is not None:
                self._open[process] -= 1
                if not self._open[process]:
                    self._ended.add(process)
                    if len(self._joined) < self._count:     # it may be started again
                        self._joined.pop(process, None)
                    async with self._changed:
                        self._changed.notify_all()

    async def _proved(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
                      ) -> int | None:
        """The number of the process at the other end; None: it has not proved that it is one."""
        if len(self._unproved) >= _MOST_UNPROVED:
            oldest = next(iter(self._unproved))
            del self._unproved[oldest]
            oldest.transport.abort()
        self._unproved[writer] = None
        try:
            async with asyncio.timeout(_HANDSHAKE_SECONDS):
                ours = os.urandom(NONCE_BYTES)
                writer.write(GREETING + ours)
                number = await reader.readexactly(NUMBER_BYTES)
                random = ours + await reader.readexactly(NONCE_BYTES) + number
                proof = await reader.readexactly(SIGNED_BYTES)
        except TimeoutError:
            writer.transport.abort()
            return None
        finally:
            self._unproved.pop(writer, None)
        process = int.from_bytes(number, "little")
        if not hmac.compare_digest(hmac.digest(self._key, CLIENT + random, "sha256"), proof):
            address = str(writer.get_extra_info("peername")[0])
            if address in self._turned_away or len(self._turned_away) < _MOST_ADDRESSES:
                self._turned_away[address] += 1
            writer.write(bytes(SIGNED_BYTES))
            return None
        writer.write(hmac.digest(self._key, SERVER + random, "sha256"))
        return process

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
                for address, many in self._turned_away.items())
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
    server = await asyncio.start_server(
        Server(key, count).answer, sock=socket.socket(fileno=descriptor), backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
