"""Jaxprs as JAX prints them: the same text of calls, their derivatives, batches and loops."""

from __future__ import annotations

import re

import jax
import jax.numpy
import numpy as np
import pytest

import maxjax

V = np.arange(3, dtype=np.float32)
M = np.arange(12, dtype=np.float32).reshape(4, 3)
I = np.array([0, 2, 1], np.int32)
H = V.astype(jax.numpy.bfloat16)
S = np.eye(3, dtype=np.float32) + M[:3]
K = np.array([0, 1], np.uint32)

# Lines by what they show, each an expression of ``x`` (and ``y``), and the arguments.
WHERE = [
    ("jnp.where(x > 0, x, 0.)", V), ("jnp.where(x > 0, x, 0.)", 1.0), ("jnp.where(x, y, 1)", 1, V),
    ("jnp.where(x[:, None] > 0, y, x[:, None])", V, H[None]), ("jnp.where(True, x, 0)", I),
    ("jnp.where(x > 1, jnp.where(x > 2, x, y), y)", V, M), ("jnp.where(x, x, np.zeros(3))", I),
]
DIVISION = [
    ("jnp.floor_divide(x, y)", V, V + 1), ("x // 2", V), ("x % 2", V), ("x % y", M, V + 1),
    ("jnp.mod(x, 3)", I), ("x // 2", I),
]
LIMITS = [
    ("jnp.clip(x, 0, 1)", V), ("jnp.clip(x, y)", V, I), ("jnp.clip(x, max=y)", M, V),
    ("x.clip(0.5)", H),
]
ALONG_AXES = [
    ("jnp.cumsum(x)", M), ("jnp.cumsum(x, 1)", M), ("jnp.cumsum(x)", I), ("jnp.cumprod(x)", I),
]
ORDER = [
    ("jnp.sort(x)", V), ("jnp.sort(x, axis=None)", M), ("jnp.argsort(x)", V),
    ("jnp.argsort(x, descending=True)", M), ("jnp.flip(x)", M), ("jnp.flip(x, 1)", M),
    ("jnp.fliplr(x)", M), ("jnp.roll(x, 1)", M), ("jnp.roll(x, (1, 1), (0, 1))", M),
    ("jnp.take(x, y, axis=0)", M, I), ("jnp.take(x, y)", V, I), ("jnp.take(x, y)", I, I),
    ("jnp.take_along_axis(x, y, axis=0)", V, I), ("jnp.take_along_axis(x, y, axis=0)", I, I),
]
SHAPES = [
    ("jnp.pad(x, 1)", M), ("jnp.pad(x, ((1, 0), (0, 2)), constant_values=1)", M),
    ("jnp.tril(x)", M), ("jnp.triu(x, 1)", np.stack([M, M])), ("jnp.diff(x)", V),
    ("jnp.diff(x, prepend=y)", V, V), ("jnp.atleast_1d(x)", V), ("jnp.atleast_2d(x)", V),
    ("jnp.vstack([x, x])", V), ("jnp.hstack([x, x])", M), ("jnp.kron(x, y)", M, V),
    ("jnp.cross(x, y)", V, V), ("jax.lax.reshape(x, ())", 1.0),
]
REDUCED = [
    ("jnp.var(x)", M), ("jnp.var(x, axis=1, ddof=1)", M), ("jnp.var(x)", I), ("jnp.var(x)", H),
    ("jnp.std(x, axis=1, keepdims=True)", M), ("jnp.ptp(x)", M), ("jnp.count_nonzero(x)", M),
    ("jnp.nansum(x)", M), ("jnp.linalg.norm(x)", M), ("jnp.linalg.norm(x, axis=1)", M),
    ("jnp.linalg.norm(x, 1, axis=1)", M), ("jax.nn.logsumexp(x)", M),
    ("jax.nn.logsumexp(x, axis=1)", M),
]
ELEMENTS = [
    ("jnp.round(x)", V), ("jnp.round(x, 2)", V), ("jnp.round(x)", I), ("jnp.isinf(x)", V),
    ("jnp.isclose(x, y)", V, V), ("jnp.isclose(x, y, 1e-3)", V, V), ("jnp.allclose(x, y)", V, V),
    ("jnp.nan_to_num(x)", V), ("jnp.sinc(x)", V),
    ("jnp.logaddexp(x, y)", V, V), ("jnp.polyval(x, y)", V, V), ("jnp.convolve(x, y)", V, V),
    ("jnp.correlate(x, y)", V, V),
]
NETWORKS = [
    ("jax.nn.softplus(x)", V), ("jax.nn.log_sigmoid(x)", V), ("jax.nn.mish(x)", V),
    ("jax.nn.one_hot(x, 4)", I), ("jax.nn.standardize(x)", M),
    ("jax.nn.standardize(x, epsilon=1e-3)", M),
]
MATRICES = [
    ("jnp.linalg.qr(x)", S), ("jnp.linalg.svd(x)", S), ("jnp.linalg.eigh(x)", S),
    ("jax.scipy.linalg.solve_triangular(x, y)", S, V),
    ("jax.scipy.linalg.cho_solve((x, True), y)", S, V), ("jnp.fft.fft(x)", V),
    ("jnp.fft.rfft(x)", V), ("jnp.fft.ifft(x)", V),
]
SAMPLES = [
    ("jax.random.normal(jax.random.wrap_key_data(x))", K),
    ("jax.random.bernoulli(jax.random.wrap_key_data(x))", K),
    ("jax.random.uniform(jax.random.wrap_key_data(x), (3,))", K),
]
LINES = {"where": WHERE, "division": DIVISION, "limits": LIMITS, "along axes": ALONG_AXES}

