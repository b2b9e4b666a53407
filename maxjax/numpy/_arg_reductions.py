"""Where extrema are: argmax, argmin."""

from __future__ import annotations

import operator
from typing import Any

from maxjax._base import dtypes
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.comparison import gt_p, lt_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.layout import reshape
from maxjax._primitives.reduction import argmax_p, argmin_p
from maxjax.numpy._promotion import as_array, check_accepts, check_out
from maxjax.numpy._reductions import keep_axes

__all__ = ["argmax", "argmin"]


def _position(name: str, primitive: Primitive, a: Any, axis: Any, out: Any,
              keepdims: Any) -> Array:
    check_out(name, out)
    x = as_array(a, name)
    shape, rank = x.shape, x.ndim
    if axis is None:
        flat = reshape(x, (x.size,))
        index = 0
    else:
        index = operator.index(axis)
        if not -rank <= index < rank:
            raise IndexError(f"axis {index} is out of range for an array of dimension {rank}")
        flat, index = x, index % rank
    if flat.shape[index] == 0:
        raise ValueError(f"attempt to get {name} of an empty sequence")
    check_accepts(gt_p if name == "argmax" else lt_p, [flat, flat])
    if flat.dtype == dtypes.bool_:
        flat = convert_element_type(flat, dtypes.uint8)
    result = primitive.bind(flat, axes=(index,), index_dtype=dtypes.canonical(dtypes.int64))
    if keepdims:
        axes = tuple(range(rank)) if axis is None else (index,)
        result = keep_axes(result, shape, axes)
    return result


def argmax(a: ArrayLike, axis: int | None = None, out: Any = None,
           keepdims: Any = None) -> Array:
    """The index of the first maximum (of the first NaN, if there is one).

    Args:
      a: an array.
      axis: along which; None: of the flattened array.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the axis stays, with size 1.

    Returns:
      An array of the default integer type without the axis. It has no derivative: as any integer it
      counts as constant.

    Raises:
      ValueError: there are no elements.
      TypeError: they are complex.
      IndexError: there is no such axis.
      NotImplementedError: ``out`` is given.

    See also: ``argmin``, ``max``, ``nanargmax``, ``argsort``, ``lax.top_k``.

    >>> x = jnp.array([[1, 5], [7, 4]])
    >>> jnp.argmax(x), jnp.argmax(x, axis=1)
    (Array(2, dtype=int32), Array([1, 0], dtype=int32))
    """
    return _position("argmax", argmax_p, a, axis, out, keepdims)


def argmin(a: ArrayLike, axis: int | None = None, out: Any = None,
           keepdims: Any = None) -> Array:
    """The index of the first minimum (of the first NaN, if there is one).

    Args:
      a: an array.
      axis: along which; None: of the flattened array.
      out: None: arrays are immutable, so that nothing is written into one.
      keepdims: whether the axis stays, with size 1.

    Returns:
      An array of the default integer type without the axis. It has no derivative: as any integer it
      counts as constant.

    Raises:
      ValueError: there are no elements.
      TypeError: they are complex.
      IndexError: there is no such axis.
      NotImplementedError: ``out`` is given.

    See also: ``argmax``, ``min``, ``nanargmin``, ``argsort``.

    >>> x = jnp.array([[3, 5], [7, 1]])
    >>> jnp.argmin(x), jnp.argmin(x, axis=1)
    (Array(3, dtype=int32), Array([0, 1], dtype=int32))
    """
    return _position("argmin", argmin_p, a, axis, out, keepdims)
