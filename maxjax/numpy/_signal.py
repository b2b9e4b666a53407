"""Differences, integrals, interpolation, convolution, windows."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax import lax
from maxjax._base import dtypes
from maxjax._higher_order.named_calls import named
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import layout, slicing
from maxjax._primitives.convert import convert_element_type
from maxjax.lax._operands import canonical_axis
from maxjax.numpy import _creation as creation
from maxjax.numpy import _cumulative as cumulative
from maxjax.numpy import _division as division
from maxjax.numpy import _filled as filled
from maxjax.numpy import _joining as joining
from maxjax.numpy import _ranges as ranges
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _repeating as repeating
from maxjax.numpy import _rounding as rounding
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _sorting as sorting
from maxjax.numpy import _special_functions as special_functions
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._at_once import at_once
from maxjax.numpy._complex import conj
from maxjax.numpy._promotion import (
    apart,
    as_array,
    canonical_axes,
    cast,
    check_arraylike,
    concrete,
    promote_dtypes,
    promote_inexact,
    promote_shapes,
    resolve,
)
from maxjax.numpy._where import as_bool, where

__all__ = [
    "bartlett", "blackman", "convolve", "correlate", "diff", "ediff1d", "gradient", "hamming",
    "hanning", "interp", "kaiser", "packbits", "trapezoid", "trim_zeros", "unpackbits",
    "unwrap",
]


def _part(x: Array, axis: int, start: int, stop: int, step: int = 1) -> Array:
    return slicing.slice_in_dim(x, start, stop, axis, step)


# --- differences and integrals --------------------------------------------------------------------

@at_once
def diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: Any = None,
         append: Any = None) -> Array:
    """The ``n``-th differences of adjacent elements along an axis.

    Args:
      a: an array of one dimension or more; booleans give where they change.
      n: how often.
      axis: along which.
      prepend, append: values before and after: an array, or a scalar for a slice of them.

    Returns:
      An array of ``a``'s dtype, ``n`` shorter along the axis.

    Raises:
      ValueError: ``n`` is negative, ``a`` is a scalar, or there is no such axis.

    See also: ``ediff1d``, ``gradient``, ``cumsum``.

    >>> jnp.diff(jnp.array([1, 4, 9, 16]))
    Array([3, 5, 7], dtype=int32)
    >>> jnp.diff(jnp.array([1, 4, 9, 16]), n=2)
    Array([2, 2], dtype=int32)
    """
    x = as_array(a, "diff")
    n = operator.index(concrete(n, "'n' argument of jnp.diff()"))
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if n == 0:
        return apart(x)
    if x.ndim == 0:
        raise ValueError(f"diff requires input that is at least one dimensional; got {a}")
    ends = () if prepend is None and append is None else (prepend, append)
    return _diff(x, *ends, n=n, axis=canonical_axis(axis, x.ndim))


@named("diff", "n", "axis")
def _diff(x: Array, prepend: Any = None, append: Any = None, *, n: int, axis: int) -> Array:
    index = axis
    parts = [x]
    for value, place in ((prepend, 0), (append, 1)):
        if value is None:
            continue
        extra = as_array(value, "diff")
        if not extra.ndim:
            extra = shapes.broadcast_to(
                extra, tuple(1 if i == index else size for i, size in enumerate(x.shape)))
        parts.insert(0 if place == 0 else len(parts), extra)
    if len(parts) > 1:
        x = joining.concatenate(parts, index)
    for _ in range(n):
        size = x.shape[index]
        after = _part(x, index, min(1, size), size)
        before = _part(x, index, 0, max(size - 1, 0))
        x = ufuncs.not_equal(after, before) if x.dtype == dtypes.bool_ else after - before
    return x


@at_once
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Array:
    """The differences of adjacent elements of the flattened array, between given ends.

    >>> jnp.ediff1d(jnp.array([1, 4, 9]), to_end=jnp.array([-1]))
    Array([ 3,  5, -1], dtype=int32)
    """
    check_arraylike("ediff1d", ary, *(end for end in (to_end, to_begin) if end is not None))
    x = shapes.ravel(as_array(ary))
    parts = [_part(x, 0, min(1, x.size), x.size) - _part(x, 0, 0, max(x.size - 1, 0))]
    if to_begin is not None:
        parts.insert(0, shapes.ravel(creation.asarray(to_begin, dtype=x.dtype)))
    if to_end is not None:
        parts.append(shapes.ravel(creation.asarray(to_end, dtype=x.dtype)))
    return joining.concatenate(parts, 0)


@at_once
def gradient(f: Any, *varargs: Any, axis: int | Sequence[int] | None = None,
             edge_order: int | None = None) -> Array | list[Array]:
    """Central differences in the interior, one-sided ones at the edges.

    Args:
      f: an array.
      varargs: the sample spacing: one for all axes, or for each axis a number or coordinates.
      axis: an axis or a tuple of them; None: all.
      edge_order: must be None.

    Returns:
      An array of floats of the shape of ``f``, or a list of one for each axis. It differentiates
      samples; for the derivative of a function there is ``jax.grad``.

    See also: ``diff``, ``jax.grad``, ``trapezoid``.

    >>> jnp.gradient(jnp.array([1.0, 4.0, 9.0, 16.0]))
    Array([3., 4., 6., 7.], dtype=float32)
    """
    if edge_order is not None:
        raise NotImplementedError("The 'edge_order' argument to jnp.gradient is not supported.")
    x = as_array(promote_inexact("gradient", f)[0])
    axes = canonical_axes(axis, x.ndim)
    if isinstance(axis, (tuple, list)):
        axes = tuple(canonical_axis(i, x.ndim) for i in axis)
    if any(x.shape[i] < 2 for i in axes):
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least 2 "
                         "elements are required.")
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(f"Invalid number of spacing arguments {len(varargs)} for axes={axis}")
    spacing = list(varargs) * len(axes) if len(varargs) == 1 else list(varargs) or [1.0] * len(axes)
    results = [_gradient(x, i, h) for i, h in zip(axes, spacing, strict=True)]
    return results[0] if len(axes) == 1 else results


def _gradient(x: Array, axis: int, spacing: Any) -> Array:
    size = x.shape[axis]
    first = _part(x, axis, 1, 2) - _part(x, axis, 0, 1)
    last = _part(x, axis, size - 1, size) - _part(x, axis, size - 2, size - 1)
    before, here, after = (_part(x, axis, i, size - 2 + i) for i in range(3))
    if not np.ndim(spacing) if not isinstance(spacing, Array) else not spacing.ndim:
        parts = [first, (after - before) * 0.5, last]
        return joining.concatenate(parts, axis) / spacing
    coordinates = as_array(spacing, "gradient")
    if coordinates.ndim != 1 or coordinates.shape[0] != size:
        raise ValueError("when 1d, distances must match the length of the corresponding dimension "
                         f"({size},), got {coordinates.shape}")
    steps = diff(coordinates)
    steps = shapes.reshape(steps, tuple(size - 1 if i == axis else 1 for i in range(x.ndim)))
    left, right = _part(steps, axis, 0, size - 2), _part(steps, axis, 1, size - 1)
    middle = (-right / (left * (left + right)) * before + (right - left) / (left * right) * here
              + left / (right * (left + right)) * after)
    return joining.concatenate(
        [first / _part(steps, axis, 0, 1), middle, last / _part(steps, axis, size - 2, size - 1)],
        axis)


@at_once
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: Any = 1.0, axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule.

    Args:
      y: the samples.
      x: where they were taken, along the axis or in the shape of ``y``; None: ``dx`` apart.
      dx: the distance.
      axis: along which.

    Returns:
      An array of floats without the axis.

    See also: ``sum``, ``cumsum``, ``diff``.

    >>> jnp.trapezoid(jnp.array([1.0, 2.0, 3.0]), dx=0.5)
    Array(2., dtype=float32)
    """
    if x is None:
        y = as_array(promote_inexact("trapezoid", y)[0])
        moved = shapes.moveaxis(y, axis, -1)
        steps: Any = dx
        if np.ndim(dx):
            steps = creation.asarray(dx)
            steps = layout.reshape(steps, ((1,) * (y.ndim - steps.ndim) + steps.shape))
            steps = shapes.moveaxis(steps, axis, -1)
            if steps.shape[-1] == 1:
                if not moved.shape[-1]:
                    raise IndexError("trapezoid: index is out of bounds for an axis with size 0")
                ends = (_part(moved, moved.ndim - 1, place, place + 1)[..., 0]
                        for place in (0, moved.shape[-1] - 1))
                return steps[..., 0] * (reductions.sum(moved, -1) - 0.5 * sum(ends))
    else:
        y, x = (as_array(v) for v in promote_inexact("trapezoid", y, x))
        moved = shapes.moveaxis(y, axis, -1)
        if x.ndim == 1:
            steps = diff(x)
        else:
            steps = shapes.moveaxis(diff(x, axis=axis), axis, -1)
    size = moved.shape[-1]
    if x is None and not size:
        raise IndexError("trapezoid: index is out of bounds for an axis with size 0")
    last = moved.ndim - 1
    pairs = _part(moved, last, min(1, size), size) + _part(moved, last, 0, max(size - 1, 0))
    steps, pairs = promote_shapes("", as_array(steps), pairs)
    return 0.5 * reductions.sum(steps * pairs, -1)


