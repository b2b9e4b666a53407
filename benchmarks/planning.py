"""How long maxjax plans a program, in µs an equation: a program it never met, and then a new size.

    python -m benchmarks.planning [NAME ...] [--runs 5]

Processor time of planning alone, from the simplified program to the calls of kernels; equations of
bodies count, each body's once. Each run is a process of its own, in which another program was
planned before; the table shows the medians.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import maxjax
from benchmarks import models
from maxjax._base import collection
from maxjax._ir.jaxpr import Jaxpr
from maxjax._max.mojo.backend import MojoBackend
from maxjax._runtime.program import Program
from maxjax._runtime.tiering import tiering

lax, jnp = maxjax.lax, maxjax.numpy
Traced = tuple[Callable[..., Any], tuple[Any, ...]]  # a function and its arguments


def training(name: str, **options: Any) -> Callable[[int], Traced]:
    return lambda batch: models.TRAIN_STEPS[name](maxjax, batch, **options)


def per_example_gradients(batch: int) -> Traced:
    """The convolutional network's gradients by a vmap over examples, clipped and summed."""

    def loss(layers: Any, image: Any, label: Any) -> Any:
        return -maxjax.nn.log_softmax(models.cnn_logits(maxjax, layers, image[None])[0])[label]

    def step(layers: Any, images: Any, labels: Any) -> Any:
        gradients = maxjax.vmap(maxjax.grad(loss), (None, 0, 0))(layers, images, labels)
        leaves = [x.reshape(len(x), -1) for x in maxjax.tree.leaves(gradients)]
        norms = jnp.linalg.norm(jnp.concatenate(leaves, 1), axis=1)
        scales = jnp.minimum(1.0, 1.0 / norms)
        return maxjax.tree.map(lambda g: jnp.tensordot(scales, g, 1), gradients)

    _, (layers, _, images, labels) = models.cnn(maxjax, batch)
    return step, (layers, images, labels)


def lstm(batch: int, length: int = 60, width: int = 128) -> Traced:
    """Gradients through a scan."""

    def loss(weights: Any, bias: Any, sequences: Any) -> Any:
        def cell(state: Any, inputs: Any) -> Any:
            hidden, memory = state
            gates = jnp.concatenate([inputs, hidden], -1) @ weights + bias
            keep, write, read, candidate = jnp.split(gates, 4, axis=-1)
            memory = maxjax.nn.sigmoid(keep) * memory
            memory += maxjax.nn.sigmoid(write) * jnp.tanh(candidate)
            return (maxjax.nn.sigmoid(read) * jnp.tanh(memory), memory), None

        zeros = jnp.zeros((batch, width))
        (hidden, _), _ = lax.scan(cell, (zeros, zeros), sequences)
        return jnp.mean(hidden**2)

    return maxjax.value_and_grad(loss, (0, 1)), (
        jnp.ones((2 + width, 4 * width)),
        jnp.zeros(4 * width),
        jnp.ones((length, batch, 2)),
    )


def adaptive_steps(batch: int) -> Traced:
    """An ensemble of Runge-Kutta solvers with step-size control, a while loop each."""

    def field(y: Any) -> Any:
        x, y, z = y
        return jnp.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8 / 3 * z])

    def solve(start: Any) -> Any:
        def step(state: Any) -> Any:
            t, dt, y = state
            k1 = field(y)
            k2 = field(y + dt * k1 / 2)
            k3 = field(y + dt * 3 / 4 * k2)
            new = y + dt * (2 / 9 * k1 + k2 / 3 + 4 / 9 * k3)
            other = y + dt * (7 / 24 * k1 + k2 / 4 + k3 / 3 + field(new) / 8)
            error = jnp.max(jnp.abs(new - other) / (1e-5 + 1e-3 * jnp.abs(new)))
            accepted = error < 1.0
            factor = jnp.clip(0.9 * (error + 1e-9) ** (-1 / 3), 0.2, 5.0)
            return (
                jnp.where(accepted, t + dt, t),
                jnp.minimum(dt * factor, 2.0 - t),
                jnp.where(accepted, new, y),
            )

        start = 0.0, 0.01, start
        return lax.while_loop(lambda state: state[0] < 2.0, step, start)[2]

    return maxjax.vmap(solve), (jnp.ones((batch, 3)),)


def life(size: int) -> Traced:
    """Twenty generations of a stencil."""

    def generation(_: Any, board: Any) -> Any:
        neighbours = sum(
            jnp.roll(board, (down, right), (0, 1))
            for down in (-1, 0, 1)
            for right in (-1, 0, 1)
            if (down, right) != (0, 0)
        )
        born = (board == 0) & (neighbours == 3)
        stays = (board == 1) & ((neighbours == 2) | (neighbours == 3))
        return (born | stays).astype(board.dtype)

    return lambda board: lax.fori_loop(0, 20, generation, board), (
        jnp.zeros((size, size), np.int32),
    )


def chain(size: int) -> Traced:
    """20,000 operations one after the other."""

    def run(x: Any) -> Any:
        for _ in range(10_000):
            x = jnp.sin(x) + x
        return x

    return run, (jnp.ones(size),)


# Each program, and the two sizes at which it is planned.
PROGRAMS: dict[str, tuple[Callable[[int], Traced], int, int]] = {
    "perceptron": (training("mlp"), 128, 96),
    "transformer": (training("transformer", blocks=3), 7, 5),
    "convolutions": (training("cnn"), 120, 100),
    "per-example gradients": (per_example_gradients, 100, 60),
    "lstm": (lstm, 50, 40),
    "adaptive steps": (adaptive_steps, 1000, 700),
    "life": (life, 512, 600),
    "chain": (chain, 5000, 6000),
}


def other() -> Traced:
    """A program before those that are measured: what is imported late is not planning."""

    def run(x: Any) -> Any:
        def step(x: Any, row: Any) -> Any:
            x = jnp.tanh(x @ x) + row
            return x / jnp.sum(x, 1, keepdims=True), jnp.roll(x[0], 1)

        return lax.scan(step, lax.cumsum(x), x)

    return run, (jnp.eye(9),)


def program(traced: Traced) -> tuple[Jaxpr, float]:
    """A simplified program, and thousands of its equations."""
    function, arguments = traced
    opened = Program(maxjax.make_jaxpr(function)(*arguments)).opened.jaxpr
    return opened, tiering.estimate(opened)[1]


def plan_twice(name: str) -> tuple[float, float, float]:
    """Equations; the µs an equation of a first plan, and of one at another size."""
    make, *sizes = PROGRAMS[name]
    backend = MojoBackend()
    backend.prepare(program(other())[0])
    programs = [program(make(size)) for size in sizes]
    taken = []
    for jaxpr, thousands in programs:
        with collection.stopped:
            start = time.process_time()
            backend.prepare(jaxpr)
            taken.append(1e3 * (time.process_time() - start) / thousands)
    return 1e3 * programs[0][1], taken[0], taken[1]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planning")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(PROGRAMS))
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    table = Table("program", "equations", "first", "new size", title="planning, µs an equation")
    for name in options.names or PROGRAMS:
        runs = []
        for _ in range(options.runs):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                runs.append(pool.apply(plan_twice, (name,)))
        equations, first, again = map(statistics.median, zip(*runs))
        table.add_row(name, f"{equations:.0f}", f"{first:.0f}", f"{again:.0f}")
    Console().print(table)


if __name__ == "__main__":
    main()
