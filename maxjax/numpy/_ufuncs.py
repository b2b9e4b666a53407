"""Elementwise functions: arithmetic, exponentials, trigonometry, comparison, predicates, bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.primitive import (
    Primitive,
)
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.arithmetic import (
    abs_p,
    ceil_p,
    complex_p,
    conj_p,
    div_p,
    floor_p,
    imag_p,
    integer_pow,
    is_finite_p,
    max_p,
    min_p,
    mul,
    nextafter_p,
    real_p,
    sign_p,
    square_p,
)
from maxjax._primitives.comparison import (
    and_p,
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
from maxjax._primitives.creation import full
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
from maxjax.lax._conversion import lying_like
from maxjax.lax._over_mesh import explicit_mesh
from maxjax.numpy import _whole_rules as rules
from maxjax.numpy._elementwise import alias, binary, described, unary
from maxjax.numpy._promotion import (
    apart,
    as_array,
    bind,
    broadcast_to,
    cast,
    check_out,
    constant,
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
    "abs", "absolute", "acos", "acosh", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan",
    "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_count",
    "bitwise_invert", "bitwise_left_shift", "bitwise_not", "cbrt", "ceil", "conj", "conjugate",
    "cos", "cosh", "deg2rad", "degrees", "divide", "equal", "exp", "exp2", "expm1", "fabs", "floor",
    "fmax", "fmin", "greater", "greater_equal", "heaviside", "imag", "invert", "iscomplex",
    "iscomplexobj", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "isreal", "isrealobj",
    "left_shift", "less", "less_equal", "log", "log10", "log1p", "log2", "logical_not",
    "nan_to_num", "nextafter", "not_equal", "positive", "rad2deg", "radians", "real", "reciprocal",
    "sign", "sin", "sinh", "sqrt", "square", "tan", "tanh", "true_divide",
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


# --- conversions of a kind ------------------------------------------------------------------------

def operand(name: str, x: Any) -> Array:
    return as_array(resolve(name, (x,))[0])


def inexact_operand(name: str, x: Any) -> Array:
    return as_array(promote_inexact(name, x)[0])


def is_exact(x: Array) -> bool:
    return not dtypes.is_inexact(x.dtype)


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


def conjugate(x: ArrayLike, /) -> Array:
    """The complex conjugate; real arrays are returned as they are.

    Args:
      x: an array or scalar.

    Returns:
      An array of the same shape and dtype.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``real``, ``imag``, ``abs``, ``angle``, ``lax.conj``.

    >>> jnp.conjugate(jnp.array([1 + 2j, 3]))
    Array([1.-2.j, 3.-0.j], dtype=complex64)
    """
    x = operand("conjugate", x)
    if not dtypes.is_complex(x.dtype):
        return apart(x)
    return conj_p.bind(x, input_dtype=x.dtype)


conj = alias(conjugate, "conj")


def real(val: ArrayLike, /) -> Array:
    """The real part.

    Args:
      val: an array or scalar.

    Returns:
      An array of the same shape, of the real dtype; real arrays are returned as they are.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``imag``, ``conj``, ``iscomplexobj``, ``lax.real``.

    >>> jnp.real(jnp.array([1 + 2j, 3]))
    Array([1., 3.], dtype=float32)
    """
    x = operand("real", val)
    return real_p.bind(x) if dtypes.is_complex(x.dtype) else apart(x)


def imag(val: ArrayLike, /) -> Array:
    """The imaginary part; zeros for real arrays.

    Args:
      val: an array or scalar.

    Returns:
      An array of the same shape, of the real dtype.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``real``, ``conj``, ``angle``, ``lax.imag``.

    >>> jnp.imag(jnp.array([1 + 2j, 3]))
    Array([2., 0.], dtype=float32)
    """
    x = operand("imag", val)
    if dtypes.is_complex(x.dtype):
        return imag_p.bind(x)
    zeros = broadcast_to(constant(0, x.dtype, x.weak_type), x.shape) if x.weak_type else _zeros(x)
    return lying_like(zeros, x)


def _zeros(x: Array) -> Array:
    return as_array(full(x.shape, 0, x.dtype)) if x.shape else as_array(constant(0, x.dtype))


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
    return _each_part(log(x), lambda part: mul(part, cast(1 / math.log(10), part.dtype)))


def _each_part(x: Array, function: Callable[[Array], Array]) -> Array:
    """The function applied to x, or to both parts of a complex x."""
    if dtypes.is_complex(x.dtype):
        return complex_of(function(real(x)), function(imag(x)))
    return function(x)


def complex_of(x: Any, y: Any) -> Array:
    return complex_p.bind(x, y)


# --- of two arrays --------------------------------------------------------------------------------

_maximum, _minimum = binary("maximum", max_p), binary("minimum", min_p)


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


def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The greater element; if one is NaN, the other.

    Args:
      x1, x2: arrays or scalars of shapes that broadcast, promoted to one dtype.

    Returns:
      An array of the common shape; NaN only where both are.

    See also: ``maximum``, ``minimum``.

    >>> jnp.fmax(jnp.array([1., jnp.nan]), 0.)
    Array([1., 0.], dtype=float32)
    """
    x1, x2 = (as_array(x) for x in promote_dtypes("fmax", x1, x2))
    return where((x1 > x2) | isnan(x2), x1, x2)


