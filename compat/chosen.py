"""Which cases run: of which names, in which tier."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from compat import surface
from compat.spec import Case, kind_of
from compat.tables import tables

# The graph backend takes a second or more for a kernel: the most used names, one case each.
GRAPH_NAMES = 80
GRAPH_MODES = ("jit", "grad")


@functools.cache
def rows() -> dict[str, list[Case]]:
    """The cases of every name that has some, the most used names first."""
    named = tables()
    merged = {}
    for name, described in surface.names().items():
        cases = named.get(name, [])
        if not cases and name not in surface.excused():
            cases = [case.of(name) for case in surface.default_cases(described)]
        if cases:
            merged[name] = cases
    merged.update({name: cases for name, cases in named.items() if name not in merged})
    return merged


def selected(patterns: Sequence[str] | None) -> list[str]:
    """Names that equal a pattern, or begin with one that ends in a dot or star."""
    known = list(dict.fromkeys([*rows(), *surface.names()]))
    if not patterns:
        return known
    return [name for name in known
            if any(name == p or (p[-1] in ".*" and name.startswith(p.rstrip("*")))
                   for p in patterns)]


def suits_graph(case: Case) -> bool:
    """Arrays alone, and dtypes that MAX has."""
    return (bool(case.inputs) and "jit" in case.modes and case.raises is False and not case.x64
            and all(made.dtype != "" and kind_of(made.dtype or case.dtype) in "biuf"
                    for made in case.inputs.values()))


@functools.cache
def graph_cases() -> dict[str, list[Case]]:
    """The representative part: the first case of the most used names."""
    chosen = {}
    for name, cases in rows().items():
        # A plain call before a variation of it.
        first = min((case for case in cases if suits_graph(case)), default=None,
                    key=lambda case: not case.text.startswith("f("))
        if first is not None:
            chosen[name] = [first]
        if len(chosen) == GRAPH_NAMES:
            break
    return chosen


def cases_of(tier: str) -> dict[str, list[Case]]:
    if tier == "api":
        return {name: [] for name in surface.names()}
    return graph_cases() if tier == "graph" else rows()
