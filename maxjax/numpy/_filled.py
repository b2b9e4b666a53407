"""Filled arrays: zeros, ones, any value, and those like another array."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.runtime import installed
from maxjax._ir.staging import is_staging
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.convert import convert_element_type
from maxjax._runtime.outside_values import leaf_aval, not_numeric
from maxjax.lax._conversion import filled_opaque, lying_like, numpy_cast, of_numpy
from maxjax.numpy._placement import eager, on_device
from maxjax.numpy._promotion import (
    as_array,
    broadcast_to,
    canonical_shape,
    cast,
    check_arraylike,
    element,
    resolve,
    shape_of,
    type_of,
)

__all__ = ["empty", "empty_like", "full", "full_like", "ones", "ones_like", "zeros", "zeros_like"]


_ZERO: dict[Any, Any] = {}
_ONE: dict[Any, Any] = {}


def _filled(given: Any, cache: dict[Any, Any], value: int, dtype: Any, name: str) -> Array:
    shape = canonical_shape(given)
    if dtype is None:
        dtype = dtypes.canonical(dtypes.float64)
    else:
        try:
            dtype = dtypes.argument(dtype, name)
        except TypeError as error:
            if not (isinstance(given, int) and isinstance(dtype, int)):
                raise
            raise TypeError(
                f"{error}.\n\nDid you accidentally write `jax.numpy.{name}({given}, {dtype})` "
                f"when you meant `jax.numpy.{name}(({given}, {dtype}))`, i.e. with a single tuple "
                "argument for the shape?") from None
    if dtypes.is_opaque(dtype):
        return filled_opaque(shape, value, dtype)
    scalar = cache.get(dtype)
    if scalar is None:
        scalar = cache[dtype] = np.asarray(value).astype(dtype)[()]
    return _broadcast_scalar(scalar, shape)


def _broadcast_scalar(scalar: Any, shape: tuple[int, ...]) -> Array:
    if not shape:
        return installed.runtime.operand(scalar)
    if any(size < 0 for size in shape):
        raise TypeError("broadcast_in_dim shape must have every element be nonnegative, got "
                        f"{shape}.")
    return broadcast_in_dim(scalar, shape, ())


def zeros(shape: Any, dtype: DTypeLike | None = None, *, device: Any = None,
          out_sharding: Any = None) -> Array:
    """An array of zeros (float32 by default).

    Args:
      shape: of the result; an int for one dimension. It must be known while tracing.
      dtype: the dtype; None: the default float. A 64-bit one is narrowed unless ``jax_enable_x64``
        is set.
      device: the device or sharding that the result lies on; None: the default device.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape, all 0 (False for booleans).

    Raises:
      TypeError: a size is negative or no integer, or the shape depends on traced values.

    See also: ``zeros_like``, ``ones``, ``empty``, ``full``.

    >>> jnp.zeros((2, 3))
    Array([[0., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    return on_device(_filled(shape, _ZERO, 0, dtype, "zeros"), eager(device), out_sharding)


def ones(shape: Any, dtype: DTypeLike | None = None, *, device: Any = None,
         out_sharding: Any = None) -> Array:
    """An array of ones (float32 by default).

    Args:
      shape: of the result; an int for one dimension. It must be known while tracing.
      dtype: the dtype; None: the default float. A 64-bit one is narrowed unless ``jax_enable_x64``
        is set.
      device: the device or sharding that the result lies on; None: the default device.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape, all 1 (True for booleans).

    Raises:
      TypeError: a size is negative or no integer, or the shape depends on traced values.

    See also: ``ones_like``, ``zeros``, ``full``.

    >>> jnp.ones((2, 2), dtype=int)
    Array([[1, 1],
           [1, 1]], dtype=int32)
    """
    return on_device(_filled(shape, _ONE, 1, dtype, "ones"), eager(device), out_sharding)


def empty(shape: Any, dtype: DTypeLike | None = None, *, device: Any = None,
          out_sharding: Any = None) -> Array:
    """An array of zeros: uninitialized memory is never exposed.

    Args:
      shape: of the result; an int for one dimension. It must be known while tracing.
      dtype: the dtype; None: the default float.
      device: the device or sharding that the result lies on; None: the default device.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      The array that ``zeros`` gives; where NumPy's has whatever the memory held.

    Raises:
      TypeError: a size is negative or no integer.

    See also: ``zeros``, ``empty_like``, ``full``.

    >>> jnp.empty((1, 2))
    Array([[0., 0.]], dtype=float32)
    """
    return on_device(_filled(shape, _ZERO, 0, dtype, "empty"), eager(device), out_sharding)


def full(shape: Any, fill_value: Any, dtype: DTypeLike | None = None, *, device: Any = None,
         out_sharding: Any = None) -> Array:
    """An array filled with ``fill_value``; an array of values is broadcast.

    Args:
      shape: of the result; an int for one dimension. It must be known while tracing.
      fill_value: a scalar, or an array that broadcasts to ``shape``.
      dtype: the dtype; None: that of ``fill_value``, weakly typed for a Python number.
      device: the device or sharding that the result lies on; None: the default device.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape.

    Raises:
      TypeError: a size is negative or no integer.
      ValueError: ``fill_value`` does not broadcast to the shape.

    See also: ``full_like``, ``zeros``, ``ones``, ``broadcast_to``.

    >>> jnp.full((2, 3), jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [1, 2, 3]], dtype=int32)
    """
    check_arraylike("full", fill_value)
    wanted = None if dtype is None else dtypes.argument(dtype, "full")
    shape = canonical_shape(shape)
    if wanted is not None:
        _check_python_number(fill_value, wanted)
    filled = _full(shape, fill_value, wanted)
    if device is not None and filled.aval.weak_type and not is_staging():
        filled = convert_element_type(filled, filled.dtype)
    return on_device(filled, eager(device), out_sharding)


def _check_python_number(value: Any, dtype: Any) -> None:
    """Rejects conversion of Python's complex numbers to real ones."""
    if value.__class__ is complex and not (
            dtypes.is_opaque(dtype) or dtypes.is_complex(dtype) or dtype == dtypes.bool_):
        raise TypeError(f"a complex number cannot be converted to {dtype}: {value}")


def _full(shape: tuple[int, ...], fill_value: Any, dtype: Any) -> Array:
    if fill_value.__class__ is int and not (dtype is not None and dtypes.is_opaque(dtype)):
        fill_value = _as_int64(fill_value, dtype)
    elif fill_value.__class__ is complex and dtype == dtypes.bool_:
        fill_value = bool(fill_value)
    own, weak = type_of(fill_value)
    if dtype is not None:
        if dtypes.is_opaque(dtype) != dtypes.is_opaque(own):
            if dtypes.is_opaque(own) or shape_of(fill_value):
                raise ValueError(f"Cannot convert_element_type from {own} to {dtype}")
            return filled_opaque(shape, fill_value, dtype)
        own, weak = dtype, False
    fill = (as_array(cast(fill_value, own, weak)) if weak else
            element(fill_value, own) if fill_value.__class__ is int else
            of_numpy(fill_value, own) if isinstance(fill_value, np.ndarray) else
            cast(numpy_cast(fill_value, own)[()] if isinstance(fill_value, np.generic)
                 and fill_value.dtype != own else fill_value, own))
    if not fill.shape and not isinstance(fill, Array):
        return _broadcast_scalar(fill, shape)
    if isinstance(fill, Array) and fill.aval.weak_type and not weak:
        fill = convert_element_type(fill, own)
    _check_broadcast(fill.shape, shape)
    return broadcast_to(fill, shape)


def _as_int64(value: int, dtype: Any) -> int | float | np.generic:
    """An integer that neither the dtype nor the default one holds, as ``full`` takes it: an int64
    first, which wraps around where the dtype is narrower.

    Raises:
      OverflowError: the dtype is one of integers, and an int64 does not hold the value.
    """
    default = dtypes.python_scalar(int)[0]
    own = default if dtype is None else dtype
    low, high = dtypes.extremes(default)
    if int(low) <= value <= int(high):
        return value
    if dtypes.is_unsigned(own) and 0 <= value <= int(dtypes.extremes(own)[1]):
        return own.type(value)
    if own == dtypes.bool_:
        return True
    if not dtypes.is_integer(own):
        return float(value)
    if not -1 << 63 <= value < 1 << 63:
        raise OverflowError("Python int too large to convert to C long")
    return int(np.int64(value).astype(own))


def _check_broadcast(have: tuple[int, ...], shape: tuple[int, ...]) -> None:
    if min(shape, default=0) < 0:
        raise TypeError("broadcast_in_dim shape must have every element be nonnegative, got "
                        f"{shape}.")
    tail = shape[len(shape) - len(have):]
    if len(have) > len(shape) or any(
            size not in (1, wide) for size, wide in zip(have, tail, strict=True)):
        raise ValueError(f"Incompatible shapes for broadcasting: {have} and requested shape "
                         f"{shape}")


def _like(a: Any, name: str) -> Any:
    if isinstance(a, (np.ndarray, np.generic)) and leaf_aval(a) is None:
        raise not_numeric(a)
    if hasattr(a, "dtype") and hasattr(a, "shape"):     # also ShapeDtypeStruct and the like
        return a
    return as_array(a, name)


def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *,
              device: Any = None, out_sharding: Any = None) -> Array:
    """An array filled with ``fill_value``, with the shape and dtype of ``a`` unless given.

    Args:
      a: an array, or anything with a shape and a dtype; its values are not read.
      fill_value: a scalar or an array that broadcasts; converted to the dtype, fractions cut off
        for integers.
      dtype: None: that of ``a``.
      shape: None: that of ``a``.
      device: the device or sharding that the result lies on; None: the default device.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array; it lies over devices as ``a`` does where the shape is the same.

    Raises:
      ValueError: ``fill_value`` does not broadcast to the shape.

    See also: ``full``, ``zeros_like``, ``ones_like``.

    >>> jnp.full_like(jnp.arange(3), 7)
    Array([7, 7, 7], dtype=int32)
    """
    return _full_like("full_like", a, fill_value, dtype, shape, device, out_sharding)


def _full_like(name: str, a: Any, fill_value: Any, dtype: Any, shape: Any, device: Any,
               out_sharding: Any) -> Array:
    a = _like(a, name)
    fill_value, = resolve(name, (fill_value,))
    if isinstance(fill_value, (list, tuple)):
        as_array(fill_value, name, 1)       # which refuses it
    weak = dtype is None and getattr(a, "weak_type", False)
    wanted = (dtypes.argument(dtype, name) if dtype is not None else
              a.dtype if isinstance(a, Array) else dtypes.canonical(a.dtype))
    size = tuple(a.shape) if shape is None else canonical_shape(shape)
    if weak and not getattr(fill_value, "shape", ()):
        result = broadcast_to(as_array(cast(fill_value, wanted, True)), size)
    else:
        _check_python_number(fill_value, wanted)
        result = _full(size, fill_value, wanted)
    if device is None and out_sharding is None:
        return result if getattr(fill_value, "shape", ()) else lying_like(result, a)
    return on_device(result, eager(device), out_sharding)


def zeros_like(a: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *,
               device: Any = None, out_sharding: Any = None) -> Array:
    """Zeros with the shape and dtype of ``a`` unless given.

    Args:
      a: an array, or anything with a shape and a dtype; its values are not read.
      dtype: None: that of ``a``, weakly typed where ``a`` is.
      shape: None: that of ``a``.
      device: the device or sharding that the result lies on; None: the default device.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of 0; it lies over devices as ``a`` does where the shape is the same.

    See also: ``zeros``, ``ones_like``, ``full_like``.

    >>> jnp.zeros_like(jnp.arange(3))
    Array([0, 0, 0], dtype=int32)
    """
    return _full_like("zeros_like", a, 0, dtype, shape, device, out_sharding)


def ones_like(a: ArrayLike, dtype: DTypeLike | None = None, shape: Any = None, *,
              device: Any = None, out_sharding: Any = None) -> Array:
    """Ones with the shape and dtype of ``a`` unless given.

    Args:
      a: an array, or anything with a shape and a dtype; its values are not read.
      dtype: None: that of ``a``, weakly typed where ``a`` is.
      shape: None: that of ``a``.
      device: the device or sharding that the result lies on; None: the default device.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of 1; it lies over devices as ``a`` does where the shape is the same.

    See also: ``ones``, ``zeros_like``, ``full_like``.

    >>> jnp.ones_like(jnp.array([1.5, 2.5]))
    Array([1., 1.], dtype=float32)
    """
    return _full_like("ones_like", a, 1, dtype, shape, device, out_sharding)


def empty_like(prototype: Any, dtype: DTypeLike | None = None, shape: Any = None, *,
               device: Any = None) -> Array:
    """As ``zeros_like``.

    Args:
      prototype: an array, or anything with a shape and a dtype.
      dtype: None: that of ``prototype``.
      shape: None: that of ``prototype``.
      device: the device or sharding that the result lies on; None: the default device.

    Returns:
      An array of zeros: uninitialized memory is never exposed.

    See also: ``zeros_like``, ``empty``, ``full_like``.

    >>> jnp.empty_like(jnp.arange(2))
    Array([0, 0], dtype=int32)
    """
    return _full_like("empty_like", prototype, 0, dtype, shape, device, None)
