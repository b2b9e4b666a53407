"""Values that the processes of a job tell one another by name, and barriers by name.

What libraries such as Orbax ask of JAX's coordination service: from any thread, at any time, beside
whatever collectives run. Processes that meet at an address meet here, and Gloo's addresses are
values like others. ``store_server.py`` answers, a process beside process 0.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from maxjax._base.errors import JaxRuntimeError
from maxjax._distributed.addresses import family

# As the server has them, which is a program of its own and not imported here.
GREETING = b"maxjax-1"
KEY_BYTES = NONCE_BYTES = SIGNED_BYTES = 32
CLIENT, SERVER = b"client", b"server"
MOST_MESSAGE_BYTES = 1 << 28
_SERVER = Path(__file__).with_name("store_server.py")

# A handshake takes so long at most, and an answer so much longer than what it waits for.
_HANDSHAKE_SECONDS, _ANSWER_SECONDS = 10.0, 60.0
# Somebody else may still be about to leave a port.
_PORT_SECONDS = 3.0

# An address, its port, the key.
Place = tuple[str, int, bytes]


class WrongSecret(Exception):
    """The other side has another secret than this process."""


class Keeper:
    """The process that keeps the values, as long as this one runs.

    Attributes:
      place: where it listens.
    """

    def __init__(self, address: str, count: int, port: int = 0, key: bytes | None = None):
        """
        Args:
          address: to listen at.
          count: how many processes the job has.
          port: 0: a free one.
          key: what processes have to have; None: a new one.

        Raises:
          OSError: one cannot listen there.
        """
        key = os.urandom(KEY_BYTES) if key is None else key
        with _listening(address, port) as listener:
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


def _listening(address: str, port: int) -> socket.socket:
    deadline = time.monotonic() + _PORT_SECONDS
    while True:
        try:
            return socket.create_server(
                (address, port), family=family(address), backlog=1024,
                dualstack_ipv6=address == "::" and socket.has_dualstack_ipv6())
        except OSError:
            if not port or not _is_own(address) or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


def _is_own(address: str) -> bool:
    """Whether an address is one of this machine's."""
    with contextlib.suppress(OSError), socket.socket(family(address)) as probe:
        probe.bind((address, 0))
        return True
    return False


