"""Shapes: reshaping, permuting, broadcasting, repeating, reversing, rotating."""

from __future__ import annotations

import functools
import math
import operator
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base.errors import InconclusiveDimensionOperation
from maxjax._higher_order.constraints import reshape_with_out_sharding, with_out_sharding
from maxjax._higher_order.named_calls import named
from maxjax._ir import dimensions
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.typing import ArrayLike, Shape
from maxjax._primitives import layout
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.gather_plan import GatherDimensionNumbers, GatherScatterMode
from maxjax._primitives.indexing import gather_p
from maxjax._primitives.layout import copy_p, squeeze_p
from maxjax.lax._operands import canonical_axis
from maxjax.lax._over_mesh import broadcast_over, check_reshape, explicit_mesh
from maxjax.numpy._promotion import (
    apart,
    as_array,
    canonical_axes,
    canonical_shape,
    check_arraylike,
    concrete,
    is_arraylike,
)

__all__ = [
    "broadcast_arrays", "broadcast_shapes", "broadcast_to", "expand_dims", "matrix_transpose",
    "moveaxis", "ndim", "permute_dims", "ravel", "reshape", "rollaxis", "shape", "size", "squeeze",
    "swapaxes", "transpose",
]


def shape(a: ArrayLike) -> tuple[int, ...]:
    """The sizes of the dimensions.

    Args:
      a: an array, a number, or a nested list; tracers too: shapes are always known.

    Returns:
      A tuple of Python ints.

    See also: ``ndim``, ``size``, ``reshape``.

    >>> jnp.shape(jnp.ones((2, 3)))
    (2, 3)
    """
    own = None if isinstance(a, Array) else getattr(a, "shape", None)
    return _sizes("shape", a) if own is None else own


def _sizes(name: str, a: Any) -> tuple[int, ...]:
    if not is_arraylike(a):
        warnings.warn(
            f"{name} requires ndarray or scalar arguments, got {type(a)} at position 0. In a "
            "future JAX release this will be an error.", DeprecationWarning, stacklevel=3)
    if hasattr(a, "__jax_array__") and not isinstance(a, Array):
        a = a.__jax_array__()
    return a.shape if isinstance(a, Array) else np.shape(a)


def ndim(a: ArrayLike) -> int:
    """The number of dimensions.

    Args:
      a: an array, a number, or a nested list.

    Returns:
      A Python int, also while tracing.

    See also: ``shape``, ``size``.

    >>> jnp.ndim(jnp.ones((2, 3)))
    2
    """
    own = None if isinstance(a, Array) else getattr(a, "ndim", None)
    return len(_sizes("ndim", a)) if own is None else own


