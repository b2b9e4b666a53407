"""The versions that compiled code depends on: MAX's installed packages, and the processor."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import re
import sys
from pathlib import Path

_DISTRIBUTION = re.compile(r"(max|max_core|mojo_compiler)-([^-]+)\.dist-info")


@functools.cache
def versions() -> str:
    """The installed MAX packages and their versions, read from their folders' names; the compiler
    may be the only one.

    It imports neither ``max`` nor ``importlib.metadata``, which takes 15 ms.
    """
    locations = [*_locations("max"), *_locations("mojo")]
    if not locations:
        return "no max"
    found = set()
    for folder in {location.parent for location in locations}:
        for name in os.listdir(folder):
            match = _DISTRIBUTION.fullmatch(name)
            if match:
                found.add(f"{match[1]} {match[2]}")
    if found:
        return ", ".join(sorted(found))
    # Not installed as a package: the installation time distinguishes builds.
    return ", ".join(f"{location.name} of {os.stat(location).st_mtime_ns}"
                     for location in locations)


def _locations(package: str) -> list[Path]:
    """The folders of a package, found without importing it."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        return []
    return [Path(location) for location in (
        spec.submodule_search_locations if spec is not None else None) or ()]


@functools.cache
def max_folder() -> Path | None:
    """The folder of MAX's compiler and of what belongs to it, or None."""
    for location in _locations("mojo"):
        folder = location.parent / "modular"
        if folder.exists():
            return folder
    return None


@functools.cache
def cpu_target() -> str:
    """The processor for which programs are compiled: its model and its instruction sets.

    ``MAXJAX_CPU_TARGET`` names another one (``x86-64-v3``, say), so that one cache serves
    different machines; the compile worker then compiles for that one.
    """
    chosen = os.environ.get("MAXJAX_CPU_TARGET")
    if chosen:
        return chosen
    machine = os.uname().machine if hasattr(os, "uname") else sys.platform
    described = _described_processor()
    digest = hashlib.sha256("\n".join(described).encode()).hexdigest()[:16]
    return f"{sys.platform} {machine} {digest}"


def _described_processor() -> list[str]:
    if sys.platform == "darwin":
        return [_system_value("machdep.cpu.brand_string")]
    wanted = ("vendor_id", "cpu family", "model", "stepping", "flags", "Features",
              "CPU implementer", "CPU architecture", "CPU variant", "CPU part", "isa")
    described = []
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                name, _, value = line.partition(":")
                if name.strip() in wanted:
                    described.append(" ".join(sorted(value.split())))
                if not line.strip() and described:  # one processor is enough
                    break
    except OSError:
        pass
    return described


def _system_value(name: str) -> str:
    """A string of macOS's ``sysctl``."""
    library, size = ctypes.CDLL(None), ctypes.c_size_t(256)
    value = ctypes.create_string_buffer(size.value)
    if library.sysctlbyname(name.encode(), value, ctypes.byref(size), None, 0):
        return ""
    return value.value.decode(errors="replace")
