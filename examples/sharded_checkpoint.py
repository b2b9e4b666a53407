"""Checkpoints of sharded arrays: each process saves its shards, any number of processes goes on.

A checkpoint is a folder for each step with a file for each process. A shard is stored under the
number of its leaf and where it starts: the shards of a leaf are found again whoever wrote them.
See distributed.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import NamedSharding

State = Any


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
