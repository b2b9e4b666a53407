"""Keys of random generators are no numbers: arithmetic with them is refused, as in JAX."""

from __future__ import annotations

import jax
import pytest

import maxjax

FUNCTIONS = {
    "sin": lambda j, k: j.numpy.sin(k),
    "exp": lambda j, k: j.numpy.exp(k),
    "sum": lambda j, k: j.numpy.sum(k),
    "mean": lambda j, k: j.numpy.mean(k),
    "std": lambda j, k: j.numpy.std(k),
    "prod": lambda j, k: j.numpy.prod(k),
    "max": lambda j, k: j.numpy.max(k),
    "sort": lambda j, k: j.numpy.sort(k),
    "unique": lambda j, k: j.numpy.unique(k, size=2),
    "cumsum": lambda j, k: j.numpy.cumsum(k),
    "power": lambda j, k: k ** 2,
    "round": lambda j, k: j.numpy.round(k),
    "sqrt": lambda j, k: j.numpy.sqrt(k),
    "norm": lambda j, k: j.numpy.linalg.norm(k),
    "arctan2": lambda j, k: j.numpy.arctan2(k, k),
    "expit": lambda j, k: j.scipy.special.expit(k),
    "softmax": lambda j, k: j.nn.softmax(k),
    "added": lambda j, k: k + 1,
}


@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_arithmetic_of_keys_is_refused(name, jitted):
    for j in (maxjax, jax):
        keys = j.random.split(j.random.key(0), 3)
        function = j.jit(FUNCTIONS[name], static_argnums=0) if jitted else FUNCTIONS[name]
        with pytest.raises(TypeError):
            function(j, keys)


@pytest.mark.parametrize("j", [maxjax, jax], ids=["maxjax", "jax"])
def test_keys_are_no_operands_of_conversions_and_products(j):
    keys = j.random.split(j.random.key(0), 3)
    for function in (lambda: j.numpy.astype(keys, float), lambda: j.numpy.dot(keys, keys),
                     lambda: j.numpy.angle(keys), lambda: j.lax.top_k(keys, 1),
                     lambda: j.lax.convert_element_type(keys, "int32")):
        with pytest.raises((TypeError, ValueError, AssertionError)):
            function()


@pytest.mark.parametrize("j", [maxjax, jax], ids=["maxjax", "jax"])
def test_keys_can_be_moved(j):
    """Taken, stacked, chosen."""
    keys = j.random.split(j.random.key(0), 3)
    assert j.numpy.stack([keys, keys])[1, 2] == keys[2]
    assert j.numpy.where(True, keys, keys).shape == (3,)
