# tolerance: 2e-3 (samples by fifty steps of a trained network amplify the rounding)
# absolute: 1e-3 (numbers near zero)
"""A diffusion model of rings of points: cosine schedule, guidance, samplers with and without noise.

Checked to the tolerances above, with keys 0 to 3: means of losses, and samples' radii, sizes along the
way and coordinates.
"""
import functools

import jax
import jax.numpy as jnp
from jax import lax, random

STEPS, WIDTH, BATCH = 50, 48, 128


def alphas():
    t = jnp.linspace(0, 1, STEPS + 1)
    bar = jnp.cos((t + 0.008) / 1.008 * jnp.pi / 2) ** 2
    return jnp.clip(bar / bar[0], 1e-4, 1)


BAR = alphas()


def points(key, n):
    k1, k2, k3 = random.split(key, 3)
    label = random.bernoulli(k1, 0.5, (n,)).astype(jnp.int32)
    angle = random.uniform(k2, (n,)) * 2 * jnp.pi
    radius = jnp.where(label == 1, 1.0, 0.4)[:, None] + 0.02 * random.normal(k3, (n, 1))
    return radius * jnp.stack([jnp.cos(angle), jnp.sin(angle)], -1), label


def embed(t):
    frequencies = 2.0 ** jnp.arange(6)
    phase = t[:, None] / STEPS * frequencies
    return jnp.concatenate([jnp.sin(phase), jnp.cos(phase)], -1)


def network(params, x, t, label):
    """The noise in x; a label of 2 stands for none."""
    h = jnp.concatenate([x, embed(t), params["label"][label]], -1) @ params["in"] + params["b"]
    for w1, w2 in params["blocks"]:
        centred = h - h.mean(-1, keepdims=True)
        normal = centred * lax.rsqrt(jnp.var(h, -1, keepdims=True) + 1e-5)
        h = h + jax.nn.silu(normal @ w1) @ w2
    return h @ params["out"]


def init(key):
    keys = random.split(key, 7)
    d = lambda k, m, n, s=1.0: s * random.normal(k, (m, n)) * m**-0.5
    return {"label": 0.1 * random.normal(keys[0], (3, 4)), "in": d(keys[1], 18, WIDTH),
            "b": jnp.zeros(WIDTH), "out": d(keys[2], WIDTH, 2, 0.1),
            "blocks": [(d(keys[3], WIDTH, WIDTH), d(keys[4], WIDTH, WIDTH, 0.3)),
                       (d(keys[5], WIDTH, WIDTH), d(keys[6], WIDTH, WIDTH, 0.3))]}


def loss_of(params, key):
    k1, k2, k3, k4 = random.split(key, 4)
    x, label = points(k1, BATCH)
    t = random.randint(k2, (BATCH,), 1, STEPS + 1)
    noise = random.normal(k3, x.shape)
    bar = BAR[t][:, None]
    label = jnp.where(random.uniform(k4, label.shape) < 0.2, 2, label)
    return jnp.mean((network(params, jnp.sqrt(bar) * x + jnp.sqrt(1 - bar) * noise, t, label) - noise) ** 2)


@functools.partial(jax.jit, static_argnums=2)
def train(params, key, count):
    def step(carry, key):
        params, m, v, averaged, t = carry
        loss, grads = jax.value_and_grad(loss_of)(params, key)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
        params = jax.tree.map(lambda p, m, v: p - 2e-3 * (m / (1 - 0.9**t)) / (
            jnp.sqrt(v / (1 - 0.999**t)) + 1e-8), params, m, v)
        averaged = jax.tree.map(lambda a, p: 0.98 * a + 0.02 * p, averaged, params)
        return (params, m, v, averaged, t + 1), loss
    zeros = jax.tree.map(jnp.zeros_like, params)
    carry, losses = lax.scan(step, (params, zeros, zeros, params, 1.0), random.split(key, count))
    return carry[3], losses


@functools.partial(jax.jit, static_argnames=("count", "eta", "guidance"))
def sample(params, key, label, *, count, eta=0.0, guidance=1.5):
    k0, key = random.split(key)
    x = random.normal(k0, (count, 2))
    labels = jnp.full(count, label)

    def step(x, inputs):
        t, key = inputs
        times = jnp.full(count, t)
        with_label = network(params, x, times, labels)
        without = network(params, x, times, jnp.full(count, 2))
        noise = without + guidance * (with_label - without)
        now, after = BAR[t], BAR[t - 1]
        clean = jnp.clip((x - jnp.sqrt(1 - now) * noise) / jnp.sqrt(now), -2, 2)
        sigma = eta * jnp.sqrt((1 - after) / (1 - now)) * jnp.sqrt(1 - now / after)
        x = jnp.sqrt(after) * clean + jnp.sqrt(jnp.maximum(1 - after - sigma**2, 0)) * noise
        return x + sigma * random.normal(key, x.shape), jnp.abs(x).mean()
    return lax.scan(step, x, (jnp.arange(STEPS, 0, -1), random.split(key, STEPS)))


params, losses = train(init(random.key(0)), random.key(1), 120)
print("loss", *[float(losses[n:n + 30].mean()) for n in range(0, 120, 30)])
for label in (0, 1):
    x, sizes = sample(params, random.key(2), label, count=64)
    radius = jnp.linalg.norm(x, axis=-1)
    print("label", label, "radius", float(radius.mean()), float(radius.std()), "sizes", sizes[::10].tolist())
x, _ = sample(params, random.key(3), 1, count=64, eta=1.0, guidance=1.0)
print("with noise", float(jnp.linalg.norm(x, axis=-1).mean()), x[0].tolist())
