"""An application on one shard: the parameters that hold shapes, and what depends on positions.

Everything else of a primitive is the same on a shard as on the whole value: that is what its factor
rule says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.errors import InternalError
from maxjax._ir.jaxpr import JaxprEqn
from maxjax._primitives.arithmetic import add, mul
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
from maxjax._primitives.dynamic_slice import dynamic_slice_p
from maxjax._primitives.rules import FactorRule
from maxjax._primitives.shape import broadcast_in_dim, select, zeros_like
from maxjax._sharding.indexed import apply_rows, needs_rows
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


def on_first(x: Any, axes: Axes, mesh: Mesh) -> Any:
    """The value on the first shard along some axes, zeros on the others: parts of one sum."""
    first = eq_p.bind(position(axes, mesh), np.int32(0))
    return select(broadcast_in_dim(first, x.shape, ()), zeros_like(x), x)


def apply_step(step: Step, x: Any, mesh: Mesh) -> list[Any]:
    """Binds the primitives of a step, on one shard; gives all results, the last one the value."""
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


# --- parameters that hold shapes ------------------------------------------------------------------

Params = dict[str, Any]
Shape = tuple[int, ...]


def _slice(params: Params, eqn: JaxprEqn, shapes: Sequence[Shape], out: Shape) -> Params:
    whole = eqn.invars[0].aval.shape
    limits = tuple(limit if here == size else here for limit, here, size in zip(
        params["limit_indices"], shapes[0], whole, strict=True))
    return {**params, "limit_indices": limits}


def _gather(params: Params, eqn: JaxprEqn, shapes: Sequence[Shape], out: Shape) -> Params:
    sizes = tuple(here if size == whole else size for size, here, whole in zip(
        params["slice_sizes"], shapes[0], eqn.invars[0].aval.shape, strict=True))
    batching = params["dimension_numbers"].operand_batching_dims
    return {**params, "slice_sizes": tuple(
        1 if dim in batching else size for dim, size in enumerate(sizes))}


def _tile(params: Params, eqn: JaxprEqn, shapes: Sequence[Shape], out: Shape) -> Params:
    return {**params, "reps": tuple(
        size // here if here else rep
        for size, here, rep in zip(out, shapes[0], params["reps"], strict=True))}


_PARAMS: dict[str, Callable[[Params, JaxprEqn, Sequence[Shape], Shape], Params]] = {
    "broadcast_in_dim": lambda params, eqn, shapes, out: {**params, "shape": out},
    "reshape": lambda params, eqn, shapes, out: {**params, "new_sizes": out},
    "iota": lambda params, eqn, shapes, out: {**params, "shape": out},
    "dynamic_slice": lambda params, eqn, shapes, out: {**params, "slice_sizes": out},
    "slice": _slice,
    "gather": _gather,
    "tile": _tile,
}


# --- what depends on positions --------------------------------------------------------------------


def shifts(eqn: JaxprEqn) -> bool:
    """Whether an iota can be counted from each shard's own start: not where numbers wrap around."""
    return eqn.primitive.name == "iota" and eqn.params["dtype"] in (
        dtypes.int32, dtypes.uint32, dtypes.int64, dtypes.float32, dtypes.float64)


def _offset_iota(eqn: JaxprEqn, out: Any, dims: Dims, mesh: Mesh) -> Any:
    dimension = eqn.params["dimension"]
    axes = dims[dimension]
    if not axes:
        return out
    start = mul(position(axes, mesh), np.int32(out.shape[dimension]))
    return add(out, convert_element_type_p.bind(
        start, new_dtype=out.dtype, weak_type=False))


def apply_local(eqn: JaxprEqn, rule: FactorRule, operands: Sequence[Any], in_dims: Sequence[Dims],
                out_dims: Sequence[Dims], mesh: Mesh) -> list[Any]:
    """Binds an equation's primitive on one shard's operands.

    Raises:
      InternalError: the result has not the shape that the factor rule says.
    """
    primitive, params = eqn.primitive, eqn.params
    out_shapes = [local_shape(var.aval.shape, dims, mesh)
                  for var, dims in zip(eqn.outvars, out_dims, strict=True)]
    change = _PARAMS.get(primitive.name)
    if change is not None:
        params = change(params, eqn, [operand.shape for operand in operands], out_shapes[0])
    if needs_rows(eqn, in_dims):
        result = apply_rows(eqn, operands, in_dims, params, position, mesh)
    else:
        result = primitive.bind(*operands, **params)
    results = list(result) if primitive.multiple_results else [result]
    for value, shape in zip(results, out_shapes, strict=True):
        if tuple(value.shape) != shape:
            raise InternalError(f"{primitive.name} on a shard gives the shape {value.shape}, but "
                                f"its factor rule {rule} says {shape}")
    if primitive.name == "iota":
        results = [_offset_iota(eqn, results[0], out_dims[0], mesh)]
    if primitive.name == "rev":
        for dimension in eqn.params["dimensions"]:
            for axis in out_dims[0][dimension]:
                results = [reversed_along(results[0], axis, mesh)]
    return results


def reversed_along(x: Any, axis: str, mesh: Mesh) -> Any:
    size = mesh[axis]
    return ppermute_p.bind(x, axis_name=(axis,), perm=tuple(
        (number, size - 1 - number) for number in range(size)))

