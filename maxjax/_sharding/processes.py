"""From the program of one shard to that of a process: its devices' shards together.

The shards of a process's devices are a batch, along one axis without regard to the mesh's. What is
the same on all of them is computed once. A collective becomes an exchange between the groups of
devices that its axes make (``maxjax._sharding.exchange``).
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from maxjax._base.meshes import Mesh
from maxjax._base.processes import job
from maxjax._base.source import inherited_source_lines
from maxjax._base.specs import AxisName
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.primitive import Primitive
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Value
from maxjax._primitives.broadcasting import expand_axis, reduce_sum_p
from maxjax._primitives.collective import (
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    named,
    pbroadcast_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    reduce_scatter_p,
)
from maxjax._primitives.layout import move_axis, squeeze_p
from maxjax._primitives.ragged import of_collectives, ragged_all_to_all_p
from maxjax._primitives.reduction import reduce_max_p, reduce_min_p
from maxjax._primitives.slicing import slice_in_dim
from maxjax._primitives.unreduced import (
    all_gather_reduced_p,
    unreduced_psum_p,
    unreduced_reduce_scatter_p,
)
from maxjax._primitives.varying import all_gather_invariant_p, psum_invariant_p
from maxjax._sharding.device_collectives import DEVICES, collective_p, coordinate_p
from maxjax._sharding.exchange import Exchange, Groups, Kind
from maxjax._sharding.joined import with_joined_reductions
from maxjax._sharding.shard_body import IDENTITIES, check_permutation, flattened, runnable
from maxjax._sharding.specs import Dims
from maxjax._sharding.tokens import with_tokens
from maxjax._transforms.batching import batch_flat, to_axis

Sizes = tuple[tuple[AxisName, int], ...]
IndexGroups = Sequence[Sequence[int]] | None


def owners_of(mesh: Mesh) -> tuple[int, ...]:
    """The process of each device, in the mesh's order."""
    return tuple(device.process_index for device in mesh.devices.flat)


