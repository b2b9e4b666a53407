"""Conversions between dtypes, and arrays of one constant."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.meshes import AbstractMesh, get_abstract_mesh
from maxjax._base.shardings import NamedSharding, Sharding, SingleDeviceSharding
from maxjax._base.specs import PartitionSpec
from maxjax._higher_order.constraints import (
    check_out_sharding,
    constrained,
    over_context,
    resharded,
)
from maxjax._ir.dimensions import is_dimension, size_index
from maxjax._ir.runtime import installed
from maxjax._ir.staging import is_staging, staged
from maxjax._ir.trace import Array, Tracer, invalid_shape, invalid_type
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import ArrayLike, DTypeLike, Tree
from maxjax._primitives import convert
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.dimension import dimension_scalar
from maxjax._primitives.generators import generator_of_keys
from maxjax._primitives.joining import concatenate
from maxjax._primitives.random_bits import random_wrap_p
from maxjax._primitives.varying import vary
from maxjax._primitives.widths import bit_width
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.outside_values import leaf_aval, python_value
from maxjax._runtime.placement import device_put
from maxjax.lax._operands import operand as as_operand

__all__ = [
    "bitcast_convert_type", "convert_element_type", "dtype", "empty", "full", "full_like",
    "shape_as_value", "stop_gradient",
]

# --- conversion -----------------------------------------------------------------------------------

def dtype(x: Any) -> Any:
    """The dtype of an array or scalar, or the one that a type, a dtype or a name stands for.

    Raises:
      TypeError: ``x`` has none.
      ValueError: ``x`` is None.

    >>> lax.dtype(jnp.ones(2, jnp.int8)), lax.dtype(float)
    (dtype('int8'), dtype('float32'))
    """
    if isinstance(x, Array):
        return x.aval.dtype
    if x is None:
        raise ValueError("Invalid argument to dtype: None.")
    if names_its_dtype(x):
        return dtypes.canonical(x.dtype)
    if isinstance(x, (type, str, np.dtype)):
        return dtypes.argument(x, "dtype")
    aval = None if isinstance(x, (list, tuple)) else leaf_aval(x)
    if aval is None:
        raise TypeError(f"Cannot determine dtype of {x}")
    return aval.dtype


def names_its_dtype(x: Any) -> bool:
    """Whether it is one of jax.numpy's scalar types: of 64 bits they stand for 32, unasked."""
    return isinstance(x, type) and isinstance(getattr(x, "dtype", None), np.dtype)


def convert_element_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """``operand`` as ``new_dtype``: floats become integers towards zero, saturating, NaN 0;
    integers wrap around; everything but zero is True. NumPy's arrays are cast by NumPy, which does
    not saturate.

    Args:
      operand: an array or scalar.
      new_dtype: a dtype, or ``int``, ``float``, ``complex`` or ``bool`` for a weakly typed one.

    Returns:
      An array of the shape of ``operand``. Complex numbers lose their imaginary parts in a real
      dtype.

    Raises:
      ValueError: ``new_dtype`` is None, or one of the dtypes is a random key's, or of a library
        that has no such conversion.
      TypeError: the operand has no dtype, or ``new_dtype`` is not a dtype of numbers.

    See also: ``lax.bitcast_convert_type``, ``jnp.astype``, ``lax.reduce_precision``.

    >>> lax.convert_element_type(jnp.array([1.7, -1.7, jnp.nan]), jnp.int32)
    Array([ 1, -1,  0], dtype=int32)
    """
    if new_dtype is None:
        raise ValueError("dtype must be specified.")
    target = dtypes.argument(new_dtype, "convert_element_type")
    if isinstance(operand, Array):
        aval = operand.aval
        if aval.dtype == target and not aval.weak_type:
            return operand
        dtypes.warn_of_discarded_parts(aval.dtype, target)
        return convert.convert_element_type(operand, target)
    if operand.__class__ in dtypes.PYTHON_SCALARS and not dtypes.is_opaque(target):
        own, _ = dtypes.python_scalar(type(operand))
        dtypes.warn_of_discarded_parts(own, target)
        if own.kind == "c" and target.kind not in "bc" and (
                operand == operand or not dtypes.is_integer(target)):
            # Python's own error; as in JAX, NaN is 0 among integers.
            operand = (int if dtypes.is_integer(target) else float)(operand)  # type: ignore
        if operand.__class__ is int and target.kind not in "biu" and not (
                -2**31 <= operand < 2**31):
            operand, own = float(operand), np.dtype(np.float64)
        if operand.__class__ is int and -2**63 <= operand < 2**63:
            own = dtypes.int64      # wraps around, as an array does
        value = np.asarray(convert.convert(python_value(operand, own), target))
        return staged(ArrayImpl(ShapedArray((), target), value))
    if isinstance(operand, str):
        raise TypeError(f"Value {operand!r} with dtype |S0 is not a valid JAX array type. Only "
                        "arrays of numeric types are supported by JAX.")
    if not hasattr(operand, "dtype") and not hasattr(operand, "__jax_array__") and not isinstance(
            operand, (bool, int, float)):
        raise TypeError(f"Cannot determine dtype of {operand}")
    if isinstance(operand, (np.ndarray, np.generic)) and operand.dtype != target and (
            dtypes.is_numeric(operand.dtype) and not dtypes.is_opaque(target)):
        return of_numpy(operand, target)
    return convert_element_type(installed.runtime.operand(operand), target)


