"""Activation functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._higher_order.jit_function import jitted as jit
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax.numpy._at_once import all_at_once
from maxjax.numpy._promotion import (
    as_array,
    check_arraylike,
    promote_args_inexact,
    promote_inexact,
)


def _floats(name: str, x: Any) -> Any:
    """The argument of a function that is undefined for integers."""
    check_arraylike(name, x)
    return promote_inexact(name, x)[0]


@custom_jvp
@jit
def relu(x: ArrayLike) -> Array:
    """``max(x, 0)``; its derivative at 0 is 0.

    Args:
      x: an array or number; integers stay integers.

    Returns:
      An array of the shape and dtype of ``x``; NaN stays.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``relu6``, ``leaky_relu``, ``gelu``, ``silu``, ``elu``.

    >>> jax.nn.relu(jnp.array([-1.0, 0.5, 2.0]))
    Array([0. , 0.5, 2. ], dtype=float32)
    """
    return jnp.maximum(x, 0)


relu.defjvps(lambda t, ans, x: lax.select(x > 0, t, lax.full_like(t, 0)))


@custom_jvp
@jit
def relu6(x: ArrayLike) -> Array:
    """``min(max(x, 0), 6)``; its derivative at 0 and 6 is 0.

    >>> jax.nn.relu6(jnp.array([-1.0, 0.5, 7.0]))
    Array([0. , 0.5, 6. ], dtype=float32)
    """
    return jnp.minimum(jnp.maximum(x, 0), 6.0)


relu6.defjvps(lambda t, ans, x: lax.select((x > 0) & (x < 6), t, lax.full_like(t, 0)))


@jit
def identity(x: ArrayLike) -> Array:
    """``x``.

    >>> jax.nn.identity(jnp.array([-1.0, 0.5, 2.0]))
    Array([-1. ,  0.5,  2. ], dtype=float32)
    """
    check_arraylike("identity", x)
    return jnp.asarray(x)


def sigmoid(x: ArrayLike) -> Array:
    """``1 / (1 + exp(-x))``.

    Args:
      x: an array or number, floating or complex.

    Returns:
      An array of the shape and dtype of ``x``.

    Raises:
      TypeError: ``x`` is an integer, or no array or number.

    See also: ``log_sigmoid``, ``hard_sigmoid``, ``softmax``, ``tanh``, ``lax.logistic``.

    >>> jax.nn.sigmoid(jnp.array([-1.0, 0.5, 2.0]))
    Array([0.26894143, 0.62245935, 0.880797  ], dtype=float32)
    """
    return lax.logistic(as_array(x, "sigmoid"))


@jit
def silu(x: ArrayLike) -> Array:
    """``x * sigmoid(x)``.

    Args:
      x: an array or number, floating or complex.

    Returns:
      An array of the shape and dtype of ``x``; another name is ``swish``.

    Raises:
      TypeError: ``x`` is an integer, or no array or number.

    See also: ``sigmoid``, ``gelu``, ``relu``, ``mish``.

    >>> jax.nn.silu(jnp.array([-1.0, 0.5, 2.0]))
    Array([-0.26894143,  0.31122968,  1.761594  ], dtype=float32)
    """
    x = as_array(x, "silu")
    return x * sigmoid(x)


swish = silu


@jit
def mish(x: ArrayLike) -> Array:
    """``x * tanh(softplus(x))``.

    >>> jax.nn.mish(jnp.array([-1.0, 0.5, 2.0]))
    Array([-0.30340147,  0.3752452 ,  1.943959  ], dtype=float32)
    """
    x = as_array(x, "mish")
    return x * jnp.tanh(softplus(x))


def _named(name: str) -> Callable[[Any], Any]:
    """Gives a function the name that JAX prints."""
    def rename(function: Any) -> Any:
        function.__name__ = name
        return function
    return rename


@custom_jvp
@_named("logaddexp")
def _log_add_exp(x: Any, y: Any) -> Array:
    largest, difference = lax.max(x, y), lax.sub(x, y)
    # Where infinities cancel the result is NaN, but the sum is right.
    cancels, total = lax.ne(difference, difference), lax.add(x, y)
    correction = lax.log1p(lax.exp(lax.neg(lax.abs(difference))))
    return lax.select(cancels, total, lax.add(largest, correction))


@_log_add_exp.defjvp
def _logaddexp_jvp(primals: Any, tangents: Any) -> Any:
    out = _log_add_exp(*primals)
    # exp(x - out) is the share of x; it is 1 for an infinite x.
    finite_out = jnp.where(out == np.inf, 0, out)
    terms = [t * jnp.exp(jnp.where(x == np.inf, 0, x) - finite_out)
             for x, t in zip(primals, tangents, strict=True)]
    return out, terms[0] + terms[1]


@jit
def softplus(x: Any) -> Array:
    """``log(1 + exp(x))``.

    Args:
      x: an array or number; integers become floats.

    Returns:
      An array of floats of the shape of ``x``, without overflow; close to ``relu(x)`` far from 0.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``relu``, ``log_sigmoid``, ``jnp.logaddexp``.

    >>> jax.nn.softplus(jnp.array([-1.0, 0.5, 2.0]))
    Array([0.3132617, 0.974077 , 2.126928 ], dtype=float32)
    """
    # Not by a maximum and an absolute value: their derivatives at 0 are conventions.
    x = as_array(x, "softplus")
    if dtypes.is_integer(x.dtype):
        x = _floats("softplus", x)
    if dtypes.is_complex(x.dtype):
        return jnp.logaddexp(x, 0.0)
    return _log_add_exp(*promote_args_inexact("softplus", x, 0.0))


@jit
def sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, ``x`` from 1 on, ``(x + 1)**2 / 4`` in between.

    >>> jax.nn.sparse_plus(jnp.array([-1.0, 0.5, 2.0]))
    Array([0.    , 0.5625, 2.    ], dtype=float32)
    """
    x = as_array(x, "sparse_plus")
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


