"""Transposition: from the linear map of tangents to the linear map of cotangents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maxjax._base.errors import ShardingTypeError
from maxjax._base.meshes import use as mesh_use
from maxjax._base.shardings import NamedSharding
from maxjax._ir.jaxpr import Atom, ClosedJaxpr, Jaxpr, Literal, Var, derived
from maxjax._ir.primitive import Primitive
from maxjax._ir.refs import RefsTouched
from maxjax._ir.staging import literal_operand, trace_to_jaxpr
from maxjax._ir.trace import context
from maxjax._primitives.builders import add_tangents
from maxjax._primitives.rules import Linear
from maxjax._primitives.sharding import freed, reshard_p
from maxjax._transforms.linearize import LinearMap, LinearVar


def transpose_map(linear: LinearMap, cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents of the inputs of a linear map (None where zero)."""
    accumulated: dict[Any, Any] = {}
    for var, cotangent in zip(linear.outputs, cotangents, strict=True):
        if var is None or cotangent is None:
            continue
        accumulated[var] = add_tangents(accumulated.get(var), cotangent)
    for eqn in reversed(linear.equations):
        results = [accumulated.pop(var, None) for var in eqn.outvars]
        if all(cotangent is None for cotangent in results):
            continue
        operands = [Linear(x.aval) if type(x) is LinearVar else x for x in eqn.operands]
        for x, cotangent in zip(eqn.operands, _transpose(eqn, results, operands), strict=True):
            if type(x) is LinearVar and cotangent is not None:
                accumulated[x] = add_tangents(accumulated.get(x), cotangent)
    return [accumulated.get(var) for var in linear.inputs]


def _transpose(eqn: Any, cotangents: list[Any], operands: list[Any]) -> Sequence[Any]:
    primitive = eqn.primitive
    if primitive.transpose is None:
        raise missing_transpose(primitive)
    if mesh_use.ever_set and any(
            x.aval.mesh_spec is not None for x in operands if hasattr(x, "aval")):
        return _transpose_on_mesh(eqn, cotangents, operands)
    return _apply_rule(eqn, cotangents, operands)


def _apply_rule(eqn: Any, cotangents: list[Any], operands: list[Any]) -> Sequence[Any]:
    primitive = eqn.primitive
    if primitive.multiple_results:
        return primitive.transpose(cotangents, *operands, **eqn.params)
    return primitive.transpose(cotangents[0], *operands, **eqn.params)


