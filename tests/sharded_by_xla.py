"""Common programs on 8 host devices of real JAX: the collectives in XLA's compiled text and the
shardings of the results, as JSON. A script of its own: the devices are counted when JAX starts.
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
Program = tuple[Any, list[tuple[int, ...]], list[tuple[Any, ...]]]


def programs(j: Any) -> dict[str, Program]:
    """Functions of the library ``j``, the shapes of their arguments and how these are split."""
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

    mlp_step = j.grad(mlp, argnums=(0, 1))
    return {
        "matmul, data": (jnp.dot, [(64, 64)] * 2, [BATCH, WHOLE]),
        "matmul, rows and columns": (jnp.dot, [(64, 64)] * 2, [BATCH, COLUMNS]),
        "matmul, contracted": (jnp.dot, [(64, 64)] * 2, [COLUMNS, ROWS]),
        "MLP step, data": (mlp_step, MLP, [WHOLE, WHOLE, BATCH, BATCH]),
        "MLP step, tensor": (mlp_step, MLP, [COLUMNS, ROWS, WHOLE, WHOLE]),
        "MLP step, both": (mlp_step, MLP, [COLUMNS, ROWS, BATCH, BATCH]),
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


def compiled() -> dict[str, tuple[int, list[list[list[str]]]]]:
    """For each program: how many collectives, and the axes of each result's dimensions."""
    import jax
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    mesh = jax.make_mesh(tuple(SIZES.values()), tuple(SIZES),
                         axis_types=(AxisType.Auto,) * len(SIZES))
    found = {}
    for name, (function, shapes, splits) in programs(jax).items():
        given = [jax.ShapeDtypeStruct(shape, np.float32) for shape in shapes]
        shardings = tuple(NamedSharding(mesh, PartitionSpec(*split)) for split in splits)
        made = jax.jit(function, in_shardings=shardings).lower(*given).compile()
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
