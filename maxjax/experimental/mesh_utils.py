"""jax.experimental.mesh_utils: devices in the shape of a mesh."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base.missing import explain_missing_names
from maxjax._runtime.devices import devices as all_devices

__all__ = ["create_device_mesh", "create_hybrid_device_mesh"]
explain_missing_names(__name__)


def create_device_mesh(mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, *,
                       contiguous_submeshes: bool = False,
                       allow_split_physical_axes: bool = False) -> np.ndarray:
    """Devices as an array of a mesh's shape, in order: CPU devices are all equivalent.

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
                              devices: Sequence[Any] | None = None, *,
                              process_is_granule: bool = False,
                              should_sort_granules_by_key: bool = True,
                              allow_split_physical_axes: bool = False) -> np.ndarray:
    """Devices for the product of a mesh within granules and a mesh between them.

    Args:
      mesh_shape, dcn_mesh_shape: the two shapes; the shorter is padded with 1 in front.
      devices: which; None: all.
      process_is_granule: a granule is a process's devices, here all of them; otherwise a slice,
        which CPUs do not have.
      should_sort_granules_by_key, allow_split_physical_axes: accepted.

    Raises:
      ValueError: the devices have no slices, there are more or fewer granules, or more or fewer
        devices.

    >>> create_hybrid_device_mesh((1, 1), (1, 1), process_is_granule=True).shape
    (1, 1)
    """
    given = list(all_devices() if devices is None else devices)
    if not process_is_granule:
        raise ValueError(f"Device {given[0].platform}:{given[0].id} does not have attribute "
                         "slice_index. See `process_is_granule` option.")
    between, within = tuple(dcn_mesh_shape), tuple(mesh_shape)
    if math.prod(between) != 1:
        raise ValueError(
            f"Number of slices 1 must equal the product of dcn_mesh_shape {between}")
    return create_device_mesh((*[1] * (len(between) - len(within)), *within), given)
