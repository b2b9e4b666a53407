"""Operations on BCOO arrays that move elements, and sums."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

import maxjax
from maxjax import lax
from maxjax import numpy as jnp
from maxjax._ir.dimensions import size_index
from maxjax.experimental.sparse._bcoo_array import (
    BCOO,
    bcoo_sum_duplicates,
    bcoo_update_layout,
    whole,
)
from maxjax.experimental.sparse._bcoo_buffers import ends, in_bounds, masked, padded, validated
from maxjax.experimental.sparse._primitives import sparse_primitive
from maxjax.experimental.sparse.util import SparseInfo, relaxed


def _required(mat: Any, name: str) -> None:
    if not isinstance(mat, BCOO):
        raise TypeError(f"{name}: input should be BCOO array, got type(mat)={type(mat)}")


def _dense_shape(operation: Any, *shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that an operation gives of dense arrays, with its errors."""
    out = maxjax.eval_shape(operation, *[
        maxjax.ShapeDtypeStruct(tuple(shape), np.dtype(np.float32)) for shape in shapes])
    return tuple(out.shape)


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """The array with its axes permuted; batch, sparse and dense ones each among themselves.

    Raises:
      TypeError: it is no permutation.
      NotImplementedError: an axis would change from one of the three kinds to another.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0, 5]]))
    >>> sparse.bcoo_transpose(m, permutation=(1, 0)).indices
    Array([[1, 0]], dtype=int32)
    """
    order = tuple(map(operator.index, permutation))
    data, indices = _bcoo_transpose(mat.data, mat.indices, permutation=order, spinfo=mat._info)
    sparse = order[mat.n_batch:mat.n_batch + mat.n_sparse]
    return BCOO((data, indices), shape=[mat.shape[axis] for axis in order],
                indices_sorted=mat.indices_sorted and list(sparse) == sorted(sparse),
                unique_indices=mat.unique_indices)


def _bcoo_transpose(data: Any, indices: Any, *, permutation: Sequence[int],
                    spinfo: SparseInfo) -> tuple[Any, Any]:
    order = tuple(map(operator.index, permutation))
    shape = spinfo.shape
    n_batch, n_sparse, n_dense, _ = validated(data, indices, shape)
    if sorted(order) != list(range(len(shape))):
        raise TypeError("transpose permutation isn't a permutation of operand dimensions, got "
                        f"permutation {order} for shape {tuple(shape)}.")
    if set(order[:n_batch]) != set(range(n_batch)):
        raise NotImplementedError(
            "transpose permutation cannot permute batch axes with non-batch axes; got permutation "
            f"{order}, with n_batch={n_batch}.")
    if set(order[n_batch + n_sparse:]) != set(range(n_batch + n_sparse, len(shape))):
        raise NotImplementedError(
            "transpose permutation cannot permute dense axes with non-dense axes; got permutation "
            f"{order}, with n_dense={n_dense}.")
    return tuple(bcoo_transpose_p.bind(data, indices, permutation=order, spinfo=spinfo))


def _transpose(data: Any, indices: Any, *, permutation: tuple[int, ...],
               spinfo: SparseInfo) -> tuple[Any, Any]:
    n_batch, n_sparse, _, _ = validated(data, indices, spinfo.shape)
    last = n_batch + n_sparse
    batch, sparse, dense = permutation[:n_batch], permutation[n_batch:last], permutation[last:]
    data = data.transpose(*batch, n_batch, *[axis - last + n_batch + 1 for axis in dense])
    indices = indices.transpose(*batch, n_batch, n_batch + 1)
    return data, indices[..., np.array([axis - n_batch for axis in sparse], int)]


bcoo_transpose_p = sparse_primitive("bcoo_transpose", _transpose, several=True)


