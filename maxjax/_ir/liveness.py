"""Liveness: which variables are read, by which equation last, and which equations are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from maxjax._ir.jaxpr import (
    Atom,
    ClosedJaxpr,
    DropVar,
    Jaxpr,
    JaxprEqn,
    Literal,
    Var,
    derived,
    subjaxprs,
)


def variables(atoms: Iterable[Atom]) -> list[Var]:
    """The atoms that are not literals."""
    return [atom for atom in atoms if not isinstance(atom, Literal)]


def read_variables(eqns: Iterable[JaxprEqn], outvars: Iterable[Atom] = ()) -> dict[Var, None]:
    """The variables that equations or outputs read, each once, in order."""
    found = {atom: None for eqn in eqns for atom in eqn.invars if not isinstance(atom, Literal)}
    found.update({atom: None for atom in outvars if not isinstance(atom, Literal)})
    return found


@derived
def read_inputs(closed: ClosedJaxpr) -> Sequence[bool]:
    """Which inputs are read; all of them if the jaxpr's facts say that they count as read."""
    if closed.facts.keeps_inputs:
        return [True] * len(closed.invars)
    read = read_variables(closed.eqns, closed.outvars)
    return [var in read for var in closed.invars]


def last_uses(jaxpr: Jaxpr) -> dict[Atom, int]:
    """The position of the equation that reads each variable last; outputs have none."""
    last: dict[Atom, int] = {
        atom: position for position, eqn in enumerate(jaxpr.eqns) for atom in eqn.invars
        if not isinstance(atom, Literal)}
    for atom in jaxpr.outvars:
        last.pop(atom, None)
    return last


# --- what depends on inputs -----------------------------------------------------------------------

def dependent_equations(eqns: Iterable[JaxprEqn], marked: set[Var]) -> list[JaxprEqn]:
    """The equations that depend on marked variables; marks their results."""
    found = []
    for eqn in eqns:
        if not marked.isdisjoint(eqn.invars):
            marked.update(eqn.outvars)
            found.append(eqn)
    return found


def dependent_outputs(jaxpr: Jaxpr, inputs: Sequence[bool]) -> list[bool]:
    """Which outputs depend on the inputs that are marked."""
    marked = {var for var, mark in zip(jaxpr.invars, inputs, strict=True) if mark}
    dependent_equations(jaxpr.eqns, marked)
    return [atom in marked for atom in jaxpr.outvars]


# --- what outputs need ----------------------------------------------------------------------------

def has_effects(eqn: JaxprEqn) -> bool:
    """Whether an equation, or one in a jaxpr inside it, has effects whose order its operands do not
    fix: it must not be dropped or moved."""
    own = eqn.primitive.effects
    if own is not None and own.effects(**eqn.params) is not None:
        return not own.ordered_by_operands
    return not eqn.primitive.cacheable and any(
        has_effects(inner) for jaxpr in subjaxprs(eqn.params) for inner in jaxpr.eqns)


def needed_equations(
        eqns: Sequence[JaxprEqn], needed: set[Var],
        keeps: Callable[[JaxprEqn], bool] = has_effects,
        pruned: Callable[[JaxprEqn], JaxprEqn] | None = None) -> list[JaxprEqn]:
    """The equations that needed variables depend on; the variables they read are needed too.

    Args:
      needed: the needed variables; those that the equations read are added.
      keeps: which equations are kept even if nothing needs their results.
      pruned: removes from an equation what is not needed of it.
    """
    found = []
    for eqn in reversed(eqns):
        if needed.isdisjoint(eqn.outvars) and not keeps(eqn):
            continue
        if pruned is not None:
            eqn = pruned(eqn)
        needed.update(variables(eqn.invars))
        found.append(eqn)
    found.reverse()
    return found


def needed_inputs(jaxpr: Jaxpr, outputs: Sequence[bool]) -> list[bool]:
    """Which inputs the marked outputs and the equations with effects need."""
    needed = set(variables(
        atom for atom, mark in zip(jaxpr.outvars, outputs, strict=True) if mark))
    needed_equations(jaxpr.eqns, needed)
    return [var in needed for var in jaxpr.invars]


def eliminate_dead_code(closed: ClosedJaxpr, inside: bool = True) -> ClosedJaxpr:
    """Without the equations, results and constants that no output depends on.

    Args:
      inside: loops, branches and calls lose what is not needed of them, too.
    """
    jaxpr = closed.jaxpr
    needed = set(variables(jaxpr.outvars))

    def pruned(eqn: JaxprEqn) -> JaxprEqn:
        if inside and eqn.primitive.inner.dead_code is not None:
            eqn = eqn.primitive.inner.dead_code(eqn, [var in needed for var in eqn.outvars])
        if needed.issuperset(eqn.outvars):
            return eqn
        return eqn.replace(outvars=[
            var if var in needed else DropVar(var.aval) for var in eqn.outvars])

    eqns = needed_equations(jaxpr.eqns, needed, pruned=pruned)
    constants = [(var, value) for var, value in zip(jaxpr.constvars, closed.consts, strict=True)
                 if var in needed]
    return closed.replace(
        jaxpr=jaxpr.replace(constvars=[var for var, _ in constants], eqns=eqns),
        consts=[value for _, value in constants])
