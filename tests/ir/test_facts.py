"""Facts of a jaxpr: what rebuilds it hands them on; what is only remembered changes nothing."""

from __future__ import annotations

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._ir.jaxpr import ClosedJaxpr, Facts, Jaxpr, Var, derived, note
from maxjax._ir.liveness import eliminate_dead_code, read_inputs
from maxjax._ir.substitute import with_sizes
from maxjax._runtime.made import made_of
from maxjax._runtime.on_mesh import without_types
from maxjax._runtime.program import program_of, programs_of
from maxjax._sharding.graph import normalize
from maxjax._transforms.simplify import inline_calls, simplify

X = np.ones((3, 3), np.float32)
FACTS = Facts(name="f", qualname="A.f", argument_names=("x", "unused"), keeps_inputs=True)


def function(x, unused):
    x = maxjax.jit(lambda v: jnp.sin(v) * jnp.arange(3.0))(x)
    x = lax.scan(lambda c, _: (c @ x.T + np.float32(2) * 3, None), x, None, length=3)[0]
    return jnp.where(x > 0, x * x, 0 * x).sum() / 2, jnp.exp(x) + jnp.exp(x)


def closed_with(facts=FACTS):
    return maxjax.make_jaxpr(function)(X, X).with_facts(facts)


@pytest.mark.parametrize("rebuild", [
    simplify, inline_calls, eliminate_dead_code, without_types, normalize,
    lambda closed: with_sizes(closed, {}), lambda closed: closed.replace(eqns=closed.eqns),
    lambda closed: closed.replace(consts=closed.consts),
    lambda closed: closed.replace(jaxpr=closed.jaxpr.replace(debug_info="other"))])
def test_what_rebuilds_hands_facts_on(rebuild):
    closed = closed_with()
    made = rebuild(closed)
    assert made is not closed and made.facts == FACTS
    assert list(read_inputs(made)) == [True, True]


def test_facts_of_inputs_go_with_them():
    closed = closed_with()
    others = closed.replace(invars=closed.invars[:1])
    assert others.facts == Facts(name="f", qualname="A.f")
    assert not closed.replace(invars=[*closed.invars, Var(closed.in_avals[0])]).facts.keeps_inputs


def test_the_same_facts_make_no_other_jaxpr():
    """What has been derived from it is found again."""
    closed = closed_with()
    assert closed.with_facts(closed.facts._replace(name="f")) is closed
    assert closed.with_facts(closed.facts._replace(name="g")) is not closed


@pytest.mark.parametrize("dynamic", [False, True])
def test_messages_name_the_function(dynamic):
    """As they do where its trace serves all sizes."""
    def named(x):
        return x * 2
    jitted = maxjax.jit(named, dynamic_dims={0: {0: "n"}}) if dynamic else maxjax.jit(named)
    with maxjax.no_execution(True), pytest.raises(RuntimeError, match=r"jit\(named\)"):
        jitted(X)
    assert jitted._lookup((X,), {}).closed.facts[:2] == ("named", named.__qualname__)
    assert list(jitted._lookup((X,), {}).closed.facts.argument_names) == ["x"]


def test_all_sizes_are_one_family():
    jitted = maxjax.jit(lambda x: x * 2, dynamic_dims={0: {0: "n"}})
    one, two = (jitted._lookup((np.ones(n, np.float32),), {}).closed.facts.family
                for n in (4, 5))
    assert one is two is not None


def test_a_derived_result_may_be_noted():
    ran = []

    @derived
    def counted(closed, *more):
        ran.append(more)
        return len(ran)
    closed = closed_with()
    assert [counted(closed), counted(closed), counted(closed, 1), counted(closed)] == [1, 1, 2, 1]
    note(closed, counted, 7)
    assert (counted(closed), counted(closed, 1)) == (7, 2)


def test_memories_are_the_jaxprs_own():
    """A rebuilt jaxpr has none of them."""
    closed = ClosedJaxpr(Jaxpr([], [], [], []))
    program = program_of(closed)
    assert programs_of(closed) == [program] and program_of(closed) is program
    assert made_of(closed) is closed.made
    again = closed.replace(eqns=[])
    assert again.made is None and not again.known and programs_of(again) == []
