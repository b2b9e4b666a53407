"""Training of an LSTM to add two marked numbers of a sequence: the number is the loss.

usage: lstm.py STEPS [small]
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

steps, small = int(sys.argv[1]), "small" in sys.argv[2:]
length, batch, width = (6, 4, 8) if small else (60, 32, 128)


def initialize(key):
    cell_key, head_key = jax.random.split(key)
    return {
        "cell": jax.random.normal(cell_key, (2 + width, 4 * width)) * (2 + width) ** -0.5,
        "bias": jnp.zeros(4 * width),
        "head": jax.random.normal(head_key, (width,)) * width**-0.5,
    }


def loss(parameters, sequences, sums):
    def cell(state, inputs):
        hidden, memory = state
        gates = jnp.concatenate([inputs, hidden], -1) @ parameters["cell"] + parameters["bias"]
        keep, write, read, candidate = jnp.split(gates, 4, axis=-1)
        memory = jax.nn.sigmoid(keep + 1) * memory + jax.nn.sigmoid(write) * jnp.tanh(candidate)
        return (jax.nn.sigmoid(read) * jnp.tanh(memory), memory), None

    zeros = jnp.zeros((batch, width))
    (hidden, _), _ = jax.lax.scan(cell, (zeros, zeros), sequences)
    return jnp.mean((hidden @ parameters["head"] - sums) ** 2)


@jax.jit
def train(parameters, sequences, sums):
    value, gradients = jax.value_and_grad(loss)(parameters, sequences, sums)
    return jax.tree.map(lambda p, g: p - 0.02 * g, parameters, gradients), value


def examples(generator):
    numbers = generator.random((length, batch), np.float32)
    marks = np.zeros((length, batch), np.float32)
    half = length // 2
    marks[generator.integers(0, half, batch), np.arange(batch)] = 1
    marks[generator.integers(half, length, batch), np.arange(batch)] = 1
    return np.stack([numbers, marks], -1), np.sum(numbers * marks, 0)


parameters = initialize(jax.random.key(0))
generator = np.random.default_rng(0)
for step in range(steps):
    parameters, value = train(parameters, *examples(generator))
    print(step, float(value))
