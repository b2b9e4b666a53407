# tolerance: 1e-4 (the rounding of 25 steps of training through 40 time steps adds up)
"""A gated recurrent network over characters; time is a scan."""
import pathlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

text = (pathlib.Path(__file__).parent / "data" / "river.txt").read_text().lower()
vocabulary = sorted(set(text))
index = {c: i for i, c in enumerate(vocabulary)}
ids = np.array([index[c] for c in text])
HIDDEN, BATCH, STEPS = 64, 16, 40


class GRU(NamedTuple):
    embed: jax.Array
    w_gates: jax.Array
    b_gates: jax.Array
    w_new: jax.Array
    u_new: jax.Array
    out: jax.Array


def init(key):
    ks = jax.random.split(key, 5)
    n = len(vocabulary)
    glorot = jax.nn.initializers.glorot_uniform()
    return GRU(
        embed=0.1 * jax.random.normal(ks[0], (n, HIDDEN)),
        w_gates=glorot(ks[1], (2 * HIDDEN, 2 * HIDDEN)),
        b_gates=jnp.zeros(2 * HIDDEN),
        w_new=glorot(ks[2], (HIDDEN, HIDDEN)),
        u_new=glorot(ks[3], (HIDDEN, HIDDEN)),
        out=glorot(ks[4], (HIDDEN, n)),
    )


def cell(p, h, token):
    x = p.embed[token]
    gates = jax.nn.sigmoid(jnp.concatenate([x, h], -1) @ p.w_gates + p.b_gates)
    z, r = jnp.split(gates, 2, axis=-1)
    candidate = jnp.tanh(x @ p.w_new + (r * h) @ p.u_new)
    h = (1 - z) * h + z * candidate
    return h, h @ p.out


def sequence_loss(p, tokens):
    h0 = jnp.zeros((tokens.shape[0], HIDDEN))
    _, logits = lax.scan(lambda h, t: cell(p, h, t), h0, tokens[:, :-1].T)
    targets = jax.nn.one_hot(tokens[:, 1:].T, len(vocabulary))
    return -jnp.mean(jnp.sum(targets * jax.nn.log_softmax(logits), axis=-1))


def clip(grads, limit):
    norm = jnp.sqrt(sum(jnp.sum(g ** 2) for g in jax.tree.leaves(grads)))
    return jax.tree.map(lambda g: g * jnp.minimum(1.0, limit / norm), grads), norm


@jax.jit
def train(p, tokens):
    loss, grads = jax.value_and_grad(sequence_loss)(p, tokens)
    grads, norm = clip(grads, 1.0)
    return GRU(*[w - 1.0 * g for w, g in zip(p, grads)]), loss, norm


rng = np.random.RandomState(3)
p = init(jax.random.PRNGKey(3))
for i in range(25):
    starts = rng.randint(0, len(ids) - STEPS - 1, BATCH)
    tokens = jnp.stack([ids[s:s + STEPS + 1] for s in starts])
    p, loss, norm = train(p, tokens)
    if i % 6 == 0:
        print(f"step {i:2d} loss {loss:.5f} gradient norm {norm:.5f}")


@jax.jit
def score(p, tokens):
    def one(carry, pair):
        h, total = carry
        h, logits = cell(p, h, pair[0])
        return (h, total + jax.nn.log_softmax(logits)[pair[1]]), None
    pairs = jnp.stack([tokens[:-1], tokens[1:]], axis=1)
    (_, total), _ = lax.scan(one, (jnp.zeros(HIDDEN), 0.0), pairs)
    return total / len(pairs)


for phrase in ("the river knows", "zzxq vk jjw qqp"):
    tokens = jnp.array([index.get(c, 0) for c in phrase])
    print(repr(phrase), "log probability a character %.4f" % score(p, tokens))
