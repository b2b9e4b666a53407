"""The case tables on the Mojo backend: values, tangents and cotangents against tier 0."""

from __future__ import annotations

import functools
import os
import subprocess
import sys

import pytest

from tests import ROOT
from tests.support import mojo_programs

pytest.importorskip("max.engine")

from maxjax._ir.primitive import registry

FAMILIES = mojo_programs.tables()
# Kernels cost a quarter of a second each; `pytest -m exhaustive` builds those of all cases.
COUNT = 6

pytestmark = pytest.mark.xdist_group("mojo")


@functools.cache
def prepared(count: int | None) -> dict[str, list[mojo_programs.Item]]:
    """All families' programs, their kernels built."""
    items = {name: mojo_programs.family(cases, count) for name, cases in FAMILIES.items()}
    mojo_programs.pack()
    mojo_programs.build(item for family in items.values() for item in family)
    return items


def check_family(family: str, count: int | None) -> None:
    items = prepared(count)[family]
    mojo_programs.check_all(items)
    on_host = sum(not item.is_compiled for item in items)
    print(f"{family}: {len(items)} programs, {on_host} on the host alone")
    assert on_host < len(items), "no program of the family is compiled"


def check_host_steps(count: int | None) -> None:
    """Only primitives that state why they have no lowering run on the host."""
    items = [item for family in prepared(count).values() for item in family]
    unexplained = []
    for reason, names in sorted(mojo_programs.host_report(items).items()):
        print(f"{reason}: {len(names)}: {', '.join(names)}")
        primitive = registry[reason.partition(":")[0]]
        stated = primitive.host.reason or primitive.host.condition
        if not stated and not any(words in reason for words in (
                "MAX has no", "its body has", "of complex64 has no kernel",
                "of complex128 has no kernel")):
            unexplained.append(reason)
    assert not unexplained


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_a_family_of_cases_agrees_with_tier_0(family):
    check_family(family, COUNT)


def test_host_steps():
    check_host_steps(COUNT)


@pytest.mark.exhaustive
@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_whole_family(family):
    check_family(family, None)


@pytest.mark.exhaustive
def test_all_host_steps():
    check_host_steps(None)


def check_guarded(side: str, what: str, count: int) -> None:
    """Runs programs next to inaccessible memory, in a process that may crash."""
    folder = mojo_programs.store().libraries.cache.directory
    done = subprocess.run(
        [sys.executable, "-m", "tests.mojo.guarded", side, what, str(count)],
        cwd=ROOT, env={**os.environ, mojo_programs.BUILT: str(folder)}, capture_output=True,
        text=True)
    last = done.stdout.splitlines()[-1:]
    assert done.returncode == 0 and last == ["done"], (
        f"out of bounds, or wrong next to {side} of memory: {last}, exit status "
        f"{done.returncode}\n{done.stderr[-2000:]}")


@pytest.mark.parametrize("side", ["end", "begin"])
def test_within_bounds(side):
    prepared(COUNT)
    check_guarded(side, "cases", COUNT)


@pytest.mark.exhaustive
@pytest.mark.parametrize("side", ["end", "begin"])
def test_all_within_bounds(side):
    prepared(None)
    check_guarded(side, "cases", 0)
