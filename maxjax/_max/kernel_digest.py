"""Digests of the sources that turn a program's text into native code: part of artifacts' keys."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

# Lines, with the ends of those before them: what begins with fixed characters is found fastest.
_IMPORT = re.compile(r"\nfrom kernels\.(\w+) import")
_RELATIVE_IMPORT = re.compile(r"\nfrom (?:\.(\w+) import|\. import (.+))")
_PACKAGE = Path(__file__).parent.parent
PACKAGE = _PACKAGE / "_max" / "kernels"
_SOURCES = ("_max/kernels/*.mojo", "_max/graph/builder.py", "_max/graph/context.py",
            "_max/graph/device_context.py",
            "_max/lowering.py", "_primitives/*.py", "_ir/serialize.py", "_transforms/partition.py",
            "_transforms/simplify.py")


@functools.cache
def digest() -> str:
    """A digest of the kernels' and the lowerings' sources."""
    return f"lowering {_of(_SOURCES)}"


@functools.cache
def kernels(source: str = "") -> str:
    """A digest of the kernels' sources that a Mojo text imports, directly or indirectly.

    If the text imports none, of all of them.
    """
    names = _imported(source, _IMPORT)
    return f"kernels {_digest_of(frozenset(names)) if names else _of(_SOURCES[:1])}"


def reached(source: str) -> frozenset[str]:
    """The names of the files of kernels that a Mojo text imports, directly or indirectly."""
    return frozenset(_reached(frozenset(_imported(source, _IMPORT))))


@functools.cache
def _digest_of(names: frozenset[str]) -> str:
    """A digest of files of kernels and of those that they import."""
    files = _reached(names)
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name}.mojo".encode() + b"\0" + files[name] + b"\0")
    return total.hexdigest()


def _reached(names: frozenset[str]) -> dict[str, bytes]:
    """The contents of files of kernels and of those that they import, by name."""
    left, files = set(names), {}
    while left:
        name = left.pop()
        file = _file(name) if name not in files else None
        if file is not None:
            files[name] = file[0]
            left |= file[1]
    return files


@functools.cache
def _file(name: str) -> tuple[bytes, set[str]] | None:
    """The content of a file of kernels, and the names of those that it imports."""
    path = PACKAGE / f"{name}.mojo"
    if not path.exists():
        return None
    content = path.read_bytes()
    return content, _imported(content.decode(), _RELATIVE_IMPORT)


def _imported(source: str, pattern: re.Pattern[str]) -> set[str]:
    """The names that groups of the pattern match, each of which may be a list of names."""
    return {name for match in pattern.finditer(f"\n{source}")
            for group in match.groups(default="") for name in re.findall(r"\w+", group)}


def _of(patterns: Sequence[str]) -> str:
    total = hashlib.sha256()
    for pattern in patterns:
        for path in sorted(_PACKAGE.glob(pattern)):
            total.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()
