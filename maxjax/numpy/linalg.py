"""jax.numpy.linalg: norms, products and decompositions."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import TracerArrayConversionError
from maxjax._base.lazy import opt_einsum
from maxjax._higher_order.function_stages import add_stages, refuse_unhashable
from maxjax._higher_order.named_calls import named
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax.lax._operands import canonical_axis
from maxjax.numpy import _complex as complex_parts
from maxjax.numpy import _contraction as contraction
from maxjax.numpy import _einsum
from maxjax.numpy import _matrices as matrices
from maxjax.numpy import _ranges as ranges
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _special_values as special_values
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._at_once import at_once
from maxjax.numpy._decompositions import cholesky, eig, eigh, eigvals, eigvalsh, qr, svd, svdvals
from maxjax.numpy._determinants import det, slogdet
from maxjax.numpy._linear_systems import inv, lstsq, matrix_rank, pinv, solve
from maxjax.numpy._promotion import (
    as_array,
    canonical_axes,
    check_arraylike,
    promote_inexact,
    static,
)
from maxjax.numpy._where import where

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
    "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
    "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm",
]


@at_once
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Array:
    """The norm of vectors (one axis) or matrices (two axes).

    Args:
      x: an array.
      ord: for vectors any number, with 0 the number of non-zero elements; for matrices "fro", 1,
        -1, 2, -2, inf, -inf, "nuc". By default the root of the sum of the squares of all elements.
      axis: one axis (vectors) or two (matrices); None: all.
      keepdims: whether the reduced axes stay, with size 1.

    Returns:
      An array of real floats without the reduced axes. The derivative at 0 is NaN.

    Raises:
      ValueError: the order is not one of these, or there are more than two axes.
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``linalg.vector_norm``, ``linalg.matrix_norm``, ``vdot``.

    >>> jnp.linalg.norm(jnp.array([[3., 4.], [0., 0.]]), axis=1)
    Array([5., 0.], dtype=float32)
    """
    check_arraylike("jnp.linalg.norm", x)
    if isinstance(ord, Array):
        ord = static(ord, "ord")
    return _norm(x, ord=ord, axis=axis, keepdims=bool(keepdims))


@named("norm", "ord", "axis", "keepdims")
def _norm(x: Any, *, ord: Any, axis: Any, keepdims: bool) -> Array:
    x = as_array(promote_inexact("jnp.linalg.norm", x)[0])
    rank = x.ndim
    if axis is None:
        if ord is None:
            return ufuncs.sqrt(reductions.sum(_squares(x), keepdims=keepdims))
        axes: tuple[int, ...] = tuple(range(rank))
    elif isinstance(axis, (tuple, list)):
        axes = tuple(canonical_axis(i, rank) for i in axis)
    else:
        axes = (canonical_axis(operator.index(axis), rank),)
    if len(axes) == 1:
        return _vector_norm(x, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix_norm(x, "fro" if ord is None else ord, axes, keepdims)
    raise ValueError(f"Improper number of axes for norm: axis={axes}. Pass one axis to compute a "
                     "vector-norm, or two axes to compute a matrix-norm.")


def _squares(x: Array) -> Array:
    if dtypes.is_complex(x.dtype):
        return complex_parts.real(x * complex_parts.conj(x))
    return x * x


def _vector_norm(x: Array, order: Any, axes: Any, keepdims: bool) -> Array:
    if isinstance(order, str):
        message = f"Invalid order '{order}' for vector norm."
        if order == "inf":
            message += "Use 'jax.numpy.inf' instead."
        raise ValueError(message)
    if order == 2:
        return ufuncs.sqrt(reductions.sum(_squares(x), axes, keepdims=keepdims))
    magnitude = ufuncs.abs(x)
    if order == np.inf:
        return reductions.max(magnitude, axes, keepdims=keepdims, initial=0)
    if order == -np.inf:
        return reductions.min(magnitude, axes, keepdims=keepdims)
    if order == 0:
        return reductions.sum(x != 0, axes, dtype=magnitude.dtype, keepdims=keepdims)
    if order == 1:
        return reductions.sum(magnitude, axes, keepdims=keepdims)
    if isinstance(order, Tracer):      # because its value selects the formula
        raise TracerArrayConversionError(order)
    total = reductions.sum(magnitude ** order, axes, keepdims=keepdims)
    return total ** (1.0 / order)


def _matrix_norm(x: Array, order: Any, axes: tuple[int, ...], keepdims: bool) -> Array:
    row, column = axes
    if order in ("fro", "f"):
        return ufuncs.sqrt(reductions.sum(_squares(x), axes, keepdims=keepdims))
    if order in (1, -1, np.inf, -np.inf):
        summed, compared = (row, column) if order in (1, -1) else (column, row)
        lines = reductions.sum(ufuncs.abs(x), summed, keepdims=True)
        result = (reductions.max(lines, compared, keepdims=True, initial=0) if order > 0 else
                  reductions.min(lines, compared, keepdims=True))
        return result if keepdims else shapes.squeeze(result, axes)
    if order in ("nuc", 2, -2):
        values = svd(shapes.moveaxis(x, axes, (-2, -1)), compute_uv=False)
        result = (reductions.sum(values, -1) if order == "nuc" else
                  reductions.max(values, -1, initial=0) if order == 2 else
                  reductions.min(values, -1))
        return shapes.expand_dims(result, axes) if keepdims else result
    raise ValueError(f"Invalid order '{order}' for matrix norm.")


@at_once
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """The norm of the array as a vector, over one, several or all axes.

    >>> jnp.linalg.vector_norm(jnp.array([[1., -2.], [3., 0.]]), ord=1)
    Array(6., dtype=float32)
    """
    check_arraylike("jnp.linalg.vector_norm", x)
    x = as_array(promote_inexact("jnp.linalg.vector_norm", x)[0])
    if isinstance(axis, int):
        return norm(x, ord, axis, keepdims)
    return _vector_norm(x, ord, canonical_axes(axis, x.ndim), keepdims)


@at_once
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """The norm of the matrices in the last two axes.

    >>> jnp.linalg.matrix_norm(jnp.array([[1., -2.], [3., 0.]]), ord=1)
    Array(4., dtype=float32)
    """
    return norm(x, ord, (-2, -1), keepdims)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Swaps the last two axes.

    >>> jnp.linalg.matrix_transpose(jnp.ones((4, 2, 3))).shape
    (4, 3, 2)
    """
    return shapes.matrix_transpose(x)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """The diagonals of the matrices in the last two axes.

    >>> jnp.linalg.diagonal(jnp.array([[1, 2], [3, 4]]), offset=1)
    Array([2], dtype=int32)
    """
    return matrices.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sums of the diagonals of the matrices in the last two axes.

    >>> jnp.linalg.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return matrices.trace(x, offset, -2, -1, dtype)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of three elements.

    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    check_arraylike("jnp.linalg.cross", x1, x2)
    x1, x2 = as_array(x1), as_array(x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError("Both input arrays must be (arrays of) 3-dimensional vectors, but they "
                         f"have {x1.shape[axis]} and {x2.shape[axis]} dimensions instead.")
    return contraction.cross(x1, x2, axis=axis)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The products of all pairs of elements of two vectors.

    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    check_arraylike("jnp.linalg.outer", x1, x2)
    x1, x2 = as_array(x1), as_array(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are {x1.ndim=} "
                         f"{x2.ndim=}")
    return contraction.outer(x1, x2)


def matmul(x1: Any, x2: Any, /, *, precision: Any = None,
           preferred_element_type: Any = None) -> Array:
    """The matrix product.

    >>> jnp.linalg.matmul(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    return contraction.matmul(x1, x2, precision=precision,
                              preferred_element_type=preferred_element_type)


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None,
           preferred_element_type: Any = None) -> Array:
    """The products of vectors along an axis, with the first conjugated.

    >>> jnp.linalg.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    return contraction.vecdot(x1, x2, axis=axis, precision=precision,
                              preferred_element_type=preferred_element_type)


def tensordot(x1: ArrayLike, x2: ArrayLike, /, *, axes: Any = 2, precision: Any = None,
              preferred_element_type: Any = None, out_sharding: Any = None) -> Array:
    """The product over given axes.

    >>> jnp.linalg.tensordot(jnp.ones((2, 3, 4)), jnp.ones((3, 4, 5))).shape
    (2, 5)
    """
    return contraction.tensordot(x1, x2, axes, precision=precision,
                                 preferred_element_type=preferred_element_type,
                                 out_sharding=out_sharding)


@at_once
def matrix_power(a: Any, n: int) -> Array:
    """The ``n``-th power of square matrices, by repeated squaring.

    >>> jnp.linalg.matrix_power(jnp.array([[1, 1], [1, 0]]), 10)
    Array([[89, 55],
           [55, 34]], dtype=int32)
    """
    x = as_array(a, "jnp.linalg.matrix_power")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise TypeError(f"Last 2 dimensions of the array must be square; got {x.shape}")
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"exponent must be an integer, got {n}") from None
    if n < 0:
        x, n = inv(x), -n
    if n == 0:
        return shapes.broadcast_to(ranges.eye(x.shape[-1], dtype=x.dtype), x.shape)
    result: Array | None = None
    while n:
        if n & 1:
            result = x if result is None else contraction.matmul(result, x)
        n >>= 1
        if n:
            x = contraction.matmul(x, x)
    assert result is not None
    return result


