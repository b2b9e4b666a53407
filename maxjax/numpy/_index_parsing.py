"""Parses an index into parts, one for each dimension and new axis."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import NonConcreteBooleanIndexError, origin_message
from maxjax._ir.size_ranges import SizeRange, slice_range
from maxjax._ir.trace import Array, Tracer
from maxjax._primitives.creation import iota
from maxjax._primitives.layout import reshape
from maxjax._primitives.rules import place_dtype, scalar_like
from maxjax._runtime.outside_values import plain
from maxjax.numpy._creation import asarray

ALL = slice(None)


@dataclasses.dataclass(frozen=True)
class Slice:
    """``size`` positions from ``start``, which may be a traced integer. Made by ``jax.ds``.

    >>> jnp.arange(5)[jax.ds(1, 3)]
    Array([1, 2, 3], dtype=int32)
    """

    start: Any
    size: int
    stride: int = 1


class Entry:
    """One part of an index.

    ``kind`` is "new" (a dimension of size 1), "int" (``value`` is the original Python integer),
    "slice" (``value`` is a range), "scalar" (an operand of rank 0) or "array".
    ``dim`` is the dimension of the operand. ``detached`` records a preceding Ellipsis that takes no
    dimensions, and so has no entry.
    """

    __slots__ = ("detached", "dim", "kind", "value")

    def __init__(self, kind: str, value: Any = None, dim: int = -1):
        self.detached = False
        self.kind = kind
        self.value = value
        self.dim = dim


def parse(shape: tuple[int, ...], index: Any, reads: bool = False) -> list[Entry]:
    """The parts of an index, one for each dimension and new axis; masks become positions.

    Scalar booleans have already become arrays: see ``with_flags``.

    Args:
      reads: whether ``x[index]`` is read and no mode says what is out of bounds.

    Raises:
      IndexError: too many indices, a mask of another shape, or an integer in an empty dimension.
      OverflowError: an integer does not fit JAX's integers.
    """
    parts = [part for entry in as_tuple(index) for part in _expand(entry)]
    ellipses = sum(part is Ellipsis for part in parts)
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(_consumes(part) for part in parts)
    if used > len(shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but {used} were "
                         "indexed")
    if not ellipses:
        parts.append(Ellipsis)
    entries: list[Entry] = []
    dim = 0
    gap = -1
    for position, part in enumerate(parts):
        if part is Ellipsis:
            gap = len(entries)
            for _ in range(len(shape) - used):
                entries.append(Entry("slice", slice_range(ALL, shape[dim]), dim))
                dim += 1
        elif part is None:
            entries.append(Entry("new"))
        elif isinstance(part, _Mask):
            # As in NumPy, a mask without elements may be of another size: it chooses none.
            if any(have not in (size, 0) for have, size in zip(
                    part.shape, shape[dim:dim + len(part.shape)], strict=True)):
                raise IndexError(
                    "boolean index did not match shape of indexed array in index "
                    f"{position}: got {part.shape}, expected "
                    f"{list(shape[dim:dim + len(part.shape)])}")
            for line in part.positions:
                entries.append(Entry("array", line, dim))
                dim += 1
        elif isinstance(part, slice):
            entries.append(Entry("slice", _range(part, shape[dim], position), dim))
            dim += 1
        elif part.__class__ is int or isinstance(part, np.integer):
            place = (_within_default(part, shape[dim]) if isinstance(part, np.integer)
                     else int(part))
            entries.append(Entry("int", place, dim))
            dim += 1
        else:
            entries.append(Entry("array" if part.shape else "scalar", part, dim))
            dim += 1
    if gap < len(entries) and used == len(shape):
        entries[gap].detached = True
    # Beside arrays of positions a number is one of them: whether there is such a place depends on
    # whether any is asked for.
    has_arrays = any(entry.kind == "array" for entry in entries)
    if not has_arrays:
        for entry in entries:
            if entry.kind in ("int", "scalar") and not shape[entry.dim]:
                raise IndexError(f"index is out of bounds for axis {entry.dim} with size 0")
    _check_integers(entries, shape, has_arrays or reads)
    return entries


def _is_index_of_a_dimension(entry: Any) -> bool:
    """Whether a sequence with this entry is meant as a tuple, not as an array of positions."""
    return (entry is None or entry is Ellipsis or isinstance(entry, (slice, Sequence))
            or bool(getattr(entry, "ndim", 0)))


def as_tuple(index: Any) -> tuple[Any, ...]:
    if isinstance(index, tuple):
        return index
    if isinstance(index, str):
        raise TypeError(f"JAX does not support string indexing; got idx={index!r}")
    if isinstance(index, Sequence) and not isinstance(index, Array):
        kind = "tuple" if any(map(_is_index_of_a_dimension, index)) else "array"
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use "
            f"`arr[{kind}(seq)]` instead of `arr[seq]`. See "
            "https://github.com/jax-ml/jax/issues/4564 for more information.")
    return (index,)


def _is_place(integer: int, size: Any) -> bool:
    """Whether a dimension of this size has such a place, counted from its start or its end."""
    return isinstance(size, int) and -size <= integer < size


def _check_integers(entries: Sequence[Entry], shape: tuple[int, ...], as_arrays: bool) -> None:
    """Refuses the integers that JAX refuses: beside arrays, and in what is read, those that its
    default dtype does not hold and that are no places. All others of 64 bits are out of bounds."""
    dtype = dtypes.python_scalar(int)[0]
    low, high = map(int, dtypes.extremes(dtype))
    too_large = [entry.value for entry in entries
                 if entry.kind == "int" and not low <= entry.value <= high
                 and not _is_place(entry.value, shape[entry.dim])]
    if not too_large:
        return
    if as_arrays and not any(
            entry.kind == "slice" and abs(entry.value.step) != 1 for entry in entries):
        raise OverflowError(f"Python int {too_large[0]} too large to convert to {dtype.name}")
    if not -1 << 63 <= too_large[0] < 1 << 64:
        raise OverflowError("Python int too large to convert to C long")


def _within_default(value: np.integer, size: Any) -> int:
    """A NumPy integer, which may have more bits than JAX's: it is out of bounds all the same,
    unless the dimension has places that JAX's integers do not hold."""
    place = int(value)
    low, high = map(int, dtypes.extremes(dtypes.python_scalar(int)[0]))
    if isinstance(size, int) and size > high:
        return place
    return min(max(place, low), high)


