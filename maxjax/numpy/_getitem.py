"""``x[index]``: how an index is read, and what it becomes.

Integers and slices become slice, rev, squeeze and broadcast_in_dim; a traced integer
dynamic_slice; arrays of integers one gather of what the static part of the index leaves.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import caches, config, dtypes
from maxjax._base.errors import NonConcreteBooleanIndexError
from maxjax._ir.dimensions import (
    SizeRange,
    broadcast_shapes,
    count_of,
    is_dimension,
    reversed_range,
    slice_range,
)
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Array, Tracer, context
from maxjax._primitives.arithmetic import maximum, minimum
from maxjax._primitives.dynamic_slice import dynamic_slice_p
from maxjax._primitives.gather_plan import FillValue, GatherDimensionNumbers, GatherScatterMode
from maxjax._primitives.indexing import gather_p
from maxjax._primitives.rules import scalar_like
from maxjax._primitives.shape import (
    broadcast_in_dim,
    broadcast_in_dim_p,
    concatenate,
    full,
    iota,
    reshape,
    rev_p,
    slice_p,
    squeeze_p,
)
from maxjax._runtime.array import ArrayImpl, is_spread
from maxjax._runtime.pending import plain
from maxjax.lax._indexing import dynamic_slice, fill_parameter, from_end
from maxjax.numpy._creation import asarray
from maxjax.numpy._promotion import cast

CLIP = GatherScatterMode.CLIP
FILL_OR_DROP = GatherScatterMode.FILL_OR_DROP
PROMISE = GatherScatterMode.PROMISE_IN_BOUNDS

# Larger index arrays stay on the device rather than being wrapped on the host.
_HOST_SIZE = 1 << 14

_plans: dict[Any, Any] = caches.cache()
_PLAN_LIMIT = 20_000
_DYNAMIC = object()
_OUTSIDE = object()


def getitem(x: Array, index: Any) -> Array:
    """``x[index]`` as JAX has it: out of bounds, integers are clipped.

    Differentiable in ``x``.

    Raises:
      IndexError: too many indices, a mask of another shape, or a traced mask or slice bound.
      TypeError: an index is no integer, slice, mask, None or Ellipsis.
    """
    key = static_key(index)
    if key is not _DYNAMIC:
        plan = _plans.get((x.aval.shape, key))
        if plan is None:
            plan = _make_plan(x.aval.shape, key)
        if plan is _OUTSIDE:
            return take(x, index)
        if x.__class__ is ArrayImpl and x._placement is not None:
            return run_steps(x, plan)
        apply = context.trace.apply
        for primitive, params in plan:
            x = apply(primitive, (x,), params)
        return x
    return take(x, index)


def static_key(index: Any) -> Any:
    """An index of integers, slices, None and Ellipsis as a key; ``_DYNAMIC`` if it is another.

    Classes are compared exactly: True equals 1, and 2.0 equals 2.
    """
    kind = index.__class__
    if kind is int:
        return (index,)
    if kind is slice:
        index = (index,)
    elif kind is not tuple:
        return (index,) if index is None or index is Ellipsis else _DYNAMIC
    key = []
    for entry in index:
        kind = entry.__class__
        if kind is slice:
            start, stop, step = entry.start, entry.stop, entry.step
            if ((start is not None and start.__class__ is not int)
                    or (stop is not None and stop.__class__ is not int)
                    or (step is not None and step.__class__ is not int)):
                return _DYNAMIC
            key.append((start, stop, step))
        elif kind is int or entry is None or entry is Ellipsis:
            key.append(entry)
        else:
            return _DYNAMIC
    return tuple(key)


def _make_plan(shape: tuple[int, ...], key: tuple[Any, ...]) -> Any:
    entries = parse(shape, tuple(slice(*e) if e.__class__ is tuple else e for e in key))
    plan: Any = (_OUTSIDE if any(is_outside(entry, shape) for entry in entries) else
                 tuple(static_steps(shape, entries)))
    if len(_plans) >= _PLAN_LIMIT:
        _plans.clear()
    _plans[shape, key] = plan
    return plan


_ALL = slice(None)


@dataclasses.dataclass(frozen=True)
class Slice:
    """``size`` places from ``start``, which may be a traced integer. Made by ``jax.ds``."""

    start: Any
    size: int
    stride: int = 1


# --- reading an index -----------------------------------------------------------------------------

class Entry:
    """One part of an index.

    ``kind`` is "new" (a dimension of size 1), "int" (``value`` is a Python integer as it was
    written), "slice" (``value`` is a range), "scalar" (an operand of rank 0) or "array".
    ``dim`` is the dimension of the operand. ``detached`` tells of an Ellipsis before it that
    takes no dimensions, and so is no entry.
    """

    __slots__ = ("detached", "dim", "kind", "value")

    def __init__(self, kind: str, value: Any = None, dim: int = -1):
        self.detached = False
        self.kind = kind
        self.value = value
        self.dim = dim


def parse(shape: tuple[int, ...], index: Any) -> list[Entry]:
    """The parts of an index, one for each dimension and new axis; masks become positions.

    Scalar booleans have become arrays before: see ``with_flags``.
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
                entries.append(Entry("slice", slice_range(_ALL, shape[dim]), dim))
                dim += 1
        elif part is None:
            entries.append(Entry("new"))
        elif isinstance(part, _Mask):
            if part.shape != shape[dim:dim + len(part.shape)]:
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
        elif part.__class__ is int:
            if not shape[dim]:
                raise IndexError(f"index is out of bounds for axis {dim} with size 0")
            _check_int32(part)
            entries.append(Entry("int", part, dim))
            dim += 1
        else:
            entries.append(Entry("array" if part.shape else "scalar", part, dim))
            dim += 1
    if gap < len(entries) and used == len(shape):
        entries[gap].detached = True
    return entries


