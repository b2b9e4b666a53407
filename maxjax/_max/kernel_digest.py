"""Digests of the sources that turn a program's text into native code: part of artifacts' keys."""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

_IMPORT = re.compile(r"^from kernels\.(\w+) import", re.MULTILINE)
_RELATIVE_IMPORT = re.compile(r"^from (?:\.(\w+) import|\. import (.+)$)", re.MULTILINE)
_PACKAGE = Path(__file__).parent.parent
_SOURCES = ("_max/kernels/*.mojo", "_max/graph/builder.py", "_max/graph/context.py",
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
    if not names:
        return f"kernels {_of(_SOURCES[:1])}"
    reached: set[str] = set()
    while names:
        name = names.pop()
        path = _PACKAGE / "_max" / "kernels" / f"{name}.mojo"
        if name not in reached and path.exists():
            reached.add(name)
            names |= _imported(path.read_text(), _RELATIVE_IMPORT)
    return f"kernels {_of([f'_max/kernels/{name}.mojo' for name in sorted(reached)])}"


def _imported(source: str, pattern: re.Pattern[str]) -> set[str]:
    """The names that groups of the pattern match, each of which may be a list of names."""
    return {name for match in pattern.finditer(source)
            for group in match.groups(default="") for name in re.findall(r"\w+", group)}


def _of(patterns: Sequence[str]) -> str:
    total = hashlib.sha256()
    for pattern in patterns:
        for path in sorted(_PACKAGE.glob(pattern)):
            total.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()
