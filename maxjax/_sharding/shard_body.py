"""The body of ``shard_map`` in the form in which it is run.

Types no longer mention manual or Explicit axes, so operations that only change types are gone.
Collectives are those that batching knows: several axes are taken one after the other, and groups,
and permutations that leave some shards without a value, select from the values of all shards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from maxjax._base import config, dtypes
from maxjax._base.specs import AxisName
from maxjax._higher_order.buffer_callback import buffer_callback_p
from maxjax._higher_order.callback import ON_EACH_SHARD, io_callback_p, pure_callback_p
from maxjax._higher_order.debugging import debug_callback_p, debug_print_p
from maxjax._ir.axes import axis_size, named_axes
from maxjax._ir.evaluate import apply_equation, eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, derived
from maxjax._ir.primitive import Primitive
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Value, context
from maxjax._ir.types import ShapedArray
from maxjax._primitives.arithmetic import mul
from maxjax._primitives.broadcasting import broadcast_in_dim, reduce_sum_p
from maxjax._primitives.collective import (
    all_gather_p,
    all_to_all_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    reduce_scatter_p,
)
from maxjax._primitives.comparison import lt_p
from maxjax._primitives.creation import zeros_like
from maxjax._primitives.dynamic_slice import dynamic_slice_p
from maxjax._primitives.gather_plan import GatherDimensionNumbers, GatherScatterMode
from maxjax._primitives.indexing import gather_p
from maxjax._primitives.layout import move_axis, reshape, squeeze_p
from maxjax._primitives.ragged import of_collectives, ragged_all_to_all_p
from maxjax._primitives.reduction import reduce_max_p, reduce_min_p
from maxjax._primitives.rules import scalar_like
from maxjax._primitives.sharding import reshard_p
from maxjax._primitives.slicing import select
from maxjax._primitives.unreduced import (
    all_gather_reduced_p,
    preduced_p,
    reduced_vary_cast_p,
    unreduced_psum_p,
    unreduced_reduce_scatter_p,
    vary_unreduced_cast_p,
)
from maxjax._primitives.varying import (
    all_gather_invariant_p,
    flat_index,
    manual_axes,
    psum_invariant_p,
    pvary_p,
)
from maxjax._transforms.simplify import inline_calls

Sizes = tuple[tuple[AxisName, int], ...]
# The numbers of the shards of each group.
Groups = Sequence[Sequence[int]]


class Rules(Protocol):
    """What replaces equations of a body; equal by value.

    Attributes:
      rules: for a primitive a function of the operands and parameters.
    """

    @property
    def rules(self) -> Mapping[Any, Callable[..., Any]]: ...


@derived
def runnable(closed: ClosedJaxpr, sizes: Sizes, copied: tuple[AxisName, ...] = (),
             rules: Rules | None = None, called: tuple[AxisName, ...] = ()) -> ClosedJaxpr:
    """The program of one shard, for ``global_program``.

    Args:
      sizes: the names and sizes of the axes around.
      copied: the axes along which every shard prints, even a value that is the same on all.
      rules: what collectives become; None: those that batching knows.
      called: the axes along which every shard makes its own calls of ``io_callback``, even with
        values that are the same on all: what they do, and return, may differ.
    """
    inlined = inline_calls(closed)

    def run(*args: Value) -> list[Any]:
        return _run(inlined.jaxpr, inlined.consts, args, sizes, copied, rules, called)

    with named_axes(sizes), manual_axes(None):
        return trace_to_jaxpr(run, [_plain(aval) for aval in closed.in_avals],
                              closed.jaxpr.debug_info)


def _plain(aval: ShapedArray) -> ShapedArray:
    return aval.off_mesh()


def _run(jaxpr: Jaxpr, consts: Sequence[Value], args: Sequence[Value], sizes: Sizes,
         copied: tuple[AxisName, ...], rules: Rules | None, called: tuple[AxisName, ...]
         ) -> list[Any]:
    replacing = RULES if rules is None else rules.rules

    def run(eqn: JaxprEqn, operands: Sequence[Value]) -> Sequence[Any]:
        rule = replacing.get(eqn.primitive)
        if rule is not None:
            result = rule(*operands, **eqn.params)
            return result if eqn.primitive.multiple_results else [result]
        if not eqn.primitive.cacheable:
            params = {name: _param(value, sizes, copied, rules, called)
                      for name, value in eqn.params.items()}
            if eqn.primitive in _CALLBACKS and params["vmap_method"] is None:
                params["vmap_method"] = "sequential"
            if eqn.primitive is io_callback_p:
                if params["ordered"]:
                    params["ordered"] = ON_EACH_SHARD
                if called:
                    params["callback"] = _OfShard(params["callback"])
                    operands = [flat_index(called), *operands]
            eqn = eqn.replace(params=params)
        for _ in range(_extra_prints(eqn, sizes, copied)):
            apply_equation(eqn, operands)
        return apply_equation(eqn, operands)

    return eval_jaxpr(jaxpr, consts, *args, rule=run)


_CALLBACKS = (pure_callback_p, buffer_callback_p)


@dataclass(frozen=True)
class _OfShard:
    """A callback that is also given which shard calls it."""

    callback: Callable[..., Any]

    def __call__(self, shard: np.ndarray, *args: np.ndarray) -> Any:
        return self.callback(*args)


def _extra_prints(eqn: JaxprEqn, sizes: Sizes, copied: tuple[AxisName, ...]) -> int:
    """How many more shards print the same value."""
    if not copied or eqn.primitive not in (debug_callback_p, debug_print_p):
        return 0
    varying = frozenset().union(*[atom.aval.vma for atom in eqn.invars])
    return math.prod(size for name, size in sizes if name in copied and name not in varying) - 1


def _param(value: object, sizes: Sizes, copied: tuple[AxisName, ...], rules: Rules | None,
           called: tuple[AxisName, ...]) -> Any:
    if isinstance(value, ClosedJaxpr):
        return runnable(value, sizes, copied, rules, called)
    if isinstance(value, ShapedArray):
        return _plain(value)
    if type(value) is tuple:
        return tuple([_param(item, sizes, copied, rules, called) for item in value])
    return value


# --- collectives ----------------------------------------------------------------------------------


def _gathered(x: Value, names: Sequence[AxisName]) -> Any:
    """The values of all shards along the axes, stacked along a new first dimension."""
    shape = x.shape
    for name in reversed(names):
        x = all_gather_p.bind(x, all_gather_dimension=0, axis_index_groups=None,
                              axis_name=(name,), axis_size=axis_size(name), tiled=False)
    return reshape(x, (math.prod(axis_size(name) for name in names), *shape))


def _row(table: np.ndarray, names: Sequence[AxisName]) -> Any:
    """The running shard's row of a table with one for each."""
    index = flat_index(names)
    zero = scalar_like(0, dtypes.int32)
    row = dynamic_slice_p.bind(table, index, *[zero] * (table.ndim - 1),
                               slice_sizes=(1, *table.shape[1:]))
    return squeeze_p.bind(row, dimensions=(0,))


