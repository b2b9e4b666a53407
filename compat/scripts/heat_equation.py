"""The heat equation: explicit in two dimensions, Crank-Nicolson in one."""
import jax
import jax.numpy as jnp
from jax import lax

N, ALPHA = 40, 0.2
grid = jnp.linspace(0.0, 1.0, N)
plate = jnp.zeros((N, N))
plate = plate.at[0, :].set(1.0).at[-1, :].set(jnp.sin(jnp.pi * grid))
plate = plate.at[15:25, 15:25].max(0.5)


@jax.jit
def explicit_step(u):
    inner = u[1:-1, 1:-1]
    laplacian = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner
    return u.at[1:-1, 1:-1].set(inner + ALPHA * laplacian)


after = lax.fori_loop(0, 500, lambda _, u: explicit_step(u), plate)
print("mean %.6f max inside %.6f" % (after.mean(), after[1:-1, 1:-1].max()))
print("diagonal", jnp.diagonal(after)[::6])


def thomas(lower, diagonal, upper, rhs):
    """A tridiagonal solve by two scans."""
    def forward(carry, row):
        c_before, d_before = carry
        a, b, c, d = row
        scale = 1.0 / (b - a * c_before)
        carry = (c * scale, (d - a * d_before) * scale)
        return carry, carry

    zero = jnp.zeros(())
    _, (c, d) = lax.scan(forward, (zero, zero), (lower, diagonal, upper, rhs))

    def backward(x_after, row):
        x = row[1] - row[0] * x_after
        return x, x

    return lax.scan(backward, zero, (c, d), reverse=True)[1]


def crank_nicolson(u0, conductivity, steps=60, dt=2e-3):
    n = u0.shape[0]
    r = conductivity * dt / (2 * (1.0 / (n - 1)) ** 2)
    inside = jnp.ones(n).at[jnp.array([0, -1])].set(0.0)
    lower, upper, diagonal = -r * inside, -r * inside, 1 + 2 * r * inside

    def step(u, _):
        second = jnp.zeros_like(u).at[1:-1].set(u[2:] - 2 * u[1:-1] + u[:-2])
        return thomas(lower, diagonal, upper, u + r * second), None

    return lax.scan(step, u0, None, length=steps)[0]


rod = jnp.where((grid > 0.3) & (grid < 0.6), 1.0, 0.0)
cooled = jax.jit(crank_nicolson)(rod, 1.0)
print("rod", cooled[5::8])
first_mode = jnp.sin(jnp.pi * grid)
decay = crank_nicolson(first_mode, 1.0)[N // 2] / first_mode[N // 2]
print("decay %.6f exact %.6f" % (decay, jnp.exp(-jnp.pi ** 2 * 0.12)))


# Which conductivity cooled the rod? Newton with derivatives through the solver.
def misfit(k):
    return crank_nicolson(rod, k, steps=20) - crank_nicolson(rod, 1.0, steps=20)


@jax.jit
def gauss_newton(k):
    r, jr = jax.jvp(misfit, (k,), (1.0,))
    return k - jnp.vdot(jr, r) / jnp.vdot(jr, jr)


k = 0.6
for i in range(3):
    k = gauss_newton(k)
    print(f"conductivity {k:.4f}")
