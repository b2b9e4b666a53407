"""Operations on sparse arrays."""

from __future__ import annotations

import math
import operator
import string
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.experimental.sparse._bcoo import (
    BCOO,
    JAXSparse,
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    _batch_grid,
    _coordinates,
    _in_bounds,
    bcoo_fromdense,
    bcoo_todense,
)

# --- layouts --------------------------------------------------------------------------------------

def bcoo_update_layout(mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
                       on_inefficient: str | None = "error") -> BCOO:
    """The same array with other numbers of batch and dense dimensions.

    Args:
      n_batch, n_dense: the new numbers; by default unchanged.
      on_inefficient: what to do if dimensions become batch or dense ones: "error", "warn" or None,
        nothing.

    Raises:
      SparseEfficiencyError: dimensions become batch or dense ones and it is "error".

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.eye(2), n_dense=1)
    >>> sparse.bcoo_update_layout(m, n_dense=0)
    BCOO(float32[2, 2], nse=4)
    """
    batch = mat.n_batch if n_batch is None else operator.index(n_batch)
    dense = mat.n_dense if n_dense is None else operator.index(n_dense)
    if batch < 0 or dense < 0 or batch + dense > mat.ndim:
        raise ValueError(f"bcoo_update_layout: n_batch={batch} and n_dense={dense} do not go with "
                         f"an array of rank {mat.ndim}")
    for name, old, new in (("n_batch", mat.n_batch, batch), ("n_dense", mat.n_dense, dense)):
        if new <= old:
            continue
        message = (f"For matrix of shape {mat.shape}, increasing {name} from {old} to {new} "
                   "results in inefficient storage.")
        if on_inefficient == "error":
            raise SparseEfficiencyError(
                f"{message} To disable this error, set the on_inefficient argument of "
                "bcoo_update_layout to 'warn' or None.")
        if on_inefficient == "warn":
            warnings.warn(message, SparseEfficiencyWarning, stacklevel=2)
    if batch > mat.n_batch or dense > mat.n_dense:
        stored = min(mat.nse, math.prod(mat.shape[batch:mat.ndim - dense]))
        return bcoo_fromdense(bcoo_todense(mat), nse=stored, n_batch=batch, n_dense=dense,
                              index_dtype=mat.indices.dtype)
    while mat.n_dense > dense:
        mat = _first_dense_to_sparse(mat)
    while mat.n_batch > batch:
        mat = _last_batch_to_sparse(mat)
    return mat


def _first_dense_to_sparse(mat: BCOO) -> BCOO:
    axis = mat.n_batch + 1
    batch, size = mat.shape[:mat.n_batch], mat.data.shape[axis]
    data = mat.data.reshape(*batch, mat.nse * size, *mat.data.shape[axis + 1:])
    old = jnp.repeat(mat.indices, size, axis=-2)
    new = jnp.broadcast_to(jnp.tile(jnp.arange(size, dtype=old.dtype), mat.nse)[:, None],
                           (*old.shape[:-1], 1))
    # Padding stays out of bounds in every dimension.
    inside = jnp.repeat(_in_bounds(mat), size, axis=-1)[..., None]
    indices = jnp.concatenate([old, jnp.where(inside, new, size)], -1)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=mat.indices_sorted,
                unique_indices=mat.unique_indices)


