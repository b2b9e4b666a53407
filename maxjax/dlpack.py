"""jax.dlpack: arrays from other libraries without going through files or lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.missing import explain_missing_names
from maxjax._ir.trace import Array
from maxjax._runtime.devices import default_device
from maxjax._runtime.placement import device_put


def from_dlpack(external_array: Any, device: Any = None, copy: bool | None = None) -> Array:
    """An array of anything with ``__dlpack__``, on a device; the data are copied, but for those of
    arrays of maxjax's, which do not change.

    Raises:
      TypeError: it has no such methods.
      ValueError: ``copy`` is False, and it is no array of maxjax's.
    """
    if not (hasattr(external_array, "__dlpack__") and hasattr(external_array, "__dlpack_device__")):
        raise TypeError("The array passed to from_dlpack must have __dlpack__ and "
                        "__dlpack_device__ methods.")
    if copy is False:
        if isinstance(external_array, Array):
            return device_put(external_array, device)
        raise ValueError("from_dlpack copies: maxjax's arrays do not share memory with others")
    return device_put(np.from_dlpack(external_array), device or default_device())


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be exchanged."""
    dtype = np.dtype(dtype)
    return dtype == np.bool_ or dtype in (*dtypes.INTS, *dtypes.FLOATS, *dtypes.COMPLEX)


explain_missing_names(__name__)
