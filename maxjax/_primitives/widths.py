"""Elementwise primitives at every width: which dtypes they take, and NumPy rules that hold for
the narrow ones.

Floats below 32 bits are computed in float32 and rounded once, integers below 8 bits in 8 bits and
wrapped: what XLA does, and bit for bit what arithmetic of that width would give.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes, native
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import DType, Params
from maxjax._primitives import elementary

KINDS: dict[str, tuple[Any, ...]] = {
    "bool": (dtypes.bool_,),
    "signedinteger": dtypes.SIGNED,
    "integer": (*dtypes.INTS, *dtypes.SMALL_INTS),
    "floating": (*dtypes.FLOATS, *dtypes.SMALL_FLOATS),
    "complexfloating": dtypes.COMPLEX,
    "int32": (dtypes.int32,),
    "float32": (dtypes.float32,),
    "float64": (dtypes.float64,),
    "extended": (*map(dtypes.key_dtype, ("threefry2x32", "rbg", "unsafe_rbg")),),
}


class Accepted(tuple):
    """Dtypes that an operand may have; ``kinds`` names them as error messages do."""

    kinds: tuple[str, ...]


def accepted(kinds: str) -> Accepted:
    """The dtypes of some kinds, given as one string: ``accepted("integer floating")``."""
    names = tuple(kinds.split())
    result = Accepted(dtype for name in names for dtype in KINDS[name])
    result.kinds = names
    return result


def refusal(name: str, dtype: DType, where: str, accepts: Accepted) -> TypeError:
    """The error for an operand of a dtype that a primitive does not accept.

    Args:
      where: which operand, " at position 1", if there are several.
    """
    refuse_float0(name, dtype)
    broad = {"integer", "signedinteger"} if dtypes.is_signed(dtype) else {"integer"}
    if dtype in dtypes.SMALL_INTS and broad.intersection(accepts.kinds):
        return TypeError(
            f"{name} does not accept dtype {dtype}{where}. Support for narrow-width integers is "
            "platform-dependent and limited to a few specific operations, e.g. basic arithmetic "
            "and type casting.")
    return TypeError(f"{name} does not accept dtype {dtype}{where}. Accepted dtypes{where} are "
                     f"subtypes of {', '.join(accepts.kinds)}.")


def refuse_float0(name: str, *kinds: object) -> None:
    """Raises TypeError for an operand of the dtype of what has no derivative."""
    if dtypes.float0 in kinds:
        raise TypeError(
            f"Called {name} with a float0 array. float0s do not support any operations by design "
            "because they are not compatible with non-trivial vector spaces. No implicit dtype "
            "conversion is done. You can use np.zeros_like(arr, dtype=np.float) to cast a float0 "
            "array to a regular zeros array. \nIf you didn't expect to get a float0 you might have "
            "accidentally taken a gradient with respect to an integer argument.")


NUMBERS = accepted("integer floating complexfloating")
REALS = accepted("integer floating")
INEXACT = accepted("floating complexfloating")
FLOATING = accepted("floating")
INTEGERS = accepted("integer")
BITS = accepted("integer bool")
ORDERED = accepted("integer floating bool")
ANY = accepted("integer floating complexfloating bool")

# The dtype in which a narrow one is computed.
WIDER: dict[Any, np.dtype] = {
    **dict.fromkeys((dtypes.float16, dtypes.bfloat16, *dtypes.SMALL_FLOATS), dtypes.float32),
    **dict.fromkeys((dtypes.int2, dtypes.int4), dtypes.int8),
    **dict.fromkeys((dtypes.uint2, dtypes.uint4), dtypes.uint8),
}
BIT_WIDTHS = {dtypes.int2: 2, dtypes.uint2: 2, dtypes.int4: 4, dtypes.uint4: 4,
              dtypes.float4_e2m1fn: 4}


def bit_width(dtype: np.dtype) -> int:
    return BIT_WIDTHS.get(dtype) or dtype.itemsize * 8


def widened(function: Callable[..., np.ndarray]) -> Callable[..., Any]:
    """A NumPy rule for all widths from one for those that NumPy computes in."""
    def evaluate(*arrays: np.ndarray, **params: object) -> Any:
        dtype = arrays[0].dtype
        wide = WIDER.get(dtype)
        if wide is None:
            return function(*arrays, **params)
        result = function(*[array.astype(wide) for array in arrays], **params)
        return result.astype(dtype) if result.dtype == wide else result

    evaluate.__wrapped__ = function      # type: ignore[attr-defined]  # as `inspect` follows it
    return evaluate


# From this size most functions that NumPy has no vector code for are worth a call of the pack.
_USUAL = 16_384


class Vectorized:
    """A NumPy function of one float operand, replaced by the pack's kernel of that name for float32
    from so many elements on."""

    __slots__ = ("function", "name")

    def __init__(self, name: str, function: Callable[[Any], Any]):
        self.name = name
        self.function = function

    def __call__(self, x: np.ndarray) -> Any:
        if x.size >= native.FEWEST and x.dtype == dtypes.float32:
            out = native_result(self.name, x)
            if out is not None:
                return out
        return self.function(x)


def vectorized(name: str, function: Callable[[Any], Any], least: int = _USUAL) -> Vectorized:
    """The function, with the pack's kernel from ``least`` elements on."""
    native.offer(name, dtypes.float32, least)
    return Vectorized(name, function)


