# tolerance: 5e-4 (condition number 400, and a coefficient of 0.1 beside ones of size 2)
"""Bayesian linear regression: posterior, evidence, automatic relevance, Gibbs sampling."""
import jax
import jax.numpy as jnp
from jax import lax, random

k_x, k_noise, k_gibbs = random.split(random.PRNGKey(17), 3)
N, D = 60, 4
x = jnp.sort(random.uniform(k_x, (N,), minval=-1.0, maxval=1.0))
y = 0.5 - 1.2 * x + 2.0 * x ** 3 + 0.15 * random.normal(k_noise, (N,))
Phi = jnp.vander(x, D + 1, increasing=True)


def posterior(Phi, y, alpha, beta):
    precision = alpha * jnp.eye(Phi.shape[1]) + beta * Phi.T @ Phi
    covariance = jnp.linalg.inv(precision)
    return beta * covariance @ Phi.T @ y, covariance


def log_evidence(Phi, y, alpha, beta):
    n, m = Phi.shape
    mean, _ = posterior(Phi, y, alpha, beta)
    A = alpha * jnp.eye(m) + beta * Phi.T @ Phi
    energy = beta / 2 * jnp.sum((y - Phi @ mean) ** 2) + alpha / 2 * mean @ mean
    return (m / 2 * jnp.log(alpha) + n / 2 * jnp.log(beta) - energy
            - 0.5 * jnp.linalg.slogdet(A)[1] - n / 2 * jnp.log(2 * jnp.pi))


mean, covariance = jax.jit(posterior)(Phi, y, 0.1, 40.0)
print("posterior mean", mean)
print("posterior deviation", jnp.sqrt(jnp.diagonal(covariance)))
for degree in range(1, 5):
    print(f"degree {degree}: evidence {log_evidence(Phi[:, :degree + 1], y, 0.1, 40.0):.4f}")


@jax.jit
def maximise_evidence():
    """MacKay's fixed point."""
    eigenvalues = jnp.linalg.eigvalsh(Phi.T @ Phi)

    def body(state):
        alpha, beta, _, i = state
        m, _ = posterior(Phi, y, alpha, beta)
        scaled = beta * jnp.maximum(eigenvalues, 0)
        gamma = jnp.sum(scaled / (alpha + scaled))
        new_alpha = gamma / (m @ m)
        new_beta = (N - gamma) / jnp.sum((y - Phi @ m) ** 2)
        return new_alpha, new_beta, jnp.abs(new_alpha - alpha) / alpha, i + 1

    return lax.while_loop(lambda s: (s[2] > 1e-3) & (s[3] < 100), body,
                          (jnp.float32(1.0), jnp.float32(1.0), jnp.float32(1.0), 0))


alpha, beta, change, iterations = maximise_evidence()
print("alpha %.5f noise %.5f" % (alpha, 1 / jnp.sqrt(beta)), "iterations", iterations)
gradient = jax.grad(log_evidence, argnums=3)(Phi, y, alpha, beta)
print("evidence is flat there:", bool(jnp.abs(gradient * beta) < 0.1))

grid = jnp.linspace(-1.5, 1.5, 7)
basis = jnp.vander(grid, D + 1, increasing=True)
mean, covariance = posterior(Phi, y, alpha, beta)
predictive = jnp.sqrt(1 / beta + jnp.einsum("ni,ij,nj->n", basis, covariance, basis))
print("predictive deviation", predictive)


@jax.jit
def gibbs(key):
    def step(state, key):
        weights, beta = state
        k1, k2 = random.split(key)
        m, S = posterior(Phi, y, 0.1, beta)
        weights = m + jnp.linalg.cholesky(S) @ random.normal(k1, m.shape)
        rate = 0.01 + 0.5 * jnp.sum((y - Phi @ weights) ** 2)
        beta = random.gamma(k2, 1.0 + N / 2) / rate
        return (weights, beta), (weights, beta)
    return lax.scan(step, (jnp.zeros(D + 1), 10.0), random.split(key, 200))[1]


weights, betas = gibbs(k_gibbs)
print("Gibbs", weights[50:].mean(axis=0)[:2], "noise %.5f" % (1 / jnp.sqrt(betas[50:])).mean())