def _last_batch_to_sparse(mat: BCOO) -> BCOO:
    batch, size = mat.shape[:mat.n_batch - 1], mat.shape[mat.n_batch - 1]
    data = jnp.broadcast_to(mat.data, (*mat.shape[:mat.n_batch],
                                       *mat.data.shape[mat.n_batch:]))
    indices = jnp.broadcast_to(mat.indices, (*mat.shape[:mat.n_batch], mat.nse, mat.n_sparse))
    data = data.reshape(*batch, size * mat.nse, *data.shape[mat.n_batch + 1:])
    inside = _in_bounds(mat).reshape(*batch, size * mat.nse, 1)
    old = indices.reshape(*batch, size * mat.nse, mat.n_sparse)
    new = jnp.broadcast_to(jnp.repeat(jnp.arange(size, dtype=old.dtype), mat.nse)[:, None],
                           (*batch, size * mat.nse, 1))
    return BCOO((data, jnp.concatenate([jnp.where(inside, new, size), old], -1)), shape=mat.shape,
                indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def _flat(mat: BCOO) -> BCOO:
    """The array with sparse dimensions only."""
    return bcoo_update_layout(mat, n_batch=0, n_dense=0)


# --- order and duplicates -------------------------------------------------------------------------

def _linear(mat: BCOO) -> Any:
    """One number for each coordinate, increasing in their order; the greatest for padding."""
    number = jnp.zeros(mat.indices.shape[:-1], mat.indices.dtype)
    for position, size in enumerate(mat._sparse_shape):
        number = number * size + mat.indices[..., position]
    return jnp.where(_in_bounds(mat), number, math.prod(mat._sparse_shape))


def _taken(mat: BCOO, order: Any) -> tuple[Any, Any]:
    """Data and indices permuted by an order of shape ``batch + (n,)``."""
    wide = order.reshape(*order.shape, *(1,) * mat.n_dense)
    return (jnp.take_along_axis(mat.data, wide, mat.n_batch),
            jnp.take_along_axis(mat.indices, order[..., None], mat.n_batch))


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """The same array with its coordinates in order.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO((jnp.array([1., 2.]), jnp.array([[2], [0]])), shape=(3,))
    >>> sparse.bcoo_sort_indices(m).data
    Array([2., 1.], dtype=float32)
    """
    order = jnp.argsort(_linear(mat), axis=-1, stable=True)
    return BCOO(_taken(mat, order), shape=mat.shape, indices_sorted=True,
                unique_indices=mat.unique_indices)


def sum_duplicates(mat: BCOO, nse: int | None, remove_zeros: bool) -> BCOO:
    mat = bcoo_sort_indices(mat)
    number, end = _linear(mat), math.prod(mat._sparse_shape)
    keep = number < end
    if remove_zeros:
        dense = tuple(range(mat.n_batch + 1, mat.data.ndim))
        keep = keep & jnp.any(mat.data != 0, dense)
    starts = jnp.concatenate([jnp.ones_like(keep[..., :1]),
                              number[..., 1:] != number[..., :-1]], -1)
    if remove_zeros:
        # A coordinate begins at its first retained element.
        mat = BCOO((mat.data, jnp.where(keep[..., None], mat.indices, np.array(
            mat._sparse_shape, mat.indices.dtype))), shape=mat.shape)
        mat = bcoo_sort_indices(mat)
        number = _linear(mat)
        keep = number < end
        starts = jnp.concatenate([jnp.ones_like(keep[..., :1]),
                                  number[..., 1:] != number[..., :-1]], -1)
    starts = starts & keep
    place = jnp.where(keep, jnp.cumsum(starts, -1) - 1, mat.nse)
    if nse is None:
        nse = int(jnp.max(jnp.sum(starts, -1), initial=0))
    batch = mat.shape[:mat.n_batch]
    where = (*_batch_grid(batch, 1), place)
    data = jnp.zeros((*batch, nse, *mat.data.shape[mat.n_batch + 1:]), mat.dtype)
    indices = jnp.broadcast_to(np.array(mat._sparse_shape, mat.indices.dtype),
                               (*batch, nse, mat.n_sparse))
    return BCOO((data.at[where].add(mat.data, mode="drop"),
                 indices.at[where].set(mat.indices, mode="drop")), shape=mat.shape,
                indices_sorted=True, unique_indices=True)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """The same array with each coordinate once, in order.

    Args:
      nse: how many to store; by default all of them, whose number must be known: not under jit.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO((jnp.array([1., 2.]), jnp.array([[2], [2]])), shape=(3,))
    >>> sparse.bcoo_sum_duplicates(m).data
    Array([3.], dtype=float32)
    """
    return sum_duplicates(mat, nse, False)


# --- shape ----------------------------------------------------------------------------------------

def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The array with its axes permuted; batch, sparse and dense ones each among themselves.

    Raises:
      NotImplementedError: an axis would change from one of the three kinds to another.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0, 5]]))
    >>> sparse.bcoo_transpose(m, permutation=(1, 0)).indices
    Array([[1, 0]], dtype=int32)
    """
    order = tuple(map(operator.index, permutation))
    if sorted(order) != list(range(mat.ndim)):
        raise ValueError(f"transpose permutation isn't a permutation of operand dimensions, got "
                         f"permutation {order} for operand shape {mat.shape}.")
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    batch, sparse, dense = order[:first], order[first:last], order[last:]
    if sorted(batch) != list(range(first)) or sorted(sparse) != list(range(first, last)):
        raise NotImplementedError(
            f"the permutation {order} mixes batch, sparse and dense dimensions (n_batch="
            f"{mat.n_batch}, n_sparse={mat.n_sparse}, n_dense={mat.n_dense})")
    data = mat.data.transpose(*batch, first, *[axis - last + first + 1 for axis in dense])
    indices = mat.indices.transpose(*batch, first, first + 1)
    indices = indices[..., np.array([axis - first for axis in sparse], int)]
    return BCOO((data, indices), shape=[mat.shape[axis] for axis in order],
                indices_sorted=mat.indices_sorted and list(sparse) == sorted(sparse),
                unique_indices=mat.unique_indices)


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int],
                 dimensions: Sequence[int] | None = None, sharding: Any = None) -> BCOO:
    """The array in another shape, with unchanged batch and dense dimensions.

    Raises:
      TypeError: the number of elements differs.
      NotImplementedError: batch or dense dimensions would change.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0, 5], [6, 0]]))
    >>> sparse.bcoo_reshape(m, new_sizes=(4,)).indices.tolist()
    [[1], [2]]
    """
    if dimensions is not None and tuple(dimensions) != tuple(range(mat.ndim)):
        mat = bcoo_transpose(mat, permutation=dimensions)
    shape = tuple(map(operator.index, new_sizes))
    if math.prod(shape) != mat.size:
        raise TypeError(f"cannot reshape array of shape {mat.shape} into shape {shape}")
    batch, dense = mat.shape[:mat.n_batch], mat.shape[mat.ndim - mat.n_dense:]
    sparse = shape[mat.n_batch:len(shape) - mat.n_dense]
    if shape[:mat.n_batch] != batch or shape[len(shape) - mat.n_dense:] != dense:
        raise NotImplementedError("reshape of batch or dense dimensions of a sparse array")
    number = _linear(mat)
    places = jnp.unravel_index(jnp.minimum(number, max(math.prod(sparse) - 1, 0)), sparse) \
        if sparse else ()
    inside = _in_bounds(mat)
    indices = jnp.stack([jnp.where(inside, place, size) for place, size in zip(
        places, sparse, strict=True)], -1) if sparse else mat.indices[..., :0]
    return BCOO((mat.data, indices.astype(mat.indices.dtype)), shape=shape,
                indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without dimensions of size 1.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0, 5]]))
    >>> sparse.bcoo_squeeze(m, dimensions=(0,)).todense()
    Array([0, 5], dtype=int32)
    """
    gone = {axis % arr.ndim for axis in dimensions}
    if any(arr.shape[axis] != 1 for axis in gone):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one, "
                         f"got shape={arr.shape} and dimensions={tuple(dimensions)}")
    first, last = arr.n_batch, arr.n_batch + arr.n_sparse
    inside = _in_bounds(arr)
    kept = [axis - first for axis in range(first, last) if axis not in gone]
    indices = arr.indices[..., np.array(kept, int)]
    data = jnp.where(inside.reshape(*inside.shape, *(1,) * arr.n_dense), arr.data, 0)
    data = jnp.squeeze(data, tuple(axis if axis < first else axis - last + first + 1
                                   for axis in gone if not first <= axis < last))
    indices = jnp.squeeze(indices, tuple(axis for axis in gone if axis < first))
    return BCOO((data, indices), indices_sorted=arr.indices_sorted,
                unique_indices=arr.unique_indices,
                shape=[n for axis, n in enumerate(arr.shape) if axis not in gone])


