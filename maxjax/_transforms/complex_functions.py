"""Elementwise functions of complex numbers by their parts, with the values of tier 0.

Each takes an equation and its operands, and gives the parts of the result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxjax._ir.jaxpr import JaxprEqn
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value
from maxjax._primitives.arithmetic import (
    abs_,
    abs_p,
    add,
    complex_p,
    conj_p,
    div,
    div_p,
    imag_p,
    integer_pow_p,
    max_p,
    min_p,
    mul,
    mul_p,
    neg,
    real_p,
    sign_p,
    square_p,
    sub,
)
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.comparison import (
    and_p,
    eq_p,
    ge_p,
    gt_p,
    lt_p,
    ne_p,
    not_p,
    or_p,
    select,
)
from maxjax._primitives.convert import bitcast_convert_type_p, convert_element_type_p
from maxjax._primitives.transcendental import (
    atan2_p,
    cos_p,
    cosh_p,
    exp_p,
    log1p_p,
    log_p,
    sin_p,
    sinh_p,
    sqrt_p,
    tan_p,
    tanh_p,
)

SINGLE, WIDE = np.dtype(np.complex64), np.dtype(np.float64)
# Powers of two by which numbers in double precision are brought to where their squares neither
# overflow nor lose digits, and from where on: squares of what is between are normal numbers.
_SCALE, _FAR = 600, 500

Parts = tuple[Value, Value]


class Complex:
    """A value of a program: whole, as parts, or both once both have been asked for.

    Args:
      moved: of elements that an equation only moves, what gives the whole if the operands are
        whole, and what gives the parts: neither is done before it is asked for.
    """

    __slots__ = ("_moved", "_parts", "_whole", "aval")

    def __init__(self, aval: ShapedArray, parts: Parts | None = None, whole: Value | None = None,
                 moved: tuple[Callable[[], Value | None], Callable[[], Parts]] | None = None):
        self.aval = aval
        self._parts = parts
        self._whole: Any = whole
        self._moved = moved

    @property
    def lies(self) -> bool:
        """Whether it is whole, or may be had so without its parts."""
        return self._whole is not None or self._parts is None

    @property
    def parts(self) -> Parts:
        if self._parts is None:
            if self._whole is None and self._moved is not None:
                self._parts = self._moved[1]()
            else:
                self._parts = real_p.bind(self._whole), imag_p.bind(self._whole)
        return self._parts

    @property
    def whole(self) -> Any:
        if self._whole is None and self._parts is None and self._moved is not None:
            self._whole = self._moved[0]()
        if self._whole is None:
            self._whole = complex_p.bind(*self.parts)
        return self._whole


# A value of a program that is rewritten by parts.
Operand = Complex | Value


def of_shape(x: Value, shape: tuple[int, ...]) -> Any:
    """A part that has no dimensions, or sizes of 1, in the shape of the whole."""
    own = np.shape(x)
    return x if own == shape else broadcast_in_dim(x, shape, tuple(range(len(own))))


def product_of(x: Parts, y: Parts) -> tuple[Array, Array]:
    (a, b), (c, d) = x, y
    return sub(mul(a, c), mul(b, d)), add(mul(a, d), mul(b, c))


def _folded(by_numpy: Callable[..., Value], apply: Callable[..., Value]
            ) -> Callable[..., Any]:
    """An operation that NumPy computes at once where all operands are constants of the program.

    What is divided by a number that stands in the program needs few of the questions that a
    quotient asks of its divisor.
    """
    def run(*xs: Value) -> Value:
        if all(isinstance(x, np.generic) for x in xs):
            with np.errstate(all="ignore"):
                return by_numpy(*xs)
        return apply(*xs)

    return run


_plus, _times, _over = _folded(np.add, add), _folded(np.multiply, mul), _folded(np.divide, div)
_minus, _negated = _folded(np.subtract, sub), _folded(np.negative, neg)
_equal, _less = _folded(np.equal, eq_p.bind), _folded(np.less, lt_p.bind)
_unequal, _no_less = _folded(np.not_equal, ne_p.bind), _folded(np.greater_equal, ge_p.bind)
_absolute, _opposite = _folded(abs, abs_), _folded(np.logical_not, not_p.bind)


def chosen(which: Value, on_false: Value, on_true: Value) -> Any:
    if isinstance(which, np.bool):
        return on_true if which else on_false
    shape = np.shape(which)
    return select(which, of_shape(on_false, shape), of_shape(on_true, shape))


def both(x: Value, y: Value) -> Value:
    if isinstance(x, np.bool):
        x, y = y, x
    if isinstance(y, np.bool):
        return x if y else y
    return and_p.bind(x, y)


def either(x: Value, y: Value) -> Value:
    if isinstance(x, np.bool):
        x, y = y, x
    if isinstance(y, np.bool):
        return y if y else x
    return or_p.bind(x, y)


def number_like(value: float, x: Value) -> Any:
    """A number of the dtype of ``x``."""
    return x.dtype.type(value)


def is_number(x: Value, value: float) -> Array:
    return _equal(x, number_like(value, x))


def is_infinite(x: Value) -> Array:
    return is_number(_absolute(x), np.inf)


def is_finite(x: Value) -> Array:
    return _less(_absolute(x), number_like(np.inf, x))


def is_nan(x: Value) -> Array:
    return _unequal(x, x)


def with_sign(size: Value, x: Value) -> Any:
    """A number of a size, which is not negative, with the sign of another, also of a zero."""
    bits = np.dtype(f"i{x.dtype.itemsize}")
    if isinstance(x, np.generic):       # of a constant
        negative: Any = np.signbit(x)
    else:
        negative = lt_p.bind(bitcast_convert_type_p.bind(x, new_dtype=bits), bits.type(0))
    return chosen(negative, size, _negated(size))


def quotient(x: Parts, y: Parts) -> Parts:
    """As NumPy divides, and by annex G of the C standard where that is not finite."""
    shape = np.broadcast_shapes(*(np.shape(part) for part in (*x, *y)))
    (a, b), (c, d) = ([part if isinstance(part, np.generic) else of_shape(part, shape)
                       for part in number] for number in (x, y))
    one, zero, infinity = (number_like(value, c) for value in (1, 0, np.inf))
    level = _no_less(_absolute(c), _absolute(d))
    major, minor = chosen(level, d, c), chosen(level, c, d)
    by_zero = both(is_number(c, 0), is_number(d, 0))
    ratio = _over(minor, chosen(by_zero, major, one))
    scale = _over(one, _plus(major, _times(minor, ratio)))
    real = _times(chosen(level, _plus(_times(a, ratio), b), _plus(a, _times(b, ratio))), scale)
    imaginary = _times(chosen(level, _minus(_times(b, ratio), a), _minus(b, _times(a, ratio))),
                       scale)
    lost = both(is_nan(real), is_nan(imaginary))
    finite = both(is_finite(c), is_finite(d)), both(is_finite(a), is_finite(b))
    upper = both(lost, both(either(is_infinite(a), is_infinite(b)), finite[0]))
    lower = both(lost, both(either(is_infinite(c), is_infinite(d)), finite[1]))

    def boxed(part: Value) -> Any:
        return with_sign(chosen(is_infinite(part), zero, one), part)

    def put(where: Value, values: Callable[[], Parts]) -> None:
        nonlocal real, imaginary
        if not isinstance(where, np.bool) or where:
            real, imaginary = (chosen(where, part, value)
                               for part, value in zip((real, imaginary), values(), strict=True))

    def product(factor: Value, a: Value, b: Value, c: Value, d: Value) -> Parts:
        return (_times(factor, _plus(_times(a, c), _times(b, d))),
                _times(factor, _minus(_times(b, c), _times(a, d))))

    put(upper, lambda: product(infinity, boxed(a), boxed(b), c, d))
    put(lower, lambda: product(zero, a, b, boxed(c), boxed(d)))
    signed = with_sign(infinity, c)
    unknown = both(is_nan(a), is_nan(b))
    put(both(by_zero, _opposite(unknown)), lambda: (_times(signed, a), _times(signed, b)))
    return of_shape(real, shape), of_shape(imaginary, shape)


def _power(eqn: JaxprEqn, x: Complex) -> Parts:
    """By repeated squaring."""
    exponent, base, result = abs(eqn.params["y"]), x.parts, None
    while exponent:
        if exponent & 1:
            result = base if result is None else product_of(result, base)
        exponent >>= 1
        if exponent:
            base = product_of(base, base)
    one = number_like(1, base[0]), number_like(0, base[0])
    if result is None:
        return one
    return quotient(one, result) if eqn.params["y"] < 0 else result


def _square(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = x.parts
    return mul(sub(a, b), add(a, b)), mul(number_like(2, a), mul(a, b))


def wide(x: Value) -> Any:
    return convert_element_type_p.bind(x, new_dtype=WIDE, weak_type=False)


def as_part(x: Value, like: Value) -> Any:
    """In the dtype of a part."""
    return convert_element_type_p.bind(x, new_dtype=like.dtype, weak_type=False)


def _squared_size(a: Value, b: Value) -> Any:
    return add(mul(a, a), mul(b, b))


class _Scaled(NamedTuple):
    """Parts in double precision whose squares neither overflow nor underflow.

    Squares of single precision are exact in double. Parts in double precision are multiplied by a
    power of two.
    """

    a: Any
    b: Any
    far: tuple[Any, Any] | None     # where it is large, and where it is small

    def by(self, x: Value, power: float, each: Callable[[Value, Value], Value] = mul,
           unit: float = 2.0) -> Any:
        """``x`` times ``2 ** power`` where the parts were made smaller, by its inverse where they
        were made larger."""
        if self.far is None:
            return x
        if each is mul:
            values = unit ** power, unit ** -power, 1.0
        else:
            values = unit * power, -unit * power, 0.0
        large, small, other = map(WIDE.type, values)
        return each(x, chosen(self.far[0], chosen(self.far[1], other, small), large))


def _scaled(x: Complex) -> _Scaled:
    a, b = x.parts
    if x.aval.dtype == SINGLE:
        return _Scaled(wide(a), wide(b), None)
    shape = np.broadcast_shapes(np.shape(a), np.shape(b))
    a, b = of_shape(a, shape), of_shape(b, shape)
    largest = chosen(lt_p.bind(abs_(a), abs_(b)), abs_(a), abs_(b))
    far = (ge_p.bind(largest, WIDE.type(2.0 ** _FAR)),
           lt_p.bind(largest, WIDE.type(2.0 ** -_FAR)))
    scaled = _Scaled(a, b, far)
    return _Scaled(scaled.by(a, -_SCALE), scaled.by(b, -_SCALE), far)


def _size(x: Complex) -> Any:
    scaled = _scaled(x)
    size = sqrt_p.bind(_squared_size(scaled.a, scaled.b))
    size = as_part(scaled.by(size, _SCALE), x.parts[0])
    # One infinite part makes it infinite, also beside a NaN.
    return chosen(either(*map(is_infinite, x.parts)), size, number_like(np.inf, size))


def _sign(eqn: JaxprEqn, x: Complex) -> Parts:
    size = _size(x)
    size = chosen(is_number(size, 0), size, number_like(1, size))
    a, b = x.parts
    return div(a, size), div(b, size)


def exponential(x: Parts) -> Parts:
    a, b = x
    # The whole may overflow where the product does not.
    root = exp_p.bind(mul(a, number_like(0.5, a)))
    return (mul(mul(root, cos_p.bind(b)), root),
            chosen(is_number(b, 0), mul(mul(root, sin_p.bind(b)), root), b))


def logarithm(x: Complex) -> Parts:
    a, b = x.parts
    scaled = _scaled(x)
    half = WIDE.type(0.5)
    size = mul(half, log_p.bind(_squared_size(scaled.a, scaled.b)))
    if scaled.far is not None:
        size = scaled.by(size, _SCALE, add, math.log(2))
        # The logarithm of this has the digits that a size near one has lost.
        above = sum_of_squares(WIDE.type(-1), a, b)
        size = chosen(lt_p.bind(abs_(above), half), size, mul(half, log1p_p.bind(above)))
        # Beside a NaN an infinite part would make it infinite.
        unknown = either(is_nan(a), is_nan(b))
        size = chosen(unknown, size, WIDE.type(np.nan))
    return as_part(size, a), as_part(atan2_p.bind(*map(wide, (b, a))), a)


def _two_sum(x: Value, y: Value) -> Parts:
    """A sum and what rounding takes off it."""
    total = add(x, y)
    other = sub(total, x)
    return total, add(sub(x, sub(total, other)), sub(y, other))


def _two_square(x: Value) -> Parts:
    """A square and what rounding takes off it, by halves of 26 bits each."""
    turned = mul(x, WIDE.type(2.0 ** 27 + 1))
    high = sub(turned, sub(turned, x))
    low = sub(x, high)
    square = mul(x, x)
    return square, add(add(sub(mul(high, high), square), mul(WIDE.type(2), mul(high, low))),
                       mul(low, low))


def sum_of_squares(x: Value, a: Value, b: Value) -> Value:
    """``x + a * a + b * b`` in twice the precision."""
    (square, rest), (other, less) = _two_square(a), _two_square(b)
    swapped = lt_p.bind(square, other)
    larger, smaller = chosen(swapped, square, other), chosen(swapped, other, square)
    total, first = _two_sum(larger, x)
    total, second = _two_sum(total, smaller)
    return add(total, add(add(first, second), add(rest, less)))


def root(x: Complex, cut_above: bool = True) -> Parts:
    """The root in the right half plane.

    Args:
      cut_above: its branch cut belongs to what is above it, whatever the sign of an imaginary zero.
    """
    half, zero, one = map(WIDE.type, (0.5, 0, 1))
    scaled = _scaled(x)
    a, b = scaled.a, scaled.b
    if cut_above:
        b = chosen(eq_p.bind(b, zero), b, zero)
    major = sqrt_p.bind(mul(half, add(sqrt_p.bind(_squared_size(a, b)), abs_(a))))
    minor = div(mul(half, b), chosen(eq_p.bind(major, zero), major, one))
    major, minor = (scaled.by(part, _SCALE // 2) for part in (major, minor))
    left = lt_p.bind(a, zero)
    like = x.parts[0]
    real = as_part(chosen(left, major, abs_(minor)), like)
    imaginary = as_part(chosen(left, minor, with_sign(major, b)), like)
    a, b = x.parts
    far, unknown = is_infinite(b), either(is_nan(a), is_nan(b))
    nan = number_like(np.nan, a)
    return (chosen(unknown, chosen(far, real, abs_(b)), nan),
            chosen(unknown, chosen(far, imaginary, b), nan))


def _sinh(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = x.parts
    return (mul(sinh_p.bind(a), cos_p.bind(b)),
            chosen(is_number(b, 0), mul(cosh_p.bind(a), sin_p.bind(b)), b))


def _cosh(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = x.parts
    return (mul(cosh_p.bind(a), cos_p.bind(b)),
            chosen(is_number(b, 0), mul(sinh_p.bind(a), sin_p.bind(b)), b))


def _sin(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = x.parts
    return (chosen(is_number(a, 0), mul(sin_p.bind(a), cosh_p.bind(b)), a),
            mul(cos_p.bind(a), sinh_p.bind(b)))


def _cos(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = x.parts
    return (mul(cos_p.bind(a), cosh_p.bind(b)),
            chosen(is_number(a, 0), neg(mul(sin_p.bind(a), sinh_p.bind(b))), a))


def _tanh_of_parts(a: Value, b: Value) -> Parts:
    real, turn, one = tanh_p.bind(a), tan_p.bind(b), number_like(1, a)
    squared, growth = mul(turn, turn), cosh_p.bind(a)
    divisor = add(one, mul(mul(real, real), squared))
    wave = div(mul(real, add(one, squared)), divisor)
    tail = div(turn, mul(mul(growth, growth), divisor))
    is_regular = both(is_finite(a), is_finite(b))
    far, level, nan = is_infinite(a), is_number(b, 0), number_like(np.nan, a)
    return (chosen(is_regular, chosen(either(far, level), nan, real), wave),
            chosen(is_regular, chosen(far, chosen(level, nan, b), number_like(0, a)), tail))


def _tanh(eqn: JaxprEqn, x: Complex) -> Parts:
    return _tanh_of_parts(*x.parts)


def _tan(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = x.parts
    real, imaginary = _tanh_of_parts(neg(b), a)     # tan z = -i tanh(i z)
    return imaginary, neg(real)


def _conj(eqn: JaxprEqn, x: Complex | Value) -> Parts:
    if not isinstance(x, Complex):
        return x, number_like(0, x)
    a, b = x.parts
    return a, neg(b)

def _extremum(before: Primitive) -> Callable[..., Parts]:
    """By the real parts, and where these are equal by the imaginary ones."""
    def rule(eqn: JaxprEqn, x: Complex, y: Complex) -> Parts:
        (a, b), (c, d) = ([of_shape(part, eqn.outvars[0].aval.shape) for part in number.parts]
                          for number in (x, y))
        first = either(before.bind(a, c), both(eq_p.bind(a, c), before.bind(b, d)))
        return chosen(first, c, a), chosen(first, d, b)
    return rule


RULES: dict[Primitive, Callable[..., Any]] = {
    abs_p: lambda eqn, x: _size(x),
    conj_p: _conj,
    cos_p: _cos,
    cosh_p: _cosh,
    div_p: lambda eqn, x, y: quotient(x.parts, y.parts),
    exp_p: lambda eqn, x: exponential(x.parts),
    integer_pow_p: _power,
    log_p: lambda eqn, x: logarithm(x),
    max_p: _extremum(gt_p),
    min_p: _extremum(lt_p),
    mul_p: lambda eqn, x, y: product_of(x.parts, y.parts),
    sign_p: _sign,
    sin_p: _sin,
    sinh_p: _sinh,
    sqrt_p: lambda eqn, x: root(x),
    square_p: _square,
    tan_p: _tan,
    tanh_p: _tanh,
}
