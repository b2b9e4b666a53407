"""Where the results of operations and calls lie, from where their operands do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxjax._base.config import status
from maxjax._base.meshes import Mesh
from maxjax._base.meshes import use as mesh_use
from maxjax._base.processes import job
from maxjax._base.shardings import NamedSharding, Sharding, SingleDeviceSharding
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.primitive import OpSpec
from maxjax._ir.trace import Value
from maxjax._ir.types import ShapedArray
from maxjax._primitives.sharding import type_on
from maxjax._runtime import on_mesh, operand_devices, spanning
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.devices import Device, default_device_override, memory_of
from maxjax._runtime.on_mesh import Placed
from maxjax._runtime.operand_devices import Leaf, Placement
from maxjax._runtime.spanning_array import SpanningArray
from maxjax._sharding.summands import shows_summands, unreduced_axes


class PlacedResults:
    """Where the results of a call are, by where its operands are.

    Attributes:
      key: how operands lie, and the mesh around.
      closed: the jaxpr that runs; None: the called one itself.
      results: type, placement and whether on purpose of each result.
      summands: whether it runs with the summands of unreduced values.
    """

    __slots__ = ("closed", "key", "results", "summands")

    def __init__(self, key: object, closed: ClosedJaxpr | None,
                 results: list[tuple[ShapedArray, Any, bool]], summands: bool):
        self.key = key
        self.closed = closed
        self.results = results
        self.summands = summands


def placed_results(key: object, name: str, closed: ClosedJaxpr, leaves: Sequence[Leaf],
                   out_shardings: Sequence[Sharding | None] | None) -> PlacedResults:
    """How a jaxpr is called with its operands where they are.

    Raises:
      ValueError: operands, or what the program or its caller names, are on different devices.
    """
    placed = None
    for leaf in leaves:
        if leaf.__class__ is ArrayImpl and leaf._placement is not None:
            placed = common_placement(name, placed, leaf, leaves, closed)
    ran, where = on_mesh.placed_program(closed, leaves, placed, out_shardings)
    return PlacedResults(key, None if ran is closed else ran, [
        (aval, None, False) if here is None else (type_on(aval, here[0]), *here)
        for aval, here in zip(closed.out_avals, where, strict=True)], shows_summands(closed))


def common_placement(name: str, known: Placed | None, operand: ArrayImpl, operands: Sequence[Leaf],
                     closed: ClosedJaxpr | None = None) -> Any:
    """The placement of a result, and whether it is committed, from the operands that have one.

    Raises:
      ValueError: two are on different devices, or on the same in another order.
    """
    here: Placed = (operand._placement, operand._committed)      # type: ignore[assignment]
    if not here[1] and here[0].__class__ is Device:
        return known        # results need not follow an operand that is not committed
    if known is None or known[0] is here[0]:
        return here if known is None or here[1] else known
    if not (known[1] and here[1]):
        return known if known[1] else here
    if here[0].__class__ is known[0].__class__ is NamedSharding and (
            here[0].mesh is known[0].mesh):
        return known
    if closed is not None:
        if not operand_devices.is_read(closed, operands, here[0]):
            return known
        if not operand_devices.is_read(closed, operands, known[0]):
            return here
    devices = [operand_devices.devices_of(placement) for placement, _ in (known, here)]
    if list(devices[0]) != list(devices[1]):
        first = next(x for x in operands
                     if isinstance(x, ArrayImpl) and x._placement is known[0])
        raise ValueError(operand_devices.incompatible(name, operands, first, operand, closed))
    one = operand_devices.is_one_device(known[0])
    return here if one and not operand_devices.is_one_device(here[0]) else known


def put_on_default_device(results: Sequence[ArrayImpl]) -> None:
    """Puts results without a placement on the device that ``jax_default_device`` names."""
    device = default_device_override()
    if device is not None:
        for result in results:
            if result._placement is None:
                result._placement = device


def put_results(results: Sequence[ArrayImpl], placed: Placed | None, spec: OpSpec,
                operands: Sequence[Value]) -> None:
    """Sets the placements of an operation's results."""
    if placed is not None and placed[1] and mesh_use.ever_set:
        on_mesh.check_context(spec.primitive.name, operands, placed[0])
    mesh = on_mesh.mesh_of(None if placed is None else placed[0])
    if mesh is None:
        if placed is not None:
            for result in results:
                result._placement, result._committed = placed
        return
    for result, sharding in zip(
            results, on_mesh.result_shardings(spec, operands, mesh), strict=True):
        result._placement, result._committed = sharding, True


def put(value: ArrayImpl, placement: Placement) -> ArrayImpl:
    """The array on a device, or with a sharding.

    Raises:
      ValueError: it cannot have that sharding.
    """
    if isinstance(placement, SingleDeviceSharding) and placement.memory_kind == "device":
        placement = placement._device
    if value._placement is placement and value._committed:
        return value
    if job.device_counts and (value.__class__ is SpanningArray or spanning.spans(placement)):
        return spanning.put(value, placement)
    memory = memory_of(placement) if status.accelerators else None
    if memory is None:
        placed = ArrayImpl(type_on(value.aval, placement), value.host())
    else:
        placed = ArrayImpl(type_on(value.aval, placement), None)
        placed.store(value.stored_in(memory) or memory.store(value.host()))
    if isinstance(placement, NamedSharding) and not isinstance(placement.mesh, Mesh):
        # Only the type changes: the value stays where it is.
        where = value._placement
        if isinstance(where, NamedSharding):
            where = where.update(
                mesh=where.mesh.update(axis_types=placement.mesh.axis_types),
                spec=where.spec.update(unreduced=frozenset(), reduced=frozenset()))
        placed._placement, placed._committed = where, value._committed
    else:
        placed._placement, placed._committed = placement, True
    if hasattr(value, "_layout"):
        placed._layout = value._layout
    if hasattr(value, "_summands"):
        before, after = unreduced_axes(value.aval), unreduced_axes(placed.aval)
        # Summands count by the axes' names: other names may be in another order.
        if after and (before == after or len(after) == 1):
            placed._summands = value._summands
    return placed
