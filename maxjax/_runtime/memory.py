"""Out of memory, as JAX reports it."""

from __future__ import annotations

import math

from maxjax._base.errors import JaxRuntimeError


def out_of_memory(error: MemoryError) -> JaxRuntimeError:
    """JAX's error for memory that the host does not have."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    if shape is None or dtype is None:      # not NumPy's own
        return JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory.")
    return JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating "
                           f"{math.prod(shape) * dtype.itemsize} bytes.")
