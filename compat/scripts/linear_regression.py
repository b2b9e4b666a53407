"""Linear regression three ways: normal equations, least squares, gradient descent."""
import jax
import jax.numpy as jnp
from jax import lax, random

key = random.PRNGKey(0)
k_x, k_w, k_noise = random.split(key, 3)
n, d = 200, 5
X = random.normal(k_x, (n, d))
w_true = random.uniform(k_w, (d,), minval=-2.0, maxval=2.0)
b_true = 0.7
y = X @ w_true + b_true + 0.1 * random.normal(k_noise, (n,))

# 1. normal equations
A = jnp.hstack([X, jnp.ones((n, 1))])
w_normal = jnp.linalg.solve(A.T @ A, A.T @ y)
print("normal equations", w_normal)

# 2. least squares through the SVD
w_lstsq, residuals, rank, sv = jnp.linalg.lstsq(A, y)
print("lstsq", w_lstsq, "residuals", residuals, "rank", rank)
print("singular values", sv)


# 3. gradient descent
def loss(params, x, y):
    w, b = params["w"], params["b"]
    return jnp.mean((x @ w + b - y) ** 2)


@jax.jit
def fit(params):
    def body(_, p):
        g = jax.grad(loss)(p, X, y)
        return jax.tree_util.tree_map(lambda a, b: a - 0.1 * b, p, g)
    return lax.fori_loop(0, 200, body, params)


params = fit({"w": jnp.zeros(d), "b": jnp.array(0.0)})
print("gradient descent", params["w"], params["b"])
print("final loss %.6f" % loss(params, X, y))

prediction = A @ w_normal
ss_res = jnp.sum((y - prediction) ** 2)
ss_tot = jnp.sum((y - y.mean()) ** 2)
print(f"R2 = {1 - ss_res / ss_tot:.6f}")
covariance = ss_res / (n - d - 1) * jnp.linalg.inv(A.T @ A)
print("standard errors", jnp.sqrt(jnp.diag(covariance)))