def bcoo_broadcast_in_dim(mat: BCOO, *, shape: Sequence[int],
                          broadcast_dimensions: Sequence[int], sharding: Any = None) -> BCOO:
    """The array repeated along new dimensions, and along those of size 1.

    Args:
      broadcast_dimensions: the position of each of its dimensions in ``shape``.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0, 5]))
    >>> sparse.bcoo_broadcast_in_dim(m, shape=(2, 2), broadcast_dimensions=(1,)).todense()
    Array([[0, 5],
           [0, 5]], dtype=int32)
    """
    shape = tuple(map(operator.index, shape))
    mat = _flat(mat)
    if len(broadcast_dimensions) != mat.ndim or any(
            mat.shape[i] not in (1, shape[axis]) for i, axis in enumerate(broadcast_dimensions)):
        raise ValueError(f"bcoo_broadcast_in_dim: {mat.shape} cannot be broadcast to {shape} along "
                         f"{tuple(broadcast_dimensions)}")
    source = dict(zip(broadcast_dimensions, range(mat.ndim), strict=True))
    repeated = [axis for axis in range(len(shape))
                if axis not in source or mat.shape[source[axis]] != shape[axis]]
    count = math.prod(shape[axis] for axis in repeated)
    places = dict(zip(repeated, np.indices([shape[axis] for axis in repeated]).reshape(
        len(repeated), count), strict=True))
    columns = [jnp.asarray(np.repeat(places[axis], mat.nse)) if axis in places
               else jnp.tile(mat.indices[:, source[axis]], count) for axis in range(len(shape))]
    inside = jnp.tile(_in_bounds(mat), count)
    columns = [jnp.where(inside, column, size) for column, size in zip(
        columns, shape, strict=True)]
    indices = jnp.stack(columns, -1).astype(mat.indices.dtype)
    return BCOO((jnp.tile(mat.data, count), indices), shape=shape,
                unique_indices=mat.unique_indices)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Several arrays concatenated along a dimension.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0, 5]))
    >>> sparse.bcoo_concatenate([m, m], dimension=0).todense()
    Array([0, 5, 0, 5], dtype=int32)
    """
    if not operands:
        raise ValueError("bcoo_concatenate: operands must not be empty.")
    if not all(isinstance(mat, BCOO) for mat in operands):
        raise ValueError("bcoo_concatenate: expected operands to be a sequence of BCOO arrays.")
    parts = [_flat(mat) for mat in operands]
    shapes = [mat.shape[:dimension] + mat.shape[dimension + 1:] for mat in parts]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError("bcoo_concatenate: the shapes differ beside the dimension: "
                         f"{[mat.shape for mat in parts]}")
    ends = np.cumsum([mat.shape[dimension] for mat in parts])
    shape = list(parts[0].shape)
    shape[dimension] = int(ends[-1])
    dtype = jnp.result_type(*[mat.data for mat in parts])
    bounds = np.array(shape, parts[0].indices.dtype)
    indices = []
    for mat, end in zip(parts, ends, strict=True):
        moved = mat.indices.at[:, dimension].add(int(end) - mat.shape[dimension])
        indices.append(jnp.where(_in_bounds(mat)[:, None], moved, bounds))
    return BCOO((jnp.concatenate([mat.data.astype(dtype) for mat in parts]),
                 jnp.concatenate(indices)), shape=shape,
                unique_indices=all(mat.unique_indices for mat in parts))


def bcoo_slice(mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int],
               strides: Sequence[int] | None = None) -> BCOO:
    """A rectangular part of an array.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0, 5, 6]))
    >>> sparse.bcoo_slice(m, start_indices=(1,), limit_indices=(3,)).todense()
    Array([5, 6], dtype=int32)
    """
    steps = [1] * mat.ndim if strides is None else list(strides)
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    cuts = [slice(a, b, c) for a, b, c in zip(start_indices, limit_indices, steps, strict=True)]
    shape = [len(range(n)[cut]) for n, cut in zip(mat.shape, cuts, strict=True)]
    data = mat.data[(*cuts[:first], slice(None), *cuts[last:])]
    indices = mat.indices[tuple(cuts[:first])]
    starts, stops, sizes, moves = (np.array(values, mat.indices.dtype, ndmin=indices.ndim)
                                   for values in zip(*[
        (cuts[axis].start, cuts[axis].stop, shape[axis], steps[axis])
        for axis in range(first, last)], strict=True)) if mat.n_sparse else [np.zeros(0, int)] * 4
    offsets = indices - starts
    inside = jnp.all((offsets >= 0) & (indices < stops) & (offsets % moves == 0), -1)
    indices = jnp.where(inside[..., None], offsets // moves, sizes)
    data = jnp.where(inside.reshape(*inside.shape, *(1,) * mat.n_dense), data, 0)
    made = BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices)
    most = math.prod(made._sparse_shape)
    if made.nse > most:
        made = sum_duplicates(made, most, False)
    return made


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array reversed along dimensions.

    >>> from maxjax.experimental import sparse
    >>> sparse.bcoo_rev(sparse.BCOO.fromdense(jnp.array([0, 5, 6])), (0,)).todense()
    Array([6, 5, 0], dtype=int32)
    """
    mat = operand
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    data = jnp.flip(mat.data, [axis if axis < first else axis - last + first + 1
                               for axis in dimensions if not first <= axis < last])
    indices = jnp.flip(mat.indices, [axis for axis in dimensions if axis < first])
    inside = jnp.flip(_in_bounds(mat), [axis for axis in dimensions if axis < first])
    for axis in dimensions:
        if first <= axis < last:
            turned = mat.shape[axis] - 1 - indices[..., axis - first]
            indices = indices.at[..., axis - first].set(
                jnp.where(inside, turned, indices[..., axis - first]))
    return BCOO((data, indices), shape=mat.shape, unique_indices=mat.unique_indices)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sums along axes; coordinates that become equal are not merged.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0, 5], [6, 7]]))
    >>> s = sparse.bcoo_reduce_sum(m, axes=(0,))
    >>> s.nse, s.todense()
    (3, Array([ 6, 12], dtype=int32))
    """
    gone = sorted({operator.index(axis) for axis in axes})
    if any(not 0 <= axis < mat.ndim for axis in gone):
        raise ValueError(f"bcoo_reduce_sum: axes {tuple(axes)} are out of bounds for rank "
                         f"{mat.ndim}")
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    dense = [axis - last + first + 1 for axis in gone if axis >= last]
    inside = _in_bounds(mat)
    data = jnp.where(inside.reshape(*inside.shape, *(1,) * mat.n_dense), mat.data, 0)
    data = jnp.sum(data, tuple(dense)) if dense else data
    kept = np.array([axis - first for axis in range(first, last) if axis not in gone], int)
    indices = mat.indices[..., kept]
    batch = [axis for axis in gone if axis < first]
    if batch:       # their elements are concatenated
        rest = [axis for axis in range(first) if axis not in batch]
        sizes = [mat.shape[axis] for axis in rest]
        order = (*rest, *batch)
        data = data.transpose(*order, *range(first, data.ndim))
        indices = indices.transpose(*order, first, first + 1)
        stored = math.prod(mat.shape[axis] for axis in batch) * mat.nse
        data = data.reshape(*sizes, stored, *data.shape[first + 1:])
        indices = indices.reshape(*sizes, stored, indices.shape[-1])
    return BCOO((data, indices), shape=[n for axis, n in enumerate(mat.shape) if axis not in gone])


# --- products -------------------------------------------------------------------------------------

def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Array:
    """The data of the elementwise product with a broadcast dense array.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0., 5.]))
    >>> sparse.bcoo_multiply_dense(m, jnp.array([2., 3.]))
    Array([15.], dtype=float32)
    """
    v = jnp.asarray(v)
    if not v.ndim:
        return sp_mat.data * v
    if v.ndim > sp_mat.ndim or np.broadcast_shapes(v.shape, sp_mat.shape) != sp_mat.shape:
        raise ValueError("bcoo_multiply_dense: the dense array must be broadcastable to the "
                         f"sparse one: got {v.shape} and {sp_mat.shape}")
    wide = jnp.broadcast_to(v, sp_mat.shape)
    return sp_mat.data * (wide[_coordinates(sp_mat)] if sp_mat.n_sparse
                          else jnp.expand_dims(wide, sp_mat.n_batch))


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The elementwise product of two sparse arrays of the same shape.

    >>> from maxjax.experimental import sparse
    >>> a, b = (sparse.BCOO.fromdense(jnp.array(x)) for x in ([1, 2, 0], [0, 5, 6]))
    >>> sparse.bcoo_multiply_sparse(a, b).todense()
    Array([ 0, 10,  0], dtype=int32)
    """
    if lhs.shape != rhs.shape:
        raise NotImplementedError(f"the product of sparse arrays of shapes {lhs.shape} and "
                                  f"{rhs.shape}")
    lhs, rhs = _flat(lhs), _flat(rhs)
    same = jnp.all(lhs.indices[:, None] == rhs.indices[None], -1)
    same = same & _in_bounds(lhs)[:, None]
    data = jnp.where(same, lhs.data[:, None] * rhs.data[None], 0).reshape(-1)
    indices = jnp.where(same[..., None], lhs.indices[:, None],
                        np.array(lhs.shape, lhs.indices.dtype)).reshape(-1, lhs.ndim)
    return BCOO((data, indices), shape=lhs.shape,
                unique_indices=lhs.unique_indices and rhs.unique_indices)


