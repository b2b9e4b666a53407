"""Arrays of integers in an index: how they broadcast, and as the operand of a gather."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.dimensions import broadcast_shapes, is_dimension
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array
from maxjax._primitives.arithmetic import minimum
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.joining import concatenate
from maxjax._primitives.rules import MOST_INT32, place_dtype, scalar_like
from maxjax._runtime.array import ArrayImpl, shows_sharding
from maxjax.lax._slicing import from_end
from maxjax.numpy._index_parsing import Entry
from maxjax.numpy._index_plan import wrapped
from maxjax.numpy._promotion import cast

# Larger index arrays stay on the device rather than being wrapped on the host.
_HOST_SIZE = 1 << 14


def integer_place(entry: Entry, size: int, wrap_negative: bool) -> Any:
    """An integer as an operand; saturates."""
    place = wrapped(entry.value, size, wrap_negative)
    return (scalar_like(place, np.int32) if is_dimension(place) else
            _saturated(place, place_dtype(size)))


def _saturated(places: Any, dtype: Any) -> Any:
    limits = np.iinfo(dtype)
    return np.clip(places, limits.min, limits.max).astype(dtype)[()]


def as_signed(index: Any) -> Any:
    """Indices of a gather or scatter as JAX has them read: of unsigned ones the low 32 bits as a
    signed number, so that 2**32 - 1 lies before the array, and not behind it."""
    if not dtypes.is_unsigned(index.dtype) or index.dtype.itemsize < 4:
        return index
    if isinstance(index, np.ndarray):
        return index.astype(np.uint32).view(np.int32)
    return cast(index, dtypes.int32)


def host_or_device(index: Any, size: int, wrap_negative: bool, signed: bool = True,
                   narrow: Any = None) -> Any:
    """An integer operand with negative indices wrapped; on the host if its value is known.

    Args:
      signed: whether unsigned indices are read as a gather reads them; a slice does not.
      narrow: the dtype that JAX converts indices to before anything else, whatever becomes of those
        that it does not hold; None where it keeps theirs.

    Raises:
      OverflowError: negative indices may be wrapped, and their dtype does not hold the size.
    """
    own = False
    if is_dimension(size) and not isinstance(index, Array):
        index = installed.runtime.operand(index)
    elif (index.__class__ is ArrayImpl and index.is_ready() and index.aval.size <= _HOST_SIZE
          and not shows_sharding(index)):
        index, own = index.host(), True
    if narrow is not None and index.dtype != narrow and index.dtype.itemsize >= narrow.itemsize:
        index = index.astype(narrow) if isinstance(index, np.ndarray) else cast(index, narrow)
    wrap_negative = wrap_negative and dtypes.is_signed(index.dtype)
    # JAX adds the size in the indices' dtype; a slice's starts are converted before.
    if wrap_negative and signed and index.dtype.itemsize < 4 and isinstance(size, int) and (
            size > int(dtypes.iinfo(index.dtype).max)):
        raise OverflowError(f"Python integer {size} out of bounds for {index.dtype}")
    if signed:
        index = as_signed(index)
    if isinstance(index, np.ndarray):
        if not own and index.ndim and size > MOST_INT32 and place_dtype(size) == dtypes.int32:
            # As in JAX; larger places have been cut off to 32 bits.
            raise OverflowError(f"Python integer {size} out of bounds for int32")
        if index.dtype == np.int32 and size < 1 << 30:
            if wrap_negative:
                negative = index < 0
                if negative.any():
                    return np.where(negative, index + np.int32(size), index)[()]
            # The caller may later write to a NumPy array, so it is copied.
            return index[()] if own or not index.shape else index.copy()
        wide = index.astype(np.int64) if index.dtype != np.uint64 else np.minimum(
            index, np.uint64(2**62)).astype(np.int64)
        if wrap_negative:
            wide = np.where(wide < 0, wide + size, wide)
        # Of arrays the low bits are kept, as in JAX; a single place out of bounds stays out.
        dtype = place_dtype(size)
        return wide.astype(dtype) if index.ndim else _saturated(wide, dtype)
    return from_end(index, size) if wrap_negative else index


def slice_starts(places: Sequence[Any], sizes: Sequence[int]) -> list[Any]:
    """Where a slice of an array of such sizes starts: of one dtype, as ``dynamic_slice`` wants it,
    int64 if one of them is, int32 otherwise; saturating."""
    is_wide = any(place.dtype == dtypes.int64 for place in places)
    dtype = dtypes.int64 if is_wide else dtypes.int32
    starts = []
    for place, size in zip(places, sizes, strict=True):
        if not isinstance(place, Array):
            place = place.astype(dtype)
        elif place.dtype != dtype or place.aval.weak_type:
            if place.dtype in (dtypes.uint32, dtypes.uint64):
                place = minimum(place, scalar_like(size, place.dtype))
            place = cast(place, dtype)
        starts.append(place)
    return starts


def advanced(entries: Sequence[Entry]) -> tuple[list[Entry], tuple[int, ...], bool]:
    """The entries that broadcast together, their common shape, and whether it comes first.

    NumPy's rule: the common dimensions replace the entries, or come first if the entries are
    separated. Integers count as entries if there are arrays.
    """
    chosen = [entry for entry in entries if entry.kind in ("int", "scalar", "array")]
    shapes = [entry.value.shape for entry in chosen if entry.kind == "array"]
    try:
        common = broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={shapes}") from None
    places = [place for place, entry in enumerate(entries)
              if entry.kind in ("int", "scalar", "array")]
    apart = bool(places) and (places[-1] - places[0] + 1 != len(places)
                              or any(entry.detached for entry in chosen[1:]))
    return chosen, common, apart


def layout(entries: Sequence[Entry], common: tuple[int, ...], apart: bool) -> list[Any]:
    """The dimensions of ``x[index]``: entries of slices and new axes, integers for ``common``."""
    result: list[Any] = []
    placed = False
    if apart:
        result.extend(range(len(common)))
        placed = True
    for entry in entries:
        if entry.kind in ("slice", "new"):
            result.append(entry)
        elif not placed:
            result.extend(range(len(common)))
            placed = True
    return result


def index_vectors(columns: Sequence[Any], dims: Sequence[Sequence[int]],
                  batch: tuple[int, ...]) -> Any:
    """Index arrays as the components of index vectors, of shape ``(*batch, len(columns))``.

    ``dims`` gives the dimensions of ``batch`` that each array has.
    """
    if all(not isinstance(column, Array) for column in columns):
        if len(columns) == 1 and len(dims[0]) == len(batch):
            return np.asarray(columns[0])[..., None]
        out = np.empty((*batch, len(columns)), common_index_dtype(columns))
        for number, (column, own) in enumerate(zip(columns, dims, strict=True)):
            column = np.asarray(column)
            aligned = [1] * len(batch)
            for size, dim in zip(column.shape, own, strict=True):
                aligned[dim] = size
            out[..., number] = column.reshape(aligned)
        return out
    dtype = common_index_dtype(columns)
    shape = (*batch, 1)
    return concatenate([
        broadcast_in_dim(cast(column, dtype), shape, tuple(own))
        for column, own in zip(columns, dims, strict=True)], len(batch))


def common_index_dtype(columns: Sequence[Any]) -> Any:
    kinds = {column.dtype for column in columns}
    if len(kinds) == 1:
        return kinds.pop()
    wide = max(kind.itemsize for kind in kinds)
    return dtypes.int64 if wide > 4 else dtypes.int32