class Client:
    """``jax._src.distributed.global_state.client``: the methods that libraries call.

    All raise JaxRuntimeError, with JAX's status first, where there is no result.
    """

    def __init__(self, place: Place, process: int):
        self._place, self._process = place, process
        self._own = threading.local()       # a thread that waits keeps no other from asking
        # As long as it is open, this process has not ended.
        self._kept: socket.socket | None = None
        # By which the server knows this process from another with the same number.
        self._name = os.urandom(8).hex()

    def join(self, count: int, seconds: float) -> None:
        """Waits until all processes have come.

        Args:
          count: how many they are.

        Raises:
          JaxRuntimeError: not all have come in time; the error names them.
        """
        deadline, pause = time.monotonic() + seconds, 0.002
        while True:
            left = max(0.0, deadline - time.monotonic())
            try:
                done, answer = self._exchange(
                    "join", [count, self._name, left * 1e3], left)
            except WrongSecret as error:
                raise JaxRuntimeError(f"PERMISSION_DENIED: {error}") from error
            except OSError as error:
                # Nobody listens yet, or somebody does who ends just now or is no process of a job.
                if time.monotonic() + pause > deadline:
                    raise JaxRuntimeError(
                        f"DEADLINE_EXCEEDED: process 0 does not answer: {error}") from error
                self._kept = None
                time.sleep(pause)
                pause = min(2 * pause, 0.1)
                continue
            if not done:
                raise JaxRuntimeError(answer)
            return

    def _connection(self) -> socket.socket:
        known = getattr(self._own, "connection", None)
        if known is None:
            known = self._own.connection = self._connect()
            self._kept = self._kept or known
        return known

    def _connect(self) -> socket.socket:
        """A connection on which each side has proved that it has the key.

        Raises:
          WrongSecret: the other side has another one.
          OSError: nobody is there, or nobody who speaks as a process of a job does.
        """
        address, port, key = self._place
        deadline = time.monotonic() + _HANDSHAKE_SECONDS
        made = socket.create_connection((address, port), _HANDSHAKE_SECONDS)
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            greeting = _received(made, len(GREETING), deadline)
            if greeting != GREETING:
                raise ConnectionError(f"what listens at {address}:{port} is no process of a job")
            theirs = _received(made, NONCE_BYTES, deadline)
            ours = os.urandom(NONCE_BYTES)
            number = self._process.to_bytes(4, "little")
            random = theirs + ours + number
            made.sendall(number + ours + hmac.digest(key, CLIENT + random, "sha256"))
            proof = _received(made, SIGNED_BYTES, deadline)
            if not hmac.compare_digest(proof, hmac.digest(key, SERVER + random, "sha256")):
                raise WrongSecret(f"process 0, at {address}:{port}, has another secret than "
                                  f"process {self._process}")
        except BaseException:
            made.close()
            raise
        return made

    def _exchange(self, name: str, arguments: Sequence[object], seconds: float) -> tuple[bool, Any]:
        """Whether there is an answer within so many seconds and some, and it or the error.

        Raises:
          WrongSecret, OSError: there is no connection.
        """
        message = json.dumps([name, arguments]).encode()
        if len(message) > MOST_MESSAGE_BYTES:
            raise JaxRuntimeError(f"RESOURCE_EXHAUSTED: {name} of {len(message)} bytes, and the "
                                  f"values of a job have at most {MOST_MESSAGE_BYTES}")
        try:
            connection = self._connection()
            connection.settimeout(seconds + _ANSWER_SECONDS)
            connection.sendall(len(message).to_bytes(8, "little") + message)
            size = int.from_bytes(_received(connection, 8), "little")
            done, answer = json.loads(_received(connection, size))
        except BaseException:
            # What is left of an answer would be taken for the next one.
            if getattr(self._own, "connection", None) is not None:
                del self._own.connection
            raise
        return done, answer

    def _ask(self, name: str, *arguments: object, milliseconds: float = 0.0) -> Any:
        try:
            done, answer = self._exchange(name, arguments, milliseconds / 1e3)
        except (OSError, WrongSecret) as error:
            beside = "has ended" if self._process == 0 else \
                "beside process 0, has ended, and process 0 probably too"
            raise JaxRuntimeError("UNAVAILABLE: the process that keeps the values of the job, "
                                  f"{beside}: {error}") from error
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
        return self._ask(
            "await", key, timeout_in_ms, milliseconds=timeout_in_ms).encode("latin-1")

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
        self.tell(barrier_id, "", timeout_in_ms, process_ids)

    def tell(self, barrier_id: str, text: str, timeout_in_ms: int,
             process_ids: Sequence[int] | None = None) -> list[str]:
        """``wait_at_barrier``, with what each of the processes tells the others there."""
        return self._ask("barrier", barrier_id, timeout_in_ms,
                         None if process_ids is None else [int(number) for number in process_ids],
                         text, milliseconds=timeout_in_ms)


def _received(connection: socket.socket, size: int, deadline: float | None = None) -> bytes:
    """So many bytes.

    Args:
      deadline: by the monotonic clock; None: the connection's own timeout for each part.

    Raises:
      ConnectionError: the connection ends before.
      TimeoutError: they have not come in time.
    """
    parts = bytearray()
    while len(parts) < size:
        if deadline is not None:
            connection.settimeout(max(1e-3, deadline - time.monotonic()))
        part = connection.recv(min(size - len(parts), 1 << 16))
        if not part:
            raise ConnectionError("the connection has ended")
        parts += part
    return bytes(parts)
