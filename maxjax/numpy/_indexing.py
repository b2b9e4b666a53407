"""Functions that take, put and find elements by index."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import (
    ConcretizationTypeError,
    origin_message,
)
from maxjax._base.shardings import NamedSharding
from maxjax._ir.dimensions import broadcast_shapes, size_index
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import ArrayLike
from maxjax._primitives.arithmetic import maximum, minimum
from maxjax._primitives.broadcasting import broadcast_in_dim, expand_axis
from maxjax._primitives.comparison import lt_p, ne_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.dynamic_slice import true_positions_p
from maxjax._primitives.gather_plan import GatherDimensionNumbers, GatherScatterMode
from maxjax._primitives.indexing import gather_p
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import reshape
from maxjax._primitives.reduction import reduce_or_p
from maxjax._primitives.rules import scalar_like
from maxjax._primitives.slicing import slice_in_dim
from maxjax._runtime.array import ArrayImpl
from maxjax.lax._indexing import fill_parameter, from_end
from maxjax.lax._over_mesh import explicit_mesh, partitions
from maxjax.numpy import _division
from maxjax.numpy import _whole_rules as rules
from maxjax.numpy._at import IndexUpdateHelper, update
from maxjax.numpy._getitem import getitem
from maxjax.numpy._getitem import take as take_index
from maxjax.numpy._index_arrays import as_signed
from maxjax.numpy._promotion import (
    as_array,
    broadcast_to,
    canonical_axis,
    cast,
    check_arraylike,
    check_out,
    concrete,
    promote_dtypes,
    shape_of,
    type_of,
)
from maxjax.numpy._shape import moveaxis
from maxjax.numpy._sorting import argsort
from maxjax.numpy._where import where
from maxjax.numpy._whole import WORDS, whole

__all__ = [
    "argwhere", "choose", "compress", "extract", "flatnonzero", "index_exp", "ix_", "nonzero",
    "place", "put", "put_along_axis", "s_", "take", "take_along_axis",
]

index_exp = np.index_exp
s_ = np.s_

# For the module that defines the methods of arrays.
_exported = (getitem, IndexUpdateHelper)


def _mode(mode: str | GatherScatterMode | None) -> GatherScatterMode:
    return GatherScatterMode.from_any(mode)


def _flat(x: Array) -> Array:
    return reshape(x, (x.size,))


# --- take and put ---------------------------------------------------------------------------------

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
        a, axis = _flat(a), 0
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
    if fill_value is None:
        return _take(a, indices, **options)
    return _take_filled(a, indices, fill_value=fill_value, **options)


def _take_filled(a: Array, indices: Array, *, axis: int, mode: GatherScatterMode, unique: bool,
                 ordered: bool, fill_value: Any) -> Array:
    return take_index(a, (slice(None),) * axis + (indices,), mode, fill_value, unique, ordered,
                      mode is not GatherScatterMode.CLIP)


@whole("take", rules.take, accepts=WORDS)
def _take(a: Array, indices: Array, **options: Any) -> Array:
    return _take_filled(a, indices, fill_value=None, **options)


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
    if axis is None:
        if indices.ndim != 1:
            raise ValueError("take_along_axis indices must be 1D if axis=None, got shape "
                             f"{indices.shape}")
        arr, axis = _flat(arr), 0
    rank = arr.ndim
    if rank != indices.ndim:
        raise ValueError(
            "indices and arr must have the same number of dimensions; "
            f"{indices.ndim} vs. {rank}")
    axis = canonical_axis(axis, rank)
    size = arr.shape[axis]
    indices = as_signed(indices)
    if wrap_negative_indices:
        indices = from_end(indices, size)
    parsed = _mode(mode)
    fill = None
    if parsed in (GatherScatterMode.FILL_OR_DROP, GatherScatterMode.ONE_HOT):
        fill = fill_parameter(fill_value, arr.dtype)
    # Dimensions of size 1 on either side broadcast; the others become batching dimensions.
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
    if 0 in shape:
        return full(shape, 0, arr.dtype)
    if not size:
        return full(shape, 0, arr.dtype)
    kept = [dim for dim in range(rank) if dim not in drop]
    renumbered = {dim: place for place, dim in enumerate(kept)}
    vectors = reshape(indices, (*(indices.shape[dim] for dim in kept), 1))
    return gather_p.bind(
        arr, vectors, dimension_numbers=GatherDimensionNumbers(
            tuple(offset), tuple(sorted(collapsed)), (axis,), tuple(batching),
            tuple(renumbered[dim] for dim in along)),
        slice_sizes=tuple(sizes), mode=parsed, fill_value=fill, unique_indices=False,
        indices_are_sorted=False)


def _refuse_inplace(name: str, inplace: bool) -> None:
    if inplace:
        raise ValueError(
            f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are immutable. "
            "Pass inplace=False to instead return an updated array.")


def put(a: ArrayLike, ind: Any, v: ArrayLike, mode: str | None = None, *,
        inplace: bool = True) -> Array:
    """A copy of ``a`` whose flat elements at ``ind`` are ``v`` (repeated as needed).

    Args:
      mode: "clip" (the default) or "wrap" for out-of-bounds indices.
      inplace: must be False: arrays are immutable.

    >>> jnp.put(jnp.zeros(5), jnp.array([0, 3]), jnp.array([1.0, 2.0]), inplace=False)
    Array([1., 0., 0., 2., 0.], dtype=float32)
    """
    _refuse_inplace("put", inplace)
    check_arraylike("put", a, ind, v)
    a, ind, v = as_array(a), _flat(as_array(ind)), _flat(as_array(v))
    if not a.size or not ind.size or not v.size:
        return a
    v = _repeated(v, ind.size)
    if ind.dtype == dtypes.bool_:      # 0 and 1, and no mask
        ind = convert_element_type(ind, dtypes.int32)
    if mode is None or mode == "clip":
        scatter_mode = "clip"
    elif mode == "wrap":
        if ind.dtype.itemsize < 4:      # which may not hold the size
            ind = convert_element_type(ind, dtypes.int32)
        ind = _division.remainder(ind, scalar_like(a.size, ind.dtype))
        scatter_mode = "drop"
    elif mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
    else:
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode='{mode}'")
    return reshape(update(_flat(a), ind, v, "set", scatter_mode), a.shape)


def _repeated(v: Array, count: int) -> Array:
    """The flat ``v`` repeated or truncated to ``count`` elements."""
    times = -(-count // v.size)
    if times > 1:
        v = _flat(broadcast_in_dim(v, (times, v.size), (1,)))
    return v if v.size == count else getitem(v, slice(0, count))


def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None,
                   inplace: bool = True, *, mode: str | None = None) -> Array:
    """A copy of ``arr`` with ``values`` where ``take_along_axis`` would read at ``indices``.

    >>> x = jnp.array([[3, 1], [2, 9]])
    >>> jnp.put_along_axis(x, x.argmax(1, keepdims=True), 0, axis=1, inplace=False)
    Array([[0, 1],
           [2, 0]], dtype=int32)
    """
    _refuse_inplace("put_along_axis", inplace)
    check_arraylike("put_along_axis", arr, indices, values)
    arr, indices = as_array(arr), as_array(indices)
    original = arr.shape
    if axis is None:
        arr, axis = _flat(arr), 0
    axis = canonical_axis(axis, arr.ndim)
    if arr.ndim != indices.ndim:
        raise ValueError("put_along_axis: arr and indices must have the same number of "
                         f"dimensions, got {arr.ndim} and {indices.ndim}")
    if not arr.size or not indices.size:
        return reshape(arr, original)
    lines = tuple(
        indices if dim == axis else np.arange(size, dtype=np.int32).reshape(
            [-1 if d == dim else 1 for d in range(arr.ndim)])
        for dim, size in enumerate(arr.shape))
    return reshape(update(arr, lines, values, "set", mode), original)


# --- where something is ---------------------------------------------------------------------------

def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Array, ...]:
    """The indices of the nonzero elements, one array for each dimension.

    Args:
      a: an array of one dimension or more.
      size: how many to return; required if ``a`` is traced. Missing ones are ``fill_value``.
      fill_value: a number, or one for each dimension; 0 by default.

    Returns:
      A tuple of arrays ``(size,)`` of the default integer type; in the order of the flattened
      array.

    Raises:
      ConcretizationTypeError: ``a`` is traced and there is no ``size``.
      ValueError: ``a`` is a scalar.

    See also: ``where``, ``argwhere``, ``flatnonzero``, ``count_nonzero``.

    >>> jnp.nonzero(jnp.array([[1, 0], [2, 3]]))
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    >>> jnp.nonzero(jnp.array([0, 5, 0]), size=2, fill_value=3)
    (Array([1, 3], dtype=int32),)
    """
    check_arraylike("nonzero", a)
    a = as_array(a)
    if not a.ndim:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use "
                         "jnp.atleast_1d(scalar).nonzero() instead.")
    if size is None and isinstance(a, Tracer) and a.concrete() is None:
        # Only the number of elements is needed.
        raise ConcretizationTypeError(
            "Abstract tracer value encountered where concrete value is expected: traced "
            "array with shape int32[]\nThe size argument of jnp.nonzero must be statically "
            "specified to use jnp.nonzero within JAX transformations."
            f"{origin_message(a)}\n")
    if explicit_mesh(a) is not None and any(partitions(a)):
        raise ValueError(f"Cannot apply nonzero over sharded axes {tuple(range(a.ndim))} for array "
                         f"with sharding {NamedSharding(*a.aval.mesh_spec)}")
    fills = fill_value if isinstance(fill_value, tuple) else (fill_value,) * a.ndim
    if any(isinstance(fill, (list, tuple)) or fill is not None and shape_of(fill)
           for fill in fills):
        raise ValueError(f"fill_value must be a scalar or tuple of scalars; got {fill_value}")
    dtype = dtypes.canonical(dtypes.int64)
    if size is None:
        lines = [_wrap(line.astype(dtype)) for line in np.nonzero(concrete(a, ""))]
        return tuple(_filled(None, lines, fills))
    size = size_index(concrete(
        size, "The size argument of jnp.nonzero must be statically specified to use jnp.nonzero "
        "within JAX transformations."))
    if size < 0:
        raise TypeError(f"jnp.nonzero: size must be nonnegative, got {size}")
    if not a.size:
        return tuple(_filled(None, [full((size,), 0, dtype) for _ in a.shape], fills))
    mask = a if a.dtype == dtypes.bool_ else ne_p.bind(a, scalar_like(0, a.dtype))
    if not size:
        places = full((size,), 0, dtypes.int32)
    else:
        places = true_positions_p.bind(_flat(mask), size=size)
    missing = lt_p.bind(full((size,), a.size - 1, dtypes.int32), places)
    places = cast(places, dtype)
    lines = []
    for dim in range(a.ndim):
        step = math.prod(a.shape[dim + 1:])
        line = places
        if step != 1:
            line = _division.floor_divide(line, scalar_like(max(step, 1), dtype))
        if dim:
            line = _division.remainder(line, scalar_like(max(a.shape[dim], 1), dtype))
        lines.append(line)
    return tuple(_filled(missing, lines, fills))


def _filled(missing: Array | None, lines: Sequence[Array], fills: Sequence[Any]) -> list[Array]:
    """The coordinates along each dimension, with fill values where they are missing: of the type
    that all of them have in common, also where none is missing."""
    if len(fills) != len(lines):
        raise ValueError("fill_value tuple must have length equal to number of axes "
                         f"({len(lines)}); got {len(fills)}")
    given = [0 if fill is None else fill for fill in fills]
    wanted = dtypes.promote(((lines[0].dtype, False), *map(type_of, given)))[0]
    result = []
    for line, fill in zip(lines, given, strict=True):
        if fill.__class__ is int:
            fill = np.array(fill, wanted)       # where it does not fit, NumPy's error
        filled = line if missing is None else where(missing, fill, line)
        result.append(convert_element_type(filled, wanted) if (
            filled.dtype != wanted or filled.weak_type) else filled)
    return result


def _wrap(value: np.ndarray) -> Array:
    return ArrayImpl(ShapedArray(value.shape, value.dtype), value)


def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The flat indices of the nonzero elements; see ``nonzero``.

    >>> jnp.flatnonzero(jnp.array([[1, 0], [2, 3]]))
    Array([0, 2, 3], dtype=int32)
    >>> jnp.flatnonzero(jnp.array([0, 4]), size=3, fill_value=-1)
    Array([ 1, -1, -1], dtype=int32)
    """
    check_arraylike("flatnonzero", a)
    return nonzero(_flat(as_array(a)), size=size, fill_value=fill_value)[0]


