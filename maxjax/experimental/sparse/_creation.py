"""Creation of sparse arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax import random
from maxjax._ir.trace import Array
from maxjax.experimental.sparse import _ops
from maxjax.experimental.sparse._bcoo import BCOO, JAXSparse, bcoo_fromdense
from maxjax.experimental.sparse._bcsr import BCSR


def _in_format(mat: BCOO, sparse_format: str) -> Any:
    if sparse_format == "bcoo":
        return mat
    if sparse_format == "bcsr":
        return BCSR.from_bcoo(mat)
    raise ValueError(f"sparse_format={sparse_format!r} is not there: maxjax has 'bcoo' and 'bcsr'")


def empty(shape: Sequence[int], dtype: Any = None, index_dtype: Any = "int32",
          sparse_format: str = "bcoo", **kwds: Any) -> JAXSparse:
    """A sparse array of zeros.

    Args:
      sparse_format: "bcoo" or "bcsr".
      kwds: ``nse``, ``n_batch`` and ``n_dense`` of a BCOO array.

    >>> from maxjax.experimental import sparse
    >>> sparse.empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    return _in_format(BCOO._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds),
                      sparse_format)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, index_dtype: Any = "int32",
        sparse_format: str = "bcoo", **kwds: Any) -> JAXSparse:
    """A sparse matrix with ones on a diagonal.

    Args:
      N, M: its shape; square by default.
      k: which diagonal; positive ones are above the main one.
      kwds: ``n_batch`` and ``n_dense`` of a BCOO array.

    >>> from maxjax.experimental import sparse
    >>> sparse.eye(2, 3, k=1).todense()
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    rows = operator.index(N)
    columns = rows if M is None else operator.index(M)
    shift = operator.index(k)
    first = np.arange(max(0, -shift), max(min(rows, columns - shift), max(0, -shift)))
    indices = np.stack([first, first + shift], -1).astype(index_dtype)
    mat = BCOO((jnp.ones(len(first), dtype), indices), shape=(rows, columns), indices_sorted=True,
               unique_indices=True)
    if kwds.get("n_batch") or kwds.get("n_dense"):
        mat = bcoo_fromdense(mat.todense(), index_dtype=index_dtype, **kwds)
    return _in_format(mat, sparse_format)


def random_bcoo(key: Any, shape: Sequence[int], *, dtype: Any = jnp.float_,
                indices_dtype: Any = None, nse: float | int = 0.2, n_batch: int = 0,
                n_dense: int = 0, unique_indices: bool = True, sorted_indices: bool = False,
                generator: Callable[..., Array] = random.uniform, **kwds: Any) -> BCOO:
    """A sparse array of random elements at random positions.

    Args:
      nse: the number of elements or, if less than 1, their fraction of all.
      unique_indices: whether the coordinates are unique.
      generator: generates the elements: takes key, shape and dtype, and ``kwds``.

    >>> from maxjax.experimental import sparse
    >>> sparse.random_bcoo(jax.random.key(0), (3, 4), nse=0.5)
    BCOO(float32[3, 4], nse=6)
    """
    shape = tuple(map(operator.index, shape))
    if n_batch < 0 or n_dense < 0 or n_batch + n_dense > len(shape):
        raise ValueError(f"Invalid n_batch={n_batch}, n_dense={n_dense} for shape={shape}")
    sparse = shape[n_batch:len(shape) - n_dense]
    batch, dense = shape[:n_batch], shape[len(shape) - n_dense:]
    size = math.prod(sparse)
    if not 0 <= nse < 1:
        count = operator.index(int(nse)) if nse == int(nse) else None
        if count is None:
            raise ValueError(f"got nse={nse}, expected to be between 0 and {size}")
    else:
        count = math.ceil(nse * size)
    if not 0 <= count <= size and unique_indices:
        raise ValueError(f"got nse={nse}, expected to be between 0 and {size}")
    data_key, index_key = random.split(key)
    kind = jnp.int32 if indices_dtype is None else indices_dtype
    data = generator(data_key, shape=(*batch, count, *dense), dtype=dtype, **kwds)
    keys = random.split(index_key, math.prod(batch)) if batch else [index_key]
    flat = jnp.stack([random.choice(one, size, (count,), replace=not unique_indices)
                      for one in keys]) if len(keys) else jnp.zeros((0, count), jnp.int32)
    places = jnp.stack(jnp.unravel_index(flat, sparse), -1) if sparse else jnp.zeros(
        (*flat.shape, 0), jnp.int32)
    mat = BCOO((data, places.reshape(*batch, count, len(sparse)).astype(kind)), shape=shape,
               unique_indices=unique_indices)
    return _ops.bcoo_sort_indices(mat) if sorted_indices else mat


def todense(arr: Any) -> Any:
    """A sparse array made dense; anything else unchanged.

    >>> from maxjax.experimental import sparse
    >>> sparse.todense(sparse.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return arr.todense() if isinstance(arr, JAXSparse) else arr
