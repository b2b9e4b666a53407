"""jax.sharding: meshes of devices, and how arrays are sharded over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import meshes
from maxjax._base.interrupts import entered_at_once
from maxjax._base.meshes import AbstractDevice as AbstractDevice
from maxjax._base.meshes import AbstractMesh as AbstractMesh
from maxjax._base.meshes import AxisType as AxisType
from maxjax._base.meshes import Mesh as Mesh
from maxjax._base.meshes import get_abstract_mesh as get_abstract_mesh
from maxjax._base.meshes import use_abstract_mesh as use_abstract_mesh
from maxjax._base.missing import explain_missing_names
from maxjax._base.shardings import NamedSharding as NamedSharding
from maxjax._base.shardings import Sharding as Sharding
from maxjax._base.shardings import SingleDeviceSharding as SingleDeviceSharding
from maxjax._base.shardings import make_single_device_sharding as make_single_device_sharding
from maxjax._base.specs import PartitionSpec as PartitionSpec
from maxjax._base.specs import UnreducedKind as UnreducedKind
from maxjax._higher_order.axis_types import auto_axes as auto_axes
from maxjax._higher_order.axis_types import explicit_axes as explicit_axes
from maxjax._higher_order.constraints import reshard as reshard
from maxjax._ir.runtime import installed
from maxjax._ir.trace import context
from maxjax._ir.types import ManualAxisType as ManualAxisType
from maxjax._runtime.devices import Device
from maxjax._runtime.devices import devices as all_devices
from maxjax._runtime.explain_sharding import auto as auto
from maxjax._runtime.explain_sharding import explain as explain

P = PartitionSpec


def make_mesh(axis_sizes: Sequence[int], axis_names: Sequence[str],
              axis_types: tuple[AxisType, ...] | None = None, *,
              devices: Sequence[Device] | None = None) -> Mesh:
    """A mesh of the first devices, or of the given ones.

    Args:
      axis_sizes: the sizes of the axes.
      axis_names: a name for each.
      axis_types: an ``AxisType`` for each; None: all Explicit.
      devices: as many as the sizes say; None: the first ones.

    Returns:
      A ``Mesh``.

    Raises:
      ValueError: the sizes are no integers, or there are fewer devices.

    See also: ``jax.sharding.Mesh``, ``jax.sharding.NamedSharding``, ``jax.set_mesh``,
    ``jax.devices``, ``jax.shard_map``.

    >>> make_mesh((1,), ("x",))
    Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Explicit,))
    """
    given_sizes = tuple(axis_sizes)
    try:
        sizes = tuple(int(size) for size in given_sizes)
    except TypeError:
        raise ValueError("`axis_sizes` passed to `make_mesh` should be a sequence of ints. Got "
                         f"{axis_sizes}") from None
    given = list(all_devices() if devices is None else devices)
    count = math.prod(sizes)
    if len(given) < count:
        raise ValueError(f"Number of devices {len(given)} must be >= the product of mesh_shape "
                         f"{sizes}")
    if any(size < 0 for size in sizes):
        raise ValueError(f"Number of devices {len(given[:count])} must equal the product of "
                         f"mesh_shape {sizes}")
    array = np.array(given[:count], dtype=object).reshape(sizes)
    if axis_types is None:
        names = (axis_names,) if isinstance(axis_names, str) else axis_names
        axis_types = (AxisType.Explicit,) * len(names)
    return Mesh(array, axis_names, axis_types)


class set_mesh:
    """Sets the mesh for subsequent code or, as a context manager, for a block.

    Args:
      mesh: a ``Mesh``; None: none.

    Raises:
      ValueError: it is not a mesh, has manual axes, or a function is being traced or transformed.

    See also: ``jax.make_mesh``, ``jax.sharding.Mesh``, ``jax.sharding.get_abstract_mesh``.

    >>> with set_mesh(make_mesh((1,), ("x",))):
    ...     get_abstract_mesh().shape_tuple
    (('x', 1),)
    """

    def __init__(self, mesh: Mesh | None):
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"Expected mesh of type `jax.sharding.Mesh`. Got {type(mesh)}")
        if context.trace is not installed.runtime:
            raise ValueError("`set_mesh` can only be used outside of `jax.jit`.")
        chosen = meshes.EMPTY_MESH if mesh is None else mesh
        if chosen.abstract_mesh.manual_axes:
            raise ValueError(f"mesh {chosen} contains manual axes which is not allowed when using "
                             "`jax.set_mesh`. Please use `jax.shard_map` to enter into `Manual` "
                             "mode instead.")
        self._previous = meshes.set_around(meshes.Around(
            chosen.abstract_mesh, chosen, meshes.around().physical))

    @entered_at_once
    def __enter__(self) -> None:
        return None

    @entered_at_once
    def __exit__(self, *_: Any) -> None:
        meshes.put_back(self._previous)


def get_mesh() -> Mesh:
    """The current mesh; an empty one if none is set.

    Raises:
      ValueError: a function is being traced or transformed.
    """
    if context.trace is not installed.runtime:
        raise ValueError("`get_mesh` can only be used outside of `jax.jit`. Maybe you want "
                         "`jax.sharding.get_abstract_mesh()`?")
    return meshes.around().concrete


explain_missing_names(__name__)
