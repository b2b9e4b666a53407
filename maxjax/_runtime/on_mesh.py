"""Arrays over several devices: the shardings of results, and the programs that run on a mesh.

An array holds its global value once, whatever its sharding: simulated devices share one memory. An
operation outside ``jit`` is computed on global values, and the engine derives the sharding of its
result; a jitted program is partitioned, and runs as the program of its shards.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._base import meshes
from maxjax._base.meshes import Mesh
from maxjax._base.shardings import NamedSharding, Sharding, SingleDeviceSharding, trimmed
from maxjax._base.specs import UNCONSTRAINED, PartitionSpec, entry_axes
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, derived
from maxjax._ir.liveness import read_inputs
from maxjax._ir.primitive import OpSpec
from maxjax._ir.trace import Value
from maxjax._ir.types import ShapedArray
from maxjax._primitives.dynamic_slice import dynamic_slice_p
from maxjax._primitives.sharding import (
    constrained_spec,
    inner_mesh,
    named_shardings,
)
from maxjax._primitives.slicing import slice_p
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.devices import Device, default_device
from maxjax._runtime.made import made_of
from maxjax._runtime.operand_devices import (
    CONTEXT_MESH,
    Leaf,
    Placement,
    device_ids,
    devices_of,
    incompatible,
    is_concrete,
    is_one_device,
    is_read,
)
from maxjax._sharding import explicit_types as explicit_types  # gives types of results their specs
from maxjax._sharding.engine import Partitioned, partition
from maxjax._sharding.execute import global_program
from maxjax._sharding.shard_map import manual_mesh, manual_results, written_results
from maxjax._sharding.specs import Dim, Dims, Spec
from maxjax._transforms.simplify import expand

# With whether it is committed.
Placed = tuple[Placement, bool]


def engine_spec(spec: PartitionSpec, ndim: int) -> Spec:
    """A partition spec in the engine's terms; unconstrained dimensions are open."""
    entries = (*spec.partitions, *[None] * (ndim - len(spec)))
    return Spec(tuple(Dim(entry_axes(entry), entry is UNCONSTRAINED) for entry in entries))


def entries_of(dims: Dims, axes: Mapping[str, int], sizes: Mapping[str, int]) -> list[Any]:
    """The engine's dimensions as entries of a partition spec.

    Parts of an axis that do not make it up within one dimension, which a partition spec cannot
    express, are left out: along those the value is replicated.
    """
    entries = []
    for names in dims:
        complete: list[str] = []
        for axis, parts in itertools.groupby(names, lambda name: name.partition(":(")[0]):
            if math.prod(axes[part] for part in parts) != sizes[axis]:
                break
            complete.append(axis)
        entries.append(tuple(complete))
    return entries


def partition_spec(dims: Dims, axes: Mapping[str, int], mesh: Mesh) -> PartitionSpec:
    """The engine's dimensions as a partition spec."""
    return trimmed(entries_of(dims, axes, dict(mesh.shape_tuple)))


# --- where results of single operations are -------------------------------------------------------

_known: dict[Any, list[Sharding]] = {}


def result_shardings(spec: OpSpec, operands: Sequence[Value], mesh: Mesh) -> list[Sharding]:
    """The shardings of the results of one operation, from those of its operands."""
    shardings = tuple([_on(mesh, operand) for operand in operands])
    key = (spec.primitive, spec.in_avals, tuple(spec.params.items()), mesh, shardings)
    known = _known.get(key)
    if known is None:
        inputs = [Var(aval.off_mesh()) for aval in spec.in_avals]
        outputs = [Var(aval.off_mesh()) for aval in spec.out_avals]
        eqn = JaxprEqn(spec.primitive, inputs, spec.params, outputs)
        closed = expand(ClosedJaxpr(Jaxpr([], inputs, outputs, [eqn], spec.primitive.name)))
        if len(_known) > 10_000:
            _known.clear()
        made = None
        if mesh.auto_axes:
            made = _partitioned(closed, mesh, shardings, [None] * len(outputs))
        known = _out_shardings(_result_specs(made, mesh), spec.out_avals, mesh, spec.in_avals,
                               shardings)
        if spec.out_avals[0].mesh_spec is None and (spec.primitive is dynamic_slice_p or (
                spec.primitive is slice_p and spec.params["strides"])):
            known = [_gathered_where_sliced(known[0], spec)]
        _known[key] = known
    return known


