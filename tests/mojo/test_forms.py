"""Forms that programs take on the Mojo backend: masked updates, products of few terms, pieces."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import mojo_programs
from tests.transforms import test_masked_updates as masked

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax._max.mojo.check_plan import CheckedPlan
from maxjax._max.mojo.fusion import Group
from maxjax._runtime.program import Program

pytestmark = pytest.mark.xdist_group("mojo")

RNG = np.random.default_rng(0)


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


class KeptPlan(CheckedPlan):
    """Records its groups' spaces."""

    def finished(self, part):
        super().finished(part)
        vars(self).setdefault("spaces", []).extend(
            unit.space for unit, _ in part.units if isinstance(unit, Group))


def check(function, *args, tolerance=2e-5) -> KeptPlan:
    """The plan of a program that gives what tier 0 gives."""
    program = Program(maxjax.make_jaxpr(function)(*args))
    plan = KeptPlan(program.opened.jaxpr, 2)
    values = [*program.consts, *map(np.asarray, args)]
    results = mojo_programs.without_kernels(plan, program.opened.jaxpr)(values)
    for ours, theirs in zip(results, program.tier0(*values), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, tolerance, tolerance)
    return plan


def test_updates_of_some_examples():
    x = f32(64, 100)
    n = RNG.integers(0, 99, 64).astype(np.int32)
    for name, step in masked.UPDATES.items():
        plan = check(masked.until(step), n, x, tolerance=0)
        assert name == "uint32 index" or (64, 100) not in plan.spaces, (name, plan.spaces)


PRODUCTS = [((5, 1), (1, 7)), ((40, 6, 1), (40, 1, 3)), ((3, 50, 1, 4), (3, 50, 4, 1)),
            ((40, 1, 9), (40, 9, 1)), ((40, 1, 33), (40, 33, 1)), ((1, 1), (1, 1)),
            ((2, 1, 3), (2, 3, 1)), ((0, 5, 1), (0, 1, 5))]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32"])
def test_products_of_few_terms(dtype):
    with maxjax.enable_x64(True):
        for first, second in PRODUCTS:
            a, b = f32(*first).astype(dtype), f32(*second).astype(dtype)
            tolerance = 1e-2 if dtype == "float16" else 2e-5
            plan = check(lambda a, b: jnp.tanh(a @ b), a, b, tolerance=tolerance)
            if dtype == "float32" and 0 not in first:
                products = [name for name in plan.functions if name.startswith("matmul")]
                assert bool(products) == (first[-1] == 33 or first[0] == 2), (first, products)


def test_products_of_infinities():
    a = np.array([[np.inf, -np.inf, np.nan, 0., -0., 1.]], np.float32).T
    check(lambda a, b: a @ b, a, a.T.copy())
    check(lambda a, b: a @ b, np.tile(a.T[None], (40, 1, 1)), np.tile(a[None], (40, 1, 1)))


def test_operands_that_are_read_many_times():
    """A column of a matrix, and a transpose, along each row of a larger array."""
    r, x = f32(80, 3), f32(80, 5)
    plan = check(lambda r: jnp.exp(r[:, 0] - r[:, 1][:, None]), r, tolerance=1e-5)
    assert "copy_32" in plan.functions
    check(lambda r, x: r[:, 2] * x.sum(1)[:, None] + (r[::-1, 0] * 2), r, x)
    check(lambda x: x[:70, :4].T[:, None, :] * jnp.ones((4, 60, 1)) + 1, x)


def test_views_of_pieces():
    """What was stacked and is taken apart again was never stored."""
    def function(x):
        y = jnp.stack([x[0] + x[1], x[1] * x[2], x[2] - x[0]])
        return jnp.sin(y[0]) + y[1] * y[2]

    plan = check(function, f32(3, 50))
    assert plan.arena == 0 and not any("copy" in name for name in plan.functions)
    check(lambda x: (lambda y: (y[1:3, ::-1], y[2], y[:, 1:], y[4:2:-1]))(
        jnp.concatenate([x, x * 2])), f32(3, 4))
    check(lambda x: (lambda y: (y[1:3], y[0], y[3:, 2]))(
        jnp.pad(x, ((1, 1), (0, 2)), constant_values=3.)), f32(3, 4))