class _Mask:
    """A mask: its shape, and along each dimension the positions of its true elements."""

    __slots__ = ("positions", "shape")

    def __init__(self, mask: np.ndarray):
        self.shape = mask.shape
        self.positions = tuple(line.astype(place_dtype(size)) for line, size in zip(
            np.nonzero(mask), mask.shape, strict=True))


def _consumes(part: Any) -> int:
    """How many dimensions of the operand a part of an index takes."""
    if part is None or part is Ellipsis:
        return 0
    return len(part.shape) if isinstance(part, _Mask) else 1


def _expand(entry: Any) -> list[Any]:
    """An entry as None, Ellipsis, slice, int, NumPy integer, mask, or array of integers."""
    if entry is None or entry is Ellipsis or isinstance(entry, slice):
        return [entry]
    if isinstance(entry, (bool, np.bool_)):
        return [_Mask(np.asarray(bool(entry)))]
    if isinstance(entry, int):
        return [int(entry)]
    if isinstance(entry, str):
        raise TypeError(f"JAX does not support string indexing; got idx={entry!r}")
    if isinstance(entry, Sequence) and not isinstance(entry, Array):
        entry = asarray(entry)
        if not entry.size and dtypes.is_floating(entry.dtype):
            entry = np.zeros(entry.shape, np.int32)
    elif hasattr(entry, "__jax_array__"):
        entry = entry.__jax_array__()
    if not isinstance(entry, (Array, np.ndarray, np.generic)):
        if hasattr(entry, "__index__"):
            return [operator.index(entry)]
        if isinstance(entry, (float, complex)):
            entry = np.asarray(entry)
        else:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer or "
                f"boolean arrays are valid indices. Got {entry!r}")
    values = entry if isinstance(entry, Array) else plain(entry)
    dtype = entry.dtype
    if dtype == dtypes.bool_:
        return [_Mask(concrete_mask(values))]
    if not dtypes.is_integer(dtype):
        name = dtype.name if hasattr(dtype, "name") else dtype
        raise TypeError("Indexer must have integer or boolean type, got indexer with type "
                        f"{name}")
    if isinstance(entry, Array):
        known = entry.concrete() if isinstance(entry, Tracer) else None
        return [entry if known is None else known]
    # Of numbers of 64 bits the low ones are kept later: negative ones count from the end before.
    return [np.asarray(entry) if entry.dtype == np.int64 else values] if entry.shape else [
        np.asarray(entry)[()]]