def _gathered_where_sliced(sharding: Sharding, spec: OpSpec) -> Sharding:
    """Outside ``jit`` nothing is known of an index: the dimension that it slices is gathered."""
    if not isinstance(sharding, NamedSharding):
        return sharding
    kept = [entry if before == after else None for entry, before, after in zip(
        sharding.spec.partitions, spec.in_avals[0].shape, spec.out_avals[0].shape, strict=False)]
    return sharding if kept == list(sharding.spec.partitions) else sharding.update(
        spec=trimmed(tuple(map(entry_axes, kept))))


def _on(mesh: Mesh, operand: Leaf) -> NamedSharding | None:
    """The operand's sharding, if it is over this mesh, or one that has other names for its axes."""
    own = operand._placement if isinstance(operand, ArrayImpl) else None
    if not isinstance(own, NamedSharding):
        return None
    if own.mesh is mesh or own.mesh == mesh:
        return own
    if own.mesh.explicit_axes or not np.array_equal(own.mesh.devices, mesh.devices):
        return None
    names = dict(zip(own.mesh.axis_names, mesh.axis_names, strict=True))
    return NamedSharding(mesh, PartitionSpec(*[
        tuple(names[axis] for axis in entry_axes(entry)) for entry in own.spec.partitions]))


def _partitioned(closed: ClosedJaxpr, mesh: Mesh, in_shardings: Sequence[NamedSharding | None],
                 out_specs: Sequence[PartitionSpec | None], keeps_shards: bool = False
                 ) -> Partitioned:
    def constraint(eqn: JaxprEqn) -> Spec | None:
        found = constrained_spec(eqn, mesh)
        if found is None:
            return None
        spec = engine_spec(found[0], eqn.outvars[0].aval.ndim)
        return spec if found[1] else Spec(tuple(
            Dim(dim.axes, open=True) for dim in spec.dims))

    return partition(
        closed, mesh.shape,
        [None if sharding is None else engine_spec(sharding.spec, aval.ndim)
         for sharding, aval in zip(in_shardings, closed.in_avals, strict=True)],
        [None if spec is None else engine_spec(spec, aval.ndim)
         for spec, aval in zip(out_specs, closed.out_avals, strict=True)],
        constraint_of=constraint, devices=mesh, keeps_shards=keeps_shards)


def _result_specs(made: Partitioned | None, mesh: Mesh) -> list[PartitionSpec] | None:
    return None if made is None else [
        partition_spec(dims, made.mesh, mesh) for dims in made.out_specs]


def _splitting(spec: PartitionSpec, mesh: Mesh) -> tuple[Any, ...]:
    """The entries of a spec without axes of one device, which the engine does not name."""
    entries: list[Any] = []
    for entry in spec.partitions:
        axes = entry_axes(entry)
        kept = tuple(axis for axis in axes if mesh.shape[axis] > 1)
        entries.append(entry if kept == axes else None if not kept else
                       kept[0] if len(kept) == 1 else kept)
    return tuple(entries)


def _out_shardings(specs: Sequence[PartitionSpec] | None, avals: Sequence[ShapedArray],
                   mesh: Mesh, in_avals: Sequence[ShapedArray],
                   ins: Sequence[NamedSharding | None]) -> list[Sharding]:
    """The shardings of results; ``specs`` are those that the engine chose for what types leave
    open."""
    # A result with the rank and the sharding of an input has its spec as it was written.
    written = {(aval.ndim, trimmed(_splitting(sharding.spec, mesh))): sharding.spec
               for aval, sharding in reversed([*zip(in_avals, ins, strict=True)])
               if sharding is not None}
    # Where no mesh is set, types without one leave open where values lie, along Explicit axes too.
    untyped = meshes.around().abstract.empty
    result: list[Sharding] = []
    for number, aval in enumerate(avals):
        if aval.mesh_spec is not None and not mesh.auto_axes:
            spec = aval.mesh_spec[1]
        elif specs is not None and (mesh.auto_axes or untyped):
            spec = specs[number]
            if mesh.explicit_axes and not (untyped and aval.mesh_spec is None):
                spec = _with_type(spec, aval, mesh)
            spec = written.get((aval.ndim, spec), spec)
        else:
            spec = PartitionSpec(*[None] * aval.ndim)
        result.append(NamedSharding(mesh, spec))
    return result