def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: Any = None) -> Array:
    """The indices of the nonzero elements, (count, rank); see ``nonzero``.

    Args:
      a: an array.
      size: how many to return; required if ``a`` is traced. Missing ones are ``fill_value``.
      fill_value: a number, or one for each dimension; 0 by default.

    Returns:
      An integer array ``(size, a.ndim)``.

    Raises:
      ConcretizationTypeError: ``a`` is traced and there is no ``size``.

    See also: ``nonzero``, ``where``, ``flatnonzero``.

    >>> jnp.argwhere(jnp.array([[1, 0], [2, 3]]))
    Array([[0, 0],
           [1, 0],
           [1, 1]], dtype=int32)
    """
    check_arraylike("argwhere", a)
    a = as_array(a)
    if not a.ndim:
        count = nonzero(reshape(a, (1,)), size=size, fill_value=fill_value)[0].shape[0]
        return full((count, 0), 0, dtypes.python_scalar(int)[0])
    lines = nonzero(a, size=size, fill_value=fill_value)
    return concatenate([expand_axis(line, 1) for line in lines], 1)


def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None,
            fill_value: Any = 0) -> Array:
    """The elements of ``arr`` where ``condition`` holds, flat.

    Args:
      condition: booleans; flattened, as ``arr`` is.
      arr: an array.
      size: how many to return; required if ``condition`` is traced.
      fill_value: what stands in place of missing ones.

    Returns:
      A vector of ``arr``'s dtype.

    See also: ``compress``, ``take``, ``where``, ``nonzero``.

    >>> x = jnp.array([5, -1, 7])
    >>> jnp.extract(x > 0, x)
    Array([5, 7], dtype=int32)
    """
    return compress(_flat(as_array(condition)), _flat(as_array(arr)), size=size,
                    fill_value=fill_value)


