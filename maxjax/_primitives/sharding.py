"""Identities that say how their value lies over a mesh.

``sharding_constraint`` tells the propagation, along Auto axes. ``reshard`` moves a value to the spec
that its type has from then on, along Explicit axes; ``mesh_cast`` takes that out of the type.
"""

from __future__ import annotations

from typing import Any

from maxjax._base.meshes import UNCONSTRAINED, PartitionSpec
from maxjax._base.shardings import NamedSharding
from maxjax._ir.types import ShapedArray
from maxjax._primitives.rules import axis_factors, linear_primitive


def _identity(name, **rules):
    return linear_primitive(
        name,
        evaluate=lambda x, **params: x,
        lower=lambda ctx, x, **params: x,
        factors=lambda in_avals, out_avals, **params: axis_factors(in_avals, out_avals),
        cacheable=False,
        **rules)


def with_dimension(spec: PartitionSpec, dim: int, entry: Any) -> PartitionSpec:
    """The spec of a value with one more dimension."""
    entries = [*spec, *[None] * (dim - len(spec))]
    return spec.update(partitions=(*entries[:dim], entry, *entries[dim:]))


# --- sharding_constraint --------------------------------------------------------------------------


def _constraint_batch(size, operands, axes, *, sharding, unconstrained_dims, **params):
    axis, = axes
    if isinstance(sharding, NamedSharding):
        entries = with_dimension(sharding.spec, axis, UNCONSTRAINED)
        full = (*entries, *[None] * (len(operands[0].shape) - len(entries)))
        sharding = sharding.update(spec=sharding.spec.update(partitions=full))
    unconstrained = {dim + (dim >= axis) for dim in unconstrained_dims} | {axis}
    return sharding_constraint_p.bind(
        *operands, sharding=sharding, unconstrained_dims=frozenset(unconstrained), **params), axis


sharding_constraint_p = _identity(
    "sharding_constraint",
    abstract=lambda x, **params: x,
    transpose=lambda cotangent, operand, **params: [
        sharding_constraint_p.bind(cotangent, **params)],
    batch=_constraint_batch,
    placement=lambda *, sharding, **params: sharding,
)

# --- reshard and mesh_cast ------------------------------------------------------------------------


def _back(cotangent, operand):
    """The cotangent, lying as the operand does."""
    on_mesh = operand.aval.mesh_spec
    if on_mesh is None:
        return [mesh_cast_p.bind(cotangent)]
    mesh, spec = on_mesh
    return [reshard_p.bind(cotangent, dst_sharding=NamedSharding(mesh, spec.to_ct_spec()))]


def _reshard_batch(size, operands, axes, *, dst_sharding):
    axis, = axes
    return reshard_p.bind(*operands, dst_sharding=dst_sharding.update(
        spec=with_dimension(dst_sharding.spec, axis, None))), axis


reshard_p = _identity(
    "reshard",
    abstract=lambda x, *, dst_sharding: x.on_mesh(
        dst_sharding.mesh.abstract_mesh, dst_sharding.spec),
    transpose=lambda cotangent, operand, **params: _back(cotangent, operand),
    batch=_reshard_batch,
    placement=lambda *, dst_sharding: dst_sharding,
)

mesh_cast_p = _identity(
    "mesh_cast",
    abstract=lambda x: x.update(mesh_spec=None),
    transpose=_back,
    batch=lambda size, operands, axes: (mesh_cast_p.bind(*operands), axes[0]),
)


def constrained_spec(eqn: Any) -> tuple[PartitionSpec, ShapedArray] | None:
    """What an equation says of how its value lies, or None."""
    name = eqn.primitive.name
    sharding = eqn.params.get(
        "sharding" if name == "sharding_constraint" else "dst_sharding"
    ) if name in ("sharding_constraint", "reshard") else None
    if not isinstance(sharding, NamedSharding):
        return None
    return sharding.spec, eqn.outvars[0].aval
