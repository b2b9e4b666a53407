"""NumPy rules for complex numbers: NumPy's own functions, and XLA's values where the two differ.

They differ at infinities, at NaN, and at zeros of either sign on a branch cut. A rule takes a
result that is right elsewhere and replaces the elements there; real arguments pass through.

NumPy's functions of complex numbers call the C library for each element on every processor; those
of real numbers (``elementary``) compute many at a time: by parts is several times faster. In single
precision, products of parts are exact in double.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax._base import native
from maxjax._primitives import elementary
from maxjax._primitives.widths import native_result

Rule = Callable[..., Any]


def _is_complex(x: np.ndarray) -> bool:
    return x.dtype.kind == "c"


def join(real: np.ndarray, imaginary: np.ndarray, dtype: np.dtype | type | None = None
         ) -> np.ndarray:
    """Part by part: a sum with 1j would turn infinite parts into NaN."""
    shape = np.broadcast_shapes(np.shape(real), np.shape(imaginary))
    out = np.empty(shape, dtype or np.result_type(real, np.complex64))
    out.real, out.imag = real, imaginary
    return out


def mended(function: Rule, special: Rule, where: Rule | None = None) -> Rule:
    """``function``; ``special`` (of real and imaginary parts) where an element is not finite or
    ``where`` holds."""
    def evaluate(x: np.ndarray) -> Any:
        result = function(x)
        if not _is_complex(x):
            return result
        odd = ~np.isfinite(x)
        if where is not None:
            odd = odd | where(x)
        if not np.any(odd):
            return result
        result = np.array(result)
        chosen = np.asarray(x)[odd]
        result[odd] = special(chosen.real, chosen.imag)
        return result

    return evaluate


def by_parts(function: Rule, rule: Rule) -> Rule:
    """``function`` of real numbers, ``rule`` of the parts of complex ones."""
    return lambda x: rule(x.real, x.imag) if _is_complex(x) else function(x)


def in_double(function: Rule, rule: Rule) -> Rule:
    """``function``, but for single precision ``rule`` of the parts in double precision."""
    def evaluate(x: np.ndarray) -> Any:
        if x.dtype != np.complex64:
            return function(x)
        parts = rule(np.asarray(x.real, np.float64), np.asarray(x.imag, np.float64))
        return join(parts[0], parts[1], np.complex64)

    return evaluate


def native_first(name: str, function: Rule, out_dtype: type = np.complex64) -> Rule:
    """``function``, but for many elements of single precision the native function."""
    def evaluate(x: np.ndarray) -> Any:
        if x.dtype == np.complex64 and x.size >= native.FEWEST:
            results = native_result(name, x, out_dtypes=(out_dtype,))
            if results is not None:
                return results[0]
        return function(x)

    return evaluate


def of_complex(real: Rule, function: Rule) -> Rule:
    """``function`` of complex numbers, ``real`` of others."""
    return lambda x: function(x) if _is_complex(x) else real(x)


def _unknown(x: np.ndarray, y: np.ndarray) -> Any:
    return np.isnan(x) | np.isnan(y)


def _nan_like(x: np.ndarray) -> Any:
    return join(np.full_like(x, np.nan), np.full_like(x, np.nan))


# --- exponentials, sines --------------------------------------------------------------------------

def _exp_parts(x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
    # The whole may overflow where the product does not.
    root = elementary.exp(x * x.dtype.type(0.5))
    return root * elementary.cos(y) * root, np.where(y == 0, y, root * elementary.sin(y) * root)


def _exp(x: np.ndarray, y: np.ndarray) -> Any:
    return join(*_exp_parts(x, y))


def _expm1(x: np.ndarray, y: np.ndarray) -> Any:
    real, imaginary = _exp_parts(x, y)
    return join(real - 1, imaginary)


def _sin(x: np.ndarray, y: np.ndarray) -> Any:
    return join(np.where(x == 0, x, elementary.sin(x) * elementary.cosh(y)),
                elementary.cos(x) * elementary.sinh(y))


def _cos(x: np.ndarray, y: np.ndarray) -> Any:
    return join(elementary.cos(x) * elementary.cosh(y),
                np.where(x == 0, x, -elementary.sin(x) * elementary.sinh(y)))


def _sinh(x: np.ndarray, y: np.ndarray) -> Any:
    return join(elementary.sinh(x) * elementary.cos(y),
                np.where(y == 0, y, elementary.cosh(x) * elementary.sin(y)))


def _cosh(x: np.ndarray, y: np.ndarray) -> Any:
    return join(elementary.cosh(x) * elementary.cos(y),
                np.where(y == 0, y, elementary.sinh(x) * elementary.sin(y)))


def _tanh(x: np.ndarray, y: np.ndarray) -> Any:
    far = np.isinf(x)
    known = far | (y == 0)
    return join(np.where(known, elementary.tanh(x), np.nan),
                np.where(far, 0, np.where(known, y, np.nan)))


def _tan(x: np.ndarray, y: np.ndarray) -> Any:
    turned = _tanh(-y, x)      # tan z = -i tanh(i z)
    return join(turned.imag, -turned.real)


def _regular_tanh(x: np.ndarray, y: np.ndarray) -> Any:
    real, turn = elementary.tanh(x), elementary.tan(y)
    squared = turn * turn
    divisor = 1 + real * real * squared
    return join(real * (1 + squared) / divisor, turn / (np.square(elementary.cosh(x)) * divisor))


def _regular_tan(x: np.ndarray, y: np.ndarray) -> Any:
    turned = _regular_tanh(-y, x)
    return join(turned.imag, -turned.real)


def _regular_expm1(x: np.ndarray) -> Any:
    result = np.array(np.expm1(x))
    result.real += 0        # 0 of both zeros, as C defines it
    return result


exp = native_first("exp", by_parts(elementary.exp, _exp))
expm1 = of_complex(elementary.expm1, mended(_regular_expm1, _expm1, lambda x: x.real > 80))
sin = by_parts(elementary.sin, _sin)
cos = by_parts(elementary.cos, _cos)
sinh = by_parts(elementary.sinh, _sinh)
cosh = by_parts(elementary.cosh, _cosh)
tanh = mended(by_parts(elementary.tanh, _regular_tanh), _tanh)
tan = mended(by_parts(elementary.tan, _regular_tan), _tan)


def exp2(x: np.ndarray) -> Any:
    if not _is_complex(x):
        return elementary.exp2(x)
    return exp(x * x.dtype.type(math.log(2)))


# --- logarithms and roots -------------------------------------------------------------------------

def unless_nan(function: Rule) -> Rule:
    """NaN where either part is."""
    def special(x: np.ndarray, y: np.ndarray) -> Any:
        return np.where(_unknown(x, y), _nan_like(x), function(join(x, y)))

    return special


def _log_in_double(x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
    return (0.5 * elementary.for_float32.log(x * x + y * y),
            elementary.for_float32.atan2(y, x))


def _sqrt_in_double(x: np.ndarray, y: np.ndarray) -> tuple[Any, Any]:
    major = np.sqrt(0.5 * (np.sqrt(x * x + y * y) + np.abs(x)))
    minor = 0.5 * y / np.where(major == 0, 1, major)
    left = x < 0
    return np.where(left, np.abs(minor), major), np.where(left, np.copysign(major, y), minor)


_plain_sqrt = in_double(np.sqrt, _sqrt_in_double)
log = of_complex(
    elementary.log, mended(in_double(np.log, _log_in_double), unless_nan(np.log)))
absolute = native_first("abs", mended(np.abs, np.hypot), np.float32)


def log2(x: np.ndarray) -> Any:
    if not _is_complex(x):
        return elementary.log2(x)
    value = log(x)
    return join(value.real / math.log(2), value.imag / math.log(2)).astype(x.dtype)


def _on_cut(x: np.ndarray) -> Any:
    """On the axis of the real numbers from below."""
    return (x.imag == 0) & np.signbit(x.imag)


def _from_above(function: Rule) -> Rule:
    return lambda x, y: function(x, np.where(y == 0, 0, y))


sqrt = mended(_plain_sqrt, _from_above(unless_nan(np.sqrt)), _on_cut)


def log1p(x: np.ndarray) -> Any:
    """By parts: NumPy's own loses digits of the real part near 0."""
    if not _is_complex(x):
        return elementary.log1p(x)
    # Squares of single precision are exact in double.
    real, imaginary = (np.asarray(part, np.float64) for part in (x.real, x.imag))
    functions: Any = elementary.for_float32 if x.dtype == np.complex64 else elementary
    change = real * (2 + real) + imaginary * imaginary
    if x.dtype != np.complex64:     # near -1 it may be a small difference
        with np.errstate(all="ignore"):
            longer = real.astype(np.longdouble), imaginary.astype(np.longdouble)
            change = np.asarray(longer[0] * (2 + longer[0]) + longer[1] ** 2).astype(np.float64)
    far = ~(np.abs(change) < 0.5)
    size = np.asarray(0.5 * functions.log1p(np.where(far, 0, change)))
    size[far] = functions.log(np.hypot(1 + real[far], imaginary[far]))
    angle = functions.atan2(imaginary, 1 + real)
    unknown = np.isnan(x)
    if np.any(unknown):
        size, angle = (np.where(unknown, np.nan, part) for part in (size, angle))
    return join(size, angle, x.dtype)


