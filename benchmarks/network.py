"""The network that several figures train: dense layers, written as any JAX user would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

DIGITS = (64, 512, 512, 10)  # the MLP of examples/digits.py
WIDE = (784, 512, 512, 10)


def initialize(jax: Any, sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Weights (I, O) and biases (O,) of each layer, float32."""
    keys = jax.random.split(jax.random.key(0), len(sizes) - 1)
    return [
        {
            "weight": jax.random.normal(key, (inputs, outputs)) * (2.0 / inputs) ** 0.5,
            "bias": jax.numpy.zeros(outputs),
        }
        for key, inputs, outputs in zip(keys, sizes[:-1], sizes[1:])
    ]


def loss_function(jax: Any) -> Callable[..., Any]:
    """The mean cross-entropy of (B, I) images against (B,) labels."""
    jnp = jax.numpy

    def loss(layers: Any, images: Any, labels: Any) -> Any:
        hidden = images
        for layer in layers[:-1]:
            hidden = jax.nn.relu(hidden @ layer["weight"] + layer["bias"])
        logits = hidden @ layers[-1]["weight"] + layers[-1]["bias"]
        log_probabilities = jax.nn.log_softmax(logits)
        return -jnp.mean(jnp.sum(log_probabilities * jax.nn.one_hot(labels, logits.shape[-1]), -1))

    return loss


def train_step(jax: Any) -> Callable[..., Any]:
    """One jitted step of gradient descent: `layers, loss = step(layers, images, labels)`."""
    loss = loss_function(jax)

    @jax.jit
    def step(layers: Any, images: Any, labels: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(layers, images, labels)
        return jax.tree.map(lambda p, g: p - 0.01 * g, layers, gradients), value

    return step


def batch(sizes: Sequence[int], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Random images (count, I) and labels (count,), the same in every process."""
    generator = np.random.default_rng(0)
    images = generator.random((count, sizes[0]), dtype=np.float32)
    return images, generator.integers(0, sizes[-1], count).astype(np.int32)
