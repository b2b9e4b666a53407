"""What the operands of loops and choices are, by the one description that all passes read."""

from __future__ import annotations

import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base.errors import InternalError
from maxjax._higher_order.structured import structured
from maxjax._ir.check import check_jaxpr, check_operands
from maxjax._ir.control_flow import (
    BodyRule,
    ControlFlow,
    Group,
    Role,
    bodies_of,
    iterations,
    structure_of,
    with_bodies,
)
from maxjax._ir.interpret import interpreter
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.liveness import eliminate_dead_code
from maxjax._ir.primitive import registry

INDEX, CONSTANT, CARRY, SCANNED = Role.INDEX, Role.CONSTANT, Role.CARRY, Role.SCANNED


def scan(k, c, xs):
    return lax.scan(lambda c, x: ((c[0] * k + x, c[1] + 1), (x, c[0])), c, xs, reverse=True)


def while_loop(n, k, a, b):
    return lax.while_loop(lambda v: v[0] < n, lambda v: (v[0] * k, v[1] + v[0]), (a, b))


def cond(index, x, y):
    return lax.switch(index, [lambda x, y: x, lambda x, y: y, lambda x, y: x * y], x, y)


SCAN = (scan, 2.0, (1.0, 0), jnp.ones(3))
WHILE = (while_loop, 9.0, 2.0, 1.0, 0.0)
COND = (cond, 1, 2.0, 3.0)


def only(name, function, *args):
    closed = maxjax.make_jaxpr(function)(*args)
    eqn, = (eqn for eqn in closed.eqns if eqn.primitive.name == name)
    return closed, eqn


@pytest.mark.parametrize("name, program, roles, takes, outer", [
    ("scan", SCAN, [CONSTANT, CARRY, CARRY, SCANNED], [(0, 1, 2, 3)], ["body"]),
    ("while", WHILE, [CONSTANT, CONSTANT, CARRY, CARRY], [(0, 2, 3), (1, 2, 3)],
     ["condition", "body"]),
    ("cond", COND, [INDEX, CONSTANT, CONSTANT], [(1, 2)] * 3, ["branch 0", "branch 1", "branch 2"]),
])
def test_roles_of_operands_of_loops_and_choices(name, program, roles, takes, outer):
    _, eqn = only(name, *program)
    flow = structure_of(eqn)
    assert list(flow.roles) == roles
    assert [body.takes for body in flow.bodies] == takes
    assert [body.label for body in flow.bodies] == outer
    assert [body.jaxpr for body in flow.bodies] == list(bodies_of(eqn))
    for role, numbers in ((INDEX, flow.index), (CARRY, flow.carries), (SCANNED, flow.scanned)):
        assert list(numbers) == [n for n, other in enumerate(roles) if other is role]
    assert [atom for part in flow.parts(eqn.invars) for atom in part] == eqn.invars
    assert flow.out_avals() == tuple(var.aval for var in eqn.outvars)
    for body in flow.bodies:
        for number, aval in zip(body.takes, body.jaxpr.in_avals, strict=True):
            assert flow.inside(number, eqn.invars[number].aval).shape == aval.shape


def test_kinds_of_loops_and_choices():
    flows = {name: structure_of(only(name, *program)[1])
             for name, program in (("scan", SCAN), ("while", WHILE), ("cond", COND))}
    assert {name: (flow.is_loop, flow.length, flow.reverse) for name, flow in flows.items()} == {
        "scan": (True, 3, True), "while": (True, None, False), "cond": (False, None, False)}
    assert flows["while"].predicate is flows["while"].bodies[0]
    assert flows["scan"].predicate is None
    assert [len(flow.producers) for flow in flows.values()] == [1, 1, 3]
    assert [iterations(only(name, *program)[1])
            for name, program in (("scan", SCAN), ("while", WHILE), ("cond", COND))] == [3, 1, 1]


