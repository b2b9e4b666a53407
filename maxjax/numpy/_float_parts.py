"""Parts of floating-point numbers: signs, fractions, mantissas and exponents; the next number."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.convert import bitcast_convert_type_p, convert_element_type
from maxjax._primitives.creation import full
from maxjax.lax._over_mesh import whole_along
from maxjax.numpy import _whole_rules as rules
from maxjax.numpy._at_once import at_once
from maxjax.numpy._promotion import (
    as_array,
    cast,
    check_out,
    constant,
    inexact_operand,
    inexact_type,
    operand,
    promote_args_inexact,
    resolve,
    type_of,
)
from maxjax.numpy._special_values import isinf, isnan
from maxjax.numpy._ufuncs import abs, ceil, exp2, floor, nextafter
from maxjax.numpy._where import where
from maxjax.numpy._whole import WORDS, whole

__all__ = ["copysign", "frexp", "ldexp", "modf", "signbit", "spacing"]


@at_once
def copysign(x1: Any, x2: Any, /) -> Array:
    """|x1| with the sign of x2.

    >>> jnp.copysign(jnp.array([1., -2.]), -0.)
    Array([-1., -2.], dtype=float32)
    """
    x1, x2 = promote_args_inexact("copysign", x1, x2)
    if dtypes.is_complex(x1.dtype):
        raise TypeError("copysign does not support complex-valued inputs")
    if not getattr(x2, "weak_type", False):
        x1 = convert_element_type(x1, x1.dtype)
    return _copysign(x1, x2)


@whole("copysign", np.copysign)
def _copysign(x1: Array, x2: Array) -> Array:
    return where(signbit(x2), -abs(x1), abs(x1))


@at_once
def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit is set; true for -0.0.

    >>> jnp.signbit(jnp.array([-0., 0., -1.]))
    Array([ True, False,  True], dtype=bool)
    """
    x = operand("signbit", x)
    dtype = x.dtype
    if dtypes.is_unsigned(dtype) or dtype == dtypes.bool_:
        return as_array(full(x.shape, False, dtypes.bool_)) if x.shape else as_array(np.False_)
    if dtypes.is_integer(dtype):
        return x < np.zeros((), dtype)[()]
    if not dtypes.is_floating(dtype):
        raise ValueError(f"jax.numpy.signbit is not well defined for {dtype}")
    integer = np.dtype(f"int{8 * dtype.itemsize}")
    return bitcast_convert_type_p.bind(x, new_dtype=integer) < 0


@at_once
def modf(x: ArrayLike, /, out: Any = None) -> tuple[Array, Array]:
    """The fractional and integral parts, both with the sign of x.

    >>> jnp.modf(jnp.array([1.5, -2.25]))
    (Array([ 0.5 , -0.25], dtype=float32), Array([ 1., -2.], dtype=float32))
    """
    check_out("modf", out)
    return _modf(inexact_operand("modf", x))


@whole("modf", rules.modf, outputs=2)
def _modf(x: Array) -> tuple[Array, Array]:
    integral = where(x >= 0, floor(x), ceil(x))
    return x - integral, integral


_FORMATS = {     # bits of the exponent, of the mantissa
    dtypes.float16: (5, 10), dtypes.bfloat16: (8, 7), dtypes.float32: (8, 23),
    dtypes.float64: (11, 52)}
# Their parts are found in float32, which holds all of them.
_NARROW = frozenset(dtypes.FLOAT8)


@at_once
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """The mantissa in [0.5, 1) and the exponent of 2.

    >>> jnp.frexp(jnp.array([8., 0.75]))
    (Array([0.5 , 0.75], dtype=float32), Array([4, 0], dtype=int32))
    """
    x = inexact_operand("frexp", x)
    if dtypes.is_complex(x.dtype):
        raise TypeError("frexp does not support complex-valued inputs")
    if x.dtype == dtypes.float4_e2m1fn:
        raise TypeError("frexp: float4_e2m1fn does not hold mantissas, such as 0.75 of 3; convert "
                        "the array to a wider dtype")
    is_narrow = x.dtype in _NARROW
    mantissa, exponent = _frexp(convert_element_type(x, dtypes.float32) if is_narrow else x)
    if is_narrow:
        mantissa = convert_element_type(mantissa, x.dtype)
    # JAX's exponents lie whole on each device, wherever the mantissas lie.
    return mantissa, whole_along(exponent, range(exponent.ndim))


