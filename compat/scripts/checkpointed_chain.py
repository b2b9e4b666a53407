"""Memory for time: a deep residual chain under jax.checkpoint has the same gradient."""
import jax
import jax.numpy as jnp
from jax import lax, random

DEPTH, WIDTH = 12, 16
keys = random.split(random.key(3), DEPTH)
weights = jax.vmap(lambda k: random.normal(k, (WIDTH, WIDTH)) / WIDTH)(keys)
x = random.normal(random.key(4), (8, WIDTH))


def block(x, w):
    return x + jnp.tanh(x @ w) * jnp.sin(x)


def plain(weights, x):
    return jnp.mean(lax.scan(lambda h, w: (block(h, w), None), x, weights)[0] ** 2)


def checkpointed(weights, x):
    body = jax.checkpoint(block)
    return jnp.mean(lax.scan(lambda h, w: (body(h, w), None), x, weights)[0] ** 2)


def saving_products(weights, x):
    body = jax.checkpoint(block, policy=jax.checkpoint_policies.dots_saveable)
    for w in weights:
        x = body(x, w)
    return jnp.mean(x ** 2)


for f in (plain, checkpointed, saving_products):
    value, g = jax.jit(jax.value_and_grad(f))(weights, x)
    print(f.__name__, f"{value:.6f}", f"{jnp.linalg.norm(g):.6f}", g[0, 0, :3])
print("second derivative", jax.grad(lambda s: jax.grad(
    lambda t: checkpointed(t * weights, x))(s))(1.0))
