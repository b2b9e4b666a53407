"""The pack: handwritten native kernels, built once per machine, in the background.

Each file of ``pack/`` becomes one library, as do the vector machine's operations of each dtype;
they are cached like a program's. In the background they are built by a detached builder, which
outlives this process, and where there is none, by this process. A package may also contain prebuilt
libraries (see ``tools/build_wheel.py``), which serve where this machine's own are not built.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import functools
import hashlib
import importlib.util
import json
import math
import os
import platform
import re
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from maxjax._base import threads
from maxjax._max import kernel_digest
from maxjax._max.artifacts import ArtifactCache
from maxjax._max.mojo import (
    abi,
    crew,
    detached,
    pack_exports,
    standard_library,
    toolchain,
    vector_operations,
)
from maxjax._max.mojo.store import Done, Job, Libraries, Queue, address, open_library
from maxjax._max.mojo.toolchain import Pace, ToolchainError, build_library
from maxjax._max.versions import versions
from maxjax._max.warning import warn_once

SOURCES = Path(__file__).resolve().parent / "pack"
PREBUILT = Path(__file__).resolve().parent / "prebuilt"
MANIFEST = "manifest.json"

# The libraries that most programs need come first; of the first, products take the longest. Behind
# them come those that take longest of the others, so that none is built alone at the end.
_FIRST = ("tape", "vector", "vector_float32", "matmul", "scalars", "movement", "vector_bool",
          "vector_int32", "random", "indexing", "elementwise", "vector_halves", "windows",
          "ordering")
_BUILD_SECONDS = 1200.0
_LOOK_SECONDS = 1.0  # between checks for libraries that another process has built
_LOCK_POLL_SECONDS = 0.2
_MOST_AT_ONCE = 4
# Processor time for a library, on a common machine, by which builds are estimated: with the small
# standard library, and with MAX's.
_SECONDS_EACH, _SECONDS_EACH_WITH_MAX = 1.5, 6.5
_FORMAT = 1
# The C name is given by the decorator, or else by the function.
# A text that begins so is found at once; `^` would be tried at each character of a megabyte.
_EXPORT = re.compile(
    r'\n@export(?:\("(\w+)"[^)\n]*\))?\s*\n(?:@\w+\s*\n)*def\s+(\w+)')

# What each level of x86-64 adds to the previous one, by the names in /proc/cpuinfo.
_X86_LEVELS = {
    "x86-64": "",
    "x86-64-v2": "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3",
    "x86-64-v3": "avx avx2 bmi1 bmi2 f16c fma abm movbe xsave",
    "x86-64-v4": "avx512f avx512bw avx512cd avx512dq avx512vl",
}


class _Unit:
    """One library of the pack and what became of it."""

    def __init__(self, name: str, source: str):
        self.name = name
        self.source = source
        self.exports = [name or function for name, function in _EXPORT.findall(f"\n{source}")]
        self.native: ctypes.CDLL | None = None
        self.prebuilt: ctypes.CDLL | None = None
        self.failure: str | None = None
        self.looked = float("-inf")         # when it was last looked for

    @property
    def there(self) -> bool:
        """Whether a library of it is loaded."""
        return self.native is not None or self.prebuilt is not None

    @threads.cached
    def key(self) -> bytes:
        return "\0".join((toolchain.identity(self.source), "pack", self.name, self.source)).encode()

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.source.encode()).hexdigest()


class Pack:
    """The functions of the pack by their names.

    Args:
      cache: where libraries are stored; by default the user's cache.
      sources: the folder of the Mojo files.
      prebuilt: the folder of prebuilt libraries, or None.

    Attributes:
      requested: whether this process has asked for what is missing.
    """

    def __init__(self, cache: ArtifactCache | None = None, sources: Path = SOURCES,
                 prebuilt: Path | None = PREBUILT):
        self.sources = sources
        self.prebuilt = prebuilt
        self.libraries = Libraries(cache)
        self.libraries.build_seconds = _BUILD_SECONDS
        self._queue = Queue("maxjax-pack")
        self._addresses: dict[str, int] = {}
        self.requested = False
        self._looking = threads.lock()
        self.broken: str | None = None
        self.lacks_place = False

    @threads.cached
    def units(self) -> list[_Unit]:
        """The libraries, in the order in which they are built."""
        # What belongs to a handwritten file, and follows from a table, is written behind it.
        texts = {path.stem: path.read_text(encoding="utf-8") + abi.constants(path.stem)
                 + pack_exports.text(path.stem)
                 for path in self.sources.glob("*.mojo")}
        if "scalars" in texts:
            texts["scalars"] += vector_operations.singles_text()
        if "vector" in texts:
            texts.update(vector_operations.units())
        return [_Unit(name, texts[name]) for name in sorted(texts, key=lambda name: (
            _FIRST.index(name) if name in _FIRST else len(_FIRST), name))]

    @threads.cached
    def names(self) -> dict[str, _Unit]:
        """The library of each function, by the function's name."""
        return {export: unit for unit in self.units for export in unit.exports}

    @property
    def ready(self) -> bool:
        """Whether every function has an address."""
        self._look()
        return all(unit.there for unit in self.units)

    def missing(self) -> list[_Unit]:
        """The libraries that are not there, neither built nor shipped with the package."""
        self._look()
        return [unit for unit in self.units if not unit.there]

    def address(self, name: str) -> int | None:
        """The function's address, or None while it is not built. Never raises."""
        place = self._addresses.get(name)
        if place is None and name in self.names:
            self._look([self.names[name]])
            place = self._addresses.get(name)
        return place

    def function(self, name: str, result: Any = None,
                 arguments: tuple[Any, ...] = (ctypes.c_void_p, ctypes.c_void_p)) -> Any:
        """The function for calls by ctypes.

        Args:
          result, arguments: its C types; by default those of a kernel, ``(slots, args)``.

        Raises:
          KeyError: it is not built, or there is no function of that name.
        """
        place = self.address(name)
        if place is None:
            raise KeyError(f"the pack has no function {name!r}" if name not in self.names
                           else f"{name!r} of the pack is not built")
        return ctypes.CFUNCTYPE(result, *arguments)(place)

    def request(self, done: Done | None = None, priority: float = 0.0,
                names: Iterable[str] | None = None) -> Job:
        """Has missing libraries built in the background; never raises.

        Args:
          done: called on a building thread when the libraries of ``names`` are built or have
            failed: with None, or with why one is missing.
          names: the functions to wait for, whose libraries come first; by default all.

        Returns:
          what ``wait`` takes.
        """
        self.requested = True
        wanted = None if names is None else [self.names.get(name) for name in names]
        missing = self.missing()
        first = [unit for unit in missing if wanted is None or unit in wanted]
        rest = [unit for unit in missing if unit not in first]
        job = Job(functools.partial(self._work, first), done or _nothing, priority, "pack")
        self._queue.submit(job)
        if rest:
            self._queue.submit(Job(functools.partial(self._work, rest), _nothing, priority - 1,
                                   "the rest of the pack"))
        return job

    def request_once(self, done: Done | None = None) -> bool:
        """Has what is missing built in the background, if nobody has asked for that yet.

        Returns:
          whether it is being built now, and ``done`` will be called.
        """
        if self.requested:
            return False
        self.requested = True
        if not self.missing():
            return False
        self.request(done)
        return True

    @staticmethod
    def estimate(count: int) -> str:
        """About how long it takes to build so many libraries, in words."""
        each = _SECONDS_EACH if standard_library.why_not() is None else _SECONDS_EACH_WITH_MAX
        minutes = count * each / min(crew.cores(), _MOST_AT_ONCE) / 60
        return "less than a minute" if minutes < 0.8 else (
            "about a minute" if minutes < 1.25 else f"about {math.ceil(minutes)} minutes")

    def hasten(self, job: Job) -> None:
        """Has what was requested built now, on all processors."""
        self._queue.hasten(job)

    def wait(self, job: Job, progress: Callable[[float], None] | None = None) -> str | None:
        """Hastens what was requested and waits for it; returns what its ``done`` received.

        Args:
          progress: called many times a second with the seconds since the request.
        """
        return self._queue.wait(job, progress)

    def build(self, progress: Callable[[str, float], None] | None = None) -> str | None:
        """Builds this machine's own libraries, as far as they are missing, and waits for them;
        returns why one is missing, or None.

        Args:
          progress: called with the name of each library and the seconds it took.
        """
        return self._build_side_by_side(self.units, Pace(urgent=True), progress)

    def build_missing(self, pace: Pace) -> None:
        """Builds what is not there, in this thread and for nobody who waits."""
        self._build_side_by_side(self.missing(), pace)

    @property
    def is_unfinished(self) -> bool:
        """Whether this process has requested libraries that are not there."""
        return bool(self._queue.unfinished()) and self.broken is None and bool(self.missing())

    def _work(self, units: Sequence[_Unit], pace: Pace) -> str | None:
        """Has units built by the detached builder, or builds them here where there is none."""
        deadline = time.monotonic() + self.libraries.foreign_seconds
        if units and not pace.urgent and detached.start(self.libraries.cache):
            while not (pace.urgent or pace.stopped) and time.monotonic() < deadline and any(
                    not self._adopt(unit, self.libraries.load(unit.key)) for unit in units):
                if not detached.works(self.libraries.cache):
                    break
                time.sleep(_LOOK_SECONDS / 2)
        return self._build_side_by_side(units, pace)

    def _build_side_by_side(self, units: Sequence[_Unit], pace: Pace,
                            progress: Callable[[str, float], None] | None = None) -> str | None:
        """Builds units, in their order, as many at once as the pace has room for."""
        def build(unit: _Unit) -> None:
            start = time.monotonic()
            self._build(unit, pace)
            if progress is not None:
                progress(unit.name, time.monotonic() - start)

        _side_by_side(units, build, pace)
        return self._failure(units)

    def failures(self) -> dict[str, str]:
        """The files that cannot be built, and why."""
        return {unit.name: unit.failure for unit in self.units if unit.failure is not None}

    def _failure(self, units: Sequence[_Unit] | None = None) -> str | None:
        if self.broken is not None:
            return self.broken
        failures = {unit.name: unit.failure for unit in units or self.units if unit.failure}
        return "; ".join(f"{name}: {why}" for name, why in failures.items()) or None

    def _look(self, units: Iterable[_Unit] | None = None) -> None:
        """Loads libraries that are there, and those built in the meantime, by this process or
        another.

        Args:
          units: by default all.
        """
        # Who asks while another thread loads them waits for that.
        with self._looking:
            now = time.monotonic()
            for unit in self.units if units is None else units:
                if now - unit.looked < _LOOK_SECONDS:
                    continue
                first = unit.looked == float("-inf")
                unit.looked = now
                if unit.native is None:
                    self._adopt(unit, self.libraries.load(unit.key))
                if first and unit.native is None:
                    self._look_at_prebuilt(unit)

    def _adopt(self, unit: _Unit, library: ctypes.CDLL | None) -> bool:
        if library is None:
            return False
        places = {name: address(library, name) for name in unit.exports}
        unit.native = library
        self._addresses.update(
            {name: place for name, place in places.items() if place is not None})
        return True

    def _build(self, unit: _Unit, pace: Pace) -> None:
        deadline = time.monotonic() + self.libraries.foreign_seconds
        while unit.native is None and unit.failure is None and self.broken is None \
                and not pace.stopped:
            if self._adopt(unit, self.libraries.load(unit.key)):
                break
            with self.libraries.locked([unit.key]) as locked:
                # Another process may have stored it between the check and the lock.
                if self._adopt(unit, self.libraries.load(unit.key)):
                    break
                if locked or time.monotonic() >= deadline:
                    try:
                        self._adopt(unit, self.libraries.build(unit.source, unit.key, pace=pace))
                    except ToolchainError as error:
                        self._fail(unit, error)
                    break
            pace.look()
            time.sleep(_LOCK_POLL_SECONDS)

    def _fail(self, unit: _Unit, error: ToolchainError) -> None:
        if error.kind == "stopped":
            return
        if error.kind in ("missing", "ending", "disk"):     # as for all others
            self.broken = str(error)
            self.lacks_place = error.kind == "disk"
        else:
            unit.failure = str(error)
        if error.kind != "ending":
            warn_once(f"native code is missing: {error} (pack/{unit.name}.mojo)"
                      if error.kind != "missing" else str(error))

    @threads.cached
    def _manifest(self) -> dict[str, Any] | None:
        return None if self.prebuilt is None else _read_manifest(self.prebuilt)

    @threads.cached
    def _preloaded(self) -> bool:
        """What prebuilt libraries need is loaded, once."""
        if self._manifest is not None:
            _preload(self._manifest["needs"])
        return self._manifest is not None

    def _look_at_prebuilt(self, unit: _Unit) -> None:
        if self.prebuilt is None or self._manifest is None:
            return
        described = self._manifest["libraries"].get(unit.name)
        if described is None or described["source"] != unit.digest:
            return
        path = self.prebuilt / f"{unit.name}.so"
        if not _is_trusted(path) or hashlib.sha256(
                path.read_bytes()).hexdigest() != described["digest"] or not self._preloaded:
            return
        unit.prebuilt = open_library(path)
        if unit.prebuilt is None:
            return
        for name in unit.exports:
            place = address(unit.prebuilt, name)
            if place is not None:
                self._addresses.setdefault(name, place)


