"""Matrices as compressed rows, and as compressed columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.experimental.sparse import coo
from maxjax.experimental.sparse._base import JAXSparse
from maxjax.experimental.sparse._primitives import sparse_primitive
from maxjax.experimental.sparse.util import (
    _count_stored_elements,
    promoted,
    row_starts,
    static_nse,
    stored_rows,
)
from maxjax.tree_util import register_pytree_node_class


class _Compressed(JAXSparse):
    """What compressed rows and columns have in common."""

    nse = property(lambda self: self.indices.size)
    dtype = property(lambda self: self.data.dtype)

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int]):
        self.data, self.indices, self.indptr = map(jnp.asarray, args)
        super().__init__(args, shape=shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None,
               index_dtype: Any = "int32") -> Any:
        shape = tuple(shape)
        if len(shape) != 2:
            raise ValueError(f"{cls.__name__} must have ndim=2; got shape={shape}")
        starts = jnp.zeros(cls._lines(shape) + 1, index_dtype)
        return cls((jnp.empty(0, dtype), jnp.empty(0, index_dtype), starts), shape=shape)

    @staticmethod
    def _lines(shape: Sequence[int]) -> int:
        raise NotImplementedError

    def tree_flatten(self) -> tuple[Any, Any]:
        return (self.data, self.indices, self.indptr), self.shape

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> Any:
        made = object.__new__(cls)
        made.data, made.indices, made.indptr = children
        made.shape = aux_data
        return made

    def _times(self, other: Any, shape: tuple[int, ...], transpose: bool) -> Any:
        if isinstance(other, JAXSparse):
            raise NotImplementedError("matmul between two sparse objects.")
        data, other = promoted(self.data, jnp.asarray(other))
        if other.ndim == 1:
            return _csr_matvec(data, self.indices, self.indptr, other, shape=shape,
                               transpose=transpose)
        if other.ndim == 2:
            return _csr_matmat(data, self.indices, self.indptr, other, shape=shape,
                               transpose=transpose)
        raise NotImplementedError(f"matmul with object of shape {other.shape}")


@register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix as compressed rows; BCSR can more.

    Args:
      args: data (nse,), column indices (nse,) and the start of each row (rows + 1,).
      shape: (rows, columns).

    >>> from maxjax.experimental import sparse
    >>> m = sparse.CSR.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m.indptr, m @ jnp.ones(2)
    (Array([0, 1, 2], dtype=int32), Array([2., 3.], dtype=float32))
    """

    @staticmethod
    def _lines(shape: Sequence[int]) -> int:
        return shape[0]

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
        """From a matrix's nonzero elements."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> CSR:
        mat = coo.COO._eye(N, M, k, dtype=dtype, index_dtype=index_dtype)
        return cls((mat.data, mat.col, row_starts(mat.row, N, mat.row.dtype)), shape=(N, M))

    def todense(self) -> Array:
        """The dense matrix."""
        return csr_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> CSC:
        """The transpose, as compressed columns."""
        assert axes is None, "the axes of a matrix have one other order"
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])

    def __matmul__(self, other: Any) -> Any:
        return self._times(other, self.shape, False)


@register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix as compressed columns.

    Args:
      args: data (nse,), row indices (nse,) and the start of each column (columns + 1,).
      shape: (rows, columns).

    >>> from maxjax.experimental import sparse
    >>> sparse.CSC.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]])).indices
    Array([1, 0], dtype=int32)
    """

    @staticmethod
    def _lines(shape: Sequence[int]) -> int:
        return shape[1]

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSC:
        """From a matrix's nonzero elements."""
        return csr_fromdense(jnp.asarray(mat).T, nse=nse, index_dtype=index_dtype).T

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> CSC:
        return CSR._eye(M, N, -k, dtype=dtype, index_dtype=index_dtype).T

    def todense(self) -> Array:
        """The dense matrix."""
        return csr_todense(self.T).T

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        """The transpose, as compressed rows."""
        assert axes is None, "the axes of a matrix have one other order"
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])

    def __matmul__(self, other: Any) -> Any:
        return self._times(other, self.shape[::-1], True)


# --- conversions ----------------------------------------------------------------------------------

