"""jax.dlpack: arrays from other libraries without going through files or lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._ir.trace import Array, Tracer
from maxjax._ir.types import ShapedArray
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.devices import default_device
from maxjax._runtime.placement import device_put

# XLA shares memory that begins at a multiple of so many bytes, and maxjax's vectors like it, too.
_ALIGNMENT = 64


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """An array of anything with ``__dlpack__``, on a device.

    Args:
      copy: the data are copied unless it is False; then the memory is shared, and its owner is not
        to write to it. Arrays of maxjax's, which do not change, are copied only if it is True.

    Raises:
      TypeError: it has no such methods.
      ValueError: ``copy`` is False, and the data cannot be used where they are.
    """
    if isinstance(external_array, Tracer) or not (
            hasattr(external_array, "__dlpack__") and hasattr(external_array, "__dlpack_device__")):
        raise TypeError("The array passed to from_dlpack must have __dlpack__ and "
                        "__dlpack_device__ methods.")
    place = device or default_device()
    if isinstance(external_array, Array):
        if dtypes.is_key(external_array.dtype):
            raise TypeError("The array passed to from_dlpack must have __dlpack__ and "
                            "__dlpack_device__ methods.")
        return device_put(external_array.copy() if copy else external_array, place)
    value = np.from_dlpack(external_array)
    if copy is not False:
        return device_put(value, place)
    if value.__array_interface__["data"][0] % _ALIGNMENT and value.size:
        raise ValueError(
            "Specified input which requires a copy since the source data buffer is not aligned to "
            f"{_ALIGNMENT} bytes.  However copy=False. Set copy=True or copy=None to perform the "
            "requested operation.")
    if dtypes.canonical(value.dtype) != value.dtype:
        raise ValueError(
            f"Specified input which requires a copy since 64 bits are disabled, and its dtype is "
            f"{value.dtype}.  However copy=False. Set copy=True or copy=None to perform the "
            "requested operation.")
    return device_put(ArrayImpl(ShapedArray(value.shape, value.dtype), value), place)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be exchanged."""
    dtype = np.dtype(dtype)
    return dtype == np.bool_ or dtype in (*dtypes.INTS, *dtypes.FLOATS, *dtypes.COMPLEX)


explain_missing_names(__name__)
