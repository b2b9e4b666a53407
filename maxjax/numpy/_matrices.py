"""Diagonals and triangles."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.meshes import get_abstract_mesh
from maxjax._base.shardings import NamedSharding
from maxjax._base.specs import PartitionSpec
from maxjax._higher_order.constraints import resharded
from maxjax._higher_order.named_calls import named
from maxjax._ir.dimensions import is_dimension
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike, DTypeLike
from maxjax._primitives import creation, layout, slicing
from maxjax._primitives.comparison import select_n_p
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.creation import iota_p
from maxjax._primitives.rules import nonnegative
from maxjax._runtime.outside_values import python_value
from maxjax.lax._conversion import lying_like
from maxjax.lax._operands import canonical_axis
from maxjax.lax._over_mesh import explicit_mesh, refuse_placing
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _repeating as repeating
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _whole_rules as rules
from maxjax.numpy._at_once import at_once
from maxjax.numpy._filled import zeros
from maxjax.numpy._promotion import as_array, canonical_shape, cast, check_out, concrete, static
from maxjax.numpy._where import where
from maxjax.numpy._whole import WORDS, whole

__all__ = [
    "diag", "diag_indices", "diag_indices_from", "diagflat", "diagonal", "fill_diagonal",
    "mask_indices", "trace", "tri", "tril", "tril_indices", "tril_indices_from", "triu",
    "triu_indices", "triu_indices_from", "vander",
]


@at_once
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The ``offset``-th diagonals of the matrices in two axes, along a new last axis.

    Args:
      a: an array of two dimensions or more.
      offset: above the main diagonal if positive, below if negative.
      axis1, axis2: the two dimensions of the matrices.

    Returns:
      An array without the two and with a last one; a copy, where NumPy's is a read-only view.

    Raises:
      ValueError: there are fewer than two dimensions.

    See also: ``diag``, ``trace``, ``diag_indices``.

    >>> jnp.diagonal(jnp.array([[1, 2, 3], [4, 5, 6]]), offset=1)
    Array([2, 6], dtype=int32)
    """
    x = as_array(a, "diagonal")
    if x.ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    offset = static(offset, "offset")
    if x.ndim == 2 and not offset and x.shape[0] == x.shape[1]:
        x = reductions.strong(x)      # in JAX a sum, all others are gathered
    x = shapes.moveaxis(x, (axis1, axis2), (-2, -1))
    if explicit_mesh(x) is not None:
        return _taken_diagonal(x, offset)
    rows, columns = x.shape[-2:]
    length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    # In the flattened matrix one diagonal is every (columns + 1)-th element.
    flat = layout.reshape(x, (*x.shape[:-2], rows * columns))
    start = offset if offset >= 0 else -offset * columns
    if not length:
        return slicing.slice_in_dim(flat, 0, 0, flat.ndim - 1)
    step = columns + 1
    return slicing.slice_in_dim(
        flat, start, start + (length - 1) * step + 1, flat.ndim - 1, step)


def _taken_diagonal(x: Array, offset: int) -> Array:
    """The diagonals of the last two axes by index, which are refused where these are split."""
    low, high = max(0, -offset), max(0, offset)
    places = np.arange(max(0, min(x.shape[-2] - low, x.shape[-1] - high)))
    return x[..., places + low, places + high]


