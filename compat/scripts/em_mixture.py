# tolerance: 5e-5 (the rounding of 40 iterations adds up)
"""A mixture of Gaussians by expectation maximisation; model selection by BIC."""
from functools import partial

import jax
import jax.numpy as jnp
from jax import random
from jax.nn import logsumexp


def make_data(key):
    k = random.split(key, 3)
    a = random.multivariate_normal(k[0], jnp.array([0.0, 0.0]),
                                   jnp.array([[1.0, 0.6], [0.6, 1.0]]), (120,))
    b = random.multivariate_normal(k[1], jnp.array([5.0, 1.0]),
                                   jnp.array([[0.5, 0.0], [0.0, 1.5]]), (80,))
    c = random.multivariate_normal(k[2], jnp.array([1.0, 6.0]), 0.4 * jnp.eye(2), (60,))
    return jnp.concatenate([a, b, c])


def log_gaussian(x, mean, covariance):
    L = jnp.linalg.cholesky(covariance)
    z = jax.lax.linalg.triangular_solve(L, x - mean, left_side=True, lower=True)
    return -0.5 * jnp.sum(z ** 2) - jnp.log(jnp.diag(L)).sum() - jnp.log(2 * jnp.pi)


def log_joint(data, weights, means, covariances):
    over_components = jax.vmap(log_gaussian, in_axes=(None, 0, 0))
    over_data = jax.vmap(over_components, in_axes=(0, None, None))
    return over_data(data[..., None], means[..., None], covariances) + jnp.log(weights)


def em_step(data, state, _):
    joint = log_joint(data, *state)
    total = logsumexp(joint, axis=1, keepdims=True)
    r = jnp.exp(joint - total)
    n = r.sum(axis=0)
    means = jnp.einsum("nk,nd->kd", r, data) / n[:, None]
    centred = data[:, None, :] - means[None]
    covariances = jnp.einsum("nk,nki,nkj->kij", r, centred, centred) / n[:, None, None]
    covariances = covariances + 1e-3 * jnp.eye(2)
    return (n / len(data), means, covariances), total.sum()


@partial(jax.jit, static_argnums=(1, 3))
def fit(data, k, key, iterations=40):
    chosen = random.choice(key, len(data), (k,), replace=False)
    state = (jnp.full(k, 1.0 / k), data[chosen], jnp.broadcast_to(2.0 * jnp.eye(2), (k, 2, 2)))
    return jax.lax.scan(partial(em_step, data), state, None, length=iterations)


data = make_data(random.key(0))
print("data mean", data.mean(axis=0))
for k in (1, 2, 3):
    state, history = fit(data, k, random.key(5))
    parameters = k - 1 + 2 * k + 3 * k
    bic = -2 * history[-1] + parameters * jnp.log(len(data))
    print(f"k={k} log likelihood {history[-1]:.4f} BIC {bic:.4f}",
          "never falls:", bool(jnp.all(jnp.diff(history) > -0.05)))

weights, means, covariances = state
order = jnp.argsort(means[:, 0])
print("weights", weights[order])
print("means", means[order])
print("determinants", jnp.linalg.det(covariances[order]))
responsibilities = jax.nn.softmax(log_joint(data, *state), axis=-1)[:, order]
labels = jnp.argmax(responsibilities, axis=-1)
truth = jnp.repeat(jnp.array([0, 2, 1]), jnp.array([120, 80, 60]), total_repeat_length=260)
table = jnp.zeros((3, 3), jnp.int32).at[truth, labels].add(1)
print("found correctly more than 95%:", bool(jnp.trace(table) > 0.95 * len(data)))
