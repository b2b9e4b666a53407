"""Arrays from data, constants and ranges."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._higher_order.constraints import resharded
from maxjax._ir.dimensions import Dimension, broadcast_shapes, is_dimension, size_index
from maxjax._ir.trace import Array, Tracer, base_trace
from maxjax._ir.types import ShapedArray
from maxjax._primitives import shape as shape_primitives
from maxjax._primitives.comparison import ne_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.shape import broadcast_in_dim, copy_p, iota_p, reshape
from maxjax._primitives.sharding import freed
from maxjax._primitives.transcendental import log_p
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.devices import Device
from maxjax._runtime.pending import leaf_aval
from maxjax._runtime.placement import device_put
from maxjax._transforms.vmap import vmap
from maxjax.lax._conversion import lying_like
from maxjax.numpy import _whole_rules as rules
from maxjax.numpy._promotion import (
    PYTHON_SCALARS,
    as_array,
    broadcast_to,
    canonical_axis,
    canonical_dtype,
    canonical_shape,
    cast,
    check_arraylike,
    concrete,
    constant,
    inexact_dtype,
    shape_of,
    type_of,
)
from maxjax.numpy._whole import whole

__all__ = [
    "arange", "array", "asarray", "astype", "copy", "empty", "empty_like", "eye", "from_dlpack",
    "frombuffer", "fromfile", "fromfunction", "fromiter", "fromstring", "full", "full_like",
    "geomspace", "identity", "indices", "linspace", "load", "logspace", "meshgrid", "ones",
    "ones_like", "save", "savez", "zeros", "zeros_like",
]


def array(object: Any, dtype: Any = None, *args: Any, copy: bool = True,
          order: str | None = "K", ndmin: int = 0, device: Any = None,
          out_sharding: Any = None) -> Array:
    """An array of ``object``: a number, nested lists of numbers or arrays, or an array.

    Python numbers alone give weakly typed arrays. The data of a NumPy array are copied.

    Raises:
      TypeError, ValueError: the object holds no numbers, or its rows differ in length.
      OverflowError: a Python integer does not fit the dtype.

    >>> jnp.array([[1, 2], [3, 4.5]])
    Array([[1. , 2. ],
           [3. , 4.5]], dtype=float32)
    >>> jnp.array(1).weak_type
    True
    """
    if args:        # NumPy's positional form
        keywords: tuple[Any, ...] = (copy, order, ndmin)
        copy, order, ndmin = args + keywords[len(args):]
    _check_order(order)
    if object is None:
        raise ValueError("None is not a valid value for jnp.array")
    wanted = None if dtype is None else canonical_dtype(dtype, "array")
    result = _array(object, wanted, bool(copy))
    if ndmin > result.ndim:
        result = reshape(result, (1,) * (ndmin - result.ndim) + result.shape)
    return on_device(result, device, out_sharding)


def asarray(a: Any, dtype: Any = None, order: str | None = None, *, copy: bool | None = None,
            device: Any = None, out_sharding: Any = None) -> Array:
    """As ``array``; a maxjax array of the right dtype is returned as it is.

    >>> jnp.asarray([1, 2], dtype=jnp.float16)
    Array([1., 2.], dtype=float16)
    """
    if a is None:
        raise ValueError("None is not a valid value for jnp.array")
    _check_order(order)
    wanted = None if dtype is None else canonical_dtype(dtype, "asarray")
    return on_device(_array(a, wanted, bool(copy)), device, out_sharding)


def _check_order(order: str | None) -> None:
    if order is not None and order != "K":
        raise NotImplementedError(f"Only implemented for order='K', got {order!r}.")


def on_device(x: Array, device: Any, out_sharding: Any = None) -> Array:
    """The array where it was asked for: on a device, or lying as a sharding says.

    Raises:
      ValueError: ``device`` is neither.
      TypeError: ``out_sharding`` is no NamedSharding or PartitionSpec.
    """
    if device is not None:
        if not isinstance(device, Device) and not hasattr(device, "device_set"):
            raise ValueError(f"device={device!r} must be a Device or a Sharding.")
        x = device_put(x, device)
    return x if out_sharding is None else resharded(freed(x), out_sharding)


def _array(value: Any, dtype: Any, copy: bool) -> Array:
    kind = value.__class__
    if kind in PYTHON_SCALARS:
        if dtype is None:
            return base_trace[0].operand(value)
        return ArrayImpl(ShapedArray((), dtype), _python_number(value, dtype))
    if isinstance(value, Array):
        if dtype is not None and (value.aval.dtype != dtype or value.aval.weak_type):
            return convert_element_type(value, dtype)
        return copy_p.bind(value) if copy else value
    if hasattr(value, "__jax_array__"):
        return _array(value.__jax_array__(), dtype, copy)
    if isinstance(value, (list, tuple)):
        return _of_sequence(value, dtype)
    if isinstance(value, (bytes, str)) or leaf_aval(value) is None:
        host = np.asarray(value)
        # random-key arrays and such are no business of NumPy's
        if not (host.dtype == np.bool_ or dtypes.is_numeric(host.dtype)):
            if dtype is not None and host.dtype.kind in "US" and not host.shape:
                return _array(np.asarray(host.astype(dtype)), dtype, copy)
            name = "object" if host.dtype == np.dtype(np.object_) else host.dtype
            raise TypeError(
                f"Value {value!r} with dtype {name} is not a valid JAX array type. Only arrays "
                "of numeric types are supported by JAX.")
        value = host
    if dtype is None:
        return base_trace[0].operand(value)
    if isinstance(value, (np.ndarray, np.generic)):     # values are NumPy's: so are its casts
        with np.errstate(invalid="ignore", over="ignore"):
            host = np.asarray(value).astype(dtype)
        return ArrayImpl(ShapedArray(host.shape, dtype), host)
    return convert_element_type(base_trace[0].operand(value), dtype)


def _python_number(value: Any, dtype: Any) -> np.ndarray:
    """A Python number in a dtype.

    Raises:
      TypeError, ValueError, OverflowError: Python's own conversion refuses, or NumPy an integer.
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
    if dtype is None:
        dtype = _common_dtype(leaves)
    if any(isinstance(leaf, Array) for leaf in leaves):
        return _stacked(value, dtype)
    if all(leaf.__class__ in PYTHON_SCALARS for leaf in leaves):
        host = np.array(value, dtype)       # NumPy raises where an integer does not fit
    else:
        host = np.array(value)
        if host.dtype == np.object_ or not (
                host.dtype == np.bool_ or dtypes.is_numeric(host.dtype)):
            raise TypeError(
                f"Value {value!r} with dtype {host.dtype} is not a valid JAX array type. Only "
                "arrays of numeric types are supported by JAX.")
        host = host.astype(dtype)
    return ArrayImpl(ShapedArray(host.shape, dtype), host)


