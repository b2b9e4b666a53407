"""Primitives that compute nothing: barriers, sinks, and tokens.

A token is an empty array of booleans: it orders nothing that is not ordered already, as programs
run their effects in the order in which they were written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.contract import ANY_TUPLE, FLAG, TEXT, takes
from maxjax._ir.linearity import MOVEMENT, Linearity
from maxjax._ir.primitive import Primitive
from maxjax._ir.rule_groups import Sharded
from maxjax._ir.trace import Array
from maxjax._ir.types import ShapedArray
from maxjax._primitives.rules import axis_factors, factor_rule, linear_primitive


def _identity(name: str, **rules: Any) -> Primitive:
    return linear_primitive(
        name,
        abstract=lambda x, **params: x,
        evaluate=lambda x, **params: x,
        lower=lambda ctx, x, **params: x,
        transpose=lambda cotangent, operand, **params: [cotangent],
        factors=lambda in_avals, out_avals, **params: axis_factors(in_avals, out_avals),
        **rules)


stage_p = _identity(
    "stage",
    contract=takes(1),
    linearity=MOVEMENT,
    batch=lambda size, operands, axes: (stage_p.bind(operands[0]), axes[0]))

name_p = Primitive(
    "name",
    contract=takes(1, name=TEXT),
    linearity=MOVEMENT,
    abstract=lambda x, *, name: x,
    evaluate=lambda x, *, name: x,
    lower=lambda ctx, x, *, name: x,
    # The tangent has no name.
    jvp=lambda primals, tangents, *, name: (name_p.bind(*primals, name=name), tangents[0]),
    batch=lambda size, operands, axes, *, name: (name_p.bind(*operands, name=name), axes[0]),
    factors=lambda in_avals, out_avals, *, name: axis_factors(in_avals, out_avals),
)

# A value and what is to be said of the operation that gave it to whoever reads the program; of the
# tangent the same, of a cotangent nothing.
xla_metadata_value_p = _identity(
    "xla_metadata_value",
    contract=takes(1, xla_metadata_kvs=ANY_TUPLE),
    linearity=MOVEMENT,
    batch=lambda size, operands, axes, **params: (
        xla_metadata_value_p.bind(*operands, **params), axes[0]))


# --- of several operands --------------------------------------------------------------------------


def _each_jvp(primitive: Callable[[], Primitive]) -> Callable[..., Any]:
    """Zeros stay zeros."""
    def jvp(primals: Sequence[Array], tangents: Sequence[Array], **params: object
            ) -> tuple[list[Array], list[Array | None]]:
        outs = primitive().bind(*primals, **params)
        places = [i for i, tangent in enumerate(tangents) if tangent is not None]
        moved = primitive().bind(*[tangents[i] for i in places], **params) if places else []
        given = dict(zip(places, moved, strict=True))
        return outs, [given.get(i) for i in range(len(primals))]
    return jvp


def _several(name: str, linearity: Linearity) -> Primitive:
    primitive = Primitive(
        name,
        contract=takes((0, None)),
        linearity=linearity,
        abstract=lambda *avals, **params: list(avals),
        evaluate=lambda *xs, **params: list(xs),
        lower=lambda ctx, *xs, **params: list(xs),
        jvp=_each_jvp(lambda: primitive),
        transpose=lambda cotangents, *operands, **params: list(cotangents),
        batch=lambda size, operands, axes, **params: (
            primitive.bind(*operands, **params), list(axes)),
        factors=lambda in_avals, out_avals, **params: factor_rule(
            [[(i, dim) for dim in range(aval.ndim)] for i, aval in enumerate(in_avals)],
            [[(i, dim) for dim in range(aval.ndim)] for i, aval in enumerate(out_avals)],
            in_avals, out_avals),
        sharded=Sharded(on_mesh=True),
        multiple_results=True,
    )
    return primitive


optimization_barrier_p = _several("optimization_barrier", MOVEMENT)


dce_sink_p = Primitive(
    "dce_sink",
    contract=takes((0, None), prevent_mlir_dce=FLAG),
    abstract=lambda *avals, prevent_mlir_dce: [],
    evaluate=lambda *xs, prevent_mlir_dce: [],
    lower=lambda ctx, *xs, prevent_mlir_dce: [],
    jvp=lambda primals, tangents, **params: (dce_sink_p.bind(*primals, **params), []),
    batch=lambda size, operands, axes, **params: (dce_sink_p.bind(*operands, **params), []),
    factors=lambda in_avals, out_avals, **params: factor_rule(
        [[(i, dim) for dim in range(aval.ndim)] for i, aval in enumerate(in_avals)], [],
        in_avals, out_avals),
    multiple_results=True,
)

# --- tokens ---------------------------------------------------------------------------------------

TOKEN = ShapedArray((0,), dtypes.bool_)


def _token(name: str) -> Primitive:
    primitive = Primitive(
        name,
        contract=takes((0, None)),
        abstract=lambda *tokens: TOKEN,
        evaluate=lambda *tokens: np.zeros(TOKEN.shape, TOKEN.dtype),
        lower=lambda ctx, *tokens: ctx.full(TOKEN.shape, False, TOKEN.dtype),
        jvp=lambda primals, tangents: (primitive.bind(*primals), None),
        batch=lambda size, operands, axes: (primitive.bind(), None),
        factors=lambda in_avals, out_avals: factor_rule(
            [["token"]] * len(in_avals), [["token"]], in_avals, out_avals),
    )
    return primitive


create_token_p = _token("create_token")
after_all_p = _token("after_all")