@at_once
def multi_dot(arrays: Sequence[Any], *, precision: Any = None) -> Array:
    """The product of several matrices, in the cheapest order.

    >>> jnp.linalg.multi_dot([jnp.ones((2, 9)), jnp.ones((9, 1)), jnp.ones((1, 3))])
    Array([[9., 9., 9.],
           [9., 9., 9.]], dtype=float32)
    """
    check_arraylike("jnp.linalg.multi_dot", *arrays)
    values = [as_array(x) for x in arrays]
    if len(values) < 2:
        raise ValueError("multi_dot requires at least two arrays")
    if any(x.ndim != 2 for x in values[1:-1]) or any(
            x.ndim not in (1, 2) for x in (values[0], values[-1])):
        raise ValueError("multi_dot: input arrays must all be two-dimensional, except for the "
                         "first and last which can be one-dimensional")
    if any(x.shape[-1] != y.shape[0] for x, y in itertools.pairwise(values)):
        raise ValueError("multi_dot: last dimension of each array must match first dimension of "
                         f"following array. Got array shapes {[x.shape for x in values]}")
    multiply = functools.partial(contraction.matmul, precision=precision)
    if len(values) == 2:
        return multiply(*values)
    letters = "abcdefghijklmnopqrstuvwxyz"
    if len(values) >= len(letters):
        return functools.reduce(multiply, values)
    terms = [letters[i:i + 2] for i in range(len(values))]
    if values[0].ndim == 1:
        terms[0] = terms[0][1]
    if values[-1].ndim == 1:
        terms[-1] = terms[-1][0]
    text = ",".join(terms)
    path, _ = opt_einsum.contract_path(text, *[x.shape for x in values], shapes=True)
    return _einsum.einsum(text, *values, optimize=list(path), precision=precision)


