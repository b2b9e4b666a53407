"""Trains a network on handwritten digits in several processes: an unchanged JAX program.

    mpiexec -n 2 python -m maxjax examples/distributed.py
    python -m maxjax.distributed -n 2 examples/distributed.py --parameters sharded

or in processes started one by one, each with its JAX_PROCESS_ID, and JAX_NUM_PROCESSES=2 and
JAX_COORDINATOR_ADDRESS=localhost:1234, as `python -m maxjax examples/distributed.py`.

Each process reads its part of every batch. Parameters are the same on all devices (data parallel),
or each device holds a part of them and of the optimizer's state (FSDP). With `--checkpoint FOLDER`
each process saves its shards every few steps, and a job of any number of processes goes on from
there; `--fail-at STEP` ends process 1 in the middle to show it.
"""

import argparse
import os
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P
from sharded_checkpoint import restore, save
from sklearn.datasets import load_digits

SIZES = (64, 128, 64, 10)
BATCH, RATE, MOMENTUM = 256, 0.1, 0.9
LAUNCHERS = ("JAX_NUM_PROCESSES", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")


def init():
    keys = jax.random.split(jax.random.key(0), len(SIZES) - 1)
    layers = [{"w": jax.random.normal(key, (here, there)) / np.sqrt(here), "b": jnp.zeros(there)}
              for key, here, there in zip(keys, SIZES, SIZES[1:])]
    return {"parameters": layers, "velocities": jax.tree.map(jnp.zeros_like, layers)}


def loss_of(parameters, images, labels):
    x = images
    for layer in parameters[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    scores = jax.nn.log_softmax(x @ parameters[-1]["w"] + parameters[-1]["b"])
    return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()


def step(state, images, labels):
    loss, gradients = jax.value_and_grad(loss_of)(state["parameters"], images, labels)
    velocities = jax.tree.map(lambda v, g: MOMENTUM * v + g, state["velocities"], gradients)
    parameters = jax.tree.map(lambda p, v: p - RATE * v, state["parameters"], velocities)
    return {"parameters": parameters, "velocities": velocities}, loss


def sharding_of(leaf, mesh, parameters):
    """The first dimension that divides is split over all devices, or nothing is."""
    fits = [dim for dim, size in enumerate(leaf.shape)
            if parameters == "sharded" and size % mesh.size == 0]
    return NamedSharding(mesh, P(*[None] * fits[0], "data") if fits else P())


def batch(mesh, number, *arrays):
    """A batch over all devices: each process reads what its devices need."""
    chosen = np.random.RandomState(number).permutation(len(arrays[0]))[:BATCH]
    return [jax.make_array_from_callback(
        (BATCH, *data.shape[1:]), NamedSharding(mesh, P("data")),
        lambda index, data=data: data[chosen[index[0]]]) for data in arrays]


def main(options):
    if any(name in os.environ for name in LAUNCHERS):
        jax.distributed.initialize()
    mesh = jax.make_mesh((jax.device_count(),), ("data",), (jax.sharding.AxisType.Auto,))
    images, labels = load_digits(return_X_y=True)
    images, labels = np.float32(images / 16), np.int32(labels)

    shapes = jax.eval_shape(init)
    shardings = jax.tree.map(lambda leaf: sharding_of(leaf, mesh, options.parameters), shapes)
    restored = options.checkpoint and restore(options.checkpoint, shapes, shardings)
    first, state = restored or (0, jax.jit(init, out_shardings=shardings)())
    train = jax.jit(step, donate_argnums=0, out_shardings=(shardings, NamedSharding(mesh, P())))
    for number in range(first, options.steps):
        state, loss = train(state, *batch(mesh, number, images, labels))
        if number == options.fail_at and jax.process_index() == 1:
            os._exit(1)
        if jax.process_index() == 0 and (number % 10 == 0 or number + 1 == options.steps):
            print(f"step {number} loss {float(loss):.6f}", flush=True)
        if options.checkpoint and number % options.every == options.every - 1:
            save(options.checkpoint, number, state)
    jax.distributed.shutdown()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--parameters", choices=("replicated", "sharded"), default="replicated")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--fail-at", type=int, default=-1)
    main(parser.parse_args())
