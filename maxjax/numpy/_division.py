"""Division, remainders, powers, and shifts to the right."""

from __future__ import annotations

import operator
from typing import Any

from maxjax._base import dtypes
from maxjax._higher_order.named_calls import named
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.arithmetic import (
    div_p,
    integer_pow_p,
    rem_p,
    round_p,
)
from maxjax._primitives.comparison import (
    select,
    shift_right_arithmetic_p,
    shift_right_logical_p,
)
from maxjax._primitives.transcendental import pow_p
from maxjax.lax._elementwise import RoundingMethod
from maxjax.numpy import _whole_rules as rules
from maxjax.numpy._at_once import at_once
from maxjax.numpy._elementwise import alias, binary
from maxjax.numpy._promotion import (
    apart,
    as_array,
    bind,
    broadcast_to,
    cast,
    constant,
    is_concrete,
    promote_args_inexact,
    promote_shapes,
    resolve,
    shape_of,
    type_of,
)
from maxjax.numpy._ufuncs import equal, sign
from maxjax.numpy._where import where
from maxjax.numpy._whole import whole

__all__ = [
    "bitwise_right_shift", "divmod", "float_power", "floor_divide", "fmod", "mod", "pow", "power",
    "remainder", "right_shift",
]


def _pair(name: str, x: Any, y: Any) -> tuple[Any, Any]:
    """Promoted operands of a division; booleans become integers."""
    x, y = resolve(name, (x, y))
    dtype, weak = dtypes.promote((type_of(x), type_of(y)))
    if dtype == dtypes.bool_:
        dtype = dtypes.int32
    left, right = promote_shapes(name, cast(x, dtype, weak), cast(y, dtype, weak))
    if not isinstance(left, Array) and not isinstance(right, Array):
        left = as_array(left)
    return left, right


@at_once
def floor_divide(x1: Any, x2: Any, /) -> Array:
    """The greatest integer not above x1 / x2.

    Args:
      x1, x2: arrays or scalars of shapes that broadcast, promoted to one dtype.

    Returns:
      An array of the common shape. By 0, integers give -1 or -2, without a
      warning, and floats infinities or NaN.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``divide``, ``remainder``, ``divmod``, ``lax.div``.

    >>> jnp.floor_divide(jnp.array([7, -7]), 2)
    Array([ 3, -4], dtype=int32)
    """
    return _floor_division(x1, x2)


@named("floor_divide")
def _floor_division(x1: Any, x2: Any) -> Array:
    x1, x2 = _pair("floor_divide", x1, x2)
    dtype = x1.dtype
    if dtypes.is_unsigned(dtype):
        return bind(div_p, x1, x2)
    if dtypes.is_integer(dtype):
        return _floor_divide(x1, x2)
    if dtypes.is_complex(dtype):
        raise TypeError("floor_divide does not support complex-valued inputs")
    return _float_divmod(x1, x2)[0]


@whole("floor_divide", rules.floor_divide, dtypes.SIGNED)
def _floor_divide(x1: Any, x2: Any) -> Array:
    quotient = bind(div_p, x1, x2)
    differ = sign(x1) != sign(x2)
    return where(differ & (bind(rem_p, x1, x2) != 0), quotient - 1, quotient)


def _float_divmod(x1: Any, x2: Any) -> tuple[Array, Array]:
    remainder = bind(rem_p, x1, x2)
    quotient = where(equal(x2, 0), x1, x1 - remainder) / x2
    lower = (remainder != 0) & (sign(x2) != sign(remainder))
    remainder = select(lower, remainder, remainder + x2)
    quotient = select(lower, quotient, quotient - 1)
    quotient = round_p.bind(
        as_array(quotient), rounding_method=RoundingMethod.AWAY_FROM_ZERO)
    return quotient, remainder


@at_once
def remainder(x1: Any, x2: Any, /) -> Array:
    """The remainder of floor division, with the sign of x2.

    Args:
      x1, x2: arrays or scalars of shapes that broadcast, promoted to one dtype.

    Returns:
      An array of the common shape. By 0 it is 0 for integers, without a warning, and NaN for
      floats.

    Raises:
      TypeError: one is complex, or an argument is a list.

    See also: ``fmod``, ``floor_divide``, ``divmod``, ``lax.rem``.

    >>> jnp.remainder(jnp.array([7, -7]), 3)
    Array([1, 2], dtype=int32)
    """
    return _floor_remainder(x1, x2)


@named("remainder")
def _floor_remainder(x1: Any, x2: Any) -> Array:
    x1, x2 = _pair("remainder", x1, x2)
    if dtypes.is_complex(x1.dtype):
        raise TypeError("remainder does not support complex-valued inputs")
    return _remainder(x1, x2)


@whole("remainder", rules.remainder, dtypes.INTS)
def _remainder(x1: Any, x2: Any) -> Array:
    if dtypes.is_integer(x1.dtype):
        x2 = _nonzero(x2)
    left = bind(rem_p, x1, x2)
    if dtypes.is_unsigned(left.dtype):
        return left
    uneven = left != 0
    lower = ((left < 0) != (x2 < 0)) & uneven
    return select(lower, left, left + x2)


mod = alias(remainder, "mod")


def _nonzero(x: Any) -> Any:
    """The divisor with 0 replaced by 1: the remainder by 0 is 0."""
    return where(equal(x, 0), constant(1, x.dtype, getattr(x, "weak_type", False)), x)


