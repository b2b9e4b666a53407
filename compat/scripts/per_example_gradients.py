# tolerance: 1e-4 (the rounding of 30 steps of training adds up)
"""Gradients of each example by vmap: their norms, private training, the gradient noise scale."""
from functools import partial

import jax
import jax.numpy as jnp
from jax import grad, jit, random, vmap


def make_data(key, n=256):
    k1, k2, k3 = random.split(key, 3)
    x = random.normal(k1, (n, 10))
    teacher = random.normal(k2, (10, 3))
    y = jnp.argmax(x @ teacher + 0.5 * random.gumbel(k3, (n, 3)), axis=-1)
    return x, y


def init(key, sizes=(10, 16, 3)):
    return [{"w": random.normal(k, (a, b)) / jnp.sqrt(a), "b": jnp.zeros(b)}
            for k, a, b in zip(random.split(key, len(sizes) - 1), sizes, sizes[1:])]


def loss(params, x, y):
    for layer in params[:-1]:
        x = jax.nn.elu(x @ layer["w"] + layer["b"])
    logits = x @ params[-1]["w"] + params[-1]["b"]
    return -jax.nn.log_softmax(logits)[y]


per_example = vmap(grad(loss), in_axes=(None, 0, 0))


def norms(grads):
    squares = jax.tree.map(lambda g: jnp.sum(g ** 2, axis=tuple(range(1, g.ndim))), grads)
    return jnp.sqrt(jax.tree.reduce(jnp.add, squares))


@partial(jit, static_argnames=("clip", "noise"))
def private_step(params, key, x, y, clip=1.0, noise=0.5, lr=0.5):
    grads = per_example(params, x, y)
    scale = jnp.minimum(1.0, clip / norms(grads))
    summed = jax.tree.map(lambda g: jnp.einsum("n...,n->...", g, scale), grads)
    leaves, tree = jax.tree.flatten(summed)
    keys = random.split(key, len(leaves))
    noisy = [g + clip * noise * random.normal(k, g.shape) for g, k in zip(leaves, keys)]
    mean = jax.tree.unflatten(tree, [g / len(x) for g in noisy])
    return jax.tree.map(lambda p, g: p - lr * g, params, mean), jnp.mean(scale < 1)


key = random.PRNGKey(99)
x, y = make_data(random.fold_in(key, 0))
params = init(random.fold_in(key, 1))
grads = jit(per_example)(params, x, y)
print(jax.tree.map(lambda g: g.shape, grads))

single = jit(grad(lambda p: vmap(loss, (None, 0, 0))(p, x, y).mean()))(params)
same = jax.tree.map(lambda a, b: bool(jnp.allclose(a.mean(0), b, atol=1e-5)), grads, single)
print("their mean is the gradient:", jax.tree.all(same))
n = norms(grads)
print("norms: min %.5f median %.5f max %.5f" % (n.min(), jnp.median(n), n.max()))
print("quantiles", jnp.quantile(n, jnp.array([0.1, 0.9])))
print("classes", jnp.bincount(y, length=3))

# the gradient noise scale: trace of the covariance over the squared norm of the mean
trace = sum(jnp.sum(jnp.var(g, axis=0)) for g in jax.tree.leaves(grads))
size = sum(jnp.sum(jnp.mean(g, axis=0) ** 2) for g in jax.tree.leaves(grads))
print("gradient noise scale %.4f" % (trace / size))

for i in range(30):
    params, clipped = private_step(params, random.fold_in(key, 100 + i), x, y)
    if i % 10 == 9:
        value = vmap(loss, (None, 0, 0))(params, x, y).mean()
        print(f"step {i + 1}: loss {value:.5f}, clipped {clipped:.5f}")
