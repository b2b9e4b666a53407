"""Operands that broadcast together, where their types say how they lie over a mesh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxjax._base.errors import ShardingTypeError
from maxjax._base.meshes import AbstractMesh
from maxjax._base.shardings import NamedSharding
from maxjax._base.specs import PartitionSpec
from maxjax._higher_order.constraints import resharded
from maxjax._primitives.broadcasting import broadcast_in_dim


def explicit_mesh(*operands: Any) -> AbstractMesh | None:
    """The mesh with Explicit axes in the operands' types."""
    for x in operands:
        aval = getattr(x, "aval", None)
        if aval is not None and aval.mesh_spec is not None and aval.mesh_spec[0].explicit_axes:
            return aval.mesh_spec[0]
    return None


def partitions(x: Any) -> tuple[Any, ...]:
    """What splits each dimension of an operand, by its type."""
    aval = getattr(x, "aval", None)
    if aval is None or aval.mesh_spec is None:
        return (None,) * len(x.shape)
    return aval.mesh_spec[1].partitions


def check_unstack(x: Any, axis: int) -> None:
    """Raises ShardingTypeError where an axis of slices to be taken apart is split."""
    if partitions(x)[axis] is not None:
        raise ShardingTypeError(
            f"unstack operand cannot be sharded on the unstacking axis {axis}. Got operand "
            f"type={x.aval.str_short(short_dtypes=True)}")


def broadcast_over(mesh: AbstractMesh, operands: Sequence[Any], shape: tuple[int, ...]
                   ) -> list[Any]:
    """Operands broadcast to a shape, all split as any of them is.

    Raises:
      ShardingTypeError: two of them split a dimension in different ways.
    """
    entries: list[Any] = [None] * len(shape)
    for x in operands:
        start = len(shape) - len(x.shape)
        for dim, (size, entry) in enumerate(zip(x.shape, partitions(x), strict=True), start):
            if size != shape[dim] or entry is None:
                continue
            if entries[dim] not in (None, entry):
                shown = ", ".join(str(partitions(x)) for x in operands if x.shape)
                raise ShardingTypeError("broadcast_arrays got incompatible shardings for "
                                        f"broadcasting: {shown}.")
            entries[dim] = entry
    # What no operand splits may lie in any way: under vmap, what is split may not be visible.
    sharding = NamedSharding(mesh, PartitionSpec(*entries)) if any(entries) else None
    found = []
    for x in operands:
        if x.shape != shape:
            start = len(shape) - len(x.shape)
            x = broadcast_in_dim(x, shape, tuple(range(start, len(shape))))
        found.append(x if sharding is None else resharded(x, sharding))
    return found


def whole_along(x: Any, axes: Sequence[int]) -> Any:
    """The operand, no longer split along the given dimensions."""
    mesh, entries = explicit_mesh(x), partitions(x)
    if mesh is None or not any(entries[axis] for axis in axes):
        return x
    return resharded(x, NamedSharding(mesh, PartitionSpec(*[
        None if dim in axes else entry for dim, entry in enumerate(entries)])))


def refuse_placing(*operands: Any) -> None:
    """Refuses operands whose elements are placed in an array that lies whole on each device.

    Raises:
      ValueError: an operand is split over Explicit axes.
    """
    for x in operands:
        if explicit_mesh(x) is not None and any(partitions(x)):
            raise ValueError(f"Incompatible types for broadcasting: input type={x.aval} and "
                             f"requested type={x.aval.off_mesh()}: use `reshard` on the operand.")


def check_reshape(x: Any, sizes: Sequence[Any]) -> None:
    """Refuses to reshape an array that is split over Explicit axes, but for simple cases.

    Dimensions of one element may come and go anywhere.

    Raises:
      ShardingTypeError: the reshape does more than to split one dimension, or to join several that
        stand next to one another.
    """
    if explicit_mesh(x) is None or not any(partitions(x)):
        return
    long = [(size, entry) for size, entry in zip(x.shape, partitions(x), strict=True) if size != 1]
    old, new = tuple(size for size, _ in long), tuple(size for size in sizes if size != 1)
    if not (_is_one_step(old, new) and _joins_from_the_front(old, new, [e for _, e in long])):
        raise ShardingTypeError(
            "This reshape is not supported. Please specify the sharding of the output via the "
            f"`out_sharding` argument of jax.lax.reshape. Got operand type: {x.aval}, new "
            f"sizes: {tuple(sizes)}")


def check_roll(x: Any, axes: Sequence[int]) -> None:
    """Raises ShardingTypeError where elements would roll over the parts of an axis."""
    if explicit_mesh(x) is not None and any(partitions(x)[axis] is not None for axis in axes):
        raise ShardingTypeError(
            "`a` cannot be sharded on the axis being rolled over. Got arr "
            f"type={x.aval.str_short(short_dtypes=True)} and axis={tuple(axes)}")


def _is_one_step(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether a reshape splits one dimension, or joins several that stand next to one another."""
    fewer, more = sorted((old, new), key=len)
    return old == new or any(
        _has_ends(more, fewer[:dim], fewer[dim + 1:]) for dim in range(len(fewer)))


def _joins_from_the_front(old: Sequence[Any], new: Sequence[Any], entries: Sequence[Any]) -> bool:
    """Whether dimensions that are joined are split only where those before them are."""
    if len(new) >= len(old):
        return True
    for dim in range(len(new)):
        if _has_ends(old, new[:dim], new[dim + 1:]):
            joined = [entry is None for entry in entries[dim:dim + len(old) - len(new) + 1]]
            return joined == sorted(joined)
    return True


def _has_ends(sizes: Sequence[Any], first: Sequence[Any], last: Sequence[Any]) -> bool:
    """Whether sizes begin and end with others, which leave something between them."""
    between = len(sizes) - len(first) - len(last)
    return between > 0 and tuple(sizes[:len(first)]) == tuple(first) and (
        tuple(sizes[len(first) + between:]) == tuple(last))
