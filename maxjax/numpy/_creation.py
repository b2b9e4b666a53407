"""Arrays from data, and copies."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.refs import Ref, no_array
from maxjax._ir.runtime import installed
from maxjax._ir.staging import is_staging, staged
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives.comparison import ne_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.layout import copy_p
from maxjax._runtime.outside_values import leaf_aval, not_numeric
from maxjax._transforms.jvp import JVPTracer
from maxjax.lax._conversion import of_numpy
from maxjax.numpy._filled import zeros
from maxjax.numpy._joining import joined
from maxjax.numpy._placement import check_device, on_device
from maxjax.numpy._promotion import PYTHON_SCALARS, as_array, check_arraylike, constant, type_of
from maxjax.numpy._shape import expand_dims

__all__ = ["array", "asarray", "astype", "copy"]


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
    if isinstance(object, Ref):
        raise no_array(object, "jnp.array")
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
    if isinstance(a, Ref):
        raise no_array(a, "jnp.asarray")
    result = _array(a, wanted, bool(copy))
    check_device(a, result, device)
    return on_device(result, device, out_sharding)


def _check_order(order: str | None) -> None:
    if order is not None and order != "K":
        raise NotImplementedError(f"Only implemented for order='K', got {order!r}.")


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
    if isinstance(value, (np.ndarray, np.generic)):
        return of_numpy(value, dtype)
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
