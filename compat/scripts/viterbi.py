"""A hidden Markov model: forward, backward, Viterbi, beam search, sampling, all by scans."""
import itertools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax, random
from jax.nn import logsumexp

STATES, SYMBOLS, LENGTH = 4, 6, 60
k_a, k_b, k_s = random.split(random.key(3), 3)
transition = random.dirichlet(k_a, 0.5 + 5.0 * jnp.eye(STATES)[0], (STATES,))
transition = 0.5 * jnp.eye(STATES) + 0.5 * transition
emission = random.dirichlet(k_b, jnp.full(SYMBOLS, 0.6), (STATES,))
log_A, log_B = jnp.log(transition), jnp.log(emission)
log_start = jnp.full(STATES, -jnp.log(STATES))


def sample(key, n):
    def step(state, key):
        k1, k2 = random.split(key)
        symbol = random.categorical(k1, log_B[state])
        return random.categorical(k2, log_A[state]), (state, symbol)
    return lax.scan(step, jnp.array(0), random.split(key, n))[1]


@jax.jit
def viterbi(symbols):
    def forward(score, symbol):
        candidates = score[:, None] + log_A
        back = jnp.argmax(candidates, axis=0)
        return jnp.max(candidates, axis=0) + log_B[:, symbol], back

    score, back = lax.scan(forward, log_start + log_B[:, symbols[0]], symbols[1:])
    last = jnp.argmax(score)
    _, path = lax.scan(lambda s, b: (b[s], b[s]), last, back, reverse=True)
    return jnp.append(path, last), score[last]


@jax.jit
def posteriors(symbols):
    def forward(alpha, symbol):
        alpha = logsumexp(alpha[:, None] + log_A, axis=0) + log_B[:, symbol]
        return alpha, alpha

    def backward(beta, symbol):
        beta = logsumexp(log_A + (log_B[:, symbol] + beta)[None, :], axis=1)
        return beta, beta

    first = log_start + log_B[:, symbols[0]]
    last, alphas = lax.scan(forward, first, symbols[1:])
    _, betas = lax.scan(backward, jnp.zeros(STATES), symbols[1:], reverse=True)
    alphas = jnp.vstack([first, alphas])
    betas = jnp.vstack([betas, jnp.zeros(STATES)])
    return jax.nn.softmax(alphas + betas, axis=1), logsumexp(last)


def beam_search(symbols, width):
    """The best paths; with a wide beam the first one is Viterbi's."""
    beams = [(float(log_start[s] + log_B[s, symbols[0]]), (s,)) for s in range(STATES)]
    A, B = np.asarray(log_A), np.asarray(log_B)
    for symbol in symbols[1:]:
        grown = [(score + A[path[-1], s] + B[s, symbol], path + (s,))
                 for (score, path), s in itertools.product(beams, range(STATES))]
        beams = sorted(grown, key=lambda b: -b[0])[:width]
    return beams


states, symbols = sample(k_s, LENGTH)
print("states", "".join(map(str, states.tolist())))
print("symbols", "".join(map(str, symbols.tolist())))
path, score = viterbi(symbols)
print("viterbi", "".join(map(str, path.tolist())), f"{score:.4f}")
print("accuracy", float(jnp.mean(path == states)))
gamma, log_likelihood = posteriors(symbols)
print("log likelihood %.5f" % log_likelihood, "rows sum to one:",
      bool(jnp.allclose(gamma.sum(1), 1, atol=1e-4)))
print("expected occupancy", gamma.sum(0))
best = beam_search(np.asarray(symbols), 16)[0]
print("beam finds it:", abs(best[0] - float(score)) < 1e-3)

expected = jax.grad(lambda b: logsumexp(jnp.stack([log_start[s] + b[s, symbols[0]]
                                                   for s in range(STATES)])))(log_B)
print("posterior of the first state", expected[:, symbols[0]])
many = jax.vmap(lambda k: sample(k, 30)[1])(random.split(k_s, 5))
scores = jax.vmap(lambda s: viterbi(s)[1])(many)
print("scores of five sequences", scores)
