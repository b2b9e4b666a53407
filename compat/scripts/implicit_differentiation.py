"""Derivatives of solutions: custom_jvp, fixed points, custom_root, a stable log1p(exp)."""
import jax
import jax.numpy as jnp
from jax import lax


@jax.custom_jvp
def log1pexp(x):
    return jnp.log(1.0 + jnp.exp(x))


@log1pexp.defjvp
def log1pexp_jvp(primals, tangents):
    (x,), (t,) = primals, tangents
    return log1pexp(x), (1 - 1 / (1 + jnp.exp(x))) * t


print("log1pexp", jax.vmap(jax.grad(log1pexp))(jnp.array([-5.0, 0.0, 5.0, 100.0])))


# Kepler's equation E - e sin E = M by Newton; its derivative by the implicit function theorem
@jax.custom_jvp
def eccentric_anomaly(M, e):
    def body(state):
        E, _, i = state
        step = (E - e * jnp.sin(E) - M) / (1 - e * jnp.cos(E))
        return E - step, jnp.abs(step), i + 1
    return lax.while_loop(lambda s: (s[1] > 1e-6) & (s[2] < 50), body, (M, jnp.inf, 0))[0]


@eccentric_anomaly.defjvp
def _(primals, tangents):
    M, e = primals
    dM, de = tangents
    E = eccentric_anomaly(M, e)
    return E, (dM + jnp.sin(E) * de) / (1 - e * jnp.cos(E))


M = jnp.linspace(0.2, 3.0, 5)
E = jax.jit(jax.vmap(eccentric_anomaly, (0, None)))(M, 0.3)
print("E", E)
print("dE/dM", jax.vmap(jax.grad(eccentric_anomaly), (0, None))(M, 0.3))
print("dE/de", jax.jacfwd(lambda e: jax.vmap(eccentric_anomaly, (0, None))(M, e))(0.3))
numeric = (eccentric_anomaly(1.0, 0.31) - eccentric_anomaly(1.0, 0.29)) / 0.02
print("finite difference agrees:",
      bool(abs(numeric - jax.grad(eccentric_anomaly, 1)(1.0, 0.3)) < 1e-3))


# square roots of many numbers by custom_root and bisection
def bisect(f, x0):
    def body(_, interval):
        low, high = interval
        middle = 0.5 * (low + high)
        return jnp.where(f(middle) > 0, low, middle), jnp.where(f(middle) > 0, middle, high)
    low, high = lax.fori_loop(0, 40, body, (jnp.zeros_like(x0), x0))
    return 0.5 * (low + high)


def cube_root(a):
    return lax.custom_root(lambda x: x ** 3 - a, jnp.maximum(a, 1.0), bisect,
                           lambda g, y: y / g(jnp.ones_like(y)))


print("cube roots", jax.vmap(cube_root)(jnp.array([2.0, 8.0, 30.0])))
print("derivatives", jax.vmap(jax.grad(cube_root))(jnp.array([2.0, 8.0, 30.0])))


# a deep equilibrium layer: z = tanh(W z + x), its gradient by solving the adjoint system
def equilibrium(W, x):
    def fixed_point(f, z):
        return lax.fori_loop(0, 60, lambda _, z: f(z), z)

    z = lax.stop_gradient(fixed_point(lambda z: jnp.tanh(W @ z + x), jnp.zeros_like(x)))
    residual = lambda z, W, x: jnp.tanh(W @ z + x)
    _, pushforward = jax.linearize(lambda W, x: residual(z, W, x), W, x)
    J = jax.jacobian(residual)(z, W, x)
    value = residual(z, W, x)
    # One Newton step carries the derivative: z + (I - J)^-1 (f(z) - z).
    return z + jnp.linalg.solve(jnp.eye(len(x)) - lax.stop_gradient(J), value - z), pushforward


W = 0.3 * jnp.array([[0.5, -1.0, 0.2], [1.0, 0.3, -0.4], [0.1, 0.6, -0.7]])
x = jnp.array([0.5, -0.2, 1.0])
z, pushforward = equilibrium(W, x)
print("equilibrium", z, "residual is small:", bool(jnp.abs(jnp.tanh(W @ z + x) - z).max() < 1e-5))
print("gradient", jax.grad(lambda x: equilibrium(W, x)[0].sum())(x))
print("pushforward", pushforward(jnp.zeros_like(W), jnp.ones(3)))
unrolled = lambda x: lax.scan(
    lambda z, _: (jnp.tanh(W @ z + x), None), jnp.zeros(3), None, length=60)[0].sum()
print("unrolled agrees:", bool(jnp.allclose(
    jax.grad(unrolled)(x), jax.grad(lambda x: equilibrium(W, x)[0].sum())(x), atol=1e-5)))
