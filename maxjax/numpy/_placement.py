"""Where new arrays lie: on a device, or over a mesh."""

from __future__ import annotations

from typing import Any

from maxjax._base import meshes
from maxjax._base.shardings import NamedSharding, SingleDeviceSharding
from maxjax._base.specs import PartitionSpec
from maxjax._higher_order.constraints import constrained, resharded
from maxjax._ir.runtime import installed
from maxjax._ir.staging import is_staging
from maxjax._ir.trace import Array
from maxjax._primitives.sharding import freed
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.devices import Device
from maxjax._runtime.operand_devices import check_can_go
from maxjax._runtime.placement import device_put


def check_device(given: Any, made: Array, device: Any) -> None:
    """Raises ValueError where what an array is made of was put elsewhere: only ``device_put`` moves
    it from there."""
    if device is not None:
        check_can_go(given if isinstance(given, Array) else made, device)


def on_device(x: Array, device: Any, out_sharding: Any = None) -> Array:
    """The array with the requested placement: on a device, or with a sharding.

    Raises:
      ValueError: ``device`` is neither.
      TypeError: ``out_sharding`` is not a NamedSharding or PartitionSpec.
    """
    if isinstance(device, NamedSharding) and isinstance(device.mesh, meshes.AbstractMesh):
        # It names no devices: only a type can follow it.
        return resharded(x, device) if device.mesh.explicit_axes else x
    if device is not None:
        if not isinstance(device, Device) and not hasattr(device, "device_set"):
            raise ValueError(f"device={device!r} must be a Device or a Sharding.")
        # Within a program this is a constraint: there a single device has no effect.
        x = (constrained(x, SingleDeviceSharding(device))
             if isinstance(device, Device) and is_staging() else device_put(x, device))
    elif meshes.use.ever_set and out_sharding is None:
        x = _around(x)
    return x if out_sharding is None else resharded(freed(x), out_sharding)


def _around(x: Array) -> Array:
    """A new array over the current mesh, if there is one: replicated on each device."""
    mesh = meshes.context_mesh()
    # Within shard_map the code runs on one shard.
    if mesh.empty or isinstance(mesh, meshes.AbstractMesh) or meshes.around().abstract.manual_axes:
        return x
    if x.__class__ is not ArrayImpl or x._placement is not None:
        return x
    return installed.runtime.put(x, NamedSharding(mesh, PartitionSpec()))


def eager(device: Any) -> Any:
    """A constant's placement; a single device is ignored in a program, which has its own."""
    return None if isinstance(device, (Device, SingleDeviceSharding)) and is_staging() else device
