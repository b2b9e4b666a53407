"""Arguments of samplers: dtypes, shapes, parameters, keys."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax import numpy as jnp
from maxjax._base import dtypes
from maxjax._base.errors import TypePromotionError
from maxjax._ir import dimensions
from maxjax._ir.runtime import installed
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.convert import convert_element_type
from maxjax._primitives.layout import squeeze_p
from maxjax._primitives.slicing import slice_p
from maxjax.numpy._promotion import as_array, canonical_shape, is_arraylike, type_of


def float_dtype(dtype: Any, name: str, *parameters: Any, may_be_complex: bool = False) -> Any:
    """The dtype of a sampler's result; the default float if None.

    Raises:
      ValueError: it is not a float.
      TypePromotionError: one of the parameters is of a dtype that is not promoted to it.
    """
    dtype = dtypes.canonical(dtypes.float64) if dtype is None else dtypes.argument(dtype, name)
    if not (dtypes.is_inexact(dtype) if may_be_complex else dtypes.is_floating(dtype)):
        kinds = "float or complex" if may_be_complex else "float"
        raise ValueError(f"dtype argument to `{name}` must be a {kinds} dtype, got {dtype.name}")
    for parameter in parameters:
        own = _type_of_parameter(parameter)
        if dtypes.promote((own, (dtype, False)))[0] != dtype:
            raise TypePromotionError(f"In arguments to {name}, cannot safely cast argument of type "
                                     f"{own[0]} to {dtype}")
    return dtype


def _type_of_parameter(value: Any) -> tuple[Any, bool]:
    if value is None:
        raise ValueError("Invalid argument to dtype: None.")
    if isinstance(value, str):
        np.dtype(value)     # JAX reads a text as the name of a dtype
    if not is_arraylike(value):
        raise TypeError(f"Cannot determine dtype of {value}")
    return type_of(as_array(value))


def int_dtype(dtype: Any, name: str) -> Any:
    dtype = dtypes.canonical(dtypes.int64) if dtype is None else dtypes.argument(dtype, name)
    if not dtypes.is_integer(dtype):
        raise ValueError(f"dtype argument to `{name}` must be an int dtype, got {dtype.name}")
    return dtype


def result_shape(shape: Any, *others: tuple[int, ...]) -> tuple[int, ...]:
    """The requested shape, to which parameters must broadcast; theirs if None.

    Raises:
      ValueError: they do not broadcast.
    """
    if shape is None:
        return broadcast_shapes(*others)
    shape = canonical_shape(shape)
    if broadcast_shapes(shape, *others) != shape:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={[shape, *others]}")
    return shape


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    for shape in shapes:
        if any(type(size) is int and size < 0 for size in shape):
            raise TypeError("Only non-negative indices are allowed when broadcasting static "
                            f"shapes, but got shape {shape}.")
    try:
        return tuple(dimensions.broadcast_shapes(*shapes))
    except ValueError:
        raise ValueError(
            f"Incompatible shapes for broadcasting: shapes={list(shapes)}") from None


def as_float(value: Any, dtype: Any) -> Any:
    """A parameter as a strong array of ``dtype``."""
    if isinstance(value, (bool, int, float, np.ndarray, np.generic)):
        return installed.runtime.operand(np.asarray(value).astype(dtype))
    return convert_element_type(installed.runtime.operand(value), dtype)


def as_floats(*values: Any) -> list[Any]:
    """Parameters as arrays of their common floating dtype, each with its own shape."""
    dtype = jnp.result_type(*values)
    if not dtypes.is_inexact(dtype):
        dtype = dtypes.canonical(dtypes.float64)
    return [as_float(value, dtype) for value in values]


def unstack(keys: Any) -> list[Any]:
    """The keys in a 1-D array."""
    return [squeeze_p.bind(slice_p.bind(keys, start_indices=(i,), limit_indices=(i + 1,),
                                        strides=(1,)), dimensions=(0,))
            for i in range(keys.shape[0])]


def widened(value: Any, rank: int) -> Any:
    """A parameter with dimensions of size 1 before its own."""
    shape = (1,) * (rank - value.ndim) + value.shape
    if shape == value.shape:
        return value
    return broadcast_in_dim(value, shape, tuple(range(rank - value.ndim, rank)))


def widened_or_scalar(value: Any, shape: tuple[int, ...]) -> Any:
    return value if not value.shape or value.shape == shape else widened(value, len(shape))
