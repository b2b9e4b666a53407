"""Hamiltonian Monte Carlo for a logistic regression: the number is the chains' log density.

usage: hmc.py STEPS [small]
"""

import sys

import jax
import jax.numpy as jnp

steps, small = int(sys.argv[1]), "small" in sys.argv[2:]
rows, columns, chains = (50, 3, 2) if small else (1000, 20, 64)
leaps, leap = 10, 0.02

feature_key, weight_key, label_key, start_key, chain_key = jax.random.split(jax.random.key(0), 5)
features = jax.random.normal(feature_key, (rows, columns))
weights = jax.random.normal(weight_key, (columns,))
labels = jax.random.bernoulli(label_key, jax.nn.sigmoid(features @ weights)).astype(jnp.float32)


def log_density(weights):
    logits = features @ weights
    likelihood = labels * jax.nn.log_sigmoid(logits) + (1 - labels) * jax.nn.log_sigmoid(-logits)
    return jnp.sum(likelihood) - 0.5 * jnp.sum(weights**2)


def transition(key, position):
    momentum_key, accept_key = jax.random.split(key)
    momentum = jax.random.normal(momentum_key, position.shape)
    slope = jax.grad(log_density)

    def leapfrog(state, _):
        position, momentum = state
        momentum = momentum + 0.5 * leap * slope(position)
        position = position + leap * momentum
        momentum = momentum + 0.5 * leap * slope(position)
        return (position, momentum), None

    (proposal, final), _ = jax.lax.scan(leapfrog, (position, momentum), length=leaps)
    gained = log_density(proposal) - log_density(position)
    gained = gained - 0.5 * jnp.sum(final**2) + 0.5 * jnp.sum(momentum**2)
    accepted = jnp.log(jax.random.uniform(accept_key)) < gained
    return jnp.where(accepted, proposal, position)


@jax.jit
def sample(key, positions):
    positions = jax.vmap(transition)(jax.random.split(key, chains), positions)
    return positions, jnp.mean(jax.vmap(log_density)(positions))


positions = 0.1 * jax.random.normal(start_key, (chains, columns))
for step in range(steps):
    chain_key, used = jax.random.split(chain_key)
    positions, density = sample(used, positions)
    print(step, float(density))
