"""Shapes: reshaping, permuting, joining, splitting, repeating."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.trace import Array, Tracer
from maxjax._primitives import shape as primitives
from maxjax._primitives.arithmetic import min_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.cumulative import cumsum_p
from maxjax._primitives.gather_plan import GatherDimensionNumbers, GatherScatterMode
from maxjax._primitives.indexing import gather_p
from maxjax._primitives.shape import broadcast_in_dim, concatenate_p, copy_p, rev_p, squeeze_p
from maxjax.numpy._promotion import (
    as_array,
    canonical_axes,
    canonical_axis,
    canonical_dtype,
    canonical_shape,
    check_arraylike,
    check_out,
    concrete,
    promote_dtypes,
    shape_of,
)

__all__ = [
    "append", "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "block", "broadcast_arrays",
    "broadcast_shapes", "broadcast_to", "column_stack", "concat", "concatenate", "dsplit", "dstack",
    "expand_dims", "flip", "fliplr", "flipud", "hsplit", "hstack", "matrix_transpose", "moveaxis",
    "ndim", "permute_dims", "ravel", "repeat", "reshape", "resize", "roll", "rollaxis", "rot90",
    "shape", "size", "split", "squeeze", "stack", "swapaxes", "tile", "transpose", "unstack",
    "vsplit", "vstack",
]


def shape(a: Any) -> tuple[int, ...]:
    """The sizes of the dimensions."""
    check_arraylike("shape", a)
    return tuple(np.shape(a)) if not isinstance(a, Array) else a.shape


def ndim(a: Any) -> int:
    """The number of dimensions."""
    check_arraylike("ndim", a)
    return len(shape_of(a))


def size(a: Any, axis: Any = None) -> int:
    """The number of elements, or the size of an axis (or axes)."""
    check_arraylike("size", a)
    sizes = shape_of(a)
    if axis is None:
        return math.prod(sizes)
    return math.prod(sizes[i] for i in canonical_axes(axis, len(sizes)))


def resolved_shape(have: tuple[int, ...], wanted: Any) -> tuple[int, ...]:
    """The shape argument of a reshape, with -1 replaced.

    Raises:
      TypeError: it does not fit the number of elements.
    """
    sizes = canonical_shape(wanted)
    total = math.prod(have)
    unknown = sizes.count(-1)
    if unknown > 1:
        raise TypeError(
            f"can only specify one unknown axis size with a `-1` value, got {sizes}")
    if unknown:
        known = math.prod(size for size in sizes if size != -1)
        if known == 0 or total % known:
            raise TypeError(
                f"cannot reshape array of shape {have} (size {total}) into shape {sizes} because "
                f"the product of specified axis sizes ({known}) does not evenly divide {total}")
        return tuple(total // known if size == -1 else size for size in sizes)
    if math.prod(sizes) != total or min(sizes, default=0) < 0:
        raise TypeError(
            f"cannot reshape array of shape {have} (size {total}) into shape {sizes} "
            f"(size {math.prod(sizes)})")
    return sizes


def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None,
            out_sharding: Any = None) -> Array:
    """The elements in another shape; one size may be -1, to be found.

    Raises:
      TypeError: the number of elements does not fit.
    """
    x = as_array(a, "reshape")
    sizes = resolved_shape(x.shape, shape)
    if order == "F":
        flipped = primitives.reshape(_reversed_axes(x), sizes[::-1])
        return _reversed_axes(flipped)
    if order not in ("C", "K"):
        if order == "A":
            raise NotImplementedError("np.reshape order=A is not implemented.")
        raise ValueError(f"Unexpected value for 'order' argument: {order}.")
    result = primitives.reshape(x, sizes)
    return copy_p.bind(result) if copy else result


def _reversed_axes(x: Array) -> Array:
    return primitives.transpose(x, tuple(range(x.ndim))[::-1])


def ravel(a: Any, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The elements in one dimension."""
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    x = as_array(a, "ravel")
    return reshape(x, (x.size,), order)