@at_once
def cond(x: Any, p: Any = None) -> Array:
    """The condition number: ``norm(x, p) * norm(inv(x), p)``, the amplification of errors in
    solving.

    Args:
      x: shape ``(..., m, n)``; square unless ``p`` is None, 2 or -2.
      p: an order of ``norm``; None is 2.

    >>> jnp.linalg.cond(jnp.array([[4., 0.], [0., 1.]]))
    Array(4., dtype=float32)
    """
    check_arraylike("jnp.linalg.cond", x)
    x = as_array(promote_inexact("jnp.linalg.cond", x)[0])
    if x.ndim < 2:
        raise ValueError(
            f"jnp.linalg.cond: input array must be at least 2D; got arr.shape={x.shape}")
    if 0 in x.shape[-2:]:
        raise ValueError("jnp.linalg.cond: input array must not be empty")
    if p in (None, 2, -2):
        values = svd(x, compute_uv=False)
        least, greatest = values[..., -1], values[..., 0]
        result = least / greatest if p == -2 else greatest / least
    else:
        if x.shape[-2] != x.shape[-1]:
            raise ValueError("jnp.linalg.cond: for p not None or 2, matrix must be square")
        result = norm(x, p, (-2, -1)) * norm(inv(x), p, (-2, -1))
    # Infinite for a singular matrix, unless it contains NaN.
    unknown = special_values.isnan(result) & ~reductions.any(special_values.isnan(x), (-2, -1))
    return where(unknown, np.inf, result)


