"""The devices that operands and results are on, and the errors where these differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxjax._base import meshes
from maxjax._base.meshes import Mesh
from maxjax._base.shardings import NamedSharding, Sharding, SingleDeviceSharding, trimmed
from maxjax._base.specs import UNCONSTRAINED, PartitionSpec, entry_axes, spec_axes
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.liveness import read_inputs
from maxjax._ir.primitive import Primitive
from maxjax._ir.trace import Value
from maxjax._primitives.sharding import device_put_p, reshard_p
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.devices import Device

Placement = Device | Sharding
# In messages about devices.
CONTEXT_MESH = "jit's context mesh"
# What a program is called with: arrays, and what becomes arrays.
Leaf = Value | bool | int | float | complex


def is_concrete(sharding: Sharding) -> bool:
    return not isinstance(sharding, NamedSharding) or isinstance(sharding.mesh, Mesh)


def devices_of(placement: Placement) -> tuple[Any, ...]:
    return placement._devices() if isinstance(placement, Sharding) else (placement,)


def with_devices(sharding: Placement, value: ArrayImpl) -> Any:
    """The sharding that a value gets, where an abstract mesh or open dimensions leave that open.

    An abstract mesh takes the devices of the value or of the context; an open dimension keeps its
    sharding.

    Raises:
      ValueError: neither has that mesh.
    """
    if isinstance(sharding, NamedSharding) and UNCONSTRAINED in sharding.spec.partitions:
        sharding = sharding.update(spec=_closed(sharding, value))
    if (not isinstance(sharding, NamedSharding) or isinstance(sharding.mesh, Mesh)
            or not sharding.mesh.explicit_axes):
        return sharding
    found = _over_devices(sharding, [value])
    if found is not None:
        return found
    known = meshes.concrete_meshes(sharding.mesh)
    if len(known) == 1:
        return NamedSharding(known[0], sharding.spec)
    raise ValueError(
        f"The sharding {sharding!r} has an abstract mesh, and the value is not on such a mesh. "
        "Please enter into a mesh context via `jax.set_mesh`.")


def _closed(sharding: NamedSharding, value: ArrayImpl) -> PartitionSpec:
    """The spec, with the value's own entries where dimensions are open: as short as those that
    are found for values along Auto axes."""
    spec = sharding.spec
    own = getattr(value._placement, "spec", PartitionSpec())
    if getattr(value._placement, "mesh", None) != sharding.mesh:
        own = PartitionSpec()
    used = set(spec_axes(spec))
    entries = [(() if dim >= len(own) else tuple(
        axis for axis in entry_axes(own.partitions[dim]) if axis not in used))
        if entry is UNCONSTRAINED else entry_axes(entry)
        for dim, entry in enumerate(spec.partitions)]
    return spec.update(partitions=trimmed(entries).partitions)


def check_devices(primitive: Primitive, value: ArrayImpl, sharding: Placement) -> None:
    """Raises ValueError where a sharding constraint names other devices than the value is on."""
    if not value._committed or primitive is device_put_p or sharding is value._placement or (
            not isinstance(getattr(sharding, "mesh", meshes.EMPTY_MESH), Mesh)):
        return
    devices = devices_of(sharding)
    are_same = (set(devices_of(value.device)) == set(devices) if primitive is reshard_p else
                list(devices_of(value.device)) == list(devices))
    if not are_same:
        name, what = (("reshard", CONTEXT_MESH) if primitive is reshard_p else
                      ("_identity_fn", "explicit output sharding"))
        raise ValueError(incompatible(name, [value], value, device_ids(what, devices), None))


def of_shard_map(sharding: NamedSharding, values: Sequence[ArrayImpl]) -> NamedSharding:
    """The sharding of a result of a ``shard_map``, which may be over an abstract mesh.

    Raises:
      ValueError: it is, and neither an operand nor the context has that mesh; or an operand is on
        other devices.
    """
    found = sharding if isinstance(sharding.mesh, Mesh) else _over_devices(sharding, values)
    if found is None:
        _check_mesh_shapes(sharding, values)
        raise ValueError(
            "Please pass `jax.Array`s with a `NamedSharding` as input to `shard_map` when passing "
            "`AbstractMesh` to the mesh argument.")
    if not isinstance(sharding.mesh, Mesh):
        _check_mesh_shapes(sharding, values)
    for value in values:
        if value._committed and getattr(value._placement, "mesh", None) is not found.mesh and (
                list(devices_of(value.device)) != list(found._devices())):
            raise ValueError(incompatible("shard_map", values, value, device_ids(
                "shard_map inside jit", found._devices()), None))
    return found


def asked_of(shardings: Sequence[Sharding | None] | None, values: Sequence[Leaf]
             ) -> Sequence[Sharding | None] | None:
    """The shardings asked of results; those over an abstract mesh over the devices of the operands'
    mesh, or of the one that is set.

    Raises:
      ValueError: neither has that mesh.
    """
    if shardings is None or all(map(_has_devices, shardings)):
        return shardings
    found: list[Sharding | None] = []
    for sharding in shardings:
        if not _has_devices(sharding):
            sharding = _over_devices(sharding, values)      # type: ignore[arg-type]
            if sharding is None:
                around = meshes.around()
                shown = around.concrete if around.abstract.empty else around.abstract
                raise ValueError(
                    "Passing lowering_platforms via jax.export or jit(f).trace(*args).lower("
                    "lowering_platforms=...) is required when only AbstractMesh exists in a jitted "
                    f"computation. Got context mesh: {shown}")
        found.append(sharding)
    return found


def _has_devices(sharding: Sharding | None) -> bool:
    return sharding is None or is_concrete(sharding)


def _over_devices(sharding: NamedSharding, values: Sequence[Leaf]) -> NamedSharding | None:
    """A sharding over an abstract mesh, over the devices of a mesh of the same axes that a value
    is on, or that is around; None: there is none."""
    candidates = [getattr(getattr(value, "_placement", None), "mesh", None) for value in values]
    for mesh in (*candidates, meshes.around().concrete):
        if isinstance(mesh, Mesh) and mesh.shape_tuple == sharding.mesh.shape_tuple:
            return NamedSharding(mesh.update(axis_types=sharding.mesh.axis_types), sharding.spec)
    return None


def _check_mesh_shapes(sharding: NamedSharding, values: Sequence[ArrayImpl]) -> None:
    """Raises ValueError where a value is on a mesh of other axes."""
    for value in values:
        mesh = getattr(value._placement, "mesh", None)
        if isinstance(mesh, Mesh) and mesh.shape_tuple != sharding.mesh.shape_tuple:
            raise ValueError(
                f"Mesh shape of the input {mesh.shape_tuple} does not match the mesh shape passed "
                f"to shard_map  {sharding.mesh.shape_tuple} for shape {value.aval.str_short()}")


def is_one_device(placement: Placement) -> bool:
    return not isinstance(placement, Sharding) or isinstance(placement, SingleDeviceSharding)


def is_read(closed: ClosedJaxpr, leaves: Sequence[Leaf], placement: Placement) -> bool:
    """Whether anything reads an operand of a program that is at a placement."""
    return any(used and isinstance(leaf, ArrayImpl) and leaf._placement is placement
               for used, leaf in zip(read_inputs(closed), leaves, strict=True))


def device_ids(what: str, devices: Sequence[Device]) -> str:
    """Where something is, in JAX's words."""
    return (f"{what} with device ids {[device.id for device in devices]} on platform "
            f"{devices[0].platform.upper()}")