def _common_dtype(leaves: list[Any]) -> Any:
    if not leaves:
        return dtypes.canonical(dtypes.float64)
    kinds = {leaf.__class__ for leaf in leaves}
    if len(kinds) == 1 and (kind := next(iter(kinds))) in PYTHON_SCALARS:
        return dtypes.python_scalar(kind)[0]
    if None.__class__ in kinds:
        raise ValueError("None is not a valid value for jnp.array")
    types = {type_of(np.asarray(leaf) if not hasattr(leaf, "shape") and not isinstance(
        leaf, (bool, int, float, complex)) else leaf) for leaf in leaves}
    return dtypes.promote(tuple(types))[0]


def _stacked(value: Any, dtype: Any) -> Array:
    if not isinstance(value, (list, tuple)):
        return _array(value, dtype, False)
    if not value:
        return zeros((0,), dtype)
    parts = [_stacked(item, dtype) for item in value]
    shapes = [part.shape for part in parts]
    if any(shape != shapes[0] for shape in shapes):
        raise TypeError("Cannot concatenate arrays with different shapes: the items of a list "
                        f"have shapes {', '.join(map(str, shapes))}.")
    return shape_primitives.concatenate(
        [reshape(part, (1, *part.shape)) for part in parts], 0)


def copy(a: Any, order: str | None = None) -> Array:
    """A copy of ``a``.

    >>> jnp.copy(jnp.arange(3))
    Array([0, 1, 2], dtype=int32)
    """
    check_arraylike("copy", a)
    return array(a, copy=True, order=order)


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Array:
    """``x`` converted to ``dtype``.

    >>> jnp.astype(jnp.array([1.7, -1.7]), jnp.int32)
    Array([ 1, -1], dtype=int32)
    """
    check_arraylike("astype", x)
    wanted = (dtypes.canonical(dtypes.float64) if dtype is None
              else canonical_dtype(dtype, "astype"))
    x = as_array(x)
    if x.dtype == wanted and not x.weak_type:
        return on_device(copy_p.bind(x) if copy else x, device)
    if dtypes.is_key(x.dtype) != dtypes.is_key(wanted):
        raise TypeError(f"cannot convert between {x.dtype} and {wanted}")
    if wanted == dtypes.bool_ and dtypes.is_complex(x.dtype):
        # Not the real part alone, which is what lax.convert_element_type takes.
        return on_device(ne_p.bind(x, constant(0, x.dtype)), device)
    return on_device(convert_element_type(x, wanted), device)


