"""Joining and splitting of arrays."""

from __future__ import annotations

import itertools
import operator
from typing import Any, overload

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives import layout, slicing
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.joining import concatenate_p
from maxjax.lax._operands import canonical_axis
from maxjax.lax._over_mesh import check_unstack
from maxjax.numpy import _shape as shapes
from maxjax.numpy._at_once import at_once
from maxjax.numpy._promotion import (
    apart,
    as_array,
    check_arraylike,
    check_out,
    concrete,
    promote_dtypes,
)

__all__ = [
    "append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "block", "column_stack",
    "concat", "concatenate", "dsplit", "dstack", "hsplit", "hstack", "split", "stack", "unstack",
    "vsplit", "vstack",
]

# --- joining --------------------------------------------------------------------------------------

def _arrays(name: str, arrays: Any, dtype: Any = None) -> list[Array]:
    """The arrays in an argument that is a sequence, or the rows of an array."""
    if isinstance(arrays, (np.ndarray, Array)):
        array = as_array(arrays)
        if not array.ndim:
            raise ValueError(f"{name} takes the arrays along the first axis of an array, got a "
                             "scalar")
        return list(array)
    check_arraylike(name, *arrays)
    if dtype is not None:
        dtype = dtypes.argument(dtype, name)
        return [convert_element_type(as_array(x), dtype) for x in arrays]
    return [as_array(x) for x in promote_dtypes(name, *arrays)] if len(arrays) else []


def concatenate(arrays: Any, axis: int | None = 0, dtype: DTypeLike | None = None) -> Array:
    """Concatenates arrays along an axis; they are flattened first if it is None.

    Dtypes promote by JAX's rules: int32 and float16 give float16, where NumPy has float64.

    Args:
      arrays: a sequence of arrays, or one array, whose leading dimension is the sequence. Sizes
        agree except along ``axis``.
      axis: along which; None: of the flattened arrays.
      dtype: None: the one to which theirs promote.

    Returns:
      An array whose size along ``axis`` is the sum of theirs.

    Raises:
      TypeError: they differ in rank, or in the size of another axis.
      ValueError: there are none.

    See also: ``stack``, ``append``, ``vstack``, ``hstack``, ``split``, ``block``.

    >>> jnp.concatenate([jnp.array([[1, 2]]), jnp.array([[3.5, 4]])], axis=0)
    Array([[1. , 2. ],
           [3.5, 4. ]], dtype=float32)
    """
    if isinstance(arrays, (np.ndarray, Array)):
        array = as_array(arrays)
        if not array.ndim:
            raise ValueError("Need at least one array to concatenate.")
        if axis is None or array.ndim < 2:
            arrays = _arrays("concatenate", arrays)
        elif array.shape[0] != 0:    # rows concatenated along their axis: no need to split them
            return _merged(array if dtype is None else convert_element_type(
                array, dtypes.argument(dtype, "concatenate")), axis)
    arrays = [*arrays]
    if not arrays:
        raise ValueError("Need at least one array to concatenate.")
    parts = _arrays("concatenate", arrays, dtype)
    if axis is None:
        parts = [layout.reshape(x, (x.size,)) for x in parts]
        axis = 0
    return joined(parts, axis)


def _merged(x: Array, axis: int) -> Array:
    index = canonical_axis(axis, x.ndim - 1)
    x = shapes.moveaxis(x, 0, index)
    sizes = (*x.shape[:index], x.shape[index] * x.shape[index + 1], *x.shape[index + 2:])
    return layout.reshape(x, sizes)


