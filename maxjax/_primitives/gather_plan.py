"""How gather and scatter find their windows: dimension numbers, modes and the plan of both.

A gather reads, for each index vector, one window of the operand; a scatter writes them. The plan
sees the operand as (before, rows, after): ``rows`` merges the dimensions from the first to the
last that is not taken whole, so that every element of a window is one row, found by one number.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxjax._base import caches, dtypes
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Shape
from maxjax._primitives.rules import MOST_INT32

if TYPE_CHECKING:
    from maxjax._primitives.rules import Dim


class GatherDimensionNumbers(NamedTuple):
    """Which dimensions of a gather correspond; see XLA's documentation of Gather.

    The last dimension of the indices holds the index vectors.

    Attributes:
      offset_dims: the dimensions of the result that run within a window, ascending.
      collapsed_slice_dims: the operand's dimensions of window size 1 that the result lacks.
      start_index_map: for each component of an index vector, the operand's dimension.
      operand_batching_dims: the operand's dimensions that go along with those of the indices.
      start_indices_batching_dims: those of the indices.

    >>> lax.GatherDimensionNumbers((1,), (0,), (0,)).start_index_map
    (0,)
    """

    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which dimensions of a scatter correspond; the mirror image of ``GatherDimensionNumbers``.

    Attributes:
      update_window_dims: the dimensions of the updates that run within a window, ascending.
      inserted_window_dims: the operand's dimensions of window size 1 that the updates lack.
      scatter_dims_to_operand_dims: for each component of an index vector, the operand's dimension.
      operand_batching_dims: the operand's dimensions that go along with those of the indices.
      scatter_indices_batching_dims: those of the indices.

    >>> lax.ScatterDimensionNumbers((1,), (0,), (0,)).update_window_dims
    (1,)
    """

    update_window_dims: Sequence[int]
    inserted_window_dims: Sequence[int]
    scatter_dims_to_operand_dims: Sequence[int]
    operand_batching_dims: Sequence[int] = ()
    scatter_indices_batching_dims: Sequence[int] = ()


class GatherScatterMode(enum.Enum):
    """What happens to windows that are out of bounds.

    CLIP moves them inside; FILL_OR_DROP reads the fill value, and drops what is written;
    PROMISE_IN_BOUNDS leaves it open (reads are clipped and writes dropped, as JAX does on CPU).

    >>> jnp.arange(3).at[7].get(mode=lax.GatherScatterMode.CLIP)
    Array(2, dtype=int32)
    """

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @staticmethod
    def from_any(mode: str | GatherScatterMode | None) -> GatherScatterMode:
        """The mode of that name; None is FILL_OR_DROP.

        Raises:
          ValueError: there is no such mode.
        """
        if isinstance(mode, GatherScatterMode):
            return mode
        known = _MODES.get(mode)
        if known is None:
            raise ValueError(f'Unknown gather mode "{mode}"')
        return known


_LARGE = "its rows are more than int32 counts"

_MODES = {
    None: GatherScatterMode.FILL_OR_DROP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "clip": GatherScatterMode.CLIP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
    "one_hot": GatherScatterMode.ONE_HOT,
}


class FillValue(NamedTuple):
    """A scalar as a parameter: compared by dtype and bits, so that 0.0 is not -0.0, nor 1 True."""

    dtype: Any       # as the host holds it
    bits: str        # the bytes, in hexadecimal digits

    @staticmethod
    def of(value: np.ndarray | np.generic) -> FillValue:
        """The parameter that stands for a NumPy scalar."""
        return FillValue(value.dtype, value.tobytes().hex())

    @property
    def value(self) -> Any:
        """The NumPy scalar."""
        return np.frombuffer(bytes.fromhex(self.bits), self.dtype)[0]

    def __repr__(self) -> str:
        return str(self.value)


def default_fill(dtype: np.dtype) -> Any:
    """What is read out of bounds: NaN, the least signed, the greatest unsigned integer, True."""
    physical = dtypes.physical(dtype)
    if dtypes.is_user_defined(dtype):
        dtype = physical
    if dtypes.is_key(dtype):
        return np.frombuffer(b"\xff" * physical.itemsize, physical)[0]
    if dtypes.is_inexact(dtype):
        return np.asarray(np.nan, physical)[()]
    low, high = dtypes.extremes(dtype)
    return low if dtypes.is_signed(dtype) else high


