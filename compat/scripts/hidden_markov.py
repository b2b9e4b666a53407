# tolerance: 1e-4 (sixty steps of training amplify the rounding)
"""A hidden Markov model: forward in logarithms, its gradient, and expectation maximisation beside it.

Checked to a relative 1e-4, with key 11: the losses of gradient descent, the likelihoods of expectation
maximisation, a Hessian; the sampled symbols exactly.
"""
import jax
import jax.numpy as jnp
from jax import lax, random
from jax.scipy.special import logsumexp

STATES, SYMBOLS, LENGTH, SEQUENCES = 4, 6, 200, 5


def sample(key, start, change, emit):
    def step(state, key):
        k1, k2 = random.split(key)
        symbol = random.categorical(k1, jnp.log(emit[state]))
        return random.categorical(k2, jnp.log(change[state])), symbol
    k0, k1 = random.split(key)
    return lax.scan(step, random.categorical(k0, jnp.log(start)), random.split(k1, LENGTH))[1]


def log_likelihood(params, symbols):
    start, change, emit = (jax.nn.log_softmax(x) for x in params)

    def step(alpha, symbol):
        alpha = logsumexp(alpha[:, None] + change, axis=0) + emit[:, symbol]
        return alpha, None
    alpha, _ = lax.scan(step, start + emit[:, symbols[0]], symbols[1:])
    return logsumexp(alpha)


@jax.jit
def train(params, data):
    loss = lambda p: -jax.vmap(log_likelihood, (None, 0))(p, data).mean() / LENGTH

    def step(carry, _):
        params, m, v, t = carry
        value, grads = jax.value_and_grad(loss)(params)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, v, grads)
        t = t + 1
        params = jax.tree.map(lambda p, m, v: p - 0.05 * (m / (1 - 0.9**t)) / (
            jnp.sqrt(v / (1 - 0.99**t)) + 1e-8), params, m, v)
        return (params, m, v, t), value
    zeros = jax.tree.map(jnp.zeros_like, params)
    return lax.scan(step, (params, zeros, zeros, 0.0), None, 60)


def expectations(params, symbols):
    """Expected starts, changes and emissions of one sequence, by scaled forward and backward runs."""
    start, change, emit = params

    def forward(alpha, symbol):
        alpha = (alpha @ change) * emit[:, symbol]
        scale = alpha.sum()
        return alpha / scale, (alpha / scale, scale)
    first = start * emit[:, symbols[0]]
    _, (alphas, scales) = lax.scan(forward, first / first.sum(), symbols[1:])
    alphas = jnp.concatenate([(first / first.sum())[None], alphas])

    def backward(beta, inputs):
        symbol, scale = inputs
        beta = change @ (emit[:, symbol] * beta) / scale
        return beta, beta
    _, betas = lax.scan(backward, jnp.ones(STATES), (symbols[1:], scales), reverse=True)
    betas = jnp.concatenate([betas, jnp.ones((1, STATES))])
    gamma = alphas * betas
    pairs = alphas[:-1, :, None] * change * (emit.T[symbols[1:]] * betas[1:] / scales[:, None])[:, None]
    emitted = jnp.zeros((STATES, SYMBOLS)).at[:, symbols].add(gamma.T)
    return gamma[0], pairs.sum(0), emitted, jnp.log(first.sum()) + jnp.log(scales).sum()


@jax.jit
def maximise(params, data):
    def step(params, _):
        starts, changes, emissions, likelihoods = jax.vmap(expectations, (None, 0))(params, data)
        normal = lambda x: x / x.sum(-1, keepdims=True)
        return (normal(starts.sum(0)), normal(changes.sum(0)), normal(emissions.sum(0))), \
            likelihoods.mean() / LENGTH
    return lax.scan(step, params, None, 25)


k1, k2, k3, k4 = random.split(random.key(11), 4)
truth = (jnp.array([0.7, 0.1, 0.1, 0.1]), random.dirichlet(k1, jnp.full(STATES, 0.3), (STATES,)),
         random.dirichlet(k2, jnp.full(SYMBOLS, 0.2), (STATES,)))
data = jax.vmap(sample, (0, None, None, None))(random.split(k3, SEQUENCES), *truth)
print("data", data[:, :12].tolist())
logits = (jnp.zeros(STATES), 0.1 * random.normal(k4, (STATES, STATES)),
          jnp.sin(jnp.arange(STATES * SYMBOLS, dtype=float)).reshape(STATES, SYMBOLS))
(fitted, *_), losses = train(logits, data)
print("loss", *(float(x) for x in losses[::12]))
estimated, likelihoods = maximise(tuple(map(jax.nn.softmax, logits)), data)
print("likelihood", *(float(x) for x in likelihoods[::6]))
print("of the truth", float(jax.vmap(log_likelihood, (None, 0))(jax.tree.map(jnp.log, truth), data).mean() / LENGTH))
curvature = jax.hessian(lambda s: log_likelihood((s, *fitted[1:]), data[0]))(fitted[0])
print("curvature", float(jnp.trace(curvature)), float(jnp.linalg.norm(curvature)))
