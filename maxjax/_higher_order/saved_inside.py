"""What a policy of ``checkpoint`` saves inside loops and branches.

A scan whose body computes a value to save stacks it, as a further result; the scan of the backward
pass takes the stack, and computes only the rest. A branch gives such a value as a further result of
its choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from maxjax._higher_order.checkpoint_policies import Policy, saves
from maxjax._higher_order.cond import cond_p, with_places
from maxjax._higher_order.jit import jit_p
from maxjax._higher_order.scan import scan_p
from maxjax._ir.jaxpr import ClosedJaxpr, DropVar, JaxprEqn, Var
from maxjax._ir.liveness import has_effects
from maxjax._ir.types import ShapedArray
from maxjax._transforms.simplify import called_by, inline_calls


class Divided(NamedTuple):
    """Equations that run twice.

    Attributes:
      first: give the values that may be saved, too.
      again: the same equations given these values, which they do not compute.
      saveable: the values that may be saved.
    """

    first: list[JaxprEqn]
    again: list[JaxprEqn]
    saveable: list[Var]


def divided(eqns: Sequence[JaxprEqn], policy: Policy) -> Divided:
    """The equations of a forward pass, by what the policy says of each and of those inside it."""
    result = Divided([], [], [])
    for eqn in eqns:
        if saves(policy, eqn) and not has_effects(eqn):
            found = Divided([eqn], [], _used(eqn.outvars))
        elif eqn.primitive is scan_p:
            found = _of_scan(eqn, policy)
        elif eqn.primitive is cond_p:
            found = _of_choice(eqn, policy)
        else:
            found = Divided([eqn], [eqn], [])
        result.first.extend(found.first)
        result.again.extend(found.again)
        result.saveable.extend(found.saveable)
    return result


def _used(outvars: Sequence[Var]) -> list[Var]:
    return [var for var in outvars if not isinstance(var, DropVar)]


def _inside(closed: ClosedJaxpr, policy: Policy) -> tuple[ClosedJaxpr, Divided] | None:
    """A body without calls of jitted functions, divided; None where it holds nothing to save."""
    if closed.refs:
        return None
    body = inline_calls(closed, called_by(jit_p))
    parts = divided(body.eqns, policy)
    # How a stack of values is typed that are split along a mesh's axis is not known here.
    if not parts.saveable or any(var.aval.mesh_spec is not None for var in parts.saveable):
        return None
    return body, parts


def _of_scan(eqn: JaxprEqn, policy: Policy) -> Divided:
    found = _inside(eqn.params["jaxpr"], policy)
    if found is None:
        return Divided([eqn], [eqn], [])
    body, parts = found
    jaxpr, params = body.jaxpr, eqn.params
    # What the loop stacks as a result anyway needs no second stack.
    stacks = {atom: var for atom, var in zip(
        jaxpr.outvars[params["num_carry"]:], eqn.outvars[params["num_carry"]:], strict=True)
        if not isinstance(var, DropVar)}
    more = [var for var in parts.saveable if var not in stacks]
    stacks.update({var: Var(var.aval.update(shape=(params["length"], *var.aval.shape)))
                   for var in more})
    saved = [stacks[var] for var in parts.saveable]
    first = body.replace(jaxpr=jaxpr.replace(
        eqns=parts.first, outvars=[*jaxpr.outvars, *more]))
    again = body.replace(jaxpr=jaxpr.replace(
        eqns=parts.again, invars=[*jaxpr.invars, *parts.saveable]))
    return Divided(
        [eqn.replace(params={**params, "jaxpr": first},
                     outvars=[*eqn.outvars, *(stacks[var] for var in more)])],
        [eqn.replace(
            params={**params, "jaxpr": again},
            invars=[*eqn.invars, *saved],
            outvars=[DropVar(var.aval) if var in saved else var for var in eqn.outvars])],
        saved)


def _of_choice(eqn: JaxprEqn, policy: Policy) -> Divided:
    branches = eqn.params["branches"]
    inside = [_inside(branch, policy) for branch in branches]
    if not any(inside):
        return Divided([eqn], [eqn], [])
    # Values of one type share a place: a branch fills its own and leaves the others zero.
    places: list[ShapedArray] = []
    taken: list[dict[int, Var]] = []
    for found in inside:
        mine: dict[int, Var] = {}
        for var in () if found is None else found[1].saveable:
            place = next((number for number, aval in enumerate(places)
                          if aval is var.aval and number not in mine), len(places))
            if place == len(places):
                places.append(var.aval)
            mine[place] = var
        taken.append(mine)
    first, again = [], []
    for branch, found, mine in zip(branches, inside, taken, strict=True):
        body, parts = (branch, Divided(branch.eqns, branch.eqns, [])) if found is None else found
        jaxpr = body.jaxpr
        first.append(with_places(
            body.replace(jaxpr=jaxpr.replace(
                eqns=parts.first, outvars=[*jaxpr.outvars, *mine.values()])),
            len(jaxpr.outvars), tuple(places), tuple(mine)))
        again.append(body.replace(jaxpr=jaxpr.replace(
            eqns=parts.again,
            invars=[*jaxpr.invars, *(mine.get(n) or Var(aval) for n, aval in enumerate(places))])))
    saved = [Var(aval) for aval in places]
    return Divided(
        [eqn.replace(params={**eqn.params, "branches": tuple(first)},
                     outvars=[*eqn.outvars, *saved])],
        [eqn.replace(params={**eqn.params, "branches": tuple(again)},
                     invars=[*eqn.invars, *saved])],
        saved)
