"""Sparse arrays as lists of coordinates: the class, conversions, order and duplicates, layouts."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._ir.trace import Array, Tracer
from maxjax._transforms.vmap import containers
from maxjax.experimental.sparse._base import JAXSparse, check_mapped_axis, shape_of_rank
from maxjax.experimental.sparse._bcoo_buffers import (
    bcoo_extract_p,
    bcoo_fromdense_p,
    bcoo_sort_indices_p,
    bcoo_sum_duplicates_p,
    bcoo_todense_p,
    in_bounds,
    masked,
    padded,
    run_starts,
    sorting,
    validated,
)
from maxjax.experimental.sparse.util import (
    SparseEfficiencyError,
    SparseEfficiencyWarning,
    SparseInfo,
    _count_stored_elements,
    relaxed,
    static_nse,
)
from maxjax.tree_util import register_pytree_node_class


@register_pytree_node_class
class BCOO(JAXSparse):
    """A sparse array as a list of coordinates, with batch and dense dimensions.

    Args:
      args: data of shape ``batch + (nse,) + dense`` and indices ``batch + (nse, n_sparse)``.
      shape: ``batch + sparse + dense``.
      indices_sorted: whether the coordinates are sorted.
      unique_indices: whether they are unique.

    Raises:
      ValueError: the buffers do not make an array of the shape.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([[0.0, 2.0], [3.0, 0.0]]))
    >>> m
    BCOO(float32[2, 2], nse=2)
    >>> m @ jnp.array([1.0, 10.0])
    Array([20.,  3.], dtype=float32)
    """

    dtype = property(lambda self: self.data.dtype)
    nse = property(lambda self: self.indices.shape[-2])
    n_batch = property(lambda self: self.indices.ndim - 2)
    n_sparse = property(lambda self: self.indices.shape[-1])
    n_dense = property(lambda self: self.data.ndim - 1 - self.n_batch)
    _info = property(lambda self: SparseInfo(self.shape, self.indices_sorted, self.unique_indices))
    _batch = 0

    def __init__(self, args: tuple[Any, Any], *, shape: Sequence[int],
                 indices_sorted: bool = False, unique_indices: bool = False):
        self.data, self.indices = map(jnp.asarray, args)
        self.indices_sorted = indices_sorted
        self.unique_indices = unique_indices
        super().__init__(args, shape=shape)
        validated(self.data, self.indices, self.shape)

    @property
    def _sparse_shape(self) -> tuple[int, ...]:
        return self.shape[self.n_batch:self.n_batch + self.n_sparse]

    def _layout_text(self) -> str:
        validated(self.data, self.indices, self.shape)
        text = f", n_batch={self.n_batch}" if self.n_batch else ""
        return text + (f", n_dense={self.n_dense}" if self.n_dense else "")

    def _like(self, data: Any) -> BCOO:
        return BCOO((data, self.indices), shape=self.shape, indices_sorted=self.indices_sorted,
                    unique_indices=self.unique_indices)

    def tree_flatten(self) -> tuple[Any, Any]:
        batch = self.n_batch if hasattr(self.indices, "ndim") else self._batch
        return (self.data, self.indices), (*self._info, batch)

    @classmethod
    def tree_unflatten(cls, aux_data: Any, children: Any) -> BCOO:
        made = object.__new__(cls)
        made.data, made.indices = children
        shape, made.indices_sorted, made.unique_indices, batch = aux_data
        now = getattr(made.indices, "ndim", None)
        if now is not None and now - 2 != batch and hasattr(made.data, "ndim"):
            shape = shape_of_rank("BCOO", shape, batch, now - 2, children)
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
            raise NotImplementedError("BCOO from_scipy_sparse with nonzero n_dense/n_batch")
        mat = mat.tocoo()
        indices = np.stack([mat.row, mat.col], 1).astype(index_dtype or np.int32)
        return cls((mat.data, indices), shape=mat.shape)

    @classmethod
    def _empty(cls, shape: Sequence[int], *, dtype: Any = None, index_dtype: Any = "int32",
               n_dense: int = 0, n_batch: int = 0, nse: int = 0) -> BCOO:
        shape = tuple(map(operator.index, shape))
        n_sparse = len(shape) - n_dense - n_batch
        if n_sparse < 0 or n_dense < 0 or n_batch < 0 or nse < 0:
            raise ValueError(f"Invalid inputs: shape={shape}, n_dense={n_dense}, "
                             f"n_batch={n_batch}, nse={nse}")
        batch, sparse = shape[:n_batch], shape[n_batch:n_batch + n_sparse]
        end = np.array(sparse, index_dtype)
        return cls((jnp.zeros((*batch, nse, *shape[n_batch + n_sparse:]), dtype),
                    jnp.asarray(np.broadcast_to(end, (*batch, nse, n_sparse)))),
                   shape=shape, indices_sorted=True, unique_indices=True)

    @classmethod
    def _eye(cls, N: int, M: int, k: int, *, dtype: Any = None, index_dtype: Any = "int32",
             n_batch: int = 0, n_dense: int = 0) -> BCOO:
        n_sparse = 2 - n_batch - n_dense
        if n_sparse < 0 or n_dense < 0 or n_batch < 0:
            raise ValueError(f"Invalid inputs: shape={(N, M)}, n_dense={n_dense}, "
                             f"n_batch={n_batch}")
        first = np.arange(max(0, -k), max(min(N, M - k), max(0, -k)))
        places = np.stack([first, first + k], -1).astype(index_dtype)
        if n_batch == 0 and n_dense == 0:
            return cls((jnp.ones(len(first), dtype), places), shape=(N, M), indices_sorted=True,
                       unique_indices=True)
        dense = np.eye(N, M, k, dtype=bool)
        nse = int(np.asarray(_count_stored_elements(dense, n_batch, n_dense)))
        mat = bcoo_fromdense(jnp.asarray(dense), nse=nse, n_batch=n_batch, n_dense=n_dense,
                             index_dtype=index_dtype)
        return mat.astype(jnp.ones((), dtype).dtype)

    # --- what becomes of them ---
    def todense(self) -> Array:
        """The dense array."""
        return bcoo_todense(self)

    def astype(self, *args: Any, **kwargs: Any) -> BCOO:
        """The array with its values in another dtype."""
        return self._like(self.data.astype(*args, **kwargs))

    def sort_indices(self) -> BCOO:
        """The coordinates in order."""
        return bcoo_sort_indices(self)

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """Each coordinate once, in order; without zeros if ``remove_zeros``."""
        return bcoo_sum_duplicates(without_zeros(self) if remove_zeros else self, nse)

    def update_layout(self, *, n_batch: int | None = None, n_dense: int | None = None,
                      on_inefficient: str | None = "error") -> BCOO:
        """The array with other batch and dense dimensions: see ``bcoo_update_layout``."""
        return bcoo_update_layout(self, n_batch=n_batch, n_dense=n_dense,
                                  on_inefficient=on_inefficient)


containers[BCOO] = check_mapped_axis


def whole(mat: BCOO) -> BCOO:
    """A copy of the array whose data and indices have its batch dimensions in full."""
    batch = mat.shape[:mat.n_batch]
    if mat.data.shape[:mat.n_batch] == batch == mat.indices.shape[:mat.n_batch]:
        return mat
    data = jnp.broadcast_to(mat.data, (*batch, *mat.data.shape[mat.n_batch:]))
    indices = jnp.broadcast_to(mat.indices, (*batch, *mat.indices.shape[mat.n_batch:]))
    return BCOO((data, indices), shape=mat.shape, indices_sorted=mat.indices_sorted,
                unique_indices=mat.unique_indices)


# --- to and from dense arrays ---------------------------------------------------------------------

def bcoo_todense(mat: BCOO) -> Array:
    """The dense array; duplicate elements are added.

    >>> from maxjax.experimental import sparse
    >>> sparse.bcoo_todense(sparse.BCOO((jnp.array([1., 2.]), jnp.array([[0], [2]])), shape=(3,)))
    Array([1., 0., 2.], dtype=float32)
    """
    return _bcoo_todense(mat.data, mat.indices, spinfo=mat._info)


def _bcoo_todense(data: Any, indices: Any, *, spinfo: SparseInfo) -> Array:
    return bcoo_todense_p.bind(data, indices, spinfo=spinfo)


def bcoo_fromdense(mat: Any, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: Any = np.int32) -> BCOO:
    """The nonzero elements of an array, in order.

    Args:
      mat: the array.
      nse: how many to store; by default all of them, whose number must be known: not under jit.
      n_batch, n_dense: how many leading and trailing dimensions are batch and dense ones.
      index_dtype: of the coordinates.

    Raises:
      ValueError: the array has not so many dimensions.
      ConcretizationTypeError: ``nse`` is not given, and the array is traced.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.bcoo_fromdense(jnp.array([[0, 5], [6, 0]]))
    >>> m.data, m.indices.tolist()
    (Array([5, 6], dtype=int32), [[0, 1], [1, 0]])
    """
    mat = jnp.asarray(mat)
    _check_layout(mat.ndim, n_batch, n_dense)
    count = _count_stored_elements(mat, n_batch, n_dense) if nse is None else nse
    data, indices = _bcoo_fromdense(mat, nse=count, n_batch=n_batch, n_dense=n_dense,
                                    index_dtype=index_dtype)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def _check_layout(ndim: int, n_batch: int, n_dense: int) -> None:
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > ndim:
        raise ValueError(f"n_batch={n_batch} and n_dense={n_dense} do not go with an array of rank "
                         f"{ndim}")


def _bcoo_fromdense(mat: Any, *, nse: Any, n_batch: int = 0, n_dense: int = 0,
                    index_dtype: Any = np.int32) -> tuple[Any, Any]:
    count = static_nse(nse, "bcoo_fromdense", "BCOO.fromdense()")
    return tuple(bcoo_fromdense_p.bind(mat, nse=count, n_batch=n_batch, n_dense=n_dense,
                                       index_dtype=np.dtype(index_dtype)))


def bcoo_extract(sparr: BCOO, arr: Any, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array at the coordinates of a sparse one.

    Args:
      assume_unique: whether the coordinates are unique; if not, a repeated one counts once.

    Raises:
      TypeError: the first argument is not sparse.
      ValueError: the shapes differ.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.array([0., 1., 1.]))
    >>> sparse.bcoo_extract(m, jnp.array([4., 5., 6.])).data
    Array([5., 6.], dtype=float32)
    """
    if not isinstance(sparr, BCOO):
        raise TypeError("First argument to bcoo_extract should be a BCOO array. "
                        f"Got type(sparr)={type(sparr)}")
    a = jnp.asarray(arr)
    if a.shape != sparr.shape:
        raise ValueError(f"shape mismatch: sparr.shape={sparr.shape} a.shape={a.shape}")
    unique = sparr.unique_indices if assume_unique is None else assume_unique
    return sparr._like(_bcoo_extract(sparr.indices, a, assume_unique=unique))


