# tolerance: 1e-4 (the rounding of 60 steps of training adds up)
"""Training through rounding: a straight-through estimator and gradient clipping by custom_vjp."""
from functools import partial

import jax
import jax.numpy as jnp
from jax import random


@jax.custom_vjp
def quantise(x):
    return jnp.round(x * 8) / 8


quantise.defvjp(lambda x: (quantise(x), jnp.abs(x) <= 1),
                lambda inside, g: (jnp.where(inside, g, 0.0),))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def clip_gradient(limit, x):
    return x


clip_gradient.defvjp(lambda limit, x: (x, None),
                     lambda limit, _, g: (jnp.clip(g, -limit, limit),))

x = random.normal(random.key(0), (128, 4))
y = x @ jnp.array([0.5, -0.25, 0.8, 0.1]) + 0.1


def loss(params):
    w, b = quantise(params[0]), quantise(params[1])
    return jnp.mean((clip_gradient(0.01, x @ w + b) - y) ** 2)


@jax.jit
def step(params):
    value, g = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.2 * g, params, g), value


params = (jnp.zeros(4), jnp.zeros(()))
for i in range(60):
    params, value = step(params)
    if i % 15 == 0:
        print(f"step {i}: {value:.6f}")
print("quantised", quantise(params[0]), quantise(params[1]))
print("gradient", jax.grad(lambda x: quantise(x).sum())(jnp.array([0.3, 1.5, -0.9])))
print("vmapped", jax.vmap(jax.grad(quantise))(jnp.linspace(-2.0, 2.0, 5)))
print("clipped", jax.grad(lambda x: 100 * clip_gradient(2.0, x))(1.0))
