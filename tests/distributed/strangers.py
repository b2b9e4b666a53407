"""Strangers that connect to the processes of a job: bounded generators of what they send.

Each kind takes a place, random numbers of a seed and the connections that it leaves open, and does
one thing; a ``Siege`` has them do so, again and again, at each socket at which the processes
of a job listen, as /proc tells, from their start to their end.
"""

from __future__ import annotations

import contextlib
import hmac
import random
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from maxjax._distributed import store, store_server

# Connections that one attacker keeps, and the bytes that it sends on one.
_MOST_KEPT, _MOST_BYTES = 200, 1 << 16
_LISTENS = "0A"
# How long a stranger waits for an answer: who is deaf gives none.
_SECONDS = 0.1

Place = tuple[str, int]


def _connect(place: Place, kept: list[socket.socket]) -> socket.socket:
    made = socket.create_connection(place, _SECONDS)
    kept.append(made)
    return made


def garbage(place: Place, numbers: random.Random, kept: list[socket.socket]) -> None:
    _connect(place, kept).sendall(numbers.randbytes(numbers.randrange(1, _MOST_BYTES)))


def text(place: Place, numbers: random.Random, kept: list[socket.socket]) -> None:
    _connect(place, kept).sendall(numbers.choice((
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00", b"\n" * 999,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x80\x04\x95cposix\nsystem\n(S'false'\ntR.")))


def half(place: Place, numbers: random.Random, kept: list[socket.socket]) -> None:
    """The beginning of a handshake."""
    _connect(place, kept).sendall(numbers.randbytes(numbers.randrange(1, 68)))


def silent(place: Place, numbers: random.Random, kept: list[socket.socket]) -> None:
    _connect(place, kept)


def many(place: Place, numbers: random.Random, kept: list[socket.socket]) -> None:
    for _ in range(50):
        _connect(place, kept)


def huge(place: Place, numbers: random.Random, kept: list[socket.socket]) -> None:
    """Lengths of what does not come, in the places where protocols have them."""
    length = numbers.choice((1 << 31, (1 << 31) - 1, 1 << 40, (1 << 63) - 1, (1 << 64) - 1))
    _connect(place, kept).sendall(
        numbers.randbytes(numbers.choice((0, 1, 4, 8, 68))) + struct.pack("<Q", length) * 13)


def slow(place: Place, numbers: random.Random, kept: list[socket.socket]) -> None:
    """One more byte on each connection of a few that have said little so far."""
    _connect(place, kept)
    for made in kept[-20:]:
        with contextlib.suppress(OSError):
            made.send(numbers.randbytes(1))


def reset(place: Place, numbers: random.Random, kept: list[socket.socket]) -> None:
    made = _connect(place, [])
    made.sendall(numbers.randbytes(numbers.randrange(1, 12)))
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    made.close()


def _handshake(place: Place, kept: list[socket.socket], number: int, key: bytes, random_bytes: bytes
               ) -> socket.socket:
    made = _connect(place, kept)
    theirs = made.recv(store.NONCE_BYTES + len(store.GREETING))[len(store.GREETING):]
    said = number.to_bytes(4, "little")
    made.sendall(said + random_bytes + hmac.digest(
        key, store.CLIENT + theirs + random_bytes + said, "sha256"))
    return made


def wrong_secret(place: Place, numbers: random.Random, kept: list[socket.socket]) -> None:
    made = _handshake(place, kept, numbers.randrange(3), numbers.randbytes(32),
                      numbers.randbytes(store.NONCE_BYTES))
    with contextlib.suppress(OSError):
        made.sendall(_request())


def replayed(place: Place, numbers: random.Random, kept: list[socket.socket]) -> None:
    """What a process with the secret once said, to another random number."""
    said = (1).to_bytes(4, "little") + bytes(store.NONCE_BYTES)
    proof = hmac.digest(b"k" * store.KEY_BYTES, store.CLIENT + said, "sha256")
    _connect(place, kept).sendall(said + proof + _request())


