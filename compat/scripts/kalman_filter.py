"""A Kalman filter and smoother track a moving point; the noise is fitted by its likelihood.

Checked to a relative 1e-5, with key 4: the path, the likelihood, errors of filter and smoother, the last
covariance, and the noise that is fitted.
"""
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax, random


class Model(NamedTuple):
    F: jax.Array
    Q: jax.Array
    H: jax.Array
    R: jax.Array


def make_model(q, r, dt=0.1):
    eye, zero = jnp.eye(2), jnp.zeros((2, 2))
    F = jnp.block([[eye, dt * eye], [zero, eye]])
    G = jnp.concatenate([0.5 * dt ** 2 * eye, dt * eye])
    return Model(F, q * G @ G.T + 1e-6 * jnp.eye(4), jnp.hstack([eye, zero]), r * eye)


def simulate(key, model, n):
    def step(x, key):
        k1, k2 = random.split(key)
        x = model.F @ x + jnp.linalg.cholesky(model.Q) @ random.normal(k1, (4,))
        z = model.H @ x + jnp.sqrt(model.R) @ random.normal(k2, (2,))
        return x, (x, z)
    return lax.scan(step, jnp.array([0.0, 0.0, 1.0, 0.5]), random.split(key, n))[1]


def kalman_filter(model, observations):
    F, Q, H, R = model

    def step(carry, z):
        m, P, total = carry
        m, P = F @ m, F @ P @ F.T + Q
        S = H @ P @ H.T + R
        K = jnp.linalg.solve(S, H @ P).T
        innovation = z - H @ m
        predicted = (m, P)
        m = m + K @ innovation
        P = P - K @ S @ K.T
        _, logdet = jnp.linalg.slogdet(2 * jnp.pi * S)
        total = total - 0.5 * (innovation @ jnp.linalg.solve(S, innovation) + logdet)
        return (m, P, total), (m, P, predicted)

    (_, _, log_likelihood), history = lax.scan(
        step, (jnp.zeros(4), 10.0 * jnp.eye(4), 0.0), observations)
    return log_likelihood, history


def smoother(model, history):
    means, covariances, (predicted_means, predicted_covariances) = history

    def step(carry, inputs):
        m, P, m_next, P_next = inputs
        C = jnp.linalg.solve(P_next, model.F @ P).T
        ms = m + C @ (carry[0] - m_next)
        Ps = P + C @ (carry[1] - P_next) @ C.T
        return (ms, Ps), ms

    last = means[-1], covariances[-1]
    inputs = (means[:-1], covariances[:-1], predicted_means[1:], predicted_covariances[1:])
    return lax.scan(step, last, inputs, reverse=True)[1]


true_model = make_model(2.0, 0.25)
states, observations = simulate(random.key(4), true_model, 80)
print("path", states[-1])
log_likelihood, history = jax.jit(kalman_filter)(true_model, observations)
smoothed = jax.jit(smoother)(true_model, history)
rms = lambda a, b: float(jnp.sqrt(jnp.mean((a - b) ** 2)))
print("log likelihood", log_likelihood)
print("observed %.5f filtered %.5f smoothed %.5f" % (
    rms(observations, states[:, :2]), rms(history[0][:, :2], states[:, :2]),
    rms(smoothed[:, :2], states[:-1, :2])))
print("last covariance", jnp.diag(history[1][-1]))


@jax.jit
def objective(log_params):
    return kalman_filter(make_model(*jnp.exp(log_params)), observations)[0] / len(observations)


params = jnp.log(jnp.array([1.0, 1.0]))
for i in range(20):
    value, gradient = jax.value_and_grad(objective)(params)
    params = params + 0.5 * gradient
print("fitted q and r", jnp.exp(params), "likelihood %.6f" % objective(params))
