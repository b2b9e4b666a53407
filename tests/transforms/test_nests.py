"""Nests of three of ten transformations and control-flow functions, against real JAX: values,
tangents, gradients, gradients of a batch, eager and under jit; second and third derivatives."""

from __future__ import annotations

import random
from typing import Any

import jax
import pytest

import maxjax
from maxjax._ir.check import check_jaxpr
from maxjax._transforms.simplify import simplify
from tests.gen.nests import FUNCTIONS, LEVELS, NESTS, X, answers, nested
from tests.support.against_jax import answers_of, assert_tree_same

# Of default runs; `pytest -m exhaustive` takes all 1,000.
COUNT = 16


def check(names: tuple[str, ...], function: str) -> None:
    expected = answers_of(answers(jax, names, function), X)
    for name, run in answers(maxjax, names, function).items():
        answer = expected[name]
        jitted = maxjax.jit(run)
        for how, called in ((name, run), (f"jit of {name}", jitted)):
            try:
                actual = called(X)
            except Exception as error:
                assert is_same_error(names, error, answer), (
                    f"{names} of {function}, {how}: {error!r}\nnot {answer!r}")
                continue
            assert not isinstance(answer, Exception), (
                f"{names} of {function}, {how}: JAX raises {answer!r}")
            try:
                assert_tree_same(actual, answer, "loose", derivative=True)
            except AssertionError as error:
                raise AssertionError(f"{names} of {function}, {how}: {error}") from error
        if not isinstance(answer, Exception):
            closed = jitted._lookup((X,), {}).closed
            check_jaxpr(closed)
            check_jaxpr(simplify(closed))


def is_same_error(names: tuple[str, ...], error: Exception, answer: Any) -> bool:
    if {"while", "custom_vjp"} <= set(names):      # two reasons; either may come first
        return isinstance(answer, (TypeError, ValueError)) and isinstance(
            error, (TypeError, ValueError))
    return type(error).__name__ == type(answer).__name__


def sample(count: int) -> list[tuple[tuple[str, ...], str]]:
    rng = random.Random(3)
    return [(names, rng.choice(sorted(FUNCTIONS))) for names in rng.sample(NESTS, count)]


@pytest.mark.parametrize("names, function", sample(COUNT),
                         ids=lambda value: value if isinstance(value, str) else "-".join(value))
def test_a_nest_of_transformations_agrees_with_jax(names, function):
    check(names, function)


@pytest.mark.exhaustive
@pytest.mark.parametrize("outer", LEVELS)
def test_all_nests(outer):
    rng = random.Random(outer)
    for names in NESTS:
        if names[-1] == outer:
            check(names, rng.choice(sorted(FUNCTIONS)))


def derivatives(j, names, function):
    """Second derivatives in four ways, and a third one."""
    f = nested(j, names, function)

    def scalar(x):
        return (f(x, 2) ** 2).sum()

    direction = X + 1

    def along(g):
        return lambda x: j.jvp(g, (x,), (direction.astype(x.dtype),))[1]

    return {
        "forward over reverse": along(j.grad(scalar)),
        "reverse over forward": j.grad(along(scalar)),
        "reverse over reverse": j.grad(lambda x: (j.grad(scalar)(x) * direction).sum()),
        "forward over forward": along(along(scalar)),
        "Hessian": j.hessian(scalar),
        "third": j.grad(along(along(scalar))),
    }


@pytest.mark.parametrize("level", [
    level if level in ("scan", "custom_jvp", "checkpoint")
    else pytest.param(level, marks=pytest.mark.exhaustive)
    for level in LEVELS if level not in ("grad", "jvp")])
def test_higher_derivatives(level):
    names = (level,)
    expected = answers_of(derivatives(jax, names, "smooth"), X)
    for name, run in derivatives(maxjax, names, "smooth").items():
        answer = expected[name]
        for called in (run, maxjax.jit(run)):
            try:
                actual = called(X)
            except Exception as error:
                assert type(error).__name__ == type(answer).__name__, f"{name}: {error!r}"
                continue
            assert not isinstance(answer, Exception), f"{name}: JAX raises {answer!r}"
            assert_tree_same(actual, answer, "loose", derivative=True)
