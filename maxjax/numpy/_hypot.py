"""The length of a vector of two elements, and its derivatives, at any magnitude."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._higher_order.custom_jvp import custom_jvp
from maxjax._ir.dimensions import broadcast_shapes
from maxjax._ir.trace import Array
from maxjax._primitives.arithmetic import add, div, mul, of_the_type, square, sub
from maxjax._primitives.comparison import select
from maxjax.lax._over_mesh import explicit_mesh
from maxjax.numpy import _whole_rules as rules
from maxjax.numpy._at_once import at_once
from maxjax.numpy._promotion import as_array, promote_args_inexact
from maxjax.numpy._ufuncs import _maximum, abs, sqrt
from maxjax.numpy._where import where
from maxjax.numpy._whole import whole

__all__ = ["hypot"]


@at_once
def hypot(x1: Any, x2: Any, /) -> Array:
    """sqrt(x1**2 + x2**2) without overflow.

    Args:
      x1, x2: real arrays or scalars of shapes that broadcast; integers become floats.

    Returns:
      An array of floats of the common shape.

    Raises:
      ValueError: an argument is complex.
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``sqrt``, ``abs``, ``linalg.norm``.

    >>> jnp.hypot(jnp.array([3., 3e30]), jnp.array([4., 4e30]))
    Array([5.e+00, 5.e+30], dtype=float32)
    """
    x1, x2 = promote_args_inexact("hypot", x1, x2)
    if dtypes.is_complex(x1.dtype):
        raise ValueError("jnp.hypot is not well defined for complex-valued inputs. Please convert "
                         "to real values first, such as by using abs(x)")
    if x1.shape and x2.shape:
        broadcast_shapes(x1.shape, x2.shape)
    if explicit_mesh(x1, x2) is not None and x1.shape == x2.shape:
        select(x1 == x1, x1, x2)      # which says what does not fit
    return _hypot(x1, x2)


@whole("hypot", rules.hypot)
def _hypot(x1: Array, x2: Array) -> Array:
    return _with_direction(x1, x2)[0]


@custom_jvp
def _with_direction(x1: Array, x2: Array) -> tuple[Array, Array, Array]:
    """The length h and the direction (x1 / h, x2 / h), which is the gradient of h.

    Operands are scaled by a power of two to where their squares neither overflow nor vanish.
    """
    info = dtypes.finfo(x1.dtype)
    large, small = info.maxexp // 2 - 1, -((info.nmant + 1) // 2)
    size = _maximum(abs(x1), abs(x2))
    down, up, one = (
        as_array(of_the_type(2.0 ** power, size)) for power in (small - large, large - small, 0))
    factor = where(size >= 2.0 ** large, down, where(size <= 2.0 ** small, up, one))
    inverse = where(size >= 2.0 ** large, up, where(size <= 2.0 ** small, down, one))
    x, y = mul(x1, factor), mul(x2, factor)
    scaled = sqrt(add(square(x), square(y)))
    infinite = (abs(x1) == np.inf) | (abs(x2) == np.inf)
    return where(infinite, np.inf, mul(scaled, inverse)), div(x, scaled), div(y, scaled)


@_with_direction.defjvp
def _with_direction_jvp(primals: Any, tangents: Any) -> Any:
    """h' = u x1' + v x2', and u' = (x1' - u h') / h for the direction (u, v)."""
    length, u, v = out = _with_direction(*primals)
    x1, x2 = tangents
    change = add(mul(u, x1), mul(v, x2))
    return out, (change, div(sub(x1, mul(u, change)), length),
                 div(sub(x2, mul(v, change)), length))
