"""BCSR: compressed rows, with batch and dense dimensions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax import lax
from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax._transforms.vmap import containers
from maxjax.experimental.sparse import _bcoo_array, _bcoo_buffers, _bcoo_products, _bcoo_shape
from maxjax.experimental.sparse._base import JAXSparse, check_mapped_axis, shape_of_rank
from maxjax.experimental.sparse._bcoo_array import BCOO
from maxjax.experimental.sparse._primitives import sparse_primitive
from maxjax.experimental.sparse.util import (
    SparseInfo,
    _count_stored_elements,
    _dot_general_validated_shape,
    promoted,
    row_starts,
    static_nse,
    stored_rows,
)
from maxjax.tree_util import register_pytree_node_class


class BCSRProperties(NamedTuple):
    """How many batch and dense dimensions there are, and stored elements."""

    n_batch: int
    n_dense: int
    nse: int


def validated(data: Any, indices: Any, indptr: Any, shape: Sequence[int]) -> BCSRProperties:
    """The properties of buffers.

    Raises:
      ValueError: they do not make an array of the shape.
    """
    assert np.issubdtype(indices.dtype, np.integer), (
        f"BCSR needs integer indices, got {indices.dtype}")
    assert np.issubdtype(indptr.dtype, np.integer), (
        f"BCSR needs an integer indptr, got {indptr.dtype}")
    shape = tuple(shape)
    nse, n_batch = indices.shape[-1], len(indices.shape) - 1
    n_dense = len(shape) - n_batch - 2
    assert n_dense >= 0, f"indices of shape {indices.shape} have more dimensions than {shape}"
    for name, buffer in (("data", data), ("indices", indices), ("indptr", indptr)):
        sizes = tuple(buffer.shape[:n_batch])
        if len(sizes) != n_batch or any(
                size not in (1, all_) for size, all_ in zip(sizes, shape, strict=False)):
            raise ValueError(f"{name} batch dimensions not compatible for "
                             f"{name}.shape={tuple(buffer.shape)}, shape={shape}")
    if tuple(data.shape[n_batch:]) != (nse, *shape[n_batch + 2:]):
        raise ValueError(f"Invalid data.shape={tuple(data.shape)} for nse={nse}, "
                         f"n_batch={n_batch}, n_dense={n_dense}")
    if tuple(indptr.shape[n_batch:]) != (shape[n_batch] + 1,):
        raise ValueError("indptr shape must match the matrix shape plus 1.")
    return BCSRProperties(n_batch, n_dense, nse)


@register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse array as compressed rows, with batch and dense dimensions.

    Args:
      args: data of shape ``batch + (nse,) + dense``, column indices ``batch + (nse,)`` and the
        start of each row ``batch + (rows + 1,)``.
      shape: ``batch + (rows, columns) + dense``.
      indices_sorted: whether the columns of each row are sorted.
      unique_indices: whether they are unique.

    Raises:
      ValueError: the buffers do not make an array of the shape.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m.indptr, m @ jnp.ones(2)
    (Array([0, 1, 2], dtype=int32), Array([2., 3.], dtype=float32))
    """

    dtype = property(lambda self: self.data.dtype)
    nse = property(lambda self: self.indices.shape[-1])
    n_batch = property(lambda self: self.indices.ndim - 1)
    n_sparse = property(lambda self: 2)
    n_dense = property(lambda self: self.data.ndim - 1 - self.n_batch)
    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))
    _batch = 0

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int],
                 indices_sorted: bool = False, unique_indices: bool = False):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        super().__init__(args, shape=shape)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        validated(self.data, self.indices, self.indptr, self.shape)

    def _layout_text(self) -> str:
        validated(self.data, self.indices, self.indptr, self.shape)
        text = f", n_batch={self.n_batch}" if self.n_batch else ""
        return text + (f", n_dense={self.n_dense}" if self.n_dense else "")

    def tree_flatten(self) -> tuple[Any, Any]:
        batch = self.n_batch if hasattr(self.indices, "ndim") else self._batch
        return (self.data, self.indices, self.indptr), (*self._info, batch)

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> BCSR:
        made = object.__new__(cls)
        made.data, made.indices, made.indptr = children
        shape, made.indices_sorted, made.unique_indices, batch = aux_data
        now = getattr(made.indices, "ndim", None)
        if now is not None and now - 1 != batch and hasattr(made.data, "ndim"):
            shape = shape_of_rank("BCSR", shape, batch, now - 1, children)
        made.shape = shape
        made._batch = batch     # for children that are not arrays
        return made

    # --- making them ---
    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32,
                  n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """From an array's nonzero elements: see ``bcsr_fromdense``."""
        return bcsr_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense,
                              n_batch=n_batch)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """From a list of coordinates with two sparse dimensions."""
        if arr.n_sparse != 2:
            raise NotImplementedError("BSCR.from_bcoo requires n_sparse=2; got "
                                      f"arr.n_sparse={arr.n_sparse}")
        if not arr.indices_sorted:
            arr = arr.sort_indices()
        indices, indptr = _bcoo_to_bcsr(arr.indices, shape=arr.shape,
                                        index_dtype=arr.indices.dtype)
        return cls((arr.data, indices, indptr), shape=arr.shape, indices_sorted=True,
                   unique_indices=arr.unique_indices)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0,
                          n_batch: int = 0) -> BCSR:
        """From a SciPy sparse matrix."""
        if n_dense or n_batch:
            raise NotImplementedError("BCSR from_scipy_sparse with nonzero n_dense/n_batch.")
        mat = mat.tocsr()
        kind = index_dtype or np.int32
        return cls((mat.data, mat.indices.astype(kind), mat.indptr.astype(kind)), shape=mat.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32",
               n_dense: int = 0, n_batch: int = 0, nse: int = 0) -> BCSR:
        shape = tuple(map(operator.index, shape))
        if n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(f"Invalid inputs: shape={shape}, n_dense={n_dense}, "
                             f"n_batch={n_batch}, nse={nse}")
        if len(shape) - n_dense - n_batch != 2:
            raise ValueError("BCSR sparse.empty: must have 2 sparse dimensions.")
        batch, (rows, columns), dense = shape[:n_batch], shape[n_batch:n_batch + 2], shape[
            n_batch + 2:]
        return cls((jnp.zeros((*batch, nse, *dense), dtype),
                    jnp.full((*batch, nse), columns, index_dtype),
                    jnp.zeros((*batch, rows + 1), index_dtype)), shape=shape,
                   indices_sorted=True, unique_indices=True)

    # --- what becomes of them ---
    def to_bcoo(self) -> BCOO:
        """The array as a ``BCOO``, with a pair of coordinates for each element."""
        return BCOO((self.data, _bcsr_to_bcoo(self.indices, self.indptr, shape=self.shape)),
                    shape=self.shape, indices_sorted=self.indices_sorted,
                    unique_indices=self.unique_indices)

    def todense(self) -> Array:
        """The dense array."""
        return bcsr_todense(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Each coordinate once, in order; without zeros if ``remove_zeros``."""
        return BCSR.from_bcoo(self.to_bcoo().sum_duplicates(nse, remove_zeros))

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """Not implemented, as in JAX."""
        raise NotImplementedError("Transpose is not implemented.")

    def __matmul__(self, other: Any) -> Any:
        return _matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _matmul(other, self)


containers[BCSR] = check_mapped_axis


def _matmul(lhs: Any, rhs: Any) -> Any:
    a, b = (x if isinstance(x, JAXSparse) else jnp.asarray(x) for x in (lhs, rhs))
    if a.ndim and b.ndim and a.shape[-1] != b.shape[max(b.ndim - 2, 0)]:
        raise TypeError("dot_general requires contracting dimensions to have the same shape, got "
                        f"{(a.shape[-1],)} and {(b.shape[max(b.ndim - 2, 0)],)}.")
    if not isinstance(a, BCSR) or isinstance(b, JAXSparse):
        raise NotImplementedError("bcsr_dot_general currently implemented for BCSR lhs and ndarray "
                                  "rhs.")
    return _bcoo_products.matmul(a.to_bcoo(), b)


# --- conversions ----------------------------------------------------------------------------------

def _bcsr_to_bcoo(indices: Any, indptr: Any, *, shape: Sequence[int]) -> Array:
    return _coordinates(jnp.asarray(indices), jnp.asarray(indptr))


def _coordinates(indices: Any, indptr: Any) -> Any:
    batch = np.broadcast_shapes(indices.shape[:-1], indptr.shape[:-1])
    indices = jnp.broadcast_to(indices, (*batch, indices.shape[-1]))
    indptr = jnp.broadcast_to(indptr, (*batch, indptr.shape[-1]))
    return jnp.stack([stored_rows(indices, indptr), indices], -1)


def _bcoo_to_bcsr(indices: Any, *, shape: Sequence[int],
                  index_dtype: Any = np.int32) -> tuple[Any, Any]:
    """Columns and the starts of rows, from sorted coordinates."""
    rows = jnp.minimum(indices[..., 0], shape[indices.ndim - 2])
    indptr = row_starts(rows, shape[indices.ndim - 2], np.dtype(index_dtype))
    return indices[..., 1].astype(index_dtype), indptr


def bcsr_todense(mat: BCSR) -> Array:
    """The dense array.

    >>> from maxjax.experimental import sparse
    >>> sparse.bcsr_todense(sparse.bcsr_fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return bcsr_todense_p.bind(*mat._bufs, spinfo=mat._info)


def _todense(data: Any, indices: Any, indptr: Any, *, spinfo: SparseInfo) -> Any:
    return _bcoo_buffers.todense(data, _coordinates(indices, indptr), spinfo=spinfo)


def bcsr_fromdense(mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: Any = np.int32) -> BCSR:
    """An array's nonzero elements as compressed rows: see ``bcoo_fromdense``.

    Raises:
      ValueError: there are not two sparse dimensions.

    >>> from maxjax.experimental import sparse
    >>> sparse.bcsr_fromdense(jnp.eye(2)).indices
    Array([0, 1], dtype=int32)
    """
    mat = jnp.asarray(mat)
    _check_rank(mat.ndim, n_batch, n_dense)
    count = _count_stored_elements(mat, n_batch, n_dense) if nse is None else nse
    buffers = _bcsr_fromdense(mat, nse=count, n_batch=n_batch, n_dense=n_dense,
                              index_dtype=index_dtype)
    return BCSR(buffers, shape=mat.shape, indices_sorted=True, unique_indices=True)


def _check_rank(ndim: int, n_batch: int, n_dense: int) -> None:
    if ndim - n_batch - n_dense != 2:
        raise ValueError("bcsr_fromdense: must have 2 sparse dimensions.")


def _bcsr_fromdense(mat: Any, *, nse: Any, n_batch: int = 0, n_dense: int = 0,
                    index_dtype: Any = np.int32) -> tuple[Any, Any, Any]:
    count = static_nse(nse, "bcsr_fromdense", "BCSR.fromdense()")
    _check_rank(jnp.ndim(mat), n_batch, n_dense)
    return tuple(bcsr_fromdense_p.bind(mat, nse=count, n_batch=n_batch, n_dense=n_dense,
                                       index_dtype=np.dtype(index_dtype)))


def _fromdense(mat: Any, *, nse: int, n_batch: int, n_dense: int,
               index_dtype: Any) -> tuple[Any, Any, Any]:
    data, indices = _bcoo_buffers.fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense,
                                            index_dtype=index_dtype)
    return (data, *_bcoo_to_bcsr(indices, shape=mat.shape, index_dtype=index_dtype))


def bcsr_extract(indices: Any, indptr: Any, mat: Any) -> Array:
    """The elements of a dense array at compressed rows.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCSR.fromdense(jnp.eye(2))
    >>> sparse.bcsr_extract(m.indices, m.indptr, jnp.array([[1., 2.], [3., 4.]]))
    Array([1., 4.], dtype=float32)
    """
    return bcsr_extract_p.bind(indices, indptr, mat)


def _extract(indices: Any, indptr: Any, mat: Any) -> Any:
    return _bcoo_buffers.extract(_coordinates(indices, indptr), mat, assume_unique=True)


# --- operations -----------------------------------------------------------------------------------

def bcsr_dot_general(lhs: Any, rhs: Any, *, dimension_numbers: Any, precision: None = None,
                     preferred_element_type: None = None, out_sharding: Any = None) -> Array:
    """``jax.lax.dot_general`` of compressed rows and a dense array.

    Raises:
      NotImplementedError: the second operand is sparse.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCSR.fromdense(jnp.array([[0., 5.], [6., 0.]]))
    >>> sparse.bcsr_dot_general(m, jnp.ones(2), dimension_numbers=(((1,), (0,)), ((), ())))
    Array([5., 6.], dtype=float32)
    """
    if isinstance(rhs, JAXSparse) or (isinstance(lhs, JAXSparse) and not isinstance(lhs, BCSR)):
        raise NotImplementedError("bcsr_dot_general currently implemented for BCSR lhs and ndarray "
                                  "rhs.")
    numbers = _bcoo_products._numbers(dimension_numbers)
    if not isinstance(lhs, BCSR):
        return lax.dot_general(lhs, rhs, dimension_numbers=numbers, precision=precision,
                               preferred_element_type=preferred_element_type)
    data, rhs = promoted(lhs.data, jnp.asarray(rhs))
    _dot_general_validated_shape(lhs.shape, rhs.shape, numbers)
    if any(axis >= lhs.n_batch for axis in numbers[1][0]):
        raise NotImplementedError(
            "bcsr_dot_general batch dimensions must be among the batch dimensions in the sparse "
            f"representation.\ngot lhs_batch={numbers[1][0]}, n_batch={lhs.n_batch}")
    if any(axis >= lhs.n_batch + 2 for axis in numbers[0][0]):
        raise NotImplementedError("bcsr_dot_general: contracting over dense dimensions.")
    return bcsr_dot_general_p.bind(
        data, lhs.indices, lhs.indptr, rhs, dimension_numbers=numbers,
        preferred_element_type=_bcoo_products._dtype(preferred_element_type), lhs_spinfo=lhs._info)


def _dot(data: Any, indices: Any, indptr: Any, rhs: Any, *, dimension_numbers: Any,
         preferred_element_type: Any, lhs_spinfo: SparseInfo) -> Any:
    return _bcoo_products._dot(data, _coordinates(indices, indptr), rhs,
                               dimension_numbers=dimension_numbers,
                               preferred_element_type=preferred_element_type,
                               lhs_spinfo=lhs_spinfo)


def bcsr_broadcast_in_dim(mat: BCSR, *, shape: Sequence[int],
                          broadcast_dimensions: Sequence[int], sharding: Any = None) -> BCSR:
    """The array with new batch dimensions: see ``bcoo_broadcast_in_dim``.

    >>> from maxjax.experimental import sparse
    >>> sparse.bcsr_broadcast_in_dim(
    ...     sparse.BCSR.fromdense(jnp.eye(2)), shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCSR(float32[3, 2, 2], nse=2, n_batch=1)
    """
    return BCSR.from_bcoo(_bcoo_shape.bcoo_broadcast_in_dim(
        mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions))


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """Several arrays concatenated along a batch or sparse dimension.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCSR.fromdense(jnp.eye(2))
    >>> sparse.bcsr_concatenate([m, m], dimension=0)
    BCSR(float32[4, 2], nse=4)
    """
    return BCSR.from_bcoo(_bcoo_shape.bcoo_concatenate(
        [mat.to_bcoo() for mat in operands], dimension=dimension))


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """A copy of the array with each coordinate once, in order, and the sums of their values.

    >>> from maxjax.experimental import sparse
    >>> sparse.bcsr_sum_duplicates(sparse.BCSR.fromdense(jnp.eye(2)), nse=3)
    BCSR(float32[2, 2], nse=3)
    """
    return BCSR.from_bcoo(_bcoo_array.bcoo_sum_duplicates(mat.to_bcoo(), nse))


bcsr_todense_p = sparse_primitive("bcsr_todense", _todense)
bcsr_fromdense_p = sparse_primitive("bcsr_fromdense", _fromdense, several=True)
bcsr_extract_p = sparse_primitive("bcsr_extract", _extract)
bcsr_dot_general_p = sparse_primitive("bcsr_dot_general", _dot)