@at_once
def diag(v: ArrayLike, k: int = 0) -> Array:
    """The ``k``-th diagonal of a matrix, or the matrix with a vector as its diagonal.

    Args:
      v: a matrix ``(n, m)``, or a vector ``(n,)``.
      k: above the main diagonal if positive, below if negative.

    Returns:
      A vector; or of a vector a matrix of shape ``(n + |k|, n + |k|)``.

    Raises:
      ValueError: ``v`` has neither one nor two dimensions.

    See also: ``diagonal``, ``diagflat``, ``eye``, ``fill_diagonal``.

    >>> jnp.diag(jnp.array([1, 2]), k=1)
    Array([[0, 1, 0],
           [0, 0, 2],
           [0, 0, 0]], dtype=int32)
    >>> jnp.diag(jnp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    x = as_array(v, "diag")
    if x.ndim == 2:
        return diagonal(x, k)
    if x.ndim != 1:
        raise ValueError("diag input must be 1d or 2d")
    k = operator.index(k)
    length = x.shape[0]
    size = length + abs(k)
    if not length:
        return zeros((size, size), x.dtype)
    low = k if k >= 0 else -k * size
    covered = length + (length - 1) * size
    padded = slicing.pad(x, 0, ((low, size * size - low - covered, size),))
    matrix = layout.reshape(padded, (size, size))
    return convert_element_type(matrix, x.dtype, True) if x.aval.weak_type else matrix


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with the flattened array as its ``k``-th diagonal.

    >>> jnp.diagflat(jnp.array([[1, 2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = reductions.strong(shapes.ravel(as_array(v, "diagflat")))
    refuse_placing(x)
    return diag(x, k)


@at_once
def trace(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1,
          dtype: DTypeLike | None = None, out: Any = None) -> Array:
    """The sum of a diagonal.

    Args:
      a: an array of two dimensions or more.
      offset: above the main diagonal if positive, below if negative.
      axis1, axis2: the two dimensions of the matrices.
      dtype: of the sum; None: the default integer type for smaller ones, else that of ``a``.
      out: None: arrays are immutable, so that nothing is written into one.

    Returns:
      An array without the two dimensions.

    Raises:
      ValueError: there are fewer than two dimensions.
      NotImplementedError: ``out`` is given.

    See also: ``diagonal``, ``sum``, ``einsum``.

    >>> jnp.trace(jnp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    check_out("trace", out)
    x = as_array(a, "trace")
    if x.ndim >= 2 and canonical_axis(axis1, x.ndim) == canonical_axis(axis2, x.ndim):
        raise ValueError(f"axis1 and axis2 can not be same. axis1={axis1} and axis2={axis2}")
    if dtype is not None:
        dtype = dtypes.argument(dtype, "trace")
    if x.ndim >= 2 and (is_dimension(x.shape[axis1]) or is_dimension(x.shape[axis2])
                        or explicit_mesh(x) is not None):
        return _masked_trace(x, static(offset, "offset"), axis1, axis2, dtype)
    return reductions.sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype)


def _masked_trace(x: Array, offset: Any, axis1: int, axis2: int, dtype: Any) -> Array:
    """``trace`` where it is not known how long the diagonal is."""
    x = shapes.moveaxis(x, (axis1, axis2), (-2, -1))
    shape = x.shape[-2:]
    row, column = [iota_p.bind(dtype=dtypes.int32, shape=shape, dimension=dim) for dim in (0, 1)]
    mask, zero = row + cast(offset, dtypes.int32) == column, zeros((), x.dtype)
    mesh = explicit_mesh(x)
    if mesh is not None:
        # Where the mask has to be broadcast, it is split like the array. Else, being made of no
        # operand, it has a type in a mesh only if one is set; ``where`` refuses that type beside
        # split matrices.
        if x.ndim > 2 or not get_abstract_mesh().empty:
            mask = resharded(mask, NamedSharding(mesh, PartitionSpec()))
        zero = lying_like(zeros(x.shape, x.dtype), x)
    return reductions.sum(where(mask, x, zero), axis=(-2, -1), dtype=dtype)


def _lower(rows: int, columns: int, k: Any) -> Array:
    """Whether an element of a matrix is on or below the ``k``-th diagonal."""
    if not isinstance(k, Array):    # all diagonals beyond the corners are equivalent
        python_value(operator.index(k), np.dtype(np.int32))
        k = min(max(operator.index(k), -rows), columns)
    row = iota_p.bind(dtype=dtypes.int32, shape=(rows, columns), dimension=0) + cast(
        k, dtypes.int32)
    return row >= iota_p.bind(dtype=dtypes.int32, shape=(rows, columns), dimension=1)


@at_once
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Array:
    """Ones on and below the ``k``-th diagonal, zeros above.

    Args:
      N: the number of rows.
      M: the number of columns; None: ``N``.
      k: the last diagonal of ones: above the main one if positive, below if negative.
      dtype: None: the default float.

    Returns:
      An array of shape ``(N, M)``.

    See also: ``tril``, ``triu``, ``eye``.

    >>> jnp.tri(2, 3, k=1, dtype=int)
    Array([[1, 1, 0],
           [1, 1, 1]], dtype=int32)
    """
    dtype = dtypes.canonical(dtypes.float64) if dtype is None else dtypes.argument(dtype, "tri")
    (rows,) = canonical_shape((N,))
    (columns,) = (rows,) if M is None else canonical_shape((M,))
    if rows < 0 or columns < 0:
        raise TypeError("iota shape must have every element be nonnegative, got "
                        f"{(rows, columns)}.")
    return convert_element_type(_lower(rows, columns, k), dtype)


