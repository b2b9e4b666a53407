# tolerance: 5e-5 (the alternation magnifies the rounding of the solves)
"""Recommendations: alternating least squares with vmapped solves, then stochastic descent."""
import jax
import jax.numpy as jnp
import numpy as np

USERS, ITEMS, RANK = 40, 30, 3
rng = np.random.RandomState(8)
truth = rng.gamma(2.0, 0.5, (USERS, RANK)) @ rng.gamma(2.0, 0.5, (RANK, ITEMS))
mask = jnp.array(rng.rand(USERS, ITEMS) < 0.5)
ratings = jnp.where(mask, jnp.array(truth + 0.05 * rng.randn(USERS, ITEMS), jnp.float32), 0.0)
print("known ratings", int(mask.sum()), "mean %.5f" % (ratings.sum() / mask.sum()))


def solve_row(fixed, row, known, l2=0.05):
    weighted = fixed * known[:, None]
    return jnp.linalg.solve(weighted.T @ fixed + l2 * jnp.eye(RANK), weighted.T @ row)


solve_all = jax.vmap(solve_row, in_axes=(None, 0, 0))


@jax.jit
def als(_, factors):
    users, items = factors
    users = solve_all(items, ratings, mask)
    items = solve_all(users, ratings.T, mask.T)
    return users, items


def rmse(users, items, where):
    error = (users @ items.T - truth.astype(np.float32)) ** 2
    return jnp.sqrt(jnp.mean(error, where=where))


items = jnp.array(rng.rand(ITEMS, RANK), jnp.float32)
users = jnp.zeros((USERS, RANK))
for rounds in (1, 4, 15):
    fitted = jax.lax.fori_loop(0, rounds, als, (users, items))
    print(f"{rounds} rounds: seen {rmse(*fitted, mask):.6f} unseen {rmse(*fitted, ~mask):.6f}")

# stochastic descent over the known entries, with scatter-add of sparse gradients
row, column = jnp.nonzero(mask)
values = ratings[row, column]


@jax.jit
def epoch(factors, order):
    def step(factors, batch):
        u, v = factors
        i, j = row[batch], column[batch]
        error = jnp.einsum("bk,bk->b", u[i], v[j]) - values[batch]
        u_new = u.at[i].add(-0.02 * error[:, None] * v[j])
        v_new = v.at[j].add(-0.02 * error[:, None] * u[i])
        return (u_new, v_new), jnp.mean(error ** 2)
    factors, losses = jax.lax.scan(step, factors, order)
    return factors, losses.mean()


factors = (jnp.array(rng.rand(USERS, RANK), jnp.float32), items)
batches = len(values) // 25
for i in range(6):
    order = jax.random.permutation(jax.random.key(i), len(values))[: batches * 25]
    factors, loss = epoch(factors, order.reshape(batches, 25))
    print(f"epoch {i}: {loss:.6f}")

predicted = fitted[0] @ fitted[1].T
unseen = jnp.where(mask, -jnp.inf, predicted)
scores, best = jax.lax.top_k(unseen, 2)
print("recommended to the first users\n", best[:4])
print("scores", scores[:2])