def as_tuple(index: Any) -> tuple[Any, ...]:
    if isinstance(index, tuple):
        return index
    if isinstance(index, str):
        raise TypeError(f"JAX does not support string indexing; got idx={index!r}")
    if isinstance(index, Sequence) and not isinstance(index, Array):
        raise TypeError(
            "Using a non-tuple sequence for multidimensional indexing is not allowed; use "
            "`arr[array(seq)]` instead of `arr[seq]`. See "
            "https://github.com/jax-ml/jax/issues/4564 for more information.")
    return (index,)


def _check_int32(value: int) -> None:
    dtype = dtypes.python_scalar(int)[0]
    info = np.iinfo(dtype)
    if not info.min <= value <= info.max:
        raise OverflowError(f"Python int {value} too large to convert to {dtype.name}")


class _Mask:
    """A mask: its shape, and along each dimension the positions of its true elements."""

    __slots__ = ("positions", "shape")

    def __init__(self, mask: np.ndarray):
        self.shape = mask.shape
        self.positions = tuple(line.astype(np.int32) for line in np.nonzero(mask))


def _consumes(part: Any) -> int:
    """How many dimensions of the operand a part of an index takes."""
    if part is None or part is Ellipsis:
        return 0
    return len(part.shape) if isinstance(part, _Mask) else 1


def _expand(entry: Any) -> list[Any]:
    """An entry as None, Ellipsis, slice, int, mask, or array of integers."""
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
    return [values if entry.shape else int(entry)]


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
                f"Slice entries must be static integers. Got {entry} at position {position}")
    return slice_range(entry, size)


def positions(numbers: range | SizeRange) -> Any:
    """The positions of a slice as an index."""
    if not isinstance(numbers, SizeRange):
        return np.asarray(numbers, np.int32)
    line = iota(dtypes.int32, (numbers.count,), 0) * numbers.step
    return line + scalar_like(numbers.start, np.int32)


# --- what it becomes ------------------------------------------------------------------------------

def wrapped(value: int, size: int, wrap_negative: bool = True) -> int:
    return value + size if value < 0 and wrap_negative else value


def clamp(value: int, size: int) -> int:
    return min(max(value, 0), size - 1)


def is_outside(entry: Entry, shape: tuple[int, ...], wrap_negative: bool = True) -> bool:
    """Whether an integer is known to be out of bounds. It is left to an operation that clips or
    drops, so that the program shows it, to ``checkify`` for one."""
    if entry.kind != "int" or is_dimension(shape[entry.dim]):
        return False
    return not 0 <= wrapped(entry.value, shape[entry.dim], wrap_negative) < shape[entry.dim]


