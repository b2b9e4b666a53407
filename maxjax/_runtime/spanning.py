"""Programs over the devices of several processes.

Each process runs the program of its own devices (``maxjax._sharding.processes``); single operations
outside ``jit`` are programs too. All processes must run the same programs in the same order.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import caches, meshes
from maxjax._base.dtypes import is_key, physical
from maxjax._base.errors import InternalError
from maxjax._base.meshes import Mesh
from maxjax._base.processes import job
from maxjax._base.shardings import NamedSharding, Sharding, SingleDeviceSharding
from maxjax._base.specs import PartitionSpec
from maxjax._distributed.start import connection
from maxjax._ir.jaxpr import ClosedJaxpr, derived
from maxjax._ir.liveness import read_inputs
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.types import ShapedArray
from maxjax._primitives.sharding import inner_mesh, type_on
from maxjax._runtime import invalid, on_mesh
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.devices import Device
from maxjax._runtime.made import made_of
from maxjax._runtime.on_mesh import Placed
from maxjax._runtime.operand_devices import Leaf, Placement
from maxjax._runtime.program import Program, program_of
from maxjax._runtime.spanning_array import SpanningArray, cut
from maxjax._sharding.engine import Partitioned
from maxjax._sharding.processes import block_positions, process_program
from maxjax._sharding.shard_map import manual_mesh
from maxjax._sharding.specs import Dims

P = PartitionSpec


def spans(placement: Placement | Mesh | None) -> bool:
    """Whether devices belong to other processes."""
    if not job.device_counts or placement is None:
        return False
    if isinstance(placement, Sharding):
        return not isinstance(getattr(placement, "mesh", None), meshes.AbstractMesh) and (
            placement.spans_processes)
    if isinstance(placement, Mesh):
        return _mesh_spans(placement)
    return isinstance(placement, Device) and placement.process_index != job.index


@caches.memoized
def _mesh_spans(mesh: Mesh) -> bool:
    return any(device.process_index != job.index for device in mesh.devices.flat)


def around_spans() -> bool:
    """Whether the mesh around the running code has devices of other processes."""
    around = meshes.around().concrete
    return not around.empty and spans(around)


def concerns(closed: ClosedJaxpr, leaves: Sequence[Leaf],
             out_shardings: Sequence[Sharding | None] | None) -> bool:
    """Whether a call of a jaxpr is one over several processes."""
    return (any(leaf.__class__ is SpanningArray for leaf in leaves)
            or any(map(spans, out_shardings or ()))
            or meshes.use.ever_set and around_spans()
            or spans(inner_mesh(closed)) or spans(manual_mesh(closed))
            or any(value.__class__ is SpanningArray for value in closed.consts))


class ProcessProgram:
    """A program over the devices of several processes.

    Attributes:
      program: of this process; None where it has none of the devices.
      in_dims, sizes: how each input must lie, in the axes of ``sizes``.
      out_shardings: how results lie.
      out_shapes: of the shards of results.
    """

    def __init__(self, closed: ClosedJaxpr, mesh: Mesh,
                 in_shardings: Sequence[NamedSharding | None],
                 wanted: Sequence[Sharding | None], name: str):
        on_mesh.check_elsewhere(closed, mesh, in_shardings, wanted)
        asked = on_mesh.asked_specs(closed, mesh, wanted)
        plain = on_mesh.without_types(closed)
        made = on_mesh._partitioned(plain, mesh, in_shardings, asked, keeps_shards=True)
        own = [found if spec is None else NamedSharding(mesh, spec) for spec, found in zip(
            asked, self._found(made, closed, mesh, in_shardings), strict=True)]
        if not self._agree(made, own):
            # Parts of axes split a result, which shardings cannot say.
            made = on_mesh._partitioned(
                plain, mesh, in_shardings, [sharding.spec for sharding in own], keeps_shards=True)
            self.sizes = made.mesh
            if not self._agree(made, own):
                raise InternalError(f"{name}: results do not lie as {own} say")
        for function, dims in made.inspected:
            function(NamedSharding(mesh, on_mesh.partition_spec(dims, made.mesh, mesh)))
        self.in_dims = made.in_specs
        # What is asked for over another mesh is moved there afterwards.
        self.out_shardings: list[Any] = [
            sharding if isinstance(sharding, NamedSharding) and sharding.mesh == mesh else found
            for sharding, found in zip(wanted, own, strict=True)]
        self.out_shapes = [aval.shape for aval in made.jaxpr.out_avals]
        self.program: Program | None = None
        self.mesh = mesh
        if any(device.process_index == job.index for device in mesh.devices.flat):
            self.program = program_of(process_program(
                made.jaxpr, made.mesh, mesh, name, list(map(self._stacked, made.in_specs)),
                list(map(self._stacked, made.out_specs))))

    def _found(self, made: Partitioned, closed: ClosedJaxpr, mesh: Mesh,
               ins: Sequence[NamedSharding | None]) -> list[Any]:
        self.mesh, self.sizes = mesh, made.mesh
        return on_mesh._out_shardings(
            on_mesh._result_specs(made, mesh), closed.out_avals, mesh, closed.in_avals, ins)

    def _blocks(self, dims: Dims) -> list[tuple[int, ...]]:
        return block_positions(dims, self.sizes, self.mesh.size)

    def _agree(self, made: Partitioned, shardings: Sequence[NamedSharding]) -> bool:
        return all(self._blocks(dims) == sharding._tiling(len(dims))[1]
                   for dims, sharding in zip(made.out_specs, shardings, strict=True))

    def _stacked(self, dims: Dims) -> bool:
        blocks = self._blocks(dims)
        return len({block for block, device in zip(blocks, self.mesh.devices.flat, strict=True)
                    if device.process_index == job.index}) > 1

    def parts_of(self, leaf: Any, dims: Dims) -> np.ndarray:
        """What this process's program is given of an operand."""
        if leaf.__class__ is SpanningArray:
            return leaf.shards()
        value = leaf.host()
        blocks = self._blocks(dims)
        here = [block for block, device in zip(blocks, self.mesh.devices.flat, strict=True)
                if device.process_index == job.index]
        here = here if len(set(here)) > 1 else here[:1]
        shape = [size // self._count(axes) for size, axes in zip(value.shape, dims, strict=True)]
        parts = [value[tuple(slice(number * size, (number + 1) * size)
                             for number, size in zip(block, shape, strict=True))]
                 for block in here]
        return parts[0][None] if len(parts) == 1 else np.stack(parts)

    def _count(self, axes: Sequence[Any]) -> int:
        count = 1
        for axis in axes:
            count *= self.sizes[axis]
        return count

    def run(self, leaves: Sequence[Any], avals: Sequence[ShapedArray]) -> list[SpanningArray]:
        if self.program is None:
            outputs: list[Any] = [
                np.zeros((0, *shape), aval.dtype)
                for shape, aval in zip(self.out_shapes, avals, strict=True)]
        else:
            outputs = self.program.run([
                self.parts_of(leaf, dims)
                for leaf, dims in zip(leaves, self.in_dims, strict=True)])[:len(avals)]
        return [SpanningArray(type_on(aval, sharding), sharding, np.asarray(output))
                for aval, sharding, output in zip(avals, self.out_shardings, outputs, strict=True)]


def programs_of(closed: ClosedJaxpr) -> list[Program]:
    """This process's programs of a jaxpr over the devices of several."""
    return [made.program for made in made_of(closed).over_processes.values()
            if made.program is not None]


def call(closed: ClosedJaxpr, leaves: Sequence[Any], placed: Placed | None,
         out_shardings: Sequence[Sharding | None] | None, name: str
         ) -> tuple[list[Any] | None, ProcessProgram | None]:
    """Runs a jaxpr over the devices of several processes.

    Returns:
      the results, or None where nothing is over processes; and the program that computes them
      from operands that lie as these, if nothing has to be moved before or afterwards.

    Args:
      leaves: arrays; those of this process alone must be the same in all processes.
      placed: the placement that they have in common.

    Raises:
      ValueError: operands are on different devices.
      NotImplementedError: there is no mesh.
      JaxRuntimeError: another process is missing, or runs another program.
    """
    captured = [value for value in closed.consts if value.__class__ is SpanningArray]
    if captured:
        if closed.facts.name:      # a function under jit
            raise RuntimeError(
                "Closing over jax.Array that spans non-addressable (non process local) devices is "
                "not allowed. Please pass such arrays as arguments to the function. Got jax.Array: "
                f"{captured[0].aval.str_short()}")
        leaves = [*closed.consts, *leaves]
        closed = _opened(closed)
    wanted = tuple(out_shardings or [None] * len(closed.out_avals))
    mesh: Any = on_mesh.mesh_for(
        closed, leaves, None if placed is None else placed[0], wanted) or manual_mesh(closed)
    asked = next(filter(spans, wanted), None)
    if mesh is None and placed is None and asked is not None:
        placed = asked, True      # only the results are placed
    elif mesh is None and not any(
            used and leaf.__class__ is SpanningArray
            for used, leaf in zip(read_inputs(closed), leaves, strict=True)):
        return None, None      # nothing over processes is read
    if mesh is None and placed is not None and isinstance(placed[0], SingleDeviceSharding):
        # Another process computes this, which has the device.
        elsewhere = placed[0]
        return [SpanningArray(type_on(aval, elsewhere), elsewhere,
                              np.zeros((0, *aval.shape), physical(aval.dtype)))
                for aval in closed.out_avals], None
    if not isinstance(mesh, Mesh):
        raise NotImplementedError(
            f"{name}: an operand over several processes has the sharding "
            f"{None if placed is None else placed[0]}; programs need a NamedSharding")
    if placed is not None and placed[1] and getattr(placed[0], "mesh", None) is not mesh:
        on_mesh._check_devices(closed, leaves, placed[0], mesh, wanted)
    ins = on_mesh.shardings_on(mesh, leaves)
    moved = [put(leaf, NamedSharding(mesh, P()))
             if own is None and leaf.__class__ is SpanningArray else leaf
             for leaf, own in zip(leaves, ins, strict=True)]
    ins = on_mesh.shardings_on(mesh, moved)
    known, key = made_of(closed).over_processes, (mesh, ins, wanted)
    program = known.get(key)
    if program is None:
        program = known[key] = ProcessProgram(closed, mesh, ins, wanted, name)
    results: list[Any] = program.run(moved, closed.out_avals)
    stay = not captured and all(map(operator.is_, leaves, moved))
    for number, sharding in enumerate(wanted):
        if sharding is not None and results[number]._placement is not sharding:
            results[number] = put(results[number], sharding)
            stay = stay and results[number]._placement == program.out_shardings[number]
    return results, program if stay else None


@derived
def _opened(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The jaxpr with its constants as inputs."""
    return closed.replace(
        consts=(), constvars=[], invars=[*closed.constvars, *closed.invars])


# --- moving ---------------------------------------------------------------------------------------


def put(value: ArrayImpl, placement: Placement) -> ArrayImpl:
    """An array with a sharding, where either is over several processes.

    Raises:
      ValueError: an array over several processes cannot be put on one device.
      ValueError: an array over several processes stays on its devices.
    """
    spanning = value.__class__ is SpanningArray
    if spanning and isinstance(placement, Sharding) and not isinstance(
            getattr(placement, "mesh", None), meshes.AbstractMesh):
        _check_same_devices(value.sharding, placement)
    if isinstance(placement, SingleDeviceSharding) and placement.memory_kind == "device":
        placement = placement._device
    if isinstance(placement, Device):
        if spanning:
            if value._placement == SingleDeviceSharding(placement):
                return value
            raise ValueError(
                "When the second argument to `device_put` is a Device, the first argument must be "
                "a fully addressable array or a non-addressable array with a single device "
                f"sharding. Got value with devices {value.devices()}")
        placement = SingleDeviceSharding(placement)
    if isinstance(placement, NamedSharding) and not isinstance(placement.mesh, Mesh):
        # Only the type changes: the value stays where it is.
        own = value.sharding
        assert isinstance(own, NamedSharding) and isinstance(value, SpanningArray)
        return SpanningArray(type_on(value.aval, placement), own.update(
            mesh=own.mesh.update(axis_types=placement.mesh.axis_types)), value.shards())
    if not spans(placement):
        made = ArrayImpl(type_on(value.aval, placement), value.host())
        made._placement, made._committed = placement, True
        return made
    aval = type_on(value.aval, placement)
    if not spanning:
        return SpanningArray(aval, placement, cut(value.host(), placement))
    own = value.sharding
    if own == placement:
        return value
    if own.is_equivalent_to(placement, value.ndim):
        return SpanningArray(aval, placement, value.shards())      # type: ignore[attr-defined]
    if isinstance(own, NamedSharding) and isinstance(placement, NamedSharding) and (
            own.mesh == placement.mesh):
        moved, _ = call(_identity(value.aval), [value], (own, True), [placement], "device_put")
        assert moved is not None
        return moved[0]
    return SpanningArray(aval, placement, cut(gathered(value), placement))


def _check_same_devices(own: Sharding, target: Sharding) -> None:
    """Raises ValueError where an array over several processes would come to other devices."""
    ids = [sorted(device.id for device in sharding._devices()) for sharding in (own, target)]
    if ids[0] != ids[1]:
        raise ValueError(
            "For a cross-host reshard in multi-controller JAX, input and target sharding should "
            "have the same set of devices. Got input's device set ids: "
            f"{ids[0]} on platform CPU and target sharding's device set ids: {ids[1]} on platform "
            "CPU.  There is experimental support for cross-host transfers with different device "
            "sets, when input/output shardings have the same indices and layouts, in the TFRT TPU "
            "runtime only.")


def check_values(name: str, results: Sequence[Any]) -> str | None:
    """What is wrong with results over several processes, in any of these: "nan" or "inf"."""
    kinds = (None, "nan", "inf")
    found = next(filter(None, [
        invalid.kind_of(result.shards()) for result in results
        if result.__class__ is SpanningArray and not is_key(result.aval.dtype)]), None)
    owners = tuple(sorted({device.process_index for result in results
                           for device in result.sharding._devices()}))
    if job.index not in owners or len(owners) == 1:
        return found
    said = connection.among(owners).all_gather(
        np.array(kinds.index(found), np.int8), f"debug_nans of {name}")
    return kinds[int(said.max())]


def gathered(value: Any) -> np.ndarray:
    """The whole value of an array, which all processes that hold a part of it ask for.

    Raises:
      NotImplementedError: it has no NamedSharding.
    """
    if value.__class__ is not SpanningArray or value.sharding.is_fully_replicated:
        return value.host()
    own = value.sharding
    if not isinstance(own, NamedSharding):
        raise NotImplementedError(f"gathering an array with the sharding {own}")
    return put(value, NamedSharding(own.mesh, P())).host()


@caches.memoized
def _identity(aval: ShapedArray) -> ClosedJaxpr:
    return trace_to_jaxpr(lambda x: [x], [aval])
