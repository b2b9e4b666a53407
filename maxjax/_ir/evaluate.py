"""Evaluation: running the equations of a jaxpr in turn, whatever each one means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from maxjax._base.errors import InternalError
from maxjax._base.source import scopes
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from maxjax._ir.liveness import last_uses
from maxjax._ir.refs import read_all, write_back
from maxjax._ir.runtime import installed
from maxjax._ir.trace import Value, context


def literal_operand(literal: Literal) -> Any:
    """A literal as an operand: weakly typed ones keep their weakness."""
    if literal.aval.weak_type:
        return installed.runtime.constant(literal.val, literal.aval)
    return literal.val


def itself(literal: Literal) -> Literal:
    """A literal where operands are atoms, for rules that write programs."""
    return literal


def apply_equation(eqn: JaxprEqn, operands: Sequence[Value]) -> Sequence[Any]:
    """The results of an equation's primitive under the current trace."""
    result = context.trace.apply(eqn.primitive, tuple(operands), eqn.params)
    return result if eqn.primitive.multiple_results else (result,)


def eval_jaxpr(jaxpr: Jaxpr, consts: Sequence[Any], *args: Any,
               rule: Callable[[JaxprEqn, list[Any]], Sequence[Any]] | None = None,
               literal: Callable[[Literal], Any] = literal_operand) -> list[Any]:
    """The outputs of a jaxpr; its equations are applied in turn under the current trace.

    Values are dropped after their last use, unless there is a rule.

    Args:
      rule: what gives the results of an equation instead, ``rule(equation, operands)``.
      literal: what a literal is as an operand.
    """
    if len(args) != len(jaxpr.invars):
        raise InternalError(f"a jaxpr of {len(jaxpr.invars)} inputs was given {len(args)} values")
    values: dict[Atom, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    values.update(zip(jaxpr.invars, args, strict=True))
    last = last_uses(jaxpr) if rule is None else {}
    outer_line = scopes.source_line
    inherits_lines = rule is None and outer_line.__class__ is not str
    for position, eqn in enumerate(jaxpr.eqns):
        if inherits_lines:
            scopes.source_line = (eqn.source if eqn.source is None or not scopes.names
                                  else eqn.source.inside(scopes.names))
        operands = [literal(atom) if isinstance(atom, Literal) else values[atom]
                    for atom in eqn.invars]
        if rule is not None:
            values.update(zip(eqn.outvars, rule(eqn, operands), strict=True))
            continue
        result = context.trace.apply(eqn.primitive, tuple(operands), eqn.params)
        if eqn.primitive.multiple_results:
            values.update(zip(eqn.outvars, result, strict=True))
        else:
            values[eqn.outvars[0]] = result
        for atom in eqn.invars:
            if last.get(atom) == position:
                values.pop(atom, None)
    if inherits_lines:
        scopes.source_line = outer_line
    return [literal(atom) if isinstance(atom, Literal) else values[atom] for atom in jaxpr.outvars]


def eval_with_refs(closed: ClosedJaxpr, *args: Value) -> list[Any]:
    """``eval_jaxpr`` of a jaxpr that uses references."""
    return write_back(closed.refs, eval_jaxpr(
        closed.jaxpr, closed.consts, *args, *read_all(closed.refs)))
