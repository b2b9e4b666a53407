"""Functions whose callers say how they are divided over a mesh."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from maxjax._base import pytree
from maxjax._base.errors import JaxRuntimeError
from maxjax._base.meshes import AxisType, Mesh
from maxjax._base.shardings import NamedSharding
from maxjax._base.specs import PartitionSpec, entry_axes
from maxjax._higher_order.calls import call_primitive
from maxjax._higher_order.control import operands_of
from maxjax._higher_order.shape_struct import ShapeDtypeStruct
from maxjax._ir.axes import named_axes
from maxjax._ir.control_flow import bodies_of, with_bodies
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn, every_equation
from maxjax._ir.rule_groups import Inner
from maxjax._ir.trace import aval_of
from maxjax._ir.types import ShapedArray
from maxjax._primitives.rules import FactorRule, replicated_factors
from maxjax._sharding.sharding_rule import SdyShardingRule, factors_of, parsed
from maxjax._sharding.specs import Dims, local_shape


class Division(NamedTuple):
    """What ``partition`` says of one application.

    Attributes:
      local: the flat function of one shard.
      operands, results: the axes that split each dimension of each value.
    """

    local: Callable[..., list[Any]]
    operands: list[Dims]
    results: list[Dims]


def _factors(in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], *,
             sharding_rule: Any, **params: object) -> FactorRule:
    if not isinstance(sharding_rule, SdyShardingRule):
        return replicated_factors(in_avals, out_avals)
    return factors_of(sharding_rule, in_avals, out_avals)


custom_partitioning_p = call_primitive(
    "custom_partitioning", "call", factors=_factors,
    inner=Inner(expand=lambda in_avals, params: params["call"]))


class TensorType(NamedTuple):
    """What a function that gives a rule is told of an array."""

    shape: tuple[int, ...]
    element_type: Any

    @property
    def rank(self) -> int:
        return len(self.shape)


def with_rules(closed: ClosedJaxpr, mesh: Mesh) -> ClosedJaxpr:
    """Asks the functions that give sharding rules for them, in the bodies of loops too."""
    if not any(eqn.primitive is custom_partitioning_p for eqn in every_equation(closed)):
        return closed
    eqns = []
    for eqn in closed.eqns:
        if eqn.primitive is custom_partitioning_p:
            eqn = _with_rule(eqn, mesh)
        elif eqn.primitive.inner.control_flow is not None:
            eqn = eqn.replace(params=with_bodies(
                eqn, [with_rules(body, mesh) for body in bodies_of(eqn)]))
        eqns.append(eqn)
    return closed.replace(jaxpr=closed.jaxpr.replace(eqns=eqns))


def _with_rule(eqn: JaxprEqn, mesh: Mesh) -> JaxprEqn:
    rule = eqn.params["sharding_rule"]
    if not callable(rule):
        return eqn
    operands, results = ([TensorType(atom.aval.shape, atom.aval.dtype) for atom in atoms]
                         for atoms in (eqn.invars, eqn.outvars))
    rule = rule(*eqn.params["static_args"], _auto(mesh), operands, results)
    return eqn.replace(params={
        **eqn.params, "sharding_rule": parsed(rule) if isinstance(rule, str) else rule})


def _auto(mesh: Mesh) -> Mesh:
    return Mesh(mesh.devices, mesh.axis_names, axis_types=(AxisType.Auto,) * len(mesh.axis_names))


def division_of(eqn: JaxprEqn, mesh: Mesh, in_dims: Sequence[Dims], out_dims: Sequence[Dims]
                ) -> Division:
    """Asks the function's ``partition`` how shards compute it.

    Args:
      in_dims, out_dims: how operands and results lie, as far as propagation says.

    Raises:
      JaxRuntimeError: the results of a shard have other shapes than their shardings say.
    """
    params = eqn.params
    auto = _auto(mesh)

    def described(atoms: Sequence[Any], dims: Sequence[Dims]) -> list[ShapeDtypeStruct]:
        return [ShapeDtypeStruct(
            atom.aval.shape, atom.aval.dtype, sharding=NamedSharding(auto, PartitionSpec(
                *[axes if len(axes) > 1 else axes[0] if axes else None for axes in here])))
            for atom, here in zip(atoms, dims, strict=True)]

    arguments = params["in_tree"].unflatten(described(eqn.invars, in_dims))
    results = params["out_tree"].unflatten(described(eqn.outvars, out_dims))
    used, lower, result_shardings, argument_shardings = params["partition"](
        *params["static_args"], auto, arguments, results)
    out_dims = _dims(result_shardings, eqn.outvars)
    sizes = dict(mesh.shape_tuple)

    def local(*operands: Any) -> list[Any]:
        with named_axes(sizes.items()):
            outputs = operands_of(pytree.leaves(lower(*params["in_tree"].unflatten(operands))))
        expected = [ShapedArray(local_shape(var.aval.shape, dims, sizes), var.aval.dtype)
                    for var, dims in zip(eqn.outvars, out_dims, strict=True)]
        found = [ShapedArray(aval_of(x).shape, aval_of(x).dtype) for x in outputs]
        if found != expected:
            raise JaxRuntimeError(f"INTERNAL: custom_partitioner: ValueError: Mismatch in result "
                                  f"shapes. {found} vs {expected}")
        return outputs

    return Division(local, _dims(argument_shardings, eqn.invars), out_dims)


def _dims(shardings: Any, atoms: Sequence[Any]) -> list[Dims]:
    leaves = pytree.leaves(shardings, lambda node: isinstance(node, NamedSharding))
    return [(*map(entry_axes, sharding.spec), *((),) * (atom.aval.ndim - len(sharding.spec)))
            for sharding, atom in zip(leaves, atoms, strict=True)]


