"""PageRank of a random graph: sparse with scattered sums, dense with a linear solve."""
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

N, EDGES, DAMPING = 200, 1200, 0.85
rng = np.random.RandomState(0)
source = jnp.array(rng.randint(0, N - 10, EDGES))      # the last ten pages link nowhere
target = jnp.array((rng.rand(EDGES) ** 2 * N).astype(np.int32))

out_degree = jnp.zeros(N).at[source].add(1.0)
dangling = out_degree == 0
print("pages without links", dangling.sum())


@jax.jit
def pagerank(source, target):
    weight = 1.0 / jnp.where(dangling, 1.0, out_degree)

    def iterate(state):
        rank, _, i = state
        flow = jnp.zeros(N).at[target].add((rank * weight)[source])
        lost = jnp.sum(jnp.where(dangling, rank, 0.0))
        new = (1 - DAMPING) / N + DAMPING * (flow + lost / N)
        return new, jnp.abs(new - rank).sum(), i + 1

    return lax.while_loop(lambda s: (s[1] > 2e-6) & (s[2] < 200), iterate,
                          (jnp.full(N, 1.0 / N), jnp.array(1.0), 0))


rank, change, iterations = pagerank(source, target)
print("converged", bool(iterations < 200), "sum %.5f" % rank.sum())
values, pages = lax.top_k(rank, 5)
print("best pages", pages, "scores", values)

matrix = jnp.zeros((N, N)).at[target, source].add(1.0)
matrix = jnp.where(dangling[None, :], 1.0 / N, matrix / jnp.maximum(out_degree, 1.0))
print("columns sum to one:", bool(jnp.allclose(matrix.sum(axis=0), 1.0, atol=1e-5)))
exact = jnp.linalg.solve(jnp.eye(N) - DAMPING * matrix, jnp.full(N, (1 - DAMPING) / N))
print("agrees with the solve:", bool(jnp.allclose(exact, rank, atol=1e-5)))
print("exact", exact[pages])
print("entropy %.5f" % -jnp.sum(rank * jnp.log(rank)))
