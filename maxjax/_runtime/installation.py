"""The installation: ``python -m maxjax --version``, ``--doctor`` and ``--prepare``."""

from __future__ import annotations

import importlib.util
import platform
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from maxjax._base import config
from maxjax._max import artifacts
from maxjax._max.mojo import crew, detached, standard_library, toolchain
from maxjax._max.mojo.pack_library import Pack
from maxjax._max.mojo.toolchain import Pace, ToolchainError
from maxjax._max.versions import versions
from maxjax._runtime import devices

_PREPARE = "`python -m maxjax --prepare`"
_TRIAL_SECONDS = 120.0


def describe(release: str) -> str:
    """The versions, in one line, that of maxjax as given."""
    return (f"{release}, {versions()}, NumPy {np.__version__}, "
            f"Python {platform.python_version()}")


# --- the pack -------------------------------------------------------------------------------------

def prepare() -> int:
    """Builds what is missing of the kernel pack, and says how it goes; returns an exit status."""
    pack = Pack()
    cache = pack.libraries.cache
    if not cache.usable:
        print(f"the kernel pack cannot be kept: {cache.reason}\n"
              "MAXJAX_CACHE_DIR names another folder", file=sys.stderr)
        return 1
    missing, many = [unit.name for unit in pack.missing()], len(pack.units)
    if missing:
        start = time.monotonic()
        problem = _with_progress(pack, missing)
        if problem is not None:
            print(f"the kernel pack is not complete: {problem}", file=sys.stderr)
            return 1
        if not pack.libraries.keeps:
            print(f"the kernel pack is not kept: {cache.directory} cannot take it (is the disk "
                  "full?)", file=sys.stderr)
            return 1
        print(f"the kernel pack: built {len(missing)} of {many} libraries in "
              f"{time.monotonic() - start:.0f} s")
    print(f"the kernel pack is ready: {_where(pack)}")
    try:
        if cache.open_to_readers([unit.key for unit in pack.units]):
            print("it can be read by those who may read the folder")
    except OSError as error:
        print(f"the kernel pack cannot be made readable for others: {error}", file=sys.stderr)
        return 1
    return 0


def _with_progress(pack: Pack, missing: Sequence[str]) -> str | None:
    """Builds the pack; on a terminal with a line that changes, elsewhere with one a library."""
    start = time.monotonic()
    built = 0
    result: list[str | None] = []
    is_terminal = sys.stdout is not None and sys.stdout.isatty()

    def progress(name: str, seconds: float) -> None:
        nonlocal built
        if name not in missing or pack.broken is not None or name in pack.failures():
            return
        built += 1
        if not is_terminal:
            print(f"{built}/{len(missing)} {name}: {seconds:.1f} s", flush=True)

    if not is_terminal:
        return pack.build(progress)
    # The compiler's own threads are waited for here: this one draws.
    worker = threading.Thread(target=lambda: result.append(pack.build(progress)), daemon=True)
    worker.start()
    while worker.is_alive():
        print(f"\r\x1b[Kbuilding the kernel pack: {built} of {len(missing)} libraries, "
              f"{time.monotonic() - start:.0f} s", end="", flush=True)
        worker.join(0.5)
    print("\r\x1b[K", end="")
    return result[0] if result else "the build ended without an answer"


def _where(pack: Pack) -> str:
    """Where the libraries that are there come from."""
    shipped = sum(unit.native is None and unit.prebuilt is not None for unit in pack.units)
    built = sum(unit.native is not None for unit in pack.units)
    parts = [f"{built} in {pack.libraries.cache.directory}"] if built else []
    return ", ".join([*parts, *([f"{shipped} shipped with maxjax"] if shipped else [])])


# --- the doctor -----------------------------------------------------------------------------------

class Finding(NamedTuple):
    """One line of the report.

    Attributes:
      remedy: what to do, where something is broken.
    """

    what: str
    state: str
    remedy: str | None = None