@at_once
def unwrap(p: ArrayLike, discont: Any = None, axis: int = -1, period: Any = 2 * np.pi) -> Array:
    """The array with jumps of more than half a period removed.

    >>> jnp.unwrap(jnp.array([0, 3, 1, 0]), period=4)
    Array([ 0, -1, -3, -4], dtype=int32)
    """
    x, period = promote_dtypes("unwrap", p, period)
    x = as_array(x)
    if dtypes.is_complex(x.dtype):
        raise ValueError("jnp.unwrap does not support complex inputs.")
    if x.shape[axis] == 0:
        return x
    x, period = (convert_element_type(v, v.dtype) for v in (x, as_array(period)))
    half = period // 2 if dtypes.is_integer(x.dtype) else period / 2
    low = -half
    if discont is None:
        discont = half
    steps = diff(x, axis=axis)
    wrapped = division.remainder(steps - low, period) + low
    wrapped = where((wrapped == low) & (steps > 0), half, wrapped)
    correction = where(ufuncs.abs(steps) < discont, 0, wrapped - steps)
    index = canonical_axis(axis, x.ndim)
    rest = _part(x, index, 1, x.shape[index]) + cumulative.cumsum(correction, index)
    return joining.concatenate([_part(x, index, 0, 1), rest], index)