def _taken(x: Value, rows: Value) -> Any:
    """The rows with those numbers."""
    rest = x.shape[1:]
    return gather_p.bind(
        x, reshape(rows, (*rows.shape, 1)),
        dimension_numbers=GatherDimensionNumbers(tuple(range(1, len(rest) + 1)), (0,), (0,)),
        slice_sizes=(1, *rest), indices_are_sorted=False, unique_indices=False,
        mode=GatherScatterMode.PROMISE_IN_BOUNDS, fill_value=None)


def _of_group(x: Value, names: Sequence[AxisName], groups: Groups) -> tuple[Any, Any]:
    """The values of the running shard's group, and its position in the group."""
    if len({len(group) for group in groups}) > 1:
        raise NotImplementedError(f"axis_index_groups of different sizes: {groups}")
    members, positions = _members(names, groups)
    return _taken(_gathered(x, names), _row(members, names)), _row(positions, names)


def _members(names: Sequence[AxisName], groups: Groups) -> tuple[Any, Any]:
    """For each shard the members of its group, padded with the first where it is shorter than
    others, and its position among them."""
    count = math.prod(axis_size(name) for name in names)
    if sorted(shard for group in groups for shard in group) != list(range(count)):
        raise ValueError("axis_index_groups must cover all indices exactly once")
    longest = max(map(len, groups))
    members = np.zeros((count, longest), np.int32)
    positions = np.zeros(count, np.int32)
    for group in groups:
        members[list(group)] = [*group, *[group[0]] * (longest - len(group))]
        positions[list(group)] = range(len(group))
    return members, positions


