"""A program as propagation sees it: operations, of which each ties dimensions by its factor rule.

Calls are inlined, in loop bodies and branches too, and no two equations share a variable. A loop's
operands, its body's inputs, its body's outputs and its results are tied by rules of identity, so
that one propagation covers the bodies of scan and while and the branches of cond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from maxjax._base import threads
from maxjax._higher_order.cond import cond_p
from maxjax._higher_order.scan import scan_p
from maxjax._higher_order.while_loop import while_p
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var
from maxjax._ir.primitive import Primitive
from maxjax._primitives.joining import concatenate_p
from maxjax._primitives.rules import FactorRule
from maxjax._primitives.slicing import slice_p
from maxjax._sharding.projection import rule_of
from maxjax._transforms.simplify import (
    bodies_of,
    eliminate_dead_code,
    inline_calls,
    with_bodies,
)


def normalize(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Inlines calls everywhere and drops dead code; every variable is its own."""
    return _normalize(eliminate_dead_code(closed))


def _normalize(closed: ClosedJaxpr) -> ClosedJaxpr:
    inlined = inline_calls(closed)
    eqns = []
    for eqn in inlined.jaxpr.eqns:
        if eqn.primitive.control_flow:
            eqn = eqn.replace(params=with_bodies(eqn, _normalize))
        eqns.append(eqn)
    return ClosedJaxpr(inlined.jaxpr.replace(eqns=eqns), inlined.consts)


def all_equations(jaxpr: Jaxpr) -> Iterator[JaxprEqn]:
    """The equations of a normalized jaxpr, those of bodies before the one that holds them."""
    for eqn in jaxpr.eqns:
        for body in bodies_of(eqn):
            yield from all_equations(body.jaxpr)
        yield eqn


@dataclass(eq=False)
class Operation:
    """Values whose dimensions a rule ties; ``eqn`` is None for the ties of loops."""

    operands: list[Atom]
    results: list[Var]
    rule: FactorRule
    eqn: JaxprEqn | None
    name: str

    @threads.cached
    def values(self) -> list[tuple[Var, Sequence[Any]]]:
        """The variables with their factors, operands first; literals have no dimensions."""
        pairs = zip([*self.operands, *self.results],
                    [*self.rule.operands, *self.rule.results], strict=True)
        return [(atom, factors) for atom, factors in pairs if isinstance(atom, Var) and factors]


def operations(jaxpr: Jaxpr, known: dict[Any, FactorRule] | None = None) -> list[Operation]:
    """All operations of a normalized jaxpr, bodies included, in order of execution.

    Operations that are alike, as those of many layers, share a rule, which is in ``known``.
    """
    found: list[Operation] = []
    known = {} if known is None else known
    sliced: dict[Any, Atom] = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive is slice_p:
            sliced[eqn.outvars[0]] = eqn.invars[0]
        source = _rolled(eqn, sliced)
        if source is not None:
            found.append(_tie(source, eqn.outvars[0], 0, eqn, "of slices"))
        ties = TIES.get(eqn.primitive)
        if ties is None:
            found.append(Operation(eqn.invars, eqn.outvars, _known_rule(eqn, known), eqn,
                                   eqn.primitive.name))
        else:
            before, bodies, after = ties(eqn)
            found.extend(_tie(a, b, lead, eqn, "in") for a, b, lead in before)
            for body in bodies:
                found.extend(operations(body.jaxpr, known))
            found.extend(_tie(a, b, lead, eqn, "out") for a, b, lead in after)
    return found


def _rolled(eqn: JaxprEqn, sliced: dict[Any, Atom]) -> Atom | None:
    """The value of whose slices, put together, a result of its shape is made, as by ``roll``: they
    lie alike, even where the slices cannot."""
    if eqn.primitive is not concatenate_p:
        return None
    sources = {sliced.get(atom) for atom in eqn.invars if isinstance(atom, Var)}
    source = sources.pop() if len(sources) == 1 else None
    return source if source is not None and source.aval.shape == eqn.outvars[0].aval.shape else None


def _known_rule(eqn: JaxprEqn, known: dict[Any, FactorRule]) -> FactorRule:
    key = (eqn.primitive, tuple(eqn.params.items()), *[atom.aval for atom in eqn.invars])
    try:
        rule = known.get(key)
    except TypeError:      # a parameter that has no hash
        return rule_of(eqn)
    if rule is None:
        rule = known[key] = rule_of(eqn)
    return rule


def _tie(source: Atom, target: Var, lead: int, eqn: JaxprEqn, what: str) -> Operation:
    """An identity; ``lead`` counts the dimensions that only the source (positive) or only the
    target (negative) has in front: those of scan's stacked values, which stay unsplit."""
    rank = target.aval.ndim if lead >= 0 else source.aval.ndim
    dims: tuple[tuple[Any, ...], ...] = tuple((number,) for number in range(rank))
    sizes: dict[Any, int] = dict(enumerate((target if lead >= 0 else source).aval.shape))
    replicated: frozenset[Any] = frozenset()
    stacked = dims
    if lead:
        stacked = (("loop",), *dims)
        sizes["loop"] = (source if lead > 0 else target).aval.shape[0]
        replicated = frozenset({"loop"})
    rule = FactorRule((stacked if lead > 0 else dims,), (stacked if lead < 0 else dims,),
                      sizes, replicated=replicated)
    return Operation([source], [target], rule, None, f"{eqn.primitive.name} {what}")


Tie = tuple[Atom, Var, int]
Ties = tuple[list[Tie], Sequence[ClosedJaxpr], list[Tie]]


def _pairs(sources: Sequence[Atom], targets: Sequence[Var], lead: int = 0) -> list[Tie]:
    return [(a, b, lead) for a, b in zip(sources, targets, strict=True)]


def _scan_ties(eqn: JaxprEqn) -> Ties:
    body, params = eqn.params["jaxpr"], eqn.params
    fixed = params["num_consts"] + params["num_carry"]
    carry = params["num_carry"]
    inner = body.jaxpr
    carry_in = inner.invars[params["num_consts"]:fixed]
    return (
        [*_pairs(eqn.invars[:fixed], inner.invars[:fixed]),
         *_pairs(eqn.invars[fixed:], inner.invars[fixed:], 1)],
        [body],
        [*_pairs(inner.outvars[:carry], carry_in), *_pairs(carry_in, eqn.outvars[:carry]),
         *_pairs(inner.outvars[carry:], eqn.outvars[carry:], -1)])


def _while_ties(eqn: JaxprEqn) -> Ties:
    params = eqn.params
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    first, second = params["cond_nconsts"], params["body_nconsts"]
    carry = body.jaxpr.invars[second:]
    return (
        [*_pairs(eqn.invars[:first], cond.jaxpr.invars[:first]),
         *_pairs(eqn.invars[first:first + second], body.jaxpr.invars[:second]),
         *_pairs(eqn.invars[first + second:], carry),
         *_pairs(carry, cond.jaxpr.invars[first:])],
        [cond, body],
        [*_pairs(body.jaxpr.outvars, carry), *_pairs(carry, eqn.outvars)])


def _cond_ties(eqn: JaxprEqn) -> Ties:
    branches = eqn.params["branches"]
    return (
        [tie for branch in branches for tie in _pairs(eqn.invars[1:], branch.jaxpr.invars)],
        branches,
        [tie for branch in branches for tie in _pairs(branch.jaxpr.outvars, eqn.outvars)])


TIES: dict[Primitive, Callable[[JaxprEqn], Ties]] = {
    scan_p: _scan_ties, while_p: _while_ties, cond_p: _cond_ties}
