"""Whole training steps over all devices of a job, for any number of processes.

``main`` runs them in each process, and process 0 writes the losses and parameters to the file that
the variable RESULTS names. Under JAX's name it runs on JAX.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

STEPS = 3
ROWS, WIDTH = 16, 32


def normal(seed: int, *shape: int) -> np.ndarray:
    return np.random.RandomState(seed).randn(*shape).astype("float32") * 0.3


def mesh_of(**sizes: int) -> Mesh:
    return jax.make_mesh(tuple(sizes.values()), tuple(sizes),
                         axis_types=(AxisType.Auto,) * len(sizes))


def over(mesh: Mesh, value: np.ndarray, *spec: Any) -> Any:
    return jax.make_array_from_callback(
        value.shape, NamedSharding(mesh, P(*spec)), lambda index: value[index])


def dense_loss(parameters: Any, x: Any, y: Any) -> Any:
    hidden = jnp.tanh(x @ parameters["in"] + parameters["bias"])
    return ((hidden @ parameters["out"] - y) ** 2).mean()


def training_step(loss: Callable[..., Any], parameters: Any) -> tuple[Callable[..., Any], Any]:
    """A step with momentum, ``step(parameters, velocities, *data)``, and its velocities."""
    places = jax.tree.map(lambda leaf: leaf.sharding, parameters)

    def step(parameters: Any, velocities: Any, *data: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters, *data)
        velocities = jax.tree.map(lambda v, g: 0.9 * v + g, velocities, gradients)
        return jax.tree.map(lambda p, v: p - 0.1 * v, parameters, velocities), velocities, value

    velocities = jax.jit(lambda p: jax.tree.map(jnp.zeros_like, p), out_shardings=places)(
        parameters)
    return jax.jit(step, donate_argnums=(0, 1), out_shardings=(places, places, None)), velocities


def trained(loss: Callable[..., Any], parameters: Any, *data: Any) -> Any:
    """Losses of some steps with momentum, and what the parameters are then."""
    run, velocities = training_step(loss, parameters)
    losses = []
    for _ in range(STEPS):
        parameters, velocities, value = run(parameters, velocities, *data)
        losses.append(value)
    return losses, parameters


def dense(mesh: Mesh, batch: Any, columns: Any, rows: Any) -> Any:
    """A network of two layers; how its batch and the two sides of its hidden layer lie."""
    parameters = {
        "in": over(mesh, normal(0, WIDTH, WIDTH), rows, columns),
        "bias": over(mesh, normal(1, WIDTH), columns),
        "out": over(mesh, normal(2, WIDTH, WIDTH), columns, rows)}
    return trained(dense_loss, parameters, over(mesh, normal(3, ROWS, WIDTH), batch),
                   over(mesh, normal(4, ROWS, WIDTH), batch))


def by_hand() -> Any:
    """Data parallel, with a collective for each leaf's gradient."""
    mesh = mesh_of(x=jax.device_count())

    def step(parameters: Any, x: Any, y: Any) -> Any:
        loss, gradients = jax.value_and_grad(dense_loss)(parameters, x, y)
        gradients = jax.tree.map(lambda g: lax.pmean(g, "x"), gradients)
        return jax.tree.map(lambda p, g: p - 0.1 * g, parameters, gradients), lax.pmean(loss, "x")

    run = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P("x"), P("x")), out_specs=P(),
                                check_vma=False))
    parameters = {name: over(mesh, normal(seed, *shape)) for seed, (name, shape) in enumerate({
        "in": (WIDTH, WIDTH), "bias": (WIDTH,), "out": (WIDTH, WIDTH)}.items())}
    x, y = (over(mesh, normal(seed, ROWS, WIDTH), "x") for seed in (3, 4))
    losses = []
    for _ in range(STEPS):
        parameters, loss = run(parameters, x, y)
        losses.append(loss)
    return losses, parameters


