"""The buffers of BCOO arrays: what their coordinates and data mean, and primitives of them.

A BCOO array of shape ``batch + sparse + dense`` has ``data`` of shape ``batch + (nse,) + dense``
and ``indices`` of shape ``batch + (nse, n_sparse)``. Either may have size 1 along a batch
dimension, and then stands for all of it. Coordinates out of bounds are padding.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax.experimental.sparse._primitives import sparse_primitive
from maxjax.experimental.sparse.util import SparseInfo, _nonzero_mask, batch_grid


class BCOOProperties(NamedTuple):
    """How many dimensions of each kind there are, and stored elements."""

    n_batch: int
    n_sparse: int
    n_dense: int
    nse: int


def validated(data: Any, indices: Any, shape: Sequence[int]) -> BCOOProperties:
    """The properties of buffers.

    Raises:
      ValueError: they do not make an array of the shape.
    """
    assert np.issubdtype(indices.dtype, np.integer), (
        f"BCOO needs integer indices, got {indices.dtype}")
    shape = tuple(shape)
    nse, n_sparse = indices.shape[-2:]
    n_batch = len(indices.shape) - 2
    n_dense = len(shape) - n_batch - n_sparse
    assert n_dense >= 0, f"indices of shape {indices.shape} have more dimensions than {shape}"

    def fits(sizes: Sequence[int]) -> bool:
        return all(size in (1, whole) for size, whole in zip(sizes, shape, strict=False))

    for name, sizes in (("data", data.shape[:n_batch]), ("indices", indices.shape[:n_batch])):
        if len(sizes) != n_batch or not fits(sizes):
            full = data.shape if name == "data" else indices.shape
            raise ValueError(f"{name} batch dimensions not compatible for "
                             f"{name}.shape={tuple(full)}, shape={shape}")
    if tuple(data.shape[n_batch:]) != (nse, *shape[n_batch + n_sparse:]):
        raise ValueError(f"Invalid data.shape={tuple(data.shape)} for nse={nse}, "
                         f"n_batch={n_batch}, n_dense={n_dense}")
    return BCOOProperties(n_batch, n_sparse, n_dense, nse)


def coordinates(indices: Any, shape: Sequence[int]) -> tuple[Any, ...]:
    """Index arrays, of shape ``batch + (nse,)``, of all batch and sparse dimensions."""
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    return (*batch_grid(tuple(shape[:n_batch]), 1), *[indices[..., i] for i in range(n_sparse)])


def ends(indices: Any, shape: Sequence[int]) -> Any:
    """The sizes of the sparse dimensions: the coordinates of padding."""
    n_batch = indices.ndim - 2
    sizes = tuple(shape[n_batch:n_batch + indices.shape[-1]])
    # A symbolic size has a value only where the program runs.
    make = np.array if all(isinstance(size, int) for size in sizes) else jnp.array
    return make(sizes, indices.dtype)


def in_bounds(indices: Any, shape: Sequence[int]) -> Any:
    """Which coordinates lie in the array, and are no padding: of shape ``batch + (nse,)``."""
    return jnp.all(indices < ends(indices, shape), -1)


def padded(indices: Any, inside: Any, shape: Sequence[int]) -> Any:
    """Indices, those out of bounds where they are not ``inside``."""
    return jnp.where(inside[..., None], indices, ends(indices, shape))


def masked(data: Any, inside: Any) -> Any:
    """Data, zero where it is not ``inside``, of the shape of its leading dimensions."""
    wide = inside.reshape(*inside.shape, *(1,) * (data.ndim - inside.ndim))
    return jnp.where(wide, data, jnp.zeros((), data.dtype))


# --- to and from dense arrays ---------------------------------------------------------------------

def todense(data: Any, indices: Any, *, spinfo: SparseInfo) -> Any:
    shape = spinfo.shape
    n_batch, n_sparse, _, _ = validated(data, indices, shape)
    if not n_sparse:
        return jnp.broadcast_to(jnp.sum(data, n_batch, dtype=data.dtype), shape)
    return jnp.zeros(shape, data.dtype).at[coordinates(indices, shape)].add(data, mode="drop")


def fromdense(mat: Any, *, nse: int, n_batch: int, n_dense: int,
               index_dtype: Any) -> tuple[Any, Any]:
    batch, sparse = mat.shape[:n_batch], mat.shape[n_batch:mat.ndim - n_dense]
    mask = _nonzero_mask(mat, n_batch, n_dense)
    if not sparse:
        indices = jnp.zeros((*batch, nse, 0), index_dtype)
    elif not batch:
        places = jnp.nonzero(mask, size=nse, fill_value=sparse)
        indices = jnp.stack(places, -1).astype(index_dtype)
    else:
        size = math.prod(sparse)
        flat = mask.reshape(*batch, size)
        target = jnp.where(flat, jnp.cumsum(flat, -1) - 1, nse)
        columns = [jnp.full((*batch, nse), end, index_dtype).at[
            (*batch_grid(batch, 1), target)].set(
                jnp.asarray(place.reshape(-1).astype(index_dtype)), mode="drop")
            for place, end in zip(np.indices(sparse), sparse, strict=True)]
        indices = jnp.stack(columns, -1)
    return extract(indices, mat, assume_unique=True), indices


def extract(indices: Any, arr: Any, *, assume_unique: bool) -> Any:
    n_batch, (nse, n_sparse) = indices.ndim - 2, indices.shape[-2:]
    if n_sparse:
        values = arr[coordinates(indices, arr.shape)]
    else:
        values = jnp.broadcast_to(jnp.expand_dims(arr, n_batch), (
            *arr.shape[:n_batch], nse, *arr.shape[n_batch:]))
    keep = in_bounds(indices, arr.shape)
    if not assume_unique:
        keep = keep & _first_of_its_kind(indices)
    return masked(values, jnp.broadcast_to(keep, values.shape[:n_batch + 1]))


# --- order and duplicates -------------------------------------------------------------------------

def sorting(indices: Any) -> tuple[Any, Any]:
    """Indices in their order, and the order: positions of shape ``batch + (nse,)``."""
    count = indices.shape[-1]
    columns = [indices[..., i] for i in range(count)]
    number = lax.broadcasted_iota(np.int32, indices.shape[:-1], indices.ndim - 2)
    if not count:
        return indices, number
    *columns, order = lax.sort([*columns, number], dimension=indices.ndim - 2, num_keys=count,
                               is_stable=True)
    return jnp.stack(columns, -1), order


def run_starts(indices: Any) -> Any:
    """Which of sorted coordinates begin a run of equal ones: of shape ``batch + (nse,)``."""
    new = jnp.any(indices[..., 1:, :] != indices[..., :-1, :], -1)
    return jnp.concatenate([jnp.ones((*indices.shape[:-2], min(indices.shape[-2], 1)), bool), new],
                           -1)


def _first_of_its_kind(indices: Any) -> Any:
    in_order, order = sorting(indices)
    batch = indices.shape[:-2]
    return jnp.zeros(order.shape, bool).at[(*batch_grid(batch, 1), order)].set(run_starts(in_order))


def _sort_indices(data: Any, indices: Any, *, spinfo: SparseInfo) -> tuple[Any, Any]:
    n_batch, n_sparse, n_dense, nse = validated(data, indices, spinfo.shape)
    if not n_sparse:
        return data, indices
    in_order, order = sorting(indices)
    batch = jnp.broadcast_shapes(data.shape[:n_batch], indices.shape[:n_batch])
    data = jnp.broadcast_to(data, (*batch, *data.shape[n_batch:]))
    order = jnp.broadcast_to(order, (*batch, nse)).reshape(*batch, nse, *(1,) * n_dense)
    return jnp.take_along_axis(data, order, n_batch), in_order


def _sum_duplicates(data: Any, indices: Any, *, spinfo: SparseInfo,
                    nse: int) -> tuple[Any, Any]:
    shape = spinfo.shape
    n_batch, n_sparse, _, stored = validated(data, indices, shape)
    data, in_order = _sort_indices(data, indices, spinfo=spinfo)
    # What is out of bounds in one dimension may stand between others: all of it goes last.
    inside = in_bounds(in_order, shape)
    starts = run_starts(in_order) & inside
    place = jnp.where(inside, jnp.cumsum(starts, -1) - 1, nse)
    of_indices = in_order.shape[:n_batch]
    end = jnp.broadcast_to(ends(indices, shape), (*of_indices, nse, n_sparse))
    new_indices = end.at[(*batch_grid(of_indices, 1), place)].set(in_order, mode="drop")
    batch = jnp.broadcast_shapes(of_indices, data.shape[:n_batch])
    data = jnp.broadcast_to(data, (*batch, *data.shape[n_batch:]))
    place = jnp.broadcast_to(place, (*batch, stored))
    new_data = jnp.zeros((*batch, nse, *data.shape[n_batch + 1:]), data.dtype).at[
        (*batch_grid(batch, 1), place)].add(data, mode="drop")
    return new_data, new_indices


bcoo_todense_p = sparse_primitive("bcoo_todense", todense)
bcoo_fromdense_p = sparse_primitive("bcoo_fromdense", fromdense, several=True)
bcoo_extract_p = sparse_primitive("bcoo_extract", extract)
bcoo_sort_indices_p = sparse_primitive("bcoo_sort_indices", _sort_indices, several=True)
bcoo_sum_duplicates_p = sparse_primitive("bcoo_sum_duplicates", _sum_duplicates, several=True)
