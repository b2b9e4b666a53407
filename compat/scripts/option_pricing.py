# tolerance: 5e-5 (sums of 20,000 paths, in another order)
"""Options by Monte Carlo: European, Asian, barrier; Greeks by differentiation; a bootstrap."""
from functools import partial

import jax
import jax.numpy as jnp
from jax import grad, jit, lax, random, vmap

S0, STRIKE, RATE, SIGMA, T = 100.0, 105.0, 0.03, 0.25, 1.0


def normal_cdf(x):
    return 0.5 * (1.0 + lax.erf(x / jnp.sqrt(2.0)))


def black_scholes(s, k, r, sigma, t):
    d1 = (jnp.log(s / k) + (r + sigma ** 2 / 2) * t) / (sigma * jnp.sqrt(t))
    d2 = d1 - sigma * jnp.sqrt(t)
    return s * normal_cdf(d1) - k * jnp.exp(-r * t) * normal_cdf(d2)


exact = black_scholes(S0, STRIKE, RATE, SIGMA, T)
delta, vega = grad(black_scholes, argnums=(0, 3))(S0, STRIKE, RATE, SIGMA, T)
gamma = grad(grad(black_scholes))(S0, STRIKE, RATE, SIGMA, T)
print("exact %.6f delta %.6f vega %.5f gamma %.6f" % (exact, delta, vega, gamma))


@partial(jit, static_argnames=("steps", "n"))
def simulate(key, s0, sigma, steps=12, n=10_000):
    dt = T / steps
    z = random.normal(key, (n, steps))
    z = jnp.concatenate([z, -z])      # antithetic
    returns = (RATE - 0.5 * sigma ** 2) * dt + sigma * jnp.sqrt(dt) * z
    return s0 * jnp.exp(jnp.cumsum(returns, axis=1))


def call(paths):
    return jnp.maximum(paths[:, -1] - STRIKE, 0.0)


def asian(paths):
    return jax.nn.relu(paths.mean(axis=1) - STRIKE)


def knock_out(paths, barrier=140.0):
    alive = jnp.all(paths < barrier, axis=1)
    return jnp.where(alive, call(paths), 0.0)


def price(payoff, key, s0, sigma):
    return jnp.exp(-RATE * T) * payoff(simulate(key, s0, sigma)).mean()


key = random.key(123)
for payoff in (call, asian, knock_out):
    print(payoff.__name__, "%.5f" % price(payoff, key, S0, SIGMA))
pathwise = jit(jax.value_and_grad(partial(price, call, key), argnums=(0, 1)))(S0, SIGMA)
print("pathwise", *("%.5f" % v for v in (pathwise[0], *pathwise[1])))
print("within two percent:", bool(abs(pathwise[0] / exact - 1) < 0.02))
smile = vmap(lambda s: price(call, key, S0, s))(jnp.array([0.1, 0.2, 0.4]))
print("by volatility", smile)


# implied volatility by Newton under a while loop
@jit
def implied(target):
    def body(state):
        sigma, _, i = state
        error = black_scholes(S0, STRIKE, RATE, sigma, T) - target
        slope = grad(black_scholes, argnums=3)(S0, STRIKE, RATE, sigma, T)
        return sigma - error / slope, jnp.abs(error), i + 1
    return lax.while_loop(lambda s: (s[1] > 1e-4) & (s[2] < 50), body, (0.4, jnp.inf, 0))[0]


print("implied", vmap(implied)(jnp.array([5.0, 9.0, 15.0])))

payoffs = asian(simulate(random.key(7), S0, SIGMA, n=500))
bootstrap = vmap(lambda k: random.choice(k, payoffs, (len(payoffs),)).mean())
means = bootstrap(random.split(random.key(8), 200))
print("bootstrap", jnp.percentile(means, jnp.array([5, 50, 95])))
jumps = random.poisson(random.key(9), 2.0, (2000,))
print("jumps", jumps[:8], "mean", jumps.mean())
exponential = random.exponential(random.key(10), (2000,))
print("exponential", exponential.mean(), "gamma", random.gamma(random.key(11), 2.0, (500,)).mean())