def _bcoo_extract(indices: Any, arr: Any, *, assume_unique: bool = True) -> Array:
    return bcoo_extract_p.bind(indices, arr, assume_unique=bool(assume_unique))


# --- order and duplicates -------------------------------------------------------------------------

def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """A copy of the array with its coordinates in order.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO((jnp.array([1., 2.]), jnp.array([[2], [0]])), shape=(3,))
    >>> sparse.bcoo_sort_indices(m).data
    Array([2., 1.], dtype=float32)
    """
    data, indices = bcoo_sort_indices_p.bind(mat.data, mat.indices, spinfo=mat._info)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True,
                unique_indices=mat.unique_indices)


def without_zeros(mat: BCOO) -> BCOO:
    """The array with padding where zeros were stored."""
    with relaxed():
        there = jnp.any(mat.data != jnp.zeros((), mat.dtype),
                        tuple(range(mat.n_batch + 1, mat.data.ndim)))
        indices = padded(mat.indices, there, mat.shape)
    return BCOO((mat.data, indices), shape=mat.shape, unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """A copy of the array with each coordinate once, in order, and the sums of their values.

    Args:
      nse: how many to store; by default all of them, whose number must be known: not under jit.

    Raises:
      ValueError: ``nse`` is not given, and the coordinates are traced.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO((jnp.array([1., 2.]), jnp.array([[2], [2]])), shape=(3,))
    >>> sparse.bcoo_sum_duplicates(m).data
    Array([3.], dtype=float32)
    """
    if nse is None:
        count = _count_of_kinds(mat)
        if isinstance(count, Tracer):
            count = count.concrete()
        if count is None:
            raise ValueError(
                "bcoo_sum_duplicates: nse must be specified when using the function within jit, "
                "vmap, and other transformations requiring abstract evaluation.")
        nse = int(count)
    data, indices = bcoo_sum_duplicates_p.bind(mat.data, mat.indices, spinfo=mat._info,
                                               nse=operator.index(nse))
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def _count_of_kinds(mat: BCOO) -> Any:
    """How many different coordinates there are, padding left out; of the batches, the most."""
    if not mat.n_sparse:
        return min(mat.nse, 1)
    with relaxed():
        in_order, _ = sorting(mat.indices)
        kinds = run_starts(in_order) & in_bounds(in_order, mat.shape)
        return jnp.max(jnp.sum(kinds, -1), initial=0)


# --- layouts --------------------------------------------------------------------------------------

def bcoo_update_layout(mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
                       on_inefficient: str | None = "error") -> BCOO:
    """A copy of the array with other numbers of batch and dense dimensions.

    Args:
      n_batch, n_dense: the new numbers; by default unchanged.
      on_inefficient: what to do if dimensions of more than one element become batch or dense ones:
        "error", "warn" or None, nothing.

    Raises:
      SparseEfficiencyError: such dimensions become batch or dense ones and it is "error".
      ValueError: there are not so many dimensions.

    >>> from maxjax.experimental import sparse
    >>> m = sparse.BCOO.fromdense(jnp.eye(2), n_dense=1)
    >>> sparse.bcoo_update_layout(m, n_dense=0)
    BCOO(float32[2, 2], nse=4)
    """
    batch = mat.n_batch if n_batch is None else operator.index(n_batch)
    dense = mat.n_dense if n_dense is None else operator.index(n_dense)
    if (batch, dense) == (mat.n_batch, mat.n_dense):
        return mat
    for name, value in (("n_batch", batch), ("n_dense", dense)):
        if value < 0:
            raise ValueError(f"{name} must be non-negative; got {value}")
    if batch + dense > mat.ndim:
        raise ValueError(f"sum of n_batch={batch} and n_dense={dense} cannot be larger than "
                         f"mat.ndim={mat.ndim}.")
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"on_inefficent={on_inefficient!r}; expected one of ['error', 'warn', "
                         "None].")
    last = mat.ndim - mat.n_dense
    for name, old, new, sizes in (
            ("n_dense", mat.n_dense, dense, mat.shape[mat.ndim - dense:last]),
            ("n_batch", mat.n_batch, batch, mat.shape[mat.n_batch:batch])):
        if new <= old or all(size <= 1 for size in sizes):
            continue
        message = (f"For matrix of shape {mat.shape}, increasing {name} from {old} to {new} "
                   "results in inefficient storage.")
        if on_inefficient == "error":
            raise SparseEfficiencyError(
                f"{message} To disable this error, set the on_inefficient argument of "
                "bcoo_update_layout to 'warn' or None.")
        if on_inefficient == "warn":
            warnings.warn(f"{message} To disable this warning, set the on_inefficient argument of "
                          "bcoo_update_layout to None.", SparseEfficiencyWarning, stacklevel=2)
    with relaxed():
        while mat.n_dense > dense:
            mat = _first_dense_to_sparse(mat)
        while mat.n_batch > batch:
            mat = _last_batch_to_sparse(mat)
        while mat.n_dense < dense:
            mat = _last_sparse_to_dense(mat)
        while mat.n_batch < batch:
            mat = _first_sparse_to_batch(mat)
    return mat


