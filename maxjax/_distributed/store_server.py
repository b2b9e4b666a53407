"""The program that keeps what the processes of a job tell one another by name.

Process 0 starts it beside itself, on its own and with the standard library alone: it answers also
while that process waits in an engine that lets no Python run. It ends when its input ends, with the
process that started it. Its arguments are a listening socket and the number of processes; its input
begins with the key of the job.

A connection begins with random bytes from here; the answer is the number of the process, with both
signed by the key. Then each request is ``[name, arguments]`` and each answer ``[whether there is a
result, it or the error]``, in JSON after their length; bytes are text in Latin-1.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import os
import socket
import sys
from typing import Any

KEY_BYTES = NONCE_BYTES = 16
SIGNED_BYTES = 32


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

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        process = None
        try:
            nonce = os.urandom(NONCE_BYTES)
            writer.write(nonce)
            number = await reader.readexactly(4)
            if not hmac.compare_digest(hmac.digest(self._key, nonce + number, "sha256"),
                                       await reader.readexactly(SIGNED_BYTES)):
                return
            process = int.from_bytes(number, "little")
            self._open[process] = self._open.get(process, 0) + 1
            while True:
                size = int.from_bytes(await reader.readexactly(8), "little")
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


async def main(descriptor: int, count: int) -> None:
    key = sys.stdin.buffer.read(KEY_BYTES)
    asyncio.get_running_loop().add_reader(sys.stdin.fileno(), lambda: os._exit(0))
    server = await asyncio.start_server(
        Server(key, count).answer, sock=socket.socket(fileno=descriptor))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2])))
