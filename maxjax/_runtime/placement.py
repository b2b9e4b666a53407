"""Putting values on devices, and getting them back."""

from __future__ import annotations

import gc
import hashlib
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import meshes, pytree
from maxjax._base.config import status
from maxjax._base.dtypes import is_opaque
from maxjax._base.layouts import Format, Layout, check_layout
from maxjax._base.processes import job
from maxjax._base.pytree import PyTree
from maxjax._base.shardings import (
    MemorySpace,
    NamedSharding,
    Sharding,
    check_shape,
    refuse_unreduced,
)
from maxjax._base.specs import PartitionSpec, UnreducedKind, entry_axes
from maxjax._distributed.start import connection
from maxjax._ir.runtime import installed
from maxjax._ir.staging import is_staging, staged
from maxjax._ir.trace import Array, Tracer, context, invalid_type
from maxjax._primitives.sharding import ArrayCopySemantics, device_put_p, type_on
from maxjax._runtime import transfer_guard
from maxjax._runtime.array import ArrayImpl
from maxjax._runtime.devices import Device
from maxjax._runtime.devices import devices as all_devices
from maxjax._runtime.outside_values import plain
from maxjax._runtime.spanning_array import SpanningArray

# The source of what is no array yet.
_NOWHERE: Any = object()


def for_leaves(given: PyTree, x: PyTree, count: int, what: str) -> list[Any]:
    """One placement for each leaf of ``x``."""
    if not isinstance(given, (tuple, list, dict)):
        return [given] * count
    try:
        return pytree.broadcast_prefix(given, x, is_placement)
    except ValueError:
        raise pytree.prefix_error(given, x, what, is_placement) from None


def device_put(x: PyTree, device: PyTree = None, *, src: PyTree = None, donate: PyTree = False,
               may_alias: bool | None = None) -> Any:
    """Copies the leaves of a pytree to a device.

    Args:
      x: a pytree of arrays and scalars; NumPy arrays are copied.
      device: a device, a sharding, a ``PartitionSpec`` (of the mesh that is set), a
        ``jax.memory.Space`` of where the values are, a ``Format``, or a prefix pytree of
        them. None: the default device, to which the arrays are not committed; arrays stay where
        they are.
      src: where the leaves are, and so their cotangents go: a device, a sharding, or a prefix
        pytree of them. None: where they are found to be.
      donate: whether the leaves may be given up for the results; may be a prefix pytree.
      may_alias: False: results share no memory with the leaves.

    Returns:
      A pytree of arrays. It returns before the copies are done; in ``jit`` it constrains where
      values lie.

    Raises:
      ValueError: it is no device; ``donate`` and ``may_alias`` are both True; the value's rank is
        too small for the sharding, or a dimension not divisible.
      TypeError: a leaf is no array.

    See also: ``jax.device_get``, ``jax.devices``, ``jax.sharding.NamedSharding``,
    ``jax.make_array_from_callback``, ``jax.block_until_ready``.
    """
    leaves, spec = pytree.flatten(x)
    placements = for_leaves(device, x, len(leaves), "device_put device")
    sources = for_leaves(src, x, len(leaves), "device_put source")
    donations = for_leaves(donate, x, len(leaves), "device_put donate")
    aliases = for_leaves(may_alias, x, len(leaves), "device_put may_alias")
    if any(gives and alias for gives, alias in zip(donations, aliases, strict=True)):
        raise ValueError("may_alias and donate cannot be True at the same time.")
    values = []
    for leaf, place in zip(leaves, placements, strict=True):
        with transfer_guard.explicit(place):
            values.append(_operand(leaf))
    layouts = [placement.layout if isinstance(placement, Format) else None
               for placement in placements]
    placements = [_checked(value, placement)
                  for value, placement in zip(values, placements, strict=True)]
    is_traced = context.manual is not None and any(place is not None for place in placements)
    # What is put in a program is a value of the program.
    is_traced |= is_staging() and not all(
        place is None and isinstance(leaf, (np.ndarray, np.generic))
        for place, leaf in zip(placements, leaves, strict=True))
    if is_traced or any(isinstance(value, Tracer) for value in values):
        sources = [source if isinstance(leaf, Array) or source is not None else _NOWHERE
                   for source, leaf in zip(sources, leaves, strict=True)]
        semantics = (ArrayCopySemantics.DONATE_INPUT if donate is True else
                     ArrayCopySemantics.ALWAYS_COPY if may_alias is False else
                     ArrayCopySemantics.REUSE_INPUT)
        results = _put_traced(values, placements, sources, semantics)
    else:
        if job.device_counts:
            for leaf, placement in zip(leaves, placements, strict=True):
                if isinstance(placement, Sharding) and placement.spans_processes and not (
                        isinstance(leaf, Array) and not leaf.is_fully_addressable):
                    _check_same(leaf, placement)
        results = [staged(value) if placement is None else installed.runtime.put(value, placement)
                   for value, placement in zip(values, placements, strict=True)]
        results = [installed.runtime.lay_out(result, layout) if isinstance(layout, Layout) else
                   result for result, layout in zip(results, layouts, strict=True)]
        if status.guards_transfers:
            with transfer_guard.explicit():
                for value, result in zip(values, results, strict=True):
                    transfer_guard.between_devices([value], [result])
        results = [_copied(result) if alias is False and result is leaf else result
                   for result, leaf, alias in zip(results, leaves, aliases, strict=True)]
    return pytree.unflatten(spec, results)