# Those of which the calls are compared, and not what transformations make of what is in them.
CALLS = {"order": ORDER, "shapes": SHAPES, "reduced": REDUCED, "elements": ELEMENTS,
         "networks": NETWORKS, "matrices": MATRICES, "samples": SAMPLES}

# Groups whose derivatives by jvp print otherwise, and why.
JVP_DIFFERS = {
    "division": "JAX writes zeros that nothing reads for a choice, and subtracts tangents",
}


def transformed(library, function, args):
    """Functions of arrays that the transformations make of one, with their arguments."""
    inexact = [n for n, x in enumerate(args) if np.asarray(x).dtype.kind not in "iub"]
    yield "plain", function, args
    arrays = [None if np.ndim(x) == 0 else 0 for x in args]
    if any(axis is not None for axis in arrays) and 0 not in map(np.size, args):
        batch = [x if axis is None else np.stack([x, x]) for x, axis in zip(args, arrays)]
        yield "vmap", library.vmap(function, arrays), batch
    if inexact:
        def total(*args):
            leaves = library.tree.leaves(function(*args))
            return sum(leaf.sum() if leaf.ndim else leaf
                       for leaf in leaves if leaf.dtype.kind not in "iub")
        yield "grad", library.grad(total, inexact[0]), args
        first = inexact[0]
        yield "jvp", lambda *args: library.jvp(
            lambda x: function(*args[:first], x, *args[first + 1:]),
            (args[first],), (args[first],)), args


def function_of(library, line, args):
    space = {"jax": library, "jnp": library.numpy, "lax": library.lax, "np": np}
    names = "xyz"[:len(args)]
    return eval(f"lambda {', '.join(names)}: {line}", space)


def texts(library, line, args):
    """The jaxprs of a line, by transformation."""
    function = function_of(library, line, args)
    return {mode: str(library.make_jaxpr(transform)(*given))
            for mode, transform, given in transformed(library, function, args)}


def comparable(text):
    """NumPy's integers as Python's: JAX's rules of vmap leave them in parameters, and no meaning is
    lost. Where lines are broken depends on their length."""
    return re.sub(r"\s+", " ", re.sub(r"np\.int64\((-?\d+)\)", r"\1", text)).replace(
        "[ ", "[").replace(" ]", "]")


def rows(groups):
    return pytest.mark.parametrize("group, line", [
        pytest.param(group, line, id=f"{group}-{number}-{line[0]}")
        for group, lines in groups.items() for number, line in enumerate(lines)])


@rows(LINES)
def test_the_text_of_jax(group, line):
    text, *args = line
    expected = texts(jax, text, args)
    got = texts(maxjax, text, args)
    for mode, wanted in expected.items():
        if mode == "jvp" and group in JVP_DIFFERS:
            continue
        assert comparable(got[mode]) == comparable(wanted), (
            f"{mode}:\n{got[mode]}\nJAX:\n{wanted}")


@rows(CALLS)
def test_the_call_of_jax(group, line):
    text, *args = line
    expected, got = (str(library.make_jaxpr(function_of(library, text, args))(*args))
                     for library in (jax, maxjax))
    assert comparable(got) == comparable(expected), f"\n{got}\nJAX:\n{expected}"
