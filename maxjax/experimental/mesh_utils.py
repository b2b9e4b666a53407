"""jax.experimental.mesh_utils: devices in the shape of a mesh."""

from __future__ import annotations

import math
import operator
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
    """Devices as an array of a mesh's shape, in order: CPU devices are all equivalent. GPUs are
    sorted by their numbers.

    Args:
      mesh_shape: the shape.
      devices: which; None: all.
      contiguous_submeshes, allow_split_physical_axes: accepted.

    Raises:
      ValueError: the shape is not one of integers, or there are more or fewer devices.

    >>> create_device_mesh((1, 1)).shape
    (1, 1)
    """
    given = list(all_devices() if devices is None else devices)
    try:
        shape = tuple(map(operator.index, mesh_shape))
    except TypeError:
        raise ValueError("`mesh_shape` passed to `create_device_mesh` should be a sequence of "
                         f"ints. Got {mesh_shape}") from None
    if math.prod(shape) != len(given):
        raise ValueError(
            f"Number of devices {len(given)} must equal the product of mesh_shape {shape}")
    if given and given[-1].platform == "gpu":
        given.sort(key=lambda device: device.id)
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
      process_is_granule: a granule is a process's devices (``process_index``); otherwise a slice's
        (``slice_index``), which CPUs do not have.
      should_sort_granules_by_key: granules follow these numbers, and not the order of devices.
      allow_split_physical_axes: accepted.

    Raises:
      ValueError: the devices have no slices, there are more or fewer granules, or more or fewer
        devices.

    >>> create_hybrid_device_mesh((1, 1), (1, 1), process_is_granule=True).shape
    (1, 1)
    """
    given = list(all_devices() if devices is None else devices)
    key = "process_index" if process_is_granule else "slice_index"
    if not hasattr(given[0], key):
        raise ValueError(f"Device {given[0].platform}:{given[0].id} does not have attribute "
                         f"{key}. See `process_is_granule` option.")
    granules: dict[int, list[Any]] = {}
    for device in given:
        granules.setdefault(getattr(device, key), []).append(device)
    between = tuple(dcn_mesh_shape)
    if math.prod(between) != len(granules):
        raise ValueError(f"Number of slices {len(granules)} must equal the product of "
                         f"dcn_mesh_shape {between}")
    order = sorted(granules) if should_sort_granules_by_key else list(granules)
    blocks = np.empty(len(order), object)
    for number, granule in enumerate(order):
        blocks[number] = create_device_mesh(mesh_shape, granules[granule])
    return np.block(blocks.reshape(between).tolist())
