"""Trains a small transformer on a text over 8 simulated devices: data x tensor parallel.

    python examples/sharded_transformer.py              # maxjax
    python examples/sharded_transformer.py --jax        # the same program on JAX
    python examples/sharded_transformer.py --explain    # what each device runs, and why

Only the imports differ. The batch is split over 4 devices; the heads of attention and the hidden
units of the MLPs over 2.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from pathlib import Path

os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=8")

import numpy as np

if "--jax" in sys.argv:
    import jax
    import jax.numpy as jnp
    from jax.sharding import AxisType, NamedSharding
    from jax.sharding import PartitionSpec as P
else:
    import maxjax as jax
    import maxjax.numpy as jnp
    from maxjax.sharding import AxisType, NamedSharding
    from maxjax.sharding import PartitionSpec as P

TEXT = Path(__file__).parents[1] / "compat" / "scripts" / "data" / "river.txt"
LENGTH, WIDTH, HEADS, LAYERS, BATCH = 16, 32, 4, 2, 16
RATE = 3e-3

# How each weight lies: columns of what goes into a layer's middle, rows of what comes out of it.
BLOCK = {"query": P(None, "model"), "key": P(None, "model"), "value": P(None, "model"),
         "out": P("model"), "up": P(None, "model"), "down": P("model"),
         "scale1": P(), "scale2": P()}


def specs() -> dict:
    return {"tokens": P(), "places": P(), "scale": P(), "blocks": [BLOCK] * LAYERS}


def initial(key, vocabulary: int) -> dict:
    keys = iter(jax.random.split(key, 2 + 6 * LAYERS))

    def dense(rows: int, columns: int):
        return jax.random.normal(next(keys), (rows, columns)) / math.sqrt(rows)

    blocks = [{"query": dense(WIDTH, WIDTH), "key": dense(WIDTH, WIDTH),
               "value": dense(WIDTH, WIDTH), "out": dense(WIDTH, WIDTH),
               "up": dense(WIDTH, 4 * WIDTH), "down": dense(4 * WIDTH, WIDTH),
               "scale1": jnp.ones(WIDTH), "scale2": jnp.ones(WIDTH)} for _ in range(LAYERS)]
    return {"tokens": dense(vocabulary, WIDTH), "places": dense(LENGTH, WIDTH),
            "scale": jnp.ones(WIDTH), "blocks": blocks}


def norm(scale, x):
    return scale * x * jax.lax.rsqrt((x ** 2).mean(-1, keepdims=True) + 1e-5)


def attention(block, x):
    batch, length, _ = x.shape
    query, key, value = ((x @ block[name]).reshape(batch, length, HEADS, WIDTH // HEADS)
                         for name in ("query", "key", "value"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / math.sqrt(WIDTH // HEADS)
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), value)
    return mixed.reshape(batch, length, WIDTH) @ block["out"]


def loss_of(params, tokens, targets):
    x = params["tokens"][tokens] + params["places"]
    for block in params["blocks"]:
        x = x + attention(block, norm(block["scale1"], x))
        x = x + jax.nn.gelu(norm(block["scale2"], x) @ block["up"]) @ block["down"]
    logits = norm(params["scale"], x) @ params["tokens"].T
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), targets[..., None], axis=-1)
    return -picked.mean()


def step(params, first, second, count, tokens, targets):
    """One step of Adam."""
    loss, gradients = jax.value_and_grad(loss_of)(params, tokens, targets)
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, gradients)
    params = jax.tree.map(
        lambda p, m, v: p - RATE * (m / (1 - 0.9 ** count))
        / (jnp.sqrt(v / (1 - 0.99 ** count)) + 1e-5), params, first, second)
    return params, first, second, count, loss


def batches(data: np.ndarray):
    rng = np.random.default_rng(0)
    while True:
        starts = rng.integers(0, len(data) - LENGTH - 1, BATCH)
        rows = data[starts[:, None] + np.arange(LENGTH + 1)]
        yield rows[:, :-1], rows[:, 1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jax", action="store_true", help="run on JAX")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--losses", type=Path, help="write the losses here, as JSON")
    parser.add_argument("--explain", action="store_true",
                        help="print each value's sharding and each collective (maxjax)")
    options = parser.parse_args()

    text = TEXT.read_text()
    characters = sorted(set(text))
    data = np.array([characters.index(c) for c in text], np.int32)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    weights = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs(),
                           is_leaf=lambda node: isinstance(node, P))
    whole, rows = NamedSharding(mesh, P()), NamedSharding(mesh, P("data"))

    params = jax.device_put(initial(jax.random.key(0), len(characters)), weights)
    first, second = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
    count = jax.device_put(jnp.zeros(()), whole)
    train = jax.jit(step, in_shardings=(weights, weights, weights, whole, rows, rows),
                    out_shardings=(weights, weights, weights, whole, whole))
    print("up of the first layer, by device:")
    jax.debug.visualize_array_sharding(params["blocks"][0]["up"])
    losses = []
    for number, (tokens, targets) in zip(range(options.steps), batches(data)):
        if options.explain and not number:
            print(jax.sharding.explain(train, params, first, second, count, tokens, targets))
        params, first, second, count, loss = train(params, first, second, count, tokens, targets)
        losses.append(float(loss))
        if number % 10 == 0 or number == options.steps - 1:
            print(f"step {number:3d}  loss {losses[-1]:.4f}")
    print("up of the first layer:", params["blocks"][0]["up"].sharding.spec)
    if options.losses:
        options.losses.write_text(json.dumps(losses))


if __name__ == "__main__":
    main()
