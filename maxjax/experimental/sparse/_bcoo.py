"""Sparse arrays as lists of coordinates, and their conversions.

A BCOO array of shape ``batch + sparse + dense`` has ``data`` of shape ``batch + (nse,) + dense``
and ``indices`` of shape ``batch + (nse, n_sparse)``. Coordinates out of bounds are padding. All
operations are composed of gathers and scatters of its data, so jit, vmap and derivatives work.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array, Tracer
from maxjax.tree_util import register_pytree_node_class


class SparseEfficiencyWarning(UserWarning):
    """An operation takes disproportionate time or memory.

    >>> issubclass(SparseEfficiencyWarning, UserWarning)
    True
    """


class SparseEfficiencyError(ValueError):
    """An operation would make a sparse array as large as a dense one.

    >>> issubclass(SparseEfficiencyError, ValueError)
    True
    """


class JAXSparse:
    """The base class of sparse arrays.

    Attributes:
      data: the stored values.
      shape: the shape of the array they represent.

    >>> from maxjax.experimental import sparse
    >>> issubclass(sparse.BCOO, sparse.JAXSparse)
    True
    """

    data: Any
    shape: tuple[int, ...]
    __hash__ = None      # type: ignore[assignment]
    # NumPy and the arrays' own operators defer ``dense @ sparse`` to this class.
    __array_priority__ = 100

    def __init__(self, args: Any, *, shape: Sequence[int]):
        self.shape = tuple(map(operator.index, shape))

    @property
    def size(self) -> int:
        """The number of elements of the array, zeros included."""
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        """Its rank."""
        return len(self.shape)

    @property
    def dtype(self) -> Any:
        """The dtype of its values."""
        return self.data.dtype

    @property
    def nse(self) -> int:
        """How many elements are stored, padding included."""
        raise NotImplementedError

    @property
    def T(self) -> Any:
        """The transpose."""
        return self.transpose()

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        """The array with its axes in another order."""
        raise NotImplementedError

    def todense(self) -> Array:
        """The dense array."""
        raise NotImplementedError

    def block_until_ready(self) -> Any:
        """Waits until the values are computed."""
        self.data.block_until_ready()
        return self

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        name = type(self).__name__
        try:
            dtype, nse, shape = self.dtype, self.nse, list(self.shape)
        except (AttributeError, IndexError, TypeError):
            return f"{name}(<invalid>)"
        extra = self._layout_text()
        text = f"{name}({dtype}{shape}, {nse=}{extra})"
        return f"{type(self.data).__name__}[{text}]" if isinstance(self.data, Tracer) else text

    def _layout_text(self) -> str:
        return ""


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array as a list of coordinates, with batch and dense dimensions.

    Args:
      args: data of shape ``batch + (nse,) + dense`` and indices ``batch + (nse, n_sparse)``.
      shape: ``batch + sparse + dense``.
      indices_sorted: whether the coordinates are sorted.
      unique_indices: whether they are unique.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m
    BCOO(float32[2, 2], nse=2)
    >>> m @ jnp.array([1.0, 10.0])
    Array([20.,  3.], dtype=float32)
    """

    def __init__(self, args: tuple[Any, Any], *, shape: Sequence[int],
                 indices_sorted: bool = False, unique_indices: bool = False):
        self.data, self.indices = map(jnp.asarray, args)
        super().__init__(args, shape=shape)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        self._check()

    _batch = 0

    def _check(self) -> None:
        if self.indices.ndim < 2 or not jnp.issubdtype(self.indices.dtype, jnp.integer):
            raise ValueError("BCOO needs integer indices of shape (..., nse, n_sparse), got "
                             f"{self.indices.aval.str_short()}")
        batch, nse, sparse = self.n_batch, self.indices.shape[-2], self.n_sparse
        if (self.data.ndim <= batch or self.data.shape[batch] != nse
                or batch + sparse + self.n_dense != self.ndim
                or self.data.shape[batch + 1:] != self.shape[batch + sparse:]):
            raise ValueError(
                f"Invalid BCOO: data of shape {self.data.shape} and indices of shape "
                f"{self.indices.shape} do not make an array of shape {self.shape}")

    # --- its parts ---
    @property
    def nse(self) -> int:
        """How many elements are stored, padding included."""
        return self.indices.shape[-2]

    @property
    def n_batch(self) -> int:
        """The number of leading batch dimensions, each with its own coordinates."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """The number of dimensions that the coordinates index."""
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        """The number of trailing dimensions that are stored densely."""
        return self.data.ndim - 1 - self.n_batch

    @property
    def _sparse_shape(self) -> tuple[int, ...]:
        return self.shape[self.n_batch:self.n_batch + self.n_sparse]

    def _layout_text(self) -> str:
        text = f", n_batch={self.n_batch}" if self.n_batch else ""
        return text + (f", n_dense={self.n_dense}" if self.n_dense else "")

    def _like(self, data: Any) -> BCOO:
        return BCOO((data, self.indices), shape=self.shape, indices_sorted=self.indices_sorted,
                    unique_indices=self.unique_indices)

    def tree_flatten(self) -> tuple[Any, Any]:
        batch = self.n_batch if hasattr(self.indices, "ndim") else self._batch
        info = (self.shape, batch, self.indices_sorted, self.unique_indices)
        return (self.data, self.indices), info

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> BCOO:
        shape, batch, indices_sorted, unique_indices = aux_data
        made = object.__new__(cls)
        made.data, made.indices = children
        made.indices_sorted, made.unique_indices = indices_sorted, unique_indices
        # Under vmap the children have lost, or gained, leading axes: the shape follows.
        now = getattr(made.indices, "ndim", None)
        if now is not None:
            lost = batch - (now - 2)
            shape = shape[lost:] if lost >= 0 else (*made.indices.shape[:-lost], *shape)
        made.shape = shape
        made._batch = batch     # for children that are not arrays
        return made

    # --- making them ---
    @classmethod
    def fromdense(cls, mat: Any, *, nse: int | None = None, index_dtype: Any = np.int32,
                  n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """From an array's nonzero elements: see ``bcoo_fromdense``."""
        return bcoo_fromdense(mat, nse=nse, index_dtype=index_dtype, n_dense=n_dense,
                              n_batch=n_batch)

    @classmethod
    def from_scipy_sparse(cls, mat: Any, *, index_dtype: Any = None, n_dense: int = 0,
                          n_batch: int = 0) -> BCOO:
        """From a SciPy sparse matrix."""
        if n_dense or n_batch:
            raise NotImplementedError("BCOO.from_scipy_sparse with nonzero n_dense/n_batch")
        mat = mat.tocoo()
        indices = np.stack([mat.row, mat.col], 1).astype(index_dtype or np.int32)
        return cls((mat.data, indices), shape=mat.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32",
               n_dense: int = 0, n_batch: int = 0, nse: int = 0) -> BCOO:
        """All zeros."""
        shape = tuple(shape)
        sparse = len(shape) - n_dense - n_batch
        if sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(f"Invalid inputs: shape={shape}, n_dense={n_dense}, n_batch={n_batch},"
                             f" nse={nse}")
        batch, dense = shape[:n_batch], shape[n_batch + sparse:]
        return cls((jnp.zeros((*batch, nse, *dense), dtype),
                    jnp.full((*batch, nse, sparse), jnp.array(shape[n_batch:n_batch + sparse],
                                                              index_dtype))),
                   shape=shape, indices_sorted=True, unique_indices=True)

    # --- what there is of them ---
    def todense(self) -> Array:
        """The dense array."""
        return bcoo_todense(self)

    def astype(self, *args: Any, **kwargs: Any) -> BCOO:
        """The array with its values in another dtype."""
        return self._like(self.data.astype(*args, **kwargs))


