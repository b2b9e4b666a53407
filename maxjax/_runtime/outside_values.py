"""Values from outside of programs, as programs compute on them: their types, and NumPy arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.types import ShapedArray


def python_value(value: object, dtype: np.dtype) -> np.ndarray:
    try:
        return np.asarray(value, dtype)
    except OverflowError:
        raise OverflowError(f"Python int {value} too large to convert to {dtype.name}") from None


def leaf_aval(leaf: object) -> ShapedArray | None:
    """The type of a concrete leaf, or None."""
    kind = leaf.__class__
    if kind is np.ndarray and leaf.dtype in dtypes.CANONICAL:       # type: ignore[attr-defined]
        return ShapedArray(leaf.shape, leaf.dtype)                  # type: ignore[attr-defined]
    if kind in dtypes.PYTHON_SCALARS:
        dtype, weak = dtypes.python_scalar(kind)
        return ShapedArray((), dtype, weak)
    if isinstance(leaf, (np.ndarray, np.generic)):
        dtype = dtypes.canonical(leaf.dtype)
        if dtype == dtypes.bool_ or dtypes.is_numeric(dtype) or dtype == dtypes.float0:
            return ShapedArray(leaf.shape, dtype)
        return None
    for base, (_, _, weak) in dtypes.PYTHON_SCALARS.items():
        if isinstance(leaf, base):      # subclasses: IntEnum, numpy-like scalars
            dtype = dtypes.python_scalar(base)[0]
            return ShapedArray((), dtype, weak)
    return None


def not_numeric(value: object, dtype: object = None) -> TypeError:
    """The error of a value that NumPy reads as an array of a dtype that no array here has."""
    dtype = dtype or getattr(value, "dtype", "object")
    return TypeError(f"Value '{value}' with dtype {dtype} is not a valid JAX array type. Only "
                     "arrays of numeric types are supported by JAX.")


def plain(value: Any) -> np.ndarray:
    """A value from outside as what programs compute on: a NumPy array, of no subclass and of the
    canonical dtype. Arguments of ``jit``, operands, leaves, constants and results of Python
    functions all come through here; where nothing had to be converted, the memory is still the
    caller's.

    Raises:
      ValueError: it is a masked array.
    """
    if value.__class__ is np.ndarray:
        if value.dtype in dtypes.CANONICAL:
            return value
    else:
        if isinstance(value, np.ma.MaskedArray):
            raise ValueError(
                "numpy masked arrays are not supported as direct inputs to JAX functions. Use "
                "arr.filled() to convert the value to a standard numpy array.")
        value = np.asarray(value)
    dtype = dtypes.canonical(value.dtype)
    return value if dtype is value.dtype or dtype == value.dtype else value.astype(dtype)
