"""Scalar constants of an outer program in the bodies of loops and branches."""

from __future__ import annotations

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base import config
from maxjax._ir.check import check_jaxpr
from maxjax._ir.control_flow import Role, structure_of
from maxjax._ir.jaxpr import Literal, every_equation
from maxjax._transforms.simplify import simplify

X = np.linspace(-1, 1, 4, dtype=np.float32)


def scan_of_constants(x):
    half, line = jnp.float32(0.5), jnp.arange(3.0)
    return lax.scan(lambda c, v: (c * half + line.sum() * v, (c, half)), jnp.float32(0), x)


def while_of_constants(x):
    limit, step = jnp.float32(10), jnp.array(2.5)
    return lax.while_loop(lambda c: c < limit, lambda c: c + step + x.max(), x.sum())


def branches_of_constants(x):
    two, minus = jnp.float32(2), jnp.array(-1.0)
    return lax.cond(x[0] > 0, lambda v: v * two, lambda v: v + minus, x)


def nested(x):
    two = jnp.float32(2)

    def outer(c, v):
        inner = lax.fori_loop(0, 3, lambda i, s: s * two + i, v)
        return lax.cond(c > 1, lambda: c + two, lambda: c - inner), inner

    return lax.scan(outer, jnp.float32(0), x)


def only_constants(x):
    big = jnp.int32(7)
    return lax.cond(x[0] > 0, lambda: big, lambda: big + 1), lax.scan(
        lambda c, _: (c, big), 0, None, length=2)


PROGRAMS = [scan_of_constants, while_of_constants, branches_of_constants, nested, only_constants]


def constants(jaxpr):
    """The literals that loops and choices take as they are."""
    return [atom for eqn in every_equation(jaxpr) if eqn.primitive.inner.control_flow is not None
            for atom, role in zip(eqn.invars, structure_of(eqn).roles, strict=True)
            if isinstance(atom, Literal) and role is Role.CONSTANT]


@pytest.mark.parametrize("program", PROGRAMS)
def test_they_stand_in_the_bodies(program):
    closed = maxjax.make_jaxpr(program)(X)
    assert constants(closed.jaxpr), "as JAX prints it"
    simplified = simplify(closed)
    check_jaxpr(simplified.jaxpr)
    assert not constants(simplified.jaxpr)
    expected = maxjax.tree.leaves(program(X))
    for e, a in zip(expected, maxjax.tree.leaves(maxjax.jit(program)(X)), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(e))
        assert np.asarray(a).dtype == np.asarray(e).dtype or isinstance(e, int)


def test_a_program_without_them_stays_itself():
    closed = maxjax.make_jaxpr(lambda x: lax.scan(lambda c, v: (c + v, c), x[0], x))(X)
    simplified = simplify(closed)
    assert not constants(simplified.jaxpr)
    assert [eqn.params.get("num_consts", 0) for eqn in simplified.jaxpr.eqns][-1] == 0


def test_a_loop_without_an_iteration_is_compiled():
    two = 2.0
    with config.compile_mode("always"):
        total, rows = maxjax.jit(lambda x: lax.scan(
            lambda c, row: (c * two + row.sum(), c), jnp.float32(0), x))(np.zeros((0, 3), "f4"))
    assert float(total) == 0 and rows.shape == (0,)
