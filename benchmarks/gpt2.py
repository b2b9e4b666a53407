"""The training step of GPT-2, in plain JAX: its state is one pytree, which the step donates.

GPT-2 as published: 12 blocks of width 768 with 12 heads, a vocabulary of 50,257, the embedding
also the readout, 124 million parameters. Adam as its equations say.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

WIDTH, HEADS, CONTEXT, VOCABULARY = 768, 12, 1024, 50_257


def initialize(jax: Any, blocks: int) -> Any:
    """Parameters, and Adam's means, as one state."""
    generator = np.random.default_rng(4)

    def weight(*shape: int) -> np.ndarray:
        return generator.standard_normal(shape, np.float32) * np.float32(0.02)

    def norm() -> dict[str, np.ndarray]:
        return {"scale": np.ones(WIDTH, np.float32), "shift": np.zeros(WIDTH, np.float32)}

    def linear(inputs: int, outputs: int) -> dict[str, np.ndarray]:
        return {"weight": weight(inputs, outputs), "bias": np.zeros(outputs, np.float32)}

    parameters = {
        "embedding": weight(VOCABULARY, WIDTH),
        "position": weight(CONTEXT, WIDTH),
        "blocks": [
            {
                "norm_1": norm(),
                "attend": linear(WIDTH, 3 * WIDTH),
                "project": linear(WIDTH, WIDTH),
                "norm_2": norm(),
                "widen": linear(WIDTH, 4 * WIDTH),
                "narrow": linear(4 * WIDTH, WIDTH),
            }
            for _ in range(blocks)
        ],
        "norm": norm(),
    }
    parameters = jax.tree.map(jax.numpy.array, parameters)
    zeros = functools.partial(jax.tree.map, jax.numpy.zeros_like)
    return {
        "parameters": parameters,
        "mean": zeros(parameters),
        "square": zeros(parameters),
        "count": jax.numpy.zeros((), "int32"),
    }


def gpt2(jax: Any, length: int, blocks: int = 12) -> tuple[Any, tuple[Any, ...]]:
    """The jitted step and its arguments, for one sequence of so many tokens."""
    tokens = np.random.default_rng(5).integers(0, VOCABULARY, (1, length + 1))
    return train_step(jax), (initialize(jax, blocks), jax.numpy.array(tokens.astype(np.int32)))


def train_step(jax: Any, rate: float = 1e-4) -> Any:
    """A jitted step: state and tokens to the loss and the new state. The state is donated."""
    jnp = jax.numpy

    def normalized(x: Any, norm: Any) -> Any:
        mean = x.mean(-1, keepdims=True)
        variance = x.var(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * norm["scale"] + norm["shift"]

    def applied(x: Any, linear: Any) -> Any:
        return x @ linear["weight"] + linear["bias"]

    def attended(x: Any, block: Any) -> Any:
        sequences, length, _ = x.shape

        def heads(y: Any) -> Any:
            return y.reshape(sequences, length, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

        queries, keys, values = map(heads, jnp.split(applied(x, block["attend"]), 3, -1))
        scores = queries @ keys.transpose(0, 1, 3, 2) / np.float32((WIDTH // HEADS) ** 0.5)
        causal = jnp.tril(jnp.ones((length, length), bool))
        mixed = jax.nn.softmax(jnp.where(causal, scores, -1e9)) @ values
        mixed = mixed.transpose(0, 2, 1, 3).reshape(sequences, length, WIDTH)
        return applied(mixed, block["project"])

    def loss(parameters: Any, tokens: Any) -> Any:
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        x = parameters["embedding"][inputs] + parameters["position"][: inputs.shape[1]]
        for block in parameters["blocks"]:
            x = x + attended(normalized(x, block["norm_1"]), block)
            hidden = jax.nn.gelu(applied(normalized(x, block["norm_2"]), block["widen"]))
            x = x + applied(hidden, block["narrow"])
        logits = normalized(x, parameters["norm"]) @ parameters["embedding"].T
        log_probabilities = jax.nn.log_softmax(logits)
        return -jnp.take_along_axis(log_probabilities, targets[..., None], -1).mean()

    @functools.partial(jax.jit, donate_argnums=0)
    def step(state: Any, tokens: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(state["parameters"], tokens)
        count = state["count"] + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["mean"], gradients)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, state["square"], gradients)
        parameters = jax.tree.map(
            lambda p, m, s: (
                p - rate * (m / (1 - 0.9**count)) / (jnp.sqrt(s / (1 - 0.999**count)) + 1e-8)
            ),
            state["parameters"],
            mean,
            square,
        )
        return value, {
            "parameters": parameters,
            "mean": mean,
            "square": square,
            "count": count,
        }

    return step
