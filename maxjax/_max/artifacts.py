"""The on-disk cache of compiled programs.

An artifact is native code that a process loads and runs, so the folder must be the user's own, and
every file in it is checked before use:

- ``<name>.key`` is the entry: one line of JSON with the artifact's digest and size, then the
  key, byte for byte. ``name`` is the SHA-256 of the key; it only locates the file; the key itself
  is compared in full. Several entries may name one artifact.
- ``<name>-<digest>.mef`` (``.so`` for a shared library) is the artifact, named by its own digest:
  two processes that store the same key never mix one's entry with the other's code, and the
  entry, renamed into place last, is what makes the artifact visible.
- ``<name>.lock`` is held (``flock``) by the process that compiles the key, ``builder.lock`` by the
  folder's detached builder.
- ``library-*`` is a folder with the standard library that kernels are compiled with (see
  ``mojo/standard_library.py``); one that is not used for a month is removed.
- ``incoming-*`` is a file being written, ``building-*`` a folder in which a compiler works. Their
  names begin with the number of a process, which holds ``process-<number>`` while it lives:
  what is left of others is removed when a process first looks at the folder, and whenever one
  stores something. Where a file system has no locks, it is what is older than an hour.
- ``request-*`` is what a process has left to the builder, for an hour.

The time of an entry's last use is its file's modification time.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from maxjax._base import threads, variables
from maxjax._max.folder_locks import KeyLock, claims, fresh_name
from maxjax._max.folder_trust import is_ours, is_prepared, may_be_read, why_exchangeable

DEFAULT_MAX_BYTES = 2 << 30
_FORMAT = 1
_DIGEST_DIGITS = 32  # of the artifact's digest, in its file name
_INCOMING_LIFETIME = 3600.0  # seconds
_LIBRARY_LIFETIME = 30 * 86400.0
_CHUNK = 1 << 20
_ENTRY = re.compile(r"[0-9a-f]{64}\.key")
_ARTIFACT = re.compile(r"([0-9a-f]{64})-([0-9a-f]{32})\.(mef|so|o)")
# In names of 32 digits the first half is the process's.
_INCOMING = re.compile(r"incoming-([0-9a-f]{16}(?=[0-9a-f]{16}(?:\.|$)))?[0-9a-f]+(\.(mef|so|o))?")
_BUILDING = re.compile(r"building-([0-9a-f]{16}(?=[0-9a-f]{16}$))?[0-9a-f]+")
_STANDARD_LIBRARY = re.compile(r"library-[0-9a-f]{32}")
_REQUEST = re.compile(r"request-[0-9a-f]+")
_LOCK = re.compile(r"([0-9a-f]{64}|builder)\.lock")
_PROCESS = re.compile(r"process-[0-9a-f]{16}")
_MOST_REQUESTS = 16


def _working_directory() -> Path | None:
    try:
        return Path.cwd()
    except OSError:      # it has been removed
        return None


# The cache is opened when a program first needs it, and the program may be elsewhere by then.
_IMPORTED_IN = _working_directory()


def default_directory() -> Path:
    """``MAXJAX_CACHE_DIR``, from where maxjax was imported, or the platform's folder for caches."""
    chosen = os.environ.get("MAXJAX_CACHE_DIR")
    if chosen:
        # Without a folder to begin at it stays relative, and cannot be made.
        return (_IMPORTED_IN or Path()) / Path(chosen).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "maxjax"
    if os.name == "nt":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "maxjax" / "Cache"
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification ignores relative paths.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "maxjax"


