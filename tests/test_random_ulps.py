"""Every sampler against JAX: seeds by shapes by dtypes, bit for bit or within a few ulp.

Exact are the results that are a function of the bits by integers, comparisons, sums and products
rounded once, and counts. The others hold a transcendental, and XLA's functions are not always the
rounded ones: within 4 ulp, but where several follow one another (CHAINS: a gamma variate is the
cube of a normal one times a power). Of logarithms, which cross zero, an ulp is at least that of 1.

The tests take one shape and two seeds; ``python tests/test_random_ulps.py`` prints the whole table.
"""

import jax
import numpy as np
import pytest
from test_random import numpy_of

import maxjax

SEEDS = (0, -1)
SHAPES = ((67,),)
ALL_SEEDS = (0, -1, 994_109_005, 2**31 - 1)
ALL_SHAPES = ((), (5,), (3, 67), (4001,))
FLOATS = ("float32", "bfloat16", "float16")
P = np.array([0.1, 0.2, 0.3, 0.2, 0.2], np.float32)
COV = np.array([[2.0, 0.5], [0.5, 1.0]], np.float32)

# sampler -> (call of the module, key, shape and dtype; dtypes)
EXACT = {
    "bits": (lambda r, k, s, d: r.bits(k, s, d), ("uint8", "uint16", "uint32")),
    "randint": (lambda r, k, s, d: r.randint(k, s, -5, 77, d), ("int8", "int16", "int32")),
    "uniform": (lambda r, k, s, d: r.uniform(k, s, d), FLOATS),
    "bernoulli": (lambda r, k, s, d: r.bernoulli(k, 0.3, s), ("bool",)),
    "rademacher": (lambda r, k, s, d: r.rademacher(k, s, d), ("int32", "float32")),
    "choice": (lambda r, k, s, d: r.choice(k, 9, s), ("int32",)),
    "permutation": (lambda r, k, s, d: r.permutation(k, 67), ("int32",)),
    "categorical": (lambda r, k, s, d: r.categorical(k, np.log(P), shape=s), ("int32",)),
    "split": (lambda r, k, s, d: r.key_data(r.split(k, s)), ("uint32",)),
    "fold_in": (lambda r, k, s, d: r.key_data(r.fold_in(k, 9)), ("uint32",)),
    "poisson": (lambda r, k, s, d: r.poisson(k, 7.0, s), ("int32",)),
    "geometric": (lambda r, k, s, d: r.geometric(k, 0.2, s), ("int32",)),
    "binomial": (lambda r, k, s, d: r.binomial(k, 20, 0.3, s), ("float32",)),
    "binomial large": (lambda r, k, s, d: r.binomial(k, 500, 0.7, s), ("float32",)),
    "multinomial": (lambda r, k, s, d: r.multinomial(k, 30, P, shape=(*s, 5)), ("float32",)),
    "rbg bits": (lambda r, k, s, d: r.bits(r.key(5, impl="rbg"), s, d), ("uint8", "uint32")),
    "rbg split": (lambda r, k, s, d: r.key_data(r.split(r.key(5, impl="rbg"), s)), ("uint32",)),
    "unsafe_rbg split": (lambda r, k, s, d: r.key_data(r.split(
        r.key(5, impl="unsafe_rbg"), s)), ("uint32",)),
}
CLOSE = {
    "normal": (lambda r, k, s, d: r.normal(k, s, d), FLOATS),
    "truncated_normal": (lambda r, k, s, d: r.truncated_normal(k, -1.0, 2.0, s, d), FLOATS),
    "exponential": (lambda r, k, s, d: r.exponential(k, s, d), FLOATS),
    "gumbel": (lambda r, k, s, d: r.gumbel(k, s, d), FLOATS[:2]),
    "laplace": (lambda r, k, s, d: r.laplace(k, s, d), FLOATS),
    "logistic": (lambda r, k, s, d: r.logistic(k, s, d), FLOATS[:2]),
    "cauchy": (lambda r, k, s, d: r.cauchy(k, s, d), FLOATS),
    "lognormal": (lambda r, k, s, d: r.lognormal(k, 0.5, s, d), ("float32",)),
    "maxwell": (lambda r, k, s, d: r.maxwell(k, s, d), ("float32",)),
    "double_sided_maxwell": (lambda r, k, s, d: r.double_sided_maxwell(k, 0.0, 2.0, s, d),
                             ("float32",)),
    "pareto": (lambda r, k, s, d: r.pareto(k, 2.0, s, d), ("float32",)),
    "rayleigh": (lambda r, k, s, d: r.rayleigh(k, 2.0, s, d), ("float32",)),
    "weibull_min": (lambda r, k, s, d: r.weibull_min(k, 2.0, 3.0, s, d), ("float32",)),
    "triangular": (lambda r, k, s, d: r.triangular(k, 0.0, 0.3, 1.0, s, d), ("float32",)),
}
# More than 4 ulp: rounding errors of one function go through the next ones, or cancel (all of a QR
# decomposition in the small elements of its factor); in float16
# XLA rounds once, at the end. test_random.py looks at one draw of most.
CHAINS = {
    "orthogonal": (lambda r, k, s, d: r.orthogonal(k, 3, s[:1]), ("float32",)),
    "wald": (lambda r, k, s, d: r.wald(k, 2.0, s, d), ("float32",)),
    "multivariate_normal": (lambda r, k, s, d: r.multivariate_normal(
        k, np.zeros(2, np.float32), COV, s, d), ("float32",)),
    "gumbel float16": (lambda r, k, s, d: r.gumbel(k, s, d), ("float16",)),
    "logistic float16": (lambda r, k, s, d: r.logistic(k, s, d), ("float16",)),
    "gamma": (lambda r, k, s, d: r.gamma(k, 2.5, s, d), ("float32",)),
    "gamma small": (lambda r, k, s, d: r.gamma(k, 0.4, s, d), ("float32",)),
    "loggamma": (lambda r, k, s, d: r.loggamma(k, 2.5, s, d), ("float32",)),
    "beta": (lambda r, k, s, d: r.beta(k, 2.0, 3.0, s, d), ("float32",)),
    "chisquare": (lambda r, k, s, d: r.chisquare(k, 3.0, s, d), ("float32",)),
    "dirichlet": (lambda r, k, s, d: r.dirichlet(k, 5 * P, s, d), ("float32",)),
    "f": (lambda r, k, s, d: r.f(k, 3.0, 4.0, s, d), ("float32",)),
    "t": (lambda r, k, s, d: r.t(k, 3.0, s, d), ("float32",)),
    "ball": (lambda r, k, s, d: r.ball(k, 3, shape=s, dtype=d), ("float32",)),
    "generalized_normal": (lambda r, k, s, d: r.generalized_normal(k, 3.0, s, d), ("float32",)),
}
LOGARITHMS = ("gumbel", "gumbel float16", "logistic", "logistic float16", "loggamma")


