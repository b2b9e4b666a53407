"""Gravity between 500 bodies by leapfrog: a step is ten moves, and its number the total energy.

usage: nbody.py STEPS [small]
"""

import sys

import jax
import jax.numpy as jnp

steps, small = int(sys.argv[1]), "small" in sys.argv[2:]
bodies = 30 if small else 500
time_step = 1e-3
softening = 0.1


def accelerations(positions, masses):
    offsets = positions[None, :, :] - positions[:, None, :]
    squared = jnp.sum(offsets**2, axis=-1) + softening**2
    return jnp.sum(masses[None, :, None] * offsets * squared[:, :, None] ** -1.5, axis=1)


def energy(positions, velocities, masses):
    offsets = positions[None, :, :] - positions[:, None, :]
    distances = jnp.sqrt(jnp.sum(offsets**2, axis=-1) + softening**2)
    potential = -0.5 * jnp.sum(masses[:, None] * masses[None, :] / distances)
    return 0.5 * jnp.sum(masses[:, None] * velocities**2) + potential


@jax.jit
def advance(positions, velocities, masses):
    def move(_, state):
        positions, velocities = state
        velocities = velocities + 0.5 * time_step * accelerations(positions, masses)
        positions = positions + time_step * velocities
        velocities = velocities + 0.5 * time_step * accelerations(positions, masses)
        return positions, velocities

    positions, velocities = jax.lax.fori_loop(0, 10, move, (positions, velocities))
    return positions, velocities, energy(positions, velocities, masses)


position_key, velocity_key = jax.random.split(jax.random.key(0))
positions = jax.random.normal(position_key, (bodies, 3))
velocities = 0.1 * jax.random.normal(velocity_key, (bodies, 3))
masses = jnp.full(bodies, 1.0 / bodies)
for step in range(steps):
    positions, velocities, total = advance(positions, velocities, masses)
    print(step, float(total))
