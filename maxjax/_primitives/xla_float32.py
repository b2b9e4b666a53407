"""Functions of float32 as XLA's CPU compiler evaluates them, so that random numbers are JAX's.

XLA's results are mostly correctly rounded, and otherwise off by one unit, which a sampler then
magnifies. The polynomials are those of S. L. Moshier's Cephes library and, for ``erf_inv``, of
M. Giles, "Approximating the erfinv function". Each step is one fused multiply-add.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from maxjax._primitives import elementary

_CHUNK = 8192


def _rows(*polynomials: tuple[float, ...]) -> np.ndarray:
    """Coefficients for ``horner``: one polynomial a row of its result, the leading one first."""
    return np.array(polynomials, np.float32).astype(np.float64).T[..., None]


# log(1 + x) - x + x^2 / 2 = x^3 (a(x) x^6 + b(x) x^3 + c(x))
_LOG = _rows((7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1),
             (-1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1),
             (2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1))
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
# The same as x^3 a(x) / b(x).
_LOG1P = _rows(
    (4.5270000862445199635215e-5, 4.9854102823193375972212e-1, 6.5787325942061044846969,
     29.911919328553073277375, 60.949667980987787057556, 57.112963590585538103336,
     20.039553499201281259648),
    (1.0, 15.062909083469192043167, 83.047565967967209469434, 221.76239823732856465394,
     309.09872225312059774938, 216.42788614595947685003, 60.118660497603843919306))
_ERF_INV_CENTRE = _rows((
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941))
_ERF_INV_TAIL = _rows((
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682))


def fused(x: np.ndarray | np.floating, y: np.ndarray | np.floating, z: np.ndarray | np.generic
          ) -> Any:
    """``x * y + z`` of float32, rounded once: float64 holds the product exactly."""
    return (np.multiply(x, y, dtype=np.float64) + z).astype(np.float32)


def horner(coefficients: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The polynomials at 1-D ``x``, one a row."""
    wide = x.astype(np.float64)
    value = coefficients[0] + np.zeros_like(wide)
    out = np.empty(value.shape, np.float32)
    for coefficient in coefficients[1:]:
        np.multiply(value, wide, out=value)
        np.add(value, coefficient, out=value)
        out[...] = value
        value[...] = out
    return out


def _positive_log(x: np.ndarray) -> np.ndarray:
    """The natural logarithms of positive finite numbers, a 1-D array of float32."""
    mantissa, exponent = np.frexp(x)
    low = mantissa < np.float32(math.sqrt(0.5))
    m = np.where(low, mantissa + mantissa, mantissa) - np.float32(1)
    e = (exponent - low).astype(np.float32)
    square = m * m
    cube = square * m
    a, b, c = horner(_LOG, m)
    series = fused(fused(a, cube, b), cube, c)
    small = fused(series, cube, e * np.float32(_LN2_LOW))
    return fused(e, np.float32(_LN2_HIGH), fused(square, np.float32(-0.5), m) + small)


def log(x: np.ndarray) -> np.ndarray:
    """XLA's ``log`` for float32."""
    x = np.asarray(x, np.float32)
    flat = x.reshape(-1)
    inside = (flat > 0) & (flat < np.inf)
    if inside.all():
        return _positive_log(flat).reshape(x.shape)
    with np.errstate(all="ignore"):
        out = elementary.log(flat)
    out[inside] = _positive_log(flat[inside])
    return out.reshape(x.shape)


def log1p(x: np.ndarray) -> np.ndarray:
    """XLA's ``log1p`` for float32."""
    x = np.asarray(x, np.float32)
    out = np.empty_like(x)
    small = np.abs(x) < np.float32(math.sqrt(2) - 1)
    near = x[small]     # 1-D
    square = near * near
    above, below = horner(_LOG1P, near)
    out[small] = near + fused(np.float32(-0.5), square, near * square * (above / below))
    out[~small] = log(x[~small] + np.float32(1))
    return out


def erf_inv(x: np.ndarray) -> np.ndarray:
    """XLA's ``erf_inv`` for float32."""
    x = np.asarray(x, np.float32)
    flat = np.ascontiguousarray(x).reshape(-1)
    out = np.empty_like(flat)
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            out[part] = _erf_inv_part(flat[part])
    return out.reshape(x.shape)


def _erf_inv_part(x: np.ndarray) -> np.ndarray:
    w = -log1p(-(x * x))
    out = horner(_ERF_INV_CENTRE, w - np.float32(2.5))[0]
    tail = w >= np.float32(5)
    if tail.any():
        out[tail] = horner(_ERF_INV_TAIL, np.sqrt(w[tail]) - np.float32(3))[0]
    out *= x
    edge = np.abs(x) == 1
    if edge.any():
        out[edge] = x[edge] * np.float32(np.inf)
    out[np.isnan(x)] = np.nan
    return out