def bcoo_dot_general(lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: None = None,
                     preferred_element_type: None = None, out_sharding: Any = None) -> Any:
    """``jax.lax.dot_general`` where one operand, or both, are sparse.

    Returns:
      A dense array if one operand is dense; a sparse one if both are sparse.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0., 5.], [6., 0.]]))
    >>> sparse.bcoo_dot_general(m, jnp.ones(2), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([5., 6.], dtype=float32)
    """
    (contract, batch) = dimension_numbers
    contract = [[a % x.ndim for a in axes] for axes, x in zip(contract, (lhs, rhs), strict=True)]
    batch = [[a % x.ndim for a in axes] for axes, x in zip(batch, (lhs, rhs), strict=True)]
    for axes in (contract, batch):
        if [lhs.shape[a] for a in axes[0]] != [rhs.shape[a] for a in axes[1]]:
            raise TypeError(f"dot_general requires contracting and batch dimensions to have equal "
                            f"sizes, got shapes {lhs.shape} and {rhs.shape} with "
                            f"{dimension_numbers}")
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        return _sparse_dot(_flat(lhs), _flat(rhs), contract, batch)
    if isinstance(lhs, BCOO):
        return _dot_dense(_flat(lhs), jnp.asarray(rhs), contract, batch)
    result = _dot_dense(_flat(rhs), jnp.asarray(lhs), contract[::-1], batch[::-1])
    shared = len(batch[0])
    others = rhs.ndim - shared - len(contract[1])
    order = (*range(shared), *range(shared + others, result.ndim), *range(shared, shared + others))
    return result.transpose(*order)


