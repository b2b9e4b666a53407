"""The order of exchanges as data, so that passes and backends keep it without knowing of it.

An exchange takes a token and gives the next one; loops carry it, branches hand it on:

    scan  consts, carries, xs  ->  consts, (token, *carries), xs

The program gives the last token as one more result: so no exchange is dropped, doubled or moved
past another, and what holds exchanges is compiled like anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from maxjax._base import dtypes
from maxjax._base.source import inherited_source_lines
from maxjax._ir.control_flow import Structure, structure_of
from maxjax._ir.evaluate import apply_equation, eval_jaxpr
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn, every_equation
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Value
from maxjax._ir.types import ShapedArray
from maxjax._sharding.exchange import communication_effect, exchange_p, ordered_exchange_p
from maxjax._transforms.simplify import simplify_once

_TOKEN = ShapedArray((), dtypes.uint8)


def with_tokens(closed: ClosedJaxpr) -> ClosedJaxpr | None:
    """The program of a process with a token as one more result; None where its exchanges stay in
    order by their effects: it has other effects too, or calls what is neither loop nor branch."""
    closed = simplify_once(closed)
    if closed.effects != {communication_effect} or not _is_plain(closed):
        return None
    with inherited_source_lines():
        return trace_to_jaxpr(
            lambda *args: _run(closed, args, np.zeros((), np.uint8)), closed.in_avals,
            closed.jaxpr.debug_info)


def _is_plain(closed: ClosedJaxpr) -> bool:
    """Whether exchanges are in nothing but loops and branches."""
    return all(eqn.primitive is exchange_p or not eqn.effects
               or eqn.primitive.control_flow is not None for eqn in every_equation(closed))


def _run(closed: ClosedJaxpr, args: Sequence[Value], token: Any) -> list[Any]:
    """A program's results, and the token after it."""

    def rule(eqn: JaxprEqn, operands: list[Any]) -> Sequence[Any]:
        nonlocal token
        if not eqn.effects:
            return apply_equation(eqn, operands)
        if eqn.primitive is exchange_p:
            *results, token = ordered_exchange_p.bind(*operands, token, **eqn.params)
        elif structure_of(eqn).index:
            *results, token = _choice(eqn, operands, token)
        else:
            token, *results = _loop(eqn, operands, token)
        return results

    results = eval_jaxpr(closed.jaxpr, closed.consts, *args, rule=rule)
    return [*results, token]


def _choice(eqn: JaxprEqn, operands: Sequence[Any], token: Any) -> Sequence[Any]:
    flow = structure_of(eqn)
    branches = [_traced(lambda *args, body=body: _run(body.jaxpr, args[:-1], args[-1]),
                        [*body.jaxpr.in_avals, _TOKEN], body.jaxpr) for body in flow.bodies]
    index, consts = flow.parts(operands)
    return eqn.primitive.bind(*index, *consts, token, **flow.regrouped(
        eqn.params, [len(index), len(consts) + 1], branches))


def _loop(eqn: JaxprEqn, operands: Sequence[Any], token: Any) -> Sequence[Any]:
    flow = structure_of(eqn)
    if flow.predicate is None:
        return _scan(eqn, flow, operands, token)
    return _while(eqn, flow, operands, token)


def _scan(eqn: JaxprEqn, flow: Structure, operands: Sequence[Any], token: Any) -> Sequence[Any]:
    consts, carries, scanned = flow.parts(operands)
    body, = flow.bodies
    place = len(consts)

    def step(*args: Any) -> list[Any]:
        *results, after = _run(body.jaxpr, [*args[:place], *args[place + 1:]], args[place])
        return [after, *results]

    avals = body.jaxpr.in_avals
    jaxpr = _traced(step, [*avals[:place], _TOKEN, *avals[place:]], body.jaxpr)
    return eqn.primitive.bind(*consts, token, *carries, *scanned, **flow.regrouped(
        eqn.params, [len(consts), len(carries) + 1, len(scanned)], [jaxpr]))


def _while(eqn: JaxprEqn, flow: Structure, operands: Sequence[Any], token: Any) -> Sequence[Any]:
    """The predicate is carried as well, since a predicate's jaxpr gives no token."""
    condition, body = flow.bodies
    cond_consts, body_consts, carries = flow.parts(operands)
    count, place = len(cond_consts), len(cond_consts) + len(body_consts)

    def step(*args: Any) -> list[Any]:
        mine, theirs, (before, _, *state) = args[:count], args[count:place], args[place:]
        *state, between = _run(body.jaxpr, [*theirs, *state], before)
        again, after = _run(condition.jaxpr, [*mine, *state], between)
        return [after, again, *state]

    first, token = _run(condition.jaxpr, [*cond_consts, *carries], token)
    kind = condition.jaxpr.out_avals[0]
    state = body.jaxpr.in_avals[len(body_consts):]
    jaxprs = [
        _traced(lambda _, again, *state: [again], [_TOKEN, kind, *state], condition.jaxpr),
        _traced(step, [*condition.jaxpr.in_avals[:count], *body.jaxpr.in_avals[:len(body_consts)],
                       _TOKEN, kind, *state], body.jaxpr)]
    token, _, *results = eqn.primitive.bind(
        *cond_consts, *body_consts, token, first, *carries,
        **flow.regrouped(eqn.params, [0, place, len(carries) + 2], jaxprs))
    return [token, *results]


def _traced(function: Callable[..., list[Any]], avals: Sequence[ShapedArray],
            like: ClosedJaxpr) -> ClosedJaxpr:
    return trace_to_jaxpr(function, avals, like.jaxpr.debug_info)
