"""Types and constants as StableHLO writes them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._ir.dimensions import is_dimension

_NAMES = {
    "bool": "i1", "int2": "i2", "int4": "i4", "int8": "i8", "int16": "i16", "int32": "i32",
    "int64": "i64", "uint2": "ui2", "uint4": "ui4", "uint8": "ui8", "uint16": "ui16",
    "uint32": "ui32", "uint64": "ui64", "float16": "f16", "bfloat16": "bf16", "float32": "f32",
    "float64": "f64", "complex64": "complex<f32>", "complex128": "complex<f64>",
    "float4_e2m1fn": "f4E2M1FN", "float8_e3m4": "f8E3M4", "float8_e4m3": "f8E4M3",
    "float8_e4m3b11fnuz": "f8E4M3B11FNUZ", "float8_e4m3fn": "f8E4M3FN",
    "float8_e4m3fnuz": "f8E4M3FNUZ", "float8_e5m2": "f8E5M2", "float8_e5m2fnuz": "f8E5M2FNUZ",
    "float8_e8m0fnu": "f8E8M0FNU",
}
# A longer list is written as its bytes, where elements fill them.
_LONG = 32
_WHOLE_BYTES = frozenset((
    "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16",
    "float32", "float64", "complex64", "complex128"))


def element_type(dtype: np.dtype) -> str:
    """The type of an element.

    Raises:
      NotImplementedError: StableHLO has none for the dtype.
    """
    name = _NAMES.get(dtype.name)
    if name is None:
        raise NotImplementedError(f"StableHLO has no type for elements of {dtype}")
    return name


def element_names() -> Mapping[str, str]:
    """What elements are called, by the names of their dtypes."""
    return _NAMES


def tensor_type(shape: Sequence[int], dtype: np.dtype) -> str:
    sizes = "".join(["?x" if is_dimension(size) else f"{size}x" for size in shape])
    return f"tensor<{sizes}{element_type(dtype)}>"


def integers(values: Iterable[int]) -> str:
    """An attribute with several integers."""
    listed = ", ".join([str(int(value)) for value in values])
    return f"array<i64: {listed}>" if listed else "array<i64>"


def listed(values: Iterable[int]) -> str:
    return f"[{', '.join([str(int(value)) for value in values])}]"


def boolean(value: bool) -> str:
    return "true" if value else "false"


# The start of the attribute that holds what a user says of an operation.
FRONTEND = " {mhlo.frontend_attributes = {"


def frontend_attributes(metadata: Mapping[str, object]) -> str:
    """Text by key, which compilers hand on, as an attribute after a space; "" for none."""
    said = ", ".join([f"{key} = {json.dumps(_said(value))}"
                      for key, value in sorted(metadata.items())])
    return f"{FRONTEND}{said}}}}}" if said else ""


def _said(value: object) -> str:
    return boolean(value) if isinstance(value, bool) else str(value)


def dense(value: np.ndarray) -> str:
    """A constant's elements."""
    if value.size == 0:
        return "dense<>"
    if value.size == 1 or _is_uniform(value):
        return f"dense<{_element(value.reshape(-1)[0])}>"
    if value.size > _LONG and value.dtype.name in _WHOLE_BYTES:
        return f'dense<"0x{np.ascontiguousarray(value).tobytes().hex().upper()}">'
    return f"dense<{_nested(value)}>"


def _bits(dtype: np.dtype) -> int:
    return dtype.itemsize * 8


def _is_uniform(value: np.ndarray) -> bool:
    flat = np.ascontiguousarray(value).reshape(-1)
    return flat.tobytes() == flat[:1].tobytes() * flat.size


def _nested(value: np.ndarray) -> str:
    if value.ndim == 0:
        element: Any = value[()]
        return _element(element)
    return f"[{', '.join([_nested(part) for part in value])}]"


def _element(value: np.generic) -> str:
    dtype = value.dtype
    if dtype == np.bool_:
        return boolean(bool(value))
    if dtype.kind == "c":
        return f"({_element(value.real)}, {_element(value.imag)})"
    if dtype.kind in "iu" or dtype.name.startswith(("int", "uint")):
        return str(int(value))
    number = float(value)
    if math.isfinite(number):
        # Exact: 17 digits tell all float64 apart.
        return f"{number:.17e}" if dtype.itemsize == 8 else f"{number:.9e}"
    bits = int(np.asarray(value).view(f"uint{_bits(dtype)}"))
    return f"0x{bits:0{_bits(dtype) // 4}X}"
