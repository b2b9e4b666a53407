# libraries: numpyro
# tolerance: 1e-3 (trajectories of many leapfrog steps amplify the rounding)
"""NumPyro: NUTS on a hierarchical model, SVI with a guide, and predictions of both."""
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.diagnostics import effective_sample_size, split_gelman_rubin
from numpyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO, log_likelihood
from numpyro.infer.autoguide import AutoDiagonalNormal, AutoNormal

effect = jnp.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
error = jnp.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools(error, effect=None):
    mean = numpyro.sample("mean", dist.Normal(0, 5))
    spread = numpyro.sample("spread", dist.HalfNormal(5))
    with numpyro.plate("school", len(error)):
        offset = numpyro.sample("offset", dist.Normal(0, 1))
        theta = numpyro.deterministic("theta", mean + spread * offset)
        numpyro.sample("observed", dist.Normal(theta, error), obs=effect)


def run(warmup, samples, **options):
    mcmc = MCMC(NUTS(schools, **options), num_warmup=warmup, num_samples=samples,
                progress_bar=False)
    mcmc.run(jr.key(0), error, effect=effect, extra_fields=("potential_energy", "num_steps"))
    return mcmc


short = run(0, 4, step_size=0.2, adapt_step_size=False, adapt_mass_matrix=False)
print("first samples", np.asarray(short.get_samples()["mean"]))
print("potential", np.asarray(short.get_extra_fields()["potential_energy"]))
print("steps", np.asarray(short.get_extra_fields()["num_steps"]))

samples = run(300, 700).get_samples(group_by_chain=True)
print({name: value.shape for name, value in sorted(samples.items())})
print("R-hat below 1.05:", bool(split_gelman_rubin(np.asarray(samples["mean"])) < 1.05))
print("effective size:", bool(effective_sample_size(np.asarray(samples["mean"])) > 100))
print("mean near 4.4:", bool(abs(samples["mean"].mean() - 4.4) < 1.0))

drawn = short.get_samples()
predicted = Predictive(schools, drawn)(jr.key(1), error)["observed"]
print("predicted", predicted.shape, np.asarray(predicted[0, :3]))
print("log likelihood",
      np.asarray(log_likelihood(schools, drawn, error, effect=effect)["observed"].sum(1)))

rng = np.random.default_rng(0)
features = rng.standard_normal((100, 3)).astype(np.float32)
labels = (features @ np.array([1.0, -2.0, 0.5]) + 0.3 > rng.logistic(size=100)).astype(np.int32)


def logistic(x, y=None):
    weights = numpyro.sample("weights", dist.Normal(jnp.zeros(3), 1).to_event(1))
    bias = numpyro.sample("bias", dist.Normal(0, 1))
    with numpyro.plate("row", len(x)):
        return numpyro.sample("y", dist.Bernoulli(logits=x @ weights + bias), obs=y)


for guide in (AutoNormal(logistic), AutoDiagonalNormal(logistic)):
    svi = SVI(logistic, guide, numpyro.optim.Adam(0.03), Trace_ELBO(num_particles=2))
    result = svi.run(jr.key(2), 150, features, labels, progress_bar=False)
    name = type(guide).__name__
    print(name, "losses", np.asarray(result.losses[::50]))
    median = guide.median(result.params)
    print(name, "medians", np.asarray(median["weights"]), float(median["bias"]))
    draws = guide.sample_posterior(jr.key(3), result.params, sample_shape=(5,))
    print(name, "draws", np.asarray(draws["bias"]))
    probability = jax.nn.sigmoid(features @ median["weights"] + median["bias"])
    print(name, "accuracy", float(np.mean((np.asarray(probability) > 0.5) == labels)))


def mixture(data):
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(2)))
    centres = numpyro.sample("centres", dist.Normal(jnp.array([-2.0, 2.0]), 1).to_event(1))
    kinds = dist.Categorical(weights)
    with numpyro.plate("data", len(data)):
        numpyro.sample("value", dist.MixtureSameFamily(kinds, dist.Normal(centres, 0.5)), obs=data)


data = np.concatenate([rng.normal(-1.5, 0.5, 30), rng.normal(1.8, 0.5, 70)]).astype(np.float32)
mcmc = MCMC(NUTS(mixture), num_warmup=100, num_samples=200, progress_bar=False)
mcmc.run(jr.key(4), data)
print("mixture", np.round(np.asarray(mcmc.get_samples()["centres"].mean(0))))
