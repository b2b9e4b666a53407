"""Training of a decoder-only transformer on characters, by Adam: the number is the loss.

usage: language_model.py STEPS [small]
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

steps, small = int(sys.argv[1]), "small" in sys.argv[2:]
layers, width, heads, length, batch = (1, 16, 2, 8, 2) if small else (3, 128, 4, 64, 16)
text = " ".join(f"{n} times {n} is {n * n}." for n in range(2000))
alphabet = sorted(set(text))
tokens = np.array([alphabet.index(character) for character in text], np.int32)


def initialize(key):
    def matrix(rows, columns):
        nonlocal key
        key, used = jax.random.split(key)
        return jax.random.normal(used, (rows, columns)) * rows**-0.5

    blocks = [
        {
            "query_key_value": matrix(width, 3 * width),
            "out": matrix(width, width),
            "up": matrix(width, 4 * width),
            "down": matrix(4 * width, width),
        }
        for _ in range(layers)
    ]
    return {
        "embedding": matrix(len(alphabet), width),
        "positions": matrix(length, width),
        "blocks": blocks,
        "head": matrix(width, len(alphabet)),
    }


def normalize(x):
    centered = x - x.mean(-1, keepdims=True)
    return centered * jax.lax.rsqrt(jnp.mean(centered**2, -1, keepdims=True) + 1e-5)


def attention(block, x):
    parts = jnp.split(x @ block["query_key_value"], 3, axis=-1)
    query, key, value = (part.reshape(*x.shape[:2], heads, width // heads) for part in parts)
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) * (width // heads) ** -0.5
    scores = jnp.where(jnp.tri(x.shape[1], dtype=bool), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value)
    return mixed.reshape(x.shape) @ block["out"]


def loss(parameters, inputs, targets):
    x = parameters["embedding"][inputs] + parameters["positions"]
    for block in parameters["blocks"]:
        x = x + attention(block, normalize(x))
        x = x + jax.nn.gelu(normalize(x) @ block["up"]) @ block["down"]
    logits = jax.nn.log_softmax(normalize(x) @ parameters["head"])
    return -jnp.mean(jnp.take_along_axis(logits, targets[..., None], axis=-1))


@jax.jit
def train(parameters, mean, square, step, inputs, targets):
    value, gradients = jax.value_and_grad(loss)(parameters, inputs, targets)
    mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradients)
    square = jax.tree.map(lambda s, g: 0.99 * s + 0.01 * g**2, square, gradients)
    rate = 1e-3 * jnp.sqrt(1 - 0.99 ** (step + 1)) / (1 - 0.9 ** (step + 1))
    parameters = jax.tree.map(
        lambda p, m, s: p - rate * m / (jnp.sqrt(s) + 1e-6), parameters, mean, square
    )
    return parameters, mean, square, value


parameters = initialize(jax.random.key(0))
mean = square = jax.tree.map(jnp.zeros_like, parameters)
generator = np.random.default_rng(0)
for step in range(steps):
    starts = generator.integers(0, len(tokens) - length - 1, batch)
    windows = tokens[starts[:, None] + np.arange(length + 1)]
    parameters, mean, square, value = train(
        parameters, mean, square, step, windows[:, :-1], windows[:, 1:]
    )
    print(step, float(value))
