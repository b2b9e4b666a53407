"""Elementwise operations of jax.lax.

They validate but do not promote: operands share a dtype and, except for scalars, a rank. Each
combination of operand types is validated once.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable
from typing import Any

from maxjax._base import dtypes
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Array, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import (
    arithmetic,
    comparison,
    convert,
    special,
    transcendental,
)
from maxjax._primitives.arithmetic import (
    abs_p,
    add_p,
    ceil_p,
    complex_p,
    conj_p,
    div_p,
    floor_p,
    imag_p,
    integer_pow_p,
    is_finite_p,
    max_p,
    min_p,
    mul_p,
    neg_p,
    nextafter_p,
    one_minus_square_p,
    real_p,
    rem_p,
    round_p,
    sign_p,
    square_p,
    sub_p,
)
from maxjax._primitives.comparison import (
    and_p,
    clz_p,
    eq_p,
    eq_to_p,
    ge_p,
    gt_p,
    le_p,
    le_to_p,
    lt_p,
    lt_to_p,
    mulhi_p,
    ne_p,
    not_p,
    or_p,
    population_count_p,
    shift_left_p,
    shift_right_arithmetic_p,
    shift_right_logical_p,
    xor_p,
)
from maxjax._primitives.convert import (
    bitcast_convert_type_p,
    convert_element_type_p,
    reduce_precision_p,
    stop_gradient_p,
)
from maxjax._primitives.incomplete import (
    igamma_grad_a_p,
    igamma_p,
    igammac_p,
    regularized_incomplete_beta_p,
)
from maxjax._primitives.rules import broadcast_shape
from maxjax._primitives.special import (
    bessel_i0e_p,
    bessel_i1e_p,
    digamma_p,
    erf_inv_p,
    erf_p,
    erfc_p,
    lgamma_p,
    polygamma_p,
    zeta_p,
)
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
    logistic_p,
    pow_p,
    rsqrt_p,
    sin_p,
    sinh_p,
    sqrt_p,
    tan_p,
    tanh_p,
)
from maxjax._primitives.widths import INEXACT, NUMBERS
from maxjax.lax._conversion import convert_element_type
from maxjax.lax._elementwise_docs import docstring
from maxjax.lax._operands import check_accepted, same_dtypes_error
from maxjax.lax._operands import operand as as_operand

# Validated types of operands, for each operation; dropped when too many.
_VALID_LIMIT = 10_000


class RoundingMethod(enum.IntEnum):
    """How ``round`` treats halves.

    >>> lax.round(2.5, lax.RoundingMethod.TO_NEAREST_EVEN)
    Array(2., dtype=float32, weak_type=True)
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class AccuracyMode(enum.Enum):
    """The requested accuracy of a function; accepted, all functions are as accurate as possible.

    >>> lax.exp(0.0, accuracy=lax.AccuracyMode.HIGHEST)
    Array(1., dtype=float32, weak_type=True)
    """

    HIGHEST = 1
    DEFAULT = 2


class Tolerance:
    """Bounds on the error of a function; accepted, and met as nearly as possible.

    >>> lax.Tolerance(rtol=1e-3).rtol
    0.001
    """

    def __init__(self, atol: float = 0.0, rtol: float = 0.0, ulps: int = 0):
        if atol < 0.0 or rtol < 0.0 or ulps < 0:
            raise ValueError("Tolerances must be non-negative.")
        if atol == rtol == ulps == 0:
            raise ValueError("At least one of atol, rtol, or ulps must be set.")
        self.atol = atol
        self.rtol = rtol
        self.ulps = ulps


# --- builders -------------------------------------------------------------------------------------