def size(a: ArrayLike, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements, or the size of an axis (or axes).

    Args:
      a: an array, a number, or a nested list.
      axis: an axis, or a tuple of them, whose sizes are multiplied; None: all.

    Returns:
      A Python int, also while tracing.

    See also: ``shape``, ``ndim``.

    >>> jnp.size(jnp.ones((2, 3)), axis=1)
    3
    """
    sizes = _sizes("size", a)
    if axis is None:
        return math.prod(sizes)
    axes = [canonical_axis(i, len(sizes)) for i in (axis if isinstance(axis, (tuple, list))
                                                    else (axis,))]
    if len(set(axes)) < len(axes):
        raise ValueError(f"repeated axis: {tuple(axes)}")
    return math.prod(sizes[i] for i in axes)


def resolved_shape(have: tuple[int, ...], wanted: Any) -> tuple[int, ...]:
    """The shape argument of a reshape, with -1 replaced.

    Raises:
      TypeError: it does not match the number of elements.
      InconclusiveDimensionOperation: that depends on symbols.
    """
    sizes = canonical_shape(
        wanted if hasattr(wanted, "__iter__") and not (
            isinstance(wanted, Tracer) and wanted.ndim == 0) else [wanted])
    total = math.prod(have)
    unknown = sizes.count(-1)
    if unknown > 1:
        raise TypeError(
            f"can only specify one unknown axis size with a `-1` value, got {sizes}")
    if unknown:
        known = math.prod(size for size in sizes if size != -1)
        remainder: Any = total % known if known else 0
        if (dimensions.is_dimension(remainder) and remainder.scope.decide is not None
                and remainder != 0):
            raise InconclusiveDimensionOperation(
                f"Cannot divide evenly the sizes of shapes {have} and {sizes}. The remainder "
                f"{remainder} should be 0.")
        if known == 0 or remainder:
            raise TypeError(
                f"cannot reshape array of shape {have} (size {total}) into shape {wanted} because "
                f"the product of specified axis sizes ({known}) does not evenly divide {total}")
        return tuple(total // known if size == -1 else size for size in sizes)
    product = math.prod(sizes)
    if product != total and (dimensions.is_open(product) or dimensions.is_open(total)):
        return sizes        # whether they are equal is seen when the sizes are known
    if product != total or any(size < 0 for size in sizes):
        raise TypeError(
            f"cannot reshape array of shape {have} (size {total}) into shape {wanted} "
            f"(size {product})")
    return sizes


def reshape(a: Any, shape: Any, order: str = "C", *, copy: bool | None = None,
            out_sharding: Any = None) -> Any:
    """The elements in another shape; one size may be -1, to be inferred.

    An array of NumPy's is reshaped by NumPy, and stays one, as in JAX.

    Args:
      a: an array.
      shape: the new sizes, known while tracing; an int for one dimension. At most one is -1.
      order: "C": the last index runs fastest; "F": the first. Not that of memory.
      copy: True: memory of its own. Otherwise as the compiler has it; there are no views.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape, with the elements and dtype of ``a``.

    Raises:
      TypeError: the number of elements does not match (of NumPy's arrays: ValueError).
      NotImplementedError: ``order`` is "A".

    See also: ``ravel``, ``squeeze``, ``expand_dims``, ``transpose``, ``lax.reshape``.

    >>> jnp.reshape(jnp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    if out_sharding is not None:
        return reshape_with_out_sharding(
            functools.partial(reshape, shape=shape, order=order, copy=copy), a, out_sharding)
    if isinstance(a, (np.ndarray, np.generic)) and not any(map(dimensions.is_dimension, (
            shape if isinstance(shape, (tuple, list)) else (shape,)))):
        return a.reshape(shape, order=order)      # type: ignore[call-overload]
    x = as_array(a, "reshape")
    sizes = resolved_shape(x.shape, shape)
    if order == "F":
        flipped = layout.reshape(_reversed_axes(x), sizes[::-1])
        return _reversed_axes(flipped)
    if order != "C":
        if order == "A":
            raise NotImplementedError("np.reshape order=A is not implemented.")
        raise ValueError(f"Unexpected value for 'order' argument: {order}.")
    check_reshape(x, sizes)
    result = layout.reshape(x, sizes)
    return copy_p.bind(result) if copy else result


def _reversed_axes(x: Array) -> Array:
    return layout.transpose(x, tuple(range(x.ndim))[::-1])


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: Any = None) -> Array:
    """The flattened array.

    Args:
      a: an array.
      order: "C": the last index runs fastest; "F": the first.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of shape ``(a.size,)``; no view, as NumPy's would be.

    Raises:
      NotImplementedError: ``order`` is "A".

    See also: ``reshape``, ``squeeze``, ``jax.flatten_util.ravel_pytree``.

    >>> jnp.ravel(jnp.array([[1, 2], [3, 4]]), order="F")
    Array([1, 3, 2, 4], dtype=int32)
    """
    if out_sharding is not None:
        return reshape_with_out_sharding(
            functools.partial(ravel, order=order), a, out_sharding)
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    x = as_array(a, "ravel")
    return apart(x) if x.ndim == 1 else reshape(x, (x.size,), order)


def transpose(a: ArrayLike, axes: Any = None) -> Array:
    """Permutes the dimensions (reverses them by default).

    Args:
      a: an array.
      axes: for each dimension of the result, the one of ``a``; None: all in reverse.

    Returns:
      An array of ``a``'s dtype; no view, as NumPy's would be.

    Raises:
      TypeError: ``axes`` is no permutation of the dimensions.

    See also: ``swapaxes``, ``moveaxis``, ``matrix_transpose``, ``lax.transpose``.

    >>> jnp.transpose(jnp.ones((2, 3, 4)), (1, 0, 2)).shape
    (3, 2, 4)
    """
    x = as_array(a, "transpose")
    if axes is None:
        return _reversed_axes(x)
    permutation = tuple(canonical_axis(axis, x.ndim) for axis in axes)
    if sorted(permutation) != list(range(x.ndim)):
        raise TypeError("transpose permutation isn't a permutation of operand dimensions, got "
                        f"permutation {permutation} for operand shape {x.shape}.")
    return layout.transpose(x, permutation)


def permute_dims(a: ArrayLike, /, axes: Any) -> Array:
    """Permutes the dimensions.

    Args:
      a: an array.
      axes: for each dimension of the result, the one of ``a``.

    Returns:
      An array of ``a``'s dtype.

    See also: ``transpose``, ``moveaxis``.

    >>> jnp.permute_dims(jnp.ones((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    return transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Swaps the last two dimensions.

    Args:
      x: matrices ``(..., M, N)``.

    Returns:
      Matrices ``(..., N, M)``.

    Raises:
      ValueError: there are fewer than two dimensions.

    See also: ``transpose``, ``swapaxes``.

    >>> jnp.matrix_transpose(jnp.ones((5, 2, 3))).shape
    (5, 3, 2)
    """
    x = as_array(x, "matrix_transpose")
    if x.ndim < 2:
        raise ValueError("x must be at least two-dimensional for matrix_transpose; got "
                         f"ndim={x.ndim}")
    return swapaxes(x, -1, -2)


def axis_as_index(axis: Any, rank: int) -> int:
    """An axis counted from the front; an IndexError if out of bounds, where JAX raises that."""
    try:
        return canonical_axis(axis, rank)
    except ValueError as error:
        raise IndexError(str(error)) from None


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Exchanges two dimensions.

    Args:
      a: an array.
      axis1, axis2: the two; negative ones count from the end.

    Returns:
      An array of ``a``'s dtype.

    Raises:
      IndexError: there is no such axis.

    See also: ``transpose``, ``moveaxis``.

    >>> jnp.swapaxes(jnp.ones((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    x = as_array(a, "swapaxes")
    order = list(range(x.ndim))
    first, second = (axis_as_index(axis, x.ndim) for axis in (axis1, axis2))
    order[first], order[second] = order[second], order[first]
    return layout.transpose(x, order) if first != second else apart(x)


def moveaxis(a: ArrayLike, source: Any, destination: Any) -> Array:
    """Moves dimensions to new positions; the others keep their order.

    Args:
      a: an array.
      source: an axis, or several.
      destination: where each of them stands in the result.

    Returns:
      An array of ``a``'s dtype.

    Raises:
      ValueError: there is no such axis, or the numbers of axes differ.
      TypeError: an axis is named twice.

    See also: ``transpose``, ``swapaxes``, ``rollaxis``.

    >>> jnp.moveaxis(jnp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_array(a, "moveaxis")
    sources = [canonical_axis(i, x.ndim) for i in _sequence(source)]
    targets = [canonical_axis(i, x.ndim) for i in _sequence(destination)]
    if len(sources) != len(targets):
        raise ValueError("Inconsistent number of elements: "
                         f"{len(sources)} vs {len(targets)}")
    order = [i for i in range(x.ndim) if i not in sources]
    if len(set(sources)) < len(sources):
        raise TypeError(f"repeated axis in moveaxis: source={source}, destination={destination}")
    for target, origin in sorted(zip(targets, sources, strict=True)):
        order.insert(target, origin)
    return layout.transpose(x, order) if order != sorted(order) else apart(x)


def _sequence(value: Any) -> Sequence[Any]:
    entries = value if isinstance(value, (tuple, list, range)) or (
        isinstance(value, (np.ndarray, Array)) and value.ndim
        and not isinstance(value, Tracer)) else (value,)
    return [concrete(entry, "expected a static index or sequence of indices.")
            if isinstance(entry, Tracer) else entry for entry in entries]


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Moves ``axis`` to before ``start``.

    >>> jnp.rollaxis(jnp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = as_array(a, "rollaxis")
    start = operator.index(start)
    if not -x.ndim <= start <= x.ndim:
        raise ValueError(f"start={start} must satisfy {-x.ndim}<=start<={x.ndim}")
    axis = canonical_axis(axis, x.ndim)
    start = start + x.ndim if start < 0 else start
    return moveaxis(x, axis, start - (start > axis))


def expand_dims(a: ArrayLike, axis: Any) -> Array:
    """Inserts dimensions of size 1.

    Args:
      a: an array.
      axis: where the new dimensions stand in the result: an int, or a tuple of them.

    Returns:
      An array with one more dimension for each.

    Raises:
      ValueError: an axis is out of the result's range, or named twice.

    See also: ``squeeze``, ``reshape``, ``newaxis``, ``atleast_1d``.

    >>> jnp.expand_dims(jnp.arange(3), (0, 2)).shape
    (1, 3, 1)
    """
    x = as_array(a, "expand_dims")
    axes = _sequence(axis)
    rank = x.ndim + len(axes)
    new = [canonical_axis(i, rank) for i in axes]
    if len(set(new)) != len(new):
        raise ValueError(f"repeated axis in expand_dims: {tuple(axes)}")
    if not new:
        return apart(x)
    kept = tuple(i for i in range(rank) if i not in new)
    sizes = iter(x.shape)
    return broadcast_in_dim(
        x, tuple(1 if i in new else next(sizes) for i in range(rank)), kept)


@named("atleast_1d")
def at_least_1d(x: Array) -> Array:
    return apart(x) if x.ndim else expand_dims(x, 0)


@named("atleast_2d")
def at_least_2d(x: Array) -> Array:
    return apart(x) if x.ndim >= 2 else expand_dims(x, tuple(range(2 - x.ndim)))


def at_least(name: str, arrays: Sequence[Any], function: Any) -> Any:
    """``atleast_1d`` and its kin of any number of arrays, by what does it for one."""
    if len(arrays) == 1:
        value = arrays[0]
        if isinstance(value, (list, tuple)):
            check_arraylike(name, value)
        return function(as_array(value, name))
    return tuple(function(as_array(x, name, i)) for i, x in enumerate(arrays))


def with_rows(array: Any, of_row: Callable[[Shape], Shape]) -> Array:
    """An array whose rows are reshaped, all at once, to ``of_row(shape)``."""
    x = as_array(array)
    shape = of_row(x.shape[1:])
    return x if shape == x.shape[1:] else layout.reshape(x, (x.shape[0], *shape))


def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Removes dimensions of size 1.

    Args:
      a: an array.
      axis: which to remove, an int or a tuple; None: all that have size 1. Named ones keep a
        function's result the same for a batch of one.

    Returns:
      An array with the same elements.

    Raises:
      ValueError: a named axis has another size.

    See also: ``expand_dims``, ``reshape``.

    >>> jnp.squeeze(jnp.ones((1, 3, 1)), axis=0).shape
    (3, 1)
    """
    x = as_array(a, "squeeze")
    if axis is None:
        axes = tuple(i for i, size in enumerate(x.shape) if size == 1)
    else:
        axes = canonical_axes(tuple(_sequence(axis)), x.ndim)
    if not axes:
        return apart(x)
    if any(x.shape[i] != 1 for i in axes):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one, "
                         f"got shape={x.shape} and dimensions={axes}")
    return squeeze_p.bind(x, dimensions=axes)


def broadcast_to(array: Any, shape: Any, *, out_sharding: Any = None) -> Array:
    """Repeats the array to ``shape`` by NumPy's rules.

    Args:
      array: an array or scalar.
      shape: of the result; its last dimensions are the array's, or the array has size 1 there.
      out_sharding: how the result lies over a mesh with Explicit axes; None: propagated.

    Returns:
      An array of that shape; it can be used as any other, where NumPy's is a read-only view.

    Raises:
      ValueError: the array does not broadcast to the shape.

    See also: ``broadcast_arrays``, ``broadcast_shapes``, ``tile``, ``lax.broadcast_in_dim``.

    >>> jnp.broadcast_to(jnp.array([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return with_out_sharding(broadcast_to, out_sharding, array, shape)
    x = as_array(array, "broadcast_to")
    sizes = canonical_shape(shape)
    have = x.shape
    missing = len(sizes) - len(have)
    if any(size < 0 for size in sizes):
        raise TypeError("broadcast_in_dim shape must have every element be nonnegative, got "
                        f"{sizes}.")
    if missing < 0:
        raise ValueError("Cannot broadcast to shape with fewer dimensions: "
                         f"arr_shape={have} shape={sizes}")
    if any(
            size not in (1, wide) for size, wide in zip(have, sizes[missing:], strict=True)):
        requested = x.aval.update(shape=sizes, weak_type=False).str_short()
        raise ValueError("Incompatible types for broadcasting: input type="
                         f"{x.aval.str_short()} and requested type={requested}")
    return broadcast_in_dim(x, sizes, tuple(range(missing, len(sizes))))


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape to which shapes broadcast.

    Args:
      shapes: tuples of ints; an int counts as a tuple of one.

    Returns:
      A tuple of ints.

    Raises:
      ValueError: they do not broadcast.

    See also: ``broadcast_to``, ``broadcast_arrays``, ``lax.broadcast_shapes``.

    >>> jnp.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    sizes = [canonical_shape(shape) for shape in shapes]
    for shape in sizes:
        if any(isinstance(size, int) and size < 0 for size in shape):
            raise TypeError(f"sizes of dimensions must be nonnegative, got the shape {shape}.")
    try:
        return dimensions.broadcast_shapes(*sizes)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={sizes}") from None


def broadcast_arrays(*args: Any) -> tuple[Array, ...]:
    """The arrays, repeated to their common shape.

    Args:
      args: arrays or scalars.

    Returns:
      A tuple of arrays of one shape, each of its own dtype.

    Raises:
      ValueError: they do not broadcast.

    See also: ``broadcast_to``, ``broadcast_shapes``.

    >>> jnp.broadcast_arrays(jnp.array([1, 2]), jnp.array([[3], [4]]))
    (Array([[1, 2],
           [1, 2]], dtype=int32), Array([[3, 3],
           [4, 4]], dtype=int32))
    """
    arrays = [as_array(x, "broadcast_arrays", i) for i, x in enumerate(args)]
    sizes = broadcast_shapes(*[x.shape for x in arrays])
    mesh = explicit_mesh(*arrays)
    if mesh is not None and len({x.shape for x in arrays}) > 1:
        return tuple(broadcast_over(mesh, arrays, sizes))
    return tuple(broadcast_to(x, sizes) for x in arrays)


def take_in_bounds(x: Array, positions: Array, axis: int) -> Array:
    """``x`` at ``positions`` (any shape; from 0, in bounds) along ``axis``."""
    rank, count = x.ndim, positions.ndim
    numbers = GatherDimensionNumbers(
        offset_dims=(*range(axis), *range(axis + count, rank - 1 + count)),
        collapsed_slice_dims=(axis,), start_index_map=(axis,))
    return gather_p.bind(
        x, layout.reshape(positions, (*positions.shape, 1)), dimension_numbers=numbers,
        slice_sizes=tuple(1 if i == axis else size for i, size in enumerate(x.shape)),
        unique_indices=False, indices_are_sorted=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS, fill_value=None)
