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
    return f"kernels {_reached(frozenset(names)) if names else _of(_SOURCES[:1])}"


@functools.cache
def _reached(names: frozenset[str]) -> str:
    """A digest of files of kernels and of those that they import."""
    left, reached = set(names), {}
    while left:
        name = left.pop()
        file = _file(name) if name not in reached else None
        if file is not None:
            reached[name] = file[0]
            left |= file[1]
    total = hashlib.sha256()
    for name in sorted(reached):
        total.update(f"{name}.mojo".encode() + b"\0" + reached[name] + b"\0")
    return total.hexdigest()


@functools.cache
def _file(name: str) -> tuple[bytes, set[str]] | None:
    """The content of a file of kernels, and the names of those that it imports."""
    path = _PACKAGE / "_max" / "kernels" / f"{name}.mojo"
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
