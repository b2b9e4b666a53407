"""The messages between the compile service and its worker.

Each is JSON after a four-byte big-endian length. They are separate from the worker, which imports
much that the service's process does not need.
"""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

_LENGTH = struct.Struct(">I")


def write_message(stream: BinaryIO, message: dict[str, Any]) -> None:
    """Sends one message through an unbuffered stream."""
    content = json.dumps(message).encode()
    data = memoryview(_LENGTH.pack(len(content)) + content)
    while data:
        data = data[stream.write(data):]


def read_message(stream: BinaryIO) -> dict[str, Any] | None:
    """The next message of an unbuffered stream, or None when it ends, even within a message."""
    header = _read_exactly(stream, _LENGTH.size)
    content = header and _read_exactly(stream, *_LENGTH.unpack(header))
    return json.loads(content) if content else None


def _read_exactly(stream: BinaryIO, size: int) -> bytes | None:
    content = bytearray()
    while len(content) < size:
        chunk = stream.read(size - len(content))
        if not chunk:
            return None
        content += chunk
    return bytes(content)
