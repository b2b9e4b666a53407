"""Random sparse arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

from maxjax import numpy as jnp
from maxjax import random
from maxjax._ir.trace import Array
from maxjax.experimental.sparse.bcoo import BCOO


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
    if not 0 <= nse <= size:
        raise ValueError(f"got nse={nse}, expected to be between 0 and {size}")
    count = math.ceil(nse * size) if 0 < nse < 1 else operator.index(nse)
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
    return mat.sort_indices() if sorted_indices else mat
