"""jax.experimental.serialize_executable: compiled functions as bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxjax._base import pytree
from maxjax._base.shardings import NamedSharding
from maxjax._base.treedef import PyTreeDef
from maxjax._higher_order.api import jit
from maxjax._higher_order.exported import Exported, deserialize
from maxjax._higher_order.exporting import export_entry
from maxjax._higher_order.shape_struct import shape_structs
from maxjax._higher_order.stages import Compiled
from maxjax._runtime.devices import Device
from maxjax._runtime.placement import default_backend

__all__ = ["deserialize_and_load", "serialize"]


def serialize(compiled: Compiled) -> tuple[bytes, PyTreeDef, PyTreeDef]:
    """The program of a compiled function as bytes, and the structures of its arguments
    ``(args, kwargs)`` and of its result.

    Kernels are not in the bytes: they lie in maxjax's cache, or are compiled when it is loaded.

    Raises:
      ValueError: the function touches array references.
      NotImplementedError: the function calls back into Python, or runs on several devices.

    >>> compiled = jax.jit(lambda x: 2 * x).lower(1.).compile()
    >>> deserialize_and_load(*serialize(compiled))(3.)
    Array(6., dtype=float32)
    """
    if compiled._entry.closed.refs:
        raise ValueError("can't serialize with a closed-over array reference: pass it as an "
                         "argument, or its value")
    places = (*compiled._places, *compiled._result_shardings())
    if any(isinstance(place, NamedSharding) and place.mesh.size > 1 for place in places):
        raise NotImplementedError(
            "serialize takes functions of one device: jax.export saves those of several")
    exported = export_entry(
        compiled._jitted.function_name, compiled._entry, compiled._tree, (default_backend(),))
    return bytes(exported.serialize()), compiled.in_tree, compiled.out_tree


def deserialize_and_load(serialized: bytes, in_tree: PyTreeDef, out_tree: PyTreeDef,
                         backend: str | None = None,
                         execution_devices: Sequence[Device] | None = None) -> Compiled:
    """The compiled function that ``serialize`` gave the bytes and structures of.

    Args:
      backend: the platform; there is one.
      execution_devices: the device that it runs on; the default one if it is not given.

    Raises:
      ValueError: the bytes are of another program than the structures, or damaged.
    """
    exported = deserialize(serialized)
    if (exported.in_tree, exported.out_tree) != (in_tree, out_tree):
        raise ValueError(
            f"the serialized program takes {exported.in_tree} and gives {exported.out_tree}, not "
            f"{in_tree} and {out_tree}")
    function = _callable(exported)
    args, kwargs = pytree.unflatten(in_tree.spec, shape_structs(exported.in_avals))
    device = None if execution_devices is None else execution_devices[0]
    return jit(function, device=device, backend=backend).lower(*args, **kwargs).compile()


def _callable(exported: Exported) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return exported.call(*args, **kwargs)

    call.__name__ = exported.fun_name
    return call