def _sum(x: Value, *, axes: Sequence[AxisName]) -> Any:
    return psum_p.bind(x, axes=axes, axis_index_groups=None)


def _reduction(primitive: Primitive, positional: Primitive) -> Callable[..., Any]:
    def reduced(x: Value, *, axes: Sequence[AxisName], axis_index_groups: Groups | None = None
                ) -> Any:
        groups = axis_index_groups
        if groups is None:
            return primitive.bind(x, axes=axes, axis_index_groups=None)
        members, _ = _members(axes, groups)
        values = _taken(_gathered(x, axes), _row(members, axes))
        sizes = {shard: len(group) for group in groups for shard in group}
        if primitive is psum_p and len(set(sizes.values())) > 1:
            within = np.array([[position < sizes[shard] for position in range(members.shape[1])]
                               for shard in range(len(members))])
            mask = broadcast_in_dim(_row(within, axes), values.shape, (0,))
            values = select(mask, zeros_like(values), values)
        return positional.bind(values, axes=(0,))
    return reduced


def _all_gather(x: Value, *, all_gather_dimension: int, axis_name: Sequence[AxisName],
                tiled: bool, axis_size: int, axis_index_groups: Groups | None = None) -> Any:
    dim = all_gather_dimension
    if axis_index_groups is None:
        gathered = _gathered(x, axis_name)
    else:
        gathered, _ = _of_group(x, axis_name, axis_index_groups)
    gathered = move_axis(gathered, 0, dim)
    return flattened(gathered, dim) if tiled else gathered


def flattened(x: Value, dim: int) -> Any:
    """Merges a dimension with the next one."""
    shape = x.shape
    return reshape(x, (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2:]))


def _reduce_scatter(x: Value, *, scatter_dimension: int, axis_name: Sequence[AxisName],
                    axis_size: int, tiled: bool, axis_index_groups: Groups | None = None) -> Any:
    if axis_index_groups is None and len(axis_name) == 1:
        return reduce_scatter_p.bind(
            x, scatter_dimension=scatter_dimension, axis_name=axis_name, axis_size=axis_size,
            axis_index_groups=None, tiled=tiled)
    if axis_index_groups is None:
        total = psum_p.bind(x, axes=tuple(axis_name), axis_index_groups=None)
        position = flat_index(axis_name)
    else:
        members, position = _of_group(x, axis_name, axis_index_groups)
        total = reduce_sum_p.bind(members, axes=(0,))
    part = _block(total, scatter_dimension, axis_size, position)
    return part if tiled else squeeze_p.bind(part, dimensions=(scatter_dimension,))


def _block(x: Value, dim: int, count: int, number: Value) -> Any:
    """One of ``count`` equal parts along a dimension."""
    shape = x.shape
    size = shape[dim] // count
    zero = scalar_like(0, dtypes.int32)
    start = mul(number, scalar_like(size, dtypes.int32))
    return dynamic_slice_p.bind(
        x, *[start if n == dim else zero for n in range(len(shape))],
        slice_sizes=(*shape[:dim], size, *shape[dim + 1:]))


def _all_to_all(x: Value, *, split_axis: int, concat_axis: int, axis_name: Sequence[AxisName],
                axis_index_groups: Groups | None, **params: object) -> Any:
    if axis_index_groups is None:
        return all_to_all_p.bind(x, split_axis=split_axis, concat_axis=concat_axis,
                                 axis_name=axis_name, axis_index_groups=None, **params)
    names = axis_name if isinstance(axis_name, tuple) else (axis_name,)
    members, position = _of_group(x, names, axis_index_groups)
    parts = _block(members, split_axis + 1, len(axis_index_groups[0]), position)
    return flattened(move_axis(parts, 0, concat_axis), concat_axis)


