"""Logistic regression by Newton's method, with the Hessian from automatic differentiation."""
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.RandomState(42)
n, d = 300, 4
features = rng.randn(n, d).astype(np.float32)
weights = np.array([1.5, -2.0, 0.5, 0.0], dtype=np.float32)
labels = (rng.rand(n) < 1 / (1 + np.exp(-(features @ weights - 0.3)))).astype(np.float32)

X = jnp.concatenate([jnp.asarray(features), jnp.ones((n, 1))], axis=1)
y = jnp.asarray(labels)


def nll(theta, l2=1e-2):
    logits = X @ theta
    likelihood = y * jax.nn.log_sigmoid(logits) + (1 - y) * jax.nn.log_sigmoid(-logits)
    return -jnp.mean(likelihood) + 0.5 * l2 * jnp.sum(theta ** 2)


@jax.jit
def newton_step(theta):
    value, gradient = jax.value_and_grad(nll)(theta)
    hessian = jax.hessian(nll)(theta)
    return theta - jnp.linalg.solve(hessian, gradient), value, jnp.linalg.norm(gradient)


theta = jnp.zeros(d + 1)
for i in range(8):
    theta, value, norm = newton_step(theta)
    converged = bool(norm < 1e-4)
    print(f"iteration {i}: loss {value:.6f}, converged {converged}")
    if converged:
        break

print("theta", theta)
probabilities = jax.nn.sigmoid(X @ theta)
accuracy = jnp.mean((probabilities > 0.5) == (y > 0.5))
print("accuracy", float(accuracy))
print("log loss", float(nll(theta, l2=0.0)))
eigenvalues = jnp.linalg.eigvalsh(jax.hessian(nll)(theta))
print("eigenvalues of the Hessian", eigenvalues)
confusion = jnp.zeros((2, 2), jnp.int32).at[
    y.astype(int), (probabilities > 0.5).astype(int)].add(1)
print(confusion)