def csr_todense(mat: CSR) -> Array:
    """The dense matrix; duplicate elements are added.

    >>> from maxjax.experimental import sparse
    >>> sparse.csr_todense(sparse.CSR.fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return _csr_todense(*mat._bufs, shape=mat.shape)


def _csr_todense(data: Any, indices: Any, indptr: Any, *, shape: Sequence[int]) -> Array:
    return csr_todense_p.bind(data, indices, indptr, shape=tuple(shape))


def _todense(data: Any, indices: Any, indptr: Any, *, shape: tuple[int, ...]) -> Any:
    return jnp.zeros(shape, data.dtype).at[stored_rows(indices, indptr), indices].add(data)


def csr_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> CSR:
    """A matrix's nonzero elements.

    Args:
      nse: how many to store; by default all of them, whose number must be known: not under jit.
      index_dtype: of columns and starts.

    >>> from maxjax.experimental import sparse
    >>> sparse.csr_fromdense(jnp.eye(2)).indptr
    Array([0, 1, 2], dtype=int32)
    """
    mat = jnp.asarray(mat)
    if nse is None:
        nse = _count_stored_elements(mat)
    count = static_nse(nse, "csr_fromdense", "CSR.fromdense()")
    return CSR(_csr_fromdense(mat, nse=count, index_dtype=index_dtype), shape=mat.shape)


def _csr_fromdense(mat: Any, *, nse: Any, index_dtype: Any = np.int32) -> tuple[Any, Any, Any]:
    mat = jnp.asarray(mat)
    assert mat.ndim == 2, "matrices have two dimensions"
    count = static_nse(nse, "csr_fromdense", "CSR.fromdense()")
    return tuple(csr_fromdense_p.bind(mat, nse=count, index_dtype=np.dtype(index_dtype)))


def _fromdense(mat: Any, *, nse: int, index_dtype: Any) -> tuple[Any, Any, Any]:
    data, row, col = coo._fromdense(mat, nse=nse, index_dtype=index_dtype)
    rows = mat.shape[0]
    there = jnp.arange(nse) < jnp.sum(mat != jnp.zeros((), mat.dtype))
    return data, col, row_starts(jnp.where(there, row, rows), rows, index_dtype)


# --- products -------------------------------------------------------------------------------------

def csr_matvec(mat: CSR, v: Any, transpose: bool = False) -> Array:
    """The product of a matrix, or its transpose, and a vector.

    >>> from maxjax.experimental import sparse
    >>> sparse.csr_matvec(sparse.CSR.fromdense(jnp.eye(2)), jnp.array([1., 2.]))
    Array([1., 2.], dtype=float32)
    """
    return _csr_matvec(*mat._bufs, v, shape=mat.shape, transpose=transpose)


def _csr_matvec(data: Any, indices: Any, indptr: Any, v: Any, *, shape: Sequence[int],
                transpose: bool = False) -> Array:
    coo._check_product(coo.COOInfo(tuple(shape)), v, 1, transpose)
    return csr_matvec_p.bind(data, indices, indptr, v, shape=tuple(shape), transpose=transpose)


def csr_matmat(mat: CSR, B: Any, *, transpose: bool = False) -> Array:
    """The product of a matrix, or its transpose, and a dense matrix.

    >>> from maxjax.experimental import sparse
    >>> sparse.csr_matmat(sparse.CSR.fromdense(jnp.eye(2)), jnp.ones((2, 1)))
    Array([[1.],
           [1.]], dtype=float32)
    """
    return _csr_matmat(*mat._bufs, B, shape=mat.shape, transpose=transpose)


def _csr_matmat(data: Any, indices: Any, indptr: Any, B: Any, *, shape: Sequence[int],
                transpose: bool = False) -> Array:
    coo._check_product(coo.COOInfo(tuple(shape)), B, 2, transpose)
    return csr_matmat_p.bind(data, indices, indptr, B, shape=tuple(shape), transpose=transpose)


def _product(data: Any, indices: Any, indptr: Any, other: Any, *, shape: tuple[int, ...],
             transpose: bool) -> Any:
    return coo._product(data, stored_rows(indices, indptr), indices, other,
                        spinfo=coo.COOInfo(shape), transpose=transpose)


csr_todense_p = sparse_primitive("csr_todense", _todense)
csr_fromdense_p = sparse_primitive("csr_fromdense", _fromdense, several=True)
csr_matvec_p = sparse_primitive("csr_matvec", _product)
csr_matmat_p = sparse_primitive("csr_matmat", _product)
