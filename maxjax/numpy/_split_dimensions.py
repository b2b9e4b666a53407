"""Indices into dimensions that lie split over Explicit axes, which the caller has to resolve."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maxjax._base.errors import ShardingTypeError
from maxjax._ir.dimensions import count_of
from maxjax._ir.trace import Array
from maxjax._primitives.rules import aval_of
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
    if any(entry.kind in ("int", "slice") and _is_split(x, entry) for entry in chosen):
        raise ShardingTypeError("Use `.at[...].get(" + _RESOLVE.format(
            what="gather indexing", x=x.aval, indices=_indices(chosen)))


def refuse_updating(x: Array, entries: Sequence[Entry], values: Array) -> None:
    """Raises ShardingTypeError where an update is of a part of a split dimension."""
    chosen = _chosen(x, entries)
    if any(_is_split(x, entry) for entry in chosen):
        raise ShardingTypeError("Use `.at[...].set/add/mul/...(" + _RESOLVE.format(
            what="scatter update", x=x.aval, indices=_indices(chosen))
            + f", updates={aval_of(values)!r}")


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