def compress(condition: Any, a: Any, axis: int | None = None, *, size: int | None = None,
             fill_value: Any = 0, out: None = None) -> Array:
    """The slices of ``a`` along an axis where ``condition``, of one dimension, holds.

    Args:
      size: how many to return; required if the condition is traced.
      fill_value: the value of missing ones.

    Raises:
      ValueError: the condition holds beyond the axis and no ``size`` is given; or ``size`` exceeds
        the number of slices.
      ConcretizationTypeError: no ``size`` is given, and the condition is traced.

    >>> jnp.compress(jnp.array([True, False, True]), jnp.arange(6).reshape(2, 3), axis=1)
    Array([[0, 2],
           [3, 5]], dtype=int32)
    """
    check_out("compress", out)
    check_arraylike("compress", condition, a)
    condition, a = as_array(condition), as_array(a)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1D array")
    if axis is None:
        a, axis = _flat(a), 0
    axis = canonical_axis(axis, a.ndim)
    length = min(condition.shape[0], a.shape[axis])
    if condition.dtype != dtypes.bool_:
        condition = ne_p.bind(condition, scalar_like(0, condition.dtype))
    kept = getitem(condition, slice(0, length))
    if size is None:
        # As in JAX under jit, whatever the condition: a result of unknown size is refused.
        beyond = slice_in_dim(condition, length, condition.shape[0], 0)
        for part in (kept, beyond):
            if isinstance(part, Tracer) and part.concrete() is None:
                raise ConcretizationTypeError(part, (
                    "The size argument of jnp.compress must be specified in order to use "
                    "jnp.compress within JAX transformations like jax.jit, jax.vmap, and jax.grad. "
                    "For more information, refer to the jnp.compress documentation."))
        if reduce_or_p.bind(beyond, axes=(0,)):
            raise ValueError("condition contains entries that are out of bounds")
        return take(a, nonzero(kept)[0], axis, mode="promise_in_bounds")
    if not 0 <= size <= length:
        raise ValueError("size must be positive and not greater than the size of the array axis; "
                         f"got size={size} for a.shape[axis]={length}")
    slices = getitem(moveaxis(a, axis, 0), slice(0, length))
    filled = where(reshape(kept, (length,) + (1,) * (a.ndim - 1)), slices,
                   cast(as_array(fill_value), a.dtype))
    order = getitem(argsort(kept, stable=True, descending=True), slice(0, size))
    return moveaxis(take(filled, order, 0, mode="promise_in_bounds"), 0, axis)


def place(arr: ArrayLike, mask: Any, vals: Any, *, inplace: bool = True) -> Array:
    """A copy of ``arr`` whose elements under ``mask`` are ``vals``, repeated as needed.

    >>> jnp.place(jnp.arange(5), jnp.arange(5) % 2 == 0, jnp.array([10, 20]), inplace=False)
    Array([10,  1, 20,  3, 10], dtype=int32)
    """
    check_arraylike("place", arr, mask, vals)
    arr, mask, vals = as_array(arr), as_array(mask), _flat(as_array(vals))
    _refuse_inplace("place", inplace)
    if arr.size != mask.size:
        raise ValueError("place: arr and mask must be the same size")
    if not vals.size:
        raise ValueError("Cannot place values from an empty array")
    if not arr.size:
        return arr
    places = flatnonzero(mask, size=mask.size, fill_value=mask.size)
    return reshape(update(_flat(arr), places, _repeated(vals, arr.size), "set", "drop",
                          unique_indices=False), arr.shape)


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


# --- grids and flat indices -----------------------------------------------------------------------

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