def _free(rank: int, *taken: Sequence[int]) -> list[int]:
    return [axis for axis in range(rank) if all(axis not in axes for axes in taken)]


def _dot_dense(mat: BCOO, other: Any, contract: Any, batch: Any) -> Array:
    """Multiplies each stored element by the row it selects, and adds to the row it belongs to."""
    free, other_free = _free(mat.ndim, contract[0], batch[0]), _free(
        other.ndim, contract[1], batch[1])
    dtype = jnp.result_type(mat.data, other)
    rows = other.transpose(*batch[1], *contract[1], *other_free)

    def column(axes: Sequence[int]) -> tuple[Any, ...]:
        return tuple([mat.indices[:, axis] for axis in axes])

    where = (*column(batch[0]), *column(contract[0]))
    met = rows.at[where].get(mode="fill", fill_value=0) if where else jnp.broadcast_to(
        rows, (mat.nse, *rows.shape))
    inside = _in_bounds(mat)
    data = jnp.where(inside, mat.data, 0).astype(dtype)
    terms = data.reshape(-1, *(1,) * len(other_free)) * met.astype(dtype)
    sizes = [mat.shape[axis] for axis in (*batch[0], *free)]
    target = (*column(batch[0]), *column(free))
    if not target:
        return jnp.sum(terms, 0)
    return jnp.zeros((*sizes, *[other.shape[axis] for axis in other_free]), dtype).at[
        target].add(terms, mode="drop")


