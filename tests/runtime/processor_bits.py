"""Prints tier 0's results, as a digest for each function, dtype and layout: one process's bits.

    python -m tests.runtime.processor_bits

``test_processors`` runs it with and without NumPy's routines for some processors.
"""

import hashlib
import json
import os
import sys

os.environ["MAXJAX_COMPILE"] = "never"      # no compiled kernels: NumPy's rules

import numpy as np

import maxjax
import maxjax.numpy as jnp
from maxjax import lax
from tests.support.elementwise import LAX

# Functions that round more than once.
ROUNDING = [row for row in LAX.values() if row.tolerance == "iterative" and row.operands == 2
            or row.kernel is not None and row.kernel.truth is not None]
COMPLEX = [*(row.name for row in LAX.values() if row.analytic), "abs", "pow"]
SAMPLERS = """normal cauchy gumbel laplace logistic exponential maxwell rayleigh
    truncated_normal beta gamma t pareto""".split()
PARAMETERS = {"beta": (2.0, 3.0), "gamma": (1.5,), "t": (3.0,), "pareto": (2.0,),
              "rayleigh": (2.0,), "truncated_normal": (-1.0, 2.0)}
REALS = ("float16", "bfloat16", "float32", "float64")
# Slow ones, which are the same function under another name.
SHORT = ("igamma_grad_a", "random_gamma_grad")
LARGE = 70_001


def digest(value):
    value = np.array(value)
    value[np.isnan(value)] = np.nan     # of either sign
    return hashlib.blake2b(value.tobytes(), digest_size=8).hexdigest()


def layouts(values, large):
    """0-d, a vector with a tail, gaps, columns first, and many."""
    yield values[5]
    yield values[:1003]
    yield values[:3000:3]
    yield values[:3000].reshape(50, 60).T
    if large:
        yield values


def operands(dtype, count=1, positive=False):
    rng = np.random.default_rng(7)
    for _ in range(count):
        values = rng.standard_normal(LARGE) * np.exp2(rng.integers(-6, 4, LARGE))
        if positive:
            values = np.abs(values)
        if np.dtype(dtype).kind == "c":
            values = values + 1j * rng.standard_normal(LARGE)
        yield jnp.asarray(values.astype(dtype))


def results():
    for dtype in REALS:
        for row in ROUNDING:
            name = row.name
            positive = row.operands == 2 and all(low > 0 for low, _ in row.domain[:1])
            arrays = list(operands(jnp.dtype(dtype), row.operands, positive))
            for which, values in enumerate(zip(
                    *[layouts(array, name not in SHORT) for array in arrays], strict=True)):
                yield f"{name} {dtype} {which}", getattr(lax, name)(*values)
        if dtype != "float64":
            for name in ("exp", "log", "sum", "mean", "var", "cumsum", "prod"):
                array, = operands(jnp.dtype(dtype))
                yield f"numpy.{name} {dtype}", getattr(jnp, name)(array)
    for dtype in ("complex64", "complex128"):
        for name in COMPLEX:
            arrays = operands(dtype, LAX[name].operands)
            yield f"{name} {dtype}", getattr(lax, name)(*[array[:3000] for array in arrays])
    for dtype in ("float32", "float64"):
        for name in SAMPLERS:
            key, parameters = maxjax.random.key(1), PARAMETERS.get(name, ())
            yield f"random.{name} {dtype}", getattr(maxjax.random, name)(
                key, *parameters, shape=(1003,), dtype=dtype)


def main():
    with maxjax.enable_x64(True):
        json.dump({name: digest(value) for name, value in results()}, sys.stdout)


if __name__ == "__main__":
    main()
