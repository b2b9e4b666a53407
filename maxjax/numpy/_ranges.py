"""Ranges, grids and identity matrices."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.dimensions import Dimension, broadcast_shapes, is_dimension, larger, size_index
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives import joining, layout
from maxjax._primitives.arithmetic import (
    abs_p,
    add_p,
    complex_p,
    floor_p,
    imag_p,
    mul_p,
    real_p,
)
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.comparison import eq, select
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import iota_p, zeros_like
from maxjax._primitives.layout import reshape
from maxjax._primitives.transcendental import log_p
from maxjax._runtime.operand_devices import check_can_go
from maxjax.lax._conversion import convert_element_type as lax_convert_element_type
from maxjax.lax._operands import canonical_axis
from maxjax.numpy import _whole_rules as rules
from maxjax.numpy._at_once import at_once
from maxjax.numpy._filled import zeros
from maxjax.numpy._placement import eager, on_device
from maxjax.numpy._promotion import (
    as_array,
    broadcast_to,
    canonical_shape,
    cast,
    check_arraylike,
    concrete,
    constant,
    inexact_dtype,
    resolve,
    shape_of,
    type_of,
)
from maxjax.numpy._whole import whole

__all__ = ["arange", "eye", "geomspace", "identity", "indices", "linspace", "logspace", "meshgrid"]

_NO_BOOL = ("iota does not accept dtype bool. Accepted dtypes are subtypes of integer, "
            "complexfloating, floating.")


def iota(dtype: Any, size: int) -> Array:
    """0, 1, ..., size - 1."""
    return iota_p.bind(dtype=dtype, shape=(size,), dimension=0)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: DTypeLike | None = None, *,
           device: Any = None, out_sharding: Any = None) -> Array:
    """Values from ``start`` up to, but excluding, ``stop`` (from 0, given one argument) by
    ``step``.

    The number of values is the ceiling of ``(stop - start) / step``; with a fraction as step
    rounding may add or lose the last one, for which ``linspace`` is the remedy.

    Args:
      start: the first value; the end, where it is the only argument.
      stop: the end, which is not reached.
      step: the distance between values; 1 by default, and negative to count down.
      dtype: None: int32 for integers, else float32 (64 bits if enabled).
      device: the device or sharding that the result lies on; None: the default device.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of one dimension; empty if ``stop`` is not beyond ``start``.

    Raises:
      ConcretizationTypeError: an argument is traced: the size would depend on its value.
      ZeroDivisionError: ``step`` is 0 (``OverflowError`` if it is NumPy's or an array's).
      TypeError: the dtype is bool, and there are more than two values.

    See also: ``linspace``, ``lax.iota``, ``meshgrid``, ``indices``.

    >>> jnp.arange(1, 8, 3)
    Array([1, 4, 7], dtype=int32)
    >>> jnp.arange(2.5)
    Array([0., 1., 2.], dtype=float32)
    """
    name = "stop" if stop is None and step is None else "start"
    values = [start, stop, step]
    for position, (argument, given) in enumerate(
            zip((name, "stop", "step"), (start, stop, step), strict=True)):
        if given is None:
            continue
        value = values[position] = concrete(
            given, f"It arose in the jnp.arange argument '{argument}'")
        if not isinstance(value, Array) and not hasattr(value, "dtype") and not isinstance(
                value, (bool, int, float, complex, Dimension)):
            raise TypeError("arange requires ndarray, scalar, or None arguments, got "
                            f"{type(value)} at position {position}.")
        if getattr(value, "shape", ()):
            raise ValueError(f"jax.numpy.arange: arguments must be scalars; got {argument}={value}")
        if isinstance(value, np.ndarray) and not isinstance(given, Array):
            values[position] = value[()]
        if dtypes.is_complex(type_of(value)[0]):
            raise ValueError("Passing complex start/stop/step to jnp.arange is no longer supported "
                             "starting in JAX v0.10.0.")
    if start is stop is step is None:
        raise TypeError("must be real number, not NoneType")
    if dtype is not None:
        own = dtypes.argument(dtype, "arange")
    else:
        types = [type_of(original) for original in (start, stop, step) if original is not None]
        own = dtypes.promote(tuple(types))[0]
    if own == dtypes.bool_:
        raise TypeError(_NO_BOOL)
    first, last, by = values
    if last is None:
        first, last = 0, first
    if any(map(is_dimension, values)):
        size = _symbolic_count(first, last, 1 if by is None else by)
    else:
        size = max(0, math.ceil(_count(first, last, by)))
    if first == 0 and (by is None or by == 1):
        return on_device(iota(own, size), device, out_sharding)
    # With a step narrow floats round once, at the end; without one they count in their own steps.
    narrow = dtypes.is_floating(own) and own.itemsize < 4
    wide = dtypes.float32 if narrow and by is not None else own
    line = iota(wide, size)
    if by is not None and by != 1:
        line = mul_p.bind(_element(by, wide), line)
    line = add_p.bind(_element(first, wide), line)
    return on_device(cast(line, own), device, out_sharding)


def _count(first: Any, last: Any, by: Any) -> Any:
    """How many steps there are from one to the other, not rounded: computed in the arguments' own
    dtypes, in which NumPy's and JAX's scalars round and wrap around."""
    if by is None and first == 0:
        return last
    distance = _in_common_dtype(operator.sub, last, first)
    return distance if by is None else _in_common_dtype(operator.truediv, distance, by)


def _in_common_dtype(operation: Any, left: Any, right: Any) -> Any:
    """An operation on two scalars: NumPy's, and where one of them was an array, which is an
    ``ndarray`` here, in the dtype that arrays promote to."""
    if not isinstance(left, np.ndarray) and not isinstance(right, np.ndarray):
        return operation(left, right)
    common = dtypes.promote((type_of(left), type_of(right)))[0]
    if operation is operator.truediv:
        common = inexact_dtype(common)
    with np.errstate(all="ignore"):
        return np.asarray(operation(*(np.asarray(x).astype(common) for x in (left, right))))


def _symbolic_count(first: Any, last: Any, by: Any) -> Any:
    """How many steps there are where one of the arguments is a dimension."""
    first_, last_, by_ = map(_number, (first, last, by))
    if not all(isinstance(value, (int, Dimension)) for value in (first_, last_, by_)):
        raise ValueError(
            "In arange with non-constant arguments all of start, stop, and step must be either "
            f"dimension expressions or integers: start={first}, stop={last}, step={by}")
    distance, stride = (last_ - first_, by_) if by_ > 0 else (first_ - last_, -by_)
    return larger(0, (distance + stride - 1) // stride)


def _number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _element(value: Any, dtype: Any) -> Any:
    """A scalar as an element of a range: integers out of the dtype's range wrap around."""
    if value.__class__ in (int, float) and -2**31 <= value < 2**31 or is_dimension(value):
        return constant(value, dtype)
    return lax_convert_element_type(value, dtype)


