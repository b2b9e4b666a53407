"""Shardings: which part of an array each device holds."""

from __future__ import annotations

import enum
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from maxjax._base import threads
from maxjax._base.errors import DuplicateSpecError, IndivisibleError
from maxjax._base.meshes import AnyMesh, AxisType, Mesh
from maxjax._base.processes import job
from maxjax._base.source import occurs_at
from maxjax._base.specs import (
    UNCONSTRAINED,
    AxisName,
    PartitionSpec,
    SpecEntry,
    entry_axes,
    spec_axes,
)

if TYPE_CHECKING:
    from typing import Unpack

    from maxjax._base.meshes import DeviceLike

    class _Changes(TypedDict, total=False):
        mesh: AnyMesh
        spec: PartitionSpec
        memory_kind: str | None

Shape = Sequence[int]
Index = tuple[slice, ...]
MEMORY_KINDS = ("device", "pinned_host", "unpinned_host")


class MemorySpace(enum.Enum):
    """A memory by its place: ``device_put(x, jax.memory.Space.Host)``.

    >>> jax.memory.Space.Device
    MemorySpace.Device
    """

    Device = enum.auto()
    Host = enum.auto()
    Any = enum.auto()

    def __repr__(self) -> str:
        return f"MemorySpace.{self.name}"

    @property
    def kind(self) -> str:
        return "pinned_host" if self is MemorySpace.Host else "device"


