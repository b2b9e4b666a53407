"""``maxjax export-library``: writes a library for C from the command line."""

from __future__ import annotations

import argparse
import os
import re
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._higher_order.exported import Exported
from maxjax._higher_order.shape_struct import ShapeDtypeStruct
from maxjax._ir.symbolic import SymbolicScope, symbolic_shape
from maxjax._max.mojo.toolchain import ToolchainError
from maxjax.export import deserialize
from maxjax.export._library import library

_TYPE = re.compile(r"\s*(\w+)\s*\[(.*)\]\s*")
_DESCRIPTION = """\
Writes a function as a shared library for C, with a header and a file that says what it needs.

  maxjax export-library model.py:predict "float32[n,64]" --constraint "n <= 32" --path out

The script is run, but not as the main program: what stands behind `if __name__ == "__main__"` is
left out. `import jax` in it gives maxjax. A file that `jax.export` has saved can stand for it.
"""


class _Wrong(Exception):
    """What the user is told in one line."""


def main(arguments: Sequence[str]) -> int:
    """Writes a library; returns an exit status."""
    parser = argparse.ArgumentParser(
        prog="maxjax export-library", description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("function", metavar="SCRIPT:FUNCTION",
                        help="a function of a script; or a saved function's file")
    parser.add_argument("types", metavar="TYPE", nargs="*",
                        help='of its arguments: "float32[8,3]", "int32[]", "float32[n,3]"')
    parser.add_argument("--path", default=".", help="the folder to write to (.)")
    parser.add_argument("--name", help="of the C function; by default that of the function")
    parser.add_argument("--constraint", action="append", default=[], metavar="TEXT",
                        help='of sizes: "n <= 32"; each size needs a greatest value')
    parser.add_argument("--threads", type=int, help="how many may share a large call")
    parser.add_argument("--target", help='the processor, "x86-64-v3" say (this machine\'s)')
    chosen = parser.parse_args(arguments)
    try:
        function = _function(chosen.function)
        files = library(function, *_types(chosen.types, chosen.constraint), path=chosen.path,
                        name=chosen.name, threads=chosen.threads, target=chosen.target)
    except (_Wrong, NotImplementedError, ToolchainError, OSError, TypeError, ValueError) as error:
        print(f"maxjax export-library: {error}", file=sys.stderr)
        return 1
    for path in files:
        print(path)
    return 0


def _types(texts: Sequence[str], constraints: Sequence[str]) -> list[ShapeDtypeStruct]:
    scope = SymbolicScope(constraints)
    types = []
    for text in texts:
        match = _TYPE.fullmatch(text)
        kind = None if match is None else _dtype(match[1])
        if match is None or kind is None:
            raise _Wrong(f"{text!r} is no type of an argument, such as float32[8,3]")
        if dtypes.canonical(kind) != kind:
            raise _Wrong(f"arrays of {kind.name} need JAX_ENABLE_X64=1")
        types.append(ShapeDtypeStruct(symbolic_shape(match[2], scope=scope), kind))
    return types


def _dtype(name: str) -> np.dtype | None:
    try:
        return np.dtype(dtypes.bool_ if name == "bool" else getattr(dtypes, name))
    except (AttributeError, TypeError):
        return None


def _function(place: str) -> Any:
    path, colon, name = place.rpartition(":")
    if not colon:
        return deserialize(Path(place).read_bytes())
    if not os.path.isfile(path):
        raise _Wrong(f"there is no script {path}")
    sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    found: Any = runpy.run_path(path, run_name=Path(path).stem)
    first, *rest = name.split(".")
    if first not in found:
        raise _Wrong(f"{path} defines no {first!r}")
    found = found[first]
    for part in rest:
        if not hasattr(found, part):
            raise _Wrong(f"{name} of {path}: there is no {part!r}")
        found = getattr(found, part)
    if not callable(found) and not isinstance(found, Exported):
        raise _Wrong(f"{name} of {path} is no function")
    return found
