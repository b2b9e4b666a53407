"""Nests of transformations and random programs with control flow, compiled, against tier 0."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.gen import fuzz_programs
from tests.gen.nests import NESTS, X, answers
from tests.support import mojo_programs
from tests.transforms.test_fuzz import modes_of

pytest.importorskip("max.engine")

import maxjax
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")

# Kernels cost a quarter of a second each; all are built at once.
COUNT, PROGRAMS = 3, 1


def in_float64(function, *args):
    with maxjax.enable_x64(True):
        wide = [np.asarray(x).astype(np.float64) if np.asarray(x).dtype == np.float32 else x
                for x in args]
        return maxjax.tree.leaves(maxjax.device_get(function(*wide)))


def item(name, function, *args):
    """A planned program; None where the function cannot be traced, or evaluated.

    Nested loops amplify rounding, in some nests until only noise is left.
    """
    try:
        closed = maxjax.jit(function)._lookup(args, {}).closed
    except (TypeError, ValueError, NotImplementedError):
        return None
    program = Program(closed)
    made = mojo_programs.Item(
        name, program, [*program.consts, *args], "loose", signed_zeros=False,
        exact=lambda: in_float64(function, *args), slack=4).plan()
    # A tangent of custom_vjp: as in JAX, refused when it is evaluated.
    return None if "to a custom_vjp function" in str(made.problem) else made


def items(nests, seeds):
    found = []
    for names in nests:
        for mode in ("gradient", "value"):     # the first that can be traced
            made = item(f"{mode} of {'-'.join(names)}",
                        answers(maxjax, names, "indexing")[mode], X)
            if made is not None:
                found.append(made)
                break
    for seed in seeds:
        program = fuzz_programs.program(seed)
        modes = modes_of(program, maxjax)
        found += filter(None, (item(f"{mode} of program {seed}", modes[mode], *program.args)
                               for mode in ("derivative", "vmap of derivative")))
    return found


def check_all(chosen):
    mojo_programs.pack()
    mojo_programs.build(chosen)
    failures = []
    for one in chosen:
        try:
            mojo_programs.check(one)
        except Exception as error:
            failures.append(f"{one.name}: {type(error).__name__}: {error}")
    assert not failures, f"{len(failures)} of {len(chosen)} differ:\n" + "\n".join(failures)


@pytest.mark.extended
def test_nests_and_programs():
    chosen = items(random.Random(5).sample(NESTS, COUNT), range(PROGRAMS))
    assert len(chosen) >= COUNT
    assert sum(one.is_compiled for one in chosen) >= len(chosen) - 2
    check_all(chosen)


@pytest.mark.exhaustive
@pytest.mark.parametrize("batch", range(10))
def test_many_nests_and_programs(batch):
    check_all(items(NESTS[batch::10], range(1000 + 20 * batch, 1020 + 20 * batch)))