def _first_dense_to_sparse(mat: BCOO) -> BCOO:
    n_batch, nse, size = mat.n_batch, mat.nse, mat.data.shape[mat.n_batch + 1]
    data = mat.data.reshape(*mat.data.shape[:n_batch], nse * size, *mat.data.shape[n_batch + 2:])
    old = jnp.repeat(mat.indices, size, axis=-2)
    new = jnp.broadcast_to(jnp.tile(jnp.arange(size, dtype=old.dtype), nse)[:, None],
                           (*old.shape[:-1], 1))
    return BCOO((data, jnp.concatenate([old, new], -1)), shape=mat.shape,
                indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def _last_batch_to_sparse(mat: BCOO) -> BCOO:
    last, size, nse = mat.n_batch - 1, mat.shape[mat.n_batch - 1], mat.nse

    def merged(buffer: Any) -> Any:
        before, after = buffer.shape[:last], buffer.shape[last + 2:]
        return jnp.broadcast_to(buffer, (*before, size, nse, *after)).reshape(
            *before, size * nse, *after)

    old = merged(mat.indices)
    new = jnp.broadcast_to(jnp.repeat(jnp.arange(size, dtype=old.dtype), nse)[:, None],
                           (*old.shape[:-1], 1))
    return BCOO((merged(mat.data), jnp.concatenate([new, old], -1)), shape=mat.shape,
                indices_sorted=mat.indices_sorted, unique_indices=mat.unique_indices)


def _last_sparse_to_dense(mat: BCOO) -> BCOO:
    size, n_batch, n_dense = mat._sparse_shape[-1], mat.n_batch, mat.n_dense
    here = mat.indices[..., -1, None] == jnp.arange(size, dtype=mat.indices.dtype)
    data = jnp.expand_dims(mat.data, n_batch + 1)
    here = here.reshape(*here.shape, *(1,) * n_dense)
    return BCOO((jnp.where(here, data, jnp.zeros((), data.dtype)), mat.indices[..., :-1]),
                shape=mat.shape)


def _first_sparse_to_batch(mat: BCOO) -> BCOO:
    size, n_batch = mat._sparse_shape[0], mat.n_batch
    first = jnp.expand_dims(mat.indices[..., 0], n_batch)
    here = first == jnp.arange(size, dtype=first.dtype)[:, None]
    indices = padded(jnp.expand_dims(mat.indices[..., 1:], n_batch), here,
                     (*mat.shape[:n_batch], size, *mat.shape[n_batch + 1:])) \
        if mat.n_sparse > 1 else jnp.zeros((*here.shape, 0), first.dtype)
    data = jnp.expand_dims(mat.data, n_batch)
    batch = jnp.broadcast_shapes(data.shape[:n_batch + 1], here.shape[:-1])
    data = jnp.broadcast_to(data, (*batch, *data.shape[n_batch + 1:]))
    here = jnp.broadcast_to(here, (*batch, mat.nse))
    return BCOO((masked(data, here), indices), shape=mat.shape, indices_sorted=False,
                unique_indices=False)
