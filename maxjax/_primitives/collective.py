"""Collectives: operations between the elements of a named axis.

An application names the axes that it communicates over. Under ``vmap`` over an axis of such a name
``batch_named`` makes it an operation along the batch axis; over any other axis it stays as it is.
The reductions may have positions among their axes: those are dimensions of the operand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.contract import AXES, NONE, takes
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Communication, Derivative, Host, Printed, Sharded, Values
from maxjax._ir.trace import Array, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import AxisName, Shape
from maxjax._primitives import fitting, torus
from maxjax._primitives.arithmetic import mul
from maxjax._primitives.broadcasting import (
    broadcast_in_dim,
    broadcast_leading,
    reduce_sum,
    reduce_sum_p,
)
from maxjax._primitives.comparison import eq_p
from maxjax._primitives.creation import iota, zeros_like
from maxjax._primitives.gather_plan import GatherDimensionNumbers, GatherScatterMode
from maxjax._primitives.indexing import gather_p
from maxjax._primitives.layout import move_axis, reshape, squeeze_p, transpose
from maxjax._primitives.reduction import reduce_max_p, reduce_min_p
from maxjax._primitives.rules import (
    linear_primitive,
    reduced_shape,
    replicated_factors,
    scalar_like,
)
from maxjax._primitives.slicing import select, slice_in_dim

if TYPE_CHECKING:
    from maxjax._ir.rule_protocols import BatchNamed, Varies
    from maxjax._primitives.rules import Linear

HOST_REASON = "a named axis has no place in a program"


def named(axes: Collection[AxisName]) -> tuple[Any, ...]:
    """The names among axes that may be positions too."""
    return tuple(axis for axis in axes if not isinstance(axis, int))


def _without(axes: Collection[AxisName], name: str) -> tuple[Any, ...]:
    return tuple(axis for axis in axes if isinstance(axis, int) or axis != name)


def _tuple_of(axis_name: AxisName | tuple[AxisName, ...]) -> tuple[Any, ...]:
    return tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)


def unbound(*values: tuple[int, ...], axis_name: AxisName, **params: object) -> NoReturn:
    raise NameError(f"unbound axis name: {_tuple_of(axis_name)[0]}")


def _names(*, axis_name: AxisName | tuple[AxisName, ...], **params: object) -> tuple[Any, ...]:
    return _tuple_of(axis_name)


def _no_groups(axis_index_groups: Sequence[Sequence[int]] | None,
               message: str = "axis_index_groups not supported in vmap") -> None:
    if axis_index_groups is not None:
        raise NotImplementedError(message)


# --- reductions -----------------------------------------------------------------------------------


def _reduce_abstract(x: ShapedArray, *, axes: tuple[int, ...],
                     axis_index_groups: Sequence[Sequence[int]] | None) -> ShapedArray:
    positions = [axis for axis in axes if isinstance(axis, int)]
    if len(set(positions)) != len(positions):
        raise ValueError(f"duplicate value in 'axes' of reduction: {tuple(positions)}")
    if not all(0 <= axis < x.ndim for axis in positions):
        raise ValueError(f"reduction axes {tuple(positions)} contains out-of-bounds indices for "
                         f"{x.str_short()}.")
    return ShapedArray(reduced_shape(x.shape, positions), x.dtype, x.weak_type)


def _reduction(name: str, positional: Primitive, varies: Varies | None = None, **rules: Any
               ) -> Primitive:
    """A reduction that is ``positional`` where all of its axes are positions."""
    evaluated: Any = positional.evaluate
    factors: Any = positional.factors

    def evaluate(x: np.ndarray, *, axes: tuple[int, ...],
                 axis_index_groups: Sequence[Sequence[int]] | None) -> np.ndarray:
        if named(axes):
            unbound(axis_name=named(axes))
        return evaluated(x, axes=axes) if axes else x

    def batch(size: int, operands: Sequence[Array], batch_axes: Sequence[int], *,
              axes: tuple[int, ...], axis_index_groups: Sequence[Sequence[int]] | None
              ) -> tuple[Any, ...]:
        (operand,), (axis,) = operands, batch_axes
        if len(named(axes)) < len(axes):
            operand, axis = move_axis(operand, axis, 0), 0
            axes = tuple(a + 1 if isinstance(a, int) else a for a in axes)
        return primitive.bind(operand, axes=axes, axis_index_groups=axis_index_groups), axis

    def batch_named(mapped: str, size: int, operands: Sequence[Array], batch_axes: Sequence[int],
                    *, axes: tuple[str, ...], axis_index_groups: Sequence[Sequence[int]] | None
                    ) -> tuple[Any, ...]:
        _no_groups(axis_index_groups, "axis_index_groups not supported in vmap collectives. "
                   "Please open a feature request!")
        (operand,), (axis,) = operands, batch_axes
        if axis is not None:
            return primitive.bind(operand, axis_index_groups=None, axes=tuple(
                a + (a >= axis) if isinstance(a, int) else axis if a == mapped else a
                for a in axes)), None
        rest = _without(axes, mapped)
        if rest:
            operand = primitive.bind(operand, axes=rest, axis_index_groups=None)
        return (mul(scalar_like(size, operand.dtype), operand) if name == "psum" else operand), None

    build = linear_primitive if name == "psum" else Primitive
    primitive = build(
        name,
        contract=takes(1, fitting.NO_KEYS, axes=AXES, axis_index_groups=NONE),
        abstract=_reduce_abstract,
        evaluate=evaluate,
        lower=lambda ctx, x, *, axes, **params: ctx.decompose(
            lambda x: positional.bind(x, axes=axes) if axes else x, x),
        host=Host(condition=lambda x, *, axes, **params: HOST_REASON if named(axes) else None),
        batch=batch,
        communication=Communication(
            lambda *, axes, **params: named(axes), batch_named, varies),
        factors=lambda in_avals, out_avals, *, axes, **params: (
            replicated_factors if named(axes) else factors)(
                in_avals, out_avals, axes=axes),
        **rules,
    )
    return primitive


def _psum_transpose(cotangent: Array, operand: Linear, *, axes: tuple[int, ...],
                    axis_index_groups: Sequence[Sequence[int]] | None) -> list[Array]:
    kept = [dim for dim in range(len(operand.shape)) if dim not in axes]
    cotangent = broadcast_in_dim(cotangent, operand.shape, kept)
    if named(axes):
        cotangent = psum_p.bind(cotangent, axes=named(axes), axis_index_groups=axis_index_groups)
    return [cotangent]


psum_p = _reduction("psum", reduce_sum_p, transpose=_psum_transpose,
                    values=Values(may_give_nan=True))
pmax_p, pmin_p = [
    _reduction(name, positional, cost=torus.EXTREME,
               derivative=Derivative(missing="it has none in JAX either"),
               varies=lambda own, *, axes, axis_index_groups: own.difference(axes))
    for name, positional in (("pmax", reduce_max_p), ("pmin", reduce_min_p))]


def _collective(name: str, batch_named: BatchNamed, **rules: Any) -> Primitive:
    """A linear collective over named axes only."""
    return linear_primitive(
        name, evaluate=unbound, host=Host(reason=HOST_REASON),
        communication=Communication(_names, batch_named), factors=replicated_factors, **rules)


# --- ppermute and pbroadcast ----------------------------------------------------------------------


def _take(x: Array, indices: np.ndarray, axis: int) -> Array:
    """The slices with these numbers along an axis."""
    shape = x.shape
    rest = tuple(dim for dim in range(len(shape)) if dim != axis)
    return gather_p.bind(
        x, np.asarray(indices, np.int32)[:, None],
        dimension_numbers=GatherDimensionNumbers(rest, (axis,), (axis,)),
        slice_sizes=tuple(1 if dim == axis else size for dim, size in enumerate(shape)),
        indices_are_sorted=False, unique_indices=False, mode=GatherScatterMode.FILL_OR_DROP,
        fill_value=None)


def _ppermute_batch_named(mapped: str, size: int, operands: Sequence[Array],
                          batch_axes: Sequence[int], *, axis_name: tuple[AxisName, ...],
                          perm: tuple[tuple[int, int], ...]) -> tuple[Any, ...]:
    (operand,), (axis,) = operands, batch_axes
    if _without(axis_name, mapped):
        raise NotImplementedError(
            f"ppermute over the axes {axis_name} together, of which vmap maps {mapped}")
    if len(perm) != size:
        raise AssertionError("Permutation doesn't match the axis size!")
    if axis is None:
        return operand, None
    sources = np.zeros(size, np.int32)
    for source, target in perm:
        sources[target] = source
    return _take(operand, sources, axis), axis


ppermute_p = _collective(
    "ppermute", sharded=Sharded(passes_unreduced=slice(None)),
    abstract=lambda x, **params: x,
    transpose=lambda cotangent, operand, *, axis_name, perm: [ppermute_p.bind(
        cotangent, axis_name=axis_name, perm=tuple((target, source) for source, target in perm))],
    batch=lambda size, operands, axes, **params: (
        ppermute_p.bind(*operands, **params), axes[0]),
    batch_named=_ppermute_batch_named,
    cost=torus.PPERMUTE,
)


def _pbroadcast_transpose(cotangent: Array, operand: Array | Linear, *, axis_name: AxisName,
                          source: int) -> Any:
    name, = _tuple_of(axis_name)
    total = psum_p.bind(cotangent, axes=(name,), axis_index_groups=None)
    is_source = eq_p.bind(axis_index_p.bind(axis_name=name), np.int32(source))
    return [select(is_source, zeros_like(cotangent), total)]


def _pbroadcast_batch_named(mapped: str, size: int, operands: Sequence[Array],
                            batch_axes: Sequence[int], *, axis_name: AxisName, source: int) -> Any:
    if not 0 <= source < size:
        raise AssertionError("collective broadcast doesn't fit in the axis size!")
    if _without(_tuple_of(axis_name), mapped):
        raise NotImplementedError(
            f"pbroadcast over the axes {axis_name} together, of which vmap maps {mapped}")
    (operand,), (axis,) = operands, batch_axes
    if axis is not None:
        operand = squeeze_p.bind(
            slice_in_dim(operand, source, source + 1, axis), dimensions=(axis,))
    return operand, None


pbroadcast_p = _collective(
    "pbroadcast",
    abstract=lambda x, **params: x,
    transpose=_pbroadcast_transpose,
    batch=lambda size, operands, axes, *, axis_name, source: (
        pbroadcast_p.bind(*operands, axis_name=_tuple_of(axis_name), source=source), axes[0]),
    batch_named=_pbroadcast_batch_named,
)

# --- all_gather and reduce_scatter, each the transpose of the other -------------------------------


def _with_size(shape: Shape, dim: int, size: int) -> Any:
    return (*shape[:dim], size, *shape[dim + 1:])


def _check_size(axis_size: int, size: int) -> None:
    """Several names at once have no batching rule in JAX, as the mapped axis has no place there."""
    if axis_size != size:
        raise AssertionError("axis size doesn't match")


def all_gather_abstract(x: ShapedArray, *, all_gather_dimension: int, axis_size: int, tiled: bool,
                        **params: object) -> Any:
    dim, shape = all_gather_dimension, x.shape
    shape = (_with_size(shape, dim, shape[dim] * axis_size) if tiled
             else (*shape[:dim], axis_size, *shape[dim:]))
    return ShapedArray(shape, x.dtype, x.weak_type)


def all_gather_batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def batch(size: int, operands: Sequence[Array], batch_axes: Sequence[int], *,
              all_gather_dimension: int, tiled: bool, **params: object) -> tuple[Any, ...]:
        dim, axis = all_gather_dimension, batch_axes[0]
        if not tiled and dim < axis:
            axis += 1
        elif dim >= axis:
            dim += 1
        return primitive().bind(
            *operands, all_gather_dimension=dim, tiled=tiled, **params), axis
    return batch


def _all_gather_batch_named(mapped: str, size: int, operands: Sequence[Array],
                            batch_axes: Sequence[int], *, all_gather_dimension: int,
                            axis_index_groups: Sequence[Sequence[int]] | None,
                            axis_name: AxisName | tuple[AxisName, ...], axis_size: int,
                            tiled: bool) -> tuple[Any, ...]:
    _no_groups(axis_index_groups)
    _check_size(axis_size, size)
    (operand,), (axis,), dim = operands, batch_axes, all_gather_dimension
    if axis is None:
        operand, axis = broadcast_leading(operand, size), 0
    result = move_axis(operand, axis, dim)
    if tiled:
        shape = result.shape
        result = reshape(result, (*shape[:dim], size * shape[dim + 1], *shape[dim + 2:]))
    return result, None


def _all_gather_transpose(cotangent: Array, operand: Array | Linear, *, all_gather_dimension: int,
                          **params: object) -> Any:
    return [reduce_scatter_p.bind(cotangent, scatter_dimension=all_gather_dimension, **params)]


all_gather_p = _collective(
    "all_gather", sharded=Sharded(passes_unreduced=slice(None)),
    abstract=all_gather_abstract,
    transpose=_all_gather_transpose,
    batch=all_gather_batch(lambda: all_gather_p),
    batch_named=_all_gather_batch_named,
    cost=torus.ALL_GATHER,
)


def reduce_scatter_abstract(x: ShapedArray, *, scatter_dimension: int, axis_size: int, tiled: bool,
                            **params: object) -> Any:
    dim, shape = scatter_dimension, x.shape
    if tiled:
        shape = _with_size(shape, dim, shape[dim] // axis_size)
    else:
        shape = (*shape[:dim], *shape[dim + 1:])
    return ShapedArray(shape, x.dtype, x.weak_type)


def reduce_scatter_batch(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    def batch(size: int, operands: Sequence[Array], batch_axes: Sequence[int], *,
              scatter_dimension: int, tiled: bool, **params: object) -> tuple[Any, ...]:
        dim, axis = scatter_dimension, batch_axes[0]
        if dim >= axis:
            dim += 1
        elif not tiled:
            axis -= 1
        return primitive().bind(*operands, scatter_dimension=dim, tiled=tiled, **params), axis
    return batch


def _reduce_scatter_batch_named(mapped: str, size: int, operands: Sequence[Array],
                                batch_axes: Sequence[int], *, scatter_dimension: int,
                                axis_index_groups: Sequence[Sequence[int]] | None,
                                axis_name: AxisName | tuple[AxisName, ...], axis_size: int,
                                tiled: bool) -> tuple[Any, ...]:
    _no_groups(axis_index_groups)
    _check_size(axis_size, size)
    (operand,), (axis,), dim = operands, batch_axes, scatter_dimension
    total = (mul(operand, scalar_like(size, operand.dtype)) if axis is None
             else reduce_sum(operand, (axis,)))
    if tiled:
        shape = total.shape
        total = reshape(total, (*shape[:dim], size, shape[dim] // size, *shape[dim + 1:]))
    return total, dim


def _reduce_scatter_transpose(cotangent: Array, operand: Array | Linear, *, scatter_dimension: int,
                              **params: object) -> Any:
    return [all_gather_p.bind(cotangent, all_gather_dimension=scatter_dimension, **params)]


reduce_scatter_p = _collective(
    "reduce_scatter", sharded=Sharded(passes_unreduced=slice(None)),
    abstract=reduce_scatter_abstract,
    transpose=_reduce_scatter_transpose,
    batch=reduce_scatter_batch(lambda: reduce_scatter_p),
    batch_named=_reduce_scatter_batch_named,
    cost=torus.REDUCE_SCATTER,
)

# --- all_to_all -----------------------------------------------------------------------------------
# The split dimension is cut into blocks, one for each element of the axis; each gets its own block
# from all, in their order, along the concatenated dimension. ``tiled`` says how it was called.


def _all_to_all_abstract(x: ShapedArray, *, split_axis: int, concat_axis: int,
                         axis_sizes: tuple[int, ...], **params: object) -> Any:
    size, shape = math.prod(axis_sizes), x.shape
    shape = _with_size(shape, split_axis, shape[split_axis] // size)
    shape = _with_size(shape, concat_axis, shape[concat_axis] * size)
    return ShapedArray(shape, x.dtype, x.weak_type)


def _all_to_all_batch(size: int, operands: Sequence[Array], batch_axes: Sequence[int], *,
                      split_axis: int, concat_axis: int, **params: object) -> Any:
    axis = batch_axes[0]
    return all_to_all_p.bind(
        *operands, split_axis=split_axis + (split_axis >= axis),
        concat_axis=concat_axis + (concat_axis >= axis), **params), axis


def _all_to_all_batch_named(mapped: str, size: int, operands: Sequence[Array],
                            batch_axes: Sequence[int], *, split_axis: int, concat_axis: int,
                            axis_index_groups: Sequence[Sequence[int]] | None, axis_name: AxisName,
                            axis_sizes: tuple[int, ...], tiled: bool) -> tuple[Any, ...]:
    _no_groups(axis_index_groups, "Please open a feature request!")
    (operand,), (axis,), dim = operands, batch_axes, split_axis + 1
    x = broadcast_leading(operand, size) if axis is None else move_axis(operand, axis, 0)
    names = _tuple_of(axis_name)
    rest = _without(names, mapped)
    shape = x.shape
    if not rest:
        # (source, ..., target, block, ...) -> (target, ..., source, concatenated, ...)
        x = reshape(x, (*shape[:dim], size, shape[dim] // size, *shape[dim + 1:]))
        order = [dim, *(d for d in range(1, len(x.shape)) if d != dim)]
        order.insert(concat_axis + 1, 0)
        return _merged(transpose(x, order), concat_axis + 1, 1), 0
    position = names.index(mapped)
    sizes = axis_sizes[:position], axis_sizes[position + 1:]
    before, after = map(math.prod, sizes)
    block = shape[dim] // (before * size * after)
    # (source, ..., before, target, after, block, ...) -> (target, before * after, source, ...)
    x = reshape(x, (*shape[:dim], before, size, after, block, *shape[dim + 1:]))
    x = transpose(x, [dim + 1, dim, dim + 2, 0,
                      *(d for d in range(1, len(x.shape)) if not dim <= d < dim + 3)])
    x = all_to_all_p.bind(
        reshape(x, (size, before * after, *x.shape[3:])), split_axis=1, concat_axis=1,
        axis_name=rest, axis_sizes=(*sizes[0], *sizes[1]), axis_index_groups=None, tiled=tiled)
    x = reshape(x, (size, before, after, *x.shape[2:]))
    order = [0, *range(4, len(x.shape))]
    order[concat_axis + 1:concat_axis + 1] = [1, 3, 2]
    return _merged(transpose(x, order), concat_axis + 1, 3), 0


def _merged(x: Array, dim: int, count: int) -> Array:
    """The dimension ``dim`` and the ``count`` after it as one."""
    shape, end = x.shape, dim + count + 1
    return reshape(x, (*shape[:dim], math.prod(shape[dim:end]), *shape[end:]))


def _all_to_all_transpose(cotangent: Array, operand: Array | Linear, *, split_axis: int,
                          concat_axis: int, **params: object) -> Any:
    return [all_to_all_p.bind(
        cotangent, split_axis=concat_axis, concat_axis=split_axis, **params)]


all_to_all_p = _collective(
    "all_to_all", sharded=Sharded(passes_unreduced=slice(None)),
    printed=Printed(lambda params: {
        name: value for name, value in params.items() if name != "axis_sizes"}),
    abstract=_all_to_all_abstract,
    transpose=_all_to_all_transpose,
    batch=_all_to_all_batch,
    batch_named=_all_to_all_batch_named,
    cost=torus.ALL_TO_ALL,
)

# --- axis_index -----------------------------------------------------------------------------------

def _axis_index_abstract(*, axis_name: AxisName) -> Any:
    aval, manual = ShapedArray((), dtypes.int32), context.manual
    if manual is None:
        return aval
    return aval.update(vma=manual.names.intersection(_tuple_of(axis_name)))


axis_index_p = Primitive(
    "axis_index",
    abstract=_axis_index_abstract,
    evaluate=unbound,
    host=Host(reason=HOST_REASON),
    communication=Communication(
        axis_names=_names,
        batch_named=lambda mapped, size, operands, axes, *, axis_name: (
            iota(dtypes.int32, (size,), 0), 0)),
    derivative=Derivative(missing="it has no operands"),
    factors=replicated_factors,
    cacheable=False,      # its type depends on the axes around
)