def _sparse_dot(lhs: BCOO, rhs: BCOO, contract: Any, batch: Any) -> BCOO:
    """Every pair of stored elements whose contracted coordinates agree."""
    free = [_free(mat.ndim, contract[i], batch[i]) for i, mat in enumerate((lhs, rhs))]
    same = _in_bounds(lhs)[:, None] & _in_bounds(rhs)[None]
    for i, j in zip((*contract[0], *batch[0]), (*contract[1], *batch[1]), strict=True):
        same = same & (lhs.indices[:, None, i] == rhs.indices[None, :, j])
    data = jnp.where(same, lhs.data[:, None] * rhs.data[None], 0).reshape(-1)
    shape = [*[lhs.shape[a] for a in (*batch[0], *free[0])], *[rhs.shape[a] for a in free[1]]]
    pair = (lhs.nse, rhs.nse)
    columns = [*[jnp.broadcast_to(lhs.indices[:, None, a], pair) for a in (*batch[0], *free[0])],
               *[jnp.broadcast_to(rhs.indices[None, :, a], pair) for a in free[1]]]
    indices = jnp.stack([jnp.where(same, column, size) for column, size in zip(
        columns, shape, strict=True)], -1).reshape(-1, len(shape)) if columns else jnp.zeros(
            (data.size, 0), lhs.indices.dtype)
    made = BCOO((data, indices), shape=shape)
    most = math.prod(shape)
    return sum_duplicates(made, most, False) if made.nse > most and shape else made