def _copied(x: Array) -> Array:
    """An array of its own, which survives the deletion of this one."""
    if not isinstance(x, ArrayImpl) or isinstance(x, SpanningArray):
        return x
    copy = ArrayImpl(x.aval, x.host().copy())
    copy._placement, copy._committed = x._placement, x._committed
    return copy


def _operand(leaf: Any) -> Any:
    try:
        return installed.runtime.concrete(leaf)
    except TypeError:
        if isinstance(leaf, (str, np.ndarray)):
            raise invalid_type(leaf) from None
        raise TypeError(f"Cannot interpret value of type {type(leaf)} as an abstract array; it "
                        "does not have a dtype attribute") from None


def _check_same(leaf: Any, sharding: Sharding) -> None:
    """Checks that all processes put the same host value on devices of several.

    Raises:
      AssertionError: they do not.
    """
    value = np.array(leaf.host() if isinstance(leaf, ArrayImpl) else plain(leaf), order="C")
    owners = tuple(sorted({device.process_index for device in sharding._devices()}))
    if job.index not in owners or len(owners) == 1:
        return
    group = connection.among(owners)
    digest = np.frombuffer(hashlib.blake2b(
        value.tobytes() + str((value.shape, value.dtype)).encode(), digest_size=16).digest(),
        np.uint8)
    digests = group.all_gather(digest, "device_put")
    if (digests == digests[:1]).all():
        return
    values = group.all_gather(value, "device_put")
    raise AssertionError(
        f"{type(leaf)} passed to device_put is not the same on each process. Make sure you are "
        f"passing the same value of {type(leaf)} on each process.. Expected: "
        f"{np.concatenate(values) if value.ndim else values}; got: {leaf}.")


def is_placement(node: object) -> bool:
    return node is None or isinstance(node, (Device, Sharding, PartitionSpec, MemorySpace, Format))


