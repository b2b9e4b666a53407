"""Inverse functions and powers of complex numbers by their parts, with the values of tier 0.

The inverse sine and cosine are those of T. E. Hull, T. F. Fairgrieve and P. T. P. Tang,
Implementing the complex arcsine and arccosine functions using exception handling (1997), but
without cases: see ``_ellipse``. Single precision is computed in double.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maxjax._ir.jaxpr import JaxprEqn
from maxjax._ir.primitive import Primitive
from maxjax._ir.typing import Value
from maxjax._primitives.arithmetic import abs_, add, div, maximum, minimum, mul, neg, sub
from maxjax._primitives.comparison import eq_p, ge_p, gt_p, le_p, lt_p, not_p
from maxjax._primitives.convert import convert_element_type_p
from maxjax._primitives.transcendental import (
    acos_p,
    acosh_p,
    asin_p,
    asinh_p,
    atan2_p,
    atan_p,
    atanh_p,
    cos_p,
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
    sqrt_p,
)
from maxjax._transforms.complex_functions import (
    SINGLE,
    WIDE,
    Complex,
    Operand,
    Parts,
    as_part,
    both,
    chosen,
    either,
    exponential,
    is_finite,
    is_infinite,
    is_nan,
    is_number,
    logarithm,
    number_like,
    of_shape,
    product_of,
    quotient,
    root,
    sum_of_squares,
    wide,
    with_sign,
)

ZERO, HALF, ONE, TWO, INFINITY = map(WIDE.type, (0, 0.5, 1, 2, np.inf))


def _parts(x: Complex) -> Parts:
    """In double precision, both of the shape of the whole."""
    a, b = (of_shape(part, x.aval.shape) for part in x.parts)
    return (wide(a), wide(b)) if x.aval.dtype == SINGLE else (a, b)


def _narrow(x: Complex, *parts: Value) -> tuple[Value, ...]:
    return tuple(as_part(part, x.parts[0]) for part in parts)


def _where(x: Complex, which: Value, parts: Parts, values: Parts) -> Parts:
    """Some values where a condition holds."""
    a, b = (chosen(which, of_shape(part, x.aval.shape), value)
            for part, value in zip(parts, values, strict=True))
    return a, b


def _numbers(x: Complex, *values: float) -> tuple[np.generic, ...]:
    return tuple(number_like(value, x.parts[0]) for value in values)


def _size(a: Value, b: Value, single: bool) -> Value:
    """The root of ``a**2 + b**2``, of which squares of double precision may overflow or vanish."""
    if single:
        return sqrt_p.bind(add(mul(a, a), mul(b, b)))
    a, b = abs_(a), abs_(b)
    larger, smaller = maximum(a, b), minimum(a, b)
    ratio = div(smaller, chosen(either(is_number(larger, 0), is_infinite(larger)), larger, ONE))
    return mul(larger, sqrt_p.bind(add(ONE, mul(ratio, ratio))))


# --- inverse functions ----------------------------------------------------------------------------

class _Ellipse(NamedTuple):
    height: Value
    side: Value


# From here on ``asin(x + iy)`` is ``atan(x / y) + i log(2 |z|)``.
_FAR = WIDE.type(2.0 ** 30)


def _ellipse(x: Value, y: Value, single: bool) -> _Ellipse:
    """The parts of the inverse sine of ``x + iy`` in the first quadrant.

    With r and s, the distances from -1 and 1, and a = (r + s) / 2:

        asin(x + iy) = atan2(x, side) + i height
        side = sqrt(a**2 - x**2),    height = log(a + sqrt(a**2 - 1))

    Both differences are sums of what is not negative. With p = s + |x - 1|, so that s - |x - 1| is
    y**2 / p, and q = y / (r + x + 1):

        a - x = (y q + p) / 2,              a - 1 = y (q + y / p) / 2             where x <= 1

    and the other way around beyond. The roots of y and of the other factor are taken apart: their
    product would underflow.
    """
    one_less = abs_(sub(x, ONE))
    far = ge_p.bind(maximum(x, y), _FAR)
    r = _size(chosen(far, add(x, ONE), mul(x, HALF)), chosen(far, y, mul(y, HALF)), single)
    s = _size(one_less, y, single)
    a = mul(HALF, add(r, s))
    p = add(s, one_less)
    q = div(y, add(r, add(x, ONE)))
    first = sqrt_p.bind(add(mul(y, q), p))
    second = mul(sqrt_p.bind(y), sqrt_p.bind(
        add(q, div(y, chosen(is_number(p, 0), p, ONE)))))
    inside = le_p.bind(x, ONE)
    below, above = chosen(inside, second, first), chosen(inside, first, second)
    side = mul(sqrt_p.bind(mul(HALF, add(a, x))), below)
    rest = add(mul(HALF, mul(above, above)), mul(sqrt_p.bind(mul(HALF, add(a, ONE))), above))
    height = log1p_p.bind(chosen(far, rest, sub(r, ONE)))
    return _Ellipse(chosen(far, height, add(height, WIDE.type(2 * math.log(2)))),
                    chosen(far, side, y))


def _upper(x: Value) -> Value:
    """A zero of either sign as the positive one: the cut belongs to what is above it."""
    return chosen(is_number(x, 0), x, number_like(0, x))


def _unless_nan(x: Complex, parts: Parts, infinite: Parts) -> Parts:
    """NaN where a part is, except ``infinite`` beside an infinity."""
    a, b = (of_shape(part, x.aval.shape) for part in x.parts)
    unknown = either(is_nan(a), is_nan(b))
    nan, = _numbers(x, np.nan)
    parts = _where(x, unknown, parts, (nan, nan))
    return _where(x, both(unknown, either(is_infinite(a), is_infinite(b))), parts, infinite)


def _signed_infinity(x: Value) -> Value:
    """As ``x``, of which NaN and zeros count as positive."""
    return chosen(lt_p.bind(x, number_like(0, x)), number_like(np.inf, x),
                  number_like(-np.inf, x))


def _asin(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = _parts(x)
    height, side = _ellipse(abs_(a), abs_(b), x.aval.dtype == SINGLE)
    real, imaginary = _narrow(x, with_sign(atan2_p.bind(abs_(a), side), a),
                              with_sign(height, _upper(b)))
    nan, = _numbers(x, np.nan)
    return _unless_nan(x, (real, imaginary), (nan, _signed_infinity(as_part(b, real))))


def _acos(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = _parts(x)
    height, side = _ellipse(abs_(a), abs_(b), x.aval.dtype == SINGLE)
    real, imaginary = _narrow(x, atan2_p.bind(side, a), neg(with_sign(height, _upper(b))))
    nan, = _numbers(x, np.nan)
    return _unless_nan(x, (real, imaginary), (nan, neg(_signed_infinity(as_part(b, real)))))


def _acosh(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = _parts(x)
    height, side = _ellipse(abs_(a), abs_(b), x.aval.dtype == SINGLE)
    real, imaginary = _narrow(x, height, with_sign(atan2_p.bind(side, a), _upper(b)))
    infinity, nan = _numbers(x, np.inf, np.nan)
    return _unless_nan(x, (real, imaginary), (infinity, nan))


def _asinh(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = _parts(x)        # asinh z = -i asin(i z)
    height, side = _ellipse(abs_(b), abs_(a), x.aval.dtype == SINGLE)
    real, imaginary = _narrow(x, with_sign(height, _upper(a)),
                              with_sign(atan2_p.bind(abs_(b), side), b))
    nan, = _numbers(x, np.nan)
    return _unless_nan(x, (real, imaginary), (_signed_infinity(as_part(a, real)), nan))


# Where squares of parts in double precision would overflow or vanish.
_LARGE, _SMALL = WIDE.type(2.0 ** 60), WIDE.type(2.0 ** -500)


def _atanh_of_parts(x: Complex, a: Value, b: Value) -> Parts:
    """``log1p(4x / ((1 - x)**2 + y**2)) / 4 + i atan2(2y, (1 - x) (1 + x) - y**2) / 2`` of parts in
    double precision."""
    quarter, quarter_turn = WIDE.type(0.25), WIDE.type(np.pi / 2)
    size, height = abs_(a), abs_(b)
    less = sub(ONE, size)
    ratio = div(mul(WIDE.type(4), size), add(mul(less, less), mul(height, height)))
    real: Value = mul(quarter, log1p_p.bind(ratio))
    imaginary: Value = mul(HALF, atan2_p.bind(
        mul(TWO, b), sub(mul(less, add(ONE, size)), mul(height, height))))
    if x.aval.dtype != SINGLE:
        largest = maximum(size, height)
        far, close = ge_p.bind(largest, _LARGE), lt_p.bind(maximum(abs_(less), height), _SMALL)
        divisor = chosen(far, ONE, largest)
        c, d = div(size, divisor), div(height, divisor)
        there = div(div(c, add(mul(c, c), mul(d, d))), divisor)
        real = chosen(far, real, there)
        imaginary = chosen(far, imaginary, with_sign(quarter_turn, b))
        # There x is 1.
        real = chosen(close, real, mul(HALF, sub(WIDE.type(math.log(2)), log_p.bind(height))))
    endless = either(is_infinite(a), is_infinite(b))
    odd = not_p.bind(both(is_finite(a), is_finite(b)))
    zero = chosen(ge_p.bind(a, ZERO), WIDE.type(-0.0), ZERO)
    parts = _where(x, odd, (with_sign(real, a), imaginary), (
        chosen(endless, WIDE.type(np.nan), zero),
        chosen(ge_p.bind(b, ZERO), neg(quarter_turn), quarter_turn)))
    real, imaginary = _narrow(x, *parts)
    return real, imaginary


def _atanh(eqn: JaxprEqn, x: Complex) -> Parts:
    return _atanh_of_parts(x, *_parts(x))


def _atan(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = _parts(x)
    real, imaginary = _atanh_of_parts(x, neg(b), a)     # atan z = -i atanh(i z)
    return imaginary, neg(real)


# --- exponentials, logarithms and powers ----------------------------------------------------------

def _exp2(eqn: JaxprEqn, x: Complex) -> Parts:
    return exponential(product_of(
        x.parts, (number_like(math.log(2), x.parts[0]), number_like(0, x.parts[0]))))


def _expm1(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = _parts(x)
    sine = sin_p.bind(mul(HALF, b))
    real = sub(mul(expm1_p.bind(a), cos_p.bind(b)), mul(TWO, mul(sine, sine)))
    parts = _narrow(x, _upper(real), mul(exp_p.bind(a), sin_p.bind(b)))
    odd = either(not_p.bind(both(is_finite(a), is_finite(b))), gt_p.bind(a, WIDE.type(80)))
    whole, imaginary = exponential(x.parts)
    return _where(x, odd, (parts[0], parts[1]), (sub(whole, *_numbers(x, 1)), imaginary))


def _log2(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = logarithm(x)
    base, = _numbers(x, math.log(2))
    return div(a, base), div(b, base)


def _log1p(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = _parts(x)
    change: Value
    if x.aval.dtype == SINGLE:
        change = add(mul(a, add(TWO, a)), mul(b, b))
    else:
        change = sum_of_squares(mul(TWO, a), a, b)
    far = not_p.bind(lt_p.bind(abs_(change), HALF))
    distance = add(ONE, a)
    size = chosen(far, mul(HALF, log1p_p.bind(chosen(far, change, ZERO))), log_p.bind(
        _whole_size(distance, b, x.aval.dtype == SINGLE)))
    unknown = either(is_nan(a), is_nan(b))
    nan = WIDE.type(np.nan)
    real, imaginary = _narrow(x, *_where(
        x, unknown, (size, atan2_p.bind(b, distance)), (nan, nan)))
    return real, imaginary


def _whole_size(a: Value, b: Value, single: bool) -> Value:
    """One infinite part makes it infinite, also beside a NaN."""
    return chosen(either(is_infinite(a), is_infinite(b)), _size(a, b, single), INFINITY)


def _logistic(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = x.parts
    real, imaginary = exponential((neg(a), neg(b)))
    one, zero = _numbers(x, 1, 0)
    return quotient((one, zero), (add(one, real), _upper(imaginary)))


def _rsqrt(eqn: JaxprEqn, x: Complex) -> Parts:
    a, b = (of_shape(part, x.aval.shape) for part in x.parts)
    one, zero = _numbers(x, 1, 0)
    parts = quotient((one, zero), root(x, cut_above=False))
    return _where(x, either(is_infinite(a), is_infinite(b)), parts,
                  (with_sign(of_shape(zero, x.aval.shape), a),
                   neg(with_sign(of_shape(zero, x.aval.shape), b))))


def _power(eqn: JaxprEqn, x: Complex, y: Operand) -> Parts:
    """By absolute value and angle."""
    shape, single = eqn.outvars[0].aval.shape, x.aval.dtype == SINGLE
    a, b = (of_shape(part, shape) for part in _parts(x))
    if isinstance(y, Complex):
        c, d = (of_shape(part, shape) for part in _parts(y))
    else:
        c = of_shape(convert_element_type_p.bind(y, new_dtype=WIDE, weak_type=False), shape)
        d = of_shape(ZERO, shape)
    norm, angle = _whole_size(a, b, single), atan2_p.bind(b, a)
    power: Value = pow_p.bind(norm, c)
    size: Value = mul(power, exp_p.bind(neg(mul(d, angle))))
    turn = add(mul(c, angle), mul(d, log_p.bind(norm)))
    size, cosine, sine, power = _narrow(x, size, cos_p.bind(turn), sin_p.bind(turn), power)
    zero, one = _numbers(x, 0, 1)
    is_real, none = is_number(d, 0), is_number(c, 0)
    nothing = both(is_number(norm, 0), both(gt_p.bind(c, ZERO), is_real))
    endless = both(both(eq_p.bind(a, INFINITY), is_number(b, 0)), is_real)
    unit = either(both(none, is_real), both(is_number(a, 1), is_number(b, 0)))
    real = chosen(nothing, mul(size, cosine), zero)
    imaginary = chosen(nothing, mul(size, sine), zero)
    # Infinity's logarithm is not multiplied by zero.
    real, imaginary = chosen(endless, real, power), chosen(endless, imaginary, zero)
    return chosen(unit, real, one), chosen(unit, imaginary, zero)


RULES: dict[Primitive, Callable[..., Any]] = {
    acos_p: _acos,
    acosh_p: _acosh,
    asin_p: _asin,
    asinh_p: _asinh,
    atan_p: _atan,
    atanh_p: _atanh,
    exp2_p: _exp2,
    expm1_p: _expm1,
    log1p_p: _log1p,
    log2_p: _log2,
    logistic_p: _logistic,
    pow_p: _power,
    rsqrt_p: _rsqrt,
}
