"""Passes that make a jaxpr smaller without changing what it computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxjax._ir.jaxpr import Atom, ClosedJaxpr, DropVar, Jaxpr, JaxprEqn, Literal, Var

# The primitives that only call a jaxpr: its name among their parameters.
CALLS = {"jit": "jaxpr", "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr",
         "remat2": "jaxpr"}


def inline_calls(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Replaces calls by the equations that they call. Afterwards no two variables are shared."""
    constants: dict[int, tuple[Var, Any]] = {}
    eqns: list[JaxprEqn] = []

    def constant(value: Any, aval: Any) -> Var:
        known = constants.get(id(value))
        if known is None:
            known = constants[id(value)] = (Var(aval), value)
        return known[0]

    def inline(jaxpr: Jaxpr, consts: Sequence[Any], operands: Sequence[Atom]) -> list[Atom]:
        env: dict[Var, Atom] = {
            var: constant(value, var.aval)
            for var, value in zip(jaxpr.constvars, consts, strict=True)}
        env.update(zip(jaxpr.invars, operands, strict=True))

        def read(atom: Atom) -> Atom:
            return env[atom] if isinstance(atom, Var) else atom

        for eqn in jaxpr.eqns:
            invars = [read(atom) for atom in eqn.invars]
            parameter = CALLS.get(eqn.primitive.name)
            if parameter is not None:
                called = eqn.params[parameter]
                inner, inner_consts = ((called.jaxpr, called.consts)
                                       if isinstance(called, ClosedJaxpr) else (called, ()))
                results = inline(inner, inner_consts, invars)
                env.update(zip(eqn.outvars, results, strict=True))
                continue
            outvars = [type(var)(var.aval) for var in eqn.outvars]
            env.update(zip(eqn.outvars, outvars, strict=True))
            eqns.append(eqn.replace(invars=invars, outvars=outvars))
        return [read(atom) for atom in jaxpr.outvars]

    invars = [Var(var.aval) for var in closed.jaxpr.invars]
    outvars = inline(closed.jaxpr, closed.consts, invars)
    return ClosedJaxpr(
        Jaxpr([var for var, _ in constants.values()], invars, outvars, eqns,
              closed.jaxpr.debug_info),
        [value for _, value in constants.values()])


def eliminate_dead_code(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Without the equations, results and constants that no output depends on."""
    jaxpr = closed.jaxpr
    used = {atom for atom in jaxpr.outvars if isinstance(atom, Var)}
    kept = []
    for eqn in reversed(jaxpr.eqns):
        if not has_effects(eqn) and not any(var in used for var in eqn.outvars):
            continue
        used.update(atom for atom in eqn.invars if isinstance(atom, Var))
        kept.append(eqn.replace(outvars=[
            var if var in used else DropVar(var.aval) for var in eqn.outvars]))
    kept.reverse()
    constants = [(var, value) for var, value in zip(jaxpr.constvars, closed.consts, strict=True)
                 if var in used]
    return ClosedJaxpr(
        jaxpr.replace(constvars=[var for var, _ in constants], eqns=kept),
        [value for _, value in constants])


def has_effects(eqn: JaxprEqn) -> bool:
    return getattr(eqn.primitive, "effects", False)


def eliminate_common_subexpressions(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Equal equations are computed once."""
    jaxpr = closed.jaxpr
    env: dict[Var, Atom] = {}
    seen: dict[Any, list[Var]] = {}
    eqns = []

    def read(atom: Atom) -> Atom:
        return env.get(atom, atom) if isinstance(atom, Var) else atom

    for eqn in jaxpr.eqns:
        invars = [read(atom) for atom in eqn.invars]
        eqn = eqn.replace(invars=invars)
        if eqn.primitive.cacheable and not has_effects(eqn):
            key = (eqn.primitive, tuple(map(_atom_key, invars)), tuple(eqn.params.items()))
            known = seen.get(key)
            if known is not None:
                env.update(zip(eqn.outvars, known, strict=True))
                continue
            seen[key] = [var if type(var) is Var else Var(var.aval) for var in eqn.outvars]
            eqn = eqn.replace(outvars=seen[key])
        eqns.append(eqn)
    return ClosedJaxpr(
        jaxpr.replace(eqns=eqns, outvars=[read(atom) for atom in jaxpr.outvars]), closed.consts)


def _atom_key(atom: Atom) -> Any:
    """Bytes tell 0.0 from -0.0, and a NaN equals itself."""
    if isinstance(atom, Literal):
        value = atom.val
        return (atom.aval, value.tobytes() if hasattr(value, "tobytes") else repr(value))
    return atom


def simplify(closed: ClosedJaxpr) -> ClosedJaxpr:
    """All passes."""
    return eliminate_dead_code(eliminate_common_subexpressions(inline_calls(closed)))