@custom_jvp
def _mantissa_and_exponent(x: Array) -> tuple[Array, Array]:
    exponent_bits, mantissa_bits = _FORMATS[x.dtype]
    integer = np.dtype(f"int{8 * x.dtype.itemsize}")
    bias = (1 << (exponent_bits - 1)) - 1
    tiny = abs(x) < dtypes.finfo(x.dtype).tiny
    scaled = where(tiny, x * 2.0 ** mantissa_bits, x)
    bits = bitcast_convert_type_p.bind(scaled, new_dtype=integer)
    field = (1 << exponent_bits) - 1
    exponent = (bits >> mantissa_bits) & field
    exponent = convert_element_type(exponent, dtypes.int32) - bias + 1
    exponent = exponent + where(tiny, -mantissa_bits, 0)
    bits = (bits & constant(~(field << mantissa_bits), integer)) | constant(
        (bias - 1) << mantissa_bits, integer)
    mantissa = bitcast_convert_type_p.bind(bits, new_dtype=x.dtype)
    special = isinf(x) | isnan(x) | (x == 0)
    return where(special, x, mantissa), where(special, 0, exponent).astype(dtypes.int32)


@_mantissa_and_exponent.defjvp
def _frexp_jvp(primals: Any, tangents: Any) -> Any:
    mantissa, exponent = _frexp(*primals)
    scale = exp2(convert_element_type(-exponent, mantissa.dtype))
    return (mantissa, exponent), (tangents[0] * scale, np.zeros(exponent.shape, dtypes.float0))


_frexp = whole("frexp", rules.frexp, outputs=2)(_mantissa_and_exponent)


def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 * 2**x2

    >>> jnp.ldexp(jnp.array([0.5, 0.75]), jnp.array([4, 0]))
    Array([8.  , 0.75], dtype=float32)
    """
    x1, x2 = resolve("ldexp", (x1, x2))
    if type_of(x2)[0] == dtypes.bool_:
        x2 = convert_element_type(as_array(x2), dtypes.int32)
    dtype, weak = inexact_type(*type_of(x1))
    if dtypes.is_complex(dtype) or not dtypes.is_integer(type_of(x2)[0]):
        raise ValueError(f"ldexp not supported for input types {(dtype, type_of(x2)[0])}")
    if dtype == dtypes.float4_e2m1fn:
        raise TypeError("ldexp: float4_e2m1fn does not hold mantissas; convert the array to a "
                        "wider dtype")
    x1, x2 = as_array(cast(x1, dtype, weak)), as_array(x2)
    if dtype in _NARROW:
        return convert_element_type(_ldexp(convert_element_type(x1, dtypes.float32), x2), dtype)
    return _ldexp(x1, x2)


@whole("ldexp", rules.ldexp, WORDS)
def _ldexp(x: Array, shift: Array) -> Array:
    mantissa, exponent = _frexp(x)
    exponent = convert_element_type(exponent, x.dtype) + convert_element_type(shift, x.dtype)
    # The power of two alone may overflow although the product does not.
    large = exponent > 0
    mantissa = where(large, mantissa * 2, mantissa)
    exponent = where(large, exponent - 1, exponent)
    # At 0 the product with a power of two that is finite, whose derivative is right.
    most = cast(dtypes.finfo(x.dtype).maxexp - 1, x.dtype)
    power = convert_element_type(shift, x.dtype)
    zero = x * exp2(where(power < most, power, most))
    return where(isinf(x), x, where(x == 0, zero, mantissa * exp2(exponent)))


def spacing(x: ArrayLike, /) -> Array:
    """The distance to the next float away from zero.

    >>> float(jnp.spacing(1.))
    1.1920928955078125e-07
    """
    x = inexact_operand("spacing", x)
    if dtypes.is_complex(x.dtype):
        raise ValueError("jnp.spacing is not defined for complex inputs.")
    if x.dtype == dtypes.float16:      # as in NumPy: always to the next float above
        return nextafter(x, constant(np.inf, x.dtype)) - x
    return _spacing(x)


@whole("spacing", rules.spacing)
def _spacing(x: Array) -> Array:
    away = nextafter(x, copysign(np.inf, x).astype(x.dtype))
    gap = away - x
    least = dtypes.finfo(x.dtype).smallest_subnormal
    return where(gap == 0, copysign(least, x).astype(x.dtype), gap)
