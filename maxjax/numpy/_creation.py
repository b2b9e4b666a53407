"""Arrays from data, copies and constants."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, meshes
from maxjax._base.shardings import NamedSharding, SingleDeviceSharding
from maxjax._base.specs import PartitionSpec
from maxjax._higher_order.constraints import constrained, resharded
from maxjax._ir.runtime import installed
from maxjax._ir.staging import is_staging, staged
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.comparison import ne_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.layout import copy_p
from maxjax._primitives.sharding import freed
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.devices import Device
from maxjax._runtime.operand_devices import check_can_go
from maxjax._runtime.outside_values import leaf_aval, not_numeric
from maxjax._runtime.placement import device_put
from maxjax._transforms.jvp import JVPTracer
from maxjax.lax._conversion import filled_opaque, lying_like
from maxjax.numpy._joining import joined
from maxjax.numpy._promotion import (
    PYTHON_SCALARS,
    as_array,
    broadcast_to,
    canonical_shape,
    cast,
    check_arraylike,
    constant,
    element,
    resolve,
    shape_of,
    type_of,
)
from maxjax.numpy._shape import expand_dims

__all__ = [
    "array", "asarray", "astype", "copy", "empty", "empty_like", "full", "full_like", "ones",
    "ones_like", "zeros", "zeros_like",
]


def array(object: Any, dtype: DTypeLike | None = None, *, copy: bool = True,
          order: str | None = "K", ndmin: int = 0, device: Any = None,
          out_sharding: Any = None) -> Array:
    """An array of ``object``: a number, nested lists of numbers or arrays, or an array.

    Only Python numbers give weakly typed arrays. The data of a NumPy array are copied.

    Where NumPy gives 64-bit numbers, the result has 32 bits unless ``jax_enable_x64`` is set; a
    Python float gives float32.

    Args:
      object: numbers, nested lists or tuples of them, an array of any library, or an object with
        ``__array__`` or ``__jax_array__``.
      dtype: the dtype; None: that of the data. Complex numbers lose their imaginary parts in a real
        one.
      copy: whether an array is copied; no later change of a NumPy array is seen in either case.
      order: "K"; no other is implemented, nor would it show.
      ndmin: the least number of dimensions; new ones come first.
      device: the device or sharding that the result lies on; None: the default device.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of the nested lists' shape.

    Raises:
      TypeError, ValueError: the object contains no numbers, or its rows differ in length.
      OverflowError: a Python integer does not fit the dtype.

    See also: ``asarray``, ``copy``, ``zeros``, ``arange``, ``frombuffer``, ``fromfunction``.

    >>> jnp.array([[1, 2], [3, 4.5]])
    Array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    >>> jnp.array(1).weak_type
    True
    """
    _check_order(order)
    if object is None:
        raise ValueError("None is not a valid value for jnp.array")
    wanted = None if dtype is None else dtypes.argument(dtype, "array")
    result = _array(object, wanted, bool(copy))
    if ndmin > result.ndim:
        result = expand_dims(result, tuple(range(ndmin - result.ndim)))
    check_device(object, result, device)
    return on_device(result, device, out_sharding)


def asarray(a: Any, dtype: Any = None, order: str | None = None, *, copy: bool | None = None,
            device: Any = None, out_sharding: Any = None) -> Array:
    """``a`` as an array; one of maxjax's with the right dtype is returned unchanged.

    Args:
      a: whatever ``array`` takes.
      dtype: the dtype; None: that of the data, with 32 bits in place of 64 unless
        ``jax_enable_x64`` is set.
      order: None or "K"; no other is implemented, nor would it show.
      copy: True: memory of its own. Otherwise the data are copied where needed; False does not
        refuse that, unlike NumPy's.
      device: the device or sharding that the result lies on; None: the default device.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of the data's shape.

    Raises:
      TypeError, ValueError, OverflowError: as for ``array``.

    See also: ``array``, ``copy``, ``astype``, ``jax.device_put``.

    >>> jnp.asarray([1, 2], dtype=jnp.float16)
    Array([1., 2.], dtype=float16)
    """
    if a is None:
        raise ValueError("None is not a valid value for jnp.array")
    _check_order(order)
    wanted = None if dtype is None else dtypes.argument(dtype, "asarray")
    result = _array(a, wanted, bool(copy))
    check_device(a, result, device)
    return on_device(result, device, out_sharding)


def check_device(given: Any, made: Array, device: Any) -> None:
    """Raises ValueError where what an array is made of was put elsewhere: only ``device_put`` moves
    it from there."""
    if device is not None:
        check_can_go(given if isinstance(given, Array) else made, device)


def _check_order(order: str | None) -> None:
    if order is not None and order != "K":
        raise NotImplementedError(f"Only implemented for order='K', got {order!r}.")


def on_device(x: Array, device: Any, out_sharding: Any = None) -> Array:
    """The array with the requested placement: on a device, or with a sharding.

    Raises:
      ValueError: ``device`` is neither.
      TypeError: ``out_sharding`` is not a NamedSharding or PartitionSpec.
    """
    if isinstance(device, NamedSharding) and isinstance(device.mesh, meshes.AbstractMesh):
        # It names no devices: only a type can follow it.
        return resharded(x, device) if device.mesh.explicit_axes else x
    if device is not None:
        if not isinstance(device, Device) and not hasattr(device, "device_set"):
            raise ValueError(f"device={device!r} must be a Device or a Sharding.")
        # Within a program this is a constraint: there a single device has no effect.
        x = (constrained(x, SingleDeviceSharding(device))
             if isinstance(device, Device) and is_staging() else device_put(x, device))
    elif meshes.use.ever_set and out_sharding is None:
        x = _around(x)
    return x if out_sharding is None else resharded(freed(x), out_sharding)


def _around(x: Array) -> Array:
    """A new array over the current mesh, if there is one: replicated on each device."""
    mesh = meshes.context_mesh()
    # Within shard_map the code runs on one shard.
    if mesh.empty or isinstance(mesh, meshes.AbstractMesh) or meshes.around().abstract.manual_axes:
        return x
    if x.__class__ is not ArrayImpl or x._placement is not None:
        return x
    return installed.runtime.put(x, NamedSharding(mesh, PartitionSpec()))


def _array(value: Any, dtype: Any, copy: bool) -> Array:
    kind = value.__class__
    if kind in PYTHON_SCALARS:
        if dtype is None:
            return installed.runtime.operand(value)
        return _constant(_python_number(value, dtype), ShapedArray((), dtype))
    if isinstance(value, Array):
        if dtype is not None and (value.aval.dtype != dtype or value.aval.weak_type):
            dtypes.warn_of_discarded_parts(value.aval.dtype, dtype)
            return convert_element_type(value, dtype)
        if not copy and value.__class__ is JVPTracer:
            copy = value.is_python_number()     # which would not be handed on as an array
        return copy_p.bind(value) if copy else value
    if copy and isinstance(value, np.ma.MaskedArray):
        value = value.data      # as NumPy copies: the mask is not part of the values
    if hasattr(value, "__jax_array__"):
        return _array(value.__jax_array__(), dtype, copy)
    if isinstance(value, (list, tuple)):
        return _of_sequence(value, dtype)
    if isinstance(value, (bytes, str)) or leaf_aval(value) is None:
        host = np.asarray(value)
        # NumPy cannot handle random-key arrays and the like
        if not _is_valid(host):
            if dtype is not None and host.dtype.kind in "US" and not host.shape:
                return _array(np.array(value, dtype), dtype, copy)
            raise _invalid(value, host)
        value = host
    if dtype is None:
        return installed.runtime.operand(value)
    if isinstance(value, (np.ndarray, np.generic)):     # NumPy's values use NumPy's casts
        with np.errstate(invalid="ignore", over="ignore"):
            host = np.asarray(value).astype(dtype)
        return _constant(host, ShapedArray(host.shape, dtype))
    return convert_element_type(installed.runtime.operand(value), dtype)


def _constant(value: np.ndarray, aval: ShapedArray) -> Array:
    """A new array, within a program a constant of it."""
    return staged(installed.runtime.constant(value, aval))


def _is_valid(host: np.ndarray) -> bool:
    return host.dtype == np.bool_ or dtypes.is_numeric(host.dtype)


def _invalid(value: object, host: np.ndarray) -> TypeError:
    """The error of a value that NumPy reads as this array."""
    return not_numeric(value, "object" if host.dtype == np.dtype(np.object_) else host.dtype)


def _python_number(value: Any, dtype: Any) -> np.ndarray:
    """A Python number in a dtype.

    Raises:
      TypeError, ValueError, OverflowError: Python's conversion refuses it, or NumPy an integer.
    """
    if dtypes.is_integer(dtype):
        return np.asarray(int(value), dtype)
    if dtypes.is_floating(dtype):
        return np.asarray(constant(float(value), dtype))
    return np.asarray(value).astype(dtype)


def _leaves(value: Sequence[Any], found: list[Any]) -> None:
    for item in value:
        if isinstance(item, (list, tuple)):
            _leaves(item, found)
        elif not isinstance(item, Array) and hasattr(item, "__jax_array__"):
            found.append(item.__jax_array__())
        else:
            found.append(item)


def _of_sequence(value: Sequence[Any], dtype: Any) -> Array:
    leaves: list[Any] = []
    _leaves(value, leaves)
    if None.__class__ in set(map(type, leaves)):
        raise ValueError("None is not a valid value for jnp.array")
    if dtype is None:
        dtype = _common_dtype(leaves)
    if any(isinstance(leaf, Array) for leaf in leaves):
        return _stacked(value, dtype)
    if all(leaf.__class__ in PYTHON_SCALARS for leaf in leaves):
        host = np.array(value, dtype)       # NumPy raises if an integer does not fit
    else:
        host = np.array(value)
        if host.dtype == np.object_ or not _is_valid(host) or dtypes.is_integer(dtype):
            # NumPy's error, unless it can read the strings and the integers fit.
            host = np.array(value, dtype)
        host = host.astype(dtype)
    return _constant(host, ShapedArray(host.shape, dtype))


def _common_dtype(leaves: list[Any]) -> Any:
    if not leaves:
        return dtypes.canonical(dtypes.float64)
    kinds = {leaf.__class__ for leaf in leaves}
    if len(kinds) == 1 and (kind := next(iter(kinds))) in PYTHON_SCALARS:
        return dtypes.python_scalar(kind)[0]
    types = set()
    for leaf in leaves:
        if not hasattr(leaf, "shape") and leaf.__class__ not in PYTHON_SCALARS:
            host = np.asarray(leaf)
            if not _is_valid(host):
                raise _invalid(leaf, host)
            leaf = host
        types.add(type_of(leaf))
    return dtypes.promote(tuple(types))[0]


def _stacked(value: Any, dtype: Any) -> Array:
    if not isinstance(value, (list, tuple)):
        return _array(value, dtype, False)
    if not value:
        return zeros((0,), dtype)
    parts = [expand_dims(_stacked(item, dtype), 0) for item in value]
    if is_staging():      # as the programs of JAX have it
        while len(parts) > _AT_ONCE:
            parts = [joined(parts[i:i + _AT_ONCE], 0) for i in range(0, len(parts), _AT_ONCE)]
    return joined(parts, 0)


# The most rows that an equation puts together.
_AT_ONCE = 16


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of ``a``.

    Args:
      a: an array or scalar; a list is refused, unlike NumPy's.
      order: None or "K"; no other is implemented, nor would it show.

    Returns:
      An array in memory of its own, with the shape and dtype of ``a``.

    Raises:
      TypeError: ``a`` is a list or tuple.

    See also: ``array``, ``asarray``, ``astype``.

    >>> jnp.copy(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    check_arraylike("copy", a)
    return array(a, copy=True, order=order)


def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False,
           device: Any = None) -> Array:
    """``x`` converted to ``dtype``.

    Floats become integers towards zero; those out of range become the nearest integer of the dtype,
    and NaN 0, where NumPy's result is undefined. Integers wrap around. Complex numbers lose their
    imaginary parts, with a warning.

    Args:
      x: an array; a method of arrays does the same.
      dtype: the new one; None: the default float.
      copy: whether the result is in memory of its own even where the dtype is that of ``x``.
      device: the device or sharding that the result lies on; None: the default device.

    Returns:
      An array of the shape of ``x``.

    See also: ``asarray``, ``result_type``, ``lax.convert_element_type``,
    ``lax.bitcast_convert_type``.

    >>> jnp.astype(jnp.array([1.7, -1.7]), jnp.int32)
    Array([ 1, -1], dtype=int32)
    """
    check_arraylike("astype", x)
    wanted = (dtypes.canonical(dtypes.float64) if dtype is None
              else dtypes.argument(dtype, "astype"))
    x = as_array(x)
    check_device(x, x, device)
    if x.dtype == wanted and not x.weak_type:
        return on_device(copy_p.bind(x) if copy else x, device)
    if dtypes.is_key(x.dtype) != dtypes.is_key(wanted):
        raise TypeError(f"cannot convert between {x.dtype} and {wanted}")
    if wanted == dtypes.bool_ and dtypes.is_complex(x.dtype):
        # Not only the real part, which lax.convert_element_type takes.
        return on_device(ne_p.bind(x, constant(0, x.dtype)), device)
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(wanted):
        warnings.warn(
            "Casting from complex to real dtypes will soon raise a ValueError. Please first use "
            "jnp.real or jnp.imag to take the real/imaginary component of your input.",
            DeprecationWarning, stacklevel=3)
    return on_device(convert_element_type(x, wanted), device)


# --- constants ------------------------------------------------------------------------------------

def eager(device: Any) -> Any:
    """A constant's placement; a single device is ignored in a program, which has its own."""
    return None if isinstance(device, (Device, SingleDeviceSharding)) and is_staging() else device


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
            element(fill_value, own) if fill_value.__class__ is int else cast(fill_value, own))
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