def _with_type(spec: PartitionSpec, aval: ShapedArray, mesh: Mesh) -> PartitionSpec:
    """A result's spec: along Explicit axes that of its type, along Auto ones what the engine
    chose."""
    auto = set(mesh.auto_axes)
    found = [entry_axes(entry) for entry in spec.partitions]
    own = PartitionSpec() if aval.mesh_spec is None else aval.mesh_spec[1]
    if not any(axis in auto for axes in found for axis in axes):
        return own
    split = [entry_axes(entry) for entry in own.partitions]
    return own.update(partitions=trimmed([
        (*axes, *[axis for axis in chosen if axis in auto]) for axes, chosen in
        itertools.zip_longest(split, found, fillvalue=())]).partitions)


# --- programs -------------------------------------------------------------------------------------


def mesh_of(placement: Placement | None) -> Mesh | None:
    """The mesh that a program with operands at ``placement`` runs on; None: one device."""
    if isinstance(placement, NamedSharding):
        return placement.mesh      # type: ignore[return-value]
    if placement is None and meshes.use.ever_set:
        around = meshes.context_mesh()
        return around if isinstance(around, Mesh) and not around.empty else None
    return None


class MeshProgram:
    """A program over a mesh: the jaxpr of global values that runs, and where its results are."""

    __slots__ = ("_partition", "_partitioned", "closed", "out_shardings")

    def __init__(self, closed: ClosedJaxpr, out_shardings: list[Sharding],
                 partition: Callable[[], Partitioned]):
        self.closed = closed
        self.out_shardings = out_shardings
        self._partition = partition
        self._partitioned: Partitioned | None = None

    @property
    def partitioned(self) -> Partitioned:
        """The engine's account."""
        if self._partitioned is None:
            self._partitioned = self._partition()
        return self._partitioned


def shardings_on(mesh: Mesh, leaves: Sequence[Leaf]) -> tuple[NamedSharding | None, ...]:
    """The operands' shardings over a mesh; None for those that are not on it."""
    return tuple([_on(mesh, leaf) for leaf in leaves])


def program_on_mesh(closed: ClosedJaxpr, mesh: Mesh,
                    in_shardings: tuple[NamedSharding | None, ...],
                    out_shardings: Sequence[Sharding | None] | None = None) -> MeshProgram:
    """The program that runs a jaxpr with its operands where they are."""
    wanted = tuple(out_shardings or [None] * len(closed.out_avals))
    known = made_of(closed).on_meshes
    key = mesh, in_shardings, wanted, meshes.around().abstract.empty
    made = known.get(key)
    if made is None:
        made = known[key] = _program_on_mesh(closed, mesh, in_shardings, wanted)
    return made


def _program_on_mesh(closed: ClosedJaxpr, mesh: Mesh,
                     in_shardings: Sequence[NamedSharding | None],
                     wanted: Sequence[Sharding | None]) -> MeshProgram:
    avals = closed.out_avals
    check_elsewhere(closed, mesh, in_shardings, wanted)
    asked = asked_specs(closed, mesh, wanted)
    program = without_types(closed)
    written = written_results(closed, mesh)
    if written is not None:
        # Nothing is left to find, and what runs does so wherever its operands are.
        specs = [trimmed(tuple(map(entry_axes, spec.partitions))) for spec in written]
        return MeshProgram(
            program, _either(wanted, _out_shardings(
                specs, avals, mesh, closed.in_avals, in_shardings)),
            lambda: _partitioned(program, mesh, in_shardings, asked))
    made = _partitioned(program, mesh, in_shardings, asked)
    for function, dims in made.inspected:
        function(NamedSharding(mesh, partition_spec(dims, made.mesh, mesh)))
    return MeshProgram(
        global_program(made.jaxpr, made.mesh, made.in_specs, made.out_specs),
        _either(wanted, _out_shardings(
            _result_specs(made, mesh), avals, mesh, closed.in_avals, in_shardings)),
        lambda: made)


