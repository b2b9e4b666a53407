# tolerance: 1e-9 (double precision, 48 steps)
# absolute: 1e-10 (sums that cancel)
"""The barotropic core of a climate model in float64: Legendre and Fourier transforms on the sphere.

Checked to the tolerances above, without random numbers: energies, waves and angles by the hour, the
fastest wind, a growth and a tangent.
"""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)
T, LATITUDES, LONGITUDES = 15, 24, 48
ROTATION, RADIUS, DT, STEPS = 7.292e-5, 6.371e6, 1800.0, 48
nodes, quadrature = np.polynomial.legendre.leggauss(LATITUDES)


def legendre():
    """Normalised associated Legendre functions of the nodes, by m and n, and their derivatives."""
    values = np.zeros((T + 1, T + 2, LATITUDES))
    root = np.sqrt(1 - nodes**2)
    values[0, 0] = np.sqrt(0.5)
    for m in range(1, T + 1):
        values[m, m] = np.sqrt((2 * m + 1) / (2 * m)) * root * values[m - 1, m - 1]
    epsilon = lambda m, n: np.sqrt((n * n - m * m) / (4 * n * n - 1)) if n else 0.0
    for m in range(T + 1):
        for n in range(m + 1, T + 2):
            before = values[m, n - 2] * epsilon(m, n - 1) if n - 2 >= m else 0.0
            values[m, n] = (nodes * values[m, n - 1] - before) / epsilon(m, n)
    slopes = np.zeros((T + 1, T + 1, LATITUDES))
    for m in range(T + 1):
        for n in range(m, T + 1):
            below = values[m, n - 1] if n > m else 0.0
            slopes[m, n] = (n + 1) * epsilon(m, n) * below - n * epsilon(m, n + 1) * values[m, n + 1]
    return jnp.asarray(values[:, :T + 1]), jnp.asarray(slopes)


P, SLOPES = legendre()
M = jnp.arange(T + 1)
N = jnp.arange(T + 1)
MASK = (N[None] >= M[:, None]).astype(float)
EIGENVALUES = -N * (N + 1) / RADIUS**2
COSINE2 = jnp.asarray(1 - nodes**2)


def to_grid(spectral, functions):
    fourier = jnp.einsum("mn,mnj->jm", spectral, functions.astype(complex))
    padded = jnp.zeros((LATITUDES, LONGITUDES // 2 + 1), complex).at[:, :T + 1].set(fourier)
    return jnp.fft.irfft(padded, LONGITUDES) * LONGITUDES


def fourier(grid):
    return jnp.fft.rfft(grid)[:, :T + 1] / LONGITUDES


def tendency(vorticity):
    stream = vorticity * jnp.where(N == 0, 0, 1 / jnp.where(N == 0, 1, EIGENVALUES))
    u = -to_grid(stream, SLOPES) / RADIUS                   # times the cosine of the latitude
    v = to_grid(1j * M[:, None] * stream, P) / RADIUS
    absolute = to_grid(vorticity, P) + 2 * ROTATION * jnp.asarray(nodes)[:, None]
    weights = jnp.asarray(quadrature) / COSINE2 / RADIUS
    a, b = fourier(u * absolute), fourier(v * absolute)
    return -(jnp.einsum("j,m,jm,mnj->mn", weights, 1j * M, a, P)
             - jnp.einsum("j,jm,mnj->mn", weights, b, SLOPES)) * MASK


def energy(vorticity):
    twice = jnp.where(M == 0, 1, 2)[:, None]
    inverse = jnp.where(N == 0, 0, -1 / jnp.where(N == 0, 1, EIGENVALUES))
    return 0.5 * jnp.sum(twice * inverse * jnp.abs(vorticity) ** 2)


@jax.jit
def run(vorticity):
    def runge_kutta(state, _):
        k1 = tendency(state)
        k2 = tendency(state + DT / 2 * k1)
        k3 = tendency(state + DT / 2 * k2)
        k4 = tendency(state + DT * k3)
        damping = jnp.exp(-DT * 1e15 * EIGENVALUES**2)
        state = damping * (state + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
        return state, (energy(state), jnp.abs(state[4, 5]), jnp.angle(state[4, 5]))
    return lax.scan(runge_kutta, vorticity, None, STEPS)


start = jnp.zeros((T + 1, T + 1), complex).at[4, 5].set(1e-5 + 2e-6j).at[0, 3].set(2e-5)
start = start.at[2, 7].set(3e-6j).at[0, 1].set(1e-5)
state, (energies, sizes, angles) = run(start)
for n in range(0, STEPS, 8):
    print("hour", n / 2, "energy", float(energies[n]), "wave", float(sizes[n] * 1e5), float(angles[n]))
winds = -to_grid(state / jnp.where(N == 0, -jnp.inf, EIGENVALUES), SLOPES) / RADIUS
print("fastest", float(jnp.abs(winds / jnp.sqrt(COSINE2)[:, None]).max()))
growth = jax.jit(jax.grad(lambda scale: energy(lax.fori_loop(
    0, 6, lambda _, s: s + DT * tendency(s), start * scale))))(1.0)
print("growth", float(growth))
tangent = jax.jvp(run, (start,), (start * 1e-3,))[1][0]
print("tangent", float(jnp.linalg.norm(tangent)))
