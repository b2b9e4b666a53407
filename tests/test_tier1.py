"""On the graph backend: a representative part of every family's table against tier 0."""

from __future__ import annotations

import functools

import harness
import pytest
import tier1

FAMILIES = {name: cases for name, cases in harness.families().items()
            if not isinstance(cases, Exception)}
# Kernels cost seconds each: this many cases of a family keep `make test` within its time.
# `pytest -m exhaustive` compiles all.
COUNT = 4


@functools.cache
def compiled_family(family: str, count: int | None):
    """The programs of a family's cases, and their models, from one MAX module."""
    items = [tier1.program_of(case, f"case{number}_")
             for number, case in enumerate(tier1.select(FAMILIES[family], count))]
    return items, tier1.compile_together(items)


def check_family(family: str, count: int | None) -> None:
    items, models = compiled_family(family, count)
    failures = []
    for item in items:
        if not item.has_compiled_piece:
            continue
        try:
            tier1.check(item, models)
        except AssertionError as error:
            failures.append(f"{item.case.name}: {error}")
    assert not failures, f"{len(failures)} of {len(items)} differ:\n" + "\n".join(failures)
    assert any(item.has_compiled_piece for item in items), "no case of the family is compiled"


# Two groups, for two cores: a MAX compile takes one of them.
@pytest.mark.parametrize("family", [
    pytest.param(family, marks=pytest.mark.xdist_group(f"max{number % 2}"))
    for number, family in enumerate(sorted(FAMILIES))])
def test_family(family):
    check_family(family, COUNT)


@pytest.mark.exhaustive
@pytest.mark.xdist_group("max")
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_whole_family(family):
    check_family(family, None)
