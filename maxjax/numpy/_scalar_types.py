"""Scalar types (jnp.float32 and its like), functions on dtypes, constants."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import JaxRuntimeError
from maxjax._ir.trace import Array
from maxjax._ir.typing import DTypeLike
from maxjax.numpy import _creation
from maxjax.numpy._promotion import PYTHON_SCALARS, type_of

__all__ = [
    "ComplexWarning", "bfloat16", "bool", "bool_", "can_cast", "cdouble", "character",
    "complex128", "complex64", "complex_", "complexfloating", "csingle", "double", "dtype",
    "e", "euler_gamma", "finfo", "flexible", "float16", "float32", "float4_e2m1fn", "float64",
    "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu",
    "float_", "floating", "generic", "iinfo", "inexact", "inf", "int1", "int16", "int2",
    "int32", "int4", "int64", "int8", "int_", "integer", "isdtype", "issubdtype", "nan",
    "newaxis", "number", "object_", "pi", "promote_types", "result_type", "signedinteger",
    "single", "uint", "uint1", "uint16", "uint2", "uint32", "uint4", "uint64", "uint8",
    "unsignedinteger",
]


class _ScalarType(type):
    """Instances name a dtype; calling one makes an array of that dtype."""

    dtype: np.dtype

    def __hash__(self) -> int:
        return hash(self.dtype.type)

    def __eq__(self, other: Any) -> Any:
        return self is other or self.dtype.type == other or (
            isinstance(other, np.dtype) and self.dtype == other)

    def __ne__(self, other: Any) -> Any:
        return not self == other

    def __call__(self, x: Any) -> Array:
        if self.dtype in dtypes.WITHOUT_ARRAYS:
            raise JaxRuntimeError(
                f"There are no arrays of {self.dtype}: the type can only be named and asked about.")
        return _creation.asarray(x, dtype=self.dtype)

    def __instancecheck__(self, instance: Any) -> Any:
        return isinstance(instance, self.dtype.type)


def _scalar_type(name: str, value: np.dtype) -> _ScalarType:
    example = f"""
    >>> jnp.{name}(1)
    Array({_ONE[value.kind] if value.isbuiltin == 1 else 1}, dtype={value})
    """
    if value in dtypes.WITHOUT_ARRAYS:
        example = f"""
    >>> jnp.dtype(jnp.{name})
    {value!r}
    """
    elif dtypes.canonical(value) != value:
        example = f"""
    >>> with jax.enable_x64():
    ...     jnp.{name}(1)
    Array({_ONE[value.kind]}, dtype={value})
    """
    namespace = {
        "dtype": value, "__module__": "jax.numpy",
        "__doc__": f"The type {name}: names a dtype; called, makes an array of it.\n{example}",
    }
    return _ScalarType(name, (object,), namespace)


_ONE = {"b": "True", "i": "1", "u": "1", "f": "1.", "c": "1.+0.j"}

bool_ = bool = _scalar_type("bool", dtypes.bool_)
int1 = _scalar_type("int1", dtypes.int1)
int2 = _scalar_type("int2", dtypes.int2)
int4 = _scalar_type("int4", dtypes.int4)
int8 = _scalar_type("int8", dtypes.int8)
int16 = _scalar_type("int16", dtypes.int16)
int32 = _scalar_type("int32", dtypes.int32)
int64 = int_ = _scalar_type("int64", dtypes.int64)
uint1 = _scalar_type("uint1", dtypes.uint1)
uint2 = _scalar_type("uint2", dtypes.uint2)
uint4 = _scalar_type("uint4", dtypes.uint4)
uint8 = _scalar_type("uint8", dtypes.uint8)
uint16 = _scalar_type("uint16", dtypes.uint16)
uint32 = _scalar_type("uint32", dtypes.uint32)
uint64 = uint = _scalar_type("uint64", dtypes.uint64)
bfloat16 = _scalar_type("bfloat16", dtypes.bfloat16)
float16 = _scalar_type("float16", dtypes.float16)
float32 = single = _scalar_type("float32", dtypes.float32)
float64 = double = float_ = _scalar_type("float64", dtypes.float64)
complex64 = csingle = _scalar_type("complex64", dtypes.complex64)
complex128 = cdouble = complex_ = _scalar_type("complex128", dtypes.complex128)
(float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2,
 float8_e5m2fnuz, float8_e8m0fnu) = (_scalar_type(value.name, value) for value in dtypes.FLOAT8)
float6_e2m3fn, float6_e3m2fn = (_scalar_type(value.name, value) for value in dtypes.FLOAT6)
float4_e2m1fn = _scalar_type("float4_e2m1fn", dtypes.float4_e2m1fn)

generic, number, inexact, integer = np.generic, np.number, np.inexact, np.integer
floating, complexfloating = np.floating, np.complexfloating
signedinteger, unsignedinteger = np.signedinteger, np.unsignedinteger
flexible, character, object_ = np.flexible, np.character, np.object_
dtype = np.dtype
ComplexWarning = np.exceptions.ComplexWarning

pi, e, inf, nan, euler_gamma, newaxis = np.pi, np.e, np.inf, np.nan, np.euler_gamma, None


def finfo(dtype: Any) -> ml_dtypes.finfo:
    """Limits of a floating dtype: ``eps``, ``max``, ``min``, ``tiny``, ``bits`` and so on.

    Args:
      dtype: a floating or complex dtype, an array of one, or what names it; bfloat16 and the 8-bit
        floats too.

    Returns:
      An object with NumPy's attributes for the dtype.

    Raises:
      ValueError: the dtype is neither.

    See also: ``iinfo``, ``issubdtype``, ``spacing``.

    >>> float(jnp.finfo(jnp.float16).max), jnp.finfo("bfloat16").bits
    (65504.0, 16)
    """
    return ml_dtypes.finfo(dtypes.as_dtype(dtype.dtype if isinstance(dtype, Array) else dtype))


class iinfo:
    """Limits of an integer dtype: ``min``, ``max``, ``bits``, ``dtype``, ``kind``.

    Args:
      int_type: an integer dtype, what names it, or a value of it; int4 and uint4 too.

    Raises:
      ValueError: the dtype is no integer.

    See also: ``jnp.finfo``, ``jnp.issubdtype``, ``jnp.result_type``.

    >>> jnp.iinfo(jnp.int8).max
    127
    """

    def __init__(self, int_type: Any):
        if isinstance(int_type, int):
            int_type = type(int_type)
        self._info = ml_dtypes.iinfo(dtypes.as_dtype(int_type))
        self.min = int(self._info.min)
        self.max = int(self._info.max)
        self.dtype = dtypes.as_dtype(int_type)
        self.bits = self._info.bits
        self.kind = self._info.kind

    def __repr__(self) -> str:
        return f"iinfo(min={self.min}, max={self.max}, dtype={self.dtype})"


_FLOATS = (*dtypes.FLOATS, *dtypes.SMALL_FLOATS, *dtypes.FLOAT6)
_SMALL_SIGNED = (dtypes.int1, dtypes.int2, dtypes.int4)
_SMALL_UNSIGNED = (dtypes.uint1, dtypes.uint2, dtypes.uint4)


def issubdtype(arg1: Any, arg2: Any) -> builtins.bool:
    """Whether a dtype is, or is a subtype of, another dtype or abstract class of dtypes.

    Args:
      arg1: a dtype, or what names one.
      arg2: a dtype or an abstract class, such as ``jnp.floating``, to which bfloat16 and the 8-bit
        floats belong here, or ``jax.dtypes.prng_key``.

    Returns:
      A Python boolean.

    Raises:
      TypeError: an argument names no dtype.

    See also: ``result_type``, ``promote_types``, ``finfo``, ``jax.dtypes.issubdtype``.

    >>> jnp.issubdtype(jnp.bfloat16, jnp.floating), jnp.issubdtype("int32", jnp.inexact)
    (True, False)
    """
    if isinstance(arg1, Array):
        arg1 = np.dtype(arg1)       # which warns, and refuses keys
    if dtypes.is_opaque(arg1):
        return arg2 == arg1 or (isinstance(arg2, type) and issubclass(arg1.type, arg2))
    if dtypes.is_opaque(arg2):
        return False
    if isinstance(arg2, type) and issubclass(arg2, dtypes.extended):
        return isinstance(arg1, type) and issubclass(arg1, arg2)
    if isinstance(arg1, type) and issubclass(arg1, dtypes.extended):
        return isinstance(arg2, type) and issubclass(arg1, arg2)
    own = arg1 if isinstance(arg1, type) and issubclass(arg1, np.generic) else None
    if own is not None and own in _ABSTRACT:
        return np.issubdtype(arg1, _numpy_type(arg2))
    value = dtypes.as_dtype(arg1)
    wanted = _numpy_type(arg2)
    # ml_dtypes are outside NumPy's hierarchy.
    if wanted in _ABSTRACT:
        if value in _FLOATS:
            return np.issubdtype(np.float32, wanted)
        if value in _SMALL_SIGNED:
            return np.issubdtype(np.int8, wanted)
        if value in _SMALL_UNSIGNED:
            return np.issubdtype(np.uint8, wanted)
        return np.issubdtype(value, wanted)
    return value == dtypes.as_dtype(wanted)


_ABSTRACT = frozenset({
    np.generic, np.number, np.inexact, np.integer, np.floating, np.complexfloating,
    np.signedinteger, np.unsignedinteger, np.flexible, np.character})


def _numpy_type(value: Any) -> Any:
    if isinstance(value, type) and value in _ABSTRACT:
        return value
    return dtypes.as_dtype(value).type


def result_type(*args: Any) -> np.dtype:
    """The dtype of an operation on arrays, dtypes and Python scalars.

    Python scalars and weakly typed arrays decide the kind only: float16 and 1.0 give float16.
    64-bit dtypes are narrowed unless ``jax_enable_x64`` is set.

    Args:
      args: arrays, scalars and dtypes.

    Returns:
      A NumPy dtype; values play no part in it.

    Raises:
      ValueError: there are no arguments.
      TypeError: one has no dtype.

    See also: ``promote_types``, ``issubdtype``, ``astype``.

    >>> result_type("int32", 1.0)
    dtype('float32')
    """
    return result_kind(args)[0]


def result_kind(args: Sequence[Any]) -> tuple[np.dtype, builtins.bool]:
    """``result_type`` of the arguments, and whether it is weak.

    Raises:
      ValueError: there are none.
    """
    if not args:
        raise ValueError("at least one array or dtype is required")
    operands = []
    for arg in args:
        if arg is None:
            operands.append((dtypes.canonical(dtypes.float64), False))
        elif isinstance(arg, type) and arg in PYTHON_SCALARS:
            operands.append(dtypes.python_scalar(arg))
        elif isinstance(arg, _ScalarType):      # of 64 bits that are off, without a warning
            operands.append((dtypes.canonical(arg.dtype), False))
        elif isinstance(arg, (type, str, np.dtype, dtypes.KeyDType)):
            operands.append((dtypes.argument(arg, "dtype"), False))
        elif isinstance(arg, (Array, np.ndarray, np.generic, int, float, complex)):
            operands.append(type_of(arg))
        else:
            operands.append((dtypes.canonical(getattr(arg, "dtype", arg)),
                             getattr(getattr(arg, "aval", None), "weak_type", False)))
    dtype, weak = dtypes.promote(tuple(operands))
    return dtypes.default_of(dtype) if weak else dtype, weak


def promote_types(a: Any, b: Any) -> np.dtype:
    """The dtype to which two dtypes promote.

    By JAX's rules integers take on the width of floats: int32 and float16 give float16, int64 and
    float32 float32, where NumPy has float64.

    Args:
      a, b: dtypes, or what names them; ``int``, ``float`` and ``complex`` are weak.

    Returns:
      A NumPy dtype.

    Raises:
      TypeError: an argument names no dtype, or the two do not promote.

    See also: ``result_type``, ``issubdtype``, ``can_cast``.

    >>> jnp.promote_types("int32", "bfloat16")
    dtype(bfloat16)
    """
    pair = tuple((PYTHON_SCALARS[t][1], True) if isinstance(t, type) and t in (int, float, complex)
                 else (dtypes.as_dtype(t), False) for t in (a, b))
    # 64 bits only result from 64 bits and Python's types, unless the option is set.
    wide = any(dtypes.canonical(dtype) != dtype for dtype, _ in pair)
    return dtypes.promote(pair, x64=True if wide else None)[0]


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> builtins.bool:
    """NumPy's rule for casts without loss.

    >>> jnp.can_cast("int32", "float64"), jnp.can_cast("float32", "int32")
    (True, False)
    """
    source = dtypes.as_dtype(from_.dtype if isinstance(from_, Array) else from_)
    return np.can_cast(source, dtypes.as_dtype(to), casting)


_KINDS = {
    "bool": (dtypes.bool_,), "signed integer": (*dtypes.SIGNED, *_SMALL_SIGNED),
    "unsigned integer": (*dtypes.UNSIGNED, *_SMALL_UNSIGNED),
    "real floating": _FLOATS, "complex floating": dtypes.COMPLEX,
}
_KINDS["integral"] = (*_KINDS["signed integer"], *_KINDS["unsigned integer"])
_KINDS["numeric"] = (*_KINDS["integral"], *_FLOATS, *dtypes.COMPLEX)


def isdtype(dtype: DTypeLike, kind: Any) -> builtins.bool:
    """Whether a dtype is of a kind of the array API ("bool", "integral", ...) or equal to one.

    >>> jnp.isdtype("int8", "integral"), jnp.isdtype("int8", ("bool", "real floating"))
    (True, False)
    """
    value = dtypes.as_dtype(dtype)
    options: Sequence[Any] = kind if isinstance(kind, tuple) else (kind,)
    for option in options:
        if isinstance(option, str) and option in _KINDS:
            if value in _KINDS[option]:
                return True
            continue
        if isinstance(option, (tuple, int, float)):
            raise TypeError(f"Expected kind to be a dtype, string, or tuple; got kind={option!r}")
        try:
            wanted = dtypes.as_dtype(option)
        except TypeError as error:
            raise ValueError(f"Unrecognized kind={option!r}: expected one of {list(_KINDS)}, or "
                             "what names a dtype") from error
        if wanted == value:
            return True
    return False