def _side_by_side(units: Sequence[_Unit], build: Callable[[_Unit], None], pace: Pace) -> None:
    """Builds units in their order, as many at once as the pace has room for."""
    waiting = collections.deque(units)

    def work(builds: int) -> None:
        while waiting and not pace.stopped:
            if builds and not pace.has_room():
                time.sleep(_LOCK_POLL_SECONDS)
                continue
            try:
                unit = waiting.popleft()
            except IndexError:
                return
            build(unit)

    # Daemon threads, not a concurrent.futures pool: the interpreter must not wait for a build.
    helpers = [threading.Thread(target=work, args=(builds,), name="maxjax-pack-build", daemon=True)
               for builds in range(1, min(_MOST_AT_ONCE, crew.cores(), len(units)))]
    for helper in helpers:
        helper.start()
    work(0)
    for helper in helpers:
        helper.join()


def _nothing(error: str | None) -> None:
    pass


def _platform() -> str:
    return f"{sys.platform} {platform.machine()}"


def _is_trusted(path: Path) -> bool:
    """Whether only those may change the file or folder who may change the code that reads it."""
    try:
        status, ours = os.lstat(path), os.stat(__file__)
    except OSError:
        return False
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return False
    if os.name == "nt":
        return True
    shared = ours.st_mode & 0o020 if status.st_gid == ours.st_gid else 0
    return status.st_uid in (os.geteuid(), 0, ours.st_uid) \
        and not status.st_mode & 0o022 & ~shared


