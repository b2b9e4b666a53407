"""``x.at[index]``: updated copies.

An update of a region given by integers and unit-step slices is a dynamic_update_slice; any other is
one scatter.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import config, dtypes, source
from maxjax._base.shardings import NamedSharding
from maxjax._higher_order.constraints import resharded, with_out_sharding
from maxjax._ir.primitive import Primitive
from maxjax._ir.runtime import installed
from maxjax._ir.size_ranges import count_of
from maxjax._ir.trace import Array, Tracer, current_trace
from maxjax._ir.types import ShapedArray
from maxjax._primitives import arithmetic
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.comparison import gt_p, lt_p, select
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import full
from maxjax._primitives.dynamic_slice import dynamic_update_slice_p
from maxjax._primitives.gather_plan import GatherScatterMode, ScatterDimensionNumbers
from maxjax._primitives.indexing import (
    scatter_add_p,
    scatter_max_p,
    scatter_min_p,
    scatter_mul_p,
    scatter_p,
    scatter_sub_p,
)
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import reshape, rev_p
from maxjax._primitives.rules import MOST_INT32, place_dtype, scalar_like
from maxjax._primitives.slicing import slice_p
from maxjax.lax import dynamic_update_slice, fori_loop, reduce_max, slice_in_dim
from maxjax.lax._over_mesh import explicit_mesh
from maxjax.numpy import _division, _ufuncs
from maxjax.numpy._creation import asarray
from maxjax.numpy._getitem import places_of, take, window
from maxjax.numpy._index_arrays import (
    advanced,
    host_or_device,
    index_vectors,
    integer_place,
    layout,
)
from maxjax.numpy._index_parsing import (
    Entry,
    Slice,
    as_tuple,
    has_slices,
    parse,
    positions,
    split_off,
    with_flags,
)
from maxjax.numpy._index_plan import clamp, is_outside, may_be_outside, wrapped
from maxjax.numpy._promotion import as_array, cast, concrete, element, type_of
from maxjax.numpy._split_dimensions import refuse_updating
from maxjax.numpy._strategies import check_strategy

# kind -> (its scatter, the elementwise primitive that combines old and new values)
_KINDS: dict[str, tuple[Primitive, Primitive | None]] = {
    "set": (scatter_p, None),
    "add": (scatter_add_p, arithmetic.add_p),
    "sub": (scatter_sub_p, arithmetic.sub_p),
    "mul": (scatter_mul_p, arithmetic.mul_p),
    "min": (scatter_min_p, arithmetic.min_p),
    "max": (scatter_max_p, arithmetic.max_p),
}


class IndexUpdateHelper:
    """``x.at``, to be indexed: ``x.at[index]`` makes changed copies of ``x``, which stays as it is.

    An array cannot be assigned to: for ``x[1] = 5`` write ``x = x.at[1].set(5)``. The methods
    ``set``, ``add``, ``subtract``, ``multiply`` (or ``mul``), ``divide``, ``power``, ``min`` and
    ``max`` take values, which broadcast to the shape of ``x[index]`` and are put there, or combined
    with what is there; ``apply`` takes an elementwise function, and ``get`` only reads.

    Where an index occurs twice, both updates happen, unlike in NumPy; ``set`` keeps the last one.
    An index out of bounds is no error: an update there is dropped, and ``get`` reads the nearest
    element. All methods take, by keyword:

    Args:
      mode: what becomes of indices out of bounds: "drop" (no update), "clip" (the nearest element),
        "fill" (``get`` gives its argument ``fill_value``), or "promise_in_bounds" (there are none).
      indices_are_sorted, unique_indices: promises that they are, which may save time.
      wrap_negative_indices: whether negative indices count from the end; they do by default.

    See also: ``jax.numpy.where``, ``jax.lax.dynamic_update_slice``, ``jax.lax.scatter``.

    >>> x = jnp.zeros(4)
    >>> x.at[1].set(5.)
    Array([0., 5., 0., 0.], dtype=float32)
    >>> x.at[jnp.array([0, 0, 9])].add(1.)
    Array([2., 0., 0., 0.], dtype=float32)
    >>> x.at[9].get(mode="fill", fill_value=-1.)
    Array(-1., dtype=float32)
    """

    __slots__ = ("array",)

    def __init__(self, array: Array):
        self.array = array

    def __getitem__(self, index: Any) -> _IndexUpdateRef:
        return _IndexUpdateRef(self.array, index)

    def __repr__(self) -> str:
        return f"_IndexUpdateHelper({self.array!r})"


class _IndexUpdateRef:
    """``x.at[index]``: its methods return copies of ``x`` that differ at ``index``.

    All take ``indices_are_sorted`` and ``unique_indices`` (promises), ``mode`` ("drop", the
    default, drops out-of-bounds updates; "clip" moves them into bounds; "promise_in_bounds"),
    and ``wrap_negative_indices`` (negative indices count from the end).
    """

    __slots__ = ("array", "index")

    def __init__(self, array: Array, index: Any):
        self.array = array
        self.index = index

    def __repr__(self) -> str:
        return f"_IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(self, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: str | GatherScatterMode | None = None, fill_value: Any = None,
            out_sharding: Any = None, wrap_negative_indices: bool = True,
            strategy: str = "auto") -> Array:
        """``x[index]``; mode "fill" reads ``fill_value`` out of bounds.

        The default fill value is NaN, the least signed or the greatest unsigned integer.

        Args:
          strategy: "gather", which takes everything, or a way of reading that indices must allow:
            "static_slice", for constants, or "dynamic_slice", for scalars and slices of step 1;
            "auto" is the best that there is.
        """
        check_strategy(strategy, self.array.shape, self.index, mode, wrap_negative_indices)
        # Where all is read, no mode is asked for.
        whole = all(entry is None or entry is Ellipsis or (
            isinstance(entry, slice) and entry == slice(None)) for entry in as_tuple(self.index))
        parsed = None if mode is None or whole else _mode_of(self.array, self.index, mode)
        concrete(fill_value, "fill_value argument to indexed get()")
        if out_sharding is not None:
            return with_out_sharding(take, out_sharding, self.array, self.index, parsed, fill_value,
                                     unique_indices, indices_are_sorted, wrap_negative_indices)
        return take(self.array, self.index, parsed, fill_value, unique_indices,
                    indices_are_sorted, wrap_negative_indices)

    def set(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: str | GatherScatterMode | None = None, out_sharding: Any = None,
            wrap_negative_indices: bool = True) -> Array:
        """``x[index] = values``. The last of several values for one element wins."""
        return self._update(out_sharding, values, "set", mode, unique_indices, indices_are_sorted,
                            wrap_negative_indices)

    def add(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: str | GatherScatterMode | None = None, out_sharding: Any = None,
            wrap_negative_indices: bool = True) -> Array:
        """``x[index] += values``; repeated indices accumulate."""
        return self._update(out_sharding, values, "add", mode, unique_indices, indices_are_sorted,
                            wrap_negative_indices)

    def subtract(self, values: Any, *, indices_are_sorted: bool = False,
                 unique_indices: bool = False, mode: str | GatherScatterMode | None = None,
                 out_sharding: Any = None, wrap_negative_indices: bool = True) -> Array:
        """``x[index] -= values``; repeated indices accumulate."""
        return self._update(out_sharding, values, "sub", mode, unique_indices, indices_are_sorted,
                            wrap_negative_indices)

    def multiply(self, values: Any, *, indices_are_sorted: bool = False,
                 unique_indices: bool = False, mode: str | GatherScatterMode | None = None,
                 out_sharding: Any = None, wrap_negative_indices: bool = True) -> Array:
        """``x[index] *= values``, once for each time an element is indexed."""
        return self._update(out_sharding, values, "mul", mode, unique_indices, indices_are_sorted,
                            wrap_negative_indices)

    mul = multiply

    def divide(self, values: Any, *, indices_are_sorted: bool = False,
               unique_indices: bool = False, mode: str | GatherScatterMode | None = None,
               out_sharding: Any = None, wrap_negative_indices: bool = True) -> Array:
        """``x[index] /= values``."""
        return self._with_factors(_ufuncs.divide, out_sharding, values, mode, unique_indices,
                                  indices_are_sorted, wrap_negative_indices)

    def power(self, values: Any, *, indices_are_sorted: bool = False,
              unique_indices: bool = False, mode: str | GatherScatterMode | None = None,
              out_sharding: Any = None, wrap_negative_indices: bool = True) -> Array:
        """``x[index] **= values``."""
        return self._with_factors(_division.power, out_sharding, values, mode, unique_indices,
                                  indices_are_sorted, wrap_negative_indices)

    def _update(self, out_sharding: Any, values: Any, kind: str, *options: Any) -> Array:
        """The update with the requested sharding."""
        if out_sharding is None:
            return update(self.array, self.index, values, kind, *options)
        return with_out_sharding(
            update, out_sharding, self.array, self.index, values, kind, *options)

    def _with_factors(self, function: Callable[..., Array], out_sharding: Any, values: Any,
                      *options: Any) -> Array:
        """``function`` of the array, and of ``values`` at the index and ones elsewhere."""
        def run(x: Array, index: Any, values: Any) -> Array:
            ones = as_array(cast(
                full(x.aval.shape, 1, x.aval.dtype), x.aval.dtype, x.aval.weak_type))
            return function(x, update(ones, index, values, "mul", *options))

        if out_sharding is None:
            return run(self.array, self.index, values)
        return with_out_sharding(run, out_sharding, self.array, self.index, values)

    def min(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: str | GatherScatterMode | None = None, out_sharding: Any = None,
            wrap_negative_indices: bool = True) -> Array:
        """``x[index] = minimum(x[index], values)``."""
        return self._update(out_sharding, values, "min", mode, unique_indices, indices_are_sorted,
                            wrap_negative_indices)

    def max(self, values: Any, *, indices_are_sorted: bool = False, unique_indices: bool = False,
            mode: str | GatherScatterMode | None = None, out_sharding: Any = None,
            wrap_negative_indices: bool = True) -> Array:
        """``x[index] = maximum(x[index], values)``."""
        return self._update(out_sharding, values, "max", mode, unique_indices, indices_are_sorted,
                            wrap_negative_indices)

    def apply(self, func: Callable[[Array], Array], *, indices_are_sorted: bool = False,
              unique_indices: bool = False, mode: str | GatherScatterMode | None = None,
              wrap_negative_indices: bool = True) -> Array:
        """``x[index] = func(x[index])`` for an elementwise ``func``.

        ``func`` is applied to an element once for each time it is indexed.
        """
        x = self.array

        def count() -> Array:
            return update(as_array(full(x.shape, 0, dtypes.int32)), self.index, np.int32(1), "add",
                          mode, unique_indices, indices_are_sorted, wrap_negative_indices)

        def once_more(done: Any, result: Array) -> Array:
            applied = cast(asarray(func(result)), x.dtype, x.weak_type)
            return select(gt_p.bind(times, done), result, applied)

        known = not any(isinstance(entry, Tracer) for entry in as_tuple(self.index))
        with current_trace(installed.runtime) if known else contextlib.nullcontext():
            times = count()
        shape, index = _shape_and_index(x, self.index)
        _, common, _ = advanced(parse(shape, index))
        if known:
            most: Any = int(np.max(np.asarray(times), initial=0))
        else:
            most = 1 if unique_indices else math.prod(common)
        if most <= 1:
            return once_more(np.int32(0), x) if most else x
        if not known:
            most = reduce_max(times, tuple(range(x.ndim)))
        return fori_loop(0, most, once_more, x)


def _shape_and_index(x: Array, index: Any) -> tuple[tuple[int, ...], Any]:
    x, index = with_flags(x, index)
    return x.aval.shape, index


def _selects_nothing(x: Array, index: Any) -> bool:
    entries = parse(*_shape_and_index(x, index))
    return 0 in advanced(entries)[1] or any(
        entry.kind == "slice" and count_of(entry.value) == 0 for entry in entries)


def _mode_of(x: Array, index: Any, mode: Any) -> GatherScatterMode:
    """The mode of that name, which nobody asks for where no element is selected."""
    try:
        return GatherScatterMode.from_any(mode)
    except ValueError:
        if not has_slices(index) and _selects_nothing(x, index):
            return GatherScatterMode.FILL_OR_DROP
        raise


def update(x: Array, index: Any, values: Any, kind: str, mode: Any = None,
           unique_indices: bool = False, indices_are_sorted: bool = False,
           wrap_negative: bool = True) -> Array:
    """``x`` with ``values`` combined into ``x[index]``; ``kind`` names the combination.

    Raises:
      ValueError: the values do not broadcast to the shape of ``x[index]``, or the mode is unknown.
    """
    if has_slices(index):
        return _update_windows(x, index, values, kind, mode, unique_indices, indices_are_sorted,
                               wrap_negative)
    values, joined = _values(x, values, kind)
    combine = _KINDS[kind][1]
    if joined == dtypes.bool_ and kind in ("add", "sub", "mul") and combine is not None:
        if _selects_nothing(x, index):
            return x
        raise TypeError(
            f"{combine.name} does not accept dtype bool at position 0. Accepted dtypes at "
            "position 0 are subtypes of integer, floating, complexfloating.")
    if joined != x.aval.dtype and kind != "set":
        if _selects_nothing(x, index):      # nor does the dtype round what it cannot hold
            return x
        # Combined in the common dtype, and converted once.
        result = update(convert_element_type(x, joined), index, values, kind, mode, unique_indices,
                        indices_are_sorted, wrap_negative)
        return convert_element_type(result, x.aval.dtype, x.aval.weak_type)
    parsed = _mode_of(x, index, mode)
    shape = x.aval.shape
    x, index = with_flags(x, index)
    entries = parse(x.aval.shape, index)
    if explicit_mesh(x, values, *[entry.value for entry in entries]) is not None:
        refuse_updating(x, entries, values)
    # Complex numbers are in an order, as scatters know it and derivatives of maxima do not.
    ordered = kind in ("min", "max") and dtypes.is_complex(x.aval.dtype)
    if not ordered and all(entry.kind != "scalar" and entry.kind != "array" and (
            not is_outside(entry, x.aval.shape, wrap_negative)) and (
            not may_be_outside(entry, x.aval.shape, wrap_negative)) and (
            entry.kind != "slice" or abs(entry.value.step) == 1 or count_of(entry.value) < 2)
           for entry in entries):
        result = _update_region(x, entries, values, kind, wrap_negative)
    else:
        result = _update_scattered(x, entries, values, kind, parsed, unique_indices,
                                   indices_are_sorted, wrap_negative, index)
    return result if result.aval.shape == shape else reshape(result, shape)


def _update_windows(x: Array, index: Any, values: Any, kind: str, *options: Any) -> Array:
    """An update at ``jax.ds``: dropped unless entirely in bounds, or moved there in the mode that
    clips; by position with a stride."""
    moved = options[0] in ("clip", GatherScatterMode.CLIP)
    parts, slices = split_off(x, index)
    if any(part.stride != 1 for _, _, part in slices):
        if len(slices) > 1 or not all(
                entry is Ellipsis or isinstance(entry, slice) for entry in parts):
            raise NotImplementedError("an update at jax.ds with a stride beside other indices than "
                                      f"slices: {index}")
        (position, dim, part), = slices
        places = places_of(part)
        parts[position] = select(lt_p.bind(places, scalar_like(0, places.dtype)), places,
                                 full(places.shape, x.shape[dim], places.dtype))
        return update(x, tuple(parts), values, kind, *options)
    inside: Any = True
    region = x
    starts: list[Any] = [np.int32(0)] * x.ndim
    for _, dim, part in slices:
        last = x.shape[dim] - part.size
        if last < 0:
            raise TypeError(
                "Bounds of the window dimensions of updates must not exceed the bounds of the "
                f"corresponding dimensions of operand. For dimension {dim}, updates bound is "
                f"{part.size}, operand bound is {x.shape[dim]}.")
        start = asarray(part.start)
        # A window of the whole dimension has one place, wherever it is said to start.
        if last and not moved:
            inside = (start >= 0) & (start <= last) & inside
        starts[dim] = arithmetic.minimum(
            arithmetic.maximum(start, scalar_like(0, start.dtype)), scalar_like(last, start.dtype))
        region = window(region, dim, Slice(starts[dim], part.size))
    updated = update(region, tuple(parts), values, kind, *options)
    result = _like_operand(dynamic_update_slice(x, updated, starts), x)
    if isinstance(inside, Tracer) and inside.concrete() is None:
        return select(inside, x, result)
    return result if inside else x


def _values(x: Array, values: Any, kind: str) -> tuple[Any, Any]:
    """The new values as an operand, and the dtype to combine them in: that of ``x`` or, where it
    cannot hold them, the common one, with a warning."""
    dtype = x.aval.dtype
    combine = _KINDS[kind][1]
    scalar = values.__class__ in dtypes.PYTHON_SCALARS
    value = values if scalar else asarray(values)
    given, weak = type_of(value)
    joined = dtype
    if given != dtype:
        if dtypes.is_opaque(dtype) or dtypes.is_opaque(given):
            raise TypeError(
                f"cannot update an array of dtype {dtype} with values of dtype {given}")
        # A Python bool has a place among integers, also where promotion is strict.
        joined = (dtype if values.__class__ is bool and dtypes.is_integer(dtype) else
                  dtypes.promote(((dtype, False), (given, weak)))[0])
        if joined != dtype:
            source.warn(
                "scatter inputs have incompatible types: cannot safely cast value from "
                f"dtype={given.name} to dtype={dtype.name} with "
                f"jax_numpy_dtype_promotion={config.dtype_promotion.value}. In future JAX "
                "releases this will result in an error.", FutureWarning)
        dtypes.warn_of_discarded_parts(given, dtype)
    if combine is not None and dtypes.is_opaque(dtype):
        raise TypeError(f"{_KINDS[kind][0].name} does not accept dtype {dtype}.")
    wanted = dtype if kind == "set" else joined
    return (element(value, wanted) if scalar else convert_element_type(value, wanted)), joined


def broadcast_values(values: Any, shape: tuple[int, ...]) -> Any:
    """Broadcasts as an assignment does: never to fewer dimensions.

    Raises:
      ValueError: they do not broadcast.
    """
    have = values.shape
    if have == shape:
        return values
    if len(have) > len(shape):
        raise ValueError("Cannot broadcast to shape with fewer dimensions: "
                         f"arr_shape={have} shape={shape}")
    missing = len(shape) - len(have)
    if any(size not in (1, wide) for size, wide in zip(have, shape[missing:], strict=True)):
        raise ValueError(
            "Incompatible types for broadcasting: input "
            f"type={ShapedArray(have, values.dtype).str_short()} and "
            f"requested type={ShapedArray(shape, values.dtype).str_short()}")
    return broadcast_in_dim(values, shape, tuple(range(missing, len(shape))))


def _update_region(x: Array, entries: Sequence[Entry], values: Array, kind: str,
                   wrap_negative: bool) -> Array:
    """An update of a region given by integers and slices of step 1 or -1; it is clipped."""
    shape = x.aval.shape
    wanted, starts, sizes, reversed_dims = [], [0] * len(shape), [1] * len(shape), []
    for entry in entries:
        dim = entry.dim
        if entry.kind == "new":
            wanted.append(1)
        elif entry.kind == "int":
            starts[dim] = clamp(wrapped(entry.value, shape[dim], wrap_negative), shape[dim])
        else:
            steps = entry.value
            count = count_of(steps)
            wanted.append(count)
            sizes[dim] = count
            if count:
                starts[dim] = steps[0] if steps.step > 0 else steps[-1]
            if steps.step < 0 and count > 1:
                reversed_dims.append(dim)
    if 0 in sizes:      # whatever the values' shape is, as in JAX
        return x
    combine = _KINDS[kind][1]
    if values.shape or combine is None:       # a scalar combines with any shape
        values = reshape(broadcast_values(values, tuple(wanted)), tuple(sizes))
    if reversed_dims and values.shape:
        values = rev_p.bind(values, dimensions=tuple(reversed_dims))
    whole = tuple(sizes) == shape
    if combine is not None:
        old = x if whole else slice_p.bind(
            x, start_indices=tuple(starts),
            limit_indices=tuple(map(operator.add, starts, sizes)), strides=None)
        values = combine.bind(old, values)
    if whole:
        values = installed.runtime.operand(values)
        if x.aval.mesh_spec is not None:
            values = resharded(values, NamedSharding(*x.aval.mesh_spec))
        return _like_operand(values, x)
    return _like_operand(_with_window(x, values, starts, sizes), x)


def _with_window(x: Array, values: Any, starts: Sequence[Any], sizes: Sequence[Any]) -> Any:
    """``values``, of shape ``sizes``, in the place of what ``x`` has from ``starts`` on."""
    shape = x.aval.shape
    dtype = place_dtype(*shape)
    far = [dim for dim, start in enumerate(starts)
           if type(start) is int and start > MOST_INT32 and dtype == dtypes.int32]
    if not far:
        return dynamic_update_slice_p.bind(
            x, values, *[scalar_like(start, dtype) for start in starts])
    # Without 64 bits no operand tells such a place, so what lies around is joined with the window.
    dim = far[0]
    first, end = starts[dim], starts[dim] + sizes[dim]
    before, old, after = (slice_in_dim(x, low, high, axis=dim)
                          for low, high in ((0, first), (first, end), (end, shape[dim])))
    values = _with_window(old, values, [*starts[:dim], 0, *starts[dim + 1:]], sizes)
    return concatenate([before, values, after], dim)


def _like_operand(result: Any, x: Array) -> Array:
    """As weakly typed as the operand: a scatter is, a dynamic_update_slice is not."""
    return convert_element_type(result, x.aval.dtype, x.aval.weak_type)


def _update_scattered(x: Array, entries: list[Entry], values: Array, kind: str,
                      mode: GatherScatterMode, unique_indices: bool, indices_are_sorted: bool,
                      wrap_negative: bool, index: Any) -> Array:
    """One scatter: arrays, scalars and strided slices give components of the index vectors."""
    shape = x.aval.shape
    chosen, common, apart = advanced(entries)
    dimensions = layout(entries, common, apart)
    wanted: list[int] = []
    window_dims: list[int] = []
    batch: list[int] = []
    inserted: list[int] = []
    columns: list[Any] = []
    dims: list[tuple[int, ...]] = []
    index_map: list[int] = []
    common_dims: list[int] = []       # the positions of the common dimensions in the batch
    place = 0                         # among the dimensions of the updates
    for dim in dimensions:
        if dim.__class__ is int:
            wanted.append(common[dim])
            common_dims.append(len(batch))
            batch.append(common[dim])
            place += 1
            continue
        wanted.append(1 if dim.kind == "new" else count_of(dim.value))
        if dim.kind == "new":
            continue
        steps = dim.value
        count = count_of(steps)
        if steps.step == 1 or count < 2:
            window_dims.append(place)
            if count != shape[dim.dim]:
                columns.append(scalar_like(steps[0] if count else 0,
                                           place_dtype(shape[dim.dim])))
                dims.append(())
                index_map.append(dim.dim)
        else:
            columns.append(positions(steps))
            dims.append((len(batch),))
            index_map.append(dim.dim)
            inserted.append(dim.dim)
            batch.append(count)
        place += 1
    for entry in chosen:
        size = shape[entry.dim]
        inserted.append(entry.dim)
        column: Any = (integer_place(entry, size, wrap_negative) if entry.kind == "int"
                       else host_or_device(entry.value, size, wrap_negative))
        columns.append(column)
        rank = len(column.shape)
        dims.append(tuple(common_dims[len(common) - rank:]))
        index_map.append(entry.dim)
    if 0 in wanted:     # whatever the values' shape and dtype are, as in JAX
        return x
    values = broadcast_values(values, tuple(wanted))
    kept = tuple(size for size, dim in zip(wanted, dimensions, strict=True)
                 if dim.__class__ is int or dim.kind != "new")
    if not common or _is_one_mask(index):
        unique_indices = True
    return _KINDS[kind][0].bind(
        x, index_vectors(columns, dims, tuple(batch)), reshape(values, kept),
        dimension_numbers=ScatterDimensionNumbers(
            tuple(window_dims), tuple(sorted(inserted)), tuple(index_map)),
        mode=mode, unique_indices=bool(unique_indices),
        indices_are_sorted=bool(indices_are_sorted))


def _is_one_mask(index: Any) -> bool:
    """Whether the only array in an index is a mask, so that its positions are unique."""
    arrays = [entry for entry in as_tuple(index)
              if isinstance(entry, (Array, np.ndarray, list)) and np.ndim(entry)]
    return (len(arrays) == 1 and not isinstance(arrays[0], list)
            and arrays[0].dtype == dtypes.bool_)
