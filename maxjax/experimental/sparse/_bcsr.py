"""Matrices as compressed rows: minimal support, through BCOO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.experimental.sparse import _ops
from maxjax.experimental.sparse._bcoo import BCOO, JAXSparse, bcoo_fromdense
from maxjax.tree_util import register_pytree_node_class


@register_pytree_node_class
class BCSR(JAXSparse):
    """A sparse matrix as compressed rows, without batch or dense dimensions.

    Args:
      args: data (nse,), column indices (nse,) and the start of each row (rows + 1,).
      shape: (rows, columns).

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m.indptr, m @ jnp.ones(2)
    (Array([0, 1, 2], dtype=int32), Array([2., 3.], dtype=float32))
    """

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int],
                 indices_sorted: bool = False, unique_indices: bool = False):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        super().__init__(args, shape=shape)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        if self.ndim != 2 or self.data.ndim != 1 or self.indices.ndim != 1:
            raise NotImplementedError("BCSR of rank other than 2, or with batch or dense "
                                      "dimensions")
        if self.indptr.shape != (self.shape[0] + 1,) or self.indices.shape != self.data.shape:
            raise ValueError(
                f"Invalid BCSR: data {self.data.shape}, indices {self.indices.shape} and indptr "
                f"{self.indptr.shape} do not make a matrix of shape {self.shape}")

    n_batch = 0
    n_sparse = 2
    n_dense = 0

    @property
    def nse(self) -> int:
        """How many elements are stored, padding included."""
        return self.indices.shape[0]

    def tree_flatten(self) -> tuple[Any, Any]:
        return (self.data, self.indices, self.indptr), (
            self.shape, self.indices_sorted, self.unique_indices)

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> BCSR:
        made = object.__new__(cls)
        made.data, made.indices, made.indptr = children
        made.shape, made.indices_sorted, made.unique_indices = aux_data
        return made

    def _like(self, data: Any) -> BCSR:
        return BCSR((data, self.indices, self.indptr), shape=self.shape,
                    indices_sorted=self.indices_sorted, unique_indices=self.unique_indices)

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32,
                  n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """From a matrix's nonzero elements."""
        return cls.from_bcoo(bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype,
                                            n_dense=n_dense, n_batch=n_batch))

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """From a list of coordinates."""
        if arr.ndim != 2 or arr.n_sparse != 2:
            raise NotImplementedError(f"BCSR.from_bcoo requires two sparse dimensions, got {arr}")
        if not arr.indices_sorted:
            arr = _ops.bcoo_sort_indices(arr)
        counts = jnp.zeros(arr.shape[0], arr.indices.dtype).at[arr.indices[:, 0]].add(
            1, mode="drop")
        indptr = jnp.concatenate([jnp.zeros(1, counts.dtype), jnp.cumsum(counts)])
        return cls((arr.data, arr.indices[:, 1], indptr.astype(counts.dtype)), shape=arr.shape,
                   indices_sorted=True, unique_indices=arr.unique_indices)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0,
                          n_batch: int = 0) -> BCSR:
        """From a SciPy sparse matrix."""
        if n_dense or n_batch:
            raise NotImplementedError("BCSR from SciPy with nonzero n_dense/n_batch")
        mat = mat.tocsr()
        kind = index_dtype or np.int32
        return cls((mat.data, mat.indices.astype(kind), mat.indptr.astype(kind)), shape=mat.shape)

    def to_bcoo(self) -> BCOO:
        """The same as a list of coordinates."""
        place = jnp.arange(self.nse, dtype=self.indptr.dtype)
        rows = jnp.searchsorted(self.indptr, place, side="right").astype(self.indptr.dtype) - 1
        return BCOO((self.data, jnp.stack([rows, self.indices], -1)), shape=self.shape,
                    indices_sorted=self.indices_sorted, unique_indices=self.unique_indices)

    def todense(self) -> Array:
        """The dense matrix."""
        return self.to_bcoo().todense()

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """Each coordinate once, in order; without zeros if ``remove_zeros``."""
        return BCSR.from_bcoo(_ops.sum_duplicates(self.to_bcoo(), nse, remove_zeros))

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """Not implemented, as in JAX."""
        raise NotImplementedError("Transpose is not implemented.")

    def __matmul__(self, other: Any) -> Any:
        return _ops.matmul(self.to_bcoo(), other.to_bcoo() if isinstance(other, BCSR) else other)

    def __rmatmul__(self, other: Any) -> Any:
        return _ops.matmul(other, self.to_bcoo())


def bcsr_fromdense(mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: Any = np.int32) -> BCSR:
    """A matrix's nonzero elements as compressed rows: see ``bcoo_fromdense``.

    >>> from maxjax.experimental import sparse
    >>> sparse.bcsr_fromdense(jnp.eye(2)).indices
    Array([0, 1], dtype=int32)
    """
    return BCSR.fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense, n_batch=n_batch)


def bcsr_todense(mat: BCSR) -> Array:
    """The dense matrix.

    >>> from maxjax.experimental import sparse
    >>> sparse.bcsr_todense(sparse.bcsr_fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return mat.todense()
