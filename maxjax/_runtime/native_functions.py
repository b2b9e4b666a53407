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
from maxjax._max.elementwise_kernels import KERNELS
from maxjax._max.mojo import crew
from maxjax._max.mojo.pack_library import Pack
from maxjax._runtime.tiering import tiering

# Until the pack is looked for again where a function was missing.
_RETRY_SECONDS = 30.0

# The pack's function that computes with one of the vector machine's functions, on several threads.
_MAP = "map_blocks"

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
        # By name: the address of the pack's function, and of the one that it applies, or 0.
        self._addresses: dict[str, tuple[int, int]] = {}
        self._next_look: dict[str, float] = {}
        self._lock = threads.lock()
        self._loading: threading.Thread | None = None
        threads.after_fork(self._after_fork_in_child)

    def _after_fork_in_child(self) -> None:
        self._loading = None

    def __call__(self, name: str) -> native.Function | None:
        addresses = self._addresses.get(name)
        if addresses is not None:
            return native_function(*addresses, self.threads)
        now = time.monotonic()
        if now < self._next_look.get(name, 0.0):
            return None
        with self._lock:
            if self._loading is None or not self._loading.is_alive():
                self._next_look[name] = now + _RETRY_SECONDS
                self._loading = _in_background(functools.partial(self.load, name))
        return None

    def load(self, name: str) -> bool:
        """Looks for a function now; whether it is there.

        Kernels of elementwise primitives are the vector machine's.
        """
        pack = self._pack()
        address, block = pack.address(name), 0
        if address is None and name.rpartition("_")[0] in KERNELS:
            block = pack.address(f"vector_{name}") or 0
            address = pack.address(_MAP) if block else None
        if address is not None:
            self._addresses[name] = address, block
        return address is not None

    def threads(self) -> int:
        """How many threads a large call may use."""
        crew.start(self._pack())
        return crew.cores()


def native_function(address: int, block: int, threads: Callable[[], int]) -> native.Function:
    """A function of the pack for rules of primitives.

    Args:
      block: the address of the vector machine's function that it computes with, or 0.
      threads: gives how many threads a large call may use.
    """
    kernel = _KERNEL(address)

    def call(arrays: Sequence[np.ndarray], integers: Sequence[int], size: int) -> None:
        slots = (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])
        args = [number for slot in range(len(arrays)) for number in (slot, 0)]
        args += integers
        args.append(threads() if size >= native.PARALLEL else 1)
        kernel(slots, (ctypes.c_int64 * len(args))(*args))

    def map_blocks(arrays: Sequence[np.ndarray], integers: Sequence[int], size: int) -> None:
        result = arrays[-1]
        # A function of one operand does not read the second.
        call([arrays[0], arrays[-2], result],
             [*integers, result.itemsize, len(arrays) * result.itemsize, block], size)
    return map_blocks if block else call


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
