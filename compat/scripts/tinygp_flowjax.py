# libraries: tinygp flowjax equinox optax
# tolerance: 2e-5 (a Cholesky factorization and thirty steps of Adam amplify the rounding)
# absolute: 1e-5 (means near zero)
"""A Gaussian process of tinygp, conditioned and differentiated, and a normalizing flow of FlowJAX,
fitted to samples."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from flowjax.distributions import Normal
from flowjax.flows import masked_autoregressive_flow
from tinygp import GaussianProcess, kernels

times = jnp.linspace(0.0, 5.0, 20)
values = jnp.sin(times)


def process(parameters):
    kernel = jnp.exp(parameters["amplitude"]) * kernels.Matern32(jnp.exp(parameters["scale"]))
    return GaussianProcess(kernel, times, diag=jnp.exp(parameters["noise"]))


def loss(parameters):
    return -process(parameters).log_probability(values)


parameters = {"amplitude": jnp.array(0.1), "scale": jnp.array(0.2), "noise": jnp.array(-2.0)}
value, gradient = jax.jit(jax.value_and_grad(loss))(parameters)
print(f"loss {value:.5f}", {name: f"{part:.4f}" for name, part in gradient.items()})

_, conditioned = process(parameters).condition(values, jnp.linspace(0.0, 5.0, 5))
print("mean", [f"{part:.4f}" for part in conditioned.mean])
print("variance", [f"{part:.4f}" for part in conditioned.variance])

states = GaussianProcess(kernels.quasisep.Matern32(1.5), times, diag=0.1)
print(f"state space {states.log_probability(values):.5f}")

samples = jax.random.normal(jax.random.key(0), (200, 2)) * jnp.array([1.0, 2.0])
flow = masked_autoregressive_flow(
    jax.random.key(1), base_dist=Normal(jnp.zeros(2)), flow_layers=2, nn_width=8)
trained, fixed = eqx.partition(flow, eqx.is_inexact_array)
adam = optax.adam(1e-2)


def negative_log_likelihood(trained):
    return -jnp.mean(eqx.combine(trained, fixed).log_prob(samples))


@eqx.filter_jit
def step(trained, state):
    value, gradient = eqx.filter_value_and_grad(negative_log_likelihood)(trained)
    updates, state = adam.update(gradient, state)
    return eqx.apply_updates(trained, updates), state, value


state = adam.init(trained)
for number in range(30):
    trained, state, value = step(trained, state)
    if number % 10 == 9:
        print(f"step {number + 1} {value:.4f}")
print("sample", [f"{part:.3f}" for part in eqx.combine(trained, fixed).sample(jax.random.key(2))])
