"""Samplers without loops: ``method="approximate"`` of gamma, Poisson and related variates.

Gamma variates come from the quantiles of chi-square by Goldstein's series (Communications of the
ACM 16, 1973, algorithm 451), lifted by Stuart's product of uniform powers (Biometrika 49, 1962) to
a shape parameter where the series is accurate. Poisson counts invert their distribution function:
term by term where the mean is small, and by Peizer and Pratt's normal approximation (Journal of
the American Statistical Association 63, 1968) elsewhere. Each step is rounded as in JAX.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._primitives.convert import convert_element_type
from maxjax.random._arguments import unstack
from maxjax.random._inversion import _exponential
from maxjax.random._keys import jitted, split_typed
from maxjax.random._normal import _normal

METHODS = ("exact", "approximate")
# The quantile of chi-square with n degrees of freedom, as a polynomial in a normal variate over
# sqrt(n): for each power the coefficients of 1, 1/n and 1/n**2. The first is 1, which is the limit
# for large n, where the series was published with 1.0000886.
_QUANTILE = (
    (1.0, -0.2237368, -0.01513904), (0.4713941, 0.02607083, -0.008986007),
    (0.0001348028, 0.01128186, 0.02277679), (-0.008553069, -0.01153761, -0.01323293),
    (0.00312558, 0.005169654, -0.006950356), (-0.0008426812, 0.00253001, 0.001060438),
    (0.00009780499, -0.001450117, 0.001565326))
_LIFTS = 4              # by so much the shape parameter is larger where the series is used
_SMALL_MEAN = 7.0       # below, a Poisson distribution has few terms
_TERMS = 20
_CORRECTION = 0.02      # Peizer and Pratt's correction for continuity


def check_method(name: str, method: object) -> bool:
    """Whether a sampler is to be approximate.

    Raises:
      ValueError: there is no such method.
    """
    if method not in METHODS:
        raise ValueError(f"method argument to `{name}` must be one of {{'exact', 'approximate'}}, "
                         f"got {method!r}")
    return method == "approximate"


# --- gamma ----------------------------------------------------------------------------------------

def _log_gamma_of_large(key: Any, a: Any) -> Any:
    freedom = 2 * a
    variate = _normal(key, np.shape(a), a.dtype)
    inverse = 1 / freedom
    scaled = variate * lax.rsqrt(freedom)
    root = lax.polynomial(scaled, [lax.polynomial(inverse, row) for row in _QUANTILE])
    root = jnp.maximum(root, dtypes.finfo(a.dtype).tiny)
    return jnp.log(a) + 3 * jnp.log(root)


@jitted("shape", "dtype", "log_space")
def gamma(key: Any, a: Any, shape: tuple[int, ...], dtype: Any, log_space: bool) -> Any:
    """Gamma variates, or their logarithms, to about 0.05% in the quantiles."""
    wide = np.dtype(np.float32) if dtypes.finfo(dtype).bits < 32 else dtype
    a = jnp.broadcast_to(convert_element_type(jnp.asarray(a), wide), shape)
    first, second = unstack(split_typed(key))
    base = _log_gamma_of_large(first, a + _LIFTS)
    steps = jnp.arange(_LIFTS, dtype=wide).reshape((_LIFTS,) + (1,) * len(shape))
    logs = -_exponential(second, (_LIFTS, *shape), wide)
    sample = base + jnp.sum(logs / (a[None, ...] + steps), axis=0)
    return convert_element_type(sample if log_space else lax.exp(sample), dtype)


# --- Poisson --------------------------------------------------------------------------------------

@jitted("shape", "dtype")
def poisson(key: Any, mean: Any, shape: tuple[int, ...], dtype: Any) -> Any:
    """Poisson counts; the total variation from the distribution is below 1e-4."""
    mean = jnp.asarray(mean)
    is_wide = (dtypes.is_floating(mean.dtype) and mean.dtype.itemsize > 4
               or np.dtype(dtype).itemsize > 4)
    wide = np.dtype(np.float64 if is_wide else np.float32)
    mean = convert_element_type(mean, wide)
    mean = lax.expand_dims(mean, tuple(range(len(shape) - mean.ndim)))
    variate = _normal(key, shape, wide)
    count = jnp.where(mean < _SMALL_MEAN, _by_terms(_normal_distribution(variate), mean),
                      _by_normal(variate, mean))
    return convert_element_type(count, dtype)


def _normal_distribution(x: Any) -> Any:
    """The probability of at most ``x``; by ``erfc`` where it would cancel."""
    half = np.array(np.sqrt(0.5), x.dtype)[()]
    scaled = x * half
    size = jnp.abs(scaled)
    tail = lax.erfc(size)
    return np.array(0.5, x.dtype)[()] * jnp.where(
        size < half, 1 + lax.erf(scaled), jnp.where(scaled > 0, 2 - tail, tail))


def _by_terms(uniform: Any, mean: Any) -> Any:
    """How many partial sums of the probabilities lie below ``uniform``."""
    term = lax.exp(-mean)
    total = term
    count = convert_element_type(total < uniform, uniform.dtype)
    for number in range(1, _TERMS - 1):
        term = term * (mean / number)
        total = total + term
        count = count + convert_element_type(total < uniform, uniform.dtype)
    return count


def _by_normal(variate: Any, mean: Any) -> Any:
    """The least count whose normal deviate is not below ``variate``, which is one of three."""
    middle = jnp.ceil(_cornish_fisher(variate, mean) + 0.6)

    def reaches(count: Any) -> Any:
        deviate = jnp.where(count < 0, -np.inf, _deviate(jnp.maximum(count, 0.0), mean))
        return convert_element_type(deviate >= variate, middle.dtype)

    count = middle + 1 - reaches(middle) - reaches(middle - 1)
    return jnp.maximum(count, 0.0)


def _cornish_fisher(variate: Any, mean: Any) -> Any:
    """Where the deviate is about ``variate``."""
    root = jnp.sqrt(mean)
    return (mean + root * variate - 2 / 3 + jnp.square(variate) / 6
            + variate * (1 - jnp.square(variate)) / (72 * root))


def _deviate(count: Any, mean: Any) -> Any:
    """The normal deviate with the probability of at most ``count``."""
    skew = _skew((count + 0.5) / mean)
    return (count - mean + 2 / 3 + _CORRECTION / (count + 1)) * jnp.sqrt((1 + skew) / mean)


def _skew(ratio: Any) -> Any:
    """``(1 - y**2 + 2 y log(y)) / (1 - y)**2``, by its series near 1."""
    distance = ratio - 1
    near = jnp.abs(distance) < 0.25
    series = jnp.zeros_like(distance)
    for power in range(9, 0, -1):
        series = distance * (2 * (-1) ** power / ((power + 1) * (power + 2)) + series)
    y, d = jnp.where(near, 2.0, ratio), jnp.where(near, 1.0, distance)
    return jnp.where(near, series,
                     (1 - jnp.square(y) + 2 * y * jnp.log(y)) / jnp.square(d))