# --- constants ------------------------------------------------------------------------------------

_ZERO: dict[Any, Any] = {}
_ONE: dict[Any, Any] = {}


def _filled(shape: Any, cache: dict[Any, Any], value: int, dtype: Any, name: str) -> Array:
    shape = canonical_shape(shape)
    if dtype is None:
        dtype = dtypes.canonical(dtypes.float64)
    else:
        dtype = canonical_dtype(dtype, name)
    scalar = cache.get(dtype)
    if scalar is None:
        scalar = cache[dtype] = np.asarray(value).astype(dtype)[()]
    return _broadcast_scalar(scalar, shape)


def _broadcast_scalar(scalar: Any, shape: tuple[int, ...]) -> Array:
    if not shape:
        return base_trace[0].operand(scalar)
    if any(size < 0 for size in shape):
        raise TypeError("broadcast_in_dim shape must have every element be nonnegative, got "
                        f"{shape}.")
    return broadcast_in_dim(scalar, shape, ())


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """An array of zeros (float32 by default).

    >>> jnp.zeros((2, 3))
    Array([[0., 0., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    return on_device(_filled(shape, _ZERO, 0, dtype, "zeros"), device, out_sharding)


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """An array of ones (float32 by default).

    >>> jnp.ones((2, 2), dtype=int)
    Array([[1, 1],
           [1, 1]], dtype=int32)
    """
    return on_device(_filled(shape, _ONE, 1, dtype, "ones"), device, out_sharding)


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: Any = None) -> Array:
    """An array of zeros: memory that was not written cannot be seen.

    >>> jnp.empty((1, 2))
    Array([[0., 0.]], dtype=float32)
    """
    return on_device(_filled(shape, _ZERO, 0, dtype, "empty"), device, out_sharding)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None,
         out_sharding: Any = None) -> Array:
    """An array that holds ``fill_value`` everywhere; an array of values is broadcast.

    >>> jnp.full((2, 3), jnp.array([1, 2, 3]))
    Array([[1, 2, 3],
           [1, 2, 3]], dtype=int32)
    """
    check_arraylike("full", fill_value)
    wanted = None if dtype is None else canonical_dtype(dtype, "full")
    shape = canonical_shape(shape)
    if wanted is not None:
        _check_python_number(fill_value, wanted)
    return on_device(_full(shape, fill_value, wanted), device, out_sharding)


def _check_python_number(value: Any, dtype: Any) -> None:
    """Python's complex numbers do not become real ones."""
    if value.__class__ is complex and not (dtypes.is_complex(dtype) or dtype == dtypes.bool_):
        raise TypeError(f"a complex number cannot be converted to {dtype}: {value}")


def _full(shape: tuple[int, ...], fill_value: Any, dtype: Any) -> Array:
    own, weak = type_of(fill_value)
    if dtype is not None:
        own, weak = dtype, False
    fill = as_array(cast(fill_value, own, weak)) if weak else cast(fill_value, own)
    if not fill.shape and not isinstance(fill, Array):
        return _broadcast_scalar(fill, shape)
    _check_broadcast(fill.shape, shape)
    return broadcast_to(fill, shape)


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
    if hasattr(a, "dtype") and hasattr(a, "shape"):     # ShapeDtypeStruct and its like too
        return a
    return as_array(a, name)


