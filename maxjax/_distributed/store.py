"""Values that the processes of a job tell one another by name, and barriers by name.

What libraries such as Orbax ask of JAX's coordination service: from any thread, at any time, beside
whatever collectives run. ``store_server.py`` answers, a process beside process 0.
"""

from __future__ import annotations

import hmac
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from maxjax._base.errors import JaxRuntimeError

# As the server has them, which is not imported here: with asyncio it takes long.
KEY_BYTES = NONCE_BYTES = 16
_SERVER = Path(__file__).with_name("store_server.py")

# An address, its port, the key.
Place = tuple[str, int, bytes]


class Keeper:
    """The process that keeps the values, as long as this one runs.

    Attributes:
      place: where it listens.
    """

    def __init__(self, address: str, count: int):
        key = os.urandom(KEY_BYTES)
        with socket.create_server((address, 0)) as listener:
            self.place: Place = address, listener.getsockname()[1], key
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(_SERVER), str(listener.fileno()),
                 str(count)],
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=[listener.fileno()], start_new_session=True)
        assert self._process.stdin is not None
        self._process.stdin.write(key)
        self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class Client:
    """``jax._src.distributed.global_state.client``: the methods that libraries call.

    All raise JaxRuntimeError, with JAX's status first, where there is no result.
    """

    def __init__(self, place: Place, process: int):
        self._place, self._process = place, process
        self._own = threading.local()       # a thread that waits keeps no other from asking
        self._numbers = itertools.count()

    def _connection(self) -> socket.socket:
        known = getattr(self._own, "connection", None)
        if known is None:
            if next(self._numbers) == 0:
                # As long as it is open, this process has not ended.
                self._kept = self._connect()
            known = self._own.connection = self._connect()
        return known

    def _connect(self) -> socket.socket:
        address, port, key = self._place
        made = socket.create_connection((address, port))
        number = self._process.to_bytes(4, "little")
        made.sendall(number + hmac.digest(
            key, _received(made, NONCE_BYTES) + number, "sha256"))
        return made

    def _ask(self, name: str, *arguments: object) -> Any:
        message = json.dumps([name, arguments]).encode()
        try:
            connection = self._connection()
            connection.sendall(len(message).to_bytes(8, "little") + message)
            size = int.from_bytes(_received(connection, 8), "little")
            done, answer = json.loads(_received(connection, size))
        except OSError as error:
            raise JaxRuntimeError("UNAVAILABLE: process 0, beside which the values of the job are "
                                  f"kept, has ended: {error}") from error
        if not done:
            raise JaxRuntimeError(answer)
        return answer

    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
        """Gives a key a value; ALREADY_EXISTS where it has one and may not lose it."""
        self.key_value_set_bytes(key, value.encode(), allow_overwrite)

    def key_value_set_bytes(self, key: str, value: bytes, allow_overwrite: bool = False) -> None:
        """``key_value_set`` of bytes."""
        self._ask("set", key, value.decode("latin-1"), allow_overwrite)

    def blocking_key_value_get(self, key: str, timeout_in_ms: int) -> str:
        """The value of a key, once it has one; DEADLINE_EXCEEDED where it gets none in time."""
        return self.blocking_key_value_get_bytes(key, timeout_in_ms).decode()

    def blocking_key_value_get_bytes(self, key: str, timeout_in_ms: int) -> bytes:
        """``blocking_key_value_get`` as bytes."""
        return self._ask("await", key, timeout_in_ms).encode("latin-1")

    def key_value_try_get(self, key: str) -> str:
        """The value of a key; NOT_FOUND where it has none."""
        return self.key_value_try_get_bytes(key).decode()

    def key_value_try_get_bytes(self, key: str) -> bytes:
        """``key_value_try_get`` as bytes."""
        return self._ask("get", key).encode("latin-1")

    def key_value_dir_get(self, key: str) -> list[tuple[str, str]]:
        """Keys that begin with ``key`` and a slash, with their values."""
        return [(name, value.decode()) for name, value in self.key_value_dir_get_bytes(key)]

    def key_value_dir_get_bytes(self, key: str) -> list[tuple[str, bytes]]:
        """``key_value_dir_get`` as bytes."""
        return [(name, value.encode("latin-1")) for name, value in self._ask("within", key)]

    def key_value_delete(self, key: str) -> None:
        """Removes a key and those that begin with it and a slash."""
        self._ask("delete", key)

    def key_value_increment(self, key: str, increment: int) -> int:
        """Adds to the number that a key has, 0 at first."""
        return self._ask("increment", key, increment)

    def wait_at_barrier(self, barrier_id: str, timeout_in_ms: int,
                        process_ids: Sequence[int] | None = None) -> None:
        """Waits for all processes, or for some; DEADLINE_EXCEEDED, UNAVAILABLE with the numbers
        of those that have not come or have ended."""
        self._ask("barrier", barrier_id, timeout_in_ms,
                  None if process_ids is None else [int(number) for number in process_ids])


def _received(connection: socket.socket, size: int) -> bytes:
    """So many bytes.

    Raises:
      ConnectionError: the connection ends before.
    """
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 1 << 16))
        if not part:
            raise ConnectionError("the connection has ended")
        parts += part
    return bytes(parts)
