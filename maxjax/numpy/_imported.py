"""Arrays from buffers, text, files, functions and other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maxjax import dlpack
from maxjax._base import dtypes
from maxjax._ir.trace import Array
from maxjax._ir.typing import DTypeLike
from maxjax._transforms.vmap import vmap
from maxjax.numpy._creation import array
from maxjax.numpy._promotion import canonical_shape
from maxjax.numpy._ranges import iota

__all__ = [
    "from_dlpack", "frombuffer", "fromfile", "fromfunction", "fromiter", "fromstring", "load",
    "save", "savez",
]


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array from another library, through DLPack: see ``jax.dlpack.from_dlpack``.

    >>> jnp.from_dlpack(np.arange(3, dtype=np.float32))
    Array([0., 1., 2.], dtype=float32)
    """
    return dlpack.from_dlpack(x, device, copy)


def frombuffer(buffer: Any, dtype: DTypeLike = float, count: int = -1, offset: int = 0) -> Array:
    """A one-dimensional array of the bytes of ``buffer``.

    >>> jnp.frombuffer(bytes([1, 0, 2, 0]), dtype=jnp.int16)
    Array([1, 2], dtype=int16)
    """
    return array(np.frombuffer(buffer, dtypes.as_dtype(dtype), count, offset))


def fromfile(*args: Any, **kwargs: Any) -> Array:
    """Not in JAX, because reading a file is not a pure function.

    Raises:
      NotImplementedError: always.

    >>> jnp.fromfile("data.bin")
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(
        "jnp.fromfile() is not implemented because it may be non-pure and thus unsafe for use "
        "with JIT and other JAX transformations. Consider using jnp.asarray(np.fromfile(...)) "
        "instead, although care should be taken if np.fromfile is used within jax "
        "transformations because of its potential side-effect of consuming the file object")


def fromiter(*args: Any, **kwargs: Any) -> Array:
    """Not in JAX, because consuming an iterator is not a pure function.

    Raises:
      NotImplementedError: always.

    >>> jnp.fromiter(range(3), int)
    Traceback (most recent call last):
        ...
    NotImplementedError: ...
    """
    raise NotImplementedError(
        "jnp.fromiter() is not implemented because it may be non-pure and thus unsafe for use "
        "with JIT and other JAX transformations. Consider using jnp.asarray(np.fromiter(...)) "
        "instead, although care should be taken if np.fromiter is used within jax "
        "transformations because of its potential side-effect of consuming the iterable object")


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str) -> Array:
    """A one-dimensional array of the numbers in a string.

    >>> jnp.fromstring("1 2 3", sep=" ")
    Array([1., 2., 3.], dtype=float32)
    """
    return array(np.fromstring(string, dtypes.as_dtype(dtype), count, sep=sep))


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: DTypeLike = float,
                 **kwargs: Any) -> Array:
    """``function`` of the index arrays of a grid of ``shape``.

    >>> jnp.fromfunction(lambda row, column: 10 * row + column, (2, 3), dtype=int)
    Array([[ 0,  1,  2],
           [10, 11, 12]], dtype=int32)
    """
    sizes = canonical_shape(shape)
    lines = [iota(dtypes.argument(dtype, "fromfunction"), size) for size in sizes]
    for axis in reversed(range(len(sizes))):
        axes = tuple(0 if i == axis else None for i in range(len(sizes)))
        function = _mapped(function, axes)
    return function(*lines, **kwargs)


def _mapped(function: Callable[..., Any], axes: tuple[int | None, ...]) -> Callable[..., Any]:
    """``function`` mapped over one positional argument, with all of its keyword arguments."""
    return vmap(function, in_axes=axes)


save = np.save
savez = np.savez


def load(file: Any, *args: Any, **kwargs: Any) -> Array | np.ndarray:
    """An array from a file written by ``save``; NumPy's own of what is no array of numbers, such as
    objects.

    >>> import io
    >>> file = io.BytesIO()
    >>> jnp.save(file, jnp.arange(3))
    >>> _ = file.seek(0)
    >>> jnp.load(file)
    Array([0, 1, 2], dtype=int32)
    """
    loaded: Any = np.load(file, *args, **kwargs)
    if not isinstance(loaded, np.ndarray):
        return loaded
    value: Any = loaded
    if value.dtype == np.dtype("V2"):       # NumPy's file format does not know its name
        value = value.view(dtypes.bfloat16)
    try:
        return array(value)
    except TypeError:
        return value
