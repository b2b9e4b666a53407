"""The identity of what turns a program's text into native code: part of each artifact's key."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent
_SOURCES = ("_max/kernels/*.mojo", "_max/graph/*.py", "_primitives/*.py", "_ir/serialize.py",
            "_transforms/partition.py", "_transforms/simplify.py")


@functools.cache
def digest() -> str:
    """A digest of the kernels' and the lowerings' sources."""
    return f"lowering {_of(_SOURCES)}"


@functools.cache
def kernels() -> str:
    """A digest of the kernels' sources alone."""
    return f"kernels {_of(_SOURCES[:1])}"


def _of(patterns: Sequence[str]) -> str:
    total = hashlib.sha256()
    for pattern in patterns:
        for path in sorted(_PACKAGE.glob(pattern)):
            total.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()
