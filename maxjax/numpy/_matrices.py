"""Diagonals and triangles."""

from __future__ import annotations

import operator
from typing import Any

from maxjax._base import dtypes
from maxjax._ir.trace import Array
from maxjax._primitives import shape as primitives
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.shape import iota_p
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _shape as shapes
from maxjax.numpy._creation import zeros
from maxjax.numpy._promotion import (
    as_array,
    canonical_dtype,
    cast,
    check_out,
    concrete,
)
from maxjax.numpy._ufuncs import where

__all__ = ["diag", "diagflat", "diagonal", "trace", "tri", "tril", "triu", "vander"]


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The ``offset``-th diagonals of the matrices in two axes, along a new last axis."""
    x = as_array(a, "diagonal")
    if x.ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    offset = operator.index(concrete(offset, "'offset' argument of jnp.diagonal()"))
    x = shapes.moveaxis(x, (axis1, axis2), (-2, -1))
    rows, columns = x.shape[-2:]
    length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    # In the flattened matrix one diagonal is every (columns + 1)-th element.
    flat = primitives.reshape(x, (*x.shape[:-2], rows * columns))
    start = offset if offset >= 0 else -offset * columns
    if not length:
        return primitives.slice_in_dim(flat, 0, 0, flat.ndim - 1)
    step = columns + 1
    return primitives.slice_in_dim(
        flat, start, start + (length - 1) * step + 1, flat.ndim - 1, step)


def diag(v: Any, k: int = 0) -> Array:
    """The ``k``-th diagonal of a matrix, or the matrix that has a vector as its diagonal."""
    x = as_array(v, "diag")
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError("diag input must be 1d or 2d")
    k = operator.index(concrete(k, "'k' argument of jnp.diag()"))
    length = x.shape[0]
    size = length + abs(k)
    if not length:
        return zeros((size, size), x.dtype)
    low = k if k >= 0 else -k * size
    covered = length + (length - 1) * size
    padded = primitives.pad(x, 0, ((low, size * size - low - covered, size),))
    return primitives.reshape(padded, (size, size))


def diagflat(v: Any, k: int = 0) -> Array:
    """The matrix that has the flattened array as its ``k``-th diagonal."""
    return diag(shapes.ravel(v), k)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None,
          out: Any = None) -> Array:
    """The sum of a diagonal."""
    check_out("trace", out)
    x = as_array(a, "trace")
    if dtype is not None:
        dtype = canonical_dtype(dtype, "trace")
    return reductions.sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


def _lower(rows: int, columns: int, k: Any) -> Array:
    """Whether an element of a matrix is on or below the ``k``-th diagonal."""
    row = iota_p.bind(dtype=dtypes.int32, shape=(rows, columns), dimension=0)
    column = iota_p.bind(dtype=dtypes.int32, shape=(rows, columns), dimension=1)
    return (row + cast(k, dtypes.int32)) >= column


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    """Ones on and below the ``k``-th diagonal, zeros above."""
    dtype = dtypes.float32 if dtype is None else canonical_dtype(dtype, "tri")
    return convert_element_type(_lower(N, N if M is None else M, k), dtype)


def _triangle(name: str, m: Any, k: int) -> tuple[Array, Array]:
    x = as_array(m, name)
    if x.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D")
    mask = _lower(*x.shape[-2:], k)
    return x, shapes.broadcast_to(mask, x.shape)


def tril(m: Any, k: int = 0) -> Array:
    """The matrix with zeros above the ``k``-th diagonal."""
    x, mask = _triangle("tril", m, k)
    return where(mask, x, cast(0, x.dtype))


def triu(m: Any, k: int = 0) -> Array:
    """The matrix with zeros below the ``k``-th diagonal."""
    x, mask = _triangle("triu", m, k - 1)
    return where(mask, cast(0, x.dtype), x)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of the powers of a vector."""
    x = as_array(x, "vander")
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array")
    count = x.shape[0] if N is None else operator.index(N)
    if count < 0:
        raise ValueError("N must be nonnegative")
    exponents = primitives.iota(x.dtype if not dtypes.is_complex(x.dtype) else dtypes.float32,
                                (count,), 0)
    if not increasing:
        exponents = shapes.flip(exponents)
    return shapes.expand_dims(x, 1) ** shapes.expand_dims(exponents, 0)