@jit
def sparse_sigmoid(x: ArrayLike) -> Array:
    """The derivative of ``sparse_plus``.

    >>> jax.nn.sparse_sigmoid(jnp.array([-1.0, 0.5, 2.0]))
    Array([0.  , 0.75, 1.  ], dtype=float32)
    """
    return 0.5 * jnp.clip(as_array(x, "sparse_sigmoid") + 1.0, 0.0, 2.0)


@jit
def soft_sign(x: ArrayLike) -> Array:
    """``x / (|x| + 1)``.

    >>> jax.nn.soft_sign(jnp.array([-1.0, 0.5, 2.0]))
    Array([-0.5       ,  0.33333334,  0.6666667 ], dtype=float32)
    """
    x = as_array(x, "soft_sign")
    return x / (jnp.abs(x) + 1)


def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent.

    Args:
      x: an array or number; integers become floats.

    Returns:
      An array of floats of the shape of ``x``.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``hard_tanh``, ``sigmoid``, ``jnp.tanh``.

    >>> jax.nn.tanh(jnp.array([-1.0, 0.5, 2.0]))
    Array([-0.7615942 ,  0.46211717,  0.9640276 ], dtype=float32)
    """
    return jnp.tanh(x)


@jit
def log_sigmoid(x: ArrayLike) -> Array:
    """``log(sigmoid(x))``.

    Args:
      x: an array or number; integers become floats.

    Returns:
      An array of floats of the shape of ``x``, without overflow.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``sigmoid``, ``softplus``, ``log_softmax``.

    >>> jax.nn.log_sigmoid(jnp.array([-1.0, 0.5, 2.0]))
    Array([-1.3132617 , -0.474077  , -0.12692802], dtype=float32)
    """
    x = as_array(x, "log_sigmoid")
    return -softplus(-x)


@jit
def elu(x: ArrayLike, alpha: Any = 1.0) -> Array:
    """``x`` above 0, ``alpha * (exp(x) - 1)`` otherwise.

    Args:
      x: an array or number; integers become floats.
      alpha: the limit far below 0, with its sign turned.

    Returns:
      An array of floats of the shape of ``x``.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``celu``, ``selu``, ``relu``, ``leaky_relu``.

    >>> jax.nn.elu(jnp.array([-1.0, 0.5, 2.0]))
    Array([-0.63212055,  0.5       ,  2.        ], dtype=float32)
    """
    x = as_array(x, "elu")
    # The unselected branch must not overflow: its derivative would be NaN.
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


@jit
def celu(x: ArrayLike, alpha: Any = 1.0) -> Array:
    """``max(x, 0) + min(0, alpha * (exp(x / alpha) - 1))``.

    >>> jax.nn.celu(jnp.array([-1.0, 0.5, 2.0]))
    Array([-0.63212055,  0.5       ,  2.        ], dtype=float32)
    """
    x = as_array(x, "celu")
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


_SELU_ALPHA = 1.6732632423543772848170429916717
_SELU_SCALE = 1.0507009873554804934193349852946


@jit
def selu(x: ArrayLike) -> Array:
    """``elu`` with the scale and slope that preserve mean 0 and variance 1.

    >>> jax.nn.selu(jnp.array([-1.0, 0.5, 2.0]))
    Array([-1.1113307,  0.5253505,  2.101402 ], dtype=float32)
    """
    return _SELU_SCALE * elu(x, _SELU_ALPHA)


@jit
def leaky_relu(x: ArrayLike, negative_slope: Any = 1e-2) -> Array:
    """``x`` above 0, ``negative_slope * x`` below.

    Args:
      x: an array or number.
      negative_slope: the slope below 0.

    Returns:
      An array of the shape of ``x``.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``relu``, ``elu``, ``selu``.

    >>> jax.nn.leaky_relu(jnp.array([-1.0, 0.5, 2.0]))
    Array([-0.01,  0.5 ,  2.  ], dtype=float32)
    """
    x = as_array(x, "leaky_relu")
    return jnp.where(x >= 0, x, negative_slope * x)


@jit
def hard_tanh(x: ArrayLike) -> Array:
    """``x`` clipped to [-1, 1].

    >>> jax.nn.hard_tanh(jnp.array([-1.0, 0.5, 2.0]))
    Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    x = as_array(x, "hard_tanh")
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


