"""NaN and infinities: which elements are, what replaces them, extrema that pass over NaN."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._higher_order.named_calls import named
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.arithmetic import is_finite_p
from maxjax._primitives.comparison import and_p, ne_p
from maxjax._primitives.creation import full
from maxjax.numpy import _whole_rules as rules
from maxjax.numpy._at_once import at_once
from maxjax.numpy._complex import complex_of, imag, real
from maxjax.numpy._promotion import (
    apart,
    as_array,
    bind,
    cast,
    check_out,
    is_exact,
    operand,
    promote_dtypes,
)
from maxjax.numpy._ufuncs import abs
from maxjax.numpy._where import where
from maxjax.numpy._whole import whole

__all__ = ["fmax", "fmin", "isfinite", "isinf", "isnan", "isneginf", "isposinf", "nan_to_num"]


@at_once
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


@at_once
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


@at_once
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
    return _isinf(operand("isinf", x))


@named("isinf")
def _isinf(x: Any) -> Array:
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
    return bind(ne_p, x, x)     # of one operand, which stays as weakly typed as it is


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


# The default of nan_to_num; a number that is given is another object, even of this value.
_NAN = 0.0


@at_once
def nan_to_num(x: ArrayLike, copy: bool = True, nan: Any = _NAN, posinf: Any = None,
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
    # What is not given is no operand of the call in a jaxpr.
    is_default = nan is _NAN and posinf is None and neginf is None
    return _with_numbers(x) if is_default else _with_numbers(x, nan, posinf, neginf)


@named("nan_to_num")
def _with_numbers(x: Any, nan: Any = _NAN, posinf: Any = None, neginf: Any = None) -> Array:
    if is_exact(x):
        return apart(x)
    if dtypes.is_complex(x.dtype):
        return complex_of(nan_to_num(real(x), True, nan, posinf, neginf),
                          nan_to_num(imag(x), True, nan, posinf, neginf))
    info = dtypes.finfo(x.dtype)
    return _nan_to_num(x, *(cast(value, x.dtype) for value in (
        nan, info.max if posinf is None else posinf, info.min if neginf is None else neginf)))


@whole("nan_to_num", rules.nan_to_num)
def _nan_to_num(x: Array, nan: Any, above: Any, below: Any) -> Array:
    x = where(isnan(x), nan, x)
    x = where(x == np.inf, above, x)
    return where(x == -np.inf, below, x)
