"""Dynamic time warping: exact, soft (differentiable), and the path; recurrences as nested scans."""
import jax
import jax.numpy as jnp
from jax import lax

t = jnp.linspace(0, 2 * jnp.pi, 40)
a = jnp.sin(t)
b = jnp.sin(t + 0.6 * jnp.sin(t))[::2]
c = jnp.cos(2 * t)[5:35]


def dtw_table(x, y, minimum):
    cost = (x[:, None] - y[None, :]) ** 2
    far = 1e9

    def row(above, costs):
        def cell(carry, inputs):
            left, corner = carry
            up, cost = inputs
            value = cost + minimum(jnp.stack([left, corner, up]))
            return (value, up), value
        (_, _), values = lax.scan(cell, (jnp.array(far), above[0]), (above[1:], costs))
        new = jnp.concatenate([jnp.array([far]), values])
        return new, values

    first = jnp.full(len(y) + 1, far).at[0].set(0.0)
    # The corner above the first column is only open for the first row.
    return lax.scan(row, first, cost)[1]


hard = jax.jit(lambda x, y: dtw_table(x, y, jnp.min))
soft = lambda x, y, gamma: dtw_table(
    x, y, lambda v: -gamma * jax.nn.logsumexp(-v / gamma))[-1, -1]

for name, (x, y) in {"a-b": (a, b), "a-c": (a, c), "b-c": (b, c)}.items():
    print(name, "distance %.6f" % hard(x, y)[-1, -1], "soft %.6f" % jax.jit(soft)(x, y, 0.1))


def path(table):
    i, j = table.shape[0] - 1, table.shape[1] - 1
    steps = [(i, j)]
    while i > 0 or j > 0:
        candidates = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        i, j = min((p for p in candidates if min(p) >= 0), key=lambda p: table[p])
        steps.append((i, j))
    return steps[::-1]


import numpy as np  # noqa: E402

found = path(np.asarray(hard(a, b)))
print("path of", len(found), "steps, begins", found[:4], "ends", found[-3:])

gradient = jax.jit(jax.grad(soft))(a, b, 0.5)
print("gradient", gradient[:5], "norm %.5f" % jnp.linalg.norm(gradient))

# the barycentre of three warped signals, by gradient descent on the soft distance
signals = jnp.stack([jnp.sin(t + s) for s in (-0.3, 0.0, 0.4)])
objective = lambda z: jax.vmap(lambda s: soft(z, s, 0.5))(signals).mean()
z = signals.mean(axis=0)
step = jax.jit(lambda z: (objective(z), z - 0.05 * jax.grad(objective)(z)))
for i in range(10):
    value, z = step(z)
    if i % 3 == 0:
        print(f"iteration {i}: {value:.5f}")