def joined(parts: list[Array], axis: int) -> Array:
    """Concatenates arrays of one dtype, after checking their shapes."""
    given = [x.shape for x in parts]
    if not given[0] and len(parts) > 1:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    if len({len(s) for s in given}) > 1:
        raise TypeError("Cannot concatenate arrays with different numbers of dimensions: got "
                        f"{', '.join(map(str, given))}.")
    rank = len(given[0])
    if rank == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    index = canonical_axis(axis, rank)
    if any(s[:index] + s[index + 1:] != given[0][:index] + given[0][index + 1:] for s in given):
        raise TypeError(
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one "
            f"being concatenated: concatenating along dimension {index} for shapes "
            f"{', '.join(map(str, given))}.")
    if len(parts) == 1:
        return parts[0]
    return concatenate_p.bind(*parts, dimension=index)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """As ``concatenate``, under the array API's name.

    Args:
      arrays: a sequence of arrays; sizes agree except along ``axis``.
      axis: along which; None: of the flattened arrays.

    Returns:
      An array whose size along ``axis`` is the sum of theirs, of the dtype to which theirs promote.

    Raises:
      TypeError: they differ in rank, or in the size of another axis.
      ValueError: there are none.

    See also: ``concatenate``, ``stack``.

    >>> jnp.concat([jnp.array([1, 2]), jnp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0, out: Any = None, dtype: DTypeLike | None = None) -> Array:
    """Stacks arrays of one shape along a new axis.

    Args:
      arrays: a sequence of arrays of one shape, or one array, whose leading dimension is the
        sequence.
      axis: where the new axis stands in the result.
      out: None: arrays are immutable, so that nothing is written into one.
      dtype: None: the one to which theirs promote.

    Returns:
      An array with one more dimension, whose size is the number of arrays.

    Raises:
      ValueError: the shapes differ, or there are none.
      NotImplementedError: ``out`` is given.

    See also: ``concatenate``, ``unstack``, ``vstack``, ``hstack``, ``jax.tree.map``.

    >>> jnp.stack([jnp.array([1, 2]), jnp.array([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    check_out("stack", out)
    if not len(arrays):     # which raises TypeError of what has no length, such as an iterator
        raise ValueError("Need at least one array to stack.")
    if not isinstance(arrays, (np.ndarray, Array)):
        arrays = list(arrays)
    if isinstance(arrays, (np.ndarray, Array)):
        x = as_array(arrays)
        if dtype is not None:
            x = convert_element_type(x, dtypes.argument(dtype, "stack"))
        return shapes.moveaxis(x, 0, axis)
    parts = _arrays("stack", arrays, dtype)
    first = parts[0].shape
    for x in parts:
        if x.shape != first:
            given = [one.shape for one in parts]
            if len(set(map(len, given))) > 1:
                raise ValueError("Cannot stack arrays with different numbers of dimensions: got "
                                 f"{', '.join(map(str, given))}.")
            raise ValueError(
                f"All input arrays must have the same shape. Got {first}, {x.shape}.")
    index = canonical_axis(axis, len(first) + 1)
    wide = (*first[:index], 1, *first[index:])
    return joined([layout.reshape(x, wide) for x in parts], index)


@at_once
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of an array along an axis.

    Args:
      x: an array.
      axis: along which.

    Returns:
      A tuple of arrays without the axis.

    Raises:
      ValueError: the array has no axis.
      ShardingTypeError: the axis is split over Explicit axes.

    See also: ``stack``, ``split``, ``take``.

    >>> jnp.unstack(jnp.array([[1, 2], [3, 4]]), axis=1)
    (Array([1, 3], dtype=int32), Array([2, 4], dtype=int32))
    """
    x = as_array(x, "unstack")
    if x.ndim == 0:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was "
                         "passed.")
    index = canonical_axis(axis, x.ndim)
    check_unstack(x, index)
    return tuple(
        layout.squeeze_p.bind(slicing.slice_in_dim(x, i, i + 1, index), dimensions=(index,))
        for i in range(x.shape[index]))


@overload
def atleast_1d() -> tuple[()]: ...
@overload
def atleast_1d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> tuple[Array, ...]: ...


def atleast_1d(*arys: Any) -> Any:
    """Each array with at least one dimension.

    Args:
      arys: arrays or scalars; lists are refused, unlike NumPy's.

    Returns:
      The array, with shape ``(1,)`` if it was a scalar; a tuple of them for several.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``atleast_2d``, ``atleast_3d``, ``expand_dims``.

    >>> jnp.atleast_1d(5)
    Array([5], dtype=int32, weak_type=True)
    """
    return shapes.at_least("atleast_1d", arys, shapes.at_least_1d)


@overload
def atleast_2d() -> tuple[()]: ...
@overload
def atleast_2d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> tuple[Array, ...]: ...


def atleast_2d(*arys: Any) -> Any:
    """Each array with at least two dimensions, new ones first.

    Args:
      arys: arrays or scalars; lists are refused, unlike NumPy's.

    Returns:
      The array, ``(1, N)`` if it was a vector and ``(1, 1)`` if a scalar; a tuple of them for
      several.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``atleast_1d``, ``atleast_3d``, ``expand_dims``.

    >>> jnp.atleast_2d(jnp.arange(3))
    Array([[0, 1, 2]], dtype=int32)
    """
    return shapes.at_least("atleast_2d", arys, shapes.at_least_2d)


@overload
def atleast_3d() -> tuple[()]: ...
@overload
def atleast_3d(x: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(x: ArrayLike, y: ArrayLike, /, *arys: ArrayLike) -> tuple[Array, ...]: ...


def atleast_3d(*arys: Any) -> Any:
    """Each array with at least three dimensions.

    >>> jnp.atleast_3d(jnp.arange(3)).shape
    (1, 3, 1)
    """
    def three(x: Array) -> Array:
        shapes = {0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}
        return layout.reshape(x, shapes[x.ndim]) if x.ndim in shapes else apart(x)
    return shapes.at_least("atleast_3d", arys, three)


def vstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Concatenates arrays along the first axis, vectors as rows.

    Args:
      tup: a sequence of arrays, or one array; sizes agree except along the first axis.
      dtype: None: the one to which theirs promote.

    Returns:
      An array of two dimensions or more; vectors of size N give rows, ``(count, N)``.

    Raises:
      ValueError: there are none.
      TypeError: sizes of other axes differ.

    See also: ``hstack``, ``dstack``, ``stack``, ``concatenate``.

    >>> jnp.vstack([jnp.array([1, 2]), jnp.array([[3, 4], [5, 6]])])
    Array([[1, 2],
           [3, 4],
           [5, 6]], dtype=int32)
    """
    if isinstance(tup, (np.ndarray, Array)) and tup.ndim:
        return concatenate(shapes.with_rows(tup, lambda row: (1,) * (2 - len(row)) + row), 0, dtype)
    return concatenate([atleast_2d(x) for x in _arrays("vstack", tup, dtype)], 0, dtype)


def hstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Concatenates arrays along the second axis, vectors along their only axis.

    Args:
      tup: a sequence of arrays, or one array; sizes agree except along the second axis (vectors:
        the only one).
      dtype: None: the one to which theirs promote.

    Returns:
      An array of their rank, of one dimension or more.

    Raises:
      ValueError: there are none.
      TypeError: sizes of other axes differ.

    See also: ``vstack``, ``dstack``, ``column_stack``, ``concatenate``.

    >>> jnp.hstack([jnp.array([[1], [2]]), jnp.array([[3], [4]])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    if isinstance(tup, (np.ndarray, Array)) and tup.ndim:
        return concatenate(shapes.with_rows(tup, lambda row: row or (1,)), int(tup.ndim > 2), dtype)
    parts = [atleast_1d(x) for x in _arrays("hstack", tup, dtype)]
    if not parts:
        raise IndexError("hstack needs at least one array")
    return concatenate(parts, 0 if parts[0].ndim == 1 else 1, dtype)


def dstack(tup: Any, dtype: DTypeLike | None = None) -> Array:
    """Concatenates arrays along the third axis.

    Args:
      tup: a sequence of arrays, or one array; sizes agree except along the third axis.
      dtype: None: the one to which theirs promote.

    Returns:
      An array of three dimensions or more; vectors are ``(1, N, 1)`` and matrices ``(M, N, 1)``.

    Raises:
      ValueError: there are none.
      TypeError: sizes of other axes differ.

    See also: ``vstack``, ``hstack``, ``stack``, ``concatenate``.

    >>> jnp.dstack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    if isinstance(tup, (np.ndarray, Array)) and tup.ndim:
        return concatenate(shapes.with_rows(tup, lambda row: (
            (1,) * (2 - len(row)) + row + (1,) * (len(row) < 3))), 2, dtype)
    return concatenate([atleast_3d(x) for x in _arrays("dstack", tup, dtype)], 2, dtype)


def column_stack(tup: Any) -> Array:
    """Concatenates arrays along the second axis, vectors as columns.

    Args:
      tup: a sequence of vectors ``(N,)`` and matrices ``(N, M)``, or one array.

    Returns:
      A matrix with N rows, of the dtype to which theirs promote.

    Raises:
      ValueError: there are none.
      TypeError: the numbers of rows differ.

    See also: ``hstack``, ``stack``, ``vstack``.

    >>> jnp.column_stack([jnp.array([1, 2]), jnp.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    if isinstance(tup, (np.ndarray, Array)) and tup.ndim:
        return concatenate(shapes.with_rows(tup, lambda row: row + (1,) * (2 - len(row))), 1)
    parts = [as_array(x) for x in _arrays("column_stack", tup)]
    return concatenate(
        [layout.transpose(atleast_2d(x), (1, 0)) if x.ndim < 2 else x for x in parts], 1)


@at_once
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """``arr`` followed by ``values`` along an axis (both flattened by default).

    Each call copies both: in a loop, ``lax.scan``, or a list and one ``stack``, is cheaper.

    Args:
      arr: an array; it is left as it is.
      values: an array, with the sizes of ``arr`` except along ``axis``.
      axis: along which; None: of both flattened.

    Returns:
      A new array, of the dtype to which the two promote.

    Raises:
      TypeError: they differ in rank, or in the size of another axis.

    See also: ``concatenate``, ``insert``, ``delete``, ``stack``.

    >>> jnp.append(jnp.array([1, 2]), jnp.array([3.5]))
    Array([1. , 2. , 3.5], dtype=float32)
    """
    if axis is None:
        return concatenate([shapes.ravel(arr), shapes.ravel(values)], 0)
    return concatenate([arr, values], axis)


@at_once
def block(arrays: Any) -> Array:
    """An array from nested lists of blocks: the innermost are concatenated along the last axis.

    Args:
      arrays: an array, or lists of them nested to any, the same, depth.

    Returns:
      An array of as many dimensions as the lists are deep, or more, of the promoted dtype.

    Raises:
      ValueError: lists are empty, or nested to different depths.
      TypeError: sizes do not fit.

    See also: ``concatenate``, ``stack``, ``vstack``, ``hstack``, ``jax.scipy.linalg.block_diag``.

    >>> jnp.block([[jnp.ones((1, 2)), jnp.zeros((1, 1))], [jnp.zeros((1, 3))]])
    Array([[1., 1., 0.],
           [0., 0., 0.]], dtype=float32)
    """
    def depth(value: Any) -> int:
        if isinstance(value, tuple):
            raise ValueError(f"jax.numpy.block does not allow tuples, got {value}")
        if not isinstance(value, list):
            return 0
        if not value:
            raise ValueError("jax.numpy.block does not allow empty list arguments")
        depths = {depth(item) for item in value}
        if len(depths) > 1:
            raise ValueError("Mismatched list depths in jax.numpy.block")
        return 1 + depths.pop()

    levels = depth(arrays)

    def join(value: Any, level: int) -> Array:
        if not isinstance(value, list):
            return as_array(value, "block")
        parts = [join(item, level + 1) for item in value]
        rank = max(levels, *(x.ndim for x in parts))
        return concatenate([shapes.reshape(x, (1,) * (rank - x.ndim) + x.shape) for x in parts],
                           rank - levels + level)

    return join(arrays, 0)


# --- splitting ------------------------------------------------------------------------------------

def _split(name: str, ary: Any, indices_or_sections: Any, axis: int) -> list[Array]:
    x = as_array(ary, name)
    index = shapes.axis_as_index(axis, x.ndim)
    total = x.shape[index]
    sections = indices_or_sections
    if isinstance(sections, Tracer):
        sections = concrete(
            sections, f"in argument indices_or_sections of jnp.{name}. Please mark it as static")
    if isinstance(sections, (tuple, list)) or getattr(sections, "shape", ()) != ():
        given = [operator.index(concrete(i, f"in jax.numpy.{name} argument 1")) for i in sections]
        # As the bounds of slices, from the end if they are negative.
        points = [0, *(min(max(i + total if i < 0 else i, 0), total) for i in given), total]
    else:
        count = int(sections)
        if count == 0:
            raise ZeroDivisionError("the number of sections must not be 0")
        part, rest = divmod(total, count)
        if rest and name != "array_split":
            raise ValueError(f"array split does not result in an equal division: rest is {rest}")
        if count < 0 and total:
            raise ValueError(f"Sum of sizes 0.0 must be equal to dimension {index} of the operand "
                             f"shape {list(x.shape)}")
        if count < 0:
            return []
        points = [0, *itertools.accumulate([part + 1] * rest + [part] * (count - rest))]
    sizes = [stop - start for start, stop in zip(points[:-1], points[1:], strict=True)]
    if min(sizes) < 0:
        raise ValueError("Sizes passed to split must be nonnegative, got "
                         f"{[np.int64(size) for size in sizes]}")
    return [slicing.slice_in_dim(x, start, stop, index)
            for start, stop in zip(points[:-1], points[1:], strict=True)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Parts of equal size, or between given indices.

    Args:
      ary: an array.
      indices_or_sections: the number of parts, or a sequence of the indices between them, known
        while tracing; beyond the end, parts are empty.
      axis: the axis that is divided.

    Returns:
      A list of arrays; copies, not views as NumPy's.

    Raises:
      ValueError: the size is not a multiple of the number of parts.

    See also: ``array_split``, ``hsplit``, ``vsplit``, ``unstack``, ``concatenate``.

    >>> jnp.split(jnp.arange(5), [2, 3])
    [Array([0, 1], dtype=int32), Array([2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """As ``split``; parts may differ in size by one.

    Args:
      ary: an array.
      indices_or_sections: the number of parts, of which the first are the larger ones; or the
        indices between them.
      axis: the axis that is divided.

    Returns:
      A list of arrays.

    See also: ``split``, ``hsplit``, ``vsplit``, ``concatenate``.

    >>> [len(part) for part in jnp.array_split(jnp.arange(7), 3)]
    [3, 2, 2]
    """
    return _split("array_split", ary, indices_or_sections, axis)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Splits along the first axis.

    Args:
      ary: an array.
      indices_or_sections: the number of parts, or the indices between them.

    Returns:
      A list of arrays.

    Raises:
      ValueError: the size is not a multiple of the number of parts.

    See also: ``split``, ``hsplit``, ``dsplit``, ``vstack``.

    >>> jnp.vsplit(jnp.array([[1, 2], [3, 4]]), 2)
    [Array([[1, 2]], dtype=int32), Array([[3, 4]], dtype=int32)]
    """
    return _split("vsplit", ary, indices_or_sections, 0)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Splits along the second axis (the only one of a vector).

    >>> jnp.hsplit(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    x = as_array(ary, "hsplit")
    return _split("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Splits along the third axis.

    >>> [part.shape for part in jnp.dsplit(jnp.ones((2, 3, 4)), 2)]
    [(2, 3, 2), (2, 3, 2)]
    """
    return _split("dsplit", ary, indices_or_sections, 2)
