"""Histograms: counts of values and of bins."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, meshes
from maxjax._base.errors import ShardingTypeError
from maxjax._base.specs import spec_axes
from maxjax._higher_order.constraints import with_out_sharding
from maxjax._ir.dimensions import size_index
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import creation as primitives
from maxjax._primitives.convert import convert_element_type
from maxjax.numpy import _creation as creation
from maxjax.numpy import _filled as filled
from maxjax.numpy import _joining as joining
from maxjax.numpy import _ranges as ranges
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _sorting as sorting
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._promotion import (
    as_array,
    cast,
    check_arraylike,
    concrete,
    constant,
    inexact_dtype,
    promote_inexact,
)
from maxjax.numpy._where import where

__all__ = ["bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


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
