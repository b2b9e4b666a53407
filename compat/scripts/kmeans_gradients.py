# tolerance: 1e-4 (sixty steps amplify the rounding)
# absolute: 1e-5 (gradients that vanish)
"""k-means as the minimum of a loss: its gradient, Newton's step, minibatches, soft assignment.

Lloyd's step is Newton's, since the Hessian is diagonal with the sizes of the clusters. Checked with
keys 0 to 3, to a relative 1e-4: losses of every method, the Hessian, the centres, and how they move
with the points, once through all steps and once by the implicit function theorem. Whole numbers (sizes,
labels that agree) must be the same.
"""
import functools

import jax
import jax.numpy as jnp
from jax import lax, random

K, DIMENSIONS, POINTS = 5, 3, 400
k_true, k_which, k_noise = random.split(random.key(0), 3)
true = random.uniform(k_true, (K, DIMENSIONS), minval=-5, maxval=5)
points = true[random.randint(k_which, (POINTS,), 0, K)] + 0.7 * random.normal(k_noise, (POINTS, DIMENSIONS))


def distances(centres, points):
    return jnp.sum((points[:, None] - centres) ** 2, -1)


def hard(centres, points):
    """The gradient goes through the least distance, as the assignment is constant nearly everywhere."""
    return 0.5 * jnp.min(distances(centres, points), 1).mean()


def soft(centres, points, temperature):
    scaled = -distances(centres, points) / (2 * temperature)
    return -temperature * (jax.nn.logsumexp(scaled, 1) - jnp.log(K)).mean()


@jax.jit
def lloyd(centres, points):
    labels = jnp.argmin(distances(centres, points), 1)
    sizes = jax.ops.segment_sum(jnp.ones(len(points)), labels, K)
    sums = jax.ops.segment_sum(points, labels, K)
    return jnp.where(sizes[:, None] > 0, sums / jnp.maximum(sizes, 1)[:, None], centres)


@jax.jit
def newton(centres, points):
    slope = jax.grad(hard)(centres, points).ravel()
    curvature = jax.hessian(hard)(centres, points).reshape(slope.size, slope.size)
    return centres - jnp.linalg.solve(curvature, slope).reshape(centres.shape)


@functools.partial(jax.jit, static_argnames=("steps", "size"))
def minibatches(key, centres, points, steps, size):
    """Each centre's rate falls with the number of points it has had."""
    def step(carry, key):
        centres, counts = carry
        batch = random.choice(key, points, (size,), replace=False)
        loss, slope = jax.value_and_grad(hard)(centres, batch)
        here = jnp.zeros(K, int).at[jnp.argmin(distances(centres, batch), 1)].add(1)
        counts = counts + here
        return (centres - size * slope / jnp.maximum(counts, 1)[:, None], counts), loss
    return lax.scan(step, (centres, jnp.zeros(K, int)), random.split(key, steps))


@jax.jit
def annealed(centres, points):
    """Gradient descent with momentum on the soft loss while it cools."""
    def step(carry, temperature):
        centres, velocity = carry
        loss, slope = jax.value_and_grad(soft)(centres, points, temperature)
        velocity = 0.8 * velocity - 0.5 * slope
        return (centres + velocity, velocity), loss
    cooling = jnp.geomspace(8.0, 0.05, 60)
    (centres, _), losses = lax.scan(step, (centres, jnp.zeros_like(centres)), cooling)
    return centres, losses


def farthest(points):
    """Seeds: each next one is the point farthest from those before."""
    def body(n, centres):
        d = jnp.where(jnp.arange(K) < n, distances(centres, points), jnp.inf).min(1)
        return centres.at[n].set(points[jnp.argmax(d)])
    return lax.fori_loop(1, K, body, jnp.zeros((K, DIMENSIONS)).at[0].set(points[0]))


start = jax.jit(farthest)(points)
print("seeds", start[:, 0].tolist(), "loss", float(hard(start, points)))
one, two = lloyd(start, points), newton(start, points)
print("Lloyd", one[0].tolist(), "is Newton", bool(jnp.allclose(one, two, atol=1e-4)))
curvature = jax.hessian(hard)(start, points).reshape(K * DIMENSIONS, -1)
print("Hessian", (jnp.diag(curvature)[::DIMENSIONS] * POINTS).tolist(),
      "off", float(jnp.abs(curvature - jnp.diag(jnp.diag(curvature))).max()))
best = lax.fori_loop(0, 12, lambda _, c: lloyd(c, points), start)
labels = jnp.argmin(distances(best, points), 1)
print("loss", float(hard(best, points)), "gradient", float(jnp.abs(jax.grad(hard)(best, points)).max()))
print("sizes", jnp.bincount(labels, length=K).tolist())
print("centres", best[jnp.argsort(best[:, 0])].tolist())
(some, counts), losses = minibatches(random.key(1), start, points, 40, 50)
print("minibatches", losses[::10].tolist(), "whole", float(hard(some, points)), "points", counts.tolist())
cold, losses = annealed(points.mean(0) + 0.1 * random.normal(random.key(2), (K, DIMENSIONS)), points)
print("annealed", losses[::15].tolist(), "hard", float(hard(cold, points)))
drawn = jax.vmap(lambda key: random.choice(key, points, (K,), replace=False))(random.split(random.key(3), 6))
restarts = jax.vmap(lambda centres: lax.fori_loop(0, 12, lambda _, c: lloyd(c, points), centres))(drawn)
print("restarts", jax.vmap(hard, (0, None))(restarts, points).tolist())


def solution(points, steps, temperature=0.5):
    """Soft k-means by its fixed point: means weighted with the shares of the points."""
    def step(centres, _):
        shares = jax.nn.softmax(-distances(centres, points) / (2 * temperature))
        return shares.T @ points / shares.sum(0)[:, None], None
    return lax.scan(step, best, None, steps)[0]


def implicit(points, cotangent, temperature=0.5):
    centres = solution(points, 60)
    slope = jax.grad(soft)
    curvature = jax.jacfwd(slope)(centres, points, temperature).reshape(cotangent.size, -1)
    weights = jnp.linalg.solve(curvature, cotangent.ravel()).reshape(cotangent.shape)
    return -jax.vjp(lambda x: slope(centres, x, temperature), points)[1](weights)[0]


cotangent = jnp.zeros((K, DIMENSIONS)).at[1, 0].set(1.0)
through = jax.jit(jax.grad(lambda x: jnp.vdot(solution(x, 60), cotangent)))(points)
theorem = jax.jit(implicit)(points, cotangent)
print("soft centres", solution(points, 60)[:, 1].tolist())
print("of the points", (through[:, 0] * POINTS)[:4].tolist(), "sum", float(through[:, 0].sum()))
print("both ways", bool(jnp.allclose(through, theorem, atol=1e-5)), float(jnp.abs(theorem).sum()))
