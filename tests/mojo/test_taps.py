"""Convolutions of one feature, which are sums of slices, against tier 0."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
from maxjax import lax
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")


@pytest.fixture(autouse=True)
def uncompiled(monkeypatch):
    monkeypatch.setattr(mojo_programs, "executable", mojo_programs.without_kernels)


def random_convolution(random):
    """Operands and parameters; windows of up to 32 elements and beyond, paddings of either sign."""
    rank = int(random.integers(1, 4))
    window = [int(random.integers(1, (40, 7, 4)[rank - 1])) for _ in range(rank)]
    spatial = [int(random.integers(1, 30)) for _ in range(rank)]
    dtype = random.choice(("float32", "float64", "int32", "float16"))
    params = {
        "window_strides": tuple(int(n) for n in random.integers(1, 4, rank)),
        "padding": [tuple(int(n) for n in random.integers(-1, 6, 2)) for _ in range(rank)],
        "rhs_dilation": tuple(int(n) for n in random.integers(1, 3, rank)),
        "lhs_dilation": (1,) * rank if random.random() < 0.8 else (2,) * rank}
    shapes = (int(random.integers(1, 4)), 1, *spatial), (1, 1, *window)
    # Integers, whose sums are exact in any order.
    return [np.rint(random.normal(size=shape) * 3).astype(dtype) for shape in shapes], params


@pytest.mark.parametrize("seed", range(40))
def test_a_window_of_one_feature(seed):
    random = np.random.default_rng(seed)
    (x, weights), params = random_convolution(random)

    def function(x, weights):
        out = lax.conv_general_dilated(x + 1, weights, **params)
        return out, out * 2

    with maxjax.enable_x64():
        program = Program(maxjax.jit(function)._lookup((x, weights), {}).closed)
        item = mojo_programs.Item("", program, [*program.consts, x, weights])
        item.tolerance = "exact"
        item.plan()
        assert item.problem is None, item.problem
        mojo_programs.check(item)


def test_no_matrix_of_windows():
    """What is computed takes no memory but the result's."""
    x, weights = np.ones((1, 1, 5000), np.float32), np.ones((1, 1, 9), np.float32)
    function = maxjax.jit(lambda x, w: lax.conv_general_dilated(x, w, (1,), "VALID"))
    program = Program(function._lookup((x, weights), {}).closed)
    item = mojo_programs.Item("", program, [*program.consts, x, weights])
    item.plan()
    plan, = [piece.plan for piece in item.pieces]
    assert len(plan.tape.steps) == 1
