"""Arrays put together from their parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maxjax._base import dtypes, pytree
from maxjax._base.config import status
from maxjax._base.errors import UnexpectedTracerError
from maxjax._base.layouts import Format
from maxjax._base.pytree import PyTree
from maxjax._base.shardings import Index, NamedSharding, Sharding
from maxjax._ir.staging import is_staging
from maxjax._ir.trace import Tracer
from maxjax._ir.types import ShapedArray
from maxjax._primitives.sharding import type_on
from maxjax._runtime import transfer_guard
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.outside_values import plain
from maxjax._runtime.placement import device_put, for_leaves
from maxjax._runtime.result_placement import put
from maxjax._runtime.spanning_array import SpanningArray, check_reduced

if TYPE_CHECKING:
    import numpy.typing as npt


def make_array_from_callback(shape: Sequence[int], sharding: Sharding | Format,
                             data_callback: Callable[[Index], npt.ArrayLike],
                             dtype: npt.DTypeLike | None = None) -> ArrayImpl:
    """An array whose parts a function computes.

    Args:
      shape: the whole array's.
      sharding: how it lies, perhaps in a ``Format`` with a layout.
      data_callback: from the index of a part, a tuple of slices, its value.
      dtype: that of the values.

    Returns:
      An array of which each process has the parts of its devices.

    Raises:
      ValueError: a part is of another shape or dtype, or a masked array.
      TypeError: a part is no array or number, or there are no arrays of its dtype.
      UnexpectedTracerError: it is called while a function is traced.

    See also: ``jax.make_array_from_single_device_arrays``,
    ``jax.make_array_from_process_local_data``, ``jax.device_put``.

    >>> mesh = jax.make_mesh((1,), ("x",))
    >>> rows = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
    >>> jax.make_array_from_callback((3,), rows, lambda index: np.arange(3)[index])
    Array([0, 1, 2], dtype=int32)
    """
    if isinstance(sharding, Format):
        sharding.check_concrete("when calling `jax.make_array_from_callback`")
        made = make_array_from_callback(shape, sharding.sharding, data_callback, dtype)
        return device_put(made, sharding)
    if not isinstance(sharding, Sharding):
        raise TypeError("sharding should be an instance of `jax.sharding`. Got "
                        f"{sharding} of type {type(sharding)}")
    if is_staging():
        raise UnexpectedTracerError(
            "jax.make_array_from_callback cannot be called within a traced context.")
    if not isinstance(shape, Iterable):
        raise TypeError(f"object of type '{type(shape).__name__}' has no len()")
    shape = tuple(shape)
    known: dict[Any, Any] = {}
    parts: list[Any] = []
    for index in sharding.addressable_devices_indices_map(shape).values():
        key = tuple((part.start, part.stop) for part in index)
        if key not in known:
            value = data_callback(index)
            if not isinstance(value, (np.ndarray, np.generic, ArrayImpl, int, float, complex)):
                raise TypeError(f"Argument '{value}' of type {type(value)} is not a valid JAX "
                                "type.")
            # Keys stay an array: their words are no array of that dtype.
            known[key] = value if isinstance(value, ArrayImpl) else plain(value)
            dtypes.check_storable(known[key].dtype)
        parts.append(known[key])
    _check_one_dtype(parts)
    if not parts and dtype is None:
        raise ValueError("make_array_from_callback: this process has no device of the sharding; "
                         "it needs `dtype`")
    found = parts[0].dtype if parts else np.dtype(dtype)
    if dtype is not None and np.dtype(dtype) != found:
        raise ValueError(
            "If `dtype` is provided to `jax.make_array_from_callback`, it must match the dtype of "
            f"the addressable shards. Got dtype={np.dtype(dtype)} and shard dtype={found}`.")
    aval = ShapedArray(shape, found)
    if status.guards_transfers:
        transfer_guard.from_host(None, aval, is_passed=True)
    return _assembled(shape, sharding, [
        part.host() if isinstance(part, ArrayImpl) else part for part in parts], aval)


def make_array_from_single_device_arrays(shape: Sequence[int], sharding: Sharding,
                                         arrays: Sequence[ArrayImpl], *,
                                         dtype: npt.DTypeLike | None = None) -> ArrayImpl:
    """An array of parts that are on the devices already.

    Args:
      shape: the whole array's.
      sharding: how it lies.
      arrays: a part for each device of the sharding, in any order.
      dtype: the dtype, where there are no parts.

    Returns:
      An array; the parts are taken as they are, without a copy.

    Raises:
      TypeError: a part is no array, or they are in no list or tuple.
      ValueError: there are too few, they lie on other devices, or one is of another shape or dtype,
        or traced.

    See also: ``jax.make_array_from_callback``, ``jax.device_put``,
    ``jax.Array.addressable_shards``.
    """
    if not isinstance(sharding, Sharding):
        raise TypeError("sharding should be an instance of `jax.sharding`. Got "
                        f"{sharding} of type {type(sharding)}")
    shape = tuple(shape)
    if not isinstance(arrays, (list, tuple)):
        raise TypeError("jax.make_array_from_single_device_arrays `arrays` argument must be a list "
                        f"or tuple, but got {type(arrays)}.")
    if any(isinstance(array, Tracer) for array in arrays):
        raise ValueError("jax.make_array_from_single_device_arrays requires a list of concrete "
                         f"arrays as input, but got types {set(map(type, arrays))}")
    for array in arrays:
        if not isinstance(array, ArrayImpl):
            raise TypeError(f"Unsupported type for elements in `arrays`: {type(array)}")
    if arrays and dtype is not None and np.dtype(dtype) != arrays[0].dtype:
        raise ValueError(
            "If `dtype` is provided to `jax.make_array_from_single_device_arrays`, it must match "
            f"the dtype of the addressable shards. Got dtype={np.dtype(dtype)} and shard "
            f"dtype={arrays[0].dtype}`.")
    if not arrays and dtype is None:
        raise ValueError(
            "If the Array has no addressable shards, `dtype` must be provided via the `dtype` "
            "argument to `jax.make_array_from_single_device_arrays`.")
    devices = sharding._addressable_device_assignment
    if len(arrays) != len(devices):
        raise ValueError(f"Expected {len(devices)} per-device arrays (this is how many devices are "
                         f"addressable by the sharding), but got {len(arrays)}")
    for array in arrays:
        if len(array.devices()) > 1:
            raise ValueError(
                "When making an array from single-device arrays the input arrays must have one "
                f"shard each. An argument array had {len(array.devices())} shard(s).")
    by_device = {array.device: array for array in arrays}
    if len(by_device) < len(arrays):
        raise ValueError(
            "When making an array from single-device arrays, the input arrays must be from "
            f"distinct devices, but got device IDs {[array.device.id for array in arrays]}")
    wanted, given = {device.id for device in devices}, {device.id for device in by_device}
    if wanted != given:
        raise ValueError(
            "Addressable devices and per-device arrays devices do not match. Sharding contains "
            f"devices {wanted - given} that are not present in per-device arrays. Per-device "
            f"arrays contain devices {given - wanted} that are not present in the sharding.")
    parts = [by_device[device].host() for device in devices]
    _check_one_dtype(arrays)
    aval = ShapedArray(shape, arrays[0].dtype if arrays else dtypes.canonical(
        np.dtype(dtype)))
    return _assembled(shape, sharding, parts, aval)


def make_array_from_process_local_data(sharding: PyTree, local_data: PyTree,
                                       global_shape: PyTree = None) -> Any:
    """Arrays of this process's part of the data; where there is one process, that is all of it.

    Args:
      sharding: how the arrays lie: a sharding, a spec of the mesh that is set, or a device, or a
        prefix pytree of them.
      local_data: a pytree of NumPy arrays: what the devices of this process hold together, or in
        dimensions of the size of the whole array, all of it.
      global_shape: the shape of the whole arrays, with None for sizes that follow from the others,
        or a prefix pytree of shapes; None: all do.

    Returns:
      A pytree of arrays.

    Raises:
      ValueError: the data are of another shape than the devices hold, or these hold no block.

    See also: ``jax.make_array_from_callback``, ``jax.make_array_from_single_device_arrays``,
    ``jax.device_put``.
    """
    def put_whole(data: npt.ArrayLike, sharding: Any,
                  global_shape: Sequence[int | None] | None) -> ArrayImpl:
        # An array stays one: keys are no NumPy array.
        value = data if isinstance(data, ArrayImpl) else np.asarray(data)
        if isinstance(sharding, Sharding) and not sharding.is_fully_addressable:
            return _of_process(value, sharding, global_shape)
        if global_shape is not None and tuple(global_shape) != value.shape:
            raise ValueError(
                "When calling `make_array_from_process_local_data` on a single process, "
                "global_shape should be None or equal to local_data.shape.Got "
                f"global_shape={tuple(global_shape)} and local_data.shape={value.shape}.")
        return device_put(value, sharding)

    leaves, tree = pytree.flatten(local_data)
    placements = for_leaves(sharding, local_data, len(leaves), "sharding")
    try:
        shapes = pytree.broadcast_prefix(global_shape, local_data, _is_shape)
    except ValueError:
        raise pytree.structure_error(global_shape, local_data, "broadcast_prefix prefix_tree",
                                     _is_shape) from None
    return pytree.unflatten(tree, list(map(put_whole, leaves, placements, shapes)))


def _is_shape(value: object) -> bool:
    return value is None or isinstance(value, tuple)


def _of_process(value: np.ndarray | ArrayImpl, sharding: Sharding,
                global_shape: Sequence[int | None] | None) -> ArrayImpl:
    """An array over several processes, from what this process's devices hold together."""
    given = [None] * value.ndim if global_shape is None else list(global_shape)
    if len(given) != value.ndim:
        raise ValueError(f"global_shape={tuple(given)} must have the rank of the data, "
                         f"{value.ndim}.")
    counts, positions = sharding._tiling(value.ndim)
    own = [positions[number] for number in sharding.local_positions]
    blocks = [sorted({position[dim] for position in own}) for dim in range(value.ndim)]
    if len(set(own)) != math.prod(map(len, blocks)):
        raise ValueError("make_array_from_process_local_data: the devices of this process do not "
                         f"hold a block of the array, with {sharding}")
    shape = [size * count // len(here) if whole is None else whole
             for whole, size, count, here in zip(given, value.shape, counts, blocks, strict=True)]
    sizes = sharding.shard_shape(shape)
    for dim, (size, whole, part, here) in enumerate(zip(
            value.shape, shape, sizes, blocks, strict=True)):
        if size not in (whole, part * len(here)):
            raise ValueError(
                "Invalid host data, each dimension should match either global or process shape. "
                f"In dimension {dim}, the process data has {size} elements. Process addresses "
                f"{part * len(here)} elements and global_shape={tuple(shape)}.")

    def part_at(index: Index) -> Any:
        where = []
        for dim, (part, whole) in enumerate(zip(index, shape, strict=True)):
            start = part.start or 0
            if value.shape[dim] != whole:
                start = blocks[dim].index(start // sizes[dim]) * sizes[dim]
            where.append(slice(start, start + sizes[dim]))
        return value[tuple(where)]

    return make_array_from_callback(shape, sharding, part_at)


def _assembled(shape: tuple[int, ...], sharding: Sharding, parts: Sequence[np.ndarray],
               aval: ShapedArray) -> ArrayImpl:
    expected = sharding.shard_shape(shape)
    if not sharding.is_fully_addressable:
        check_reduced(sharding)
        for part in parts:
            _check_part(part, expected, aval, sharding)
        physical = dtypes.physical(aval.dtype)
        rows = parts if sharding.lies_stacked(len(shape)) else parts[:1]
        stacked = np.stack(rows) if rows else np.zeros((0, *expected), physical)
        return SpanningArray(type_on(aval.off_mesh(), sharding), sharding, stacked)
    indices = sharding._indices(shape)
    whole = np.zeros(shape, parts[0].dtype)
    summands: np.ndarray | None = None
    numbers = copies = [0] * len(parts)
    if isinstance(sharding, NamedSharding) and sharding.spec.unreduced:
        numbers = sharding.index_along(sharding.spec.unreduced)
        copies = sharding.index_along(sharding.replicated_axes)
        summands = np.zeros((max(numbers) + 1, *shape), parts[0].dtype)
    for number, (part, index) in enumerate(zip(parts, indices, strict=True)):
        _check_part(part, expected, aval, sharding)
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


def _check_one_dtype(parts: Sequence[Any]) -> None:
    for part in parts[1:]:
        if part.dtype != parts[0].dtype:
            raise ValueError(
                f"Input buffers to `Array` must have matching dtypes. Got {part.dtype}, expected "
                f"{parts[0].dtype} for buffer: {part}")


def _check_part(part: np.ndarray, expected: tuple[int, ...], aval: ShapedArray,
                sharding: Sharding) -> None:
    if part.shape != expected:
        raise ValueError(
            f"Expected shard shape {expected} doesn't match the single device array shape "
            f"{part.shape}. Shape of Array is {aval.off_mesh()} with sharding {sharding!r}")
