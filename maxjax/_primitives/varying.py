"""Manual mesh axes with types that say which of them a value varies over.

Under ``shard_map`` with ``check_vma`` a value that may differ between the shards along ``x`` has a
type like ``float32[4]{V:x}``; one without ``x`` is the same on all of them. The operands of an
operation must agree: ``ManualAxes.align`` makes each vary as much as the others, by ``pvary``,
before the operation reaches a transformation. So the derivative of a value that all shards share,
through what each makes of it, is a sum over the shards: ``psum_invariant`` and ``pvary`` are each
the transpose of the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base import config, dtypes
from maxjax._base.interrupts import entered_at_once
from maxjax._ir.axes import axis_size
from maxjax._ir.primitive import Primitive, mesh_rules
from maxjax._ir.rule_groups import Communication, Sharded
from maxjax._ir.trace import Array, Trace, context
from maxjax._ir.types import ManualAxisType, ShapedArray
from maxjax._ir.types import writing as type_writing
from maxjax._ir.typing import AxisName, Params
from maxjax._primitives import torus
from maxjax._primitives.arithmetic import add_p, mul_p
from maxjax._primitives.collective import all_gather_abstract, all_gather_batch, axis_index_p
from maxjax._primitives.dynamic_slice import dynamic_slice_p
from maxjax._primitives.layout import squeeze_p
from maxjax._primitives.rules import linear_primitive, replicated_factors, scalar_like
from maxjax._primitives.unreduced import preduced_p, reduced_vary_cast_p, vary_unreduced_cast_p

if TYPE_CHECKING:
    from maxjax._ir.rule_protocols import Varies
    from maxjax._primitives.rules import Linear

_NONE: frozenset[Any] = frozenset()


def vma_of(value: object) -> frozenset[Any]:
    """The manual axes over which a value may vary."""
    aval = getattr(value, "aval", None)
    return _NONE if aval is None else aval.vma


def states_of(value: object) -> ManualAxisType:
    """Along which manual axes a value varies, is unreduced, or is reduced."""
    aval = getattr(value, "aval", None)
    return ManualAxisType() if aval is None else aval.manual_axis_type


class ManualAxes:
    """The manual axes around the running code, in the order of the mesh; equal by value."""

    __slots__ = ("axes", "names")

    def __init__(self, axes: Iterable[AxisName]) -> None:
        self.axes = tuple(axes)
        self.names = frozenset(self.axes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ManualAxes) and self.axes == other.axes

    def __hash__(self) -> int:
        return hash(self.axes)

    def align(self, trace: Trace, primitive: Primitive, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The operands of an operation, all varying over the same axes.

        Collectives have rules of their own, and calls pass operands on as they are.

        Raises:
          ValueError: they do not, and ``jax_auto_pcast`` is off.
        """
        if len(args) < 2 or not primitive.cacheable or primitive.communication is not None:
            return args
        axes = [vma_of(arg) for arg in args]
        union = _NONE.union(*axes)
        if all(own == union for own in axes):
            return args
        if not config.auto_pcast.value:
            raise ValueError(
                f"Primitive {primitive.name} requires varying manual axes to match, but got "
                f"{axes}. Apply `jax.lax.pcast` to the operands, or pass check_vma=False to "
                "`jax.shard_map`.")
        return tuple([
            arg if own == union else self._varying(trace, arg, union - own)
            for arg, own in zip(args, axes, strict=True)])

    def _varying(self, trace: Trace, x: Array, axes: frozenset[AxisName]) -> Any:
        """``x``, varying over these axes too."""
        states = states_of(x)
        reduced = self.ordered(states.reduced & axes)
        if reduced:
            x = trace.apply(reduced_vary_cast_p, (x,), {"axes": reduced})
        rest = self.ordered(axes - states.reduced)
        if not rest:
            return x
        _refuse(x, "unreduced", states.unreduced, rest)
        return trace.apply(pvary_p, (x,), {"axes": rest})

    def ordered(self, axes: Iterable[AxisName]) -> tuple[Any, ...]:
        """These axes in the order of the mesh."""
        wanted = frozenset(axes)
        return tuple(axis for axis in self.axes if axis in wanted)


class manual_axes:
    """``with manual_axes(axes):`` values have types that say over which of them they vary;
    None: nothing is said."""

    __slots__ = ("manual", "previous")

    def __init__(self, axes: Iterable[AxisName] | None) -> None:
        self.manual = None if axes is None else ManualAxes(axes)

    def __enter__(self) -> None:
        self.previous = context.manual
        context.manual = self.manual
        if self.manual is not None:
            type_writing.axis_order = self.manual.axes

    @entered_at_once
    def __exit__(self, *_: object) -> None:
        context.manual = self.previous