def examine(release: str) -> int:
    """Prints what is there and what is broken; returns an exit status.

    Args:
      release: maxjax's version.
    """
    missing = importlib.util.find_spec("max") is None
    findings = [Finding("versions", describe(release),
                        "install MAX: pip install max" if missing else None)]
    for check in (_compiler, _cache, _pack, _threads, _devices, _options):
        findings += _careful(check)
    for finding in findings:
        print(f"{'ok' if finding.remedy is None else 'BROKEN':7}{finding.what:10}{finding.state}")
        if finding.remedy is not None:
            print(f"{'':17}{finding.remedy}")
    return 1 if any(finding.remedy is not None for finding in findings) else 0


def _careful(check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    try:
        yield from check()
    except Exception as error:      # whatever is broken, the rest is reported
        yield Finding(check.__name__.strip("_"), f"{type(error).__name__}: {error}",
                      "this is a bug in maxjax: please report it")


def _compiler() -> Iterator[Finding]:
    start = time.monotonic()
    try:
        folder = toolchain.compiler_folder()
        with tempfile.TemporaryDirectory(prefix="maxjax-") as scratch:
            toolchain.build_library('@export("f")\ndef f() abi("C"):\n    pass\n',
                                    Path(scratch) / "library.so", seconds=_TRIAL_SECONDS,
                                    pace=Pace(urgent=True))
    except ToolchainError as error:
        yield Finding("compiler", str(error), _COMPILER_REMEDIES.get(
            error.kind, "programs run without compiled kernels; reinstall MAX: "
                        "pip install --force-reinstall max"))
        return
    why = standard_library.why_not()
    library = "the small standard library" if why is None else f"MAX's standard library: {why}"
    yield Finding("compiler",
                  f"a trial took {time.monotonic() - start:.1f} s, with {library} ({folder})")


_COMPILER_REMEDIES = {
    "missing": "programs run without compiled kernels; install a C compiler (the command cc) "
               "and MAX with its Mojo compiler (pip install max)",
    "disk": "make room in the folder for temporary files, or name another by TMPDIR",
    "timeout": "the machine is too busy, or the compiler hangs: try again",
}


def _cache() -> Iterator[Finding]:
    cache = artifacts.ArtifactCache()
    if cache.prepared is not None:
        unreadable = cache.unreadable()
        yield Finding("cache", f"{cache.prepared}: prepared, not for this user to write to", (
            f"{unreadable} of its files cannot be read: whoever prepared it runs {_PREPARE} again, "
            "with the folder open to its readers (chmod 755)") if unreadable else None)
        return
    if not cache.usable:
        yield Finding("cache", str(cache.reason), "nothing that is compiled is kept for other "
                      "processes; MAXJAX_CACHE_DIR names another folder")
        return
    entries, size = cache.size()
    works = "; a detached builder works" if detached.works(cache) else ""
    yield Finding("cache", f"{cache.directory}: {entries} entries, {size / 1e6:.0f} MB of "
                  f"{cache.max_bytes / 1e6:.0f}{works}")


def _pack() -> Iterator[Finding]:
    pack = Pack()
    missing, many = len(pack.missing()), len(pack.units)
    if not missing:
        yield Finding("pack", f"all {many} libraries: {_where(pack)}")
        return
    there = f"{many - missing} of {many} libraries are there"
    try:
        toolchain.check()
    except ToolchainError as error:
        yield Finding("pack", f"{there}, and no more can be built: {error}",
                      "programs are interpreted until there is a compiler")
        return
    when = "a detached builder is at it" if detached.works(pack.libraries.cache) else (
        "the first program that gains by it has it built in the background")
    yield Finding("pack", f"{there}; {when}; {_PREPARE} builds it now")


def _threads() -> Iterator[Finding]:
    yield Finding("threads", f"{crew.cores()}, one for each processor that this process may use")


def _devices() -> Iterator[Finding]:
    yield Finding("devices", ", ".join(map(str, devices.devices())))


def _options() -> Iterator[Finding]:
    yield Finding("options", f"compile={config.compile_mode.value}, "
                  f"backend={config.backend.value}, "
                  f"detached_builds={config.detached_builds.value}")
