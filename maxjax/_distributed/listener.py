"""The socket at which Gloo awaits the other processes of a group.

Gloo takes whoever connects there and says the number of a pair for that pair's other end, and
listens as long as the process runs. Its binding has no way to close the socket, or to ask who is
there; but the descriptor is this process's own, and Linux drops, by a filter, what comes for it. So
it is deaf but for the moments in which a group is formed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from maxjax._base.interrupts import context_manager

_DESCRIPTORS = Path("/proc/self/fd")
# Socket options of Linux that Python has no names for. The filter is one instruction: keep no byte.
_ATTACH_FILTER, _DETACH_FILTER = 26, 27
_DROP = struct.pack("HBBI", 6, 0, 0, 0)


class Listener:
    """The listening sockets that a function opens; none where there is no /proc."""

    def __init__(self, opens: Callable[[], Any]):
        before = _sockets()
        self.opened = opens()
        self._found: list[socket.socket] = []
        for number in _sockets() - before:
            with contextlib.suppress(OSError):
                found = socket.socket(fileno=os.dup(number))
                if found.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                    self._found.append(found)
                else:
                    found.close()
        self._be_deaf()

    @context_manager
    def hearing(self) -> Iterator[None]:
        """In the meantime others can connect."""
        for found in self._found:
            with contextlib.suppress(OSError):
                found.setsockopt(socket.SOL_SOCKET, _DETACH_FILTER, 0)
        try:
            yield
        finally:
            self._be_deaf()

    def _be_deaf(self) -> None:
        program = ctypes.create_string_buffer(_DROP, len(_DROP))
        described = struct.pack("HP", 1, ctypes.addressof(program))
        for found in self._found:
            # Some sandboxes have no filters: there it goes on listening.
            with contextlib.suppress(OSError):
                found.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, described)


def _sockets() -> set[int]:
    """The numbers of this process's sockets."""
    if sys.platform != "linux":
        return set()
    found = set()
    for path in _DESCRIPTORS.iterdir():
        with contextlib.suppress(OSError):
            if os.readlink(path).startswith("socket:"):
                found.add(int(path.name))
    return found
