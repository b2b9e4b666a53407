"""The order of effects as data, so that passes and backends keep it without knowing of it.

An equation with an effect takes a token and gives the next one; loops carry it, branches hand it
on:

    scan  consts, carries, xs  ->  consts, (token, *carries), xs

The program gives the last token as one more result: so no effect is dropped, doubled or moved past
another, and loops that hold effects are compiled like any others.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import caches, dtypes
from maxjax._base.source import inherited_source_lines
from maxjax._ir.control_flow import Structure, structure_of
from maxjax._ir.evaluate import apply_equation, eval_jaxpr
from maxjax._ir.jaxpr import (
    Atom,
    ClosedJaxpr,
    Jaxpr,
    JaxprEqn,
    Literal,
    Params,
    every_equation,
    replaced,
)
from maxjax._ir.liveness import has_effects
from maxjax._ir.primitive import Primitive, op_spec
from maxjax._ir.rule_groups import Host
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Value
from maxjax._ir.types import ShapedArray

TOKEN = ShapedArray((), dtypes.uint8)

# From an equation with an effect, its operands and the token to its results and the next token.
Rule = Callable[[JaxprEqn, Sequence[Any], Any], Sequence[Any]]


def with_token(closed: ClosedJaxpr, rule: Rule) -> ClosedJaxpr:
    """A program with a token as one more result.

    Args:
      rule: is asked for the equations with effects that are neither loops nor branches.
    """
    with inherited_source_lines():
        return trace_to_jaxpr(
            lambda *args: _run(closed, args, np.zeros((), TOKEN.dtype), rule), closed.in_avals,
            closed.jaxpr.debug_info)


def is_in_control_flow(closed: ClosedJaxpr, is_ordered: Callable[[JaxprEqn], bool]) -> bool:
    """Whether all effects are of equations for which that holds, in nothing but loops and
    branches."""
    return all(is_ordered(eqn) or not eqn.effects or eqn.primitive.inner.control_flow is not None
               for eqn in every_equation(closed))


def _run(closed: ClosedJaxpr, args: Sequence[Value], token: Value, rule: Rule) -> list[Any]:
    """A program's results, and the token after it."""

    def apply(eqn: JaxprEqn, operands: list[Value]) -> Sequence[Any]:
        nonlocal token
        if not eqn.effects:
            return apply_equation(eqn, operands)
        if eqn.primitive.inner.control_flow is None:
            *results, token = rule(eqn, operands, token)
        elif structure_of(eqn).index:
            *results, token = _choice(eqn, operands, token, rule)
        else:
            token, *results = _loop(eqn, operands, token, rule)
        return results

    results = eval_jaxpr(closed.jaxpr, closed.consts, *args, rule=apply)
    return [*results, token]


def _choice(eqn: JaxprEqn, operands: Sequence[Value], token: Value, rule: Rule) -> Sequence[Any]:
    flow = structure_of(eqn)
    branches = [_traced(lambda *args, body=body: _run(body.jaxpr, args[:-1], args[-1], rule),
                        [*body.jaxpr.in_avals, TOKEN], body.jaxpr) for body in flow.bodies]
    index, consts = flow.parts(operands)
    return eqn.primitive.bind(*index, *consts, token, **flow.regrouped(
        eqn.params, [len(index), len(consts) + 1], branches))


def _loop(eqn: JaxprEqn, operands: Sequence[Value], token: Value, rule: Rule) -> Sequence[Any]:
    flow = structure_of(eqn)
    if flow.predicate is None:
        return _scan(eqn, flow, operands, token, rule)
    if flow.predicate.jaxpr.effects:
        return _while_with_predicate(eqn, flow, operands, token, rule)
    return _while(eqn, flow, operands, token, rule)


def _scan(eqn: JaxprEqn, flow: Structure, operands: Sequence[Value], token: Value, rule: Rule
          ) -> Sequence[Any]:
    consts, carries, scanned = flow.parts(operands)
    body, = flow.bodies
    place = len(consts)

    def step(*args: Value) -> list[Any]:
        *results, after = _run(body.jaxpr, [*args[:place], *args[place + 1:]], args[place], rule)
        return [after, *results]

    avals = body.jaxpr.in_avals
    jaxpr = _traced(step, [*avals[:place], TOKEN, *avals[place:]], body.jaxpr)
    return eqn.primitive.bind(*consts, token, *carries, *scanned, **flow.regrouped(
        eqn.params, [len(consts), len(carries) + 1, len(scanned)], [jaxpr]))


def _while(eqn: JaxprEqn, flow: Structure, operands: Sequence[Value], token: Value, rule: Rule
           ) -> Sequence[Any]:
    """The predicate does without the token."""
    condition, body = flow.bodies
    cond_consts, body_consts, carries = flow.parts(operands)
    before, place = len(cond_consts), len(body_consts)

    def goes_on(*args: Value) -> list[Any]:
        return eval_jaxpr(condition.jaxpr.jaxpr, condition.jaxpr.consts,
                          *args[:before], *args[before + 1:])

    def step(*args: Value) -> list[Any]:
        *results, after = _run(body.jaxpr, [*args[:place], *args[place + 1:]], args[place], rule)
        return [after, *results]

    jaxprs = [_traced(function, [*avals[:count], TOKEN, *avals[count:]], inner.jaxpr)
              for function, avals, count, inner in (
                  (goes_on, condition.jaxpr.in_avals, before, condition),
                  (step, body.jaxpr.in_avals, place, body))]
    return eqn.primitive.bind(
        *cond_consts, *body_consts, token, *carries,
        **flow.regrouped(eqn.params, [before, place, len(carries) + 1], jaxprs))


