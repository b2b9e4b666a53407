"""Programs that read the same arrays through many views, in memory that holds no old results."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from tests.gen.views import Program as ViewProgram
from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
from maxjax._max.mojo import executable as executable_module
from maxjax._runtime.program import Program

# A value that no result has: what is read before it is written shows.
_PATTERN = 0x75
CALLS = 3

pytestmark = pytest.mark.xdist_group("mojo")


@pytest.fixture
def poison(monkeypatch):
    """Results and temporaries are full of a pattern before they are written."""
    def filled(shape, dtype):
        array = empty(shape, dtype)
        if array.size:
            array.reshape(-1).view(np.uint8)[...] = _PATTERN
        return array

    def taken(size):
        arena = take(size)
        arena[...] = _PATTERN
        return arena

    empty, take = executable_module._empty, executable_module.arenas.take
    monkeypatch.setattr(executable_module, "_empty", filled)
    monkeypatch.setattr(executable_module.arenas, "take", taken)


def item_of(seed: int, loops: float = 0.25) -> tuple[ViewProgram, mojo_programs.Item]:
    drawn = ViewProgram(seed, loops)
    program = Program(maxjax.make_jaxpr(drawn.function)(*drawn.inputs(0)))
    item = mojo_programs.Item(f"seed {seed}", program, [*program.consts, *drawn.inputs(0)]).plan()
    if item.problem is not None:
        raise AssertionError(f"{item.name}: {item.problem}\n{program.opened}") from item.problem
    return drawn, item


def check(drawn: ViewProgram, item: mojo_programs.Item) -> None:
    """Every call is of a new executable, so that its temporaries are in fresh memory too."""
    for call in range(CALLS):
        values = [np.asarray(x) for x in (*item.program.consts, *drawn.inputs(call))]
        expected = item.program.tier0(*[x.copy() for x in values])
        for number, (ours, theirs) in enumerate(zip(
                mojo_programs.run(item, values), expected, strict=True)):
            np.testing.assert_array_equal(
                ours, theirs, f"{item.name}, call {call}, result {number}\n{item.program.opened}")


@pytest.fixture
def machine(poison, monkeypatch):
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)


def check_on_the_machine(seeds: Iterable[int], **options: float) -> None:
    for seed in seeds:
        drawn, item = item_of(seed, **options)
        if mojo_programs.has_code(item):
            check(drawn, item)


def test_on_the_machine(machine):
    """Seeds 15, 24, 29 and others found groups that read, through a reshape, what they store."""
    check_on_the_machine(range(60))


def test_loops_on_the_machine(machine):
    """A reversal that was taken for a copy was found by seeds 8, 75 and 129."""
    check_on_the_machine([*range(40), 75, 129], loops=1)


@pytest.mark.extended
def test_on_the_machine_by_many(machine):
    check_on_the_machine([*range(60, 150), *range(1000, 4000)])
    check_on_the_machine(range(40, 150), loops=1)


@pytest.mark.extended
def test_generated(poison):
    drawn = [item_of(seed) for seed in range(40)]
    mojo_programs.build(item for _, item in drawn)
    for program, item in drawn:
        check(program, item)
