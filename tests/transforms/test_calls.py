"""Primitives that call a jaxpr: what follows from the jaxpr, and what is kept of each operand."""

from __future__ import annotations

import functools
import gc
import weakref

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax._higher_order.calls import call_primitive, only_shown, without_dead_code
from maxjax._higher_order.jit import jit_p
from maxjax._ir.check import check_jaxpr, check_operands
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.liveness import eliminate_dead_code
from maxjax._ir.rule_groups import Inner, Printed
from maxjax._transforms.simplify import inline_calls

RULES = ("jvp", "linearize", "transpose", "batch")
own_p = call_primitive(
    "own_call", "body", follow=RULES, per_operand={"marks": "new"}, registered=False,
    inner=Inner("body", dead_code=functools.partial(
        without_dead_code, param="body", per_operand=("marks",))),
    printed=Printed(only_shown("marks")))
through_p = call_primitive(
    "call_through_jit", "body", follow=RULES, registered=False,
    apply=lambda params, jaxpr, operands: jit_p.bind(*operands, jaxpr=jaxpr, name="made"))


def function(x, y):
    return jnp.sin(x) * y, x + 1.0


def called(primitive, **params):
    def call(x, y):
        values = [jnp.asarray(x), jnp.asarray(y)]
        return primitive.bind(*values, body=maxjax.make_jaxpr(function)(*values), **params)
    return call


own = called(own_p, marks=("x", "y"))
X, Y = np.float32(0.5), np.float32(2.0)
TRANSFORMED = {
    "value": lambda f: f(X, Y),
    "jvp": lambda f: maxjax.jvp(f, (X, Y), (np.float32(1.0), np.float32(3.0))),
    "jvp of one": lambda f: maxjax.jvp(lambda y: f(X, y), (Y,), (np.float32(3.0),)),
    "linearize": lambda f: maxjax.linearize(f, X, Y)[1](X, Y),
    "gradient": lambda f: maxjax.grad(lambda x, y: f(x, y)[0], (0, 1))(X, Y),
    "second": lambda f: maxjax.grad(maxjax.grad(lambda x: f(x, Y)[0]))(X),
    "vmap": lambda f: maxjax.vmap(f, (0, None))(np.arange(3.0, dtype=np.float32), Y),
}


@pytest.mark.parametrize("transformed", TRANSFORMED)
@pytest.mark.parametrize("call", [own, called(through_p)], ids=["own", "through jit"])
def test_a_call_is_its_function(call, transformed):
    run = TRANSFORMED[transformed]
    for found, wanted in zip(maxjax.tree.leaves(run(call)), maxjax.tree.leaves(run(function)),
                             strict=True):
        np.testing.assert_array_equal(found, wanted)


def equations(function, *args):
    closed = maxjax.make_jaxpr(function)(*args)
    check_jaxpr(closed)
    check_operands(closed)
    return closed.eqns


def marks_of(function, *args):
    return [eqn.params["marks"] for eqn in equations(function, *args) if eqn.primitive is own_p]


def test_what_belongs_to_operands():
    assert marks_of(own, X, Y) == [("x", "y")]
    assert marks_of(lambda y: maxjax.jvp(lambda y: own(X, y), (y,), (y,)), Y) == [
        ("x", "y", "new")]
    assert marks_of(maxjax.vmap(own), jnp.ones(2), jnp.ones(2)) == [("x", "y")]
    # The forward part has the operands, the linear one residuals and a tangent, and its transpose
    # residuals and a cotangent.
    forward, backward = marks_of(maxjax.grad(lambda y: own(X, y)[0]), Y)
    assert forward == ("x", "y") and set(backward) == {"new"}


def test_what_is_made_is_called():
    names = [eqn.params["name"] for eqn in equations(
        lambda x: maxjax.jvp(lambda x: called(through_p)(x, Y), (x,), (x,)), X)
        if eqn.primitive is jit_p]
    assert names == ["made"]


def test_dead_code_and_inlining():
    closed = maxjax.make_jaxpr(own)(X, Y)
    rest = eliminate_dead_code(ClosedJaxpr(
        closed.jaxpr.replace(outvars=closed.jaxpr.outvars[1:]), closed.consts))
    check_jaxpr(rest)
    eqn = rest.eqns[-1]
    assert (eqn.params["marks"], len(eqn.invars), len(eqn.outvars)) == (("x",), 1, 1)
    assert [eqn.primitive.name for eqn in inline_calls(rest).eqns] == ["add"]


def test_what_is_shown():
    assert "own_call[marks=('x', 'y')]" in str(maxjax.make_jaxpr(own)(X, Y))


def test_what_a_program_closes_over_goes_with_it():
    """Nothing waits for a collection of garbage, which may come after many large arrays."""
    class Table:
        pass

    table = Table()
    alive = weakref.ref(table)
    jaxpr = maxjax.make_jaxpr(lambda t, x: x + t)(np.ones(3, np.float32), 1.0).jaxpr
    first, second = jaxpr.invars
    closed = ClosedJaxpr(jaxpr.replace(constvars=[first], invars=[second]), [table])
    gc.disable()
    try:
        assert inline_calls(closed).consts == [table]
        del closed, table
        assert alive() is None
    finally:
        gc.enable()