def bcoo_broadcast_in_dim(mat: BCOO, *, shape: Sequence[int],
                          broadcast_dimensions: Sequence[int], sharding: Any = None) -> BCOO:
    """The array with new dimensions, and repeated along batch and dense ones.

    New dimensions before the first sparse one become batch dimensions, those after the first dense
    one become dense.

    Args:
      broadcast_dimensions: the position of each of its dimensions in ``shape``.

    Raises:
      NotImplementedError: it would be repeated along a sparse dimension.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0, 5]))
    >>> sparse.bcoo_broadcast_in_dim(m, shape=(2, 2), broadcast_dimensions=(1,)).todense()
    Array([[0, 5],
           [0, 5]], dtype=int32)
    """
    shape = tuple(map(size_index, shape))
    places = tuple(map(operator.index, broadcast_dimensions))
    _dense_shape(lambda x: lax.broadcast_in_dim(x, shape, places), mat.shape)
    n_batch, n_sparse, n_dense = mat.n_batch, mat.n_sparse, mat.n_dense
    first = places[n_batch] if n_batch < mat.ndim else len(shape)
    last = places[n_batch + n_sparse] if n_dense else len(shape)
    source = {place: axis for axis, place in enumerate(places)}
    if any(shape[place] != (mat.shape[source[place]] if place in source else 1)
           for place in range(first, last)):
        raise NotImplementedError("Adding sparse dimensions with lengths != 1")
    with relaxed():
        stored = (mat.nse,)
        data = lax.broadcast_in_dim(
            mat.data, (*shape[:first], *stored, *shape[last:]),
            (*places[:n_batch], first, *[place - last + first + 1
                                         for place in places[n_batch + n_sparse:]]))
        indices = lax.broadcast_in_dim(
            mat.indices, (*shape[:first], *stored, n_sparse), (*places[:n_batch], first, first + 1))
        columns = [indices[..., source[place] - n_batch, None] if place in source
                   else jnp.zeros((*shape[:first], *stored, 1), indices.dtype)
                   for place in range(first, last)]
        indices = jnp.concatenate(columns, -1) if columns else indices
    return BCOO((data, indices), shape=shape, indices_sorted=mat.indices_sorted,
                unique_indices=mat.unique_indices)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """Several arrays concatenated along a batch or sparse dimension.

    Raises:
      ValueError: one is not sparse, or their batch dimensions differ.
      NotImplementedError: the dimension is dense.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0, 5]))
    >>> sparse.bcoo_concatenate([m, m], dimension=0).todense()
    Array([0, 5, 0, 5], dtype=int32)
    """
    dimension = operator.index(dimension)
    if not all(isinstance(mat, BCOO) for mat in operands):
        raise ValueError("bcoo_concatenate: expected operands to be a sequence of BCOO arrays. "
                         f"Got {operands}")
    shape = _dense_shape(lambda *xs: lax.concatenate(xs, dimension),
                         *[mat.shape for mat in operands])
    if len({mat.n_dense for mat in operands}) > 1:
        raise ValueError("bcoo_concatenate requires inputs to have matching dense dimensions.")
    operands = _aligned_batches(operands)
    n_batch, n_sparse = operands[0].n_batch, operands[0].n_sparse
    if any(mat.n_batch != n_batch for mat in operands):
        raise ValueError("bcoo_concatenate requires inputs to have matching batch dimensions.")
    if dimension >= n_batch + n_sparse:
        raise NotImplementedError("Concatenation along dense dimensions.")
    with relaxed():
        mats = [whole(mat) for mat in operands]
        if dimension < n_batch:
            nse = max(mat.nse for mat in mats)
            mats = [_with_nse(mat, nse) for mat in mats]
            data = lax.concatenate([mat.data for mat in mats], dimension)
            return BCOO((data, lax.concatenate([mat.indices for mat in mats], dimension)),
                        shape=shape)
        column = dimension - n_batch
        indices, offset = [], 0
        for mat in mats:
            moved = mat.indices.at[..., column].add(offset)
            # Padding would come to lie in the next array.
            indices.append(padded(moved, in_bounds(mat.indices, mat.shape), shape))
            offset += mat.shape[dimension]
        data = lax.concatenate([mat.data for mat in mats], n_batch)
        return BCOO((data, lax.concatenate(indices, n_batch)), shape=shape)


def _aligned_batches(operands: Sequence[BCOO]) -> Sequence[BCOO]:
    """``x[None]`` has a batch dimension of size 1, where others may have a sparse one."""
    if {mat.n_batch for mat in operands} != {0, 1}:
        return operands
    for n_batch in (1, 0):
        if all(mat.shape[0] == 1 for mat in operands if mat.n_batch != n_batch):
            return [mat if mat.n_batch == n_batch else bcoo_update_layout(mat, n_batch=n_batch)
                    for mat in operands]
    return operands


