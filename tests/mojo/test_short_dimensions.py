"""Short trailing dimensions are put first where rows would be short, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import mojo_programs

pytest.importorskip("max.engine")

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._max.mojo.check_plan import CheckedPlan
from tests.mojo.test_vector import f32, program_of

pytestmark = pytest.mark.xdist_group("mojo")


def test_short_dimensions_are_turned_where_rows_would_be_short():
    """Distances of all pairs, and their gradient: not where the whole would only be transposed."""
    def energy(x):
        difference = x[:, None] - x[None]
        return jnp.sum(jnp.exp(-jnp.sum(difference * difference, -1)))

    def moved(x):
        return lax.fori_loop(0, 2, lambda i, x: x - 0.01 * maxjax.grad(energy)(x), x)

    x, scale = f32(90, 3), f32(3)
    turned = []
    for function, args in [(maxjax.grad(energy), (x,)), (maxjax.grad(energy), (x[:20],)),
                           (moved, (x[:20],)), (lambda x, s: x * s, (f32(9000, 3), scale))]:
        program = program_of(function, *args)
        values = [*program.consts, *args]
        plan = CheckedPlan(program.opened.jaxpr, 2)
        result, = mojo_programs.without_kernels(plan, program.opened.jaxpr)(values)
        np.testing.assert_allclose(result, program.tier0(*values)[0], rtol=2e-5, atol=1e-5)
        turned.append("[3," in plan.source)
    assert turned == [True, False, True, False]     # small ones only in loops


def test_pairs_are_gone_through_by_long_rows_and_their_differences_are_not_stored():
    """Up to 48 features; not where more than what is broadcast would be transposed."""
    def forces(x, y):
        difference = x[:, None] - y[None]
        return jnp.sum(difference / (1 + jnp.sum(difference ** 2, -1, keepdims=True)), 1)

    def moved(x, y):
        return lax.fori_loop(0, 2, lambda i, x: x + 0.01 * forces(x, y), x)

    def normed(x, y):
        x = x - jnp.mean(x, -1, keepdims=True)
        return x / jnp.sqrt(jnp.mean(x * x, -1, keepdims=True)) * y[0]

    def gradient(x, y):
        return maxjax.grad(lambda x: jnp.sum(jnp.sqrt(1 + jnp.sum((x[:, None] - y) ** 2, -1))))(x)

    for function, size, is_turned in [
            (forces, 9, True), (forces, 16, True), (moved, 16, True), (forces, 48, True),
            (gradient, 20, True), (forces, 49, False), (normed, 16, False), (moved, 49, False)]:
        args = f32(70, size), f32(90, size)
        program = program_of(function, *args)
        values = [*program.consts, *args]
        plan = CheckedPlan(program.opened.jaxpr, 2)
        result, = mojo_programs.without_kernels(plan, program.opened.jaxpr)(values)
        np.testing.assert_allclose(result, program.tier0(*values)[0], rtol=2e-5, atol=2e-5)
        assert (f"[{size}," in plan.source) == is_turned, (function.__name__, size)
        assert function is normed or plan.arena < 70 * 90 * size * 4, (function.__name__, size)