def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None, *,
              device: Any = None, out_sharding: Any = None) -> Array:
    """An array of the shape and dtype of ``a``, but for those given, holding ``fill_value``.

    >>> jnp.full_like(jnp.arange(3), 7)
    Array([7, 7, 7], dtype=int32)
    """
    a = _like(a, "full_like")
    check_arraylike("full_like", fill_value)
    weak = dtype is None and getattr(a, "weak_type", False)
    wanted = dtypes.canonical(a.dtype) if dtype is None else canonical_dtype(dtype, "full_like")
    size = tuple(a.shape) if shape is None else canonical_shape(shape)
    if weak and not getattr(fill_value, "shape", ()):
        result = broadcast_to(as_array(cast(fill_value, wanted, True)), size)
    else:
        _check_python_number(fill_value, wanted)
        result = _full(size, fill_value, wanted)
    if device is None and out_sharding is None:
        return lying_like(result, a)
    return on_device(result, device, out_sharding)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None,
               out_sharding: Any = None) -> Array:
    """Zeros of the shape and dtype of ``a``, but for those given.

    >>> jnp.zeros_like(jnp.arange(3))
    Array([0, 0, 0], dtype=int32)
    """
    return full_like(_like(a, "zeros_like"), 0, dtype, shape, device=device,
                     out_sharding=out_sharding)


def ones_like(a: Any, dtype: Any = None, shape: Any = None, *, device: Any = None,
              out_sharding: Any = None) -> Array:
    """Ones of the shape and dtype of ``a``, but for those given.

    >>> jnp.ones_like(jnp.array([1.5, 2.5]))
    Array([1., 1.], dtype=float32)
    """
    return full_like(_like(a, "ones_like"), 1, dtype, shape, device=device,
                     out_sharding=out_sharding)


def empty_like(prototype: Any, dtype: Any = None, shape: Any = None, *,
               device: Any = None) -> Array:
    """As ``zeros_like``.

    >>> jnp.empty_like(jnp.arange(2))
    Array([0, 0], dtype=int32)
    """
    return full_like(_like(prototype, "empty_like"), 0, dtype, shape, device=device)


# --- ranges ---------------------------------------------------------------------------------------

_NO_BOOL = ("iota does not accept dtype bool. Accepted dtypes are subtypes of integer, floating, "
            "complexfloating.")