def _with_nse(mat: BCOO, nse: int) -> BCOO:
    """The array with padding up to a number of stored elements."""
    more = nse - mat.nse
    if not more:
        return mat
    n_batch = mat.n_batch
    data = jnp.concatenate([mat.data, jnp.zeros(
        (*mat.data.shape[:n_batch], more, *mat.data.shape[n_batch + 1:]), mat.dtype)], n_batch)
    end = ends(mat.indices, mat.shape)
    indices = jnp.concatenate([mat.indices, jnp.broadcast_to(
        end, (*mat.indices.shape[:n_batch], more, mat.n_sparse))], n_batch)
    return BCOO((data, indices), shape=mat.shape, unique_indices=mat.unique_indices)


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int],
                 dimensions: Sequence[int] | None = None, sharding: Any = None) -> BCOO:
    """The array in another shape; batch, sparse and dense dimensions each among themselves.

    Raises:
      TypeError: the number of elements differs.
      ValueError: dimensions of two kinds would be mixed.
      NotImplementedError: buffers have size 1 along a larger batch dimension.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0, 5], [6, 0]]))
    >>> sparse.bcoo_reshape(m, new_sizes=(4,)).indices.tolist()
    [[1], [2]]
    """
    if dimensions is not None and tuple(dimensions) != tuple(range(mat.ndim)):
        mat = bcoo_transpose(mat, permutation=dimensions)
    shape = tuple(map(size_index, new_sizes))
    if math.prod(shape) != mat.size:
        raise TypeError(f"cannot reshape array of shape {mat.shape} (size {mat.size}) into shape "
                        f"{shape} (size {math.prod(shape)})")
    n_batch, n_sparse, n_dense = mat.n_batch, mat.n_sparse, mat.n_dense
    old = mat.shape[:n_batch]
    if (mat.data.shape[:n_batch], mat.indices.shape[:n_batch]) != (old, old):
        raise NotImplementedError("reshape of arrays with broadcasted batch dimensions.")

    def leading(old: Sequence[int], new: Sequence[int], kind: str, count: str) -> int:
        """How many of the new dimensions have as many places as the old ones."""
        if not old:
            return 0
        for length in range(1, len(new) + 1):
            if math.prod(new[:length]) == math.prod(old):
                return length
        raise ValueError(f"bcoo_reshape: new shape cannot mix {kind} dimensions; got "
                         f"shape={mat.shape} new_shape={shape} with {count}")

    if n_sparse or n_dense:
        batch = leading(old, shape, "batch and sparse", f"n_batch={n_batch}")
    else:
        batch = len(shape)
    dense = leading(mat.shape[n_batch + n_sparse:][::-1], shape[batch:][::-1], "sparse and dense",
                    f"n_dense={n_dense}") if n_sparse else len(shape) - batch
    sparse = shape[batch:len(shape) - dense]
    with relaxed():
        data = mat.data.reshape(*shape[:batch], mat.nse, *shape[len(shape) - dense:])
        if n_sparse:
            indices = _reshaped_indices(mat, sparse).reshape(*shape[:batch], mat.nse, len(sparse))
        else:
            indices = mat.indices.reshape(*shape[:batch], mat.nse, 0)
    return BCOO((data, indices), shape=shape, indices_sorted=mat.indices_sorted,
                unique_indices=mat.unique_indices)


