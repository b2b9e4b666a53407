"""Products of arrays: dot, matmul, tensordot and related functions."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.tracebacks import boundary
from maxjax._higher_order.constraints import with_out_sharding
from maxjax._higher_order.named_calls import named
from maxjax._ir.dimensions import broadcast_shapes
from maxjax._ir.trace import Array
from maxjax._ir.typing import ArrayLike
from maxjax._primitives import layout
from maxjax._primitives.contraction import dot_general_p
from maxjax._primitives.convert import convert_element_type
from maxjax.lax._contraction import canonical_precision
from maxjax.lax._operands import canonical_axis
from maxjax.lax._over_mesh import explicit_mesh, partitions
from maxjax.numpy import _joining as joining
from maxjax.numpy import _shape as shapes
from maxjax.numpy._at_once import at_once
from maxjax.numpy._complex import conj
from maxjax.numpy._logic import vectorize
from maxjax.numpy._promotion import (
    as_array,
    check_arraylike,
    check_out,
    promote_dtypes,
    resolve,
    type_of,
    weak_scalar,
)

__all__ = [
    "cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot", "vdot", "vecdot",
    "vecmat",
]


def _operands(name: str, a: Any, b: Any, preferred: Any) -> tuple[Array, Array, Any]:
    """The operands as arrays, each of its own dtype."""
    check_arraylike(name, a, b)
    a, b = (as_array(x) for x in resolve(name, (a, b)))
    if preferred is not None:
        preferred = dtypes.argument(preferred, name)
    return a, b, preferred


def _check_core(name: str, signature: str, vector: Any, matrix: Any, side: int) -> None:
    """Checks the dimensions of a product of vectors and matrices over dimension ``side``."""
    vector, matrix = shapes.shape(vector), shapes.shape(matrix)
    if not vector or len(matrix) < 2:
        raise ValueError(f"{name}: operands of shapes {vector} and {matrix} do not have enough "
                         f"dimensions for {signature}")
    if vector[-1] != matrix[side]:
        raise ValueError(f"{name}: inconsistent sizes: vectors of {vector[-1]} elements, matrices "
                         f"of shape {matrix[-2:]}, for {signature}")


def _check_contracted(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    if left != right:
        raise TypeError("dot_general requires contracting dimensions to have the same shape, got "
                        f"{left} and {right}.")


def contract(a: Array, b: Array, contracted: tuple[Any, Any], batch: tuple[Any, Any] = ((), ()),
             precision: Any = None, preferred: Any = None) -> Array:
    """dot_general; the result's dtype is the operands' common one unless ``preferred`` is given."""
    sizes = [tuple(x.shape[i] for i in axes) for x, axes in zip((a, b), contracted, strict=True)]
    _check_contracted(*sizes)
    for axes in contracted:
        if len(set(axes)) < len(axes):
            raise TypeError("dot_general requires contracting dimensions to be distinct, got "
                            f"{tuple(axes)}.")
    precision = canonical_precision(precision)
    result_dtype, weak = preferred, False
    if preferred is None:
        result_dtype, weak = dtypes.promote((type_of(a), type_of(b)))
    result = dot_general_p.bind(
        a, b, dimension_numbers=(tuple(map(tuple, contracted)), tuple(map(tuple, batch))),
        precision=precision, preferred_element_type=result_dtype)
    return convert_element_type(result, result_dtype, weak)


_MATRIX_NUMBERS = (((1,), (0,)), ((), ()))


@at_once
def matmul(a: ArrayLike, b: ArrayLike, *, precision: Any = None,
           preferred_element_type: Any = None, out_sharding: Any = None) -> Array:
    """The matrix product; leading dimensions broadcast, vectors are rows and columns.

    ``(..., M, K) @ (..., K, N) -> (..., M, N)``

    Args:
      a: shape ``(..., M, K)`` or ``(K,)``.
      b: shape ``(..., K, N)`` or ``(K,)``.
      precision: of the products on accelerators, ``None`` or a ``lax.Precision``; two for the two
        operands.
      preferred_element_type: the dtype of accumulation and of the result; None: the promoted one.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array ``(..., M, N)``, without ``M`` or ``N`` where an operand is a vector. Integers are
      multiplied as such and wrap around.

    Raises:
      ValueError: an operand is a scalar, or the leading dimensions do not broadcast.
      TypeError: the inner sizes differ.

    See also: ``dot``, ``vecdot``, ``matvec``, ``einsum``, ``tensordot``, ``lax.dot_general``.

    >>> jnp.matmul(jnp.ones((5, 1, 2, 3)), jnp.ones((4, 3, 6))).shape
    (5, 4, 2, 6)
    """
    if out_sharding is not None:
        return with_out_sharding(matmul, out_sharding, a, b, precision=precision,
            preferred_element_type=preferred_element_type)
    if isinstance(a, Array) and isinstance(b, Array) and preferred_element_type is None and (
            a.aval.ndim == 2 and b.aval.ndim == 2 and a.aval.dtype is b.aval.dtype
            and not a.aval.weak_type and not b.aval.weak_type and a.aval.dtype is not dtypes.bool_
            and a.aval.shape[1] == b.aval.shape[0]):
        return dot_general_p.bind(
            a, b, dimension_numbers=_MATRIX_NUMBERS,
            precision=canonical_precision(precision),
            preferred_element_type=a.aval.dtype)
    a, b, preferred = _operands("matmul", a, b, preferred_element_type)
    for position, x in enumerate((a, b)):
        if x.ndim == 0:
            raise ValueError(f"matmul input operand {position} must have ndim at least 1, but it "
                             "has ndim 0")
    row, column = a.ndim == 1, b.ndim == 1
    if column:      # b has no batch
        return contract(a, b, ((a.ndim - 1,), (0,)), precision=precision, preferred=preferred)
    if row:
        _check_contracted(a.shape, b.shape[-2:-1])
        return contract(b, a, ((b.ndim - 2,), (0,)), precision=precision, preferred=preferred)
    if b.ndim == 2 or all(size == 1 for size in b.shape[:-2]) and b.ndim <= a.ndim:
        return contract(a, layout.reshape(b, b.shape[-2:]), ((a.ndim - 1,), (0,)),
                        precision=precision, preferred=preferred)
    try:
        batch = broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise _incompatible(a, b) from None
    if explicit_mesh(a, b) is not None and any(
            one != other and 1 not in (m, n) for m, n, one, other in zip(*(
                x[-3::-1] for x in (a.shape, b.shape, partitions(a), partitions(b))))):
        raise _incompatible(a, b)
    a, b = (shapes.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    count = len(batch)
    leading = tuple(range(count))
    return contract(a, b, ((count + 1,), (count,)), (leading, leading), precision, preferred)


@at_once
@boundary
def dot(a: ArrayLike, b: ArrayLike, *, precision: Any = None, preferred_element_type: Any = None,
        out_sharding: Any = None) -> Array:
    """The product over the last axis of ``a`` and the second-to-last (or only) axis of ``b``.

    Args:
      a: shape ``(..., K)``, or a scalar, which only scales.
      b: shape ``(K,)`` or ``(..., K, N)``, or a scalar.
      precision: of the products on accelerators, ``None`` or a ``lax.Precision``; two for the two
        operands.
      preferred_element_type: the dtype of accumulation and of the result; None: the promoted one.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of the other dimensions, first those of ``a``, then those of ``b``: leading
      dimensions make an outer product, where ``matmul`` broadcasts them.

    Raises:
      TypeError: the sizes K differ, or an argument is a list.

    See also: ``matmul``, ``vdot``, ``tensordot``, ``einsum``, ``lax.dot_general``.

    >>> jnp.dot(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
    Array([12, 34], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(dot, out_sharding, a, b, precision=precision,
            preferred_element_type=preferred_element_type)
    a, b, preferred = _operands("dot", a, b, preferred_element_type)
    if not a.ndim or not b.ndim:
        return contract(a, b, ((), ()), precision=precision, preferred=preferred)
    axis = 0 if b.ndim == 1 else b.ndim - 2
    return contract(a, b, ((a.ndim - 1,), (axis,)), precision=precision, preferred=preferred)


@at_once
def vdot(a: ArrayLike, b: ArrayLike, *, precision: Any = None,
         preferred_element_type: Any = None) -> Array:
    """The product of the flattened arrays, with the first conjugated.

    Args:
      a, b: arrays with the same number of elements, of any shapes.
      precision: of the products on accelerators, ``None`` or a ``lax.Precision``; two for the two
        operands.
      preferred_element_type: the dtype of accumulation and of the result; None: the promoted one.

    Returns:
      A scalar array of the dtype to which the two promote.

    Raises:
      TypeError: the numbers of elements differ.

    See also: ``dot``, ``vecdot``, ``inner``, ``linalg.vecdot``.

    >>> jnp.vdot(jnp.array([1 + 2j, 1j]), jnp.array([1 + 2j, 1]))
    Array(5.-1.j, dtype=complex64)
    """
    check_arraylike("vdot", a, b)
    return dot(shapes.ravel(conj(a)), shapes.ravel(b), precision=precision,
               preferred_element_type=preferred_element_type)


@at_once
def inner(a: ArrayLike, b: ArrayLike, *, precision: Any = None,
          preferred_element_type: Any = None) -> Array:
    """The product over the last axes.

    Args:
      a, b: arrays whose last sizes agree, or scalars.
      precision: of the products on accelerators, ``None`` or a ``lax.Precision``; two for the two
        operands.
      preferred_element_type: the dtype of accumulation and of the result; None: the promoted one.

    Returns:
      An array of the other dimensions, first those of ``a``, then those of ``b``.

    Raises:
      TypeError: the last sizes differ.

    See also: ``dot``, ``vdot``, ``vecdot``, ``tensordot``.

    >>> jnp.inner(jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 0], [0, 1], [1, 1]]))
    Array([[1, 2, 3],
           [3, 4, 7]], dtype=int32)
    """
    a, b, preferred = _operands("inner", a, b, preferred_element_type)
    if not a.ndim or not b.ndim:
        return contract(a, b, ((), ()), precision=precision, preferred=preferred)
    return contract(a, b, ((a.ndim - 1,), (b.ndim - 1,)), precision=precision,
                    preferred=preferred)


@at_once
def outer(a: ArrayLike, b: ArrayLike, out: Any = None) -> Array:
    """The products of all pairs of elements of the flattened arrays.

    Args:
      a: an array of M elements.
      b: an array of N elements.
      out: None: arrays are immutable, so that nothing is written into one.

    Returns:
      A matrix ``(M, N)`` of the dtype to which the two promote.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.
      NotImplementedError: ``out`` is given.

    See also: ``multiply``, ``inner``, ``kron``, ``einsum``, ``tensordot``.

    >>> jnp.outer(jnp.arange(1, 3), jnp.arange(1, 4))
    Array([[1, 2, 3],
           [2, 4, 6]], dtype=int32)
    """
    check_out("outer", out)
    check_arraylike("outer", a, b)
    return shapes.expand_dims(shapes.ravel(a), 1) * shapes.expand_dims(shapes.ravel(b), 0)


def _maps(a: Any, b: Any, *core: int) -> bool:
    """Whether the dimensions before the core ones are mapped one by one: over Explicit axes, where
    `vmap` says how these may be split."""
    return explicit_mesh(a, b) is not None and any(
        x.ndim > count for x, count in zip((a, b), core, strict=True))


@at_once
def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: Any = None,
           preferred_element_type: Any = None) -> Array:
    """The product over one axis, with the first operand conjugated; the other axes broadcast.

    Args:
      x1, x2: arrays of vectors; the other dimensions broadcast.
      axis: along which vectors lie in both.
      precision: of the products on accelerators, ``None`` or a ``lax.Precision``; two for the two
        operands.
      preferred_element_type: the dtype of accumulation and of the result; None: the promoted one.

    Returns:
      An array of the common shape without the axis.

    Raises:
      ValueError: the sizes differ.

    See also: ``vdot``, ``dot``, ``inner``, ``matvec``.

    >>> jnp.vecdot(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
    Array([12, 34], dtype=int32)
    """
    a, b, preferred = _operands("vecdot", x1, x2, preferred_element_type)
    first, second = (shapes.axis_as_index(axis, x.ndim) for x in (a, b))
    if a.shape[first] != b.shape[second]:
        raise ValueError(f"axes must match; got shapes {a.shape} and {b.shape} with axis={axis}")
    a, b = shapes.moveaxis(a, first, -1), shapes.moveaxis(b, second, -1)
    if _maps(a, b, 1, 1):
        return vectorize(functools.partial(
            vecdot, precision=precision, preferred_element_type=preferred_element_type),
            signature="(n),(n)->()")(a, b)
    product = matmul(conj(a)[..., None, :], b[..., None], precision=precision,
                     preferred_element_type=preferred)
    return shapes.squeeze(product, (-2, -1))


@at_once
def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Matrices times vectors: ``(..., M, K), (..., K) -> (..., M)``.

    >>> jnp.matvec(jnp.array([[1, 2], [3, 4]]), jnp.array([10, 1]))
    Array([12, 34], dtype=int32)
    """
    check_arraylike("matvec", x1, x2)
    _check_core("matvec", "(n,m),(m)->(n)", x2, x1, -1)
    if _maps(x1, x2, 2, 1):
        return vectorize(matvec, signature="(n,m),(m)->(n)")(x1, x2)
    if np.ndim(x1) == 2 and np.ndim(x2) > 1:    # the matrix is not repeated for each vector
        return matmul(x2, shapes.swapaxes(x1, 0, 1))
    return shapes.squeeze(matmul(x1, shapes.expand_dims(x2, -1)), -1)


@at_once
def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Vectors (conjugated) times matrices: ``(..., K), (..., K, N) -> (..., N)``.

    >>> jnp.vecmat(jnp.array([10, 1]), jnp.array([[1, 2], [3, 4]]))
    Array([13, 24], dtype=int32)
    """
    check_arraylike("vecmat", x1, x2)
    _check_core("vecmat", "(n),(n,m)->(m)", x1, x2, -2)
    if _maps(x1, x2, 1, 2):
        return vectorize(vecmat, signature="(n),(n,m)->(m)")(x1, x2)
    if np.ndim(x2) == 2:
        return matmul(conj(x1), x2)
    return shapes.squeeze(matmul(shapes.expand_dims(conj(x1), -2), x2), -2)


def _incompatible(a: Array, b: Array) -> ValueError:
    return ValueError(
        f"Incompatible types for matmul arguments: {a.aval.str_short()} and {b.aval.str_short()}")


@at_once
@boundary
def tensordot(a: ArrayLike, b: ArrayLike, axes: Any = 2, *, precision: Any = None,
              preferred_element_type: Any = None, out_sharding: Any = None) -> Array:
    """The product over given axes: a number of them, or a pair of lists.

    Args:
      a, b: arrays.
      axes: a number n: the last n of ``a`` with the first n of ``b``, in order. A pair of lists:
        these axes of ``a`` with those of ``b``.
      precision: of the products on accelerators, ``None`` or a ``lax.Precision``; two for the two
        operands.
      preferred_element_type: the dtype of accumulation and of the result; None: the promoted one.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of the other dimensions, first those of ``a``, then those of ``b``.

    Raises:
      TypeError: sizes differ, or there are not as many axes.

    See also: ``dot``, ``einsum``, ``matmul``, ``outer``, ``lax.dot_general``.

    >>> jnp.tensordot(jnp.ones((2, 3, 4)), jnp.ones((4, 3, 5)), axes=([1, 2], [1, 0])).shape
    (2, 5)
    """
    if out_sharding is not None:
        return with_out_sharding(tensordot, out_sharding, a, b, axes, precision=precision,
            preferred_element_type=preferred_element_type)
    a, b, preferred = _operands("tensordot", a, b, preferred_element_type)
    if isinstance(axes, (int, np.integer)):
        count = operator.index(axes)
        if count > min(a.ndim, b.ndim):
            raise TypeError(f"Number of tensordot axes (axes {count}) exceeds input ranks "
                            f"({a.shape} and {b.shape})")
        first, second = tuple(range(a.ndim - count, a.ndim)), tuple(range(count))
    else:
        if isinstance(axes, str) or len(axes) != 2:
            raise TypeError("tensordot axes argument must be an int, a pair of ints, or a pair of "
                            "lists/tuples of ints.")
        kinds = [int if isinstance(side, (int, np.integer)) else list
                 if isinstance(side, (tuple, list)) else None for side in axes]
        if kinds[0] is not kinds[1] or None in kinds:
            raise TypeError("tensordot requires both axes lists to be either ints, tuples or "
                            f"lists, got {axes[0]} and {axes[1]}")
        sides = [[side] if isinstance(side, (int, np.integer)) else list(side) for side in axes]
        if len(sides[0]) != len(sides[1]):
            raise TypeError("tensordot requires axes lists to have equal length, got "
                            f"{axes[0]} and {axes[1]}.")
        first, second = (tuple(canonical_axis(i, x.ndim) for i in side)
                         for x, side in zip((a, b), sides, strict=True))
    return contract(a, b, (first, second), precision=precision, preferred=preferred)


@at_once
def kron(a: Any, b: Any) -> Array:
    """The Kronecker product: each element of ``a`` times all of ``b``.

    Args:
      a: an array.
      b: an array; of the two, the one with fewer dimensions gets leading ones.

    Returns:
      An array whose sizes are the products of theirs, of the dtype to which the two promote.

    Raises:
      TypeError: an argument is not an array or a number, such as a list.

    See also: ``outer``, ``tensordot``, ``jax.scipy.linalg.block_diag``.

    >>> jnp.kron(jnp.array([1, 10]), jnp.array([1, 2, 3]))
    Array([ 1,  2,  3, 10, 20, 30], dtype=int32)
    """
    check_arraylike("kron", a, b)
    return _kron(a, b)


@named("kron")
def _kron(a: Any, b: Any) -> Array:
    a, b = (as_array(x) for x in promote_dtypes("kron", a, b))
    if a.dtype == dtypes.bool_:
        raise TypeError("kron does not accept dtype bool.")
    rank = max(a.ndim, b.ndim)
    a, b = (shapes.expand_dims(x, tuple(range(rank - x.ndim))) for x in (a, b))
    product = shapes.expand_dims(a, tuple(range(1, 2 * rank, 2))) * shapes.expand_dims(
        b, tuple(range(0, 2 * rank, 2)))
    return shapes.reshape(
        product, tuple(m * n for m, n in zip(a.shape, b.shape, strict=True)))


@at_once
def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1,
          axis: int | None = None) -> Array:
    """The cross product of vectors of 3 elements.

    Args:
      a, b: arrays of vectors; the other dimensions broadcast.
      axisa, axisb: where the vectors lie in ``a`` and ``b``.
      axisc: where they lie in the result.
      axis: in place of all three.

    Returns:
      An array of the common shape, of the dtype to which the two promote. Vectors of 2 elements are
      refused, as in NumPy 2.

    Raises:
      ValueError: vectors have another number of elements.

    See also: ``dot``, ``outer``, ``linalg.cross``.

    >>> jnp.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    check_arraylike("cross", a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    return _cross(a, b, axisa=axisa, axisb=axisb, axisc=axisc)


@named("cross", "axisa", "axisb", "axisc")
def _cross(a: Any, b: Any, *, axisa: int, axisb: int, axisc: int) -> Array:
    a, b = (as_array(x) for x in promote_dtypes("cross", a, b))
    a, b = shapes.moveaxis(a, axisa, -1), shapes.moveaxis(b, axisb, -1)
    if a.shape[-1] != 3 or b.shape[-1] != 3:
        raise ValueError("Dimension must be 3 for cross product")
    (a0, a1, a2), (b0, b1, b2) = (
        [x[..., i] for i in range(3)] for x in (weak_scalar(a), weak_scalar(b)))
    parts = [a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0]
    product = joining.concatenate([shapes.expand_dims(part, -1) for part in parts], -1)
    return shapes.moveaxis(product, -1, axisc)
