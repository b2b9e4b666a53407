"""Order statistics, histograms, covariance."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, meshes
from maxjax._base.errors import ShardingTypeError
from maxjax._base.specs import spec_axes
from maxjax._higher_order.constraints import with_out_sharding
from maxjax._ir.dimensions import is_dimension, size_index
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives import broadcasting, layout
from maxjax._primitives import creation as primitives
from maxjax._primitives.convert import convert_element_type
from maxjax.lax._over_mesh import explicit_mesh, partitions
from maxjax.numpy import _creation as creation
from maxjax.numpy import _cumulative as cumulative
from maxjax.numpy import _filled as filled
from maxjax.numpy import _indexing as indexing
from maxjax.numpy import _joining as joining
from maxjax.numpy import _moments as moments
from maxjax.numpy import _ranges as ranges
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _rounding as rounding
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _sorting as sorting
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._complex import complex_of, conj, imag, real
from maxjax.numpy._contraction import dot
from maxjax.numpy._promotion import (
    as_array,
    canonical_axes,
    cast,
    check_arraylike,
    concrete,
    constant,
    inexact_dtype,
    promote_inexact,
    promote_shapes,
    type_of,
)
from maxjax.numpy._special_values import isnan
from maxjax.numpy._where import where

__all__ = [
    "bincount", "corrcoef", "cov", "histogram", "histogram2d", "histogram_bin_edges",
    "histogramdd", "median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile",
]

_QUANTILE_METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


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


def nanquantile(a: ArrayLike, q: Any, axis: int | Sequence[int] | None = None, out: Any = None,
                overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
                weights: ArrayLike | None = None) -> Array:
    """As ``quantile``, ignoring NaN.

    >>> jnp.nanquantile(jnp.array([1., jnp.nan, 3.]), 0.5)
    Array(2., dtype=float32)
    """
    return _quantile("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, True,
                     weights)


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
    if fraction.dtype.itemsize > x.dtype.itemsize >= 4:
        fraction = convert_element_type(fraction, x.dtype)
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
    last = len(rest)
    missing = isnan(x)
    compute = x.dtype
    if weights is not None:
        weights = _weights_of_lines(name, weights, shape, axis, axes, lines)
        result = _weighted_or_nan(x, weights, fraction, missing, skip_nan)
        return _finished(result, fraction, shape, axes, keepdims, compute)
    if skip_nan:
        x = sorting.sort(x, last)      # NaN is last
        _refuse_split(name, x)
        count = convert_element_type(reductions.sum(~missing, last), compute)
        top = count - 1
    else:
        x = sorting.sort(where(reductions.any(missing, last, keepdims=True), np.nan, x), last)
        top = as_array(constant(size - 1 if is_dimension(size) else float(size - 1), compute))
    # A fraction and an element may be of different widths.
    wide = dtypes.common(compute, fraction.dtype)
    fraction, top = (convert_element_type(v, wide) for v in (fraction, top))
    x = x if x.dtype == wide else convert_element_type(x, wide)
    # q comes first in the result.
    fractions, top = promote_shapes("", layout.reshape(
        fraction, fraction.shape + (1,) * (len(rest) if skip_nan else 0)), top)
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
        weight = layout.reshape(weight, fraction.shape + (1,) * len(rest))
    result = _between(low, high, weight, method)
    if skip_nan:
        result = where(shapes.broadcast_to(count == 0, result.shape), np.nan, result)
    return _finished(result, fraction, shape, axes, keepdims, compute)


def _refuse_split(name: str, x: Array) -> None:
    """Where NaN is skipped, how many elements there are differs, so that they are looked up."""
    if explicit_mesh(x) is not None and any(partitions(x)):
        raise ShardingTypeError(f"{name} of an operand that is split over a mesh, {x.aval}: "
                                "use `reshard` on it.")


def _between(low: Array, high: Array, weight: Array, method: str) -> Array:
    """The value between two neighbours; ``weight``: how near the higher one is."""
    if method == "linear":
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


# --- histograms -----------------------------------------------------------------------------------

def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *,
             length: int | None = None, out_sharding: Any = None) -> Array:
    """The count of each non-negative integer in ``x`` (or the sum of its weights).

    Args:
      x: integers ``(n,)``; negative ones count as 0, where NumPy raises.
      weights: what each counts, ``(n,)``; None: 1.
      minlength: the least size of the result.
      length: the size of the result, required if ``x`` is traced.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array ``(length,)``, by default of the greatest element plus one; integers, or the dtype of
      the weights. With ``length`` greater elements are dropped.

    Raises:
      TypeError: ``x`` is not of integers.
      ValueError: ``x`` is not of one dimension.
      ConcretizationTypeError: ``x`` is traced and there is no ``length``.

    See also: ``histogram``, ``unique``, ``digitize``, ``jax.ops.segment_sum``.

    >>> jnp.bincount(jnp.array([0, 2, 2, 3])), jnp.bincount(jnp.array([0, 2, 2, 3]), length=3)
    (Array([1, 0, 2, 1], dtype=int32), Array([1, 0, 2], dtype=int32))
    """
    if out_sharding is not None:
        spec = getattr(out_sharding, "spec", out_sharding)
        axes = getattr(out_sharding, "mesh", meshes.get_abstract_mesh()).axis_names
        if any(spec_axes(spec)) or spec.unreduced not in (frozenset(), frozenset(axes)):
            raise ShardingTypeError(
                "out_sharding passed to `jnp.bincount` can only be fully replicated or fully "
                f"unreduced along all mesh axes, got {out_sharding}")
        return with_out_sharding(bincount, out_sharding, x, weights, minlength, length=length)
    check_arraylike("bincount", x)
    x = as_array(x)
    if not (dtypes.is_integer(x.dtype) or x.dtype == dtypes.bool_):
        raise TypeError(f"x argument to bincount must have an integer type; got {x.dtype}")
    if x.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    minimum = operator.index(minlength)
    if length is None:
        message = ("The error occurred because of argument 'x' of jnp.bincount. To avoid this "
                   "error, pass a static `length` argument.")
        host = concrete(x, message)
        length = max(minimum, int(host.max()) + 1 if host.size else 0)
    else:
        length = size_index(length)
    index = ufuncs._maximum(x, 0) if x.dtype != dtypes.bool_ else x.astype(dtypes.int32)
    if weights is None:
        counted = constant(1, dtypes.canonical(dtypes.int64))
    else:
        counted = as_array(weights, "bincount")
        if counted.shape != x.shape:
            raise ValueError("shape of weights must match shape of x.")
    zeros = primitives.full((length,), 0, counted.dtype)
    return as_array(zeros).at[index].add(counted, mode="drop")


def histogram_bin_edges(a: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Array:
    """The edges of the bins of a histogram.

    >>> jnp.histogram_bin_edges(jnp.array([0., 1., 4.]), bins=2)
    Array([0., 2., 4.], dtype=float32)
    """
    check_arraylike("histogram_bin_edges", a)
    if isinstance(bins, str):
        raise NotImplementedError("string values for `bins` not implemented.")
    x = as_array(promote_inexact("histogram_bin_edges", a)[0])
    dtype = x.dtype
    if not isinstance(bins, (Array, np.ndarray, list, tuple)) or np.ndim(bins) == 0:
        count = operator.index(concrete(bins, "bins argument of histogram_bin_edges"))
        if range is None:
            low, high = ((reductions.min(x), reductions.max(x)) if x.size else
                         (as_array(cast(0, dtype)), as_array(cast(1, dtype))))
        else:
            low, high = (as_array(cast(v, dtype)) for v in range)
        flat = low == high
        low, high = where(flat, low - 0.5, low), where(flat, high + 0.5, high)
        return ranges.linspace(low, high, count + 1, dtype=dtype)
    return convert_element_type(creation.asarray(bins), dtype)


def histogram(a: ArrayLike, bins: Any = 10, range: Any = None, weights: ArrayLike | None = None,
              density: bool | None = None, out_sharding: Any = None) -> tuple[Array, Array]:
    """(the number of elements in each bin, the edges of the bins)

    Args:
      a: an array, of any shape.
      bins: the number of bins of equal width, or their edges, ascending.
      range: the pair of the first and the last edge; None: the least and the greatest element.
      weights: what each element counts, in the shape of ``a``.
      density: divide by the widths and the sum, so that the integral is 1.
      out_sharding: how the numbers are to lie.

    Returns:
      A pair of arrays ``(n,)``, of floats, and ``(n + 1,)``. Elements outside count nowhere; the
      last bin has both its edges.

    See also: ``histogram_bin_edges``, ``histogram2d``, ``bincount``, ``searchsorted``.

    >>> jnp.histogram(jnp.array([0., 1., 1.5, 4.]), bins=2)
    (Array([3., 1.], dtype=float32), Array([0., 2., 4.], dtype=float32))
    """
    if out_sharding is not None:
        counts, edges = histogram(a, bins, range, weights, density)
        return with_out_sharding(as_array, out_sharding, counts), edges
    if weights is None:
        check_arraylike("histogram", a)
        x = as_array(promote_inexact("histogram", a)[0])
        counted = filled.ones_like(x)
    else:
        check_arraylike("histogram", a, weights)
        x, counted = (as_array(v) for v in promote_inexact("histogram", a, weights))
        if x.shape != counted.shape:
            raise ValueError("weights should have the same shape as a.")
    edges = histogram_bin_edges(x, bins, range, weights)
    place = shapes.ravel(sorting.searchsorted(edges, x, side="right"))
    x, counted = shapes.ravel(x), shapes.ravel(counted)
    place = where(x == edges[-1], edges.shape[0] - 1, place)
    counts = bincount(place, counted, length=edges.shape[0])[1:]
    if density:
        widths = edges[1:] - edges[:-1]
        counts = counts / widths / reductions.sum(counts)
    return counts, edges


def histogram2d(x: ArrayLike, y: ArrayLike, bins: Any = 10, range: Any = None,
                weights: ArrayLike | None = None,
                density: bool | None = None) -> tuple[Array, Array, Array]:
    """A histogram over two coordinates: (counts, edges of x, edges of y).

    >>> counts, x_edges, y_edges = jnp.histogram2d(jnp.array([0., 1., 1.]), jnp.array([0.,
    ...     0., 1.]), bins=2)
    >>> counts
    Array([[1, 0],
           [1, 1]], dtype=int32)
    """
    check_arraylike("histogram2d", x, y)
    if not isinstance(bins, (int, np.integer)) and len(bins) not in (1, 2):
        edges = creation.asarray(bins)
        bins = [edges, edges]
    sample = joining.concatenate([shapes.reshape(v, (1, -1)) for v in (x, y)], 0).T
    counts, (x_edges, y_edges) = histogramdd(sample, bins, range, weights, density)
    return counts, x_edges, y_edges


def histogramdd(sample: Any, bins: Any = 10, range: Sequence[Any] | None = None,
                weights: ArrayLike | None = None,
                density: bool | None = None) -> tuple[Array, list[Array]]:
    """A histogram over several coordinates: (counts, the edges for each coordinate).

    >>> counts, edges = jnp.histogramdd(jnp.array([[0., 0.], [1., 0.], [1., 1.]]), bins=2)
    >>> counts
    Array([[1, 0],
           [1, 1]], dtype=int32)
    """
    check_arraylike("histogramdd", sample)
    x = as_array(promote_inexact("histogramdd", sample)[0])
    count, rank = x.shape
    if isinstance(bins, (int, np.integer)):
        bins = [bins] * rank
    if len(bins) != rank:
        raise ValueError("should be a bin for each dimension.")
    if range is not None and len(range) != rank:
        raise ValueError("`range` should have length equal to the number of sample dimensions.")
    edges, flat = [], as_array(primitives.full((count,), 0, dtypes.int32))
    sizes = []
    for d, bin_ in enumerate(bins):
        line = x[:, d]
        edge = histogram_bin_edges(line, bin_, None if range is None else range[d])
        place = sorting.searchsorted(edge, line, side="right")
        place = where(line == edge[-1], place - 1, place)
        edges.append(edge)
        sizes.append(edge.shape[0] + 1)
        flat = flat * sizes[-1] + convert_element_type(place, dtypes.int32)
    counted = None if weights is None else shapes.ravel(weights)
    counts = shapes.reshape(bincount(flat, counted, length=math.prod(sizes)), tuple(sizes))
    counts = counts[(slice(1, -1),) * rank]
    if density:
        total = reductions.sum(counts)
        # A sum of integers is wider than they are.
        real = inexact_dtype(dtypes.common(counts.dtype, total.dtype))
        counts = convert_element_type(counts, real) / convert_element_type(total, real)
        for axis, edge in enumerate(edges):
            widths = edge[1:] - edge[:-1]
            counts = counts / shapes.reshape(
                widths, tuple(-1 if i == axis else 1 for i in builtins.range(rank)))
    return counts, edges


# --- covariance -----------------------------------------------------------------------------------

def cov(m: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True, bias: bool = False,
        ddof: int | None = None, fweights: Any = None, aweights: Any = None,
        dtype: DTypeLike | None = None) -> Array:
    """The covariance matrix of variables in rows (columns with ``rowvar=False``).

    Args:
      m: a matrix of observations, or a vector of one variable's.
      y: further variables, in the same form.
      rowvar: whether variables are rows; otherwise columns.
      bias: divide by the number of observations N rather than N - 1.
      ddof: N - ddof is the divisor, whatever ``bias`` says.
      fweights: how often each observation counts, integers ``(N,)``.
      aweights: its importance, ``(N,)``.
      dtype: in which to compute; None: the promoted float dtype.

    Returns:
      A symmetric matrix with a row for each variable; a scalar for one.

    Raises:
      ValueError: there are more than two dimensions.
      TypeError: ``fweights`` are no integers.

    See also: ``corrcoef``, ``var``, ``linalg.eigh``.

    >>> jnp.cov(jnp.array([[1., 2., 3.], [3., 2., 1.]]))
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    return _cov("cov", m, y, rowvar, bias, ddof, fweights, aweights, dtype)


