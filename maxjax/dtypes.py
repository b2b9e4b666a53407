"""jax.dtypes: dtypes beyond NumPy's, and how dtypes are told apart and promoted."""

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
from maxjax._base.missing import explain_missing_names
from maxjax.numpy import issubdtype as _issubdtype
from maxjax.numpy._scalar_types import result_kind as _result_kind

bfloat16 = ml_dtypes.bfloat16


def result_type(*args: Any, return_weak_type_flag: bool = False) -> Any:
    """The dtype of an operation of these arrays, scalars and dtypes.

    Args:
      return_weak_type_flag: return a pair of the dtype and whether it is weak.
    """
    dtype, weak = _result_kind(args)
    return (dtype, weak) if return_weak_type_flag else dtype


def issubdtype(a: Any, b: Any) -> bool:
    """Whether a dtype is of a kind, as ``jax.numpy.issubdtype``; also for ``extended`` etc.

    Args:
      a: a dtype, or what names it; a random key's too.
      b: a dtype, or an abstract class such as ``jnp.integer`` or ``jax.dtypes.prng_key``.

    Returns:
      A Python boolean.

    See also: ``dtypes.canonicalize_dtype``, ``dtypes.prng_key``, ``jnp.issubdtype``.

    >>> jax.dtypes.issubdtype(jax.random.key(0).dtype, jax.dtypes.prng_key)
    True
    """
    return _issubdtype(a, b)


def canonicalize_dtype(dtype: Any, allow_extended_dtype: bool = False) -> Any:
    """The dtype that replaces ``dtype`` under the current ``jax_enable_x64``.

    Args:
      dtype: a dtype, or what names it.
      allow_extended_dtype: whether a random key's dtype is returned as it is.

    Returns:
      A NumPy dtype, with 32 bits in place of 64 unless ``jax_enable_x64`` is set.

    Raises:
      ValueError: it is a random key's and ``allow_extended_dtype`` is False.

    See also: ``dtypes.result_type``, ``dtypes.issubdtype``, ``jnp.result_type``.

    >>> jax.dtypes.canonicalize_dtype("int64")
    dtype('int32')
    """
    if isinstance(dtype, _dtypes.KeyDType) and not allow_extended_dtype:
        raise ValueError(f"Internal: canonicalize_dtype called on extended dtype {dtype} with "
                         "allow_extended_dtype=False")
    return _dtypes.canonical(dtype)


def scalar_type_of(x: Any) -> type:
    """The Python type (bool, int, float or complex) that corresponds to a value's dtype."""
    dtype = getattr(x, "dtype", None)
    if dtype is None and isinstance(x, (bool, int, float, complex)):
        return type(x)
    if dtype is None:
        raise TypeError(f"Value {x!r} is not a valid JAX type")
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
    """The number of bits of one element.

    Args:
      dtype: a dtype, or what names it.

    Returns:
      A Python int; 4 for int4.

    Raises:
      ValueError: ``dtype`` is None.

    See also: ``dtypes.canonicalize_dtype``, ``jnp.finfo``.
    """
    if dtype is None:
        raise ValueError("dtype cannot be None.")
    dtype = np.dtype(dtype)
    if dtype in (*_dtypes.SMALL_INTS, _dtypes.int1, _dtypes.uint1):
        return _dtypes.iinfo(dtype).bits
    if dtype in _dtypes.SMALL_FLOATS or dtype in _dtypes.FLOAT6:
        return _dtypes.finfo(dtype).bits
    return dtype.itemsize * 8


explain_missing_names(__name__)
