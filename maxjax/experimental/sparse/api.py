"""Creation of sparse arrays in any format, and their conversion to dense ones."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from maxjax import tree_util
from maxjax.experimental.sparse._base import JAXSparse
from maxjax.experimental.sparse._primitives import sparse_primitive
from maxjax.experimental.sparse.bcoo import BCOO
from maxjax.experimental.sparse.bcsr import BCSR
from maxjax.experimental.sparse.coo import COO
from maxjax.experimental.sparse.csr import CSC, CSR


def _todense(*bufs: Any, tree: Any) -> Any:
    arr = tree_util.tree_unflatten(tree, bufs)
    return arr.todense() if isinstance(arr, JAXSparse) else arr


todense_p = sparse_primitive("todense", _todense)


def todense(arr: Any) -> Any:
    """A sparse array made dense; anything else unchanged.

    >>> from maxjax.experimental import sparse
    >>> sparse.todense(sparse.eye(2))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    bufs, tree = tree_util.tree_flatten(arr)
    if not isinstance(arr, JAXSparse) and not (len(bufs) == 1 and bufs[0] is arr):
        return arr
    return todense_p.bind(*bufs, tree=tree)


def empty(shape: Sequence[int], dtype: Any = None, index_dtype: Any = "int32",
          sparse_format: str = "bcoo", **kwds: Any) -> JAXSparse:
    """A sparse array of zeros.

    Args:
      sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
      kwds: ``nse``, ``n_batch`` and ``n_dense`` of the formats that have them.

    Raises:
      ValueError: there is no such format, or it has no such shape.

    >>> from maxjax.experimental import sparse
    >>> sparse.empty((2, 3))
    BCOO(float32[2, 3], nse=0)
    """
    formats: dict[str, Any] = {"bcsr": BCSR, "bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}
    if sparse_format not in formats:
        raise ValueError(f"sparse_format={sparse_format!r} not recognized; must be one of "
                         f"{list(formats)}")
    return formats[sparse_format]._empty(shape, dtype=dtype, index_dtype=index_dtype, **kwds)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None, index_dtype: Any = "int32",
        sparse_format: str = "bcoo", **kwds: Any) -> JAXSparse:
    """A sparse matrix with ones on a diagonal.

    Args:
      N, M: its shape; square by default.
      k: which diagonal; positive ones are above the main one.
      sparse_format: "bcoo", "coo", "csr" or "csc".
      kwds: ``n_batch`` and ``n_dense`` of a BCOO array.

    >>> from maxjax.experimental import sparse
    >>> sparse.eye(2, 3, k=1).todense()
    Array([[0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    formats: dict[str, Any] = {"bcoo": BCOO, "coo": COO, "csr": CSR, "csc": CSC}
    rows = operator.index(N)
    columns = rows if M is None else operator.index(M)
    return formats[sparse_format]._eye(rows, columns, operator.index(k), dtype=dtype,
                                       index_dtype=index_dtype, **kwds)