class Sharding:
    """How an array is spread over devices."""

    memory_kind: str | None = None

    @property
    def device_set(self) -> set[Any]:
        """The devices that hold a part."""
        return set(self._devices())

    @property
    def addressable_devices(self) -> set[Any]:
        """Those of the devices that are this process's."""
        return set(self._addressable_device_assignment)

    @property
    def num_devices(self) -> int:
        """How many devices hold a part."""
        return len(self._devices())

    @property
    def is_fully_replicated(self) -> bool:
        """Whether each device holds the whole array."""
        raise NotImplementedError

    @property
    def is_fully_addressable(self) -> bool:
        """Whether all devices are this process's."""
        return not job.device_counts or not self.spans_processes

    @property
    def has_addressable_devices(self) -> bool:
        """Whether any device is this process's."""
        return bool(self._addressable_device_assignment)

    @threads.cached
    def spans_processes(self) -> bool:
        """Whether devices belong to other processes."""
        return any(device.process_index != job.index for device in self._devices())

    def _devices(self) -> tuple[Any, ...]:
        """The devices, in order."""
        raise NotImplementedError

    @property
    def _addressable_device_assignment(self) -> tuple[Any, ...]:
        """Those of the devices that are this process's, in order; Orbax asks by this name."""
        if self.is_fully_addressable:
            return self._devices()
        return tuple(self._devices()[position] for position in self.local_positions)

    @threads.cached
    def local_positions(self) -> tuple[int, ...]:
        """The positions, among the devices, of those that are this process's."""
        return tuple(position for position, device in enumerate(self._devices())
                     if not job.device_counts or device.process_index == job.index)

    def _tiling(self, ndim: int) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
        """Parts by dimension, and each device's position among them."""
        raise NotImplementedError

    def shard_shape(self, global_shape: Shape) -> tuple[int, ...]:
        """The shape of each device's part.

        Raises:
          IndivisibleError: a dimension does not divide.
        """
        parts, _ = self._tiling(len(global_shape))
        for dim, (size, count) in enumerate(zip(global_shape, parts, strict=True)):
            if size % count:
                raise IndivisibleError(
                    f"{self!r} implies that array axis {dim} is partitioned {count} "
                    f"times, but the dimension size is {size} (full shape: {tuple(global_shape)}, "
                    f"per-dimension tiling factors: {tuple(parts)} should evenly divide the shape)")
        return tuple(size // count for size, count in zip(global_shape, parts, strict=True))

    def devices_indices_map(self, global_shape: Shape) -> dict[Any, Index]:
        """Each device's part, as slices.

        Raises:
          NotImplementedError: the array is unreduced.
        """
        refuse_unreduced(self)
        return dict(zip(self._devices(), self._indices(global_shape), strict=True))

    def _indices(self, global_shape: Shape) -> list[Index]:
        """Which part each device has, or has a summand of."""
        parts, positions = self._tiling(len(global_shape))
        sizes = self.shard_shape(global_shape)
        return [tuple(
            slice(None) if count == 1 else slice(number * size, (number + 1) * size)
            for size, count, number in zip(sizes, parts, position, strict=True))
            for position in positions]

    def addressable_devices_indices_map(self, global_shape: Shape) -> dict[Any, Index]:
        """The part of each device of this process, as slices.

        Raises:
          NotImplementedError: the array is unreduced.
        """
        found = self.devices_indices_map(global_shape)
        return {device: found[device] for device in self._addressable_device_assignment}

    def lies_stacked(self, ndim: int) -> bool:
        """Whether the devices of this process hold different parts of an array of that rank."""
        _, positions = self._tiling(ndim)
        return len({positions[number] for number in self.local_positions}) > 1

    def is_equivalent_to(self, other: object, ndim: int) -> bool:
        """Whether both put each element of an array of rank ``ndim`` on the same devices."""
        return (isinstance(other, Sharding) and self._devices() == other._devices()
                and self.memory_kind == other.memory_kind
                and self._tiling(ndim) == other._tiling(ndim))

    def check_compatible_aval(self, aval_shape: Shape) -> None:
        """Raises ValueError if arrays of that shape cannot be spread this way."""

    def with_memory_kind(self, kind: str) -> Sharding:
        """A copy of the sharding that lies in another kind of memory."""
        raise NotImplementedError


def _check_memory(kind: str | None) -> None:
    if kind is not None and kind not in MEMORY_KINDS:
        raise ValueError(unknown_memory(kind, "cpu"))


def unknown_memory(kind: str, device: str) -> str:
    return (f"Could not find memory addressable by device {device}. Device {device} can address "
            f"the following memory kinds: {', '.join(MEMORY_KINDS)}. Got memory kind: {kind}")


class SingleDeviceSharding(Sharding):
    """The whole array is on one device.

    Args:
      device: a ``Device``.
      memory_kind: "device", "pinned_host" or "unpinned_host"; there is one memory.

    See also: ``jax.sharding.NamedSharding``, ``jax.device_put``, ``jax.devices``.
    """

    def __init__(self, device: DeviceLike, *, memory_kind: str | None = None):
        _check_memory(memory_kind)
        self._device: Any = device
        self.memory_kind = memory_kind or "device"

    def _devices(self) -> tuple[Any, ...]:
        return (self._device,)

    def _tiling(self, ndim: int) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
        return (1,) * ndim, [(0,) * ndim]

    @property
    def is_fully_replicated(self) -> bool:
        return True

    def with_memory_kind(self, kind: str) -> SingleDeviceSharding:
        return SingleDeviceSharding(self._device, memory_kind=kind)

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, SingleDeviceSharding) and self._device is other._device
                and self.memory_kind == other.memory_kind)

    def __hash__(self) -> int:
        return hash((self._device, self.memory_kind))

    def __repr__(self) -> str:
        return f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})"


def make_single_device_sharding(device: DeviceLike, *, memory_kind: str | None = None
                                ) -> SingleDeviceSharding:
    """The sharding of arrays that are on one device."""
    return SingleDeviceSharding(device, memory_kind=memory_kind)


