"""Where XLA multiplies by a reciprocal: the bits are JAX's, and those of the quotient elsewhere."""

from __future__ import annotations

import functools

import jax
import numpy as np
import pytest

import maxjax
from maxjax._base.config import compile_mode

DTYPES = [np.float16, np.float32, np.float64]


def numbers(dtype, *shape):
    return np.random.default_rng(0).uniform(0.5, 2, shape).astype(dtype)


def special(dtype):
    """Normal numbers, and those at which signs, overflow and NaN show."""
    return np.concatenate([np.random.default_rng(1).normal(size=40), [
        0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 3.0]]).astype(dtype)


def same(ours, theirs):
    for mine, its in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        mine, its = np.asarray(mine), np.asarray(its)
        assert mine.dtype == its.dtype
        np.testing.assert_array_equal(mine, its)
        zero = its == 0
        np.testing.assert_array_equal(np.copysign(1, mine)[zero], np.copysign(1, its)[zero])


def constants(of, dtype):
    row, full = numbers(dtype, 7), numbers(dtype, 5, 7)
    divisors = [3.0, -7.0, 0.1, 2.0, 0.0, -0.0, np.inf, np.nan]

    def divided(x, v, s):
        lax, jnp = of.lax, of.numpy
        return [
            [v / by for by in divisors], s / 3.0, x / 3, x / dtype(3), x / row, x / full,
            lax.div(x, lax.full(x.shape, dtype(3))), x / (2.0 * jnp.asarray(row)),
            x / jnp.sqrt(2 * jnp.pi).astype(dtype), of.jit(lambda a, b: a / b)(x, 3.0),
            lax.scan(lambda c, a: (c, [a / 3.0, a / row]), 0, x)[1],
            lax.fori_loop(0, x.shape[0], lambda i, c: c / 1.7, x),
            lax.cond(s > 0, lambda a: a / row, lambda a: a, x),
            of.vmap(lambda a: a / 3.0)(x),
            of.jvp(lambda a: a / 3.0, (x,), (x,))[1], (x / 3.0) / 3.0,
            3.0 / x, full / row, row / row]

    return divided, (numbers(dtype, 5, 7), special(dtype), dtype(1.1))


def broadcasts(of, dtype):
    """By what is broadcast, and read by nothing else or by something."""
    def divided(x, row, column, s, t, u):
        lax, jnp = of.lax, of.numpy
        return [
            x / row, x / row[None], x / column[:, None], x / s, (x / t, (x + 1) / t), t,
            x / jnp.max(x), x / jnp.sum(x[:, :2], 1, keepdims=True), s / 3, x / jnp.flip(x),
            lax.scan(lambda c, a: (c, a / u), 0, x)[1],
            lax.scan(lambda c, a: (c, a / row), 0, x)[1],
            lax.scan(lambda c, a: (c, a[0] / a[1]), 0, (x, column))[1],
            of.vmap(lambda a, b: a / b)(x, column)]

    return divided, (*[numbers(dtype, *shape) for shape in ((5, 7), (7,), (5,))],
                     *[dtype(number) for number in (1.1, 1.3, 1.7)])


@functools.cache
def of_jax(program, dtype):
    with jax.enable_x64(True):
        function, given = program(jax, dtype)
        return jax.jit(function)(*given)


# What is compiled takes a second each time.
KINDS = [(dtype, mode) if dtype is np.float32 or mode == "never" else pytest.param(
    dtype, mode, marks=pytest.mark.extended)
    for dtype in DTYPES for mode in ("never", "auto", "always")]


@pytest.mark.parametrize(("dtype", "mode"), KINDS)
@pytest.mark.parametrize("program", [constants, broadcasts])
def test_jitted(program, dtype, mode):
    if mode == "always":
        pytest.importorskip("max.engine")
    with maxjax.enable_x64(True), compile_mode(mode):
        function, given = program(maxjax, dtype)
        same(maxjax.jit(function)(*given), of_jax(program, dtype))


def test_eager(dtype=np.float32):
    def results(of):
        jnp, lax = of.numpy, of.lax
        x, row, column = map(jnp.asarray, (numbers(dtype, 5, 7), numbers(dtype, 7),
                                           numbers(dtype, 5)))
        few = x[0, :3]
        return [x / 3.0, x / dtype(3), jnp.divide(x, 3), lax.div(x, dtype(3)),
                x / row, x / column[:, None], x / jnp.flip(x), x[0, 0] / 3.0, x[0, :1] / 3.0,
                of.vmap(lambda a: a / 3.0)(x), jnp.mean(few), jnp.mean(x[:, :2], 1),
                of.grad(jnp.mean)(row), lax.div(x, jnp.broadcast_to(row, x.shape))]

    with jax.enable_x64(True), maxjax.enable_x64(True):
        same(results(maxjax), results(jax))


def test_many_elements_outside_a_program():
    """They are a program of their own: the same operations, one by one."""
    x = numbers(np.float32, 600, 700)
    same(maxjax.numpy.asarray(x) / 3.0, jax.numpy.asarray(x) / 3.0)
    same(maxjax.numpy.asarray(x) / x[0], jax.numpy.asarray(x) / x[0])


def test_what_is_traced_has_the_quotient():
    x = np.ones((2, 3), np.float32)

    def scaled(of):
        return lambda x: [x / 3.0, of.numpy.mean(x), x / x[0]]

    assert str(maxjax.make_jaxpr(scaled(maxjax))(x)) == str(jax.make_jaxpr(scaled(jax))(x))
    assert maxjax.jit(scaled(maxjax)).lower(x).as_text().count("stablehlo.divide") == 3


@pytest.mark.parametrize("dtype", ["bfloat16", "complex64"])
def test_others_divide(dtype):
    x = maxjax.numpy.asarray(numbers(np.float32, 500), dtype)
    quotient = np.asarray(x / maxjax.numpy.full_like(x, 3))
    np.testing.assert_array_equal(x / 3.0, quotient)
    np.testing.assert_array_equal(maxjax.jit(lambda x: x / 3.0)(x), quotient)
