"""Elements taken by index, and expressions of indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._higher_order.named_calls import named
from maxjax._ir.dimensions import broadcast_shapes
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.arithmetic import maximum, minimum
from maxjax._primitives.broadcasting import expand_axis
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.gather_plan import (
    FillValue,
    GatherDimensionNumbers,
    GatherScatterMode,
    default_fill,
    fills_outside,
)
from maxjax._primitives.indexing import gather_p
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import reshape
from maxjax._primitives.rules import scalar_like
from maxjax.lax._gather_scatter import fill_parameter
from maxjax.lax._operands import canonical_axis
from maxjax.lax._slicing import from_end
from maxjax.numpy import _division
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy import _whole_rules as rules
from maxjax.numpy._at_once import at_once
from maxjax.numpy._getitem import getitem
from maxjax.numpy._getitem import take as take_index
from maxjax.numpy._index_arrays import as_signed
from maxjax.numpy._promotion import (
    as_array,
    broadcast_to,
    check_arraylike,
    check_out,
    concrete,
    promote_dtypes,
)
from maxjax.numpy._where import where
from maxjax.numpy._whole import WORDS, whole

__all__ = ["choose", "index_exp", "ix_", "s_", "take", "take_along_axis"]

index_exp = np.index_exp
s_ = np.s_


def _mode(mode: str | GatherScatterMode | None) -> GatherScatterMode:
    return GatherScatterMode.from_any(mode)


def flat(x: Array) -> Array:
    return reshape(x, (x.size,))


@at_once
def take(a: Any, indices: Any, axis: int | None = None, out: None = None, mode: str | None = None,
         unique_indices: bool = False, indices_are_sorted: bool = False,
         fill_value: Any = None) -> Array:
    """The elements of ``a`` at ``indices`` along an axis (None: of the flattened array).

    Args:
      a: (..., n, ...).
      indices: integers of any shape, which replaces the axis in the result.
      axis: along which; None: of the flattened array.
      out: None: arrays are immutable.
      mode: "fill" (the default) gives ``fill_value`` out of bounds (by default NaN, the least
        signed, the greatest unsigned integer), "clip" the nearest element, "wrap" wraps around.
      unique_indices, indices_are_sorted: promises, by which the gradient may be faster.
      fill_value: what stands out of bounds with "fill".

    Returns:
      An array of ``a``'s dtype. Negative indices count from the end; those beyond the start are out
      of bounds, too. No index raises, unlike NumPy's, since its value may not be known.

    Raises:
      ValueError: the indices are not integers.
      IndexError: the axis has size 0 and there are indices.
      NotImplementedError: ``mode`` is "raise", or ``out`` is given.

    See also: ``take_along_axis``, ``put``, ``compress``, ``where``, ``lax.gather``.

    >>> jnp.take(jnp.array([10, 20, 30]), jnp.array([2, -1, 0]))
    Array([30, 30, 10], dtype=int32)
    >>> jnp.take(jnp.array([10.0, 20.0]), 5)
    Array(nan, dtype=float32)
    """
    check_out("take", out)
    check_arraylike("take", a, indices)
    a, indices = as_array(a), as_array(indices)
    if indices.dtype == dtypes.bool_:
        indices = convert_element_type(indices, dtypes.int32)
    if axis is None:
        a, axis = flat(a), 0
    axis = canonical_axis(axis, a.ndim)
    size = a.shape[axis]
    if not size and indices.size:
        raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
    if not dtypes.is_integer(indices.dtype):
        if indices.size:
            raise ValueError("indices must have an integer type")
        indices = convert_element_type(indices, dtypes.int32)      # as of an empty list
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    wrap = mode == "wrap"
    if wrap:
        if type(size) is int and size > dtypes.iinfo(indices.dtype).max:
            raise OverflowError(f"Python integer {size} out of bounds for {indices.dtype}")
        indices = _division.remainder(indices, size)
        mode = "promise_in_bounds"
    parsed = _mode(mode)
    options: dict[str, Any] = {"axis": axis, "mode": parsed, "unique": bool(unique_indices),
               "ordered": bool(indices_are_sorted)}
    fill = fill_parameter(fill_value, a.dtype) if fills_outside(parsed) else None
    if not wrap and type(size) is int and size > dtypes.iinfo(indices.dtype).max:
        if parsed is not GatherScatterMode.CLIP:
            indices = _counted_from_the_end(indices, size)
        return _take_filled(a, convert_element_type(indices, dtypes.int32), fill=fill,
                            counted=True, **options)
    return _take(a, indices, fill=fill, **options)


def _counted_from_the_end(indices: Array, size: int) -> Array:
    """Negative indices counted from the end, as JAX's ``take`` does. In a dtype that cannot tell
    the size the sum wraps around: of 300 elements int8's -1 is the 43rd."""
    if dtypes.is_unsigned(indices.dtype):
        return indices
    wrapped = np.asarray(size).astype(indices.dtype)
    return where(ufuncs.less(indices, 0), indices + wrapped, indices)