def vectorized_pair(name: str, function: Callable[[Any, Any], Any],
                    least: int = _USUAL) -> Callable[[Any, Any], Any]:
    """A function of two operands, which broadcast, with the pack's kernel from ``least`` elements
    on."""
    native.offer(name, dtypes.float32, least)

    def evaluate(x: np.ndarray, y: np.ndarray) -> Any:
        if (x.size >= native.FEWEST or y.size >= native.FEWEST) and x.dtype == dtypes.float32:
            out = native_result(name, x, y)
            if out is not None:
                return out
        return function(x, y)

    return evaluate


def native_result(name: str, *operands: np.ndarray, out_dtypes: Sequence[np.dtype | type] = ()
                  ) -> Any:
    """The result of the native function of that name, or None where it should not be called.

    Args:
      out_dtypes: of several results; one is of the operands' dtype.
    """
    x = operands[0]
    if len(operands) == 1:
        shape, size = x.shape, x.size
    else:
        shape = np.broadcast_shapes(*[operand.shape for operand in operands])
        size = math.prod(shape)
    found = native.find(name, x.dtype, size)
    if found is None:
        return None
    if len(operands) > 1:
        operands = tuple([
            np.ascontiguousarray(np.broadcast_to(operand, shape)) for operand in operands])
    elif not x.flags.c_contiguous:
        return None
    results = [np.empty(shape, dtype) for dtype in out_dtypes or (x.dtype,)]
    found((*operands, *results), (size,), size)
    return results if out_dtypes else results[0]


def specialized(function: Callable[..., np.ndarray],
                on_complex: Callable[..., np.ndarray] | None = None) -> Callable[..., Any]:
    """``specialize`` for a NumPy function: itself, where no widening is needed.

    ``on_complex``: what replaces it for complex numbers.
    """
    def specialize(in_avals: tuple[ShapedArray, ...], params: Params,
                   out_avals: tuple[ShapedArray, ...]) -> Any:
        dtype = in_avals[0].dtype
        if params:
            return None
        if on_complex is not None and dtypes.is_complex(dtype):
            return on_complex
        wide = WIDER.get(dtype)
        if wide is None:
            return _without_choices(function, in_avals[0])
        if out_avals[0].dtype != dtype or len(in_avals) > 2:
            return None
        if len(in_avals) == 1:
            return lambda x: function(x.astype(wide)).astype(dtype)
        return lambda x, y: function(x.astype(wide), y.astype(wide)).astype(dtype)

    return specialize


def _without_choices(function: Callable[..., Any], aval: ShapedArray) -> Callable[..., Any]:
    """A function for operands of one type, without what it does for others."""
    size = aval.size
    if type(size) is int and size < native.FEWEST:
        if isinstance(function, Vectorized):
            function = function.function
        if isinstance(function, elementary.Unary) and aval.dtype == dtypes.float32 and aval.ndim:
            function = function.for_few
    return function
