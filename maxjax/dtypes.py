"""jax.dtypes."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from maxjax._base import dtypes as _dtypes
from maxjax._base.dtypes import extended as extended
from maxjax._base.dtypes import finfo as finfo
from maxjax._base.dtypes import float0 as float0
from maxjax._base.dtypes import iinfo as iinfo
from maxjax._base.dtypes import prng_key as prng_key
from maxjax._base.errors import TypePromotionError as TypePromotionError
from maxjax._base.missing import missing_names
from maxjax.numpy import issubdtype as issubdtype
from maxjax.numpy import result_type as result_type

bfloat16 = ml_dtypes.bfloat16


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype that stands for ``dtype`` under the present ``jax_enable_x64``."""
    return _dtypes.canonical(dtype)


def scalar_type_of(x: Any) -> type:
    """The Python type (bool, int, float or complex) that goes with a value's dtype."""
    dtype = getattr(x, "dtype", None)
    if dtype is None:
        return type(x)
    if _dtypes.is_bool(dtype):
        return bool
    if _dtypes.is_integer(dtype):
        return int
    if _dtypes.is_floating(dtype):
        return float
    if _dtypes.is_complex(dtype):
        return complex
    raise TypeError(f"Invalid scalar value {x}")


def itemsize_bits(dtype: Any) -> int:
    """The bits of one element."""
    dtype = np.dtype(dtype)
    if dtype in _dtypes.SMALL_INTS:
        return _dtypes.iinfo(dtype).bits
    return dtype.itemsize * 8


__getattr__ = missing_names(__name__)