def _take_filled(a: Array, indices: Array, *, axis: int, mode: GatherScatterMode, unique: bool,
                 ordered: bool, fill: FillValue | None, counted: bool = False) -> Array:
    wraps, size = not counted and mode is not GatherScatterMode.CLIP, a.shape[axis]
    if wraps and mode is GatherScatterMode.FILL_OR_DROP and isinstance(size, int):
        indices, wraps = _counted_from_the_end(indices, size), False
    if (mode is GatherScatterMode.CLIP and not indices.ndim and isinstance(size, int)
            and indices.dtype in (dtypes.uint32, dtypes.uint64, dtypes.int64)):
        # A gather clamps what an index in brackets would cut off to 32 bits.
        first, last = (scalar_like(place, indices.dtype) for place in (0, size - 1))
        indices = minimum(maximum(indices, first), last)
    if fill is None:
        fill = _default(a.dtype, mode)
    return take_index(a, (slice(None),) * axis + (indices,), mode,
                      None if fill is None else fill.value, unique, ordered, wraps)


def _default(dtype: Any, mode: GatherScatterMode) -> FillValue | None:
    """What a gather is told of the value out of bounds where none is given."""
    if mode is not GatherScatterMode.FILL_OR_DROP or dtypes.is_opaque(dtype):
        return None
    return FillValue.of(default_fill(dtype))


@whole("take", rules.take, accepts=WORDS, moves=True)
def _take_default(a: Array, indices: Array, **options: Any) -> Array:
    return _take_filled(a, indices, fill=None, **options)


@named("_take", "axis", "mode", "unique", "ordered", "fill")
def _take(a: Array, indices: Array, *, fill: FillValue | None, **options: Any) -> Array:
    if fill is None:
        return _take_default(a, indices, **options)
    return _take_filled(a, indices, fill=fill, **options)


@at_once
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1,
                    mode: str | GatherScatterMode | None = None, fill_value: Any = None, *,
                    wrap_negative_indices: bool = True) -> Array:
    """For each slice of ``arr`` along an axis, its elements at a slice of ``indices``.

    Args:
      arr: (..., n, ...).
      indices: integers (..., m, ...), of the rank of ``arr``; other dimensions broadcast.
      axis: the axis; None flattens ``arr`` and takes one-dimensional indices.
      mode: "fill" (the default), "clip" or "promise_in_bounds".
      fill_value: what stands out of bounds with "fill"; None: NaN, the least signed or the greatest
        unsigned integer.
      wrap_negative_indices: whether negative indices count from the end; otherwise they are out of
        bounds.

    Returns:
      An array of ``a``'s dtype, of the shape of ``indices`` broadcast to the other dimensions of
      ``arr``.

    Raises:
      TypeError: the indices are not integers.
      ValueError: the ranks differ.

    See also: ``take``, ``argsort``, ``put_along_axis``, ``lax.gather``.

    >>> x = jnp.array([[3, 1, 2], [4, 6, 5]])
    >>> jnp.take_along_axis(x, jnp.argsort(x, axis=1), axis=1)
    Array([[1, 2, 3],
           [4, 5, 6]], dtype=int32)
    """
    check_arraylike("take_along_axis", arr, indices)
    arr, indices = as_array(arr), as_array(indices)
    if not dtypes.is_integer(indices.dtype):
        raise TypeError("take_along_axis indices must be of integer type, got "
                        f"{indices.dtype}")
    parsed = _mode(mode)
    return _take_along_axis(
        arr, indices, axis=axis, mode=parsed, wrap=bool(wrap_negative_indices),
        fill=fill_parameter(fill_value, arr.dtype) if fills_outside(parsed) else None)


@whole("take_along_axis", rules.take_along_axis, accepts=WORDS, moves=True)
@named("take_along_axis", "axis", "mode", "fill", "wrap")
def _take_along_axis(arr: Array, indices: Array, *, axis: int | None, mode: GatherScatterMode,
                     fill: FillValue | None, wrap: bool) -> Array:
    if axis is None:
        if indices.ndim != 1:
            raise ValueError("take_along_axis indices must be 1D if axis=None, got shape "
                             f"{indices.shape}")
        arr, axis = flat(arr), 0
    rank = arr.ndim
    if rank != indices.ndim:
        raise ValueError(
            "indices and arr must have the same number of dimensions; "
            f"{indices.ndim} vs. {rank}")
    axis = canonical_axis(axis, rank)
    indices = as_signed(indices)
    if wrap:
        indices = from_end(indices, arr.shape[axis])
    if fills_outside(mode):
        fill = fill or _default(arr.dtype, mode)
    return _gather_along(arr, indices, axis, mode, fill)


