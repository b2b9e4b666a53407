"""Logarithms, entropies, and functions of probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import lax, nn
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._ir.trace import Array, aval_of
from maxjax._primitives.convert import convert_element_type
from maxjax.numpy._at_once import all_at_once
from maxjax.numpy._promotion import check_arraylike, weak_scalar
from maxjax.scipy.special._common import (
    atanh_rest,
    in_float64,
    operands,
    refuse_complex,
)


@custom_jvp
def xlogy(x: Any, y: Any) -> Array:
    """``x * log(y)``, 0 where ``x`` is 0 unless ``y`` is NaN.

    Args:
      x, y: arrays or numbers of shapes that broadcast; integers become floats.

    Returns:
      An array of a float or complex dtype, of the common shape. Its derivative by ``x`` is
      ``log(y)``.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``special.xlog1py``, ``special.entr``, ``special.kl_div``, ``special.rel_entr``.

    >>> jax.scipy.special.xlogy(0.0, 0.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x, y = operands("xlogy", x, y)
    zero = (x == 0) & ~jnp.isnan(y)
    return jnp.where(zero, jnp.zeros_like(x), x * jnp.log(jnp.where(zero, 1., y)))


xlogy.defjvps(lambda t, ans, x, y: t * jnp.log(y), lambda t, ans, x, y: t * x / y)


@custom_jvp
def xlog1py(x: Any, y: Any) -> Array:
    """``x * log1p(y)``, 0 where ``x`` is 0 unless ``y`` is NaN.

    Args:
      x, y: arrays or numbers of shapes that broadcast; integers become floats.

    Returns:
      An array of floats of the common shape.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``special.xlogy``, ``special.entr``, ``jnp.log1p``.

    >>> jax.scipy.special.xlog1py(0.0, -1.0)
    Array(0., dtype=float32, weak_type=True)
    """
    x, y = operands("xlog1py", x, y)
    zero = (x == 0) & ~jnp.isnan(y)
    return jnp.where(zero, jnp.zeros_like(x), x * jnp.log1p(jnp.where(zero, 0., y)))


xlog1py.defjvps(lambda t, ans, x, y: t * jnp.log1p(y), lambda t, ans, x, y: t * x / (1 + y))


@custom_jvp
def _xlogx(x: Any) -> Array:
    return xlogy(x, x)


_xlogx.defjvps(lambda t, ans, x: t * (jnp.log(x) + 1))


def entr(x: Any) -> Array:
    """``-x log x``, the entropy of a probability; -inf for negative ``x``.

    Args:
      x: a real array or number; integers become floats.

    Returns:
      An array of floats of the shape of ``x``.

    Raises:
      ValueError: ``x`` is complex.
      TypeError: it is no array or number.

    See also: ``special.xlogy``, ``special.rel_entr``, ``special.kl_div``.

    >>> jax.scipy.special.entr(jnp.array([0.0, 0.5, 1.0]))
    Array([-0.       ,  0.3465736, -0.       ], dtype=float32)
    """
    check_arraylike("entr", x)
    x, = operands("entr", x)
    refuse_complex("entr", x)
    return jnp.where(x < 0, -np.inf, -_xlogx(x))


@custom_jvp
def _log_ratio(p: Any, q: Any) -> Array:
    """``log(p / q)`` of positive numbers, even if they are close or their ratio overflows."""
    ratio = p / q
    near = (ratio > 0.5) & (ratio < 2)
    within = (ratio > dtypes.finfo(p.dtype).tiny) & (ratio < np.inf)
    far = jnp.where(within, jnp.log(jnp.where(within, ratio, 1)), jnp.log(p) - jnp.log(q))
    return jnp.where(near, jnp.log1p(jnp.where(near, (p - q) / q, 0)), far)


_log_ratio.defjvps(lambda t, ans, p, q: t / p, lambda t, ans, p, q: -t / q)


@custom_jvp
def _weighted_log_ratio(p: Any, q: Any) -> Array:
    return p * _log_ratio(p, q)


# The product rule would divide an infinite p by itself.
_weighted_log_ratio.defjvps(
    lambda t, ans, p, q: t * (_log_ratio(p, q) + 1), lambda t, ans, p, q: -t * (p / q))


def rel_entr(p: Any, q: Any) -> Array:
    """``p log(p / q)``: 0 for ``p = 0 <= q``, inf outside the positive numbers.

    >>> jax.scipy.special.rel_entr(2.0, 1.0)
    Array(1.3862944, dtype=float32, weak_type=True)
    """
    p, q = map(weak_scalar, operands("rel_entr", p, q))
    refuse_complex("rel_entr", p)
    both, none = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    safe_p, safe_q = jnp.where(both, p, 1), jnp.where(both, q, 1)
    value = _weighted_log_ratio(safe_p, safe_q)
    return jnp.where(both, value, jnp.where(none, 0., _outside(p, q)))


def _outside(p: Any, q: Any) -> Array:
    """Infinity, but NaN, with derivatives that are NaN, where an operand is."""
    missing = jnp.isnan(p) | jnp.isnan(q)
    return jnp.where(missing, jnp.square(jnp.where(missing, p + q, 0)), np.inf)


def kl_div(p: Any, q: Any) -> Array:
    """``p log(p / q) - p + q``.

    >>> jax.scipy.special.kl_div(2.0, 1.0)
    Array(0.38629436, dtype=float32, weak_type=True)
    """
    p, q = operands("kl_div", p, q)
    refuse_complex("kl_div", p)
    return weak_scalar(convert_element_type(_kl_div(p, q), p.dtype, aval_of(p).weak_type))


@in_float64
def _kl_div(p: Any, q: Any, *, wide: bool) -> Array:
    near = (p > 0.5 * q) & (p < 2 * q) & (p < np.inf)
    both, none = (p > 0) & (q > 0), (p == 0) & (q >= 0)
    far = jnp.where(both, rel_entr(p, q) - p + q, jnp.where(none, q, _outside(p, q)))
    # With v = (p - q) / (p + q), log(p / q) = 2 (v + v^3 / 3 + v^5 / 5 + ...).
    x, y = jnp.where(near, p, 1), jnp.where(near, q, 1)
    v = (x - y) / (x + y)
    square = v * v
    return jnp.where(near, (x + y) * square * (1 + v * (1 + v) * atanh_rest(square)), far)


@custom_jvp
def logit(x: Any) -> Array:
    """``log(x / (1 - x))``.

    Args:
      x: an array or number; integers become floats.

    Returns:
      An array of floats of the shape of ``x``: infinite at 0 and 1, NaN beyond.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``special.expit``, ``jax.nn.sigmoid``.

    >>> jax.scipy.special.logit(0.75)
    Array(1.0986123, dtype=float32, weak_type=True)
    """
    x = weak_scalar(*operands("logit", x))
    near = (x > 0.25) & (x < 0.75)      # the logarithm is near 0
    return jnp.where(near, jnp.log1p(jnp.where(near, 2 * x - 1, 0) / (1 - jnp.where(near, x, 0))),
                     jnp.log(x / (1 - x)))


logit.defjvps(lambda t, ans, x: t / (x * (1 - x)))


def expit(x: Any) -> Array:
    """``1 / (1 + exp(-x))``.

    Args:
      x: an array or number; integers become floats.

    Returns:
      An array of floats of the shape of ``x``.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``special.logit``, ``special.log_ndtr``, ``jax.nn.sigmoid``, ``lax.logistic``.

    >>> jax.scipy.special.expit(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    return lax.logistic(*operands("expit", x))


logsumexp = nn.logsumexp


def softmax(x: Any, /, *, axis: Any = None) -> Array:
    """``exp(x) / sum(exp(x))`` over axes, all by default.

    >>> jax.scipy.special.softmax(jnp.zeros(2))
    Array([0.5, 0.5], dtype=float32)
    """
    check_arraylike("softmax", x)
    x, = operands("softmax", x)
    return nn.softmax(x, axis=tuple(range(x.ndim)) if axis is None else axis)


def log_softmax(x: Any, /, *, axis: Any = None) -> Array:
    """``log(softmax(x))``, without overflow.

    >>> jax.scipy.special.log_softmax(jnp.zeros(2))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    check_arraylike("log_softmax", x)
    x, = operands("log_softmax", x)
    return nn.log_softmax(x, axis=tuple(range(x.ndim)) if axis is None else axis)


def boxcox(x: Any, lmbda: Any) -> Array:
    """The Box-Cox transform ``(x**lmbda - 1) / lmbda``, ``log(x)`` for ``lmbda = 0``.

    >>> jax.scipy.special.boxcox(4.0, 0.5)
    Array(2., dtype=float32, weak_type=True)
    """
    return _boxcox(*operands("boxcox", x, lmbda))


def boxcox1p(x: Any, lmbda: Any) -> Array:
    """``boxcox(1 + x, lmbda)``.

    >>> jax.scipy.special.boxcox1p(3.0, 0.5)
    Array(2., dtype=float32, weak_type=True)
    """
    return _boxcox1p(*operands("boxcox1p", x, lmbda))


@in_float64
def _boxcox(x: Any, exponent: Any, *, wide: bool) -> Array:
    return _power_less_one(jnp.log(x), exponent, x, 0.0, wide)


@in_float64
def _boxcox1p(x: Any, exponent: Any, *, wide: bool) -> Array:
    base = 1 + x
    low = x - (base - 1) if wide else 0.0
    return _power_less_one(jnp.log1p(x), exponent, base, low, wide)


def _power_less_one(logarithm: Any, exponent: Any, base: Any, low: Any, wide: bool) -> Array:
    """``((base + low) ** exponent - 1) / exponent``."""
    zero = exponent == 0
    safe = jnp.where(zero, 1, exponent)
    product = safe * logarithm
    power = jnp.expm1(product)
    if wide:
        # The exponential would magnify the rounding of the logarithm.
        large = (product > 1) & jnp.isfinite(base) & (base > 0)
        base = jnp.where(large, base, 1)
        exact = jnp.power(base, jnp.where(large, safe, 1))
        rest = exact * jnp.expm1(jnp.where(large, safe * (low / base), 0))
        exact = exact - 1 + jnp.where(exact < np.inf, rest, 0)
        power = jnp.where(large, exact, power)
    return jnp.where(zero, logarithm, power / safe)


all_at_once(globals())
