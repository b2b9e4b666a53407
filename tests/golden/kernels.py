"""The Mojo text of programs, as ``explain(..., source=True)`` prints it. Nothing is built here."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base import config
from maxjax._max.mojo import crew
from tests.golden.programs import golden, of


def kernel(function: Callable[..., Any], *args: Any) -> str:
    with config.backend("mojo"), mock.patch.object(crew, "cores", lambda: 2):
        explanation = maxjax.debug.explain(maxjax.jit(function), *args, source=True)
    assert [place for place, _, _ in explanation.pieces] == ["MAX"], str(explanation)
    return explanation.source


program = functools.partial(golden, kernel, "mojo")


@program((64, 128), (128,))
def elementwise_broadcast(x, bias):
    """One pass: x * 2 and the sum are never arrays; the bias is read anew for each row."""
    return jnp.tanh(x * 2 + bias)


@program((64, 128))
def softmax(x):
    """Maximum, exponentials, their sum and the quotients: one kernel, with memory for one row."""
    shifted = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    return shifted / jnp.sum(shifted, axis=1, keepdims=True)


@program((64, 128), (128,), (128,))
def layer_norm(x, scale, offset):
    """One kernel goes over each row three times: mean, variance, result."""
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(x - mean), axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-6) * scale + offset


@program((400, 3))
def squared_distances(x):
    """Differences of all pairs of positions, whose three coordinates come first: rows of 400."""
    difference = x[:, None] - x[None]
    return jnp.sum(difference * difference, axis=-1)


@program((64, 128))
def log_sum_exp(x):
    """The maximum of a row, then its sum of exponentials, which are never stored."""
    largest = jnp.max(x, axis=1)
    return largest + jnp.log(jnp.sum(jnp.exp(x - largest[:, None]), axis=1))


@program((64, 128))
def variance(x):
    """One sum over all rows, then one of squares; what is between them stays in a register."""
    return jnp.var(x)


@program((64, 128), (128,))
def column_sum_and_step(gradient, bias):
    """The step is taken where a block of the column sums is finished: no other pass."""
    return bias - 0.1 * jnp.sum(gradient, axis=0)


@program((64, 128), (64, 128))
def stored_while_summed(x, hidden):
    """The gradient is stored in the pass that sums its columns."""
    gradient = x * (1 - hidden * hidden)
    return gradient, jnp.sum(gradient, axis=0)


@program((64, 128), (64, 32), (64, 160))
def windows(x, y, z):
    """The sum is computed by pieces, each of which is written into the padded result."""
    return jnp.pad(jnp.concatenate([jnp.sin(x), y], axis=1) + z, ((1, 1), (0, 2)))


@program((64, 128), (128, 64))
def transpose_and_add(x, y):
    """The transpose is a copy by blocks, after which both operands are read in lines."""
    return x.T + y


@program((64, 128), (64, 128), (64, 128), (64, 128), np.int32(3))
def adam(parameter, gradient, first, second, step):
    """Three results of one pass; the scalars of the step are computed before it."""
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient * gradient
    count = (step + 1).astype(jnp.float32)
    rate = 1e-3 * jnp.sqrt(1 - 0.999 ** count) / (1 - 0.9 ** count)
    return parameter - rate * first / (jnp.sqrt(second) + 1e-8), first, second


@program((32, 32), (16, 32), (20, 8, 16), (8, 32))
def rnn_scan(recurrent, weights, sequence, state):
    """The loop is a step of the tape; its kernel writes the state twice, as carry and as output."""
    def cell(state, x):
        state = jnp.tanh(x @ weights + state @ recurrent)
        return state, state
    return lax.scan(cell, state, sequence)


@program((200,))
def while_with_cond(x):
    """The condition, the body and its branches are steps of the tape: no way back to Python."""
    def body(state):
        count, x = state
        return count + 1, lax.cond(count % 2 == 0, lambda x: x * 3 + 1, lambda x: x / 2, x)
    return lax.while_loop(lambda state: jnp.sum(state[1]) < 1000, body, (0, x))


@program((8,), (3, 8))
def loop_over_longer_vectors(state, weights):
    """In memory, and computed a vector at a time; the product is a call of the pack, by its address
    in the machine's code."""
    def body(i, x):
        x = jnp.where(x > 0, x * 0.5 + 1, x - 2)
        return x + jnp.sum(weights @ x)
    return lax.fori_loop(0, 10, body, state)


@program((3,), (20,))
def loop_over_few_elements(state, forces):
    """One kernel: slices, the stack and the branches are variables; the machine's code is behind
    it."""
    def body(state, force):
        x, y, z = state
        x = lax.cond(x > y, lambda x: x * 0.5, lambda x: x + force, x)
        return jnp.stack([y, z * x, x - y]), x
    return lax.scan(body, state, forces)


@program((1000, 64), np.zeros((8, 20), np.int32), (20, 64))
def embedding(table, tokens, positions):
    """Indices are wrapped and clipped, rows gathered by the pack, positions added."""
    return table[tokens] + positions


@program([of((32, 64), (64,)), of((64, 10), (10,))], (128, 32), np.zeros(128, np.int32))
def mlp_step(parameters, x, labels):
    """A training step: products are the pack's, all between them is fused with its reductions."""
    def loss(parameters):
        (w1, b1), (w2, b2) = parameters
        logits = jnp.tanh(x @ w1 + b1) @ w2 + b2
        chosen = jnp.take_along_axis(logits, labels[:, None], axis=1)
        largest = lax.stop_gradient(jnp.max(logits, axis=1, keepdims=True))
        normalizer = largest + jnp.log(jnp.sum(jnp.exp(logits - largest), axis=1, keepdims=True))
        return jnp.mean(normalizer - chosen)

    value, gradient = maxjax.value_and_grad(loss)(parameters)
    return value, maxjax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradient)
