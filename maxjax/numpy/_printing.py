"""The text of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.types import ShapedArray
from maxjax._runtime.array import ArrayImpl

__all__ = ["array_repr", "array_str", "get_printoptions", "printoptions", "set_printoptions"]

get_printoptions = np.get_printoptions
printoptions = np.printoptions

def set_printoptions(*args: Any, **kwargs: Any) -> None:
    """Sets how arrays are printed: NumPy's options, shared with NumPy's arrays.

    >>> with jnp.printoptions():
    ...     jnp.set_printoptions(precision=2)
    ...     jnp.array([jnp.pi])
    Array([3.14], dtype=float32)
    """
    np.set_printoptions(*args, **kwargs)


_BITS = "u4"
# Arrays of so many bytes or more are told by their shape, as in JAX: nobody reads them whole.
_LARGE_BYTES = 1 << 20


def key_words(x: ArrayImpl) -> np.ndarray:
    """The words of random keys, along new last axes."""
    host = np.ascontiguousarray(x.host()).reshape(x.shape)
    dtype = x.aval.dtype
    if host.dtype == np.uint64:      # one uint64 per key, with the first word in its low half
        return np.stack([host & np.uint64(0xFFFFFFFF), host >> np.uint64(32)], -1).astype(_BITS)
    return host.reshape(-1).view(_BITS).reshape(*x.shape, *dtype.key_shape)


def _keys_repr(x: ArrayImpl) -> str:
    words = np.array2string(key_words(x))
    return f"Array({x.shape}, dtype={x.dtype.name}) overlaying:\n{words}"


def _elements(x: ArrayImpl) -> ArrayImpl:
    """The elements of an array of a library's dtype, as numbers."""
    return ArrayImpl(ShapedArray(x.shape, dtypes.physical(x.dtype)), x.host())


def _is_unreduced(self: ArrayImpl) -> bool:
    """Whether an array is unreduced."""
    return self.aval.mesh_spec is not None and bool(self.aval.mesh_spec[1].unreduced)


def _without_values(self: ArrayImpl) -> str:
    weak = ", weak_type=True" if self.aval.weak_type else ""
    return f"Array(shape={self.shape}, dtype={self.dtype.name}{weak})"


def _is_elsewhere(self: ArrayImpl) -> bool:
    """Whether only other processes have parts of an array."""
    return not self.is_fully_addressable and not (
        self.is_fully_replicated and self.sharding.has_addressable_devices)


def _repr(self: ArrayImpl) -> str:
    if _is_elsewhere(self):
        return _without_values(self)
    if dtypes.is_key(self.dtype):
        return _keys_repr(self)
    if dtypes.is_user_defined(self.dtype):
        return f"E{_repr(_elements(self))}"
    if _is_unreduced(self):
        return f"Array(shape={self.shape}, dtype={self.dtype.name}, sharding={self.sharding})"
    if self.nbytes >= _LARGE_BYTES:
        return _without_values(self)
    prefix = "Array("
    weak = ", weak_type=True" if self.aval.weak_type else ""
    dtype = f"dtype={self.dtype.name}{weak})"
    host = self.readable()
    width = np.get_printoptions()["linewidth"]
    if host.size == 0:
        data = "[]"
        dtype = f"shape={self.shape}, {dtype}"
    else:
        data = np.array2string(host, prefix=prefix, suffix=",", separator=", ",
                               max_line_width=width)
    # The dtype goes on a new line if it does not fit on the last one.
    last_line = len(data) - data.rfind("\n") + 1
    gap = " " * len(prefix) if last_line + len(dtype) + 1 > width else " "
    return f"{prefix}{data},{gap}{dtype}"


def _str(self: ArrayImpl) -> str:
    if _is_elsewhere(self):
        return _without_values(self)
    if dtypes.is_key(self.dtype):
        return _keys_repr(self)
    if _is_unreduced(self) or dtypes.is_user_defined(self.dtype):
        return repr(self)
    return _without_values(self) if self.nbytes >= _LARGE_BYTES else str(self.readable())


def _format(self: ArrayImpl, spec: str) -> str:
    if _is_unreduced(self):
        return repr(self)
    if self.ndim == 0 and not dtypes.is_opaque(self.dtype):
        return format(self.readable()[()], spec)
    if spec:
        raise TypeError("unsupported format string passed to numpy.ndarray.__format__")
    # The values of large ones too.
    is_plain = not (dtypes.is_opaque(self.dtype) or _is_elsewhere(self))
    return str(self.readable()) if is_plain else str(self)


def array_repr(arr: Any, max_line_width: Any = None, precision: Any = None,
               suppress_small: Any = None) -> str:
    """NumPy's text of an array, with its dtype.

    >>> jnp.array_repr(jnp.arange(3))
    'ArrayImpl([0, 1, 2], dtype=int32)'
    """
    return np.array_repr(arr, max_line_width, precision, suppress_small)


def array_str(a: Any, max_line_width: Any = None, precision: Any = None,
              suppress_small: Any = None) -> str:
    """NumPy's text of the elements of an array.

    >>> jnp.array_str(jnp.arange(3))
    '[0 1 2]'
    """
    return np.array_str(a, max_line_width, precision, suppress_small)


def install() -> None:
    """Installs the methods that print arrays."""
    kind: Any = ArrayImpl       # Any, so that mypy accepts new methods
    kind.__repr__, kind.__str__, kind.__format__ = _repr, _str, _format


install()