def _asin(x: np.ndarray, y: np.ndarray) -> Any:
    return _inverse(np.arcsin, x, np.where(y == 0, 0, y),
                    lambda: (np.nan, np.where(y < 0, -np.inf, np.inf)))


def _acos(x: np.ndarray, y: np.ndarray) -> Any:
    return _inverse(np.arccos, x, np.where(y == 0, 0, y),
                    lambda: (np.nan, np.where(y < 0, np.inf, -np.inf)))


def _acosh(x: np.ndarray, y: np.ndarray) -> Any:
    return _inverse(np.arccosh, x, np.where(y == 0, 0, y), lambda: (np.inf, np.nan))


def _asinh(x: np.ndarray, y: np.ndarray) -> Any:
    return _inverse(np.arcsinh, np.where(x == 0, 0, x), y,
                    lambda: (np.where(x < 0, -np.inf, np.inf), np.nan))


def _inverse(function: Rule, x: np.ndarray, y: np.ndarray, infinite: Callable[[], tuple[Any, Any]]
             ) -> Any:
    """``function``; where a part is NaN, both are, except ``infinite`` beside an infinity."""
    result = function(join(x, y))
    real, imaginary = infinite()
    some = _unknown(x, y)
    both = some & (np.isinf(x) | np.isinf(y))
    return join(np.where(both, real, np.where(some, np.nan, result.real)),
                np.where(both, imaginary, np.where(some, np.nan, result.imag))
                ).astype(result.dtype)


