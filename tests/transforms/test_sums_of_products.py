"""Sums of products that become products of matrices, against JAX, and those that stay."""

from __future__ import annotations

import jax
import jax.numpy
import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax._transforms.simplify import simplify_once

SHAPES = {"a": (24, 16), "b": (16, 18), "c": (18, 16), "s": (5, 24, 16), "t": (5, 16, 18),
          "w": (12, 7, 3, 4), "k": (3, 4, 8), "v": (16,), "m": (24, 1, 16), "l": (5000, 8)}
# Of arrays of those shapes.
PRODUCTS = {
    "rows by columns": lambda a, b: (a[:, :, None] * b[None]).sum(1),
    "rows by rows": lambda a, c: (a[:, None] * c[None]).sum(-1),
    "the other way round": lambda a, c: (c[None] * a[:, None]).sum(-1),
    "turned": lambda a, c: (a[:, None] * c).sum(-1).T,
    "kept dimensions": lambda a, b: (a[:, :, None] * b[None]).sum(1, keepdims=True),
    "of size one": lambda m, c: (m * c).sum(2),
    "stacks": lambda s, t: (s[..., None] * t[:, None]).sum(2),
    "a stack by a matrix": lambda s, b: (s[..., None] * b).sum(2),
    "a matrix by a stack": lambda a, t: (a[None, :, :, None] * t[:, None]).sum(2),
    "windows": lambda w, k: (w[..., None] * k[None, None]).sum((2, 3)) * 2,
    "columns first": lambda a, b: (a.T[:, None] * b[:, :, None]).sum(0),
    "of what is computed": lambda a, c: (jnp.sin(a)[:, None] * (c + 1)[None]).sum(-1),
}
OTHERS = {
    "few rows": lambda b, c: (b[:3, :, None] * c[None]).sum(1),
    "few terms": lambda a, c: (a[:, None, :4] * c[None, :, :4]).sum(-1),
    "a matrix by a vector": lambda a, v: (a * v).sum(-1),
    "elementwise": lambda s, a: (s * a).sum(0),
    "a dimension of one": lambda a, c: (a[:, None] * c[None]).sum((0, 2)),
    "read elsewhere": lambda a, c: ((p := a[:, None] * c[None]).sum(-1), p),
    "integers": lambda a, c: (jnp.round(a[:, None]).astype(int) * jnp.round(c).astype(int)).sum(-1),
    "many terms": lambda l: (l[:, :, None] * l[:, None]).sum(0),
    "a product of one": lambda a: (a[:, None] * 2.0).sum(-1),
}


def drawn(function, dtype):
    names = function.__code__.co_varnames[:function.__code__.co_argcount]
    rng = np.random.default_rng(4)
    args = [rng.normal(size=SHAPES[name]).astype(dtype) for name in names]
    text = str(simplify_once(maxjax.make_jaxpr(function)(*args)))
    return args, text


def check(function, args, monkeypatch):
    ours = maxjax.jit(function)(*args)
    monkeypatch.setitem(function.__globals__, "jnp", jax.numpy)
    theirs = jax.jit(function)(*args)
    for our, their in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        assert our.shape == their.shape and our.dtype == their.dtype
        np.testing.assert_allclose(our, their, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_sums_that_are_products(name, dtype, monkeypatch):
    with maxjax.enable_x64(dtype == "float64"), jax.enable_x64(dtype == "float64"):
        args, text = drawn(PRODUCTS[name], dtype)
        assert "dot_general" in text and "reduce_sum" not in text, text
        check(PRODUCTS[name], args, monkeypatch)


@pytest.mark.parametrize("name", OTHERS)
def test_sums_that_stay(name, monkeypatch):
    args, text = drawn(OTHERS[name], "float32")
    assert "dot_general" not in text and "reduce_sum" in text, text
    check(OTHERS[name], args, monkeypatch)


def test_numbers_of_half_precision_stay():
    """They are added up in single precision, which a product of them is not."""
    _, text = drawn(PRODUCTS["rows by rows"], "float16")
    assert "dot_general" not in text


def test_gradients():
    function = PRODUCTS["windows"]
    args, _ = drawn(function, "float32")
    grad = maxjax.jit(maxjax.grad(lambda *xs: jnp.sum(function(*xs) ** 2), (0, 1)))(*args)
    theirs = jax.grad(lambda *xs: jax.numpy.sum(function(*xs) ** 2), (0, 1))(
        *map(jax.numpy.asarray, args))
    for our, their in zip(grad, theirs, strict=True):
        np.testing.assert_allclose(our, their, rtol=1e-3, atol=1e-3)


def test_symbolic_sizes_stay():
    rows, = maxjax.export.symbolic_shape("b")

    def function(x, y):
        return (x[:, :, None] * y).sum(1)

    exported = maxjax.export.export(maxjax.jit(function))(
        maxjax.ShapeDtypeStruct((rows, 16), np.float32),
        maxjax.ShapeDtypeStruct((16, 18), np.float32))
    exported = maxjax.export.deserialize(exported.serialize(format="jax"))
    x, y = jnp.arange(96.0).reshape(6, 16), jnp.arange(288.0).reshape(16, 18)
    np.testing.assert_allclose(exported.call(x, y), function(x, y), rtol=1e-6)
