"""Random programs about matrices: solves, factorizations, views, loops and branches, under nests of
transformations, for either library. Results depend continuously on the argument, so that they can
be compared. No Fourier transforms: XLA refuses some of what LAPACK lays out by columns, in JAX's
own programs too."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[[Any], Any]


def regular(j: Any, x: Any) -> Any:
    """A matrix with eigenvalues and singular values well apart, and no pivot near another."""
    n = x.shape[-1]
    return j.numpy.diag(j.numpy.arange(2, 2 * n + 2, 2, dtype=x.dtype)) + 0.1 * j.numpy.tanh(x)


def _definite(j: Any, x: Any) -> Any:
    a = regular(j, x)
    return a @ a.T


def _factors(j: Any, a: Any) -> Any:
    lu, _, permutation = j.lax.linalg.lu(a)
    return lu[permutation]


STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "solve": lambda j, x: j.numpy.linalg.solve(regular(j, x), x),
    "solve of a vector": lambda j, x: j.numpy.linalg.solve(regular(j, x), x[0]) * x,
    "inverse": lambda j, x: j.numpy.linalg.inv(regular(j, x)) + x,
    "triangular": lambda j, x: j.scipy.linalg.solve_triangular(
        regular(j, x), x, lower=True, trans=1),
    "cholesky": lambda j, x: j.numpy.linalg.cholesky(_definite(j, x)),
    "by cholesky": lambda j, x: j.scipy.linalg.cho_solve(
        j.scipy.linalg.cho_factor(_definite(j, x)), x),
    "lu": lambda j, x: _factors(j, regular(j, x)),
    "qr": lambda j, x: j.numpy.linalg.qr(regular(j, x))[1] * 0.5,
    "eigenvalues": lambda j, x: j.numpy.linalg.eigvalsh(regular(j, x))[:, None] * x,
    "determinant": lambda j, x: x * j.numpy.linalg.slogdet(regular(j, x))[1],
    "singular values": lambda j, x: j.numpy.linalg.svd(regular(j, x), compute_uv=False) + x,
    "reversed": lambda j, x: x[::-1, :].T,
    "shifted": lambda j, x: j.numpy.roll(x, 1, 0)[:, ::-1] - x[:1],
    "diagonal": lambda j, x: x + j.numpy.diagonal(x),
    "updated": lambda j, x: x.at[1:, 0].set(x[0, 1:]).at[0].multiply(2),
    "gathered": lambda j, x: x[j.numpy.array([1, 0, 2]), :] + x[:, 1],
    "sorted": lambda j, x: j.numpy.sort(x, 1),
    "product": lambda j, x: j.numpy.tanh(x @ x.T),
    "summed": lambda j, x: j.numpy.cumsum(x, 0) - j.numpy.max(x, 1, keepdims=True),
    "padded": lambda j, x: j.numpy.pad(x, 1)[1:-1, :-2] + x,
}


def _scanned(j: Any, f: Function, length: int) -> Function:
    def function(x):
        carry, rows = j.lax.scan(lambda c, k: (j.numpy.tanh(f(c)) + k * x, c[0].sum()), x,
                                 j.numpy.arange(length, dtype=x.dtype))
        return carry + rows.sum()
    return function


WRAPPERS: dict[str, Callable[[Any, Function, int], Function]] = {
    "scan": _scanned,
    "fori_loop": lambda j, f, count: lambda x: j.lax.fori_loop(
        0, count, lambda i, c: j.numpy.tanh(f(c)) + 0.1 * i, x),
    "cond": lambda j, f, count: lambda x: j.lax.cond(
        x.sum() > 0.0, lambda y: f(y), lambda y: y * 0.5, x),
    "switch": lambda j, f, count: lambda x: j.lax.switch(
        count, [lambda y: y, f, lambda y: f(y) * 0.5], x),
    "jit": lambda j, f, count: lambda x: j.jit(f)(x) * 0.5,
    "checkpoint": lambda j, f, count: lambda x: j.checkpoint(f)(j.numpy.sin(x)),
    "vmap": lambda j, f, count: lambda x: j.vmap(f)(
        j.numpy.stack([x * (k + 1) for k in range(count + 1)])).sum(0),
    "vmap without operands": lambda j, f, count: lambda x: j.vmap(
        lambda k: f(x) * k)(j.numpy.arange(count, dtype=x.dtype)).sum(0),
    "jvp": lambda j, f, count: lambda x: j.jvp(f, (x,), (x * 0.5 + 1,))[1] * 0.1,
    "grad": lambda j, f, count: lambda x: j.grad(lambda y: j.numpy.sin(f(y)).sum())(x),
}
ARGUMENT = np.array([[0.3, -0.7, 1.1], [0.6, 0.2, -0.4], [-1.2, 0.9, 0.5]], np.float32)


def program(seed: int) -> tuple[str, Callable[[Any], Function]]:
    """The names of a program's steps, from the inside to the outside, and its function."""
    draw = random.Random(seed)
    parts: list[tuple[list[str], str, int]] = []
    for _ in range(draw.randint(1, 3)):
        parts.append((draw.sample(sorted(STEPS), draw.randint(1, 3)),
                      draw.choice(sorted(WRAPPERS)), draw.randrange(3)))

    def function(j: Any) -> Function:
        f: Function = lambda x: x
        for steps, wrapper, count in parts:
            def inner(x, steps=steps, f=f):
                x = f(x)
                for name in steps:
                    x = STEPS[name](j, x)
                return x
            f = WRAPPERS[wrapper](j, inner, count)
        return f

    return str(parts), function