def numpy_cast(value: np.ndarray | np.generic, dtype: np.dtype) -> np.ndarray:
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(value).astype(dtype)


def of_numpy(value: np.ndarray | np.generic, dtype: np.dtype) -> Array:
    """NumPy's values in a dtype of arrays, by NumPy's own cast, as in JAX: from all of their 64
    bits, and out of range not saturating as other values do; a constant of a program."""
    host = numpy_cast(value, dtype)
    return staged(installed.runtime.constant(host, ShapedArray(host.shape, dtype)))


def bitcast_convert_type(operand: ArrayLike, new_dtype: Any) -> Array:
    """The bits of ``operand`` as ``new_dtype``; a narrower one adds a last dimension, a wider one
    consumes the last dimension.

    Args:
      operand: an array or scalar.
      new_dtype: a dtype.

    Returns:
      An array of ``operand``'s shape; with a last dimension of the widths' quotient, or without it.

    Raises:
      TypeError: booleans or complex numbers to or from another dtype.
      ValueError: the last dimension does not fill the new elements.

    See also: ``lax.convert_element_type``, ``jnp.astype``.

    >>> lax.bitcast_convert_type(jnp.float32(1), jnp.uint16)
    Array([    0, 16256], dtype=uint16)
    """
    x = as_operand(operand, "bitcast_convert_type")
    target = dtypes.argument(new_dtype, "bitcast_convert_type")
    source = x.aval.dtype
    for kind in (source, target):
        if dtypes.is_opaque(kind):
            raise ValueError(f"unexpected input: dtype={kind}")
    old, new = bit_width(source), bit_width(target)
    shape = x.aval.shape
    if new > old and (not shape or shape[-1] * old != new):
        count = shape[-1] if shape else 1
        raise ValueError(
            f"Attempting to convert array of shape {shape} from {source} of size {old} bits to "
            f"{target} of size {new}, bits but {count} * {old} != {new}")
    if source != target and any(
            kind == dtypes.bool_ or dtypes.is_complex(kind) for kind in (source, target)):
        raise TypeError(
            "lax.bitcast_convert_type does not support bool or complex values unless the operand "
            f"and destination types match. Got operand dtype={source}, new_dtype={target!r}. "
            "Consider using the arr.view() method instead.")
    return convert.bitcast_convert_type_p.bind(x, new_dtype=target)


