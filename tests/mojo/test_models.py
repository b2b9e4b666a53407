"""Whole training steps on the Mojo backend, and through jit as users call them, against JAX."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
from benchmarks.agreement import disagreement
from benchmarks.models import TRAIN_STEPS
from maxjax._runtime.program import program_of

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("mojo")]


def leaves(tree: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree_util.tree_leaves(tree)]


# The others have what the mlp has.
@pytest.mark.extended
@pytest.mark.parametrize("name", [
    pytest.param(name, marks=[pytest.mark.exhaustive] if name == "mlp" else [])
    for name in sorted(TRAIN_STEPS)])
def test_a_train_step(name: str) -> None:
    mojo_programs.pack()
    step, arguments = TRAIN_STEPS[name](maxjax, 4)
    flat = maxjax.tree_util.tree_leaves(arguments)
    closed = step._lookup(tuple(arguments), {}).closed
    program = program_of(closed)
    values = [*program.consts, *(x.host() for x in map(maxjax.numpy.asarray, flat))]
    item = mojo_programs.Item(name, program, values).plan()
    mojo_programs.build([item])
    assert item.is_compiled and all(piece.plan is not None for piece in item.pieces)
    ours = mojo_programs.run(item, values)
    theirs_step, theirs = TRAIN_STEPS[name](jax, 4)
    assert disagreement([np.asarray(x) for x in ours], leaves(theirs_step(*theirs)), 2e-5) is None