def incompatible(name: str, operands: Sequence[Leaf], first: ArrayImpl, second: ArrayImpl | str,
                 closed: ClosedJaxpr | None) -> str:
    """JAX's message for two operands on different devices, or one and something named in words."""
    names: Sequence[str] = "xyzw" if len(operands) < 4 else [
        f"args[{number}]" for number in range(len(operands))]
    if closed is not None:
        name = closed.facts.qualname or name
        names = closed.facts.argument_names or names

    def shown(operand: ArrayImpl | str) -> str:
        if isinstance(operand, str):
            return operand
        number = next(n for n, x in enumerate(operands) if x is operand)
        return device_ids(f"argument {names[number]} of {name} with shape "
                          f"{operand.aval.off_mesh()} and", devices_of(operand.device))

    return ("Received incompatible devices for jitted computation. Got "
            f"{shown(first)} and {shown(second)}")


def check_can_go(value: object, place: object, what: str = "args[0] of convert_element_type"
                 ) -> None:
    """Raises ValueError where a value was put on other devices than those of a place."""
    if not isinstance(value, ArrayImpl) or not value._committed or not isinstance(
            place, (Device, Sharding)) or isinstance(place, Sharding) and not is_concrete(place):
        return
    here, there = devices_of(value.sharding), devices_of(place)
    if list(here) != list(there):
        argument = f"argument {what} with shape {value.aval.str_short()} and"
        raise ValueError("Received incompatible devices for jitted computation. Got "
                         f"{device_ids(argument, here)} and "
                         f"{device_ids('sharding_constraint inside jit', there)}")