def stop_gradient(x: Tree) -> Tree:
    """``x``, a pytree, as a constant for differentiation.

    Args:
      x: a pytree of arrays and numbers.

    Returns:
      The same values. Derivatives take them for constants, in either mode; integers are so anyway.

    Raises:
      TypeError: a leaf is no array or number.

    See also: ``jax.grad``, ``jax.custom_vjp``, ``jax.checkpoint``.

    >>> jax.grad(lambda x: x * lax.stop_gradient(x))(3.)
    Array(3., dtype=float32, weak_type=True)
    """
    def stop(leaf: Any) -> Any:
        if leaf.__class__ in dtypes.PYTHON_SCALARS:
            return dtypes.typed_number(leaf)
        if not isinstance(leaf, Array):
            if not hasattr(leaf, "__jax_array__") and leaf_aval(leaf) is None:
                raise invalid_type(leaf)
            leaf = installed.runtime.operand(leaf)
        if not dtypes.is_inexact(leaf.aval.dtype):
            return leaf
        return convert.stop_gradient_p.bind(leaf)

    return pytree.map(stop, x)


# --- constants ------------------------------------------------------------------------------------

def _shape_argument(shape: Any) -> tuple[int, ...]:
    if isinstance(shape, (int, np.integer)):
        return (int(shape),)
    entries = tuple(shape)
    try:
        sizes = tuple([size_index(size) for size in entries])
    except TypeError:
        raise invalid_shape(entries) from None
    for size in sizes:
        if size < 0:
            raise TypeError("broadcast_in_dim shape must have every element be nonnegative, got "
                            f"{sizes}.")
    return sizes


def full(shape: Any, fill_value: ArrayLike, dtype: DTypeLike | None = None, *,
         sharding: Any = None) -> Array:
    """An array of ``shape`` filled with ``fill_value``.

    Args:
      shape: a sequence of sizes.
      fill_value: a scalar.
      dtype: of the result; by default the scalar's, weakly typed if it is a Python scalar.
      sharding: where the result goes.

    Returns:
      An array of that shape.

    Raises:
      TypeError: ``fill_value`` is not a scalar, or the shape does not consist of integers.
      IndexError: the sharding splits more dimensions than there are.
      ValueError: its spec is longer than the shape, over a mesh with Explicit axes.

    See also: ``lax.full_like``, ``lax.broadcast``, ``jnp.full``.

    >>> lax.full((2,), 7, jnp.float32)
    Array([7., 7.], dtype=float32)
    """
    sizes = _shape_argument(shape)
    if np.shape(fill_value) if not isinstance(fill_value, Array) else fill_value.shape:
        raise TypeError("full must be called with scalar fill_value, got fill_value.shape "
                        f"{np.shape(fill_value)}.")
    if isinstance(fill_value, str):
        raise TypeError(f"data type {fill_value!r} not understood")
    if dtype is None:
        value = installed.runtime.operand(fill_value)
    elif dtypes.is_opaque(dtype) and not dtypes.is_opaque(getattr(fill_value, "dtype", None)):
        return filled_opaque(sizes, fill_value, dtype)
    else:
        value = convert_element_type(fill_value, dtypes.argument(dtype, "full"))
    filled = broadcast_in_dim(value, sizes, ()) if sizes else value
    return filled if sharding is None else _placed(filled, sharding)


def _placed(filled: Array, sharding: Any) -> Array:
    """A constant array with a sharding: moved to it, or created there by a program."""
    rank = len(filled.shape)
    if isinstance(sharding, NamedSharding) and len(sharding.spec) > rank:
        if not is_staging():
            sharding.shard_shape(filled.shape)      # the entries beyond the rank are None
        elif not sharding.in_types:
            return filled
        if not sharding.in_types:
            shorter = PartitionSpec(*sharding.spec.partitions[:rank])
            placed: Any = _placed(filled, NamedSharding(
                sharding.mesh, shorter, memory_kind=sharding.memory_kind))
            placed._placement = sharding
            return placed
    if is_staging():
        if isinstance(sharding, SingleDeviceSharding):
            return filled      # placed with the program
        in_types = isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes
        return resharded(filled, sharding) if in_types else constrained(filled, sharding)
    return device_put(convert.convert_element_type(filled, filled.dtype), sharding)