@pytest.mark.parametrize("name, program", [("scan", SCAN), ("while", WHILE), ("cond", COND)])
def test_other_bodies(name, program):
    _, eqn = only(name, *program)
    others = [ClosedJaxpr(body.jaxpr, body.consts) for body in bodies_of(eqn)]
    new = eqn.replace(params=with_bodies(eqn, others))
    assert list(bodies_of(new)) == others
    assert list(new.params) == list(eqn.params)


def test_others_have_none():
    _, eqn = only("sin", jnp.sin, 1.0)
    assert list(bodies_of(eqn)) == [] and iterations(eqn) == 1
    with pytest.raises(InternalError, match="sin is neither a loop nor a choice"):
        structure_of(eqn)


def test_every_parameter_that_is_named_is_there():
    for name, program in (("scan", SCAN), ("while", WHILE), ("cond", COND)):
        _, eqn = only(name, *program)
        flow = registry[name].inner.control_flow
        named = {*(body.param for body in flow.bodies), flow.length, flow.reverse,
                 *(group.count for group in flow.groups if isinstance(group.count, str))}
        assert named - {None} <= set(eqn.params)


@pytest.mark.parametrize("groups, decides, length, words", [
    ([CARRY, CARRY], False, "length", "two groups"),
    ([CARRY], False, None, "this has 0"), ([CARRY], True, "length", "this has 2"),
    ([INDEX, CONSTANT], True, None, "this has 2"),
])
def test_descriptions_that_contradict(groups, decides, length, words):
    with pytest.raises(InternalError, match=words):
        ControlFlow(tuple(map(Group, groups)), (BodyRule("jaxpr", "body", (0,), decides),), length)


# --- a loop of one's own --------------------------------------------------------------------------

def _run(*values, jaxpr, times, shared):
    """Carries first, then what all iterations share; there is no such loop in JAX."""
    carries, constants = list(values[:-shared]), values[-shared:]
    for _ in range(times):
        carries = interpreter(jaxpr)(*constants, *carries)
    return carries


repeat_p = structured(
    "repeat_for_a_test",
    ControlFlow(groups=(Group(CARRY), Group(CONSTANT, "shared")),
                bodies=(BodyRule("jaxpr", "step", takes=(1, 0)),), length="times"),
    evaluate=_run, registered=False)


def repeat(k, unused, x, y):
    body = maxjax.make_jaxpr(lambda k, unused, x, y: (x * k, y * k))(k, unused, x, y)
    return repeat_p.bind(*map(jnp.asarray, (x, y, k, unused)), jaxpr=body, times=3, shared=2)


def test_a_loop_by_its_description_alone():
    values = (2.0, 5.0, 3.0, 1.5)
    closed = maxjax.make_jaxpr(repeat)(*values)
    check_jaxpr(closed)
    check_operands(closed)
    assert [float(x) for x in repeat(*values)] == [24.0, 12.0]

    # Derivatives: of x k^3 in the direction of k, and mapped over x alone.
    primal, tangent = maxjax.jvp(lambda k: repeat(k, *values[1:])[0], (2.0,), (1.0,))
    assert (float(primal), float(tangent)) == (24.0, 36.0)
    mapped = maxjax.vmap(repeat, (None, None, 0, None))(2.0, 5.0, jnp.arange(3.0), 1.5)
    assert mapped[0].tolist() == [0.0, 8.0, 16.0] and mapped[1].tolist() == [12.0] * 3
    inner = maxjax.make_jaxpr(maxjax.vmap(repeat, (None, None, 0, None)))(
        2.0, 5.0, jnp.arange(3.0), 1.5)
    check_jaxpr(inner)

    # Of the second result, what is not needed goes: a carry and a constant.
    rest = eliminate_dead_code(ClosedJaxpr(
        closed.jaxpr.replace(outvars=closed.jaxpr.outvars[:1]), closed.consts))
    check_jaxpr(rest)
    eqn, = rest.eqns
    assert [list(group) for group in structure_of(eqn).groups] == [[0], [1]]
    assert eqn.params["shared"] == 1
