# tolerance: 1e-4 (the rounding of 300 steps of training adds up)
"""A multilayer perceptron learns two spirals, with momentum and minibatches."""
import functools

import jax
import jax.numpy as jnp
from jax import grad, jit, random, vmap


def make_spirals(key, n):
    t = jnp.linspace(0.5, 3.0 * jnp.pi, n)
    noise = 0.1 * random.normal(key, (2, n, 2))
    arm = jnp.stack([t * jnp.cos(t), t * jnp.sin(t)], axis=-1) / 6
    x = jnp.concatenate([arm + noise[0], -arm + noise[1]])
    y = jnp.repeat(jnp.arange(2), n)
    return x, y


def init_params(sizes, key):
    keys = random.split(key, len(sizes) - 1)
    return [(random.normal(k, (m, n)) * jnp.sqrt(2.0 / m), jnp.zeros((n,)))
            for k, m, n in zip(keys, sizes[:-1], sizes[1:])]


def predict(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(jnp.dot(x, w) + b)
    w, b = params[-1]
    return jax.nn.log_softmax(jnp.dot(x, w) + b)


batched_predict = vmap(predict, in_axes=(None, 0))


def loss(params, x, y):
    targets = jax.nn.one_hot(y, 2)
    return -jnp.mean(jnp.sum(batched_predict(params, x) * targets, axis=1))


@functools.partial(jit, static_argnames=("momentum",))
def update(params, velocity, x, y, lr, momentum=0.9):
    grads = grad(loss)(params, x, y)
    velocity = jax.tree.map(lambda v, g: momentum * v - lr * g, velocity, grads)
    params = jax.tree.map(jnp.add, params, velocity)
    return params, velocity


key = random.key(1)
key, k_data, k_init = random.split(key, 3)
x, y = make_spirals(k_data, 250)
params = init_params([2, 32, 32, 2], k_init)
velocity = jax.tree.map(jnp.zeros_like, params)
print("parameters", sum(p.size for p in jax.tree.leaves(params)))
print("initial loss %.6f" % loss(params, x, y))
for epoch in range(30):
    key, k_shuffle = random.split(key)
    order = random.permutation(k_shuffle, len(x))
    for batch in jnp.split(order, 10):
        params, velocity = update(params, velocity, x[batch], y[batch], 0.1)
    if epoch % 10 == 9:
        print(f"epoch {epoch + 1}: loss {loss(params, x, y):.6f}")
accuracy = jnp.mean(jnp.argmax(batched_predict(params, x), axis=-1) == y)
print("accuracy above 0.9:", bool(accuracy > 0.9))
