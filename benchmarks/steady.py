"""Jitted programs that are timed when they are compiled and warm.

Each takes the library (JAX, or what stands in for it) and returns a `Program`, whose call is what
is timed: of the jitted function, up to its results. Inputs come from NumPy: the same numbers for
both libraries. Sizes are those of real use: arrays of 4 to 16 MB, and products small and large.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import models

MILLION = 1 << 20


@dataclass
class Program:
    """A jitted function with arguments.

    Attributes:
      tolerance: how far two libraries' results may differ, relative to the largest element of
        each of their arrays; 0 for what must be the same.
      compared: what of the result is compared, given the arguments and the result.
    """

    jax: Any
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    tolerance: float = 1e-6
    compared: Callable[[tuple[Any, ...], Any], Any] = lambda arguments, result: result

    def __call__(self) -> Any:
        result = self.function(*self.arguments)
        if isinstance(result, tuple):
            for leaf in self.jax.tree.leaves(result):
                leaf.block_until_ready()
        else:
            result.block_until_ready()
        return result

    def results(self) -> list[np.ndarray]:
        """The arrays to compare, of one more call."""
        return [
            np.asarray(leaf) for leaf in self.jax.tree.leaves(self.compared(self.arguments, self()))
        ]

    def tier(self) -> str:
        """Where maxjax runs it, if not compiled as a whole; empty if so, and for JAX."""
        debug = getattr(self.jax, "debug", None)
        if not hasattr(debug, "statistics"):
            return ""
        assert debug is not None
        statistics = debug.statistics(self.function)
        if statistics.interpreted_calls or not statistics.compiled_calls:
            return f"interpreted: {statistics.reason or statistics.state}"
        explanation = debug.explain(self.function, *self.arguments)
        if explanation.backend != "mojo":
            return f"by the {explanation.backend} backend"
        on_host = [
            reason
            for place, _, reasons in explanation.pieces
            if place == "host"
            for reason in reasons
        ]
        return f"partly interpreted: {'; '.join(on_host)}" if on_host else ""


def random(seed: int, *shape: int) -> np.ndarray:
    """Normal numbers, float32."""
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def program(jax: Any, function: Callable[..., Any], *inputs: np.ndarray, **more: Any) -> Program:
    return Program(jax, jax.jit(function), tuple(map(jax.numpy.asarray, inputs)), **more)


# --- elementwise and along rows and columns -------------------------------------------------------


def chain(jax: Any) -> Program:
    jnp = jax.numpy
    x, y = random(0, MILLION), random(1, MILLION)
    return program(jax, lambda x, y: jnp.tanh(x * y + x) * jnp.exp(-y * y) + jnp.sqrt(x * x), x, y)


def softmax(jax: Any) -> Program:
    return program(jax, jax.nn.softmax, random(0, 2048, 1024))


def layer_norm(jax: Any) -> Program:
    x, scale, shift = random(0, 4096, 512), random(1, 512), random(2, 512)
    return program(jax, lambda *x: models.layer_norm(jax, *x), x, scale, shift)


def row_sums(jax: Any) -> Program:
    return program(jax, lambda x: jax.numpy.sum(x, 1), random(0, 2048, 2048))


def column_sums(jax: Any) -> Program:
    return program(jax, lambda x: jax.numpy.sum(x, 0), random(0, 2048, 2048), tolerance=5e-6)


def transpose(jax: Any) -> Program:
    return program(jax, jax.numpy.transpose, random(0, 2048, 2048), tolerance=0.0)


def transpose_heads(jax: Any) -> Program:
    """(B, T, H, D) to (B, H, T, D), as attention does."""
    x = random(0, 16, 256, 8, 64)
    return program(jax, lambda x: jax.numpy.transpose(x, (0, 2, 1, 3)), x, tolerance=0.0)


# --- matrix products ------------------------------------------------------------------------------


def matmul(m: int, k: int, n: int) -> Callable[[Any], Program]:
    def make(jax: Any) -> Program:
        return program(jax, jax.numpy.matmul, random(0, m, k), random(1, k, n), tolerance=2e-6)

    return make


def attention(jax: Any) -> Program:
    """Batch 4, 8 heads, 128 positions of 64."""
    inputs = [random(seed, 4, 8, 128, 64) for seed in range(3)]
    return program(jax, lambda *x: models.attention(jax, *x), *inputs, tolerance=5e-6)


# --- training -------------------------------------------------------------------------------------


def changes(arguments: tuple[Any, ...], result: Any) -> Any:
    """The loss of the MLP's step, and the changes of its weights: in the fifth digit, they are what
    it has computed."""
    loss, layers = result
    return loss, [
        np.asarray(layer[name]) - np.asarray(before[name])
        for layer, before in zip(layers, arguments[0])
        for name in ("bias", "weight")
    ]


def mlp_step(jax: Any) -> Program:
    return Program(jax, *models.mlp(jax), tolerance=1e-3, compared=changes)


def cnn_step(jax: Any) -> Program:
    return Program(jax, *models.cnn(jax), tolerance=5e-6)


def transformer_step(jax: Any) -> Program:
    return Program(jax, *models.transformer(jax), tolerance=5e-6)


# --- loops, order and indices ---------------------------------------------------------------------


def rnn(jax: Any) -> Program:
    """A recurrent network's 1,000 steps; batch 8, 64 units."""
    jnp = jax.numpy

    def run(recurrent: Any, hidden: Any, inputs: Any) -> Any:
        def step(hidden: Any, x: Any) -> Any:
            hidden = jnp.tanh(hidden @ recurrent + x)
            return hidden, hidden

        return jax.lax.scan(step, hidden, inputs)

    recurrent = 0.05 * random(0, 64, 64)
    return program(jax, run, recurrent, random(1, 8, 64), random(2, 1000, 8, 64), tolerance=1e-5)