def fills_outside(mode: GatherScatterMode) -> bool:
    return mode is GatherScatterMode.FILL_OR_DROP or mode is GatherScatterMode.ONE_HOT


def fill_scalar(dtype: np.dtype, mode: GatherScatterMode, fill_value: FillValue | None) -> Any:
    if fill_value is not None:
        return fill_value.value
    if mode is GatherScatterMode.ONE_HOT:
        return np.zeros((), dtypes.physical(dtype))[()]
    return default_fill(dtype)


def host_reason(x: ShapedArray, indices: ShapedArray, updates: ShapedArray | None = None, *,
                dimension_numbers: GatherDimensionNumbers | ScatterDimensionNumbers,
                slice_sizes: Shape = (), **params: object) -> str | None:
    """Why a gather or scatter is a step of the host: compiled programs number its rows in int32."""
    if is_dimension(x.size) or x.size <= MOST_INT32:
        return None
    if updates is None or not isinstance(dimension_numbers, ScatterDimensionNumbers):
        plan = gather_plan(x.shape, indices.shape, dimension_numbers, slice_sizes)
    else:
        plan = scatter_plan(x.shape, indices.shape, updates.shape, dimension_numbers)
    return _LARGE if plan.view[1] > MOST_INT32 else None


def slice_host_reason(x: ShapedArray, sizes: Shape) -> str | None:
    """As ``host_reason``, for a window of such sizes at a computed place."""
    if is_dimension(x.size) or x.size <= MOST_INT32:
        return None
    last = max((dim for dim, size in enumerate(sizes) if size != x.shape[dim]), default=-1)
    return _LARGE if math.prod(x.shape[:last + 1]) > MOST_INT32 else None


# As many starts are kept with a plan.
_FEW_STARTS = 2048


