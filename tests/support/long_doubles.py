"""Functions of long doubles that NumPy lacks: the reference for kernels of float64."""

from __future__ import annotations

import math

import numpy as np
import scipy.special

PI = np.longdouble("3.14159265358979323846")

erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])


def erf_inv(x: np.ndarray) -> np.ndarray:
    return scipy.special.erfinv(x.astype(np.float64))


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def rsqrt(x: np.ndarray) -> np.ndarray:
    return 1 / np.sqrt(x)


def erfcx(x: np.ndarray) -> np.ndarray:
    """By its power series, and from 1 by its continued fraction; 2 e^(x^2) minus that below 0."""
    a = np.abs(x)
    near, far = np.minimum(a, 1), np.maximum(a, 1)
    # The terms of even and of odd powers: x^n / gamma(n/2 + 1).
    even, odd = np.ones_like(x), 2 * near / np.sqrt(PI)
    series = even - odd
    for n in range(2, 60, 2):
        even, odd = even * near**2 / (n // 2), odd * near**2 / np.longdouble(n + 1) * 2
        series = series + even - odd
    fraction = far
    for n in range(600, 0, -1):
        fraction = far + np.longdouble(n) / 2 / fraction
    fraction = 1 / (np.sqrt(PI) * fraction)
    value = np.where(a < 1, series, fraction)
    high = np.minimum(a, 200).astype(np.float32).astype(np.longdouble)
    low = np.minimum(a, 200) - high
    return np.where(x < 0, 2 * np.exp(high**2) * np.exp(low * (2 * high + low)) - value, value)


def log_ndtr(x: np.ndarray) -> np.ndarray:
    size = np.abs(x)
    scaled = erfcx(size / np.sqrt(np.longdouble(2))) / 2
    return np.where(x < 0, np.log(scaled) - size**2 / 2, np.log1p(-scaled * np.exp(-size**2 / 2)))


def ndtri(p: np.ndarray) -> np.ndarray:
    """SciPy's, and a step of Newton: near 1/2 by the error function, beyond by its logarithm."""
    q = np.minimum(p, 1 - p)
    size = -scipy.special.ndtri(q.astype(np.float64)).astype(np.longdouble)
    half = np.sqrt(np.longdouble(0.5))
    near = np.minimum(size, 1)
    term = distance = near * half
    for n in range(1, 40):
        term = -term * near**2 / (2 * n)
        distance = distance + term / (2 * n + 1)
    slope = half * np.exp(-near**2 / 2)
    inner = near - (distance - np.sqrt(PI) / 2 * (1 - 2 * q)) / slope
    outer = size + (log_ndtr(-size) - np.log(q)) * np.sqrt(PI / 2) * erfcx(size * half)
    value = np.where(size < 0.7, inner, np.where(np.isinf(size), size, outer))
    return np.where(p < 0.5, -value, value)


def digamma(x: np.ndarray) -> np.ndarray:
    # SciPy's loses digits at negative arguments; so reflect them here.
    mirrored = np.where(x < 0, 1 - x, x)
    value = scipy.special.psi(mirrored.astype(np.float64)).astype(np.longdouble)
    angle = PI * (x - np.rint(x))
    return np.where(x < 0, value - angle / np.tan(angle) / (x - np.rint(x)), value)


def lgamma(x: np.ndarray) -> np.ndarray:
    finite = np.isfinite(x) & ~((x <= 0) & (x == np.floor(x))) & (np.abs(x) < 1e305)
    values = [math.lgamma(value) if known else math.inf
              for value, known in zip(x.astype(np.float64), finite, strict=True)]
    return np.where(x != x, x, np.array(values))


def bessel_i0e(x: np.ndarray) -> np.ndarray:
    return _bessel(0, x)


def bessel_i1e(x: np.ndarray) -> np.ndarray:
    return np.copysign(_bessel(1, x), x)


def _bessel(order: int, x: np.ndarray) -> np.ndarray:
    """e^-|x| I(|x|), by its power series, and from 40 by its asymptotic one."""
    a = np.abs(x)
    near, far = np.minimum(a, 40), np.maximum(a, 40)
    term = (near / 2) ** order
    series = term
    for k in range(1, 120):
        term = term * (near / 2) ** 2 / (k * (k + order))
        series = series + term
    term = asymptotic = 1 / np.sqrt(2 * PI * far)
    for k in range(1, 30):
        term = term * ((2 * k - 1) ** 2 - 4 * order**2) / (8 * k * far)
        asymptotic = asymptotic + term
    return np.where(a < 40, series * np.exp(-near), asymptotic)
