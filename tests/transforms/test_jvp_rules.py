"""custom_jvp rules that compute value and tangent in one: reverse mode tells them apart."""

from __future__ import annotations

import random

import jax
import numpy as np
import pytest

import maxjax
from tests.gen.jvp_rules import WEIGHTS, X, forward, random_tree, reverse, value, with_rule
from tests.support.against_jax import agree, answers_of, assert_same_error, errors_of

# Of default runs; `pytest -m exhaustive` takes more.
COUNT = 12


def check(seed: int) -> None:
    """Reverse mode by the rule gives the derivatives of the plain function, as forward mode does.
    """
    rng = random.Random(seed)
    tree = random_tree(rng, rng.choice([1, 2, 3]))
    functions = {"forward": lambda j, f: lambda x: forward(j, f, x)}
    functions.update({name: lambda j, f, name=name: reverse(j, f)[name]
                      for name in reverse(jax, None)})
    expected = answers_of({name: make(jax, lambda x: value(jax, tree, x))
                           for name, make in functions.items()}, X)
    f = with_rule(maxjax, tree)
    for name, make in functions.items():
        run = make(maxjax, f)
        for how, called in ((name, run), (f"jit of {name}", maxjax.jit(run))):
            actual, wanted = (jax.tree.leaves(jax.tree.map(np.asarray, found))
                              for found in (called(X), expected[name]))
            assert len(actual) == len(wanted)
            for mine, other in zip(actual, wanted, strict=True):
                np.testing.assert_allclose(
                    mine, other, rtol=2e-4, atol=1e-5, err_msg=f"seed {seed}, {tree}: {how}")


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_rule(seed):
    check(seed)


@pytest.mark.exhaustive
def test_random_rules():
    for seed in range(COUNT, 400):
        check(seed)


def ruled(j, rule, **settings):
    """A sine with a rule that takes one value and one tangent."""
    f = j.custom_jvp(lambda x: j.numpy.sin(x))
    f.defjvp(lambda primals, tangents: rule(*primals, *tangents), **settings)
    return f


def pair(j, p, t):
    return j.numpy.sin(p), j.numpy.cos(p) * t


def through_switch(j):
    return lambda p, t: j.lax.switch(
        (p.sum() > 1).astype(int) + 1,
        [lambda p, t: (p, t), lambda p, t: pair(j, p, t), lambda p, t: (0 * p, 0 * t)], p, t)


def through_custom_vjp(j):
    g = j.custom_vjp(lambda t: 2 * t)
    g.defvjp(lambda t: (g(t), None), lambda _, ct: (3 * ct,))
    return j.jit(lambda p, t: (j.numpy.sin(p), g(j.numpy.cos(p) * t)))


def through_stop_gradient(j):
    return j.jit(lambda p, t: (j.numpy.sin(p), j.lax.stop_gradient(j.numpy.cos(p)) * t))


def through_solve(j):
    def solved(p, t):
        matrix = j.numpy.diag(p) + 0.1
        return j.numpy.sin(p), j.numpy.linalg.solve(matrix, t)
    return j.jit(solved)


def through_keys(j):
    def drawn(p, t):
        key, other = j.random.split(j.random.key(0))
        return j.lax.cond(p.sum() > 0, lambda k, p, t: (k, *pair(j, p, t)),
                          lambda k, p, t: (other, p, t), key, p, t)[1:]
    return j.jit(drawn)


def through_integers(j):
    def counted(p, t):
        rounded, number, tangent = j.lax.scan(
            lambda c, w: ((c[0] + w, c[1] + 1, c[2] * w), None), (p, 0, t), WEIGHTS)[0]
        return j.numpy.sin(p) * number / 3, tangent * rounded
    return counted


def with_affine_start(j):
    """A carry that is a tangent only from the second iteration on."""
    def rule(p, t):
        (p, total), _ = j.lax.scan(
            lambda c, w: ((c[0], c[1] + t * w), None), (p, 0 * p), WEIGHTS)
        return j.numpy.sin(p), total
    return rule


