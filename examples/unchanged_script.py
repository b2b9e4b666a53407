"""An unchanged JAX script: a linear fit with its uncertainty, by jit, grad, vmap and random.

    maxjax examples/unchanged_script.py     # on maxjax
    python examples/unchanged_script.py     # on JAX, if it is installed

It prints the same on both, random numbers included.
"""

import jax
import jax.numpy as jnp


def predict(params, x):
    return params["slope"] * x + params["offset"]


def loss(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


@jax.jit
def fit(x, y):
    """The parameters after 200 steps of gradient descent."""
    def step(params, _):
        gradient = jax.grad(loss)(params, x, y)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient), None

    start = {"slope": jnp.zeros(()), "offset": jnp.zeros(())}
    return jax.lax.scan(step, start, None, length=200)[0]


def main():
    key, noise, picks = jax.random.split(jax.random.key(0), 3)
    x = jax.random.uniform(key, (64,), minval=-2.0, maxval=2.0)
    y = 3.0 * x - 1.0 + 0.3 * jax.random.normal(noise, (64,))

    params = fit(x, y)
    print("slope", round(float(params["slope"]), 3), "offset", round(float(params["offset"]), 3))

    # A hundred fits to resampled data at once: their spread is the uncertainty.
    indices = jax.random.randint(picks, (100, 64), 0, 64)
    samples = jax.vmap(fit)(x[indices], y[indices])
    spread = jax.tree.map(lambda values: round(float(values.std()), 3), samples)
    print("uncertainty", spread["slope"], spread["offset"])


if __name__ == "__main__":
    main()