def _gather_along(arr: Array, indices: Array, axis: int, mode: GatherScatterMode,
                  fill: FillValue | None) -> Array:
    """Elements along an axis, by indices of the array's rank: dimensions of size 1 on either side
    broadcast; the others become batching dimensions."""
    rank = arr.ndim
    sizes, collapsed, along, batching, offset, drop = [], [axis], [], [], [], []
    for dim in range(rank):
        have, want = arr.shape[dim], indices.shape[dim]
        if dim == axis or have == want:
            if dim != axis:
                along.append(dim)
                batching.append(dim)
            sizes.append(1)
        elif have == 1:
            collapsed.append(dim)
            sizes.append(1)
        elif want == 1:
            offset.append(dim)
            drop.append(dim)
            sizes.append(have)
        else:
            lines = (*arr.shape[:axis], 1, *arr.shape[axis + 1:])
            raise ValueError(
                f"Incompatible shapes for broadcasting: shapes={[indices.shape, lines]}")
    shape = tuple(1 if dim == axis else max(a, b) if a and b else 0
                  for dim, (a, b) in enumerate(zip(arr.shape, indices.shape, strict=True)))
    shape = (*shape[:axis], indices.shape[axis], *shape[axis + 1:])
    if 0 in shape or not arr.shape[axis]:
        return full(shape, 0, arr.dtype)
    kept = [dim for dim in range(rank) if dim not in drop]
    renumbered = {dim: place for place, dim in enumerate(kept)}
    vectors = reshape(indices, (*(indices.shape[dim] for dim in kept), 1))
    return gather_p.bind(
        arr, vectors, dimension_numbers=GatherDimensionNumbers(
            tuple(offset), tuple(sorted(collapsed)), (axis,), tuple(batching),
            tuple(renumbered[dim] for dim in along)),
        slice_sizes=tuple(sizes), mode=mode, fill_value=fill, unique_indices=False,
        indices_are_sorted=False)


@at_once
def choose(a: ArrayLike, choices: Any, out: None = None, mode: str = "raise") -> Array:
    """For each element of ``a``, the element of the choice with that index.

    Args:
      a: integers; with ``mode`` "raise" their values must be known.
      choices: an array or a sequence of arrays, which broadcast with ``a``.
      mode: "raise", "wrap" or "clip", for out-of-range indices.

    >>> jnp.choose(jnp.array([1, 0, 1]), [jnp.array([1, 2, 3]), jnp.array([10, 20, 30])])
    Array([10,  2, 30], dtype=int32)
    """
    check_out("choose", out)
    check_arraylike("choose", a)
    a = as_array(a)
    if isinstance(choices, (Array, np.ndarray)):
        if not choices.ndim:
            raise TypeError("iteration over a 0-d array")
        choices = [getitem(as_array(choices), number) for number in range(choices.shape[0])]
    else:
        check_arraylike("choose", *choices)
    if not dtypes.is_integer(a.dtype):
        raise ValueError("`a` array must be integer typed")
    count = len(choices)
    if mode == "raise":
        values = np.asarray(concrete(
            a, "The error occurred because jnp.choose was jit-compiled with mode='raise'. Use "
            "mode='wrap' or mode='clip' instead."))
        if np.any((values < 0) | (values >= count)):
            raise ValueError("invalid entry in choice array")
        if not count:
            raise IndexError("choose requires at least one choice")
    elif mode == "wrap":
        a = _division.remainder(a, scalar_like(count, a.dtype))
    elif mode == "clip":
        a = minimum(maximum(a, scalar_like(0, a.dtype)), scalar_like(count - 1, a.dtype))
    else:
        raise ValueError(f"mode={mode!r} not understood. Must be 'raise', 'wrap', or 'clip'")
    operands = [convert_element_type(as_array(choice), choice.dtype)
                for choice in promote_dtypes("choose", *choices)]
    shapes = [a.shape, *(operand.shape for operand in operands)]
    try:
        shape = broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={shapes}") from None
    stacked = concatenate(
        [expand_axis(broadcast_to(as_array(operand), shape), 0) for operand in operands], 0)
    number = expand_axis(broadcast_to(a, shape), 0)
    picked = take_along_axis(stacked, number, 0, mode="promise_in_bounds")
    return reshape(picked, shape)


def ix_(*args: Any) -> tuple[Array, ...]:
    """Index arrays that select the cross product of one-dimensional ones or masks.

    >>> x = jnp.arange(12).reshape(3, 4)
    >>> x[jnp.ix_(jnp.array([0, 2]), jnp.array([1, 3]))]
    Array([[ 1,  3],
           [ 9, 11]], dtype=int32)
    """
    check_arraylike("ix", *args)
    result = []
    for number, arg in enumerate(args):
        arg = as_array(arg)
        if arg.ndim != 1:
            raise ValueError("Arguments to jax.numpy.ix_ must be 1-dimensional, got shape "
                             f"{arg.shape}")
        if not arg.size:
            arg = convert_element_type(arg, dtypes.canonical(dtypes.int64))
        if arg.dtype == dtypes.bool_:
            raise NotImplementedError("Boolean arguments to jax.numpy.ix_ are not implemented")
        shape = [1] * len(args)
        shape[number] = arg.shape[0]
        result.append(reshape(arg, tuple(shape)))
    return tuple(result)
