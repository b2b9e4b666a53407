"""The detached builder: builds the kernel pack, and kernels that processes have left behind.

It ends when nothing is left to do, when its folder is removed or takes nothing more, when there is
no compiler, and after an hour. While somebody waits for a build, in whichever process, it makes
room. It may be killed at any moment: the lock goes with it, its compilers end, and the cache is
whole.
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
_LOOK_SECONDS = 0.25


class _Life:
    """Whether the builder goes on, and whether it makes room for somebody who waits."""

    def __init__(self, cache: ArtifactCache, lock: KeyLock):
        self._cache = cache
        self._lock = lock
        self._end = time.monotonic() + _MOST_SECONDS
        self._looked = float("-inf")
        self._waited_for = False

    @property
    def over(self) -> bool:
        return not self._lock.is_current() or time.monotonic() > self._end

    def end(self) -> None:
        self._end = float("-inf")

    @property
    def waited_for(self) -> bool:
        now = time.monotonic()
        if now - self._looked >= _LOOK_SECONDS:
            self._looked = now
            self._waited_for = self._cache.is_waited_for()
        return self._waited_for


class _Pace(Pace):
    """Of the builds until somebody waits, or the builder ends."""

    def __init__(self, life: _Life, niceness: int):
        super().__init__()
        self._life = life
        self.niceness = niceness

    def look(self) -> None:
        if self._life.over or self._life.waited_for:
            self.stopped = True


class Builder:
    """Builds what is missing in a cache folder.

    Args:
      lock: the folder's lock, held.
      niceness: of its compilers.
    """

    def __init__(self, cache: ArtifactCache, lock: KeyLock, niceness: int):
        self.cache = cache
        self.lock = lock
        self.niceness = niceness
        self.pack = Pack(cache)
        self._life = _Life(cache, lock)
        self.end = self._life.end
        self._stores: dict[str, KernelStore] = {}
        self._taken: list[detached.Request] = []

    def run(self) -> None:
        """Works until nothing is left to do."""
        while True:
            self._work()
            goes_on = not self._life.over and not self._is_in_vain
            self.lock.release()
            # A process that has left a request and found the lock held relies on this look.
            if not goes_on or not self.cache.requests() or not self.lock.acquire():
                return

    @property
    def _is_in_vain(self) -> bool:
        makers: list[Pack | KernelStore] = [self.pack, *self._stores.values()]
        return any(maker.broken is not None or not maker.libraries.keeps for maker in makers)

    def _work(self) -> None:
        while not self._life.over and not self._is_in_vain:
            if self._life.waited_for:
                time.sleep(_LOOK_SECONDS)
                continue
            pace = _Pace(self._life, self.niceness)
            if any(unit.failure is None for unit in self.pack.missing()):
                self.pack.build_missing(pace)
            elif not self._build_kernels(pace):
                return

    def _build_kernels(self, pace: Pace) -> bool:
        """Builds what one request asks for; returns whether there was one."""
        for path in self.cache.requests():
            content = self.cache.take_request(path)
            request = content and detached.Request.read(content)
            if request and request.identity == toolchain.identity(request.header):
                self._taken.append(request)
        if not self._taken:
            return False
        request = self._taken[0]
        store = self._stores.setdefault(
            request.header, KernelStore(request.header, self.cache))
        store.workers = min(KernelStore.workers, 2 if pace.has_room(1) else 1)
        store.build(request.kernels, pace)
        if not pace.stopped:
            self._taken.pop(0)
        return True


def main(directory: str, descriptor: int, niceness: int) -> None:
    """Runs the builder of a cache folder in this process, which ends with it.

    Args:
      descriptor: of the folder's lock.
      niceness: by how much the priority is lowered, of this process and so of its compilers.
    """
    folder = Path(directory)
    lock = builder_lock(folder)
    lock.adopt(descriptor)
    # Not `ArtifactCache`, which would make a folder that has been removed.
    if not lock.is_current():
        return
    cache = ArtifactCache(folder)
    if cache.usable:
        builder = Builder(cache, lock, niceness)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: builder.end())
        builder.run()
