"""Products of BCOO arrays: elementwise, contractions, convolutions."""

from __future__ import annotations

import math
import operator
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.experimental.sparse._base import JAXSparse
from maxjax.experimental.sparse._bcoo_array import (
    BCOO,
    bcoo_fromdense,
    bcoo_sum_duplicates,
    bcoo_update_layout,
    whole,
)
from maxjax.experimental.sparse._bcoo_buffers import (
    BCOOProperties,
    coordinates,
    ends,
    extract,
    in_bounds,
    masked,
    padded,
    validated,
)
from maxjax.experimental.sparse._bcoo_shape import (
    bcoo_broadcast_in_dim,
    bcoo_squeeze,
    bcoo_transpose,
)
from maxjax.experimental.sparse._primitives import sparse_primitive
from maxjax.experimental.sparse.util import (
    SparseInfo,
    _dot_general_validated_shape,
    promoted,
    relaxed,
)


def _with_data(mat: BCOO, data: Any) -> BCOO:
    return mat if data is mat.data else mat._like(data)


# --- elementwise ----------------------------------------------------------------------------------

def bcoo_multiply_dense(sp_mat: BCOO, v: Any) -> Array:
    """The data of the elementwise product with a broadcast dense array.

    Raises:
      NotImplementedError: the product would be larger than the sparse array.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0., 5.]))
    >>> sparse.bcoo_multiply_dense(m, jnp.array([2., 3.]))
    Array([15.], dtype=float32)
    """
    v = jnp.asarray(v)
    shape, n_batch = sp_mat.shape, sp_mat.n_batch
    if not v.ndim:
        data, v = promoted(sp_mat.data, v)
        return data * v
    if jnp.broadcast_shapes(v.shape, shape) != shape:
        raise NotImplementedError(
            "multiplication between sparse and dense is only implemented for cases where the "
            "output shape matches the sparse matrix shape. Got "
            f"shape={shape}, v.shape={v.shape}")
    data, v = promoted(sp_mat.data, v)
    with relaxed():
        v = jnp.broadcast_to(v, shape)
        if sp_mat.n_sparse:
            met = v.at[coordinates(sp_mat.indices, shape)].get(mode="clip")
        else:
            met = jnp.expand_dims(v, n_batch)
        return data * met


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The elementwise product of two sparse arrays; dimensions of size 1 are broadcast.

    Raises:
      TypeError: the ranks differ.
      NotImplementedError: the numbers of dense dimensions differ.

    >>> from maxjax.experimental import sparse
    >>> a, b = (sparse.BCOO.fromdense(jnp.array(x)) for x in ([1, 2, 0], [0, 5, 6]))
    >>> sparse.bcoo_multiply_sparse(a, b).todense()
    Array([ 0, 10,  0], dtype=int32)
    """
    if lhs.ndim != rhs.ndim:
        raise TypeError("bcoo_multiply_sparse: arrays must have same number of dimensions, got "
                        f"{lhs.shape}, {rhs.shape}")
    if lhs.n_dense != rhs.n_dense:
        properties = [BCOOProperties(x.n_batch, x.n_sparse, x.n_dense, x.nse) for x in (lhs, rhs)]
        raise NotImplementedError("bcoo_multiply_sparse: arrays with differing numbers of dense "
                                  f"dimensions: {properties[0]}, {properties[1]}")
    shape = jnp.broadcast_shapes(lhs.shape, rhs.shape)
    n_batch = min(lhs.n_batch, rhs.n_batch)
    lhs, rhs = (bcoo_update_layout(x, n_batch=n_batch) for x in (lhs, rhs))
    data = promoted(lhs.data, rhs.data)
    with relaxed():
        pair = (lhs.nse, rhs.nse)
        left, right = lhs.indices[..., :, None, :], rhs.indices[..., None, :, :]
        left_inside = in_bounds(lhs.indices, lhs.shape)[..., :, None]
        right_inside = in_bounds(rhs.indices, rhs.shape)[..., None, :]
        sizes = list(zip(lhs._sparse_shape, rhs._sparse_shape, strict=True))
        both = [i for i, (a, b) in enumerate(sizes) if a == b]
        met = left_inside & right_inside
        for i in both:
            met = met & (left[..., i] == right[..., i])
        columns = [right[..., i] if a == 1 else left[..., i] for i, (a, b) in enumerate(sizes)]
        product = data[0][(*[slice(None)] * n_batch, slice(None), None)] \
            * data[1][(*[slice(None)] * n_batch, None, slice(None))]
        batch = jnp.broadcast_shapes(met.shape[:n_batch], product.shape[:n_batch])
        product = jnp.broadcast_to(product, (*batch, *product.shape[n_batch:]))
        product = masked(product, jnp.broadcast_to(met, (*batch, *pair)))
        indices = jnp.stack([jnp.broadcast_to(column, met.shape) for column in columns], -1) \
            if columns else jnp.zeros((*met.shape, 0), lhs.indices.dtype)
        indices = jnp.where(met[..., None], indices, ends(lhs.indices, shape))
        product = product.reshape(*batch, -1 if math.prod(pair) else 0, *product.shape[
            n_batch + 2:]) if product.size else jnp.zeros(
                (*batch, math.prod(pair), *product.shape[n_batch + 2:]), product.dtype)
        indices = indices.reshape(*met.shape[:n_batch], math.prod(pair), len(sizes))
    return BCOO((product, indices), shape=shape,
                unique_indices=lhs.unique_indices and rhs.unique_indices)


# --- contractions ---------------------------------------------------------------------------------

def _numbers(dimension_numbers: Any) -> Any:
    """As nested tuples of ints."""
    return tuple([tuple([tuple(map(operator.index, axes)) for axes in pair])
                  for pair in dimension_numbers])


def _free(rank: int, *taken: Sequence[int]) -> list[int]:
    return [axis for axis in range(rank) if all(axis not in axes for axes in taken)]


def bcoo_dot_general(lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: None = None,
                     preferred_element_type: None = None, out_sharding: Any = None) -> Any:
    """``jax.lax.dot_general`` where one operand, or both, are sparse.

    Returns:
      A dense array if one operand is dense; a sparse one if both are sparse.

    Raises:
      TypeError: shapes do not go with ``dimension_numbers``.
      NotImplementedError: batch dimensions are none of the sparse array's, or dense dimensions are
        contracted.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0., 5.], [6., 0.]]))
    >>> sparse.bcoo_dot_general(m, jnp.ones(2), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([5., 6.], dtype=float32)
    """
    numbers = _numbers(dimension_numbers)
    kind = preferred_element_type
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        shape = _dot_general_validated_shape(lhs.shape, rhs.shape, numbers)
        left, right = promoted(lhs.data, rhs.data)
        lhs, rhs = _with_data(lhs, left), _with_data(rhs, right)
        buffers = _bcoo_spdot_general(
            left, lhs.indices, right, rhs.indices, lhs_spinfo=lhs._info, rhs_spinfo=rhs._info,
            dimension_numbers=numbers, preferred_element_type=kind)
        return BCOO(buffers, shape=shape)
    if isinstance(lhs, BCOO):
        data, rhs = promoted(lhs.data, jnp.asarray(rhs))
        return _bcoo_dot_general(data, lhs.indices, rhs, dimension_numbers=numbers,
                                 preferred_element_type=kind, lhs_spinfo=lhs._info)
    if isinstance(rhs, BCOO):
        data, lhs = promoted(rhs.data, jnp.asarray(lhs))
        return _bcoo_rdot_general(lhs, data, rhs.indices, dimension_numbers=numbers,
                                  preferred_element_type=kind, rhs_spinfo=rhs._info)
    return lax.dot_general(lhs, rhs, dimension_numbers=numbers, precision=precision,
                           preferred_element_type=kind)


def _bcoo_dot_general(lhs_data: Any, lhs_indices: Any, rhs: Any, *, dimension_numbers: Any,
                      preferred_element_type: Any, lhs_spinfo: SparseInfo) -> Array:
    numbers = _numbers(dimension_numbers)
    (contract, _), (batch, _) = numbers
    _dot_general_validated_shape(lhs_spinfo.shape, jnp.shape(rhs), numbers)
    n_batch, n_sparse, _, _ = validated(lhs_data, lhs_indices, lhs_spinfo.shape)
    if any(axis >= n_batch for axis in batch):
        raise NotImplementedError(
            "bcoo_dot_general batch dimensions must be among the batch dimensions in the sparse "
            f"representation.\ngot lhs_batch={batch}, n_batch={n_batch}")
    if any(axis >= n_batch + n_sparse for axis in contract):
        raise NotImplementedError("bcoo_dot_general: contracting over dense dimensions.")
    return bcoo_dot_general_p.bind(
        lhs_data, lhs_indices, rhs, dimension_numbers=numbers,
        preferred_element_type=_dtype(preferred_element_type), lhs_spinfo=lhs_spinfo)


def _dtype(kind: Any) -> Any:
    return None if kind is None else np.dtype(kind)


def _dot(data: Any, indices: Any, rhs: Any, *, dimension_numbers: Any,
         preferred_element_type: Any, lhs_spinfo: SparseInfo) -> Any:
    """Each stored element times the part of ``rhs`` that it meets, added to where it belongs."""
    shape = lhs_spinfo.shape
    n_batch, n_sparse, n_dense, _ = validated(data, indices, shape)
    (contract, rhs_contract), (batch, rhs_batch) = dimension_numbers
    dtype = preferred_element_type or jnp.result_type(data, rhs)
    places = coordinates(indices, shape)
    rhs_free = _free(rhs.ndim, rhs_contract, rhs_batch)
    met = rhs.transpose(*rhs_batch, *rhs_contract, *rhs_free)
    where = tuple([places[axis] for axis in (*batch, *contract)])
    if where:
        met = met.at[where].get(mode="clip")
    # Now its leading dimensions are those of ``batch + (nse,)``; what is missing is 1.
    lead = met.ndim - len(rhs_free)
    met = met.reshape(*(1,) * (n_batch + 1 - lead), *met.shape[:lead], *(1,) * n_dense,
                      *[rhs.shape[axis] for axis in rhs_free])
    if n_sparse:
        inside = in_bounds(indices, shape)
        full = jnp.broadcast_shapes(inside.shape[:n_batch], data.shape[:n_batch])
        data = jnp.broadcast_to(data, (*full, *data.shape[n_batch:]))
        data = masked(data, jnp.broadcast_to(inside, (*full, inside.shape[-1])))
    terms = data.reshape(*data.shape, *(1,) * len(rhs_free)).astype(dtype) * met.astype(dtype)
    free = [axis for axis in _free(len(shape), contract, batch) if axis < n_batch + n_sparse]
    target = tuple([places[axis] for axis in (*batch, *free)])
    sizes = [shape[axis] for axis in (*batch, *free)]
    full = jnp.broadcast_shapes(terms.shape[:n_batch + 1], (*shape[:n_batch], 1))
    rest = terms.shape[n_batch + 1:]
    terms = jnp.broadcast_to(terms, (*full, *rest))
    if not target:
        return jnp.sum(terms, tuple(range(n_batch + 1)), dtype=dtype)
    target = tuple([jnp.broadcast_to(place, full) for place in target])
    return jnp.zeros((*sizes, *rest), dtype).at[target].add(terms, mode="drop")


def _bcoo_rdot_general(lhs: Any, rhs_data: Any, rhs_indices: Any, *, dimension_numbers: Any,
                       preferred_element_type: Any, rhs_spinfo: SparseInfo) -> Array:
    """The product with the sparse array on the right: that of the two exchanged, transposed."""
    contract, batch = _numbers(dimension_numbers)
    _dot_general_validated_shape(jnp.shape(lhs), rhs_spinfo.shape, (contract, batch))
    result = _bcoo_dot_general(
        rhs_data, rhs_indices, lhs, dimension_numbers=(contract[::-1], batch[::-1]),
        preferred_element_type=preferred_element_type, lhs_spinfo=rhs_spinfo)
    shared = len(batch[0])
    others = len(rhs_spinfo.shape) - shared - len(contract[1])
    return result.transpose(*range(shared), *range(shared + others, result.ndim),
                            *range(shared, shared + others))


def _bcoo_spdot_general(lhs_data: Any, lhs_indices: Any, rhs_data: Any, rhs_indices: Any, *,
                        lhs_spinfo: SparseInfo, rhs_spinfo: SparseInfo, dimension_numbers: Any,
                        preferred_element_type: Any) -> tuple[Any, Any]:
    (contract, rhs_contract), (batch, rhs_batch) = _numbers(dimension_numbers)
    lhs = validated(lhs_data, lhs_indices, lhs_spinfo.shape)
    rhs = validated(rhs_data, rhs_indices, rhs_spinfo.shape)
    if lhs.n_dense or rhs.n_dense:
        raise NotImplementedError("bcoo_spdot_general: dense dimensions.")
    if any(axis >= lhs.n_batch for axis in batch) or any(
            axis >= rhs.n_batch for axis in rhs_batch):
        raise NotImplementedError("bcoo_spdot_general: batch_dims must correspond to batch "
                                  "dimensions of the sparse representation.")
    if any(axis < lhs.n_batch for axis in contract) or any(
            axis < rhs.n_batch for axis in rhs_contract):
        raise NotImplementedError("bcoo_spdot_general: contracting over batch dimensions.")
    if rhs.n_batch > len(rhs_batch) and lhs.n_sparse > len(contract):
        raise ValueError("bcoo_spdot_general: cannot have unused batch dims on rhs with unused "
                         "sparse dims on lhs.")
    return tuple(bcoo_spdot_general_p.bind(
        lhs_data, lhs_indices, rhs_data, rhs_indices, lhs_spinfo=lhs_spinfo,
        rhs_spinfo=rhs_spinfo, dimension_numbers=_numbers(dimension_numbers),
        preferred_element_type=_dtype(preferred_element_type)))


def _spdot(lhs_data: Any, lhs_indices: Any, rhs_data: Any, rhs_indices: Any, *,
           lhs_spinfo: SparseInfo, rhs_spinfo: SparseInfo, dimension_numbers: Any,
           preferred_element_type: Any) -> tuple[Any, Any]:
    """Every pair of stored elements whose contracted coordinates agree."""
    (contract, rhs_contract), (batch, rhs_batch) = dimension_numbers
    lhs = whole(BCOO((lhs_data, lhs_indices), shape=lhs_spinfo.shape))
    rhs = whole(BCOO((rhs_data, rhs_indices), shape=rhs_spinfo.shape))
    dtype = preferred_element_type or jnp.result_type(lhs_data, rhs_data)
    left_only, right_only = (_free(x.n_batch, axes) for x, axes in (
        (lhs, batch), (rhs, rhs_batch)))
    shared = len(batch)

    def arranged(buffer: Any, first: Sequence[int], own: Sequence[int], is_left: bool) -> Any:
        """Batch dimensions: the shared ones, those of the left alone, those of the right alone."""
        buffer = buffer.transpose(*first, *own, *range(len(first) + len(own), buffer.ndim))
        new = range(shared + len(own), shared + len(own) + len(right_only)) if is_left \
            else range(shared, shared + len(left_only))
        return jnp.expand_dims(buffer, tuple(new))

    left, left_at = (arranged(x, batch, left_only, True) for x in (lhs.data, lhs.indices))
    right, right_at = (arranged(x, rhs_batch, right_only, False) for x in (rhs.data, rhs.indices))
    left_inside = arranged(in_bounds(lhs.indices, lhs.shape), batch, left_only, True)
    right_inside = arranged(in_bounds(rhs.indices, rhs.shape), rhs_batch, right_only, False)
    met = left_inside[..., :, None] & right_inside[..., None, :]
    for a, b in zip(contract, rhs_contract, strict=True):
        met = met & (left_at[..., :, None, a - lhs.n_batch] ==
                     right_at[..., None, :, b - rhs.n_batch])
    product = left.astype(dtype)[..., :, None] * right.astype(dtype)[..., None, :]
    lead, pairs = met.shape[:-2], lhs.nse * rhs.nse
    data = jnp.where(met, product, jnp.zeros((), dtype)).reshape(*lead, pairs)
    left_free = [axis for axis in range(lhs.n_batch, lhs.ndim) if axis not in contract]
    right_free = [axis for axis in range(rhs.n_batch, rhs.ndim) if axis not in rhs_contract]
    columns = [*[left_at[..., :, None, axis - lhs.n_batch] for axis in left_free],
               *[right_at[..., None, :, axis - rhs.n_batch] for axis in right_free]]
    sparse = (*[lhs.shape[axis] for axis in left_free], *[rhs.shape[axis] for axis in right_free])
    shape = (*lead, *sparse)
    if columns:
        indices = jnp.stack([jnp.broadcast_to(column, met.shape) for column in columns], -1)
        indices = padded(indices.reshape(*lead, pairs, len(columns)),
                         met.reshape(*lead, pairs), shape)
    else:
        indices = jnp.zeros((*lead, pairs, 0), lhs.indices.dtype)
    most = math.prod(sparse)
    if pairs > most:
        made = bcoo_sum_duplicates(BCOO((data, indices), shape=shape), most)
        return made.data, made.indices
    return data, indices


def bcoo_dot_general_sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Array:
    """The elements of a dense product at the coordinates of a BCOO array.

    Args:
      indices: of shape ``batch + (nse, n_sparse)``.

    >>> from maxjax.experimental import sparse
    >>> x = jnp.array([[1., 2.], [3., 4.]])
    >>> sparse.bcoo_dot_general_sampled(
    ...     x, x, jnp.array([[0, 1]]), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([10.], dtype=float32)
    """
    return bcoo_dot_general_sampled_p.bind(A, B, indices,
                                           dimension_numbers=_numbers(dimension_numbers))


def _sampled(A: Any, B: Any, indices: Any, *, dimension_numbers: Any) -> Any:
    contract, batch = dimension_numbers
    shape = _dot_general_validated_shape(A.shape, B.shape, dimension_numbers)
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    if n_batch + n_sparse < len(shape):     # whole rows of the product are wanted
        return extract(indices, lax.dot_general(A, B, dimension_numbers), assume_unique=True)
    places = coordinates(indices, shape)
    shared = len(batch[0])
    used = shared
    rows = []
    for x, contracted, batched in zip((A, B), contract, batch, strict=True):
        free = _free(x.ndim, contracted, batched)
        where = (*places[:shared], *places[used:used + len(free)])
        used += len(free)
        x = x.transpose(*batched, *free, *contracted)
        row = x.at[where].get(mode="clip") if where else x
        lead = row.ndim - len(contracted)
        rows.append(row.reshape(*(1,) * (n_batch + 1 - lead), *row.shape))
    axes = tuple(range(n_batch + 1, n_batch + 1 + len(contract[0])))
    values = jnp.sum(rows[0] * rows[1], axes, dtype=jnp.result_type(A, B))
    full = (*shape[:n_batch], indices.shape[-2])
    inside = jnp.broadcast_to(in_bounds(indices, shape), full)
    return masked(jnp.broadcast_to(values, full), inside)


bcoo_dot_general_p = sparse_primitive("bcoo_dot_general", _dot)
bcoo_spdot_general_p = sparse_primitive("bcoo_spdot_general", _spdot, several=True)
bcoo_dot_general_sampled_p = sparse_primitive("bcoo_dot_general_sampled", _sampled)


# --- matmul ---------------------------------------------------------------------------------------

def _letters(a: Any, b: Any) -> tuple[str, str, str]:
    lead = string.ascii_uppercase[:max(a.ndim, b.ndim) - 2] if max(a.ndim, b.ndim) > 2 else ""
    if a.ndim == 1:
        right = "k" if b.ndim == 1 else f"{lead}kz"
        return "k", right, right.replace("k", "")
    left = lead[len(lead) - (a.ndim - 2):] + "yk"
    if b.ndim == 1:
        return left, "k", left[:-1]
    return left, f"{lead[len(lead) - (b.ndim - 2):]}kz", f"{lead}yz"


def matmul(a: Any, b: Any) -> Any:
    """``a @ b``, where one or both are BCOO arrays."""
    a, b = (x if isinstance(x, JAXSparse) else jnp.asarray(x) for x in (a, b))
    for position, x in enumerate((a, b)):
        if not x.ndim:
            raise ValueError(f"matmul input operand {position} must have ndim at least 1, but it "
                             "has ndim 0")
    left, right, out = _letters(a, b)
    shared = [x for x in left if x in right and x != "k"]
    for letter in shared:      # a batch of one goes with each of many
        one, other = a.shape[left.index(letter)], b.shape[right.index(letter)]
        if one != other and 1 in (one, other):
            if one == 1:
                a = _squeezed(a, left.index(letter))
                left = left.replace(letter, "")
            else:
                b = _squeezed(b, right.index(letter))
                right = right.replace(letter, "")
    shared = [x for x in left if x in right and x != "k"]
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


def _squeezed(x: Any, axis: int) -> Any:
    return bcoo_squeeze(x, dimensions=(axis,)) if isinstance(x, BCOO) else jnp.squeeze(x, axis)


# --- convolutions ---------------------------------------------------------------------------------

def bcoo_conv_general_dilated(lhs: Any, rhs: Any, *, window_strides: Any, padding: Any,
                              lhs_dilation: Any = None, rhs_dilation: Any = None,
                              dimension_numbers: Any = None, feature_group_count: int = 1,
                              batch_group_count: int = 1, precision: Any = None,
                              preferred_element_type: Any = None, out_sharding: Any = None
                              ) -> BCOO:
    """``jax.lax.conv_general_dilated`` of one-dimensional arrays, one of them or both sparse, with
    one batch and one feature, strides and dilations of 1.

    >>> from maxjax.experimental import sparse
    >>> a = sparse.BCOO.fromdense(jnp.array([[[0., 5., 0.]]]))
    >>> b = sparse.BCOO.fromdense(jnp.array([[[1., 2.]]]))
    >>> sparse.bcoo_conv_general_dilated(
    ...     a, b, window_strides=(1,), padding="VALID").todense()
    Array([[[10.,  5.]]], dtype=float32)
    """
    for name, value, plain in (("window_strides", window_strides, 1),
                               ("lhs_dilation", lhs_dilation, 1),
                               ("rhs_dilation", rhs_dilation, 1)):
        if value is not None and any(x != plain for x in np.ravel(value)):
            raise NotImplementedError(f"bcoo convolution with non-unit {name}.")
    if dimension_numbers is not None:
        raise NotImplementedError("bcoo convolution with non-default dimension_numbers.")
    if feature_group_count != 1 or batch_group_count != 1:
        raise NotImplementedError("bcoo convolution with non-unit group counts.")
    if lhs.ndim != 3 or rhs.ndim != 3:
        raise NotImplementedError("bcoo convolution is only implemented for one-dimensional arrays")

    def flat(x: Any) -> BCOO:
        mat = x if isinstance(x, BCOO) else bcoo_fromdense(x, nse=x.size, n_batch=0)
        return bcoo_squeeze(bcoo_update_layout(mat, n_batch=0, n_dense=0), dimensions=(0, 1))

    left, right = flat(lhs), flat(rhs)
    n, m = left.shape[0], right.shape[0]
    if isinstance(padding, str):
        pads = lax.padtype_to_pads((n,), (m,), (1,), padding)
    else:
        pads = padding
    (low, high), = [tuple(map(operator.index, pad)) for pad in pads]
    size = max(n + low + high - m + 1, 0)
    a, b = promoted(left.data, right.data)
    with relaxed():
        places = left.indices[:, None, 0] - right.indices[None, :, 0] + low
        inside = (in_bounds(left.indices, left.shape)[:, None]
                  & in_bounds(right.indices, right.shape)[None] & (places >= 0) & (places < size))
        data = jnp.where(inside, a[:, None] * b[None], jnp.zeros((), a.dtype)).reshape(-1)
        indices = jnp.where(inside, places, size).reshape(-1, 1)
    made = BCOO((data, indices.astype(left.indices.dtype)), shape=(size,))
    if made.nse > size:
        made = bcoo_sum_duplicates(made, size)
    return bcoo_broadcast_in_dim(made, shape=(1, 1, size), broadcast_dimensions=(2,))
