"""Trains a network on handwritten digits in several processes: an unchanged JAX program.

    mpiexec -n 2 python -m maxjax examples/distributed.py
    python -m maxjax.distributed -n 2 examples/distributed.py --parameters sharded

or in processes started one by one, each with its number:

    JAX_COORDINATOR_ADDRESS=localhost:1234 JAX_NUM_PROCESSES=2 JAX_PROCESS_ID=0 \\
        python -m maxjax examples/distributed.py

Each process reads its part of every batch. Parameters are the same on all devices (data parallel),
or each device holds a part of them and of the optimizer's state (FSDP). With ``--checkpoint
FOLDER`` each process saves its shards every few steps, and a job of any number of processes goes on
from there; ``--fail-at STEP`` ends process 1 in the middle to show it.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from sklearn.datasets import load_digits

SIZES = (64, 128, 64, 10)
BATCH = 256
RATE, MOMENTUM = 0.1, 0.9
LAUNCHERS = ("JAX_NUM_PROCESSES", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS")

State = Any


def init() -> State:
    """Parameters and their velocities."""
    keys = jax.random.split(jax.random.key(0), len(SIZES) - 1)
    layers = [{"w": jax.random.normal(key, (here, there)) / np.sqrt(here), "b": jnp.zeros(there)}
              for key, here, there in zip(keys, SIZES, SIZES[1:])]
    return {"parameters": layers, "velocities": jax.tree.map(jnp.zeros_like, layers)}


def loss_of(parameters: Any, images: Any, labels: Any) -> Any:
    x = images
    for layer in parameters[:-1]:
        x = jnp.tanh(x @ layer["w"] + layer["b"])
    scores = jax.nn.log_softmax(x @ parameters[-1]["w"] + parameters[-1]["b"])
    return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()


def step(state: State, images: Any, labels: Any) -> tuple[State, Any]:
    loss, gradients = jax.value_and_grad(loss_of)(state["parameters"], images, labels)
    velocities = jax.tree.map(lambda v, g: MOMENTUM * v + g, state["velocities"], gradients)
    parameters = jax.tree.map(lambda p, v: p - RATE * v, state["parameters"], velocities)
    return {"parameters": parameters, "velocities": velocities}, loss


def shardings_of(state: State, mesh: Mesh, sharded: bool) -> Any:
    """Each leaf's: the first dimension that divides is split over all devices, or nothing is."""
    def one(leaf: Any) -> NamedSharding:
        entries = [None] * leaf.ndim
        if sharded:
            dim = next((d for d, size in enumerate(leaf.shape) if size % mesh.size == 0), None)
            if dim is not None:
                entries[dim] = "data"
        return NamedSharding(mesh, P(*entries))

    return jax.tree.map(one, state)


def batch(mesh: Mesh, number: int, images: np.ndarray, labels: np.ndarray) -> list[Any]:
    """A batch over all devices: each process reads what its devices need."""
    chosen = np.random.RandomState(number).permutation(len(images))[:BATCH]
    sharding = NamedSharding(mesh, P("data"))
    return [jax.make_array_from_callback(
        (BATCH, *data.shape[1:]), sharding, lambda index, data=data: data[chosen[index[0]]])
        for data in (images, labels)]


# --- checkpoints ----------------------------------------------------------------------------------
# A folder for each step with a file for each process. A shard is stored under the number of its
# leaf and where it starts: the shards of a leaf are found again whoever wrote them.


def save(folder: Path, number: int, state: State) -> None:
    target = folder / f"step-{number}"
    target.mkdir(parents=True, exist_ok=True)
    shards = {}
    for leaf_number, leaf in enumerate(jax.tree.leaves(state)):
        for shard in leaf.addressable_shards:
            if shard.replica_id == 0:
                starts = [part.start or 0 for part in shard.index]
                shards["/".join(map(str, (leaf_number, *starts)))] = np.asarray(shard.data)
    np.savez(target / f"process-{jax.process_index()}.npz", **shards)
    multihost_utils.sync_global_devices(f"saved {number}")
    if jax.process_index() == 0:      # only now is it whole
        (folder / "latest.new").write_text(str(number))
        (folder / "latest.new").rename(folder / "latest")


def restore(folder: Path, shapes: State, shardings: Any) -> tuple[int, State] | None:
    """The step after the last one that was saved, and the state, on any number of processes."""
    if not (folder / "latest").exists():
        return None
    number = int((folder / "latest").read_text())
    files = [np.load(path) for path in sorted((folder / f"step-{number}").glob("process-*.npz"))]

    def leaf(leaf_number: int, shape: Any, sharding: NamedSharding) -> Any:
        stored = [(list(map(int, name.split("/")[1:])), file, name)
                  for file in files for name in file.files
                  if name.split("/")[0] == str(leaf_number)]

        def part(index: Any) -> np.ndarray:
            bounds = [part.indices(size)[:2] for part, size in zip(index, shape.shape)]
            result = np.empty([stop - start for start, stop in bounds], shape.dtype)
            for starts, file, name in stored:
                data = file[name]
                low = [max(a, b[0]) for a, b in zip(starts, bounds)]
                high = [min(a + size, b[1]) for a, size, b in zip(starts, data.shape, bounds)]
                if all(a < b for a, b in zip(low, high)):
                    result[tuple(slice(a - b[0], c - b[0]) for a, c, b in zip(low, high, bounds))] \
                        = data[tuple(slice(a - b, c - b) for a, c, b in zip(low, high, starts))]
            return result

        return jax.make_array_from_callback(shape.shape, sharding, part)

    leaves, tree = jax.tree.flatten(shapes)
    placed = [leaf(n, *pair) for n, pair in enumerate(zip(leaves, jax.tree.leaves(shardings)))]
    return number + 1, jax.tree.unflatten(tree, placed)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--parameters", choices=("replicated", "sharded"), default="replicated")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--checkpoint", type=Path)
    parser.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    parser.add_argument("--fail-at", type=int, default=-1)
    options = parser.parse_args()
    if any(name in os.environ for name in LAUNCHERS):
        jax.distributed.initialize()
    mesh = jax.make_mesh((jax.device_count(),), ("data",),
                         axis_types=(jax.sharding.AxisType.Auto,))
    digits = load_digits()
    images, labels = np.float32(digits.data / 16), np.int32(digits.target)

    shapes = jax.eval_shape(init)
    shardings = shardings_of(shapes, mesh, options.parameters == "sharded")
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
    if jax.process_count() > 1:
        jax.distributed.shutdown()


if __name__ == "__main__":
    sys.exit(main())
