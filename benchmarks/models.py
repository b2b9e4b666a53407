"""Training steps that the figures compile and run, written as any JAX user would.

`TRAIN_STEPS[name](jax, batch)` gives a jitted step and its arguments, for a library and a batch
size. Arguments come from NumPy, so that both libraries begin with the same numbers, and nothing
but the step is compiled. Its results are the loss first, and the new state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks import gpt2, network

TrainStep = tuple[Any, tuple[Any, ...]]  # the jitted function and its arguments

WIDTH, HEADS, LENGTH, VOCABULARY = 128, 4, 64, 256


def weight(generator: np.random.Generator, *shape: int) -> np.ndarray:
    """Normal numbers, scaled for a product over all axes but the last; float32."""
    scale = np.prod(shape[:-1]) ** -0.5
    return (generator.standard_normal(shape) * scale).astype(np.float32)


def arrays(jax: Any, tree: Any) -> Any:
    return jax.tree.map(jax.numpy.asarray, tree)


# --- a perceptron of three layers, gradient descent ----------------------------------------------


def mlp(jax: Any, batch: int = 128) -> TrainStep:
    train_step = network.train_step(jax)

    @jax.jit
    def step(layers: Any, images: Any, labels: Any) -> Any:
        layers, loss = train_step(layers, images, labels)
        return loss, layers

    generator = np.random.default_rng(1)
    layers = [
        {"weight": weight(generator, inputs, outputs), "bias": np.zeros(outputs, np.float32)}
        for inputs, outputs in zip(network.WIDE[:-1], network.WIDE[1:])
    ]
    return step, arrays(jax, (layers, *network.batch(network.WIDE, batch)))


# --- the convolutional network of examples/digits.py, gradient descent with momentum --------------


def cnn_logits(jax: Any, layers: Any, images: Any) -> Any:
    """(B, 8, 8, 1) images to (B, 10)."""
    lax, jnp = jax.lax, jax.numpy
    *convolutions, last = layers
    for layer in convolutions:
        images = lax.conv_general_dilated(
            images, layer["weight"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        images = jax.nn.relu(images + layer["bias"])
        images = lax.reduce_window(images, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return images.reshape(images.shape[0], -1) @ last["weight"] + last["bias"]


def cnn(jax: Any, batch: int = 128, rate: float = 0.1, momentum: float = 0.9) -> TrainStep:
    jnp = jax.numpy

    def cross_entropy(logits: Any, label: Any) -> Any:
        return -jax.nn.log_softmax(logits)[label]

    def loss(layers: Any, images: Any, labels: Any) -> Any:
        return jnp.mean(jax.vmap(cross_entropy)(cnn_logits(jax, layers, images), labels))

    @jax.jit
    def step(layers: Any, velocity: Any, images: Any, labels: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(layers, images, labels)
        velocity = jax.tree.map(lambda v, g: momentum * v - rate * g, velocity, gradients)
        return value, jax.tree.map(jnp.add, layers, velocity), velocity

    generator = np.random.default_rng(2)
    shapes: list[tuple[int, ...]] = [(3, 3, 1, 16), (3, 3, 16, 32), (2 * 2 * 32, 10)]
    layers = [
        {"weight": weight(generator, *shape), "bias": np.zeros(shape[-1], np.float32)}
        for shape in shapes
    ]
    velocity = jax.tree.map(np.zeros_like, layers)
    images = generator.random((batch, 8, 8, 1), dtype=np.float32)
    labels = generator.integers(0, 10, batch).astype(np.int32)
    return step, arrays(jax, (layers, velocity, images, labels))


# --- transformer blocks between an embedding and its readout, Adam --------------------------------


def layer_norm(jax: Any, x: Any, scale: Any, shift: Any) -> Any:
    """Normalizes the last axis of (..., D)."""
    jnp = jax.numpy
    mean = jnp.mean(x, -1, keepdims=True)
    variance = jnp.var(x, -1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + shift


def attention(jax: Any, queries: Any, keys: Any, values: Any, mask: Any = None) -> Any:
    """(B, H, T, D) queries, keys and values; where the (T, T) mask is false, no attention."""
    jnp = jax.numpy
    scores = jnp.einsum("bhqd,bhkd->bhqk", queries, keys) * queries.shape[-1] ** -0.5
    if mask is not None:
        scores = jnp.where(mask, scores, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", jax.nn.softmax(scores), values)


def transformer_logits(jax: Any, parameters: Any, tokens: Any) -> Any:
    """(B, T) tokens to (B, T, VOCABULARY)."""
    jnp = jax.numpy
    batch, length = tokens.shape

    def heads(x: Any) -> Any:
        return x.reshape(batch, length, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)

    causal = jnp.tril(jnp.ones((length, length), bool))
    x = parameters["embedding"][tokens] + parameters["position"][:length]
    for block in parameters["blocks"]:
        hidden = layer_norm(jax, x, *block["norm_1"])
        queries, keys, values = jnp.split(hidden @ block["attend"], 3, -1)
        mixed = attention(jax, heads(queries), heads(keys), heads(values), causal)
        mixed = mixed.transpose(0, 2, 1, 3).reshape(batch, length, WIDTH)
        x = x + mixed @ block["project"]
        hidden = layer_norm(jax, x, *block["norm_2"])
        x = x + jax.nn.gelu(hidden @ block["widen"]) @ block["narrow"]
    return layer_norm(jax, x, *parameters["norm"]) @ parameters["readout"]


def transformer(jax: Any, batch: int = 8, rate: float = 1e-3, blocks: int = 1) -> TrainStep:
    jnp = jax.numpy

    def loss(parameters: Any, tokens: Any) -> Any:
        """The mean cross-entropy of each token's successor."""
        logits = transformer_logits(jax, parameters, tokens[:, :-1])
        log_probabilities = jax.nn.log_softmax(logits)
        return -jnp.mean(jnp.take_along_axis(log_probabilities, tokens[:, 1:, None], -1))

    @jax.jit
    def step(parameters: Any, mean: Any, square: Any, count: Any, tokens: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters, tokens)
        count = count + 1
        mean = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, gradients)
        square = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, square, gradients)
        parameters = jax.tree.map(
            lambda p, m, s: (
                p - rate * (m / (1 - 0.9**count)) / (jnp.sqrt(s / (1 - 0.999**count)) + 1e-8)
            ),
            parameters,
            mean,
            square,
        )
        return value, parameters, mean, square, count

    generator = np.random.default_rng(3)
    norm = np.ones(WIDTH, np.float32), np.zeros(WIDTH, np.float32)
    parameters = {
        "embedding": weight(generator, VOCABULARY, WIDTH),
        "position": weight(generator, LENGTH, WIDTH),
        "blocks": [
            {
                "norm_1": norm,
                "attend": weight(generator, WIDTH, 3 * WIDTH),
                "project": weight(generator, WIDTH, WIDTH),
                "norm_2": norm,
                "widen": weight(generator, WIDTH, 4 * WIDTH),
                "narrow": weight(generator, 4 * WIDTH, WIDTH),
            }
            for _ in range(blocks)
        ],
        "norm": norm,
        "readout": weight(generator, WIDTH, VOCABULARY),
    }
    # Training under way: Adam's first step would follow the sign of gradients that round to zero.
    mean = jax.tree.map(np.zeros_like, parameters)
    square = jax.tree.map(lambda p: np.full_like(p, 1e-4), parameters)
    tokens = generator.integers(0, VOCABULARY, (batch, LENGTH + 1)).astype(np.int32)
    return step, arrays(jax, (parameters, mean, square, np.int32(10), tokens))


TRAIN_STEPS: dict[str, Callable[..., TrainStep]] = {
    "mlp": mlp,
    "cnn": cnn,
    "transformer": transformer,
}
BATCHES: dict[str, Sequence[int]] = {"mlp": (128, 96), "cnn": (128, 96), "transformer": (8, 6)}


def donating(name: str) -> Callable[[Any], TrainStep]:
    """A step whose state is donated."""

    def make(jax: Any) -> TrainStep:
        step, arguments = TRAIN_STEPS[name](jax)
        states = range(len(jax.eval_shape(step, *arguments)) - 1)
        return jax.jit(step.__wrapped__, donate_argnums=tuple(states)), arguments

    return make


DONATING: dict[str, Callable[[Any], TrainStep]] = {
    "gpt2_256": lambda jax: gpt2.gpt2(jax, 256),
    "gpt2_512": lambda jax: gpt2.gpt2(jax, 512),
    "gpt2_2_blocks": lambda jax: gpt2.gpt2(jax, 256, blocks=2),
    **{name: donating(name) for name in TRAIN_STEPS},
}
