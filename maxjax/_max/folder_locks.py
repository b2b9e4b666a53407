"""Locks among the processes that share a cache folder, and who of them is alive."""

from __future__ import annotations

import atexit
import contextlib
import os
from pathlib import Path

from maxjax._base import threads

try:
    import fcntl
except ImportError:  # Windows: no lock, so two processes may compile the same program
    fcntl = None  # type: ignore[assignment]


class KeyLock:
    """An exclusive lock, to compile one key for instance, among the processes that share a cache
    folder.

    The operating system releases it when its holder dies. A file system without locks grants it to
    everyone: programs are then compiled twice, which only costs time.
    """

    def __init__(self, path: Path):
        self.path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Takes the lock if it is free; never blocks."""
        if fcntl is None:
            return True
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        for _ in range(8):
            try:
                descriptor = os.open(self.path, flags, 0o600)
            except OSError:
                return True
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                return False
            except OSError:
                os.close(descriptor)
                return True
            # The previous holder may have removed the file that we have just locked.
            self._descriptor = descriptor
            if self.is_current():
                return True
            self.abandon()
        return False

    def is_held(self) -> bool:
        """Whether a process holds it."""
        if fcntl is None:
            return False
        with threads.unforked:      # a child would hold what is opened here
            try:
                descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            except OSError:
                return False
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            except OSError:
                return False
            finally:
                os.close(descriptor)
        return False

    @property
    def descriptor(self) -> int | None:
        """By which another process can be given the lock, if this one holds it."""
        return self._descriptor

    def adopt(self, descriptor: int) -> None:
        """Takes over a lock that another process has acquired for this one."""
        os.set_inheritable(descriptor, False)
        self._descriptor = descriptor

    def is_current(self) -> bool:
        """Whether this process holds the lock, and its file has not been removed."""
        try:
            return self._descriptor is not None and os.path.samestat(
                os.lstat(self.path), os.fstat(self._descriptor))
        except OSError:
            return False

    def release(self) -> None:
        """Releases the lock, and removes its file."""
        if self.is_current():       # not one that was made after ours was removed
            with contextlib.suppress(OSError):
                self.path.unlink()
        self.abandon()

    def abandon(self) -> None:
        """Closes this process's copy of the lock, as a forked child must."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            with contextlib.suppress(OSError):
                os.close(descriptor)


def builder_lock(directory: Path) -> KeyLock:
    """The lock of the one process that builds for a cache folder when others have ended."""
    return KeyLock(directory / "builder.lock")


class Claims:
    """This process's numbers in cache folders, each with a lock that is held until it ends."""

    def __init__(self) -> None:
        self._locks: dict[Path, tuple[str, KeyLock]] = {}
        threads.after_fork(self._after_fork_in_child)
        atexit.register(self._release)

    def claim(self, directory: Path) -> None:
        """Makes this process known in a folder, as far as its file system has locks."""
        number = os.urandom(8).hex()
        lock = KeyLock(directory / f"process-{number}")
        with threads.unforked:      # a child would hold it
            if not self.number(directory) and lock.acquire() and lock.descriptor is not None:
                self._locks[directory] = number, lock

    def number(self, directory: Path) -> str:
        """This process's number in a folder; empty if it has none, or its lock has been removed."""
        number, lock = self._locks.get(directory, ("", None))
        return number if lock is not None and lock.is_current() else ""

    def _release(self) -> None:
        for _, lock in self._locks.values():
            lock.release()
        self._locks = {}

    def _after_fork_in_child(self) -> None:
        for _, lock in self._locks.values():
            lock.abandon()
        self._locks = {}


claims = Claims()


def fresh_name(kind: str, directory: Path) -> str:
    """A name for what this process is about to write in a folder: ``incoming``, ``building``."""
    number = claims.number(directory)
    return f"{kind}-{number}{os.urandom(8 if number else 12).hex()}"
