"""Reductions over processes that do not wait for one another, joined into one.

Every exchange costs a wait for the other processes. Equations that need no exchange run before it,
as far as the order of effects allows; the exchanges that are ready by then, and are alike, are one
of all their values. The engine has joined what is small for any link before that
(``maxjax._sharding.combine``), when it was not known what goes between processes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from maxjax._base.source import inherited_source_lines
from maxjax._ir.evaluate import apply_equation, literal_operand
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, every_equation
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._ir.trace import Value
from maxjax._primitives.joining import concatenate
from maxjax._primitives.layout import reshape
from maxjax._primitives.slicing import slice_in_dim
from maxjax._sharding.device_collectives import collective_p
from maxjax._sharding.exchange import REDUCTIONS

# The greatest operand that is joined with others: to copy a greater one costs more than the wait.
_MOST_BYTES = 4 << 20


def with_joined_reductions(closed: ClosedJaxpr) -> ClosedJaxpr:
    """The program of a shard with fewer exchanges, by the same plan in all processes that have the
    same equations."""
    if sum(map(_joinable, every_equation(closed))) < 2:
        return closed
    with inherited_source_lines():
        return trace_to_jaxpr(lambda *args: _run(closed.jaxpr, closed.consts, args),
                              closed.in_avals, closed.jaxpr.debug_info)


def _joinable(eqn: JaxprEqn) -> bool:
    return eqn.primitive is collective_p and eqn.params["exchange"].kind in REDUCTIONS and (
        eqn.invars[0].aval.size * eqn.invars[0].aval.dtype.itemsize <= _MOST_BYTES)


def _run(jaxpr: Jaxpr, consts: Sequence[Value], args: Sequence[Value]) -> list[Any]:
    values: dict[Atom, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args],
                                       strict=True))

    def value(atom: Atom) -> Any:
        return literal_operand(atom) if isinstance(atom, Literal) else values[atom]

    for part in _plan(jaxpr.eqns):
        operands = [[value(atom) for atom in eqn.invars] for eqn in part]
        if len(part) > 1:
            results: Sequence[Any] = _joined(part, [x for x, in operands])
        else:
            eqn, = part
            if not eqn.primitive.cacheable:
                eqn = eqn.replace(params={
                    name: _inner(param) for name, param in eqn.params.items()})
            results = apply_equation(eqn, operands[0])
        values.update(zip([var for eqn in part for var in eqn.outvars], results, strict=True))
    return [value(atom) for atom in jaxpr.outvars]


def _inner(param: object) -> Any:
    if isinstance(param, ClosedJaxpr):
        return with_joined_reductions(param)
    return tuple(map(_inner, param)) if type(param) is tuple else param


def _plan(eqns: Sequence[JaxprEqn]) -> Iterator[list[JaxprEqn]]:
    """Equations in the order in which they run; more than one: joined."""
    while eqns:
        alike: dict[Any, list[JaxprEqn]] = {}
        delayed: list[JaxprEqn] = []
        late: set[Atom] = set()      # what comes after the next exchanges
        ordered = False              # an effect has been delayed: those that follow are, too
        for eqn in eqns:
            waits = any(atom in late for atom in eqn.invars if not isinstance(atom, Literal))
            if _joinable(eqn) and not waits and not ordered:
                exchange = eqn.params["exchange"]
                alike.setdefault((exchange.kind, exchange.groups, exchange.reduced,
                                  eqn.invars[0].aval.dtype), []).append(eqn)
                late.update(eqn.outvars)
            elif waits or eqn.effects and (ordered or alike):
                delayed.append(eqn)
                late.update(eqn.outvars)
                ordered = ordered or bool(eqn.effects) and not _joinable(eqn)
            else:
                yield [eqn]
        yield from alike.values()
        eqns = delayed


def _joined(eqns: Sequence[JaxprEqn], operands: Sequence[Value]) -> list[Any]:
    flat = [reshape(x, (math.prod(x.shape),)) for x in operands]
    total = collective_p.bind(concatenate(flat, 0), **eqns[0].params)
    results, start = [], 0
    for x in operands:
        stop = start + math.prod(x.shape)
        results.append(reshape(slice_in_dim(total, start, stop, 0), x.shape))
        start = stop
    return results