def gloo_number(place: Place, numbers: random.Random, kept: list[socket.socket]) -> None:
    """How the other end of one of Gloo's pairs begins."""
    for pair in range(12):
        _connect(place, kept).sendall(struct.pack("<q", pair) + numbers.randbytes(
            numbers.choice((0, 8, 48, 4000))))


def _request() -> bytes:
    message = b'["set", ["a", "stranger", true]]'
    return len(message).to_bytes(8, "little") + message


KINDS: tuple[Callable[[Place, random.Random, list[socket.socket]], None], ...] = (
    garbage, text, half, silent, slow, many, huge, reset, wrong_secret, replayed, gloo_number)


def listeners(process: int) -> dict[Place, str]:
    """The sockets of IPv4 and IPv6 at which a process and those that it has started listen."""
    inodes = set()
    for each in descendants(process):
        with contextlib.suppress(OSError):
            for path in Path(f"/proc/{each}/fd").iterdir():
                with contextlib.suppress(OSError):
                    inodes.add(path.readlink().name.removeprefix("socket:[").rstrip("]"))
    found = {}
    for table in ("tcp", "tcp6"):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
                words = line.split()
                if words[3] == _LISTENS and words[9] in inodes:
                    address, port = words[1].split(":")
                    raw = struct.pack(f"={len(address) // 8}I", *(
                        int(address[i:i + 8], 16) for i in range(0, len(address), 8)))
                    family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
                    found[socket.inet_ntop(family, raw), int(port, 16)] = table
    return found


def descendants(process: int) -> list[int]:
    found = [process]
    for each in found:
        with contextlib.suppress(OSError):
            for path in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (path / "children").read_text().split())
    return found


def peak_memory(process: int) -> int:
    """The most that a process has had in memory, in KB."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1])
    return 0


class Siege:
    """What strangers see and do.

    Attributes:
      places: at which the processes have listened.
      peak: the most memory that each of the processes and those that they started have had, by the
        position of the first process among them.
      connections: how many the strangers have made or tried to.
    """

    def __init__(self, kinds: tuple[str, ...], seed: int):
        self.places: set[Place] = set()
        self.peak: dict[int, dict[int, int]] = {}
        self.connections = 0
        self._kinds, self._seed = kinds, seed
        self._ended = threading.Event()

    def _watch(self, processes: list[int]) -> None:
        attackers: list[threading.Thread] = []
        while not self._ended.is_set():
            for position, process in enumerate(processes):
                for place in listeners(process):
                    if place not in self.places:
                        self.places.add(place)
                        attackers.append(threading.Thread(target=self._attack, args=(place,)))
                        attackers[-1].start()
                peaks = self.peak.setdefault(position, {})
                for each in descendants(process):
                    peaks[each] = max(peaks.get(each, 0), peak_memory(each))
            time.sleep(0.01)
        for each in attackers:
            each.join()

    def _attack(self, place: Place) -> None:
        numbers = random.Random(f"{self._seed} {len(self.places)}")
        kept: list[socket.socket] = []
        while self._kinds and not self._ended.is_set():
            for name in self._kinds:
                before = len(kept)
                with contextlib.suppress(OSError):
                    globals()[name](place, numbers, kept)
                self.connections += max(1, len(kept) - before)
            for made in kept[:-_MOST_KEPT]:
                made.close()
            del kept[:-_MOST_KEPT]
            # Somebody else's processes share the machine with these.
            time.sleep(0.01)
        for made in kept:
            made.close()

    @contextlib.contextmanager
    def of(self, processes: list[int]) -> Iterator[None]:
        thread = threading.Thread(target=self._watch, args=(processes,))
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()


def same_protocol() -> bool:
    """Whether both sides of the handshake mean the same."""
    names = ("GREETING", "KEY_BYTES", "NONCE_BYTES", "SIGNED_BYTES", "CLIENT", "SERVER",
             "MOST_MESSAGE_BYTES")
    return all(getattr(store, name) == getattr(store_server, name) for name in names)
