"""Native functions for tier 0: those of the kernel pack, where it is built."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from maxjax._base import native, threads
from maxjax._max.mojo import crew
from maxjax._max.mojo.pack_library import Pack
from maxjax._runtime.tiering import tiering

# Until the pack is looked for again where a function was missing.
_RETRY_SECONDS = 30.0

_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


class NativeFunctions:
    """A provider of ``maxjax._base.native`` that never lets its caller wait.

    Opening the pack takes 50 ms: it happens in the background when a large operand first asks,
    and NumPy computes meanwhile.

    Args:
      pack: gives the pack; called when a function is first looked for.
    """

    def __init__(self, pack: Callable[[], Pack]):
        self._pack = pack
        self._addresses: dict[str, int] = {}
        self._next_look: dict[str, float] = {}
        self._lock = threads.lock()
        self._loading: threading.Thread | None = None
        threads.after_fork(self._after_fork_in_child)

    def _after_fork_in_child(self) -> None:
        self._loading = None

    def __call__(self, name: str) -> native.Function | None:
        address = self._addresses.get(name)
        if address is not None:
            return _function(address, self.threads)
        now = time.monotonic()
        if now < self._next_look.get(name, 0.0):
            return None
        with self._lock:
            if self._loading is None or not self._loading.is_alive():
                self._next_look[name] = now + _RETRY_SECONDS
                self._loading = _in_background(functools.partial(self.load, name))
        return None

    def load(self, name: str) -> bool:
        """Looks for a function now; whether it is there."""
        address = self._pack().address(name)
        if address is not None:
            self._addresses[name] = address
        return address is not None

    def threads(self) -> int:
        """How many threads a large call may use."""
        crew.start(self._pack())
        return crew.cores()


def _function(address: int, threads: Callable[[], int]) -> native.Function:
    kernel = _KERNEL(address)

    def call(arrays: Sequence[np.ndarray], integers: Sequence[int], size: int) -> None:
        slots = (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
        args = [number for slot in range(len(arrays)) for number in (slot, 0)]
        args += integers
        args.append(threads() if size >= native.PARALLEL else 1)
        kernel(slots, (ctypes.c_int64 * len(args))(*args))
    return call


def _in_background(target: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        with contextlib.suppress(Exception):    # NumPy can do without
            target()

    # Not a daemon: the interpreter is to wait for it rather than to go from under it.
    thread = threading.Thread(target=run, name="maxjax-native", daemon=False)
    thread.start()
    return thread


functions = NativeFunctions(lambda: tiering.mojo.pack)
native.install(functions)
