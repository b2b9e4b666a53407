"""On the graph backend: a representative part of every family's table against tier 0."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.runtime import test_regressions as regressions
from tests.support import harness, tier1

FAMILIES = {name: cases for name, cases in harness.families().items()
            if not isinstance(cases, Exception)}
# Kernels cost seconds each, and a module tens of seconds more: a small case of each family, in one
# module, keeps `make test` within its time. `pytest -m exhaustive` compiles all cases.


@functools.cache
def default():
    """As ``compiled`` of all families, and the programs of ``test_regressions`` in their module."""
    items = {family: [tier1.smallest(cases, f"{family}_")]
             for family, cases in sorted(FAMILIES.items())}
    return compiled(items, regressions.compiled_cases())


@functools.cache
def family_alone(family: str):
    return compiled({family: [
        tier1.program_of(case, f"{family}{number}_")
        for number, case in enumerate(tier1.select(FAMILIES[family]))]})


def compiled(items: Mapping[str, Sequence[tier1.Compiled]],
             others: Mapping[str, Any] | None = None):
    """The programs of the families' cases, by family, the others, and the models of all."""
    others = others or {}
    models = tier1.compile_together([item for some in items.values() for item in some]
                                    + [item for item, _ in others.values()])
    return items, others, models


def check_family(items: Sequence[tier1.Compiled], models: Mapping[str, Any]) -> None:
    failures = []
    for item in items:
        if not item.has_compiled_piece:
            continue
        try:
            tier1.check(item, models)
        except AssertionError as error:
            failures.append(f"{item.case.name}: {error}")
    assert not failures, f"{len(failures)} of {len(items)} differ:\n" + "\n".join(failures)


@pytest.mark.extended
@pytest.mark.xdist_group("graph")
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_family_of_cases_agrees_with_tier_0(family):
    programs, _, models = default()
    check_family(programs[family], models)


@pytest.mark.extended
@pytest.mark.tier1
@pytest.mark.xdist_group("graph")
def test_regressions():
    _, programs, models = default()
    regressions.check_compiled(programs, models)


@pytest.mark.exhaustive
@pytest.mark.xdist_group("graph")
def test_all_regressions():
    _, programs, models = compiled({}, regressions.compiled_cases(regressions.COMPILED))
    regressions.check_compiled(programs, models)


def test_most_families_are_compiled():
    """Except those with only host steps."""
    on_host = [family for family, cases in FAMILIES.items()
               if not tier1.smallest(cases, "").has_compiled_piece]
    assert len(on_host) <= 3, on_host


@pytest.mark.exhaustive
@pytest.mark.xdist_group("graph")
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_whole_family(family):
    programs, _, models = family_alone(family)
    check_family(programs[family], models)
