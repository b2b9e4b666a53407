"""Moves what is the same in every iteration out of a loop.

An equation of a loop's body whose operands do not change from one iteration to the next is computed
once, before the loop, and its results become constants of it:

    while c: y = sin(dot(a, w)) + y        t = sin(dot(a, w)); while c: y = t + y

That holds for operands that are the loop's constants, carries that the body returns unchanged, and
results of such equations. An equation that has effects or holds jaxprs stays, as does a barrier.
A system with the same matrix each time is solved by its factors, which leave. What only moves
elements stays too, unless something computed from it leaves: reading it is what a
kernel does anyway, and a transpose or a broadcast would take memory for as long as the loop runs.

Values are those of each iteration, bit for bit, but for solutions of systems, which may differ in
the last bits. A loop that does not run at all computes them in
vain: that is at most what one iteration takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from maxjax._ir.control_flow import Body, Role, Structure, structure_of
from maxjax._ir.dimensions import least
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, replaced
from maxjax._ir.liveness import has_effects, read_variables, variables
from maxjax._ir.staging import trace_to_jaxpr
from maxjax._primitives.identities import optimization_barrier_p
from maxjax._primitives.linalg_factors import solve_by_factors
from maxjax._primitives.linalg_solve import solve_p

# Results of this many bytes leave without being held against what they are computed from.
_SMALL_BYTES = 4096
# What leaves one loop, beyond what its operands take.
_SPARE_BYTES = 1 << 20
# Rows of a matrix from which on its factors are worth the calls that solve by them.
_LEAST_FACTORED = 8


class _Hoisted(NamedTuple):
    """What leaves one body: the equations, the values it then takes, and what is left of it."""

    eqns: list[JaxprEqn]
    values: list[Atom]
    body: ClosedJaxpr


def hoist_invariants(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Moves the invariants of the loops of a jaxpr in front of them; those of loops within loops
    leave the inner one only."""
    eqns: list[JaxprEqn] = []
    changed = False
    for eqn in closed.jaxpr.eqns:
        flow = None if eqn.primitive.inner.control_flow is None else structure_of(eqn)
        if flow is None or not flow.is_loop or flow.length is not None and least(flow.length) < 2:
            eqns.append(eqn)
            continue
        before, eqn = _without_invariants(eqn, flow)
        eqns += [*before, eqn]
        changed = changed or bool(before)
    return closed.replace(eqns=eqns) if changed else closed


def _without_invariants(eqn: JaxprEqn, flow: Structure) -> tuple[list[JaxprEqn], JaxprEqn]:
    """The equations that leave a loop, and the loop without them."""
    spare = _SPARE_BYTES + sum(_nbytes(atom) for atom in eqn.invars)
    constant = _constant_operands(eqn, flow)
    before: list[JaxprEqn] = []
    parts = flow.parts(eqn.invars)
    bodies = []
    for rule, body in zip(flow.operands.description.bodies, flow.bodies, strict=True):
        place = next(number for number in rule.takes
                     if flow.operands.description.groups[number].role is Role.CONSTANT)
        # Where the constants among the body's inputs end.
        end = sum(len(flow.groups[number]) for number in rule.takes[:rule.takes.index(place) + 1])
        hoisted = _split(body, constant, spare, end)
        if hoisted is None:
            bodies.append(body.jaxpr)
            continue
        spare -= sum(map(_nbytes, hoisted.values))
        before += hoisted.eqns
        parts[place] += hoisted.values
        bodies.append(hoisted.body)
    if not before:
        return before, eqn
    params = flow.regrouped(eqn.params, [*map(len, parts)], bodies)
    return before, eqn.replace(invars=[atom for part in parts for atom in part], params=params)


def _constant_operands(eqn: JaxprEqn, flow: Structure) -> dict[int, Atom]:
    """The operands that each iteration takes as they are, by their numbers."""
    producer, = flow.producers
    jaxpr = producer.jaxpr.jaxpr
    inside = dict(zip(producer.takes, jaxpr.invars, strict=True))
    return {number: atom for number, (atom, role) in enumerate(
        zip(eqn.invars, flow.roles, strict=True)) if role is Role.CONSTANT or (
            role is Role.CARRY and jaxpr.outvars[number - flow.carries.start] is inside[number])}