def _why_unusable(directory: Path) -> str | None:
    """Makes the directory if it is missing; returns why it cannot hold the cache, or None."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = os.lstat(directory)
        if stat.S_ISLNK(status.st_mode):
            return f"{directory} is a symbolic link"
        if not stat.S_ISDIR(status.st_mode):
            return f"{directory} is not a directory"
        if os.name != "nt":
            if status.st_uid != os.geteuid():
                return f"{directory} belongs to another user (uid {status.st_uid})"
            if status.st_mode & 0o022:
                return (f"{directory} is writable by other users "
                        f"(mode {stat.S_IMODE(status.st_mode):04o}; chmod 700 it)")
        exchangeable = why_exchangeable(directory)
        if exchangeable is not None:
            return exchangeable
        probe = directory / fresh_name("incoming", directory)
        descriptor = _create(probe)
        owned = is_ours(os.fstat(descriptor))
        os.close(descriptor)
        probe.unlink()
        if not owned:  # network file systems do this to the root user
            return f"files made in {directory} belong to another user"
    except (OSError, ValueError) as error:
        return f"{directory} is not writable: {error}"
    return None


def _create(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)


def _open_checked(path: Path, size: int | None = None) -> int | None:
    """A descriptor of a regular file that we own, or None."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
    # A FIFO at this path must not block the open.
    flags |= getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        descriptor = os.open(path, flags)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode) and may_be_read(path, status) and size in (
            None, status.st_size):
        return descriptor
    os.close(descriptor)
    return None


def _digest(path: Path, size: int | None = None) -> tuple[str, int] | None:
    """SHA-256 and size of a file that we own, or None if it is unreadable or of another size."""
    descriptor = _open_checked(path, size)
    if descriptor is None:
        return None
    digest, count = hashlib.sha256(), 0
    try:
        with open(descriptor, "rb", buffering=0) as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                count += len(chunk)
    except OSError:
        return None
    return digest.hexdigest(), count


