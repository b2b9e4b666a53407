"""The value of a polynomial, by Horner's scheme."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from maxjax._ir.contract import COUNT, optional, takes
from maxjax._ir.linearity import Linearity
from maxjax._ir.rule_groups import Printed
from maxjax._ir.trace import Array
from maxjax._primitives.arithmetic import add, constant, mul
from maxjax._primitives.broadcasting import broadcast_to_shape
from maxjax._primitives.builders import elementwise
from maxjax._primitives.rules import is_linear
from maxjax._primitives.widths import accepted

if TYPE_CHECKING:
    from maxjax._primitives.rules import Linear


T = TypeVar("T")


def _horner(plus: Callable[[T, T], T], times: Callable[[T, T], T], x: T, coefficients: Sequence[T]
            ) -> T:
    """There are two coefficients or more, that of the highest power last."""
    *lower, result = coefficients
    for coefficient in lower[::-1]:
        result = plus(times(result, x), coefficient)
    return result


def _polynomial_jvp(primals: Sequence[Array], tangents: Sequence[Array | None], *,
                    unroll: int | None) -> tuple[Array, Any]:
    x, *coefficients = primals
    out = polynomial_p.bind(x, *coefficients, unroll=unroll)
    terms = []
    if tangents[0] is not None:
        slopes = [mul(constant(power, c), c) for power, c in enumerate(coefficients) if power]
        slope = polynomial_p.bind(x, *slopes, unroll=unroll) if len(slopes) > 1 else slopes[0]
        terms.append(mul(tangents[0], slope))
    if any(tangent is not None for tangent in tangents[1:]):
        terms.append(polynomial_p.bind(x, *[
            constant(0, c) if tangent is None else tangent
            for c, tangent in zip(coefficients, tangents[1:], strict=True)], unroll=unroll))
    if not terms:
        return out, None
    total = terms[0] if len(terms) == 1 else add(*terms)
    return out, total if total.shape == out.shape else broadcast_to_shape(total, out.shape)


def _polynomial_transpose(cotangent: Array, x: Array, *coefficients: Array | Linear,
                          unroll: int | None) -> list[Array | None]:
    cotangents: list[Array | None] = [None]
    for number, coefficient in enumerate(coefficients):
        if number:
            cotangent = mul(cotangent, x)
        cotangents.append(cotangent if is_linear(coefficient) else None)
    return cotangents


polynomial_p = elementwise(
    "polynomial", contract=takes((3, None), unroll=optional(COUNT)),
    accepts=accepted("integer complexfloating floating"),
    linearity=Linearity(slice(1, None)),
    evaluate=lambda x, *coefficients, unroll: _horner(
        operator.add, operator.mul, x, coefficients),
    lower=lambda ctx, x, *coefficients, unroll: _horner(
        functools.partial(ctx.native, "add"), functools.partial(ctx.native, "mul"), x,
        coefficients),
    transpose=_polynomial_transpose,
    printed=Printed(lambda params: {
        name: value for name, value in params.items() if value is not None}))
polynomial_p.jvp = _polynomial_jvp
