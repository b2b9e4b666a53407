"""Putting values on devices, and getting them back."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import numpy as np

from maxjax._base import meshes, pytree
from maxjax._base.dtypes import is_key
from maxjax._base.meshes import PartitionSpec
from maxjax._base.shardings import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    check_shape,
    refuse_parts,
)
from maxjax._ir.trace import Array, Tracer, base_trace
from maxjax._primitives.sharding import reshard_p, sharding_constraint_p, type_on
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.devices import Device
from maxjax._runtime.devices import devices as all_devices
from maxjax._runtime.pending import put


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False,
               may_alias: bool | None = None) -> Any:
    """Copies the leaves of a pytree to a device.

    Args:
      x: a pytree of arrays and scalars; NumPy arrays are copied.
      device: a device, a sharding, a ``PartitionSpec`` (of the mesh that is set), or a prefix
        pytree of them. None: the default device, to which the arrays are not committed; arrays
        stay where they are.

    Raises:
      ValueError: the device is none; the value's rank is too small for the sharding, or a
        dimension not divisible.
      TypeError: a leaf is no array.
    """
    leaves, spec = pytree.flatten(x)
    places = [device] * len(leaves)
    if isinstance(device, (tuple, list, dict)):
        places = pytree.broadcast_prefix(device, x, is_place, "device_put device")
    return pytree.unflatten(spec, [
        _put(leaf, place) for leaf, place in zip(leaves, places, strict=True)])


def is_place(node: Any) -> bool:
    return node is None or isinstance(node, (Device, Sharding, PartitionSpec))


def _put(leaf: Any, place: Any) -> Any:
    value = base_trace[0].operand(leaf)
    if place is None:
        return value
    if not is_place(place):
        raise ValueError(
            "`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, `jax.Device`, "
            "`Format`, `jax.memory.Space` or a pytree of these values. Received invalid value: "
            f"{place}")
    if isinstance(place, PartitionSpec):
        mesh = meshes.around().concrete
        if mesh.empty:
            raise ValueError("Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed "
                             "to device_put")
        place = NamedSharding(mesh, place)
    if isinstance(place, Sharding):
        place.is_fully_addressable      # noqa: B018  (raises where there are no devices)
        type_on(value.aval, place)
        check_shape(place, value.shape, "device_put args")
        refuse_parts(place)
        refuse_parts(value.aval.sharding)
    if isinstance(value, Tracer):
        return _put_traced(value, place)
    if isinstance(place, SingleDeviceSharding) and place.memory_kind == "device":
        place = place._device
    return put(value, place)


def _put_traced(value: Tracer, place: Any) -> Any:
    """Under a transformation: how the value is to lie, and nothing where that is one device."""
    if not isinstance(place, NamedSharding):
        return value
    meshes.ever_set[0] = True
    if place.mesh.explicit_axes:
        return reshard_p.bind(value, dst_sharding=place)
    return sharding_constraint_p.bind(
        value, sharding=place, layout=None, context_mesh=meshes.around().concrete,
        unconstrained_dims=frozenset())


def device_get(x: Any) -> Any:
    """The leaves of a pytree as NumPy arrays; random keys, and what is no array, or traced, stay
    as they are."""
    def get(leaf: Any) -> Any:
        if isinstance(leaf, Tracer):
            return leaf
        if isinstance(leaf, Array):
            return leaf if is_key(leaf.dtype) else np.asarray(leaf)
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
    """The devices of this process: all.

    Raises:
      RuntimeError: there is no such platform.
      ValueError: there is no such process.
    """
    if host_id is not None:
        warnings.warn("The argument to jax.local_devices has been renamed from `host_id` to "
                      "`process_index`. This alias will eventually be removed; please update your "
                      "code.", stacklevel=2)
        process_index = host_id
    found = all_devices(backend)
    if process_index not in (None, 0):
        raise ValueError(f"Unknown process_index {process_index}")
    return found


def default_backend() -> str:
    """The platform of the default device."""
    return all_devices()[0].platform


def live_arrays(platform: str | None = None) -> list[Any]:
    """All arrays that somebody holds and nobody deleted, pending ones too.

    Args:
      platform: the devices' kind, such as "cpu"; None for the default one.
    """
    wanted = all_devices(platform)[0].platform
    return [x for x in gc.get_objects()
            if type(x) is ArrayImpl and not x.is_deleted()
            and next(iter(x.devices())).platform == wanted]