def transpose(a: Any, axes: Any = None) -> Array:
    """Permutes the dimensions (reverses them by default)."""
    x = as_array(a, "transpose")
    if axes is None:
        return _reversed_axes(x)
    if isinstance(axes, (int, np.integer)):
        axes = (axes,)
    permutation = tuple(canonical_axis(axis, x.ndim) for axis in axes)
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError("transpose permutation isn't a permutation of operand dimensions, got "
                        f"permutation {permutation} for operand shape {x.shape}.")
    return primitives.transpose(x, permutation)


def permute_dims(a: Any, /, axes: Any) -> Array:
    """Permutes the dimensions."""
    return transpose(a, axes)


def matrix_transpose(x: Any, /) -> Array:
    """Swaps the last two dimensions."""
    x = as_array(x, "matrix_transpose")
    if x.ndim < 2:
        raise ValueError("x must be at least two-dimensional for matrix_transpose; got "
                         f"ndim={x.ndim}")
    return swapaxes(x, -1, -2)


def swapaxes(a: Any, axis1: int, axis2: int) -> Array:
    """Exchanges two dimensions."""
    x = as_array(a, "swapaxes")
    order = list(range(x.ndim))
    first, second = (canonical_axis(axis, x.ndim) for axis in (axis1, axis2))
    order[first], order[second] = order[second], order[first]
    return primitives.transpose(x, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Array:
    """Moves dimensions to new positions; the others keep their order."""
    x = as_array(a, "moveaxis")
    sources = [canonical_axis(i, x.ndim) for i in _sequence(source)]
    targets = [canonical_axis(i, x.ndim) for i in _sequence(destination)]
    if len(sources) != len(targets):
        raise ValueError("Inconsistent number of elements: "
                         f"{len(sources)} vs {len(targets)}")
    order = [i for i in range(x.ndim) if i not in sources]
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return primitives.transpose(x, order)


def _sequence(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (tuple, list)) else (value,)


def rollaxis(a: Any, axis: int, start: int = 0) -> Array:
    """Moves ``axis`` to before ``start``."""
    x = as_array(a, "rollaxis")
    start = operator.index(start)
    if not -x.ndim <= start <= x.ndim:
        raise ValueError(f"start={start} must satisfy {-x.ndim}<=start<={x.ndim}")
    axis = canonical_axis(axis, x.ndim)
    start = start + x.ndim if start < 0 else start
    return moveaxis(x, axis, start - (start > axis))


def expand_dims(a: Any, axis: Any) -> Array:
    """Inserts dimensions of size 1."""
    x = as_array(a, "expand_dims")
    axes = _sequence(axis)
    rank = x.ndim + len(axes)
    new = [canonical_axis(i, rank) for i in axes]
    if len(set(new)) != len(new):
        raise ValueError(f"repeated axis in expand_dims: {tuple(axes)}")
    kept = tuple(i for i in range(rank) if i not in new)
    sizes = iter(x.shape)
    return broadcast_in_dim(
        x, tuple(1 if i in new else next(sizes) for i in range(rank)), kept)


def squeeze(a: Any, axis: Any = None) -> Array:
    """Removes dimensions of size 1.

    Raises:
      ValueError: a named axis has another size.
    """
    x = as_array(a, "squeeze")
    if axis is None:
        axes = tuple(i for i, size in enumerate(x.shape) if size == 1)
    else:
        axes = canonical_axes(tuple(_sequence(axis)), x.ndim)
    if not axes:
        return x
    if any(x.shape[i] != 1 for i in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one, "
                         f"got shape={x.shape} and dimensions={axes}")
    return squeeze_p.bind(x, dimensions=axes)


def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Array:
    """Repeats the array to ``shape`` by NumPy's rules."""
    x = as_array(array, "broadcast_to")
    sizes = canonical_shape(shape)
    have = x.shape
    missing = len(sizes) - len(have)
    if missing < 0 or any(
            size not in (1, wide) for size, wide in zip(have, sizes[missing:], strict=True)):
        requested = x.aval.update(shape=sizes, weak_type=False).str_short() if min(
            sizes, default=0) >= 0 else f"{x.dtype}{list(sizes)}"
        raise ValueError("Incompatible types for broadcasting: input type="
                         f"{x.aval.str_short()} and requested type={requested}")
    return broadcast_in_dim(x, sizes, tuple(range(missing, len(sizes))))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which shapes broadcast."""
    sizes = [canonical_shape(shape) for shape in shapes]
    try:
        return np.broadcast_shapes(*sizes)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={sizes}") from None


def broadcast_arrays(*args: Any) -> list[Array]:
    """The arrays, repeated to their common shape."""
    arrays = [as_array(x, "broadcast_arrays", i) for i, x in enumerate(args)]
    sizes = broadcast_shapes(*[x.shape for x in arrays])
    return [broadcast_to(x, sizes) for x in arrays]


# --- joining --------------------------------------------------------------------------------------

def _arrays(name: str, arrays: Any, dtype: Any = None) -> list[Array]:
    """The arrays of an argument that is a sequence, or an array of which the rows count."""
    if isinstance(arrays, (np.ndarray, Array)):
        array = as_array(arrays)
        if not array.ndim:
            raise TypeError("iteration over a 0-d array")
        return list(array)
    check_arraylike(name, *arrays)
    if dtype is not None:
        dtype = canonical_dtype(dtype, name)
        return [convert_element_type(as_array(x), dtype) for x in arrays]
    return [as_array(x) for x in promote_dtypes(name, *arrays)] if len(arrays) else []


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Array:
    """Joins arrays along an axis; flattened first if it is None.

    Raises:
      TypeError: they differ in rank, or in the size of another axis.
      ValueError: there are none.
    """
    if isinstance(arrays, (np.ndarray, Array)):
        array = as_array(arrays)
        if axis is None or array.ndim < 2:
            arrays = _arrays("concatenate", arrays)
        else:    # the rows joined along their axis: no need to take them apart
            return _merged(array if dtype is None else convert_element_type(
                array, canonical_dtype(dtype, "concatenate")), axis)
    arrays = list(arrays)
    if not arrays:
        raise ValueError("Need at least one array to concatenate.")
    parts = _arrays("concatenate", arrays, dtype)
    if axis is None:
        parts = [primitives.reshape(x, (x.size,)) for x in parts]
        axis = 0
    return joined(parts, axis)


def _merged(x: Array, axis: int) -> Array:
    index = canonical_axis(axis, x.ndim - 1)
    x = moveaxis(x, 0, index)
    sizes = (*x.shape[:index], x.shape[index] * x.shape[index + 1], *x.shape[index + 2:])
    return primitives.reshape(x, sizes)


def joined(parts: list[Array], axis: int) -> Array:
    """Concatenates arrays of one dtype, once their shapes are found to fit."""
    shapes = [x.shape for x in parts]
    if len({len(s) for s in shapes}) > 1:
        raise TypeError("Cannot concatenate arrays with different numbers of dimensions: got "
                        f"{', '.join(map(str, shapes))}.")
    rank = len(shapes[0])
    if rank == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    index = canonical_axis(axis, rank)
    if any(s[:index] + s[index + 1:] != shapes[0][:index] + shapes[0][index + 1:] for s in shapes):
        raise TypeError(
            "Cannot concatenate arrays with shapes that differ in dimensions other than the one "
            f"being concatenated: concatenating along dimension {index} for shapes "
            f"{', '.join(map(str, shapes))}.")
    if len(parts) == 1:
        return parts[0]
    return concatenate_p.bind(*parts, dimension=index)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Array:
    """As ``concatenate``."""
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0, out: Any = None, dtype: Any = None) -> Array:
    """Joins arrays of one shape along a new axis."""
    check_out("stack", out)
    if not isinstance(arrays, (np.ndarray, Array)):
        arrays = list(arrays)
    if not len(arrays):
        raise ValueError("Need at least one array to stack.")
    if isinstance(arrays, (np.ndarray, Array)):
        x = as_array(arrays)
        if dtype is not None:
            x = convert_element_type(x, canonical_dtype(dtype, "stack"))
        return moveaxis(x, 0, axis)
    parts = _arrays("stack", arrays, dtype)
    first = parts[0].shape
    for x in parts:
        if x.shape != first:
            raise ValueError(
                f"All input arrays must have the same shape. Got {first}, {x.shape}.")
    index = canonical_axis(axis, len(first) + 1)
    wide = (*first[:index], 1, *first[index:])
    return joined([primitives.reshape(x, wide) for x in parts], index)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The arrays along an axis."""
    x = as_array(x, "unstack")
    if x.ndim == 0:
        raise ValueError("Unstack requires arrays with rank > 0, however a scalar array was "
                         "passed.")
    index = canonical_axis(axis, x.ndim)
    return tuple(
        squeeze_p.bind(primitives.slice_in_dim(x, i, i + 1, index), dimensions=(index,))
        for i in range(x.shape[index]))


def atleast_1d(*arys: Any) -> Any:
    """Each array with at least one dimension."""
    return _at_least("atleast_1d", arys, lambda x: x if x.ndim else primitives.reshape(x, (1,)))


def atleast_2d(*arys: Any) -> Any:
    """Each array with at least two dimensions, new ones first."""
    return _at_least("atleast_2d", arys, lambda x: x if x.ndim >= 2 else primitives.reshape(
        x, (1,) * (2 - x.ndim) + x.shape))


def atleast_3d(*arys: Any) -> Any:
    """Each array with at least three dimensions."""
    def three(x: Array) -> Array:
        shapes = {0: (1, 1, 1), 1: (1, *x.shape, 1), 2: (*x.shape, 1)}
        return primitives.reshape(x, shapes[x.ndim]) if x.ndim in shapes else x
    return _at_least("atleast_3d", arys, three)


def _at_least(name: str, arrays: Sequence[Any], function: Any) -> Any:
    if len(arrays) == 1:
        value = arrays[0]
        if isinstance(value, (list, tuple)):
            check_arraylike(name, value)
        return function(as_array(value, name))
    return [function(as_array(x, name, i)) for i, x in enumerate(arrays)]


def vstack(tup: Any, dtype: Any = None) -> Array:
    """Joins arrays along the first axis, vectors as rows."""
    if isinstance(tup, (np.ndarray, Array)) and tup.ndim > 2:
        return concatenate(tup, 0, dtype)
    return concatenate([atleast_2d(x) for x in _arrays("vstack", tup)], 0, dtype)


def hstack(tup: Any, dtype: Any = None) -> Array:
    """Joins arrays along the second axis, vectors along their only one."""
    parts = [atleast_1d(x) for x in _arrays("hstack", tup)]
    return concatenate(parts, 0 if parts and parts[0].ndim == 1 else 1, dtype)


def dstack(tup: Any, dtype: Any = None) -> Array:
    """Joins arrays along the third axis."""
    return concatenate([atleast_3d(x) for x in _arrays("dstack", tup)], 2, dtype)


def column_stack(tup: Any) -> Array:
    """Joins arrays along the second axis, vectors as columns."""
    parts = [as_array(x) for x in _arrays("column_stack", tup)]
    return concatenate(
        [primitives.transpose(atleast_2d(x), (1, 0)) if x.ndim < 2 else x for x in parts], 1)


def append(arr: Any, values: Any, axis: int | None = None) -> Array:
    """``values`` after ``arr``, along an axis (both flattened by default)."""
    if axis is None:
        return concatenate([ravel(arr), ravel(values)], 0)
    return concatenate([arr, values], axis)


def block(arrays: Any) -> Array:
    """An array from nested lists of blocks: the innermost are joined along the last axis."""
    def depth(value: Any) -> int:
        if not isinstance(value, list):
            return 0
        if not value:
            raise ValueError("Incompatible block: empty list")
        return 1 + max(depth(item) for item in value)

    levels = depth(arrays)

    def join(value: Any, level: int) -> Array:
        if not isinstance(value, list):
            x = as_array(value, "block")
            return reshape(x, (1,) * max(0, levels - x.ndim) + x.shape)
        parts = [join(item, level + 1) for item in value]
        rank = max(x.ndim for x in parts)
        return concatenate(parts, rank - levels + level)

    return join(arrays, 0)


# --- splitting ------------------------------------------------------------------------------------

def _split(name: str, ary: Any, indices_or_sections: Any, axis: int) -> list[Array]:
    x = as_array(ary, name)
    index = canonical_axis(axis, x.ndim)
    total = x.shape[index]
    sections = indices_or_sections
    if isinstance(sections, Tracer):
        sections = concrete(
            sections, f"in argument indices_or_sections of jnp.{name}. Please mark it as static")
    if isinstance(sections, (tuple, list)) or getattr(sections, "shape", ()) != ():
        points = [0, *(int(i) + total if int(i) < 0 else int(i) for i in sections), total]
    else:
        count = operator.index(sections)
        if count <= 0:
            raise ValueError(f"number of sections must be larger than 0, got {count}")
        part, rest = divmod(total, count)
        if rest and name != "array_split":
            raise ValueError(f"array split does not result in an equal division: rest is {rest}")
        sizes = [part + 1] * rest + [part] * (count - rest)
        points = [0, *np.cumsum(sizes).tolist()]
    sizes = np.diff(points).tolist()
    if min(sizes) < 0:
        raise ValueError(f"Sizes passed to split must be nonnegative, got {sizes}")
    return [primitives.slice_in_dim(x, start, stop, index)
            for start, stop in zip(points[:-1], points[1:], strict=True)]


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """Parts of equal size, or between given indices.

    Raises:
      ValueError: the size is no multiple of the number of parts.
    """
    return _split("split", ary, indices_or_sections, axis)


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Array]:
    """As ``split``; parts may differ in size by one."""
    return _split("array_split", ary, indices_or_sections, axis)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Splits along the first axis."""
    return _split("vsplit", ary, indices_or_sections, 0)


def hsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Splits along the second axis (the only one of a vector)."""
    x = as_array(ary, "hsplit")
    return _split("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Array]:
    """Splits along the third axis."""
    return _split("dsplit", ary, indices_or_sections, 2)


# --- repeating, turning ---------------------------------------------------------------------------

def tile(A: Any, reps: Any) -> Array:
    """The array repeated as a whole, ``reps`` times along each axis."""
    x = as_array(A, "tile")
    counts = canonical_shape(reps)
    rank = max(x.ndim, len(counts))
    counts = (1,) * (rank - len(counts)) + counts
    sizes = (1,) * (rank - x.ndim) + x.shape
    if all(count == 1 for count in counts):
        return primitives.reshape(x, sizes)
    x = primitives.reshape(x, sizes)
    doubled = tuple(n for pair in zip(counts, sizes, strict=True) for n in pair)
    wide = broadcast_in_dim(x, doubled, tuple(range(1, 2 * rank, 2)))
    return primitives.reshape(wide, tuple(a * b for a, b in zip(counts, sizes, strict=True)))


def repeat(a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None,
           out_sharding: Any = None) -> Array:
    """Each element repeated, ``repeats`` times (one number, or one for each element).

    Args:
      total_repeat_length: the size of the result, which must be given where ``repeats`` is
        traced; what is too much is cut off, what is missing repeats the last element.
    """
    x = as_array(a, "repeat")
    if axis is None:
        x = primitives.reshape(x, (x.size,))
        axis = 0
    if x.ndim == 0:
        x = primitives.reshape(x, (1,))
    index = canonical_axis(axis, x.ndim)
    length = x.shape[index]
    if total_repeat_length is None:
        counts = np.asarray(concrete(
            repeats, "When jit-compiling jnp.repeat, the total number of repeats must be static. "
            "To fix this, either specify a static value for `repeats`, or pass a static value to "
            "`total_repeat_length`."))
        if counts.size == 1:
            count = int(counts.reshape(()))
            rank = x.ndim
            wide = (*x.shape[:index + 1], count, *x.shape[index + 1:])
            spread = broadcast_in_dim(
                x, wide, tuple(i + (i > index) for i in range(rank)))
            return primitives.reshape(
                spread, (*x.shape[:index], length * count, *x.shape[index + 1:]))
        if counts.size != length:
            raise ValueError(
                f"jnp.repeat: repeats must have length {length} along axis {axis}, got "
                f"{counts.size}")
        positions = np.repeat(np.arange(length), counts)
        return take_in_bounds(x, as_array(positions.astype(np.int32)), index)
    total = operator.index(total_repeat_length)
    counts = as_array(repeats, "repeat")
    if counts.size == 1 and length != 1:
        counts = broadcast_to(primitives.reshape(counts, (1,)), (length,))
    counts = primitives.reshape(counts, (counts.size,))
    # Element i starts at the sum of the counts before it; a position belongs to the last
    # element that starts at or before it.
    ends = cumsum_p.bind(convert_element_type(counts, dtypes.int32), axis=0, reverse=False)
    places = primitives.iota(dtypes.int32, (total, length), 0)
    passed = places >= broadcast_in_dim(ends, (total, length), (1,))
    owner = primitives.reduce_sum(convert_element_type(passed, dtypes.int32), (1,))
    return take_in_bounds(x, min_p.bind(owner, np.int32(length - 1)), index)


def take_in_bounds(x: Array, positions: Array, axis: int) -> Array:
    """``x`` at ``positions`` (any shape; from 0, in bounds) along ``axis``."""
    rank, count = x.ndim, positions.ndim
    numbers = GatherDimensionNumbers(
        offset_dims=(*range(axis), *range(axis + count, rank - 1 + count)),
        collapsed_slice_dims=(axis,), start_index_map=(axis,))
    return gather_p.bind(
        x, primitives.reshape(positions, (*positions.shape, 1)), dimension_numbers=numbers,
        slice_sizes=tuple(1 if i == axis else size for i, size in enumerate(x.shape)),
        unique_indices=False, indices_are_sorted=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS, fill_value=None)


def resize(a: Any, new_shape: Any) -> Array:
    """The elements, repeated or cut off to fill ``new_shape``."""
    x = ravel(a)
    sizes = canonical_shape(new_shape)
    if any(size < 0 for size in sizes):
        raise ValueError("all elements of `new_shape` must be non-negative")
    total = math.prod(sizes)
    if x.size == 0 or total == 0:
        return primitives.full(sizes, 0, x.dtype)
    x = tile(x, -(-total // x.size))
    return primitives.reshape(primitives.slice_in_dim(x, 0, total, 0), sizes)


def flip(m: Any, axis: Any = None) -> Array:
    """Reverses the order along an axis, or several, or all."""
    x = as_array(m, "flip")
    axes = canonical_axes(axis if axis is None else tuple(_sequence(axis)), x.ndim)
    return rev_p.bind(x, dimensions=axes) if axes else x


def fliplr(m: Any) -> Array:
    """Reverses the order along the second axis."""
    return flip(m, 1)


def flipud(m: Any) -> Array:
    """Reverses the order along the first axis."""
    return flip(m, 0)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Turns by 90 degrees, ``k`` times, from the first axis towards the second."""
    x = as_array(m, "rot90")
    if len(axes) != 2:
        raise ValueError(f"len(axes) must be 2, got axes={axes}")
    first, second = (canonical_axis(axis, x.ndim) for axis in axes)
    if first == second:
        raise ValueError("Axes must be different")
    turns = k % 4
    if turns == 0:
        return x
    if turns == 2:
        return flip(x, (first, second))
    if turns == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second)


def roll(a: Any, shift: Any, axis: Any = None) -> Array:
    """Shifts the elements along axes; those pushed out at the end come in at the start."""
    x = as_array(a, "roll")
    if axis is None:
        flat = primitives.reshape(x, (x.size,))
        return primitives.reshape(roll(flat, shift, 0), x.shape)
    axes = [canonical_axis(i, x.ndim) for i in _sequence(axis)]
    if isinstance(shift, Tracer) and shift.concrete() is None:
        amounts = [shift] if not shift.ndim else [shift[i] for i in range(shift.shape[0])]
    else:
        amounts = np.asarray(concrete(shift, "")).reshape(-1).tolist()
    if len(amounts) == 1:
        amounts = list(amounts) * len(axes)
    if len(axes) == 1 and len(amounts) > 1:
        axes = axes * len(amounts)
    for index, amount in zip(axes, amounts, strict=True):
        length = x.shape[index]
        if not length:
            continue
        if isinstance(amount, Array):
            places = primitives.iota(dtypes.int32, (length,), 0)
            x = take_in_bounds(x, (places - amount.astype(dtypes.int32)) % length, index)
            continue
        offset = int(amount) % length
        if offset:
            x = concatenate_p.bind(
                primitives.slice_in_dim(x, length - offset, length, index),
                primitives.slice_in_dim(x, 0, length - offset, index), dimension=index)
    return x
