"""Training steps over a mesh of 8 devices, and how long the engine takes to partition one.

Both libraries read the number of simulated devices from XLA's flag.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from benchmarks import models
from benchmarks.measure import Bound, Result, run_program
from benchmarks.steady import Program, changes

DEVICES = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8"}
PARTITION_SECONDS = 2.0


def put(jax: Any, specs: Any, tree: Any) -> Any:
    """A pytree of arrays over 4 devices for `data` and 2 for `model`; a spec is a tuple."""
    sharding = jax.sharding
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(sharding.AxisType.Auto,) * 2)
    leaves, treedef = jax.tree.flatten(tree)
    places = [
        sharding.NamedSharding(mesh, sharding.PartitionSpec(*spec))
        for spec in treedef.flatten_up_to(specs)
    ]
    return treedef.unflatten(map(jax.device_put, leaves, places))


def mlp(jax: Any) -> tuple[Any, tuple[Any, ...]]:
    """The batch over `data`, the hidden units between the first two layers over `model`."""
    step, arguments = models.mlp(jax)
    layers = [
        {"weight": (None, "model"), "bias": ("model",)},
        {"weight": ("model",), "bias": ()},
        {"weight": (), "bias": ()},
    ]
    return step, put(jax, (layers, ("data",), ("data",)), arguments)


def mlp_step(jax: Any) -> Program:
    return Program(jax, *mlp(jax), tolerance=1e-3, compared=changes)


def transformer(jax: Any, blocks: int = 12) -> tuple[Any, tuple[Any, ...]]:
    """The batch over `data`; columns, then rows, of each block's weights over `model`."""
    step, arguments = models.transformer(jax, blocks=blocks)
    columns, rows, norm = (None, "model"), ("model",), ((), ())
    block = {
        "norm_1": norm,
        "attend": columns,
        "project": rows,
        "norm_2": norm,
        "widen": columns,
        "narrow": rows,
    }
    parameters = {
        "embedding": (),
        "position": (),
        "blocks": [block] * blocks,
        "norm": norm,
        "readout": (),
    }
    return step, put(jax, (parameters, parameters, parameters, (), ("data",)), arguments)


MLP_STEP = "MLP training step over 8 devices"
PROGRAMS: dict[str, Callable[[Any], Program]] = {MLP_STEP: mlp_step}


def partition_transformer(library: str, quick: bool) -> Result:
    """Propagation, partition and the program of whole values, of a step that has been traced."""
    facts = [
        run_program("partition_step", library, DEVICES).facts for _ in range(1 if quick else 3)
    ]
    seconds = statistics.median(fact["seconds"] for fact in facts)
    bound = Bound("the step of 12 blocks, traced before", seconds, PARTITION_SECONDS, "s")
    return Result(bounds=[bound], notes=[f"{facts[0]['collectives']} collectives"])
