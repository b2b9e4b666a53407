"""On the graph backend: a representative part of every family's table against tier 0."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import harness
import pytest
import tier1

FAMILIES = {name: cases for name, cases in harness.families().items()
            if not isinstance(cases, Exception)}
# Kernels cost seconds each, and a module tens of seconds more: so many cases of a family, and two
# modules for all families, one for each core, keep `make test` within its time.
# `pytest -m exhaustive` compiles all cases.
COUNT = 2
GROUPS = [sorted(FAMILIES)[number::2] for number in range(2)]


@functools.cache
def compiled(families: tuple[str, ...], count: int | None):
    """The programs of the families' cases, by family, and their models, from one MAX module."""
    items = {family: [tier1.program_of(case, f"{family}{number}_")
                      for number, case in enumerate(tier1.select(FAMILIES[family], count))]
             for family in families}
    return items, tier1.compile_together([item for some in items.values() for item in some])


def check_family(family: str, families: Sequence[str], count: int | None) -> None:
    programs, models = compiled(tuple(families), count)
    items = programs[family]
    failures = []
    for item in items:
        if not item.has_compiled_piece:
            continue
        try:
            tier1.check(item, models)
        except AssertionError as error:
            failures.append(f"{item.case.name}: {error}")
    assert not failures, f"{len(failures)} of {len(items)} differ:\n" + "\n".join(failures)


@pytest.mark.parametrize("family, group", [
    pytest.param(family, group, id=family, marks=pytest.mark.xdist_group(f"max{group}"))
    for group, families in enumerate(GROUPS) for family in families])
def test_family(family, group):
    check_family(family, GROUPS[group], COUNT)


def test_most_families_are_compiled():
    """Those of host steps alone are the exception."""
    on_host = [family for family, cases in FAMILIES.items() if not any(
        tier1.program_of(case, "").has_compiled_piece for case in tier1.select(cases, COUNT))]
    assert len(on_host) <= 3, on_host


@pytest.mark.exhaustive
@pytest.mark.xdist_group("max")
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_whole_family(family):
    check_family(family, [family], None)
