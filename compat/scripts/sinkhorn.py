# tolerance: 5e-5 (differences of potentials are divided by the regularisation)
"""Optimal transport between two clouds by Sinkhorn's iterations, and its gradient flow."""
import jax
import jax.numpy as jnp
from jax import lax, random
from jax.nn import logsumexp

k1, k2 = random.split(random.key(0))
x = random.normal(k1, (30, 2))
y = 0.5 * random.normal(k2, (40, 2)) + jnp.array([2.0, 1.0])


def cost_matrix(x, y):
    return jnp.sum(x ** 2, 1)[:, None] + jnp.sum(y ** 2, 1)[None, :] - 2 * x @ y.T


def sinkhorn(x, y, epsilon=0.1, iterations=100):
    C = cost_matrix(x, y)
    log_a = -jnp.log(len(x)) * jnp.ones(len(x))
    log_b = -jnp.log(len(y)) * jnp.ones(len(y))

    def body(_, fg):
        f, g = fg
        f = -epsilon * logsumexp((g[None, :] - C) / epsilon + log_b[None, :], axis=1)
        g = -epsilon * logsumexp((f[:, None] - C) / epsilon + log_a[:, None], axis=0)
        return f, g

    f, g = lax.fori_loop(0, iterations, body, (jnp.zeros(len(x)), jnp.zeros(len(y))))
    plan = jnp.exp((f[:, None] + g[None, :] - C) / epsilon + log_a[:, None] + log_b[None, :])
    return jnp.sum(plan * C), plan


@jax.jit
def converge(x, y, epsilon):
    """The number of iterations until the marginal is right."""
    C = cost_matrix(x, y)

    def cond(state):
        return (state[2] > 1e-3) & (state[3] < 500)

    def body(state):
        u, v, _, n = state
        K = jnp.exp(-C / epsilon)
        u = (1 / len(x)) / (K @ v)
        v = (1 / len(y)) / (K.T @ u)
        return u, v, jnp.abs(u * (K @ v) - 1 / len(x)).sum(), n + 1

    return lax.while_loop(cond, body, (jnp.ones(len(x)), jnp.ones(len(y)), jnp.inf, 0))[2:]


distance, plan = jax.jit(sinkhorn)(x, y)
print("distance %.6f" % distance, "mass %.5f" % plan.sum())
print("row marginals right:", bool(jnp.allclose(plan.sum(1), 1 / 30, rtol=0.2)),
      "column marginals right:", bool(jnp.allclose(plan.sum(0), 1 / 40, rtol=1e-3)))
error, iterations = converge(x, y, 1.0)
print("iterations", iterations, "error below 1e-3:", bool(error <= 1e-3))
for epsilon in (1.0, 0.3):
    print(f"epsilon {epsilon}: {jax.jit(sinkhorn)(x, y, epsilon)[0]:.6f}")


@jax.jit
def flow(x):
    value, g = jax.value_and_grad(lambda x: sinkhorn(x, y, 0.5, 30)[0])(x)
    return x - 3.0 * g, value


for i in range(8):
    x, value = flow(x)
    if i % 2 == 0:
        print(f"flow {i}: {value:.6f}")
print("mean", x.mean(0), "target", y.mean(0))
