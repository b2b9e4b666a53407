"""jax.experimental.mesh_utils: devices in the shape of a mesh."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base.missing import missing_names
from maxjax._runtime.devices import devices as all_devices

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]
__getattr__ = missing_names(__name__)


def create_device_mesh(mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, *,
                       contiguous_submeshes: bool = False,
                       allow_split_physical_axes: bool = False) -> np.ndarray:
    """Devices as an array of a mesh's shape, in order: those of a CPU are all alike.

    Args:
      mesh_shape: the shape.
      devices: which; None: all.
      contiguous_submeshes, allow_split_physical_axes: accepted.

    Raises:
      ValueError: there are more or fewer devices.

    >>> create_device_mesh((1, 1)).shape
    (1, 1)
    """
    given = list(all_devices() if devices is None else devices)
    shape = tuple(mesh_shape)
    if math.prod(shape) != len(given):
        raise ValueError(
            f"Number of devices {len(given)} must equal the product of mesh_shape {shape}")
    return np.array(given, dtype=object).reshape(shape)


def create_hybrid_device_mesh(mesh_shape: Sequence[int], dcn_mesh_shape: Sequence[int],
                              devices: Sequence[Any] | None = None, **kwargs: Any) -> np.ndarray:
    """Devices in the shape of a mesh within and one between hosts: there is one host.

    Raises:
      ValueError: the mesh between hosts has more than one host, or there are more or fewer devices.
    """
    if math.prod(dcn_mesh_shape) != 1:
        raise ValueError(f"Number of slices 1 must equal the product of dcn_mesh_shape "
                         f"{tuple(dcn_mesh_shape)}")
    return create_device_mesh(mesh_shape, devices)