class NamedSharding(Sharding):
    """Dimensions are split over named axes of a mesh.

    Args:
      mesh: a ``Mesh``, or an ``AbstractMesh`` where no devices are asked for.
      spec: a ``PartitionSpec``.
      memory_kind: "device", "pinned_host" or "unpinned_host"; there is one memory.

    Raises:
      ValueError: the spec names an axis that the mesh does not have.
      DuplicateSpecError: it names one twice.

    See also: ``jax.sharding.PartitionSpec``, ``jax.sharding.Mesh``, ``jax.device_put``,
    ``jax.jit``, ``lax.with_sharding_constraint``.
    """

    def __init__(self, mesh: AnyMesh, spec: PartitionSpec, *,
                 memory_kind: str | None = None):
        if not isinstance(spec, PartitionSpec):
            if spec is None:
                raise TypeError("NamedSharding takes a mesh and a PartitionSpec, got None as spec")
            raise AttributeError(
                f"{type(spec).__name__!r} object has no attribute 'partitions'")
        if isinstance(mesh, Mesh):
            _check_memory(memory_kind)
        elif memory_kind is not None and memory_kind not in MEMORY_KINDS:
            raise ValueError(f"Got invalid memory kind: {memory_kind}. Valid memory kinds are: "
                             f"{', '.join(MEMORY_KINDS)}")
        _check_spec(mesh, spec)
        self.mesh = mesh
        self.spec = spec
        self.memory_kind = memory_kind or ("device" if isinstance(mesh, Mesh) else None)
        self._tilings: dict[int, Any] = {}
        self._hash = hash((mesh, spec, self.memory_kind))     # asked for at each call of a program

    def __setattr__(self, name: str, value: object) -> None:
        if "_hash" in self.__dict__:
            raise AttributeError("property of 'NamedSharding' object has no setter")
        object.__setattr__(self, name, value)

    def _devices(self) -> tuple[Any, ...]:
        if not isinstance(self.mesh, Mesh):
            raise ValueError("device_set is not implemented for `jax.sharding.AbstractMesh`.")
        return self.mesh._internal[0]

    def _tiling(self, ndim: int) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
        known = self._tilings.get(ndim)
        if known is None:
            sizes = dict(self.mesh.shape_tuple)
            if any(entry is not None for entry in self.spec.partitions[ndim:]):
                raise IndexError(f"{self.spec} is for arrays of rank {len(self.spec)} and more, "
                                 f"not {ndim}")
            entries = [entry_axes(entry) for entry in (
                *self.spec.partitions[:ndim], *[None] * (ndim - len(self.spec)))]
            parts = tuple(math.prod(sizes[axis] for axis in axes) for axes in entries)
            positions = []
            for indices in itertools.product(*map(range, self.mesh.axis_sizes)):
                where = dict(zip(self.mesh.axis_names, indices, strict=True))
                positions.append(tuple(_position(axes, where, sizes) for axes in entries))
            known = self._tilings[ndim] = parts, positions
        return known

    @property
    def is_fully_replicated(self) -> bool:
        sizes = dict(self.mesh.shape_tuple)
        return all(sizes[axis] == 1 for axis in (*spec_axes(self.spec), *self.spec.unreduced))

    @property
    def is_fully_addressable(self) -> bool:
        if not isinstance(self.mesh, Mesh):
            raise ValueError(
                "is_fully_addressable is not implemented for `jax.sharding.AbstractMesh`.")
        return super().is_fully_addressable

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The axes along which the parts are the same."""
        return frozenset(self.mesh.axis_names) - set(spec_axes(self.spec)) - self.spec.unreduced

    def index_along(self, axes: Collection[AxisName]) -> list[int]:
        """For each device its index along those axes together, which count in the order of their
        names."""
        sizes = dict(self.mesh.shape_tuple)
        found = []
        for indices in itertools.product(*map(range, self.mesh.axis_sizes)):
            own = dict(zip(self.mesh.axis_names, indices, strict=True))
            index = 0
            for axis in sorted(axes, key=str):
                index = index * sizes[axis] + own[axis]
            found.append(index)
        return found

    @threads.cached
    def in_types(self) -> bool:
        """Whether an array's type shows it: the mesh has Explicit axes."""
        return bool(self.mesh.explicit_axes)

    def check_compatible_aval(self, aval_shape: Shape) -> None:
        if len(aval_shape) < len(self.spec):
            raise ValueError(
                f"Sharding {self!r} is only valid for values of rank at least {len(self.spec)}, "
                f"but was applied to a value of rank {len(aval_shape)}."
                + ("" if aval_shape else " For scalars the PartitionSpec should be P()"))

    def with_memory_kind(self, kind: str) -> NamedSharding:
        return NamedSharding(self.mesh, self.spec, memory_kind=kind)

    def is_equivalent_to(self, other: object, ndim: int) -> bool:
        if isinstance(other, NamedSharding) and type(self.mesh) is not type(other.mesh):
            return False
        if isinstance(self.mesh, Mesh):
            return super().is_equivalent_to(other, ndim)
        # Abstract meshes have no devices to compare.
        return (isinstance(other, NamedSharding) and self.memory_kind == other.memory_kind
                and self._tiling(ndim) == other._tiling(ndim))

    def update(self, **kwargs: Unpack[_Changes]) -> NamedSharding:
        """A copy with another mesh, spec or memory_kind, where given."""
        return NamedSharding(kwargs.get("mesh", self.mesh), kwargs.get("spec", self.spec),
                             memory_kind=kwargs.get("memory_kind", self.memory_kind))

    def __eq__(self, other: object) -> bool:
        # As tuples, what is the same object is not compared.
        return self is other or (
            isinstance(other, NamedSharding)
            and (self.mesh, self.spec, self.memory_kind)
            == (other.mesh, other.spec, other.memory_kind))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return _restore, (self.mesh, self.spec, self.memory_kind)

    def __repr__(self) -> str:
        memory = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
        return f"NamedSharding(mesh={self.mesh!s}, spec={self.spec}{memory})"


