"""Identities that say how their value lies over a mesh.

``sharding_constraint`` constrains the propagation, along Auto axes. ``reshard`` moves a value to
the spec that its type has from then on, along Explicit axes; the Auto axes of its mesh leave the
type. ``device_put`` moves a value outside programs; within one a ``Device`` has no effect, and a
sharding has that of a constraint.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from maxjax._base.meshes import AbstractMesh, AxisType, Mesh, get_abstract_mesh
from maxjax._base.meshes import use as mesh_use
from maxjax._base.shardings import NamedSharding, Sharding, SingleDeviceSharding
from maxjax._base.specs import UNCONSTRAINED, PartitionSpec, SpecEntry, entry_axes, spec_axes
from maxjax._ir.contract import EACH_NONE, each, takes
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn, derived, every_equation
from maxjax._ir.linearity import ALL_REDUCED_FIRST
from maxjax._ir.primitive import Primitive, mesh_rules
from maxjax._ir.rule_groups import Outside, Printed, Sharded
from maxjax._ir.trace import Array, context
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import AxisName, Params
from maxjax._primitives import costs, fitting
from maxjax._primitives.rules import axis_factors, factor_rule, linear_primitive
from maxjax._primitives.unreduced import in_states

if TYPE_CHECKING:
    from maxjax._primitives.rules import Linear
    from maxjax._runtime.devices import Device


def type_on(aval: ShapedArray, sharding: Sharding | Device) -> ShapedArray:
    """The type of a value with a sharding.

    Raises:
      ValueError: a dimension cannot be divided along an Explicit axis, or the spec is longer than
        the shape.
    """
    if not isinstance(sharding, NamedSharding) or not sharding.in_types:
        return aval.off_mesh()
    mesh_use.ever_set = True
    mesh = sharding.mesh.abstract_mesh
    sizes = dict(mesh.shape_tuple)
    explicit = set(mesh.explicit_axes)
    entries = [tuple(axis for axis in entry_axes(entry) if axis in explicit)
               for entry in sharding.spec.partitions]
    spec = sharding.spec.update(partitions=entries)
    if len(entries) > aval.ndim:
        return aval.on_mesh(mesh, spec)      # there is no such type, which it says
    for dim, (size, axes) in enumerate(zip(aval.shape, entries, strict=False)):
        count = math.prod(sizes[axis] for axis in axes)
        if size % count:
            full = (*spec.partitions, *[None] * (aval.ndim - len(spec)))
            shown = NamedSharding(mesh, PartitionSpec(*full))
            raise ValueError(
                f"Sharding spec {tuple(sharding.spec.partitions)} implies that array axis {dim} is "
                f"partitioned {count} times, but does not evenly divide the dimension size "
                f"{size}. Got shape: {aval.shape} and sharding {shown!r}")
    return aval.on_mesh(mesh, spec)


def freed(value: Any) -> Any:
    """An operand without Explicit axes in its type."""
    on_mesh = None if value is None else getattr(getattr(value, "aval", None), "mesh_spec", None)
    if on_mesh is None:
        return value
    return reshard_p.bind(
        value, dst_sharding=NamedSharding(free_mesh(on_mesh[0]), PartitionSpec()))


def _identity(name: str, **rules: Any) -> Primitive:
    return linear_primitive(
        name,
        evaluate=lambda x, **params: x,
        lower=lambda ctx, x, **params: x,
        factors=lambda in_avals, out_avals, **params: axis_factors(in_avals, out_avals),
        cacheable=False,
        **rules)


def with_dimension(spec: PartitionSpec, dim: int, entry: SpecEntry | None) -> PartitionSpec:
    """The spec of a value with one more dimension."""
    entries = [*spec.partitions, *[None] * (dim - len(spec))]
    return spec.update(partitions=(*entries[:dim], entry, *entries[dim:]))


# --- sharding_constraint --------------------------------------------------------------------------


def _check_spmd_axis(entry: SpecEntry, sharding: Sharding) -> None:
    """Raises ValueError where a sharding cannot be extended by ``spmd_axis_name`` of ``vmap``."""
    if not isinstance(sharding, NamedSharding):
        raise ValueError(
            "If you are using spmd_axis_name parameter of jax.vmap, please make sure to run your "
            "jitted function inside the mesh context manager. Only "
            "`jax.lax.with_sharding_constraint` with `jax.sharding.NamedSharding` as an input can "
            "be transformed with spmd_axis_name batching rules outside of an explicit mesh context "
            f"manager scope {sharding!r}")
    axes = entry_axes(entry)
    if not set(axes).isdisjoint(spec_axes(sharding.spec)):
        raise ValueError(f"vmap spmd_axis_name {axes} cannot appear in with_sharding_constraint "
                         f"spec, but got spec {sharding.spec}")


def _constraint_batch(size: int, operands: Sequence[Array], axes: Sequence[int], *,
                      sharding: Sharding, unconstrained_dims: frozenset[int], **params: object
                      ) -> tuple[Array, int]:
    axis, = axes
    entry = context.batch_spmd_axis
    if entry is not None:
        _check_spmd_axis(entry, sharding)
    if isinstance(sharding, NamedSharding):
        is_open = entry is None and bool(sharding.mesh.auto_axes)
        entries = with_dimension(sharding.spec, axis, UNCONSTRAINED if is_open else entry)
        full = (*entries, *[None] * (len(operands[0].shape) - len(entries)))
        sharding = sharding.update(spec=sharding.spec.update(partitions=full))
    unconstrained = {dim + (dim >= axis) for dim in unconstrained_dims}
    if entry is None and (not isinstance(sharding, NamedSharding) or sharding.mesh.auto_axes):
        unconstrained.add(axis)
    return sharding_constraint_p.bind(
        *operands, sharding=sharding, unconstrained_dims=frozenset(unconstrained), **params), axis


sharding_constraint_p = _identity(
    "sharding_constraint",
    abstract=lambda x, **params: x,
    transpose=lambda cotangent, operand, **params: [
        sharding_constraint_p.bind(cotangent, **params)],
    batch=_constraint_batch,
    outside=Outside(placement=lambda *, sharding, **params: sharding),
    cost=costs.FREE,
)

# --- device_put -----------------------------------------------------------------------------------


class ArrayCopySemantics(enum.Enum):
    """Whether a value that is put somewhere may share memory with what it was."""

    REUSE_INPUT = enum.auto()
    ALWAYS_COPY = enum.auto()
    DONATE_INPUT = enum.auto()

    def __repr__(self) -> str:
        return str(self)


def _put_jvp(primals: Sequence[Array], tangents: Sequence[Array], **params: tuple[object, ...]
             ) -> tuple[list[Array], list[Array | None]]:
    outs = device_put_p.bind(*primals, **params)
    places = [place for place, tangent in enumerate(tangents) if tangent is not None]
    if not places:
        return outs, [None] * len(primals)
    moved = device_put_p.bind(*[tangents[place] for place in places], **{
        name: tuple([values[place] for place in places]) for name, values in params.items()})
    given = dict(zip(places, moved, strict=True))
    return outs, [given.get(place) for place in range(len(primals))]


def _put_transpose(cotangents: Sequence[Array], *operands: Linear, devices: Sequence[object],
                   srcs: tuple[SingleDeviceSharding | None, ...],
                   copy_semantics: tuple[ArrayCopySemantics, ...]) -> list[Array]:
    """Each cotangent, put where the operand was, as far as that is known."""
    results = []
    for cotangent, operand, device, src in zip(cotangents, operands, devices, srcs, strict=True):
        if cotangent is None:
            results.append(None)
        elif src is None and operand.aval.mesh_spec is not None:
            results.append(reshard_p.bind(
                cotangent, dst_sharding=NamedSharding(*operand.aval.mesh_spec)))
        else:
            results += device_put_p.bind(
                cotangent, devices=(src,), srcs=(device,),
                copy_semantics=(ArrayCopySemantics.ALWAYS_COPY,))
    return results


def _put_batch(size: int, operands: Sequence[Array], axes: Sequence[int], **params: object
               ) -> tuple[list[Array], list[int]]:
    # As JAX has it, a sharding is that of the whole batch.
    return device_put_p.bind(*operands, **params), list(axes)


device_put_p = Primitive(
    "device_put",
    contract=takes(
        (0, None), fitting.transfers, devices=EACH_NONE, srcs=EACH_NONE,
        copy_semantics=each("operand", lambda item: type(item) is ArrayCopySemantics,
                            "ArrayCopySemantics")),
    linearity=ALL_REDUCED_FIRST,
    abstract=lambda *avals, devices, **params: [
        aval if device is None else _resharded(aval, device)
        for aval, device in zip(avals, devices, strict=True)],
    evaluate=lambda *xs, **params: list(xs),
    lower=lambda ctx, *xs, **params: list(xs),
    jvp=_put_jvp,
    transpose=_put_transpose,
    batch=_put_batch,
    factors=lambda in_avals, out_avals, **params: factor_rule(
        [[(place, dim) for dim in range(aval.ndim)] for place, aval in enumerate(in_avals)],
        [[(place, dim) for dim in range(aval.ndim)] for place, aval in enumerate(out_avals)],
        in_avals, out_avals),
    outside=Outside(placement=lambda *, devices, **params: devices),
    cacheable=False,
    sharded=Sharded(on_mesh=True),
    multiple_results=True,
    cost=costs.FREE,
)

# --- reshard ------------------------------------------------------------------------


def _back(cotangent: Array, operand: Array | Linear, dst_sharding: NamedSharding) -> Any:
    """The cotangent, with the operand's sharding."""
    on_mesh = operand.aval.mesh_spec
    if on_mesh is None:
        free = free_mesh(dst_sharding.mesh.abstract_mesh)
        return [reshard_p.bind(cotangent, dst_sharding=NamedSharding(free, PartitionSpec()))]
    mesh, spec = on_mesh
    return [reshard_p.bind(cotangent, dst_sharding=NamedSharding(mesh, spec.to_ct_spec()))]