def _reshaped_indices(mat: BCOO, sparse: tuple[int, ...]) -> Any:
    inside = in_bounds(mat.indices, mat.shape)
    number = jnp.zeros(mat.indices.shape[:-1], mat.indices.dtype)
    for position, size in enumerate(mat._sparse_shape):
        number = number * size + mat.indices[..., position]
    number = jnp.where(inside, number, 0)
    columns = []
    for size in sparse[::-1]:
        columns.append(number % max(size, 1))
        number = number // max(size, 1)
    indices = jnp.stack(columns[::-1], -1) if columns else mat.indices[..., :0]
    return padded(indices, inside, (*mat.shape[:mat.n_batch], *sparse))


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """The array reversed along dimensions.

    >>> from maxjax.experimental import sparse
    >>> sparse.bcoo_rev(sparse.BCOO.fromdense(jnp.array([0, 5, 6])), (0,)).todense()
    Array([6, 5, 0], dtype=int32)
    """
    mat = operand
    _dense_shape(lambda x: lax.rev(x, tuple(dimensions)), mat.shape)
    n_batch, last = mat.n_batch, mat.n_batch + mat.n_sparse
    batch = tuple(axis for axis in dimensions if axis < n_batch)
    dense = tuple(axis - last + n_batch + 1 for axis in dimensions if axis >= last)
    sparse = [axis - n_batch in {d - n_batch for d in dimensions} for axis in range(n_batch, last)]
    with relaxed():
        data = lax.rev(mat.data, (*batch, *dense))
        indices = lax.rev(mat.indices, batch)
        if any(sparse):
            inside = in_bounds(indices, mat.shape)
            end = ends(indices, mat.shape)
            turned = jnp.where(np.array(sparse), end - 1 - indices, indices)
            indices = padded(turned, inside, mat.shape)
    return BCOO((data, indices), shape=mat.shape, unique_indices=mat.unique_indices,
                indices_sorted=mat.indices_sorted and not any(sparse))


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """The array without dimensions of size 1.

    Raises:
      ValueError: one has another size.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0, 5]]))
    >>> sparse.bcoo_squeeze(m, dimensions=(0,)).todense()
    Array([0, 5], dtype=int32)
    """
    dims = []
    for axis in dimensions:
        if not -arr.ndim <= axis < arr.ndim:
            raise ValueError(f"axis {axis} is out of bounds for array of dimension {arr.ndim}")
        dims.append(operator.index(axis) % arr.ndim)
    gone = set(dims)
    if any(arr.shape[axis] != 1 for axis in gone):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one, "
                         f"got shape={arr.shape} and dimensions={tuple(dims)}")
    first, last = arr.n_batch, arr.n_batch + arr.n_sparse
    kept = [axis - first for axis in range(first, last) if axis not in gone]
    data, indices = arr.data, arr.indices
    with relaxed():
        if len(kept) < arr.n_sparse:      # padding may have been so by a dimension that goes
            inside = in_bounds(indices, arr.shape)
            batch = jnp.broadcast_shapes(inside.shape[:-1], data.shape[:first])
            data = masked(jnp.broadcast_to(data, (*batch, *data.shape[first:])), inside)
            indices = indices[..., np.array(kept, int)]
        data = lax.squeeze(data, tuple(axis if axis < first else axis - last + first + 1
                                       for axis in gone if not first <= axis < last))
        indices = lax.squeeze(indices, tuple(axis for axis in gone if axis < first))
    return BCOO((data, indices), indices_sorted=arr.indices_sorted,
                unique_indices=arr.unique_indices,
                shape=[n for axis, n in enumerate(arr.shape) if axis not in gone])