def _interval_dtype(start: Any, stop: Any, dtype: Any, name: str) -> tuple[Any, Any]:
    """(the dtype to compute in, the dtype of the result)."""
    if dtype is not None:
        dtype = dtypes.argument(dtype, name)
    common = dtypes.promote((type_of(start), type_of(stop)))[0]
    common = inexact_dtype(common)
    result = common if dtype is None else dtype
    return dtypes.common(common, result) if dtypes.is_inexact(result) else common, result


@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
             retstep: Literal[False] = False, dtype: DTypeLike | None = None, axis: int = 0, *,
             device: Any = None) -> Array: ...
@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int, endpoint: bool, retstep: Literal[True],
             dtype: DTypeLike | None = None, axis: int = 0, *, device: Any = None
             ) -> tuple[Array, Array]: ...
@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True, *,
             retstep: Literal[True], dtype: DTypeLike | None = None, axis: int = 0,
             device: Any = None) -> tuple[Array, Array]: ...
@overload
def linspace(start: ArrayLike, stop: ArrayLike, num: int = 50, endpoint: bool = True,
             retstep: bool = False, dtype: DTypeLike | None = None, axis: int = 0, *,
             device: Any = None) -> Array | tuple[Array, Array]: ...


@at_once
def linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False,
             dtype: DTypeLike | None = None, axis: int = 0, *, device: Any = None) -> Any:
    """``num`` evenly spaced values from ``start`` to ``stop``, along a new axis.

    Args:
      start, stop: the first and the last value: scalars, or arrays that broadcast, for many ranges
        at once.
      num: how many; a Python int, known while tracing. ``start`` and ``stop`` may be traced.
      endpoint: whether ``stop`` is the last value; otherwise the one after it.
      retstep: also return the distance between values.
      dtype: None: a float dtype. Integers are rounded down.
      axis: where the new axis stands in the result.
      device: the device or sharding that the result lies on; None: the default device.

    Returns:
      An array of ``num`` values along ``axis``, or with ``retstep`` the pair of it and the step.

    Raises:
      ValueError: ``num`` is negative.
      TypeError: ``num`` is no integer.

    See also: ``arange``, ``logspace``, ``geomspace``.

    >>> jnp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    >>> jnp.linspace(0, 10, 4, endpoint=False, retstep=True)
    (Array([0. , 2.5, 5. , 7.5], dtype=float32), Array(2.5, dtype=float32))
    """
    num = size_index(concrete(num, "'num' argument of jnp.linspace"))
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    check_arraylike("linspace", start, stop)
    result = (inexact_dtype(dtypes.promote((type_of(start), type_of(stop)))[0]) if dtype is None
              else dtypes.argument(dtype, "linspace"))
    compute = inexact_dtype(result)
    if device is not None:
        check_can_go(start, device, "start of _linspace")
        check_can_go(stop, device, "stop of _linspace")
    start, stop = (as_array(cast(x, compute)) for x in (start, stop))
    shape = broadcast_shapes(start.shape, stop.shape)
    delta = as_array(constant(np.nan, compute))
    if num > 1:
        delta = (stop - start) / constant(num - bool(endpoint), compute)
    elif num == 1 and not endpoint:
        delta = stop - start
    start, stop = (broadcast_to(x, shape) for x in (start, stop))
    if num > 1:
        many = isinstance(num, int) and num >= _MANY
        interpolate = functools.partial(_interpolated_at_once if many else _interpolated,
                                        num=num, endpoint=bool(endpoint))
        if dtypes.is_complex(compute):
            out = complex_p.bind(*(interpolate(part.bind(start), part.bind(stop))
                                   for part in (real_p, imag_p)))
        else:
            wide = dtypes.float32 if compute.itemsize < 4 else compute
            out = interpolate(*(convert_element_type(x, wide) for x in (start, stop)))
    elif num == 1:
        out = reshape(start, (1, *shape))
    else:
        out = zeros((0, *shape), compute)
    if dtypes.is_integer(result) and dtypes.is_floating(compute):
        out = floor_p.bind(out)
    out = convert_element_type(out, result)
    if not -out.ndim <= axis < out.ndim:
        raise IndexError(f"axis {axis} is out of bounds for a result of dimension {out.ndim}")
    out = layout.move_axis(out, 0, canonical_axis(axis, out.ndim))
    out = on_device(out, device)
    return (out, delta) if retstep else out


