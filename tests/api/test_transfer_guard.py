"""What transfer guards refuse, as in JAX."""

from __future__ import annotations

import logging

import jax
import numpy as np
import pytest

import maxjax

LIBRARIES = (maxjax, jax)

FROM_HOST = [
    "j.device_put(np.ones(3))", "j.jit(lambda x: x)(np.ones(3))", "j.jit(lambda x: x * 2)(2.0)",
    "j.numpy.ones(3)", "j.numpy.zeros(3)", "j.numpy.eye(3)", "j.numpy.arange(3)",
    "j.numpy.array([1.0])", "j.numpy.asarray(np.ones(3))", "j.numpy.float32(1)", "x + 2", "2 * x",
    "x + np.ones(3)", "x > 0", "x ** 2", "-x", "x + x", "x.sum()", "x.mean(0)",
    "j.numpy.mean(x, 0)", "j.numpy.clip(x, 0, 1)", "j.numpy.where(x > x, x, 0)",
    "j.lax.add(x, 1.0)", "j.lax.full((2,), 1.0)", "j.nn.relu(x)", "j.numpy.roll(x, 1)",
    "j.numpy.sin(np.ones(3))", "j.numpy.dot(x, x)", "x.reshape(3, 1)", "x.at[1].add(1.0)",
    "j.numpy.concatenate([x, x])", "j.random.key(0)", "j.random.PRNGKey(0)", "j.random.split(k)",
    "j.random.normal(k, (3,))", "j.random.fold_in(k, 1)", "j.grad(lambda x: x * 2)(2.0)",
    "j.grad(lambda x: (x * x).sum())(x)", "j.grad(lambda x: (x * 2).sum())(x)",
    "j.vmap(lambda x: x * 2)(x)", "j.vmap(lambda x: x * x)(np.ones(3))",
    "j.jit(lambda x: x + 1 + np.ones(3))(x)", "j.eval_shape(lambda x: x * 2, 2.0)",
    "j.make_jaxpr(lambda x: x * 2)(2.0)", "np.asarray(x)", "float(x.sum())", "repr(x)",
    "j.make_array_from_callback((3,), j.sharding.SingleDeviceSharding(j.devices()[0]), "
    "lambda index: np.ones(3)[index])",
]


def refused(j, text, guard, level):
    x, k = j.numpy.arange(3.0), j.random.key(0)
    with guard(j)(level):
        try:
            eval(text, {"j": j, "np": np, "x": x, "k": k})
        except Exception as error:
            assert type(error).__name__ == "JaxRuntimeError"
            return str(error).split(":")[:2]
    return None


@pytest.mark.parametrize("level", ["allow", "disallow", "disallow_explicit"])
@pytest.mark.parametrize("text", FROM_HOST)
def test_from_the_host(text, level):
    ours, theirs = (refused(j, text, lambda j: j.transfer_guard, level) for j in LIBRARIES)
    assert ours == theirs
    assert refused(maxjax, text, lambda j: j.transfer_guard_device_to_host, level) is None


def test_the_inner_of_nested_guards_counts():
    def run(j):
        seen = []
        with j.transfer_guard_host_to_device("disallow"):
            with j.transfer_guard("allow"):
                seen.append(refused(j, "j.numpy.ones(1)", lambda j: j.transfer_guard, "log"))
            try:
                j.numpy.ones(1)
            except Exception as error:
                seen.append(type(error).__name__)
        j.numpy.ones(1)
        return seen

    assert run(maxjax) == run(jax) == [None, "JaxRuntimeError"]


def test_for_the_process():
    for j in LIBRARIES:
        j.config.update("jax_transfer_guard", "disallow")
        try:
            with pytest.raises(j.errors.JaxRuntimeError):
                j.numpy.ones(1)
        finally:
            j.config.update("jax_transfer_guard", "allow")
        j.numpy.ones(1)


def test_implicit_transfers_are_logged(caplog):
    x = maxjax.numpy.arange(3.0)
    with caplog.at_level(logging.WARNING, logger="maxjax"), maxjax.transfer_guard("log"):
        maxjax.device_put(np.ones(3))
        assert not caplog.records
        x + np.ones(3)
    assert "host-to-device transfer: aval=ShapedArray(float32[3])" in caplog.text
