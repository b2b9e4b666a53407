"""Sums, quotients and powers of sparse arrays, and the operators and methods of BCOO arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from maxjax import numpy as jnp
from maxjax.experimental.sparse._base import JAXSparse
from maxjax.experimental.sparse._bcoo_array import BCOO, bcoo_sum_duplicates, whole
from maxjax.experimental.sparse._bcoo_products import (
    bcoo_multiply_dense,
    bcoo_multiply_sparse,
    matmul,
)
from maxjax.experimental.sparse._bcoo_shape import bcoo_broadcast_in_dim
from maxjax.experimental.sparse.util import promoted


def unique(mat: BCOO) -> BCOO:
    """The array with each coordinate once, for functions that are not linear."""
    return mat if mat.unique_indices else bcoo_sum_duplicates(mat, mat.nse)


def _raised(mat: BCOO, ndim: int) -> BCOO:
    """The array with leading dimensions of size 1."""
    more = ndim - mat.ndim
    if more <= 0:
        return mat
    return bcoo_broadcast_in_dim(mat, shape=(*(1,) * more, *mat.shape),
                                 broadcast_dimensions=range(more, ndim))


def add(left: Any, right: Any) -> Any:
    """The sum: sparse if both operands are, otherwise dense.

    Raises:
      NotImplementedError: a dense operand is smaller than the sum, or layouts differ.
    """
    if isinstance(left, BCOO) and isinstance(right, BCOO):
        jnp.broadcast_shapes(left.shape, right.shape)
        if left.shape != right.shape:
            raise NotImplementedError("Addition between sparse matrices of different shapes.")
        if (left.n_batch, left.n_dense) != (right.n_batch, right.n_dense):
            raise NotImplementedError(
                "Addition between sparse matrices with different batch/dense dimensions.")
        left, right = whole(left), whole(right)
        data = jnp.concatenate(promoted(left.data, right.data), left.n_batch)
        return BCOO((data, jnp.concatenate([left.indices, right.indices], left.n_batch)),
                    shape=left.shape)
    mat, other = (left, right) if isinstance(left, JAXSparse) else (right, left)
    other = jnp.asarray(other)
    if jnp.broadcast_shapes(mat.shape, other.shape) != other.shape:
        raise NotImplementedError(
            "Addition between a sparse array X and a dense array Y is not implemented when the "
            "output shape is larger than Y.shape. This is to prevent silent densification of a "
            "large sparse array. If this is your intent, you can explicitly cast the sparse array "
            "to a dense matrix.")
    return mat.todense() + other


def subtract(left: Any, right: Any) -> Any:
    """The difference of two sparse arrays.

    Raises:
      NotImplementedError: one is dense, as in JAX.
    """
    if not (isinstance(left, BCOO) and isinstance(right, BCOO)):
        raise NotImplementedError("Subtraction between sparse and dense array.")
    return add(left, right._like(-right.data))


def multiply(left: Any, right: Any) -> BCOO:
    """The elementwise product; sparse."""
    if isinstance(left, BCOO) and isinstance(right, BCOO):
        ndim = max(left.ndim, right.ndim)
        return bcoo_multiply_sparse(_raised(left, ndim), _raised(right, ndim))
    mat, other = (left, right) if isinstance(left, BCOO) else (right, left)
    other = jnp.asarray(other)
    shapes = (mat.shape, other.shape)
    jnp.broadcast_shapes(*(shapes if mat is left else shapes[::-1]))
    mat = _raised(mat, other.ndim)
    return mat._like(bcoo_multiply_dense(mat, other))


def divide(left: Any, right: Any) -> BCOO:
    """The quotient by a dense array; sparse.

    Raises:
      NotImplementedError: the divisor is sparse.
    """
    if isinstance(right, JAXSparse):
        raise NotImplementedError(
            "Division by a sparse array is not implemented because it would result in dense "
            "output. If this is your intent, use sparse.todense() to convert your arguments to a "
            "dense array.")
    right = jnp.asarray(right)
    mat = _raised(left, right.ndim)
    ones = mat._like(jnp.ones(mat.data.shape, right.dtype))
    return mat._like(mat.data / (bcoo_multiply_dense(ones, right) if right.ndim else right))


def power(mat: BCOO, exponent: int) -> BCOO:
    """A positive whole power.

    Raises:
      NotImplementedError: the exponent is not positive.
    """
    if exponent <= 0:
        raise NotImplementedError(
            f"sparse rule for integer_pow with non-positive exponent {exponent} is not implemented "
            "because it would result in dense output. If this is your intent, use sparse.todense() "
            "to convert your argument to a dense array.")
    mat = unique(mat)
    return mat._like(mat.data ** exponent)


def _pow(mat: BCOO, exponent: Any) -> BCOO:
    if not isinstance(exponent, int):
        raise NotImplementedError("sparse rule for pow is not implemented.")
    return power(mat, exponent)


def _abs(mat: BCOO) -> BCOO:
    mat = unique(mat)
    return mat._like(jnp.abs(mat.data))


def densifies(name: str) -> NotImplementedError:
    """The error of a function that gives dense arrays of sparse ones."""
    return NotImplementedError(
        f"sparse rule for {name} is not implemented because it would result in dense output. If "
        "this is your intent, use sparse.todense() to convert your arguments to dense matrices.")


def _refused(name: str) -> Callable[[BCOO, Any], Any]:
    def refuse(mat: BCOO, other: Any) -> Any:
        raise densifies(name)
    return refuse


def _iterate(mat: BCOO) -> Iterator[Any]:
    if not mat.ndim:
        raise TypeError("iteration over a 0-d array")
    return (mat[i] for i in range(mat.shape[0]))


for _name, _function in {
        "matmul": matmul, "rmatmul": lambda mat, other: matmul(other, mat),
        "neg": lambda mat: mat._like(-mat.data), "pos": lambda mat: mat, "abs": _abs,
        "mul": multiply, "rmul": lambda mat, other: multiply(other, mat),
        "add": add, "radd": lambda mat, other: add(other, mat),
        "sub": subtract, "rsub": lambda mat, other: subtract(other, mat),
        "truediv": divide, "rtruediv": lambda mat, other: divide(other, mat), "pow": _pow,
        "iter": _iterate,
        **{name: _refused(name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}}.items():
    setattr(BCOO, f"__{_name}__", _function)
BCOO.__hash__ = None      # type: ignore[assignment]
