"""The vector machine's functions for floats of 16 bits: float32's, rounded, where that is right."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
from maxjax import lax
from maxjax._base import dtypes
from maxjax._max.mojo import vector_operations
from maxjax._max.mojo.check_plan import CheckedPlan
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")

HALVES = (dtypes.float16, dtypes.bfloat16)


def test_what_takes_long_to_compile_is_compiled_once_for_both():
    text = vector_operations.units()["vector_halves"]
    for name in ("exp", "log", "tanh", "erf_inv", "pow"):
        assert text.count(f"def vector_{name}_float32_block(") == 1, name
        for dtype in HALVES:
            assert f"def vector_{name}_{dtype}(" in text
            assert f"def vector_{name}_{dtype}_block(" not in text
    # What is computed in float64 is rounded once.
    assert "def vector_sin_float16_block(" in text and "def vector_sin_bfloat16_block(" not in text


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_all_numbers_give_what_compiled_kernels_give(dtype):
    """Also of those that are the rest behind whole vectors."""
    def functions(x):
        return [lax.exp(x), lax.log(x), lax.tanh(x), lax.sin(x), lax.cos(x), lax.acos(x),
                lax.erf_inv(x), lax.cbrt(x), lax.pow(x, x[::-1])]

    x = np.arange(1 << 16, dtype=np.uint16).view(dtype)[:-1]
    program = Program(maxjax.make_jaxpr(functions)(x))
    plan = CheckedPlan(program.opened.jaxpr, 1)
    values = [*program.consts, x]
    interpreted = mojo_programs.without_kernels(plan, program.opened.jaxpr)(values)
    mojo_programs.build([plan])
    compiled = mojo_programs.executable(plan, program.opened.jaxpr)(values)
    for ours, theirs in zip(interpreted, compiled, strict=True):
        ours, theirs = (mojo_programs.flushed(np.asarray(part).view(dtype).astype(np.float32))
                        for part in (ours, theirs))
        np.testing.assert_array_equal(ours.view(np.uint32)[~np.isnan(ours)],
                                      theirs.view(np.uint32)[~np.isnan(theirs)])
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("count", [1, 3, 8, 31, 130])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_a_few_numbers_give_what_many_do(dtype, count):
    x = np.random.default_rng(count).standard_normal(count).astype(dtype)

    def function(x):
        return [lax.exp(x), lax.atan2(x, lax.tanh(x))]

    def run(x):
        program = Program(maxjax.make_jaxpr(function)(x))
        plan = CheckedPlan(program.opened.jaxpr, 1)
        return mojo_programs.without_kernels(plan, program.opened.jaxpr)([*program.consts, x])

    for few, many in zip(run(x), run(np.tile(x, 1000)), strict=True):
        np.testing.assert_array_equal(np.asarray(few).view(np.uint16),
                                      np.asarray(many).view(np.uint16)[:count])
