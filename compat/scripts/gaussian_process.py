# tolerance: 1e-4 (the kernel matrix is ill-conditioned, and 61 steps of ascent use it)
# absolute: 1e-5 (the mean crosses zero, the observations are of size 1)
"""Gaussian process regression; hyperparameters by gradient ascent on the marginal likelihood.

Checked to the tolerances above: marginal likelihoods along the ascent, the hyperparameters, and the
means and deviations of predictions.
"""
import jax
import jax.numpy as jnp
from jax import lax, vmap

x_train = jnp.linspace(-3, 3, 30)
y_train = jnp.sin(2 * x_train) + 0.3 * x_train + 0.2 * jnp.cos(17 * x_train)
x_test = jnp.linspace(-4, 4, 9)


def rbf(params, a, b):
    return jnp.exp(2 * params["log_amplitude"]) * jnp.exp(
        -0.5 * (a - b) ** 2 / jnp.exp(2 * params["log_length"]))


def gram(params, xs, ys):
    return vmap(lambda a: vmap(lambda b: rbf(params, a, b))(ys))(xs)


def factor(params):
    noise = jnp.exp(2 * params["log_noise"])
    K = gram(params, x_train, x_train) + noise * jnp.eye(len(x_train))
    return jnp.linalg.cholesky(K)


def solve_lower(L, b, transpose=False):
    return lax.linalg.triangular_solve(L, b, left_side=True, lower=True, transpose_a=transpose)


def log_marginal_likelihood(params):
    L = factor(params)
    alpha = solve_lower(L, solve_lower(L, y_train[:, None]), transpose=True)[:, 0]
    n = len(x_train)
    return (-0.5 * y_train @ alpha - jnp.sum(jnp.log(jnp.diag(L)))
            - 0.5 * n * jnp.log(2 * jnp.pi))


@jax.jit
def ascend(params):
    value, g = jax.value_and_grad(log_marginal_likelihood)(params)
    return {k: params[k] + 0.01 * jnp.clip(g[k], -10, 10) for k in params}, value


params = {"log_length": jnp.array(0.0), "log_amplitude": jnp.array(0.0),
          "log_noise": jnp.array(-1.0)}
for i in range(61):
    params, value = ascend(params)
    if i % 20 == 0:
        print(f"iteration {i}: log marginal likelihood {value:.5f}")
for name, value in sorted(params.items()):
    print(name, f"{value:.5f}")

L = factor(params)
k_star = gram(params, x_train, x_test)
alpha = solve_lower(L, solve_lower(L, y_train[:, None]), transpose=True)
mean = (k_star.T @ alpha).ravel()
v = solve_lower(L, k_star)
variance = jnp.exp(2 * params["log_amplitude"]) - jnp.sum(v ** 2, axis=0)
print("mean", mean)
print("standard deviation", jnp.sqrt(variance))