def iota(dtype: Any, size: int) -> Array:
    """0, 1, ..., size - 1."""
    return iota_p.bind(dtype=dtype, shape=(size,), dimension=0)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None, *,
           device: Any = None, out_sharding: Any = None) -> Array:
    """``start`` up to, not including, ``stop`` (with one argument: 0 up to it) by ``step``.

    Raises:
      ConcretizationTypeError: an argument is traced: the size would depend on its value.

    >>> jnp.arange(1, 8, 3)
    Array([1, 4, 7], dtype=int32)
    >>> jnp.arange(2.5)
    Array([0., 1., 2.], dtype=float32)
    """
    name = "stop" if stop is None and step is None else "start"
    values = [start, stop, step]
    for position, (argument, value) in enumerate(
            zip((name, "stop", "step"), values, strict=True)):
        if value is None:
            continue
        value = values[position] = concrete(
            value, f"It arose in the jnp.arange argument '{argument}'")
        if not isinstance(value, Array) and not hasattr(value, "dtype") and not isinstance(
                value, (bool, int, float, complex, Dimension)):
            raise TypeError(f"arange requires ndarray or scalar arguments, got {type(value)} at "
                            f"position {position}.")
        if getattr(value, "shape", ()):
            raise ValueError(f"jnp.arange: arguments must be scalars; got {argument}={value}")
        if dtypes.is_complex(type_of(value)[0]):
            raise ValueError(f"jnp.arange: arguments must be real; got {argument}={value}")
    if dtype is not None:
        dtype = canonical_dtype(dtype, "arange")
    else:
        types = [type_of(original) for original in (start, stop, step) if original is not None]
        dtype = dtypes.promote(tuple(types))[0]
    if dtype == dtypes.bool_:
        raise TypeError(_NO_BOOL)
    first, last, by = values
    if last is None and by is None:
        first, last, by = 0, first, 1
    elif last is None:
        first, last = 0, first
    if by is None:
        by = 1
    if by == 0:
        raise ZeroDivisionError("division by zero")
    first_, last_, by_ = map(_number, (first, last, by))
    if any(map(is_dimension, (first, last, by))):
        size = max(0, -((first_ - last_) // by_))
    else:
        size = max(0, math.ceil((last_ - first_) / by_))
    line = iota(dtype, size)
    if by == 1 and first == 0:
        return on_device(line, device, out_sharding)
    return on_device(constant(first, dtype) + line * constant(by, dtype), device, out_sharding)


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _interval_dtype(start: Any, stop: Any, dtype: Any, name: str) -> tuple[Any, Any]:
    """(the dtype to compute in, the dtype of the result)."""
    if dtype is not None:
        dtype = canonical_dtype(dtype, name)
    common = dtypes.promote((type_of(start), type_of(stop)))[0]
    common = inexact_dtype(common)
    result = common if dtype is None else dtype
    return (dtypes.promote(((common, False), (result, False)))[0]
            if dtypes.is_inexact(result) else common), result


def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: Any = None, axis: int = 0, *, device: Any = None) -> Any:
    """``num`` values from ``start`` to ``stop`` at equal distances, along a new axis.

    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    >>> jnp.linspace(0, 10, 4, endpoint=False, retstep=True)
    (Array([0. , 2.5, 5. , 7.5], dtype=float32), Array(2.5, dtype=float32))
    """
    num = size_index(concrete(num, "'num' argument of jnp.linspace"))
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    check_arraylike("linspace", start, stop)
    compute, result = _interval_dtype(start, stop, dtype, "linspace")
    start, stop = (as_array(cast(x, compute)) for x in (start, stop))
    shape = broadcast_shapes(start.shape, stop.shape)
    start, stop = (broadcast_to(x, shape) for x in (start, stop))
    steps = num - 1 if endpoint else num
    delta = full(shape, np.nan, compute)
    if num > 1 or (num == 1 and not endpoint):
        delta = (stop - start) / constant(steps, compute)
        many = isinstance(num, int) and num >= _MANY
        interpolate = _interpolated_at_once if many else _interpolated
        out = interpolate(start, stop, num=num, endpoint=bool(endpoint))
    elif num == 1:
        out = reshape(start, (1, *shape))
    else:
        out = zeros((0, *shape), compute)
    if dtypes.is_integer(result) and dtypes.is_floating(compute):
        out = out // constant(1, compute)       # floor
    out = convert_element_type(out, result)
    if not -out.ndim <= axis < out.ndim:
        raise IndexError(f"axis {axis} is out of bounds for a result of dimension {out.ndim}")
    out = shape_primitives.move_axis(out, 0, canonical_axis(axis, out.ndim))
    out = on_device(out, device)
    return (out, delta) if retstep else out


def _interpolated(start: Array, stop: Array, *, num: int, endpoint: bool) -> Array:
    """``num`` values from ``start`` to ``stop``, of one shape, along a leading axis."""
    steps = num - endpoint
    dtype, real = start.dtype, dtypes.real_dtype(start.dtype)
    fraction = iota(real, steps) / constant(steps, real)
    fraction = reshape(fraction, (steps, *(1,) * start.ndim))
    fraction = convert_element_type(fraction, dtype)
    wide = (1, *start.shape)
    out = (reshape(start, wide) * (constant(1, dtype) - fraction)
           + reshape(stop, wide) * fraction)
    return shape_primitives.concatenate([out, reshape(stop, wide)], 0) if endpoint else out


_MANY = 16384     # values, from which on one NumPy rule pays
_interpolated_at_once = whole("linspace", rules.linspace)(_interpolated)


def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0,
             dtype: Any = None, axis: int = 0) -> Array:
    """Powers of ``base`` with exponents from ``start`` to ``stop`` at equal distances.

    >>> jnp.logspace(0, 3, 4, base=2)
    Array([1., 2., 4., 8.], dtype=float32)
    """
    check_arraylike("logspace", start, stop)
    compute, result = _interval_dtype(start, stop, dtype, "logspace")
    exponents = linspace(start, stop, num, endpoint, dtype=compute, axis=axis)
    return convert_element_type(as_array(cast(base, compute)) ** exponents, result)


