"""Figures that time a call in a process that is already warm.

Each takes the library (JAX, or what stands in for it) and returns a function without arguments:
one call of it is what is timed. A call ends when its result is in NumPy's hands, so that neither
asynchronous nor lazy execution leaves work behind.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import models, network, steady

Call = Callable[[], Any]


def vector(jax: Any) -> Any:
    return jax.numpy.linspace(0.0, 1.0, 100)


def eager_add(jax: Any) -> Call:
    x, y = vector(jax), vector(jax)
    return lambda: np.asarray(jax.numpy.add(x, y))


def eager_sin(jax: Any) -> Call:
    x = vector(jax)
    return lambda: np.asarray(jax.numpy.sin(x))


def eager_sum(jax: Any) -> Call:
    x = vector(jax)
    return lambda: np.asarray(jax.numpy.sum(x))


def eager_reshape(jax: Any) -> Call:
    x = vector(jax)
    return lambda: np.asarray(jax.numpy.reshape(x, (10, 10)))


def eager_slice(jax: Any) -> Call:
    x = vector(jax)
    return lambda: np.asarray(x[10:60])


def eager_where(jax: Any) -> Call:
    x, y = vector(jax), -vector(jax)
    condition = x > 0.5
    return lambda: np.asarray(jax.numpy.where(condition, x, y))


def eager_matmul(jax: Any) -> Call:
    x = vector(jax).reshape(10, 10)
    return lambda: np.asarray(jax.numpy.matmul(x, x))


def eager_grad(jax: Any) -> Call:
    jnp = jax.numpy
    x = vector(jax)
    return lambda: np.asarray(jax.grad(lambda x: jnp.sum(jnp.sin(x) * x))(x))


def jitted_call(jax: Any) -> Call:
    x = vector(jax)
    function = jax.jit(lambda x: x * 2 + 1)
    return lambda: np.asarray(function(x))


def trace_grad(jax: Any) -> Call:
    layers = network.initialize(jax, network.DIGITS)
    images, labels = network.batch(network.DIGITS, 64)

    def call() -> Any:
        loss = network.loss_function(jax)  # a fresh function, so that no trace is remembered
        return jax.make_jaxpr(jax.grad(loss))(layers, images, labels)

    return call


def trace_transformer(jax: Any) -> Call:
    """A training step of twelve blocks: forward, backward, Adam."""
    step, arguments = models.transformer(jax, blocks=12)

    def call() -> Any:
        # A fresh function, so that no trace is remembered.
        return jax.make_jaxpr(functools.partial(step.__wrapped__))(*arguments)

    return call


def scan(jax: Any) -> Call:
    """The steady suite's recurrent network of 1,000 steps, where `MAXJAX_COMPILE` has it run."""
    return steady.rnn(jax)


def eager_hessian(jax: Any) -> Call:
    """The Hessian of a network of 50 parameters, 4 inputs and 8 hidden units, with 32 examples."""
    jnp = jax.numpy
    generator = np.random.default_rng(0)
    parameters = jnp.asarray(generator.standard_normal(50).astype(np.float32))
    inputs = jnp.asarray(generator.standard_normal((32, 4)).astype(np.float32))
    targets = jnp.asarray(generator.standard_normal(32).astype(np.float32))

    def loss(p: Any) -> Any:
        hidden = jnp.tanh(inputs @ p[:32].reshape(4, 8) + p[32:40])
        return jnp.mean((hidden @ p[40:48] * p[48] + p[49] - targets) ** 2)

    return lambda: np.asarray(jax.hessian(loss)(parameters))


CALLS: dict[str, Callable[[Any], Call]] = {
    function.__name__: function
    for function in (
        eager_add,
        eager_sin,
        eager_sum,
        eager_reshape,
        eager_slice,
        eager_where,
        eager_matmul,
        eager_grad,
        jitted_call,
        trace_grad,
        trace_transformer,
        scan,
        eager_hessian,
    )
}