def _cov(name: str, m: Any, y: Any, rowvar: bool, bias: bool, ddof: int | None, fweights: Any,
         aweights: Any, dtype: Any) -> Array:
    values = [m] if y is None else [m, y]
    check_arraylike(name, *values)
    arrays = [as_array(v) for v in promote_inexact(name, *values)]
    if dtype is not None:
        if not dtypes.is_inexact(dtypes.as_dtype(dtype)):
            raise ValueError(f"{name}: dtype must be a subclass of float or complex; got {dtype=}")
        arrays = [v.astype(dtype) for v in arrays]
    if any(v.ndim > 2 for v in arrays):
        raise ValueError("m has more than 2 dimensions")
    rows: list[Array] = []
    for v, given in zip(arrays, values, strict=True):
        v = joining.atleast_2d(v)
        # A single row of y, but not of m, is one variable even if variables are columns.
        turned = not rowvar and (np.ndim(given) != 1 if not rows else v.shape[0] != 1)
        rows.append(v.T if turned else v)
    if not rows[0].shape[0]:
        return filled.full((0, 0), 0, rows[0].dtype)
    x = rows[0] if len(rows) == 1 else joining.concatenate(rows, 0)
    if not x.shape[1]:
        count = x.shape[0]
        return filled.full(() if count == 1 else (count, count), np.nan, x.dtype)
    if ddof is None:
        ddof = 0 if bias else 1
    weights = None
    if fweights is not None:
        check_arraylike("cov", fweights)
        weights = as_array(fweights)
        _check_weights("fweights", weights, x)
        if not dtypes.is_integer(weights.dtype):
            raise TypeError("fweights must be integer.")
        weights = ufuncs.abs(weights)
    if aweights is not None:
        check_arraylike("cov", aweights)
        reliability = ufuncs.abs(as_array(aweights))
        _check_weights("aweights", reliability, x)
        weights = reliability if weights is None else weights * reliability
    if weights is None:
        center = moments.mean(x, axis=1, keepdims=True)
        norm: Any = x.shape[1] - ddof
    else:
        total = reductions.sum(weights)
        center = shapes.expand_dims(moments.average(
            x, axis=1, weights=shapes.broadcast_to(weights, x.shape)), 1)
        if ddof == 0:
            norm = total
        elif aweights is None:
            norm = total - ddof
        else:
            norm = total - ddof * reductions.sum(weights * as_array(aweights)) / total
    x = x - center
    right = x if weights is None else x * weights[None]
    return shapes.squeeze(dot(x, conj(right.T)) / norm)