def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None,
              axis: int = 0) -> Array:
    """``num`` values from ``start`` to ``stop`` in equal ratios.

    >>> jnp.geomspace(1, 1000, 4).round()
    Array([   1.,   10.,  100., 1000.], dtype=float32)
    """
    check_arraylike("geomspace", start, stop)
    compute, result = _interval_dtype(start, stop, dtype, "geomspace")
    start, stop = (as_array(cast(x, compute)) for x in (start, stop))
    from_one = log_p.bind(stop / start) / constant(math.log(10), compute)
    out = start * logspace(0.0, from_one, num, endpoint, dtype=compute, axis=0)
    out = shape_primitives.move_axis(out, 0, canonical_axis(axis, out.ndim))
    return convert_element_type(out, result)


def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None, *, device: Any = None) -> Array:
    """Ones on the ``k``-th diagonal of an (N, M) matrix, zeros elsewhere.

    >>> jnp.eye(2, 3, k=1, dtype=int)
    Array([[0, 1, 0],
           [0, 0, 1]], dtype=int32)
    """
    dtype = dtypes.canonical(dtypes.float64) if dtype is None else canonical_dtype(dtype, "eye")
    (rows,) = canonical_shape((N,))
    (columns,) = (rows,) if M is None else canonical_shape((M,))
    if rows < 0 or columns < 0:
        raise ValueError(f"negative dimensions are not allowed, got {rows} and {columns}")
    if not dtypes.is_integer(type_of(k)[0]) or shape_of(k):
        raise ValueError(f"k must be a scalar integer; got {k}")
    row = iota_p.bind(dtype=dtypes.int32, shape=(rows, columns), dimension=0)
    column = iota_p.bind(dtype=dtypes.int32, shape=(rows, columns), dimension=1)
    if isinstance(k, int):      # beyond the corners all diagonals are alike
        k = min(max(k, -rows), columns)
    offset = cast(k, dtypes.int32)
    return on_device(convert_element_type((row + offset) == column, dtype), device)


def identity(n: Any, dtype: Any = None) -> Array:
    """The (n, n) identity matrix.

    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False,
             indexing: str = "xy") -> list[Array]:
    """Coordinate matrices of coordinate vectors.

    >>> x, y = jnp.meshgrid(jnp.array([1, 2, 3]), jnp.array([10, 20]))
    >>> x + y
    Array([[11, 12, 13],
           [21, 22, 23]], dtype=int32)
    """
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    arrays = [as_array(x, "meshgrid", i) for i, x in enumerate(xi)]
    if any(x.ndim != 1 for x in arrays):
        raise ValueError("Arguments to jnp.meshgrid must be 1D, got shapes "
                         f"{[x.shape for x in arrays]}")
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[0], order[1] = 1, 0
    shape = [1 if sparse else arrays[i].shape[0] for i in order]
    result = []
    for position, x in enumerate(arrays):
        axis = order.index(position)
        sizes = list(shape)
        sizes[axis] = x.shape[0]
        result.append(broadcast_in_dim(x, tuple(sizes), (axis,)))
    return result


def indices(dimensions: Sequence[int], dtype: Any = None, sparse: bool = False) -> Any:
    """The indices of a grid: one array for each dimension (stacked unless ``sparse``).

    >>> jnp.indices((2, 3))[1]
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    dtype = dtypes.canonical(dtypes.int64) if dtype is None else canonical_dtype(dtype, "indices")
    shape = tuple(operator.index(concrete(d, "'dimensions' argument of jnp.indices()"))
                  for d in dimensions)
    if min(shape, default=0) < 0:
        raise TypeError("broadcast_in_dim shape must have every element be nonnegative, got "
                        f"{shape}.")
    if dtype == dtypes.bool_ and shape:
        raise TypeError(_NO_BOOL)
    grids = []
    for axis, size in enumerate(shape):
        sizes = (tuple(size if i == axis else 1 for i in range(len(shape))) if sparse else shape)
        grids.append(iota_p.bind(dtype=dtype, shape=sizes, dimension=axis))
    if sparse:
        return tuple(grids)
    if not grids:
        return zeros((0,), dtype)
    return shape_primitives.concatenate([reshape(g, (1, *shape)) for g in grids], 0)


