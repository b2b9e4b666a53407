"""The tables: each module has a ``TABLE`` from public names to lists of cases."""

from __future__ import annotations

import functools
import importlib
from pathlib import Path

from compat.spec import Case


class TableError(Exception):
    """A table that says something wrong of itself, not of maxjax."""


@functools.cache
def tables() -> dict[str, list[Case]]:
    """The cases of every name, of all modules of this folder."""
    merged: dict[str, list[Case]] = {}
    for path in sorted(Path(__file__).parent.glob("[a-z]*.py")):
        module = importlib.import_module(f"compat.tables.{path.stem}")
        for name, cases in module.TABLE.items():
            merged.setdefault(name, []).extend(case.of(name) for case in cases)
    for name, cases in merged.items():
        seen: set[str] = set()
        for case in cases:
            if case.key in seen:
                raise TableError(f"{name} has this case twice: {case.title}")
            seen.add(case.key)
    return merged