def _atan(x: np.ndarray, y: np.ndarray) -> Any:
    turned = _atanh(-y, x)      # atan z = -i atanh(i z)
    return join(turned.imag, -turned.real)


def _atanh(x: np.ndarray, y: np.ndarray) -> Any:
    kind = x.dtype.type
    far = np.isinf(x) | np.isinf(y)
    return join(np.where(far, np.where(x >= 0, kind(0), kind(-0.0)), kind(np.nan)),
                np.where(y >= 0, kind(np.pi / 2), kind(-np.pi / 2)))


def _below(x: np.ndarray) -> Any:
    """On the part of the imaginary axis that belongs to the left half plane."""
    return (x.real == 0) & np.signbit(x.real)


asin = of_complex(elementary.asin, mended(np.arcsin, _asin, _on_cut))
acos = of_complex(elementary.acos, mended(np.arccos, _acos, _on_cut))
acosh = of_complex(elementary.acosh, mended(np.arccosh, _acosh, _on_cut))
asinh = of_complex(elementary.asinh, mended(np.arcsinh, _asinh, _below))
atan = of_complex(elementary.atan, mended(np.arctan, _atan))
atanh = of_complex(elementary.atanh, mended(np.arctanh, _atanh))


_root = mended(_plain_sqrt, unless_nan(np.sqrt))


def rsqrt(x: np.ndarray) -> Any:
    result = divide(np.ones((), x.dtype), _root(x))
    if not _is_complex(x) or not np.any(far := np.isinf(x)):
        return result
    zero = x.real.dtype.type(0)
    return np.where(far, join(np.copysign(zero, x.real), -np.copysign(zero, x.imag)), result)


def logistic(x: np.ndarray) -> Any:
    one = np.ones((), x.dtype)
    return divide(one, one + exp(-x))


def sign(x: np.ndarray) -> Any:
    """``x / |x|``, part by part, and zero at zero."""
    size = absolute(x)
    size = np.where(size == 0, size.dtype.type(1), size)
    return join(x.real / size, x.imag / size)


# --- arithmetic -----------------------------------------------------------------------------------

def _square(x: np.ndarray, y: np.ndarray) -> Any:
    return join((x - y) * (x + y), 2 * (x * y))


def square(x: np.ndarray) -> Any:
    result = np.square(x)
    if not _is_complex(x) or np.all(known := np.isfinite(result)):
        return result
    return np.where(known, result, _square(x.real, x.imag))


