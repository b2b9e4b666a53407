"""Writes arrays with a short last dimension as one array for each of its elements.

The differences of 500 points in space are an array (500, 500, 3), of which a machine can compute no
more than 3 elements at a time where operands are broadcast or results are summed along one of the
other dimensions. As three arrays (500, 500) they are computed by whole vectors, and what is summed
over the last dimension needs no memory:

    d = r[:, None] - r[None]                    d0 = r0[:, None] - r0[None] ...
    s = sum(d * d, -1)                          s = d0 * d0 + d1 * d1 + d2 * d2

That is done for elementwise operations whose operands are much smaller than their results, the
same for all components, or such results themselves, up to the reductions that end them. Where
anything else would read one of the arrays as a whole, they stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._ir.evaluate import apply_equation, eval_jaxpr
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, JaxprEqn, Literal, Var
from maxjax._ir.primitive import Primitive
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.types import ShapedArray
from maxjax._primitives.arithmetic import add, maximum, minimum, mul
from maxjax._primitives.broadcasting import broadcast_in_dim_p, reduce_sum_p
from maxjax._primitives.comparison import and_p, clamp_p, or_p, select_n_p
from maxjax._primitives.convert import convert_element_type_p
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import reshape
from maxjax._primitives.reduction import (
    reduce_and_p,
    reduce_max_p,
    reduce_min_p,
    reduce_or_p,
    reduce_prod_p,
)
from maxjax._primitives.slicing import slice_in_dim

# The longest dimension that is taken apart, the fewest elements of an array that is, and how many
# times as many it has as an operand that is not.
_MOST_COMPONENTS = 4
_LEAST_ELEMENTS = 4096
_SMALLER = 8

_COMBINED: dict[Primitive, Any] = {
    reduce_sum_p: add, reduce_max_p: maximum, reduce_min_p: minimum, reduce_prod_p: mul,
    reduce_and_p: and_p.bind, reduce_or_p: or_p.bind}
# Elementwise, beside those whose operands may all be scalars.
_ELEMENTWISE = (select_n_p, clamp_p, convert_element_type_p)


class _Components(list[Any]):
    """A value as one array for each element of its last dimension."""


def take_components_apart(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Writes what has a short last dimension by components, where that is of use."""
    apart = _taken_apart(closed)
    if not apart or closed.effects:
        return closed

    def rule(eqn: JaxprEqn, operands: list[Any]) -> Sequence[Any]:
        if eqn.outvars[0] in apart:
            count = eqn.outvars[0].aval.shape[-1]
            return [_Components(_component(eqn, operands, k) for k in range(count))]
        if not isinstance(operands[0] if operands else None, _Components):
            return apply_equation(eqn, operands)
        return [_reduced(eqn, operands[0])]

    def flat(*values: Any) -> list[Any]:
        return eval_jaxpr(closed.jaxpr, closed.consts, *values, rule=rule)

    return trace_to_jaxpr(flat, closed.in_avals, closed.jaxpr.debug_info)


def _taken_apart(closed: ClosedJaxpr) -> set[Var]:
    """The variables of which nothing but components is needed."""
    family: dict[Var, Var] = {}     # which belong together, by a tree

    def head(var: Var) -> Var:
        while family[var] is not var:
            family[var] = family[family[var]]
            var = family[var]
        return var

    whole: list[Var] = []
    for eqn in closed.jaxpr.eqns:
        given = [atom for atom in eqn.invars if isinstance(atom, Var) and atom in family]
        result = eqn.outvars[0] if len(eqn.outvars) == 1 else None
        if result is not None and _is_long(result.aval) and _follows(eqn, result.aval, given):
            family[result] = result
            for var in given:
                family[head(var)] = result
        elif not (given and eqn.primitive in _COMBINED):
            whole += given
    whole += [atom for atom in closed.jaxpr.outvars if isinstance(atom, Var) and atom in family]
    heads = set(map(head, whole))
    return {var for var in family if head(var) not in heads}


def _is_long(aval: ShapedArray) -> bool:
    """Whether an array has few components, of many elements."""
    shape = aval.shape
    return (aval.plain and len(shape) >= 2 and all(type(size) is int for size in shape)
            and 2 <= shape[-1] <= _MOST_COMPONENTS and aval.size >= _LEAST_ELEMENTS
            # Sums of half precision are rounded once, not at each step.
            and aval.dtype not in (dtypes.float16, dtypes.bfloat16)
            and not dtypes.is_complex(aval.dtype) and not dtypes.is_key(aval.dtype))


def _follows(eqn: JaxprEqn, result: ShapedArray, given: Sequence[Atom]) -> bool:
    """Whether a result's components are computed from those of operands, or from small ones."""
    primitive = eqn.primitive
    if primitive in _COMBINED:
        return bool(given) and eqn.invars[0].aval.ndim - 1 not in eqn.params["axes"]
    if primitive is broadcast_in_dim_p:
        dims = eqn.params["broadcast_dimensions"]
        if not dims or dims[-1] != len(result.shape) - 1:
            return True         # each component is the operand
    elif not primitive.joins_scalars and primitive not in _ELEMENTWISE:
        return False
    return len(eqn.invars) > 0 and all(
        isinstance(atom, Literal) or atom in given or atom.aval.shape[-1:] == (1,)
        or atom.aval.size * _SMALLER <= result.size for atom in eqn.invars)


def _component(eqn: JaxprEqn, operands: Sequence[Any], k: int) -> Any:
    """A component of an equation's result."""
    primitive, params = eqn.primitive, eqn.params
    if primitive is broadcast_in_dim_p:
        operand, = operands
        shape, dims = params["shape"], tuple(params["broadcast_dimensions"])
        if dims and dims[-1] == len(shape) - 1:
            operand, dims = _part(operand, k), dims[:-1]
        return primitive.bind(operand, **{
            **params, "shape": shape[:-1], "broadcast_dimensions": dims})
    return primitive.bind(*[_part(operand, k) for operand in operands], **params)


def _part(x: Any, k: int) -> Any:
    """A component of a value; of one that has no last dimension, or one of size 1, all of it."""
    if isinstance(x, _Components):
        return x[k]
    shape = np.shape(x)
    if not shape:
        return x
    if shape[-1] != 1:
        x = slice_in_dim(x, k, k + 1, len(shape) - 1)
    return reshape(x, shape[:-1])


def _reduced(eqn: JaxprEqn, x: _Components) -> Any:
    """A reduction of what is by components."""
    axes = eqn.params["axes"]
    last = eqn.invars[0].aval.ndim - 1
    rest = {**eqn.params, "axes": tuple(axis for axis in axes if axis != last)}

    def over_the_rest(part: Any) -> Any:
        return eqn.primitive.bind(part, **rest) if rest["axes"] else part

    if last not in axes:
        parts = [over_the_rest(part) for part in x]
        return concatenate([reshape(part, (*part.shape, 1)) for part in parts], len(
            eqn.outvars[0].aval.shape) - 1)
    total = x[0]
    for part in x[1:]:
        total = _COMBINED[eqn.primitive](total, part)
    return over_the_rest(total)
