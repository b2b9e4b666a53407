"""Unreduced values: which operations may run on partial results before these are reduced.

An unreduced ``x = psum(part)`` may stay so through ``f`` as long as ``psum(f(part))`` is ``f(x)``:
if ``f`` is linear in it alone, or adds values that are all unreduced. A value stays unreduced only
if all of its uses allow that and reducing their results costs no more than reducing the value as
soon as it is computed. So the sum of two unreduced gradients takes one reduction, and an unreduced
value is reduced before it is broadcast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from maxjax._ir.jaxpr import Atom, Jaxpr, JaxprEqn, Literal, Var
from maxjax._ir.linearity import Linearity
from maxjax._ir.liveness import variables
from maxjax._primitives.arithmetic import add_p
from maxjax._primitives.builders import add_any_p

UnreducedAxes = Mapping[str, str]      # axis -> how the partial results combine


def accumulators(jaxpr: Jaxpr, carries_in: Sequence[Var], carries_out: Sequence[Atom]) -> list[int]:
    """The carries of a loop that are only ever added to: ``out = in + x``."""
    uses = Counter(atom for eqn in jaxpr.eqns for atom in eqn.invars)
    uses.update(jaxpr.outvars)
    makers: dict[Atom, JaxprEqn] = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
    found = []
    for number, (source, target) in enumerate(zip(carries_in, carries_out, strict=True)):
        eqn = makers.get(target)
        if (eqn is not None and eqn.primitive in (add_p, add_any_p) and source in eqn.invars
                and uses[source] == 1 and uses[target] == 1):
            found.append(number)
    return found


def passes(eqn: JaxprEqn, axis: str, kind: str, operands: Sequence[UnreducedAxes]) -> bool:
    """Whether the result may be unreduced along ``axis``, as some of the operands are."""
    linearity = eqn.primitive.linearity
    here = [number for number, axes in enumerate(operands) if axis in axes]
    if linearity is None or any(operands[number][axis] != kind for number in here):
        return False
    if linearity.moves:
        return True
    if kind != "add" or not _may_stay_unreduced(linearity, eqn):
        return False
    linear = linearity.positions(len(operands))
    if linearity.each:
        return len(here) == 1 and here[0] in linear
    return set(here) <= set(linear) and all(
        number in here or _is_zero(eqn.invars[number]) for number in linear)


def _may_stay_unreduced(linearity: Linearity, eqn: JaxprEqn) -> bool:
    rule = linearity.unreduced
    return rule is None or rule([atom.aval for atom in eqn.invars],
                                [var.aval for var in eqn.outvars], eqn.params)


def _is_zero(atom: Atom) -> bool:
    return isinstance(atom, Literal) and bool(atom.val == 0)


def unreduced_values(jaxpr: Jaxpr, made: Callable[[JaxprEqn], UnreducedAxes],
                     used: Callable[[JaxprEqn], set[str]], axes_of: Callable[[Var], set[str]],
                     asked: Mapping[Var, UnreducedAxes], price: Callable[[Var], float],
                     given: Mapping[Var, UnreducedAxes]) -> tuple[
                         dict[Atom, UnreducedAxes], dict[JaxprEqn, UnreducedAxes]]:
    """For each variable the axes along which it stays unreduced, and for each equation those along
    which it computes an unreduced result from unreduced operands. All other values are reduced as
    soon as they are computed.

    Args:
      made: the axes along which an equation's result is unreduced when its operands are not.
      used: the axes that an equation splits its work over.
      axes_of: the axes that split a variable's dimensions.
      asked: the axes along which outputs are to be unreduced.
      price: what it costs to reduce a variable.
      given: the axes along which inputs are unreduced.
    """
    reduced: set[Var] = {var for var in variables(jaxpr.outvars) if var not in asked}
    while True:
        unreduced: dict[Atom, UnreducedAxes] = {
            var: axes for var, axes in given.items() if var not in reduced}
        through: dict[JaxprEqn, UnreducedAxes] = {}
        size = len(reduced)

        def of(atom: Atom, unreduced: Mapping[Atom, UnreducedAxes] = unreduced) -> UnreducedAxes:
            return unreduced.get(atom, {})

        for eqn in jaxpr.eqns:
            operands = [of(atom) for atom in eqn.invars]
            own = made(eqn)
            found: dict[str, str] = {}
            incoming = {axis: kind for axes in operands for axis, kind in axes.items()}
            if incoming:
                # Each operand of a barrier has its own result: all stay unreduced, or none.
                several = len(eqn.outvars) > 1 and len(eqn.invars) > 1
                busy = used(eqn)
                for axis, kind in incoming.items():
                    if several or axis in busy or axis in own or not passes(
                            eqn, axis, kind, operands):
                        reduced.update(atom for atom in variables(eqn.invars) if axis in of(atom))
                    else:
                        found[axis] = kind
            through[eqn] = found
            found = {**own, **found}
            for var in eqn.outvars:
                if found.keys() & axes_of(var):
                    reduced.add(var)
                if found and var not in reduced:
                    unreduced[var] = found
        later: dict[Var, float] = dict.fromkeys(asked, 0.0)      # what reducing its results costs
        for eqn in reversed(jaxpr.eqns):
            if not through[eqn]:
                continue
            cost = 0.0
            for var in eqn.outvars:
                if var in unreduced and later.get(var, 0.0) > price(var):
                    reduced.add(var)
                cost += price(var) if var in reduced else later.get(var, 0.0)
            for atom in {atom for atom in variables(eqn.invars) if atom in unreduced}:
                later[atom] = later.get(atom, 0.0) + cost
        reduced.update(var for var, cost in later.items() if var in unreduced and cost > price(var))
        if len(reduced) == size:
            return unreduced, through