# --- interpolation --------------------------------------------------------------------------------

@at_once
def interp(x: ArrayLike, xp: Any, fp: Any, left: Any = None, right: Any = None,
           period: Any = None) -> Array:
    """Linear interpolation between the points (xp, fp), with increasing xp.

    Args:
      x: where to interpolate, of any shape.
      xp: the places ``(n,)``, ascending unless ``period`` is given.
      fp: the values there, ``(n,)``.
      left, right: values outside the points; "extrapolate" continues the last line.
      period: of the places, which are then taken modulo it and sorted.

    Returns:
      An array of floats of the shape of ``x``.

    See also: ``searchsorted``, ``polyfit``, ``jax.scipy.interpolate.RegularGridInterpolator``.

    >>> jnp.interp(jnp.array([0.5, 5.0]), jnp.array([0., 1., 2.]), jnp.array([0., 10., 40.]))
    Array([ 5., 40.], dtype=float32)
    """
    x, xp, fp = resolve("interp", (x, xp, fp))
    for value in (xp, fp):
        if np.ndim(value) != 1 if not isinstance(value, Array) else value.ndim != 1:
            raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    if np.shape(xp) != np.shape(fp):
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    x, xp = (as_array(v) for v in promote_inexact("interp", x, xp))
    fp = as_array(promote_inexact("interp", fp)[0])
    if dtypes.is_complex(x.dtype):
        raise ValueError("jnp.interp: complex x values not supported.")
    if period is not None:
        if np.ndim(period):
            raise ValueError(f"period must be a scalar; got {period}")
        period = abs(period)
        x, xp = x % period, xp % period
        order = sorting.argsort(xp)
        xp, fp = shapes.take_in_bounds(xp, order, 0), shapes.take_in_bounds(fp, order, 0)
        size = xp.shape[0]
        xp = joining.concatenate(
            [_part(xp, 0, size - 1, size) - period, xp, _part(xp, 0, 0, 1) + period])
        fp = joining.concatenate([_part(fp, 0, size - 1, size), fp, _part(fp, 0, 0, 1)])
    size = xp.shape[0]
    place = rounding.clip(sorting.searchsorted(xp, x, side="right"), 1, max(size - 1, 1))
    place = ufuncs._minimum(place, size - 1)
    f1, f0 = shapes.take_in_bounds(fp, place, 0), shapes.take_in_bounds(
        fp, ufuncs._maximum(place - 1, 0), 0)
    x1, x0 = shapes.take_in_bounds(xp, place, 0), shapes.take_in_bounds(
        xp, ufuncs._maximum(place - 1, 0), 0)
    step = x1 - x0
    # Equal neighbours have no line between them.
    tiny = ufuncs.abs(step) <= float(np.spacing(dtypes.finfo(xp.dtype).eps))
    safe = where(tiny, 1, step)
    result = where(tiny, f0, f0 + ((x - x0) / safe) * (f1 - f0))
    if not (isinstance(left, str) and left == "extrapolate"):
        if isinstance(left, str):
            raise ValueError(f"the only valid string value of `left` is 'extrapolate', but got: "
                             f"{left!r}")
        if left is not None or period is None:
            result = where(x < xp[0], fp[0] if left is None else left, result)
    if not (isinstance(right, str) and right == "extrapolate"):
        if isinstance(right, str):
            raise ValueError(f"the only valid string value of `right` is 'extrapolate', but got: "
                             f"{right!r}")
        if right is not None or period is None:
            result = where(x > xp[-1], fp[-1] if right is None else right, result)
    return result