def divide(x: np.ndarray, y: np.ndarray) -> Any:
    """NumPy's quotient, and that of the C standard's annex G where it has NaN and an infinity or a
    zero divides."""
    if not _is_complex(x):
        return np.divide(x, y)
    result = np.divide(x, y)
    odd = ~np.isfinite(result)
    if not np.any(odd):
        return result
    result = np.array(result)
    x, y, odd = np.broadcast_arrays(x, y, odd)
    x, y = x[odd], y[odd]
    result[odd] = _annex_g(x, y, result[odd])
    return result


def _annex_g(x: np.ndarray, y: np.ndarray, result: np.ndarray) -> Any:
    a, b, c, d = x.real, x.imag, y.real, y.imag
    infinity = a.dtype.type(np.inf)
    lost = np.isnan(result.real) & np.isnan(result.imag)

    def boxed(part: np.ndarray) -> Any:
        return np.copysign(np.isinf(part).astype(part.dtype), part)

    def product(factor: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray
                ) -> Any:
        return join(factor * (a * c + b * d), factor * (b * c - a * d))

    by_zero = (y == 0) & ~(np.isnan(a) & np.isnan(b))
    upper = lost & np.isinf(x) & np.isfinite(y) & ~by_zero
    lower = lost & np.isinf(y) & np.isfinite(x)
    result = np.where(by_zero, join(np.copysign(infinity, c) * a, np.copysign(infinity, c) * b),
                      result)
    result = np.where(upper, product(infinity, boxed(a), boxed(b), c, d), result)
    return np.where(lower, product(a.dtype.type(0), a, b, boxed(c), boxed(d)), result)


def reciprocal(x: np.ndarray) -> Any:
    return divide(np.ones((), x.dtype), x)


def _polar_power(a: np.ndarray, b: np.ndarray, c: np.ndarray, d: np.ndarray) -> Any:
    """``(a + bi)**(c + di)`` by absolute value and angle."""
    norm, angle = np.hypot(a, b), elementary.atan2(b, a)
    size = elementary.power(norm, c) * elementary.exp(-d * angle)
    turn = c * angle + d * elementary.log(norm)
    result = join(size * elementary.cos(turn), size * elementary.sin(turn))
    result = np.where((norm == 0) & (c > 0) & (d == 0), 0, result)
    # Infinity's logarithm is not multiplied by zero.
    result = np.where((a == np.inf) & (b == 0) & (d == 0), elementary.power(a, c), result)
    return np.where((c == 0) & (d == 0) | (a == 1) & (b == 0), 1, result)


def power(x: np.ndarray, y: np.ndarray) -> Any:
    if not _is_complex(x):
        if np.ndim(y) == 0 and y == 0.5:
            # NumPy takes the square root, which differs at -0.0 and -inf.
            return np.sqrt(np.where(x == -np.inf, np.abs(x), x)) + x.dtype.type(0)
        return elementary.power(x, y)
    result = np.power(x, y)
    odd = ~np.isfinite(result) | ~np.isfinite(x) | ~np.isfinite(y) | (x == 0)
    if not np.any(odd):
        return result
    result = np.array(result)
    x, y, odd = np.broadcast_arrays(x, y, odd)
    x, y = x[odd], y[odd]
    result[odd] = _polar_power(x.real, x.imag, y.real, y.imag)
    return result


def _extremum(function: Rule, before: Rule) -> Rule:
    """Lexicographic: by the real parts, then by the imaginary ones."""
    def evaluate(x: np.ndarray, y: np.ndarray) -> Any:
        if not _is_complex(x):
            return function(x, y)
        first = before(x.real, y.real) | (x.real == y.real) & before(x.imag, y.imag)
        return np.where(first, x, y)

    return evaluate


maximum = _extremum(np.maximum, np.greater)
minimum = _extremum(np.minimum, np.less)


# By the names of the primitives; each takes real numbers too.
RULES: dict[str, Rule] = {
    "abs": absolute, "acos": acos, "acosh": acosh, "asin": asin, "asinh": asinh, "atan": atan,
    "atanh": atanh, "cos": cos, "cosh": cosh, "div": divide, "exp": exp, "exp2": exp2,
    "expm1": expm1, "log": log, "log1p": log1p, "log2": log2, "logistic": logistic,
    "max": maximum, "min": minimum, "pow": power, "rsqrt": rsqrt, "sign": sign,
    "sin": sin, "sinh": sinh, "sqrt": sqrt, "square": square, "tan": tan, "tanh": tanh,
}
