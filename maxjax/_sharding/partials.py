"""Partial results: which operations may run on the parts of a sum before it is summed.

The parts of ``x = psum(part)`` may stay parts through ``f`` as long as ``psum(f(part))`` is
``f(x)``: through what is linear in them alone, and through sums of values that are all in parts.
A value stays in parts only if all of its uses allow that and reducing what comes of them costs no
more than reducing it at once, where it is made. So a sum of two partial gradients is one reduction,
and a broadcast of a partial sum is preceded by one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maxjax._ir.jaxpr import Atom, Jaxpr, JaxprEqn, Literal, Var
from maxjax._ir.linearity import Linearity
from maxjax._primitives.arithmetic import add_p
from maxjax._primitives.builders import add_any_p

Parts = Mapping[str, str]      # axis -> how the parts combine

def accumulators(jaxpr: Jaxpr, carries_in: Sequence[Var], carries_out: Sequence[Atom]) -> list[int]:
    """The carries of a loop that are only ever added to: ``out = in + x``."""
    uses: Counter[Var] = Counter(
        atom for eqn in jaxpr.eqns for atom in eqn.invars if isinstance(atom, Var))
    uses.update(atom for atom in jaxpr.outvars if isinstance(atom, Var))
    makers = {var: eqn for eqn in jaxpr.eqns for var in eqn.outvars}
    found = []
    for number, (source, target) in enumerate(zip(carries_in, carries_out, strict=True)):
        eqn = makers.get(target) if isinstance(target, Var) else None
        if (eqn is not None and eqn.primitive in (add_p, add_any_p) and source in eqn.invars
                and uses[source] == 1 and isinstance(target, Var) and uses[target] == 1):
            found.append(number)
    return found


def passes(eqn: JaxprEqn, axis: str, kind: str, parts: Sequence[Parts]) -> bool:
    """Whether the result is in parts as the operands are, which hold them along ``axis``."""
    linearity = eqn.primitive.linearity
    here = [number for number, part in enumerate(parts) if axis in part]
    if linearity is None or any(parts[number][axis] != kind for number in here):
        return False
    if linearity.moves:
        return True
    if kind != "add" or not _goes_through(linearity, eqn):
        return False
    linear = linearity.positions(len(parts))
    if linearity.each:
        return len(here) == 1 and here[0] in linear
    return set(here) <= set(linear) and all(
        number in here or _is_zero(eqn.invars[number]) for number in linear)


def _goes_through(linearity: Linearity, eqn: JaxprEqn) -> bool:
    rule = linearity.parts
    return rule is None or rule([atom.aval for atom in eqn.invars],
                                [var.aval for var in eqn.outvars], eqn.params)


def _is_zero(atom: Atom) -> bool:
    return isinstance(atom, Literal) and bool(atom.val == 0)


def kept(jaxpr: Jaxpr, made: Callable[[JaxprEqn], Parts], used: Callable[[JaxprEqn], set[str]],
         axes_of: Callable[[Var], set[str]], asked: Mapping[Var, Parts],
         price: Callable[[Var], float], given: Mapping[Var, Parts]) -> tuple[
             dict[Var, Parts], dict[JaxprEqn, Parts]]:
    """For each variable the axes along which it stays in parts, and for each equation those along
    which it computes parts of its result from parts of its operands. What is not kept is reduced
    where it is made.

    Args:
      made: the parts that an equation makes of whole operands.
      used: the axes that an equation splits its work over.
      axes_of: the axes that split a variable's dimensions.
      asked: the parts that outputs are wanted in.
      price: what it costs to reduce a variable.
      given: the parts that inputs come in.
    """
    reduced: set[Var] = {var for var in jaxpr.outvars if isinstance(var, Var) and var not in asked}
    while True:
        parts: dict[Var, Parts] = {var: part for var, part in given.items() if var not in reduced}
        through: dict[JaxprEqn, Parts] = {}
        size = len(reduced)

        def of(atom: Atom, parts: Any = parts) -> Parts:
            return parts.get(atom, {}) if isinstance(atom, Var) else {}

        for eqn in jaxpr.eqns:
            operands = [of(atom) for atom in eqn.invars]
            own = made(eqn)
            found: dict[str, str] = {}
            incoming = {axis: kind for part in operands for axis, kind in part.items()}
            if incoming:
                # Of a barrier's operands each has its own result: all or none stays in parts.
                several = len(eqn.outvars) > 1 and len(eqn.invars) > 1
                busy = used(eqn)
                for axis, kind in incoming.items():
                    if several or axis in busy or axis in own or not passes(
                            eqn, axis, kind, operands):
                        reduced.update(atom for atom, part in zip(
                            eqn.invars, operands, strict=True)
                            if axis in part and isinstance(atom, Var))
                    else:
                        found[axis] = kind
            through[eqn] = found
            found = {**own, **found}
            for var in eqn.outvars:
                if found.keys() & axes_of(var):
                    reduced.add(var)
                if found and var not in reduced:
                    parts[var] = found
        later: dict[Var, float] = dict.fromkeys(asked, 0.0)      # the price of what comes of it
        for eqn in reversed(jaxpr.eqns):
            if not through[eqn]:
                continue
            cost = 0.0
            for var in eqn.outvars:
                if var in parts and later.get(var, 0.0) > price(var):
                    reduced.add(var)
                cost += price(var) if var in reduced else later.get(var, 0.0)
            for atom in {atom for atom in eqn.invars if isinstance(atom, Var) and atom in parts}:
                later[atom] = later.get(atom, 0.0) + cost
        reduced.update(var for var, cost in later.items() if var in parts and cost > price(var))
        if len(reduced) == size:
            return parts, through
