"""An application on one shard, and the steps that move values between layouts.

A primitive does on a shard what it does on the global value, as its factor rule says. Where its
parameters hold sizes, or results depend on the shard's position, the primitive says so itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base.errors import InternalError
from maxjax._ir.jaxpr import JaxprEqn
from maxjax._ir.trace import Value
from maxjax._primitives.arithmetic import add, mul
from maxjax._primitives.broadcasting import broadcast_in_dim
from maxjax._primitives.collective import (
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    reduce_scatter_p,
)
from maxjax._primitives.comparison import eq_p
from maxjax._primitives.convert import convert_element_type_p
from maxjax._primitives.creation import zeros_like
from maxjax._primitives.dynamic_slice import dynamic_slice_p
from maxjax._primitives.rules import FactorRule
from maxjax._primitives.slicing import select
from maxjax._sharding.reshard import Step
from maxjax._sharding.specs import Axes, Dims, Mesh, local_shape, product

REDUCTIONS = {"psum": psum_p, "pmax": pmax_p, "pmin": pmin_p}


def position(axes: Axes, mesh: Mesh) -> Any:
    """Which shard this is along several axes, the first the major one; int32."""
    index: Any = np.int32(0)
    for number, axis in enumerate(axes):
        here = axis_index_p.bind(axis_name=axis)
        index = here if not number else add(mul(index, np.int32(mesh[axis])), here)
    return index


def on_first(x: Value, axes: Axes, mesh: Mesh) -> Any:
    """The value on the first shard along some axes, zeros on the others: parts of one sum."""
    first = eq_p.bind(position(axes, mesh), np.int32(0))
    return select(broadcast_in_dim(first, x.shape, ()), zeros_like(x), x)


def apply_step(step: Step, x: Value, mesh: Mesh) -> list[Any]:
    """Binds the primitives of a step on one shard; returns all results, the last is the value."""
    if step.kind in REDUCTIONS:
        return [REDUCTIONS[step.kind].bind(x, axes=step.axes, axis_index_groups=None)]
    source: Any = step.source
    target: Any = step.target
    results = []
    if step.kind == "all_gather":
        for axis in reversed(step.axes):
            x = all_gather_p.bind(x, all_gather_dimension=source, axis_index_groups=None,
                                  axis_name=(axis,), axis_size=mesh[axis], tiled=True)
            results.append(x)
    elif step.kind == "reduce_scatter":
        for axis in step.axes:
            x = reduce_scatter_p.bind(x, scatter_dimension=target, axis_index_groups=None,
                                      axis_name=(axis,), axis_size=mesh[axis], tiled=True)
            results.append(x)
    elif step.kind == "all_to_all":
        results.append(all_to_all_p.bind(
            x, split_axis=target, concat_axis=source, axis_index_groups=None, axis_name=step.axes,
            axis_sizes=tuple(mesh[axis] for axis in step.axes), tiled=True))
    elif step.kind == "slice":
        sizes = list(x.shape)
        sizes[target] //= product(step.axes, mesh)
        starts: list[Any] = [np.int32(0)] * len(sizes)
        starts[target] = mul(position(step.axes, mesh), np.int32(sizes[target]))
        results.append(dynamic_slice_p.bind(x, *starts, slice_sizes=tuple(sizes)))
    else:
        raise InternalError(f"no step is of the kind {step.kind!r}")
    return results


# --- an application -------------------------------------------------------------------------------


class Shard:
    """The position of a shard, for rules that depend on it."""

    def __init__(self, mesh: Mesh):
        self._mesh = mesh

    def position(self, axes: Axes) -> Any:
        """Which shard this is along several axes; int32."""
        return position(axes, self._mesh)

    def count(self, axes: Axes) -> int:
        """The number of shards along several axes."""
        return product(axes, self._mesh)

    def counted_from_start(self, x: Value, dimension: int, axes: Axes) -> Any:
        """Indices along a dimension of this shard as those of the global value."""
        start = mul(self.position(axes), np.int32(x.shape[dimension]))
        return add(x, convert_element_type_p.bind(start, new_dtype=x.dtype, weak_type=False))

    def reversed_along(self, x: Value, axis: str) -> Any:
        """The value of the shard at the mirrored position along an axis."""
        size = self._mesh[axis]
        return ppermute_p.bind(x, axis_name=(axis,), perm=tuple(
            (number, size - 1 - number) for number in range(size)))


def apply_local(eqn: JaxprEqn, rule: FactorRule, operands: Sequence[Value],
                in_dims: Sequence[Dims], out_dims: Sequence[Dims], mesh: Mesh) -> list[Any]:
    """Binds an equation's primitive on one shard's operands.

    Raises:
      InternalError: the result does not have the shape that the factor rule says.
    """
    primitive, params = eqn.primitive, eqn.params
    out_shapes = [local_shape(var.aval.shape, dims, mesh)
                  for var, dims in zip(eqn.outvars, out_dims, strict=True)]
    sharded = primitive.sharded
    if sharded.shard_params is not None:
        params = sharded.shard_params(params, [atom.aval for atom in eqn.invars],
                                      [operand.shape for operand in operands], out_shapes[0])
    if sharded.on_shard is not None:
        result = sharded.on_shard.apply(Shard(mesh), eqn, operands, params, in_dims, out_dims)
    else:
        result = primitive.bind(*operands, **params)
    results = list(result) if primitive.multiple_results else [result]
    for value, shape in zip(results, out_shapes, strict=True):
        if tuple(value.shape) != shape:
            raise InternalError(f"{primitive.name} on a shard gives the shape {value.shape}, but "
                                f"its factor rule {rule} says {shape}")
    return results
