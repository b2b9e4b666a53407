"""The detached builder: builds the kernel pack, and kernels that processes have left behind.

It ends when nothing is left to do, when its folder is removed or takes nothing more, when there is
no compiler, and after an hour. It may be killed at any moment: the lock goes with it, its compilers
end, and the cache is whole.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

from maxjax._max.artifacts import ArtifactCache
from maxjax._max.folder_locks import KeyLock, builder_lock
from maxjax._max.mojo import detached, toolchain
from maxjax._max.mojo.pack_library import Pack
from maxjax._max.mojo.store import KernelStore
from maxjax._max.mojo.toolchain import Pace

_MOST_SECONDS = 3600.0


class _Life(Pace):
    """Whether the builder, and what it builds, goes on."""

    def __init__(self, lock: KeyLock):
        super().__init__()
        self._lock = lock
        self._end = time.monotonic() + _MOST_SECONDS

    def end(self) -> None:
        self._end = float("-inf")

    def look(self) -> None:
        if not self._lock.is_current() or time.monotonic() > self._end:
            self.stopped = True


class Builder:
    """Builds what is missing in a cache folder.

    Args:
      lock: the folder's lock, held.
    """

    def __init__(self, cache: ArtifactCache, lock: KeyLock):
        self.cache = cache
        self.lock = lock
        self.pack = Pack(cache)
        self._life = _Life(lock)
        self.end = self._life.end
        self._stores: dict[str, KernelStore] = {}

    def run(self) -> None:
        """Works until nothing is left to do."""
        while True:
            self._work()
            goes_on = not self._is_over and not self._is_in_vain
            self.lock.release()
            # A process that has left a request and found the lock held relies on this look.
            if not goes_on or not self.cache.requests() or not self.lock.acquire():
                return

    @property
    def _is_over(self) -> bool:
        self._life.look()
        return self._life.stopped

    @property
    def _is_in_vain(self) -> bool:
        makers: list[Pack | KernelStore] = [self.pack, *self._stores.values()]
        return any(maker.broken is not None or not maker.libraries.keeps for maker in makers)

    def _work(self) -> None:
        while not self._is_over and not self._is_in_vain:
            # Kernels first: a request takes a second, the pack a minute.
            if self._build_kernels():
                continue
            if not any(unit.failure is None for unit in self.pack.missing()):
                return
            self.pack.build_missing(self._life)

    def _build_kernels(self) -> bool:
        """Builds what the oldest request asks for; returns whether there was one."""
        for path in self.cache.requests()[:1]:
            content = self.cache.take_request(path)
            request = content and detached.Request.read(content)
            if request and request.identity == toolchain.identity(request.header):
                store = self._stores.setdefault(
                    request.header, KernelStore(request.header, self.cache))
                store.build(request.kernels, self._life)
            return True
        return False


def main(directory: str, descriptor: int) -> None:
    """Runs the builder of a cache folder in this process, which ends with it.

    Args:
      descriptor: of the folder's lock.
    """
    folder = Path(directory)
    lock = builder_lock(folder)
    lock.adopt(descriptor)
    # Not `ArtifactCache`, which would make a folder that has been removed.
    if not lock.is_current():
        return
    cache = ArtifactCache(folder)
    if cache.usable:
        builder = Builder(cache, lock)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: builder.end())
        builder.run()