def draws(library, call, dtypes, seeds, shapes):
    """All shapes and dtypes of one sampler, as one program of the key."""
    def all_of(key):
        return [call(library.random, key, shape, dtype) for shape in shapes for dtype in dtypes]

    jitted = library.jit(all_of)
    return [numpy_of(library, value) for seed in seeds
            for value in jitted(library.random.key(seed))]


def pairs(call, dtypes, seeds=SEEDS, shapes=SHAPES):
    ours, theirs = (draws(library, call, dtypes, seeds, shapes) for library in (maxjax, jax))
    for mine, real in zip(ours, theirs, strict=True):
        assert mine.dtype == real.dtype and mine.shape == real.shape
        yield mine, real


def distance(name, ours, theirs):
    """The greatest difference in ulp."""
    scale = np.abs(theirs)
    if name in LOGARITHMS:
        scale = np.maximum(scale, scale.dtype.type(1))
    info = jax.numpy.finfo(theirs.dtype)
    scale = np.maximum(scale.astype(float), float(info.tiny))
    ulp = np.exp2(np.floor(np.log2(scale)) - info.nmant)
    return float(np.max(np.abs(ours.astype(float) - theirs.astype(float)) / ulp, initial=0))


@pytest.mark.parametrize("name", EXACT)
def test_bit_for_bit(name):
    for ours, theirs in pairs(*EXACT[name]):
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("name", CLOSE)
def test_within_ulps(name):
    for ours, theirs in pairs(*CLOSE[name]):
        assert distance(name, ours, theirs) <= 4


def main():
    for name, (call, dtypes) in {**EXACT, **CLOSE, **CHAINS}.items():
        worst = {}
        for ours, theirs in pairs(call, dtypes, ALL_SEEDS, ALL_SHAPES):
            found = (int((ours != theirs).sum()) if name in EXACT
                     else round(distance(name, ours, theirs), 1))
            worst[ours.dtype.name] = max(worst.get(ours.dtype.name, 0), found)
        print(f"{name:22}", worst, "elements differ" if name in EXACT else "ulp", flush=True)


if __name__ == "__main__":
    main()
