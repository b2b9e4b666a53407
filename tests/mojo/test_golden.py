"""The Mojo text of a dozen programs, as ``explain(..., source=True)`` prints it.

After an intended change to the compiler, ``python -m tests.mojo.test_golden`` rewrites the texts;
read the difference. Nothing is built here.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from maxjax._base import config
from maxjax._max.mojo import crew

GOLDEN = Path(__file__).with_name("golden")
RENEW = "python -m tests.mojo.test_golden"

Program = tuple[Callable[..., Any], Sequence[Any]]
PROGRAMS: dict[str, Program] = {}


def of(*shapes: Any) -> list[np.ndarray]:
    """Arguments: float32 arrays for shapes; anything else unchanged."""
    return [np.zeros(x, np.float32) if type(x) is tuple else x for x in shapes]


def program(*shapes: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS[function.__name__] = function, of(*shapes)
        return function
    return add


@program((64, 128), (128,))
def elementwise_broadcast(x, bias):
    return jnp.tanh(x * 2 + bias)


@program((64, 128))
def softmax(x):
    shifted = jnp.exp(x - jnp.max(x, axis=1, keepdims=True))
    return shifted / jnp.sum(shifted, axis=1, keepdims=True)


@program((64, 128), (128,), (128,))
def layer_norm(x, scale, offset):
    mean = jnp.mean(x, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(x - mean), axis=-1, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + 1e-6) * scale + offset


@program((64, 128))
def log_sum_exp(x):
    largest = jnp.max(x, axis=1)
    return largest + jnp.log(jnp.sum(jnp.exp(x - largest[:, None]), axis=1))


@program((64, 128))
def variance(x):
    return jnp.var(x)


@program((64, 128), (128,))
def column_sum_and_step(gradient, bias):
    return bias - 0.1 * jnp.sum(gradient, axis=0)


@program((64, 128), (64, 128))
def stored_while_summed(x, hidden):
    gradient = x * (1 - hidden * hidden)
    return gradient, jnp.sum(gradient, axis=0)


@program((64, 128), (64, 32), (64, 160))
def windows(x, y, z):
    return jnp.pad(jnp.concatenate([jnp.sin(x), y], axis=1) + z, ((1, 1), (0, 2)))


@program((64, 128), (128, 64))
def transpose_and_add(x, y):
    return x.T + y


@program((64, 128), (64, 128), (64, 128), (64, 128), np.int32(3))
def adam(parameter, gradient, first, second, step):
    first = 0.9 * first + 0.1 * gradient
    second = 0.999 * second + 0.001 * gradient * gradient
    count = (step + 1).astype(jnp.float32)
    rate = 1e-3 * jnp.sqrt(1 - 0.999 ** count) / (1 - 0.9 ** count)
    return parameter - rate * first / (jnp.sqrt(second) + 1e-8), first, second


@program((32, 32), (16, 32), (20, 8, 16), (8, 32))
def rnn_scan(recurrent, weights, sequence, state):
    def cell(state, x):
        state = jnp.tanh(x @ weights + state @ recurrent)
        return state, state
    return lax.scan(cell, state, sequence)


@program((16,))
def while_with_cond(x):
    def body(state):
        count, x = state
        return count + 1, lax.cond(count % 2 == 0, lambda x: x * 3 + 1, lambda x: x / 2, x)
    return lax.while_loop(lambda state: jnp.sum(state[1]) < 1000, body, (0, x))


@program((1000, 64), np.zeros((8, 20), np.int32), (20, 64))
def embedding(table, tokens, positions):
    return table[tokens] + positions


@program([((32, 64), (64,)), ((64, 10), (10,))], (128, 32), np.zeros(128, np.int32))
def mlp_step(parameters, x, labels):
    def loss(parameters):
        (w1, b1), (w2, b2) = parameters
        logits = jnp.tanh(x @ w1 + b1) @ w2 + b2
        chosen = jnp.take_along_axis(logits, labels[:, None], axis=1)
        largest = lax.stop_gradient(jnp.max(logits, axis=1, keepdims=True))
        normalizer = largest + jnp.log(jnp.sum(jnp.exp(logits - largest), axis=1, keepdims=True))
        return jnp.mean(normalizer - chosen)

    value, gradient = maxjax.value_and_grad(loss)(parameters)
    return value, maxjax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradient)


PROGRAMS["mlp_step"][1][0] = [[np.zeros(shape, np.float32) for shape in layer]
                              for layer in PROGRAMS["mlp_step"][1][0]]


def text_of(name: str) -> str:
    function, args = PROGRAMS[name]
    with config.backend("mojo"):
        explanation = maxjax.debug.explain(maxjax.jit(function), *args, source=True)
    assert [place for place, _, _ in explanation.pieces] == ["MAX"], str(explanation)
    return explanation.source.rstrip("\n") + "\n"


@pytest.mark.parametrize("name", PROGRAMS)
def test_text(name, monkeypatch):
    monkeypatch.setattr(crew, "cores", lambda: 2)   # the calls contain the number of threads
    path = GOLDEN / f"{name}.mojo"
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    actual = text_of(name)
    if actual != expected:
        difference = "".join(difflib.unified_diff(
            expected.splitlines(True), actual.splitlines(True), f"golden/{name}.mojo", "now"))
        pytest.fail(f"the text has changed; if that is meant: {RENEW}\n{difference}",
                    pytrace=False)


def test_no_text_is_left_over():
    assert {path.stem for path in GOLDEN.glob("*.mojo")} == set(PROGRAMS)


def test_texts_do_not_depend_on_sizes():
    """Another batch size needs no other kernel."""
    for name in ("softmax", "layer_norm", "column_sum_and_step"):
        function, args = PROGRAMS[name]
        other = [np.zeros((96, *x.shape[1:]), x.dtype) if x.ndim > 1 else x for x in args]
        one, two = (maxjax.debug.explain(maxjax.jit(function), *values, source=True).source
                    for values in (args, other))
        assert one.partition("\ncalls:")[0] == two.partition("\ncalls:")[0]


if __name__ == "__main__":
    crew.cores = lambda: 2  # type: ignore[assignment]
    GOLDEN.mkdir(exist_ok=True)
    for known in PROGRAMS:
        (GOLDEN / f"{known}.mojo").write_text(text_of(known), encoding="utf-8")
