# tolerance: 1e-4 (the rounding of 50 steps of training adds up)
"""Affine coupling layers (RealNVP) learn the density of two moons."""
import jax
import jax.numpy as jnp
from jax import random

DEPTH, HIDDEN = 4, 24


def two_moons(key, n):
    k1, k2 = random.split(key)
    t = jnp.linspace(0, jnp.pi, n // 2)
    outer = jnp.c_[jnp.cos(t), jnp.sin(t)]
    inner = jnp.c_[1 - jnp.cos(t), 0.5 - jnp.sin(t)]
    points = jnp.vstack([outer, inner]) + 0.08 * random.normal(k1, (n, 2))
    return random.permutation(k2, points, axis=0)


def init_layer(key):
    k1, k2 = random.split(key)
    return dict(w1=random.normal(k1, (1, HIDDEN)), b1=jnp.zeros(HIDDEN),
                w2=0.01 * random.normal(k2, (HIDDEN, 2)), b2=jnp.zeros(2))


def coupling(p, x, flip):
    a, b = x[..., :1], x[..., 1:]
    if flip:
        a, b = b, a
    shift, log_scale = jnp.split(jnp.tanh(a @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"], 2, axis=-1)
    log_scale = jnp.clip(log_scale, -3, 3)
    b = b * jnp.exp(log_scale) + shift
    return jnp.concatenate([b, a] if flip else [a, b], axis=-1), log_scale[..., 0]


def inverse_coupling(p, y, flip):
    a, b = y[..., :1], y[..., 1:]
    if flip:
        a, b = b, a
    shift, log_scale = jnp.split(jnp.tanh(a @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"], 2, axis=-1)
    b = (b - shift) * jnp.exp(-jnp.clip(log_scale, -3, 3))
    return jnp.concatenate([b, a] if flip else [a, b], axis=-1)


def forward(params, x):
    total = jnp.zeros(x.shape[:-1])
    for i, p in enumerate(params):
        x, log_det = coupling(p, x, i % 2 == 1)
        total += log_det
    return x, total


def inverse(params, z):
    for i, p in reversed(list(enumerate(params))):
        z = inverse_coupling(p, z, i % 2 == 1)
    return z


def log_density(params, x):
    z, log_det = forward(params, x)
    return -0.5 * jnp.sum(z ** 2, axis=-1) - jnp.log(2 * jnp.pi) + log_det


@jax.jit
def update(params, x):
    loss, grads = jax.value_and_grad(lambda p: -log_density(p, x).mean())(params)
    return jax.tree_util.tree_map(lambda p, g: p - 0.05 * g, params, grads), loss


data = two_moons(random.PRNGKey(0), 600)
params = [init_layer(k) for k in random.split(random.PRNGKey(1), DEPTH)]
for i in range(50):
    params, loss = update(params, data)
    if i % 10 == 9:
        print(f"iteration {i + 1}: negative log likelihood {loss:.6f}")

points = data[:5]
jacobians = jax.vmap(jax.jacfwd(lambda x: forward(params, x)[0]))(points)
sign, log_det = jnp.linalg.slogdet(jacobians)
print("log determinants", log_det, "signs", sign)
print("the layers say the same:",
      bool(jnp.allclose(log_det, forward(params, points)[1], atol=1e-4)))
samples = inverse(params, random.normal(random.PRNGKey(2), (1000, 2)))
print("sample mean", samples.mean(0), "std", samples.std(0))
back = inverse(params, forward(params, data)[0])
print("inverts:", bool(jnp.abs(back - data).max() < 1e-4))