def _on_mesh(transposed: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
    """Each cotangent, lying as its operand's type says."""
    result = []
    for cotangent, operand in zip(transposed, operands, strict=True):
        if cotangent is not None and type(operand) is Linear and hasattr(cotangent, "aval"):
            wanted = operand.aval.mesh_spec
            if operand.aval.cotangent().manual_axis_type != cotangent.aval.manual_axis_type:
                raise ValueError(
                    f"Expected cotangent type {operand.aval.cotangent().str_short()} but got "
                    f"{cotangent.aval.str_short()}")
            if wanted is not None and wanted != cotangent.aval.mesh_spec:
                cotangent = reshard_p.bind(
                    cotangent, dst_sharding=NamedSharding(wanted[0], wanted[1].to_ct_spec()))
        result.append(cotangent)
    return result


def _transpose_on_mesh(eqn: Any, cotangents: list[Any], operands: list[Any]) -> list[Any]:
    """The rule where types tell of a mesh: operands are freed of that if it needs no less."""
    try:
        transposed = _apply_rule(eqn, cotangents, operands)
    except ShardingTypeError:
        transposed = _apply_rule(eqn, list(map(freed, cotangents)), [
            Linear(x.aval.update(mesh_spec=None)) if type(x) is Linear else freed(x)
            for x in operands])
    return _on_mesh(transposed, operands)


def missing_transpose(primitive: Primitive) -> NotImplementedError:
    return NotImplementedError("Transpose rule (for reverse-mode differentiation) for "
                               f"'{primitive.name}' not implemented")


def backward_pass(jaxpr: Jaxpr, consts: Sequence[Any], operands: Sequence[Any],
                  cotangents: Sequence[Any]) -> list[Any]:
    """Cotangents of the ``Linear`` operands of a jaxpr; equations on known values run forward."""
    known: dict[Var, Any] = dict(zip(jaxpr.constvars, consts, strict=True))
    linear: set[Var] = set()
    for var, operand in zip(jaxpr.invars, operands, strict=True):
        if type(operand) is Linear:
            linear.add(var)
        else:
            known[var] = operand

    def read(atom: Atom) -> Any:
        if isinstance(atom, Literal):
            return literal_operand(atom)
        return Linear(atom.aval) if atom in linear else known[atom]

    linear_eqns = []
    for eqn in jaxpr.eqns:
        if any(isinstance(atom, Var) and atom in linear for atom in eqn.invars):
            linear.update(eqn.outvars)
            linear_eqns.append(eqn)
            continue
        result = context.trace.apply(
            eqn.primitive, tuple(read(atom) for atom in eqn.invars), eqn.params)
        results = result if eqn.primitive.multiple_results else [result]
        known.update(zip(eqn.outvars, results, strict=True))

    accumulated: dict[Var, Any] = {}
    for atom, cotangent in zip(jaxpr.outvars, cotangents, strict=True):
        if cotangent is not None and isinstance(atom, Var) and atom in linear:
            accumulated[atom] = add_tangents(accumulated.get(atom), cotangent)
    for eqn in reversed(linear_eqns):
        results = [accumulated.pop(var, None) for var in eqn.outvars]
        if all(cotangent is None for cotangent in results):
            continue
        transposed = _transpose(eqn, results, [read(atom) for atom in eqn.invars])
        for atom, cotangent in zip(eqn.invars, transposed, strict=True):
            if cotangent is not None and isinstance(atom, Var) and atom in linear:
                accumulated[atom] = add_tangents(accumulated.get(atom), cotangent)
    return [accumulated.get(var) if var in linear else None for var in jaxpr.invars]


def transpose_jaxpr(closed: ClosedJaxpr, is_linear: tuple[bool, ...],
                    has_cotangent: tuple[bool, ...]) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """The jaxpr (known operands, cotangents) -> cotangents of the linear operands, with which of
    the linear operands have one.

    Raises:
      RefsTouched: the backward rule of a custom_vjp uses array references.
    """
    result, nonzero = transpose_with_refs(closed, is_linear, has_cotangent)
    if result.refs:
        raise RefsTouched("the backward pass of a primitive", result.refs)
    return result, nonzero


@derived
def transpose_with_refs(
        closed: ClosedJaxpr, is_linear: tuple[bool, ...],
        has_cotangent: tuple[bool, ...]) -> tuple[ClosedJaxpr, tuple[bool, ...]]:
    """``transpose_jaxpr`` for callers that deal with the ``refs`` of the result."""
    known_avals = [aval for aval, linear in zip(closed.in_avals, is_linear, strict=True)
                   if not linear]
    cotangent_avals = [aval.cotangent() for aval, given in zip(
        closed.out_avals, has_cotangent, strict=True) if given]
    nonzero: list[bool] = []

    def function(*args: Any) -> list[Any]:
        known = iter(args[:len(known_avals)])
        given = iter(args[len(known_avals):])
        operands = [Linear(aval) if linear else next(known)
                    for aval, linear in zip(closed.in_avals, is_linear, strict=True)]
        cotangents = [next(given) if has else None for has in has_cotangent]
        results = backward_pass(closed.jaxpr, closed.consts, operands, cotangents)
        chosen = [result for result, linear in zip(results, is_linear, strict=True) if linear]
        nonzero.extend(result is not None for result in chosen)
        return [result for result in chosen if result is not None]

    result = trace_to_jaxpr(function, [*known_avals, *cotangent_avals], closed.jaxpr.debug_info,
                            with_refs=True)
    return result, tuple(nonzero)
