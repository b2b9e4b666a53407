"""Decoding with a key-value cache: a step is 8 tokens, its number their mean log-probability.

usage: decoding.py STEPS [small]
"""

import functools
import sys

import jax
import jax.numpy as jnp

steps, small = int(sys.argv[1]), "small" in sys.argv[2:]
layers, width, heads, length, vocabulary = (1, 16, 2, 16, 32) if small else (4, 256, 8, 512, 1024)
depth = width // heads


def initialize(key):
    shapes = {
        "query_key_value": (layers, width, 3 * width),
        "out": (layers, width, width),
        "up": (layers, width, 4 * width),
        "down": (layers, 4 * width, width),
        "embedding": (vocabulary, width),
        "positions": (length, width),
    }
    keys = jax.random.split(key, len(shapes))
    return {
        name: jax.random.normal(each, shape) * width**-0.5
        for each, (name, shape) in zip(keys, shapes.items(), strict=True)
    }


def normalize(x):
    return x * jax.lax.rsqrt(jnp.mean(x**2, -1, keepdims=True) + 1e-5)


@functools.partial(jax.jit, donate_argnums=1)
def decode(parameters, cache, token, position):
    """Feeds a token at a position: the cache, the likeliest next token, its log-probability."""

    def layer(x, scanned):
        block, keys, values = scanned
        projected = (normalize(x) @ block["query_key_value"]).reshape(3, heads, depth)
        query, key, value = projected
        keys = jax.lax.dynamic_update_slice(keys, key[None], (position, 0, 0))
        values = jax.lax.dynamic_update_slice(values, value[None], (position, 0, 0))
        scores = jnp.einsum("hd,khd->hk", query, keys) * depth**-0.5
        scores = jnp.where(jnp.arange(length) <= position, scores, -jnp.inf)
        mixed = jnp.einsum("hk,khd->hd", jax.nn.softmax(scores), values)
        x = x + mixed.reshape(width) @ block["out"]
        x = x + jax.nn.gelu(normalize(x) @ block["up"]) @ block["down"]
        return x, (keys, values)

    blocks = {name: parameters[name] for name in ("query_key_value", "out", "up", "down")}
    x = parameters["embedding"][token] + parameters["positions"][position]
    x, cache = jax.lax.scan(layer, x, (blocks, *cache))
    logits = jax.nn.log_softmax(normalize(x) @ parameters["embedding"].T * 4)
    token = jnp.argmax(logits)
    return cache, token, logits[token]


parameters = initialize(jax.random.key(0))
cache = (jnp.zeros((layers, length, heads, depth)), jnp.zeros((layers, length, heads, depth)))
token = jnp.asarray(1)
for step in range(steps):
    total = 0.0
    for position in range(8 * step, 8 * step + 8):
        cache, token, log_probability = decode(parameters, cache, token, position % length)
        total = total + log_probability
    print(step, float(total) / 8)
