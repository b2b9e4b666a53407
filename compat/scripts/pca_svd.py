# absolute: 1.1e-5 (numbers that are printed with five digits may round either way)
"""Principal components by the singular value decomposition, and by power iteration."""
import jax
import jax.numpy as jnp
import numpy as np

rng = np.random.default_rng(10)
latent = rng.normal(size=(150, 3)) * np.array([5.0, 2.0, 1.0])
mixing = np.linalg.qr(rng.normal(size=(8, 3)))[0]
X = jnp.asarray(latent @ mixing.T + 0.1 * rng.normal(size=(150, 8)) + 3.0, dtype=jnp.float32)
print(X.dtype, X.shape)

mean = X.mean(axis=0)
centred = X - mean
U, S, Vt = jnp.linalg.svd(centred, full_matrices=False)
print("singular values", S)
explained = S ** 2 / jnp.sum(S ** 2)
print("explained by three", jnp.cumsum(explained)[2])

# The sign of a component is arbitrary: the largest entry is made positive.
signs = jnp.sign(jnp.take_along_axis(Vt, jnp.argmax(jnp.abs(Vt), axis=1)[:, None], axis=1))
components = (Vt * signs)[:3]
for i, row in enumerate(components):
    print(f"component {i}:", " ".join(f"{v:.5f}" for v in row.tolist()))

scores = centred @ components.T
print("covariance of the scores is diagonal:",
      bool(jnp.abs(jnp.cov(scores.T) - jnp.diag(scores.var(0, ddof=1))).max() < 1e-4))
restored = scores @ components + mean
print("reconstruction error %.6f" % jnp.sqrt(jnp.mean((restored - X) ** 2)))


@jax.jit
def power_iteration(A, v):
    def body(v, _):
        w = A @ v
        return w / jnp.linalg.norm(w), jnp.vdot(v, w)
    return jax.lax.scan(body, v, None, length=50)


C = centred.T @ centred / (len(X) - 1)
v, history = power_iteration(C, jnp.ones(8) / jnp.sqrt(8))
print("largest eigenvalue", history[-1], "by the SVD", S[0] ** 2 / (len(X) - 1))
print("same direction:", bool(jnp.abs(jnp.dot(v, components[0])) > 0.9999))
w, Q = jnp.linalg.eigh(C)
print("eigenvalues", w[::-1][:3], "orthogonal:", bool(jnp.allclose(Q.T @ Q, jnp.eye(8), atol=1e-5)))
print("rank of the truth", jnp.linalg.matrix_rank(centred, tol=3.0))
print("pinv", bool(jnp.allclose(jnp.linalg.pinv(centred) @ centred, jnp.eye(8), atol=1e-3)))
