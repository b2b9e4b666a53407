"""Indices into dimensions that lie split over Explicit axes, which the caller has to resolve."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base.errors import ShardingTypeError
from maxjax._base.specs import PartitionSpec, entry_axes
from maxjax._ir.dimensions import broadcast_shapes
from maxjax._ir.size_ranges import count_of
from maxjax._ir.trace import Array
from maxjax._primitives.rules import aval_of
from maxjax.lax._over_mesh import explicit_mesh, partitions
from maxjax.numpy._index_arrays import advanced, layout
from maxjax.numpy._index_parsing import Entry

_RESOLVE = (
    "out_sharding=)` to provide output PartitionSpec for the {what} as out sharding could not be "
    "resolved unambiguously (or would require collectives on inputs). Got operand={x!r}, "
    "indices=ShapedArray(int32{indices})")


def refuse_taking(x: Array, entries: Sequence[Entry]) -> None:
    """Raises ShardingTypeError where integers and slices take a part of a split dimension.

    Index arrays are the gather's, which has a rule of its own.
    """
    chosen = _chosen(x, entries)
    if any(entry.kind == "slice" and not count_of(entry.value) for entry in chosen):
        return      # nothing is taken
    if all(_parts(x, axes) == 1 for axes in partitions(x)):
        return      # axes of one device split nothing
    if any(entry.kind in ("int", "slice") and _is_split(x, entry) for entry in chosen):
        raise ShardingTypeError("Use `.at[...].get(" + _RESOLVE.format(
            what="gather indexing", x=x.aval, indices=_indices(chosen)))


def refuse_updating(x: Array, entries: Sequence[Entry], values: Array) -> None:
    """Refuses an update whose result's sharding does not follow from the operands'.

    Raises:
      ValueError: the new values are split in another way than what they replace.
      ShardingTypeError: the update is of a part of a split dimension, or at indices that are split.
    """
    dimensions = layout(entries, *advanced(entries)[1:])
    shape, spec = _replaced(x, entries, dimensions)
    if 0 in shape:
        return      # nothing is updated
    for size, entry in zip(shape, spec, strict=True):
        if entry is not None and size % _parts(x, entry):
            raise ValueError(f"{_parts(x, entry)} parts, along {entry}, do not divide the "
                             f"{size} elements that are updated of {x.aval}")
    own = partitions(values)
    missing = len(shape) - len(own)
    if missing < 0 or any(size not in (1, wide) for size, wide in zip(
            values.shape, shape[missing:], strict=True)):
        return      # which is said when they are broadcast
    if any(entry not in (None, other) for entry, other in zip(
            own, spec[missing:], strict=True)):
        raise ValueError(
            f"Incompatible types for broadcasting: input type={aval_of(values)} and requested "
            f"shape {shape} with sharding {PartitionSpec(*spec)}: use `reshard` on the values.")
    chosen = _chosen(x, entries)
    if any(_is_split(x, entry) or any(_index_spec(entry)) for entry in chosen):
        raise ShardingTypeError("Use `.at[...].set/add/mul/...(" + _RESOLVE.format(
            what="scatter update", x=x.aval, indices=_indices(chosen))
            + f", updates={aval_of(values)!r}")


def _replaced(x: Array, entries: Sequence[Entry], dimensions: Sequence[Any]
              ) -> tuple[tuple[int, ...], tuple[Any, ...]]:
    """The shape of ``x[index]``, and what splits each of its dimensions."""
    common = broadcast_shapes(*[entry.value.shape for entry in entries if entry.kind == "array"])
    along: list[Any] = [None] * len(common)
    for entry in entries:
        for place, axes in enumerate(reversed(_index_spec(entry)), 1):
            along[-place] = along[-place] or axes
    shape, spec = [], []
    for dim in dimensions:
        if isinstance(dim, int):
            shape.append(common[dim])
            spec.append(along[dim])
        else:
            shape.append(1 if dim.kind == "new" else count_of(dim.value))
            spec.append(None if dim.kind == "new" else partitions(x)[dim.dim])
    return tuple(shape), tuple(spec)


def _parts(x: Array, entry: Any) -> int:
    """Into how many parts the axes of a partition spec's entry split a dimension of ``x``."""
    mesh = explicit_mesh(x)
    sizes = {} if mesh is None else dict(mesh.shape_tuple)
    return math.prod(sizes.get(axis, 1) for axis in entry_axes(entry))


def _index_spec(entry: Entry) -> tuple[Any, ...]:
    """What splits the dimensions of an index array."""
    return partitions(entry.value) if entry.kind == "array" else ()


def _chosen(x: Array, entries: Sequence[Entry]) -> list[Entry]:
    """The entries that leave out something of their dimension."""
    return [entry for entry in entries if entry.kind != "new" and not (
        entry.kind == "slice" and count_of(entry.value) == x.shape[entry.dim])]


def _is_split(x: Array, entry: Entry) -> bool:
    on_mesh = x.aval.mesh_spec
    return on_mesh is not None and on_mesh[1].partitions[entry.dim] is not None


def _indices(chosen: Sequence[Entry]) -> str:
    """The shape of the index vectors."""
    places = [entry.value.shape if entry.kind == "array" else (count_of(entry.value),)
              if entry.kind == "slice" and abs(entry.value.step) != 1 else () for entry in chosen]
    shape = (*np.broadcast_shapes(*places), len(chosen))
    return f"[{','.join(map(str, shape))}]"