# --- to and from dense arrays ---------------------------------------------------------------------

def _batch_grid(batch: tuple[int, ...], extra: int) -> list[Any]:
    """An index array for each batch dimension, with ``extra`` trailing axes of size 1."""
    return [np.arange(size).reshape((1,) * i + (size,) + (1,) * (len(batch) - i - 1 + extra))
            for i, size in enumerate(batch)]


def _coordinates(mat: BCOO) -> tuple[Any, ...]:
    """Index arrays, of shape ``batch + (nse,)``, of all batch and sparse dimensions."""
    return (*_batch_grid(mat.shape[:mat.n_batch], 1),
            *[mat.indices[..., i] for i in range(mat.n_sparse)])


def bcoo_todense(mat: BCOO) -> Array:
    """The dense array; duplicate elements are added.

    >>> from maxjax.experimental import sparse
    >>> sparse.bcoo_todense(sparse.BCOO((jnp.array([1., 2.]), jnp.array([[0], [2]])), shape=(3,)))
    Array([1., 0., 2.], dtype=float32)
    """
    if not mat.n_sparse:
        return jnp.sum(mat.data, mat.n_batch)
    return jnp.zeros(mat.shape, mat.dtype).at[_coordinates(mat)].add(mat.data, mode="drop")


def _nonzero_mask(mat: Any, n_batch: int, n_dense: int) -> Any:
    mask = mat != 0
    return jnp.any(mask, tuple(range(mat.ndim - n_dense, mat.ndim))) if n_dense else mask


