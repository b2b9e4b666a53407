# tolerance: 5e-5 (small eigenvalues beside large ones)
# absolute: 1.5e-6 (one unit of the last digit that is printed)
"""Spectral clustering of two rings by the graph Laplacian's eigenvectors."""
import jax
import jax.numpy as jnp
from jax import random

key = random.key(12)
k_angle, k_noise = random.split(key)
N = 60
angle = random.uniform(k_angle, (2 * N,), maxval=2 * jnp.pi)
radius = jnp.where(jnp.arange(2 * N) < N, 1.0, 3.0) + 0.1 * random.normal(k_noise, (2 * N,))
points = radius[:, None] * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)


@jax.jit
def affinity(x, scale=0.6):
    squared = jnp.sum((x[:, None] - x[None]) ** 2, axis=-1)
    W = jnp.exp(-squared / (2 * scale ** 2))
    return W * (1 - jnp.eye(len(x)))


def neighbour_graph(x, k):
    squared = jnp.sum((x[:, None] - x[None]) ** 2, axis=-1)
    _, nearest = jax.lax.top_k(-squared, k + 1)
    A = jnp.zeros_like(squared).at[jnp.arange(len(x))[:, None], nearest].set(1.0)
    return jnp.maximum(A, A.T) - jnp.eye(len(x))


def laplacian(W):
    d = W.sum(axis=1)
    root = 1 / jnp.sqrt(d)
    return jnp.eye(len(W)) - root[:, None] * W * root[None, :]


W = affinity(points)
L = laplacian(W)
values, vectors = jnp.linalg.eigh(L)
print("eigenvalues", values[1:5], "smallest is zero:", bool(jnp.abs(values[0]) < 1e-4))
print("trace %.4f" % values.sum())

embedding = vectors[:, :2]
embedding = embedding / jnp.linalg.norm(embedding, axis=1, keepdims=True)


@jax.jit
def two_means(x):
    far = jnp.argmax(jnp.sum((x - x[0]) ** 2, axis=1))
    centres = x[jnp.array([0, 1])].at[1].set(x[far])

    def body(_, centres):
        labels = jnp.argmin(jnp.linalg.norm(x[:, None] - centres[None], axis=-1), axis=1)
        one_hot = jax.nn.one_hot(labels, 2)
        return (one_hot.T @ x) / one_hot.sum(axis=0)[:, None]

    centres = jax.lax.fori_loop(0, 20, body, centres)
    return jnp.argmin(jnp.linalg.norm(x[:, None] - centres[None], axis=-1), axis=1)


labels = two_means(embedding)
print("first ring", labels[:N].sum(), "second ring", labels[N:].sum())
cut = jnp.sum(W * (labels[:, None] != labels[None, :])) / 2
print("cut %.6f of %.4f" % (cut, W.sum() / 2))
plain = two_means(points)
agreement = jnp.mean(plain == labels)
print("plain two-means agrees on", float(jnp.maximum(agreement, 1 - agreement)))

A = neighbour_graph(points, 6)
degrees = A.sum(axis=1).astype(jnp.int32)
print("degrees", jnp.unique(degrees), "edges", int(A.sum()) // 2)
reachable = jnp.linalg.matrix_power(jnp.clip(A + jnp.eye(2 * N), 0, 1) / 10, 16) > 0
print("reachable from the first point", int(reachable[0].sum()))

# How the second eigenvalue depends on the kernel's width: a derivative through eigh.
second = lambda scale: jnp.linalg.eigvalsh(laplacian(affinity(points, scale)))[2]
value, slope = jax.value_and_grad(second)(0.6)
print("third eigenvalue %.6f slope %.5f" % (value, slope))