def _product_axes(a: Any, b: Any) -> tuple[str, str, str]:
    letters = string.ascii_letters
    if a.ndim == 1 and b.ndim == 1:
        return "k", "k", ""
    if b.ndim == 1:
        return letters[:a.ndim - 1] + "k", "k", letters[:a.ndim - 1]
    if a.ndim == 1:
        lead = letters[:b.ndim - 2]
        return "k", f"{lead}kz", f"{lead}z"
    lead = letters[:max(a.ndim, b.ndim) - 2].replace("k", "K")
    left, right = lead[len(lead) - (a.ndim - 2):], lead[len(lead) - (b.ndim - 2):]
    return f"{left}yk", f"{right}kz", f"{lead}yz"


def matmul(a: Any, b: Any) -> Any:
    """``a @ b``, where one or both are sparse."""
    a, b = (x if isinstance(x, JAXSparse) else jnp.asarray(x) for x in (a, b))
    if not a.ndim or not b.ndim:
        raise ValueError("matmul: input operand does not have enough dimensions (has 0, requires "
                         "at least 1)")
    if a.shape[-1] != b.shape[max(b.ndim - 2, 0)]:
        raise TypeError("dot_general requires contracting dimensions to have the same shape, got "
                        f"{(a.shape[-1],)} and {(b.shape[max(b.ndim - 2, 0)],)}.")
    left, right, out = _product_axes(a, b)
    shared = [x for x in left if x in right and x != "k"]
    if any(a.shape[left.index(x)] != b.shape[right.index(x)] for x in shared):
        raise NotImplementedError(f"matmul of sparse arrays with batches that are broadcast: "
                                  f"{a.shape} and {b.shape}")
    result = bcoo_dot_general(a, b, dimension_numbers=(
        ([left.index("k")], [right.index("k")]),
        ([left.index(x) for x in shared], [right.index(x) for x in shared])))
    made = "".join([*shared, *[x for x in left if x not in shared and x != "k"],
                    *[x for x in right if x not in shared and x != "k"]])
    order = [made.index(x) for x in out]
    if order == list(range(len(order))):
        return result
    return bcoo_transpose(result, permutation=order) if isinstance(
        result, BCOO) else result.transpose(*order)


def subtract(left: Any, right: Any) -> BCOO:
    """The difference of two sparse arrays.

    Raises:
      NotImplementedError: one is dense, as in JAX.
    """
    if not (isinstance(left, JAXSparse) and isinstance(right, JAXSparse)):
        raise NotImplementedError("Subtraction between sparse and dense array.")
    return add(left, -right)      # type: ignore[operator]


def multiply(mat: BCOO, other: Any) -> BCOO:
    """The elementwise product; sparse."""
    if isinstance(other, BCOO):
        return bcoo_multiply_sparse(mat, other)
    if jnp.ndim(other) > mat.ndim:
        raise NotImplementedError("the product of a sparse array and a dense one of higher rank")
    return mat._like(bcoo_multiply_dense(mat, other))


def add(mat: Any, other: Any) -> Any:
    """The sum: sparse if both are sparse, otherwise dense.

    Raises:
      NotImplementedError: a dense operand is smaller than the sum.
    """
    if isinstance(other, JAXSparse) and isinstance(mat, JAXSparse):
        if mat.shape != other.shape:
            raise NotImplementedError("Addition between sparse matrices of different shapes.")
        mat, other = (_flat(x) for x in (mat, other) if isinstance(x, BCOO))
        dtype = jnp.result_type(mat.data, other.data)
        return BCOO((jnp.concatenate([mat.data.astype(dtype), other.data.astype(dtype)]),
                     jnp.concatenate([mat.indices, other.indices])), shape=mat.shape)
    if isinstance(other, JAXSparse):
        mat, other = other, mat
    other = jnp.asarray(other)
    if np.broadcast_shapes(mat.shape, other.shape) != other.shape:
        raise NotImplementedError(
            "Addition between a sparse array X and a dense array Y is not implemented when the "
            "output shape is larger than Y.shape. This is to prevent silent densification of a "
            "large sparse array. If this is your intent, you can use sparse.todense() to convert "
            "your arguments to a dense matrix.")
    return mat.todense() + other