def _interpolated(start: Array, stop: Array, *, num: int, endpoint: bool) -> Array:
    """``num`` values from ``start`` to ``stop``, real and of one shape, along a leading axis.

    ``start + (stop - start) * position / steps``: a value that a float represents exactly is not
    rounded, unless the product is too long for one. So counts of a histogram are right at its
    edges. Halving the bounds and using powers of two below ``1 / steps`` prevents overflow.
    """
    steps = num - endpoint
    dtype, wide = start.dtype, (1, *start.shape)
    half = constant(0.5, dtype)
    scale = 0.5 ** steps.bit_length() if isinstance(steps, int) else 1
    position = reshape(iota(dtype, steps), (steps, *(1,) * start.ndim)) * constant(scale, dtype)
    first, last = reshape(start, wide) * half, reshape(stop, wide) * half
    # From an infinity nothing leads away: the difference of two would be NaN.
    from_infinity = eq(abs_p.bind(first), constant(np.inf, dtype))
    origin = select(from_infinity, first, zeros_like(first))
    out = (first + (last - origin) * position / constant(steps * scale, dtype)) / half
    return joining.concatenate([out, reshape(stop, wide)], 0) if endpoint else out


_MANY = 16384     # the number of values from which a single NumPy rule is faster
_interpolated_at_once = whole("linspace", rules.linspace)(_interpolated)


@at_once
def logspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0,
             dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """Powers of ``base`` with evenly spaced exponents from ``start`` to ``stop``.

    Args:
      start, stop: exponents of the first and the last value; scalars or arrays that broadcast.
      num: how many; a Python int.
      endpoint: whether ``stop`` is the last exponent.
      base: the base, a scalar or an array that broadcasts.
      dtype: None: a float dtype. Integers are rounded down.
      axis: where the new axis stands in the result.

    Returns:
      An array of ``num`` values along ``axis``.

    Raises:
      ValueError: ``num`` is negative.

    See also: ``linspace``, ``geomspace``, ``arange``.

    >>> jnp.logspace(0, 3, 4, base=2)
    Array([1., 2., 4., 8.], dtype=float32)
    """
    check_arraylike("logspace", start, stop)
    compute, result = _interval_dtype(start, stop, dtype, "logspace")
    exponents = linspace(start, stop, num, endpoint, dtype=compute, axis=axis)
    return convert_element_type(as_array(cast(base, compute)) ** exponents, result)