def asked_specs(closed: ClosedJaxpr, mesh: Mesh, wanted: Sequence[Sharding | None]
                ) -> list[PartitionSpec | None]:
    """The specs that callers or types ask of results; None where the engine is to choose."""
    asked: list[PartitionSpec | None] = []
    for sharding, aval in zip(wanted, closed.out_avals, strict=True):
        if isinstance(sharding, NamedSharding) and sharding.mesh.axis_names == mesh.axis_names:
            asked.append(sharding.spec)
        elif aval.mesh_spec is not None and not mesh.auto_axes:
            asked.append(aval.mesh_spec[1])
        else:
            asked.append(None)
    return asked


def _either(wanted: Sequence[Sharding | None], found: Sequence[Sharding]) -> list[Sharding]:
    return [own if sharding is None else sharding
            for sharding, own in zip(wanted, found, strict=True)]


def check_elsewhere(closed: ClosedJaxpr, mesh: Mesh,
                    in_shardings: Sequence[NamedSharding | None],
                    wanted: Sequence[Sharding | None]) -> None:
    """Raises ValueError where a program over a mesh names other devices, or the same in another
    order, or its caller does."""
    here = list(mesh.devices.flat)
    named: list[tuple[str, Any]] = [
        (f"{name} inside jit", sharding._devices()) for name, sharding in named_shardings(closed)
        if is_concrete(sharding)]
    manual = manual_mesh(closed)
    if manual is not None:
        named.append(("shard_map inside jit", tuple(manual.devices.flat)))
    named += [("explicit output sharding", sharding._devices()) for sharding in wanted
              if sharding is not None and is_concrete(sharding)]
    for name, devices in named:
        if list(devices) != here:
            raise ValueError("Received incompatible devices for jitted computation. Got "
                             f"{device_ids(_placed_argument(closed, in_shardings), here)} and "
                             f"{device_ids(name, list(devices))}")


def _placed_argument(closed: ClosedJaxpr, in_shardings: Sequence[NamedSharding | None]) -> str:
    """The first argument that lies over the mesh, in the words of messages."""
    names, function = closed.facts.argument_names, closed.facts.qualname
    if names and function:
        for name, aval, sharding in zip(names, closed.in_avals, in_shardings, strict=False):
            if sharding is not None:
                return f"argument {name} of {function} with shape {aval.off_mesh()} and"
    return "its mesh"


