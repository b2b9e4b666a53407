"""Lloyd's algorithm for k-means: the number is the mean squared distance to the nearest centre.

usage: kmeans.py STEPS [small]
"""

import sys

import jax
import jax.numpy as jnp

steps, small = int(sys.argv[1]), "small" in sys.argv[2:]
count, dimensions, clusters = (100, 2, 4) if small else (50_000, 16, 64)


@jax.jit
def lloyd(points, centres):
    squares = jnp.sum(points**2, -1, keepdims=True) + jnp.sum(centres**2, -1)
    distances = squares - 2 * points @ centres.T
    nearest = jnp.argmin(distances, axis=1)
    sums = jax.ops.segment_sum(points, nearest, clusters)
    sizes = jax.ops.segment_sum(jnp.ones(count), nearest, clusters)
    moved = jnp.where(sizes[:, None] > 0, sums / jnp.maximum(sizes, 1)[:, None], centres)
    return moved, jnp.mean(jnp.min(distances, axis=1))


blob_key, member_key, noise_key, start_key = jax.random.split(jax.random.key(0), 4)
blobs = 3 * jax.random.normal(blob_key, (clusters, dimensions))
members = jax.random.randint(member_key, (count,), 0, clusters)
points = blobs[members] + jax.random.normal(noise_key, (count, dimensions))
centres = jax.random.choice(start_key, points, (clusters,), replace=False)
for step in range(steps):
    centres, distance = lloyd(points, centres)
    print(step, float(distance))
