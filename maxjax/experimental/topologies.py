"""jax.experimental.topologies: devices that are there, and those that could be compiled for."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from maxjax._base.meshes import Mesh
from maxjax._base.missing import explain_missing_names
from maxjax._runtime.devices import Device, devices
from maxjax.experimental.mesh_utils import create_device_mesh

__all__ = ["TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]
explain_missing_names(__name__)


@dataclasses.dataclass(eq=False)
class TopologyDescription:
    """The devices of a topology."""

    devices: list[Device]


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """All devices of this process.

    Raises:
      RuntimeError: there is no such platform.

    >>> get_attached_topology().devices == jax.devices()
    True
    """
    return TopologyDescription(devices(platform))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: Any
                      ) -> TopologyDescription:
    """Devices that need not be there: of TPUs, and so of none that maxjax could compile for.

    Raises:
      NotImplementedError: the platform has no descriptions of topologies.
      RuntimeError: it is "tpu", the default, for which there is no support.

    >>> get_topology_desc(platform="cpu")
    Traceback (most recent call last):
    NotImplementedError: topology not implemented for cpu
    """
    if platform in (None, "tpu"):
        raise RuntimeError("maxjax has no support of TPUs; cannot generate TPU topology.")
    raise NotImplementedError(f"topology not implemented for {platform}")


def make_mesh(topo: TopologyDescription, mesh_shape: Sequence[int], axis_names: tuple[str, ...], *,
              contiguous_submeshes: bool = False) -> Mesh:
    """A mesh of all devices of a topology.

    Raises:
      ValueError: there are more or fewer devices.

    >>> make_mesh(get_attached_topology(), (1, 1), ("x", "y"))
    Mesh('x': 1, 'y': 1, axis_types=(Auto, Auto))
    """
    return Mesh(create_device_mesh(mesh_shape, topo.devices,
                                   contiguous_submeshes=contiguous_submeshes), axis_names)