def check_permutation(names: Sequence[AxisName], sizes: Sequence[tuple[AxisName, int]],
                      perm: Sequence[tuple[int, int]], count: int) -> None:
    """Checks what ppermute is given, of ``count`` shards: that its axes are in the order of the
    mesh's, unless the option is off (then shards are counted in the order of the names), and that
    each shard sends and gets once.

    Raises:
      RuntimeError, ValueError, IndexError: it is not so.
    """
    several = [name for name, size in sizes if name in names and size > 1]
    if config.raise_on_ppermute_sort_diff.value and several != [
            name for name in names if name in several]:
        raise RuntimeError(
            "Make sure that the axis_name passed to jax.lax.ppermute is in the same order as the "
            f"axis_names declared on the mesh: got {tuple(names)}. If you want to allow different "
            'order, set jax.config.update("jax_raise_on_ppermute_sort_diff", False).')
    for ends in zip(*perm, strict=True):
        if len(set(ends)) < len(ends):
            raise ValueError(f"ppermute sources and destinations must be unique, got {perm}.")
        if any(not 0 <= end < count for end in ends):
            raise IndexError(f"ppermute of {count} shards got {perm}")


def _ppermute(x: Value, *, axis_name: Sequence[AxisName], perm: Sequence[tuple[int, int]]) -> Any:
    count = math.prod(axis_size(name) for name in axis_name)
    check_permutation(axis_name, context.axis_env, perm, count)
    if len(axis_name) == 1 and len(perm) == count:
        return ppermute_p.bind(x, axis_name=axis_name, perm=perm)
    sources = np.full((count, 1), -1, np.int32)
    for source, target in perm:
        sources[target] = source
    source = _row(sources, axis_name)
    value = squeeze_p.bind(_taken(_gathered(x, axis_name), source), dimensions=(0,))
    nothing = lt_p.bind(squeeze_p.bind(source, dimensions=(0,)), scalar_like(0, dtypes.int32))
    return select(nothing, value, zeros_like(value))


# Types and no values change.
IDENTITIES = (pvary_p, vary_unreduced_cast_p, reduced_vary_cast_p, preduced_p, reshard_p)

RULES: dict[Any, Callable[..., Any]] = {
    **dict.fromkeys(IDENTITIES, lambda x, **params: x),
    unreduced_psum_p: _sum,
    psum_invariant_p: _sum,
    psum_p: _reduction(psum_p, reduce_sum_p),
    pmax_p: _reduction(pmax_p, reduce_max_p),
    pmin_p: _reduction(pmin_p, reduce_min_p),
    all_gather_p: _all_gather,
    all_gather_invariant_p: _all_gather,
    all_gather_reduced_p: _all_gather,
    reduce_scatter_p: _reduce_scatter,
    unreduced_reduce_scatter_p: _reduce_scatter,
    all_to_all_p: _all_to_all,
    ragged_all_to_all_p: of_collectives(_all_gather, _all_to_all),
    ppermute_p: _ppermute,
}


class _OnlyTypes:
    """Rules under which collectives stay, and types say nothing of axes."""

    rules: Mapping[Any, Callable[..., Any]] = {
        **dict.fromkeys(IDENTITIES, lambda x, **params: x),
        **dict.fromkeys((psum_invariant_p, unreduced_psum_p), lambda x, *, axes: psum_p.bind(
            x, axes=tuple(axes), axis_index_groups=None)),
        **dict.fromkeys((all_gather_invariant_p, all_gather_reduced_p), lambda x, **params: (
            all_gather_p.bind(x, **{"axis_index_groups": None, **params}))),
        unreduced_reduce_scatter_p: lambda x, **params: reduce_scatter_p.bind(
            x, **{"axis_index_groups": None, **params}),
    }


only_types = _OnlyTypes()
