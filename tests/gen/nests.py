"""Functions under nests of transformations and control flow, for either library.

Each level turns a function of a vector ``x`` and an integer ``n`` into another; all of them close
over ``x`` somewhere inside, so that values of outer levels appear in inner ones. The custom rules
are wrong by a factor, so that it is visible where one is not used.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

Function = Callable[..., Any]

X = np.array([0.3, -0.7, 1.1], np.float32)
Y = np.array([1.0, 0.5, -2.0], np.float32)
N = np.int32(2)


def with_grad(j: Any, f: Function) -> Function:
    return lambda x, n: j.grad(lambda y: (f(y, n) * x).sum() + (f(y, n) ** 2).sum())(0.5 * x)


def with_jvp(j: Any, f: Function) -> Function:
    def pushed(x, n):
        out, tangent = j.jvp(lambda y: f(y, n), (x,), (j.numpy.cos(x),))
        return out * 0.5 + tangent
    return pushed


def with_vmap(j: Any, f: Function) -> Function:
    def mapped(x, n):
        rows = j.vmap(lambda y, k: f(y, k) * x, (1, 0), 1)(
            j.numpy.stack([x, 0.5 * x], 1), j.numpy.stack([n, n + 1]))
        return rows @ j.numpy.array([0.5, 0.25], x.dtype)
    return mapped


def with_jit(j: Any, f: Function) -> Function:
    return lambda x, n: j.jit(lambda y: f(y, n) + x)(0.5 * x)


def with_checkpoint(j: Any, f: Function) -> Function:
    return lambda x, n: j.checkpoint(lambda y: f(y, n) * j.numpy.sin(x))(x)


def with_custom_vjp(j: Any, f: Function) -> Function:
    rule = j.custom_vjp(f)
    rule.defvjp(lambda x, n: (f(x, n), (x, j.numpy.cos(f(x, n)))),
                lambda residuals, cotangent: (2 * cotangent * residuals[1] - residuals[0], None))
    return rule


def with_custom_jvp(j: Any, f: Function) -> Function:
    rule = j.custom_jvp(f)
    rule.defjvp(lambda primals, tangents: (
        f(*primals), 3 * tangents[0] * j.numpy.sin(primals[0])))
    return rule


def with_scan(j: Any, f: Function) -> Function:
    def scanned(x, n):
        def step(carry, element):
            weight, k = element
            return f(carry, k) * weight + 0.25 * x, carry[0]
        carry, firsts = j.lax.scan(step, x, (j.numpy.flip(x), j.numpy.arange(3) + n))
        return carry + firsts
    return scanned


def with_cond(j: Any, f: Function) -> Function:
    def chosen(x, n):
        return j.lax.cond((n % 2 == 0) | (x[0] > 0.2), lambda y: f(y, n) + x,
                          lambda y: y * x, j.numpy.cos(x))
    return chosen


def with_while(j: Any, f: Function) -> Function:
    def looped(x, n):
        def step(carry):
            k, y = carry
            return k + 1, f(y, k) * 0.5 + 0.25 * x
        return j.lax.while_loop(lambda carry: carry[0] < n % 3, step, (j.numpy.int32(0), x))[1]
    return looped


LEVELS = {name[5:]: level for name, level in list(globals().items()) if name.startswith("with_")}


def smooth(j: Any, x: Any, n: Any) -> Any:
    return j.numpy.sin(x) * 0.75 + 0.125 * x * x


def contraction(j: Any, x: Any, n: Any) -> Any:
    matrix = np.arange(9, dtype=np.float32).reshape(3, 3) / 9
    return j.numpy.tanh(matrix.astype(x.dtype) @ x) * j.numpy.sort(x)


def indexing(j: Any, x: Any, n: Any) -> Any:
    return x.at[n % 3].mul(0.5) + j.numpy.sin(x)[(n + 1) % 3] * n


FUNCTIONS = {"smooth": smooth, "contraction": contraction, "indexing": indexing}

NESTS = list(itertools.product(LEVELS, repeat=3))


def nested(j: Any, names: tuple[str, ...], function: str) -> Function:
    """The function under the levels, from the innermost outwards."""
    f: Function = functools.partial(FUNCTIONS[function], j)
    for name in names:
        f = LEVELS[name](j, f)
    return f


def answers(j: Any, names: tuple[str, ...], function: str) -> dict[str, Function]:
    """Functions of x: value; tangent; gradient; the gradients of elements of a batch."""
    f = nested(j, names, function)

    def gradient(x):
        value, pullback = j.vjp(lambda y: f(y, N), x)
        return value, pullback(Y.astype(x.dtype))[0]

    return {
        "value": lambda x: f(x, N),
        "tangent": lambda x: j.jvp(lambda y: f(y, N), (x,), (Y.astype(x.dtype),)),
        "gradient": gradient,
        "batch": lambda x: j.vmap(gradient)(j.numpy.stack([-x, x])),
    }
