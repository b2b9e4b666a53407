# tolerance: 2e-5 (the adaptive method's step sizes magnify the rounding)
"""Runge-Kutta by loops: fixed steps, adaptive steps, and sensitivities to the parameters."""
import jax
import jax.numpy as jnp
from jax import lax


def lotka_volterra(y, theta):
    prey, predator = y
    a, b, c, d = theta
    return jnp.array([a * prey - b * prey * predator, -c * predator + d * prey * predator])


def rk4_step(f, y, h, theta):
    k1 = f(y, theta)
    k2 = f(y + h / 2 * k1, theta)
    k3 = f(y + h / 2 * k2, theta)
    k4 = f(y + h * k3, theta)
    return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)


def solve_fixed(theta, y0, t_end=10.0, n=500):
    h = t_end / n
    return lax.fori_loop(0, n, lambda i, y: rk4_step(lotka_volterra, y, h, theta), y0)


def solve_adaptive(theta, y0, t_end=10.0, tolerance=1e-5):
    """Bogacki-Shampine 3(2)."""
    def cond(state):
        t, _, _, accepted, rejected = state
        return (t < t_end) & (accepted + rejected < 5000)

    def body(state):
        t, y, h, accepted, rejected = state
        h = jnp.minimum(h, t_end - t)
        k1 = lotka_volterra(y, theta)
        k2 = lotka_volterra(y + h / 2 * k1, theta)
        k3 = lotka_volterra(y + 3 * h / 4 * k2, theta)
        third = y + h * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = lotka_volterra(third, theta)
        second = y + h * (7 * k1 / 24 + k2 / 4 + k3 / 3 + k4 / 8)
        error = jnp.max(jnp.abs(third - second)) / tolerance
        ok = error <= 1.0
        factor = jnp.clip(0.9 * (error + 1e-10) ** (-1 / 3), 0.2, 5.0)
        t, y = jax.tree.map(lambda new, old: jnp.where(ok, new, old), (t + h, third), (t, y))
        return t, y, h * factor, accepted + ok, rejected + ~ok

    return lax.while_loop(cond, body, (0.0, y0, 0.1, 0, 0))


theta = jnp.array([1.1, 0.4, 0.4, 0.1])
y0 = jnp.array([10.0, 5.0])
end = jax.jit(solve_fixed)(theta, y0)
print("fixed steps", end)
t, y, h, accepted, rejected = jax.jit(solve_adaptive)(theta, y0)
print("adaptive", t, y, "about 150 steps:", bool(100 < accepted < 300))
print("agree:", bool(jnp.allclose(y, end, rtol=1e-3)))
print("sensitivities\n", jax.jit(jax.jacfwd(lambda th: solve_fixed(th, y0, 2.0, 100)))(theta))


# a pendulum, its whole path, and a check of the energy
def pendulum(y, length):
    angle, speed = y
    return jnp.stack([speed, -9.81 / length * jnp.sin(angle)])


@jax.jit
def path(y0, length):
    def step(y, _):
        y = rk4_step(pendulum, y, 0.01, length)
        return y, y
    return lax.scan(step, y0, None, length=300)[1]


trajectory = path(jnp.array([1.0, 0.0]), 2.0)
energy = 0.5 * (2.0 * trajectory[:, 1]) ** 2 - 9.81 * 2.0 * jnp.cos(trajectory[:, 0])
print("angles", trajectory[50::100, 0])
print("energy kept:", bool(jnp.ptp(energy) < 1e-3))
lengths = jnp.array([0.5, 1.0, 2.0])
print("ends", jax.vmap(path, in_axes=(None, 0))(jnp.array([1.0, 0.0]), lengths)[:, -1])
