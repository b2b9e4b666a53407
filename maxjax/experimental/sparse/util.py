"""What the formats of sparse arrays have in common."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple

import numpy as np

import maxjax
from maxjax import lax
from maxjax import numpy as jnp
from maxjax._base import caches
from maxjax._base import config as options
from maxjax._base.errors import ConcretizationTypeError
from maxjax._ir.trace import Array, Tracer
from maxjax.experimental.sparse._base import JAXSparse


class SparseEfficiencyError(ValueError):
    """An operation would make a sparse array as large as a dense one.

    >>> issubclass(SparseEfficiencyError, ValueError)
    True
    """


class SparseEfficiencyWarning(UserWarning):
    """An operation takes disproportionate time or memory.

    >>> issubclass(SparseEfficiencyWarning, UserWarning)
    True
    """


class CuSparseEfficiencyWarning(SparseEfficiencyWarning):
    """An operation does without cuSPARSE: JAX's, on GPUs.

    >>> issubclass(CuSparseEfficiencyWarning, UserWarning)
    True
    """


class SparseInfo(NamedTuple):
    """What is static about a sparse array, besides the types of its buffers."""

    shape: tuple[int, ...]
    indices_sorted: bool = False
    unique_indices: bool = False


def static_nse(nse: Any, name: str, method: str) -> int:
    """A number of stored elements, which must be known.

    Raises:
      ConcretizationTypeError: it is traced.
    """
    known = nse.concrete() if isinstance(nse, Tracer) else nse
    if known is None:
        raise ConcretizationTypeError(
            nse, f"The error arose for the nse argument of {name}. In order for\n{method} to be "
            "used in traced/compiled code, you must pass a concrete\nvalue to the nse (number of "
            "stored elements) argument.\n")
    return operator.index(known)


def as_array(x: Any, name: str) -> Any:
    """An operand that may be anything like an array but a sparse one."""
    if isinstance(x, JAXSparse):
        raise TypeError(f"{name} requires a dense array, got {x!r}")
    return jnp.asarray(x)


def promoted(*arrays: Any) -> list[Any]:
    """Arrays in their common dtype, as ``numpy_dtype_promotion`` lets them have one."""
    dtype = jnp.result_type(*arrays)
    return [lax.convert_element_type(x, dtype) for x in arrays]


def relaxed() -> Any:
    """The context of computations whose ranks and dtypes are not the user's."""
    return options.rank_promotion("allow")


def _nonzero_mask(mat: Any, n_batch: int, n_dense: int) -> Any:
    mask = mat != jnp.zeros((), mat.dtype)
    if n_dense:
        mask = jnp.any(mask, tuple(range(mat.ndim - n_dense, mat.ndim)))
    return mask


def _count_stored_elements_per_batch(mat: Any, n_batch: int = 0, n_dense: int = 0) -> Array:
    """How many elements of each batch are not zero."""
    mat = jnp.asarray(mat)
    with relaxed():
        mask = _nonzero_mask(mat, n_batch, n_dense)
        return jnp.sum(mask, tuple(range(n_batch, mask.ndim)))


def _count_stored_elements(mat: Any, n_batch: int = 0, n_dense: int = 0) -> Array:
    """How many elements a sparse array needs to store for each batch."""
    counts = _count_stored_elements_per_batch(mat, n_batch, n_dense)
    return jnp.max(counts, initial=0) if counts.ndim else counts


def batch_grid(batch: tuple[int, ...], extra: int) -> list[Any]:
    """An index array for each batch dimension, with ``extra`` trailing axes of size 1."""
    # A symbolic size has a value only where the program runs.
    return [(np if isinstance(size, int) else jnp).arange(size, dtype=np.int32).reshape(
        (1,) * i + (size,) + (1,) * (len(batch) - i - 1 + extra))
        for i, size in enumerate(batch)]


def stored_rows(indices: Any, indptr: Any) -> Any:
    """The row of each stored element of compressed rows, of shape ``batch + (nse,)``; for what is
    beyond the last row, the number of rows."""
    batch, nse = indices.shape[:-1], indices.shape[-1]
    starts = jnp.zeros(indices.shape, indices.dtype).at[
        (*batch_grid(batch, 1), indptr)].add(jnp.ones((), indices.dtype), mode="drop")
    return jnp.cumsum(starts, axis=-1, dtype=indices.dtype) - 1 if nse else starts


def row_starts(rows: Any, count: int, dtype: Any) -> Any:
    """The pointers of compressed rows, from sorted rows of shape ``batch + (nse,)``."""
    batch = rows.shape[:-1]
    sizes = jnp.zeros((*batch, count + 1), dtype).at[
        (*batch_grid(batch, 1), rows + 1)].add(jnp.ones((), dtype), mode="drop")
    return jnp.cumsum(sizes, axis=-1, dtype=dtype)


def _csr_to_coo(indices: Any, indptr: Any) -> tuple[Any, Any]:
    """Rows and columns of compressed rows."""
    with relaxed():
        return stored_rows(indices, indptr), indices


def _coo_extract(row: Any, col: Any, mat: Any) -> Any:
    """The elements of a matrix at rows and columns."""
    return mat[row, col]


def _csr_extract(indices: Any, indptr: Any, mat: Any) -> Any:
    """The elements of a matrix at compressed rows."""
    return _coo_extract(*_csr_to_coo(indices, indptr), mat)


@caches.memoized
def _dot_general_validated_shape(lhs_shape: tuple[int, ...], rhs_shape: tuple[int, ...],
                                 dimension_numbers: Any) -> tuple[int, ...]:
    """The shape of ``lax.dot_general`` of arrays of two shapes.

    Raises:
      TypeError: it is not defined.
    """
    out = maxjax.eval_shape(
        lambda x, y: lax.dot_general(x, y, dimension_numbers),
        *[maxjax.ShapeDtypeStruct(shape, np.dtype(np.float32)) for shape in (lhs_shape, rhs_shape)])
    return tuple(out.shape)