class _TemporaryDirectory:
    """A private directory, removed when the process that made it ends, not when its forks do."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="maxjax-"))
        self.process = os.getpid()
        atexit.register(self.remove)

    def remove(self) -> None:
        if os.getpid() == self.process:
            shutil.rmtree(self.path, ignore_errors=True)


def _is_abandoned(match: re.Match[str], directory: Path, age: float) -> bool:
    """Whether the process that was writing something has ended, by the name and age of that."""
    if match[1] is None:
        return age > _INCOMING_LIFETIME
    return match[1] != claims.number(directory) and not KeyLock(
        directory / f"process-{match[1]}").is_held()


class ArtifactCache:
    """Compiled programs by the full text of their keys, bounded in size; an LRU cache.

    Attributes:
      directory: where the files are. When the wanted folder cannot be trusted or written, a
        private temporary one of this process.
      usable: whether ``directory`` is the wanted folder.
      reason: why it is not, or None.
      prepared: the wanted folder, where it cannot be written but can be trusted: it is read, and
        what it lacks is kept in ``directory``.

    Methods never raise because of the folder's contents or disk errors: whatever cannot be used is
    a miss.
    """

    def __init__(self, directory: Path | None = None, max_bytes: int | None = None):
        self.max_bytes = (variables.cache_max_bytes(DEFAULT_MAX_BYTES) if max_bytes is None
                          else max_bytes)
        # Names of artifacts whose digest this process has checked, with the state of the file.
        self._verified: dict[str, tuple[int, int, int]] = {}
        self.reason: str | None = None
        self.prepared: Path | None = None
        try:
            self.directory = Path(directory) if directory is not None else default_directory()
            self.reason = _why_unusable(self.directory)
        except RuntimeError as error:  # no home directory
            self.reason = str(error)
        self.usable = self.reason is None
        if self.usable:
            with contextlib.suppress(OSError):
                self._remove_leftovers()
        else:
            if self.reason is not None and is_prepared(getattr(self, "directory", Path())):
                self.prepared = self.directory
            try:
                self.directory = _TemporaryDirectory().path
            except OSError as error:
                self.reason = f"{self.reason}; nor is there a temporary directory: {error}"
                self.directory = Path(os.devnull) / "maxjax"  # every access fails, so all misses

    def lookup(self, key: bytes) -> Path | None:
        """The artifact stored for exactly this key, its digest checked, or None."""
        found = self._find(self.directory, key)
        if found is None and self.prepared is not None:
            found = self._find(self.prepared, key)
        return found

    def _find(self, directory: Path, key: bytes) -> Path | None:
        name = hashlib.sha256(key).hexdigest()
        entry = directory / f"{name}.key"
        found = self._read_entry(entry, key)
        if found is None:
            return None
        artifact, digest, size = found
        if not self._verify(artifact, digest, size):
            _remove_ours(artifact)
            _remove_ours(entry)
            return None
        for used in {entry, directory / f"{artifact.name[:64]}.key"}:
            with contextlib.suppress(OSError):
                os.utime(used)
        return artifact

    def store(self, key: bytes, artifact: Path, also: Sequence[bytes] = (),
              suffix: str = ".mef") -> Path | None:
        """Moves a finished file into the cache under ``key`` and returns its new path.

        On any failure, a full disk for instance, returns None: the cache is unchanged and
        ``artifact`` stays where it is. On success ``artifact`` has moved.

        Args:
          also: further keys of the same artifact. It is removed together with ``key``; if one of
            these cannot be written, that one is a miss.
          suffix: of the file's name, ``".mef"``, ``".so"`` or ``".o"``.
        """
        name = hashlib.sha256(key).hexdigest()
        temporary: list[Path] = []
        try:
            source = self._adopt(Path(artifact), temporary)
            measured = _digest(source)
            if measured is None:
                return None
            digest, size = measured
            target = self.directory / f"{name}-{digest[:_DIGEST_DIGITS]}{suffix}"
            header = {"format": _FORMAT, "digest": digest, "size": size, "artifact": target.name}
            entry = self._write_entry(header, key, temporary)
            os.replace(source, target)
            temporary.append(target)
            os.replace(entry, self.directory / f"{name}.key")
            temporary.clear()
        except OSError:
            for path in temporary:
                if path.suffix == suffix and path.name.startswith(name):
                    # Without its entry the artifact is invisible: return the file to the caller.
                    with contextlib.suppress(OSError):
                        os.replace(path, artifact)
                with contextlib.suppress(OSError):
                    path.unlink()
            return None
        for further in also:
            try:
                os.replace(self._write_entry(header, further, temporary),
                           self.directory / f"{hashlib.sha256(further).hexdigest()}.key")
            except OSError:
                for path in temporary:
                    _remove_ours(path)
            temporary.clear()
        self._remember(target)
        if Path(artifact).exists() and Path(artifact) != target:
            with contextlib.suppress(OSError):
                Path(artifact).unlink()
        with contextlib.suppress(OSError):
            self._evict(keep=name)
        return target

    def discard(self, key: bytes) -> None:
        """Forgets one key, for when its artifact turns out not to load."""
        name = hashlib.sha256(key).hexdigest()
        _remove_ours(self.directory / f"{name}.key")
        with contextlib.suppress(OSError):
            for path in list(self.directory.glob(f"{name}-*")):
                _remove_ours(path)

    def clear(self) -> None:
        """Removes all entries. Programs already loaded keep running."""
        with contextlib.suppress(OSError):
            for item in list(os.scandir(self.directory)):
                if any(kind.fullmatch(item.name)
                       for kind in (_ENTRY, _ARTIFACT, _INCOMING, _REQUEST)):
                    _remove_ours(Path(item.path))
        self._verified.clear()

    def incoming(self, suffix: str = ".mef") -> Path:
        """A fresh path on the cache's file system, for a compiler to write to."""
        claims.claim(self.directory)
        return self.directory / f"{fresh_name('incoming', self.directory)}{suffix}"

    def key_lock(self, key: bytes) -> KeyLock:
        """The lock that processes sharing this folder take while they compile ``key``."""
        return KeyLock(self.directory / f"{hashlib.sha256(key).hexdigest()}.lock")

    def leave_request(self, content: bytes) -> bool:
        """Leaves a text to the folder's builder; returns whether it is there.

        Only so many are kept: of older ones the oldest go.
        """
        temporary: list[Path] = []
        try:
            for path in self.requests()[:1 - _MOST_REQUESTS]:
                _remove_ours(path)
            os.replace(self._write(content, temporary),
                       self.directory / f"request-{os.urandom(12).hex()}")
        except OSError:
            for path in temporary:
                _remove_ours(path)
            return False
        return True

    def requests(self) -> list[Path]:
        """What processes have left to the builder, the oldest first."""
        found = []
        with contextlib.suppress(OSError):
            for item in os.scandir(self.directory):
                with contextlib.suppress(OSError):
                    if _REQUEST.fullmatch(item.name):
                        found.append((item.stat(follow_symlinks=False).st_mtime_ns, item.path))
        return [Path(path) for _, path in sorted(found)]

    def take_request(self, path: Path) -> bytes | None:
        """A request's text, which is removed: one that ends its builder is not tried again."""
        content = None
        descriptor = _open_checked(path)
        if descriptor is not None:
            with contextlib.suppress(OSError), open(descriptor, "rb") as file:
                content = file.read()
        _remove_ours(path)
        return content

    def open_to_readers(self, keys: Iterable[bytes]) -> bool:
        """Has those read what is stored for some keys who may read the folder: others than this
        user, where an administrator has made it so. Whether there are such.

        Raises:
          OSError: it cannot be done.
        """
        given = os.lstat(self.directory).st_mode & 0o044
        for key in keys if given and os.name != "nt" else ():
            entry = self.directory / f"{hashlib.sha256(key).hexdigest()}.key"
            found = self._read_entry(entry, key)
            for path in () if found is None else (found[0], entry):
                status = os.lstat(path)
                if stat.S_ISREG(status.st_mode) and is_ours(status):
                    os.chmod(path, stat.S_IMODE(status.st_mode) | given)
        return bool(given)

    def unreadable(self) -> int:
        """How many files of a prepared folder this user may not read."""
        with contextlib.suppress(OSError):
            return 0 if self.prepared is None else sum(
                not os.access(item.path, os.R_OK) for item in os.scandir(self.prepared)
                if _ENTRY.fullmatch(item.name) or _ARTIFACT.fullmatch(item.name))
        return 0

    def size(self) -> tuple[int, int]:
        """The number of entries and the bytes of all files."""
        entries = total = 0
        with contextlib.suppress(OSError):
            for item in os.scandir(self.directory):
                with contextlib.suppress(OSError):
                    entries += _ENTRY.fullmatch(item.name) is not None
                    total += item.stat(follow_symlinks=False).st_size
        return entries, total

    def _read_entry(self, entry: Path, key: bytes) -> tuple[Path, str, int] | None:
        """The artifact, its digest and size in a valid entry for ``key``; removes invalid ones."""
        if not os.path.lexists(entry):
            return None
        descriptor = _open_checked(entry)
        if descriptor is None:
            _remove_ours(entry)
            return None
        try:
            with open(descriptor, "rb") as file:
                header = json.loads(file.readline(4096))
                stored = file.read(len(key) + 1)
            if header["format"] != _FORMAT:
                return None
            digest, size, key_size = header["digest"], header["size"], header["key_size"]
            artifact = header.get("artifact", f"{entry.stem}-{digest[:_DIGEST_DIGITS]}.mef")
            match = _ARTIFACT.fullmatch(artifact)
            sound = (re.fullmatch(r"[0-9a-f]{64}", digest) is not None
                     and match is not None and match[2] == digest[:_DIGEST_DIGITS]
                     and isinstance(size, int) and len(stored) == key_size)
        except OSError:
            return None
        except (ValueError, KeyError, TypeError):
            sound = False
        if not sound:
            _remove_ours(entry)
            return None
        return (entry.parent / artifact, digest, size) if stored == key else None

    def _verify(self, artifact: Path, digest: str, size: int) -> bool:
        try:
            status = os.lstat(artifact)
        except OSError:
            return False
        state = (status.st_ino, status.st_size, status.st_mtime_ns)
        if self._verified.get(artifact.name) == state:
            return stat.S_ISREG(status.st_mode) and may_be_read(artifact, status)
        if _digest(artifact, size) != (digest, size):
            return False
        self._verified[artifact.name] = state
        return True

    def _remember(self, artifact: Path) -> None:
        """Records an artifact whose digest was computed while it was stored."""
        with contextlib.suppress(OSError):
            status = os.lstat(artifact)
            self._verified[artifact.name] = (status.st_ino, status.st_size, status.st_mtime_ns)

    def _adopt(self, artifact: Path, temporary: list[Path]) -> Path:
        """The artifact as a private file on the cache's file system.

        Raises:
          OSError: it cannot be read, or copied.
        """
        status = os.lstat(artifact)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{artifact} is not a regular file")
        if (artifact.parent == self.directory and status.st_nlink == 1
                and (os.name == "nt" or status.st_uid == os.geteuid())):
            os.chmod(artifact, 0o600)
            return artifact
        copy = self.incoming()
        with open(artifact, "rb") as source, open(_create(copy), "wb") as file:
            temporary.append(copy)
            shutil.copyfileobj(source, file, _CHUNK)
        return copy

    def _write_entry(self, header: dict[str, object], key: bytes, temporary: list[Path]) -> Path:
        described = json.dumps({**header, "key_size": len(key)})
        return self._write(described.encode() + b"\n" + key, temporary)

    def _write(self, content: bytes, temporary: list[Path]) -> Path:
        path = self.directory / fresh_name("incoming", self.directory)
        with open(_create(path), "wb") as file:
            temporary.append(path)
            file.write(content)
        return path

    def _remove_leftovers(self) -> int:
        """Removes what processes that have ended were writing; returns the bytes of what others
        are writing, which are part of the bound."""
        now, total = time.time(), 0
        for item in list(os.scandir(self.directory)):
            match = _INCOMING.fullmatch(item.name) or _BUILDING.fullmatch(item.name)
            if _PROCESS.fullmatch(item.name):
                lock = KeyLock(Path(item.path))
                with threads.unforked:
                    if not lock.is_held() and lock.acquire():
                        lock.release()
            if match is None:
                continue
            try:
                status = item.stat(follow_symlinks=False)
            except OSError:
                continue
            if not _is_abandoned(match, self.directory, now - status.st_mtime):
                total += _bytes_of(Path(item.path))
            elif stat.S_ISDIR(status.st_mode):
                shutil.rmtree(item.path, ignore_errors=True)
            else:
                _remove_ours(Path(item.path))
        return total

    def _evict(self, keep: str) -> None:
        """Removes the least recently used entries until the bound holds; never the entry ``keep``.

        Also removes what killed processes left.
        """
        now, total = time.time(), self._remove_leftovers()
        used: dict[str, float] = {}
        files: dict[str, list[tuple[Path, int]]] = {}
        for item in os.scandir(self.directory):
            try:
                status = item.stat(follow_symlinks=False)
            except OSError:
                continue
            abandoned = now - status.st_mtime > _INCOMING_LIFETIME
            match = _ARTIFACT.fullmatch(item.name)
            if _ENTRY.fullmatch(item.name):
                name = item.name[:64]
                used[name] = status.st_mtime
            elif match:
                name = match[1]
            elif abandoned and _REQUEST.fullmatch(item.name):
                _remove_ours(Path(item.path))
                continue
            elif (now - status.st_mtime > _LIBRARY_LIFETIME
                  and _STANDARD_LIBRARY.fullmatch(item.name)):
                if stat.S_ISDIR(status.st_mode):
                    shutil.rmtree(item.path, ignore_errors=True)
                continue
            elif abandoned and _LOCK.fullmatch(item.name):
                lock = KeyLock(Path(item.path))
                if lock.acquire():
                    lock.release()
                continue
            else:
                continue
            files.setdefault(name, []).append((Path(item.path), status.st_size))
            total += status.st_size
            if match and name != keep and abandoned and not (
                    self.directory / f"{name}.key").exists():
                used.setdefault(name, 0.0)  # no entry names it: removed first
        for name in sorted(used, key=used.__getitem__):
            if used[name] and total <= self.max_bytes:
                break
            if name == keep:
                continue
            # The entry is removed first, so that it never names a missing artifact.
            for path, size in sorted(files[name], key=lambda file: file[0].suffix != ".key"):
                _remove_ours(path)
                total -= size


def _bytes_of(path: Path) -> int:
    """The bytes of a file, or of the files in a folder, as far as they can be seen."""
    total = 0
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode):
            return status.st_size
        for item in os.scandir(path):
            total += _bytes_of(Path(item.path))
    return total


def _remove_ours(path: Path) -> None:
    """Removes a file or a symbolic link, if this user owns it."""
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        if stat.S_ISDIR(status.st_mode):
            return
        if os.name == "nt" or status.st_uid == os.geteuid():
            path.unlink()
