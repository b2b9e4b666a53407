# libraries: numpyro
# tolerance: 2e-2 (chains part once rounding has decided a proposal; means of the posterior remain)
"""NumPyro: NUTS on a hierarchical regression, summaries, predictions, and a discrete mixture."""
import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS, Predictive, log_likelihood
from numpyro.infer.reparam import LocScaleReparam

rng = np.random.default_rng(0)
GROUPS = 6
group = np.repeat(np.arange(GROUPS), 12)
x = rng.standard_normal(group.size).astype(np.float32)
slopes = 1.0 + 0.5 * rng.standard_normal(GROUPS)
y = (0.3 + slopes[group] * x + 0.2 * rng.standard_normal(group.size)).astype(np.float32)


@numpyro.handlers.reparam(config={"slope": LocScaleReparam(0)})
def model(x, group, y=None):
    intercept = numpyro.sample("intercept", dist.Normal(0.0, 1.0))
    mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    noise = numpyro.sample("noise", dist.HalfNormal(1.0))
    with numpyro.plate("groups", GROUPS):
        slope = numpyro.sample("slope", dist.Normal(mean, spread))
    with numpyro.plate("data", x.shape[0]):
        numpyro.sample("y", dist.Normal(intercept + slope[group] * x, noise), obs=y)


# A few draws of a seed are alike to the last digits; the means of many only statistically.
mcmc = MCMC(NUTS(model, dense_mass=False), num_warmup=0, num_samples=4, progress_bar=False)
mcmc.run(jr.key(0), x, group, y, init_params=None)
for name, value in sorted(mcmc.get_samples().items()):
    print("first draw of", name, np.asarray(value[0]))

mcmc = MCMC(NUTS(model, target_accept_prob=0.9), num_warmup=300, num_samples=700,
            num_chains=2, chain_method="vectorized", progress_bar=False)
mcmc.run(jr.key(1), x, group, y)
samples = mcmc.get_samples()
print("slopes near the truth:", bool(np.all(np.abs(samples["slope"].mean(0) - slopes) < 0.25)))
print("intercept", round(float(samples["intercept"].mean()), 1))
print("noise", round(float(samples["noise"].mean()), 1))
summary = numpyro.diagnostics.summary(mcmc.get_samples(group_by_chain=True))
print("chains agree:", all(np.all(s["r_hat"] < 1.05) for s in summary.values()))
print("few divergences:", int(mcmc.get_extra_fields()["diverging"].sum()) < 20)

predictions = Predictive(model, samples)(jr.key(2), x, group)
print("predictions", predictions["y"].shape,
      bool(np.corrcoef(predictions["y"].mean(0), y)[0, 1] > 0.95))
likelihood = log_likelihood(model, samples, x, group, y)["y"]
print("likelihood", likelihood.shape, bool(jnp.isfinite(likelihood).all()))


def mixture(data):
    weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(2)))
    locs = numpyro.sample("locs", dist.TransformedDistribution(
        dist.Normal(0, 5).expand([2]).to_event(1), dist.transforms.OrderedTransform()))
    with numpyro.plate("points", len(data)):
        numpyro.sample("obs", dist.MixtureSameFamily(
            dist.Categorical(weights), dist.Normal(locs, 1.0)), obs=data)


data = np.concatenate([rng.normal(-3, 1, 60), rng.normal(3, 1, 40)]).astype(np.float32)
mcmc = MCMC(NUTS(mixture), num_warmup=200, num_samples=300, progress_bar=False)
mcmc.run(jr.key(3), data)
print("means", np.round(np.asarray(mcmc.get_samples()["locs"].mean(0)), 0))
print("log density", float(numpyro.infer.util.log_density(
    mixture, (data,), {}, {"weights": jnp.array([0.6, 0.4]), "locs": jnp.array([-3.0, 3.0])})[0]))
print(jax.tree.map(jnp.shape, mcmc.get_samples()))