def _check_weights(name: str, weights: Array, x: Array) -> None:
    if weights.ndim > 1:
        raise RuntimeError(f"cannot handle multidimensional {name}")
    if weights.shape[0] != x.shape[1]:
        raise RuntimeError(f"incompatible numbers of samples and {name}")


def corrcoef(x: ArrayLike, y: ArrayLike | None = None, rowvar: bool = True,
             dtype: DTypeLike | None = None) -> Array:
    """The correlation coefficients of variables in rows (columns with ``rowvar=False``).

    Args:
      x: a matrix of observations, or a vector of one variable's.
      y: further variables, in the same form.
      rowvar: whether variables are rows; otherwise columns.
      dtype: in which to compute; None: the promoted float dtype.

    Returns:
      A symmetric matrix with a row for each variable, and ones on its diagonal.

    See also: ``cov``, ``correlate``, ``std``.

    >>> jnp.corrcoef(jnp.array([[1., 2., 3.], [3., 2., 1.]])).round(3)
    Array([[ 1., -1.],
           [-1.,  1.]], dtype=float32)
    """
    c = _cov("corrcoef", x, y, rowvar, False, None, None, None, dtype)
    if c.ndim == 0:
        return c / c
    deviation = ufuncs.sqrt(real(c.diagonal()))
    deviation = deviation.astype(c.dtype)
    c = c / shapes.expand_dims(deviation, 1) / shapes.expand_dims(deviation, 0)
    if dtypes.is_complex(c.dtype):
        return complex_of(rounding.clip(real(c), -1, 1), rounding.clip(imag(c), -1, 1))
    return rounding.clip(c, -1, 1)