def free_mesh(mesh: AbstractMesh, axes: Sequence[AxisName] | None = None) -> AbstractMesh:
    """The mesh with Explicit axes, all or the given ones, made Auto."""
    chosen = mesh.explicit_axes if axes is None else axes
    return mesh.update_axis_types(dict.fromkeys(chosen, AxisType.Auto))


def _resharded(x: ShapedArray, sharding: NamedSharding) -> Any:
    aval = type_on(x, sharding)
    return aval if x.plain else in_states(aval, x.manual_axis_type)


def _reshard_batch(size: int, operands: Sequence[Array], axes: Sequence[int], *,
                   dst_sharding: NamedSharding) -> tuple[Array, int]:
    axis, = axes
    entry = context.batch_spmd_axis or context.batch_entry
    if not set(dst_sharding.mesh.explicit_axes).issuperset(entry_axes(entry)):
        entry = None
    spec, ndim = dst_sharding.spec, operands[0].ndim - 1
    if not any(spec.partitions[ndim:]):
        spec = spec.update(partitions=spec.partitions[:ndim])      # as JAX, only here
    return reshard_p.bind(*operands, dst_sharding=dst_sharding.update(
        spec=with_dimension(spec, axis, entry))), axis


reshard_p = _identity(
    "reshard",
    printed=Printed(lambda params: {}),
    abstract=lambda x, *, dst_sharding: _resharded(x, dst_sharding),
    transpose=lambda cotangent, operand, *, dst_sharding: _back(
        cotangent, operand, dst_sharding),
    batch=_reshard_batch,
    outside=Outside(placement=lambda *, dst_sharding: dst_sharding),
)