def filled_opaque(shape: tuple[int, ...], value: Any, dtype: Any) -> Array:
    """Random keys whose words all equal ``value``, or what a library's dtype makes of it."""
    if dtypes.is_user_defined(dtype):
        return dtype._rules.full(shape, value, dtype)
    if value.__class__ is int:
        value = np.uint32(value & 0xFFFFFFFF)
    words = broadcast_in_dim(convert_element_type(value, dtypes.uint32), (*shape, dtype.words), ())
    return random_wrap_p.bind(words, impl=generator_of_keys(dtype))


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None,
              sharding: Any = None) -> Array:
    """An array like ``x`` filled with ``fill_value``.

    Args:
      x: provides the shape, dtype, weak type and placement that are not given.

    >>> lax.full_like(jnp.arange(3), 7)
    Array([7, 7, 7], dtype=int32)
    """
    aval = x.aval if isinstance(x, Array) else None
    if aval is None:
        if isinstance(x, (list, tuple)):
            raise TypeError(f"Cannot determine dtype of {x}")
        aval = leaf_aval(x)
        if aval is None:        # anything with a shape and a dtype
            aval = ShapedArray(x.shape, dtypes.canonical(x.dtype), getattr(x, "weak_type", False))
    sizes = aval.shape if shape is None else _shape_argument(shape)
    filled = full(sizes, fill_value, aval.dtype if dtype is None else dtype, sharding=sharding)
    if dtype is None and aval.weak_type:
        filled = convert.convert_element_type(filled, aval.dtype, True)
    return filled if sharding is not None else lying_like(filled, x)


def lying_like(x: Array, other: Any) -> Array:
    """The array placed like another: sharded like it if of its shape, and varying like it.

    Weakly typed arrays have no placement.
    """
    if isinstance(other, Tracer):
        if other.aval.plain:
            return x
        if other.aval.mesh_spec is not None and other.aval.shape == x.shape:
            x = resharded(x, other.aval.sharding)
        return vary(x, other.aval.vma)
    states = getattr(other, "manual_axis_type", None)
    if states is not None:      # a ShapeDtypeStruct of a shard
        return vary(x, states.varying)
    placement = (other._placement if other.__class__ is ArrayImpl
                 else getattr(other, "sharding", None))
    if placement is None or x.aval.weak_type or not getattr(other, "committed", True):
        return x
    if isinstance(placement, NamedSharding) and isinstance(placement.mesh, AbstractMesh):
        # A type's sharding, which means the devices of the mesh that is set.
        if get_abstract_mesh().empty or other.shape != x.shape:
            return x
        check_out_sharding("broadcast_in_dim", placement)
        return resharded(x, over_context(placement.spec))
    one_device = not isinstance(placement, Sharding) or placement.num_devices == 1
    return device_put(x, placement) if one_device or other.shape == x.shape else x


def empty(shape: Any, dtype: Any, *, out_sharding: Any = None) -> Array:
    """An array of unspecified elements: zeros.

    >>> lax.empty((2, 3), jnp.float32).shape
    (2, 3)
    """
    filled = full(shape, 0, dtype)
    return filled if out_sharding is None else resharded(filled, out_sharding)


def shape_as_value(shape: Any) -> np.ndarray | Array:
    """A shape as an array of int32.

    >>> lax.shape_as_value((2, 3))
    array([2, 3], dtype=int32)
    """
    if not isinstance(shape, (int, np.integer)) and any(map(is_dimension, shape)):
        entries = [dimension_scalar(size, dtypes.int32, False) if is_dimension(size)
                   else np.asarray(size, np.int32) for size in shape]
        return concatenate([broadcast_in_dim(entry, (1,), ()) for entry in entries], 0)
    sizes = _shape_argument(shape)
    return np.asarray(sizes, np.int32) if sizes else full((0,), 0, dtypes.int32)
