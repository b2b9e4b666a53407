"""Batches of any size: traced once, compiled once.

    python examples/dynamic_batches.py

Kernels take sizes as arguments, so another size compiles nothing anyway. With `dynamic_dims` a
function is not even traced again: one program serves all sizes, and its types say which dimension
is free.
"""

import maxjax as jax
import maxjax.numpy as jnp

traces = []


def embed(weights, batch):
    """Normalized rows, and how alike they are."""
    traces.append(batch.shape)      # runs when the function is traced, and not again
    rows = jnp.tanh(batch @ weights)
    rows = rows / jnp.linalg.norm(rows, axis=1, keepdims=True)
    return rows @ rows.T


def main():
    weights = jax.random.normal(jax.random.key(0), (16, 8))
    sizes = (3, 32, 7, 100, 64, 11)

    once = jax.jit(embed, dynamic_dims={1: {0: "batch"}})
    for size in sizes:
        batch = jax.random.normal(jax.random.key(size), (size, 16))
        alike = once(weights, batch)
        assert alike.shape == (size, size)
        assert jnp.allclose(jnp.diag(alike), 1.0, atol=1e-5)
    print(f"dynamic: {len(sizes)} sizes, {len(traces)} trace, of shape {traces[0]}")

    traces.clear()
    each = jax.jit(embed)
    for size in sizes:
        each(weights, jax.random.normal(jax.random.key(size), (size, 16)))
    print(f"plain jit: {len(sizes)} sizes, {len(traces)} traces")
    print(jax.debug.explain(once, weights, batch))


if __name__ == "__main__":
    main()