def _triangle(name: str, m: Any, k: int, *, upper: bool) -> Array:
    x = as_array(m, name)
    if x.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D")
    return (_triu if upper else _tril)(x, k=static(k, "k"))


@named("tril", "k")
def _tril(x: Array, *, k: int) -> Array:
    return _kept_triangle(x, k=k, upper=False)


@named("triu", "k")
def _triu(x: Array, *, k: int) -> Array:
    return _kept_triangle(x, k=k, upper=True)


@whole("triangle", rules.triangle, WORDS, moves=True)
def _kept_triangle(x: Array, *, k: int, upper: bool) -> Array:
    rows, columns = x.shape[-2:]
    mask = shapes.broadcast_to(_lower(rows, columns, k - upper), x.shape)
    zero = cast(0, x.dtype, x.weak_type)
    if explicit_mesh(x) is not None:
        return where(mask, zero, x) if upper else where(mask, x, zero)
    zero = shapes.broadcast_to(zero, x.shape)
    return select_n_p.bind(mask, x, zero) if upper else select_n_p.bind(mask, zero, x)


@at_once
def tril(m: ArrayLike, k: int = 0) -> Array:
    """The matrix with zeros above the ``k``-th diagonal.

    Args:
      m: matrices ``(..., N, M)``.
      k: the last diagonal that is kept: above the main one if positive, below if negative.

    Returns:
      An array of the same shape and dtype.

    Raises:
      ValueError: there are fewer than two dimensions.

    See also: ``triu``, ``tri``, ``tril_indices``.

    >>> jnp.tril(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 0],
           [3, 4]], dtype=int32)
    """
    return _triangle("tril", m, k, upper=False)


@at_once
def triu(m: ArrayLike, k: int = 0) -> Array:
    """The matrix with zeros below the ``k``-th diagonal.

    Args:
      m: matrices ``(..., N, M)``.
      k: the first diagonal that is kept: above the main one if positive, below if negative.

    Returns:
      An array of the same shape and dtype.

    Raises:
      ValueError: there are fewer than two dimensions.

    See also: ``tril``, ``tri``, ``triu_indices``.

    >>> jnp.triu(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 2],
           [0, 4]], dtype=int32)
    """
    return _triangle("triu", m, k, upper=True)


@at_once
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of the powers of a vector.

    Args:
      x: a vector ``(n,)``.
      N: the number of columns; None: n.
      increasing: powers from 0 up; otherwise down to 0.

    Returns:
      An array of shape ``(n, N)``, of the dtype of ``x``.

    See also: ``polyval``, ``polyfit``.

    >>> jnp.vander(jnp.array([1, 2, 3]), 3)
    Array([[1, 1, 1],
           [4, 2, 1],
           [9, 3, 1]], dtype=int32)
    """
    x = as_array(x, "vander")
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array")
    count = x.shape[0] if N is None else static(N, "N")
    if x.dtype == dtypes.bool_:
        raise TypeError("vander does not accept dtype bool.")
    if count < 0:
        raise ValueError("N must be nonnegative")
    exponents = creation.iota(x.dtype if not dtypes.is_complex(x.dtype) else dtypes.float32,
                                (count,), 0)
    if not increasing:
        exponents = repeating.flip(exponents)
    return shapes.expand_dims(x, 1) ** shapes.expand_dims(exponents.astype(x.dtype), 0)


def _indices(parts: Sequence[np.ndarray]) -> tuple[Array, Array]:
    dtype = dtypes.canonical(dtypes.int64)
    rows, columns = [as_array(part.astype(dtype)) for part in parts]
    return rows, columns


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the lower triangle of an (n, m) matrix.

    Args:
      n: the number of rows.
      k: the last diagonal: above the main one if positive, below if negative.
      m: the number of columns; None: ``n``. All are known while tracing.

    Returns:
      A pair of integer arrays, of rows and of columns.

    See also: ``triu_indices``, ``tril_indices_from``, ``tril``, ``diag_indices``.

    >>> jnp.tril_indices(2)
    (Array([0, 1, 1], dtype=int32), Array([0, 0, 1], dtype=int32))
    """
    return _indices(np.tril_indices(*_three("tril_indices", n, k, m)))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the upper triangle of an (n, m) matrix.

    Args:
      n: the number of rows.
      k: the first diagonal: above the main one if positive, below if negative.
      m: the number of columns; None: ``n``. All are known while tracing.

    Returns:
      A pair of integer arrays, of rows and of columns.

    See also: ``tril_indices``, ``triu_indices_from``, ``triu``.

    >>> jnp.triu_indices(2, k=1)
    (Array([0], dtype=int32), Array([1], dtype=int32))
    """
    return _indices(np.triu_indices(*_three("triu_indices", n, k, m)))


def _three(name: str, n: Any, k: Any, m: Any) -> list[Any]:
    n, k, m = [None if value is None else operator.index(concrete(
        value, f"{argument!r} argument of jnp.{name}()"))
        for argument, value in (("n", n), ("k", k), ("m", m))]
    nonnegative("broadcast_in_dim", (n, n if m is None else m))
    return [n, k, m]


def _matrix_shape(arr: Any) -> tuple[int, ...]:
    shape = shapes.shape(arr)
    if len(shape) != 2:
        raise ValueError("Only 2-D inputs are accepted")
    return shape


def tril_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The indices of the lower triangle of a matrix.

    >>> jnp.tril_indices_from(jnp.ones((2, 3)), k=-1)
    (Array([1], dtype=int32), Array([0], dtype=int32))
    """
    rows, columns = _matrix_shape(arr)
    return tril_indices(rows, k, columns)