def block(heads: int, size: int, length: int, batch: int) -> tuple[Any, Any, Any]:
    """The loss of a transformer block, its parameters, their heads and hidden layer over one axis,
    and a batch over another."""
    mesh = mesh_of(data=2, model=jax.device_count() // 2)
    width = heads * size

    def loss(parameters: Any, x: Any) -> Any:
        def normed(x: Any) -> Any:
            return x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        q, k, v = (jnp.einsum("btw,whs->bths", normed(x), parameters[name]) for name in "qkv")
        weights = jax.nn.softmax(jnp.einsum("bths,buhs->bhtu", q, k) / np.sqrt(size))
        x = x + jnp.einsum("bhtu,buhs,hsw->btw", weights, v, parameters["o"])
        x = x + jax.nn.gelu(normed(x) @ parameters["in"]) @ parameters["out"]
        return (x ** 2).mean()

    parameters = {
        **{name: over(mesh, normal(n, width, heads, size), None, "model")
           for n, name in enumerate("qkv")},
        "o": over(mesh, normal(3, heads, size, width), "model"),
        "in": over(mesh, normal(4, width, 2 * width), None, "model"),
        "out": over(mesh, normal(5, 2 * width, width), "model")}
    return loss, parameters, over(mesh, normal(6, batch, length, width), "data")


def attention() -> Any:
    return trained(*block(heads=4, size=8, length=6, batch=4))


def attention_step(**sizes: int) -> tuple[Callable[..., Any], list[Any]]:
    """A step ``run(parameters, velocities)``, which returns these and the loss; and its start."""
    loss, parameters, x = block(**sizes)
    step, velocities = training_step(loss, parameters)
    return (lambda parameters, velocities: step(parameters, velocities, x)), [
        parameters, velocities]


def pipeline() -> Any:
    """A layer on each device; activations go from each to the next."""
    count = jax.device_count()
    mesh = mesh_of(stage=count)
    ring = [(n, (n + 1) % count) for n in range(count)]
    parts = 4

    def forward(weights: Any, x: Any) -> Any:
        stage = lax.axis_index("stage")

        def tick(carry: Any, n: Any) -> Any:
            state, done = carry
            state = jnp.where(stage == 0, x[jnp.clip(n, 0, parts - 1)], state)
            state = jnp.tanh(state @ weights[0])
            number = n - count + 1
            kept = jnp.where((stage == count - 1) & (number >= 0), state,
                             done[jnp.clip(number, 0, parts - 1)])
            done = done.at[jnp.clip(number, 0, parts - 1)].set(kept)
            return (lax.ppermute(state, "stage", ring), done), None

        start = (jnp.zeros_like(x[0]), jnp.zeros_like(x))
        (_, done), _ = lax.scan(tick, start, jnp.arange(parts + count - 1))
        return lax.psum(jnp.where(stage == count - 1, (done ** 2).mean(), 0.), "stage")

    def loss(weights: Any, x: Any) -> Any:
        return jax.shard_map(forward, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P(),
                             check_vma=False)(weights, x)

    return trained(loss, over(mesh, normal(0, count, WIDTH, WIDTH), "stage"),
                   over(mesh, normal(1, parts, 8, WIDTH)))


def programs() -> dict[str, Callable[[], Any]]:
    count = jax.device_count()
    plane = {"data": 2, "model": count // 2}
    return {
        "data": lambda: dense(mesh_of(x=count), "x", None, None),
        "tensor": lambda: dense(mesh_of(x=count), None, "x", None),
        "both": lambda: dense(mesh_of(**plane), "data", "model", None),
        "FSDP": lambda: dense(mesh_of(x=count), "x", None, "x"),
        "by hand": by_hand, "attention": attention, "pipeline": pipeline}


def main() -> None:
    results = {}
    for name, program in programs().items():
        for number, leaf in enumerate(jax.tree.leaves(program())):
            if not leaf.is_fully_addressable:
                leaf = multihost_utils.process_allgather(leaf, tiled=True)
            results[f"{name} {number}"] = np.asarray(leaf)
    if jax.process_index() == 0:
        np.savez(os.environ["RESULTS"], **results)
        sys.stdout.write("* done\n")
        sys.stdout.flush()
    if jax.process_count() > 1:
        jax.distributed.shutdown()