def _checked(value: Array, placement: Device | Sharding | PartitionSpec | None) -> Any:
    """The placement for a value; a spec becomes a sharding of the mesh that is set."""
    if not is_placement(placement):
        raise ValueError(
            "`jax.device_put` only accepts `None`, `jax.sharding.Sharding`, `jax.Device`, "
            "`Format`, `jax.memory.Space` or a pytree of these values. Received invalid value: "
            f"{placement}")
    if isinstance(placement, Format):
        if placement.layout is Layout.AUTO:
            raise ValueError("sharding and layout in `Layout` instance should be concrete. Got "
                             f"layout: {placement} for input {value.aval.str_short()}")
        if placement.layout is not None:
            check_layout(placement.layout, value.shape, "device_put args")
        placement = placement.sharding
    if isinstance(placement, MemorySpace):
        # Under a transformation it is not known which devices have the value.
        return (value.sharding.with_memory_kind(placement.kind) if isinstance(value, ArrayImpl)
                else None)
    if isinstance(placement, PartitionSpec):
        mesh = meshes.around().concrete
        if mesh.empty:
            raise ValueError("Please set a mesh via `jax.set_mesh` if a PartitionSpec is passed "
                             "to device_put")
        placement = NamedSharding(mesh, placement)
    if isinstance(placement, Sharding):
        placement.is_fully_addressable      # noqa: B018  (raises where there are no devices)
        type_on(value.aval, placement)
        check_shape(placement, value.shape, "device_put args")
    if placement is not None:
        _check_unreduced(value, placement)
    return placement


def _check_unreduced(value: Array, placement: object) -> None:
    """Raises NotImplementedError where parts of a value would have to be made or combined."""
    aval = value.aval
    own = PartitionSpec() if aval.mesh_spec is None else aval.mesh_spec[1]
    asked = placement.spec if isinstance(placement, NamedSharding) else PartitionSpec()
    if own.unreduced and not isinstance(value, SpanningArray):
        assert aval.mesh_spec is not None
        if not (isinstance(placement, NamedSharding) and _lies_alike(*aval.mesh_spec, placement)):
            refuse_unreduced(aval.sharding)
    elif asked.unreduced_kind not in (None, UnreducedKind.sum):
        raise NotImplementedError(
            f"device_put does not make parts of which a value is the {asked.unreduced_kind.name}")


def _lies_alike(mesh: meshes.AbstractMesh, spec: PartitionSpec, other: NamedSharding) -> bool:
    """Whether each device would have what one has now, be they the same or not."""
    if mesh.axis_sizes != other.mesh.axis_sizes or (
            spec.unreduced_kind is not other.spec.unreduced_kind):
        return False
    names = dict(zip(mesh.axis_names, other.mesh.axis_names, strict=True))
    entries = [tuple(names[axis] for axis in entry_axes(entry)) for entry in spec.partitions]
    asked = [entry_axes(entry) for entry in other.spec.partitions]
    missing = [()] * (len(entries) - len(asked))
    return entries == [*asked, *missing] and (
        {names[axis] for axis in spec.unreduced} == other.spec.unreduced)


def _put_traced(values: Sequence[Array], placements: Sequence[Device | Sharding | None],
                sources: Sequence[Device | Sharding | None], semantics: ArrayCopySemantics
                ) -> list[Any]:
    """Under a transformation, equations place the values."""
    if any(isinstance(placement, Sharding) for placement in placements):
        meshes.use.ever_set = True
    srcs = []
    for value, source in zip(values, sources, strict=True):
        if source is None:
            known = value.concrete() if isinstance(value, Tracer) else value
            source = known.sharding if isinstance(known, ArrayImpl) else None
        srcs.append(None if source is _NOWHERE else source)
    if not any(isinstance(placement, NamedSharding) for placement in placements):
        return device_put_p.bind(
            *values, devices=tuple(placements), srcs=tuple(srcs),
            copy_semantics=(semantics,) * len(values))
    # Each in an equation of its own, from which propagation learns its sharding.
    results = []
    for value, placement, src in zip(values, placements, srcs, strict=True):
        results += device_put_p.bind(value, devices=(placement,), srcs=(src,),
                                     copy_semantics=(semantics,))
    return results


