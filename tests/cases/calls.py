"""Calls: jit, custom_jvp, and copies, with the derivatives and batches of what they call."""

from __future__ import annotations

import importlib

import numpy as np

from tests.support.harness import Case

RNG = np.random.default_rng(0)
X, Y = (RNG.normal(size=(3, 4)).astype(np.float32) for _ in range(2))
N = np.arange(4, dtype=np.int32)


def jitted(j, x, y):
    return j.jit(lambda a, b: (j.numpy.sin(a) * b, b - a))(x, y)


def nested(j, x, y):
    inner = j.jit(lambda a: j.numpy.tanh(a) * y)      # closes over a value
    return j.jit(lambda a: inner(a) + inner(2 * a))(x)


def integers(j, x, n):
    return j.jit(lambda a, i: (a * i, i + 1))(x, n)


def own_rule(j):
    @j.custom_jvp
    def f(x, y):
        return j.numpy.sin(x) * y

    @f.defjvp
    def f_jvp(primals, tangents):
        (x, y), (x_tangent, y_tangent) = primals, tangents
        # Not the true derivative: so it shows which rule is used.
        return f(x, y), 3 * y * x_tangent + j.numpy.cos(x) * y_tangent

    return f


def rules_by_argument(j):
    @j.custom_jvp
    def f(x, y):
        return x * x * y

    f.defjvps(lambda t, out, x, y: 2 * t * x * y, None)
    return f


CASES = [
    Case("jit", jitted, (X, Y)),
    Case("jit-nested", nested, (X, Y)),
    Case("jit-linear", lambda j, x: j.jit(lambda a: 2 * a[::-1])(x), (X,), linear=True),
    Case("jit-integers", integers, (X, N)),
    Case("jit-constant", lambda j, x: j.jit(lambda a: (j.numpy.ones(3), a))(x), (X,)),
    Case("jit-weak", lambda j, x: j.jit(lambda a: a * 2)(x), (1.5,)),
    Case("custom_jvp", lambda j, x, y: own_rule(j)(x, y), (X, Y), smooth=False,
         primitives=("custom_jvp_call",)),
    Case("custom_jvp-jit", lambda j, x, y: j.jit(own_rule(j))(x, y), (X, Y), smooth=False),
    Case("custom_jvp-defjvps", lambda j, x, y: rules_by_argument(j)(x, y), (X, Y), smooth=False),
    Case("custom_jvp-vmap", lambda j, x, y: j.vmap(own_rule(j))(x, y), (X, Y), smooth=False),
    Case("checkpoint_name", lambda j, x: importlib.import_module(
        f"{j.__name__}.ad_checkpoint").checkpoint_name(j.numpy.sin(x), "sine"), (X,)),
    Case("copy", lambda j, x: j.numpy.array(x, copy=True), (X,), linear=True, tolerance="exact"),
    Case("copy-integers", lambda j, x: j.numpy.copy(x), (N,), differentiable=False,
         tolerance="exact"),
]