class WindowPlan:
    """The static part of a gather or scatter, for given shapes.

    Attributes:
      view: (before, rows, after), a shape that the operand is reshaped to.
      columns: (position in the index vector, greatest start, stride) of what moves the window.
      limits: for each component of the index vector the greatest start in bounds.
      batching: (dimension of the indices, stride) of the dimensions that go along.
      along: the rows at which their elements start, once they are known, if there are few.
      offsets: where the elements of a window lie relative to its start, as rows.
      batch: the shape of the indices without the index vectors.
      window: the sizes within ``rows`` of a window.
      leading, trailing: the sizes of the window's dimensions in ``before`` and in ``after``.
      order: for each dimension of the result (the updates) its place in
        (*leading, *batch, *window, *trailing).
      count: of the rows in all windows.
    """

    __slots__ = ("along", "batch", "batching", "columns", "count", "inverse", "leading", "limits",
                 "offsets", "order", "trailing", "view", "whole", "window")

    def __init__(self, shape: tuple[int, ...], indices_shape: tuple[int, ...],
                 sizes: tuple[int, ...], window_dims: Sequence[int], collapsed: Sequence[int],
                 index_map: Sequence[int], operand_batching: Sequence[int],
                 indices_batching: Sequence[int], all_rows: bool = False):
        batch = indices_shape[:-1]
        rank = len(shape)
        self.limits = tuple(shape[dim] - sizes[dim] for dim in index_map)
        moving = [dim for dim in range(rank) if sizes[dim] != shape[dim]]
        first, last = (moving[0], moving[-1]) if moving else (0, -1)
        if all_rows:
            first = 0
        self.view = (math.prod(shape[:first]), math.prod(shape[first:last + 1]),
                     math.prod(shape[last + 1:]))
        stride: dict[int, int] = {}
        step = 1
        for dim in range(last, first - 1, -1):
            stride[dim] = step
            step *= shape[dim]
        self.columns = tuple(
            (position, shape[dim] - sizes[dim], stride[dim])
            for position, dim in enumerate(index_map) if sizes[dim] != shape[dim])
        self.batching = tuple(
            (along, stride[dim])
            for dim, along in zip(operand_batching, indices_batching, strict=True)
            if sizes[dim] != shape[dim])
        dropped = {*collapsed, *operand_batching}
        kept = [dim for dim in range(rank) if dim not in dropped]
        inside = [dim for dim in kept if first <= dim <= last]
        offsets = np.zeros((), np.int64)
        for dim in inside:
            offsets = offsets[..., None] + np.arange(sizes[dim]) * stride[dim]
        self.offsets = offsets
        self.batch = batch
        self.window = offsets.shape
        self.leading = tuple(sizes[dim] for dim in kept if dim < first)
        self.trailing = tuple(sizes[dim] for dim in kept if dim > last)
        self.count = math.prod(batch) * offsets.size
        # Places in (*leading, *batch, *window, *trailing).
        ahead = len(self.leading)
        windows = [place if place < ahead else place + len(batch) for place in range(len(kept))]
        batches = iter(range(ahead, ahead + len(batch)))
        of_window = dict(zip(window_dims, windows, strict=True))
        self.order = tuple(
            of_window[dim] if dim in of_window else next(batches)
            for dim in range(len(kept) + len(batch)))
        self.inverse = tuple(np.argsort(self.order).tolist()) if self.order else ()
        self.whole = self.order == tuple(range(len(self.order)))
        self.along: np.ndarray | None = None

    def rows(self, indices: np.ndarray) -> np.ndarray:
        """The row of each element of each window, clipped, of shape (*batch, *window)."""
        total: Any = None
        for position, limit, stride in self.columns:
            start = clipped(self._component(indices, position), limit)
            if stride != 1:
                start = start * stride
            total = start if total is None else total + start
        if self.batching:
            along = self._starts() if self.along is None else self.along
            total = along if total is None else total + along
        if total is None:
            total = np.zeros(self.batch, np.intp)
        elif total.shape != self.batch:
            total = np.broadcast_to(total, self.batch)
        if not self.window:
            return total
        return total.reshape((*self.batch, *(1,) * len(self.window))) + self.offsets

    def _starts(self) -> np.ndarray:
        """The rows at which the elements of the dimensions that go along start."""
        starts: Any = 0
        for dim, stride in self.batching:
            line = np.arange(self.batch[dim]) * stride
            starts = starts + line.reshape([-1 if d == dim else 1 for d in range(len(self.batch))])
        if starts.size <= _FEW_STARTS:
            self.along = starts
        return starts

    def _component(self, indices: np.ndarray, position: int) -> np.ndarray:
        """One component of the index vectors."""
        return indices.reshape(self.batch) if indices.shape[-1] == 1 else indices[..., position]

    def inside(self, indices: np.ndarray) -> np.ndarray | None:
        """Which windows are in bounds, of shape ``batch``; None: all are."""
        if len(self.limits) == 1:
            inside = _in_bounds(indices.reshape(self.batch), self.limits[0])
        else:
            inside = np.ones(self.batch, np.bool_)
            for position, limit in enumerate(self.limits):
                inside &= _in_bounds(indices[..., position], limit)
        return None if np.count_nonzero(inside) == inside.size else inside


def _in_bounds(start: np.ndarray, limit: int) -> np.ndarray:
    """Where starts are in [0, limit]."""
    if start.dtype.kind == "i" and limit <= np.iinfo(start.dtype).max:
        # Negative ones are above all others as unsigned integers: one comparison for both bounds.
        return np.asarray(start.view(_UNSIGNED[start.itemsize]) <= limit)
    return np.asarray((start >= 0) & (start <= limit))


def all_in_bounds(start: np.ndarray, limit: int) -> bool:
    """Whether all starts are in [0, limit]."""
    return bool(np.count_nonzero(_in_bounds(start, limit)) == start.size)


_UNSIGNED = {dtype.itemsize: dtype for dtype in map(np.dtype, "BHIQ")}


def clipped(start: np.ndarray, limit: int) -> np.ndarray:
    """Starts moved into [0, limit], as integers that products do not overflow."""
    if start.dtype == np.uint64:
        start = np.minimum(start, np.uint64(limit))
    return np.minimum(np.maximum(np.asarray(start, np.int64), 0), limit)


