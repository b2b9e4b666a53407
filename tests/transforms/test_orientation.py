"""Products and what depends on them alone are turned where that saves transposes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import maxjax
from maxjax._ir.jaxpr import every_equation
from maxjax._transforms.simplify import simplify

rng = np.random.default_rng(0)


def values(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


def gradients(xp: Any, w: Any, x: Any) -> Any:
    """What vmap makes of a matrix that is not mapped."""
    def loss(x: Any) -> Any:
        return xp.nn.log_sigmoid(w @ x).sum()
    return xp.vmap(xp.grad(loss))(x)


def bias_before(xp: Any, w: Any, x: Any) -> Any:
    """A column of other operands, which is turned with the product."""
    return xp.numpy.tanh((w @ x.T + w[:, :1]) * 2).T


def sums_and_products(xp: Any, w: Any, x: Any) -> Any:
    """Reductions and further products read a matrix either way round."""
    h = xp.numpy.exp(0.1 * (w @ x.T))
    return h.T, h.sum(0), h.max(1), h.sum(), h @ x, w.T @ h, h @ h.T


def used_both_ways(xp: Any, w: Any, x: Any) -> Any:
    """One use as it is costs a transpose, and two others are saved."""
    h = xp.numpy.sin(w @ x.T)
    return h[1:], (h * 2).T, xp.numpy.cos(h).T


def used_as_it_is(xp: Any, w: Any, x: Any) -> Any:
    """Turned, nothing would be saved."""
    h = w @ x.T
    return h.T, xp.numpy.sort(h, 0), xp.numpy.cumsum(h, 1)


def in_a_loop(xp: Any, w: Any, x: Any) -> Any:
    def body(x: Any, _: None) -> Any:
        h = xp.vmap(lambda x: xp.nn.softplus(w @ x))(x)
        return x + 0.1 * xp.numpy.tanh(h) @ w, h.sum()
    return xp.lax.scan(body, x, None, length=3)


def chosen(xp: Any, w: Any, x: Any) -> Any:
    """Operations whose operands have other dtypes."""
    h = w @ x.T
    return xp.numpy.where(h > 0, h, 0.5 * h).T, (h > 0).astype("int32").T, xp.lax.clamp(
        -1.0, h, 1.0).T


# How many transposes of values are left.
CASES = {gradients: 0, bias_before: 0, sums_and_products: 0, used_both_ways: 1, used_as_it_is: 1,
         in_a_loop: 0, chosen: 0}


def turns(function: Callable[..., Any], *args: Any) -> int:
    """Transposes of what is computed; those of arguments are left alone."""
    closed = simplify(maxjax.make_jaxpr(function)(*args))
    inputs = {*closed.jaxpr.invars, *closed.jaxpr.constvars}
    return sum(eqn.primitive.name == "transpose" and eqn.invars[0] not in inputs
               for eqn in every_equation(closed.jaxpr))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_transposes_that_are_left(case):
    assert turns(lambda w, x: case(maxjax, w, x), *values((7, 5), (3, 5))) == CASES[case]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("shapes", [((7, 5), (3, 5)), ((1, 5), (3, 5)), ((4, 1), (1, 1)),
                                    ((4, 5), (0, 5))], ids=str)
def test_values_are_jax(case, shapes):
    if case is sums_and_products and 0 in shapes[1]:
        pytest.skip("the maximum of nothing is an error")
    w, x = values(*shapes)
    ours = maxjax.tree.leaves(maxjax.jit(lambda w, x: case(maxjax, w, x))(w, x))
    theirs = jax.tree.leaves(jax.jit(lambda w, x: case(jax, w, x))(w, x))
    for a, b in zip(ours, theirs, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool", "complex64"])
def test_what_changes_nothing_is_left_out_exactly(dtype):
    """Signs of zeros, infinities and NaN are those of the operation."""
    def operations(xp: Any, x: Any) -> list[Any]:
        if dtype == "bool":
            return [x * True, x + False]
        found = [xp.negative(-x), x * 1, 1 * x, x - 0, x + 0, 0 + x, 0 - x]
        if dtype in ("float32", "complex64"):
            found += [x / 1, x + -0.0, -0.0 + x, x - -0.0, 1 / x]
        return found

    x = np.array([0, 1, 3], dtype)
    if dtype in ("float32", "complex64"):
        x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 2.5], dtype)
    ours = maxjax.jit(lambda x: operations(maxjax.numpy, x))(x)
    with np.errstate(all="ignore"):
        eager = operations(maxjax.numpy, maxjax.numpy.asarray(x))
    for a, b in zip(ours, eager, strict=True):
        assert a.dtype == b.dtype
        assert np.array_equal(np.signbit(np.real(a)), np.signbit(np.real(b)))
        np.testing.assert_array_equal(a, b)
