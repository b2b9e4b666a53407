"""A language model: a small transformer, trained on a text and sampled.

    python examples/language_model.py [--steps 300]

Letters in, letters out: one layer of causal attention and an MLP, trained by Adam on pieces of a
text, then asked for a continuation, letter by letter, in one loop that is one program.
"""

import argparse
from pathlib import Path

import numpy as np

import maxjax as jax
import maxjax.numpy as jnp

TEXT = (Path(__file__).parents[1] / "compat" / "scripts" / "data" / "river.txt").read_text()
LETTERS = sorted(set(TEXT))
LENGTH, WIDTH, BATCH = 32, 64, 32


def initial(key):
    shapes = {"letters": (len(LETTERS), WIDTH), "places": (LENGTH, WIDTH),
              "query": (WIDTH, WIDTH), "key": (WIDTH, WIDTH), "value": (WIDTH, WIDTH),
              "up": (WIDTH, 4 * WIDTH), "down": (4 * WIDTH, WIDTH)}
    keys = jax.random.split(key, len(shapes))
    return {name: jax.random.normal(k, shape) / shape[0] ** 0.5
            for k, (name, shape) in zip(keys, shapes.items())}


def norm(x):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6)


def logits_of(params, tokens):
    """For each of (LENGTH,) letters, scores of the next one: (LENGTH, letters)."""
    x = params["letters"][tokens] + params["places"]
    h = norm(x)
    scores = (h @ params["query"]) @ (h @ params["key"]).T / WIDTH ** 0.5
    scores = jnp.where(jnp.tri(LENGTH, dtype=bool), scores, -jnp.inf)
    x = x + jax.nn.softmax(scores) @ (h @ params["value"])
    x = x + jax.nn.gelu(norm(x) @ params["up"]) @ params["down"]
    return norm(x) @ params["letters"].T


def loss_of(params, pieces):
    logits = jax.vmap(logits_of, (None, 0))(params, pieces[:, :-1])
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), pieces[:, 1:, None], axis=-1)
    return -picked.mean()


@jax.jit
def step(params, first, second, count, pieces):
    """A step of Adam."""
    loss, gradient = jax.value_and_grad(loss_of)(params, pieces)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, gradient)
    params = jax.tree.map(lambda p, m, v: p - 3e-3 * (m / (1 - 0.9 ** count))
                          / (jnp.sqrt(v / (1 - 0.99 ** count)) + 1e-8), params, first, second)
    return params, first, second, loss


@jax.jit
def sample(params, key, start):
    """A hundred letters after the (LENGTH,) given ones."""
    def next_letter(window, key):
        letter = jax.random.categorical(key, logits_of(params, window)[-1] / 0.6)
        return jnp.append(window[1:], letter), letter

    return jax.lax.scan(next_letter, start, jax.random.split(key, 100))[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=300)
    steps = parser.parse_args().steps
    data = np.array([LETTERS.index(letter) for letter in TEXT], np.int32)
    params = initial(jax.random.key(0))
    first, second = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
    rng = np.random.default_rng(0)
    for number in range(steps):
        starts = rng.integers(0, len(data) - LENGTH - 1, BATCH)
        pieces = data[starts[:, None] + np.arange(LENGTH + 1)]
        params, first, second, loss = step(params, first, second, float(number + 1), pieces)
        if number % 50 == 0 or number == steps - 1:
            print(f"step {number:3d}  loss {float(loss):.3f}")
    letters = sample(params, jax.random.key(1), jnp.asarray(data[:LENGTH]))
    print(TEXT[:LENGTH] + "|" + "".join(LETTERS[letter] for letter in letters.tolist()))


if __name__ == "__main__":
    main()