def window_sizes(shape: Shape, updates_shape: Shape, dimension_numbers: ScatterDimensionNumbers
                 ) -> tuple[int, ...]:
    """The sizes of a scatter's windows in the operand."""
    dropped = {*dimension_numbers.inserted_window_dims, *dimension_numbers.operand_batching_dims}
    given = iter(dimension_numbers.update_window_dims)
    return tuple(1 if dim in dropped else updates_shape[next(given)] for dim in range(len(shape)))


def _check_order(name: str, what: str, dims: Sequence[int]) -> None:
    if list(dims) != sorted(dims):
        raise TypeError(f"{what} in {name} op must be sorted; got {tuple(dims)}")
    _check_once(name, what, dims)


def _check_once(name: str, what: str, dims: Sequence[int]) -> None:
    if len(set(dims)) != len(dims):
        raise TypeError(f"{what} in {name} op must not repeat; got: {tuple(dims)}.")


def _check_disjoint(name: str, **groups: Sequence[int]) -> None:
    (first_name, first), (second_name, second) = groups.items()
    if set(first) & set(second):
        raise TypeError(f"{first_name} and {second_name} in {name} op must be disjoint; got: "
                        f"{tuple(first)} and {tuple(second)}.")


def _check_batching(name: str, operand: Shape, indices: Shape, batching: Sequence[int],
                    indices_batching: Sequence[int], indices_name: str) -> None:
    """Raises TypeError unless the batching dimensions of the operand and the indices correspond."""
    title = name.capitalize()
    _check_once(name, indices_name, indices_batching)
    _check_range(name, indices_name, indices_batching, len(indices))
    if len(indices) - 1 in indices_batching:
        raise TypeError(f"{title} op cannot have the index vector dimension as a batching "
                        f"dimension; got {tuple(indices_batching)}.")
    if len(batching) != len(indices_batching):
        raise TypeError(f"{title} op requires equal numbers of operand_batching_dims and "
                        f"{indices_name}, got {tuple(batching)} and{tuple(indices_batching)}.")
    have = tuple(operand[dim] for dim in batching)
    wanted = tuple(indices[dim] for dim in indices_batching)
    if have != wanted:
        raise TypeError(f"{title} op requires operand batching dimensions and indices batching "
                        f"dimensions to have the same shape, got {have} and {wanted}.")


def _check_range(name: str, what: str, dims: Sequence[int], rank: int) -> None:
    for dim in dims:
        if not 0 <= dim < rank:
            raise TypeError(
                f"Invalid {what} set in {name} op; valid range is [0, {rank}); got: {dim}.")


