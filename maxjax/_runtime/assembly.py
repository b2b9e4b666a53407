"""Arrays put together from their parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.pytree import PyTree
from maxjax._base.shardings import Index, NamedSharding, Sharding
from maxjax._ir.types import ShapedArray
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.pending import plain, put
from maxjax._runtime.placement import device_put, for_leaves

if TYPE_CHECKING:
    import numpy.typing as npt


def make_array_from_callback(shape: Sequence[int], sharding: Sharding,
                             data_callback: Callable[[Index], npt.ArrayLike],
                             dtype: npt.DTypeLike | None = None) -> ArrayImpl:
    """An array whose parts a function computes.

    Args:
      shape: the whole array's.
      sharding: how it lies.
      data_callback: from the index of a part, a tuple of slices, its value.
      dtype: that of the values.

    Raises:
      ValueError: a part is of another shape or dtype, or a masked array.
      TypeError: there are no arrays of its dtype.

    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    >>> jax.make_array_from_callback((3,), rows, lambda index: np.arange(3)[index])
    Array([0, 1, 2], dtype=int32)
    """
    if not isinstance(sharding, Sharding):
        raise TypeError("sharding should be an instance of `jax.sharding`. Got "
                        f"{sharding} of type {type(sharding)}")
    shape = tuple(shape)
    known: dict[Any, Any] = {}
    parts = []
    for index in sharding.devices_indices_map(shape).values():
        key = tuple((part.start, part.stop) for part in index)
        if key not in known:
            known[key] = plain(data_callback(index))
            dtypes.check_storable(known[key].dtype)
        parts.append(known[key])
    found = parts[0].dtype
    if dtype is not None and np.dtype(dtype) != found:
        raise ValueError(
            "If `dtype` is provided to `jax.make_array_from_callback`, it must match the dtype of "
            f"the addressable shards. Got dtype={np.dtype(dtype)} and shard dtype={found}`.")
    return _assembled(shape, sharding, parts, ShapedArray(shape, found))


def make_array_from_single_device_arrays(shape: Sequence[int], sharding: Sharding,
                                         arrays: Sequence[ArrayImpl], *,
                                         dtype: npt.DTypeLike | None = None) -> ArrayImpl:
    """An array of parts that are on the devices already.

    Args:
      shape: the whole array's.
      sharding: how it lies.
      arrays: a part for each device of the sharding, in any order.
      dtype: the dtype, where there are no parts.

    Raises:
      TypeError: a part is no array.
      ValueError: there are too few, or one is of another shape.
    """
    if not isinstance(sharding, Sharding):
        raise TypeError("sharding should be an instance of `jax.sharding`. Got "
                        f"{sharding} of type {type(sharding)}")
    shape = tuple(shape)
    arrays = list(arrays)
    for array in arrays:
        if not isinstance(array, ArrayImpl):
            raise TypeError(f"Unsupported type for elements in `arrays`: {type(array)}")
    devices = sharding._devices()
    if len(arrays) != len(devices):
        raise ValueError(f"Expected {len(devices)} per-device arrays (this is how many devices are "
                         f"addressable by the sharding), but got {len(arrays)}")
    by_device = {array.device: array for array in arrays}
    if set(by_device) != set(devices):
        raise ValueError(
            f"The devices of the arrays, {sorted(map(str, by_device))}, are not those of the "
            f"sharding, {sorted(map(str, devices))}.")
    parts = [by_device[device].host() for device in devices]
    return _assembled(shape, sharding, parts, arrays[0].aval.update(shape=shape))


def make_array_from_process_local_data(sharding: PyTree, local_data: PyTree,
                                       global_shape: Sequence[int] | None = None) -> Any:
    """Arrays of a process's part of the data: there is one process, so that is all of it.

    Args:
      sharding: how the arrays lie: a sharding, a spec of the mesh that is set, or a device, or a
        prefix pytree of them.
      local_data: a pytree of NumPy arrays.
      global_shape: None, or their shape.

    Raises:
      ValueError: ``global_shape`` is another.
    """
    def put_whole(data: npt.ArrayLike, sharding: Any) -> ArrayImpl:
        value = np.asarray(data)
        if global_shape is not None and tuple(global_shape) != value.shape:
            raise ValueError(
                "When calling `make_array_from_process_local_data` on a single process, "
                "global_shape should be None or equal to local_data.shape.Got "
                f"global_shape={tuple(global_shape)} and local_data.shape={value.shape}.")
        return device_put(value, sharding)

    leaves, tree = pytree.flatten(local_data)
    placements = for_leaves(sharding, local_data, len(leaves), "sharding")
    return pytree.unflatten(tree, list(map(put_whole, leaves, placements)))


def _assembled(shape: tuple[int, ...], sharding: Sharding, parts: Sequence[np.ndarray],
               aval: ShapedArray) -> ArrayImpl:
    expected = sharding.shard_shape(shape)
    indices = sharding._indices(shape)
    whole = np.zeros(shape, parts[0].dtype)
    summands: np.ndarray | None = None
    numbers = copies = [0] * len(parts)
    if isinstance(sharding, NamedSharding) and sharding.spec.unreduced:
        numbers = sharding.index_along(sharding.spec.unreduced)
        copies = sharding.index_along(sharding.replicated_axes)
        summands = np.zeros((max(numbers) + 1, *shape), parts[0].dtype)
    for number, (part, index) in enumerate(zip(parts, indices, strict=True)):
        if part.shape != expected:
            raise ValueError(
                f"Expected shard shape {expected} doesn't match the single device array shape "
                f"{part.shape}. Shape of Array is {aval.off_mesh()} with sharding {sharding!r}")
        if summands is None:
            whole[index] = part
        elif not copies[number]:
            summands[numbers[number]][index] = part
    if summands is not None:
        whole = summands.sum(axis=0, dtype=summands.dtype)
    made = put(ArrayImpl(aval.off_mesh(), whole), sharding)
    if summands is not None:
        made._summands = summands
    return made
