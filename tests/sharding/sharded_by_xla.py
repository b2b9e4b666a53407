"""Common programs on 8 host devices of real JAX: the collectives in XLA's compiled text and the
shardings of the results, as JSON. A separate script: the number of devices is fixed when JAX
starts.

    python -m tests.sharding.sharded_by_xla
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

import numpy as np

SIZES = {"data": 4, "model": 2}
COLUMNS, ROWS, BATCH, WHOLE = (None, "model"), ("model",), ("data",), ()
MLP = [(64, 256), (256, 64), (32, 64), (32, 64)]
ATTENTION = [(8, 16, 64), *[(64, 64)] * 4]
HEADS = [BATCH, COLUMNS, COLUMNS, COLUMNS, ROWS]
TOKENS = ("data", "model")
Split = tuple[Any, ...]
Program = tuple[Any, list[tuple[int, ...]], list[Split], list[Split] | None]


def programs(j: Any) -> dict[str, Program]:
    """Functions of the library ``j``, the shapes of their arguments, how these are split, and the
    results' shardings (None: unspecified)."""
    return {name: (*row, None) if len(row) == 3 else row for name, row in _programs(j).items()}


def _programs(j: Any) -> dict[str, Any]:
    jnp = j.numpy

    def mlp(first, second, x, y):
        return jnp.mean((jnp.tanh(x @ first) @ second - y) ** 2)

    def attention(x, q, k, v, out):
        batch, length, width = x.shape

        def heads(weights):
            return jnp.reshape(x @ weights, (batch, length, 8, width // 8))

        scores = jnp.einsum("bqhd,bkhd->bhqk", heads(q), heads(k)) / np.float32(4)
        mixed = jnp.einsum("bhqk,bkhd->bqhd", j.nn.softmax(scores, -1), heads(v))
        return jnp.reshape(mixed, (batch, length, width)) @ out

    def norm(x, scale):
        x = x - jnp.mean(x, -1, keepdims=True)
        return scale * x / jnp.sqrt(jnp.mean(x ** 2, -1, keepdims=True) + np.float32(1e-5))

    def layers(weights, x):
        return jnp.sum(j.lax.scan(
            lambda h, w: (jnp.tanh(h @ w[0]) @ w[1], None), x, weights)[0] ** 2)

    def embed(table, words):
        return table[words.astype(np.int32)]

    def block(scale, first, second, x):
        return x + jnp.tanh(norm(x, scale) @ first) @ second

    block_step = j.grad(lambda *args: jnp.sum(block(*args) ** 2), argnums=(0, 1, 2))
    sequence = ([(64,), (64, 256), (256, 64), (8, 16, 64)], [WHOLE, COLUMNS, ROWS, TOKENS])
    mlp_step = j.grad(mlp, argnums=(0, 1))
    return {
        "elementwise": (lambda x, y: jnp.tanh(x) * y + 1, [(64, 64)] * 2, [BATCH, BATCH]),
        "elementwise, row and table": (lambda x, y: jnp.exp(x + y), [(64, 64), (64,)],
                                       [TOKENS, ROWS]),
        "matmul, data": (jnp.dot, [(64, 64)] * 2, [BATCH, WHOLE]),
        "matmul, rows and columns": (jnp.dot, [(64, 64)] * 2, [BATCH, COLUMNS]),
        "matmul, contracted": (jnp.dot, [(64, 64)] * 2, [COLUMNS, ROWS]),
        "MLP step, data": (mlp_step, MLP, [WHOLE, WHOLE, BATCH, BATCH]),
        "MLP step, tensor": (mlp_step, MLP, [COLUMNS, ROWS, WHOLE, WHOLE]),
        "MLP step, both": (mlp_step, MLP, [COLUMNS, ROWS, BATCH, BATCH]),
        "MLP step, weights split by data": (mlp_step, MLP, [BATCH] * 4, [BATCH] * 2),
        "MLP block, tokens split": (block, *sequence, [TOKENS]),
        "MLP block step, tokens split": (block_step, *sequence, [WHOLE, COLUMNS, ROWS]),
        "attention": (attention, ATTENTION, HEADS),
        "attention step": (j.grad(lambda *args: jnp.sum(attention(*args) ** 2),
                                  argnums=(1, 2, 3, 4)), ATTENTION, HEADS),
        "layer norm": (norm, [(32, 64), (64,)], [BATCH, WHOLE]),
        "layer norm, features": (norm, [(32, 64), (64,)], [COLUMNS, ROWS]),
        "scan over layers": (lambda first, second, x: j.grad(layers)((first, second), x),
                             [(3, 64, 256), (3, 256, 64), (32, 64)],
                             [(None, None, "model"), COLUMNS, BATCH]),
        "softmax, features": (lambda x: j.nn.softmax(x, -1), [(32, 64)], [COLUMNS]),
        "embedding": (embed, [(64, 32), (16,)], [ROWS, BATCH]),
        "embedding step": (j.grad(lambda table, words: jnp.sum(jnp.sin(embed(table, words)))),
                           [(64, 32), (16,)], [WHOLE, BATCH]),
        "cumulative sum": (lambda x: jnp.cumsum(x, 1), [(32, 64)], [BATCH]),
        "sort, split": (lambda x: jnp.sort(x, 1), [(32, 64)], [COLUMNS]),
    }


COLLECTIVE = re.compile(
    r" (?:all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute)(?:-start)?\(")


def manual_programs(j: Any) -> dict[str, tuple[Any, list[tuple[int, ...]]]]:
    """Functions of shards along one axis, ``x``, with their arguments' shapes: all are split."""
    jnp, lax = j.numpy, j.lax
    onwards = [(place, (place + 1) % 8) for place in range(8)]

    def pipeline(weights, batches):
        """Each shard has a layer; batches go through all of them in a pipeline."""
        place = lax.axis_index("x")
        batches = lax.all_gather(batches, "x", tiled=True)

        def tick(carry, time):
            state, done = carry
            here = jnp.where(place == 0, batches[jnp.minimum(time, 7)], state)
            out = jnp.tanh(here @ weights[0])
            done = jnp.where(jnp.arange(8)[:, None, None] == time - 7, out, done)
            return (lax.ppermute(out, "x", onwards), done), None

        start = (0 * batches[0], 0 * batches)
        _, done = lax.scan(tick, start, jnp.arange(15))[0]
        return lax.psum_scatter(jnp.where(place == 7, done, 0), "x", tiled=True)

    def ring(query, key, value):
        """Attention over a sequence whose keys and values rotate around the ring."""
        def turn(carry, _):
            top, total, key, value = carry
            weights = jnp.exp(query @ key.T)
            return (top + weights @ value, total + weights.sum(1, keepdims=True),
                    lax.ppermute(key, "x", onwards), lax.ppermute(value, "x", onwards)), None

        top, total, _, _ = lax.scan(turn, (0 * query, 0 * query[:, :1], key, value), None,
                                    length=8)[0]
        return top / total

    return {"pipeline": (pipeline, [(8, 16, 16), (8, 4, 16)]),
            "ring attention": (ring, [(32, 16)] * 3)}


def manual(j: Any, function: Any, sharding: Any) -> Any:
    mesh = j.make_mesh((8,), ("x",), axis_types=(sharding.AxisType.Auto,))
    spec = sharding.PartitionSpec("x")
    return j.shard_map(function, mesh=mesh, in_specs=spec, out_specs=spec)


def compiled() -> dict[str, tuple[int, list[list[list[str]]]]]:
    """For each program: the number of collectives, and the axes of each result's dimensions."""
    import jax
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    mesh = jax.make_mesh(tuple(SIZES.values()), tuple(SIZES),
                         axis_types=(AxisType.Auto,) * len(SIZES))
    found = {}
    for name, (function, shapes) in manual_programs(jax).items():
        given = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
        made = jax.jit(manual(jax, function, jax.sharding)).lower(*given).compile()
        found[name] = (len(COLLECTIVE.findall(made.as_text())), [])
    for name, (function, shapes, splits, asked) in programs(jax).items():
        given = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
        shardings = tuple(NamedSharding(mesh, PartitionSpec(*split)) for split in splits)
        outs: Any = None
        if asked is not None:
            outs = jax.tree.unflatten(jax.tree.structure(jax.eval_shape(function, *given)), [
                NamedSharding(mesh, PartitionSpec(*split)) for split in asked])
        made = jax.jit(function, in_shardings=shardings, out_shardings=outs).lower(
            *given).compile()
        dims = []
        for shape, sharding in zip(jax.tree.leaves(jax.eval_shape(function, *given)),
                                   jax.tree.leaves(made.output_shardings), strict=True):
            entries = [*sharding.spec, *[None] * (shape.ndim - len(sharding.spec))]
            dims.append([[] if axes is None else [axes] if isinstance(axes, str) else list(axes)
                         for axes in entries])
        found[name] = (len(COLLECTIVE.findall(made.as_text())), dims)
    return found


if __name__ == "__main__":
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
    json.dump(compiled(), sys.stdout)
