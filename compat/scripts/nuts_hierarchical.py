# tolerance: 2e-3 (leapfrog steps amplify the rounding)
# absolute: 2e-3 (numbers near zero)
"""No-U-turn sampling of a hierarchical model, iteratively, with an adapted step, two chains by vmap."""
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax, random

EFFECTS = jnp.array([28.0, 8, -3, 7, -1, 1, 18, 12])
ERRORS = jnp.array([15.0, 10, 16, 11, 9, 11, 10, 18])
DIMENSIONS, DEPTH, WARMUP, DRAWS, CHAINS = 10, 5, 40, 40, 2


def log_density(z):
    mu, log_tau, raw = z[0], z[1], z[2:]
    tau = jnp.exp(log_tau)
    theta = mu + tau * raw
    prior = -0.5 * (mu / 5) ** 2 - jnp.log1p((tau / 5) ** 2) + log_tau - 0.5 * jnp.sum(raw**2)
    return prior - 0.5 * jnp.sum(((EFFECTS - theta) / ERRORS) ** 2)


class Point(NamedTuple):
    z: jax.Array
    r: jax.Array
    slope: jax.Array
    energy: jax.Array


def leapfrog(point, step):
    r = point.r + 0.5 * step * point.slope
    z = point.z + step * r
    value, slope = jax.value_and_grad(log_density)(z)
    r = r + 0.5 * step * slope
    return Point(z, r, slope, -value + 0.5 * r @ r)


class Tree(NamedTuple):
    left: Point
    right: Point
    chosen: Point
    log_weight: jax.Array
    total_r: jax.Array
    turning: jax.Array
    diverging: jax.Array
    accepted: jax.Array
    steps: jax.Array


def turns(left, right, total):
    centred = total - 0.5 * (left + right)
    return (left @ centred <= 0) | (right @ centred <= 0)


def grow(key, start, direction, depth, step, energy):
    """A subtree of 2**depth points from one end, its checkpoints in arrays."""
    sums, momenta = jnp.zeros((DEPTH, DIMENSIONS)), jnp.zeros((DEPTH, DIMENSIONS))
    tree = Tree(start, start, start, -jnp.inf, jnp.zeros(DIMENSIONS), False, False, 0.0, 0)

    def proceeds(carry):
        return (carry[2].steps < 2**depth) & ~carry[2].turning & ~carry[2].diverging

    def body(carry):
        key, point, tree, sums, momenta = carry
        key, choice = random.split(key)
        point = leapfrog(point, direction * step)
        delta = energy - point.energy
        delta = jnp.where(jnp.isnan(delta), -jnp.inf, delta)
        weight = jnp.logaddexp(tree.log_weight, delta)
        takes = jnp.log(random.uniform(choice)) < delta - weight
        chosen = jax.tree.map(lambda a, b: jnp.where(takes, a, b), point, tree.chosen)
        total = tree.total_r + point.r
        n, even = tree.steps, tree.steps % 2 == 0
        slot = lax.population_count(n >> 1)
        new_sums = jnp.where(even, sums.at[slot].set(total), sums)
        new_momenta = jnp.where(even, momenta.at[slot].set(point.r), momenta)
        low = slot - lax.population_count((~n & (n + 1)) - 1) + 1

        def check(state):
            at = state[0]
            return at - 1, turns(new_momenta[at], point.r, total - new_sums[at] + new_momenta[at])
        _, turning = lax.while_loop(lambda s: (s[0] >= low) & ~s[1], check, (slot, False))
        turning = jnp.where(even, False, turning)
        tree = Tree(tree.left, point, chosen, weight, total, turning, delta < -1000,
                    tree.accepted + jnp.minimum(1, jnp.exp(delta)), n + 1)
        return key, point, tree, new_sums, new_momenta
    return lax.while_loop(proceeds, body, (key, start, tree, sums, momenta))[2]


def draw(key, z, step):
    k1, k2 = random.split(key)
    value, slope = jax.value_and_grad(log_density)(z)
    r = random.normal(k1, z.shape)
    point = Point(z, r, slope, -value + 0.5 * r @ r)
    tree = Tree(point, point, point, 0.0, r, False, False, 0.0, 0)

    def proceeds(carry):
        return (carry[1] < DEPTH) & ~carry[2].turning & ~carry[2].diverging

    def body(carry):
        key, depth, tree = carry
        key, k1, k2, k3 = random.split(key, 4)
        right = random.bernoulli(k1)
        ends = jax.tree.map(lambda a, b: jnp.where(right, a, b), tree.right, tree.left)
        new = grow(k2, ends, jnp.where(right, 1.0, -1.0), depth, step, point.energy)
        whole = ~new.turning & ~new.diverging
        takes = whole & (jnp.log(random.uniform(k3)) < new.log_weight - tree.log_weight)
        pick = lambda flag, a, b: jax.tree.map(lambda x, y: jnp.where(flag, x, y), a, b)
        left, right_end = pick(right, tree.left, new.right), pick(right, new.right, tree.right)
        total = tree.total_r + new.total_r
        return key, depth + 1, Tree(
            left, right_end, pick(takes, new.chosen, tree.chosen),
            jnp.logaddexp(tree.log_weight, new.log_weight), total,
            ~whole | turns(left.r, right_end.r, total), new.diverging,
            tree.accepted + new.accepted, tree.steps + new.steps)
    _, depth, tree = lax.while_loop(proceeds, body, (k2, 0, tree))
    return tree.chosen.z, tree.accepted / tree.steps, depth, tree.diverging


def chain(key, z):
    def warm(carry, inputs):
        z, log_step, average, statistic = carry
        key, t = inputs
        z, accepted, depth, _ = draw(key, z, jnp.exp(log_step))
        statistic = (1 - 1 / (t + 10)) * statistic + (0.8 - accepted) / (t + 10)
        log_step = jnp.log(10 * 0.1) - jnp.sqrt(t) / 0.05 * statistic
        weight = t**-0.75
        return (z, log_step, weight * log_step + (1 - weight) * average, statistic), depth
    k1, k2 = random.split(key)
    (z, _, average, _), warm_depths = lax.scan(
        warm, (z, jnp.log(0.1), 0.0, 0.0), (random.split(k1, WARMUP), jnp.arange(1.0, WARMUP + 1)))

    def one(z, key):
        z, accepted, depth, diverging = draw(key, z, jnp.exp(average))
        return z, (z, accepted, depth, diverging)
    return lax.scan(one, z, random.split(k2, DRAWS))[1], jnp.exp(average), warm_depths


starts = 0.5 * random.normal(random.key(1), (CHAINS, DIMENSIONS))
first = jax.jit(draw)(random.key(4), starts[0], 0.2)
print("one draw", first[0].tolist(), float(first[1]), int(first[2]), bool(first[3]))
several = jax.jit(lambda key, z: lax.scan(lambda z, k: (lambda d: (d[0], d[1:]))(draw(k, z, 0.15)), z,
                                          random.split(key, 6)))(random.key(5), starts[1])
print("six draws", several[0].tolist(), several[1][1].tolist())
(z, accepted, depths, diverging), steps, _ = jax.jit(jax.vmap(chain))(random.split(random.key(2), CHAINS), starts)
print("finite", bool(jnp.isfinite(z).all()), z.shape, "depths within", bool((depths <= DEPTH).all()),
      "divergent", bool(diverging.mean() < 0.2), "steps sane", bool(((steps > 0.01) & (steps < 3)).all()))
mean = z[..., 0].mean()
print("mean in range", bool((mean > -5) & (mean < 14)), "accepted", bool(accepted.mean() > 0.5))
