"""From the program of one shard to a program of global values: how simulated devices run it.

Each input is cut so that every mesh axis that splits it becomes a leading dimension; the program is
batched over those, with their names, so that a collective becomes an operation along them; and
the outputs are put together again. What does not vary along an axis is not batched along it: the
work of replicas is done once. The result is an ordinary jaxpr. A backend with devices of its own
would run the program of one shard on each, and replace this file alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base.source import inherited_source_lines
from maxjax._ir.evaluate import eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Value, aval_of
from maxjax._primitives.layout import reshape, squeeze_p, transpose
from maxjax._primitives.slicing import slice_in_dim
from maxjax._sharding.specs import Dims, Mesh
from maxjax._transforms.batching import batch_flat, to_axis


def global_program(local: ClosedJaxpr, mesh_sizes: Mesh, in_dims: Sequence[Dims],
                   out_dims: Sequence[Dims]) -> ClosedJaxpr:
    """The program of global values.

    Args:
      local: the program of one shard, with collectives over the axes of the mesh.
      mesh_sizes: names and sizes of the axes, in order.
      in_dims: for each input the axes that split each of its dimensions, major first.
      out_dims: likewise for the outputs. Along an axis that is not named all shards must give the
        same value; the first shard's is taken.

    >>> from maxjax._ir.staging import trace_to_jaxpr
    >>> from maxjax._ir.types import ShapedArray
    >>> local = trace_to_jaxpr(lambda x: [x * x.shape[0]], [ShapedArray((2,), np.float32)])
    >>> global_program(local, {"i": 4}, [(("i",),)], [(("i",),)]).in_avals
    [ShapedArray(float32[8])]
    """
    sizes = dict(mesh_sizes)
    avals = [aval.update(
        shape=tuple(size * math.prod(sizes[axis] for axis in axes)
                    for size, axes in zip(aval.shape, dims, strict=True)),
        vma=frozenset()) for aval, dims in zip(local.in_avals, in_dims, strict=True)]
    run = on_shards(lambda *xs: eval_jaxpr(local.jaxpr, local.consts, *xs), sizes, in_dims,
                    out_dims)
    with inherited_source_lines():
        return trace_to_jaxpr(run, avals, local.jaxpr.debug_info)


def on_shards(function: Callable[..., Sequence[Value]], sizes: Mesh,
              in_dims: Sequence[Dims], out_dims: Sequence[Dims]) -> Callable[..., list[Any]]:
    """A function of global values, from one of the values of a shard."""
    split_ins = [_split_by(dims) for dims in in_dims]
    split_outs = [_split_by(dims) for dims in out_dims]
    mapped: Callable[..., Sequence[Any]] = function
    for name, size in reversed(list(sizes.items())):
        mapped = _along(mapped, name, size, [0 if name in split else None for split in split_ins],
                        [name in split for split in split_outs])

    def run(*values: Value) -> list[Any]:
        outputs = mapped(*[cut(value, dims, sizes)
                           for value, dims in zip(values, in_dims, strict=True)])
        return [joined(output, dims, sizes)
                for output, dims in zip(outputs, out_dims, strict=True)]

    return run


def _split_by(dims: Dims) -> frozenset[Any]:
    return frozenset(axis for axes in dims for axis in axes)


def _along(function: Callable[..., Sequence[Value]], name: str, size: int,
           in_axes: Sequence[int | None], varies: Sequence[bool]) -> Callable[..., list[Any]]:
    """The function on all shards along one axis: a leading dimension of what varies."""
    def mapped(*values: Value) -> list[Any]:
        outputs, axes = batch_flat(function, size, values, in_axes, name)
        return [to_axis(output, axis, 0, size) if varying
                else output if axis is None
                else squeeze_p.bind(slice_in_dim(output, 0, 1, axis), dimensions=(axis,))
                for output, axis, varying in zip(outputs, axes, varies, strict=True)]

    return mapped


def _order(dims: Dims, sizes: Mesh) -> tuple[list[Any], list[int], list[int]]:
    """The axes that split a value, in the mesh's order, and the positions of these axes and of each
    dimension's rest once every dimension is reshaped to its axes and its rest."""
    positions: dict[Any, int] = {}
    rests: list[int] = []
    for axes in dims:
        for axis in axes:
            positions[axis] = len(positions) + len(rests)
        rests.append(len(positions) + len(rests))
    names = [name for name in sizes if name in positions]
    return names, [positions[name] for name in names], rests


def cut(value: Value, dims: Dims, sizes: Mesh) -> Any:
    """A global value's shards along leading dimensions, one for each axis that splits it."""
    names, positions, rests = _order(dims, sizes)
    if not names:
        return value
    shape: list[int] = []
    for size, axes in zip(aval_of(value).shape, dims, strict=True):
        parts = [sizes[axis] for axis in axes]
        shape += [*parts, size // math.prod(parts)]
    return _transposed(reshape(value, tuple(shape)), [*positions, *rests])


def joined(shards: Value, dims: Dims, sizes: Mesh) -> Any:
    """The opposite of ``cut``."""
    names, positions, rests = _order(dims, sizes)
    if not names:
        return shards
    order = [*positions, *rests]
    back = [order.index(position) for position in range(len(order))]
    local = aval_of(shards).shape[len(names):]
    shape = tuple(size * math.prod(sizes[axis] for axis in axes)
                  for size, axes in zip(local, dims, strict=True))
    return reshape(_transposed(shards, back), shape)


def _transposed(value: Value, order: list[int]) -> Any:
    return value if order == list(range(len(order))) else transpose(value, order)
