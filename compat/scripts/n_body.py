# tolerance: 1e-4 (close passages magnify rounding)
"""Gravity between bodies, by a symplectic integrator; forces are the potential's gradient."""
import jax
import jax.numpy as jnp
import numpy as np

G, SOFTENING = 1.0, 0.05
N = 12
rng = np.random.RandomState(1)
angles = np.linspace(0, 2 * np.pi, N - 1, endpoint=False)
radii = np.linspace(1.0, 4.0, N - 1)
positions = np.zeros((N, 3), np.float32)
positions[1:] = np.c_[radii * np.cos(angles), radii * np.sin(angles), 0.05 * rng.randn(N - 1)]
masses = np.r_[10.0, 0.01 * np.ones(N - 1)].astype(np.float32)
speeds = np.sqrt(G * masses[0] / radii)
velocities = np.zeros((N, 3), np.float32)
velocities[1:] = np.c_[-speeds * np.sin(angles), speeds * np.cos(angles), np.zeros(N - 1)]


def potential(x, m):
    difference = x[:, None, :] - x[None, :, :]
    distance = jnp.sqrt(jnp.sum(difference ** 2, axis=-1) + SOFTENING ** 2)
    pairs = -G * m[:, None] * m[None, :] / distance
    return jnp.sum(jnp.triu(pairs, k=1))


def kinetic(v, m):
    return 0.5 * jnp.sum(m[:, None] * v ** 2)


@jax.jit
def simulate(x, v, m, dt=0.005):
    acceleration = lambda x: -jax.grad(potential)(x, m) / m[:, None]

    def step(state, _):
        x, v, a = state
        v_half = v + 0.5 * dt * a
        x = x + dt * v_half
        a = acceleration(x)
        v = v_half + 0.5 * dt * a
        return (x, v, a), potential(x, m) + kinetic(v, m)

    (x, v, _), energy = jax.lax.scan(step, (x, v, acceleration(x)), None, length=400)
    return x, v, energy


x, v, m = map(jnp.asarray, (positions, velocities, masses))
start = potential(x, m) + kinetic(v, m)
x, v, energy = simulate(x, v, m)
print("energy at the start %.5f, at the end %.5f" % (start, energy[-1]))
print("drift below 0.1%:", bool(jnp.max(jnp.abs(energy / start - 1)) < 1e-3))
angular = jnp.sum(m[:, None] * jnp.cross(x, v), axis=0)
print("angular momentum %.5f" % angular[2])
print("radii", jnp.linalg.norm(x - x[0], axis=1)[1:])
print("sun %.6f %.6f" % (float(x[0, 0] * 1000), float(x[0, 1] * 1000)))
