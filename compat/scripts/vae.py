# tolerance: 1e-4 (the rounding of 60 steps of Adam adds up)
"""A variational autoencoder of points near a circle in 10 dimensions."""
import jax
import jax.numpy as jnp
from jax import nn, random
from jax.nn.initializers import lecun_normal

LATENT, HIDDEN, DATA = 2, 32, 10


def make_data(key, n):
    k1, k2, k3 = random.split(key, 3)
    angle = random.uniform(k1, (n,)) * 2 * jnp.pi
    circle = jnp.stack([jnp.cos(angle), jnp.sin(angle)], -1)
    lift = random.orthogonal(k2, DATA)[:2]
    return circle @ lift + 0.05 * random.normal(k3, (n, DATA))


def dense(key, n_in, n_out):
    return {"w": lecun_normal()(key, (n_in, n_out)), "b": jnp.zeros(n_out)}


def init(key):
    k = random.split(key, 5)
    return {
        "encoder": dense(k[0], DATA, HIDDEN),
        "mean": dense(k[1], HIDDEN, LATENT),
        "logvar": dense(k[2], HIDDEN, LATENT),
        "decoder": [dense(k[3], LATENT, HIDDEN), dense(k[4], HIDDEN, DATA)],
    }


def apply(p, x):
    return x @ p["w"] + p["b"]


def elbo(params, key, x):
    h = nn.silu(apply(params["encoder"], x))
    mean, logvar = apply(params["mean"], h), apply(params["logvar"], h)
    z = mean + jnp.exp(0.5 * logvar) * random.normal(key, mean.shape)
    first, second = params["decoder"]
    out = apply(second, nn.silu(apply(first, z)))
    likelihood = -0.5 * jnp.sum((x - out) ** 2) / 0.05
    kl = 0.5 * jnp.sum(jnp.exp(logvar) + mean ** 2 - 1 - logvar)
    return likelihood - kl, (likelihood, kl)


def loss_fn(params, key, batch):
    keys = random.split(key, batch.shape[0])
    values, (likelihood, kl) = jax.vmap(elbo, in_axes=(None, 0, 0))(params, keys, batch)
    return -values.mean(), (likelihood.mean(), kl.mean())


@jax.jit
def step(i, key, params, moments, batch):
    key = random.fold_in(key, i)
    (loss, aux), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, key, batch)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, moments[0], grads)
    second = jax.tree.map(lambda m, g: 0.999 * m + 0.001 * g ** 2, moments[1], grads)
    scale = jnp.sqrt(1 - 0.999 ** (i + 1)) / (1 - 0.9 ** (i + 1))
    params = jax.tree.map(lambda p, m, v: p - 0.01 * scale * m / (jnp.sqrt(v) + 1e-4),
                          params, first, second)
    return params, (first, second), loss, aux


key = random.key(11)
data = make_data(random.fold_in(key, 1), 512)
print("data", data.shape, "mean square %.6f" % jnp.mean(data ** 2))
params = init(random.fold_in(key, 2))
moments = (jax.tree.map(jnp.zeros_like, params),) * 2
for i in range(60):
    batch = jax.lax.dynamic_slice_in_dim(data, (i % 4) * 128, 128)
    params, moments, loss, (likelihood, kl) = step(i, key, params, moments, batch)
    if i % 15 == 14:
        print(f"{i + 1}: loss {loss:.5f} likelihood {likelihood:.5f} kl {kl:.5f}")

codes = apply(params["mean"], nn.silu(apply(params["encoder"], data)))
print("variance of the codes", jnp.var(codes, axis=0))
