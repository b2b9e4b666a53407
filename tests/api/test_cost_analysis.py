"""What programs cost, beside JAX's counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import maxjax

X = np.ones((8, 16), np.float32)
IMAGE = np.ones((1, 3, 8, 8), np.float32)
KERNEL = np.ones((4, 3, 3, 3), np.float32)

# Programs with the counts of JAX: before compilation all three, afterwards what is computed.
EXACT: dict[str, Callable[..., Any]] = {
    "product": lambda j, x: x @ x.T,
    "transpose": lambda j, x: x.T + 1,
    "reshape": lambda j, x: x.reshape(4, 32),
    "broadcast": lambda j, x: j.numpy.broadcast_to(x, (3, 8, 16)),
    "slice": lambda j, x: x[2:4],
    "dynamic slice": lambda j, x: j.lax.dynamic_slice(x, (1, 2), (3, 4)),
    "gather": lambda j, x: x[np.array([1, 2])],
    "scatter": lambda j, x: x.at[np.array([1, 2])].add(1),
    "concatenate": lambda j, x: j.numpy.concatenate([x, x]),
    "sum": lambda j, x: x.sum(0),
    "mean": lambda j, x: x.mean(),
    "max": lambda j, x: x.max(1),
    "any": lambda j, x: (x > 0).any(),
    "cumsum": lambda j, x: x.cumsum(1),
    "sort": lambda j, x: j.numpy.sort(x, 1),
    "exp": lambda j, x: j.numpy.exp(x),
    "power": lambda j, x: x ** 2.5,
    "cube": lambda j, x: x ** 3,
    "select": lambda j, x: j.numpy.where(x > 0, x, -x),
    "convert": lambda j, x: x.astype(int) + 1,
    "relu": lambda j, x: j.nn.relu(x),
    "two results": lambda j, x: (x, x + 1),
    "pooling": lambda j, x: j.lax.reduce_window(x, -np.inf, j.lax.max, (2, 2), (2, 2), "VALID"),
    "while": lambda j, x: j.lax.while_loop(lambda x: x.sum() < 5, lambda x: x + 1, x),
}
# With the same operations, and about as many bytes.
NEAR: dict[str, Callable[..., Any]] = {
    "softmax": lambda j, x: j.nn.softmax(x),
    "gelu": lambda j, x: j.nn.gelu(x),
    "standardize": lambda j, x: j.nn.standardize(x),
    "variance": lambda j, x: x.var(),
    "argmax": lambda j, x: x.argmax(1),
    "scan": lambda j, x: j.lax.scan(lambda c, y: (c + y, c * y), x[0], x),
    "fori_loop": lambda j, x: j.lax.fori_loop(0, 5, lambda i, x: x * x, x),
    "cond": lambda j, x: j.lax.cond(
        x[0, 0] > 0, lambda x: x + x * x, lambda x: j.numpy.sin(x), x),
    "gradient": lambda j, x: j.grad(lambda x: j.numpy.tanh(x @ x.T).sum())(x),
    "layers": lambda j, x: j.numpy.tanh(j.numpy.tanh(x @ x.T) @ x) @ x.T,
    "convolution": lambda j, x: j.lax.conv(IMAGE, KERNEL, (1, 1), "SAME") + x[0, 0],
    "strided": lambda j, x: j.lax.conv(IMAGE, KERNEL, (2, 2), "SAME") + x[0, 0],
    "normal": lambda j, x: j.random.normal(j.random.key(0), (64, 64)) + x[0, 0],
}
WORK, BYTES = ("flops", "transcendentals"), "bytes accessed"


def costs(j: Any, program: Callable[..., Any]) -> tuple[dict[str, float], dict[str, float]]:
    lowered = j.jit(lambda x: program(j, x)).lower(X)
    return lowered.cost_analysis(), lowered.compile().cost_analysis()


@pytest.mark.parametrize("name", EXACT)
def test_counts_are_jax_s(name: str) -> None:
    (lowered, compiled), (theirs, compiled_by_jax) = (
        costs(j, EXACT[name]) for j in (maxjax, jax))
    for kind in (*WORK, BYTES):
        assert lowered.get(kind, 0) == theirs.get(kind, 0), kind
    if name == "scatter":       # XLA makes it a loop
        return
    for kind in WORK:
        assert compiled.get(kind, 0) == compiled_by_jax.get(kind, 0), kind


@pytest.mark.parametrize("name", NEAR)
def test_counts_are_near_jax_s(name: str) -> None:
    for ours, theirs in zip(*(costs(j, NEAR[name]) for j in (maxjax, jax)), strict=True):
        for kind in WORK:
            np.testing.assert_allclose(ours.get(kind, 0), theirs.get(kind, 0), rtol=0.15)
    # Bytes are the coarser: XLA's own numbers hang on how it fuses.
    (ours, _), (theirs, _) = (costs(j, NEAR[name]) for j in (maxjax, jax))
    assert 0.05 < ours[BYTES] / theirs[BYTES] < 2


def test_memory_of_a_program() -> None:
    def program(j: Any) -> Any:
        return j.jit(lambda x, y, unused: (j.numpy.tanh(x @ y) @ y.T, x + 1),
                     donate_argnums=0).lower(X, np.ones((16, 4), np.float32), X).compile()

    ours, theirs = (program(j).memory_analysis() for j in (maxjax, jax))
    for kind in ("argument", "output", "alias"):
        assert getattr(ours, f"{kind}_size_in_bytes") == getattr(theirs, f"{kind}_size_in_bytes")
    assert 0 < ours.temp_size_in_bytes <= 4 * theirs.temp_size_in_bytes
