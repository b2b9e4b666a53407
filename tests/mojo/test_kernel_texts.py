"""Texts of kernels that compile fast: many operands, and many products in nested loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax._max.mojo.check_plan import CheckedPlan
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")

RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def compiled(function: Any, *args: Any) -> str:
    """The texts of a program's kernels, which give what tier 0 gives, to the bit."""
    program = Program(maxjax.make_jaxpr(function)(*args))
    plan = CheckedPlan(program.opened.jaxpr, 2)
    values = [*program.consts, *map(np.asarray, args)]
    assert mojo_programs.store().build(plan.kernels) is None
    results = mojo_programs.executable(plan, program.opened.jaxpr)(values)
    for ours, theirs in zip(results, program.tier0(*values), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    return "".join(kernel.source for kernel in plan.kernels)


@pytest.mark.parametrize("shape", [(5, 7, 37), (3, 1, 2, 70), (40,)])
def test_many_operands(shape):
    """Each with its own strides, over several outer dimensions, in rows that are no whole vectors;
    some are strided along the rows, by 2, which is looked for, and by 5."""
    *outer, last = shape
    whole = [f32(*outer, last + k % 3) for k in range(17)]
    apart = [f32(*outer, last * 2), f32(*outer, last * 5)]

    def function(whole, apart):
        total = apart[0][..., ::2] - apart[1][..., ::5]
        for number, x in enumerate(whole):
            total = total * x[..., x.shape[-1] - last:] - (number + 1.0) * total
        return total, total < 0

    text = compiled(lambda *xs: function(xs[:17], xs[17:]), *whole, *apart)
    assert "sweep[W, many=True]" in text


def test_few_operands_keep_what_the_compiler_knows_of_them():
    text = compiled(lambda x, y: jnp.where(x < y, x * y, y), f32(4, 40), f32(4, 40))
    assert "sweep[W]" in text and ".lt(" in text and ".elementwise[" not in text


@pytest.mark.parametrize("nested", [1, 3])
def test_products_of_few_in_nested_loops(nested):
    """A product is one line, and the memory of a loop is none that the compiler has to follow: it
    took more than half of its time for that."""
    def function(x, y):
        def body(i, total):
            for k in range(3):
                total = total.at[i, k].add(x[i] @ (y[k] * x[i, k, k]))
            return total

        def loop(depth, total):
            return maxjax.lax.fori_loop(0, 3, lambda i, t: body(i, t) if depth == 1 else
                                        loop(depth - 1, t), total)

        return loop(nested, jnp.zeros((3, 3, 4, 4), np.float32))

    text = compiled(function, f32(3, 4, 4), f32(3, 4, 4))
    assert text.count("products_of_registers[") == 3 and ".fma(" not in text
    assert "as_unsafe_any_origin" not in text and "in_use(" in text


def test_integers_are_compared_and_converted_by_methods():
    """What structs of `kernels/` make of them, to the bit, also of the least and the largest."""
    ends = np.array([-2**31, -1, 0, 1, 2**31 - 1, 7, 16777217, -16777219], np.int32)
    x, y = np.repeat(ends, 8), np.tile(ends, 8)
    text = compiled(lambda x, y: (
        jnp.minimum(x, y), jnp.maximum(x, y), x != y, x >= y, x.astype(np.float32),
        x.astype(np.int8), y.astype(np.uint32)), x, y)
    assert ".elementwise[" not in text


def test_floats_are_compared_as_they_were():
    ends = np.array([0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1.2e-38], np.float32)
    x, y = np.repeat(ends, 8), np.tile(ends, 8)
    compiled(lambda x, y: (x != y, x == y, x < y, x <= y, x > y, x >= y,
                           x.astype(np.int32)), x, y)
