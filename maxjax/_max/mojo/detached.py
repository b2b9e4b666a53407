"""Starting a detached builder, a process that goes on building when the one that began has ended.

There is one for a cache folder: it holds the folder's lock (``folder_locks.builder_lock``), which
the process that starts it hands over. It has a session of its own, and no terminal, files or
parent; see ``builder.py`` for what it does. A process leaves to it the kernel
pack, and when it ends the kernels that it has requested, as far as they are not built.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from maxjax._base import config, threads
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.folder_locks import builder_lock, fcntl
from maxjax._max.mojo import toolchain
from maxjax._max.mojo.store import Kernel, KernelStore, Source
from maxjax._max.mojo.toolchain import ToolchainError

# What a process that ends leaves at most: some minutes of work.
MOST_KERNELS = 128
MOST_TEXT = 1 << 20

# Arguments: the cache folder, the lock's descriptor, what sys.path has besides Python's library.
# The process that forks is waited for, and its child is nobody's.
_BUILDER = """
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
directory, lock, *paths = sys.argv[1:]
sys.path += paths
from maxjax._max.mojo.builder import main
main(directory, int(lock))
"""
_START_SECONDS = 20.0
_PACKAGE = str(Path(__file__).resolve().parents[3])


class Queued(NamedTuple):
    """A kernel as another process has written it (see ``store.Written``)."""

    identity: str
    source: str


class Request(NamedTuple):
    """Kernels that a process has left to the builder.

    Attributes:
      identity: of the compiler and of the header, without which the kernels would be others.
    """

    identity: str
    header: str
    kernels: tuple[Queued, ...]

    @classmethod
    def of(cls, header: str, sources: Sequence[Source]) -> Request:
        """The first of the kernels, as many as may be left."""
        kept, size = [], 0
        for kernel in map(Kernel, sources[:MOST_KERNELS]):
            size += len(kernel.source)
            if size > MOST_TEXT:
                break
            kept.append(Queued(kernel.identity, kernel.source))
        return cls(toolchain.identity(header), header, tuple(kept))

    @classmethod
    def read(cls, content: bytes) -> Request | None:
        """None if it is damaged."""
        try:
            identity, header, listed = json.loads(content)
            kernels = tuple(Queued(*kernel) for kernel in listed)
        except (ValueError, TypeError):
            return None
        texts = (identity, header, *(text for kernel in kernels for text in kernel))
        return cls(identity, header, kernels) if all(
            isinstance(text, str) for text in texts) else None

    @property
    def content(self) -> bytes:
        return json.dumps(self).encode()


def works(cache: ArtifactCache) -> bool:
    """Whether a builder works for the folder."""
    return builder_lock(cache.directory).is_held()


def start(cache: ArtifactCache) -> bool:
    """Has a builder work for the folder, unless one does; returns whether one works.

    There is none where ``detached_builds`` is off, nothing can be compiled, or the system has no
    such locks and processes.
    """
    if not config.detached_builds.value or not cache.usable or fcntl is None \
            or not hasattr(os, "setsid"):
        return False
    try:
        toolchain.check()
    except ToolchainError:
        return False
    lock = builder_lock(cache.directory)
    with threads.unforked:      # a child would hold the lock
        if not lock.acquire():
            return True
        if lock.descriptor is None:     # a file system without locks
            return False
        if _start(cache, lock.descriptor):
            lock.abandon()      # it is the builder's now
            return True
        lock.release()
        return False


def hand_over(store: KernelStore, others: bool) -> None:
    """Leaves the kernels that a store has not built yet to its folder's builder, and has it work.
    Kernels beyond ``MOST_KERNELS`` or ``MOST_TEXT`` are left out.

    Args:
      others: whether there is something else to build.
    """
    sources = store.unfinished()
    cache = store.libraries.cache
    if not (sources or others) or not config.detached_builds.value or not cache.usable:
        return
    if sources:
        others = cache.leave_request(Request.of(store.header, sources).content) or others
    if others:
        start(cache)


def _start(cache: ArtifactCache, lock: int) -> bool:
    paths = [_PACKAGE, *(os.path.abspath(path) for path in sys.path)]
    environment = {**os.environ, "MAXJAX_CACHE_DIR": str(cache.directory),
                   "MAXJAX_DETACHED_BUILDS": "0"}
    # Isolated from the variables that say so, too.
    flags = ["-I", "-S", *(["-B"] if sys.dont_write_bytecode else [])]
    try:
        process = subprocess.Popen(
            [sys.executable, *flags, "-c", _BUILDER, str(cache.directory), str(lock), *paths],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env=environment, cwd="/", start_new_session=True, pass_fds=(lock,))
    except (OSError, ValueError, TypeError):        # TypeError: sys.executable is None
        return False
    try:
        return process.wait(_START_SECONDS) == 0
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(1.0)
        return False
