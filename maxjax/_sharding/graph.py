"""A program as propagation sees it: operations, each of which ties dimensions by its factor rule.

Calls are inlined, in loop bodies and branches too, and no two equations share a variable. A loop's
operands, its body's inputs, its body's outputs and its results are tied by rules of identity, so
that one propagation covers the bodies of scan and while and the branches of cond.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from maxjax._base import threads
from maxjax._ir.control_flow import Role, Structure, bodies_of, structure_of, with_bodies
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Var
from maxjax._ir.liveness import eliminate_dead_code
from maxjax._primitives.joining import concatenate_p
from maxjax._primitives.rules import FactorRule
from maxjax._primitives.slicing import slice_p
from maxjax._sharding.projection import rule_of
from maxjax._transforms.simplify import inline_calls

Stays = Callable[[JaxprEqn], bool]


def normalize(closed: ClosedJaxpr, stays: Stays | None = None) -> ClosedJaxpr:
    """Inlines calls everywhere, but for those that stay, and drops dead code; no two equations
    share a variable."""
    return _normalize(eliminate_dead_code(closed), stays)


def _normalize(closed: ClosedJaxpr, stays: Stays | None) -> ClosedJaxpr:
    inlined = inline_calls(closed, stays=stays)
    eqns = []
    for eqn in inlined.jaxpr.eqns:
        if eqn.primitive.inner.control_flow is not None:
            eqn = eqn.replace(params=with_bodies(
                eqn, [_normalize(body, stays) for body in bodies_of(eqn)]))
        eqns.append(eqn)
    return inlined.replace(eqns=eqns)


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


def operations(jaxpr: Jaxpr, known: dict[Hashable, FactorRule] | None = None) -> list[Operation]:
    """All operations of a normalized jaxpr, bodies included, in order of execution.

    Equal operations, as in many layers, share a rule, which is kept in ``known``.
    """
    found: list[Operation] = []
    known = {} if known is None else known
    sliced: dict[Var, Atom] = {}
    for eqn in jaxpr.eqns:
        if eqn.primitive is slice_p:
            sliced[eqn.outvars[0]] = eqn.invars[0]
        source = _rolled(eqn, sliced)
        if source is not None:
            found.append(_tie(source, eqn.outvars[0], 0, eqn, "of slices"))
        if eqn.primitive.inner.control_flow is None:
            found.append(Operation(eqn.invars, eqn.outvars, _known_rule(eqn, known), eqn,
                                   eqn.primitive.name))
        else:
            flow = structure_of(eqn)
            before, after = _ties(eqn, flow)
            found.extend(_tie(a, b, lead, eqn, "in") for a, b, lead in before)
            for body in flow.bodies:
                found.extend(operations(body.jaxpr.jaxpr, known))
            found.extend(_tie(a, b, lead, eqn, "out") for a, b, lead in after)
    return found


def _rolled(eqn: JaxprEqn, sliced: dict[Var, Atom]) -> Atom | None:
    """The value whose slices are concatenated to a result of its shape, as by ``roll``: both have
    the same sharding, even where the slices cannot."""
    if eqn.primitive is not concatenate_p:
        return None
    sources = {sliced.get(atom) for atom in eqn.invars if isinstance(atom, Var)}
    source = sources.pop() if len(sources) == 1 else None
    return source if source is not None and source.aval.shape == eqn.outvars[0].aval.shape else None


def _known_rule(eqn: JaxprEqn, known: dict[Hashable, FactorRule]) -> FactorRule:
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


def _pairs(sources: Sequence[Atom], targets: Sequence[Var], lead: int = 0) -> list[Tie]:
    return [(a, b, lead) for a, b in zip(sources, targets, strict=True)]


def _ties(eqn: JaxprEqn, flow: Structure) -> tuple[list[Tie], list[Tie]]:
    """What is tied before the bodies of a loop or a choice, and what after them.

    A carry is the input of the body that gives it: the predicate's input is tied to that.
    """
    before: list[Tie] = []
    again: list[Tie] = []
    after: list[Tie] = []
    count = len(flow.carries)
    carries: dict[int, Var] = {}
    for body in flow.producers:
        inputs = zip(body.takes, body.jaxpr.jaxpr.invars, strict=True)
        carries.update((number, var) for number, var in inputs if number in flow.carries)
        outs, carried = body.jaxpr.jaxpr.outvars, list(carries.values())
        after += [*_pairs(outs[:count], carried), *_pairs(carried, eqn.outvars[:count]),
                  *_pairs(outs[count:], eqn.outvars[count:], -1 if flow.is_loop else 0)]
    for body in flow.bodies:
        for number, var in zip(body.takes, body.jaxpr.jaxpr.invars, strict=True):
            if body.decides and number in carries:
                again.append((carries[number], var, 0))
            else:
                lead = 1 if flow.roles[number] is Role.SCANNED else 0
                before.append((eqn.invars[number], var, lead))
    return before + again, after