def by_associative_scan(j):
    return lambda p, t: (j.numpy.sin(p), j.jit(
        lambda p, t: j.lax.associative_scan(j.numpy.add, j.numpy.cos(p) * t))(p, t))


def with_linear_call(j):
    divide = lambda r, x: x / r
    return j.jit(lambda p, t: (
        j.numpy.sin(p), j.custom_derivatives.linear_call(divide, divide, 2 + p, t)))


def through_jvp(j):
    return lambda p, t: j.jvp(lambda p: j.jit(j.numpy.sin)(p) * j.checkpoint(j.numpy.cos)(p),
                              (p,), (t,))


def with_printing(j):
    def rule(p, t):
        j.debug.callback(lambda x: None, p)
        return pair(j, p, t)
    return j.jit(rule)


RULES = (through_switch, through_jvp, through_stop_gradient, through_solve, through_keys,
         through_integers, with_affine_start, by_associative_scan, with_printing)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_derivatives_by_a_jvp_rule_agree_with_jax(rule):
    def derivatives(j):
        f = ruled(j, rule(j))
        out, push = j.linearize(f, X)
        return (j.value_and_grad(lambda x: (f(x) * x).sum())(X), push(X), out,
                j.jit(j.vmap(j.grad(lambda x: f(x).sum())))(np.stack([X, 2 * X])))

    agree(derivatives, kind="loose")


@pytest.mark.parametrize("rule", [through_custom_vjp, with_linear_call],
                         ids=lambda rule: rule.__name__)
def test_rule_of_rules(rule):
    def linear(j):
        out, push = j.linearize(ruled(j, rule(j)), X)
        return out, push(X), j.jit(push)(2 * X)

    agree(linear)
    if rule is with_linear_call:
        agree(lambda j: j.value_and_grad(lambda x: (ruled(j, rule(j))(x) * x).sum())(X))
    else:
        assert_same_error(lambda j: j.grad(lambda x: ruled(j, rule(j))(x).sum())(X))


def loop_of_tangents(j):
    return lambda p, t: j.lax.while_loop(
        lambda c: c[0].sum() > 0.5, lambda c: (c[0] / 2, c[1] / 2), (p, t))


def test_loop_of_tangents():
    def linear(j):
        out, push = j.linearize(ruled(j, loop_of_tangents(j)), X)
        return out, push(X), j.jit(push)(2 * X)

    agree(linear)
    assert_same_error(lambda j: j.grad(lambda x: ruled(j, loop_of_tangents(j))(x).sum())(X))


@pytest.mark.parametrize("rule", [
    lambda j: j.jit(lambda p, t: (j.numpy.sin(p), t * t)),
    lambda j: j.jit(lambda p, t: (j.numpy.sin(p), j.numpy.sin(t))),
    lambda j: j.jit(lambda p, t: (j.numpy.sin(p) + t, t)),
    lambda j: lambda p, t: j.lax.cond(t.sum() > 0, lambda: pair(j, p, t), lambda: (p, t)),
    lambda j: lambda p, t: j.lax.scan(lambda c, _: ((c[1], c[0]), None), (p, t), length=2)[0],
], ids=["square", "sine", "value", "predicate", "exchange"])
def test_rule_that_is_not_linear(rule):
    errors_of(lambda j: j.grad(lambda x: ruled(j, rule(j))(x).sum())(X))


def test_effects_happen_once():
    """What a rule does with known values is done by the first of the two parts alone."""
    def times(j, rule):
        seen = []

        def seeing(p, t):
            j.debug.callback(lambda x: seen.append(None), p[0])
            return pair(j, p, t)

        f = ruled(j, rule(j, seeing))
        j.block_until_ready(j.grad(lambda x: f(x).sum())(X))
        j.effects_barrier()
        return len(seen)

    for rule in (lambda j, g: j.jit(g),
                 lambda j, g: lambda p, t: j.lax.cond(True, g, lambda p, t: (p, t), p, t),
                 lambda j, g: lambda p, t: j.lax.scan(
                     lambda c, _: (g(*c), None), (p, t), length=2)[0]):
        assert times(maxjax, rule) == times(jax, rule)
