"""Matrices as lists of rows and columns."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array
from maxjax.experimental.sparse._base import JAXSparse
from maxjax.experimental.sparse._primitives import sparse_primitive
from maxjax.experimental.sparse.util import _count_stored_elements, promoted, static_nse
from maxjax.tree_util import register_pytree_node_class


class COOInfo(NamedTuple):
    """What is static about a matrix, besides the types of its buffers."""

    shape: tuple[int, ...]
    rows_sorted: bool = False
    cols_sorted: bool = False


@register_pytree_node_class
class COO(JAXSparse):
    """A sparse matrix as lists of values, rows and columns; BCOO can more.

    Args:
      args: data, row and col, each of shape (nse,).
      shape: (rows, columns).
      rows_sorted, cols_sorted: whether the elements are in the order of rows, or of columns.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.COO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m.row, m @ jnp.ones(2)
    (Array([0, 1], dtype=int32), Array([2., 3.], dtype=float32))
    """

    nse = property(lambda self: self.data.size)
    dtype = property(lambda self: self.data.dtype)
    _info = property(lambda self: COOInfo(self.shape, self._rows_sorted, self._cols_sorted))

    def __init__(self, args: tuple[Any, Any, Any], *, shape: Sequence[int],
                 rows_sorted: bool = False, cols_sorted: bool = False):
        self.data, self.row, self.col = map(jnp.asarray, args)
        self._rows_sorted = rows_sorted
        self._cols_sorted = cols_sorted
        super().__init__(args, shape=shape)

    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
        """From a matrix's nonzero elements."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None,
               index_dtype: Any = "int32") -> COO:
        shape = tuple(shape)
        if len(shape) != 2:
            raise ValueError(f"COO must have ndim=2; got shape={shape}")
        none = jnp.empty(0, index_dtype)
        return cls((jnp.empty(0, dtype), none, none), shape=shape, rows_sorted=True,
                   cols_sorted=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32") -> COO:
        first = np.arange(max(0, -k), max(min(N, M - k), max(0, -k)))
        return cls((jnp.ones(len(first), dtype), jnp.asarray(first.astype(index_dtype)),
                    jnp.asarray((first + k).astype(index_dtype))), shape=(N, M), rows_sorted=True,
                   cols_sorted=True)

    def _sort_indices(self) -> COO:
        """The elements in the order of rows, and of columns in each row."""
        order = jnp.lexsort((self.col, self.row))
        return COO((self.data[order], self.row[order], self.col[order]), shape=self.shape,
                   rows_sorted=True)

    def todense(self) -> Array:
        """The dense matrix."""
        return coo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """The transpose."""
        if axes is not None:
            raise NotImplementedError("axes argument to transpose()")
        return COO((self.data, self.col, self.row), shape=self.shape[::-1],
                   rows_sorted=self._cols_sorted, cols_sorted=self._rows_sorted)

    def tree_flatten(self) -> tuple[Any, Any]:
        return (self.data, self.row, self.col), self._info

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> COO:
        made = object.__new__(cls)
        made.data, made.row, made.col = children
        made.shape, made._rows_sorted, made._cols_sorted = aux_data
        return made

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, JAXSparse):
            raise NotImplementedError("matmul between two sparse objects.")
        other = jnp.asarray(other)
        data, other = promoted(self.data, other)
        mat = COO((data, self.row, self.col), shape=self.shape)
        if other.ndim == 1:
            return coo_matvec(mat, other)
        if other.ndim == 2:
            return coo_matmat(mat, other)
        raise NotImplementedError(f"matmul with object of shape {other.shape}")


# --- conversions ----------------------------------------------------------------------------------