def region(shape: tuple[int, ...], entries: Sequence[Entry],
           wrap_negative: bool = True) -> tuple[list[int], list[int], list[int], list[int]]:
    """Starts, limits and strides of the static part of an index, and the reversed dimensions."""
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    reversed_dims = []
    for entry in entries:
        dim = entry.dim
        if entry.kind == "int":
            place = clamp(wrapped(entry.value, shape[dim], wrap_negative), shape[dim])
            starts[dim], limits[dim] = place, place + 1
        elif entry.kind == "slice":
            steps = entry.value
            count = count_of(steps)
            if not count:
                starts[dim] = limits[dim] = 0
                continue
            if steps.step < 0:
                reversed_dims.append(dim)
                steps = reversed_range(steps)
            starts[dim], strides[dim] = steps.start, steps.step
            # A limit at the operand's end spares padding in the transpose.
            limits[dim] = (steps.start + steps.step * (count - 1) + 1
                           if steps.step == 1 or count == 1 else
                           min(shape[dim], steps.start + steps.step * count))
            if count == 1:
                strides[dim] = 1
    return starts, limits, strides, reversed_dims


def static_steps(shape: tuple[int, ...], entries: Sequence[Entry], wrap_negative: bool = True,
                 drop: bool = True) -> list[tuple[Any, dict[str, Any]]]:
    """The operations that the static part of an index becomes.

    Without ``drop``, dimensions indexed by integers stay, and new ones are not made.
    """
    starts, limits, strides, reversed_dims = region(shape, entries, wrap_negative)
    steps: list[tuple[Any, dict[str, Any]]] = []
    if starts != [0] * len(shape) or limits != list(shape) or strides != [1] * len(shape):
        steps.append((slice_p, {
            "start_indices": tuple(starts), "limit_indices": tuple(limits),
            "strides": None if strides == [1] * len(shape) else tuple(strides)}))
    if reversed_dims:
        steps.append((rev_p, {"dimensions": tuple(reversed_dims)}))
    if not drop:
        return steps
    dropped = tuple(entry.dim for entry in entries if entry.kind == "int")
    if dropped:
        steps.append((squeeze_p, {"dimensions": dropped}))
    result, kept = [], []
    for entry in entries:
        if entry.kind == "new":
            result.append(1)
        elif entry.kind == "slice":
            kept.append(len(result))
            result.append(count_of(entry.value))
    if len(kept) < len(result):
        steps.append((broadcast_in_dim_p, {
            "shape": tuple(result), "broadcast_dimensions": tuple(kept)}))
    return steps


def run_steps(x: Array, steps: Sequence[tuple[Any, dict[str, Any]]]) -> Array:
    for primitive, params in steps:
        if primitive is slice_p and params["strides"] is None and is_spread(x):
            x = _sliced_by_operands(x, **params)
        else:
            x = primitive.bind(x, **params)
    return x


def _sliced_by_operands(x: Array, start_indices: Sequence[int], limit_indices: Sequence[int],
                        strides: None) -> Array:
    """As JAX slices such an array: where it is cut the result is whole on all devices."""
    starts = [installed.runtime.operand(np.int32(start)) for start in start_indices]
    return dynamic_slice_p.bind(x, *starts, slice_sizes=tuple(
        limit - start for start, limit in zip(start_indices, limit_indices, strict=True)))


def with_flags(x: Array, index: Any) -> tuple[Array, Any]:
    """Scalar booleans as arrays of positions in new dimensions of ``x``.

    ``x[True, 0]`` is ``x[None][[0], 0]``, and ``x[False]`` is ``x[None][[]]``.
    """
    entries = as_tuple(index)
    flags = [_flag(entry) for entry in entries]
    if all(flag is None for flag in flags):
        return x, entries
    # The new dimensions come where the flags stand among the dimensions that others take.
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


def split_off(x: Array, index: Any) -> tuple[list[Any], list[tuple[int, int, Slice]]]:
    """An index with whole slices in the places of its ``Slice``s, and each of them with its place
    there and its dimension."""
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
            entry = _ALL
        parts.append(entry)
        dim += rest if entry is Ellipsis else count
    return parts, found


def has_slices(index: Any) -> bool:
    return index.__class__ is Slice or index.__class__ is tuple and any(
        entry.__class__ is Slice for entry in index)


def places_of(part: Slice) -> Array:
    return asarray(part.start) + iota(dtypes.int32, (part.size,), 0) * np.int32(part.stride)


def window(x: Array, dim: int, part: Slice) -> Array:
    """The places of one dimension: a start is moved so that all are inside, each place of a stride
    for itself."""
    if part.stride != 1:
        places = minimum(maximum(places_of(part), np.int32(0)), np.int32(x.shape[dim] - 1))
        return take(x, (_ALL,) * dim + (places,), CLIP)
    starts: list[Any] = [0] * x.ndim
    starts[dim] = part.start
    return dynamic_slice(x, starts, (*x.shape[:dim], part.size, *x.shape[dim + 1:]))