def _as_cotangent(value: Array, aval: ShapedArray) -> Array:
    assert aval.mesh_spec is not None
    mesh, spec = aval.mesh_spec
    return reshard_p.bind(value, dst_sharding=NamedSharding(mesh, spec.to_ct_spec()))


mesh_rules.as_cotangent = _as_cotangent


def along_batch(repeated: Array, axis: int, entry: SpecEntry | None = None) -> Array:
    """A value that was repeated along ``axis`` to be mapped there, split over the Explicit axes of
    ``entry``, or else of the batch that the running rule maps."""
    entry = context.batch_entry if entry is None else entry
    if entry is None:
        return repeated
    # A value without a mesh counts as replicated over the mesh around the code.
    mesh, spec = repeated.aval.mesh_spec or (
        get_abstract_mesh(), PartitionSpec(*[None] * repeated.ndim))
    if not set(mesh.explicit_axes).difference(spec_axes(spec)).issuperset(entry_axes(entry)):
        return repeated
    entries = [*spec.partitions[:axis], entry, *spec.partitions[axis + 1:]]
    return reshard_p.bind(
        repeated, dst_sharding=NamedSharding(mesh, spec.update(partitions=entries)))


def inner_mesh(closed: ClosedJaxpr) -> Mesh | None:
    """The mesh that a program itself names."""
    for _, sharding in named_shardings(closed):
        mesh = getattr(sharding, "mesh", None)
        if isinstance(mesh, Mesh):
            return mesh
    return None


@derived
def named_shardings(closed: ClosedJaxpr) -> Sequence[tuple[str, Sharding]]:
    """The shardings that a program's equations name, with those equations' names."""
    return [(eqn.primitive.name, sharding) for eqn in every_equation(closed)
            if eqn.primitive.outside.placement is not None
            for sharding in placements(eqn.primitive, eqn.params) if isinstance(sharding, Sharding)]


def placements(primitive: Primitive, params: Params) -> Sequence[Any]:
    """Where each result of an application is put: a sharding, a device, or None."""
    assert primitive.outside.placement is not None
    found: Any = primitive.outside.placement(**params)
    return found if primitive.multiple_results else [found]


def constrained_spec(eqn: JaxprEqn, mesh: Mesh) -> tuple[PartitionSpec, bool] | None:
    """What an equation says of its value's sharding over a mesh, and whether that is all; or None.

    An equation that names another mesh says nothing.
    """
    if eqn.primitive.outside.placement is None:
        return None
    sharding = placements(eqn.primitive, eqn.params)[0]
    if not isinstance(sharding, NamedSharding) or sharding.mesh.shape_tuple != mesh.shape_tuple:
        return None
    if eqn.primitive is reshard_p:
        return (sharding.spec, not sharding.mesh.auto_axes) if sharding.mesh.explicit_axes else None
    return sharding.spec, True
