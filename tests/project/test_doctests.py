"""The examples in the docstrings of the public functions run, and every function has one.

The names ``jax``, ``jnp``, ``lax``, ``np`` and the function's own are available without an import.
"""

from __future__ import annotations

import collections
import doctest
import importlib
import inspect
import os
import types
import typing

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("MAXJAX_COMPILE", "never")

import numpy as np
import pytest

import maxjax
import maxjax.lax
import maxjax.numpy

DISTRIBUTIONS = (
    "bernoulli beta betabinom binom cauchy chi2 dirichlet expon gamma gennorm geom gumbel_l "
    "gumbel_r laplace logistic multinomial multivariate_normal nbinom norm pareto poisson t "
    "truncnorm uniform vonmises wrapcauchy").split()
MODULES = ("numpy", "numpy.linalg", "numpy.fft", "lax", "lax.linalg", "ad_checkpoint",
           "custom_batching", "custom_derivatives", "test_util", "ops", "image",
           "example_libraries.optimizers", "scipy.special", "scipy.linalg", "scipy.fft",
           "scipy.signal", "scipy.ndimage", "scipy.optimize", "scipy.integrate",
           "scipy.cluster.vq", "scipy.sparse.linalg", "scipy.stats", "experimental.ode",
           "nn", "nn.initializers", "random", "tree", "tree_util",
           "export", "extend.core", "extend.mojo", "interpreters.ad", "interpreters.batching",
           "extend.linear_util", "extend.source_info_util",
           "extend.random", "extend.backend", "ffi", "interpreters.mlir",
           "interpreters.partial_eval", "interpreters.xla", "interpreters.pxla", "api_util",
           "scipy.interpolate", "scipy.spatial.transform", "profiler", "monitoring",
           "distributed", "experimental.jet", "experimental.sparse",
           "experimental.sparse.linalg", "experimental.multihost_utils",
           "experimental.layout", "experimental.compilation_cache.compilation_cache",
           "experimental.xla_metadata", "experimental.compute_on", "experimental.hijax",
           "experimental.rnn", "experimental.buffer_callback", "experimental.roofline.roofline",
           "experimental.pallas", "experimental.overlap", "experimental.scheduling_groups",
           "ref", "ad",
           *(f"scipy.stats.{name}" for name in DISTRIBUTIONS))
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


def _module(package, name):
    try:
        return importlib.import_module(f"{package}.{name}")
    except ImportError:
        return types.ModuleType(name)


def _is_ours(value):
    """NumPy's own classes are public names here too, with NumPy's documentation."""
    module = getattr(value, "__module__", None) or type(value).__module__
    return not module.startswith(("numpy", "ml_dtypes", "builtins", "typing", "collections")) and (
        not isinstance(value, typing.NewType))


def _callables():
    """name -> (object, the file that it comes from); an alias counts once."""
    found, seen = {}, set()
    for module in MODULES:
        ours = _module("maxjax", module)
        public = [name for name in dir(_module("jax", module)) if not name.startswith("_")]
        for name in public:
            value = getattr(ours, name, None)
            if (not callable(value) or inspect.ismodule(value) or id(value) in seen
                    or not _is_ours(value)):
                continue
            seen.add(id(value))
            found[f"{module}.{name}"] = value
    return found


CALLABLES = _callables()


def _methods():
    return {name: member for name, member in vars(maxjax.Array).items()
            if not name.startswith("_") and (callable(member) or isinstance(member, property))}


def _area(value):
    code = getattr(inspect.unwrap(getattr(value, "_call", value)), "__code__", None)
    if code is None:
        return getattr(value, "__module__", "?")
    return code.co_filename.rpartition("maxjax/")[2]


def _run(name, text, value=None):
    environment = {name.rpartition(".")[2]: value,
                   "jax": maxjax, "jnp": maxjax.numpy, "lax": maxjax.lax, "np": np}
    example = doctest.DocTestParser().get_doctest(text, environment, name, None, None)
    printed: list[str] = []
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    result = runner.run(example, out=printed.append)
    assert not result.failed, "".join(printed)


@pytest.mark.parametrize("name", [n for n, v in CALLABLES.items() if ">>>" in (v.__doc__ or "")])
def test_an_example_prints_what_it_says(name):
    _run(name, CALLABLES[name].__doc__, CALLABLES[name])


@pytest.mark.parametrize("name", [n for n, m in _methods().items() if ">>>" in (m.__doc__ or "")])
def test_example_of_method(name):
    _run(f"Array.{name}", _methods()[name].__doc__)


def test_every_function_has_an_example():
    lacking = collections.defaultdict(list)
    for name, value in CALLABLES.items():
        if ">>>" not in (value.__doc__ or ""):
            lacking[_area(value)].append(name)
    listing = "".join(
        f"\n{area} ({len(names)}): {', '.join(sorted(names))}"
        for area, names in sorted(lacking.items()))
    assert not lacking, f"{sum(map(len, lacking.values()))} without an example:{listing}"


def test_every_method_is_described():
    lacking = [name for name, member in _methods().items() if not (member.__doc__ or "").strip()]
    assert not lacking