def _split(body: Body, constant: dict[int, Atom], spare: int, end: int) -> _Hoisted | None:
    """Takes the invariants out of a body; None where there are none worth it.

    Args:
      constant: the loop's operands that do not change.
      spare: how many bytes the values may take.
      end: where the values become inputs of the body.
    """
    jaxpr = _with_factors(body.jaxpr.jaxpr, [
        var for number, var in zip(body.takes, body.jaxpr.jaxpr.invars, strict=True)
        if number in constant])
    outside: dict[Var, Atom] = {var: constant[number] for number, var in zip(
        body.takes, jaxpr.invars, strict=True) if number in constant}
    # The most bytes of one operand of the loop that an invariant is computed from, and whether it
    # takes more than a few instructions an element.
    source: dict[Atom, int] = {var: _nbytes(var) for var in outside}
    heavy: set[Atom] = set()
    invariant: list[JaxprEqn] = []
    for eqn in jaxpr.eqns:
        if _may_leave(eqn) and all(
                atom in source or isinstance(atom, Literal) for atom in eqn.invars):
            invariant.append(eqn)
            most = max((source.get(atom, 0) for atom in eqn.invars), default=0)
            source.update(dict.fromkeys(eqn.outvars, most))
            if not _is_light(eqn) or not heavy.isdisjoint(eqn.invars):
                heavy.update(eqn.outvars)
    if not invariant:
        return None
    leaves = set(map(id, invariant))
    read = set(read_variables([eqn for eqn in jaxpr.eqns if id(eqn) not in leaves],
                              jaxpr.outvars))
    values: list[Var] = []
    computed: list[JaxprEqn] = []
    needed: set[Var] = set()        # by what leaves
    kept: set[int] = set()
    for eqn in reversed(invariant):
        wanted = [var for var in eqn.outvars if var in read]
        size = sum(map(_nbytes, wanted))
        if wanted and not _moves(eqn) and size <= spare and (
                size <= max(_SMALL_BYTES, source[eqn.outvars[0]])
                or not heavy.isdisjoint(eqn.outvars)):
            values += wanted
            spare -= size
            leaving = True
        else:
            leaving = not needed.isdisjoint(eqn.outvars)
            if wanted:
                kept.add(id(eqn))
                read.update(variables(eqn.invars))
        if leaving:
            computed.append(eqn)
            needed.update(variables(eqn.invars))
    if not values:
        return None
    values.reverse()
    eqns = []
    for eqn in reversed(computed):
        results = [Var(var.aval) for var in eqn.outvars]
        eqns.append(eqn.replace(invars=replaced(eqn.invars, outside), outvars=results))
        outside.update(zip(eqn.outvars, results, strict=True))
    left = [eqn for eqn in jaxpr.eqns if id(eqn) not in leaves or id(eqn) in kept]
    inputs = [*jaxpr.invars[:end], *values, *jaxpr.invars[end:]]
    return _Hoisted(eqns, [outside[var] for var in values],
                    ClosedJaxpr(jaxpr.replace(invars=inputs, eqns=left), body.jaxpr.consts))


def _with_factors(jaxpr: Jaxpr, constant: Sequence[Var]) -> Jaxpr:
    """Systems whose matrix alone is invariant are solved by the matrix's factors.

    Args:
      constant: the inputs that do not change.
    """
    if not any(eqn.primitive is solve_p for eqn in jaxpr.eqns):
        return jaxpr
    invariant: set[Atom] = {*constant}
    eqns = []
    for eqn in jaxpr.eqns:
        if _may_leave(eqn) and all(
                atom in invariant or isinstance(atom, Literal) for atom in eqn.invars):
            invariant.update(eqn.outvars)
        elif (eqn.primitive is solve_p and eqn.invars[0] in invariant
                and eqn.invars[0].aval.ndim == 2
                and least(eqn.invars[0].aval.shape[0]) >= _LEAST_FACTORED):
            eqns += _by_factors(eqn)
            continue
        eqns.append(eqn)
    return jaxpr.replace(eqns=eqns)


def _by_factors(eqn: JaxprEqn) -> list[JaxprEqn]:
    traced = trace_to_jaxpr(lambda a, b: [solve_by_factors(a, b)],
                            [atom.aval for atom in eqn.invars]).jaxpr
    env: dict[Any, Atom] = dict(zip(traced.invars, eqn.invars, strict=True))
    last, = traced.outvars
    eqns = []
    for inner in traced.eqns:
        outvars = [eqn.outvars[0] if var is last else Var(var.aval) for var in inner.outvars]
        eqns.append(JaxprEqn(inner.primitive, replaced(inner.invars, env), inner.params, outvars,
                             eqn.source))
        env.update(zip(inner.outvars, outvars, strict=True))
    return eqns


def _may_leave(eqn: JaxprEqn) -> bool:
    """Whether an equation may be computed where it would not have been: it only has results."""
    primitive = eqn.primitive
    return (bool(eqn.outvars) and primitive.cacheable and primitive.inner.control_flow is None
            and primitive is not optimization_barrier_p and not has_effects(eqn)
            and all(type(size) is int for var in eqn.outvars for size in var.aval.shape))


def _moves(eqn: JaxprEqn) -> bool:
    """Whether the elements of the results are those of an operand, or none at all."""
    linearity = eqn.primitive.linearity
    return not eqn.invars or (linearity is not None and linearity.moves)


def _is_light(eqn: JaxprEqn) -> bool:
    return _moves(eqn) or eqn.primitive.compiled.cheap


def _nbytes(atom: Atom) -> int:
    return atom.aval.nbytes