def _unary(primitive: Primitive, name: str, what: str, example: str, result: str,
           accuracy: bool = False, results: str = "") -> Callable[..., Array]:
    """An operation of one operand; for the arguments ``example`` it prints ``result``."""
    valid: set[Any] = set()

    def operation(x: Any) -> Array:
        if not isinstance(x, Array):
            x = as_operand(x, primitive.name)
        dtype = x.aval.dtype
        if dtype not in valid:
            check_accepted(primitive, (x.aval,))
            valid.add(dtype)
        return context.trace.apply(primitive, (x,), {})

    if not accuracy:
        return _named(operation, name, docstring(name, what, example, result, 1, results))

    def with_accuracy(x: Any, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
        return operation(x)

    return _named(with_accuracy, name,
                  docstring(name, what, example, result, 1, results, accuracy))


def _binary(primitive: Primitive, name: str, what: str = "", example: str = "",
            result: str = "", results: str = "") -> Callable[..., Array]:
    """An operation of two operands; see ``_unary``."""
    valid: set[Any] = set()

    def operation(x: Any, y: Any) -> Array:
        if not isinstance(x, Array):
            x = as_operand(x, primitive.name, 0)
        if not isinstance(y, Array):
            y = as_operand(y, primitive.name, 1)
        avals = (x.aval, y.aval)
        if avals not in valid:
            check_binary(primitive, avals)
            if len(valid) >= _VALID_LIMIT:
                valid.clear()
            valid.add(avals)
        return context.trace.apply(primitive, (x, y), {})

    return _named(operation, name, docstring(name, what, example, result, 2, results))


def check_binary(primitive: Primitive, avals: tuple[ShapedArray, ShapedArray]) -> None:
    broadcast_shape(primitive.name, [aval.shape for aval in avals])
    check_accepted(primitive, avals)
    if avals[0].dtype != avals[1].dtype:
        raise same_dtypes_error(primitive.name, avals)


def _named(function: Callable[..., Array], name: str, text: str) -> Callable[..., Array]:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "maxjax.lax"
    function.__doc__ = text
    return function


# --- unary ----------------------------------------------------------------------------------------

neg = _unary(arithmetic.neg_p, "neg",
    "``-x``, elementwise; integers wrap around. Takes numbers, not booleans.",
    "jnp.array([1, -2])", "Array([-1,  2], dtype=int32)")
sign = _unary(arithmetic.sign_p, "sign",
    "-1, 0 or 1; ``x / |x|`` for complex numbers. Zeros keep their sign, NaN is NaN.",
    "jnp.array([-3., 0., 2.])", "Array([-1.,  0.,  1.], dtype=float32)")
abs = _unary(arithmetic.abs_p, "abs", "``|x|``; real for complex numbers.",
    "jnp.array([-3., 2.])", "Array([3., 2.], dtype=float32)", results="of the real dtype")
floor = _unary(arithmetic.floor_p, "floor",
    "The greatest whole number not above ``x``, for floats.",
    "jnp.array([-1.5, 1.5])", "Array([-2.,  1.], dtype=float32)")
ceil = _unary(arithmetic.ceil_p, "ceil", "The least whole number not below ``x``, for floats.",
    "jnp.array([-1.5, 1.5])", "Array([-1.,  2.], dtype=float32)")
is_finite = _unary(arithmetic.is_finite_p, "is_finite",
    "Whether floats are neither infinite nor NaN, as booleans.",
    "jnp.array([1., jnp.inf, jnp.nan])", "Array([ True, False, False], dtype=bool)")
square = _unary(arithmetic.square_p, "square", "``x * x``.",
    "jnp.array([-3, 2])", "Array([9, 4], dtype=int32)")
one_minus_square = _unary(arithmetic.one_minus_square_p, "one_minus_square",
    "``1 - x**2``, exact where ``x`` nears 1.",
    "jnp.array([0.5, 3.])", "Array([ 0.75, -8.  ], dtype=float32)")
real = _unary(arithmetic.real_p, "real", "The real part of complex numbers.",
    "jnp.array([1 + 2j])", "Array([1.], dtype=float32)", results="of the real dtype")
imag = _unary(arithmetic.imag_p, "imag", "The imaginary part of complex numbers.",
    "jnp.array([1 + 2j])", "Array([2.], dtype=float32)", results="of the real dtype")
exp = _unary(transcendental.exp_p, "exp", "``e ** x``, for floats and complex numbers.",
    "jnp.array([0., 1.])", "Array([1.       , 2.7182817], dtype=float32)", True)
exp2 = _unary(transcendental.exp2_p, "exp2", "``2 ** x``, for floats and complex numbers.",
    "jnp.array([-1., 10.])", "Array([5.000e-01, 1.024e+03], dtype=float32)", True)
expm1 = _unary(transcendental.expm1_p, "expm1", "``e ** x - 1``, exact near 0.",
    "jnp.array([1e-10])", "Array([1.e-10], dtype=float32)", True)
log = _unary(transcendental.log_p, "log", "The natural logarithm; NaN below 0 for floats.",
    "jnp.array([1., 0., -1.])", "Array([  0., -inf,  nan], dtype=float32)", True)
log1p = _unary(transcendental.log1p_p, "log1p", "``log(1 + x)``, exact near 0.",
    "jnp.array([1e-10])", "Array([1.e-10], dtype=float32)", True)
log2 = _unary(transcendental.log2_p, "log2", "The logarithm to base 2; NaN below 0 for floats.",
    "jnp.array([8., 0., -1.])", "Array([  3., -inf,  nan], dtype=float32)", True)
logistic = _unary(transcendental.logistic_p, "logistic", "``1 / (1 + e ** -x)``.",
    "jnp.array([-100., 0., 2.])", "Array([0.      , 0.5     , 0.880797], dtype=float32)", True)
sin = _unary(transcendental.sin_p, "sin", "The sine of radians.",
    "jnp.array([0., 1.])", "Array([0.        , 0.84147096], dtype=float32)", True)
cos = _unary(transcendental.cos_p, "cos", "The cosine of radians.",
    "jnp.array([0., 1.])", "Array([1.       , 0.5403023], dtype=float32)", True)
tan = _unary(transcendental.tan_p, "tan", "The tangent of radians.",
    "jnp.array([0., 1.])", "Array([0.       , 1.5574077], dtype=float32)", True)
asin = _unary(transcendental.asin_p, "asin",
    "The inverse sine, in radians; NaN outside [-1, 1] for floats.",
    "jnp.array([1., 2.])", "Array([1.5707964,       nan], dtype=float32)")
acos = _unary(transcendental.acos_p, "acos",
    "The inverse cosine, in radians; NaN outside [-1, 1] for floats.",
    "jnp.array([1., 2.])", "Array([ 0., nan], dtype=float32)")
atan = _unary(transcendental.atan_p, "atan", "The inverse tangent, in radians.",
    "jnp.array([1., jnp.inf])", "Array([0.7853982, 1.5707964], dtype=float32)")
sinh = _unary(transcendental.sinh_p, "sinh", "The hyperbolic sine.",
    "jnp.array([0., 1.])", "Array([0.       , 1.1752012], dtype=float32)")
cosh = _unary(transcendental.cosh_p, "cosh", "The hyperbolic cosine.",
    "jnp.array([0., 1.])", "Array([1.       , 1.5430807], dtype=float32)")
tanh = _unary(transcendental.tanh_p, "tanh", "The hyperbolic tangent.",
    "jnp.array([0., 100.])", "Array([0., 1.], dtype=float32)", True)
asinh = _unary(transcendental.asinh_p, "asinh", "The inverse hyperbolic sine.",
    "jnp.array([0., 1.])", "Array([0.       , 0.8813736], dtype=float32)")
acosh = _unary(transcendental.acosh_p, "acosh",
    "The inverse hyperbolic cosine; NaN below 1 for floats.",
    "jnp.array([1., 0.])", "Array([ 0., nan], dtype=float32)")
atanh = _unary(transcendental.atanh_p, "atanh",
    "The inverse hyperbolic tangent; infinite at the ends of [-1, 1].",
    "jnp.array([0.5, 1.])", "Array([0.54930615,        inf], dtype=float32)")
sqrt = _unary(transcendental.sqrt_p, "sqrt", "The square root; NaN below 0 for floats.",
    "jnp.array([4., -1.])", "Array([ 2., nan], dtype=float32)", True)
rsqrt = _unary(transcendental.rsqrt_p, "rsqrt", "``1 / sqrt(x)``.",
    "jnp.array([4., 0.])", "Array([0.5, inf], dtype=float32)", True)
cbrt = _unary(transcendental.cbrt_p, "cbrt", "The real cube root of floats.",
    "jnp.array([8., -8.])", "Array([ 2., -2.], dtype=float32)", True)
erf = _unary(special.erf_p, "erf", "The error function of floats.",
    "jnp.array([0., jnp.inf])", "Array([0., 1.], dtype=float32)")
erfc = _unary(special.erfc_p, "erfc", "``1 - erf(x)``, exact for large ``x``.",
    "jnp.array([0., 5.])", "Array([1.0000000e+00, 1.5374598e-12], dtype=float32)", True)
erf_inv = _unary(special.erf_inv_p, "erf_inv", "The inverse of the error function, on [-1, 1].",
    "jnp.array([0., 1.])", "Array([ 0., inf], dtype=float32)")
lgamma = _unary(special.lgamma_p, "lgamma", "``log |gamma(x)|``.",
    "jnp.array([3., -1.])", "Array([0.6931472,       inf], dtype=float32)")
digamma = _unary(special.digamma_p, "digamma", "The derivative of ``lgamma``.",
    "jnp.array([1., 10.])", "Array([-0.5772157,  2.2517526], dtype=float32)")
bessel_i0e = _unary(special.bessel_i0e_p, "bessel_i0e",
    "The modified Bessel function of order 0, times ``e ** -|x|``.",
    "jnp.array([0., 1.])", "Array([1.       , 0.4657596], dtype=float32)")
bessel_i1e = _unary(special.bessel_i1e_p, "bessel_i1e",
    "The modified Bessel function of order 1, times ``e ** -|x|``.",
    "jnp.array([0., 1.])", "Array([0.        , 0.20791042], dtype=float32)")
bitwise_not = _unary(comparison.not_p, "bitwise_not", "``~x``; logical for booleans.",
    "jnp.array([0, 5])", "Array([-1, -6], dtype=int32)")
population_count = _unary(comparison.population_count_p, "population_count",
    "The number of set bits of integers.",
    "jnp.array([0, 7, -1])", "Array([ 0,  3, 32], dtype=int32)")
clz = _unary(comparison.clz_p, "clz", "The number of leading zero bits of integers.",
    "jnp.array([0, 1, -1])", "Array([32, 31,  0], dtype=int32)")

# --- binary ---------------------------------------------------------------------------------------

add = _binary(arithmetic.add_p, "add", "``x + y``; integers wrap around.",
    "jnp.array([1, 2]), jnp.array([10, 20])", "Array([11, 22], dtype=int32)")
sub = _binary(arithmetic.sub_p, "sub", "``x - y``; integers wrap around.",
    "jnp.array([1, 2]), jnp.array([10, 20])", "Array([ -9, -18], dtype=int32)")
_mul = _binary(arithmetic.mul_p, "mul")
div = _binary(arithmetic.div_p, "div",
    "``x / y``; for integers towards zero, and -1 where ``y`` is 0.",
    "jnp.array([7, -7, 1]), jnp.array([2, 2, 0])", "Array([ 3, -3, -1], dtype=int32)")
rem = _binary(arithmetic.rem_p, "rem",
    "The remainder of division towards zero, with the sign of ``x``; for integers ``x`` "
    "itself where ``y`` is 0.",
    "jnp.array([7, -7, 1]), jnp.array([3, 3, 0])", "Array([ 1, -1,  1], dtype=int32)")
max = _binary(arithmetic.max_p, "max",
    "The greater; NaN if either is NaN. Complex numbers are ordered by their real, then their "
    "imaginary parts.",
    "jnp.array([1., jnp.nan]), jnp.array([2., 2.])", "Array([ 2., nan], dtype=float32)")
min = _binary(arithmetic.min_p, "min",
    "The lesser; NaN if either is NaN. Complex numbers are ordered by their real, then their "
    "imaginary parts.",
    "jnp.array([1., jnp.nan]), jnp.array([2., 2.])", "Array([ 1., nan], dtype=float32)")
_nextafter = _binary(arithmetic.nextafter_p, "nextafter")
complex = _binary(arithmetic.complex_p, "complex",
    "``x + i y``, of two arrays of float32 or of float64.",
    "jnp.array([1.]), jnp.array([2.])", "Array([1.+2.j], dtype=complex64)",
    "of complex64 or complex128")
atan2 = _binary(transcendental.atan2_p, "atan2",
    "The angle of the point ``(y, x)``, in radians; the first argument is the ordinate.",
    "jnp.array([1., -0.]), jnp.array([1., -1.])",
    "Array([ 0.7853982, -3.1415927], dtype=float32)")
eq = _binary(comparison.eq_p, "eq", "``x == y``, as booleans; NaN equals nothing.",
    "jnp.array([1., jnp.nan]), jnp.array([1., jnp.nan])", "Array([ True, False], dtype=bool)")
ne = _binary(comparison.ne_p, "ne", "``x != y``, as booleans; NaN equals nothing.",
    "jnp.array([1., jnp.nan]), jnp.array([1., jnp.nan])", "Array([False,  True], dtype=bool)")
lt = _binary(comparison.lt_p, "lt", "``x < y``, as booleans, for real numbers.",
    "jnp.array([1, 2]), jnp.array([2, 2])", "Array([ True, False], dtype=bool)")
le = _binary(comparison.le_p, "le", "``x <= y``, as booleans, for real numbers.",
    "jnp.array([1, 2]), jnp.array([2, 2])", "Array([ True,  True], dtype=bool)")
gt = _binary(comparison.gt_p, "gt", "``x > y``, as booleans, for real numbers.",
    "jnp.array([3, 2]), jnp.array([2, 2])", "Array([ True, False], dtype=bool)")
ge = _binary(comparison.ge_p, "ge", "``x >= y``, as booleans, for real numbers.",
    "jnp.array([3, 2]), jnp.array([2, 2])", "Array([ True,  True], dtype=bool)")
bitwise_and = _binary(comparison.and_p, "bitwise_and", "``x & y``, for integers and booleans.",
    "jnp.array([6]), jnp.array([3])", "Array([2], dtype=int32)")
bitwise_or = _binary(comparison.or_p, "bitwise_or", "``x | y``, for integers and booleans.",
    "jnp.array([6]), jnp.array([3])", "Array([7], dtype=int32)")
bitwise_xor = _binary(comparison.xor_p, "bitwise_xor", "``x ^ y``, for integers and booleans.",
    "jnp.array([6]), jnp.array([3])", "Array([5], dtype=int32)")
shift_left = _binary(comparison.shift_left_p, "shift_left",
    "``x << y``; 0 for shifts by the width or more.",
    "jnp.array([1, 1]), jnp.array([4, 32])", "Array([16,  0], dtype=int32)")
shift_right_logical = _binary(comparison.shift_right_logical_p, "shift_right_logical",
    "``x >> y``, filled with zeros.",
    "jnp.array([-16, 1]), jnp.array([28, 32])", "Array([15,  0], dtype=int32)")
shift_right_arithmetic = _binary(comparison.shift_right_arithmetic_p, "shift_right_arithmetic",
    "``x >> y``, filled with the sign.",
    "jnp.array([-16, -1]), jnp.array([2, 32])", "Array([-4, -1], dtype=int32)")
_mulhi = _binary(comparison.mulhi_p, "mulhi")


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: Any = None) -> Array:
    """``x * y``; wraps around for integers.

    Args:
      x, y: arrays of one dtype, shapes ``(...)`` equal, or scalars.
      out_dtype: of the product, in which it is computed.

    >>> lax.mul(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([3, 8], dtype=int32)
    """
    if out_dtype is None:
        return _mul(x, y)
    return _mul(convert_element_type(x, out_dtype), convert_element_type(y, out_dtype))


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The upper half of the bits of the product of integers.

    >>> lax.mulhi(jnp.uint32(1 << 31), jnp.uint32(6))
    Array(3, dtype=uint32)
    """
    return _mulhi(x, y)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The next number after ``x1`` in the direction of ``x2``.

    >>> lax.nextafter(jnp.float32(1), jnp.float32(2)) - 1
    Array(1.1920929e-07, dtype=float32)
    """
    return _nextafter(x1, x2)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """``x ** y`` for floats or complex numbers ``x``; ``y`` of the same dtype, or integers.

    Raises:
      TypeError: ``x`` is an integer, or the dtypes differ in another way.

    >>> lax.pow(jnp.array([2., 3.]), jnp.array([3, 2]))
    Array([8., 9.], dtype=float32)
    """
    primitive = transcendental.pow_p
    x, y = as_operand(x, "pow", 0), as_operand(y, "pow", 1)
    first, second = x.aval, y.aval
    broadcast_shape("pow", [first.shape, second.shape])
    for position, (aval, kinds, accepts) in enumerate((
            (first, INEXACT.kinds, INEXACT), (second, NUMBERS.kinds, NUMBERS))):
        if aval.dtype not in accepts:
            where = f" at position {position}"
            raise TypeError(f"pow does not accept dtype {aval.dtype}{where}. Accepted dtypes"
                            f"{where} are subtypes of {', '.join(kinds)}.")
    if first.dtype != second.dtype and dtypes.is_inexact(second.dtype):
        raise TypeError(
            "the first argument to pow must have an inexact dtype (float or complex), and the "
            "second argument must have an inexact or integer dtype, and two inexact dtypes must "
            f"match, but got {first.dtype} and {second.dtype} respectively.")
    return primitive.bind(x, y)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """``x ** y`` for a static integer ``y``.

    Raises:
      TypeError: ``x`` is an integer and ``y`` is negative.

    >>> lax.integer_pow(jnp.array([2, -3]), 3)
    Array([  8, -27], dtype=int32)
    """
    x = as_operand(x, "integer_pow")
    primitive = arithmetic.integer_pow_p
    check_accepted(primitive, (x.aval,))
    if y < 0 and dtypes.is_integer(x.aval.dtype):
        raise TypeError("Integers cannot be raised to negative powers, got "
                        f"integer_pow({x.aval.str_short()}, {y})")
    return primitive.bind(x, y=operator.index(y))


