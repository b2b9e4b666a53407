"""Elementary functions of real numbers whose bits do not depend on the processor.

With AVX-512 NumPy uses other routines than without; their results differ in the last place. So its
routines of float64 serve float32: rounded to float32 they agree, except for one result in some
10**8, and almost always give the number nearest to the exact one. For float64 itself there
are the C library's functions, where NumPy or SciPy call them element by element on every processor,
and formulas of these.

This is the only module that uses NumPy's transcendental functions of real numbers. Operands are
arrays or scalars of float32 or float64; narrower floats are widened before (``widths``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax._base.lazy import scipy_special

Function = Callable[..., Any]

_SINGLE = np.dtype(np.float32)
_DOUBLE = np.dtype(np.float64)
# From here on NumPy converts block by block: no temporary arrays of the whole size.
LARGE = 1 << 16


class Unary:
    """A function of one operand.

    Args:
      ufunc: NumPy's.
      double: what it is for float64.
    """

    __slots__ = ("double", "ufunc")

    def __init__(self, ufunc: Function, double: Function):
        self.ufunc = ufunc
        self.double = double

    def __call__(self, x: np.ndarray) -> Any:
        if x.dtype != _SINGLE:
            return self.double(x)
        if x.size < LARGE:
            return self.ufunc(x, dtype=_DOUBLE).astype(_SINGLE)
        return self.ufunc(x, out=np.empty_like(x), dtype=_DOUBLE, casting="same_kind")

    def for_few(self, x: np.ndarray) -> Any:
        """The function of fewer than ``LARGE`` elements of float32, by way of double precision."""
        wide = x.astype(_DOUBLE)
        self.ufunc(wide, wide)
        return wide.astype(_SINGLE)


def _binary(ufunc: Function, double: Function) -> Function:
    def evaluate(x: np.ndarray, y: np.ndarray) -> Any:
        if x.dtype != _SINGLE:
            return double(x, y)
        if x.size < LARGE and y.size < LARGE:
            return ufunc(x, y, dtype=_DOUBLE).astype(_SINGLE)
        out = np.empty(np.broadcast_shapes(x.shape, y.shape), _SINGLE)
        return ufunc(x, y, out=out, dtype=_DOUBLE, casting="same_kind")

    return evaluate


# --- float64 --------------------------------------------------------------------------------------

def _of_complex(ufunc: Function) -> Function:
    """NumPy's function of complex numbers, at real ones: it calls the C library for each."""
    return lambda x: np.ascontiguousarray(ufunc(x.astype(np.complex128)).real).reshape(x.shape)


def _extended(ufunc: Function) -> Function:
    """Rounded from the format with 64 bits of mantissa, which vector instructions do not have."""
    return lambda x: ufunc(x, dtype=np.longdouble).astype(_DOUBLE)


def _exp(x: np.ndarray) -> Any:
    return scipy_special.inv_boxcox(x, 0.0)     # its limit at power 0: the C library's exp


def _log(x: np.ndarray) -> Any:
    return scipy_special.xlogy(1.0, x)


def _log2(x: np.ndarray) -> Any:
    """The logarithm to base 2 of ``x = 2**e m``, with ``m`` about 1: exact for powers of 2."""
    m, e = np.frexp(x)
    below = m < math.sqrt(0.5)
    m, e = np.where(below, m + m, m), np.where(below, e - 1, e)
    return _log(m) / math.log(2) + e


def _exp2(x: np.ndarray) -> Any:
    return np.float_power(2.0, x)


def _log1p(x: np.ndarray) -> Any:
    """``log(1 + x)``, with what the rounding of the sum lost."""
    above = x + 1.0
    lost = ((above - 1.0) - x) / above
    value = _log(above) - np.where(np.isfinite(lost), lost, 0.0)
    return np.where(x == 0, x, value)       # of either sign


def _atan2(y: np.ndarray, x: np.ndarray) -> Any:
    point = np.empty(np.broadcast_shapes(x.shape, y.shape), np.complex128)
    point.real, point.imag = x, y
    return np.ascontiguousarray(np.log(point).imag).reshape(point.shape)


def _atan(x: np.ndarray) -> Any:
    return _atan2(x, np.ones((), _DOUBLE))


# Beyond, a square adds nothing to 1 or loses 1 itself.
_FAR = 2.0 ** 28


def _asinh(x: np.ndarray) -> Any:
    size = np.abs(x)
    near = np.minimum(size, _FAR)
    square = near * near
    value = _log1p(near + square / (1.0 + np.sqrt(1.0 + square)))
    return np.copysign(np.where(size > _FAR, _log(size) + math.log(2), value), x)


def _acosh(x: np.ndarray) -> Any:
    near = np.clip(x, 0.0, _FAR) - 1.0
    value = _log1p(near + np.sqrt(2.0 * near + near * near))
    return np.where(x > _FAR, _log(x) + math.log(2), value)


def _atanh(x: np.ndarray) -> Any:
    size = np.abs(x)
    double = size + size
    small = double + double * size / (1.0 - size)
    value = 0.5 * _log1p(np.where(size < 0.5, small, double / (1.0 - size)))
    return np.copysign(value, x)


def _cbrt(x: np.ndarray) -> Any:
    return scipy_special.cbrt(x)


# --- both widths ----------------------------------------------------------------------------------
#
# Where NumPy's function is on the right too, it has no other routine of float64 for AVX-512.

exp = Unary(np.exp, _exp)
exp2 = Unary(np.exp2, _exp2)
expm1 = Unary(np.expm1, _of_complex(np.expm1))
log = Unary(np.log, _log)
log2 = Unary(np.log2, _log2)
log1p = Unary(np.log1p, _log1p)
sin = Unary(np.sin, np.sin)
cos = Unary(np.cos, np.cos)
tan = Unary(np.tan, _extended(np.tan))
asin = Unary(np.arcsin, _extended(np.arcsin))
acos = Unary(np.arccos, _extended(np.arccos))
atan = Unary(np.arctan, _atan)
atan2 = _binary(np.arctan2, _atan2)
sinh = Unary(np.sinh, _of_complex(np.sinh))
cosh = Unary(np.cosh, _of_complex(np.cosh))
tanh = Unary(np.tanh, np.tanh)
asinh = Unary(np.arcsinh, _asinh)
acosh = Unary(np.arccosh, _acosh)
atanh = Unary(np.arctanh, _atanh)
cbrt = Unary(np.cbrt, _cbrt)
power = _binary(np.power, np.float_power)


class for_float32:
    """Functions of float64 for results that are rounded to float32."""

    log = np.log
    log1p = np.log1p
    atan2 = np.arctan2
