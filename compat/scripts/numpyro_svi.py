# libraries: numpyro optax
# tolerance: 1e-3 (hundreds of steps of Adam amplify the rounding)
"""NumPyro: SVI with automatic guides and with a written one, Predictive, distributions."""
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import numpyro
import numpyro.distributions as dist
import optax
from numpyro.distributions import constraints
from numpyro.infer import SVI, Predictive, Trace_ELBO, autoguide

rng = np.random.default_rng(0)
x = rng.standard_normal((200, 3)).astype(np.float32)
truth = np.array([1.0, -2.0, 0.5])
y = (rng.uniform(size=200) < 1 / (1 + np.exp(-x @ truth - 0.3))).astype(np.int32)


def model(x, y=None):
    w = numpyro.sample("w", dist.Normal(jnp.zeros(3), 2.0).to_event(1))
    b = numpyro.sample("b", dist.StudentT(4.0, 0.0, 1.0))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=x @ w + b), obs=y)


for guide in (autoguide.AutoNormal(model), autoguide.AutoMultivariateNormal(model),
              autoguide.AutoDelta(model)):
    svi = SVI(model, guide, numpyro.optim.Adam(0.03), Trace_ELBO(num_particles=4))
    result = svi.run(jr.key(0), 150, x, y, progress_bar=False)
    median = guide.median(result.params)
    print(type(guide).__name__, "loss", float(result.losses[0]), float(result.losses[-1]))
    print(" ", np.asarray(median["w"]), float(median["b"]))

guide = autoguide.AutoNormal(model)
svi = SVI(model, guide, optax.adam(0.03), Trace_ELBO())
state = svi.init(jr.key(1), x, y)
update = jax.jit(svi.update)
for _ in range(50):
    state, loss = update(state, x, y)
params = svi.get_params(state)
print("optax", float(loss), sorted(params))
draws = guide.sample_posterior(jr.key(2), params, sample_shape=(100,))
print("draws", draws["w"].shape, float(draws["w"].mean()))
probability = Predictive(model, draws, return_sites=["y"])(jr.key(3), x)["y"].mean(0)
print("accuracy", float(((probability > 0.5) == y).mean()))


def coins(data):
    p = numpyro.sample("p", dist.Beta(2.0, 2.0))
    numpyro.sample("heads", dist.Binomial(20, probs=p), obs=data)


def coins_guide(data):
    a = numpyro.param("a", jnp.array(2.0), constraint=constraints.positive)
    b = numpyro.param("b", jnp.array(2.0), constraint=constraints.positive)
    numpyro.sample("p", dist.Beta(a, b))


result = SVI(coins, coins_guide, numpyro.optim.Adam(0.05), Trace_ELBO(num_particles=8)).run(
    jr.key(4), 200, jnp.array([14, 13, 15, 12]), progress_bar=False)
print("beta", float(result.params["a"]), float(result.params["b"]))

for d in (dist.Gamma(2.0, 3.0), dist.LogNormal(0.1, 0.7), dist.VonMises(0.3, 2.0),
          dist.Gumbel(0.5, 2.0), dist.LKJCholesky(3, 1.5), dist.NegativeBinomial2(3.0, 2.0),
          dist.MultivariateNormal(jnp.zeros(2), jnp.array([[2.0, 0.3], [0.3, 1.0]]))):
    value = d.sample(jr.key(5), (3,))
    print(type(d).__name__, np.asarray(d.log_prob(value)))
