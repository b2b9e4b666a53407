"""The travelling salesman by simulated annealing in a while loop; restarts are vmapped."""
import jax
import jax.numpy as jnp
from jax import lax, random

CITIES = 16
angles = jnp.arange(CITIES) * 2 * jnp.pi / CITIES
ring = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=1)
cities = random.permutation(random.key(0), ring * jnp.array([1.0, 0.7]))
best_possible = jnp.linalg.norm(jnp.diff(ring * jnp.array([1.0, 0.7]), axis=0,
                                         append=ring[:1] * jnp.array([1.0, 0.7])), axis=1).sum()


def tour_length(tour):
    points = cities[tour]
    return jnp.sum(jnp.linalg.norm(points - jnp.roll(points, 1, axis=0), axis=1))


def reverse_segment(tour, i, j):
    """2-opt: the cities between positions i and j in reverse order."""
    lo, hi = jnp.minimum(i, j), jnp.maximum(i, j)
    positions = jnp.arange(CITIES)
    inside = (positions >= lo) & (positions <= hi)
    return tour[jnp.where(inside, lo + hi - positions, positions)]


def anneal(key, start=1.0, end=0.02, cooling=0.99):
    def cond(state):
        return state[-1] > end

    def body(state):
        key, tour, length, best, best_length, temperature = state
        key, k_pick, k_accept = random.split(key, 3)
        i, j = random.randint(k_pick, (2,), 0, CITIES)
        proposal = reverse_segment(tour, i, j)
        new = tour_length(proposal)
        accept = (new < length) | (random.uniform(k_accept) < jnp.exp((length - new) / temperature))
        tour, length = lax.cond(accept, lambda: (proposal, new), lambda: (tour, length))
        better = length < best_length
        best = jnp.where(better, tour, best)
        best_length = jnp.minimum(length, best_length)
        return key, tour, length, best, best_length, temperature * cooling

    tour = jnp.arange(CITIES)
    length = tour_length(tour)
    state = (key, tour, length, tour, length, jnp.asarray(start))
    return lax.while_loop(cond, body, state)[3:5]


print("optimum %.6f, at the start %.6f" % (best_possible, tour_length(jnp.arange(CITIES))))
tour, length = jax.jit(anneal)(random.key(1))
print("one run %.6f" % length, "consistent:", bool(jnp.isclose(length, tour_length(tour))))
tours, lengths = jax.jit(jax.vmap(anneal))(random.split(random.key(2), 8))
print("eight runs", jnp.sort(lengths))
winner = tours[jnp.argmin(lengths)]
winner = jnp.roll(winner, -jnp.argmax(winner == 0))
print("permutation:", bool(jnp.array_equal(jnp.sort(winner), jnp.arange(CITIES))))
print("best within 25% of the optimum:", bool(lengths.min() < 1.25 * best_possible))