def trim_zeros(filt: Any, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Array:
    """The array without zeros at its ends; its values must be known.

    >>> jnp.trim_zeros(jnp.array([0, 0, 1, 0, 2, 0]))
    Array([1, 0, 2], dtype=int32)
    """
    x = as_array(filt, "trim_zeros")
    host = np.asarray(concrete(x, "Error arose in the `filt` argument of trim_zeros()"))
    axes = canonical_axes(axis, x.ndim)
    region = [slice(None)] * x.ndim
    for index, kept in enumerate(np.nonzero(host) if x.ndim else ()):
        if index not in axes:
            continue
        size = host.shape[index]
        start, stop = (int(kept.min()), int(kept.max()) + 1) if kept.size else (size, 0)
        region[index] = slice(start if "f" in trim.lower() else 0,
                              stop if "b" in trim.lower() else size)
    return x[tuple(region)]


# --- convolution ----------------------------------------------------------------------------------

@named("_conv", "name", "mode", "flipped", "precision", "preferred")
def _convolve(a: Any, v: Any, *, name: str, mode: str, flipped: bool, precision: Any,
              preferred: Any) -> Array:
    a, v = (as_array(x) for x in promote_inexact(name, a, v))
    if a.ndim != 1 or v.ndim != 1:
        raise ValueError(f"{name}() only support 1-dimensional inputs.")
    if not a.size or not v.size:
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {a.shape} and {v.shape}.")
    swapped = a.shape[0] < v.shape[0]
    if swapped:
        a, v = v, a
    kernel = repeating.flip(v) if flipped else v
    size = v.shape[0]
    if mode == "valid":
        padding = (0, 0)
    elif mode == "same":
        padding = (size // 2, size - size // 2 - 1)
    elif mode == "full":
        padding = (size - 1, size - 1)
    else:
        raise ValueError("mode must be one of ['full', 'same', 'valid']")
    # Integers are floats by now; a requested integer dtype is a conversion of the result.
    whole = preferred is not None and dtypes.is_integer(dtypes.argument(preferred, name))
    result = lax.conv_general_dilated(
        a[None, None, :], kernel[None, None, :], (1,), [padding], precision=precision,
        preferred_element_type=None if whole else preferred)[0, 0]
    if whole:
        result = convert_element_type(result, dtypes.argument(preferred, name))
    return repeating.flip(result) if swapped and not flipped else result


@at_once
def convolve(a: ArrayLike, v: ArrayLike, mode: str = "full", *, precision: Any = None,
             preferred_element_type: Any = None) -> Array:
    """The convolution of two vectors: "full", as long as ``a`` ("same"), or where they overlap
    completely ("valid").

    Args:
      a, v: vectors.
      mode: "full", "same" or "valid".
      precision: of the products on accelerators, ``None`` or a ``lax.Precision``; two for the two
        operands.
      preferred_element_type: the dtype of accumulation and of the result; None: the promoted one.

    Returns:
      A vector of the promoted dtype.

    Raises:
      ValueError: an argument is no vector or empty, or there is no such ``mode``.

    See also: ``convolve``, ``correlate``, ``jax.scipy.signal.convolve``,
    ``lax.conv_general_dilated``.

    >>> jnp.convolve(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0]))
    Array([ 1., 12., 23., 30.], dtype=float32)
    """
    check_arraylike("convolve", a, v)
    return _named_convolve(a, v, mode=mode, precision=precision, preferred=preferred_element_type)


@named("convolve", "mode", "precision", "preferred")
def _named_convolve(a: Any, v: Any, *, mode: str, precision: Any, preferred: Any) -> Array:
    return _convolve(a, v, name="convolve", mode=mode, flipped=True, precision=precision,
                     preferred=preferred)


@at_once
def correlate(a: ArrayLike, v: ArrayLike, mode: str = "valid", *, precision: Any = None,
              preferred_element_type: Any = None) -> Array:
    """The correlation of two vectors; modes as in ``convolve``.

    Args:
      a, v: vectors.
      mode: "full", "same" or "valid".
      precision: of the products on accelerators, ``None`` or a ``lax.Precision``; two for the two
        operands.
      preferred_element_type: the dtype of accumulation and of the result; None: the promoted one.

    Returns:
      A vector of the promoted dtype.

    Raises:
      ValueError: an argument is no vector or empty, or there is no such ``mode``.

    See also: ``convolve``, ``correlate``, ``jax.scipy.signal.convolve``,
    ``lax.conv_general_dilated``.

    >>> jnp.correlate(jnp.array([1.0, 2.0, 3.0]), jnp.array([1.0, 10.0]))
    Array([21., 32.], dtype=float32)
    """
    check_arraylike("correlate", a, v)
    return _named_correlate(a, v, mode=mode, precision=precision, preferred=preferred_element_type)


@named("correlate", "mode", "precision", "preferred")
def _named_correlate(a: Any, v: Any, *, mode: str, precision: Any, preferred: Any) -> Array:
    return _convolve(a, conj(v), name="correlate", mode=mode, flipped=False, precision=precision,
                     preferred=preferred)


# --- windows --------------------------------------------------------------------------------------

def _window(name: str, M: Any, function: Callable[[Array, int], Array]) -> Array:
    count = int(concrete(M, f"'M' argument of jnp.{name}()"))
    dtype = dtypes.canonical(dtypes.float64)
    if count <= 1:
        return filled.ones(count, dtype)
    return function(ranges.iota(dtype, count), count)


def bartlett(M: int) -> Array:
    """A triangle from 0 to 1 to 0.

    >>> jnp.bartlett(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window("bartlett", M, lambda n, M: 1 - ufuncs.abs(2 * n + 1 - M) / (M - 1))


def blackman(M: int) -> Array:
    """The Blackman window.

    >>> jnp.blackman(3).round(2)
    Array([-0.,  1., -0.], dtype=float32)
    """
    return _window("blackman", M, lambda n, M: 0.42 - 0.5 * ufuncs.cos(2 * np.pi * n / (M - 1))
                   + 0.08 * ufuncs.cos(4 * np.pi * n / (M - 1)))


def hamming(M: int) -> Array:
    """The Hamming window.

    >>> jnp.hamming(3)
    Array([0.08000001, 1.        , 0.08000001], dtype=float32)
    """
    return _window("hamming", M, lambda n, M: 0.54 - 0.46 * ufuncs.cos(2 * np.pi * n / (M - 1)))


def hanning(M: int) -> Array:
    """The Hann window.

    >>> jnp.hanning(5)
    Array([0. , 0.5, 1. , 0.5, 0. ], dtype=float32)
    """
    return _window("hanning", M, lambda n, M: 0.5 * (1 - ufuncs.cos(2 * np.pi * n / (M - 1))))


def kaiser(M: int, beta: Any) -> Array:
    """The Kaiser window of shape ``beta``.

    >>> jnp.kaiser(3, 0.0)
    Array([1., 1., 1.], dtype=float32)
    """
    def function(n: Array, M: int) -> Array:
        middle = 0.5 * (M - 1)
        return (special_functions.i0(beta * ufuncs.sqrt(1 - ((n - middle) / middle) ** 2))
                / special_functions.i0(beta))
    return _window("kaiser", M, function)


# --- bits -----------------------------------------------------------------------------------------

@at_once
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Packs eight truth values into each byte.

    >>> jnp.packbits(jnp.array([1, 0, 0, 0, 0, 0, 1, 1]))
    Array([131], dtype=uint8)
    """
    x = as_array(a, "packbits")
    if not (dtypes.is_integer(x.dtype) or x.dtype == dtypes.bool_):
        raise TypeError("Expected an input array of integer or boolean data type")
    if bitorder not in ("little", "big"):
        raise ValueError("'order' must be either 'little' or 'big'")
    bits = convert_element_type(as_bool(x), dtypes.uint8)
    if axis is None:
        bits, axis = shapes.ravel(bits), 0
    index = canonical_axis(axis, bits.ndim)
    size = bits.shape[index]
    bits = slicing.pad(bits, 0, tuple(
        (0, -size % 8, 0) if i == index else (0, 0, 0) for i in range(bits.ndim)))
    bits = shapes.reshape(shapes.moveaxis(bits, index, -1), (
        *(n for i, n in enumerate(bits.shape) if i != index), -(-size // 8), 8))
    places = np.arange(8, dtype=np.uint8)
    powers = np.left_shift(np.uint8(1), places if bitorder == "little" else places[::-1])
    weights = as_array(powers.reshape((1,) * (bits.ndim - 1) + (8,)))
    packed = reductions.sum(bits * weights, -1, dtype=np.uint8)
    return shapes.moveaxis(packed, -1, index)


@at_once
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None,
               bitorder: str = "big") -> Array:
    """Unpacks each byte into eight bits.

    >>> jnp.unpackbits(jnp.array([131], dtype=jnp.uint8))
    Array([1, 0, 0, 0, 0, 0, 1, 1], dtype=uint8)
    """
    x = as_array(a, "unpackbits")
    if x.dtype != dtypes.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    if bitorder not in ("little", "big"):
        raise ValueError("'order' must be either 'little' or 'big'")
    if axis is None:
        x, axis = shapes.ravel(x), 0
    index = canonical_axis(axis, x.ndim)
    places = np.arange(8, dtype=np.uint8)
    moved = shapes.moveaxis(x, index, -1)
    ordered = places if bitorder == "little" else places[::-1]
    shifts = as_array(ordered.reshape((1,) * moved.ndim + (8,)))
    bits = (shapes.expand_dims(moved, -1) >> shifts) & cast(1, dtypes.uint8)
    bits = shapes.reshape(bits, (*moved.shape[:-1], 8 * moved.shape[-1]))
    if count is not None:
        bits = bits[..., :count] if count <= bits.shape[-1] else slicing.pad(
            bits, 0, (*[(0, 0, 0)] * (bits.ndim - 1), (0, count - bits.shape[-1], 0)))
    return shapes.moveaxis(convert_element_type(bits, dtypes.uint8), -1, index)


