"""Parts of sums in types: ``float32[8@a,4]{U:b}`` is a value whose shards along ``b`` are summands.

Only what is linear (``Primitive.passes_unreduced``) may be done to such a value before ``reshard``
or, inside ``shard_map``, ``psum`` sums it. ``{R:b}`` is a whole value, the same along ``b``, whose
cotangent is ``{U:b}``: the sum over ``b`` that its gradient needs waits until it is asked for. A
product of the two is a part of a sum again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxjax._base.errors import ShardingTypeError
from maxjax._ir.primitive import Primitive
from maxjax._ir.types import ShapedArray
from maxjax._primitives.arithmetic import (
    add_p,
    mul_p,
)
from maxjax._primitives.builders import add_any_p
from maxjax._primitives.contraction import dot_general_p

Names = frozenset[Any]
NONE: Names = frozenset()
SUMS = (add_p, add_any_p)


def axes_of_results(primitive: Primitive, in_avals: Sequence[ShapedArray]) -> tuple[Names, Names]:
    """Along which axes the results of an operation are parts of sums, and reduced.

    Raises:
      ShardingTypeError: the operands do not go together.
      NotImplementedError: the operation is not linear in the parts of a sum.
    """
    unreduced = [_axes(aval, "unreduced") for aval in in_avals]
    reduced = [_axes(aval, "reduced") for aval in in_avals]
    if any(unreduced):
        return _of_parts(primitive, in_avals, unreduced, reduced), NONE
    found = NONE.union(*reduced)
    if not found or primitive is dot_general_p:
        return NONE, NONE
    manual = any(aval.manual_axis_type.reduced for aval in in_avals)
    asked = (manual and primitive.passes_unreduced) or slice(None)
    for aval, own in zip(in_avals[asked], reduced[asked], strict=True):
        if own != found and (manual or aval.mesh_spec is not None):
            raise ShardingTypeError(
                "Inputs cannot be replicated on the same axes that another input is reduced on. "
                f"Got input type: {aval} and reduced spec: {found}")
    return NONE, found


def _axes(aval: ShapedArray, kind: str) -> Names:
    return NONE if aval.mesh_spec is None else getattr(aval.mesh_spec[1], kind)


def _of_parts(primitive: Primitive, in_avals: Sequence[ShapedArray], unreduced: Sequence[Names],
              reduced: Sequence[Names]) -> Names:
    name = primitive.name
    if primitive is dot_general_p:
        raise ShardingTypeError(
            "lhs or rhs passed to dot_general cannot be unreduced. Got "
            f"lhs={in_avals[0]!r} and rhs={in_avals[1]!r}")
    if primitive in SUMS:
        if not all(unreduced):
            one, other = ("lhs", "rhs") if unreduced[0] else ("rhs", "lhs")
            raise ShardingTypeError(
                f"{one} is unreduced while {other} is not. `{name}` operation does not allow this "
                "because there will be implicit communication. Please reduce "
                f"{one} via `reshard` before calling `{name}`.")
        return _alike(name, unreduced)
    if primitive is mul_p:
        return _of_product(in_avals, unreduced, reduced)
    if primitive.passes_unreduced is not None:
        manual = any(aval.manual_axis_type.unreduced for aval in in_avals)
        asked = primitive.passes_unreduced
        return _alike(name, [own for own, aval in zip(
            unreduced[asked], in_avals[asked], strict=True)
            if own or manual or aval.mesh_spec is not None])
    raise NotImplementedError(
        f"unreduced rule for {name} is not implemented: what it makes of the parts of a sum are no "
        "parts of what it makes of the sum. Use `reshard` on the operand.")


def _of_product(in_avals: Sequence[ShapedArray], unreduced: Sequence[Names],
                reduced: Sequence[Names]) -> Names:
    if all(unreduced):
        raise ShardingTypeError(
            "lhs and rhs to `mul` cannot be unreduced since mul is bilinear. Got "
            f"lhs={unreduced[0]}, rhs={unreduced[1]}")
    parts, whole = (0, 1) if unreduced[0] else (1, 0)
    if unreduced[parts] != reduced[whole]:
        names = ("LHS", "RHS")
        raise ShardingTypeError(
            f"{names[whole]} should be reduced along the same axes {names[parts]} is unreduced on."
            f" Got lhs={in_avals[0]} and rhs={in_avals[1]}")
    return unreduced[parts]


def _alike(name: str, axes: Sequence[Names]) -> Names:
    if len(set(axes)) > 1:
        raise ShardingTypeError(
            f"{name} needs operands that are unreduced along the same axes, but got "
            + ", ".join(str(set(own) or "none") for own in axes))
    return axes[0]