def _flag(entry: Any) -> bool | None:
    """The value of a scalar boolean index; None for any other."""
    if isinstance(entry, (bool, np.bool_)):
        return bool(entry)
    if (isinstance(entry, (Array, np.ndarray)) and not entry.shape
            and entry.dtype == dtypes.bool_):
        return bool(concrete_mask(entry))
    return None


def take(x: Array, index: Any, mode: GatherScatterMode | None = None, fill_value: Any = None,
         unique_indices: bool = False, indices_are_sorted: bool = False,
         wrap_negative: bool = True) -> Array:
    """``x[index]`` in a mode: None clips what is out of bounds, and promises that nothing is.

    Raises:
      IndexError: an integer breaks the promise, and ``jax_check_static_indices`` is set.
    """
    checked = mode in (None, PROMISE) and config.check_static_indices.value
    if checked:
        index = tuple([int(part) if isinstance(part, np.integer) else
                       asarray(part) if isinstance(part, np.ndarray) else part      # as if traced
                       for part in as_tuple(index)])
    if has_slices(index):
        if mode in (FILL_OR_DROP, GatherScatterMode.ONE_HOT):
            raise NotImplementedError(f"an index with jax.ds is not filled in mode {mode}: {index}")
        parts, slices = split_off(x, index)
        for _, dim, part in slices:
            x = window(x, dim, part)
        index = tuple(parts)
    x, index = with_flags(x, index)
    entries = parse(x.aval.shape, index)
    if checked:
        _check_integers(entries, x.aval.shape, wrap_negative)
    fills = mode in (FILL_OR_DROP, GatherScatterMode.ONE_HOT)
    kinds = {entry.kind for entry in entries}
    shape = x.aval.shape
    outside = mode is not CLIP and any(
        is_outside(entry, shape, wrap_negative) for entry in entries)
    if "array" not in kinds and not fills and ("scalar" in kinds or outside):
        return _take_dynamic(x, entries, wrap_negative)
    if "array" not in kinds and "scalar" not in kinds and not outside:
        return run_steps(x, static_steps(shape, entries, wrap_negative))
    return _take_arrays(x, entries, mode or PROMISE, fill_parameter(fill_value, x.dtype)
                        if fills else None, unique_indices, indices_are_sorted, wrap_negative)


def _check_integers(entries: list[Entry], shape: tuple[int, ...], wrap_negative: bool) -> None:
    for entry in entries:
        if entry.kind == "int" and is_outside(entry, shape, wrap_negative):
            raise IndexError(
                f"index {entry.value} out of bounds for axis {entry.dim} with size "
                f"{shape[entry.dim]} (normalize_indices={wrap_negative})")


def _take_dynamic(x: Array, entries: list[Entry], wrap_negative: bool) -> Array:
    """Scalars, integers, slices and new axes: slices first, then a dynamic slice."""
    x = run_steps(x, static_steps(
        x.aval.shape, [entry for entry in entries if entry.kind == "slice"], drop=False))
    starts: list[Any] = [np.int32(0)] * x.ndim
    sizes = list(x.aval.shape)
    for entry in entries:
        if entry.kind not in ("int", "scalar"):
            continue
        if not sizes[entry.dim]:
            raise IndexError(f"index is out of bounds for axis {entry.dim} with size 0")
        starts[entry.dim] = (
            int32_place(entry, sizes[entry.dim], wrap_negative) if entry.kind == "int" else
            host_or_device(entry.value, sizes[entry.dim], wrap_negative, narrow=True))
        sizes[entry.dim] = 1
    x = dynamic_slice_p.bind(x, *starts, slice_sizes=tuple(sizes))
    taken = [Entry("int", 0, entry.dim) if entry.kind in ("int", "scalar") else
             entry if entry.kind == "new" else Entry("slice", slice_range(_ALL, sizes[entry.dim]),
                                                             entry.dim)
             for entry in entries]
    return run_steps(x, static_steps(x.aval.shape, taken))


def int32_place(entry: Entry, size: int, wrap_negative: bool) -> np.int32:
    """An integer as an operand; saturates."""
    return np.int32(np.clip(wrapped(entry.value, size, wrap_negative), -2**31, 2**31 - 1))