@at_once
def geomspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True,
              dtype: DTypeLike | None = None, axis: int = 0) -> Array:
    """``num`` values from ``start`` to ``stop`` in geometric progression.

    Args:
      start, stop: the first and the last value, of one sign; scalars or arrays that broadcast.
      num: how many; a Python int.
      endpoint: whether ``stop`` is the last value.
      dtype: None: a float dtype.
      axis: where the new axis stands in the result.

    Returns:
      An array of ``num`` values along ``axis``.

    Raises:
      ValueError: ``num`` is negative.

    See also: ``logspace``, ``linspace``, ``arange``.

    >>> jnp.geomspace(1, 1000, 4).round()
    Array([   1.,   10.,  100., 1000.], dtype=float32)
    """
    check_arraylike("geomspace", start, stop)
    compute, result = _interval_dtype(start, stop, dtype, "geomspace")
    start, stop = (as_array(cast(x, compute)) for x in (start, stop))
    from_one = log_p.bind(stop / start) / constant(math.log(10), compute)
    out = start * logspace(0.0, from_one, num, endpoint, dtype=compute, axis=0)
    out = layout.move_axis(out, 0, canonical_axis(axis, out.ndim))
    return convert_element_type(out, result)


@at_once
def eye(N: Any, M: Any = None, k: Any = 0, dtype: Any = None, *, device: Any = None) -> Array:
    """Ones on the ``k``-th diagonal of an (N, M) matrix, zeros elsewhere.

    Args:
      N: the number of rows.
      M: the number of columns; None: ``N``.
      k: which diagonal: above the main one if positive, below if negative.
      dtype: None: the default float.
      device: the device or sharding that the result lies on; None: the default device.

    Returns:
      An array of shape ``(N, M)``.

    Raises:
      ValueError: a size is negative.

    See also: ``identity``, ``diag``, ``tri``.

    >>> jnp.eye(2, 3, k=1, dtype=int)
    Array([[0, 1, 0],
           [0, 0, 1]], dtype=int32)
    """
    dtype = dtypes.canonical(dtypes.float64) if dtype is None else dtypes.argument(dtype, "eye")
    (rows,) = canonical_shape((N,))
    (columns,) = (rows,) if M is None else canonical_shape((M,))
    if rows < 0 or columns < 0:
        raise ValueError(f"negative dimensions are not allowed, got {rows} and {columns}")
    k, = resolve("eye", (int(k) if isinstance(k, bool) else k,))
    if not dtypes.is_integer(type_of(k)[0]) or shape_of(k):
        raise ValueError(f"k must be a scalar integer; got {k}")
    row = iota_p.bind(dtype=dtypes.int32, shape=(rows, columns), dimension=0)
    column = iota_p.bind(dtype=dtypes.int32, shape=(rows, columns), dimension=1)
    if isinstance(k, int):      # all diagonals beyond the corners are equivalent
        k = min(max(k, -rows), columns)
    offset = cast(k, dtypes.int32)
    return on_device(convert_element_type((row + offset) == column, dtype), eager(device))


@at_once
def identity(n: Any, dtype: DTypeLike | None = None) -> Array:
    """The (n, n) identity matrix.

    Args:
      n: the number of rows and columns.
      dtype: None: the default float.

    Returns:
      An array of shape ``(n, n)``.

    Raises:
      ValueError: ``n`` is negative.
      TypeError: ``n`` is no integer.

    See also: ``eye``, ``diag``.

    >>> jnp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False,
             indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinate matrices of coordinate vectors.

    Args:
      xi: vectors ``(N1,)``, ``(N2,)`` and so on; a scalar is refused, unlike NumPy's.
      copy: must be True: the results are no views.
      sparse: keep size 1 along the dimensions of the other vectors, which broadcasting makes
        equivalent.
      indexing: "ij": the dimensions in order; "xy": the first two exchanged, as for pictures.

    Returns:
      A list of an array for each vector, of shape ``(N1, N2, ...)`` ("xy": ``(N2, N1, ...)``).

    Raises:
      ValueError: an argument has another number of dimensions than one, ``copy`` is False, or there
        is no such ``indexing``.

    See also: ``indices``, ``arange``, ``linspace``, ``ix_``.

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
        raise ValueError("Arguments to jax.numpy.meshgrid must be 1D, got shapes "
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
    return tuple(result)


@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None,
            sparse: Literal[False] = False) -> Array: ...
@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, *, sparse: Literal[True]
            ) -> tuple[Array, ...]: ...
@overload
def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
            ) -> Array | tuple[Array, ...]: ...


def indices(dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False) -> Any:
    """The indices of a grid: one array for each dimension (stacked unless ``sparse``).

    Args:
      dimensions: the sizes of the grid.
      dtype: None: the default integer type.
      sparse: keep size 1 along the other dimensions.

    Returns:
      An array ``(n, *dimensions)``, or a tuple of n arrays.

    See also: ``meshgrid``, ``ix_``, ``lax.broadcasted_iota``.

    >>> jnp.indices((2, 3))[1]
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    dtype = dtypes.canonical(dtypes.int64) if dtype is None else dtypes.argument(dtype, "indices")
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
    return joining.concatenate([reshape(g, (1, *shape)) for g in grids], 0)
