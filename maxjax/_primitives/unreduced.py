"""Unreduced and reduced values along manual mesh axes: primitives that change one into the other.

Under ``shard_map`` with ``check_vma`` a value of type ``float32[4]{U:x}`` is unreduced along ``x``:
its shards are the summands. ``float32[4]{R:x}`` is a value that all shards share and whose
cotangent is ``{U:x}``. Each primitive is the transpose of the one beside it:

    varying   -> unreduced  vary_unreduced_cast        reduced   -> varying  reduced_vary_cast
    unreduced -> the same   unreduced_psum             the same  -> reduced  preduced
    unreduced -> varying    unreduced_reduce_scatter   varying   -> reduced  all_gather_reduced
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base.meshes import get_abstract_mesh
from maxjax._base.specs import PartitionSpec
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Communication
from maxjax._ir.trace import Array
from maxjax._ir.types import ManualAxisType, ShapedArray
from maxjax._ir.typing import AxisName
from maxjax._primitives.collective import (
    all_gather_abstract,
    all_gather_batch,
    reduce_scatter_abstract,
    reduce_scatter_batch,
)
from maxjax._primitives.rules import linear_primitive, replicated_factors

if TYPE_CHECKING:
    from maxjax._primitives.rules import Linear


def in_states(aval: ShapedArray, states: ManualAxisType) -> ShapedArray:
    """The type with these states along manual axes."""
    mesh, spec = aval.mesh_spec or (get_abstract_mesh(), PartitionSpec())
    manual = frozenset(mesh.manual_axes)
    spec = spec.update(unreduced=(spec.unreduced - manual) | states.unreduced,
                       reduced=(spec.reduced - manual) | states.reduced)
    plain = aval.update(vma=states.varying, mesh_spec=None)
    if not (mesh.explicit_axes or spec.unreduced or spec.reduced):
        return plain
    return plain.on_mesh(mesh, spec)


def _moved(x: ShapedArray, axes: Collection[AxisName], source: str, target: str, operation: str
           ) -> ShapedArray:
    """The type of ``x`` after the axes have gone from one state to another.

    Raises:
      ValueError: it is not in that state.
    """
    states = x.manual_axis_type
    if source and not getattr(states, source).issuperset(axes):
        if operation == "vary_unreduced_cast" and states.varying:
            raise ValueError(
                f"{operation} is a Varying->Unreduced collective. This means that the axis names "
                f"mentioned in `axes` passed to `{operation}` must be present in "
                f"`jax.typeof(x).mat.varying`. Got axes={tuple(axes)} and "
                f"jax.typeof(x).mat.varying={states.varying}")
        raise ValueError(f"{operation} only accepts inputs that are {source}. Got "
                         f"{x.str_short(short_dtypes=True)}")
    if source:
        states = states.update(unreduced_kind=None,
                               **{source: getattr(states, source).difference(axes)})
    if target:
        states = states.update(**{target: getattr(states, target).union(axes)})
    return in_states(x, states)


def _cast(name: str, source: str, target: str, transpose: Callable[[], Primitive]) -> Primitive:
    primitive = linear_primitive(
        name,
        abstract=lambda x, *, axes: _moved(x, axes, source, target, name),
        transpose=lambda cotangent, operand, *, axes: [transpose().bind(cotangent, axes=axes)],
        batch=lambda size, operands, batch_axes, **params: (
            primitive.bind(*operands, **params), batch_axes[0]),
        communication=Communication(axis_names=lambda *, axes: axes),
        factors=replicated_factors,
        cacheable=False)      # its type depends on the axes around
    return primitive


vary_unreduced_cast_p = _cast("vary_unreduced_cast", "varying", "unreduced",
                              lambda: reduced_vary_cast_p)
reduced_vary_cast_p = _cast("reduced_vary_cast", "reduced", "varying",
                            lambda: vary_unreduced_cast_p)
unreduced_psum_p = _cast("unreduced_psum", "unreduced", "", lambda: preduced_p)
preduced_p = _cast("preduced", "", "reduced", lambda: unreduced_psum_p)


def _all_gather_abstract(x: ShapedArray, *, axis_name: Sequence[AxisName], **params: Any
                         ) -> ShapedArray:
    found = _moved(x, axis_name, "varying", "reduced", "all_gather_reduced")
    return in_states(all_gather_abstract(x.off_mesh(), **params), found.manual_axis_type)


def _reduce_scatter_abstract(x: ShapedArray, *, axis_name: Sequence[AxisName], **params: Any
                             ) -> ShapedArray:
    found = _moved(x, axis_name, "unreduced", "varying", "unreduced_reduce_scatter")
    return in_states(reduce_scatter_abstract(x.off_mesh(), **params), found.manual_axis_type)


def _all_gather_transpose(cotangent: Array, operand: Array | Linear, *, all_gather_dimension: int,
                          **params: object) -> Any:
    return [unreduced_reduce_scatter_p.bind(
        cotangent, scatter_dimension=all_gather_dimension, **params)]


def _reduce_scatter_transpose(cotangent: Array, operand: Array | Linear, *, scatter_dimension: int,
                              **params: object) -> Any:
    return [all_gather_reduced_p.bind(
        cotangent, all_gather_dimension=scatter_dimension, **params)]


all_gather_reduced_p = linear_primitive(
    "all_gather_reduced",
    abstract=_all_gather_abstract,
    transpose=_all_gather_transpose,
    batch=all_gather_batch(lambda: all_gather_reduced_p),
    communication=Communication(axis_names=lambda *, axis_name, **params: axis_name),
    factors=replicated_factors,
    cacheable=False)

unreduced_reduce_scatter_p = linear_primitive(
    "unreduced_reduce_scatter",
    abstract=_reduce_scatter_abstract,
    transpose=_reduce_scatter_transpose,
    batch=reduce_scatter_batch(lambda: unreduced_reduce_scatter_p),
    communication=Communication(axis_names=lambda *, axis_name, **params: axis_name),
    factors=replicated_factors,
    cacheable=False)