def sort(jax: Any) -> Program:
    return program(jax, jax.numpy.sort, random(0, MILLION), tolerance=0.0)


def indices() -> np.ndarray:
    return np.random.default_rng(7).integers(0, MILLION, MILLION).astype(np.int32)


def gather(jax: Any) -> Program:
    return program(jax, lambda x, i: x[i], random(0, MILLION), indices(), tolerance=0.0)


def scatter(jax: Any) -> Program:
    x, updates = random(0, MILLION), random(1, MILLION)
    return program(jax, lambda x, i, u: x.at[i].add(u), x, indices(), updates)


SIZES = (16, 32, 64, 128, 256, 512, 1024, 2048)

# What the suite's geometric mean is over, by its label.
SUITE: dict[str, Callable[[Any], Program]] = {
    "elementwise chain, 1M": chain,
    "softmax of 2048 rows of 1024": softmax,
    "layer norm of 4096 rows of 512": layer_norm,
    "sums of 2048 rows of 2048": row_sums,
    "sums of 2048 columns of 2048": column_sums,
    "transpose, 2048 by 2048": transpose,
    "transpose of heads, 16 x 256 x 8 x 64": transpose_heads,
    **{f"matmul, {n}": matmul(n, n, n) for n in SIZES},
    "matmul, 512x128 by 128x10": matmul(512, 128, 10),
    "matmul, 128x10 by 10x512": matmul(128, 10, 512),
    "attention, 4 x 8 x 128 x 64": attention,
    "CNN training step": cnn_step,
    "transformer block training step": transformer_step,
    "RNN, scan of 1,000 steps": rnn,
    "sort, 1M": sort,
    "gather, 1M": gather,
    "scatter-add, 1M": scatter,
}
MLP_STEP = "MLP training step"
PROGRAMS: dict[str, Callable[[Any], Program]] = {MLP_STEP: mlp_step, **SUITE}