@dataclasses.dataclass(frozen=True)
class Crossing:
    """What collectives over the axes of a mesh over processes become.

    Args:
      sizes: names and sizes of the axes; parts of an axis, ``x:(1)2``, next to one another.
      owners: the process of each device.
      program: its name and digest.
    """

    sizes: Sizes
    owners: tuple[int, ...]
    program: str
    # The groups of all collectives so far.
    seen: set[Groups] = dataclasses.field(default_factory=set, compare=False)

    def _parts(self, names: Sequence[AxisName]) -> list[int]:
        """The numbers of the axes that the names stand for; a name may stand for its parts."""
        numbers = []
        for name in names:
            found = [number for number, (part, _) in enumerate(self.sizes)
                     if part == name or str(part).partition(":(")[0] == name]
            if not found:
                raise NameError(f"unbound axis name: {name}")
            numbers += found
        return numbers

    def _coordinates(self, numbers: Sequence[int]) -> np.ndarray:
        """For each device its index along those axes together, the first the major one."""
        shape = [size for _, size in self.sizes]
        indices = np.unravel_index(np.arange(math.prod(shape)), shape) if shape else ()
        total = np.zeros(math.prod(shape), int)
        for number in numbers:
            total = total * shape[number] + indices[number]
        return total

    def groups(self, names: Sequence[AxisName], index_groups: IndexGroups = None) -> Groups:
        """The devices that a collective over those axes connects."""
        numbers = self._parts(names)
        others = self._coordinates([n for n in range(len(self.sizes)) if n not in numbers])
        along = self._coordinates(numbers)
        groups: dict[int, list[int]] = {}
        for position in np.lexsort((along, others)):
            groups.setdefault(int(others[position]), []).append(int(position))
        found = list(groups.values())
        if index_groups is not None:
            if sorted(n for part in index_groups for n in part) != list(range(len(found[0]))):
                raise ValueError("axis_index_groups must cover all indices exactly once")
            found = [[group[n] for n in part] for group in found for part in index_groups]
        groups_found: Groups = tuple(sorted(map(tuple, found)))
        self.seen.add(groups_found)
        return groups_found

    def table(self, names: Sequence[AxisName]) -> tuple[int, ...]:
        """The index of each device of this process along those axes."""
        along = self._coordinates(self._parts(names))
        return tuple(int(index) for index, owner in zip(along, self.owners, strict=True)
                     if owner == job.index)

    def collective(self, name: str, kind: Kind, x: Value, names: Sequence[AxisName],
                   index_groups: IndexGroups = None, dims: tuple[int, ...] = (),
                   perm: Sequence[tuple[int, int]] = (), reduced: bool = False) -> Any:
        groups = self.groups(names, index_groups)
        reduces = kind in (Kind.SUM, Kind.MAXIMUM, Kind.MINIMUM)
        if not reduces and len({len(group) for group in groups}) > 1:
            raise NotImplementedError(f"axis_index_groups of different sizes: {index_groups}")
        what = f"{name} over {', '.join(map(str, names))} in {self.program}"
        return collective_p.bind(x, exchange=Exchange(
            kind, groups, self.owners, what, dims, tuple(perm), reduced))

    @property
    def local_count(self) -> int:
        return self.owners.count(job.index)

    def is_here(self, groups: Groups) -> bool:
        """Whether this process's devices are one group, in order, without other processes: a
        collective is that of a batch then."""
        return self._devices_of(job.index) in groups

    def _devices_of(self, process: int) -> tuple[int, ...]:
        return tuple(n for n, owner in enumerate(self.owners) if owner == process)

    @property
    def is_even(self) -> bool:
        """Whether what is an exchange in one process is one in all."""
        places = [self._devices_of(process) for process in set(self.owners)]
        return all(len({place in groups for place in places}) == 1 for groups in self.seen)

    def _is_part(self, groups: Groups) -> bool:
        """Whether this process's devices, several, belong to one group."""
        here = {n for n, owner in enumerate(self.owners) if owner == job.index}
        return len(here) > 1 and any(here.issubset(group) for group in groups)

    # --- rules ---
    @property
    def rules(self) -> Mapping[Any, Callable[..., Any]]:
        return {
            **dict.fromkeys(IDENTITIES, lambda x, **params: x),
            **dict.fromkeys((psum_p, psum_invariant_p, unreduced_psum_p),
                            functools.partial(self._reduced, psum_p, Kind.SUM, reduce_sum_p)),
            pmax_p: functools.partial(self._reduced, pmax_p, Kind.MAXIMUM, reduce_max_p),
            pmin_p: functools.partial(self._reduced, pmin_p, Kind.MINIMUM, reduce_min_p),
            **dict.fromkeys((all_gather_p, all_gather_invariant_p, all_gather_reduced_p),
                            self._all_gather),
            **dict.fromkeys((reduce_scatter_p, unreduced_reduce_scatter_p), self._reduce_scatter),
            all_to_all_p: self._all_to_all,
            ragged_all_to_all_p: of_collectives(self._all_gather, self._all_to_all),
            ppermute_p: self._ppermute,
            pbroadcast_p: self._pbroadcast,
            axis_index_p: lambda *, axis_name: coordinate_p.bind(table=self.table(
                axis_name if isinstance(axis_name, tuple) else (axis_name,))),
        }

    def _reduced(self, primitive: Primitive, kind: Kind, positional: Primitive, x: Value, *,
                 axes: Sequence[AxisName], axis_index_groups: IndexGroups = None) -> Any:
        dims = tuple(axis for axis in axes if isinstance(axis, int))
        if dims:
            x = positional.bind(x, axes=dims)
        names = named(axes)
        if not names:
            return x
        groups = self.groups(names, axis_index_groups)
        reduced = self._is_part(groups)
        if reduced or self.is_here(groups):
            x = primitive.bind(x, axes=(DEVICES,), axis_index_groups=None)
        if self.is_here(groups):
            return x
        return self.collective(primitive.name, kind, x, names, axis_index_groups, reduced=reduced)

    def _all_gather(self, x: Value, *, all_gather_dimension: int, axis_name: Sequence[AxisName],
                    tiled: bool, axis_size: int, axis_index_groups: IndexGroups = None) -> Any:
        dim = all_gather_dimension
        if self.is_here(self.groups(axis_name, axis_index_groups)):
            return all_gather_p.bind(
                x, all_gather_dimension=dim, axis_name=(DEVICES,), axis_size=self.local_count,
                axis_index_groups=None, tiled=tiled)
        gathered = move_axis(self.collective(
            all_gather_p.name, Kind.GATHER, x, axis_name, axis_index_groups), 0, dim)
        return flattened(gathered, dim) if tiled else gathered

    def _reduce_scatter(self, x: Value, *, scatter_dimension: int, axis_name: Sequence[AxisName],
                        axis_size: int, tiled: bool, axis_index_groups: IndexGroups = None) -> Any:
        if self.is_here(self.groups(axis_name, axis_index_groups)):
            return reduce_scatter_p.bind(
                x, scatter_dimension=scatter_dimension, axis_name=(DEVICES,),
                axis_size=self.local_count, axis_index_groups=None, tiled=tiled)
        part = self.collective(reduce_scatter_p.name, Kind.SCATTERED_SUM, x, axis_name,
                               axis_index_groups, (scatter_dimension,))
        return part if tiled else squeeze_p.bind(part, dimensions=(scatter_dimension,))

    def _all_to_all(self, x: Value, *, split_axis: int, concat_axis: int, axis_name: AxisName,
                    axis_index_groups: IndexGroups, **params: object) -> Any:
        names = axis_name if isinstance(axis_name, tuple) else (axis_name,)
        if self.is_here(self.groups(names, axis_index_groups)):
            return all_to_all_p.bind(
                x, split_axis=split_axis, concat_axis=concat_axis, axis_name=(DEVICES,),
                axis_index_groups=None, axis_sizes=(self.local_count,), tiled=True)
        return self.collective(all_to_all_p.name, Kind.TRANSPOSE, x, names, axis_index_groups,
                               (split_axis, concat_axis))

    def _ppermute(self, x: Value, *, axis_name: Sequence[AxisName],
                  perm: Sequence[tuple[int, int]]) -> Any:
        axis_name = tuple([name for given in axis_name for name, _ in self.sizes
                           if given in (name, str(name).partition(":(")[0])])
        count = len(self.groups(axis_name)[0])
        check_permutation(axis_name, self.sizes, perm, count)
        if len(perm) == count and self.is_here(self.groups(axis_name)):
            return ppermute_p.bind(x, axis_name=(DEVICES,), perm=tuple(perm))
        return self.collective(ppermute_p.name, Kind.PERMUTE, x, axis_name, perm=perm)

    def _pbroadcast(self, x: Value, *, axis_name: AxisName, source: int) -> Any:
        names = axis_name if isinstance(axis_name, tuple) else (axis_name,)
        gathered = self.collective(pbroadcast_p.name, Kind.GATHER, x, names)
        return squeeze_p.bind(slice_in_dim(gathered, source, source + 1, 0), dimensions=(0,))


