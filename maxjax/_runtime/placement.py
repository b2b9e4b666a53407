"""Putting values on devices, and getting them back."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np

from maxjax._base import pytree
from maxjax._ir.trace import Array, Tracer, base_trace
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.devices import Device
from maxjax._runtime.devices import devices as all_devices


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False,
               may_alias: bool | None = None) -> Any:
    """Copies the leaves of a pytree to a device.

    Args:
      x: a pytree of arrays and scalars; NumPy arrays are copied.
      device: a device, a sharding of one device, or a prefix pytree of them. None: the default
        device, to which the arrays are not committed.

    Raises:
      ValueError: the device is none, or a sharding of several.
      TypeError: a leaf is no array.
    """
    leaves, spec = pytree.flatten(x)
    places = pytree.broadcast_prefix(
        device, x, lambda node: node is None or single_device(node) is not None,
        "device_put device") if isinstance(device, (tuple, list, dict)) else [device] * len(leaves)
    return pytree.unflatten(spec, [
        _put(leaf, place) for leaf, place in zip(leaves, places, strict=True)])


def single_device(place: Any) -> Device | None:
    """The device of a device or of a sharding of one."""
    if isinstance(place, Device):
        return place
    devices = getattr(place, "device_set", None)
    if devices is not None and len(devices) == 1:
        return next(iter(devices))
    return None


def _put(leaf: Any, place: Any) -> Any:
    value = base_trace[0].operand(leaf)
    if place is None or isinstance(value, Tracer):
        # There is one memory: under a transformation a value is where it is.
        return value
    device = single_device(place)
    if device is None:
        raise ValueError(
            "device_put takes a device or a sharding of one device, got "
            f"{place!r}")
    if value._device is device and value._committed:
        return value
    placed = ArrayImpl(value.aval, value.host())
    placed._device = device
    placed._committed = True
    return placed


def device_get(x: Any) -> Any:
    """The leaves of a pytree as NumPy arrays; what is no array stays as it is."""
    def get(leaf: Any) -> Any:
        if isinstance(leaf, Array):
            return np.asarray(leaf)
        return leaf.__array__() if hasattr(leaf, "__array__") else leaf

    return pytree.map(get, x)


def block_until_ready(x: Any) -> Any:
    """Waits until all leaves are computed, and returns ``x``."""
    for leaf in pytree.leaves(x):
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x


def copy_to_host_async(x: Any) -> Any:
    """Starts computing all leaves, and returns ``x``."""
    return block_until_ready(x)


def device_count(backend: str | None = None) -> int:
    """The number of devices."""
    return len(all_devices(backend))


def local_devices(process_index: int | None = None, backend: str | None = None,
                  host_id: int | None = None) -> list[Device]:
    """The devices of this process: all."""
    if process_index not in (None, 0):
        raise ValueError(f"Unknown process_index {process_index}")
    return all_devices(backend)


def default_backend() -> str:
    """The platform of the default device."""
    return all_devices()[0].platform


def live_arrays(platform: str | None = None) -> list[Any]:
    """All arrays that somebody holds and nobody deleted, pending ones too.

    Args:
      platform: the devices' kind, such as "cpu"; None for the default one.
    """
    wanted = platform or default_backend()
    return [x for x in gc.get_objects()
            if type(x) is ArrayImpl and not x.is_deleted() and x.device.platform == wanted]