@at_once
def tensorinv(a: Any, ind: int = 2) -> Array:
    """The inverse of the linear map ``tensordot(a, ., ind)``, as an array of its shape.

    >>> jnp.linalg.tensorinv(jnp.ones((6, 2, 3)) + jnp.eye(6).reshape(6, 2, 3), ind=1).shape
    (2, 3, 6)
    """
    x = as_array(a, "jnp.linalg.tensorinv")
    if ind <= 0:
        raise ValueError(f"ind must be a positive integer; got ind={ind}")
    rows, columns = x.shape[:ind], x.shape[ind:]
    if math.prod(rows) != math.prod(columns):
        raise ValueError("input array must satisfy prod(a.shape[:ind]) == prod(a.shape[ind:]); "
                         f"got shape={x.shape} ind={ind}")
    return inv(x.reshape(math.prod(rows), -1)).reshape(*columns, *rows)


@at_once
def tensorsolve(a: Any, b: Any, axes: tuple[int, ...] | None = None) -> Array:
    """``x`` with ``tensordot(a, x, x.ndim) = b``.

    Args:
      axes: the axes of ``a`` that are moved to its end first.

    >>> jnp.linalg.tensorsolve(jnp.eye(6).reshape(2, 3, 6), jnp.ones((2, 3)))
    Array([1., 1., 1., 1., 1., 1.], dtype=float32)
    """
    a, b = as_array(a, "jnp.linalg.tensorsolve"), as_array(b, "jnp.linalg.tensorsolve")
    if axes is not None:
        a = shapes.moveaxis(a, axes, tuple(range(a.ndim - len(axes), a.ndim)))
    shape = a.shape[b.ndim:]
    if a.shape[:b.ndim] != b.shape:
        raise ValueError("After moving axes to end, leading shape of a must match shape of b. got "
                         f"a.shape={a.shape}, b.shape={b.shape}")
    if math.prod(b.shape) != math.prod(shape):
        raise ValueError("Input arrays must have prod(a.shape[:b.ndim]) == prod(a.shape[b.ndim:]);"
                         f" got a.shape={a.shape}, b.ndim={b.ndim}.")
    return solve(a.reshape(b.size, -1), b.ravel()).reshape(shape)


add_stages(globals(), """
    cholesky cond det eigh eigvals eigvalsh inv matrix_power matrix_rank norm qr slogdet solve
    svd
""")
refuse_unhashable(globals(), "matmul vecdot", "precision", "preferred_element_type")
refuse_unhashable(globals(), "multi_dot", "precision")
refuse_unhashable(globals(), "pinv", "hermitian")
refuse_unhashable(globals(), "trace", "dtype")
refuse_unhashable(globals(), "diagonal", "offset")
refuse_unhashable(globals(), "vector_norm", "keepdims")