_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


def digest_of(local: ClosedJaxpr) -> str:
    """What tells the program of a shard from others, the same in all processes."""
    text = _ADDRESS.sub("", str(local))
    return hashlib.blake2b(text.encode(), digest_size=4).hexdigest()


def process_program(local: ClosedJaxpr, sizes: Mapping[Any, int], mesh: Mesh, name: str,
                    stacked_ins: Sequence[bool], stacked_outs: Sequence[bool]) -> ClosedJaxpr:
    """The program of this process's devices.

    Args:
      local: of one shard, with collectives over the axes of ``sizes``.
      sizes: the axes of ``mesh``, in order, or the parts that they are divided into.
      name: of the program, for messages.
      stacked_ins, stacked_outs: which inputs and outputs differ between the devices: these have as
        many rows as there are devices, the others one.

    Returns:
      it; a result after those may be there for the order of exchanges.
    """
    owners = owners_of(mesh)
    count = owners.count(job.index)
    items = tuple(sizes.items())
    crossing = Crossing(items, owners, f"{name} [{digest_of(local)}]")
    shard = runnable(local, items, (), crossing)
    if crossing.is_even:
        shard = with_joined_reductions(shard)

    def run(*parts: Value) -> list[Any]:
        values = [part if stacked else squeeze_p.bind(part, dimensions=(0,))
                  for part, stacked in zip(parts, stacked_ins, strict=True)]
        outputs, axes = batch_flat(
            lambda *xs: eval_jaxpr(shard.jaxpr, shard.consts, *xs), count, values,
            [0 if stacked else None for stacked in stacked_ins], DEVICES)
        results = []
        for output, axis, stacked in zip(outputs, axes, stacked_outs, strict=True):
            if stacked:
                results.append(to_axis(output, axis, 0, count))
            elif axis is None:
                results.append(expand_axis(output, 0))
            else:
                results.append(slice_in_dim(move_axis(output, axis, 0), 0, 1, 0))
        return results

    avals = [aval.update(shape=(count if stacked else 1, *aval.shape), vma=frozenset())
             for aval, stacked in zip(shard.in_avals, stacked_ins, strict=True)]
    with inherited_source_lines():
        made = trace_to_jaxpr(run, avals, local.jaxpr.debug_info)
    return with_tokens(made) or made


def block_positions(dims: Dims, sizes: Mapping[Any, int], count: int) -> list[tuple[int, ...]]:
    """For each device of a mesh which block of a value it has, along each dimension."""
    crossing = Crossing(tuple(sizes.items()), (0,) * count, "")
    columns = [crossing._coordinates(crossing._parts(axes)) for axes in dims]
    return [tuple(int(column[position]) for column in columns) for position in range(count)]