def _read_manifest(folder: Path) -> dict[str, Any] | None:
    """The manifest of libraries for this MAX, these kernels and this processor."""
    path = folder / MANIFEST
    if not _is_trusted(folder) or not _is_trusted(path):
        return None
    try:
        manifest = json.loads(path.read_bytes())
        suits = (manifest["format"] == _FORMAT and manifest["platform"] == _platform()
                 and manifest["versions"] == versions()
                 and manifest["kernels"] == kernel_digest.kernels()
                 and manifest["flags"] == list(toolchain.FLAGS)
                 and supports(manifest["target_cpu"])
                 and all(isinstance(described["source"], str)
                         and isinstance(described["digest"], str)
                         for described in manifest["libraries"].values())
                 and all(isinstance(name, str) for name in manifest["needs"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return manifest if suits else None


def supports(target_cpu: str) -> bool:
    """Whether this processor is known to run code for that target, a level of x86-64."""
    if target_cpu not in _X86_LEVELS or platform.machine() not in ("x86_64", "AMD64"):
        return False
    levels = list(_X86_LEVELS)
    wanted = " ".join(_X86_LEVELS[level] for level in levels[:levels.index(target_cpu) + 1])
    return set(wanted.split()) <= _processor_flags()


def _processor_flags() -> set[str]:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("flags"):
                    return set(line.partition(":")[2].split())
    except OSError:
        pass
    return set()


def _preload(names: list[str]) -> None:
    """Loads MAX's libraries, for libraries that name them without a path."""
    folders = {Path(location).parent / "modular" / "lib" for package in ("max", "mojo")
               for location in _locations(package)}
    for name in names:
        for folder in folders:
            if Path(name).name == name and (folder / name).exists():
                open_library(folder / name)


def _locations(package: str) -> Sequence[str]:
    """The folders of a package, which is not imported."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return ()
    return () if spec is None else spec.submodule_search_locations or ()


_SYSTEM = ("libc.", "libm.", "libdl.", "libpthread.", "ld-linux")
_DYNAMIC, _LOAD = 2, 1  # program headers
_END, _NEEDED, _STRTAB, _STRSZ, _RPATH, _RUNPATH = 0, 1, 5, 10, 15, 29  # dynamic entries


def make_portable(path: Path) -> list[str]:
    """Removes a library's search path for others; returns the libraries of MAX that it needs.

    The compiler writes its own folder there, which on another machine may belong to anyone.

    Raises:
      ValueError: the file is not a 64-bit little-endian ELF library.
    """
    content = bytearray(path.read_bytes())
    if content[:6] != b"\x7fELF\x02\x01":
        raise ValueError(f"{path} is not an ELF library")
    offset, = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    headers = [struct.unpack_from("<IIQQQQ", content, offset + i * size) for i in range(count)]

    def place(address: int) -> int:
        return next(start + address - base for kind, _, start, base, _, length in headers
                    if kind == _LOAD and base <= address < base + length)

    def text(position: int) -> str:
        return content[position:content.index(0, position)].decode()

    start = next(start for kind, _, start, *_ in headers if kind == _DYNAMIC)
    entries: list[tuple[int, int]] = []
    while not entries or entries[-1][0] != _END:
        entries.append(struct.unpack_from("<QQ", content, start + 16 * len(entries)))
    values = dict(entries)
    strings = place(values[_STRTAB])
    for i, (kind, value) in enumerate(entries):
        if kind in (_RPATH, _RUNPATH):
            # An entry cannot be removed, but may be repeated.
            struct.pack_into("<QQ", content, start + 16 * i, _STRSZ, values[_STRSZ])
            length = len(text(strings + value).encode())
            content[strings + value:strings + value + length] = bytes(length)
    path.write_bytes(content)
    needed = [text(strings + value) for kind, value in entries if kind == _NEEDED]
    return [name for name in needed if not name.startswith(_SYSTEM)]


def main(arguments: list[str] | None = None) -> int:
    """Builds the libraries of a package for other machines; returns an exit status."""
    parser = argparse.ArgumentParser(
        description="Builds the pack's libraries for other machines, with a manifest.")
    parser.add_argument("directory", type=Path, help="where to write them")
    parser.add_argument("--target-cpu", default="x86-64-v3", choices=list(_X86_LEVELS))
    chosen = parser.parse_args(arguments)
    chosen.directory.mkdir(mode=0o755, parents=True, exist_ok=True)
    libraries: dict[str, dict[str, str]] = {}
    needs: set[str] = set()
    failures = []
    pace = Pace(urgent=True)

    def build(unit: _Unit) -> None:
        start = time.monotonic()
        output = chosen.directory / f"{unit.name}.so"
        try:
            build_library(unit.source, output, target=chosen.target_cpu, seconds=_BUILD_SECONDS,
                          pace=pace)
        except ToolchainError as error:
            failures.append(f"{unit.name}: {error}")
            pace.stopped = True
            return
        needs.update(make_portable(output))
        content = output.read_bytes()
        libraries[unit.name] = {"digest": hashlib.sha256(content).hexdigest(),
                                "source": unit.digest}
        print(f"{unit.name}: {time.monotonic() - start:.1f} s, {len(content)} bytes", flush=True)

    _side_by_side(Pack(prebuilt=None).units, build, pace)
    if failures:
        print(failures[0], file=sys.stderr)
        return 1
    manifest = {"format": _FORMAT, "platform": _platform(), "versions": versions(),
                "kernels": kernel_digest.kernels(), "flags": list(toolchain.FLAGS),
                "target_cpu": chosen.target_cpu, "needs": sorted(needs), "libraries": libraries}
    (chosen.directory / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n")
    return 0