def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The lesser element; if one is NaN, the other.

    Args:
      x1, x2: arrays or scalars of shapes that broadcast, promoted to one dtype.

    Returns:
      An array of the common shape; NaN only where both are.

    See also: ``maximum``, ``minimum``.

    >>> jnp.fmin(jnp.array([1., jnp.nan]), 0.)
    Array([0., 0.], dtype=float32)
    """
    x1, x2 = (as_array(x) for x in promote_dtypes("fmin", x1, x2))
    return where((x1 < x2) | isnan(x2), x1, x2)


# --- predicates -----------------------------------------------------------------------------------

def _everywhere(value: bool, x: Array) -> Array:
    return as_array(full(x.shape, value, dtypes.bool_)) if x.shape else as_array(np.bool_(value))


def isfinite(x: ArrayLike, /) -> Array:
    """Whether each element is neither infinite nor NaN.

    Args:
      x: an array or scalar; both parts of a complex number must be finite.

    Returns:
      An array of booleans of the same shape; integers are all finite.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``isinf``, ``isnan``, ``nan_to_num``, ``lax.is_finite``.

    >>> jnp.isfinite(jnp.array([1., jnp.inf, jnp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    x = operand("isfinite", x)
    if dtypes.is_complex(x.dtype):
        return and_p.bind(is_finite_p.bind(real(x)), is_finite_p.bind(imag(x)))
    if is_exact(x):
        return _everywhere(True, x)
    return is_finite_p.bind(x)


def isinf(x: ArrayLike, /) -> Array:
    """Whether each element is infinite.

    Args:
      x: an array or scalar; of a complex number one part suffices.

    Returns:
      An array of booleans of the same shape.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``isfinite``, ``isnan``, ``isposinf``, ``isneginf``.

    >>> jnp.isinf(jnp.array([1., -jnp.inf, jnp.nan]))
    Array([False,  True, False], dtype=bool)
    """
    x = operand("isinf", x)
    if dtypes.is_complex(x.dtype):
        return isinf(real(x)) | isinf(imag(x))
    if is_exact(x):
        return _everywhere(False, x)
    return abs(x) == np.array(np.inf, x.dtype)[()]     # strongly typed, as in JAX


def isnan(x: ArrayLike, /) -> Array:
    """Whether each element is NaN.

    Args:
      x: an array or scalar; of a complex number one part suffices.

    Returns:
      An array of booleans of the same shape; False for integers.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``isfinite``, ``isinf``, ``nan_to_num``, ``nansum``.

    >>> jnp.isnan(jnp.array([1., jnp.inf, jnp.nan]))
    Array([False, False,  True], dtype=bool)
    """
    x = operand("isnan", x)
    return x != x


def _is_infinity(name: str, x: Any, infinity: float) -> Array:
    x = operand(name, x)
    if dtypes.is_floating(x.dtype):
        return x == np.array(infinity, x.dtype)[()]
    if is_exact(x):
        return _everywhere(False, x)
    raise ValueError(f"{name} is not well defined for complex types")


def isposinf(x: Any, /, out: Any = None) -> Array:
    """Whether each element is positive infinity.

    >>> jnp.isposinf(jnp.array([jnp.inf, -jnp.inf]))
    Array([ True, False], dtype=bool)
    """
    check_out("isposinf", out)
    return _is_infinity("isposinf", x, np.inf)


def isneginf(x: Any, /, out: Any = None) -> Array:
    """Whether each element is negative infinity.

    Args:
      x: an array or scalar of real numbers.
      out: None: arrays are immutable, so that nothing is written into one.

    Returns:
      An array of booleans of the same shape.

    Raises:
      ValueError: ``x`` is complex.
      TypeError: it is no array or number.
      NotImplementedError: ``out`` is given.

    See also: ``isposinf``, ``isinf``, ``isfinite``.

    >>> jnp.isneginf(jnp.array([jnp.inf, -jnp.inf]))
    Array([False,  True], dtype=bool)
    """
    check_out("isneginf", out)
    return _is_infinity("isneginf", x, -np.inf)


def iscomplex(x: ArrayLike) -> Array:
    """Whether each element has an imaginary part.

    >>> jnp.iscomplex(jnp.array([1j, 2]))
    Array([ True, False], dtype=bool)
    """
    part = imag(x)
    return bind(ne_p, part, constant(0, part.dtype, part.weak_type and not part.ndim))


def isreal(x: ArrayLike) -> Array:
    """Whether each element has no imaginary part.

    >>> jnp.isreal(jnp.array([1j, 2]))
    Array([False,  True], dtype=bool)
    """
    return logical_not(iscomplex(x))


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex.

    Args:
      x: an array or scalar, or anything with a dtype.

    Returns:
      A Python boolean, also while tracing; imaginary parts of 0 count as well.

    See also: ``isrealobj``, ``iscomplex``, ``issubdtype``.

    >>> jnp.iscomplexobj(jnp.array([1j, 2])), jnp.iscomplexobj(2.0)
    (True, False)
    """
    if x is None:
        return False
    if hasattr(x, "__jax_array__") and not isinstance(x, Array):
        x = x.__jax_array__()
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return isinstance(x, complex) or (
            isinstance(x, (list, tuple)) and any(map(iscomplexobj, x)))
    return dtypes.is_complex(dtype)


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex.

    >>> jnp.isrealobj(jnp.array([1j, 2])), jnp.isrealobj(2.0)
    (False, True)
    """
    return not iscomplexobj(x)


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


def nan_to_num(x: ArrayLike, copy: bool = True, nan: Any = 0.0, posinf: Any = None,
               neginf: Any = None) -> Array:
    """Replaces NaN and infinities, by default with zero and the extreme finite numbers.

    Args:
      x: an array; integers are returned as they are.
      copy: accepted; the result is always a new array.
      nan: what NaN becomes.
      posinf, neginf: what the infinities become; None: the greatest and the least finite number.

    Returns:
      An array of the same shape and dtype; both parts of complex numbers are replaced.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``isnan``, ``isfinite``, ``where``, ``nansum``.

    >>> jnp.nan_to_num(jnp.array([jnp.nan, jnp.inf, 1.]), posinf=9.)
    Array([0., 9., 1.], dtype=float32)
    """
    x = operand("nan_to_num", x)
    if is_exact(x):
        return apart(x)
    if dtypes.is_complex(x.dtype):
        return complex_of(nan_to_num(real(x), copy, nan, posinf, neginf),
                          nan_to_num(imag(x), copy, nan, posinf, neginf))
    info = dtypes.finfo(x.dtype)
    return _nan_to_num(x, *(cast(value, x.dtype) for value in (
        nan, info.max if posinf is None else posinf, info.min if neginf is None else neginf)))


@whole("nan_to_num", rules.nan_to_num)
def _nan_to_num(x: Array, nan: Any, above: Any, below: Any) -> Array:
    x = where(isnan(x), nan, x)
    x = where(x == np.inf, above, x)
    return where(x == -np.inf, below, x)