@at_once
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder, with the sign of x1.

    >>> jnp.fmod(jnp.array([7, -7]), 3)
    Array([ 1, -1], dtype=int32)
    """
    x1, x2 = resolve("fmod", (x1, x2))
    whole = dtypes.is_integer(dtypes.promote((type_of(x1), type_of(x2)))[0])     # booleans are not
    x1, x2 = _pair("fmod", x1, x2)
    return bind(rem_p, x1, _nonzero(x2) if whole else x2)


@at_once
def divmod(x1: Any, x2: Any, /) -> tuple[Array, Array]:
    """(x1 // x2, x1 % x2)

    >>> jnp.divmod(jnp.array([7, -7]), 3)
    (Array([ 2, -3], dtype=int32), Array([1, 2], dtype=int32))
    """
    x1, x2 = _pair("divmod", x1, x2)
    if dtypes.is_integer(x1.dtype):
        return floor_divide(x1, x2), remainder(x1, x2)
    return _float_divmod(x1, x2)


_pow = binary("power", pow_p, inexact=True)


def power(x1: Any, x2: Any, /) -> Array:
    """``x1`` to the power ``x2``; by multiplication if ``x2`` is a single known integer.

    Such an exponent is not an operand: the result has the type of x1 (booleans become int32).

    Args:
      x1: an array or scalar.
      x2: an array or scalar that broadcasts; it need not be an integer.

    Returns:
      An array of the common shape, of the dtype to which the two promote. A negative number to a
      power that is no integer is NaN, unless the dtype is complex.

    Raises:
      TypeError: integers are raised to a negative power that is known.

    See also: ``float_power``, ``square``, ``sqrt``, ``exp``, ``lax.pow``, ``lax.integer_pow``.

    >>> jnp.power(jnp.array([2, 3]), 2), jnp.power(4., 0.5)
    (Array([4, 9], dtype=int32), Array(2., dtype=float32, weak_type=True))
    """
    x1, x2 = resolve("power", (x1, x2))
    if x2.__class__ is int or x2.__class__ is bool:
        return _integer_power(x1, int(x2))
    left, right = type_of(x1), type_of(x2)
    if dtypes.is_integer(right[0]) and not shape_of(x2) and is_concrete(x2) and (
            not is_dimension(x2)):
        return _integer_power(x1, operator.index(x2))
    dtype, weak = dtypes.promote((left, right))
    if dtype == dtypes.bool_:
        dtype = dtypes.int32
    if dtypes.is_integer(dtype):
        x1, x2 = promote_shapes("power", cast(x1, dtype, weak), cast(x2, dtype, weak))
        return _power_by_squaring(as_array(x1), as_array(x2))
    if dtypes.is_integer(right[0]) and dtypes.is_inexact(left[0]):
        # pow takes integer exponents unchanged: the derivative at a base of 0 is 0, not NaN.
        return pow_p.bind(*promote_shapes("power", as_array(x1), as_array(x2)))
    return _pow(x1, x2)


pow = alias(power, "pow")


def _integer_power(x: Any, exponent: int) -> Array:
    dtype, weak = type_of(x)
    if dtype == dtypes.bool_:
        dtype, weak = dtypes.int32, False
    x = as_array(cast(x, dtype, weak))
    if exponent < 0 and dtypes.is_integer(dtype):
        mark = "~" if x.weak_type else ""
        raise TypeError("Integers cannot be raised to negative powers, got "
                        f"integer_pow({mark}{x.aval.str_short()}, {exponent})")
    if dtypes.is_opaque(dtype):
        raise TypeError(f"Cannot interpret '{dtype}' as a data type")
    if exponent == 0:
        return as_array(broadcast_to(constant(1, dtype, weak), x.shape))
    if exponent == 1:
        return apart(x)
    return integer_pow_p.bind(x, y=exponent)


@whole("power", rules.power, dtypes.INTS)
def _power_by_squaring(x: Array, exponent: Array) -> Array:
    """Integer powers by the low six bits of the exponent, as in JAX."""
    one = constant(1, x.dtype)
    result = where((x == 0) & (exponent != 0), constant(0, x.dtype), one)
    for step in range(6):
        if step:
            x = x * x
            exponent = bind(shift_right_logical_p, exponent, one)
        result = where(exponent & one, result * x, result)
    return result


@at_once
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """x to the power y, in floats.

    >>> jnp.float_power(jnp.array([2, 3]), 2)
    Array([4., 9.], dtype=float32)
    """
    return _pow(*promote_args_inexact("float_power", x, y))


@at_once
def right_shift(x1: Any, x2: Any, /) -> Array:
    """``x1 >> x2``; preserves the sign.

    Args:
      x1, x2: integers or booleans of shapes that broadcast.

    Returns:
      An array of the common shape, of the promoted dtype.

    Raises:
      TypeError: an argument is floating or complex, or no array or number.

    See also: ``left_shift``, ``lax.shift_right_arithmetic``, ``lax.shift_right_logical``.

    >>> jnp.right_shift(jnp.array([16, -16]), 2)
    Array([ 4, -4], dtype=int32)
    """
    x1, x2 = _pair("right_shift", x1, x2)
    unsigned = dtypes.is_unsigned(x1.dtype)
    return bind(shift_right_logical_p if unsigned else shift_right_arithmetic_p, x1, x2)


def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 >> x2; preserves the sign.

    >>> jnp.bitwise_right_shift(jnp.array([16, -16]), 2)
    Array([ 4, -4], dtype=int32)
    """
    return right_shift(x1, x2)