def bcoo_fromdense(mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: Any = np.int32) -> BCOO:
    """The nonzero elements of an array, in order.

    Args:
      mat: the array.
      nse: how many to store; by default all of them, whose number must be known: not under jit.
      n_batch, n_dense: how many leading and trailing dimensions are batch and dense ones.
      index_dtype: of the coordinates.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.bcoo_fromdense(jnp.array([[0, 5], [6, 0]]))
    >>> m.data, m.indices.tolist()
    (Array([5, 6], dtype=int32), [[0, 1], [1, 0]])
    """
    mat = jnp.asarray(mat)
    if not 0 <= n_batch <= mat.ndim or not 0 <= n_dense <= mat.ndim - n_batch:
        raise ValueError(f"n_batch={n_batch} and n_dense={n_dense} do not go with an array of rank "
                         f"{mat.ndim}")
    mask = _nonzero_mask(mat, n_batch, n_dense)
    batch, sparse = mat.shape[:n_batch], mat.shape[n_batch:mat.ndim - n_dense]
    flat = mask.reshape(*batch, math.prod(sparse))
    if nse is None:
        nse = int(jnp.max(jnp.sum(flat, -1), initial=0))
    nse = operator.index(nse)
    # The positions of the first nse ones: a stable sort puts them in front.
    order = jnp.argsort(~flat, axis=-1, stable=True)[..., :nse]
    if order.shape[-1] < nse:
        pads = [(0, 0)] * n_batch + [(0, nse - order.shape[-1])]
        order = jnp.pad(order, pads, constant_values=flat.shape[-1])
    places_of_a_batch = jnp.arange(nse)[(None,) * n_batch]
    there = places_of_a_batch < jnp.sum(flat, -1, keepdims=True)
    places = jnp.unravel_index(jnp.minimum(order, max(flat.shape[-1] - 1, 0)), sparse) \
        if sparse else ()
    indices = jnp.stack([jnp.where(there, place, size) for place, size in zip(
        places, sparse, strict=True)], -1).astype(index_dtype) if sparse else jnp.zeros(
            (*batch, nse, 0), index_dtype)
    made = BCOO((jnp.zeros((*batch, nse, *mat.shape[mat.ndim - n_dense:]), mat.dtype), indices),
                shape=mat.shape, indices_sorted=True, unique_indices=True)
    return bcoo_extract(made, mat)


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array at the coordinates of a sparse one.

    Args:
      assume_unique: whether the coordinates are unique; if not, a repeated one counts once.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0., 1., 1.]))
    >>> sparse.bcoo_extract(m, jnp.array([4., 5., 6.])).data
    Array([5., 6.], dtype=float32)
    """
    arr = jnp.asarray(arr)
    if arr.shape != sparr.shape:
        raise ValueError(f"bcoo_extract: the shapes {sparr.shape} and {arr.shape} differ")
    values = arr[_coordinates(sparr)] if sparr.n_sparse else jnp.expand_dims(arr, sparr.n_batch)
    keep = _in_bounds(sparr)
    if assume_unique is False or (assume_unique is None and not sparr.unique_indices):
        keep = keep & _first_of_its_kind(sparr)
    keep = keep.reshape(*keep.shape, *(1,) * sparr.n_dense)
    return sparr._like(jnp.where(keep, values, jnp.zeros((), arr.dtype)))


def _in_bounds(mat: BCOO) -> Any:
    """Of shape ``batch + (nse,)``: False for padding."""
    sizes = np.array(mat._sparse_shape, mat.indices.dtype)
    return jnp.all(mat.indices < sizes[(None,) * (mat.indices.ndim - 1)], -1)


def _first_of_its_kind(mat: BCOO) -> Any:
    same = jnp.all(mat.indices[..., :, None, :] == mat.indices[..., None, :, :], -1)
    earlier = np.tri(mat.nse, k=-1, dtype=bool)[(None,) * (same.ndim - 2)]
    return ~jnp.any(same & earlier, -1)
