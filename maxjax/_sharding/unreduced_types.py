"""Unreduced and reduced axes in types.

The shards of ``float32[8@a,4]{U:b}`` along ``b`` are summands: the value is unreduced along ``b``.
Only linear operations (``Sharded.passes_unreduced``) may be applied to an unreduced value before
``reshard`` or, inside ``shard_map``, ``psum`` sums it. A reduced value, ``{R:b}``, is replicated
along ``b``, and its cotangent is ``{U:b}``: the sum over ``b`` that its gradient needs waits until
it is asked for. The product of a reduced and an unreduced value is unreduced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxjax._base.errors import ShardingTypeError
from maxjax._base.specs import UnreducedKind
from maxjax._ir.primitive import Primitive
from maxjax._ir.types import ShapedArray
from maxjax._primitives.arithmetic import add_p, div_p, integer_pow_p, mul_p, sub_p
from maxjax._primitives.builders import add_any_p
from maxjax._primitives.comparison import clamp_p
from maxjax._primitives.contraction import dot_general_p
from maxjax._primitives.convert import bitcast_convert_type_p
from maxjax._primitives.indexing import SCATTERS, gather_p, scatter_add_p
from maxjax._primitives.reduction import reduce_max_p, reduce_min_p
from maxjax._primitives.rules import elementwise_factors

AxisNames = frozenset[Any]
NONE: AxisNames = frozenset()
_EXTREMES = {UnreducedKind.max: reduce_max_p, UnreducedKind.min: reduce_min_p}
_ADDITIONS = (add_p, add_any_p, sub_p)
# Elementwise operations that JAX has no rule for, and says so.
_WITHOUT_RULE = (bitcast_convert_type_p, clamp_p, integer_pow_p)


def axes_of_results(primitive: Primitive, in_avals: Sequence[ShapedArray]
                    ) -> tuple[AxisNames, AxisNames]:
    """The axes along which the results of an operation are unreduced, and reduced.

    Raises:
      ShardingTypeError: the operands do not go together, or the operation is elementwise and not
        linear in an unreduced operand.
      ValueError: a denominator is unreduced, or not reduced as its numerator is unreduced.
      NotImplementedError: the operation is another that is not linear in an unreduced operand.
    """
    unreduced = [_axes(aval, "unreduced") for aval in in_avals]
    reduced = [_axes(aval, "reduced") for aval in in_avals]
    if any(unreduced):
        return _unreduced_result(primitive, in_avals, unreduced, reduced), NONE
    found = NONE.union(*reduced)
    if not found or primitive is dot_general_p:
        return NONE, NONE
    manual = any(aval.manual_axis_type.reduced for aval in in_avals)
    # Indices are no part of what is reduced.
    asked = slice(1) if primitive is gather_p else (
        (manual and primitive.sharded.passes_unreduced) or slice(None))
    for aval, own in zip(in_avals[asked], reduced[asked], strict=True):
        if own != found and (manual or aval.mesh_spec is not None):
            raise ShardingTypeError(
                "Inputs cannot be replicated on the same axes that another input is reduced on. "
                f"Got input type: {aval} and reduced spec: {found}")
    return NONE, found


def kind_of_results(primitive: Primitive, in_avals: Sequence[ShapedArray]
                    ) -> UnreducedKind | None:
    """How the parts of an unreduced result combine: as the operands' do. Only elements that are
    moved, and extremes of the same kind, can be parts of an extreme.

    Raises:
      ValueError: the operation is another.
    """
    kinds = {aval.mesh_spec[1].unreduced_kind for aval in in_avals if aval.mesh_spec is not None}
    kind = next((kind for kind in kinds if kind not in (None, UnreducedKind.sum)), None)
    if kind is None or primitive is _EXTREMES.get(kind) or (
            primitive.linearity is not None and primitive.linearity.moves and len(kinds) == 1):
        return kind
    raise ValueError(f"Expected unreduced_kind=UnreducedKind.sum but got {kind}")


def _axes(aval: ShapedArray, kind: str) -> AxisNames:
    return NONE if aval.mesh_spec is None else getattr(aval.mesh_spec[1], kind)


def _unreduced_result(primitive: Primitive, in_avals: Sequence[ShapedArray],
                      unreduced: Sequence[AxisNames], reduced: Sequence[AxisNames]) -> AxisNames:
    name = primitive.name
    if primitive in _EXTREMES.values() and kind_of_results(primitive, in_avals) is not None:
        return unreduced[0]
    if primitive is dot_general_p:
        raise ShardingTypeError(
            "lhs or rhs passed to dot_general cannot be unreduced. Got "
            f"lhs={in_avals[0]!r} and rhs={in_avals[1]!r}")
    if primitive in _ADDITIONS:
        if not all(unreduced):
            one, other = ("lhs", "rhs") if unreduced[0] else ("rhs", "lhs")
            raise ShardingTypeError(
                f"{one} is unreduced while {other} is not. `{name}` operation does not allow this "
                "because there will be implicit communication. Please reduce "
                f"{one} via `reshard` before calling `{name}`.")
        return _alike(name, unreduced)
    if primitive is mul_p:
        return _unreduced_product(in_avals, unreduced, reduced)
    if primitive is div_p:
        return _unreduced_quotient(in_avals, unreduced, reduced)
    if primitive in SCATTERS and not unreduced[0]:
        return NONE      # the updates are summed before they are added
    if primitive is scatter_add_p:
        return _alike(name, [own for own in (unreduced[0], unreduced[2]) if own])
    if primitive.sharded.passes_unreduced is not None:
        manual = any(aval.manual_axis_type.unreduced for aval in in_avals)
        asked = primitive.sharded.passes_unreduced
        return _alike(name, [own for own, aval in zip(
            unreduced[asked], in_avals[asked], strict=True)
            if own or manual or aval.mesh_spec is not None])
    if primitive.factors is elementwise_factors and primitive not in _WITHOUT_RULE:
        inputs, got = (("input that is", in_avals[0]) if len(in_avals) == 1 else
                       ("inputs that are", tuple(in_avals)))
        raise ShardingTypeError(
            f"{name} is a non-linear operation and cannot accept {inputs} unreduced. Got {got}")
    raise NotImplementedError(
        f"unreduced rule for {name} is not implemented: what it makes of the parts of a sum are no "
        "parts of what it makes of the sum. Use `reshard` on the operand.")


def _unreduced_product(in_avals: Sequence[ShapedArray], unreduced: Sequence[AxisNames],
                       reduced: Sequence[AxisNames]) -> AxisNames:
    if all(unreduced):
        raise ShardingTypeError(
            "lhs and rhs to `mul` cannot be unreduced since mul is bilinear. Got "
            f"lhs={unreduced[0]}, rhs={unreduced[1]}")
    summand, factor = (0, 1) if unreduced[0] else (1, 0)
    if unreduced[summand] != reduced[factor]:
        names = ("LHS", "RHS")
        raise ShardingTypeError(
            f"{names[factor]} should be reduced along the same axes {names[summand]} is unreduced "
            f"on. Got lhs={in_avals[0]} and rhs={in_avals[1]}")
    return unreduced[summand]


def _unreduced_quotient(in_avals: Sequence[ShapedArray], unreduced: Sequence[AxisNames],
                        reduced: Sequence[AxisNames]) -> AxisNames:
    x, y = in_avals
    if unreduced[1]:
        raise ValueError(f"The denominator cannot be unreduced passed to `div`. Got {y=}")
    if unreduced[0] != reduced[1]:
        raise ValueError("Denominator should be reduced along the same axes numerator is unreduced "
                         f"on. Got {x=}, {y=}")
    return unreduced[0]


def _alike(name: str, axes: Sequence[AxisNames]) -> AxisNames:
    if len(set(axes)) > 1:
        raise ShardingTypeError(
            f"{name} needs operands that are unreduced along the same axes, but got "
            + ", ".join(str(set(own) or "none") for own in axes))
    return axes[0]