def bcoo_slice(mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int],
               strides: Sequence[int] | None = None) -> BCOO:
    """A part of the array.

    Raises:
      ValueError: the indices do not lie in the shape.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0, 5, 6]))
    >>> sparse.bcoo_slice(m, start_indices=(1,), limit_indices=(3,)).todense()
    Array([5, 6], dtype=int32)
    """
    _required(mat, "bcoo_slice")
    starts, limits = ([operator.index(i) for i in x] for x in (start_indices, limit_indices))
    steps = [1] * mat.ndim if strides is None else [operator.index(i) for i in strides]
    if not len(starts) == len(limits) == len(steps) == mat.ndim:
        raise ValueError(f"bcoo_slice: indices must have the length of the array's shape. Got "
                         f"start_indices={starts}, limit_indices={limits}, strides={steps} and "
                         f"shape={mat.shape}")
    if any(not 0 <= a <= b <= size for a, b, size in zip(starts, limits, mat.shape, strict=True)):
        raise ValueError(f"bcoo_slice: invalid indices. Got start_indices={starts}, "
                         f"limit_indices={limits} and shape={mat.shape}")
    if any(step <= 0 for step in steps):
        raise ValueError(f"strides must be a sequence of positive integers; got {steps}")
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    cuts = [slice(a, b, c) for a, b, c in zip(starts, limits, steps, strict=True)]
    shape = tuple(len(range(n)[cut]) for n, cut in zip(mat.shape, cuts, strict=True))

    def batch_cuts(buffer: Any) -> list[slice]:
        return [slice(None) if size == 1 != whole_size and count else cut
                for size, whole_size, cut, count in zip(
                    buffer.shape[:first], mat.shape, cuts, shape, strict=False)]

    with relaxed():
        data = mat.data[(*batch_cuts(mat.data), slice(None), *cuts[last:])]
        indices = mat.indices[tuple(batch_cuts(mat.indices))]
        if mat.n_sparse:
            kind = indices.dtype
            start, stop, step = (np.array(x[first:last], kind) for x in (starts, limits, steps))
            offsets = indices - start
            inside = jnp.all((offsets >= 0) & (indices < stop) & (offsets % step == 0), -1)
            data, indices = _kept(data, padded(offsets // step, inside, shape), inside, first)
        made = BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices,
                    indices_sorted=False)
        return _without_surplus(made)


def _kept(data: Any, indices: Any, inside: Any, n_batch: int) -> tuple[Any, Any]:
    batch = jnp.broadcast_shapes(inside.shape[:-1], data.shape[:n_batch])
    data = jnp.broadcast_to(data, (*batch, *data.shape[n_batch:]))
    return masked(data, jnp.broadcast_to(inside, (*batch, inside.shape[-1]))), indices


def _without_surplus(mat: BCOO) -> BCOO:
    """At most as many stored elements as there are places."""
    most = math.prod(mat._sparse_shape)
    return bcoo_sum_duplicates(mat, most) if mat.nse > most else mat


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> BCOO:
    """A part of the array of fixed sizes, which begins where arrays say.

    Args:
      start_indices: a scalar for each dimension; moved inside, as by ``lax.dynamic_slice``.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0, 5, 6]))
    >>> sparse.bcoo_dynamic_slice(m, (jnp.int32(1),), (2,)).todense()
    Array([5, 6], dtype=int32)
    """
    _required(mat, "bcoo_dynamic_slice")
    starts = [jnp.asarray(start) for start in start_indices]
    sizes = tuple(map(size_index, slice_sizes))
    if len(starts) != mat.ndim:
        raise ValueError("Length of slice indices must match number of operand dimensions "
                         f"({len(starts)} vs {mat.shape})")
    _dense_shape(lambda x: lax.dynamic_slice(x, [0] * x.ndim, sizes), mat.shape)
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    with relaxed():
        starts = [jnp.where(start < 0, start + size, start).astype(np.int32)
                  for start, size in zip(starts, mat.shape, strict=True)]
        starts = [jnp.clip(start, 0, size - cut) for start, size, cut in zip(
            starts, mat.shape, sizes, strict=True)]

        def cut(buffer: Any, dense: Sequence[int]) -> Any:
            begins = [jnp.zeros((), np.int32)] * buffer.ndim
            counts = list(buffer.shape)
            for axis in range(first):
                if buffer.shape[axis] == mat.shape[axis]:
                    begins[axis], counts[axis] = starts[axis], sizes[axis]
                elif not sizes[axis]:
                    counts[axis] = 0
            for position, axis in enumerate(dense):
                begins[first + 1 + position] = starts[axis]
                counts[first + 1 + position] = sizes[axis]
            return lax.dynamic_slice(buffer, begins, counts)

        data, indices = cut(mat.data, range(last, mat.ndim)), cut(mat.indices, ())
        if mat.n_sparse:
            start = jnp.stack(starts[first:last]).astype(indices.dtype)
            offsets = indices - start
            stored = in_bounds(indices, (*sizes[:first], *mat.shape[first:]))
            inside = jnp.all((offsets >= 0) & (offsets < np.array(
                sizes[first:last], indices.dtype)), -1) & stored
            data, indices = _kept(data, padded(offsets, inside, sizes), inside, first)
        made = BCOO((data, indices), shape=sizes, unique_indices=mat.unique_indices)
        return _without_surplus(made)


def bcoo_gather(operand: BCOO, start_indices: Any, dimension_numbers: Any,
                slice_sizes: Sequence[int], *, unique_indices: bool = False,
                indices_are_sorted: bool = False, mode: Any = None,
                fill_value: Any = None) -> BCOO:
    """``jax.lax.gather`` of a sparse array; the dimensions of the indices become batch dimensions
    where that is possible.

    Raises:
      NotImplementedError: indices out of bounds would be filled.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0, 5], [6, 7]]))
    >>> numbers = jax.lax.GatherDimensionNumbers((1,), (0,), (0,))
    >>> sparse.bcoo_gather(m, jnp.array([[1], [0]]), numbers, (1, 2)).todense()
    Array([[6, 7],
           [0, 5]], dtype=int32)
    """
    _required(operand, "bcoo_gather")
    chosen = lax.GatherScatterMode.PROMISE_IN_BOUNDS if mode is None \
        else lax.GatherScatterMode.from_any(mode)
    if chosen not in (lax.GatherScatterMode.PROMISE_IN_BOUNDS, lax.GatherScatterMode.CLIP):
        raise NotImplementedError(f"bcoo_gather: mode={mode} not yet supported.")
    numbers, sizes = dimension_numbers, tuple(map(operator.index, slice_sizes))
    starts = jnp.asarray(start_indices)
    shape = _dense_shape(lambda x: lax.gather(x, jnp.zeros(starts.shape, starts.dtype), numbers,
                                              sizes, mode=chosen), operand.shape)
    outer = starts.shape[:-1]
    count = math.prod(outer)

    def one(row: Any) -> BCOO:
        begins = [jnp.zeros((), starts.dtype)] * operand.ndim
        for position, axis in enumerate(numbers.start_index_map):
            begins[axis] = jnp.maximum(row[position], 0)
        part = bcoo_dynamic_slice(operand, begins, sizes)
        return bcoo_squeeze(part, dimensions=numbers.collapsed_slice_dims)

    with relaxed():
        result = maxjax.vmap(one)(starts.reshape(count, starts.shape[-1]))
        inner = result.shape[1:]
        result = bcoo_reshape(whole(result), new_sizes=(*outer, *inner)) if len(outer) != 1 \
            else result
    # So far the dimensions are those of the indices, then those of the parts.
    target = [axis for axis in range(len(shape)) if axis not in numbers.offset_dims]
    order: list[int] = np.argsort([*target, *numbers.offset_dims]).tolist() if shape else []
    kept = next(k for k in range(result.n_batch, -1, -1) if set(order[:k]) == set(range(k)))
    if order != sorted(order):
        result = bcoo_update_layout(result, n_batch=kept)
        result = bcoo_transpose(result, permutation=order)
    return result


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sums along axes; coordinates that become equal are not merged.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0, 5], [6, 7]]))
    >>> s = sparse.bcoo_reduce_sum(m, axes=(0,))
    >>> s.nse, s.todense()
    (3, Array([ 6, 12], dtype=int32))
    """
    gone = sorted({operator.index(axis) for axis in axes})
    assert all(0 <= axis < mat.ndim for axis in gone), (
        f"bcoo_reduce_sum: axes {tuple(axes)} are out of bounds for rank {mat.ndim}")
    first, last = mat.n_batch, mat.n_batch + mat.n_sparse
    batch = [axis for axis in gone if axis < first]
    with relaxed():
        if batch:
            mat = whole(mat)
        data, indices = mat.data, mat.indices
        kept = np.array([axis - first for axis in range(first, last) if axis not in gone], int)
        if len(kept) < mat.n_sparse:      # padding may have been so by a dimension that goes
            inside = in_bounds(indices, mat.shape)
            data, indices = _kept(data, indices, inside, first)
            indices = indices[..., kept]
        dense = tuple(axis - last + first + 1 for axis in gone if axis >= last)
        data = jnp.sum(data, dense, dtype=data.dtype) if dense else data
        if batch:       # their elements are concatenated
            rest = [axis for axis in range(first) if axis not in batch]
            sizes = [mat.shape[axis] for axis in rest]
            order = (*rest, *batch)
            stored = math.prod(mat.shape[axis] for axis in batch) * mat.nse
            data = data.transpose(*order, *range(first, data.ndim))
            indices = indices.transpose(*order, first, first + 1)
            data = data.reshape(*sizes, stored, *data.shape[first + 1:])
            indices = indices.reshape(*sizes, stored, indices.shape[-1])
    return BCOO((data, indices), shape=[n for axis, n in enumerate(mat.shape) if axis not in gone])

