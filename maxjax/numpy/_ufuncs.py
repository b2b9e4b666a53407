"""Elementwise functions: arithmetic, exponentials, trigonometry, comparison, bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.arithmetic import (
    abs_p,
    ceil_p,
    div_p,
    floor_p,
    integer_pow,
    max_p,
    min_p,
    mul,
    nextafter_p,
    sign_p,
    square_p,
)
from maxjax._primitives.comparison import (
    eq_p,
    ge_p,
    gt_p,
    le_p,
    lt_p,
    ne_p,
    not_p,
    population_count_p,
    select,
    shift_left_p,
)
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.transcendental import (
    acos_p,
    acosh_p,
    asin_p,
    asinh_p,
    atan2_p,
    atan_p,
    atanh_p,
    cbrt_p,
    cos_p,
    cosh_p,
    exp2_p,
    exp_p,
    expm1_p,
    log1p_p,
    log2_p,
    log_p,
    sin_p,
    sinh_p,
    sqrt_p,
    tan_p,
    tanh_p,
)
from maxjax.lax._over_mesh import explicit_mesh
from maxjax.numpy import _whole_rules as rules
from maxjax.numpy._at_once import at_once
from maxjax.numpy._complex import each_part, imag, iscomplexobj, real
from maxjax.numpy._elementwise import alias, binary, described, unary
from maxjax.numpy._promotion import (
    apart,
    as_array,
    bind,
    cast,
    inexact_operand,
    is_exact,
    operand,
    promote_dtypes,
    promote_inexact,
    promote_shapes,
    resolve,
    type_of,
    weak_scalar,
)
from maxjax.numpy._where import as_bool, where
from maxjax.numpy._whole import whole

__all__ = [
    "abs", "absolute", "acos", "acosh", "angle", "arccos", "arccosh", "arcsin", "arcsinh",
    "arctan", "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_count",
    "bitwise_invert", "bitwise_left_shift", "bitwise_not", "cbrt", "ceil", "cos", "cosh",
    "deg2rad", "degrees", "divide", "equal", "exp", "exp2", "expm1", "fabs", "floor", "greater",
    "greater_equal", "heaviside", "invert", "left_shift", "less", "less_equal", "log", "log10",
    "log1p", "log2", "logical_not", "nextafter", "not_equal", "positive", "rad2deg", "radians",
    "reciprocal", "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "true_divide",
]

# --- one primitive each ---------------------------------------------------------------------------


def _unchanged(x: Any) -> Array:
    return as_array(apart(x))


sin = unary("sin", sin_p, inexact=True)
cos = unary("cos", cos_p, inexact=True)
tan = unary("tan", tan_p, inexact=True)
arcsin = unary("arcsin", asin_p, inexact=True)
arccos = unary("arccos", acos_p, inexact=True)
arctan = unary("arctan", atan_p, inexact=True)
sinh = unary("sinh", sinh_p, inexact=True)
cosh = unary("cosh", cosh_p, inexact=True)
tanh = unary("tanh", tanh_p, inexact=True)
arcsinh = unary("arcsinh", asinh_p, inexact=True)
arccosh = unary("arccosh", acosh_p, inexact=True)
arctanh = unary("arctanh", atanh_p, inexact=True)
exp = unary("exp", exp_p, inexact=True)
exp2 = unary("exp2", exp2_p, inexact=True)
expm1 = unary("expm1", expm1_p, inexact=True)
log = unary("log", log_p, inexact=True)
log2 = unary("log2", log2_p, inexact=True)
log1p = unary("log1p", log1p_p, inexact=True)
sqrt = unary("sqrt", sqrt_p, inexact=True)
cbrt = unary("cbrt", cbrt_p, inexact=True)
sign = unary("sign", sign_p)
floor = unary("floor", floor_p, integers=_unchanged)
ceil = unary("ceil", ceil_p, integers=_unchanged)
acos, acosh, asin = alias(arccos, "acos"), alias(arccosh, "acosh"), alias(arcsin, "asin")
asinh, atan, atanh = alias(arcsinh, "asinh"), alias(arctan, "atan"), alias(arctanh, "atanh")

bitwise_not = unary("bitwise_not", not_p)
invert = unary("invert", not_p)
bitwise_invert = unary("bitwise_invert", not_p)

divide = binary("divide", div_p, inexact=True, parameters=("x1", "x2"), said="true_divide")
true_divide = alias(divide, "true_divide")
arctan2 = binary("arctan2", atan2_p, inexact=True, parameters=("x1", "x2"))
atan2 = alias(arctan2, "atan2")
nextafter = binary("nextafter", nextafter_p, inexact=True)
equal = binary("equal", eq_p)
not_equal = binary("not_equal", ne_p)
left_shift = binary("left_shift", shift_left_p, bool_as_int=True)
bitwise_left_shift = alias(left_shift, "bitwise_left_shift")


def _ordered(name: str, primitive: Primitive) -> Callable[[ArrayLike, ArrayLike], Array]:
    """Complex numbers are compared by real part, then by imaginary part."""
    strict = {lt_p: lt_p, le_p: lt_p, gt_p: gt_p, ge_p: gt_p}[primitive]

    def composed(x: Any, y: Any) -> Array:
        if not dtypes.is_complex(x.dtype):
            return bind(primitive, x, y)
        x_real, y_real = real(x), real(y)
        return select(bind(eq_p, x_real, y_real),
                      bind(strict, x_real, y_real),
                      bind(primitive, imag(x), imag(y)))

    of_reals = binary(name, primitive)
    of_complex = binary(name, primitive, composed=composed)

    def function(x: Any, y: Any, /) -> Array:
        try:
            return of_reals(x, y)
        except TypeError:
            if iscomplexobj(x) or iscomplexobj(y):
                return of_complex(x, y)
            raise

    return described(function, name, ("x", "y"))


less, less_equal = _ordered("less", lt_p), _ordered("less_equal", le_p)
greater, greater_equal = _ordered("greater", gt_p), _ordered("greater_equal", ge_p)


@at_once
def bitwise_count(x: Any, /) -> Array:
    """The number of ones in the binary representation of |x|, as uint8.

    >>> jnp.bitwise_count(jnp.array([0, 7, -8]))
    Array([0, 3, 1], dtype=uint8)
    """
    (x,) = promote_dtypes("bitwise_count", x)
    if x.dtype == dtypes.bool_:
        x = convert_element_type(as_array(x), dtypes.uint8)
    count = bind(population_count_p, abs(x))
    return convert_element_type(count, dtypes.uint8)


_abs = unary("abs", abs_p)


def absolute(x: ArrayLike, /) -> Array:
    """The absolute value; real for complex numbers.

    Args:
      x: an array or scalar.

    Returns:
      An array of the same shape and dtype, of the real dtype for complex numbers. The least signed
      integer has no counterpart and stays. The derivative at 0 is 1.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``fabs``, ``sign``, ``square``, ``angle``, ``lax.abs``.

    >>> jnp.absolute(jnp.array([-2, 3])), jnp.absolute(3 + 4j)
    (Array([2, 3], dtype=int32), Array(5., dtype=float32, weak_type=True))
    """
    dtype = type_of(resolve("absolute", (x,))[0])[0]
    if dtypes.is_unsigned(dtype) or dtype == dtypes.bool_:
        return as_array(apart(x))
    return _abs(x)


def abs(x: ArrayLike, /) -> Array:
    """The absolute value; real for complex numbers.

    Args:
      x: an array or scalar.

    Returns:
      An array of the same shape and dtype, of the real dtype for complex numbers. The least signed
      integer has no counterpart and stays. The derivative at 0 is 1.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``absolute``, ``fabs``, ``sign``, ``square``, ``angle``, ``lax.abs``.

    >>> jnp.abs(jnp.array([-1.5, 0., 2.]))
    Array([1.5, 0. , 2. ], dtype=float32)
    """
    return absolute(x)


def fabs(x: ArrayLike, /) -> Array:
    """The absolute value, in floats.

    >>> jnp.fabs(jnp.array([-2, 3]))
    Array([2., 3.], dtype=float32)
    """
    if iscomplexobj(x):
        raise TypeError("ufunc 'fabs' does not support complex dtypes")
    return _abs(inexact_operand("fabs", x))


def positive(x: ArrayLike, /) -> Array:
    """x itself.

    >>> jnp.positive(jnp.array([-1, 2]))
    Array([-1,  2], dtype=int32)
    """
    return apart(operand("positive", x))


_square = unary("square", square_p)


def square(x: ArrayLike, /) -> Array:
    """``x * x``, elementwise.

    Args:
      x: an array or scalar.

    Returns:
      An array of the same shape and dtype; integers wrap around, booleans become the default
      integers.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``power``, ``sqrt``, ``abs``, ``lax.square``.

    >>> jnp.square(jnp.array([-3, 2]))
    Array([9, 4], dtype=int32)
    """
    if type_of(resolve("square", (x,))[0])[0] == dtypes.bool_:
        x = convert_element_type(as_array(x), dtypes.int32)
    return _square(x)


@at_once
def reciprocal(x: ArrayLike, /) -> Array:
    """``1 / x``, elementwise, in floats.

    Args:
      x: an array or scalar; integers become floats, where NumPy's stay integers.

    Returns:
      An array of floats of the same shape; infinite for 0.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``divide``, ``lax.reciprocal``, ``lax.rsqrt``.

    >>> jnp.reciprocal(jnp.array([2, 4]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return integer_pow(inexact_operand("reciprocal", x), -1)


@at_once
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The argument of complex numbers, in radians (degrees with ``deg``).

    Args:
      z: an array or scalar; of real numbers the result is 0 or pi.
      deg: whether the result is in degrees.

    Returns:
      An array of floats of the same shape.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``abs``, ``real``, ``imag``, ``arctan2``.

    >>> jnp.angle(jnp.array([1j, -1j]), deg=True)
    Array([ 90., -90.], dtype=float32)
    """
    z = operand("angle", z)
    # An integer's and a real scalar's angle are strongly typed.
    if is_exact(z) or not (z.ndim or dtypes.is_complex(z.dtype)):
        z = convert_element_type(z, dtypes.canonical(dtypes.float64))
    result = arctan2(imag(z), real(z))
    return degrees(result) if deg else result


def _scaled(name: str, factor: float, said: str) -> Callable[[ArrayLike], Array]:
    def function(x: Any, /) -> Array:
        return weak_scalar(inexact_operand(said, x)) * factor
    return described(function, name, ("x",), inexact=True)


degrees = _scaled("degrees", 180 / np.pi, "rad2deg")
rad2deg = _scaled("rad2deg", 180 / np.pi, "rad2deg")
radians = _scaled("radians", np.pi / 180, "deg2rad")
deg2rad = _scaled("deg2rad", np.pi / 180, "deg2rad")


@at_once
def log10(x: ArrayLike, /) -> Array:
    """The logarithm to base 10.

    Args:
      x: an array or scalar; integers become floats.

    Returns:
      An array of floats of the same shape: minus infinity at 0, NaN below.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``log``, ``log2``, ``log1p``, ``exp``.

    >>> jnp.log10(jnp.array([1, 10, 1000]))
    Array([0., 1., 3.], dtype=float32)
    """
    x = inexact_operand("log10", x)
    return each_part(log(x), lambda part: mul(part, cast(1 / math.log(10), part.dtype)))


@at_once
def logical_not(x: ArrayLike, /) -> Array:
    """Whether each element is zero.

    Args:
      x: an array or scalar; of numbers all but 0 count as true.

    Returns:
      An array of booleans of the same shape.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``logical_and``, ``logical_or``, ``logical_xor``, ``invert``.

    >>> jnp.logical_not(jnp.array([0, 1, 2]))
    Array([ True, False, False], dtype=bool)
    """
    return bitwise_not(as_bool(operand("logical_not", x)))


# --- of two arrays --------------------------------------------------------------------------------

_maximum, _minimum = binary("maximum", max_p), binary("minimum", min_p)


@at_once
def heaviside(x1: Any, x2: Any, /) -> Array:
    """0 for negative x1, x2 at 0, 1 above.

    >>> jnp.heaviside(jnp.array([-1., 0., 2.]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x1, x2 = (as_array(x) for x in promote_inexact("heaviside", x1, x2))
    if x1.ndim:
        x1, x2 = (convert_element_type(x, x.dtype) for x in (x1, x2))
    if explicit_mesh(x1, x2) is None:      # else `where` says how they are split together
        x1, x2 = promote_shapes("", x1, x2)
    if dtypes.is_complex(x1.dtype):
        raise TypeError("heaviside does not support complex-valued inputs")
    return _heaviside(x1, x2)


@whole("heaviside", rules.heaviside)
def _heaviside(x1: Array, x2: Array) -> Array:
    above = convert_element_type(x1 > 0, x1.dtype, x1.weak_type and x2.weak_type)
    return where(x1 == 0, x2, where(x1 != x1, x1, above))