# --- from elsewhere -------------------------------------------------------------------------------

def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array of another library, by DLPack.

    >>> jnp.from_dlpack(np.arange(3, dtype=np.float32))
    Array([0., 1., 2.], dtype=float32)
    """
    if isinstance(x, Tracer) or not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise TypeError("The array passed to from_dlpack must have __dlpack__ and "
                        f"__dlpack_device__ methods; got {type(x)}.")
    return on_device(array(np.from_dlpack(x)), device)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Array:
    """A one-dimensional array of the bytes of ``buffer``.

    >>> jnp.frombuffer(bytes([1, 0, 2, 0]), dtype=jnp.int16)
    Array([1, 2], dtype=int16)
    """
    return array(np.frombuffer(buffer, dtypes.as_dtype(dtype), count, offset))


def fromfile(*args: Any, **kwargs: Any) -> Array:
    """JAX does not have it, because reading a file is no pure function.

    Raises:
      NotImplementedError: always.

    >>> jnp.fromfile("data.bin")
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(
        "jnp.fromfile() is not implemented because it may be non-pure and thus unsafe for use "
        "with JIT and other JAX transformations. Consider using jnp.asarray(np.fromfile(...)) "
        "instead, although care should be taken if np.fromfile is used within jax "
        "transformations because of its potential side-effect of consuming the file object")


def fromiter(*args: Any, **kwargs: Any) -> Array:
    """JAX does not have it, because consuming an iterator is no pure function.

    Raises:
      NotImplementedError: always.

    >>> jnp.fromiter(range(3), int)
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(
        "jnp.fromiter() is not implemented because it may be non-pure and thus unsafe for use "
        "with JIT and other JAX transformations. Consider using jnp.asarray(np.fromiter(...)) "
        "instead, although care should be taken if np.fromiter is used within jax "
        "transformations because of its potential side-effect of consuming the iterable object")


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Array:
    """A one-dimensional array of the numbers in a text.

    >>> jnp.fromstring("1 2 3", sep=" ")
    Array([1., 2., 3.], dtype=float32)
    """
    return array(np.fromstring(string, dtypes.as_dtype(dtype), count, sep=sep))


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float,
                 **kwargs: Any) -> Any:
    """``function`` of the index arrays of a grid of ``shape``.

    >>> jnp.fromfunction(lambda row, column: 10 * row + column, (2, 3), dtype=int)
    Array([[ 0,  1,  2],
           [10, 11, 12]], dtype=int32)
    """
    sizes = canonical_shape(shape)
    lines = [iota(canonical_dtype(dtype, "fromfunction"), size) for size in sizes]
    for axis in reversed(range(len(sizes))):
        axes = tuple(0 if i == axis else None for i in range(len(sizes)))
        function = _mapped(function, axes)
    return function(*lines, **kwargs)


def _mapped(function: Callable[..., Any], axes: tuple[int | None, ...]) -> Callable[..., Any]:
    """``function`` over one of its positional arguments, and all of its keyword arguments."""
    return vmap(function, in_axes=axes)


save = np.save
savez = np.savez


def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """An array from a file that ``save`` has written.

    >>> import io
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(3))
    >>> _ = file.seek(0)
    >>> jnp.load(file)
    Array([0, 1, 2], dtype=int32)
    """
    value = np.load(file, *args, **kwargs)
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind == "V":     # NumPy's files do not know its name
        if value.dtype.itemsize != 2:
            return value
        value = value.view(dtypes.bfloat16)
    return array(value)


