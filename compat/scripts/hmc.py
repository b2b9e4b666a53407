# tolerance: 1e-4 (rounding grows along the trajectories)
"""Hamiltonian Monte Carlo on a correlated Gaussian and on Rosenbrock's valley."""
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax, random

precision = jnp.linalg.inv(jnp.array([[1.0, 0.8], [0.8, 2.0]]))


def gaussian(q):
    return -0.5 * q @ precision @ q


def rosenbrock(q):
    return -0.1 * ((1 - q[0]) ** 2 + 5.0 * (q[1] - q[0] ** 2) ** 2)


def leapfrog(log_density, q, p, step_size, n_steps):
    force = jax.grad(log_density)

    def body(_, state):
        q, p = state
        q = q + step_size * p
        return q, p + step_size * force(q)

    p = p + 0.5 * step_size * force(q)
    q, p = lax.fori_loop(0, n_steps - 1, body, (q, p))
    q = q + step_size * p
    p = p + 0.5 * step_size * force(q)
    return q, -p


@partial(jax.jit, static_argnums=(0, 3))
def sample(log_density, key, q0, n_samples, step_size):
    def transition(q, key):
        k_momentum, k_accept = random.split(key)
        p = random.normal(k_momentum, q.shape)
        q_new, p_new = leapfrog(log_density, q, p, step_size, 8)
        energy = -log_density(q) + 0.5 * p @ p
        energy_new = -log_density(q_new) + 0.5 * p_new @ p_new
        accept = jnp.log(random.uniform(k_accept)) < energy - energy_new
        q = lax.cond(accept, lambda: q_new, lambda: q)
        return q, (q, accept)

    _, (samples, accepted) = lax.scan(transition, q0, random.split(key, n_samples))
    return samples, accepted


samples, accepted = sample(gaussian, random.key(0), jnp.zeros(2), 300, 0.4)
print("accepted", int(accepted.sum()), "of", accepted.size)
print("mean", samples.mean(axis=0))
print("covariance", jnp.cov(samples.T))

# The valley is sensitive to rounding: a few transitions of many chains.
keys = random.split(random.key(1), 32)
starts = random.normal(random.key(2), (32, 2))
chains, accepted = jax.vmap(lambda k, q: sample(rosenbrock, k, q, 4, 0.3))(keys, starts)
print("chains", chains.shape, "accepted", accepted.sum())
print("mean over the chains", chains[:, -1].mean(axis=0))
print("median", jnp.median(chains[:, -1], axis=0))
