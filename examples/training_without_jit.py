"""Training without jit: each step is written down, recognized, and compiled when it is hot.

    python examples/training_without_jit.py

Nothing is decorated. Outside jit arrays are lazy: the operations of a step run together when a
value is read, and since each step writes down the same operations, they become one program. The
learning rate changes at every step and compiles nothing: it is an input.
"""

import time

import maxjax as jax
import maxjax.numpy as jnp

STEPS = 600


def initial(key, sizes=(2, 128, 128, 1)):
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (m, n)) * (2 / m) ** 0.5, jnp.zeros(n))
            for k, m, n in zip(keys, sizes, sizes[1:])]


def predict(params, x):
    *hidden, (weights, bias) = params
    for w, b in hidden:
        x = jnp.tanh(x @ w + b)
    return (x @ weights + bias)[:, 0]


def loss_of(params, x, inside):
    """Of a classifier of points inside a ring."""
    logits = predict(params, x)
    return jnp.mean(jnp.logaddexp(0.0, jnp.where(inside, -logits, logits)))


def main():
    key, points = jax.random.split(jax.random.key(0))
    x = jax.random.uniform(points, (512, 2), minval=-1.5, maxval=1.5)
    radius = jnp.linalg.norm(x, axis=1)
    inside = (radius > 0.5) & (radius < 1.2)

    params = initial(key)
    began = time.perf_counter()
    for step in range(STEPS):
        rate = 1.0 - 0.9 * step / STEPS
        loss, gradient = jax.value_and_grad(loss_of)(params, x, inside)
        params = jax.tree.map(lambda p, g, rate=rate: p - rate * g, params, gradient)
        if step % 150 == 0:
            spent = time.perf_counter() - began
            print(f"step {step:3d}  loss {float(loss):.3f}  {spent:.1f} s")
    accuracy = float(((predict(params, x) > 0) == inside).mean())
    print(f"loss {float(loss):.3f}, accuracy {accuracy:.2f}")


if __name__ == "__main__":
    main()
