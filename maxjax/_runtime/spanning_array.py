"""Arrays over the devices of several processes, of which each process holds its devices' shards."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxjax._base import pytree
from maxjax._base.meshes import Mesh
from maxjax._base.shardings import NamedSharding, Sharding
from maxjax._ir.types import ShapedArray
from maxjax._primitives.sharding import type_on
from maxjax._runtime.array import ArrayImpl


@pytree.leaf_type
class SpanningArray(ArrayImpl):
    """An array over the devices of several processes.

    Attributes:
      parts: the shards of this process's devices, along the first dimension, in the order of the
        sharding's devices; one for all where they are the same. Those of an unreduced array are of
        the sum. None: deleted.
    """

    __slots__ = ("parts",)
    parts: np.ndarray | None

    def __init__(self, aval: ShapedArray, sharding: Sharding, parts: np.ndarray):
        self.aval = aval
        self._value = None
        self._cell = None
        self._placement = sharding
        self._committed = True
        self.parts = parts

    def shards(self) -> np.ndarray:
        """The shards of this process.

        Raises:
          RuntimeError: the array was deleted.
        """
        if self.parts is None:
            raise RuntimeError(f"Array has been deleted with shape={self.aval.str_short()}.")
        return self.parts

    def shard(self, number: int) -> np.ndarray:
        """The shard of this process's device of that number."""
        parts = self.shards()
        return parts[number if len(parts) > 1 else 0]

    def host(self) -> np.ndarray:
        """The whole value, if each device has it.

        Raises:
          RuntimeError: other processes have parts of it; or the array was deleted.
        """
        parts = self.shards()
        if not self.sharding.is_fully_replicated or not len(parts):
            raise RuntimeError(
                "Fetching value for `jax.Array` that spans non-addressable (non process local) "
                "devices is not possible. You can use "
                "`jax.experimental.multihost_utils.process_allgather` to print the global array or "
                "use `.addressable_shards` method of jax.Array to inspect the addressable (process "
                "local) shards.")
        return np.asarray(parts[0])

    def dense(self) -> np.ndarray:
        return np.asarray(self.host(), order="C")

    def block_until_ready(self) -> SpanningArray:
        self.shards()
        return self

    def is_ready(self) -> bool:
        return True

    def copy_to_host_async(self) -> None:
        self.shards()

    def __await__(self) -> Any:
        self.shards()
        return self
        yield

    @property
    def is_fully_addressable(self) -> bool:
        return False

    def is_deleted(self) -> bool:
        return self.parts is None

    def delete(self) -> None:
        self.parts = None

    def item(self, *args: int) -> Any:
        self.host()
        return super().item(*args)

    def like(self, parts: np.ndarray) -> SpanningArray:
        """An array of the same type and sharding."""
        return SpanningArray(self.aval, self.sharding, parts)

    def __copy__(self) -> SpanningArray:
        return self.like(self.shards())

    def __deepcopy__(self, memo: dict) -> SpanningArray:
        return self.like(self.shards().copy())


def spread(value: ArrayImpl, sharding: NamedSharding) -> SpanningArray:
    """An array over several processes, from what the mesh's devices of this process hold together.

    Raises:
      ValueError: these are no mesh of the same axes.
      IndivisibleError: the value cannot be divided between them.
    """
    check_reduced(sharding)
    here = NamedSharding(_mesh_of(sharding).local_mesh, sharding.spec)
    host = value.host()
    counts, _ = sharding._tiling(host.ndim)
    shape = tuple(size * count for size, count in zip(
        here.shard_shape(host.shape), counts, strict=True))
    aval = type_on(value.aval.off_mesh().update(shape=shape), sharding)
    return SpanningArray(aval, sharding, _parts(host, here))


def collected(array: SpanningArray) -> ArrayImpl:
    """What the devices of this process hold together, over the mesh of these.

    Raises:
      ValueError: they are no mesh of the same axes.
    """
    sharding = array.sharding
    assert isinstance(sharding, NamedSharding)
    check_reduced(sharding)
    here = NamedSharding(_mesh_of(sharding).local_mesh, sharding.spec)
    counts, _ = here._tiling(array.ndim)
    parts = array.shards()
    shape = tuple(size * count for size, count in zip(parts.shape[1:], counts, strict=True))
    whole = np.empty(shape, parts.dtype)
    for number, index in enumerate(here._indices(shape)):
        whole[index] = array.shard(number)
    made = ArrayImpl(type_on(array.aval.off_mesh().update(shape=shape), here), whole)
    made._placement, made._committed = here, True
    return made


def _mesh_of(sharding: NamedSharding) -> Mesh:
    assert isinstance(sharding.mesh, Mesh)
    return sharding.mesh


def cut(value: np.ndarray, sharding: Sharding) -> np.ndarray:
    """The parts of a whole value that this process holds.

    Raises:
      NotImplementedError: the sharding is unreduced.
    """
    check_reduced(sharding)
    return _parts(value, sharding)


def check_reduced(sharding: Sharding) -> None:
    """Refuses an unreduced sharding: each process has a summand, which a caller cannot give.

    Raises:
      NotImplementedError: the sharding is unreduced.
    """
    if isinstance(sharding, NamedSharding) and sharding.spec.unreduced:
        raise NotImplementedError("summands of an unreduced array over several processes")


def _parts(value: np.ndarray, sharding: Sharding) -> np.ndarray:
    shape = sharding.shard_shape(value.shape)
    indices = sharding._indices(value.shape)
    rows = sharding.local_positions
    if not sharding.lies_stacked(value.ndim):
        rows = rows[:1]
    if not rows:
        return np.zeros((0, *shape), value.dtype)
    if len(rows) == 1:
        return np.array(value[indices[rows[0]]], order="C")[None]
    return np.stack([value[indices[row]] for row in rows])