def host_or_device(index: Any, size: int, wrap_negative: bool, narrow: bool = False) -> Any:
    """An integer operand with negative indices wrapped; on the host where its value is there.

    With ``narrow``, as int32, saturating.
    """
    own = False
    if is_dimension(size) and not isinstance(index, Array):
        index = installed.runtime.operand(index)
    elif isinstance(index, ArrayImpl) and index.is_ready() and index.aval.size <= _HOST_SIZE:
        index, own = index.host(), True
    if isinstance(index, np.ndarray):
        if index.dtype == np.int32 and size < 1 << 30:
            if wrap_negative:
                negative = index < 0
                if negative.any():
                    return np.where(negative, index + np.int32(size), index)[()]
            # The caller may write to an array of NumPy's: it is copied.
            return index[()] if own or not index.shape else index.copy()
        wide = index.astype(np.int64) if index.dtype != np.uint64 else np.minimum(
            index, np.uint64(2**62)).astype(np.int64)
        if wrap_negative and dtypes.is_signed(index.dtype):
            wide = np.where(wide < 0, wide + size, wide)
        return np.clip(wide, -2**31, 2**31 - 1).astype(np.int32)[()]
    if wrap_negative:
        index = from_end(index, size)
    if narrow and (index.dtype != dtypes.int32 or index.aval.weak_type):
        if index.dtype in (dtypes.uint32, dtypes.uint64, dtypes.int64):
            index = minimum(index, scalar_like(size, index.dtype))
        index = cast(index, dtypes.int32)
    return index


def advanced(entries: Sequence[Entry]) -> tuple[list[Entry], tuple[int, ...], bool]:
    """The entries that broadcast together, their common shape, and whether it comes first.

    NumPy's rule: the common dimensions stand where the entries stood, or first if something
    stood between them. Integers count where there are arrays.
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

    ``dims`` says for each array which dimensions of ``batch`` it has.
    """
    if all(not isinstance(column, Array) for column in columns):
        if len(columns) == 1 and len(dims[0]) == len(batch):
            return np.asarray(columns[0])[..., None]
        out = np.empty((*batch, len(columns)), np.int32)
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


def _take_arrays(x: Array, entries: list[Entry], mode: GatherScatterMode,
                 fill: FillValue | None, unique_indices: bool, indices_are_sorted: bool,
                 wrap_negative: bool) -> Array:
    """The static part of the index first, then one gather along the dimensions of the rest."""
    chosen, common, apart = advanced(entries)
    fills = mode in (FILL_OR_DROP, GatherScatterMode.ONE_HOT)
    shape = x.aval.shape
    # Integers that may be out of bounds are left to the gather.
    left = [entry for entry in entries if entry.kind == "int" and (
        fills or (mode is not CLIP and is_outside(entry, shape, wrap_negative)))]
    static = [entry for entry in entries if entry not in left]
    x = run_steps(x, static_steps(shape, static, wrap_negative, drop=False))
    sizes = x.aval.shape
    columns, dims, index_map = [], [], []
    for entry in chosen:
        if entry.kind == "int":
            if entry not in left:
                continue
            column: Any = int32_place(entry, shape[entry.dim], wrap_negative)
        else:
            column = host_or_device(entry.value, sizes[entry.dim], wrap_negative)
        columns.append(column)
        rank = len(column.shape)
        dims.append(range(len(common) - rank, len(common)))
        index_map.append(entry.dim)
    dimensions = layout(entries, common, apart)
    if 0 in common and any(not sizes[entry.dim] for entry in chosen):
        # nothing is taken from an empty dimension
        return full(tuple(common[dim] if dim.__class__ is int else
                          1 if dim.kind == "new" else sizes[dim.dim] for dim in dimensions),
                    0, x.dtype)
    old = [dim for dim in dimensions if dim.__class__ is int or dim.kind != "new"]
    window_dims = tuple(place for place, dim in enumerate(old) if dim.__class__ is not int)
    collapsed = tuple(entry.dim for entry in chosen)
    out = gather_p.bind(
        x, index_vectors(columns, dims, common),
        dimension_numbers=GatherDimensionNumbers(window_dims, collapsed, tuple(index_map)),
        slice_sizes=tuple(1 if dim in collapsed else size for dim, size in enumerate(sizes)),
        mode=mode, fill_value=fill, unique_indices=unique_indices,
        indices_are_sorted=indices_are_sorted)
    if len(old) == len(dimensions):
        return out
    sizes_out = iter(out.aval.shape)
    new_shape: list[int] = []
    kept: list[int] = []
    for place, dim in enumerate(dimensions):
        if dim.__class__ is not int and dim.kind == "new":
            new_shape.append(1)
        else:
            kept.append(place)
            new_shape.append(next(sizes_out))
    return broadcast_in_dim(out, tuple(new_shape), tuple(kept))
