"""What a call of a program will roughly take, as estimated from its equations."""

from __future__ import annotations

from maxjax._ir.control_flow import iterations
from maxjax._ir.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, every_equation, subjaxprs

# Assumed of a loop whose number of iterations is unknown: planning a short loop in vain costs
# little, interpreting a long one costs much.
_UNKNOWN_ITERATIONS = 256


def estimated_seconds(jaxpr: Jaxpr | ClosedJaxpr) -> float:
    """What a call of a program will roughly take: to decide, and to order what is reported."""
    return sum(map(equation_seconds, jaxpr.eqns))


def equation_seconds(eqn: JaxprEqn) -> float:
    """How many seconds an equation will roughly take, with the iterations of a loop."""
    total = 1e-6 + sum(var.aval.nbytes for var in eqn.outvars) * 5e-10
    total += sum(map(estimated_seconds, subjaxprs(eqn.params))) * iterations(
        eqn, _UNKNOWN_ITERATIONS)
    flops = eqn.primitive.cost.flops
    if flops is not None:
        avals = [atom.aval for atom in eqn.invars]
        total += flops(avals, [v.aval for v in eqn.outvars], **eqn.params) * 2e-11
    return total


def equation_count(jaxpr: Jaxpr) -> int:
    """Equations, with those of the jaxprs inside."""
    return sum(1 for _ in every_equation(jaxpr))