@jit
def hard_sigmoid(x: ArrayLike) -> Array:
    """``relu6(x + 3) / 6``.

    >>> jax.nn.hard_sigmoid(jnp.array([-1.0, 0.5, 2.0]))
    Array([0.33333334, 0.5833334 , 0.8333334 ], dtype=float32)
    """
    return relu6(as_array(x, "hard_sigmoid") + 3.0) / 6.0


@jit
def hard_silu(x: ArrayLike) -> Array:
    """``x * hard_sigmoid(x)``.

    >>> jax.nn.hard_silu(jnp.array([-1.0, 0.5, 2.0]))
    Array([-0.33333334,  0.2916667 ,  1.6666667 ], dtype=float32)
    """
    x = as_array(x, "hard_silu")
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def gelu(x: Any, approximate: bool = True) -> Array:
    """``x`` times the normal cumulative distribution at ``x``.

    Args:
      x: an array or number; integers become floats.
      approximate: use tanh, the default as in JAX; otherwise the error function.

    Returns:
      An array of floats of the shape of ``x``.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``relu``, ``silu``, ``jax.scipy.special.erf``.

    >>> jax.nn.gelu(jnp.array([-1.0, 0.5, 2.0]))
    Array([-0.158808 ,  0.345714 ,  1.9545977], dtype=float32)
    """
    x = _floats("gelu", x)
    if approximate:
        scale = np.array(math.sqrt(2 / math.pi), x.dtype)[()]
        cdf = 0.5 * (1.0 + jnp.tanh(scale * (x + 0.044715 * x ** 3)))
        return x * cdf
    half = np.array(math.sqrt(0.5), x.dtype)[()]
    return 0.5 * x * lax.erfc(-x * half)


@jit
def squareplus(x: Any, b: Any = 4) -> Array:
    """``(x + sqrt(x**2 + b)) / 2``.

    >>> jax.nn.squareplus(jnp.array([-1.0, 0.5, 2.0]))
    Array([0.618034 , 1.2807764, 2.4142137], dtype=float32)
    """
    check_arraylike("squareplus", x)
    if jnp.result_type(x) == dtypes.bool_:      # of no weak type, whatever b is
        x = jnp.asarray(x).astype(dtypes.int32)
    x, b = promote_args_inexact("squareplus", x, b)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


@jit
def log1mexp(x: Any) -> Array:
    """``log(1 - exp(-x))`` for positive ``x``, without cancellation.

    >>> jax.nn.log1mexp(jnp.array([0.5, 2.0]))
    Array([-0.93275213, -0.14541346], dtype=float32)
    """
    x = _floats("log1mexp", x)
    threshold = jnp.log(2.0).astype(x.dtype)
    return jnp.where(x < threshold, jnp.log(-jnp.expm1(-x)), jnp.log1p(-jnp.exp(-x)))


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half along ``axis`` times the sigmoid of the second.

    Raises:
      AssertionError: the size is odd.

    >>> jax.nn.glu(jnp.array([1.0, 2.0, 0.0, 2.0]))
    Array([0.5     , 1.761594], dtype=float32)
    """
    return _glu(x, axis)


def _glu_function(x: Any, axis: int) -> Any:
    x = as_array(x, "glu")
    size = x.shape[axis]
    if size % 2:
        raise AssertionError("axis size must be divisible by 2")
    first, second = jnp.split(x, 2, axis)
    return first * sigmoid(second)


_glu_function.__name__ = "glu"
_glu = jit(_glu_function, static_argnames=("axis",))


all_at_once(globals())