def triu_indices_from(arr: ArrayLike, k: int = 0) -> tuple[Array, Array]:
    """The indices of the upper triangle of a matrix.

    >>> jnp.triu_indices_from(jnp.ones((2, 2)))
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    rows, columns = _matrix_shape(arr)
    return triu_indices(rows, k, columns)


def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array of ``ndim`` dimensions of size ``n``.

    Args:
      n: the size; known while tracing.
      ndim: how many dimensions.

    Returns:
      A tuple of ``ndim`` integer arrays ``(n,)``.

    Raises:
      ValueError: a number is negative.

    See also: ``diag_indices_from``, ``diagonal``, ``tril_indices``, ``fill_diagonal``.

    >>> x = jnp.zeros((2, 2))
    >>> x.at[jnp.diag_indices(2)].set(5.0)
    Array([[5., 0.],
           [0., 5.]], dtype=float32)
    """
    n = operator.index(concrete(n, "'n' argument of jnp.diag_indices()"))
    ndim = operator.index(concrete(ndim, "'ndim' argument of jnp.diag_indices()"))
    if n < 0:
        raise ValueError(f"n argument to diag_indices must be nonnegative, got {n}")
    if ndim < 0:
        raise ValueError(f"ndim argument to diag_indices must be nonnegative, got {ndim}")
    line = creation.iota(dtypes.canonical(dtypes.int64), (n,), 0)
    return (line,) * ndim


def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array.

    >>> jnp.diag_indices_from(jnp.ones((2, 2)))
    (Array([0, 1], dtype=int32), Array([0, 1], dtype=int32))
    """
    x = as_array(arr, "diag_indices_from")
    if len(set(x.shape)) > 1:
        raise ValueError("All dimensions of input must be equal")
    if x.ndim < 2:
        raise ValueError("input array must be at least 2-d")
    return diag_indices(x.shape[0], x.ndim)


def mask_indices(n: int, mask_func: Callable[..., Any], k: int = 0, *,
                 size: int | None = None) -> tuple[Array, ...]:
    """The indices where ``mask_func(ones((n, n)), k)`` is nonzero.

    >>> jnp.mask_indices(2, jnp.triu)
    (Array([0, 0, 1], dtype=int32), Array([0, 1, 1], dtype=int32))
    """
    return where(mask_func(creation.full((n, n), 1, dtypes.int32), k), size=size)


def fill_diagonal(a: ArrayLike, val: Any, wrap: bool = False, *, inplace: bool = True) -> Array:
    """The array with ``val`` on its main diagonal.

    Raises:
      NotImplementedError: ``inplace`` is not False.

    >>> jnp.fill_diagonal(jnp.ones((2, 3)), 5.0, inplace=False)
    Array([[5., 1., 1.],
           [1., 5., 1.]], dtype=float32)
    """
    if inplace:
        raise NotImplementedError("JAX arrays are immutable, must use inplace=False")
    if wrap:
        raise NotImplementedError("wrap=True is not implemented, must use wrap=False")
    x = as_array(a, "fill_diagonal")
    if x.ndim < 2:
        raise ValueError("array must be at least 2-d")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    length = min(x.shape)
    line = creation.iota(dtypes.int32, (length,), 0)
    value = shapes.ravel(as_array(cast(val, x.dtype)))
    if value.shape[0] > 1:
        value = repeating.resize(value, (length,))
    return x.at[(line,) * x.ndim].set(value)
