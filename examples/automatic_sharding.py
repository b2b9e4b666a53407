"""Automatic sharding: the cheapest layout of a network over eight devices, found and drawn.

    python examples/automatic_sharding.py [picture.svg]

An integer program chooses how the arguments lie on the mesh; the engine spreads the rest. The
picture has a row for each value, with the mesh axes in colours; what is exchanged is red.
"""

import sys
from pathlib import Path

import maxjax as jax
import maxjax.numpy as jnp
from maxjax.sharding import AxisType
from maxjax.sharding import PartitionSpec as P


def step(params, x, y):
    """A step of training of a layer that is wide in the middle."""
    def loss_of(params):
        hidden = jax.nn.relu(x @ params["up"])
        return jnp.mean((hidden @ params["down"] - y) ** 2)

    loss, gradient = jax.value_and_grad(loss_of)(params)
    return jax.tree.map(lambda p, g: p - 0.05 * g, params, gradient), loss


def main():
    jax.config.update("jax_num_cpu_devices", 8)
    mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    keys = jax.random.split(jax.random.key(0), 3)
    params = {"up": jax.random.normal(keys[0], (64, 512)) / 8,
              "down": jax.random.normal(keys[1], (512, 64)) / 23}
    x = jax.random.normal(keys[2], (256, 64))
    y = jnp.roll(x, 1, axis=1)

    by_hand = {"data parallel": ({"up": P(), "down": P()}, P("data"), P("data"))}
    chosen = jax.sharding.auto(step, mesh, params, x, y, by_hand=by_hand)
    print(str(chosen).partition("mesh {")[0])

    train = jax.jit(step, in_shardings=chosen.in_shardings)
    losses = []
    for _ in range(20):
        params, loss = train(params, x, y)
        losses.append(float(loss))
    print(f"loss {losses[0]:.3f} -> {losses[-1]:.3f}")

    if sys.argv[1:]:
        path = Path(sys.argv[1])
        path.write_text(chosen.svg())
        print(f"the picture is in {path}")


if __name__ == "__main__":
    main()