@derived
def without_types(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr with constants whose types say nothing of a mesh."""
    return closed.replace(consts=[_plain(value) for value in closed.consts])


def _plain(value: Value) -> Any:
    """A constant without what its type says of a mesh."""
    if value.__class__ is ArrayImpl and not value.aval.plain:
        return ArrayImpl(value.aval.off_mesh(), value.host())
    return value


def programs_of(closed: ClosedJaxpr) -> list[ClosedJaxpr]:
    """The programs made from a jaxpr to run it over meshes."""
    return [program.closed for program in made_of(closed).on_meshes.values()]


def placed_program(closed: ClosedJaxpr, leaves: Sequence[Leaf], placed: Placed | None,
                   out_shardings: Sequence[Sharding | None] | None) -> tuple[ClosedJaxpr, Any]:
    """What runs a jaxpr with its operands where they are, and each result's placement (with whether
    it is committed; None: the default device)."""
    wanted = out_shardings or [None] * len(closed.out_avals)
    if placed is not None and placed[1] and is_read(closed, leaves, placed[0]):
        check_context("", leaves, placed[0], closed)
    _check_asked(wanted)
    mesh = mesh_for(closed, leaves, None if placed is None else placed[0], wanted)
    if mesh is None:
        where = _on_one_device(closed, leaves, placed, wanted)
        own = _manual_shardings(closed)
        return closed, [where if sharding is None else (sharding, True)
                        for sharding in map(lambda asked, made: asked or made, wanted, own)]
    if placed is not None and placed[1] and getattr(placed[0], "mesh", None) is not mesh:
        _check_devices(closed, leaves, placed[0], mesh, wanted)
    made = program_on_mesh(closed, mesh, shardings_on(mesh, leaves), wanted)
    places = _of_arguments(closed, mesh, leaves, wanted)
    return made.closed, [(places.get(number, sharding), True)
                         for number, sharding in enumerate(made.out_shardings)]


def _of_arguments(closed: ClosedJaxpr, mesh: Mesh, leaves: Sequence[Leaf],
                  wanted: Sequence[Sharding | None]) -> dict[int, Sharding]:
    """By number, the placements of results that are arguments over another mesh than the
    program's: such a result lies where the argument does."""
    places = {number: leaf._placement for number, leaf in enumerate(leaves)
              if isinstance(leaf, ArrayImpl) and isinstance(leaf._placement, NamedSharding)
              and leaf._placement.mesh is not mesh}
    if not places:
        return {}
    argument = {var: number for number, var in enumerate(closed.jaxpr.invars)}
    return {number: places[argument[atom]] for number, atom in enumerate(closed.jaxpr.outvars)
            if isinstance(atom, Var) and argument.get(atom) in places and wanted[number] is None}


def _context_devices() -> list[Device]:
    context = meshes.around().concrete
    return [] if context.empty else list(context.devices.flat)


def check_context(name: str, operands: Sequence[Leaf], placement: Placement,
                  closed: ClosedJaxpr | None = None) -> None:
    """Raises ValueError where operands were put on other devices than those of the mesh that is
    set, or on the same in another order."""
    devices = _context_devices()
    if devices and list(devices_of(placement)) != devices:
        operand: Any = next(x for x in operands if getattr(x, "_placement", None) is placement)
        raise ValueError(incompatible(
            name, operands, operand, device_ids(CONTEXT_MESH, devices), closed))


def _check_asked(wanted: Sequence[Sharding | None]) -> None:
    """Raises ValueError where results are asked for on other devices than the mesh that is set."""
    devices = _context_devices()
    for sharding in wanted if devices else ():
        if sharding is not None and list(sharding._devices()) != devices:
            raise ValueError(
                "Received incompatible devices for jitted computation. Got "
                f"{device_ids(CONTEXT_MESH, devices)} and "
                f"{device_ids('explicit output sharding', sharding._devices())}")


def _check_devices(closed: ClosedJaxpr, leaves: Sequence[Leaf], placement: Placement, mesh: Mesh,
                   wanted: Sequence[Sharding | None]) -> None:
    """Raises ValueError where an operand was put on other devices than a program is for, or on the
    same in another order."""
    if (not is_read(closed, leaves, placement)
            or list(devices_of(placement)) == list(mesh.devices.flat)):
        return
    named = next((name for name, sharding in named_shardings(closed)
                  if getattr(sharding, "mesh", None) is mesh), "shard_map")
    what = ("explicit output sharding" if any(
        getattr(sharding, "mesh", None) is mesh for sharding in wanted) else f"{named} inside jit")
    leaf: Any = next(leaf for leaf in leaves if getattr(leaf, "_placement", None) is placement)
    raise ValueError(incompatible(
        "", leaves, leaf, device_ids(what, list(mesh.devices.flat)), closed))


