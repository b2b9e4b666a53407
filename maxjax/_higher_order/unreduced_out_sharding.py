"""``out_sharding`` with unreduced axes: the last sum is over dimensions split by just these."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from maxjax._base import pytree
from maxjax._base.errors import ShardingTypeError
from maxjax._base.pytree import PyTree
from maxjax._base.shardings import NamedSharding
from maxjax._base.specs import AxisName, PartitionSpec, SpecEntry, UnreducedKind
from maxjax._ir.jaxpr import JaxprEqn
from maxjax._ir.primitive import result_types
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._ir.typing import Value
from maxjax._primitives.broadcasting import reduce_sum_p
from maxjax._primitives.contraction import dot_general_p
from maxjax._transforms.simplify import inline_calls

_SUMMING = (dot_general_p, reduce_sum_p)


def check_unreduced_out_sharding(function: Callable[..., PyTree], out_sharding: NamedSharding,
                                 args: tuple[PyTree, ...], kwargs: dict[str, PyTree]) -> None:
    """Follows the types of the arguments through the function's program.

    Raises:
      ShardingTypeError: the last sum is over dimensions that are split otherwise.
      ValueError: a product is to be parts of an extreme.
    """
    unreduced = out_sharding.spec.unreduced
    leaves, tree = pytree.flatten((args, kwargs))
    positions = [number for number, leaf in enumerate(leaves) if isinstance(leaf, Array)]

    def flat(*values: Value) -> list[Any]:
        filled = list(leaves)
        for position, value in zip(positions, values, strict=True):
            filled[position] = value
        given, named = pytree.unflatten(tree, filled)
        return pytree.flatten(function(*given, **named))[0]

    avals = [leaves[position].aval for position in positions]
    jaxpr = inline_calls(trace_to_jaxpr(flat, [aval.off_mesh() for aval in avals])).jaxpr
    types: dict[Any, ShapedArray] = dict(zip(jaxpr.invars, avals, strict=True))
    last = next((eqn for eqn in reversed(jaxpr.eqns) if eqn.primitive in _SUMMING), None)
    if last is None:
        return
    if last.primitive is dot_general_p and (
            out_sharding.spec.unreduced_kind is not UnreducedKind.sum):
        shown = NamedSharding(out_sharding.mesh.abstract_mesh, out_sharding.spec)
        raise ValueError("`out_sharding` passed to `dot_general` can only contain unreduced of "
                         f"kind `sum`. Got out_sharding={shown!r}")
    for eqn in jaxpr.eqns:
        operands = tuple([types.get(atom, atom.aval) for atom in eqn.invars])
        if eqn is last:
            _check(eqn, operands, unreduced)
            return
        try:
            found = result_types(eqn.primitive, operands, eqn.params)
        except ShardingTypeError:      # the operands' types do not say: nothing to compare with
            return
        types.update(zip(eqn.outvars, found, strict=True))


def _check(eqn: JaxprEqn, operands: tuple[ShapedArray, ...], unreduced: frozenset[AxisName]
           ) -> None:
    if eqn.primitive is reduce_sum_p:
        axes = frozenset(eqn.params["axes"])
        own = frozenset() if operands[0].mesh_spec is None else operands[0].mesh_spec[1].unreduced
        if not unreduced - own <= _names(_entries(operands[0], axes)):
            raise ShardingTypeError(
                "out_sharding's unreduced axes should be in operand's specs that were reduce_sum "
                f"over. Got operand={operands[0]!r}, axes={axes}, unreduced_spec={unreduced}")
        return
    left, right = (_entries(aval, dims) for aval, dims in zip(
        operands, eqn.params["dimension_numbers"][0], strict=True))
    if left != right:
        raise ShardingTypeError(
            "lhs and rhs contracting dims should be sharded identically when out_sharding provided "
            f"to dot_general mentions unreduced_axes. Got lhs_contracting_spec={left}, "
            f"rhs_contracting_spec={right}")
    if _names(left) != unreduced:
        raise ShardingTypeError(
            "out_sharding's unreduced axes should be equal to the contracting specs. Got "
            f"unreduced axes={unreduced} and contracting spec={left}")


def _entries(aval: ShapedArray, dims: Collection[int]) -> tuple[Any, ...]:
    """What the type says of these dimensions, as a spec shows it."""
    if aval.mesh_spec is None:
        return (None,) * len(dims)
    return tuple(aval.mesh_spec[1].partitions[dim] for dim in dims)


def _names(entries: tuple[SpecEntry | None, ...]) -> frozenset[Any]:
    return frozenset(axis for entry in PartitionSpec(*entries)
                     for axis in (entry if isinstance(entry, tuple) else (entry,))
                     if axis is not None)