def _restore(mesh: AnyMesh, spec: PartitionSpec,
             memory_kind: str | None) -> NamedSharding:
    return NamedSharding(mesh, spec, memory_kind=memory_kind)


def _position(axes: tuple[AxisName, ...], where: Mapping[AxisName, int],
              sizes: Mapping[AxisName, int]) -> int:
    index = 0
    for axis in axes:
        index = index * sizes[axis] + where[axis]
    return index


def _check_spec(mesh: AnyMesh, spec: PartitionSpec) -> None:
    seen = set()
    for axis in spec_axes(spec):
        if axis not in mesh.axis_names:
            raise ValueError(f"Resource axis: {axis} of {spec} is not found in mesh: "
                             f"{tuple(mesh.axis_names)}.")
        if axis in seen:
            raise DuplicateSpecError(
                "A single NamedSharding spec specification can map every mesh axis to at most one "
                f"positional dimension, but {spec} has duplicate entries for `{axis}`")
        seen.add(axis)
    if UNCONSTRAINED in spec.partitions and AxisType.Auto not in mesh.axis_types:
        raise ValueError(
            f"{spec} cannot contain `P.UNCONSTRAINED` when no mesh axis_types are `Auto`. Got "
            f"mesh axis_types: {mesh.axis_types}")
    for name, axes in (("Unreduced", spec.unreduced), ("Reduced", spec.reduced)):
        for axis in sorted(axes, key=str):
            if axis not in mesh.axis_names:
                raise ValueError(f"{name} axes {axis} is not found in mesh.axis_names="
                                 f"{tuple(mesh.axis_names)}. Got pspec={spec}")
        kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
        if any(kinds[axis] is AxisType.Auto for axis in axes):
            raise ValueError(
                f"{name} axes can only refer to mesh axes that is of type `Explicit`. Got "
                f"{name.lower()} axes: {axes} and mesh: {mesh!s}")


def refuse_unreduced(sharding: object) -> None:
    """Refuses an unreduced sharding, of which a device has no part but a summand of the whole.

    Raises:
      NotImplementedError: the sharding has unreduced axes.
    """
    if isinstance(sharding, NamedSharding) and sharding.spec.unreduced:
        raise NotImplementedError(
            "device_indices_map doesn't work with unreduced: each device has a summand of the "
            "whole array. Use `reshard` to sum them first.")


def check_shape(sharding: Sharding, shape: Sequence[int], what: str,
                divided: str | None = None) -> None:
    """Checks that arrays of a shape can have a sharding.

    Args:
      what: the arrays, for the message.
      divided: what they are called where a dimension does not divide; the same if absent.

    Raises:
      ValueError: the rank is too small.
      IndivisibleError: a dimension does not divide; it says where the user's code asks for it.
    """
    try:
        sharding.check_compatible_aval(shape)
    except ValueError as error:
        raise ValueError(
            f"One of {what} is incompatible with its sharding annotation {sharding!r}: {error}"
        ) from None
    try:
        sharding.shard_shape(shape)
    except IndivisibleError as error:
        raise IndivisibleError(f"One of {divided or what} was given the sharding {error}."
                               + occurs_at()) from None


def trimmed(entries: Sequence[SpecEntry]) -> PartitionSpec:
    """The spec without the unsplit dimensions at its end, as results on Auto axes show it."""
    kept = list(entries)
    while kept and kept[-1] in (None, ()):
        kept.pop()
    return PartitionSpec(*kept)
