# tolerance: 1e-7 (adaptive steps and training amplify the rounding)
"""A stiff reaction by Rosenbrock steps that adapt, with an adjoint, and a neural ODE that is trained.

Both in double precision, because steps that adapt amplify what single precision rounds. Checked
to a relative 1e-7, with key 0: solutions and a sensitivity, losses of training and gradient
norms; numbers of steps that were taken and rejected, exactly.
"""
import functools

import jax
import jax.numpy as jnp
from jax import lax, random
from jax.experimental.ode import odeint

jax.config.update("jax_enable_x64", True)


def robertson(y, _, rates):
    a, b, c = rates
    r1, r2, r3 = a * y[0], b * y[1] * y[1], c * y[1] * y[2]
    return jnp.array([-r1 + r3, r1 - r2 - r3, r2])


def rosenbrock(f, y, t0, t1, rates, tolerance=1e-5, most=400):
    """Two stages of order two with an estimate of order one; the Jacobian by forward derivatives."""
    gamma = 1 + 0.5**0.5

    def proceeds(state):
        y, t, h, n, rejected = state
        return (t < t1) & (n < most)

    def body(state):
        y, t, h, n, rejected = state
        h = jnp.minimum(h, t1 - t)
        jacobian = jax.jacfwd(f)(y, t, rates)
        lu = jax.scipy.linalg.lu_factor(jnp.eye(3) - gamma * h * jacobian)
        k1 = jax.scipy.linalg.lu_solve(lu, f(y, t, rates))
        k2 = jax.scipy.linalg.lu_solve(lu, f(y + h * k1, t + h, rates) - 2 * k1)
        new = y + 1.5 * h * k1 + 0.5 * h * k2
        error = jnp.linalg.norm(0.5 * h * (k1 + k2) / (1e-7 + tolerance * jnp.maximum(jnp.abs(y), jnp.abs(new))))
        error = jnp.maximum(error / 3**0.5, 1e-8)
        accepted = error < 1
        factor = jnp.clip(0.9 * error**-0.5, 0.2, 5.0)
        return (jnp.where(accepted, new, y), jnp.where(accepted, t + h, t), h * factor, n + 1,
                rejected + ~accepted)
    return lax.while_loop(proceeds, body, (y, t0, 1e-4, 0, 0))


solve = jax.jit(functools.partial(rosenbrock, robertson))
rates = jnp.array([0.04, 3e7, 1e4])
for end in (0.4, 4.0, 40.0):
    y, t, _, n, rejected = solve(jnp.array([1.0, 0.0, 0.0]), 0.0, end, rates)
    print("stiff", end, y.tolist(), "steps", int(n), "rejected", int(rejected), "sum", float(y.sum()))
tangent = jax.jvp(lambda r: solve(jnp.array([1.0, 0.0, 0.0]), 0.0, 0.4, r)[0], (rates,), (rates,))[1]
print("sensitivity", tangent.tolist())


def field(y, t, params):
    w1, b1, w2 = params
    return jnp.tanh((y**3) @ w1 + b1) @ w2


TIMES = jnp.linspace(0.0, 4.0, 20)
spiral = jnp.array([[-0.1, 2.0], [-2.0, -0.1]])
truth = odeint(lambda y, t: (y**3) @ spiral, jnp.array([2.0, 0.0]), TIMES, rtol=1e-6, atol=1e-6)
print("truth", truth[::6].tolist())
k1, k2 = random.split(random.key(0))
params = (0.1 * random.normal(k1, (2, 24)), jnp.zeros(24), 0.1 * random.normal(k2, (24, 2)))


@jax.jit
def update(params, m, v, t):
    def loss(params):
        path = odeint(field, truth[0], TIMES[:8], params, rtol=1e-4, atol=1e-5)
        return jnp.abs(path - truth[:8]).mean()
    value, grads = jax.value_and_grad(loss)(params)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, grads)
    return jax.tree.map(lambda p, m, v: p - 0.01 * m / (1 - 0.9**t) / (
        jnp.sqrt(v / (1 - 0.99**t)) + 1e-7), params, m, v), m, v, value


m = v = jax.tree.map(jnp.zeros_like, params)
for n in range(1, 9):
    params, m, v, value = update(params, m, v, jnp.float64(n))
    if n % 2 == 0:
        print("neural", n, float(value))


def fixed(params, y):
    """Runge-Kutta with given steps, whose derivative is a recomputed scan's."""
    h = 0.05

    @jax.checkpoint
    def step(y, _):
        k1 = field(y, 0.0, params)
        k2 = field(y + h / 2 * k1, 0.0, params)
        k3 = field(y + h / 2 * k2, 0.0, params)
        k4 = field(y + h * k3, 0.0, params)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), y
    return lax.scan(step, y, None, 40)


grads = jax.jit(jax.grad(lambda p: jnp.sum(fixed(p, truth[0])[0] ** 2)))(params)
print("gradient", [float(jnp.linalg.norm(g)) for g in grads])
many = jax.vmap(lambda y: fixed(params, y)[0])(truth[:4])
print("many", many.tolist())