def device_get(x: PyTree) -> Any:
    """The leaves of a pytree as NumPy arrays; random keys, tracers and leaves that are no arrays
    stay as they are.

    Args:
      x: a pytree.

    Returns:
      A pytree of NumPy arrays; it waits until they are computed.

    Raises:
      RuntimeError: an array was deleted or donated.

    See also: ``jax.device_put``, ``jnp.asarray``, ``jax.block_until_ready``.
    """
    def get(leaf: Any) -> Any:
        if isinstance(leaf, Tracer):
            return leaf
        if isinstance(leaf, Array):
            return leaf if is_opaque(leaf.dtype) else np.asarray(leaf)
        return leaf.__array__() if hasattr(leaf, "__array__") else leaf

    return pytree.map(get, x)


def block_until_ready(x: PyTree) -> Any:
    """Waits until all leaves are computed, and returns ``x``.

    Operations return before they are done; a time measured without it is that of their start.

    Args:
      x: a pytree; leaves that are no arrays stay as they are.

    Returns:
      ``x`` itself.

    Raises:
      RuntimeError: an array was deleted or donated.

    See also: ``jax.device_get``, ``jax.effects_barrier``.
    """
    if isinstance(x, ArrayImpl):      # most often
        x.block_until_ready()
        return x
    for leaf in pytree.leaves(x):
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x


def copy_to_host_async(x: PyTree) -> Any:
    """Calls the method of that name of all leaves that have it, and returns ``x``: arrays are
    computed."""
    for leaf in pytree.leaves(x):
        method = getattr(leaf, "copy_to_host_async", None)
        if method is not None:
            method()
    return x


def device_count(backend: str | None = None) -> int:
    """The number of devices.

    Args:
      backend: the platform's name; None: the default one.

    Returns:
      An int; with several processes the devices of all.

    Raises:
      RuntimeError: there is no such platform.

    See also: ``jax.local_device_count``, ``jax.devices``, ``jax.process_count``.
    """
    return len(all_devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """The number of this process's devices.

    Args:
      backend: the platform's name; None: the default one.

    Returns:
      An int.

    Raises:
      RuntimeError: there is no such platform.

    See also: ``jax.device_count``, ``jax.local_devices``.
    """
    return len(local_devices(backend=backend))


def local_devices(process_index: int | None = None, backend: str | None = None,
                  host_id: int | None = None) -> list[Device]:
    """The devices of a process: this one, or the one of that number.

    Args:
      process_index: the process's number; None: this one's.
      backend: the platform's name; None: the default one.
      host_id: an older name of ``process_index``.

    Returns:
      A list of ``Device``.

    Raises:
      RuntimeError: there is no such platform.
      ValueError: there is no such process.

    See also: ``jax.devices``, ``jax.local_device_count``, ``jax.process_index``.
    """
    if host_id is not None:
        warnings.warn("The argument to jax.local_devices has been renamed from `host_id` to "
                      "`process_index`. This alias will eventually be removed; please update your "
                      "code.", stacklevel=2)
        process_index = host_id
    found = all_devices(backend)
    if process_index is None:
        process_index = job.index
    if not 0 <= process_index < job.count:
        raise ValueError(f"Unknown process_index {process_index}")
    return [device for device in found if device.process_index == process_index]


def default_backend() -> str:
    """The platform of the default device.

    Returns:
      The platform's name: "cpu" or "gpu".

    See also: ``jax.devices``, ``jax.default_device``.
    """
    return all_devices()[0].platform


def live_arrays(platform: str | None = None) -> list[Any]:
    """All arrays that somebody holds and nobody deleted, pending ones too.

    Args:
      platform: the devices' kind, such as "cpu"; None for the default one.

    Returns:
      A list of arrays.

    See also: ``jax.Array.delete``, ``jax.clear_caches``.
    """
    wanted = all_devices(platform)[0].platform
    return [x for x in gc.get_objects()
            if isinstance(x, ArrayImpl) and not x.is_deleted()
            and next(iter(x.devices())).platform == wanted]
