"""Arithmetic of power series: lists of the coefficients of the powers of t, arrays.

A series of length K + 1 is known up to ``t**K``. Where a function ``v`` of ``u`` solves a
differential equation, as ``exp`` does ``v' = v u'``, the equation gives each coefficient from those
before it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from maxjax import lax

Series = Sequence[Any]


def scaled(terms: Series, factor: Callable[[int], float]) -> list[Any]:
    return [term * factor(k) if k > 1 else term for k, term in enumerate(terms, 1)]


def coefficients(primal: Any, terms: Series) -> list[Any]:
    return [primal, *scaled(terms, lambda k: 1 / math.factorial(k))]


def result(coefficients: Series) -> tuple[Any, list[Any]]:
    return coefficients[0], scaled(coefficients[1:], math.factorial)


def product(u: Series, w: Series, multiply: Callable[[Any, Any], Any] = lax.mul) -> list[Any]:
    return [functools.reduce(lax.add, [multiply(u[j], w[k - j]) for j in range(k + 1)])
            for k in range(min(len(u), len(w)))]


def quotient(u: Series, w: Series) -> list[Any]:
    v: list[Any] = []
    for k in range(len(u)):
        rest = [v[j] * w[k - j] for j in range(k)]
        v.append((u[k] - functools.reduce(lax.add, rest) if rest else u[k]) / w[0])
    return v


def integral(start: Any, u: Series, slope: Series) -> list[Any]:
    """The series of ``v`` where ``v' = slope u'``; ``slope`` may have one term less."""
    return [start, *[integral_term(u, slope, k) for k in range(1, len(u))]]


def integral_term(u: Series, slope: Series, k: int) -> Any:
    terms = [u[j] * slope[k - j] * (j / k) if j != k else u[j] * slope[0] for j in range(1, k + 1)]
    return functools.reduce(lax.add, terms)


def power(u: Series, exponent: int) -> list[Any]:
    if exponent == 1:
        return list(u)
    half = power(u, exponent // 2)
    squared = product(half, half)
    return product(squared, u) if exponent % 2 else squared


def real_power(value: Any, u: Series, exponent: float) -> list[Any]:
    """The series of ``v = u**exponent``, by ``u v' = exponent v u'``; ``value``: its first term."""
    v = [value]
    for k in range(1, len(u)):
        terms = [u[j] * v[k - j] * ((exponent + 1) * j / k - 1) for j in range(1, k + 1)]
        v.append(functools.reduce(lax.add, terms) / u[0])
    return v


def exp_series(value: Any, u: Series) -> list[Any]:
    v = [value]
    for k in range(1, len(u)):
        v.append(integral_term(u, v, k))
    return v


def log_series(value: Any, u: Series) -> list[Any]:
    """The series of ``v = log(u)``, by ``v' = u' / u``; ``value`` is its first term."""
    v = [value]
    for k in range(1, len(u)):
        rest = [v[j] * u[k - j] * (j / k) for j in range(1, k)]
        v.append((u[k] - functools.reduce(lax.add, rest) if rest else u[k]) / u[0])
    return v


def waves(first: Any, second: Any, u: Series, sign: int) -> tuple[list[Any], list[Any]]:
    """The series of sine and cosine, or of the hyperbolic ones, from their first terms: by
    ``s' = c u'`` and ``c' = sign s u'``."""
    s, c = [first], [second]
    for k in range(1, len(u)):
        s_k, c_k = integral_term(u, c, k), integral_term(u, s, k)
        s.append(s_k)
        c.append(c_k if sign > 0 else -c_k)
    return s, c


def expm1_series(x: Any, u: Series) -> list[Any]:
    return [lax.expm1(x), *exp_series(lax.exp(x), u)[1:]]


def slope_of_result(value: Any, u: Series,
                     slope: Callable[[Series], Series]) -> list[Any]:
    """The series of ``v`` with ``v' = slope(v) u'``, each term from those of ``v`` before it."""
    v = [value]
    for k in range(1, len(u)):
        v.append(integral_term(u, slope(v), k))
    return v


def tanh_slope(v: Series) -> list[Any]:
    squares = product(v, v)
    return [1 - squares[0], *[-square for square in squares[1:]]]


def logistic_slope(v: Series) -> list[Any]:
    return [x - square for x, square in zip(v, product(v, v), strict=True)]


def erf_inv_slope(v: Series) -> list[Any]:
    squares = product(v, v)
    return [x * (math.sqrt(math.pi) / 2) for x in exp_series(lax.exp(squares[0]), squares)]
