"""Gaussian process regression: gradient ascent on the log marginal likelihood, the number.

usage: gp_regression.py STEPS [small]
"""

import sys

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve

steps, small = int(sys.argv[1]), "small" in sys.argv[2:]
points, dimensions = (20, 2) if small else (600, 4)

input_key, noise_key = jax.random.split(jax.random.key(0))
inputs = jax.random.uniform(input_key, (points, dimensions), minval=-2.0, maxval=2.0)
noise = 0.1 * jax.random.normal(noise_key, (points,))
targets = jnp.sin(2 * inputs[:, 0]) + jnp.cos(inputs[:, 1]) + noise


def kernel(hyperparameters, left, right):
    scales = jnp.exp(hyperparameters["log_scales"])
    offsets = (left[:, None, :] - right[None, :, :]) / scales
    return jnp.exp(2 * hyperparameters["log_amplitude"] - 0.5 * jnp.sum(offsets**2, -1))


def log_likelihood(hyperparameters):
    variance = jnp.exp(2 * hyperparameters["log_noise"]) + 1e-4
    covariance = kernel(hyperparameters, inputs, inputs) + variance * jnp.eye(points)
    factor = jnp.linalg.cholesky(covariance)
    weights = cho_solve((factor, True), targets)
    log_determinant = 2 * jnp.sum(jnp.log(jnp.diag(factor)))
    return -0.5 * (targets @ weights + log_determinant + points * jnp.log(2 * jnp.pi)) / points


@jax.jit
def ascend(hyperparameters):
    value, gradients = jax.value_and_grad(log_likelihood)(hyperparameters)
    return jax.tree.map(lambda h, g: h + 0.05 * g, hyperparameters, gradients), value


hyperparameters = {
    "log_amplitude": jnp.zeros(()),
    "log_noise": jnp.zeros(()),
    "log_scales": jnp.zeros(dimensions),
}
for step in range(steps):
    hyperparameters, value = ascend(hyperparameters)
    print(step, float(value))
