"""k-means with k-means++ seeding, under a while loop."""
import jax
import jax.numpy as jnp
from jax import lax, random

K = 4
key = random.key(5)
key, k_centre, k_points = random.split(key, 3)
true_centres = random.uniform(k_centre, (K, 2), minval=-8.0, maxval=8.0)
points = (true_centres[:, None, :] + 0.6 * random.normal(k_points, (K, 100, 2))).reshape(-1, 2)


def squared_distances(x, centres):
    return jnp.sum((x[:, None, :] - centres[None, :, :]) ** 2, axis=-1)


def seed(key, x, k):
    """Each next centre is drawn with probability proportional to the squared distance."""
    key, first = random.split(key)
    centres = [x[random.randint(first, (), 0, len(x))]]
    for _ in range(k - 1):
        key, draw = random.split(key)
        d = squared_distances(x, jnp.stack(centres)).min(axis=1)
        centres.append(x[random.choice(draw, len(x), p=d / d.sum())])
    return jnp.stack(centres)


@jax.jit
def lloyd(x, centres):
    def assign(centres):
        return jnp.argmin(squared_distances(x, centres), axis=1)

    def cond(state):
        _, moved, i = state
        return (moved > 1e-6) & (i < 100)

    def body(state):
        centres, _, i = state
        labels = assign(centres)
        sums = jnp.zeros_like(centres).at[labels].add(x)
        counts = jnp.bincount(labels, length=K)
        new = jnp.where(counts[:, None] > 0, sums / jnp.maximum(counts, 1)[:, None], centres)
        return new, jnp.abs(new - centres).max(), i + 1

    centres, _, iterations = lax.while_loop(cond, body, (centres, jnp.inf, 0))
    labels = assign(centres)
    inertia = jnp.take_along_axis(squared_distances(x, centres), labels[:, None], 1).sum()
    return centres, labels, inertia, iterations


best = None
for attempt in range(4):
    start = seed(random.fold_in(key, attempt), points, K)
    centres, labels, inertia, iterations = lloyd(points, start)
    print(f"attempt {attempt}: inertia {inertia:.4f} after {iterations} iterations")
    if best is None or inertia < best[2]:
        best = centres, labels, inertia

centres, labels, inertia = best
order = jnp.lexsort((centres[:, 1], centres[:, 0]))
print("centres\n", centres[order])
print("sizes", jnp.bincount(labels, length=K)[order])
nearest = jnp.sqrt(squared_distances(true_centres, centres)).min(axis=1)
print("every true centre is found:", bool(jnp.all(nearest < 0.3)))