def check_gather(x: ShapedArray, indices: ShapedArray, numbers: GatherDimensionNumbers,
                 slice_sizes: Shape) -> None:
    """Raises TypeError where shapes and dimension numbers do not fit, in JAX's words."""
    if not indices.shape:
        raise TypeError(
            "Gather index leaf dimension must be within [0, rank(indices) + 1). rank(indices) is "
            "0 and gather index leaf dimension is -1.")
    _check_order("gather", "offset_dims", numbers.offset_dims)
    rank = len(indices.shape) - 1 + len(numbers.offset_dims)
    for position, dim in enumerate(numbers.offset_dims):
        if not 0 <= dim < rank:
            raise TypeError(f"Offset dimension {position} in gather op is out of bounds; got "
                            f"{dim}, but should have been in [0, {rank})")
    if len(numbers.start_index_map) != indices.shape[-1]:
        raise TypeError(
            f"Gather op has {len(numbers.start_index_map)} elements in start_index_map and the "
            f"bound of dimension index_vector_dim={len(indices.shape) - 1} of indices is "
            f"{indices.shape[-1]}. These two numbers must be equal.")
    collapsed = numbers.collapsed_slice_dims
    batching = numbers.operand_batching_dims
    for position, dim in enumerate(numbers.start_index_map):
        if not 0 <= dim < x.ndim:
            raise TypeError(f"Invalid start_index_map; domain is [0, {x.ndim}), got: "
                            f"{position}->{dim}.")
    _check_once("gather", "start_index_map", numbers.start_index_map)
    for what, dims in (("collapsed_slice_dims", collapsed), ("operand_batching_dims", batching)):
        _check_order("gather", what, dims)
        _check_range("gather", what, dims, x.ndim)
    _check_disjoint("gather", collapsed_slice_dims=collapsed, operand_batching_dims=batching)
    _check_disjoint("gather", start_index_map=numbers.start_index_map,
                    operand_batching_dims=batching)
    _check_batching("gather", x.shape, indices.shape, batching,
                    numbers.start_indices_batching_dims, "start_indices_batching_dims")
    if len(slice_sizes) != x.ndim:
        raise TypeError(
            "Gather op must have one slice size for every input dimension; got: "
            f"len(slice_sizes)={len(slice_sizes)}, input_shape.rank={x.ndim}")
    if len(slice_sizes) != len(numbers.offset_dims) + len(collapsed) + len(batching):
        output_sizes = tuple(size for dim, size in enumerate(slice_sizes)
                             if dim in numbers.offset_dims)
        raise TypeError(
            "All components of the offset index in a gather op must either be a offset dimension "
            f"or explicitly collapsed/batching; got len(slice_sizes)={len(slice_sizes)}, "
            f"output_slice_sizes={output_sizes}, collapsed_slice_dims={tuple(collapsed)}, "
            f"operand_batching_dims={tuple(batching)}.")
    for dim, size in enumerate(slice_sizes):
        if not 0 <= size <= x.shape[dim]:
            raise TypeError(
                f"Slice size at index {dim} in gather op is out of range, must be within "
                f"[0, {x.shape[dim]} + 1), got {size}.")
    for position, dim in enumerate(collapsed):
        if slice_sizes[dim] != 1:
            raise TypeError(
                "Gather op can only collapse slice dims with bound 1, but bound is "
                f"{slice_sizes[dim]} for index {dim} at position {position}.")
    for position, dim in enumerate(batching):
        if slice_sizes[dim] > 1:
            raise TypeError(
                "Gather op can only have operand batching dims with bound 0/1, but bound is "
                f"{slice_sizes[dim]} for index {dim} at position {position}.")


def check_scatter(x: ShapedArray | Array, indices: ShapedArray | Array,
                  updates: ShapedArray | Array, numbers: ScatterDimensionNumbers) -> None:
    """Raises TypeError where shapes and dimension numbers do not fit, in JAX's words."""
    if not indices.shape:
        raise TypeError(
            "Scatter index leaf dimension must be within [0, rank(indices) + 1). rank(indices) is "
            "0 and scatter index leaf dimension is -1.")
    rank = len(indices.shape) - 1 + len(numbers.update_window_dims)
    if updates.ndim != rank:
        raise TypeError(f"Updates tensor must be of rank {rank}; got {updates.ndim}.")
    for what, dims, bound in (("update_window_dims", numbers.update_window_dims, rank),
                              ("inserted_window_dims", numbers.inserted_window_dims, x.ndim),
                              ("operand_batching_dims", numbers.operand_batching_dims, x.ndim)):
        _check_order("scatter", what, dims)
        _check_range("scatter", what, dims, bound)
    _check_disjoint("scatter", inserted_window_dims=numbers.inserted_window_dims,
                    operand_batching_dims=numbers.operand_batching_dims)
    _check_disjoint("scatter", scatter_dims_to_operand_dims=numbers.scatter_dims_to_operand_dims,
                    operand_batching_dims=numbers.operand_batching_dims)
    _check_batching("scatter", x.shape, indices.shape, numbers.operand_batching_dims,
                    numbers.scatter_indices_batching_dims, "scatter_indices_batching_dims")
    window = (len(numbers.update_window_dims) + len(numbers.inserted_window_dims)
              + len(numbers.operand_batching_dims))
    if window != x.ndim:
        raise TypeError(
            f"Scatter op has window of size {window}; doesn't match operand of rank {x.ndim}.")
    if len(numbers.scatter_dims_to_operand_dims) != indices.shape[-1]:
        raise TypeError(
            f"Scatter op has {len(numbers.scatter_dims_to_operand_dims)} elements in "
            "scatter_dims_to_operand_dims and the bound of dimension "
            f"index_vector_dim={len(indices.shape) - 1} of indices is {indices.shape[-1]}. These "
            "two numbers must be equal.")
    for position, dim in enumerate(numbers.scatter_dims_to_operand_dims):
        if not 0 <= dim < x.ndim:
            raise TypeError("Invalid scatter_dims_to_operand_dims mapping; domain is "
                            f"[0, {x.ndim}), got: {position}->{dim}.")
    _check_once("scatter", "scatter_dims_to_operand_dims", numbers.scatter_dims_to_operand_dims)
    sizes = window_sizes(x.shape, updates.shape, numbers)
    for dim, (size, bound) in enumerate(zip(sizes, x.shape, strict=True)):
        if size > bound and dim not in numbers.inserted_window_dims and (
                dim not in numbers.operand_batching_dims):
            position = [d for d in range(x.ndim) if d not in numbers.inserted_window_dims
                        and d not in numbers.operand_batching_dims].index(dim)
            raise TypeError(
                "Bounds of the window dimensions of updates must not exceed the bounds of the "
                f"corresponding dimensions of operand. For dimension {position}, updates bound is "
                f"{size}, operand bound is {bound}.")
    batch = iter(enumerate(indices.shape[:-1]))
    for dim, size in enumerate(updates.shape):
        if dim in numbers.update_window_dims:
            continue
        position, bound = next(batch)
        if size != bound:
            raise TypeError(
                "Bounds of the scatter dimensions of updates must be the same as the bounds of "
                "the corresponding dimensions of scatter indices. For scatter dimension "
                f"{position}, updates bound is {size}, indices bound is {bound}.")


