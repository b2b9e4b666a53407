"""Data analysis in NumPy's style without jit: tables, groups, quantiles, ridge regression."""
import jax.numpy as jnp
import numpy as np

rng = np.random.RandomState(77)
N = 500
group = jnp.array(rng.randint(0, 4, N))
age = jnp.array(rng.normal(40, 12, N).clip(18, 80), dtype=jnp.float32)
income = jnp.array(rng.lognormal(3.0, 0.5, N), dtype=jnp.float32) * (1 + 0.1 * group)
missing = jnp.array(rng.rand(N) < 0.1)
income = jnp.where(missing, jnp.nan, income)

print("missing", int(jnp.isnan(income).sum()), "mean", jnp.nanmean(income),
      "std", jnp.nanstd(income))
print("quartiles", jnp.nanquantile(income, jnp.array([0.25, 0.5, 0.75])))
values, counts = jnp.unique(group, return_counts=True)
print("groups", values, counts)
sums = jnp.zeros(4).at[group].add(jnp.nan_to_num(income))
present = jnp.zeros(4).at[group].add(~missing)
print("means by group", sums / present)
print("maxima by group", jnp.full(4, -jnp.inf).at[group].max(jnp.where(missing, -jnp.inf, income)))
filled = jnp.where(missing, jnp.nanmedian(income), income)

counts, edges = jnp.histogram(age, bins=6)
print("histogram", counts, edges)
decade = jnp.digitize(age, jnp.array([20.0, 30.0, 40.0, 50.0, 60.0]))
print("decades", jnp.bincount(decade, length=6))
table, _, _ = jnp.histogram2d(age, filled, bins=(2, 3))
print("table\n", table)
print("correlation", jnp.corrcoef(jnp.stack([age, filled, group.astype(jnp.float32)]))[0, 1:])
print("average", jnp.average(filled, weights=age), "median", jnp.median(filled))
order = jnp.argsort(filled)[::-1]
print("richest", order[:4], filled[order[:4]])
print("rank of 30", int(jnp.searchsorted(jnp.sort(filled), 30.0)))
gini = jnp.abs(filled[:, None] - filled[None, :]).mean() / (2 * filled.mean())
print("Gini %.6f" % gini)
print("moving average", jnp.convolve(jnp.sort(filled), jnp.ones(5) / 5, mode="valid")[::100])
print("trapezoid", jnp.trapezoid(jnp.sin(jnp.linspace(0, 3, 50)), dx=3 / 49),
      "interp", jnp.interp(jnp.array([20.0, 45.0]), edges, jnp.arange(7.0)))

# ridge regression, five-fold cross-validation
columns = [jnp.ones(N), (age - age.mean()) / age.std(), *(group == g for g in (1, 2, 3))]
X = jnp.column_stack(columns)
target = jnp.log(filled)
folds = jnp.arange(N) % 5
for l2 in (0.0, 10.0, 1000.0):
    errors = []
    for fold in range(5):
        train, test = X[folds != fold], X[folds == fold]
        w = jnp.linalg.solve(train.T @ train + l2 * jnp.eye(X.shape[1]),
                             train.T @ target[folds != fold])
        errors.append(jnp.mean((test @ w - target[folds == fold]) ** 2))
    print(f"l2 {l2}: {jnp.array(errors).mean():.6f}")
print("dtypes", X.dtype, (group == 1).dtype, (group / 2).dtype, jnp.mean(group).dtype)
print(jnp.array_split(jnp.arange(7), 3), jnp.tril(jnp.ones((2, 2), int)), repr(jnp.float32(1.5)))
print(jnp.select([age[:4] < 30, age[:4] < 50], [0, 1], 2), jnp.round(age[:3], 1))
u, inverse = jnp.unique(jnp.array([3, 1, 3, 2]), return_inverse=True)
print(u, inverse, jnp.isin(jnp.arange(4), u), jnp.setdiff1d(jnp.arange(5), u))
