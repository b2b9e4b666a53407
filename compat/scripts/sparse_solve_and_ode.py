# tolerance: 2e-4 (iterative solvers)
"""A heat equation by conjugate gradients; a rate of decay fitted through an ODE solver."""
import jax
import jax.numpy as jnp
from jax.experimental.ode import odeint
from jax.scipy.ndimage import map_coordinates
from jax.scipy.sparse.linalg import cg, gmres


def laplacian(u):
    padded = jnp.pad(u, 1)
    return (4 * u - padded[2:, 1:-1] - padded[:-2, 1:-1] - padded[1:-1, 2:] - padded[1:-1, :-2])


source = jnp.zeros((8, 8)).at[2, 3].set(1.0).at[5, 6].set(-1.0)
solution, _ = cg(laplacian, source, tol=1e-6)
print("potential", solution[2], "residual below 1e-4:",
      jnp.abs(laplacian(solution) - source).max() < 1e-4)
moved, _ = gmres(lambda u: u + 0.1 * laplacian(u), source, tol=1e-6)
print("smoothed", moved[2, 2:5])
print("between the nodes", map_coordinates(solution, [jnp.array([2.5]), jnp.array([3.5])], 1))


def decay(y, t, rate):
    return -rate * y


times = jnp.linspace(0.0, 2.0, 5)
observed = 3.0 * jnp.exp(-0.7 * times)


def loss(rate):
    path = odeint(decay, jnp.float32(3.0), times, rate, rtol=1e-5, atol=1e-6)
    return jnp.mean((path - observed) ** 2)


rate = jnp.float32(0.2)
for _ in range(12):
    rate = rate - 0.15 * jax.grad(loss)(rate)
print("fitted rate %.3f" % rate)