def concrete_mask(mask: Any) -> np.ndarray:
    if isinstance(mask, Tracer):
        known = mask.concrete()
        if known is None:
            raise NonConcreteBooleanIndexError(mask)
        mask = known
    return np.asarray(mask)


def _range(entry: slice, size: Any, position: int) -> range | SizeRange:
    for bound in (entry.start, entry.stop, entry.step):
        if isinstance(bound, Tracer) and bound.concrete() is None:
            raise IndexError(
                "Array slice indices must have static start/stop/step to be used with NumPy "
                f"indexing syntax. Got {entry} at position {position}. To index an array at a "
                "dynamic position with a static slice size, use x[jax.ds(start, size)] or "
                "lax.dynamic_slice/dynamic_update_slice instead (JAX does not support dynamically "
                f"sized arrays within traced functions).{origin_message(bound)}")
    return slice_range(entry, size)


def positions(numbers: range | SizeRange) -> Any:
    """The positions of a slice as an index."""
    if not isinstance(numbers, SizeRange):
        return np.asarray(numbers, place_dtype(*numbers[:1], *numbers[-1:]))
    line = iota(dtypes.int32, (numbers.count,), 0) * numbers.step
    return line + scalar_like(numbers.start, np.dtype(np.int32))


def with_flags(x: Array, index: Any) -> tuple[Array, Any]:
    """Scalar booleans as arrays of positions in new dimensions of ``x``.

    ``x[True, 0]`` is ``x[None][[0], 0]``, and ``x[False]`` is ``x[None][[]]``.
    """
    entries = as_tuple(index)
    flags = [_flag(entry) for entry in entries]
    if all(flag is None for flag in flags):
        return x, entries
    # The new dimensions are at the flags' positions among the dimensions that others take.
    parts: list[Any] = []
    shape: list[int] = []
    dim = 0
    used = sum(_consumes(part) for entry, flag in zip(entries, flags, strict=True)
               if flag is None for part in _expand(entry))
    rest = max(x.ndim - used, 0)
    for entry, flag in zip(entries, flags, strict=True):
        if flag is not None:
            shape.append(1)
            parts.append(np.zeros(int(flag), np.int32))
            continue
        parts.append(entry)
        count = rest if entry is Ellipsis else sum(map(_consumes, _expand(entry)))
        shape.extend(x.shape[dim:dim + count])
        dim += count
    shape.extend(x.shape[dim:])
    return reshape(x, tuple(shape)), tuple(parts)


def _flag(entry: Any) -> bool | None:
    """The value of a scalar boolean index; None for any other."""
    if isinstance(entry, (bool, np.bool_)):
        return bool(entry)
    if (isinstance(entry, (Array, np.ndarray)) and not entry.shape
            and entry.dtype == dtypes.bool_):
        return bool(concrete_mask(entry))
    return None


def split_off(x: Array, index: Any) -> tuple[list[Any], list[tuple[int, int, Slice]]]:
    """An index with full slices for its ``Slice``s, and their positions and dimensions."""
    entries = as_tuple(index)
    counts = [1 if entry.__class__ is Slice else sum(map(_consumes, _expand(entry)))
              for entry in entries]
    rest = x.ndim - sum(counts)
    if rest < 0:
        raise IndexError(f"Too many indices: array is {x.ndim}-dimensional, but {sum(counts)} were "
                         "indexed")
    parts: list[Any] = []
    found = []
    dim = 0
    for entry, count in zip(entries, counts, strict=True):
        if entry.__class__ is Slice:
            found.append((len(parts), dim, entry))
            entry = ALL
        parts.append(entry)
        dim += rest if entry is Ellipsis else count
    return parts, found


def has_slices(index: Any) -> bool:
    return index.__class__ is Slice or index.__class__ is tuple and any(
        entry.__class__ is Slice for entry in index)
