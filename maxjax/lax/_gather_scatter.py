"""Gather and scatter: elements and slices at arrays of positions."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.dimensions import size_index
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.broadcasting import expand_axis
from maxjax._primitives.comparison import gt_p, select
from maxjax._primitives.convert import convert, convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.gather_plan import (
    FillValue,
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    check_scatter,
)
from maxjax._primitives.indexing import (
    gather_p,
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)
from maxjax._primitives.joining import concatenate
from maxjax._primitives.widths import NUMBERS, refusal
from maxjax.lax._slicing import as_operand, from_end, same_dtype

__all__ = [
    "GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers", "gather",
    "gather_p", "index_take", "scatter", "scatter_add", "scatter_add_p", "scatter_apply",
    "scatter_max", "scatter_max_p", "scatter_min", "scatter_min_p", "scatter_mul",
    "scatter_mul_p", "scatter_p", "scatter_sub", "scatter_sub_p",
]


def index_take(src: Any, idxs: Any, axes: Sequence[int]) -> Array:
    """The slices of ``src`` at vectors of indices along ``axes``, shape (n, *rest of the shape).

    Args:
      src: an array.
      idxs: for each of ``axes`` an integer vector of length n; negative ones count from the end.

    >>> lax.index_take(jnp.arange(6).reshape(3, 2), (jnp.array([2, 0]),), (0,))
    Array([[4, 5],
           [0, 1]], dtype=int32)
    """
    src = as_operand(src)
    axes = tuple(operator.index(axis) for axis in axes)
    columns = [expand_axis(from_end(as_operand(index), src.shape[axis]), 1)
               for index, axis in zip(idxs, axes, strict=True)]
    sizes = tuple(1 if dim in axes else size for dim, size in enumerate(src.shape))
    numbers = GatherDimensionNumbers(
        tuple(range(1, src.ndim - len(axes) + 1)), tuple(sorted(axes)), axes)
    return gather(src, concatenate(columns, 1), numbers, sizes)


def _indices(indices: Any) -> Array:
    indices = as_operand(indices)
    if not dtypes.is_integer(indices.dtype):
        raise ValueError("indices must have an integer type")
    return indices


def fill_parameter(fill_value: Any, dtype: Any) -> FillValue | None:
    """A fill value as the parameter of a gather from an array of ``dtype``.

    Raises:
      TypeError: it is not a static scalar.
    """
    if fill_value is None:
        return None
    if isinstance(fill_value, Array):
        raise TypeError(f"fill_value must be a static scalar; got {fill_value!r}, which is "
                        f"unhashable: {type(fill_value).__name__}")
    if isinstance(fill_value, complex) and not dtypes.is_complex(dtype):
        raise TypeError("float() argument must be a string or a real number, not 'complex'")
    if dtypes.is_key(dtype):
        return FillValue.of(np.asarray(fill_value, dtype.physical)[()])
    return FillValue.of(np.asarray(convert(np.asarray(fill_value), dtype))[()])


def gather(operand: ArrayLike, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers,
           slice_sizes: Sequence[int], *, unique_indices: bool = False,
           indices_are_sorted: bool = False, mode: str | GatherScatterMode | None = None,
           fill_value: Any = None) -> Array:
    """Windows of ``operand`` at computed positions; see XLA's Gather.

    Args:
      operand: the array that is read.
      start_indices: integers; index vectors along the last dimension.
      dimension_numbers: which dimensions correspond.
      slice_sizes: the size of a window in each dimension of the operand.
      unique_indices, indices_are_sorted: promises, which allow faster code.
      mode: how out-of-bounds windows are handled; the default is a promise that there are none.
      fill_value: their value in mode "fill": by default NaN, the least signed or the greatest
        unsigned integer.

    Returns:
      An array of ``operand``'s dtype: the batch dimensions of the indices and those of the windows.

    Raises:
      TypeError: the shapes do not fit the dimension numbers.
      ValueError: the indices are not integers, or the mode is unknown.

    See also: ``lax.scatter``, ``lax.dynamic_slice``, ``jnp.take``, ``jnp.take_along_axis``,
    ``lax.GatherDimensionNumbers``.

    >>> numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> lax.gather(jnp.arange(6).reshape(3, 2), jnp.array([[2], [0]]), numbers, (1, 2))
    Array([[4, 5],
           [0, 1]], dtype=int32)
    """
    operand = as_operand(operand)
    indices = _indices(start_indices)
    parsed = (GatherScatterMode.PROMISE_IN_BOUNDS if mode is None
              else GatherScatterMode.from_any(mode))
    fills = parsed in (GatherScatterMode.FILL_OR_DROP, GatherScatterMode.ONE_HOT)
    numbers = GatherDimensionNumbers(*[tuple(map(int, dims)) for dims in dimension_numbers])
    return gather_p.bind(
        operand, indices, dimension_numbers=numbers,
        slice_sizes=tuple([size_index(size) for size in slice_sizes]), mode=parsed,
        fill_value=fill_parameter(fill_value, operand.dtype) if fills else None,
        unique_indices=bool(unique_indices), indices_are_sorted=bool(indices_are_sorted))


# The arithmetic by which updates are combined, for booleans' sake: it has no such sums.
_OF_NUMBERS = {scatter_add_p: "add", scatter_sub_p: "sub", scatter_mul_p: "mul"}


def _scatter(primitive: Primitive, name: str, operand: Any, indices: Any, updates: Any,
             dimension_numbers: ScatterDimensionNumbers, indices_are_sorted: bool,
             unique_indices: bool, mode: Any) -> Array:
    operand = as_operand(operand)
    indices = _indices(indices)
    updates = same_dtype(name, operand, updates)
    if operand.dtype == dtypes.bool_ and primitive in _OF_NUMBERS:
        raise refusal(_OF_NUMBERS[primitive], operand.dtype, " at position 0", NUMBERS)
    numbers = ScatterDimensionNumbers(*[tuple(map(int, dims)) for dims in dimension_numbers])
    return primitive.bind(
        operand, indices, updates, dimension_numbers=numbers,
        mode=GatherScatterMode.from_any(mode), unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted))


def scatter(operand: ArrayLike, scatter_indices: Any, updates: Any,
            dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
            unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """``operand`` with windows replaced by ``updates``; see XLA's Scatter.

    The last of several updates of one element wins. Out-of-bounds windows are dropped,
    unless ``mode`` is "clip".

    Returns:
      An array of ``operand``'s shape and dtype.

    Raises:
      TypeError: shapes or dtypes do not fit.
      ValueError: the indices are not integers, or the mode is unknown.

    See also: ``lax.scatter_add``, ``lax.gather``, ``lax.dynamic_update_slice``, ``jnp.ndarray.at``.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter(jnp.zeros(3), jnp.array([[2], [0]]), jnp.array([5., 6.]), numbers)
    Array([6., 0., 5.], dtype=float32)
    """
    return _scatter(scatter_p, "scatter", operand, scatter_indices, updates, dimension_numbers,
                    indices_are_sorted, unique_indices, mode)


def scatter_add(operand: ArrayLike, scatter_indices: Any, updates: Any,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False,
                mode: str | GatherScatterMode | None = None) -> Array:
    """``operand`` with ``updates`` added to windows; arguments as for ``scatter``.

    Args:
      operand: an array; it is left as it is.
      scatter_indices: integers, whose last dimension is an index.
      updates: the windows.
      dimension_numbers: a ``ScatterDimensionNumbers``.
      indices_are_sorted, unique_indices: promises about the indices.
      mode: what is done out of bounds; a ``GatherScatterMode``, or its name.

    Returns:
      An array of ``operand``'s shape and dtype. Updates of the same place are all added.

    See also: ``lax.scatter``, ``lax.scatter_mul``, ``lax.gather``, ``jax.ops.segment_sum``,
    ``jnp.ndarray.at``.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_add(jnp.zeros(3), jnp.array([[2], [2]]), jnp.array([5., 6.]), numbers)
    Array([ 0.,  0., 11.], dtype=float32)
    """
    return _scatter(scatter_add_p, "scatter_add", operand, scatter_indices, updates,
                    dimension_numbers, indices_are_sorted, unique_indices, mode)


def scatter_sub(operand: ArrayLike, scatter_indices: Any, updates: Any,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False,
                mode: str | GatherScatterMode | None = None) -> Array:
    """``operand`` with ``updates`` subtracted from windows; arguments as for ``scatter``.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_sub(jnp.zeros(3), jnp.array([[2], [2]]), jnp.array([5., 6.]), numbers)
    Array([  0.,   0., -11.], dtype=float32)
    """
    return _scatter(scatter_sub_p, "scatter_sub", operand, scatter_indices, updates,
                    dimension_numbers, indices_are_sorted, unique_indices, mode)


def scatter_mul(operand: ArrayLike, scatter_indices: Any, updates: Any,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False,
                mode: str | GatherScatterMode | None = None) -> Array:
    """``operand`` with windows multiplied by ``updates``; arguments as for ``scatter``.

    Differentiable in the updates only where ``unique_indices`` is promised.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_mul(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([5., 6.]), numbers)
    Array([ 1.,  1., 30.], dtype=float32)
    """
    return _scatter(scatter_mul_p, "scatter_mul", operand, scatter_indices, updates,
                    dimension_numbers, indices_are_sorted, unique_indices, mode)


def scatter_min(operand: ArrayLike, scatter_indices: Any, updates: Any,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False,
                mode: str | GatherScatterMode | None = None) -> Array:
    """``operand`` with the lesser of windows and ``updates``; arguments as for ``scatter``.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_min(jnp.ones(3), jnp.array([[2], [0]]), jnp.array([5., -1.]), numbers)
    Array([-1.,  1.,  1.], dtype=float32)
    """
    return _scatter(scatter_min_p, "scatter_min", operand, scatter_indices, updates,
                    dimension_numbers, indices_are_sorted, unique_indices, mode)


def scatter_max(operand: ArrayLike, scatter_indices: Any, updates: Any,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False,
                mode: str | GatherScatterMode | None = None) -> Array:
    """``operand`` with the greater of windows and ``updates``; arguments as for ``scatter``.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_max(jnp.ones(3), jnp.array([[2], [0]]), jnp.array([5., -1.]), numbers)
    Array([1., 1., 5.], dtype=float32)
    """
    return _scatter(scatter_max_p, "scatter_max", operand, scatter_indices, updates,
                    dimension_numbers, indices_are_sorted, unique_indices, mode)


def scatter_apply(operand: ArrayLike, scatter_indices: Any, func: Callable[[Array], Array],
                  dimension_numbers: ScatterDimensionNumbers, *, update_shape: Sequence[int] = (),
                  indices_are_sorted: bool = False, unique_indices: bool = False,
                  mode: str | GatherScatterMode | None = None) -> Array:
    """``operand`` with ``func`` (elementwise) applied to windows of shape ``update_shape``.

    ``func`` is applied to an element once for each window that contains it. If the indices are
    traced and not promised to be unique, this takes one selection for each window.

    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> lax.scatter_apply(jnp.arange(3.), jnp.array([[2]]), lambda x: -x, numbers,
    ...                   update_shape=(1,))
    Array([ 0.,  1., -2.], dtype=float32)
    """
    operand = as_operand(operand)
    indices = _indices(scatter_indices)
    numbers = ScatterDimensionNumbers(*[tuple(map(int, dims)) for dims in dimension_numbers])
    ones = full(tuple(update_shape), 1, dtypes.int32)
    check_scatter(operand, indices, ones, numbers)
    times = _scatter(scatter_add_p, "scatter_add", full(operand.shape, 0, dtypes.int32), indices,
                     ones, numbers, indices_are_sorted, unique_indices, mode)
    windows = int(np.prod(indices.shape[:-1]))
    if unique_indices or windows <= 1:
        most = min(windows, 1)
    elif isinstance(times, Tracer):
        most = windows
    else:
        most = int(np.max(np.asarray(times), initial=0))
    result = operand
    for done in range(most):
        applied = convert_element_type(as_operand(func(result)), operand.dtype)
        result = select(gt_p.bind(times, np.int32(done)), result, applied)
    return result
