"""Gathers of windows at regular places, against JAX, and those that stay."""

from __future__ import annotations

import jax
import jax.numpy
import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._transforms.simplify import simplify_once

X, IMAGES = (13, 12), (2, 8, 9, 3)


def pooled(x, lax, jnp, vmap, size=2, step=2, shift=0):
    def at(i, j):
        return jnp.max(lax.dynamic_slice(
            x, (0, step * i + shift, step * j, 0), (2, size, size, 3)), (1, 2))
    return vmap(lambda i: vmap(lambda j: at(i, j))(jnp.arange(4)))(jnp.arange(3))


# Of an array (or images), and the modules whose functions are used.
REGULAR = {
    "pooling": (IMAGES, lambda x, m: pooled(x, *m)),
    "pooling that leaves some out": (IMAGES, lambda x, m: pooled(x, *m, size=1)),
    "pooling from the second on": (IMAGES, lambda x, m: pooled(x, *m, shift=1)),
    "rows": (X, lambda x, m: x[m[1].arange(4) * 3]),
    "columns": (X, lambda x, m: x[:, m[1].arange(2, 12, 3)] * 2),
    "all rows": (X, lambda x, m: x[m[1].arange(13)]),
    "a grid": (X, lambda x, m: x[m[1].arange(1, 13, 4)[:, None], m[1].arange(5)[None] * 2]),
    "a turned grid": (X, lambda x, m: x[m[1].arange(1, 13, 4)[None], m[1].arange(5)[:, None] * 2]),
    "blocks of a row": (X, lambda x, m: m[2](
        lambda i: m[0].dynamic_slice(x, (i, i * 0), (1, 12)))(m[1].arange(13))),
    "blocks apart": (X, lambda x, m: m[2](
        lambda i: m[0].dynamic_slice(x, (3 * i, 1), (2, 5)))(m[1].arange(4)).sum(1)),
    "with a fixed row": (X, lambda x, m: m[2](lambda i: x[7, 3 * i])(m[1].arange(4))),
}
OTHERS = {
    "windows that overlap": (IMAGES, lambda x, m: pooled(x, *m, size=3)),
    "places of the input": (X, lambda x, m: x[m[1].argsort(x[:4, 0])]),
    "a diagonal": (X, lambda x, m: x[m[1].arange(12), m[1].arange(12)]),
    "backwards": (X, lambda x, m: x[12 - m[1].arange(13)]),
    "squares": (X, lambda x, m: x[m[1].arange(4) ** 2]),
    "behind the end": (X, lambda x, m: x.at[m[1].arange(5) * 4].get(mode="fill", fill_value=7)),
    "as near as they fit": (X, lambda x, m: m[2](
        lambda i: m[0].dynamic_slice(x, (4 * i, 0), (4, 3)))(m[1].arange(4))),
    "few": (X, lambda x, m: x[m[1].arange(3) * 2]),
    "again and again": (X, lambda x, m: x[m[1].arange(4)[:, None] + m[1].zeros((1, 3), int)]),
}
OURS, THEIRS = (lax, jnp, maxjax.vmap), (jax.lax, jax.numpy, jax.vmap)


def check(shape, function):
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    text = str(simplify_once(maxjax.make_jaxpr(lambda x: function(x, OURS))(x)))
    ours = maxjax.jit(lambda x: function(x, OURS))(x)
    np.testing.assert_array_equal(ours, jax.jit(lambda x: function(x, THEIRS))(x))
    return text, x


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("name", REGULAR)
def test_regular_windows(name, x64):
    with maxjax.enable_x64(x64), jax.enable_x64(x64):
        text, x = check(*REGULAR[name])
    assert "gather" not in text, text


@pytest.mark.parametrize("name", OTHERS)
def test_other_windows(name):
    text, _ = check(*OTHERS[name])
    assert "gather" in text, text


@pytest.mark.parametrize("name", ["pooling", "blocks apart", "a turned grid"])
def test_gradients(name):
    shape, function = REGULAR[name]
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    ours = maxjax.jit(maxjax.grad(lambda x: jnp.sum(function(x, OURS) ** 2)))(x)
    theirs = jax.grad(lambda x: jax.numpy.sum(function(x, THEIRS) ** 2))(x)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_symbolic_sizes_stay():
    rows, = maxjax.export.symbolic_shape("b")

    def function(x):
        return x[jnp.arange(x.shape[0])] + x[::-1] + x[(jnp.arange(4) * x.shape[0]) % 3][:1]

    exported = maxjax.export.export(maxjax.jit(function))(
        maxjax.ShapeDtypeStruct((rows, 3), np.float32))
    exported = maxjax.export.deserialize(exported.serialize(format="jax"))
    for size in (3, 5):
        x = jnp.arange(3.0 * size).reshape(size, 3)
        np.testing.assert_array_equal(exported.call(x), function(x))
