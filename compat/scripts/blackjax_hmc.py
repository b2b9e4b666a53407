# libraries: blackjax
# tolerance: 1e-3 (a trajectory of many leapfrog steps amplifies the rounding)
"""BlackJAX: HMC in a scan, NUTS with window adaptation, SMC-free diagnostics, SGLD."""
import blackjax
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np

covariance = jnp.array([[1.0, 0.6, 0.0], [0.6, 2.0, 0.3], [0.0, 0.3, 0.5]])
precision = jnp.linalg.inv(covariance)


def logdensity(q):
    return -0.5 * q["a"] @ precision @ q["a"] - 0.5 * jnp.sum((q["b"] - 1.0) ** 2 / 0.25)


def loop(key, step, state, count):
    @jax.jit
    def run(state, keys):
        def one(state, key):
            state, info = step(key, state)
            return state, (state, info.acceptance_rate)
        return jax.lax.scan(one, state, keys)
    return run(state, jr.split(key, count))


start = {"a": jnp.zeros(3), "b": jnp.ones(2)}
hmc = blackjax.hmc(logdensity, 0.25, jnp.ones(5), 8)
_, (states, acceptance) = loop(jr.key(0), hmc.step, hmc.init(start), 20)
print("HMC", np.asarray(states.position["a"][::7]), float(acceptance.mean()))
_, (states, acceptance) = loop(jr.key(1), hmc.step, hmc.init(start), 2000)
print("covariance near:", bool(jnp.all(jnp.abs(jnp.cov(states.position["a"].T) - covariance) < .4)))
print("b near one:", bool(jnp.all(jnp.abs(states.position["b"].mean(0) - 1) < 0.1)))

nuts = blackjax.nuts(logdensity, 0.3, jnp.ones(5))
_, (states, acceptance) = loop(jr.key(2), nuts.step, nuts.init(start), 6)
print("NUTS", np.asarray(states.position["a"][:3]), float(acceptance.mean()))

warmup = blackjax.window_adaptation(blackjax.nuts, logdensity)
(state, parameters), _ = warmup.run(jr.key(3), start, num_steps=200)
print("step size sensible:", 0.1 < float(parameters["step_size"]) < 2.0)
print("mass matrix", parameters["inverse_mass_matrix"].shape)
tuned = blackjax.nuts(logdensity, **parameters)
chains = jax.vmap(lambda k: loop(k, tuned.step, state, 200)[1][0].position["b"][:, 0])(
    jr.split(jr.key(4), 4))
print("R-hat below 1.1:", bool(blackjax.diagnostics.potential_scale_reduction(chains) < 1.1))
print("effective size positive:", bool(blackjax.diagnostics.effective_sample_size(chains) > 50))

mala = blackjax.mala(logdensity, 0.05)
_, (states, _) = loop(jr.key(5), mala.step, mala.init(start), 10)
print("MALA", np.asarray(states.position["b"][-1]))
walk = blackjax.additive_step_random_walk(
    logdensity, blackjax.mcmc.random_walk.normal(0.3 * jnp.ones(5)))
_, (states, _) = loop(jr.key(6), walk.step, walk.init(start), 10)
print("random walk", np.asarray(states.position["a"][-1]))
