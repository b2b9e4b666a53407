"""Order statistics: quantiles, percentiles, medians."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import ShardingTypeError
from maxjax._higher_order.constraints import with_out_sharding
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import broadcasting, layout
from maxjax._primitives import creation as primitives
from maxjax._primitives.convert import convert_element_type
from maxjax.lax._over_mesh import explicit_mesh, partitions
from maxjax.numpy import _cumulative as cumulative
from maxjax.numpy import _indexing as indexing
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _rounding as rounding
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _sorting as sorting
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._at_once import at_once
from maxjax.numpy._promotion import (
    as_array,
    canonical_axes,
    check_arraylike,
    constant,
    promote_inexact,
    promote_shapes,
    type_of,
)
from maxjax.numpy._special_values import isnan
from maxjax.numpy._where import where

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

_QUANTILE_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


@at_once
def quantile(a: ArrayLike, q: Any, axis: int | Sequence[int] | None = None, out: Any = None,
             overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
             weights: ArrayLike | None = None) -> Array:
    """The value below which a fraction ``q`` of the elements falls.

    Args:
      a: an array of real numbers.
      q: fractions from 0 to 1, a scalar or a vector; those beyond count as 0 or 1, where NumPy
        raises.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      out: None: arrays are immutable, so that nothing is written into one.
      overwrite_input: must be False.
      method: the interpolation between two elements: "linear", "lower", "higher", "midpoint",
        "nearest"; or "inverted_cdf", the least element that this fraction does not exceed.
      keepdims: whether the reduced axes stay, with size 1.
      weights: of the elements, with the shape of ``a`` or of its reduced axes; only with
        "inverted_cdf".

    Returns:
      An array of floats: the shape of ``q`` before the remaining dimensions. NaN if any element is.

    Raises:
      ValueError: ``a`` or ``q`` is complex, ``q`` has two dimensions, there is no such method, or
        ``out`` or ``overwrite_input`` is given.

    See also: ``percentile``, ``nanquantile``, ``median``, ``histogram``.

    >>> x = jnp.array([1., 2., 3., 5.])
    >>> jnp.quantile(x, 0.5), jnp.quantile(x, jnp.array([0., 0.5]), method="lower")
    (Array(2.5, dtype=float32), Array([1., 2.], dtype=float32))
    """
    return _quantile("quantile", a, q, axis, out, overwrite_input, method, keepdims, False,
                     weights)


@at_once
def nanquantile(a: ArrayLike, q: Any, axis: int | Sequence[int] | None = None, out: Any = None,
                overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
                weights: ArrayLike | None = None) -> Array:
    """As ``quantile``, ignoring NaN.

    >>> jnp.nanquantile(jnp.array([1., jnp.nan, 3.]), 0.5)
    Array(2., dtype=float32)
    """
    return _quantile("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, True,
                     weights)


@at_once
def percentile(a: ArrayLike, q: Any, axis: int | Sequence[int] | None = None, out: Any = None,
               overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
               weights: ArrayLike | None = None, out_sharding: Any = None) -> Array:
    """As ``quantile``, with ``q`` in percent.

    Args:
      a: an array of real numbers.
      q: percents from 0 to 100, a scalar or a vector.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      out: None: arrays are immutable, so that nothing is written into one.
      overwrite_input: must be False.
      method: the interpolation between two elements, as for ``quantile``.
      keepdims: whether the reduced axes stay, with size 1.
      weights: of the elements; only with "inverted_cdf".
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of floats: the shape of ``q`` before the remaining dimensions. NaN if any element is.

    Raises:
      ValueError: ``a`` or ``q`` is complex, ``q`` has two dimensions, there is no such method, or
        ``out`` or ``overwrite_input`` is given.

    See also: ``quantile``, ``nanpercentile``, ``median``.

    >>> jnp.percentile(jnp.arange(5), jnp.array([25, 50]))
    Array([1., 2.], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(percentile, out_sharding, a, q, axis, out, overwrite_input,
                                 method, keepdims, weights=weights)
    check_arraylike("percentile", a, q)
    (q,) = promote_inexact("percentile", q)
    return quantile(a, q / 100, axis, out, overwrite_input, method, keepdims, weights=weights)


@at_once
def nanpercentile(a: ArrayLike, q: Any, axis: int | Sequence[int] | None = None, out: Any = None,
                  overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
                  weights: ArrayLike | None = None) -> Array:
    """As ``percentile``, ignoring NaN.

    >>> jnp.nanpercentile(jnp.array([1., jnp.nan, 3.]), 25)
    Array(1.5, dtype=float32)
    """
    check_arraylike("nanpercentile", a, q)
    (q,) = promote_inexact("nanpercentile", q)
    return nanquantile(a, q / 100, axis, out, overwrite_input, method, keepdims, weights=weights)


@at_once
def median(a: ArrayLike, axis: int | Sequence[int] | None = None, out: Any = None,
           overwrite_input: bool = False, keepdims: bool = False) -> Array:
    """The middle element, or the mean of the two middle ones.

    Args:
      a: an array of real numbers.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      out: None: arrays are immutable, so that nothing is written into one.
      overwrite_input: must be False.
      keepdims: whether the reduced axes stay, with size 1.

    Returns:
      An array of floats without the reduced axes; NaN if any element is.

    Raises:
      ValueError: there are no elements, they are complex, or ``out`` or ``overwrite_input`` is
        given.

    See also: ``nanmedian``, ``quantile``, ``percentile``, ``mean``.

    >>> jnp.median(jnp.array([[1, 5, 2], [3, 9, 4]]), axis=1)
    Array([2., 4.], dtype=float32)
    """
    check_arraylike("median", a)
    shape = as_array(a).shape
    if 0 in [shape[i] for i in canonical_axes(axis, len(shape))]:
        raise ValueError("jax.numpy.median reduction axis must be non-empty")
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


@at_once
def nanmedian(a: ArrayLike, axis: int | Sequence[int] | None = None, out: Any = None,
              overwrite_input: bool = False, keepdims: bool = False) -> Array:
    """As ``median``, ignoring NaN.

    Args:
      a: an array of real numbers.
      axis: an axis or a tuple of them, negative ones from the end; None: all.
      out: None: arrays are immutable, so that nothing is written into one.
      overwrite_input: must be False.
      keepdims: whether the reduced axes stay, with size 1.

    Returns:
      An array of floats without the reduced axes; NaN where there is nothing else.

    Raises:
      ValueError: the elements are complex, or ``out`` or ``overwrite_input`` is given.

    See also: ``median``, ``nanquantile``, ``nanmean``.

    >>> jnp.nanmedian(jnp.array([1., jnp.nan, 3.]))
    Array(2., dtype=float32)
    """
    check_arraylike("nanmedian", a)
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def _quantile_operands(name: str, a: ArrayLike, q: ArrayLike, writes: bool, method: str,
                       weights: ArrayLike | None) -> tuple[Array, Array]:
    """The operand and the fractions, with what can be said of them before the axes are known."""
    check_arraylike(name, a, q)
    if writes:
        raise ValueError(f"jax.numpy.{name} does not support overwrite_input=True or out != None")
    if method not in _QUANTILE_METHODS:
        raise ValueError("method can only be 'linear', 'lower', 'higher', 'midpoint', 'nearest' "
                         "or 'inverted_cdf'")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(
            f"{method} doesn't support weights. Only method 'inverted_cdf' supports weights.")
    x = as_array(promote_inexact(name, a)[0])
    fraction = as_array(promote_inexact(name, q)[0])
    if dtypes.is_complex(x.dtype):
        raise ValueError(f"{name} does not support complex input, as the operation is poorly "
                         "defined.")
    if fraction.ndim > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {fraction.shape}")
    return x, fraction


def _quantile(name: str, a: Any, q: Any, axis: Any, out: Any, overwrite_input: bool, method: str,
              keepdims: bool, skip_nan: bool, weights: Any) -> Array:
    x, fraction = _quantile_operands(
        name, a, q, overwrite_input or out is not None, method, weights)
    shape = x.shape
    axes = canonical_axes(axis, x.ndim)
    if not dtypes.is_inexact(type_of(q)[0]):      # integers are no fractions, as in JAX
        raise TypeError(f"{name} does not accept fractions of dtype {type_of(q)[0].name}: they "
                        "must be floating")
    kept = tuple(i for i in range(x.ndim) if i not in axes)
    rest = tuple(shape[i] for i in kept)
    size = math.prod(shape[i] for i in axes)

    def lines(x: Array) -> Array:
        return layout.reshape(layout.transpose(x, (*kept, *axes)), (*rest, size))

    x = lines(x)
    if skip_nan and not size:
        result = as_array(primitives.full((*fraction.shape, *rest), np.nan, x.dtype))
        return _finished(result, fraction, shape, axes, keepdims, x.dtype)
    if not size and not fraction.size:
        result = primitives.full((*fraction.shape, *rest), 0, x.dtype)
        return _finished(result, fraction, shape, axes, keepdims, x.dtype)
    missing = isnan(x)
    if weights is not None:
        weights = _weights_of_lines(name, weights, shape, axis, axes, lines)
        result = _weighted_or_nan(x, weights, fraction, missing, skip_nan)
    else:
        result = _interpolated(name, x, fraction, missing, method, skip_nan)
    return _finished(result, fraction, shape, axes, keepdims, x.dtype)


def _interpolated(name: str, x: Array, fraction: Array, missing: Array, method: str,
                  skip_nan: bool) -> Array:
    """The quantiles of lines along the last axis, each between two neighbours in sorted order.

    They are interpolated in the dtype of the fractions, as in JAX: with the default ones, which
    are of the widest dtype, 8-bit and 16-bit floats in float32 or float64.
    """
    last, size, compute = x.ndim - 1, x.shape[-1], fraction.dtype
    if skip_nan:
        x = sorting.sort(x, last)      # NaN is last
        _refuse_split(name, x)
        count = convert_element_type(reductions.sum(~missing, last), compute)
        top = count - 1
    else:
        x = sorting.sort(where(reductions.any(missing, last, keepdims=True), np.nan, x), last)
        top = as_array(constant(size - 1 if is_dimension(size) else float(size - 1), compute))
    # q comes first in the result.
    fractions, top = promote_shapes("", layout.reshape(
        fraction, fraction.shape + (1,) * (last if skip_nan else 0)), top)
    position = fractions * top
    lower, upper = ufuncs.floor(position), ufuncs.ceil(position)
    weight = position - lower
    if method == "inverted_cdf":
        lower = upper = ufuncs.ceil(fractions * (top + 1)) - 1
    limit = ufuncs._maximum(top, 0)
    low_index, high_index = (
        convert_element_type(rounding.clip(index, 0, limit), dtypes.int32)
        for index in (lower, upper))
    low, high = (_at_positions(x, index, skip_nan, fraction.ndim) for index in (low_index,
                                                                                high_index))
    if not skip_nan:
        weight = layout.reshape(weight, fraction.shape + (1,) * last)
    result = _between(low, high, weight, method)
    if skip_nan:
        result = where(shapes.broadcast_to(count == 0, result.shape), np.nan, result)
    return result


def _refuse_split(name: str, x: Array) -> None:
    """Where NaN is skipped, how many elements there are differs, so that they are looked up."""
    if explicit_mesh(x) is not None and any(partitions(x)):
        raise ShardingTypeError(f"{name} of an operand that is split over a mesh, {x.aval}: "
                                "use `reshard` on it.")


def _between(low: Array, high: Array, weight: Array, method: str) -> Array:
    """The value between two neighbours; ``weight``: how near the higher one is."""
    if method == "linear":
        low, high = (convert_element_type(value, weight.dtype) for value in (low, high))
        return low * (1 - weight) + high * weight
    if method in ("lower", "inverted_cdf"):
        return low
    if method == "higher":
        return high
    if method == "nearest":
        return where(weight <= 0.5, low, high)
    return (low + high) * 0.5


def _finished(result: Array, fraction: Array, shape: tuple[int, ...], axes: tuple[int, ...],
              keepdims: bool, dtype: Any) -> Array:
    if keepdims:      # a scalar counts as a line of one element
        sizes = tuple(1 if i in axes else n for i, n in enumerate(shape)) or (1,)
        result = layout.reshape(result, fraction.shape + sizes)
    return convert_element_type(result, dtype)


def _weights_of_lines(name: str, weights: Any, shape: tuple[int, ...], axis: Any,
                      axes: tuple[int, ...], lines: Callable[[Array], Array]) -> Array:
    check_arraylike(name, weights)
    weights = as_array(promote_inexact(name, weights)[0])
    if weights.shape == shape:
        return lines(weights)
    if axis is None:
        raise ValueError("Weights shape must match 'a' shape when axis is None.")
    reduced = tuple(shape[i] for i in axes)
    if weights.shape != reduced:
        raise ValueError(f"Weights shape {weights.shape} must match reduction axes {reduced}")
    return lines(broadcasting.broadcast_in_dim(weights, shape, axes))


def _weighted_or_nan(x: Array, weights: Array, fraction: Array, missing: Array, skip_nan: bool
                     ) -> Array:
    """NaN where weights are negative, or elements are missing."""
    last = x.ndim - 1
    invalid = reductions.any(ufuncs.logical_not(weights >= 0), last)
    if skip_nan:
        weights = where(missing, 0, weights)
        empty = reductions.all(missing, last)
    else:
        empty = reductions.any(missing, last)
    result = _weighted_quantile(x, weights, fraction)
    return where(shapes.broadcast_to(invalid | empty, result.shape), np.nan, result)


def _weighted_quantile(x: Array, weights: Array, fraction: Array) -> Array:
    """The first sorted element at which the cumulative weight reaches the fraction."""
    last = x.ndim - 1
    order = sorting.argsort(x, last)
    x = indexing.take_along_axis(x, order, last)
    below = cumulative.cumsum(indexing.take_along_axis(weights, order, last), last)
    wide = dtypes.common(fraction.dtype, below.dtype)
    fraction, below = (convert_element_type(v, wide) for v in (fraction, below))
    fractions, below = promote_shapes(
        "", layout.reshape(fraction, fraction.shape + (1,) * x.ndim), below)
    goal = fractions * below[..., -1:]
    index = reductions.sum(below < goal, fraction.ndim + last, dtype=np.int32)
    return _at_positions(x, rounding.clip(index, 0, x.shape[last] - 1), True, fraction.ndim)


def _at_positions(x: Array, index: Array, each_line: bool, q_rank: int) -> Array:
    """Elements of the last axis: one position for all lines, or one for each line."""
    last = x.ndim - 1
    if not each_line:
        taken = shapes.take_in_bounds(x, index, last)
        return shapes.moveaxis(taken, last, 0) if q_rank else taken
    if not q_rank:
        line = indexing.take_along_axis(x, shapes.expand_dims(index, last), last)
        return shapes.squeeze(line, last)
    lines = indexing.take_along_axis(x, shapes.moveaxis(index, 0, -1), last)
    return shapes.moveaxis(lines, last, 0)
