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
LINES = {"where": WHERE, "division": DIVISION, "limits": LIMITS, "along axes": ALONG_AXES}

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


def texts(library, line, args):
    """The jaxprs of a line, by transformation."""
    space = {"jax": library, "jnp": library.numpy, "lax": library.lax, "np": np}
    names = "xyz"[:len(args)]
    function = eval(f"lambda {', '.join(names)}: {line}", space)
    return {mode: str(library.make_jaxpr(transform)(*given))
            for mode, transform, given in transformed(library, function, args)}


def comparable(text):
    """NumPy's integers as Python's: JAX's rules of vmap leave them in parameters, and no meaning is
    lost. Where lines are broken depends on their length."""
    return re.sub(r"\s+", " ", re.sub(r"np\.int64\((-?\d+)\)", r"\1", text)).replace(
        "[ ", "[").replace(" ]", "]")


@pytest.mark.parametrize("group, line", [pytest.param(group, line, id=f"{group}-{number}-{line[0]}")
                                  for group, lines in LINES.items()
                                  for number, line in enumerate(lines)])
def test_the_text_of_jax(group, line):
    text, *args = line
    expected = texts(jax, text, args)
    got = texts(maxjax, text, args)
    for mode, wanted in expected.items():
        if mode == "jvp" and group in JVP_DIFFERS:
            continue
        assert comparable(got[mode]) == comparable(wanted), (
            f"{mode}:\n{got[mode]}\nJAX:\n{wanted}")
