"""Polynomials of many numbers at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxjax._ir.trace import Array, Tracer
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.broadcasting import broadcast_to_shape
from maxjax._primitives.convert import convert_element_type as convert
from maxjax._primitives.polynomial import polynomial_p
from maxjax.lax._conversion import full_like
from maxjax.lax._operands import check_accepted
from maxjax.lax._operands import operand as as_operand

__all__ = ["polynomial", "polynomial_p"]


def polynomial(x: ArrayLike, coeffs: Sequence[Any], *, unroll: int | None = None) -> Array:
    """``coeffs[0] + coeffs[1] * x + coeffs[2] * x**2 + ...``, by Horner's scheme.

    Args:
      x: numbers of any kind but booleans.
      coeffs: of the lowest power first; of the shape of ``x``, or scalars, converted to its dtype.
      unroll: how many steps JAX unrolls; here it changes nothing.

    Raises:
      TypeError: ``x`` is boolean, or shapes do not fit.
      ValueError: ``unroll`` is negative.

    >>> lax.polynomial(jnp.array([0., 2.]), [1., 2., 3.])
    Array([ 1., 17.], dtype=float32)
    """
    x = as_operand(x, "polynomial")
    check_accepted(polynomial_p, (x.aval,))
    # The result is as weakly typed as `x`, but where a coefficient is traced, as in JAX.
    coeffs = list(coeffs)
    weak = x.aval.weak_type and not any(isinstance(c, Tracer) for c in coeffs)
    coefficients = [convert(as_operand(c, "polynomial"), x.dtype, weak) for c in coeffs]
    wrong = [c.shape for c in coefficients if c.shape not in ((), x.shape)]
    if wrong:
        raise TypeError("polynomial got incompatible shapes for broadcasting: "
                        f"{', '.join(map(str, (x.shape, *[c.shape for c in coefficients])))}.")
    if unroll is not None and unroll < 0:
        raise ValueError("`unroll` must be a `bool` or a non-negative `int`.")
    if not coefficients:
        return full_like(x, 0)
    if len(coefficients) == 1:
        return broadcast_to_shape(coefficients[0], x.shape)
    return polynomial_p.bind(x, *coefficients, unroll=unroll)