def window_factors(operand: ShapedArray, indices: ShapedArray, windows: ShapedArray,
                   window_dims: Sequence[int], collapsed: Sequence[int],
                   operand_batching: Sequence[int], indices_batching: Sequence[int], sizes: Shape,
                   extra: Sequence[str] = ()) -> Any:
    """Factors of operand, indices and windows (a gather's result or a scatter's updates).

    Dimensions that windows take whole correspond, as do the batching dimensions; the operand's
    others need replication.
    """
    names: dict[str, int] = {}
    replicated = set()

    def factor(name: str, size: int, whole: bool = False) -> Dim:
        names[name] = size
        if whole:
            replicated.add(name)
        return (name,)

    batching = dict(zip(operand_batching, indices_batching, strict=True))
    operand_dims, window_names = [], []
    for dim, size in enumerate(operand.shape):
        if dim in batching:
            operand_dims.append(factor(f"b{batching[dim]}", size))
            continue
        same = sizes[dim] == size
        name = factor(f"o{dim}", size, whole=not same)
        operand_dims.append(name)
        if dim not in collapsed:
            window_names.append(name if same else factor(f"w{dim}", sizes[dim], whole=True))
    indices_dims = [factor(f"b{dim}", size, whole=bool(extra) and f"b{dim}" not in names)
                    for dim, size in enumerate(indices.shape[:-1])]
    of_windows = iter(window_names)
    of_batch = iter(indices_dims)
    windows_dims = tuple(next(of_windows) if dim in window_dims else next(of_batch)
                         for dim in range(windows.ndim))
    indices_dims.append(factor("index", indices.shape[-1], whole=True))
    return tuple(operand_dims), tuple(indices_dims), windows_dims, names, frozenset(replicated)


@caches.memoized
def gather_plan(shape: Shape, indices_shape: Shape, dimension_numbers: GatherDimensionNumbers,
                slice_sizes: Shape) -> WindowPlan:
    numbers = dimension_numbers
    return WindowPlan(shape, indices_shape, slice_sizes, numbers.offset_dims,
                      numbers.collapsed_slice_dims, numbers.start_index_map,
                      numbers.operand_batching_dims, numbers.start_indices_batching_dims)


@caches.memoized
def scatter_plan(shape: Shape, indices_shape: Shape, updates_shape: Shape,
                 dimension_numbers: ScatterDimensionNumbers) -> WindowPlan:
    numbers = dimension_numbers
    return WindowPlan(shape, indices_shape, window_sizes(shape, updates_shape, numbers),
                      numbers.update_window_dims, numbers.inserted_window_dims,
                      numbers.scatter_dims_to_operand_dims, numbers.operand_batching_dims,
                      numbers.scatter_indices_batching_dims, all_rows=True)