def _on_one_device(closed: ClosedJaxpr, leaves: Sequence[Leaf], placed: Placed | None,
                   wanted: Sequence[Sharding | None]) -> Any:
    """The placement of a program without a mesh, and whether it is committed: that of the operands
    that are read, or what the program or its caller says; None: anywhere.

    Raises:
      ValueError: that is on different devices.
    """
    if placed is not None and not (
            is_one_device(placed[0]) and is_read(closed, leaves, placed[0])):
        placed = None
    said: list[tuple[str, Sharding]] = [
        (f"{name} inside jit", sharding) for name, sharding in named_shardings(closed)
        if isinstance(sharding, SingleDeviceSharding)]
    said += [("explicit output sharding", sharding) for sharding in wanted
             if sharding is not None]
    if not said:
        return placed
    first = said[0][1]._devices()
    for name, sharding in said:
        if placed is not None and placed[1] and (
                set(devices_of(placed[0])) != set(sharding._devices())):
            leaf: Any = next(
                leaf for leaf in leaves if getattr(leaf, "_placement", None) is placed[0])
            raise ValueError(incompatible(
                "", leaves, leaf, device_ids(name, sharding._devices()), closed))
        if set(first) != set(sharding._devices()):
            raise ValueError(
                "Received incompatible devices for jitted computation. Got "
                f"{device_ids(said[0][0], first)} and {device_ids(name, sharding._devices())}")
    return said[0][1], True


@derived
def _manual_shardings(closed: ClosedJaxpr) -> Sequence[Sharding | None]:
    """The shardings of results that depend on a ``shard_map`` over devices, with operands on one
    device."""
    known = manual_results(closed)
    mesh = manual_mesh(closed)
    if mesh is None or mesh.size == 1 or None not in known:
        return known
    nowhere = [None] * len(closed.in_avals)
    made = (_partitioned(without_types(closed), mesh, nowhere, [None] * len(known))
            if mesh.auto_axes else None)
    found = _out_shardings(_result_specs(made, mesh), closed.out_avals, mesh, closed.in_avals,
                           nowhere)
    return [own or sharding for own, sharding in zip(known, found, strict=True)]


def compiled_for(closed: ClosedJaxpr, in_shardings: Sequence[Sharding | None],
                 out_shardings: Sequence[Sharding | None] | None
                 ) -> tuple[ClosedJaxpr, list[Sharding], list[Sharding]]:
    """What is compiled ahead of time for operands that lie as given (None: anywhere), with the
    shardings of all operands and of all results."""
    wanted = out_shardings or [None] * len(closed.out_avals)
    mesh: Any = next((sharding.mesh for sharding in in_shardings
                      if isinstance(sharding, NamedSharding)), None)
    mesh = mesh or mesh_for(closed, [], None, wanted)
    if not isinstance(mesh, Mesh):
        named = [sharding for _, sharding in named_shardings(closed)
                 if isinstance(sharding, SingleDeviceSharding)]
        given = next((sharding for sharding in (*in_shardings, *wanted, *named)
                      if sharding is not None), None)
        one = given or SingleDeviceSharding(default_device())
        return closed, [one] * len(in_shardings), [own or one for own in _manual_shardings(closed)]
    made = program_on_mesh(closed, mesh, tuple([
        sharding if isinstance(sharding, NamedSharding) and sharding.mesh == mesh else None
        for sharding in in_shardings]), wanted)
    found = [NamedSharding(mesh, partition_spec(dims, made.partitioned.mesh, mesh))
             for dims in made.partitioned.in_specs]
    return made.closed, [sharding or own for sharding, own in zip(in_shardings, found, strict=True)
                         ], made.out_shardings


def mesh_for(closed: ClosedJaxpr, leaves: Sequence[Leaf], placement: Placement | None,
             wanted: Sequence[Sharding | None]) -> Mesh | None:
    """The mesh that a program runs on: of what it reads, of what is asked for, or around it."""
    if isinstance(placement, NamedSharding):
        # Operands that nothing reads do not count.
        if any(used and isinstance(leaf, ArrayImpl) and isinstance(leaf._placement, NamedSharding)
               for used, leaf in zip(read_inputs(closed), leaves, strict=True)):
            mesh: Any = placement.mesh
            named = inner_mesh(closed) or manual_mesh(closed)
            # What is not in types can be sharded over another mesh of the same devices.
            return mesh if (named is None or named is mesh or mesh.explicit_axes
                            or named.shape_tuple == mesh.shape_tuple) else named
        placement = None
    for sharding in wanted:
        if isinstance(sharding, NamedSharding):
            return sharding.mesh      # type: ignore[return-value]
    return mesh_of(placement) or inner_mesh(closed)