def _while_with_predicate(eqn: JaxprEqn, flow: Structure, operands: Sequence[Value], token: Value,
                          rule: Rule) -> Sequence[Any]:
    """A predicate with effects is carried as well, since a predicate's jaxpr gives no token."""
    condition, body = flow.bodies
    cond_consts, body_consts, carries = flow.parts(operands)
    count, place = len(cond_consts), len(cond_consts) + len(body_consts)

    def step(*args: Value) -> list[Any]:
        mine, theirs, (before, _, *state) = args[:count], args[count:place], args[place:]
        *state, between = _run(body.jaxpr, [*theirs, *state], before, rule)
        again, after = _run(condition.jaxpr, [*mine, *state], between, rule)
        return [after, again, *state]

    first, token = _run(condition.jaxpr, [*cond_consts, *carries], token, rule)
    kind = condition.jaxpr.out_avals[0]
    state = body.jaxpr.in_avals[len(body_consts):]
    jaxprs = [
        _traced(lambda _, again, *state: [again], [TOKEN, kind, *state], condition.jaxpr),
        _traced(step, [*condition.jaxpr.in_avals[:count], *body.jaxpr.in_avals[:len(body_consts)],
                       TOKEN, kind, *state], body.jaxpr)]
    token, _, *results = eqn.primitive.bind(
        *cond_consts, *body_consts, token, first, *carries,
        **flow.regrouped(eqn.params, [0, place, len(carries) + 2], jaxprs))
    return [token, *results]


def _traced(function: Callable[..., list[Value]], avals: Sequence[ShapedArray],
            like: ClosedJaxpr) -> ClosedJaxpr:
    return trace_to_jaxpr(function, avals, like.jaxpr.debug_info)


# --- callbacks ------------------------------------------------------------------------------------

def order_steps(jaxpr: Jaxpr) -> Jaxpr:
    """A jaxpr without constants in whose loops and branches callbacks are ordered by tokens, the
    last of which is one more output; the same jaxpr if there is none.

    The inputs and the other outputs are the same variables.
    """
    if not any(eqn.primitive.inner.control_flow is not None and has_effects(eqn)
               for eqn in jaxpr.eqns):
        return jaxpr
    closed = ClosedJaxpr(jaxpr)
    if not is_in_control_flow(closed, _is_step):
        return jaxpr
    traced = with_token(closed, _apply_in_order)
    named = _with_variables(traced.jaxpr, jaxpr)
    return jaxpr if traced.consts or named is None else named


def _is_step(eqn: JaxprEqn) -> bool:
    """Whether an equation has an effect that the host brings about."""
    primitive = eqn.primitive
    return primitive.effects is not None and primitive.lower is None and has_effects(eqn) \
        and (primitive.evaluate is not None or primitive.host.specialize is not None)


def _apply_in_order(eqn: JaxprEqn, operands: Sequence[Value], token: Value) -> Sequence[Any]:
    return in_order(eqn.primitive).bind(*operands, token, **eqn.params)


@caches.memoized
def in_order(primitive: Primitive) -> Primitive:
    """A primitive of the same effect, whose last operand and last result are tokens."""
    assert primitive.effects is not None

    def results(value: Any) -> Sequence[Any]:
        return value if primitive.multiple_results else [value]

    def specialize(in_avals: Sequence[ShapedArray], params: Params,
                   out_avals: Sequence[ShapedArray]) -> Callable[..., Sequence[Any]]:
        run = op_spec(primitive, tuple(in_avals[:-1]), params).run
        if run is None:
            raise primitive.without_rule()
        return lambda *values: [*results(run(*values[:-1])), values[-1]]

    return Primitive(
        primitive.name,
        abstract=lambda *avals, **params: (
            *results(primitive.abstract(*avals[:-1], **params)), TOKEN),
        host=Host(reason=primitive.host.reason, specialize=specialize),
        effects=dataclasses.replace(primitive.effects, ordered_by_operands=True),
        multiple_results=True,
        cacheable=False,
        registered=False)


def _with_variables(jaxpr: Jaxpr, like: Jaxpr) -> Jaxpr | None:
    """A jaxpr with the inputs and the first outputs of another, which computes the same; None where
    one of its variables would have two names."""
    *outvars, token = jaxpr.outvars
    names: dict[Any, Atom] = dict(zip(jaxpr.invars, like.invars, strict=True))
    for mine, theirs in zip(outvars, like.outvars, strict=True):
        if not isinstance(mine, Literal) and names.setdefault(mine, theirs) is not theirs:
            return None
    eqns = [eqn.replace(invars=replaced(eqn.invars, names),
                        outvars=[names.get(var, var) for var in eqn.outvars])
            for eqn in jaxpr.eqns]
    return jaxpr.replace(invars=like.invars, eqns=eqns,
                         outvars=[*like.outvars, *replaced([token], names)])