def vary(x: Array, axes: Iterable[AxisName]) -> Any:
    """``x``, varying over these axes too; only manual ones are looked at."""
    manual = context.manual
    if manual is None:
        return x
    missing = manual.ordered(frozenset(axes) - vma_of(x))
    if not missing:
        return x
    states = states_of(x)
    _refuse(x, "unreduced", states.unreduced, missing)
    _refuse(x, "reduced", states.reduced, missing)
    return pvary_p.bind(x, axes=missing)


def _refuse(x: Array, state: str, own: frozenset[AxisName], axes: Sequence[AxisName]) -> None:
    if not own.isdisjoint(axes):
        raise ValueError(f"pvary cannot accept args which are {state}. Got "
                         f"{x.aval.str_short(short_dtypes=True)} and axes={set(axes)}")


def like_type(x: Any, aval: ShapedArray) -> Any:
    """``x`` in the states along manual axes that the type has; zeros may become unreduced."""
    manual = context.manual
    if manual is None:
        return x
    wanted, own = aval.manual_axis_type, states_of(x)
    if wanted == own:
        return x
    unreduced = manual.ordered(wanted.unreduced - own.unreduced)
    x = vary(x, (*wanted.varying, *unreduced))
    if unreduced:
        x = vary_unreduced_cast_p.bind(x, axes=unreduced)
    reduced = manual.ordered(wanted.reduced - own.reduced)
    return preduced_p.bind(x, axes=reduced) if reduced else x


def _vary_results(primitive: Primitive, in_avals: tuple[ShapedArray, ...], params: Params,
                  out_avals: tuple[ShapedArray, ...]) -> tuple[ShapedArray, ...]:
    """The types of results, which vary over the axes that the operands vary over."""
    axes = _NONE.union(*[aval.vma for aval in in_avals])
    communication = primitive.communication
    if communication is not None and communication.varies is not None:
        axes = communication.varies(axes, **params)
    return tuple([aval.update(vma=axes) for aval in out_avals]) if axes else out_avals


mesh_rules.varying = _vary_results

# --- the primitives -------------------------------------------------------------------------------
# Running programs have none of these: shard_map erases the types (`_sharding/execute.py`).


def _conversion(name: str, varies: Varies | None = None, **rules: Any) -> Primitive:
    primitive = linear_primitive(
        name,
        batch=lambda size, operands, batch_axes, **params: (
            primitive.bind(*operands, **params), batch_axes[0]),
        communication=Communication(lambda *, axes: axes, varies=varies),
        factors=replicated_factors,
        **rules)
    return primitive


pvary_p = _conversion(
    "pvary",
    transpose=lambda cotangent, operand, *, axes: [psum_invariant_p.bind(cotangent, axes=axes)],
    abstract=lambda x, *, axes: x.update(vma=x.vma.union(axes)),
    sharded=Sharded(on_mesh=True))

psum_invariant_p = _conversion(
    "psum_invariant", sharded=Sharded(passes_unreduced=slice(None)),
    abstract=lambda x, *, axes: x,
    transpose=lambda cotangent, operand, *, axes: [pvary_p.bind(cotangent, axes=axes)],
    varies=lambda own, *, axes: own.difference(axes), cost=torus.PSUM)


def _all_gather_invariant_transpose(cotangent: Array, operand: Array | Linear, *,
                                    all_gather_dimension: int, axis_name: tuple[AxisName, ...],
                                    tiled: bool, **params: object) -> Any:
    """Each shard's own part."""
    dim, shape = all_gather_dimension, cotangent.shape
    size = operand.shape[dim] if tiled else 1
    zero = scalar_like(0, dtypes.int32)
    start = mul_p.bind(flat_index(axis_name), scalar_like(size, dtypes.int32))
    part = dynamic_slice_p.bind(
        vary(cotangent, axis_name), *[
            start if n == dim else vary(zero, axis_name) for n in range(len(shape))],
        slice_sizes=(*shape[:dim], size, *shape[dim + 1:]))
    return [part if tiled else squeeze_p.bind(part, dimensions=(dim,))]


all_gather_invariant_p = linear_primitive(
    "all_gather_invariant", sharded=Sharded(passes_unreduced=slice(None)),
    abstract=all_gather_abstract,
    transpose=_all_gather_invariant_transpose,
    batch=all_gather_batch(lambda: all_gather_invariant_p),
    communication=Communication(
        axis_names=lambda *, axis_name, **params: axis_name,
        varies=lambda own, *, axis_name, **params: own.difference(axis_name)),
    factors=replicated_factors)


def flat_index(names: Sequence[AxisName]) -> Any:
    """The index of the running shard along several axes together, the first one major."""
    index = axis_index_p.bind(axis_name=names[0])
    for name in names[1:]:
        index = add_p.bind(mul_p.bind(index, scalar_like(axis_size(name), dtypes.int32)),
                           axis_index_p.bind(axis_name=name))
    return index
