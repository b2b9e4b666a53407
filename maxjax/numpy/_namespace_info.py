"""The array API's inspection of a namespace."""

from __future__ import annotations

from typing import Any

from maxjax._base import dtypes
from maxjax._runtime.devices import devices as all_devices

__array_api_version__ = "2025.12"

_KINDS: dict[str, tuple[str, ...]] = {
    "bool": ("bool",),
    "signed integer": ("int8", "int16", "int32", "int64"),
    "unsigned integer": ("uint8", "uint16", "uint32", "uint64"),
    "real floating": ("float32", "float64"),
    "complex floating": ("complex64", "complex128"),
}
_KINDS["integral"] = _KINDS["signed integer"] + _KINDS["unsigned integer"]
_KINDS["numeric"] = (
    _KINDS["integral"] + _KINDS["real floating"] + _KINDS["complex floating"])
_DEFAULTS = {"real floating": dtypes.float64, "complex floating": dtypes.complex128,
             "integral": dtypes.int64, "indexing": dtypes.int64}


class ArrayNamespaceInfo:
    """The result of ``jax.numpy.__array_namespace_info__()``."""

    def capabilities(self) -> dict[str, Any]:
        """The supported optional parts of the standard."""
        return {"boolean indexing": False, "data-dependent shapes": False, "max dimensions": 64}

    def default_device(self) -> None:
        """None: JAX's configuration determines where arrays are placed."""

    def devices(self) -> list[Any]:
        """The devices, and None for the default."""
        return [None, *all_devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The default dtypes of arrays of Python numbers, by kind."""
        return {kind: dtypes.canonical(dtype) for kind, dtype in _DEFAULTS.items()}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes of one kind, several, or all; 64-bit ones only if they are enabled.

        Raises:
          KeyError: there is no such kind.
        """
        kinds = ("bool", "numeric") if kind is None else (
            (kind,) if isinstance(kind, str) else tuple(kind))
        named = ((name, dtypes.as_dtype(name)) for each in kinds for name in _KINDS[each])
        return {name: dtype for name, dtype in named if dtypes.canonical(dtype) == dtype}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """The capabilities of this namespace, for the array API.

    >>> jnp.__array_namespace_info__().default_dtypes()["integral"]
    dtype('int32')
    """
    return ArrayNamespaceInfo()
