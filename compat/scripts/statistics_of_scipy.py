# tolerance: 2e-5 (special functions are approximated)
"""Densities, special functions and linear algebra of jax.scipy; a maximum likelihood fit."""
import jax
import jax.numpy as jnp
import jax.scipy as jsp
from jax.scipy import stats
from jax.scipy.special import gammaln, logit

data = jax.random.gamma(jax.random.key(0), 3.0, (400,)) / 2.0
print("mean", data.mean(), "log density", stats.gamma.logpdf(data, 3.0, scale=0.5).mean())


def nll(log_params):
    shape, rate = jnp.exp(log_params)
    terms = shape * jnp.log(rate) - gammaln(shape) + (shape - 1) * jnp.log(data) - rate * data
    return -terms.mean()


@jax.jit
def newton(p):
    return p - jnp.linalg.solve(jax.hessian(nll)(p), jax.grad(nll)(p))


p = jnp.log(jnp.array([2.0, 1.5]))
for _ in range(6):
    p = newton(p)
print("shape and rate", jnp.exp(p), "%.6f" % nll(p))
x = jnp.linspace(-2, 2, 5)
print("normal", stats.norm.cdf(x), stats.norm.pdf(x, 0.5, 2.0))
print("beta", stats.beta.logpdf(jnp.array([0.2, 0.5]), 2.0, 3.0))
print("logit", logit(jnp.array([0.1, 0.6])))
A = jnp.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]])
b = jnp.array([1.0, 2.0, 3.0])
print("cho_solve", jsp.linalg.cho_solve(jsp.linalg.cho_factor(A), b))
print("expm", jsp.linalg.expm(0.1 * A)[0])
print("solve_triangular", jsp.linalg.solve_triangular(jnp.tril(A), b, lower=True))
print("cg", jsp.sparse.linalg.cg(lambda v: A @ v, b)[0])
