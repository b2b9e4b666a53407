"""Monte Carlo price and sensitivities of an Asian option: the number is price plus delta.

usage: option_pricing.py STEPS [small]
"""

import sys

import jax
import jax.numpy as jnp

steps, small = int(sys.argv[1]), "small" in sys.argv[2:]
paths, dates = (100, 8) if small else (20_000, 64)
strike, rate, maturity = 100.0, 0.03, 1.0


def price(market, key):
    spot, volatility = market
    interval = maturity / dates
    drift = (rate - 0.5 * volatility**2) * interval

    def day(state, key):
        logarithm, total = state
        shocks = jax.random.normal(key, (paths,))
        logarithm = logarithm + drift + volatility * interval**0.5 * shocks
        return (logarithm, total + jnp.exp(logarithm)), None

    start = (jnp.full(paths, jnp.log(spot)), jnp.zeros(paths))
    (_, total), _ = jax.lax.scan(day, start, jax.random.split(key, dates))
    payoffs = jnp.maximum(total / dates - strike, 0)
    return jnp.exp(-rate * maturity) * jnp.mean(payoffs)


@jax.jit
def estimate(market, key):
    value, (delta, vega) = jax.value_and_grad(price)(market, key)
    return jnp.stack([value, delta, vega])


key = jax.random.key(0)
market = (jnp.asarray(100.0), jnp.asarray(0.2))
total = jnp.zeros(3)
for step in range(steps):
    key, used = jax.random.split(key)
    total = total + estimate(market, used)
    print(step, float(jnp.sum(total[:2])) / (step + 1))
