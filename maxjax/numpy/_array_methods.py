"""The operators, methods and properties of arrays and tracers."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.config import status
from maxjax._base.dtypes import KeyDType
from maxjax._base.tracebacks import boundary, is_boundary, shorten
from maxjax._ir.trace import Array
from maxjax._primitives import layout, slicing
from maxjax._primitives.convert import bitcast_convert_type_p
from maxjax._primitives.layout import squeeze_p
from maxjax._primitives.random_bits import random_clone_p
from maxjax._primitives.widths import bit_width
from maxjax._runtime.array import ArrayImpl
from maxjax.numpy import _contraction as contraction
from maxjax.numpy import _creation as creation
from maxjax.numpy import _division as division
from maxjax.numpy import _reductions as reductions
from maxjax.numpy import _repeating as repeating
from maxjax.numpy import _rounding as rounding
from maxjax.numpy import _shape as shapes
from maxjax.numpy import _ufunc_objects as ufunc_objects
from maxjax.numpy import _ufuncs as ufuncs
from maxjax.numpy._at import IndexUpdateHelper
from maxjax.numpy._complex import imag, real
from maxjax.numpy._getitem import getitem
from maxjax.numpy._nonzero import compress, nonzero
from maxjax.numpy._placement import on_device
from maxjax.numpy._promotion import as_array, is_arraylike

# For other operands an operator returns NotImplemented, so that Python tries the other side or
# raises.
_OPERANDS = (Array, np.ndarray, np.generic, bool, int, float, complex)


# With + and *, Python would try the sequence's own operation, with == give False: an error is
# clearer. A class derived from these may have operators of its own.
_REJECTED: dict[str, tuple[str, tuple[type, ...]]] = {
    "add": ("+", (list, tuple)), "mul": ("*", (list, tuple)),
    "eq": ("==", (list, tuple, dict, set)), "ne": ("!=", (list, tuple, dict, set))}


def _accepted(other: Any) -> bool:
    return isinstance(other, _OPERANDS) or hasattr(other, "__jax_array__")


def _operator(function: Callable[[Any, Any], Any], name: str, reflected: bool = False) -> Any:
    symbol, rejected = _REJECTED.get(name, ("", ()))

    def declined(left: Any, right: Any, other: Any) -> Any:
        if type(other) in rejected:
            raise TypeError(f"unsupported operand type(s) for {symbol}: "
                            f"{type(left).__name__!r} and {type(right).__name__!r}")
        return NotImplemented

    if reflected:
        @is_boundary
        def method(self: Any, other: Any) -> Any:
            try:
                if other.__class__ is float or other.__class__ is int or _accepted(other):
                    return function(other, self)
                return declined(other, self, other)
            except Exception as error:
                shorten(error)
                raise
    else:
        @is_boundary
        def method(self: Any, other: Any) -> Any:
            try:
                kind = other.__class__
                if kind is ArrayImpl or kind is float or kind is int or _accepted(other):
                    return function(self, other)
                return declined(self, other, other)
            except Exception as error:
                shorten(error)
                raise
    method.__name__ = method.__qualname__ = f"__{'r' if reflected else ''}{name}__"
    return method


def _unary(function: Callable[[Any], Any], name: str) -> Any:
    @is_boundary
    def method(self: Any) -> Any:
        try:
            return function(self)
        except Exception as error:
            shorten(error)
            raise
    method.__name__ = method.__qualname__ = name
    return method


_BINARY = {
    "add": ufunc_objects.add_function, "sub": ufunc_objects.subtract_function,
    "mul": ufunc_objects.multiply_function, "truediv": ufuncs.divide,
    "floordiv": division.floor_divide, "mod": division.remainder, "divmod": division.divmod,
    "pow": division.power, "matmul": contraction.matmul, "and": ufunc_objects.bitwise_and_function,
    "or": ufunc_objects.bitwise_or_function, "xor": ufunc_objects.bitwise_xor_function,
    "lshift": ufuncs.left_shift, "rshift": division.right_shift,
}
_COMPARISONS = {
    "eq": ufuncs.equal, "ne": ufuncs.not_equal, "lt": ufuncs.less, "le": ufuncs.less_equal,
    "gt": ufuncs.greater, "ge": ufuncs.greater_equal,
}


def _round(self: Any, ndigits: int | None = None) -> Any:
    result = rounding.round(self, decimals=ndigits or 0)
    if ndigits is None:     # Python's round(x) returns an integer
        return creation.astype(result, int)
    return result


def _iter(self: Any) -> Any:
    if not self.aval.shape:
        raise TypeError("iteration over a 0-d array")
    return _rows(self)


def _rows(self: Any) -> Any:
    if status.checks_keys and isinstance(self, ArrayImpl) and isinstance(self.dtype, KeyDType):
        self = random_clone_p.bind(self)    # as in JAX, who iterates consumes no keys
    length, *rest = self.aval.shape
    on_mesh = self.aval.mesh_spec
    if isinstance(self, ArrayImpl) and on_mesh is not None and on_mesh[1].partitions[0] is not None:
        # As in JAX, rows that lie on several devices come by way of the host, on the first.
        self = creation.asarray(np.asarray(self))
    zeros, limits = (0,) * len(rest), tuple(rest)
    for i in range(length):
        row = slicing.slice_p.bind(
            self, start_indices=(i, *zeros), limit_indices=(i + 1, *limits), strides=None)
        yield squeeze_p.bind(row, dimensions=(0,))


def _reversed(self: Any) -> Any:
    if not self.aval.shape:
        raise TypeError("iteration over a 0-d array")
    return iter(repeating.flip(self, 0))


def _contains(self: Any, other: Any) -> Any:
    if self.ndim != 1:
        raise ValueError("Array.__contains__: search array must be one-dimensional, got "
                         f"arr.shape={self.shape}.")
    if not is_arraylike(other):
        raise TypeError(f"Array.__contains__: unsupported operand type {type(other)}.")
    other = as_array(other, "Array.__contains__")
    if other.ndim:
        raise ValueError("Array.__contains__: query value must be a scalar, got "
                         f"query.shape={other.shape}.")
    return reductions.any(ufuncs.equal(self, other))


@is_boundary
def _getitem(self: Any, index: Any) -> Any:
    try:
        return getitem(self, index)
    except Exception as error:
        shorten(error)
        raise


@boundary
def _setitem(self: Any, index: Any, value: Any) -> None:
    raise TypeError(
        "JAX arrays are immutable and do not support in-place item assignment. Instead of "
        "x[idx] = y, use x = x.at[idx].set(y) or another .at[] method: "
        "https://docs.jax.dev/en/latest/_autosummary/jax.numpy.ndarray.at.html")


@boundary
def _reshape(self: Any, *args: Any, order: str = "C", out_sharding: Any = None) -> Any:
    """The elements in another shape, given as one tuple or as several numbers."""
    shape = args[0] if len(args) == 1 else args
    return shapes.reshape(self, shape, order, out_sharding=out_sharding)


def _transpose(self: Any, *args: Any) -> Any:
    """Permutes the dimensions (reverses them by default)."""
    if not args:
        return shapes.transpose(self)
    axes = args[0] if len(args) == 1 and not isinstance(args[0], (int, np.integer)) else args
    return shapes.transpose(self, axes)


def _astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """The array converted to ``dtype``."""
    return creation.astype(self, dtype, copy=copy, device=device)


def _view(self: Any, dtype: Any = None, type: Any = None) -> Any:
    """The bits read as another dtype; the last dimension changes with its width."""
    if type is not None:
        raise NotImplementedError("`type` argument of array.view() is not supported.")
    if dtype is None:
        return self
    wanted = dtypes.argument(dtype, "view")
    old, new = bit_width(self.dtype), bit_width(wanted)
    if self.ndim == 0 and new != old:
        raise ValueError("view() of a 0d array is only supported if the itemsize is unchanged.")
    if self.ndim and self.shape[-1] * old % new:
        raise ValueError(
            "When changing to a larger dtype, its size must be a divisor of the total size in "
            "bytes of the last axis of the array.")
    if wanted == self.dtype:
        return self
    x = self
    if self.dtype == dtypes.bool_:
        x = creation.astype(x, np.uint8)
    if wanted == dtypes.bool_:
        return creation.astype(_view(x, np.uint8), bool)
    if new > old:
        x = layout.reshape(x, (*x.shape[:-1], x.shape[-1] * old // new, new // old))
    result = bitcast_convert_type_p.bind(x, new_dtype=wanted)
    if new < old:
        result = layout.reshape(
            result, (*result.shape[:-2], result.shape[-2] * result.shape[-1]))
    return result


def _copy(self: Any) -> Any:
    """A copy of the array."""
    return creation.copy(self)


def _clip(self: Any, min: Any = None, max: Any = None) -> Any:
    """Limits the elements to ``[min, max]``."""
    return rounding.clip(self, min=min, max=max)


def _compress(self: Any, condition: Any, axis: int | None = None, *, out: None = None,
              size: int | None = None, fill_value: Any = 0) -> Any:
    """The slices along ``axis`` (elements if None) where ``condition`` holds."""
    return compress(condition, self, axis, out=out, size=size, fill_value=fill_value)


def _nonzero(self: Any, *, fill_value: Any = None, size: int | None = None) -> Any:
    """The indices of the nonzero elements, an array for each axis."""
    return nonzero(self, size=size, fill_value=fill_value)


def _to_device(self: Any, device: Any, *, stream: Any = None) -> Any:
    """The array on another device."""
    return on_device(self, device)


def _array_namespace(self: Any, *, api_version: str | None = None) -> Any:
    """The module whose functions accept this array (the array API's protocol)."""
    module = sys.modules[__package__]
    available = module.__array_api_version__
    if api_version is not None and api_version != available:
        raise ValueError(
            f"{api_version=} is not available; available versions are: {[available]}")
    return module


def _matrix_transpose(self: Any) -> Any:
    """The array with its last two dimensions exchanged."""
    return shapes.matrix_transpose(self)


def _method(name: str, function: Callable[..., Any], without: Sequence[str] = ()) -> Any:
    """Turns a function whose first argument is the array into a method."""
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return function(self, *args, **kwargs)
    method.__name__ = name
    method.__qualname__ = f"Array.{name}"
    method.__doc__ = function.__doc__
    signature = inspect.signature(function)
    first, *rest = signature.parameters.values()
    first = first.replace(name="self", kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rest = [parameter for parameter in rest if parameter.name not in without]
    described: Any = method      # mypy does not know __signature__
    described.__signature__ = signature.replace(parameters=[first, *rest])
    return method


# The public functions of these names, of which the array is the first argument.
_METHODS = """
    all any argmax argmin argpartition argsort choose conj conjugate cumprod cumsum diagonal dot max
    mean min prod ptp ravel repeat round searchsorted sort squeeze std sum swapaxes take trace var
"""
# Arguments that the method lacks.
_WITHOUT = {"argsort": ("dtype",), "dot": ("out_sharding",), "std": ("mean",), "var": ("mean",)}


def install(functions: Mapping[str, Callable[..., Any]]) -> None:
    """Installs all of these on the common class of arrays and tracers.

    Args:
      functions: the public ones, by name.
    """
    members: dict[str, Any] = {}
    for name, function in _BINARY.items():
        members[f"__{name}__"] = _operator(function, name)
        members[f"__r{name}__"] = _operator(function, name, reflected=True)
    for name, function in _COMPARISONS.items():
        members[f"__{name}__"] = _operator(function, name)
    members |= {
        "__neg__": _unary(ufunc_objects.negative_function, "__neg__"),
        "__pos__": _unary(ufuncs.positive, "__pos__"),
        "__abs__": _unary(ufuncs.abs, "__abs__"),
        "__invert__": _unary(ufuncs.bitwise_not, "__invert__"),
        "__round__": _round, "__iter__": _iter, "__reversed__": _reversed,
        "__contains__": _contains, "__getitem__": _getitem, "__setitem__": _setitem,
        "__array_namespace__": _array_namespace,
        "T": property(_transpose), "mT": property(_matrix_transpose),
        "real": property(real), "imag": property(imag), "at": property(IndexUpdateHelper),
        "reshape": _reshape, "transpose": _transpose, "astype": _astype, "view": _view,
        "copy": _copy, "clip": _clip, "compress": _compress, "nonzero": _nonzero,
        "flatten": _method("flatten", functions["ravel"]), "to_device": _to_device,
    }
    for name in _METHODS.split():
        members[name] = _method(name, functions[name], _WITHOUT.get(name, ()))
    for name, member in members.items():
        setattr(Array, name, member)
