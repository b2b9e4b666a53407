"""jax.sharding: where the parts of an array are."""

from __future__ import annotations

from typing import Any

from maxjax._base.meshes import AbstractDevice as AbstractDevice
from maxjax._base.meshes import AbstractMesh as AbstractMesh
from maxjax._base.meshes import AxisType as AxisType
from maxjax._base.meshes import Mesh as Mesh
from maxjax._base.meshes import PartitionSpec as PartitionSpec
from maxjax._base.meshes import get_abstract_mesh as get_abstract_mesh
from maxjax._base.meshes import use_abstract_mesh as use_abstract_mesh
from maxjax._base.missing import missing_names
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.devices import Device


class Sharding:
    """How an array is spread over devices."""

    device_set: set[Device]


class SingleDeviceSharding(Sharding):
    """The whole array is on one device."""

    def __init__(self, device: Device, *, memory_kind: str | None = None):
        self._device = device
        self.memory_kind = memory_kind or "device"

    @property
    def device_set(self) -> set[Device]:      # type: ignore[override]
        """The devices that hold a part."""
        return {self._device}

    addressable_devices = device_set

    @property
    def num_devices(self) -> int:
        return 1

    @property
    def is_fully_replicated(self) -> bool:
        return True

    @property
    def is_fully_addressable(self) -> bool:
        return True

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of each device's part."""
        return tuple(global_shape)

    def devices_indices_map(self, global_shape: tuple[int, ...]) -> dict[Device, Any]:
        """Each device's part, as slices."""
        return {self._device: (slice(None),) * len(global_shape)}

    addressable_devices_indices_map = devices_indices_map

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Whether both put each element of an array of rank ``ndim`` on the same device."""
        return getattr(other, "device_set", None) == self.device_set

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, SingleDeviceSharding) and self._device is other._device
                and self.memory_kind == other.memory_kind)

    def __hash__(self) -> int:
        return hash((self._device, self.memory_kind))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"


def _sharding(self: ArrayImpl) -> SingleDeviceSharding:
    """Where the array is."""
    return SingleDeviceSharding(self.device)


ArrayImpl.sharding = property(_sharding)      # type: ignore[attr-defined]
__getattr__ = missing_names(__name__)
