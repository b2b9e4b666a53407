"""Writes scalar constants among a loop's or a choice's operands into its bodies.

    y = scan[body] 0.5 0.0 xs, where body c s x = (s * c + x, s)    body s x = (s * 0.5 + x, s)

A program that closes over a constant of an outer one takes it as an operand; where it stands in the
body, what is computed with it is simplified, and a kernel has it as a number.
"""

from __future__ import annotations

from maxjax._ir.control_flow import Body, Role, structure_of
from maxjax._ir.jaxpr import ClosedJaxpr, JaxprEqn, Literal, replaced


def literals_inside(closed: ClosedJaxpr) -> ClosedJaxpr:
    """A jaxpr whose loops and choices take no scalar constants that stay as they are."""
    eqns = [eqn if eqn.primitive.inner.control_flow is None else _with_literals_inside(eqn)
            for eqn in closed.jaxpr.eqns]
    if all(new is eqn for new, eqn in zip(eqns, closed.jaxpr.eqns, strict=True)):
        return closed
    return closed.replace(eqns=eqns)


def _with_literals_inside(eqn: JaxprEqn) -> JaxprEqn:
    flow = structure_of(eqn)
    literals = {number: atom for number, (atom, role) in enumerate(
        zip(eqn.invars, flow.roles, strict=True))
        if isinstance(atom, Literal) and role is Role.CONSTANT}
    if not literals:
        return eqn
    parts = [[number for number in part if number not in literals]
             for part in flow.parts(range(len(eqn.invars)))]
    return eqn.replace(
        invars=[eqn.invars[number] for part in parts for number in part],
        params=flow.regrouped(eqn.params, [*map(len, parts)],
                              [_body(body, literals) for body in flow.bodies]))


def _body(body: Body, literals: dict[int, Literal]) -> ClosedJaxpr:
    jaxpr = body.jaxpr.jaxpr
    inside = {var: literals[number] for number, var in zip(body.takes, jaxpr.invars, strict=True)
              if number in literals}
    return ClosedJaxpr(jaxpr.replace(
        invars=[var for var in jaxpr.invars if var not in inside],
        eqns=[eqn.replace(invars=replaced(eqn.invars, inside)) for eqn in jaxpr.eqns],
        outvars=replaced(jaxpr.outvars, inside)), body.jaxpr.consts)
