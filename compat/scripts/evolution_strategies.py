# tolerance: 1e-4 (thirty generations amplify the rounding)
"""Evolution strategies: an adapted covariance and a diagonal one with mirrored samples, in one program.

Checked to a relative 1e-4, with keys 0 and 1: the best values by generation, and the step sizes and means
at the end, of three starts.
"""
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax, random

DIMENSIONS, POPULATION, GENERATIONS = 8, 16, 30


def rosenbrock(x):
    return jnp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


def rastrigin(x):
    return 10 * x.size + jnp.sum(x**2 - 10 * jnp.cos(2 * jnp.pi * x))


class Strategy(NamedTuple):
    mean: jax.Array
    size: jax.Array
    covariance: jax.Array
    path: jax.Array
    covariance_path: jax.Array


PARENTS = POPULATION // 2
raw = jnp.log(PARENTS + 0.5) - jnp.log(jnp.arange(1, PARENTS + 1))
SHARES = raw / raw.sum()
EFFECTIVE = 1 / jnp.sum(SHARES**2)
C_PATH = (EFFECTIVE + 2) / (DIMENSIONS + EFFECTIVE + 5)
DAMPING = 1 + C_PATH
C_COV = 4 / (DIMENSIONS + 4)
C_ONE = 2 / ((DIMENSIONS + 1.3) ** 2 + EFFECTIVE)
C_MU = jnp.minimum(1 - C_ONE, 2 * (EFFECTIVE - 2 + 1 / EFFECTIVE) / ((DIMENSIONS + 2) ** 2 + EFFECTIVE))
EXPECTED = DIMENSIONS**0.5 * (1 - 1 / (4 * DIMENSIONS) + 1 / (21 * DIMENSIONS**2))


def generation(objective, state, key):
    root = jnp.linalg.cholesky(state.covariance)
    normal = random.normal(key, (POPULATION, DIMENSIONS))
    moves = normal @ root.T
    values = jax.vmap(objective)(state.mean + state.size * moves)
    best = jnp.argsort(values)[:PARENTS]
    step = SHARES @ moves[best]
    whitened = jax.scipy.linalg.solve_triangular(root, step, lower=True)
    path = (1 - C_PATH) * state.path + jnp.sqrt(C_PATH * (2 - C_PATH) * EFFECTIVE) * whitened
    length = jnp.linalg.norm(path)
    calm = length < (1.4 + 2 / (DIMENSIONS + 1)) * EXPECTED
    along = (1 - C_COV) * state.covariance_path + calm * jnp.sqrt(
        C_COV * (2 - C_COV) * EFFECTIVE) * step
    outer = jnp.einsum("k,ki,kj->ij", SHARES, moves[best], moves[best])
    covariance = (1 - C_ONE - C_MU) * state.covariance + C_ONE * jnp.outer(along, along) + C_MU * outer
    size = state.size * jnp.exp(C_PATH / DAMPING * (length / EXPECTED - 1))
    covariance = (covariance + covariance.T) / 2
    return Strategy(state.mean + state.size * step, size, covariance, path, along), values[best[0]]


@functools.partial(jax.jit, static_argnums=0)
def adapt(objective, key, start):
    state = Strategy(start, jnp.float32(0.5), jnp.eye(DIMENSIONS), jnp.zeros(DIMENSIONS),
                     jnp.zeros(DIMENSIONS))
    return lax.scan(functools.partial(generation, objective), state, random.split(key, GENERATIONS))


@functools.partial(jax.jit, static_argnums=0)
def mirrored(objective, key, start):
    def step(mean, key):
        noise = random.normal(key, (POPULATION // 2, DIMENSIONS))
        noise = jnp.concatenate([noise, -noise])
        values = jax.vmap(objective)(mean + 0.1 * noise)
        ranks = jnp.argsort(jnp.argsort(values)) / (POPULATION - 1) - 0.5
        return mean - 0.5 * ranks @ noise / POPULATION, values.min()
    return lax.scan(step, start, random.split(key, GENERATIONS))


starts = random.uniform(random.key(0), (3, DIMENSIONS), minval=-1.5, maxval=1.5)
keys = random.split(random.key(1), 3)
for objective in (rosenbrock, rastrigin):
    states, best = jax.vmap(functools.partial(adapt, objective))(keys, starts)
    print(objective.__name__, "adapted", best[:, ::10].tolist(), "sizes", states.size.tolist())
    means, best = jax.vmap(functools.partial(mirrored, objective))(keys, starts)
    print(objective.__name__, "mirrored", best[:, ::10].tolist(), "mean", means[:, 0].tolist())
