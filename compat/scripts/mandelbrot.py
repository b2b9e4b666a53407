"""Complex numbers: the Mandelbrot set, Newton fractals, contour integrals, a complex gradient."""
import jax
import jax.numpy as jnp
from jax import lax, vmap


@jax.jit
def escape_times(c):
    def body(_, state):
        z, count = state
        inside = jnp.abs(z) <= 2
        z = jnp.where(inside, z * z + c, z)
        return z, count + inside
    start = jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)
    return lax.fori_loop(0, 40, body, start)[1]


re, im = jnp.meshgrid(jnp.linspace(-2.05, 0.55, 40), jnp.linspace(-1.15, 1.15, 20))
c = re + 1j * im
counts = escape_times(c)
print(c.dtype, counts.dtype, counts.shape)
for row in counts[::2].tolist():
    print("".join(" .:-=+*#%@"[min(n // 4, 9)] for n in row).rstrip())
print("inside", int((counts == 40).sum()))


# Newton's method for z^3 = 1
@jax.jit
def basin(z):
    roots = jnp.exp(2j * jnp.pi * jnp.arange(3) / 3)
    z = lax.fori_loop(0, 30, lambda _, z: z - (z ** 3 - 1) / (3 * z ** 2), z)
    return jnp.argmin(jnp.abs(z[..., None] - roots), axis=-1)


x = jnp.linspace(-1.45, 1.55, 24)
print("basins", jnp.bincount(basin(x[:, None] + 1j * x[None, :]).ravel(), length=3))


# contour integrals by the trapezoidal rule: Cauchy's formula
def contour_integral(f, centre, radius, n=64):
    theta = 2 * jnp.pi * jnp.arange(n) / n
    z = centre + radius * jnp.exp(1j * theta)
    return jnp.sum(f(z) * 1j * (z - centre)) * 2 * jnp.pi / n


derivative = contour_integral(lambda z: jnp.exp(z) / (z - 0.2) ** 2, 0.2, 1.0) / (2j * jnp.pi)
print("Cauchy %.5f" % derivative.real, "exact %.5f" % jnp.exp(0.2))
holomorphic = jax.grad(lambda z: jnp.sin(z) * jnp.exp(z), holomorphic=True)(0.3 + 0.4j)
print("holomorphic derivative %.5f %.5f" % (holomorphic.real, holomorphic.imag))
g = jax.grad(lambda z: jnp.abs(z) ** 2 + z.real * z.imag)(jnp.complex64(1.0 + 2.0j))
print("gradient of a real function", g)

# a quantum spin: unitary evolution and expectation values
sx = jnp.array([[0, 1], [1, 0]], dtype=jnp.complex64)
sz = jnp.array([[1, 0], [0, -1]], dtype=jnp.complex64)
H = 0.7 * sx + 0.4 * sz
energies, states = jnp.linalg.eigh(H)
print("energies", energies)


def evolve(t, psi=jnp.array([1.0 + 0j, 0.0])):
    U = (states * jnp.exp(-1j * energies * t)) @ states.conj().T
    return U @ psi


times = jnp.linspace(0.5, 2.5, 4)
psi = vmap(evolve)(times)
print("norms kept:", bool(jnp.allclose(jnp.linalg.norm(psi, axis=1), 1.0, atol=1e-5)))
print("spin", jnp.einsum("ti,ij,tj->t", psi.conj(), sz, psi).real)
print("phase %.5f" % jnp.angle(psi[0, 0]), "polynomial", jnp.polyval(jnp.array([1, 2j, 3]), 1 + 1j))
