"""Shardy's manual computations and what they exchange: ``shard_map`` and its collectives."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax import lax
from maxjax._base.meshes import AbstractMesh, AxisType
from maxjax._base.specs import PartitionSpec
from maxjax._sharding.shard_map_api import shard_map
from maxjax._stablehlo.program import Dense, Mesh, Operation, Placement, Unreadable
from maxjax._transforms.autodiff import leaf_operand
from maxjax.export._reader import ManualAxes, Reader, Rule, attribute, single_operation

_MOST_AXES = 8
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "stablehlo.add": lax.psum, "stablehlo.maximum": lax.pmax, "stablehlo.minimum": lax.pmin}
# For booleans.
_LOGICAL: dict[str, Callable[..., Any]] = {"stablehlo.or": lax.pmax, "stablehlo.and": lax.pmin}


def _manual_computation(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    ins, outs = (_placements(operation, name, count) for name, count in (
        ("in_shardings", len(operands)), ("out_shardings", len(operation.results))))
    manual = attribute(operation, "manual_axes", list)
    names = {placement.mesh for placement in (*ins, *outs)}
    if len(names) != 1 or len(operation.regions) != 1:
        raise Unreadable(operation.where, "a manual computation that is of one mesh is expected")
    mesh = _mesh(reader, operation, names.pop())
    if not manual or not set(manual) <= set(mesh.axes):
        raise Unreadable(operation.where, f"the manual axes {manual} of a mesh of {[*mesh.axes]}")
    used = {name for placement in (*ins, *outs) for names in placement.dimensions for name in names}
    if not used <= set(mesh.axes):
        raise Unreadable(operation.where, f"{operation.name}: parts along {sorted(used)}, of a "
                                          f"mesh of {[*mesh.axes]}"[:200])
    # What is known stays so inside: sizes may depend on it.
    is_known = [isinstance(x, np.ndarray) and not any(placement.dimensions)
                for x, placement in zip(operands, ins, strict=True)]
    block = operation.regions[0]

    def body(*parts: Any) -> Any:
        given = iter(parts)
        outer, reader.manual = reader.manual, ManualAxes(mesh, tuple(manual))
        try:
            results = reader.run(block, [
                x if known else next(given) for x, known in zip(operands, is_known, strict=True)],
                {}, operation.where)
        finally:
            reader.manual = outer
        return tuple(map(leaf_operand, results))

    given = [leaf_operand(x) for x, known in zip(operands, is_known, strict=True) if not known]
    specs = [_spec(placement, manual) for placement, known in zip(ins, is_known, strict=True)
             if not known]
    around = AbstractMesh(tuple(mesh.axes.values()), tuple(mesh.axes),
                          axis_types=(AxisType.Auto,) * len(mesh.axes))
    return list(shard_map(
        body, mesh=around, in_specs=tuple(specs),
        out_specs=tuple(_spec(placement, manual) for placement in outs),
        axis_names=set(manual), check_vma=False)(*given))


def _placements(operation: Operation, name: str, count: int) -> list[Placement]:
    found = operation.attributes.get(name)
    if not isinstance(found, list) or len(found) != count or not all(
            isinstance(placement, Placement) for placement in found):
        raise Unreadable(operation.where, f"the {name} of a manual computation")
    return found


def _mesh(reader: Reader, operation: Operation, name: str) -> Mesh:
    mesh = reader.module.meshes.get(name)
    if mesh is None or len(mesh.axes) > _MOST_AXES:
        raise Unreadable(operation.where, f"the mesh {name[:60]}, which is unknown")
    return mesh


def _spec(placement: Placement, manual: Sequence[str]) -> PartitionSpec:
    """Along the manual axes; how the parts lie along others changes no result."""
    entries: list[Any] = []
    for names in placement.dimensions:
        kept = tuple([name for name in names if name in manual])
        entries.append(None if not kept else kept[0] if len(kept) == 1 else kept)
    while entries and entries[-1] is None:
        entries.pop()
    return PartitionSpec(*entries)


# --- collectives ----------------------------------------------------------------------------------

def _manual(reader: Reader, operation: Operation) -> ManualAxes:
    if reader.manual is None:
        raise Unreadable(operation.where,
                         f"{operation.name} outside of a manual computation is not supported")
    return reader.manual


def _all_axes(reader: Reader, operation: Operation) -> tuple[str, ...]:
    """The axes of the mesh, along all of which devices are numbered."""
    manual = _manual(reader, operation)
    if set(manual.names) != set(manual.mesh.axes):
        raise Unreadable(operation.where, f"{operation.name} where some axes of the mesh are not "
                                          "manual is not supported")
    return tuple(manual.mesh.axes)


def _group_axes(reader: Reader, operation: Operation) -> tuple[str, ...]:
    """The axes along which the devices of a group differ."""
    groups = operation.attributes.get("replica_groups")
    manual = _manual(reader, operation)
    if isinstance(groups, dict) and isinstance(groups.get("axes"), list):
        mesh = _mesh(reader, operation, _name_of(groups.get("mesh"), operation))
        names = [axis.get("name") if isinstance(axis, dict) else None for axis in groups["axes"]]
        if mesh != manual.mesh or not set(names) <= set(manual.names) or (
                len(set(names)) < len(names)):
            raise Unreadable(operation.where, f"{operation.name} along {names}"[:200])
        return tuple(map(str, names))
    if isinstance(groups, Dense) and len(groups.shape) == 2 and (
            math.prod(groups.shape) == math.prod(manual.mesh.axes.values())):
        listed = groups.array().tolist()
        axes = _all_axes(reader, operation)
        for count in range(len(axes) + 1):
            for chosen in itertools.permutations(range(len(axes)), count):
                if listed == _groups(manual.mesh, chosen):
                    return tuple([axes[number] for number in chosen])
    raise Unreadable(operation.where, f"the groups of {operation.name} are along no axes of the "
                                      "mesh")


def _name_of(value: Any, operation: Operation) -> str:
    name = getattr(value, "name", None)
    if not isinstance(name, str):
        raise Unreadable(operation.where, f"{operation.name} over no mesh")
    return name


def _groups(mesh: Mesh, chosen: Sequence[int]) -> list[list[int]]:
    """The groups of devices that differ along these axes, as numbers."""
    sizes = tuple(mesh.axes.values())
    numbers = np.arange(math.prod(sizes)).reshape(sizes)
    others = [number for number in range(len(sizes)) if number not in chosen]
    width = math.prod([sizes[number] for number in chosen])
    return numbers.transpose(*others, *chosen).reshape(-1, width).tolist()


def _reduction(operation: Operation, dtype: np.dtype) -> Callable[..., Any]:
    name = single_operation(operation.regions[0]) if len(operation.regions) == 1 else None
    logical = {**_REDUCTIONS, **_LOGICAL} if dtype.kind == "b" else _REDUCTIONS
    found = logical.get(name or "")
    if found is None:
        raise Unreadable(operation.where, f"{operation.name} by what is no sum or extreme")
    return found


def _all_reduce(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    axes = _group_axes(reader, operation)
    return [_reduction(operation, x.dtype)(x, axes) for x in operands]


def _all_gather(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    axes = _group_axes(reader, operation)
    dimension = attribute(operation, "all_gather_dim", int)
    return [lax.all_gather(x, axes, axis=dimension, tiled=True) for x in operands]


def _reduce_scatter(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    x, = operands
    if _reduction(operation, x.dtype) is not lax.psum:
        raise Unreadable(operation.where, f"{operation.name} by what is no sum")
    return lax.psum_scatter(x, _group_axes(reader, operation), tiled=True,
                            scatter_dimension=attribute(operation, "scatter_dimension", int))


def _all_to_all(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    axes = _group_axes(reader, operation)
    split, join = (attribute(operation, name, int)
                   for name in ("split_dimension", "concat_dimension"))
    return [lax.all_to_all(x, axes, split, join, tiled=True) for x in operands]


def _collective_permute(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    pairs = operation.attributes.get("source_target_pairs")
    if not isinstance(pairs, Dense) or len(pairs.shape) != 2 or pairs.shape[1] != 2 or (
            pairs.elements.dtype.kind not in "iu"):
        raise Unreadable(operation.where, "the pairs of a permutation")
    listed = [(int(source), int(target)) for source, target in pairs.array()]
    return [lax.ppermute(x, _all_axes(reader, operation), listed) for x in operands]


def _partition_id(reader: Reader, operation: Operation, operands: list[Any]) -> Any:
    number = lax.axis_index(_all_axes(reader, operation))
    return lax.convert_element_type(number, np.dtype(np.uint32))


SHARDED: dict[str, Rule] = {
    "sdy.manual_computation": _manual_computation, "stablehlo.all_reduce": _all_reduce,
    "stablehlo.all_gather": _all_gather, "stablehlo.reduce_scatter": _reduce_scatter,
    "stablehlo.all_to_all": _all_to_all, "stablehlo.collective_permute": _collective_permute,
    "stablehlo.partition_id": _partition_id,
}