def reciprocal(x: ArrayLike) -> Array:
    """``1 / x``, for floats and complex numbers.

    >>> lax.reciprocal(jnp.array([4., 0.]))
    Array([0.25,  inf], dtype=float32)
    """
    return integer_pow(x, -1)


def conj(x: ArrayLike) -> Array:
    """The complex conjugate; floats become complex numbers.

    >>> lax.conj(jnp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    x = as_operand(x, "conj")
    check_accepted(arithmetic.conj_p, (x.aval,))
    return arithmetic.conj_p.bind(x, input_dtype=x.aval.dtype)


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest whole number.

    Args:
      x: floats.
      rounding_method: how halves are rounded.

    >>> lax.round(jnp.array([0.5, 2.5]))
    Array([1., 3.], dtype=float32)
    >>> lax.round(jnp.array([0.5, 2.5]), lax.RoundingMethod.TO_NEAREST_EVEN)
    Array([0., 2.], dtype=float32)
    """
    method = RoundingMethod(rounding_method)
    x = as_operand(x, "round")
    check_accepted(arithmetic.round_p, (x.aval,))
    return arithmetic.round_p.bind(x, rounding_method=int(method))


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Rounds floats to a format with the given numbers of exponent and mantissa bits.

    Raises:
      ValueError: ``exponent_bits`` is not positive, or ``mantissa_bits`` negative.

    >>> lax.reduce_precision(jnp.float32(1.1), 8, 7)
    Array(1.1015625, dtype=float32)
    """
    exponent_bits = operator.index(exponent_bits)
    mantissa_bits = operator.index(mantissa_bits)
    if exponent_bits < 1:
        raise ValueError(f"reduce_precision: exponent_bits must be positive; got {exponent_bits}")
    if mantissa_bits < 0:
        raise ValueError(
            f"reduce_precision: mantissa_bits must be non-negative; got {mantissa_bits}")
    x = as_operand(operand, "reduce_precision")
    check_accepted(convert.reduce_precision_p, (x.aval,))
    return convert.reduce_precision_p.bind(
        x, exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)


__all__ = [
    "AccuracyMode", "RoundingMethod", "Tolerance", "abs", "abs_p", "acos", "acos_p", "acosh",
    "acosh_p", "add", "add_p", "and_p", "asin", "asin_p", "asinh", "asinh_p", "atan", "atan2",
    "atan2_p", "atan_p", "atanh", "atanh_p", "bessel_i0e", "bessel_i0e_p", "bessel_i1e",
    "bessel_i1e_p", "bitcast_convert_type_p", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "cbrt", "cbrt_p", "ceil", "ceil_p", "clz", "clz_p", "complex", "complex_p",
    "conj", "conj_p", "convert_element_type_p", "cos", "cos_p", "cosh", "cosh_p", "digamma",
    "digamma_p", "div", "div_p", "eq", "eq_p", "eq_to_p", "erf", "erf_inv", "erf_inv_p", "erf_p",
    "erfc", "erfc_p", "exp", "exp2", "exp2_p", "exp_p", "expm1", "expm1_p", "floor", "floor_p",
    "ge", "ge_p", "gt", "gt_p", "igamma_grad_a_p", "igamma_p", "igammac_p", "imag", "imag_p",
    "integer_pow", "integer_pow_p", "is_finite", "is_finite_p", "le", "le_p", "le_to_p", "lgamma",
    "lgamma_p", "log", "log1p", "log1p_p", "log2", "log2_p", "log_p", "logistic", "logistic_p",
    "lt", "lt_p", "lt_to_p", "max", "max_p", "min", "min_p", "mul", "mul_p", "mulhi", "mulhi_p",
    "ne", "ne_p", "neg", "neg_p", "nextafter", "nextafter_p", "not_p", "one_minus_square",
    "one_minus_square_p", "or_p", "polygamma_p", "population_count", "population_count_p", "pow",
    "pow_p", "real", "real_p", "reciprocal", "reduce_precision", "reduce_precision_p",
    "regularized_incomplete_beta_p", "rem", "rem_p", "round", "round_p", "rsqrt", "rsqrt_p",
    "shift_left", "shift_left_p", "shift_right_arithmetic", "shift_right_arithmetic_p",
    "shift_right_logical", "shift_right_logical_p", "sign", "sign_p", "sin", "sin_p", "sinh",
    "sinh_p", "sqrt", "sqrt_p", "square", "square_p", "stop_gradient_p", "sub", "sub_p", "tan",
    "tan_p", "tanh", "tanh_p", "xor_p", "zeta_p",
]