def coo_todense(mat: COO) -> Array:
    """The dense matrix; duplicate elements are added.

    >>> from maxjax.experimental import sparse
    >>> sparse.coo_todense(sparse.COO.fromdense(jnp.eye(2)))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return _coo_todense(mat.data, mat.row, mat.col, spinfo=mat._info)


def _coo_todense(data: Any, row: Any, col: Any, *, spinfo: COOInfo) -> Array:
    return coo_todense_p.bind(data, row, col, spinfo=spinfo)


def _todense(data: Any, row: Any, col: Any, *, spinfo: COOInfo) -> Any:
    return jnp.zeros(spinfo.shape, data.dtype).at[row, col].add(data)


def coo_fromdense(mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32) -> COO:
    """A matrix's nonzero elements.

    Args:
      nse: how many to store; by default all of them, whose number must be known: not under jit.
      index_dtype: of rows and columns.

    >>> from maxjax.experimental import sparse
    >>> sparse.coo_fromdense(jnp.eye(2)).col
    Array([0, 1], dtype=int32)
    """
    mat = jnp.asarray(mat)
    if nse is None:
        nse = _count_stored_elements(mat)
    count = static_nse(nse, "coo_fromdense", "COO.fromdense()")
    return COO(_coo_fromdense(mat, nse=count, index_dtype=index_dtype), shape=mat.shape,
               rows_sorted=True)


def _coo_fromdense(mat: Any, *, nse: Any, index_dtype: Any = np.int32) -> tuple[Any, Any, Any]:
    mat = jnp.asarray(mat)
    assert mat.ndim == 2, "matrices have two dimensions"
    count = static_nse(nse, "coo_fromdense", "COO.fromdense()")
    return tuple(coo_fromdense_p.bind(mat, nse=count, index_dtype=np.dtype(index_dtype)))


def _fromdense(mat: Any, *, nse: int, index_dtype: Any) -> tuple[Any, Any, Any]:
    mask = mat != jnp.zeros((), mat.dtype)
    row, col = jnp.nonzero(mask, size=nse)
    there = jnp.arange(nse) < jnp.sum(mask)
    return (jnp.where(there, mat[row, col], jnp.zeros((), mat.dtype)), row.astype(index_dtype),
            col.astype(index_dtype))


# --- products -------------------------------------------------------------------------------------

def coo_matvec(mat: COO, v: Any, transpose: bool = False) -> Array:
    """The product of a matrix, or its transpose, and a vector.

    >>> from maxjax.experimental import sparse
    >>> sparse.coo_matvec(sparse.COO.fromdense(jnp.eye(2)), jnp.array([1., 2.]))
    Array([1., 2.], dtype=float32)
    """
    return _coo_matvec(*mat._bufs, v, spinfo=mat._info, transpose=transpose)


def _coo_matvec(data: Any, row: Any, col: Any, v: Any, *, spinfo: COOInfo,
                transpose: bool = False) -> Array:
    _check_product(spinfo, v, 1, transpose)
    return coo_matvec_p.bind(data, row, col, v, spinfo=spinfo, transpose=transpose)


def coo_matmat(mat: COO, B: Any, *, transpose: bool = False) -> Array:
    """The product of a matrix, or its transpose, and a dense matrix.

    >>> from maxjax.experimental import sparse
    >>> sparse.coo_matmat(sparse.COO.fromdense(jnp.eye(2)), jnp.ones((2, 1)))
    Array([[1.],
           [1.]], dtype=float32)
    """
    return _coo_matmat(*mat._bufs, B, spinfo=mat._info, transpose=transpose)


def _coo_matmat(data: Any, row: Any, col: Any, B: Any, *, spinfo: COOInfo,
                transpose: bool = False) -> Array:
    _check_product(spinfo, B, 2, transpose)
    return coo_matmat_p.bind(data, row, col, B, spinfo=spinfo, transpose=transpose)


def _check_product(spinfo: COOInfo, other: Any, ndim: int, transpose: bool) -> None:
    size = operator.index(spinfo.shape[0 if transpose else 1])
    assert jnp.ndim(other) == ndim and jnp.shape(other)[0] == size, (
        f"a matrix of shape {spinfo.shape}{' transposed' if transpose else ''} cannot be "
        f"multiplied by an array of shape {jnp.shape(other)}")


def _product(data: Any, row: Any, col: Any, other: Any, *, spinfo: COOInfo,
             transpose: bool) -> Any:
    if transpose:
        row, col = col, row
    rows = spinfo.shape[1 if transpose else 0]
    dtype = jnp.result_type(data, other)
    terms = data.astype(dtype).reshape(-1, *(1,) * (other.ndim - 1)) * other.astype(dtype)[col]
    return jnp.zeros((rows, *other.shape[1:]), dtype).at[row].add(terms)


coo_todense_p = sparse_primitive("coo_todense", _todense)
coo_fromdense_p = sparse_primitive("coo_fromdense", _fromdense, several=True)
coo_matvec_p = sparse_primitive("coo_matvec", _product)
coo_matmat_p = sparse_primitive("coo_matmat", _product)
