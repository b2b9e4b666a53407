"""Special functions: sinc, and the Bessel function of order 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._higher_order.named_calls import named
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.arithmetic import round_p
from maxjax._primitives.convert import convert_element_type, stop_gradient_p
from maxjax._primitives.polynomial import polynomial_p
from maxjax._primitives.special import bessel_i0e_p, bessel_i1e_p
from maxjax.numpy import _whole_rules as rules
from maxjax.numpy._at_once import at_once
from maxjax.numpy._complex import imag, real
from maxjax.numpy._promotion import check_arraylike, constant, inexact_operand, weak_scalar
from maxjax.numpy._special_values import isfinite, isinf
from maxjax.numpy._ufuncs import abs, exp, sin, square
from maxjax.numpy._where import where

__all__ = ["i0", "sinc"]


@at_once
def sinc(x: Any, /) -> Array:
    """sin(pi x) / (pi x), 1 at 0.

    Args:
      x: an array or scalar; integers become floats.

    Returns:
      An array of floats of the same shape; differentiable at 0, too.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``sin``, ``jax.nn.sigmoid``.

    >>> jnp.sinc(jnp.array([0., 0.5]))
    Array([1.       , 0.6366198], dtype=float32)
    """
    check_arraylike("sinc", x)
    return _named_sinc(x)


@named("sinc")
def _named_sinc(x: Any) -> Array:
    x = weak_scalar(inexact_operand("sinc", x))
    if dtypes.is_complex(x.dtype):
        return _complex_sinc(x)
    if x.dtype.itemsize == 2:
        return convert_element_type(_sinc(convert_element_type(x, dtypes.float32)), x.dtype)
    return _sinc(x)


def _sinc(x: Array) -> Array:
    # From the nearest whole number on, where the sine is 0: there the series has all derivatives.
    nearest = stop_gradient_p.bind(round_p.bind(x, rounding_method=1))
    rest = where(abs(x) == np.array(np.inf, x.dtype)[()], 0, x - nearest)
    square_of_rest = rest * rest
    correction = square_of_rest * polynomial_p.bind(
        square_of_rest, *_series(rules.sinc_series, x), unroll=None)
    at_zero, sine = 1 + correction, rest + rest * correction
    is_odd = 2 * round_p.bind(0.5 * nearest, rounding_method=1) != nearest
    is_near_zero = nearest == 0
    value = sine / where(is_odd, -x, where(is_near_zero, 1, x))
    is_whole = rest == 0
    value = where(is_whole, value - stop_gradient_p.bind(value), value)      # no -0.0
    return where(is_near_zero, at_zero, value)


def _series(coefficients: Callable[[np.dtype], list[float]], x: Array) -> list[Any]:
    return [constant(c, x.dtype, x.aval.weak_type) for c in coefficients(x.dtype)]


def _complex_sinc(x: Array) -> Array:
    far = isinf(real(x)) & isfinite(imag(x))
    angle = where(far, 1, np.pi * x)
    near = abs(angle) < 1
    series = polynomial_p.bind(square(where(near, angle, 0)), *_series(
        rules.complex_sinc_series, x), unroll=None)
    angle = where(near, 1, angle)
    return where(far, 0, where(near, series, sin(angle) / angle))


@at_once
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 0.

    >>> jnp.i0(jnp.array([0., 1.])).round(3)
    Array([1.   , 1.266], dtype=float32)
    """
    x = inexact_operand("i0", x)
    if dtypes.is_complex(x.dtype):
        raise ValueError(f"Unsupported input type to jax.numpy.i0: {x.dtype}")
    return _i0(x)


@custom_jvp
def _i0(x: Array) -> Array:
    x = abs(x)
    return exp(x) * bessel_i0e_p.bind(x)


@_i0.defjvp
def _i0_jvp(primals: Any, tangents: Any) -> tuple[Array, Array]:
    # The general rules would take the derivative of |x| at its kink.
    (x,), (tangent,) = primals, tangents
    return _i0(x), tangent * exp(abs(x)) * bessel_i1e_p.bind(x)
