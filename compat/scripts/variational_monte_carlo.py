# tolerance: 1e-3 (twenty updates by samples amplify the rounding)
# absolute: 1e-4 (accepted shares)
"""Variational Monte Carlo: helium-like atoms, walkers in a scan, energies by Hessians, natural steps.

Checked to the tolerances above, with key 3: energies, their spread and accepted shares of the updates,
and the exponent that is found.
"""
import jax
import jax.numpy as jnp
from jax import lax, random
from jax.flatten_util import ravel_pytree

WALKERS, MOVES, UPDATES, CHARGE = 64, 10, 12, 2.0


def log_wave(params, r):
    """r: two electrons in three dimensions."""
    distances = jnp.sqrt(jnp.sum(r**2, axis=-1) + 1e-12)
    apart = jnp.sqrt(jnp.sum((r[0] - r[1]) ** 2) + 1e-12)
    hidden = jnp.tanh(params["w"] @ jnp.array([distances[0] + distances[1],
                                               distances[0] * distances[1], apart]) + params["b"])
    jastrow = 0.5 * apart / (1 + jnp.exp(params["decay"]) * apart)
    return -jnp.exp(params["zeta"]) * distances.sum() + jastrow + params["v"] @ hidden


def local_energy(params, r):
    flat = lambda x: log_wave(params, x.reshape(2, 3))
    x = r.reshape(-1)
    gradient = jax.grad(flat)

    def second(direction):
        return jax.jvp(gradient, (x,), (direction,))[1] @ direction
    kinetic = -0.5 * (jax.vmap(second)(jnp.eye(6)).sum() + jnp.sum(gradient(x) ** 2))
    distances = jnp.linalg.norm(r, axis=-1)
    return kinetic - CHARGE * jnp.sum(1 / distances) + 1 / jnp.linalg.norm(r[0] - r[1])


def metropolis(params, key, walkers, width):
    def move(state, key):
        r, logs = state
        k1, k2 = random.split(key)
        new = r + width * random.normal(k1, r.shape)
        new_logs = jax.vmap(log_wave, (None, 0))(params, new)
        accepted = jnp.log(random.uniform(k2, logs.shape)) < 2 * (new_logs - logs)
        return (jnp.where(accepted[:, None, None], new, r), jnp.where(accepted, new_logs, logs)), \
            accepted.mean()
    start = (walkers, jax.vmap(log_wave, (None, 0))(params, walkers))
    (walkers, _), shares = lax.scan(move, start, random.split(key, MOVES))
    return walkers, shares.mean()


@jax.jit
def update(params, key, walkers, width):
    walkers, share = metropolis(params, key, walkers, width)
    energies = jax.vmap(local_energy, (None, 0))(params, walkers)
    median = jnp.median(energies)
    spread = jnp.mean(jnp.abs(energies - median))
    clipped = jnp.clip(energies, median - 5 * spread, median + 5 * spread)
    flat, unravel = ravel_pytree(params)
    slopes = jax.vmap(lambda r: jax.grad(lambda p: log_wave(unravel(p), r))(flat))(walkers)
    centred = slopes - slopes.mean(0)
    force = 2 * centred.T @ (clipped - clipped.mean()) / WALKERS
    metric = centred.T @ centred / WALKERS + 1e-2 * jnp.eye(flat.size)
    step = jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(metric), force)
    step = step * jnp.minimum(1, 0.3 / jnp.linalg.norm(step))
    width = width * jnp.where(share > 0.5, 1.1, 0.9)
    return unravel(flat - 0.2 * step), walkers, width, (energies.mean(), energies.std(), share)


keys = random.split(random.key(3), UPDATES + 2)
params = {"zeta": jnp.log(1.7), "decay": jnp.array(-1.0), "w": 0.1 * random.normal(keys[0], (4, 3)),
          "b": jnp.zeros(4), "v": jnp.zeros(4)}
walkers, width = random.normal(keys[1], (WALKERS, 2, 3)), jnp.float32(0.5)
for number, key in enumerate(keys[2:]):
    params, walkers, width, (energy, spread, share) = update(params, key, walkers, width)
    if number % 3 == 2:
        print("update", number, "energy", float(energy), "spread", float(spread), "accepted", float(share))
print("zeta", float(jnp.exp(params["zeta"])), "width", float(width))
